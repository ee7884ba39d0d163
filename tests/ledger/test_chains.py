"""Stored trust read again: chains, stamps, levels, half-lives, terms (ledger spec §9 [D30] [D32], §16)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.trusting import STAMP, chain
from troth.ledger.chains import (
    DEFAULT_TERMS,
    HUMAN,
    LEVELS,
    MACHINE,
    NOTHING,
    UNVERIFIED,
    Asserted,
    assess,
    genesis_terms,
    parse_chain,
    stored_half_life,
)
from troth.ledger.trust import WEIGHTS, creation_trust, human_stamp

FULL = chain()
NUMBERS = [("1", 1.0), ("0", 0.0), ("0.80", 0.8), ("1e-1", 0.1), ("1E0", 1.0), ("-0", 0.0), ("1.000", 1.0)]
NO_NUMBERS = ["", " 1", "1 ", "+1", ".5", "1.", "01", "1_0", "nan", "inf", "0x1", "1e400", "1.1", "-0.1", "one", "٠"]


def row(trust: Any, op: str = "capture", actor: str = "agent:worker") -> dict[str, Any]:
    return {"op": op, "actor": actor, "trust": trust}


def read(trust: Any, op: str = "capture", actor: str = "agent:worker") -> Asserted:
    return assess(row(trust, op, actor), WEIGHTS)


@pytest.mark.parametrize(("text", "value"), NUMBERS)
def test_numbers_of_a_chain(text: str, value: float) -> None:
    found = parse_chain(chain(duration_reasonable=text))
    assert found is not None
    assert found["duration_reasonable"] == value
    assert list(found) == list(WEIGHTS)


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_makes_a_row_unscored(text: str) -> None:
    assert parse_chain(chain(duration_reasonable=text)) is None
    assert read({"confidence": 0.5, "chain": chain(duration_reasonable=text)}) == NOTHING


@pytest.mark.parametrize(
    "wrong",
    [None, "x", {}, [], FULL[1:], [*FULL, "extra:1.0"], [*FULL[1:], FULL[1]], [*FULL, FULL[0]], [*FULL[1:], 1],
     [*FULL[1:], "exit_code"], [*FULL[1:], "exit_code=1.0"], [*FULL[1:], "Exit_code:1.0"], [*FULL[1:], "x:1.0"]],
)  # fmt: skip
def test_a_chain_is_all_seven_and_nothing_else(wrong: Any) -> None:
    assert parse_chain(wrong) is None
    assert read({"confidence": 0.9, "chain": wrong, "verification": "machine_verified"}) == NOTHING
    assert parse_chain(FULL[::-1]) == dict.fromkeys(WEIGHTS, 1.0)


@pytest.mark.parametrize("confidence", [None, "", "0.5", True, -0.001, 1.001, 10**400, [0.5]])
def test_a_confidence_that_is_none(confidence: Any) -> None:
    assert read({"confidence": confidence, "chain": FULL}) == NOTHING
    assert read({"chain": FULL}) == NOTHING


@pytest.mark.parametrize("trust", [None, "high", [], {}, 0.9])
def test_trust_that_is_no_object_or_empty(trust: Any) -> None:
    assert read(trust) == NOTHING


@pytest.mark.parametrize(
    ("stored", "value", "mismatch"),
    [(1, 1.0, False), (1.0, 1.0, False), (0.999, 0.999, False), (0.9989, 0.9989, True), (0, 0.0, True)],
)
def test_the_lower_one_is_taken(stored: float, value: float, mismatch: bool) -> None:
    found = read({"confidence": stored, "chain": FULL})
    assert (found.value, found.mismatch, found.recomputed) == (value, mismatch, 1.0)
    assert isinstance(found.value, float)


def test_a_stored_value_above_the_chain_is_cut() -> None:
    parts = chain(exit_code=0.0)
    assert read({"confidence": 0.801, "chain": parts})[:2] == (0.8, True)
    assert not read({"confidence": 0.801, "chain": parts}).mismatch
    assert read({"confidence": 0.802, "chain": parts}).mismatch


def test_other_weights_give_another_sum() -> None:
    weights = dict.fromkeys(WEIGHTS, 0.0) | {"exit_code": 1.0}
    found = assess(row({"confidence": 0.8, "chain": chain(exit_code=0.25)}), weights)
    assert (found.value, found.stored, found.recomputed, found.mismatch) == (0.25, 0.8, 0.25, True)


@pytest.mark.parametrize(
    ("change", "op", "actor", "scored"),
    [
        ({}, "approve", "human:reviewer", True),
        ({}, "approve", "reviewer@example.org", True),
        ({"decayHalfLifeDays": 5}, "approve", "human:reviewer", True),
        ({}, "approve", "agent:worker", False),
        ({}, "approve", "system:validator", False),
        ({}, "capture", "human:reviewer", False),
        ({"confidence": 0.94}, "approve", "human:reviewer", False),
        ({"confidence": 1}, "approve", "human:reviewer", False),
        ({"verification": "machine_verified"}, "approve", "human:reviewer", False),
        ({"chain": ["manual_review:1"]}, "approve", "human:reviewer", False),
        ({"chain": ["manual_review:1.0", "exit_code:1.0"]}, "approve", "human:reviewer", False),
    ],
)
def test_the_stamp_of_a_person(change: dict[str, Any], op: str, actor: str, scored: bool) -> None:
    found = read({**STAMP, **change}, op, actor)
    assert found == (Asserted(0.95, True, HUMAN, 0.95) if scored else NOTHING)


@pytest.mark.parametrize(
    ("verification", "exit_code", "level"),
    [
        ("machine_verified", 1.0, MACHINE),
        ("machine_verified", "1", MACHINE),
        ("machine_verified", 0.0, UNVERIFIED),
        ("machine_verified", 0.99, UNVERIFIED),
        ("human_verified", 1.0, UNVERIFIED),
        ("unverified", 1.0, UNVERIFIED),
        (None, 1.0, UNVERIFIED),
        (5, 1.0, UNVERIFIED),
    ],
)
def test_the_level_at_creation(verification: Any, exit_code: float | str, level: int) -> None:
    block = {"confidence": 0.5, "verification": verification, "chain": chain(exit_code=exit_code)}
    assert read(block).level == level


@given(st.fixed_dictionaries({name: st.floats(0, 1) for name in WEIGHTS}))
def test_what_the_engine_writes_is_read_as_it_was_written(values: dict[str, float]) -> None:
    block = creation_trust(values)
    found = read(block)
    assert (found.value, found.scored, found.mismatch) == (block["confidence"], True, False)
    assert found.recomputed == block["confidence"]
    assert LEVELS[found.level] == block["verification"]
    stamp = assess(row(human_stamp(), "approve", "human:reviewer"), WEIGHTS)
    assert (stamp.value, stamp.level) == (0.95, HUMAN)


NAMES = st.sampled_from(["confidence", "verification", "chain", "decayHalfLifeDays", "x"])
ATOMS = st.none() | st.booleans() | st.floats() | st.integers() | st.text()


@given(st.recursive(ATOMS, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner)))
def test_anything_can_stand_there(trust: Any) -> None:
    found = read(trust)
    assert 0.0 <= found.value <= 1.0
    stored_half_life(trust)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [(None, (None, False)), ("", (None, False)), (1, (1, False)), (400, (400, False)), (0, (None, True)),
     (-1, (None, True)), (1.5, (None, True)), (30.0, (None, True)), (True, (None, True)), ("30", (None, True))],
)  # fmt: skip
def test_half_lives(stored: Any, expected: tuple[int | None, bool]) -> None:
    assert stored_half_life({"decayHalfLifeDays": stored}) == expected
    assert stored_half_life({}) == (None, False)


WEIGHTED = dict.fromkeys(WEIGHTS, 0.0) | {"exit_code": 1}


def event(**changes: Any) -> dict[str, Any]:
    genesis = {"sha256": "0" * 64, "weights": WEIGHTED, "half_life_days": 30, **changes}
    payload = {"body": "key", "kind": "event", "meta": {"genesis": genesis}}
    return {"op": "capture", "actor": "system:genesis", "payload": payload}


def test_a_genesis_event_sets_terms() -> None:
    found = genesis_terms(event(), DEFAULT_TERMS)
    assert (found.weights, found.half_life_days) == (WEIGHTED, 30)
    assert genesis_terms(event(weights=None, half_life_days=None), found) == found
    assert genesis_terms(event(half_life_days=60), found).half_life_days == 60


@pytest.mark.parametrize(
    "wrong",
    [None, [], "x", {}, dict.fromkeys(WEIGHTS, True), WEIGHTED | {"more": 0.0}, WEIGHTED | {"no_errors": 0.1},
     WEIGHTED | {"exit_code": 2, "no_errors": -1}, WEIGHTED | {"exit_code": "1"}],
)  # fmt: skip
def test_weights_that_no_key_could_have_change_nothing(wrong: Any) -> None:
    assert genesis_terms(event(weights=wrong), DEFAULT_TERMS).weights == WEIGHTS


@pytest.mark.parametrize("days", [0, 1.5, True, "30", -2])
def test_a_half_life_that_no_key_could_have_changes_nothing(days: Any) -> None:
    assert genesis_terms(event(half_life_days=days), DEFAULT_TERMS).half_life_days is None


def test_what_is_no_genesis_event() -> None:
    good = event()
    for change in (
        {"actor": "system:other"},
        {"op": "annotate"},
        {"payload": None},
        {"payload": good["payload"] | {"kind": "note"}},
        {"payload": good["payload"] | {"meta": None}},
        {"payload": good["payload"] | {"meta": {"genesis": None}}},
        {"payload": good["payload"] | {"meta": {"genesis": {"weights": WEIGHTED}}}},
    ):
        assert genesis_terms(good | change, DEFAULT_TERMS) == DEFAULT_TERMS
