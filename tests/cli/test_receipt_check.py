"""``troth receipt check`` over many folders: lines, counts, reports, exits; text of others drives nothing."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from receipts.test_receipt import sealed
from support.receipt_members import HONEST, Draft, event
from troth.cli import progress
from troth.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command line in this process; return exit status and both outputs."""

    def call(*words: str | Path) -> tuple[int, str, str]:
        status = main(["receipt", "check", *map(str, words)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def laid(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


GOOD = sealed()
BAD = sealed(Draft().add_events(event(5, "write", path="tests/test_a.py", origin="e4")))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A workspace of 70 runs: every tenth contradicted, one torn, one without a receipt."""
    folder = tmp_path / "shop" / ".mentu" / "runs"
    for number in range(70):
        laid(folder / f"run_{number:02}", BAD if number % 10 == 3 else GOOD)
    laid(folder / "run_66", {**GOOD, "tree.json": b"{"})
    laid(folder / "run_pending", {"run.json": b"{}"})
    return tmp_path / "shop"


def test_a_workspace_is_counted(run: Run, runs: Path) -> None:
    status, out, err = run(runs)
    assert status == 1
    lines = out.splitlines()
    assert lines[0] == f"{runs}/.mentu/runs/run_03: receipt valid; done contradicted (protected_path_mutated)"
    listed = [line for line in lines if line.startswith(str(runs))]
    assert len(listed) == 8
    assert lines.pop().startswith("Each is judged by the policy in its own folder (self-pinned)")
    counts = [line.split() for line in lines[len(listed) + 2 :]]
    assert counts == [
        ["62", "88.6%", "supported", "done_checks_supported"],
        ["7", "10.0%", "contradicted", "protected_path_mutated"],
        ["1", "1.4%", "invalid", "receipt_record_digest_mismatch"],
        ["70", "in", "all"],
    ]
    assert "1 of the runs have no receipt" in err
    assert "70 receipts are byte for byte that of another folder" in err


def test_json_is_a_line_a_member_and_the_same_from_any_number_of_processes(run: Run, runs: Path) -> None:
    status, out, _ = run(runs, "--json", "--jobs", 1)
    assert status == 1
    lines = [json.loads(line) for line in out.splitlines()]
    assert [Path(line["member"]).name for line in lines] == [f"run_{number:02}" for number in range(70)]
    assert lines[0] == {"member": str(runs / ".mentu/runs/run_00"), "receipt": {"verdict": "valid"}, **HONEST}
    assert run(runs, "--json", "--jobs", 2)[:2] == (status, out)
    assert run(runs, "--json")[:2] == (status, out)


def test_one_member_beneath_a_folder_is_named(run: Run, tmp_path: Path) -> None:
    laid(tmp_path / "a" / "m", GOOD)
    status, out, _ = run(tmp_path, "--json")
    assert status == 0
    assert json.loads(out)["member"] == str(tmp_path / "a" / "m")
    status, out, _ = run(tmp_path)
    assert status == 0
    assert "1          in all" in out


def test_only_some_are_shown_and_all_are_counted(run: Run, runs: Path, tmp_path: Path) -> None:
    status, out, _ = run(runs, "--json", "--only", "invalid", "--csv", tmp_path / "a.csv")
    assert status == 1
    (line,) = out.splitlines()
    assert json.loads(line)["receipt"]["code"] == "receipt_record_digest_mismatch"
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 2
    status, out, _ = run(runs, "--only", "supported")
    assert status == 1
    assert out.count("done supported") == 40
    assert "… and 22 more" in out
    assert "70          in all" in out
    assert run(runs, "--only", "fine")[0] == 2


def test_by_pins(run: Run, runs: Path, tmp_path: Path) -> None:
    pins = tmp_path / "pins.toml"
    pins.write_text(
        'observed_party = "agent"\n[producers]\nobservation = "observer"\ntree = "observer"\ngrade = "verifier"\n'
    )
    status, out, _ = run(runs, "--pin", pins)
    assert (status, out.splitlines()[-1]) == (1, "Judged by your own pins.")
    assert "62   88.6%  supported" in out
    pins.write_text(pins.read_text().replace('"verifier"', '"another"'))
    status, out, _ = run(runs, "--pin", pins)
    assert status == 1
    assert "69   98.6%  invalid          receipt_check_not_recomputed" in out
    pins.write_text("observed_party = 1")
    assert run(runs, "--pin", pins)[0] == 2


def test_reports_are_written(run: Run, runs: Path, tmp_path: Path) -> None:
    names = {kind: tmp_path / f"report.{kind}" for kind in ("csv", "junit", "sarif", "parquet")}
    words = [word for kind, path in names.items() for word in (f"--{kind}", path)]
    assert run(runs, *words, "--jobs", 2)[0] == 1
    first = {kind: path.read_bytes() for kind, path in names.items()}
    table = list(csv.DictReader(io.StringIO(first["csv"].decode(), newline="")))
    assert len(table) == 70
    assert sum(line["verdict"] == "contradicted" for line in table) == 7
    assert ElementTree.fromstring(first["junit"])[0].get("failures") == "8"
    log = json.loads(first["sarif"])["runs"][0]
    assert (len(log["results"]), log["invocations"][0]["exitCode"]) == (8, 1)
    assert run(runs, *words, "--jobs", 1)[0] == 1
    assert {kind: path.read_bytes() for kind, path in names.items()} == first


def test_a_report_that_cannot_be_written_is_refused_before_the_work(run: Run, runs: Path, tmp_path: Path) -> None:
    record = runs / ".mentu" / "runs" / "run_00" / "receipt.json"
    for path in (record, tmp_path / "no" / "where", tmp_path):
        status, out, err = run(runs, "--csv", path)
        assert (status, out) == (2, "")
        assert "E_FLEET_REPORT" in err
    assert record.read_bytes() == GOOD["receipt.json"]
    status, _, err = run(runs, "--csv", tmp_path / "x", "--junit", tmp_path / "x")
    assert (status, "E_USAGE" in err) == (2, True)


def test_explained(run: Run, runs: Path) -> None:
    _, out, _ = run(runs, "--explain")
    told = out[out.index("in all") :]
    for reason in ("done_checks_supported", "protected_path_mutated", "receipt_record_digest_mismatch"):
        assert f"\n{reason}\n  " in told
    assert told.count("What to do: ") == 3
    _, out, err = run(runs, "--explain", "--json")
    assert len(out.splitlines()) == 70
    assert "What to do: " in err


def test_broken_folders_stop_none(run: Run, runs: Path, tmp_path: Path) -> None:
    named = [tmp_path / "missing", laid(tmp_path / "empty", {}), runs, laid(tmp_path / "torn", {"receipt.json": b"{"})]
    status, out, _ = run(*named, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert status == 2
    assert len(lines) == 73
    assert lines[0]["error"]["code"] == "E_MEMBER_MISSING"
    assert lines[1]["refused"] == "case_missing"
    assert lines[-1]["receipt"]["code"] == "receipt_json_invalid"
    status, out, _ = run(*named, "--explain")
    assert status == 2
    assert "E_MEMBER_MISSING: there is no member folder" in out
    assert "\nE_MEMBER_MISSING\n  There is no folder of records at that place.\n" in out


def test_an_empty_workspace_is_no_success(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".mentu").mkdir()
    status, out, err = run(tmp_path)
    assert (status, out) == (2, "")
    assert "E_FLEET_EMPTY" in err
    status, out, _ = run(tmp_path, "--json")
    assert (status, json.loads(out)["error"]["code"]) == (2, "E_FLEET_EMPTY")


def test_hostile_names_and_records_drive_nothing(run: Run, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    for name in (b"=1+1", b"\x1b[2J\x07", b"line\nfeed", b"\xff\xfe", "\u202egnp".encode(), b"<&\"'>"):
        raw = os.fsencode(fleet) + b"/" + name
        laid(Path(os.fsdecode(raw)), sealed(edit=lambda value: {**value, "_type": "\x1b[31m\n=1+1"}))
    words = ["--csv", "a.csv", "--junit", "a.xml", "--sarif", "a.sarif", "--parquet", "a.parquet", "--explain"]
    words = [str(tmp_path / word) if word.startswith("a.") else word for word in words]
    status, out, err = run(fleet, *words)
    assert status == 1
    status, as_json, _ = run(fleet, "--json")
    assert len([json.loads(line) for line in as_json.splitlines()]) == 6
    for text in (out, err, as_json, (tmp_path / "a.csv").read_text(), (tmp_path / "a.xml").read_text()):
        assert all(char.isprintable() or char in "\r\n" for char in text)
    assert "\n=" not in (tmp_path / "a.csv").read_text()
    assert len(ElementTree.fromstring((tmp_path / "a.xml").read_bytes())[0]) == 6


class Terminal(io.StringIO):
    """A terminal that remembers what was written."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


def test_a_terminal_is_told_how_far_it_is(run: Run, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    run(runs)
    assert "checking [" in terminal.getvalue()
    assert "of 70 folders" in terminal.getvalue()
    assert " left" in terminal.getvalue()
