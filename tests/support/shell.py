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


def make_shell(capfd: pytest.CaptureFixture[str]) -> Shell:
    """Return a function that runs ``troth WORDS…``."""

    def run(*words: str | Path) -> Said:
        capfd.readouterr()
        status = main([str(word) for word in words])
        captured = capfd.readouterr()
        return Said(status, captured.out, captured.err)

    return run
