"""The ledger file: verified reading, durable appending, tails, and what an open store may believe."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import capture, commitment, fresh
from troth.core.canonical import row_bytes
from troth.core.errors import Busy, DoesNotHold, Refused
from troth.ledger.operations import Candidate
from troth.stores import jsonl, lines, memory
from troth.stores.jsonl import JsonlStore, Note
from troth.stores.lock import WriteLock
from troth.stores.opening import open_store


def _lines(store: JsonlStore) -> list[bytes]:
    return store.ledger_file.read_bytes().split(b"\n")


def test_rows_are_appended_and_acknowledged(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    row = store.append(Candidate("capture", "human:reviewer", {"body": "seen"}))
    assert store.ledger_file.read_bytes() == row_bytes(row) + b"\n"
    found = store.verify()
    assert (found.verified, found.total, found.ok) == (1, 1, True)
    assert [other.value for other in store.read().rows] == [row]


def test_the_old_bytes_stay_the_first_ones(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    before = b""
    for number in range(5):
        capture(store, f"n {number}")
        after = store.ledger_file.read_bytes()
        assert after.startswith(before)
        assert after.endswith(b"\n")
        before = after


def test_a_refused_row_leaves_the_file_alone(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    before = store.ledger_file.read_bytes()
    with pytest.raises(Refused, match="cmt_00000000"):
        store.append(Candidate("claim", "agent:worker", {"body": "x", "commitment": "cmt_00000000"}))
    assert store.ledger_file.read_bytes() == before
    capture(store)
    assert store.verify().ok


def test_append_with_decides_while_the_lock_is_held(tmp_path: Path) -> None:
    store = fresh(tmp_path, wait_seconds=0.01)
    identifier = commitment(store)

    def build(snapshot: jsonl.Snapshot) -> Candidate:
        with pytest.raises(Busy), WriteLock(store.lock_file, 0):
            pytest.fail("the lock was free")
        assert snapshot.state.commitments[identifier].state == "open"
        assert snapshot.head == snapshot.verification.head
        return Candidate("claim", "agent:worker", {"body": "x", "commitment": identifier})

    store.append_with(build)
    assert store.read().state.commitments[identifier].owner == "agent:worker"


def test_a_stale_head_is_told_and_does_not_stop_the_row(tmp_path: Path) -> None:
    notes: list[str] = []
    store = fresh(tmp_path, notify=notes.append)
    capture(store)
    head = store.read().head
    store.append(Candidate("capture", "human:reviewer", {"body": "x"}), seen=head)
    assert notes == []
    store.append(Candidate("capture", "human:reviewer", {"body": "x"}), seen=head)
    assert [note.code for note in notes if isinstance(note, Note)] == ["blind_write"]
    assert len(store.read().rows) == 3


# Tails ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", [b'{"seq":5,"par', b"garbage", b"\xff\xfe", b"[1]", b" ", b'{"hash":"x"}'])
def test_a_torn_tail_is_set_aside_and_the_next_row_is_intact(tmp_path: Path, tail: bytes) -> None:
    notes: list[str] = []
    store = fresh(tmp_path, notify=notes.append)
    capture(store, "first")
    whole = store.ledger_file.read_bytes()
    with store.ledger_file.open("ab") as file:
        file.write(tail)
    found = store.verify()
    assert [(fault.line, fault.fault) for fault in found.faults] == [(2, "torn_tail")]
    identifier = capture(store, "second")
    assert store.ledger_file.read_bytes().startswith(whole)
    assert [row.id for row in store.read().rows][-1] == identifier
    assert store.verify().ok
    aside = list(tmp_path.glob(".mentu/torn-*"))
    assert [path.read_bytes() for path in aside] == [tail]
    assert [note.code for note in notes if isinstance(note, Note)] == ["torn_tail"]
    assert str(aside[0]) in notes[0]


def test_torn_tails_of_one_second_get_names_of_their_own(tmp_path: Path) -> None:
    store = JsonlStore.open(
        fresh(tmp_path).ledger_file, clock=lambda: jsonl.system_clock().replace(year=2026, second=0)
    )
    for tail in (b"one", b"two"):
        with store.ledger_file.open("ab") as file:
            file.write(tail)
        capture(store)
    assert sorted(path.read_bytes() for path in tmp_path.glob(".mentu/torn-*")) == [b"one", b"two"]
    assert store.verify().ok


def test_the_torn_tail_of_a_bare_file_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "bare.jsonl"
    path.write_bytes(b'{"half')
    store = JsonlStore.open(path)
    capture(store)
    assert store.verify().ok
    assert sorted(entry.name.partition("torn-")[0] for entry in tmp_path.iterdir()) == [
        "bare.jsonl",
        "bare.jsonl.",
        "bare.jsonl.lock",
    ]


def test_a_whole_row_without_line_feed_is_kept_and_ended(tmp_path: Path) -> None:
    notes: list[str] = []
    store = fresh(tmp_path, notify=notes.append)
    first = capture(store)
    data = store.ledger_file.read_bytes()
    store.ledger_file.write_bytes(data[:-1])
    found = store.verify()
    assert found.ok
    assert [warning.warning for warning in found.warnings] == ["unterminated"]
    second = capture(store)
    third = capture(store)
    assert store.ledger_file.read_bytes().startswith(data)
    assert [row.id for row in store.read().rows] == [first, second, third]
    assert store.verify().ok
    assert not store.verify().warnings
    assert [note.code for note in notes if isinstance(note, Note)] == ["unterminated"]


def test_repair_tail_repairs_a_torn_tail_and_nothing_else(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    whole = store.ledger_file.read_bytes()
    assert store.repair_tail() is None
    store.ledger_file.write_bytes(whole[:-1])
    assert store.repair_tail() is None
    store.ledger_file.write_bytes(whole + b"malformed\n")
    assert store.repair_tail() is None
    assert store.ledger_file.read_bytes() == whole + b"malformed\n"
    store.ledger_file.write_bytes(whole + b"torn")
    aside = store.repair_tail()
    assert aside is not None
    assert aside.read_bytes() == b"torn"
    assert store.ledger_file.read_bytes() == whole


def test_a_whole_malformed_line_is_not_torn(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    with store.ledger_file.open("ab") as file:
        file.write(b'{"seq":5,"par\n')
    before = store.ledger_file.read_bytes()
    for attempt in (store, JsonlStore.open(tmp_path)):
        with pytest.raises(DoesNotHold) as caught:
            capture(attempt)
        assert caught.value.code == "E_CHAIN_BROKEN"
    assert store.ledger_file.read_bytes() == before
    assert not list(tmp_path.glob(".mentu/torn-*"))


def test_a_torn_tail_behind_a_broken_chain_is_set_aside_and_the_row_refused(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    store.ledger_file.write_bytes(b"malformed\ntorn")
    with pytest.raises(DoesNotHold):
        capture(store)
    assert store.ledger_file.read_bytes() == b"malformed\n"


def test_a_reader_looks_twice_at_half_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    capture(store, "first")
    capture(store, "second")
    data = store.ledger_file.read_bytes()
    slept: list[float] = []

    def writer_finishes(seconds: float) -> None:
        slept.append(seconds)
        store.ledger_file.write_bytes(data)

    monkeypatch.setattr(time, "sleep", writer_finishes)
    for look in (lambda: store.read().verification, store.verify):
        store.ledger_file.write_bytes(data[:-40])
        found = look()
        assert (found.ok, found.verified, found.torn_tail) == (True, 2, False)
    assert slept == [0.05, 0.05]


def test_a_reader_reports_a_tail_that_stays_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    capture(store)
    with store.ledger_file.open("ab") as file:
        file.write(b"torn")
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for found in (store.read().verification, store.verify()):
        assert (found.torn_tail, found.total, found.verified) == (True, 2, 1)
    assert slept == [0.05, 0.05]
    assert len(store.read().rows) == 1


# What an open store believes -----------------------------------------------------------------------------------


def _counting_chain(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    fed: list[int] = []
    real = memory.ChainReader.feed_block

    def feed_block(self: memory.ChainReader, block: bytes, *rest: Any) -> None:
        fed.append(block.count(b"\n") + 1)
        real(self, block, *rest)

    monkeypatch.setattr(memory.ChainReader, "feed_block", feed_block)
    return fed


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    for _ in range(5):
        capture(store)
    fed = _counting_chain(monkeypatch)
    for _ in range(5):
        capture(store)
    assert fed == []
    assert store.read().verification.verified == 10
    assert sum(fed) == 10  # the verifier catches up when somebody asks, from the file's own bytes
    assert store.read().verification.verified == 10
    assert sum(fed) == 10


def test_of_a_grown_file_only_the_new_rows_are_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    other = JsonlStore.open(tmp_path)
    for _ in range(5):
        capture(store)
    capture(other)
    capture(store)  # the first change from outside: everything is looked at, and a digest kept from now on
    capture(other)
    fed = _counting_chain(monkeypatch)
    capture(store)
    assert sum(fed) == 2  # its own last row, lazily, and the other's
    assert store.read().verification.verified == 9
    assert other.read().head == store.read().head == JsonlStore.open(tmp_path).read().head


@pytest.mark.parametrize("grown", [False, True])
@pytest.mark.parametrize("warm", [False, True])
def test_a_changed_byte_blocks_an_open_store(tmp_path: Path, grown: bool, warm: bool) -> None:
    store = fresh(tmp_path)
    other = JsonlStore.open(tmp_path)
    for _ in range(3):
        capture(store)
        if warm:
            capture(other)
    data = bytearray(store.ledger_file.read_bytes())
    at = data.index(b"seen")
    data[at] = ord("S")
    extra = b""
    if grown:
        extra = data[: data.index(b"\n") + 1]
    with store.ledger_file.open("r+b") as file:
        file.write(bytes(data) + extra)
    for attempt in (store, other):
        with pytest.raises(DoesNotHold) as caught:
            capture(attempt)
        assert caught.value.code == "E_CHAIN_BROKEN"
        assert not attempt.read().verification.ok


def test_a_ledger_that_was_cut_or_replaced_is_read_anew(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    for number in range(4):
        capture(store, f"n {number}")
    old = _lines(store)
    store.ledger_file.write_bytes(b"\n".join(old[:2]) + b"\n")
    capture(store, "after")
    assert [row.value["payload"]["body"] for row in store.read().rows] == ["n 0", "n 1", "after"]
    new = tmp_path / "new"
    new.write_bytes(old[0] + b"\n")
    new.replace(store.ledger_file)
    capture(store, "again")
    assert [row.value["payload"]["body"] for row in store.read().rows] == ["n 0", "again"]
    assert store.verify().ok


def test_a_deleted_ledger_is_never_taken_for_an_empty_one(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    store.ledger_file.unlink()
    for attempt in (lambda: capture(store), store.read, store.verify, store.repair_tail):
        with pytest.raises(Refused) as caught:
            attempt()
        assert caught.value.code == "E_NO_LEDGER"
    assert not store.ledger_file.exists()


def test_a_link_in_the_place_of_the_ledger_is_refused(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    target = tmp_path / "elsewhere"
    store.ledger_file.rename(target)
    store.ledger_file.symlink_to(target)
    before = target.read_bytes()
    for attempt in (lambda: capture(store), store.read, store.verify):
        with pytest.raises(Refused, match="symbolic link") as caught:
            attempt()
        assert caught.value.code == "E_NOT_REGULAR"
    assert target.read_bytes() == before


def test_a_failed_write_is_forgotten_by_the_open_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    capture(store)
    whole = store.ledger_file.read_bytes()
    real = os.write

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Refused) as caught:
        capture(store)
    assert caught.value.code == "E_WRITE_FAILED"
    monkeypatch.setattr(os, "write", real)
    assert store.ledger_file.read_bytes() == whole
    capture(store)
    found = store.read()
    assert (found.verification.ok, len(found.rows)) == (True, 2)


def test_threads_share_one_store(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    ids: list[str] = []

    def work(number: int) -> None:
        ids.extend(capture(store, f"{number} {turn}") for turn in range(20))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(row.id or "" for row in store.read().rows) == sorted(ids)
    assert len(set(ids)) == 80
    assert store.verify().verified == 80


def test_a_forked_child_and_its_parent_exclude_each_other(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    store = JsonlStore.open(tmp_path)
    capture(store)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for number in range(30):
                capture(store, f"child {number}")
            status = 0
        finally:
            os._exit(status)
    for number in range(30):
        capture(store, f"parent {number}")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.verify().verified == 61


def test_a_store_can_be_closed_and_used_again(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    open_files = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    store.close()
    if open_files:
        assert len(list(Path("/proc/self/fd").iterdir())) == open_files - 2
    capture(store)
    assert store.verify().verified == 2


def test_a_reader_may_write_next(tmp_path: Path) -> None:
    capture(fresh(tmp_path))
    store = JsonlStore.open(tmp_path)
    assert store.read().verification.ok
    capture(store)
    assert store.read().verification.verified == 2


# Opening -------------------------------------------------------------------------------------------------------


def test_a_store_is_opened_by_folder_file_or_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    identifier = capture(store)
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    for where in (None, tmp_path, str(tmp_path), tmp_path / ".mentu", store.ledger_file, "../.mentu/ledger.jsonl"):
        found = JsonlStore.open(where)
        assert found.lock_file == tmp_path / ".mentu" / ".lock"
        assert found.unhashed_prefix == 0
        assert found.workspace == "w"
        assert found.read().rows[0].id == identifier
    bare = tmp_path / "copy.jsonl"
    bare.write_bytes(store.ledger_file.read_bytes())
    copy = JsonlStore.open(bare)
    assert copy.lock_file == tmp_path / "copy.jsonl.lock"
    assert copy.unhashed_prefix is None
    assert copy.append(Candidate("capture", "human:reviewer", {"body": "x"}))["workspace"] == "w"


def test_a_store_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        open_store("mysql://localhost/ledger")
    assert caught.value.code == "E_UNSUPPORTED"
    with pytest.raises(Refused) as caught:
        JsonlStore.open(tmp_path)
    assert caught.value.code == "E_NO_WORKSPACE"


def test_the_configured_number_of_unhashed_rows_governs_the_file(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    old = {"id": "mem_00000000", "op": "capture", "ts": "2020-01-01T00:00:00Z", "actor": "human:reviewer"}
    store.ledger_file.write_bytes(json.dumps(old | {"payload": {"body": "old"}}).encode() + b"\n")
    assert [fault.fault for fault in store.verify().faults] == ["unhashed_count"]
    with pytest.raises(DoesNotHold):
        capture(store)
    (tmp_path / ".mentu" / "config.yaml").write_text("workspace: w\nunhashed_prefix: 1\n")
    again = JsonlStore.open(tmp_path)
    capture(again)
    assert again.verify().ok


def test_a_genesis_key_that_is_invalid_blocks_every_operation(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    (tmp_path / ".mentu" / "genesis.key").write_text("identity: {name: n}\n")
    with pytest.raises(Refused) as caught:
        capture(store)
    assert (caught.value.code, caught.value.detail) == ("E_CONSTRAINT_VIOLATED", "genesis_invalid")
    assert store.read().verification.ok


# Rows ----------------------------------------------------------------------------------------------------------


def test_rows_are_a_sequence(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    ids = [capture(store, f"n {number}") for number in range(7)]
    data = store.ledger_file.read_bytes().split(b"\n")
    store.ledger_file.write_bytes(b"\xef\xbb\xbf" + data[0] + b"\r\n\n" + b"\n".join(data[1:]))
    rows = store.read().rows
    assert [row.id for row in rows] == ids
    assert [row.line for row in rows] == [1, 3, 4, 5, 6, 7, 8]
    assert [row.id for row in rows[-3:]] == ids[-3:]
    assert rows[-1].id == ids[-1]
    assert rows.at_line(3).id == ids[1]
    for wrong in (2, 0, 9):
        with pytest.raises(KeyError):
            rows.at_line(wrong)
    with pytest.raises(IndexError):
        rows[7]
    capture(store)
    assert len(rows) == 7


def test_rows_are_found_again_in_a_long_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LANDMARK_BYTES", 700)
    monkeypatch.setattr(lines, "CHUNK", 900)
    store = fresh(tmp_path)
    ids = [capture(store, f"n {number}") for number in range(40)]
    for rows in (store.read().rows, JsonlStore.open(tmp_path).read().rows):
        assert len(rows) == 40
        assert [row.id for row in rows] == ids
        for index in range(-40, 40):
            assert rows[index].id == ids[index]
            assert rows.at_line(index % 40 + 1).id == ids[index]
        for cut in (slice(-3, None), slice(5, 9), slice(None, None, -7), slice(30, 10, -3), slice(9, 2), slice(0, 1)):
            assert [row.id for row in rows[cut]] == ids[cut]


def test_an_endless_line_between_rows_costs_no_row(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    first, second = capture(store, "one"), capture(store, "two")
    old = store.ledger_file.read_bytes().split(b"\n")
    store.ledger_file.write_bytes(old[0] + b"\n" + b"x" * (3 << 20) + b"\n" + old[1] + b"\n")
    snapshot = store.read()
    assert [(fault.line, fault.fault) for fault in snapshot.verification.faults] == [(2, "malformed")]
    assert [(row.line, row.id) for row in snapshot.rows] == [(1, first), (3, second)]
    assert [row.id for row in snapshot.rows[-2:]] == [first, second]
    assert snapshot.rows.at_line(3).id == second


def test_rows_of_a_replaced_file_are_refused(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    rows = store.read().rows
    store.ledger_file.write_bytes(b"")
    with pytest.raises(Refused, match="replaced"):
        rows[0]


def test_the_lines_joined_are_the_file(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    for data in (b"", b"a", b"\n\nx\r\n", b"y" * ((1 << 20) + 40) + b"\nrest"):
        store.ledger_file.write_bytes(data)
        assert b"".join(store.lines()) == data
