"""Observe a small Python program, really: in its sandbox, under its tracer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from troth.observer.observe import Observed, Request, observe


class Watched:
    """One observation, with its records parsed."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        self.observation: dict[str, Any] = json.loads(observed.files["observation.json"])
        self.launch_receipt: dict[str, Any] = json.loads(observed.files["launch-receipt.json"])
        self.launch: dict[str, Any] = json.loads(observed.files["launch.json"])
        self.claims: dict[str, Any] = json.loads(observed.files["claims.json"])

    @property
    def exit(self) -> int | None:
        """How the agent itself ended."""
        return self.observed.report.root_exit

    @property
    def complete(self) -> bool:
        """Whether the record says that nothing was missed."""
        return self.observation["coverage"] == "complete"

    @property
    def changes(self) -> list[tuple[str, ...]]:
        """Mutations as (type, path[, target]), in order."""
        return [
            tuple(event[name] for name in ("type", "path", "target") if name in event)
            for event in self.observation["events"]
            if event["type"] != "exec"
        ]

    @property
    def effects(self) -> list[dict[str, Any]]:
        """Effects outside the workspace."""
        return self.launch_receipt["sensors"]["external_effects"]


Watch = Callable[..., Watched]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small workspace with a ``.mentu`` in it."""
    folder = tmp_path / "workspace"
    (folder / "src").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / ".mentu").mkdir()
    (folder / ".mentu" / "ledger.jsonl").write_text("{}\n")
    (folder / "src" / "app.py").write_text("VALUE = 1\n")
    (folder / "tests" / "test_app.py").write_text("import unittest\n")
    return folder


@pytest.fixture
def watch(workspace: Path, tmp_path: Path) -> Watch:
    """Run a Python program as the agent and return what was seen."""
    count = iter(range(100))

    def run(script: str, *, argv: list[str] | None = None, **options: Any) -> Watched:
        private = tmp_path / f"private{next(count)}"
        private.mkdir(mode=0o700)
        request = Request(
            workspace=workspace,
            argv=argv or [sys.executable, "-c", script],
            claim_id="cmt_00000001",
            invocation_id="run_00000001",
            private=private,
            protects=lambda path: path.startswith("tests/"),
            **{"show": None, "timeout": 60, **options},
        )
        return Watched(observe(request))

    return run
