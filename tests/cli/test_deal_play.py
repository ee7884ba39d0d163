"""``troth deal play``: at a terminal and without one; the file is a transcript like any other."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from support.frontdoor import troth
from support.ledgers import environment
from support.terminal import Terminal


def checked(folder: Path, name: str = "deal.jsonl") -> tuple[int, str]:
    done = troth("deal", "check", name, "--json", cwd=folder)
    return done.exit, done.json["deals"]["off_1"]["state"]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("here")
def test_a_person_and_a_policy_at_a_terminal(tmp_path: Path) -> None:
    terminal = Terminal([sys.executable, "-m", "troth", "deal", "play", "deal.jsonl"], tmp_path)
    terminal.type(b"\n")  # it waits for its size, which does not matter here
    terminal.until("Accept          -> AcceptedPendingHold")
    terminal.until("A> ")
    terminal.type(b"undo\n")
    terminal.until("There is no undo")
    terminal.type(b"accept\n")
    terminal.until("A (the agent): AcceptedPendingHold")
    assert (tmp_path / "deal.jsonl").read_bytes().count(b"\n") == 2  # on the disk before the next is asked for
    terminal.type(b"\n")
    terminal.until("EscrowHold 10 points")
    terminal.until("A (the agent): Held")
    terminal.type(b"Disclosure\n")
    terminal.until("artifact transcript")
    terminal.type(b"a run\nthe hidden_goal\n\n")
    terminal.until("A (the agent): Adjudicating")
    terminal.type(b"\n")
    assert terminal.end() == 0, terminal.said
    assert b"Closed:settled" in terminal.said
    assert checked(tmp_path) == (0, "Closed:settled")


@pytest.mark.usefixtures("here")
def test_an_interrupt_leaves_what_was_said(tmp_path: Path) -> None:
    terminal = Terminal([sys.executable, "-m", "troth", "deal", "play", "deal.jsonl"], tmp_path)
    terminal.type(b"\n")
    terminal.until("A> ")
    terminal.type(b"accept\n")
    terminal.until("A (the agent): AcceptedPendingHold")
    os.kill(terminal.pid, signal.SIGINT)
    assert terminal.end() == 130
    assert checked(tmp_path) == (3, "AcceptedPendingHold")


def test_two_people_without_a_terminal(tmp_path: Path) -> None:
    lines = "Offer\n12\n\n\naccept\n\nhold\nEscrowHold\n\nDisclosure\nnothing of use\n\n\n"
    done = troth("deal", "play", "deal.jsonl", "--c", "person", "--a", "person", cwd=tmp_path, stdin=lines)
    assert done.exit == 1
    assert "'hold' is no move here" in done.out
    assert "experimental, non-transfer" in done.out
    assert checked(tmp_path) == (1, "Closed:breached(A:fail)")
    (line,) = [text for text in done.out.splitlines() if text.startswith("points")]
    assert line.split() == ["points", "C", "+0", "A", "+0", "E", "+0"]


def test_leaving(tmp_path: Path) -> None:
    done = troth("deal", "play", "deal.jsonl", cwd=tmp_path, stdin="quit\n")
    assert done.exit == 3
    assert "the deal stays where it stands" in done.out
    assert checked(tmp_path) == (3, "Offered")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["there"], "E_TRANSCRIPT_EXISTS"),
        (["new", "--a", "cooperative"], "E_USAGE"),
        (["new", "--c", "nobody"], "E_POLICY"),
        (["no/such/folder", "--a", "person"], "E_UNREADABLE"),
    ],
)
def test_refusals(tmp_path: Path, words: list[str], code: str) -> None:
    (tmp_path / "there").write_text("mine")
    done = troth("deal", "play", *words, cwd=tmp_path, stdin="")
    assert done.exit == 2
    assert code in done.err
    assert (tmp_path / "there").read_text() == "mine"
    assert not (tmp_path / "new").exists()
