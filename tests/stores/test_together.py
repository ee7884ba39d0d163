"""Threads that wait for one another: one sync stands for all their rows, and each gets its own answer."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import capture, fresh
from troth.core.errors import Refused
from troth.ledger.operations import Candidate
from troth.stores import durable, jsonl
from troth.stores.durable import WriteFailed
from troth.stores.jsonl import JsonlStore
from troth.stores.snapshot import Snapshot
from troth.stores.waiting import Asked, Queue

WAITERS = 6


def ask(number: int) -> Candidate:
    return Candidate("capture", "agent:worker", {"body": f"row {number}"})


class Syncs:
    """Counts syncs of the ledger, holds up the first one until everybody waits, and may fail or stop one."""

    def __init__(self, store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.count = 0
        self.first = threading.Event()
        self.go = threading.Event()
        self.outcome: dict[int, BaseException] = {}
        self.rows_at: list[int] = []
        real = durable.sync_file

        def sync(fd: int) -> None:
            self.count += 1
            self.rows_at.append(store.ledger_file.read_bytes().count(b"\n"))
            if self.count == 1:
                self.first.set()
                assert self.go.wait(30)
            if self.count in self.outcome:
                raise self.outcome[self.count]
            real(fd)

        monkeypatch.setattr(durable, "sync_file", sync)

    def waiting(self, number: int) -> None:
        """Return once that many wait."""
        until = time.monotonic() + 30
        while len(self.store._queue._waiting) < number:
            assert time.monotonic() < until
            time.sleep(0.001)


Answers = dict[int, dict[str, Any] | BaseException]


@contextmanager
def appending(work: dict[int, Callable[[], dict[str, Any]]], syncs: Syncs) -> Iterator[Answers]:
    """Let the first of the pieces of work reach its sync, the others wait in their order, then let all go on."""
    answers: Answers = {}

    def run(number: int) -> None:
        try:
            answers[number] = work[number]()
        except BaseException as fault:  # the answer, whatever it is
            answers[number] = fault

    threads = []
    for at, number in enumerate(work):
        threads.append(threading.Thread(target=run, args=(number,)))
        threads[-1].start()
        if at == 0:
            assert syncs.first.wait(30)
        else:
            syncs.waiting(at)
    syncs.go.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    yield answers


def ids(answers: Answers) -> list[str]:
    return [answer["id"] for _, answer in sorted(answers.items()) if isinstance(answer, dict)]


def test_those_who_wait_are_served_with_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    syncs = Syncs(store, monkeypatch)
    with appending({n: lambda n=n: store.append(ask(n)) for n in range(WAITERS + 1)}, syncs) as answers:  # type: ignore[misc]  # bound at once
        assert syncs.count == 2
        assert syncs.rows_at == [1, WAITERS + 1]
    assert sorted(ids(answers)) == sorted(str(row.id) for row in store.read().rows)
    assert [row.value["payload"]["body"] for row in store.read().rows] == [f"row {n}" for n in range(WAITERS + 1)]
    # The memory was kept, and it says what the file says.
    assert store.read().state.digest() == JsonlStore.open(tmp_path).read().state.digest()
    assert store.verify().verified == WAITERS + 1
    capture(store, "afterwards")
    assert store.verify().ok


def test_each_row_is_judged_by_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those who claim the same commitment one succeeds; a refusal harms nobody else."""
    store = fresh(tmp_path)
    source = capture(store)
    commitment = store.append(Candidate("commit", "agent:worker", {"body": "x", "source": source}))["id"]
    syncs = Syncs(store, monkeypatch)

    def claim(actor: str) -> Callable[[], dict[str, Any]]:
        return lambda: store.append(Candidate("claim", actor, {"body": "mine", "commitment": commitment}))

    def odd(_: Snapshot) -> Candidate:
        raise ZeroDivisionError

    def missing(_: Snapshot) -> Candidate:
        raise FileNotFoundError(2, "nothing there")

    work: dict[int, Callable[[], dict[str, Any]]] = {
        0: lambda: store.append(ask(0)),
        1: claim("agent:worker"),
        2: claim("agent:rival"),
        3: lambda: store.append_with(odd),
        4: lambda: store.append_with(missing),
        5: lambda: store.append_with(lambda snapshot: ask(len(snapshot.rows))),
        6: lambda: store.append(ask(6), seen="0" * 64),
    }
    with appending(work, syncs) as answers:
        assert syncs.count == 2
    assert isinstance(answers[2], Refused)
    assert answers[2].code == "E_ALREADY_CLAIMED"
    assert isinstance(answers[3], ZeroDivisionError)
    assert isinstance(answers[4], Refused)
    assert answers[4].code == "E_UNREADABLE"
    assert isinstance(answers[5], dict)
    assert answers[5]["payload"]["body"] == "row 4", "the rows of the same sync are there to be read"
    assert ids(answers) == [answers[n]["id"] for n in (0, 1, 5, 6)]  # type: ignore[index]  # rows, as ids() found
    assert store.verify().verified == 6
    assert store.read().state.digest() == JsonlStore.open(tmp_path).read().state.digest()


def test_a_sync_that_fails_is_told_to_all_it_stood_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    syncs = Syncs(store, monkeypatch)
    syncs.outcome[2] = OSError(5, "Input/output error")
    with appending({n: lambda n=n: store.append(ask(n)) for n in range(4)}, syncs) as answers:  # type: ignore[misc]  # bound at once
        assert isinstance(answers[0], dict)
        assert all(isinstance(answers[number], WriteFailed) for number in (1, 2, 3))
    assert [row.id for row in store.read().rows] == ids(answers)
    capture(store, "afterwards")
    assert store.verify().verified == 2


def test_a_thread_that_is_stopped_acknowledges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    syncs = Syncs(store, monkeypatch)
    syncs.outcome[2] = KeyboardInterrupt()
    with appending({n: lambda n=n: store.append(ask(n)) for n in range(4)}, syncs) as answers:  # type: ignore[misc]  # bound at once
        assert isinstance(answers[1], KeyboardInterrupt)
        assert all(isinstance(answers[number], WriteFailed) for number in (2, 3))
    capture(store, "afterwards")
    assert store.verify().ok
    assert ids(answers)[0] in [row.id for row in store.read().rows]


def test_no_more_are_served_together_than_is_fair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    monkeypatch.setattr(jsonl, "MOST_TOGETHER", 2)
    syncs = Syncs(store, monkeypatch)
    with appending({n: lambda n=n: store.append(ask(n)) for n in range(8)}, syncs) as answers:  # type: ignore[misc]  # bound at once
        assert syncs.rows_at == [1, 4, 7, 8]
    assert len(ids(answers)) == store.verify().verified == 8


def test_a_build_may_read(tmp_path: Path) -> None:
    store = fresh(tmp_path)

    def build(_: Snapshot) -> Candidate:
        return Candidate("capture", "agent:worker", {"body": f"after {store.read().state.signals}"})

    store.append_with(build)
    assert store.verify().verified == 1


def test_one_who_went_away_while_waiting_is_not_served() -> None:
    queue = Queue()
    first, gone, last = (Asked(lambda _: ask(0), None, False) for _ in range(3))
    assert queue.lead(first)
    assert queue.lead(first), "who leads may ask again"

    class Interrupted:
        """A lock whose second taking is interrupted."""

        def __init__(self) -> None:
            self.taken = 0

        def acquire(self) -> bool:
            self.taken += 1
            if self.taken == 2:
                raise KeyboardInterrupt
            return True

    gone.turn = Interrupted()  # type: ignore[assignment]  # stands in for a lock
    caught: list[BaseException] = []

    def leave() -> None:
        try:
            queue.lead(gone)
        except KeyboardInterrupt as fault:
            caught.append(fault)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join(30)
    assert len(caught) == 1
    assert queue.next() is None
    other = threading.Thread(target=lambda: caught.extend([KeyError()] * queue.lead(last)))
    other.start()
    while not queue._waiting:
        time.sleep(0.001)
    queue.hand_on()
    other.join(30)
    assert len(caught) == 2, "leadership was handed on"


@pytest.mark.parametrize("threads", [8])
def test_many_threads_lose_and_double_nothing(tmp_path: Path, threads: int) -> None:
    store = fresh(tmp_path)
    got: list[str] = []

    def run(number: int) -> None:
        got.extend(capture(store, f"{number} {turn}") for turn in range(25))

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert sorted(got) == sorted(str(row.id) for row in store.read().rows)
    assert store.verify().verified == threads * 25
    # What any one thread appended stands in the order in which it did.
    order = {row.id: row.line for row in store.read().rows}
    bodies = {row.id: row.value["payload"]["body"] for row in store.read().rows}
    for number in range(threads):
        mine = [order[name] for name in got if bodies[name].startswith(f"{number} ")]
        assert mine == sorted(mine)
    assert os.listdir(tmp_path / ".mentu")


# Many rows in one go --------------------------------------------------------------------------------------------


def test_many_rows_need_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    capture(store)
    counted: list[int] = []
    real = durable.sync_file
    monkeypatch.setattr(durable, "sync_file", lambda fd: (counted.append(fd), real(fd))[1])
    store.append_many([lambda _, n=n: ask(n) for n in range(50)])  # type: ignore[misc]  # bound at once
    assert len(counted) == 1


def test_many_rows_in_a_bare_file_go_on_with_the_name_of_the_newest(tmp_path: Path) -> None:
    file = tmp_path / "bare.jsonl"
    file.touch()
    named = Candidate("capture", "agent:worker", {"body": "x"}, workspace="shop")
    JsonlStore(file).append_many([lambda _: ask(1), lambda _: named, lambda _: ask(2)])
    assert [row.value["workspace"] for row in JsonlStore(file).read().rows] == ["default", "shop", "shop"]


def test_many_rows_behind_one_that_lacks_its_line_feed(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    whole = store.ledger_file.read_bytes()
    for refuse in (True, False):
        store.ledger_file.write_bytes(whole[:-1])
        bodies = ["a", "b", *([""] if refuse else [])]
        store.append_many(
            [lambda _, body=body: Candidate("capture", "agent:worker", {"body": body}) for body in bodies],  # type: ignore[misc]  # bound at once
            keep=lambda answers: not any(isinstance(answer, Refused) for answer in answers),
        )
        assert store.ledger_file.read_bytes().startswith(whole[:-1] if refuse else whole)
        assert store.read().verification.verified == (1 if refuse else 3)
    assert JsonlStore.open(tmp_path).verify().ok
    capture(store)
    assert store.read().state.digest() == JsonlStore.open(tmp_path).read().state.digest()


def test_the_events_of_a_new_key_and_of_unhashed_rows_come_before_many_rows(tmp_path: Path) -> None:
    file = tmp_path / ".mentu" / "ledger.jsonl"
    fresh(tmp_path)
    file.write_text('{"id":"mem_1","op":"capture","ts":"2020-01-01T00:00:00Z","actor":"human:reviewer"}\n')
    (tmp_path / ".mentu" / "config.yaml").unlink()
    (tmp_path / ".mentu" / "genesis.key").write_text("identity: {name: n, owner: human:reviewer}\n")
    store = JsonlStore.open(tmp_path)
    answers = store.append_many([lambda _, n=n: ask(n) for n in range(3)])  # type: ignore[misc]  # bound at once
    rows = [row.value for row in store.read().rows]
    assert rows[3:] == answers
    assert [row["actor"] for row in rows[1:3]] == ["system:cutover", "system:genesis"]
    assert JsonlStore.open(tmp_path).verify().ok
