"""The command line inside the test's own process: quick, and with the same exit statuses and outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from troth.cli.main import main


@dataclass(frozen=True, slots=True)
class Said:
    """What one command said."""

    exit: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        lines = self.out.splitlines()
        assert len(lines) == 1, self.out
        return json.loads(lines[0])

    @property
    def id(self) -> str:
        """The id that a command which appends prints first."""
        assert self.exit == 0, self.err
        return self.out.split()[0]


Shell = Callable[..., Said]

WRITING = ("capture", "commit", "claim", "release", "submit", "approve", "reopen", "close", "annotate")
"""The commands that append a row."""


def make_shell(capfd: pytest.CaptureFixture[str]) -> Shell:
    """Return a function that runs ``troth WORDS…``."""

    def run(*words: str | Path) -> Said:
        capfd.readouterr()
        status = main([str(word) for word in words])
        captured = capfd.readouterr()
        return Said(status, captured.out, captured.err)

    return run


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in a fresh workspace, as a reviewer unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_ACTOR", "human:reviewer")
    shell = make_shell(capfd)
    assert shell("init", "--workspace", "w").exit == 0
    return shell
