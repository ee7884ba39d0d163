"""What is kept of a large ledger in a database: the same answers as reading it all, whatever happens to either."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stores.test_index import _facts as _told
from stores.test_remembered import Twins, _facts, _line, _meant, _raw
from support.houses import DatabaseHouse, copy_into, row
from support.ledgers import SOURCES, counting, environment, ticking
from support.postgres import needs_postgres
from troth.core.errors import TrothError
from troth.core.ids import system_random
from troth.core.instants import system_clock
from troth.ledger.importing import chained
from troth.ledger.replay import Replay
from troth.stores import index, keptstate
from troth.stores.jsonl import JsonlStore
from troth.stores.postgres.store import PostgresStore
from troth.stores.workspace import create_workspace

pytestmark = needs_postgres


def _patch(monkeypatch: pytest.MonkeyPatch, cache: Path, few: int = 1) -> None:
    monkeypatch.setattr(index, "cache_folder", lambda: cache)
    monkeypatch.setattr(keptstate, "FEW_ROWS", few)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, for ledgers of any size."""
    _patch(monkeypatch, tmp_path / "cache")
    return tmp_path / "cache"


def _opened(house: DatabaseHouse, **options: Any) -> PostgresStore:
    """Return another store on the ledger, as the next process has it."""
    store = house.open(**{"clock": system_clock, "random_hex": system_random, **options})
    assert isinstance(store, PostgresStore)
    return store


@pytest.fixture
def house(cache: Path) -> DatabaseHouse:
    """A ledger of six rows with a commitment, all kept, and a summary."""
    house = DatabaseHouse()
    store = _opened(house)
    for _ in range(3):
        row(store, "commit", "human:reviewer", source=row(store, "capture"))
    _opened(house).read()
    _opened(house).summary()
    assert sorted(path.suffix for path in (cache / "ledgers").iterdir()) == [".json", ".state"]
    return house


def _forget(cache: Path) -> None:
    for path in (cache / "ledgers").iterdir():
        path.unlink()


def _replayed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of the lines that are replayed from here on."""
    told: list[int] = []
    real = Replay._register
    monkeypatch.setattr(Replay, "_register", lambda self, row: (told.append(row.line), real(self, row))[1])
    return told


def _as_if_never_kept(house: DatabaseHouse) -> tuple[Any, ...]:
    """Return what a store that cannot remember says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "cache_folder", lambda: None)
        return _says(house)


def _says(house: DatabaseHouse) -> tuple[Any, ...]:
    snapshot = _opened(house).read()
    return (
        snapshot.verification,
        _facts(snapshot.state),
        [one.value for one in snapshot.rows],
        _told(_opened(house).summary()),
    )


# Laws ------------------------------------------------------------------------------------------------------------


class DatabaseTwins(Twins):
    """A ledger in the database, in two open stores and fresh ones that remember, and a file that nothing is kept of."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clocks = [ticking(), ticking()]
        self.digits = [counting(), counting()]
        self.house = DatabaseHouse()
        create_workspace(root, name="w", agents_text="x")
        self.plain = JsonlStore.open(root, clock=self.clocks[1], random_hex=self.digits[1])
        self.names = {"capture": [], "commit": [], "submit": []}
        self.open = [self.fresh(), self.fresh()]

    def fresh(self) -> PostgresStore:
        """Return a fresh store of the ledger in the database."""
        store = _opened(self.house, clock=self.clocks[0], random_hex=self.digits[0])
        store.workspace = "w"
        return store

    def step(self) -> None:
        """Do one thing to both and compare what comes of it."""
        kind = self.chance.random()
        if kind < 0.1 and self.plain.ledger_file.stat().st_size:
            self._foreign()
        elif kind < 0.8:
            candidate = self.candidate()
            mine = self.chance.choice([*self.open, self.fresh()])
            outcomes = [self._outcome(store, candidate) for store in (mine, self.plain)]
            assert outcomes[0] == outcomes[1]
            if outcomes[0][0] == "row" and candidate.op in self.names:
                self.names[candidate.op].append(outcomes[0][1]["id"])
        self.compare()

    def _outcome(self, store: Any, candidate: Any) -> tuple[Any, ...]:
        try:
            return "row", store.append(candidate)
        except TrothError as fault:
            return "refused", fault.code, fault.detail

    def _foreign(self) -> None:
        """Append a row that no store of ours would."""
        number = self.chance.randrange(9999)
        members = self.chance.choice(
            [
                {"op": "claim", "payload": {"body": "c", "commitment": "cmt_nobody00"}},
                {"op": "retire", "id": f"mem_foreign{number}"},
                {"id": (self.names["capture"] or ["mem_x"])[0]},
            ]
        )
        _raw(self.plain, **members)
        raw = self.plain.ledger_file.read_bytes().splitlines()[-1]
        self.house.run(
            "INSERT INTO troth.rows (workspace, line, raw, hash, token)"
            " SELECT id, lines + 1, %s, %s, gen_random_uuid() FROM troth.workspaces WHERE name = %s",
            raw, json.loads(raw)["hash"], self.house.name, guarded=True,
        )  # fmt: skip

    def compare(self) -> None:
        """Compare bytes, state, verification, summary, and what written ids mean."""
        mine = self.fresh()
        assert b"".join(mine.lines()) == self.plain.ledger_file.read_bytes()
        ours, plain = self.chance.choice([mine, *self.open]).read(), self.plain.read()
        for ops in ((), ("commit",), ("capture",)):
            for written in ("@last", "mem_", "cmt_0000000000000", "mem_0000000000000001", "op_"):
                assert _meant(written, ours.state, ops) == _meant(written, plain.state, ops)
        assert ours.verification == plain.verification
        assert _facts(ours.state) == _facts(plain.state)
        assert [one.value for one in ours.rows[-3:]] == [one.value for one in plain.rows[-3:]]
        for _ in range(2):  # the one that keeps it and the one that finds it
            assert _told(self.fresh().summary()) == _told(self.plain.summary())


@pytest.mark.slow
@pytest.mark.parametrize("few", [1, 7])
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32))
def test_stores_that_remember_and_one_that_cannot_agree(few: int, seed: int) -> None:
    """Law: two open stores and fresh ones that remember say what a file says of which nothing is kept."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as root:
        _patch(patch, Path(root, "cache"), few)
        twins = DatabaseTwins(Path(root), seed)
        for _ in range(25):
            twins.step()


_WRITER = """
import sys
from pathlib import Path
from troth.ledger.operations import Candidate
from troth.stores import index, keptstate
from troth.stores.opening import open_store
keptstate.FEW_ROWS = 3
index.cache_folder = lambda: Path(sys.argv[2])
while True:
    store = open_store(sys.argv[1])
    print(store.append(Candidate("capture", "agent:a", {"body": "b"}))["id"], flush=True)
    store.summary()
    store.close()
"""


@pytest.mark.slow
def test_killed_processes_leave_a_cache_that_is_true(house: DatabaseHouse, cache: Path) -> None:
    """Two processes append and keep, and are killed somewhere: what was told is there, and the state is what it was."""
    argv = [sys.executable, "-c", _WRITER, house.where, str(cache)]
    told: list[str] = []
    for _ in range(3):
        started = [
            subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment(PYTHONPATH=SOURCES))
            for _ in range(2)
        ]
        for process in started:
            told += [_line(process) for _ in range(4)]
        for process in started:
            process.send_signal(signal.SIGKILL)
            told += process.communicate()[0].split()
        assert _says(house) == _as_if_never_kept(house)
    assert set(told) <= set(_opened(house).read().state.signals)
    assert _opened(house).verify().ok


# What is believed, and when ---------------------------------------------------------------------------------------


def test_the_next_process_begins_with_what_was_kept(house: DatabaseHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Appending and reading replay only what is behind the table; a summary of unchanged rows replays nothing."""
    replayed = _replayed(monkeypatch)
    _opened(house).summary()
    _opened(house).read()
    assert replayed == []
    row(_opened(house), "capture")
    assert replayed == [7]
    assert len(_opened(house).read().rows) == 7
    assert replayed == [7, 7]  # and this one kept it
    _opened(house).read()
    assert replayed == [7, 7]
    _opened(house).summary()  # trust is computed of all rows
    assert replayed == [7, 7, *range(1, 8)]


def test_without_a_cache_folder_all_is_read(house: DatabaseHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: nothing to remember with."""
    monkeypatch.setattr(index, "cache_folder", lambda: None)
    replayed = _replayed(monkeypatch)
    row(_opened(house), "capture")
    assert replayed == list(range(1, 8))


def test_verify_uses_nothing_of_it(house: DatabaseHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a superuser changed in an old row is hidden from who remembers, and from nobody who verifies or cannot."""
    house.change(1, lambda raw: raw.replace(b'"body":"b"', b'"body":"B"'))
    assert _opened(house).read().verification.ok
    assert [fault.fault for fault in _opened(house).verify().faults] == ["content_mismatch"]
    monkeypatch.setattr(index, "cache_folder", lambda: None)
    assert not _opened(house).read().verification.ok


def test_a_fault_behind_the_table_has_its_own_name(house: DatabaseHouse) -> None:
    """Where something behind it is at fault, everything is read, and an append is refused."""
    row(_opened(house), "capture")
    house.change(7, lambda raw: raw.replace(b'"body":"b"', b'"body":"B"'))
    assert [fault.fault for fault in _opened(house).read().verification.faults] == ["content_mismatch"]
    with pytest.raises(TrothError, match="does not verify"):
        row(_opened(house), "capture")
    assert _says(house) == _as_if_never_kept(house)


def _remade(house: DatabaseHouse, lines: list[bytes]) -> None:
    """Drop the workspace as a superuser does, make one of the same name, and put lines into it."""
    from troth.stores.postgres.creating import create_ledger

    with psycopg.connect(house.base) as conn:
        conn.execute(b"SET session_replication_role = replica")
        for table in ("rows", "workspaces"):
            conn.execute(f"ALTER TABLE troth.{table} DISABLE TRIGGER USER".encode())
        one = "(SELECT id FROM troth.workspaces WHERE name = %s)"
        conn.execute(f"DELETE FROM troth.rows WHERE workspace = {one}".encode(), (house.name,))
        conn.execute(b"DELETE FROM troth.workspaces WHERE name = %s", (house.name,))
    house.run("SELECT 1")  # puts the guards back
    create_ledger(house.where)[0].close()
    copy_into(house, lines)


def _other_rows(count: int) -> list[bytes]:
    drafts = [
        {
            "id": f"mem_other{number}", "op": "capture", "ts": f"2026-01-02T00:00:0{number}Z", "actor": "agent:other",
            "workspace": "w", "payload": {"body": "other", "kind": "evidence"},
        }
        for number in range(count)
    ]  # fmt: skip
    return [json.dumps(one).encode() for one in chained(drafts)]


@pytest.mark.parametrize("count", [3, 6, 9])
def test_another_ledger_under_the_same_name_is_read_anew(house: DatabaseHouse, count: int) -> None:
    """Dropped and made anew, with fewer rows, as many, or more."""
    _remade(house, _other_rows(count))
    assert len(_opened(house).read().rows) == count
    assert _says(house) == _as_if_never_kept(house)
    row(_opened(house), "capture")
    assert _opened(house).verify().ok


@pytest.mark.parametrize("more", [0, 2, 5])
def test_an_older_backup_is_read_anew(house: DatabaseHouse, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restored to four rows, with none or others added since: what is kept speaks of six."""
    _remade(house, [raw.rstrip(b"\n") for raw in _opened(house).lines()][:4])
    with monkeypatch.context() as patch:
        patch.setattr(index, "cache_folder", lambda: None)
        store = _opened(house)
        for _ in range(more):
            row(store, "capture")
    assert len(_opened(house).read().rows) == 4 + more
    assert _says(house) == _as_if_never_kept(house)


def test_the_same_rows_elsewhere_are_the_same_rows(house: DatabaseHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: restored whole, what was kept is as true as before."""
    expected = _says(house)
    _remade(house, [raw.rstrip(b"\n") for raw in _opened(house).lines()])
    replayed = _replayed(monkeypatch)
    assert _says(house) == expected
    assert replayed == []


@pytest.mark.parametrize("blank", [0, 2])
def test_lines_that_no_head_speaks_of_are_not_covered(cache: Path, blank: int) -> None:
    """A blank line moves all numbers behind it and no head; such a ledger is read as ever."""
    house = DatabaseHouse()
    lines = _other_rows(4)
    lines.insert(blank, b"")
    copy_into(house, lines)
    assert _says(house) == _as_if_never_kept(house)
    assert not cache.exists()


# Bent ------------------------------------------------------------------------------------------------------------


def _in_table(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with sqlite3.connect(path) as database:
            database.execute(statement)
        database.close()

    return change


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


_BENT: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"no table at all"),
    "gone": lambda path: path.unlink(),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "open to all": lambda path: path.chmod(0o666),
    "link": _link,
    "old": _in_table("UPDATE about SET value = '1 0.1' WHERE name = 'format'"),
    "foreign": _in_table("UPDATE about SET value = 'other' WHERE name = 'key'"),
    "longer": _in_table("UPDATE about SET value = value * 1000 WHERE name IN ('line', 'count')"),
    "shorter": _in_table("UPDATE about SET value = value - 1 WHERE name IN ('line', 'count')"),
    "text": _in_table("UPDATE about SET value = 'six' WHERE name = 'line'"),
    "no count": _in_table("DELETE FROM about WHERE name = 'count'"),
    "other head": _in_table(
        'UPDATE about SET value = CAST(replace(CAST(value AS TEXT), \'"head":"\', \'"head":"0\') AS BLOB)'
        " WHERE name = 'verification'"
    ),
}


@pytest.mark.parametrize("how", _BENT)
def test_a_bent_table_changes_nothing_but_time(
    house: DatabaseHouse, cache: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with it, it is passed over and replaced."""
    expected = _as_if_never_kept(house)
    (table,) = (cache / "ledgers").glob("*.state")
    _BENT[how](table)
    replayed = _replayed(monkeypatch)
    assert _facts(_opened(house).read().state) == expected[1]
    assert replayed == list(range(1, 7))
    assert _says(house) == expected
    assert replayed == list(range(1, 7))


def test_a_table_of_another_ledger_is_not_believed(house: DatabaseHouse, cache: Path) -> None:
    """The table names the ledger that it is about; another's in its place is passed over, with its summary."""
    mine = {path.suffix: path.read_bytes() for path in (cache / "ledgers").iterdir()}
    _forget(cache)
    other = DatabaseHouse()
    copy_into(other, _other_rows(6))
    expected = _says(other)
    for path in (cache / "ledgers").iterdir():
        path.write_bytes(mine[path.suffix])
    assert _says(other) == expected


@pytest.mark.parametrize("garbage", [b"", b"{", b"{}\n{}", b'{"key":[]}\n'])
def test_a_bent_summary_is_passed_over(house: DatabaseHouse, cache: Path, garbage: bytes) -> None:
    """The rows say the same."""
    (path,) = (cache / "ledgers").glob("*.json")
    path.write_bytes(garbage)
    assert _says(house) == _as_if_never_kept(house)


def test_a_folder_that_cannot_be_written_costs_only_time(house: DatabaseHouse, cache: Path) -> None:
    """A file stands where the folder should be: nobody may write there, not even root."""
    _forget(cache)
    (cache / "ledgers").rmdir()
    (cache / "ledgers").write_text("in the way")
    assert _says(house) == _as_if_never_kept(house)
    row(_opened(house), "capture")
    assert _opened(house).verify().ok


def test_an_open_store_tries_once_in_many_rows(house: DatabaseHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written, each further reading does not try again."""
    monkeypatch.setattr(keptstate, "FEW_ROWS", 4)
    tried: list[int] = []
    monkeypatch.setattr(keptstate, "write", lambda *_: tried.append(1))
    store = _opened(house)
    for _ in range(9):
        row(store, "capture")
        store.read()
    assert len(tried) == 2
