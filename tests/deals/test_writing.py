"""What is written here is read in one go; it comes to the same as reading its lines like anybody else's."""

from __future__ import annotations

import copy
import random
import tracemalloc
from typing import Any

import pytest

from deals import moves
from deals.moves import message
from troth.deals.answer import answer, final_bytes
from troth.deals.run import Run, replay
from troth.deals.transcript import entries, message_form, message_line, read_entry, split_lines
from troth.deals.writing import Scribe, offer_body


class Heard:
    """A run that hears where it can, and one that reads every line."""

    def __init__(self) -> None:
        self.one, self.other = Run(), Run()
        self.heard = self.left = 0

    def take(self, step: int, value: dict[str, Any]) -> None:
        line = message_line(step, value)
        if self.one.hear(step, value, message_form(line)):
            self.heard += 1
        else:
            self.left += 1
            self.one.take(read_entry(line[:-1]))
        self.other.take(read_entry(line[:-1]))
        assert answer(self.one) == answer(self.other)

    def same(self) -> None:
        assert final_bytes(self.one) == final_bytes(self.other)
        assert [deal.illegal for deal in self.one.deals.values()] == [
            deal.illegal for deal in self.other.deals.values()
        ]


def test_random_runs_come_to_the_same() -> None:
    heard = left = 0
    for seed in range(400):
        rng = random.Random(seed)
        both = Heard()
        lines = [line for line in moves.random_lines(rng, 14) if "msg" in line]
        for line in lines:
            value = copy.deepcopy(line["msg"])
            if rng.random() < 0.15:
                bend(rng, value)
            both.take(line["step"], value)
            if rng.random() < 0.1:
                both.take(line["step"], value)
        both.same()
        heard, left = heard + both.heard, left + both.left
    assert heard > 3000
    assert left > 300


def bend(rng: random.Random, value: dict[str, Any]) -> None:
    """Spoil one member somewhere, often not at all badly."""
    path = rng.choice([path for path in moves.places(value) if path and path != ("type",)])
    inner: Any = value
    for name in path[:-1]:
        inner = inner[name]
    if rng.random() < 0.3 and isinstance(inner, dict):
        del inner[path[-1]]
    else:
        inner[path[-1]] = rng.choice((None, True, -1, 0, 1.0, 2**53, "", "2026-01-01T00:00:60Z", "A", [], {}, [1.5]))


@pytest.mark.parametrize(
    "changed",
    [
        {"ts": "yesterday"}, {"ts": "2026-02-30T00:00:00Z"}, {"unknown": 1}, {"msg_id": ""}, {"offer_id": ""},
        {"channel": "chat"}, {"expires_steps": 3.0}, {"expires_steps": True}, {"breach_C": "none"},
        {"obligation": {"kind": "k", "spec": "s", "checklist": [{"id": 1, "predicate": "p"}], "deadline_steps": 1}},
        {"obligation": {"kind": "k", "spec": "s", "checklist": [], "deadline_steps": 1}}, {"type": "Offering"},
        {"type": ["Offer"]}, {"type": None}, {"supersedes": "off_0"}, {"from": "Z"},
    ],
)  # fmt: skip
def test_what_is_amiss_is_left_to_the_reader(changed: dict[str, Any]) -> None:
    both = Heard()
    both.take(0, {**message(1, "Offer"), **changed})
    assert both.left == 1
    both.take(0, message(2, "Accept"))
    both.same()


def test_steps_that_go_back_and_lines_after_the_end() -> None:
    scribe = Scribe()
    scribe.say(4, "C", "Offer", offer_body("off_1"))
    scribe.say(2, "A", "Accept", {"offer_id": "off_1"})
    scribe.end(1)
    scribe.end(9)
    scribe.say(9, "C", "Offer", offer_body("off_2"))
    scribe.end(10)
    again = replay(entries(split_lines(scribe.transcript())))
    assert final_bytes(again) == final_bytes(scribe.run)
    assert [line for line, _ in scribe.run.log] == [line for line, _ in again.log]
    assert {name: deal.state for name, deal in again.deals.items()} == {
        "off_1": "Closed:protocol_error",
        "off_2": "Closed:protocol_error",
    }


def test_lines_that_are_kept_take_no_more_room_than_they_are_long():
    body = {"msg_id": "msg_1", "type": "Disclosure", "claims": ["x" * 700]}
    tracemalloc.start()
    try:
        lines = [message_line(step, body) for step in range(500)]
        room = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert room < 1.5 * sum(map(len, lines))
