"""The front door: unknown words, error output, exit statuses, and outputs that go away."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from troth import __version__
from troth.cli import main as front
from troth.core.errors import Busy, Defect, DoesNotHold, NotEstablished, Place, Refused, TrothError

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="pipes and terminals of a POSIX system")


def one_object(text: str) -> dict[str, Any]:
    """Return the one JSON object that stands on stdout, which is one line."""
    lines = text.splitlines()
    assert len(lines) == 1, text
    value = json.loads(lines[0])
    assert isinstance(value, dict)
    return value


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a command of the test's own behind the name ``status``."""

    def put(callback: Any) -> None:
        command = click.Command("status", callback=callback, params=[click.Option(["--json", "as_json"], is_flag=True)])
        monkeypatch.setattr(front.LazyGroup, "get_command", lambda *_: command)

    return put


# --- words ---------------------------------------------------------------------------------------------------------


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["--version"]) == 0
    assert capsys.readouterr().out == f"troth {__version__}\n"


def test_help_names_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["--help"]) == 0
    said = capsys.readouterr().out
    listed = [line.split()[0] for line in said.split("Commands:")[1].split("\n\n")[0].splitlines() if line.strip()]
    assert listed == list(front.COMMANDS)  # one line each: none is so long that it is wrapped
    assert max(len(text) for _, text in front.COMMANDS.values()) <= 65
    assert "Exit codes: 0 holds or done" in said
    assert "Example:" in said


@pytest.mark.parametrize("name", front.COMMANDS)
def test_every_command_is_there_and_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main([name, "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Usage: troth {name} ")
    module, line = front.COMMANDS[name]
    assert line.endswith(".")
    command = getattr(importlib.import_module(module), f"{name}_cmd")
    assert command.help or command.short_help


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("statu", "status"), ("verfy", "verify"), ("aprove", "approve"), ("recipt", "receipt"), ("docter", "doctor")],
)
def test_an_unknown_command_suggests_the_nearest(typed: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main([typed]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"No such command '{typed}'. Did you mean {meant}" in told.err
    assert "Try 'troth --help'." in told.err


def test_nothing_near_suggests_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["qqqqqq"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


def test_an_unknown_option_names_the_command_whose_help_tells_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["doctor", "--jsn"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("troth: E_USAGE: ")
    assert told.endswith("Try 'troth doctor --help'.\n")
    assert len(told.splitlines()) == 1


def test_no_words_at_all_show_the_help_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main([]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("Usage: troth ")
    assert "\\n" not in told.err  # shown as a page, not escaped into one line


# --- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["statu", "--json"], ["doctor", "--jsn", "--json"], ["help", "x", "y", "--json"]]
)
def test_a_usage_error_is_one_object_on_stdout(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(arguments) == 2
    told = capsys.readouterr()
    assert told.err == ""
    error = one_object(told.out)["error"]
    assert error["code"] == "E_USAGE"
    assert {"code", "message", "place", "detail"} <= set(error)


def test_json_behind_two_dashes_belongs_to_somebody_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["statu", "--", "--json"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "E_USAGE" in told.err


ERRORS = [
    (Refused("E_NOT_OWNER", "held by another", detail="agent:worker"), 2),
    (DoesNotHold("E_CHAIN_BROKEN", "a fault", place=Place("ledger.jsonl", 3)), 1),
    (NotEstablished("E_UNKNOWN", "no answer"), 3),
    (Busy("E_BUSY", "locked", remedy="Try again."), 75),
    (Defect("E_DEFECT", "ours"), 70),
]


@pytest.mark.parametrize(("fault", "status"), ERRORS)
def test_an_error_leaves_by_its_class(
    fault: TrothError, status: int, stand_in: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def callback(as_json: bool) -> None:
        raise fault

    stand_in(callback)
    assert front.main(["status"]) == status
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"troth: {fault}\n"

    assert front.main(["status", "--json"]) == status
    told = capsys.readouterr()
    assert told.err == ""
    assert one_object(told.out) == fault.as_json()


@pytest.mark.parametrize("status", [0, 1, 3, 4])
def test_a_status_that_a_command_returns_is_passed_on(status: int, stand_in: Any) -> None:
    stand_in(lambda as_json: status)
    assert front.main(["status"]) == status


def test_a_command_that_returns_nothing_went_well(stand_in: Any) -> None:
    stand_in(lambda as_json: None)
    assert front.main(["status"]) == 0


def test_a_defect_shows_no_traceback_unless_asked(
    stand_in: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def callback(as_json: bool) -> None:
        raise ZeroDivisionError("a slip\x1b[31m of ours")

    stand_in(callback)
    monkeypatch.delenv("TROTH_DEBUG", raising=False)
    assert front.main(["status"]) == 70
    told = capsys.readouterr()
    assert "E_DEFECT: ZeroDivisionError: a slip" in told.err
    assert "Traceback" not in told.err
    assert "\x1b" not in told.err
    assert front.main(["status", "--json"]) == 70
    assert one_object(capsys.readouterr().out)["error"]["code"] == "E_DEFECT"

    monkeypatch.setenv("TROTH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        front.main(["status"])


def test_an_interrupt_ends_with_130(stand_in: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def callback(as_json: bool) -> None:
        raise KeyboardInterrupt

    stand_in(callback)
    assert front.main(["status"]) == 130
    assert "Traceback" not in capsys.readouterr().err


# --- the world around ----------------------------------------------------------------------------------------------


def program(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "troth", *arguments], capture_output=True, timeout=60, check=False, **options
    )


@POSIX
def test_words_that_are_no_text_are_shown_escaped() -> None:
    done = program(os.fsdecode(b"\xff\x1b[31m"))
    assert done.returncode == 2
    assert b"\\x1b[31m" in done.stderr
    assert b"\x1b" not in done.stderr
    done = program(os.fsdecode(b"\xff"), "--json")
    assert done.returncode == 2
    assert one_object(done.stdout.decode())["error"]["code"] == "E_USAGE"


@POSIX
@pytest.mark.parametrize("arguments", [["help", "exit"], ["--help"]])
def test_a_reader_that_goes_away_is_no_answer_and_no_noise(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "troth", *arguments],
            stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert done.returncode == 141  # as a shell reports SIGPIPE; 1 would say "does not hold"
    assert done.stderr == b""


@POSIX
@pytest.mark.parametrize(("no_colour", "coloured"), [("", True), ("1", False)])
def test_colour_only_on_a_terminal_and_not_when_unwanted(no_colour: str, coloured: bool, tmp_path: Path) -> None:
    import pty

    environment = {**os.environ, "NO_COLOR": no_colour, "TERM": "xterm"}
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "troth", "doctor"],
        stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=tmp_path,
    )  # fmt: skip
    os.close(slave)
    said = b""
    while block := _read(master):
        said += block
    os.close(master)
    process.wait(60)
    assert b"Ledger and receipt checking" in said
    assert (b"\x1b[" in said) is coloured
    assert b"\x1b" not in program("doctor", env=environment, cwd=tmp_path).stdout


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # a terminal whose other end is closed answers EIO
        return b""


def test_completion_offers_the_commands() -> None:
    environment = {**os.environ, "_TROTH_COMPLETE": "bash_complete", "COMP_WORDS": "troth doc", "COMP_CWORD": "1"}
    done = program(env=environment)
    assert done.stdout.decode().split() == ["plain,doctor"]
    assert done.returncode == 0
