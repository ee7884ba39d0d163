"""Faults that the ledger's commands once had, each with the smallest case that showed it."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ledger.building import Ledger
from support.ledgers import environment
from support.shell import Shell, make_shell
from troth.stores import check, index, parallel
from troth.stores.jsonl import JsonlStore

FULL = Path("/dev/full")
ESCAPES = "\x1b[31m\x07\x9b2J\u202e\u200b"
_RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e]")


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in a new workspace, with a cache of its own."""
    (tmp_path / "space").mkdir()
    monkeypatch.chdir(tmp_path / "space")
    monkeypatch.setenv("TROTH_ACTOR", "human:reviewer")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shell = make_shell(capfd)
    assert shell("init", "--workspace", "w").exit == 0
    return shell


def _ledger() -> Path:
    return Path(".mentu", "ledger.jsonl")


def _program(redirections: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run the real program with its standard streams as a shell's redirections have them."""
    script = f'exec "$@" {redirections}'
    argv = ["sh", "-c", script, "sh", sys.executable, "-m", "troth", *words]
    return subprocess.run(
        argv, env=environment(TROTH_ACTOR="human:reviewer"), capture_output=True, timeout=60, check=False
    )


# Streams that are closed or full -------------------------------------------------------------------------------


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", [["status"], ["verify"], ["log", "--json"], ["capture", "more"]])
def test_a_closed_stream_stops_nothing(troth: Shell, redirections: str, words: Sequence[str]) -> None:
    source = troth("capture", "seen").id
    troth("commit", "mend it", "--source", source)
    before = len(troth("log", "--json").json["signals"])
    done = _program(redirections, *words)
    assert done.returncode == 0, done.stderr
    after = troth("log", "--json").json
    assert after["ok"] is True
    assert len(after["signals"]) == before + (words[0] == "capture")


def test_what_a_check_says_never_lands_in_the_ledger(troth: Shell) -> None:
    noise = "echo out; echo err >&2; cat"
    done = _program("<&- >&- 2>&-", "capture", "checked", "--check", "--", "sh", "-c", noise)
    assert done.returncode == 0
    assert troth("verify", "--json").json["total"] == 1


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_an_answer_that_cannot_be_written_is_told_on_stderr(troth: Shell, form: Sequence[str]) -> None:
    done = _program(f">{FULL}", "capture", "seen", *form)
    assert done.returncode == 70
    assert done.stderr.startswith(b"troth: E_OUTPUT: ")
    assert len(done.stderr.splitlines()) == 1
    assert troth("verify", "--json").json["total"] == 1  # the row was recorded, as the message says


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_an_error_that_cannot_be_written_as_json_keeps_its_exit_status(troth: Shell) -> None:
    done = _program(f">{FULL}", "show", "nothing", "--json")
    assert done.returncode == 2
    assert b"E_REF_NOT_FOUND" in done.stderr
    assert _program(f"2>{FULL}", "show", "nothing").returncode == 2


# What is printed -----------------------------------------------------------------------------------------------


def _hostile() -> str:
    """Write a ledger whose rows verify and are full of control characters; return the commitment's id."""
    ledger = Ledger()
    seen = ledger.add("capture", id=f"mem_a{ESCAPES}", source_key="k", body=f"b{ESCAPES}")
    ledger.add("capture", id=f"mem_b{ESCAPES}", source_key="k")
    work = ledger.add("commit", id=f"cmt_{ESCAPES}", source=seen, body=ESCAPES, tags=[ESCAPES])
    ledger.add("claim", f"agent:{ESCAPES}", commitment=work)
    ledger.add("capture", envelope={f"x_{ESCAPES}": {ESCAPES: ESCAPES}})
    ledger.add(f"capture{ESCAPES}")
    _ledger().write_bytes(ledger.data)
    return work


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["log"],
        ["verify"],
        ["show", "cmt_"],
        ["show", "mem_b"],
        ["show", "@last"],
        ["annotate", "cmt_", "a note"],
        ["annotate", "mem_a", "a note"],
        ["reopen", "cmt_"],
        ["release", "cmt_"],
        ["claim", "nothing"],
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_nothing_that_drives_a_terminal_is_printed(troth: Shell, words: Sequence[str], form: Sequence[str]) -> None:
    work = _hostile()
    said = troth(*words, *form)
    assert _RAW.search(said.out + said.err) is None
    if form and words[0] == "status":
        assert said.json["commitments"][0]["id"] == work  # an escape in JSON loses nothing


@pytest.mark.parametrize("words", [["show"], ["status", "--store"], ["verify"], ["import"]])
def test_json_is_utf8_whatever_was_typed(troth: Shell, words: Sequence[str]) -> None:
    done = _program("", *words, os.fsdecode(b"/nowhere/\xff"), "--json")
    assert done.returncode == 2
    assert set(json.loads(done.stdout.decode("utf-8"))) == {"error"}


# Names ---------------------------------------------------------------------------------------------------------


def test_a_row_cannot_call_itself_the_last_one(troth: Shell) -> None:
    ledger = Ledger()
    ledger.add("capture", id="@last", body="planted")
    newest = ledger.add("capture", body="the newest")
    _ledger().write_bytes(ledger.data)
    assert troth("show", "@last", "--json").json["signal"]["id"] == newest


def test_the_last_commitment_is_one_that_has_effect(troth: Shell) -> None:
    ledger = Ledger()
    work = ledger.add("commit", source=ledger.add("capture"))
    ledger.add("commit", source="mem_nowhere0")
    _ledger().write_bytes(ledger.data)
    assert troth("claim", "@last", "--json").json["signal"]["payload"]["commitment"] == work


@pytest.mark.parametrize("words", [["status"], ["verify"], ["capture", "x"], ["init"], ["log", "--store", "x"]])
def test_a_folder_that_was_removed_is_no_fault_of_ours(troth: Shell, tmp_path: Path, words: Sequence[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    said = troth(*words, "--json")
    assert (said.exit, said.json["error"]["code"]) == (2, "E_NO_FOLDER")


@pytest.mark.parametrize("words", [["status", "--store"], ["verify"], ["import"]])
def test_a_name_too_long_is_no_fault_of_ours(troth: Shell, words: Sequence[str]) -> None:
    said = troth(*words, "n" * 5000, "--json")
    assert (said.exit, said.json["error"]["code"]) == (2, "E_UNREADABLE")


def test_importing_a_link_that_leads_nowhere_is_refused(troth: Shell) -> None:
    Path("dangling").symlink_to("nowhere")
    said = troth("import", "dangling", "--json")
    assert (said.exit, said.json["error"]["code"]) == (2, "E_NOT_REGULAR")


def test_init_inside_the_folder_of_a_workspace_makes_no_second_one(
    troth: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in ([".mentu"], []):
        if not where:
            monkeypatch.chdir(".mentu")
        said = troth("init", *where, "--json")
        assert (said.exit, said.json["created"], said.json["workspace"]) == (0, [], "w")
    assert not Path(".mentu").exists()


# Helpers that fail ---------------------------------------------------------------------------------------------


def _dies(_share: object) -> None:
    os._exit(9)


def _no_semaphores(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def _no_processes() -> int:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def _missing(_share: object) -> None:
    raise FileNotFoundError


@pytest.mark.skipif(not hasattr(os, "fork"), reason="helpers are forked, so that they are patched too")
@pytest.mark.parametrize(
    ("where", "broken"),
    [
        ("troth.stores.parallel._examine", _dies),
        ("troth.stores.parallel._examine", _missing),
        ("concurrent.futures.ProcessPoolExecutor", _no_semaphores),
        ("os.fork", _no_processes),
    ],
)
def test_verification_does_not_need_its_helpers(
    troth: Shell, monkeypatch: pytest.MonkeyPatch, where: str, broken: Callable[..., object]
) -> None:
    for number in range(20):
        troth("capture", f"seen {number}")
    store = JsonlStore.open(None)
    alone = store.verify(workers=1)
    monkeypatch.setattr(parallel, "SHARE_BYTES", 1000)
    monkeypatch.setattr(where, broken)
    assert store.verify(workers=2) == alone
    assert multiprocessing.active_children() == []


# The throw-away index ------------------------------------------------------------------------------------------


@pytest.fixture
def indexed(troth: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Any]:
    """Return the index of a small ledger and what ``status --json`` says."""
    monkeypatch.setattr(index, "WORTH_BYTES", 1)
    monkeypatch.setattr(index, "SETTLED_NANOSECONDS", 0)
    source = troth("capture", "seen").id
    troth("commit", "mend it", "--source", source)
    said = troth("status", "--json").json
    (path,) = (tmp_path / "cache").rglob("*.json")
    return path, said


def _damaged(path: Path, kind: str) -> None:
    first, rest = path.read_bytes().split(b"\n", 1)
    match kind:
        case "cut":
            path.write_bytes(first + b"\n")
        case "half":
            path.write_bytes(first + b"\n" + rest[: len(rest) // 2])
        case "zeros":
            path.write_bytes(first + b"\n" + bytes(len(rest)))
        case "other":
            path.write_bytes(first + b'\n{"commitments": [[]], "anomalies": 1}')
        case "list":
            path.write_bytes(b"[]\n" + rest)
        case "pipe":
            path.unlink()
            os.mkfifo(path)
        case "folder":
            path.unlink()
            path.mkdir()


@pytest.mark.parametrize("kind", ["whole", "cut", "half", "zeros", "other", "list", "pipe", "folder"])
def test_a_damaged_index_changes_only_time(troth: Shell, indexed: tuple[Path, Any], kind: str) -> None:
    path, said = indexed
    _damaged(path, kind)
    done = troth("status", "--json")
    assert done.exit == 0
    assert done.json == said
    assert troth("status").exit == 0


# Reports of a check --------------------------------------------------------------------------------------------

_REPORT = '<testsuite><testcase name="a"/><testcase name="b"><failure/></testcase></testsuite>'


def test_a_report_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    found: list[check.Measured] = []
    argv = ["sh", "-c", f"mkfifo {report}", f"--junitxml={report}"]
    waiting = threading.Thread(target=lambda: found.append(check.run_check(argv)), daemon=True)
    waiting.start()
    waiting.join(20)
    assert [measured.source for measured in found] == ["exit"]


def test_a_report_that_is_a_link_to_endless_bytes_is_not_read(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    measured = check.run_check(["sh", "-c", f"ln -s /dev/zero {report}", "--junitxml", str(report)])
    assert measured.source == "exit"


def test_a_report_of_this_run_counts_and_an_old_one_does_not(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    measured = check.run_check(["sh", "-c", f"printf '%s' '{_REPORT}' > {report}", f"--junitxml={report}"])
    assert (measured.source, measured.passed, measured.run) == ("junit", 1, 2)
    old = time.time() - 60
    os.utime(report, (old, old))
    assert check.run_check(["true", f"--junitxml={report}"]).source == "exit"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_check_ends_with_the_command_that_measures_it(troth: Shell, tmp_path: Path, number: int) -> None:
    told = tmp_path / "pids"
    script = f"sleep 60 & echo $$ $! > {told}.new && mv {told}.new {told}; wait"
    argv = [sys.executable, "-m", "troth", "capture", "checked", "--check", "--", "sh", "-c", script]
    process = subprocess.Popen(argv, env=environment(TROTH_ACTOR="human:reviewer"), stderr=subprocess.DEVNULL)
    _until(told.exists)
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    for pid in map(int, told.read_text().split()):
        _until(lambda pid=pid: _ended(pid))
    assert troth("verify", "--json").json["total"] == 0


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_the_settings_cannot_name_what_no_row_can_hold(troth: Shell) -> None:
    Path(".mentu", "config.yaml").write_text('workspace: "w\\ud800"\n')
    said = troth("capture", "seen", "--json")
    assert (said.exit, said.json["error"]["code"]) == (2, "E_CONFIG")


def test_a_document_type_does_not_hide_in_another_encoding() -> None:
    hidden = f'<?xml version="1.0" encoding="utf-16"?><!DOCTYPE testsuite>{_REPORT}'
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        with pytest.raises(ValueError, match="document type"):
            check.read_junit(hidden.encode(encoding))
    assert check.read_junit(_REPORT.encode()) == (1, 2)
