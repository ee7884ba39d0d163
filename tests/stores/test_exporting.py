"""Rows let out of both stores, files that appear whole or not at all, and whole copies (ledger spec §8 Sync)."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.building import Ledger, line
from ledger.genesis_keys import IDENTITY, key
from reference import sync_model
from stores.test_crash import CHANGING, _calls, _killing, _run, needs_strace
from support.houses import FileHouse, House, Make, copy_into, make, row
from troth.core.errors import DoesNotHold, Refused
from troth.ledger import sync
from troth.ledger.chain import split_lines
from troth.ledger.operations import Candidate
from troth.stores import durable
from troth.stores.exporting import copy_whole, prepare, write

__all__ = ["make"]


FEDERATION = "federation: {enabled: true, sync_target: 'https://example.org/sync', workspaces: [peer]}\n"
KEY = key(FEDERATION)
AUDIENCES = {"anybody": sync.anybody(KEY), "peer": sync.peer(KEY, "peer"), "cloud": sync.cloud(KEY)}
MARK = "planted"


def out(house: House, audience: str) -> bytes:
    return b"".join(prepare(house.open(), AUDIENCES[audience]).pieces())


_SCOPE = st.sampled_from([None, *sync_model.ORDER[1:], *sync_model.ORDER])


@st.composite
def _written(draw: st.DrawFn) -> Ledger:
    """A sound ledger of rows that name earlier ones, with marks wherever anonymous rows must have none."""
    ledger = Ledger()
    for _ in range(draw(st.integers(0, 9))):
        ids = [one["id"] for one in ledger.rows]
        op = draw(st.sampled_from(["capture", "commit", "annotate"] if ids else ["capture"]))
        members: dict[str, Any] = {"body": f"text {len(ids)} / é", "meta": {f"{MARK}key": [MARK, 1.50]}}
        if op != "capture":
            members["source" if op == "commit" else "target"] = draw(st.sampled_from(ids))
        scope = draw(_SCOPE)
        extra: dict[str, Any] = {"source_key": f"{MARK}:{len(ids)}", "x_n": 0.1}
        ledger.add(op, f"agent:{MARK}", envelope=extra | ({"syncScope": scope} if scope else {}), **members)
    return ledger


def _check(house: House, ledger: Ledger) -> None:
    stored = [line(value) for value in ledger.rows]
    for name in AUDIENCES:
        let_out = out(house, name)
        goes = sync_model.goes(ledger.rows, name)
        if name == "anybody":
            assert MARK.encode() not in let_out
            assert all(value["hash"].encode() not in let_out for value in ledger.rows)
            bare = [json.loads(one) for one in let_out.splitlines()]
            assert bare == [sync_model.without_a_name(ledger.rows[at]) for at in goes]
        else:
            assert let_out == b"".join(stored[at] for at in goes)
        found = sync.check_set(split_lines([let_out]))
        assert found.ok
        assert (found.verified, found.unverifiable) == ((0, len(goes)) if name == "anybody" else (len(goes), 0))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ledger=_written())
def test_what_leaves_a_file_is_what_the_model_lets_out(
    tmp_path_factory: pytest.TempPathFactory, ledger: Ledger
) -> None:
    house = FileHouse(tmp_path_factory.mktemp("out") / "h")
    copy_into(house, [line(value)[:-1] for value in ledger.rows])
    _check(house, ledger)


def _sample() -> Ledger:
    ledger = Ledger()
    mine = {"source_key": f"{MARK}:1"}
    seen = ledger.add("capture", f"human:{MARK}", envelope={"syncScope": "cloud", **mine}, meta={"a": MARK})
    work = ledger.add("commit", f"human:{MARK}", envelope={"syncScope": "full"}, source=seen)
    ledger.add("annotate", f"human:{MARK}", envelope={"syncScope": "anonymous"}, target=work)
    ledger.add("capture", f"human:{MARK}")
    ledger.add("annotate", f"human:{MARK}", envelope={"syncScope": "cloud"}, target="mem_00000004")
    return ledger


def test_what_leaves_any_store(make: Make) -> None:
    house, ledger = make(), _sample()
    copy_into(house, [line(value)[:-1] for value in ledger.rows])
    _check(house, ledger)
    chosen = prepare(house.open(), AUDIENCES["peer"]).selection
    assert chosen.as_json() == {
        "to": "workspace peer",
        "form": "row",
        "rows": 5,
        "out": 2,
        "scopes": {"local": 2, "anonymous": 1, "full": 1, "cloud": 1},
        "stay": {"own": 1, "named": 1, "audience": 1},
        "narrowed": [{"id": "ann_00000005", "own": "cloud", "effective": "local", "cause": "mem_00000004"}],
    }


def test_an_empty_ledger_lets_nothing_out(make: Make) -> None:
    house = make()
    assert [out(house, name) for name in AUDIENCES] == [b"", b"", b""]


def test_a_broken_ledger_lets_nothing_out_and_a_mended_one_does(make: Make) -> None:
    house, ledger = make(), _sample()
    copy_into(house, [line(value)[:-1] for value in ledger.rows])
    house.change(4, lambda raw: raw.replace(b"row 4", b"row x"))
    with pytest.raises(DoesNotHold) as caught:
        out(house, "peer")
    assert caught.value.code == "E_CHAIN_BROKEN"
    house.change(4, lambda raw: raw.replace(b"row x", b"row 4"))
    assert out(house, "peer")


def test_rows_that_come_meanwhile_stay(make: Make) -> None:
    house = make()
    scoped = Candidate("capture", "agent:worker", {"body": "b"}, syncScope="full")
    first = house.open().append(scoped)
    prepared = prepare(house.open(), AUDIENCES["peer"])
    house.open().append(scoped)
    assert [json.loads(one)["id"] for one in prepared.pieces()] == [first["id"]]


def test_other_bytes_in_the_place_of_a_row_do_not_leave(tmp_path: Path) -> None:
    house = FileHouse(tmp_path / "h")
    house.open().append(Candidate("capture", "agent:worker", {"body": "b"}, syncScope="full"))
    prepared = prepare(house.open(), AUDIENCES["peer"])
    whole = house.file.read_bytes()
    for other in (b"", whole.replace(b'"b"', b'"secret"'), b"\n" + whole):
        house.file.write_bytes(other)
        if other.endswith(whole):
            assert list(prepared.pieces()) == [whole]
            continue
        with pytest.raises(Refused) as caught:
            list(prepared.pieces())
        assert caught.value.code == "E_UNREADABLE"


def test_marks_and_returns_that_a_reader_passes_over_do_not_leave(tmp_path: Path) -> None:
    house, ledger = FileHouse(tmp_path / "h"), _sample()
    first, *rest = [line(value) for value in ledger.rows]
    house.file.write_bytes(b"\xef\xbb\xbf" + first[:-1] + b"\r\n\n" + b"".join(rest)[:-1])
    _check(house, ledger)
    with open(house.file, "ab") as file:
        file.write(b"\n" + b'{"id":')
    with pytest.raises(DoesNotHold):
        out(house, "peer")


# Files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path: Path) -> FileHouse:
    made = FileHouse(tmp_path / "house")
    made.file.with_name("genesis.key").write_text(IDENTITY + FEDERATION)
    for _ in range(3):
        made.open().append(Candidate("capture", "agent:worker", {"body": "b"}, syncScope="full"))
    return made


def test_a_file_that_stands_there_is_replaced_only_when_told(house: FileHouse, tmp_path: Path) -> None:
    store, file = house.open(), tmp_path / "rows"
    write(store, file, [b"a"])
    with pytest.raises(Refused) as caught:
        write(store, file, [b"b"])
    assert (caught.value.code, file.read_bytes()) == ("E_NOT_EMPTY", b"a")
    write(store, file, [b"b", b"c"], force=True)
    assert file.read_bytes() == b"bc"
    write(store, tmp_path / "other", [], force=True)
    assert (tmp_path / "other").read_bytes() == b""
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "folder").mkdir()
    for odd in ("link", "folder"):
        with pytest.raises(Refused) as caught:
            write(store, tmp_path / odd, [b"d"], force=True)
        assert caught.value.code == "E_NOT_EMPTY"
    assert file.read_bytes() == b"bc"
    with pytest.raises(Refused) as caught:
        write(store, tmp_path / "absent" / "file", [b"d"])
    assert caught.value.code == "E_UNREADABLE"


def test_nothing_of_a_workspace_is_written_over(house: FileHouse, tmp_path: Path) -> None:
    store, before = house.open(), house.file.read_bytes()
    (tmp_path / "way").symlink_to(house.file.parent)
    os.link(house.file, tmp_path / "same")
    for place in (house.file, house.file.with_name("config.yaml"), tmp_path / "way" / "new", tmp_path / "same"):
        with pytest.raises(Refused) as caught:
            write(store, place, [b"x"], force=True)
        assert caught.value.code == "E_USAGE"
    assert house.file.read_bytes() == before
    write(store, tmp_path / "elsewhere", [b"x"], force=True)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("failing", ["pieces", "sync", "place"])
def test_what_fails_leaves_no_file_or_the_old_one(
    house: FileHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, force: bool
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / "rows"
    if force:
        file.write_bytes(b"old")

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    def pieces() -> Any:
        yield b"a" * 100_000
        if failing == "pieces":
            full()

    if failing == "sync":
        monkeypatch.setattr(durable, "sync_file", full)
    elif failing == "place":
        monkeypatch.setattr(os, "link", full)
        monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(Refused) as caught:
        write(house.open(), file, pieces(), force=force)
    assert caught.value.code == "E_UNREADABLE"
    assert [(one.name, one.read_bytes()) for one in folder.iterdir()] == ([("rows", b"old")] if force else [])


def test_a_file_system_without_hard_links(house: FileHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    folder = tmp_path / "out"
    folder.mkdir()
    write(house.open(), folder / "rows", [b"a"])
    assert [(one.name, one.read_bytes()) for one in folder.iterdir()] == [("rows", b"a")]


@needs_strace
@pytest.mark.parametrize("how", ["new", "force"])
def test_an_export_killed_around_each_call_leaves_a_whole_file_or_none(
    house: FileHouse, tmp_path: Path, how: str
) -> None:
    wanted = out(house, "peer")
    old = {b"old"} if how == "force" else {None}
    calls = _calls(["export", house.where, str(_old(tmp_path / "learn", how)), how], CHANGING, tmp_path / "trace")
    assert {"write", "fsync"} <= {name for name, _ in calls}
    seen = set()
    for turn, (name, number) in enumerate(calls):
        file = _old(tmp_path / f"out{turn}", how)
        assert _run(["export", house.where, str(file), how], *_killing(name, number)).killed
        there = file.read_bytes() if file.exists() else None
        assert there in {wanted} | old
        seen.add(there)
    assert seen == {wanted} | old


def _old(folder: Path, how: str) -> Path:
    folder.mkdir()
    if how == "force":
        (folder / "rows").write_bytes(b"old")
    return folder / "rows"


# Whole copies ----------------------------------------------------------------------------------------------------


def test_a_whole_copy_has_the_same_bytes_and_is_verified(make: Make, tmp_path: Path) -> None:
    house = make()
    store = house.open()
    row(store, "commit", source=row(store, "capture"))
    found = copy_whole(house.open(), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"".join(store.lines())
    assert (found.ok, found.summary(), found.head) == (True, "2/2 verified", store.verify().head)
    house.change(1, lambda raw: raw.replace(b'"b"', b'"c"'))
    found = copy_whole(house.open(), tmp_path / "broken")
    assert (tmp_path / "broken").read_bytes() == b"".join(house.open().lines())
    assert "content_mismatch" in {fault.fault for fault in found.faults}
    house.change(1, lambda raw: raw.replace(b'"c"', b'"b"'))
    assert copy_whole(house.open(), tmp_path / "mended").ok
    house.remove(2)
    found, own = copy_whole(house.open(), tmp_path / "cut"), house.open().verify()
    assert found.ok == own.ok


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.sampled_from([b"\n", b"\r\n", b"[]\n", b"\xef\xbb\xbf", b'{"a":1}', b"x" * 3000, b"\xff"])))
def test_a_copy_of_anything_is_verified_as_the_ledger_is(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    house = FileHouse(tmp_path_factory.mktemp("copy") / "h")
    data = b"".join(parts)
    house.file.write_bytes(data)
    file = house.file.parents[1] / "copy"
    found = copy_whole(house.open(), file)
    assert file.read_bytes() == data
    assert found == house.open().verify(expect_head=found.head, expect_rows=found.hashed)
