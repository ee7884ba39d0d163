"""Documents bent at random: members dropped, doubled, renamed, exchanged for others of any type."""

from __future__ import annotations

import random
from typing import Any

from troth.review.shapes import ANCHORS, FAILURE_CODES, FINAL_STATES, METHODS, OUTCOMES, RECORDS, RESULTS

NAMES = sorted({name for members in (*RECORDS.values(), *ANCHORS.values()) for name in members} | {"x"})
WORDS = [*FINAL_STATES, *METHODS, *RESULTS, *OUTCOMES, *FAILURE_CODES, *ANCHORS, "approve", "needs_attention",
         "unable_to_assess", "sha256", "git", "unverified_refutation", "round_limit"]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, 1, 2, 3.0, 2.5, -1, "", " ", "\u0007", "F001", "F002", "F7", "text",
    [], {}, ["x"], [""], {"x": 1}, "2026-03-02T10:00:00Z",
    "2026-03-01T10:00:00Z", "2026-02-30T10:00:00Z", "sha256:" + "0" * 64, "0" * 64, "https://example.org/", "a b",
    {"type": "generic", "locator": "x"}, {"type": "text_quote", "quote": "One server"}, {"type": "section"},
    [{"method": "command", "result": "supports"}], [{"method": "model_inference", "result": "contradicts"}],
    {"dispute_kind": "evidence_gap", "stop_reason": "round_limit"}, {"code": "timeout", "message": "x"},
    {"finding_id": "F001", "state": "accepted", "verification": [{"method": "command", "result": "supports"}]},
]  # fmt: skip


def mutated(chance: random.Random, value: Any, times: int) -> Any:
    """Return the document changed in place so many times; the root stays an object."""
    for _ in range(times):
        place = chance.choice([part for part in _containers(value) if part or isinstance(part, dict)])
        if isinstance(place, list):
            _bend_list(chance, place)
        else:
            _bend_object(chance, place)
    return value


def _containers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value] + [part for inner in value.values() for part in _containers(inner)]
    if isinstance(value, list):
        return [value] + [part for inner in value for part in _containers(inner)]
    return []


def _new(chance: random.Random) -> Any:
    return chance.choice(WORDS) if chance.random() < 0.4 else chance.choice(VALUES)


def _bend_list(chance: random.Random, place: list[Any]) -> None:
    number = chance.randrange(len(place))
    what = chance.randrange(4)
    if what == 0:
        del place[number]
    elif what == 1:
        place.append(place[number])
    elif what == 2:
        place[number] = _new(chance)
    else:
        chance.shuffle(place)


def _bend_object(chance: random.Random, place: dict[str, Any]) -> None:
    if place and chance.random() < 0.7:
        name = chance.choice(list(place))
        if chance.random() < 0.35:
            del place[name]
        elif isinstance(place[name], str) and chance.random() < 0.6:
            place[name] = chance.choice(WORDS)
        else:
            place[name] = _new(chance)
    else:
        place[chance.choice(NAMES)] = _new(chance)
