"""Faults that once were in the ledger's rules, each with the smallest case that showed it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ledger.building import ZERO, Ledger, plain_hash
from ledger.test_operations import outcome
from support.ledgers import environment
from troth.core.strictjson import MAX_INT_DIGITS
from troth.ledger.chain import verify_lines
from troth.ledger.operations import Candidate
from troth.ledger.replay import State
from troth.ledger.seen import SeenDigests


def _calls(work: Callable[[], Any]) -> int:
    """Return how many functions and built-ins were called: a measure of work that no busy machine disturbs."""
    count = 0

    def tick(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tick)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def _reopened(duplicates: int, times: int) -> State:
    ledger = Ledger()
    seen = ledger.add("capture")
    work = ledger.add("commit", source=seen)
    ledger.add("claim", commitment=work)
    for _ in range(duplicates):
        other = ledger.add("commit", source=seen)
        ledger.add("close", commitment=other, duplicate_of=work)
    for _ in range(times):
        ledger.add("close", commitment=work, evidence=seen)
        ledger.add("reopen", commitment=work)
    return ledger.state()


def test_notes_of_duplicates_grow_with_the_rows_and_not_with_their_square() -> None:
    state = _reopened(20, 30)
    notes = [note for note in state.notes if note.warning == "duplicate_reopened"]
    assert len(notes) == 20 + 29
    named, counted = notes[:20], notes[20:]
    assert len({note.message for note in named}) == 20
    assert all(note.message.startswith("20 named before stay closed") for note in counted)
    # Each reopening still warns, in its own line.
    assert len({note.line for note in notes}) == 30


def test_a_duplicate_that_came_back_is_not_counted_and_one_closed_again_is_named_again() -> None:
    ledger = Ledger()
    seen = ledger.add("capture")
    work = ledger.add("commit", source=seen)
    other = ledger.add("commit", source=seen)
    ledger.add("claim", commitment=work)
    ledger.add("close", commitment=other, duplicate_of=work)

    def turn() -> list[str]:
        before = len(ledger.state().notes)
        ledger.add("close", commitment=work, evidence=seen)
        ledger.add("reopen", commitment=work)
        return [note.message for note in ledger.state().notes[before:]]

    assert turn() == [f"{other} stays closed as a duplicate of {work}, which was reopened"]
    assert turn() == [f"1 named before stay closed as duplicates of {work}, which was reopened again"]
    ledger.add("reopen", commitment=other)
    assert turn() == []
    ledger.add("close", commitment=other, duplicate_of=work)
    ledger.add("reopen", commitment=other)
    assert turn() == []
    ledger.add("close", commitment=other, duplicate_of=work)
    assert turn() == [f"{other} stays closed as a duplicate of {work}, which was reopened"]


def test_asking_behind_every_digest_copies_only_the_new_ones() -> None:
    class Counted(bytearray):
        taken = 0

        def __getitem__(self, part: Any) -> Any:
            found = super().__getitem__(part)
            Counted.taken += len(found) if isinstance(part, slice) else 1
            return found

    digests = SeenDigests()
    digests._flat = Counted()
    for number in range(2000):
        digests.add(number.to_bytes(32, "big"))
        assert (number.to_bytes(32, "big") in digests) is True
        assert (b"\xff" * 32 in digests) is False
    # Doubling the table copies all of it a dozen times; a copy behind every digest would be 64 million bytes.
    assert Counted.taken < 2000 * 32 * 40


def test_every_row_of_a_chain_may_link_wrongly_at_a_constant_price() -> None:
    def chain(count: int) -> bytes:
        out, first = [], ZERO
        for number in range(count):
            row: dict[str, Any] = {"id": f"mem_{number:08d}", "op": "capture", "payload": {"body": "b"}}
            row |= {"prevHash": first, "hash": plain_hash(row)}
            first = row["hash"] if number == 0 else first
            out.append(json.dumps(row))
        return "\n".join(out).encode() + b"\n"

    small, large = chain(300), chain(1200)
    assert len(verify_lines(large).faults) == 1198
    assert _calls(lambda: verify_lines(large)) < 6 * _calls(lambda: verify_lines(small))


@pytest.mark.parametrize("name", ["op", "actor", "payload", "id", "relations"])
def test_a_field_does_not_come_in_among_the_members_of_the_callers_own(name: str) -> None:
    forged: dict[str, Any] = {
        "op": "approve",
        "actor": "human:reviewer",
        "payload": {"body": "b"},
        "id": "op_00000000",
        "relations": [],
    }
    asked = Candidate("capture", "agent:worker", {"body": "b"}, extra={name: forged[name]})
    assert outcome(asked, State()) == ("E_CONSTRAINT_VIOLATED", "bad_value")
    assert outcome(Candidate("capture", "agent:worker", {"body": "b"}, extra={"x_own": 1}), State()) is None


def test_trust_among_the_members_of_the_callers_own_is_refused_as_trust() -> None:
    asked = Candidate("capture", "agent:worker", {"body": "b"}, extra={"trust": {"confidence": 1.0}})
    assert outcome(asked, State()) == ("E_CONSTRAINT_VIOLATED", "trust_self_reported")


def test_what_a_row_is_does_not_depend_on_the_environment() -> None:
    row = json.dumps({"id": "a", "n": 0}).replace("0", "1" * MAX_INT_DIGITS)
    script = f"from troth.ledger.chain import verify_lines; print(verify_lines(b'{row}').summary())"
    for limit in ("640", "4300", "0"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment(PYTHONINTMAXSTRDIGITS=limit),
            capture_output=True,
            check=True,
            text=True,
        )
        assert done.stdout == "0/1 verified, 1 unhashed\n"
