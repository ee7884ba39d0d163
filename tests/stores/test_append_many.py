"""Many rows in one go, in every store: judged one by the other, durable together (ledger spec §5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from support.houses import House, Make, bytes_of, house, make, observation, row
from support.ledgers import START
from troth.core.errors import DoesNotHold, Refused
from troth.ledger.operations import Candidate
from troth.stores.snapshot import Snapshot

__all__ = ["house", "make"]


def _builds(*candidates: Candidate) -> list[Callable[[Snapshot], Candidate]]:
    return [lambda _, candidate=candidate: candidate for candidate in candidates]  # type: ignore[misc]  # bound at once


def none_refused(answers: Sequence[object]) -> bool:
    return not any(isinstance(answer, Refused) for answer in answers)


def test_many_rows_are_judged_by_those_before_them(house: House) -> None:
    store, other = house.open(), house.open(random_hex=lambda count: "ee" * count)
    source, work_id = "mem_0a0a0a0a", "cmt_0b0b0b0b"
    answers = store.append_many(
        _builds(
            Candidate("capture", "agent:worker", {"body": "a"}, id=source, source_key="k"),
            Candidate("commit", "agent:worker", {"body": "b", "source": source}, id=work_id),
            Candidate("claim", "agent:worker", {"body": "m", "commitment": work_id}),
            Candidate("claim", "agent:rival", {"body": "m", "commitment": work_id}),
            Candidate("capture", "agent:rival", {"body": "c"}, source_key="k"),
            Candidate("capture", "agent:rival", {"body": ""}),
            Candidate("capture", "agent:rival", {"body": "d"}),
        )
    )
    told = [answer.code if isinstance(answer, Refused) else answer["op"] for answer in answers]
    assert told[:3] == ["capture", "commit", "claim"]
    assert told[3:] == ["E_ALREADY_CLAIMED", "E_DUPLICATE_ID", "E_CONSTRAINT_VIOLATED", "capture"]
    assert answers[4].detail == source  # type: ignore[union-attr]  # the refusal
    assert b"".join(store.lines()) == b"".join(bytes_of(row) for row in answers if isinstance(row, dict))
    for one in (store, other):
        assert one.read().verification.summary() == "4/4 verified"
        assert one.read().state.digest() == house.open().read().state.digest()
    row(store, "capture")
    assert other.verify().summary() == "5/5 verified"


def test_of_many_rows_all_or_none_where_that_is_asked(house: House) -> None:
    store = house.open()
    row(store, "capture")
    before = b"".join(store.lines())
    answers = store.append_many(_builds(observation("a"), observation(""), observation("b")), keep=none_refused)
    assert [isinstance(answer, Refused) for answer in answers] == [False, True, False]
    assert b"".join(store.lines()) == before
    assert len(store.read().rows) == 1
    assert not any(
        isinstance(answer, Refused) for answer in store.append_many(_builds(observation("a")), keep=none_refused)
    )
    assert store.append_many([]) == []
    assert [isinstance(answer, Refused) for answer in store.append_many(_builds(observation("")))] == [True]
    assert store.verify().summary() == house.open().verify().summary() == "2/2 verified"


def test_many_rows_are_the_same_as_one_after_the_other(make: Make) -> None:
    candidates = [Candidate("capture", "agent:worker", {"body": f"{n}"}, workspace="w") for n in range(40)]
    one, many = (make().open(clock=lambda: START) for _ in range(2))
    for candidate in candidates:
        one.append(candidate)
    many.append_many(_builds(*candidates[:25]))
    many.append_many(_builds(*candidates[25:]))
    assert b"".join(one.lines()) == b"".join(many.lines())
    assert one.verify().head == many.verify().head == many.read().head


def test_many_rows_are_not_added_to_a_broken_ledger(house: House) -> None:
    store = house.open()
    row(store, "capture")
    house.change(1, lambda raw: raw.replace(b'"body":"b"', b'"body":"c"'))
    with pytest.raises(DoesNotHold):
        house.open().append_many(_builds(observation()))


def test_a_stale_head_is_told_once_for_many_rows(house: House) -> None:
    notes: list[str] = []
    store = house.open(notify=notes.append)
    store.append_many(_builds(observation(), observation()), seen=store.read().head)
    assert notes == []
    store.append_many(_builds(observation(), observation()), seen="0" * 64)
    assert [note.split(":")[0] for note in notes] == ["blind_write"]


def test_an_error_among_many_rows_writes_none_of_them(house: House) -> None:
    store = house.open()
    builds: list[Any] = [*_builds(observation()), lambda _: 1 / 0]
    with pytest.raises(ZeroDivisionError):
        store.append_many(builds)
    assert b"".join(store.lines()) == b""
    row(store, "capture")
    assert store.verify().summary() == house.open().verify().summary() == "1/1 verified"
