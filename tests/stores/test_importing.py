"""Lines of other programs brought into either store: known again, refused one by one, all or none, two at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.houses import House, Make, bytes_of, house, make, row
from support.ledgers import environment
from troth.core.errors import Refused
from troth.ledger.foreign import Fields
from troth.stores import importing
from troth.stores.importing import Report, bring, bring_whole, format_of, lines_of, opened
from troth.stores.protocol import LedgerStore

__all__ = ["house", "make"]

AS = "agent:importer"


def written(path: Path, *lines: Any) -> Path:
    path.write_bytes(b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines))
    return path


def brought(store: LedgerStore, file: Path, fields: Fields | None = None, **options: Any) -> Report:
    with opened(file) as fd:
        return bring(store, lines_of(fd, fields or Fields(), AS), **options)


def counts(report: Report) -> tuple[int, int, int]:
    return report.imported, report.present, report.refused_count


def content(store: LedgerStore) -> bytes:
    return b"".join(store.lines())


def test_rows_come_once_and_are_known_again(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "GROUP", 3)
    store = house.open()
    row(store, "capture")
    before = content(store)
    file = written(tmp_path / "rows", *({"body": f"b {n}", "source_key": f"k{n}"} for n in range(10)))
    assert counts(brought(store, file)) == (10, 0, 0)
    after = content(store)
    assert after.startswith(before)
    assert counts(brought(store, file)) == counts(brought(house.open(), file)) == (0, 10, 0)
    assert content(store) == after
    written(file, *({"body": f"b {n}", "source_key": f"k{n}"} for n in range(12)), {"body": "x", "source_key": "k11"})
    assert counts(brought(store, file)) == (2, 11, 0)
    assert house.open().verify().summary() == "13/13 verified"


def test_hostile_lines_are_told_and_stop_no_other(house: House, tmp_path: Path) -> None:
    store = house.open()
    file = written(
        tmp_path / "rows",
        {"body": "first", "source_key": "1"},
        b"{",
        b'{"body":"x","body":"y","source_key":"2"}',
        b'{"body":"x","source_key":"' + b"k" * 513 + b'"}',
        b"[" * 200 + b"]" * 200,
        b"\xff",
        {"body": "x" * (1 << 20), "source_key": "3"},
        b'{"body":NaN,"source_key":"4"}',
        b"",
        {"body": "x", "source_key": "5", "trust": {"confidence": 1}},
        {"body": "x", "source_key": "6", "actor": "nobody in particular"},
        {"op": "claim", "body": "x", "source_key": "7", "payload": {"commitment": "cmt_none"}},
        {"op": "capture", "id": "cmt_2", "body": "x", "source_key": "8", "odd": 1},
        {"body": "no key"},
        {"body": "last", "source_key": "9", "hash": "f" * 64, "prevHash": "e" * 64},
    )
    report = brought(store, file)
    assert counts(report) == (2, 0, 12)
    assert [one.line for one in report.refused] == [2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14]
    assert [one.fault.code for one in report.refused][:6] == [
        "json_invalid", "json_duplicate_key", "E_CONSTRAINT_VIOLATED", "json_depth", "json_invalid", "json_size",
    ]  # fmt: skip
    assert store.verify().summary() == "2/2 verified"
    assert store.read().rows[1].value["hash"] != "f" * 64


def test_strict_and_dry_run_write_nothing(house: House, tmp_path: Path) -> None:
    store = house.open()
    good = [{"body": f"b {n}", "source_key": f"k{n}"} for n in range(3)]
    file = written(tmp_path / "rows", *good, {"body": "", "source_key": "k3"})
    report = brought(store, file, strict=True)
    assert (counts(report), report.written, content(store)) == ((3, 0, 1), False, b"")
    report = brought(store, file, dry_run=True)
    assert (counts(report), report.written, content(store)) == ((3, 0, 1), False, b"")
    written(file, *good, good[0])
    report = brought(store, file, strict=True)
    assert (counts(report), report.written) == ((3, 1, 0), True)
    assert counts(brought(store, file, strict=True)) == (0, 4, 0)
    assert store.verify().summary() == "3/3 verified"


def test_rows_may_build_on_those_before_them(house: House, tmp_path: Path) -> None:
    store = house.open()
    source, commitment = "mem_0a0a0a0a", "cmt_0b0b0b0b"
    file = written(
        tmp_path / "rows",
        {"id": source, "body": "a", "source_key": "1"},
        {"op": "commit", "id": commitment, "payload": {"body": "b", "source": source}, "source_key": "2"},
        {"op": "claim", "payload": {"body": "c", "commitment": commitment}, "source_key": "3"},
    )
    assert counts(brought(store, file)) == (3, 0, 0)
    assert store.read().state.commitments[commitment].owner == AS
    assert counts(brought(store, file)) == (0, 3, 0), "an id that is there too does not make it a refusal"


def test_a_whole_ledger_is_copied_byte_for_byte(make: Make, tmp_path: Path) -> None:
    store = make().open()
    for _ in range(5):
        row(store, "capture")
    copy = tmp_path / "copy"
    copy.write_bytes(content(store))
    other = make().open()
    with opened(copy) as fd:
        assert format_of(fd, Fields()) == "whole"
        assert bring_whole(other, copy, fd).total == 5
        assert content(other) == copy.read_bytes()
        assert other.verify().head == store.verify().head
        with pytest.raises(Refused) as caught:
            bring_whole(other, copy, fd)
        assert caught.value.code == "E_NOT_EMPTY"
    row(other, "capture")
    assert other.verify().ok
    copy.write_bytes(content(store).replace(b'"b"', b'"c"', 1))
    empty = make().open()
    with opened(copy) as fd, pytest.raises(Refused) as caught:
        bring_whole(empty, copy, fd)
    assert caught.value.code == "E_NOT_IMPORTABLE"
    assert content(empty) == b""
    row(empty, "capture")


def test_two_importers_at_once_double_nothing(house: House, tmp_path: Path) -> None:
    file = written(tmp_path / "rows", *({"body": f"b {n}", "source_key": f"k{n}"} for n in range(2500)))
    words = [sys.executable, "-m", "troth", "import", str(file), "--store", house.where, "--as", AS, "--json"]
    started = [
        subprocess.Popen(words, stdout=subprocess.PIPE, env=environment(), cwd=os.path.dirname(file)) for _ in range(2)
    ]
    told = []
    for process in started:
        told.append(json.loads(process.communicate(timeout=120)[0]))
        assert process.returncode == 0
    assert sum(one["imported"] for one in told) == 2500
    assert sum(one["present"] for one in told) == 2500
    store = house.open()
    assert store.verify().summary() == "2500/2500 verified"
    assert len({one.value["source_key"] for one in store.read().rows}) == 2500
    assert bytes_of(store.read().rows[0].value) in content(store)
