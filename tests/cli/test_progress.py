"""Progress is told on a terminal, after a second, and leaves no trace."""

from __future__ import annotations

import io
import sys

import pytest

from troth.cli import progress


class Terminal(io.StringIO):
    """A terminal that remembers what was written."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0.0)


@pytest.mark.usefixtures("at_once")
def test_a_terminal_is_told_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.Progress("verifying") as told:
        told(1, 4)
        told(4, 4)
        told(0, 0)
    written = terminal.getvalue()
    assert "\rverifying 25 %" in written
    assert "\rverifying 100 %" in written
    assert written.endswith("\r")
    assert written.rsplit("\r", 2)[1].strip() == ""
    assert len(written.rsplit("\r", 2)[1]) >= len("verifying 100 %")


@pytest.mark.usefixtures("at_once")
def test_a_pipe_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with progress.Progress("verifying") as told:
        told(1, 4)
    assert pipe.getvalue() == ""


def test_quick_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.Progress("verifying") as told:
        told(1, 1)
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("at_once")
def test_a_countdown_tells_what_is_done_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.Countdown("playing", "deals") as told:
        told(1000, 4000)
        told(4000, 4000)
    written = terminal.getvalue()
    assert "1,000 of 4,000 deals" in written
    assert "4,000 of 4,000 deals" in written
    assert written.endswith("\r")
    assert written.rsplit("\r", 2)[1].strip() == ""


def test_a_countdown_reckons_with_what_it_did_itself() -> None:
    told = progress.Countdown("playing", "deals")
    told(1000, 4000)
    assert told.line(2000, 4000, 10.0) == "playing [############............] 2,000 of 4,000 deals, 20 s left"
    assert told.line(4000, 4000, 30.0) == "playing [########################] 4,000 of 4,000 deals"
    assert told.line(1000, 4000, 3.0) == "playing [######..................] 1,000 of 4,000 deals"
