"""The real ``codex`` with ``notify`` installed, against a local endpoint that plays the model: its turn is judged.

It is looked for on the search path; it can be had as a package. Nothing leaves the machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from support.model_endpoint import playing
from support.observing import needs_observer
from support.project import Project, project, sealed_project

__all__ = ["project", "sealed_project"]
pytestmark = [pytest.mark.slow, pytest.mark.observer, needs_observer]

PATIENCE = 60
"""Seconds in which the notified program, for which codex does not wait, is to come to an end."""


def test_a_turn_that_is_called_done_is_judged(project: Project, tmp_path: Path) -> None:
    program = shutil.which("codex")
    if program is None:
        pytest.skip("there is no program codex on the search path")
    home = tmp_path / "home"
    (home / "codex").mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CODEX_HOME": str(home / "codex"),
        "XDG_STATE_HOME": str(home / "state"),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "CODEX_API_KEY": "test-key",
    }
    own = {name: environment[name] for name in ("CODEX_HOME", "XDG_STATE_HOME")}
    assert project.troth("hook", "codex", "install", "--contract", project.contract, env=own).exit == 0
    with playing("All done, the tests pass.") as model:
        done = subprocess.run(
            [program, "exec", "--skip-git-repo-check", "--sandbox", "read-only",
             "--config", f'openai_base_url="{model.url}/v1"', "Mend double()."],
            cwd=project.root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done
    for _ in range(PATIENCE):
        answer = project.troth("hook", "status", "--json", env=own)
        if "error" not in answer.json:
            break
        time.sleep(1)
    assert answer.json["source"] == "codex"
    assert (answer.exit, answer.json["done"]["decision"]) == (1, "contradicted")
    assert answer.json["stop_decision"]["action"] == "replan"
