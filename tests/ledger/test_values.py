"""Admission, step 3: what a writer asks of values (ledger spec §2, §3, §5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ledger.admitting import (
    BAD_VALUE,
    STATE,
    WORLD,
    ask,
    candidate,
    outcome,
)
from ledger.building import ZERO
from troth.core.canonical import row_bytes
from troth.ledger.rows import MAX_ROW_BYTES, parse_row

# --- step 3

DEEP: Any = 0
for _ in range(99):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "members",
    [
        {"id": 5},
        {"id": ""},
        {"ts": ""},
        {"workspace": ""},
        {"semantic": {"mood": "x"}},
        {"semantic": {"intent": None}},
        {"trace": {"parent": None}},
        {"trace": {"parents": [WORLD.seen]}},
        {"relations": [{"type": "cites", "targetId": WORLD.seen, "weight": 1}]},
        {"id": "mem_short"},
        {"id": "mem_0000000G"},
        {"id": "op_00000001"},
        {"id": "mem_" + "0" * 65},
        {"id": "mem_00000001\n"},
        {"ts": "2026-01-01T00:00:00+00:00"},
        {"ts": "2026-02-30T00:00:00Z"},
        {"ts": "2026-01-01T00:00:60Z"},
        {"ts": "2026-01-01T00:00:00.Z"},
        {"ts": "2026-01-01T00:00:00.1234567890Z"},
        {"ts": "2026-01-01 00:00:00Z"},
        {"ts": "2026-01-01T00:00:00z"},
        {"ts": "2026-01-01T00:00:00Z "},
        {"ts": 1},
        {"workspace": "a b"},
        {"workspace": "w" * 129},
        {"workspace": 1},
        {"syncScope": "moon"},
        {"semantic": "x"},
        {"semantic": {"entities": "x"}},
        {"semantic": {"intent": ["x"]}},
        {"semantic": {"domain": [1]}},
        {"trace": "x"},
        {"trace": {"parent": WORLD.seen}},
        {"trace": {"parent": [""]}},
        {"trace": {"parent": [None]}},
        {"trace": {"children": "x"}},
        {"trace": {"causalDepth": -1}},
        {"trace": {"causalDepth": True}},
        {"trace": {"causalDepth": 1.0}},
        {"relations": {"type": "cites", "targetId": WORLD.seen}},
        {"relations": [{"type": "cites"}]},
        {"relations": [{"targetId": WORLD.seen}]},
        {"relations": [{"type": "cites", "targetId": ""}]},
        {"relations": [{"type": "hugs", "targetId": WORLD.seen}]},
        {"relations": [{"type": "supports", "targetId": WORLD.seen}]},
        {"relations": [{"type": "supersedes", "targetId": WORLD.seen}]},
        {"relations": [{"type": "okf_link", "targetId": WORLD.seen}]},
        {"observationLevel": "derived"},
        {"observationLevel": 1},
        {"sourceIds": WORLD.seen},
        {"sourceIds": [""]},
        {"source_key": ""},
        {"source_key": "k" * 513},
        {"source_key": 1},
        {"extra": {"own": 1}},
        {"extra": {"hash": "a" * 64}},
        {"extra": {"prevHash": ZERO}},
        {"extra": {"X_own": 1}},
        {"extra": {"x_own": float("nan")}},
        {"extra": {"x_own": 2**53}},
        {"extra": {"x_own": -(2**53)}},
        {"extra": {"x_own": {1: 2}}},
        {"extra": {"x_own": (1, 2)}},
        {"extra": {"x_own": b"x"}},
        {"extra": {"x_own": "\ud800"}},
        {"extra": {"x_\ud800": 1}},
        {"extra": {"x_own": [DEEP]}},
    ],
)
def test_bad_values_in_the_envelope(members: dict[str, Any]) -> None:
    assert outcome(candidate("capture", members=members), STATE) == BAD_VALUE


@pytest.mark.parametrize(
    "members",
    [
        {"id": "mem_" + "0z" * 32},
        {"ts": "2024-02-29T23:59:59.1Z"},
        {"workspace": "w" * 128},
        {"workspace": "é/\U0001f600"},
        {"syncScope": "cloud"},
        {"trace": {"parent": [WORLD.seen], "causalDepth": 0}},
        {"source_key": "k" * 512},
        {"extra": {"x_own": 2**53 - 1, "x_": None, "x_other": -(2**53) + 1}},
        {"extra": {"x_own": DEEP}},
        {"semantic": {"intent": "a", "x_mood": 1}},
        {"relations": [{"type": "cites", "targetId": WORLD.seen, "x_weight": 1}]},
    ],
)
def test_good_values_in_the_envelope(members: dict[str, Any]) -> None:
    row = ask(candidate("capture", members=members), STATE)
    assert parse_row(row_bytes(row)) == row


@pytest.mark.parametrize(
    "payload",
    [
        {"body": ""},
        {"body": " \t\n\u2003"},
        {"body": 5},
        {"body": "\udfff"},
        {"kind": "Finding"},
        {"kind": "a" * 65},
        {"kind": "1a"},
        {"kind": "a b"},
        {"kind": ""},
        {"kind": 5},
        {"tags": "x"},
        {"tags": [1]},
        {"refs": WORLD.seen},
        {"refs": [""]},
        {"meta": []},
        {"meta": {"a": float("inf")}},
        {"summary": 1},
        {"reason": {}},
        {"comment": ["x"]},
        {"source": 1},
        {"commitment": 1},
        {"evidence": 1},
        {"target": 1},
        {"duplicate_of": 1},
        {"source": ""},
        {"target": ""},
        {"unknown": 1},
        {"Body": "x"},
    ],
)
def test_bad_values_in_the_payload(payload: dict[str, Any]) -> None:
    assert outcome(candidate("capture", **payload), STATE) == BAD_VALUE


@pytest.mark.parametrize(
    "actor",
    ["worker", "team:core", "ci:runner", "human:", "human: x", "human::x", "Human:x", "agent:a b", "a@", "@b", "a@b@c",
     5, "human:" + "x" * 257, "human:x\n", "a b@c.org"],
)  # fmt: skip
def test_bad_actors(actor: Any) -> None:
    assert outcome(candidate("capture", actor), STATE) == BAD_VALUE


@pytest.mark.parametrize(
    "actor", ["human:x", "agent:x:y", "system:witness", "someone@example.org", "human:" + "é" * 256]
)
def test_good_actors(actor: str) -> None:
    assert ask(candidate("capture", actor), STATE)["actor"] == actor


def test_a_row_too_long_is_refused() -> None:
    fits = ask(candidate("capture", body="x"), STATE)
    room = MAX_ROW_BYTES - len(row_bytes(fits))
    assert len(row_bytes(ask(candidate("capture", body="x" * (room + 1)), STATE))) == MAX_ROW_BYTES
    assert outcome(candidate("capture", body="x" * (room + 2)), STATE) == BAD_VALUE


def test_supplied_trust_is_refused_after_bad_values() -> None:
    for trust in ({"confidence": 1.0}, "high", 0.9, [1], False, 0, {}):
        asked = candidate("capture", members={"trust": trust})
        assert outcome(asked, STATE) == ("E_CONSTRAINT_VIOLATED", "trust_self_reported")
        assert outcome(replace(asked, ts="x"), STATE) == BAD_VALUE
