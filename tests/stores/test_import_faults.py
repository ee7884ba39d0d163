"""An import of several groups that dies or fails on the way: what was durable is there, running it again ends it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stores.test_crash import CHANGING, Ended, _calls, _killing, _run, needs_strace
from stores.test_importing import AS, brought, content, counts, written
from stores.test_postgres_faults import at_commit, house, proxy, through
from support.houses import DatabaseHouse
from support.ledgers import capture, fresh
from support.postgres import needs_postgres
from support.proxy import Fault, Proxy
from troth.core.errors import Busy, Refused
from troth.ledger.foreign import Fields
from troth.stores import importing
from troth.stores.importing import bring, lines_of, opened
from troth.stores.jsonl import JsonlStore
from troth.stores.protocol import LedgerStore

__all__ = ["house", "proxy"]

LINES = 8


def lines(folder: Path) -> Path:
    return written(folder / "rows", *({"body": f"b {n}", "source_key": f"k{n}"} for n in range(LINES)))


def keys(store: LedgerStore) -> list[str]:
    found = [row.value.get("source_key") for row in store.read().rows]
    return [key for key in found if isinstance(key, str)]


def ended_well(store: LedgerStore, file: Path, durable: int = 0) -> None:
    """What there is now is the first lines in order, at least the durable ones; another run brings the rest."""
    there = keys(store)
    assert there == [f"k{n}" for n in range(len(there))]
    assert len(there) >= durable
    assert counts(brought(store, file)) == (LINES - len(there), len(there), 0)
    assert keys(store) == [f"k{n}" for n in range(LINES)]
    assert store.verify().ok


def durable(ended: Ended) -> int:
    return max((int(number) for number in re.findall(r"^durable (\d+)$", ended.told, re.MULTILINE)), default=0)


@needs_strace
def test_an_import_killed_around_each_call_is_ended_by_the_next(tmp_path: Path) -> None:
    file = lines(tmp_path)
    store = fresh(tmp_path / "space")
    capture(store)
    before = store.ledger_file.read_bytes()
    words = ["rows", str(tmp_path / "space"), str(file)]
    calls = _calls(words, CHANGING, tmp_path / "trace")
    assert content(store).count(b"\n") == 1 + LINES
    reached = set()
    for name, number in calls:
        store.ledger_file.write_bytes(before)
        ended = _run(words, *_killing(name, number))
        assert ended.killed
        reached.add(durable(ended))
        assert store.ledger_file.read_bytes().startswith(before)
        ended_well(JsonlStore.open(tmp_path / "space"), file, durable(ended))
    assert reached == {0, 3, 6, 8}
    assert {"flock", "write", "fsync"} <= {name for name, _ in calls}


def test_an_import_torn_at_any_byte_is_ended_by_the_next(tmp_path: Path) -> None:
    file = lines(tmp_path)
    store = fresh(tmp_path / "space")
    capture(store)
    before = store.ledger_file.read_bytes()
    assert counts(brought(store, file)) == (LINES, 0, 0)
    whole = store.ledger_file.read_bytes()
    starts = [len(before) + at + 1 for at, byte in enumerate(whole[len(before) :]) if byte == 10]
    cuts = {max(len(before), min(len(whole), start + near)) for start in starts for near in (-2, -1, 0, 1, 40, 150)}
    for cut in sorted(cuts):
        store.ledger_file.write_bytes(whole[:cut])
        ended_well(JsonlStore.open(tmp_path / "space"), file)


@needs_strace
@pytest.mark.parametrize(("name", "error"), [("write", "ENOSPC"), ("fsync", "EIO")])
@pytest.mark.parametrize("group", [0, 1])
def test_a_disk_that_fails_at_a_group_keeps_those_before_it(tmp_path: Path, name: str, error: str, group: int) -> None:
    file = lines(tmp_path)
    store = fresh(tmp_path / "space")
    capture(store)
    before = store.ledger_file.read_bytes()
    words = ["rows", str(tmp_path / "space"), str(file)]
    log = tmp_path / "log"
    assert _run(words, "-y", "-o", str(log), "-e", f"trace={name}").acked
    told = [line for line in log.read_text(errors="replace").splitlines() if re.match(r"(\d+ +)?\w+\(", line)]
    at = [number for number, line in enumerate(told, 1) if f"<{store.ledger_file}>" in line]
    assert len(at) == 3, "one call for each group"
    store.ledger_file.write_bytes(before)
    ended = _run(words, "-o", "/dev/null", "-e", f"trace={name}", "-e", f"inject={name}:error={error}:when={at[group]}")
    assert ended.said == ["begin", {"code": "E_WRITE_FAILED"}]
    assert durable(ended) == 3 * group
    assert len(keys(store)) == 3 * group
    ended_well(JsonlStore.open(tmp_path / "space"), file)


@pytest.mark.parametrize("room", [100, 1200])
def test_a_short_write_of_a_group_is_taken_back(tmp_path: Path, room: int) -> None:
    pytest.importorskip("resource")
    file = lines(tmp_path)
    store = fresh(tmp_path / "space")
    capture(store)
    ended = _run(["rows", str(tmp_path / "space"), str(file), str(room)])
    assert ended.said == ["begin", {"code": "E_WRITE_FAILED"}]
    assert len(keys(store)) == durable(ended) == (0 if room == 100 else 3)
    assert not list(tmp_path.glob("space/.mentu/torn-*"))
    ended_well(JsonlStore.open(tmp_path / "space"), file)


@needs_postgres
@pytest.mark.parametrize(("how", "lost"), [("drop", True), ("half", True), ("lose", False)])
def test_a_database_lost_at_a_group_keeps_those_before_it(
    house: DatabaseHouse, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, lost: bool
) -> None:
    monkeypatch.setattr(importing, "GROUP", 3)
    file = lines(tmp_path)
    store = through(proxy, house)
    done: list[int] = []

    def progress(line: int) -> None:
        done.append(line)
        if line == 3:
            proxy.fault = at_commit(Fault(how))

    def run() -> Any:
        with opened(file) as fd:
            return bring(store, lines_of(fd, Fields(), AS), progress=progress)

    if lost:
        with pytest.raises(Busy) as caught:
            run()
        assert caught.value.code == "E_STORE_LOST"
    else:
        assert counts(run()) == (LINES, 0, 0)
    assert proxy.fault is None
    assert done == ([3] if lost else [3, 6, 8])
    assert len(keys(house.open())) == (3 if lost else LINES)
    ended_well(store, file)
    assert house.open().verify().summary() == f"{LINES}/{LINES} verified"


def test_what_every_line_would_be_refused_for_is_said_once(tmp_path: Path) -> None:
    file = lines(tmp_path)
    store = fresh(tmp_path / "space")
    (tmp_path / "space" / ".mentu" / "genesis.key").write_text("identity: [\n")
    with pytest.raises(Refused) as caught:
        brought(store, file)
    assert (caught.value.code, caught.value.detail) == ("E_CONSTRAINT_VIOLATED", "genesis_invalid")
    assert content(store) == b""
    (tmp_path / "space" / ".mentu" / "genesis.key").write_text("identity: {name: n, owner: human:reviewer}\n")
    assert counts(brought(store, file)) == (LINES, 0, 0)
    assert json.loads(content(store).split(b"\n")[0])["actor"] == "system:genesis"
