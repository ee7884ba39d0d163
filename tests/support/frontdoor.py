"""The real front door: the installed command line in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """Exit status and both outputs of one command."""

    exit: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)


def troth(
    *words: str | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
    stdin: str | None = None,
) -> Answer:
    """Run `troth WORDS…` as a person would, without a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "troth", *map(str, words)],
        cwd=cwd,
        env={**{k: v for k, v in os.environ.items() if k != "TROTH_ACTOR"}, **(env or {})},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
        **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}),
    )
    return Answer(done.returncode, done.stdout, done.stderr)
