"""The published form of the member lists: a JSON Schema library and the walk agree on documents good and spoilt."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review.documents import RULES, document, edited
from review.mutate import mutated
from troth.review import schemas
from troth.review.rules import RULES as KNOWN
from troth.review.validate import validate

KINDS = ("response", "reconciliation")
IN_TEXT_ALONE = {"json-text", "duplicate-member"}


def stripped(schema: Any) -> Any:
    """Return the schema without what published schemas do not state: each such part names its rule."""
    if isinstance(schema, list):
        return [stripped(part) for part in schema if not _is_ours(part)]
    if isinstance(schema, dict):
        parts = {name: stripped(part) for name, part in schema.items()}
        return {name: part for name, part in parts.items() if name != "allOf" or part}
    return schema


def _is_ours(part: Any) -> bool:
    comment = part.get("$comment", "") if isinstance(part, dict) else ""
    rule = comment.partition(",")[0]
    return bool(rule) and (not KNOWN[rule].published or comment.endswith("forbidden"))


def checker(kind: Any, *, published: bool) -> Any:
    schema = json.loads(schemas.text(kind))
    return jsonschema_rs.Draft202012Validator(stripped(schema) if published else schema, validate_formats=True)


CHECKERS = {(kind, published): checker(kind, published=published) for kind in KINDS for published in (True, False)}


def agree(kind: str, value: Any, *, published: bool) -> bool:
    """Hold both readings against each other; return whether they accept."""
    report = validate(json.dumps(value).encode(), kind=kind, published=published)  # type: ignore[arg-type]  # a str
    if report.kind != kind:
        return False
    mine = [told for told in report.violations if KNOWN[told.rule].level == "L1"]
    theirs = CHECKERS[kind, published].is_valid(value)
    assert (not mine) == theirs, (mine, [error.message for error in CHECKERS[kind, published].iter_errors(value)])
    return theirs


@pytest.mark.parametrize("kind", KINDS)
def test_the_schemas_are_schemas_of_ours(kind: Any) -> None:
    schema = json.loads(schemas.text(kind))
    assert jsonschema_rs.meta.is_valid(schema)
    assert schema["$id"].startswith("urn:troth:")
    assert agree(kind, document(kind), published=False)
    assert agree(kind, document(kind), published=True)


@pytest.mark.parametrize("row", [row for row in RULES if row["of"] in KINDS], ids=lambda row: row["rule"])
def test_both_readings_agree_on_every_vector(row: dict[str, Any]) -> None:
    value = edited(document(row["of"]), row)
    accepted = agree(row["of"], value, published=False)
    # quote-digest and what stands at L2 and L3 no schema can state
    assert accepted == (KNOWN[row["rule"]].level != "L1")
    agree(row["of"], value, published=True)
    if "twin" in row:
        assert agree(row["of"], edited(document(row["of"]), row["twin"]), published=False)


COUNTS: Counter[bool] = Counter()


@settings(max_examples=150, deadline=None)
@given(st.integers(min_value=0, max_value=2**48))
def test_both_readings_agree_on_mutated_documents(seed: int) -> None:
    chance = random.Random(seed)
    kind = chance.choice(KINDS)
    value = mutated(chance, copy.deepcopy(document(kind)), chance.choice([1, 1, 2, 4]))
    for published in (True, False):
        COUNTS[agree(kind, value, published=published)] += 1


def test_both_verdicts_occurred() -> None:
    print(f"schemas: accepted {COUNTS[True]} of {COUNTS.total()}")
    assert COUNTS[True] > 0
    assert COUNTS[False] > 0
