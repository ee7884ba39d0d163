"""The program and an independent reading agree on which documents are valid; whatever is read gets an answer."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import review_model as model
from review.documents import DOCUMENTS, RULES, artifact, document, edited
from review.mutate import mutated
from troth.core.errors import Refused
from troth.review.context import shown
from troth.review.formats import instant, is_uri
from troth.review.relations import evidence_of
from troth.review.rules import RULES as KNOWN
from troth.review.validate import validate

READERS = {"response": model.response, "reconciliation": model.reconciliation}
COUNTS: Counter[bool] = Counter()
READ: Counter[bool] = Counter()


def agree(kind: str, value: Any) -> bool:
    report = validate(json.dumps(value).encode(), kind=kind)  # type: ignore[arg-type]  # a str
    if report.kind != kind:
        return False
    expected = READERS[kind](value)
    assert (report.violations == ()) == expected, report.violations
    return expected


@pytest.mark.parametrize("row", [row for row in RULES if row["of"] in READERS], ids=lambda row: row["rule"])
def test_both_readings_agree_on_every_vector(row: dict[str, Any]) -> None:
    valid = agree(row["of"], edited(document(row["of"]), row))
    assert valid == (KNOWN[row["rule"]].level == "L3")
    agree(row["of"], document(row["of"]))


@settings(max_examples=200, deadline=None)
@given(st.integers(min_value=0, max_value=2**48))
def test_both_readings_agree_on_mutated_documents(seed: int) -> None:
    chance = random.Random(seed)
    kind = chance.choice(list(READERS))
    COUNTS[agree(kind, mutated(chance, document(kind), chance.choice([1, 1, 1, 2, 4])))] += 1


def test_both_verdicts_occurred() -> None:
    print(f"documents: accepted {COUNTS[True]} of {COUNTS.total()}")
    assert COUNTS[True] > 0
    assert COUNTS[False] > 0


@settings(max_examples=150, deadline=None)
@given(st.integers(min_value=0, max_value=2**48))
def test_spoilt_bytes_always_get_an_answer(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(json.dumps(document(chance.choice(DOCUMENTS))).encode())
    for _ in range(chance.choice([0, 1, 1, 2, 8])):
        at = chance.randrange(len(data))
        what = chance.randrange(3)
        if what == 0:
            data[at] = chance.randrange(256)
        elif what == 1:
            del data[at : at + chance.choice([1, 1, 30])]
        else:
            data[at:at] = chance.choice([b'"', b"{", b"]", b"\xff", b'"findings": 1,', b"NaN", b"\\ud800"])
    try:
        report = validate(bytes(data), artifact=artifact(), review=document("response"), decided=frozenset())
    except Refused as fault:
        assert fault.code == "E_REVIEW_KIND"  # noqa: PT017 - any other way out is a failure
        READ[False] += 1
        return
    assert {told.rule for told in report.violations} <= set(KNOWN)
    json.dumps(report.as_json())
    READ[report.verdict == "valid"] += 1
    if report.kind == "response" and not report.violations:
        for _, evidence in evidence_of("response", report.value):
            json.dumps(shown(evidence["anchor"], artifact()).as_json())


def test_spoilt_bytes_were_accepted_too() -> None:
    print(f"bytes: accepted {READ[True]} of {READ.total()}")
    assert READ[True] > 0
    assert READ[False] > 0


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab:/?#[]@!%20.x\u00e9 ", max_size=12))
def test_uris_as_a_library_reads_them(text: str) -> None:
    import jsonschema_rs

    checker = jsonschema_rs.Draft202012Validator({"format": "uri"}, validate_formats=True)
    assert is_uri(text) == checker.is_valid(text)


@settings(max_examples=300, deadline=None)
@given(
    st.builds(
        lambda y, m, d, h, n, s, f, z: f"{y:04}-{m:02}-{d:02}T{h:02}:{n:02}:{s:02}{f}{z}",
        st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32), st.integers(0, 24), st.integers(0, 60),
        st.integers(0, 60), st.sampled_from(["", ".", ".5", ".123456789012"]),
        st.sampled_from(["Z", "z", "+01:00", "-23:59", "+24:00", "", "+0100"]),
    )
)  # fmt: skip
def test_date_times_as_a_library_reads_them(text: str) -> None:
    import jsonschema_rs

    checker = jsonschema_rs.Draft202012Validator({"format": "date-time"}, validate_formats=True)
    if ":60" in text[16:]:
        return  # leap seconds are read by a rule of their own, and libraries differ
    assert (instant(text) is not None) == checker.is_valid(text)


def test_instants_sort_by_time() -> None:
    ordered = [
        "0000-01-01T00:00:00Z", "1999-12-31T23:30:00-01:00", "2000-01-01T00:30:00.1Z", "2000-01-01T01:30:00.25+01:00",
        "2016-12-31T23:59:59.9Z", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z",
    ]  # fmt: skip
    keys = [instant(text) for text in ordered]
    assert None not in keys
    assert keys == sorted(keys)  # type: ignore[type-var]  # none of them is None
    assert len(set(keys)) == len(keys)
