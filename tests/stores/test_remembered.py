"""What is kept of a large ledger's state: the same answers as reading it all, whatever happens to either."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.ledgers import SOURCES, capture, commitment, counting, environment, fresh, ticking
from troth.core.errors import Refused, TrothError
from troth.ledger.hashing import row_hash
from troth.ledger.operations import Candidate
from troth.ledger.replay import Replay, State
from troth.stores import index, keptstate, memory, remembered
from troth.stores.jsonl import JsonlStore
from troth.stores.kept import KeptMapping
from troth.stores.requests import resolve
from troth.stores.workspace import create_workspace


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, for ledgers of any size and age."""
    _patch(monkeypatch, tmp_path / "cache")
    return tmp_path / "cache"


def _patch(monkeypatch: pytest.MonkeyPatch, cache: Path, few: int = 5000) -> None:
    monkeypatch.setattr(index, "cache_folder", lambda: cache)
    monkeypatch.setattr(index, "SETTLED_NANOSECONDS", 0)
    monkeypatch.setattr(memory, "REMEMBERED_BYTES", 1)
    monkeypatch.setattr(keptstate, "FEW_ROWS", few)


def _facts(state: State) -> dict[str, Any]:
    """Return everything that a state says, in its order, as plain values."""
    return {
        **state.as_json(),
        "more": [
            list(state.commitments.values()),
            list(state.notes),
            list(state.signals.items()),
            list(state.source_keys.items()),
            set(state.cited),
            set(state.dismissed),
            [(name, list(others)) for name, others in state.duplicates.items() if others],
            [(name, list(others)) for name, others in state.untold.items() if others],
            list(state.tags.items()),
            state.genesis,
            list(state.uncommitted()),
        ],
    }


def _began(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that grows with each reading: whether it began with what was kept."""
    told: list[bool] = []
    real = remembered.recall

    def recall(*given: Any) -> Any:
        found = real(*given)
        told.append(found is not None)
        return found

    monkeypatch.setattr(remembered, "recall", recall)
    return told


def _again(store: JsonlStore, **options: Any) -> JsonlStore:
    """Return another store on the same ledger, as the next process has it."""
    assert store.space is not None
    return JsonlStore.open(store.space.root, **options)


def _raw(store: JsonlStore, **members: Any) -> None:
    """Append a chained row behind the tool's back, as a foreign writer does."""
    last = [json.loads(line) for line in store.ledger_file.read_bytes().splitlines() if line][-1]
    row = {
        "id": "mem_foreign1", "op": "capture", "ts": "2026-01-01T00:00:00Z", "actor": "agent:other", "workspace": "w",
        "prevHash": last["hash"], "payload": {"body": "b", "kind": "evidence"},
    } | members  # fmt: skip
    row.setdefault("hash", row_hash(row))
    with store.ledger_file.open("ab") as file:
        file.write(json.dumps(row).encode() + b"\n")


# Laws ------------------------------------------------------------------------------------------------------------


class Twins:
    """Two ledgers to which the same happens: one always in fresh stores that remember, one in a store that cannot."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clocks = [ticking(), ticking()]
        self.digits = [counting(), counting()]
        self.roots = [root / "kept", root / "plain"]
        for each in self.roots:
            each.mkdir()
            create_workspace(each, name="w", agents_text="x")
        self.plain = JsonlStore.open(self.roots[1], clock=self.clocks[1], random_hex=self.digits[1])
        self.names: dict[str, list[str]] = {"capture": [], "commit": [], "submit": []}

    def kept(self) -> JsonlStore:
        """Return a fresh store of the first ledger."""
        return JsonlStore.open(self.roots[0], clock=self.clocks[0], random_hex=self.digits[0])

    def candidate(self) -> Candidate:
        """Return anything that somebody might ask for, mostly something legal."""
        chance = self.chance
        op = chance.choice(
            ["capture"] * 3 + ["commit"] * 2 + ["claim", "submit", "release", "approve", "reopen", "close", "annotate"]
        )
        payload: dict[str, Any] = {"body": chance.choice(["a", "ß", "b/c"])}
        extra: dict[str, Any] = {}

        def one(kind: str) -> str:
            known = self.names[kind]
            return chance.choice(known[-6:]) if known and chance.random() < 0.95 else "mem_nobody00"

        if op == "commit":
            payload |= {"source": one("capture"), "tags": chance.choice([["bug"], []])}
        elif op == "annotate":
            payload |= {"target": one("capture"), "kind": chance.choice(["note", "dismiss"])}
        elif op != "capture":
            payload["commitment"] = one("commit")
        if op in ("submit", "close"):
            payload["evidence"] = one("capture")
        if op == "close" and chance.random() < 0.5:
            payload = {"body": "x", "commitment": payload["commitment"], "duplicate_of": one("commit")}
        if op == "capture":
            payload |= {"kind": "evidence"} | ({"tags": ["seen"]} if chance.random() < 0.2 else {})
            if chance.random() < 0.3:
                extra["source_key"] = f"key:{chance.randrange(6)}"
            if chance.random() < 0.2:
                extra["trace"] = {"parent": [one("capture")]}
        return Candidate(op, chance.choice(["agent:a", "human:b"]), payload, **extra)

    def step(self) -> None:
        """Do one thing to both and compare what comes of it, to the byte."""
        kind = self.chance.random()
        if kind < 0.1:
            members = self.chance.choice(
                [
                    {"op": "claim", "payload": {"body": "c", "commitment": "cmt_nobody00"}},
                    {"id": (self.names["capture"] or ["mem_x"])[0]},
                    {"id": f"mem_foreign{self.chance.randrange(99)}", "source_key": "key:1"},
                    {"op": "retire"},
                    {"payload": "none"},
                ]
            )
            for store in (self.kept(), self.plain):
                if store.ledger_file.stat().st_size:
                    _raw(store, **members)
        elif kind < 0.8:
            candidate = self.candidate()
            outcomes = [self._ask(store, candidate) for store in (self.kept(), self.plain)]
            assert outcomes[0] == outcomes[1]
            if outcomes[0][0] == "row" and candidate.op in self.names:
                self.names[candidate.op].append(outcomes[0][1]["id"])
        self.compare()

    def _ask(self, store: JsonlStore, candidate: Candidate) -> tuple[str, Any]:
        try:
            return "row", store.append(candidate)
        except TrothError as fault:
            return "refused", (fault.code, fault.detail, str(fault.place))

    def compare(self) -> None:
        """Compare bytes, state, verification, rows and what written ids mean."""
        bytes_of = [(root / ".mentu" / "ledger.jsonl").read_bytes() for root in self.roots]
        assert bytes_of[0] == bytes_of[1]
        mine, plain = self.kept().read(), self.plain.read()
        for ops in ((), ("commit",), ("capture",)):
            for written in ("@last", "mem_", "cmt_0000000000000", "mem_0000000000000001", "op_"):
                assert _meant(written, mine.state, ops) == _meant(written, plain.state, ops)
        assert mine.verification == plain.verification
        assert _facts(mine.state) == _facts(plain.state)
        assert [row.value for row in mine.rows[-3:]] == [row.value for row in plain.rows[-3:]]


def _meant(written: str, state: State, ops: tuple[str, ...]) -> Any:
    try:
        return resolve(written, state, ops)
    except TrothError as fault:
        return fault.code, fault.message, fault.detail


@pytest.mark.parametrize("few", [1, 7, 5000])
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32))
def test_stores_that_remember_and_one_that_cannot_agree(few: int, seed: int) -> None:
    """Law: the bytes, the refusals and the state are the same; several tables are written, and the last one is used."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as root:
        _patch(patch, Path(root, "cache"), few)
        began = _began(patch)
        twins = Twins(Path(root), seed)
        patch.setattr(twins.plain, "_distrust", True)
        for _ in range(40):
            twins.step()
        # What has warnings is not kept, so a foreign row may have come too early.
        assert any(began) or twins.plain.read().verification.warnings


# What is believed, and when ---------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path, cache: Path) -> JsonlStore:
    """A ledger of some rows, kept by the last append."""
    store = fresh(tmp_path / "space")
    for number in range(3):
        commitment(store, f"work {number}")
    for path in (cache / "ledgers").iterdir():
        path.unlink()  # the table that the first rows made
    capture(_again(store), "known by now")
    assert len(list((cache / "ledgers").glob("*.state"))) == 1
    return store


def test_the_next_process_begins_with_what_was_kept(store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append, a reading and another append replay only what is behind the table."""
    began = _began(monkeypatch)
    replayed: list[int] = []
    real = Replay._register
    monkeypatch.setattr(Replay, "_register", lambda self, row: (replayed.append(row.line), real(self, row))[1])
    capture(_again(store), "more")
    assert (began, replayed) == ([True], [8])
    assert len(_again(store).read().rows) == 8
    assert store.verify().ok


def test_a_ledger_without_a_cache_folder_is_read_as_ever(store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: nothing to remember with."""
    monkeypatch.setattr(index, "cache_folder", lambda: None)
    assert capture(_again(store), "more")
    assert len(_again(store).read().rows) == 8


@pytest.mark.parametrize("settled", [0, 2_000_000_000])
def test_a_change_in_what_was_covered_is_seen(store: JsonlStore, settled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte of an old row, its length as it was: the table is not believed, by the times or by the digest."""
    monkeypatch.setattr(index, "SETTLED_NANOSECONDS", settled)
    began = _began(monkeypatch)
    data = store.ledger_file.read_bytes()
    assert _again(store).read().verification.ok
    store.ledger_file.write_bytes(data.replace(b"work 0", b"work 9", 1))
    found = _again(store).read().verification
    assert [fault.fault for fault in found.faults] == ["content_mismatch"]
    store.ledger_file.write_bytes(data)
    assert _again(store).read().verification.ok
    assert began == [True, False, True]


def test_a_fault_behind_the_table_has_its_own_name(store: JsonlStore) -> None:
    """A link to an older row of the table is told from one to a row that never was, as the verifier tells it."""
    rows = [json.loads(line) for line in store.ledger_file.read_bytes().splitlines()]
    for link, name in ((rows[0]["hash"], "link_mismatch"), ("f" * 64, "missing_ancestor")):
        before = store.ledger_file.read_bytes()
        _raw(store, prevHash=link)
        found = _again(store)
        assert [fault.fault for fault in found.read().verification.faults] == [name]
        with pytest.raises(TrothError, match="does not verify"):
            capture(_again(store), "no")
        store.ledger_file.write_bytes(before)
    _raw(store, id=rows[0]["id"])
    assert [fault.fault for fault in _again(store).read().verification.faults] == ["duplicate_id"]


def test_a_torn_tail_behind_the_table_is_set_aside(store: JsonlStore) -> None:
    """A writer that begins with what was kept deals with half a row like any other."""
    with store.ledger_file.open("ab") as file:
        file.write(b'{"torn')
    capture(_again(store), "after it")
    assert store.verify().ok
    assert len(list(store.ledger_file.parent.glob("torn-*"))) == 1


def _bend(cache: Path, change: Callable[[Path], None]) -> None:
    (table,) = (cache / "ledgers").glob("*.state")
    change(table)


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _foreign_format(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE about SET value = '0' WHERE name = 'format'")


def _longer_than_the_ledger(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE about SET value = value * 1000 WHERE name = 'size'")


def _open_to_all(path: Path) -> None:
    path.chmod(0o666)


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"no table at all"),
        lambda path: path.unlink(),
        _truncate,
        _foreign_format,
        _longer_than_the_ledger,
        _open_to_all,
        _link,
    ],
    ids=["empty", "garbage", "gone", "cut", "format", "longer", "open to all", "link"],
)
def test_a_bent_table_changes_nothing_but_time(
    store: JsonlStore, cache: Path, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with it, the answers are the ledger's, and another table stands there afterwards."""
    expected = _facts(store.read().state)
    # The note alone must not lend a bent table belief.
    _bend(cache, change)
    began = _began(monkeypatch)
    assert _facts(_again(store).read().state) == expected
    assert began == [False]
    capture(_again(store), "one more")
    assert store.verify().ok


def test_a_table_of_another_ledger_in_its_place_is_not_believed(
    store: JsonlStore, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table names the ledger that it is about."""
    (mine,) = (cache / "ledgers").glob("*.state")
    kept = mine.read_bytes()
    other = fresh(tmp_path / "other")
    capture(other, "elsewhere")
    capture(_again(other), "elsewhere again")
    (theirs,) = set((cache / "ledgers").glob("*.state")) - {mine}
    theirs.write_bytes(kept)
    began = _began(monkeypatch)
    assert len(_again(other).read().rows) == 2
    assert began == [False]


def test_what_lies_in_the_table_is_read_when_it_is_asked_for(
    store: JsonlStore, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage behind what was looked at first is refused with the way out, and taking it leads there."""

    def damage(path: Path) -> None:
        with sqlite3.connect(path) as database:
            asked = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'signals'")
            start = (asked.fetchone()[0] - 1) * (size := database.execute("PRAGMA page_size").fetchone()[0])
        data = bytearray(path.read_bytes())
        data[start : start + size] = bytes(size)
        path.write_bytes(data)

    _bend(cache, damage)
    with pytest.raises(TrothError, match="cannot be read") as caught:
        capture(_again(store), "more")
    assert (caught.value.code, "Delete the folder" in str(caught.value.remedy)) == ("E_UNREADABLE", True)
    for path in (cache / "ledgers").iterdir():
        path.unlink()
    rows = len(_again(store).read().rows)
    assert rows == 7


def test_an_open_store_writes_few_notes(store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty rows from one process: each time it has grown as much again, so a handful."""
    notes: list[int] = []
    real = remembered._write_note
    monkeypatch.setattr(remembered, "_write_note", lambda *given: (notes.append(1), real(*given))[1])
    again = _again(store)
    for number in range(60):
        capture(again, f"row {number}")
    assert 3 <= len(notes) <= 8


def test_long_ids_and_warnings_are_not_kept(tmp_path: Path, cache: Path) -> None:
    """A resumed verifier would not know them, so such a ledger is read as ever."""
    for number, members in enumerate(({"id": "mem_" + "x" * 80}, {"payload": None})):
        store = fresh(tmp_path / f"space{number}")
        capture(store)
        for path in (cache / "ledgers").glob("*"):
            path.unlink()
        _raw(store, **members)
        capture(_again(store), "after it")
        assert not list((cache / "ledgers").glob("*.state"))
        assert len(_again(store).read().rows) == 3


_WRITER = """
import sys
from pathlib import Path
from troth.ledger.operations import Candidate
from troth.stores import index, keptstate, memory
from troth.stores.jsonl import JsonlStore
index.SETTLED_NANOSECONDS, memory.REMEMBERED_BYTES, keptstate.FEW_ROWS = 0, 1, 3
index.cache_folder = lambda: Path(sys.argv[2])
while True:
    row = JsonlStore.open(Path(sys.argv[1])).append(Candidate("capture", "agent:a", {"body": "b"}))
    print(row["id"], flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_killed_writers_leave_a_table_that_is_true(store: JsonlStore, cache: Path) -> None:
    """Two processes append and keep, and are killed somewhere: what was told is there, and state is what it should."""
    assert store.space is not None
    argv = [sys.executable, "-c", _WRITER, str(store.space.root), str(cache)]
    told: list[str] = []
    for _ in range(3):
        started = [
            subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment(PYTHONPATH=SOURCES))
            for _ in range(2)
        ]
        for process in started:
            told += [_line(process) for _ in range(6)]
        for process in started:
            process.send_signal(signal.SIGKILL)
            rest, _ = process.communicate()
            told += rest.split()
        remembering = _again(store).read()
        assert _facts(remembering.state) == _facts(store.read().state)
    assert set(told) <= set(remembering.state.signals)
    assert store.verify().ok


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


# Mappings --------------------------------------------------------------------------------------------------------


@pytest.fixture
def table() -> Iterator[sqlite3.Connection]:
    """A table of some texts."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (key TEXT PRIMARY KEY, seq INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID")
    yield database
    database.close()


@pytest.mark.parametrize("value", [b"{", b"\xff", b"5", b'{"a": 1}', None])
def test_a_value_of_the_table_that_is_none_of_ours_is_refused(table: sqlite3.Connection, value: bytes | None) -> None:
    table.execute("INSERT INTO t VALUES ('good', 1, '[7]')")
    table.execute("INSERT INTO t VALUES ('bent', 2, ?)", [value if value is not None else 5])
    mapping = KeptMapping(table, "t", lambda values: values[0])
    assert mapping["good"] == 7
    with pytest.raises(Refused, match="none of ours"):
        mapping["bent"]
    with pytest.raises(Refused, match="none of ours"):
        list(mapping.items())


_KEYS = st.sampled_from(["a", "ab", "abc", "b", "ä", "\U0010ffff", "", "a\x00"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    base=st.lists(st.tuples(_KEYS, st.integers(-(2**60), 2**60)), unique_by=lambda pair: pair[0]),
    moves=st.lists(
        st.tuples(st.sampled_from(["get", "set", "del", "default", "pop", "has", "from", "back", "all", "len"]), _KEYS)
    ),
)
def test_a_kept_mapping_is_a_dictionary(
    table: sqlite3.Connection, base: list[tuple[str, int]], moves: list[tuple[str, str]]
) -> None:
    """Against a dictionary, move by move; ``from`` asks for the keys that begin so."""
    table.execute("DELETE FROM t")
    rows = [(key, seq, json.dumps(value).encode()) for seq, (key, value) in enumerate(base)]
    table.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    plain: dict[str, int] = dict(base)
    kept: KeptMapping[int] = KeptMapping(table, "t", int)
    for number, (move, key) in enumerate(moves):
        both: list[Any] = []
        for mapping in (kept, plain):
            match move:
                case "get":
                    both.append(mapping.get(key))
                case "set":
                    mapping[key] = number
                case "del":
                    both.append(mapping.pop(key, None))
                case "pop":
                    try:
                        del mapping[key]
                    except KeyError:
                        both.append("absent")
                case "default":
                    both.append(mapping.setdefault(key, number))
                case "has":
                    both.append(key in mapping)
                case "from":
                    both.append(
                        mapping.beginning(key)
                        if isinstance(mapping, KeptMapping)
                        else [name for name in mapping if name.startswith(key)]
                    )
                case "back":
                    both.append(list(reversed(mapping)))  # type: ignore[call-overload]  # both go backwards
                case "all":
                    both.append(list(mapping.items()))
                case "len":
                    both.append(len(mapping))
        assert both[: len(both) // 2] == both[len(both) // 2 :]
    assert list(kept.items()) == list(plain.items())
