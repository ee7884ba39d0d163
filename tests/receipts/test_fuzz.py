"""Whatever stands in a member, a reader answers: no bytes make it raise, hang or accept everything."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipts.mutate import draft_of, mutated, spoil
from receipts.test_differential import ours
from receipts.test_receipt import sealed
from support.receipt_members import CHECKS, FILES
from troth.receipts import explain
from troth.receipts.member import MappingMember
from troth.receipts.reasons import REASONS
from troth.receipts.verify import check_member, examine, standing

SHAPES = ({"refused"}, {"contract"}, {"receipt"}, {"receipt", "checks", "done"}, {"checks"}, {"checks", "done"})


def held(files: dict[str, bytes], names: list[str] | None) -> str:
    """Check a member, hold the result to its shape, and tell its story; return what it came to."""
    found = examine(MappingMember(files), names)
    result = found.result
    assert set(result) in SHAPES
    codes = [result[name]["code"] for name in ("receipt", "contract") if "code" in result.get(name, {})]
    codes += [result["refused"]] if "refused" in result else []
    answers = [*result.get("checks", {}).values(), *([result["done"]] if "done" in result else [])]
    codes += [answer["reason"] for answer in answers]
    assert set(codes) <= set(REASONS)
    for answer in answers:
        assert ("witness_scope" in answer) == (answer["decision"] != "not_established")
    json.dumps(
        [explain.stories(found), explain.records_of(found), explain.effects_of(found), explain.authorities(found)]
    )
    return standing(result)


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=0, max_value=2**48))
def test_mutated_members_always_get_a_result(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        held(*mutated(chance, ours))


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=0, max_value=2**48))
def test_spoilt_bytes_always_get_a_result(seed: int) -> None:
    chance = random.Random(seed)
    draft = draft_of(chance)
    files = sealed(draft)
    for _ in range(10):
        spoilt = dict(files)
        for _ in range(chance.choice([1, 2, 5])):
            name = chance.choice(list(spoilt))
            spoilt[name] = spoil(spoilt[name], chance)
        held(spoilt, None)


@given(st.dictionaries(st.sampled_from([*FILES.values(), "receipt.json", "statement.json"]), st.binary(max_size=40)))
def test_bytes_of_any_kind_always_get_a_result(files: dict[str, bytes]) -> None:
    held(files, None)
    for check in CHECKS:
        held(files, [check])


def test_accept_rate(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader that refuses everything would pass the tests above."""
    chance = random.Random(1)
    seen: Counter[str] = Counter(held(*mutated(chance, ours)) for _ in range(600))
    with capsys.disabled():
        print(f" [600 mutated members: {dict(seen)}]", end="")
    assert seen["holds"] > 30
    assert seen["does_not_hold"] > 100
    assert seen["refused"] > 100
    assert seen["not_established"] > 10


def test_large_records_take_no_longer_than_their_size() -> None:
    """Many claims of one command over many runs of it, and deep names under many entries: no product of the two."""
    draft = draft_of(random.Random(0))
    events = [
        {"id": f"e{step}", "type": "exec", "step": step, "time": "2026-03-01T10:00:01Z", "argv": ["a"], "exit": 0}
        for step in range(20_000)
    ]
    draft.values["observation"] |= {"events": events}
    draft.claim(*({"id": f"c{number}", "argv": ["a"], "exit": 1} for number in range(20_000)))
    deep = "/".join("d" * 400)
    draft.values["contract"]["protected_paths"] = [
        {"path": f"{deep[: 2 * depth + 1]}", "kind": "directory", "sha256": "0" * 64} for depth in range(400)
    ]
    events[-1:] = [
        {
            "id": f"w{number}",
            "type": "write",
            "step": 30_000 + number,
            "time": "2026-03-01T10:00:01Z",
            "path": f"x/{deep}",
        }
        for number in range(5_000)
    ]
    result = check_member(MappingMember(draft.seal()), list(CHECKS))
    assert result["checks"]["tool_claim_match/v1"]["reason"] == "tool_claim_precedes_last_edit"
