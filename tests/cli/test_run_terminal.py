"""A run in a real terminal: the agent has one too, with its size, its keys and its interrupts."""

from __future__ import annotations

import sys
import termios

import pytest

from support.observing import needs_observer
from support.project import Project, agent, project, sealed_project
from support.terminal import Terminal, set_size

__all__ = ["project", "sealed_project"]
pytestmark = [needs_observer, pytest.mark.observer]

SCRIPT = """
import os, signal, sys, time

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # print is not for signal handlers

def resized(*_):
    say("now", *os.get_terminal_size())

def interrupted(*_):
    say("caught the interrupt")
    sys.exit(7)

signal.signal(signal.SIGWINCH, resized)
signal.signal(signal.SIGINT, interrupted)
say("terminal", sys.stdin.isatty(), sys.stdout.isatty(), *os.get_terminal_size())
say("heard", input())
for _ in range(600):
    time.sleep(0.1)
"""


def test_keys_size_and_interrupt_reach_the_agent(project: Project) -> None:
    words = ["run", "--new", "x", "--contract", str(project.contract), "--as", "agent:worker", "--", *agent(SCRIPT)]
    terminal = Terminal([sys.executable, "-m", "troth", *words], project.root)
    set_size(terminal.master, 41, 97)
    before = termios.tcgetattr(terminal.master)
    terminal.type(b"go\n")
    terminal.until("terminal True True 97 41")
    raw = termios.tcgetattr(terminal.master)
    assert not raw[3] & termios.ICANON  # ours passes every key on; the agent's own terminal makes lines of them
    terminal.type(b"a word\r")
    terminal.until("heard a word")
    set_size(terminal.master, 30, 80)
    terminal.until("now 80 30")
    terminal.type(b"\x1a")  # nobody would be there to continue it, so nothing is stopped
    terminal.type(b"\x03")
    terminal.until("caught the interrupt")
    terminal.until("contradicted")  # an agent that was interrupted is judged by what it left
    settings = termios.tcgetattr(terminal.master)
    assert settings[3] == before[3]  # the terminal is as it was
    assert terminal.end() == 1
    assert b"the agent itself ended with exit 7" in terminal.said
    assert b"the agent was interrupted" not in terminal.said  # the key went to the agent, not to us


def test_markup_and_control_characters_of_an_agent_are_shown_as_text(project: Project) -> None:
    name = "tests/\\x1b[31m[red]x"
    script = f"open('{name}', 'w').write('x')\n"
    answer = project.troth(
        "run", "--new", "x", "--contract", project.contract, "--as", "agent:worker", "--quiet", "--", *agent(script)
    )
    assert answer.exit == 1
    assert "\x1b" not in answer.out
    assert "tests/\\x1b[31m[red]x was created during the run." in answer.out
    body = project.rows[-1]["payload"]["body"]
    assert "\x1b" not in body
