"""The real ``claude`` with the hook installed, against a local endpoint that plays the model: it is sent back.

It is looked for on the search path; it can be had as a package. Nothing leaves the machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.model_endpoint import Model, playing
from support.observing import needs_observer
from support.project import Project, project, sealed_project
from troth.backends.claude import QUIET

__all__ = ["project", "sealed_project"]
pytestmark = [pytest.mark.slow, pytest.mark.observer, needs_observer]

MEND = ("Bash", {"command": "sed -i 's/return value/return 2 * value/' src/app.py", "description": "mend"})
WEAKEN = ("Bash", {"command": "echo > tests/test_app.py", "description": "weaken"})


def drive(project: Project, model: Model, state: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Let claude work on the project, and return what it printed."""
    program = shutil.which("claude")
    if program is None:
        pytest.skip("there is no program claude on the search path")
    home = state / "home"
    home.mkdir(exist_ok=True, parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_STATE_HOME": str(state / "state"),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "ANTHROPIC_API_KEY": "test-key",
        "ANTHROPIC_BASE_URL": model.url,
        **QUIET,
    }
    return subprocess.run(
        [program, "--print", "Mend double().", "--output-format", "json", "--allowedTools", "Bash", *more],
        cwd=project.root,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def installed(project: Project, state: Path, *more: str) -> dict[str, str]:
    own = {"XDG_STATE_HOME": str(state / "state")}
    answer = project.troth("hook", "claude-code", "install", "--contract", project.contract, *more, env=own)
    assert answer.exit == 0, answer
    return own


def sent(model: Model) -> list[str]:
    """What claude put to the model in turn, as text, without the requests of its own housekeeping."""
    return [json.dumps(asked.body["messages"]) for asked in model.asked if asked.body.get("tools")]


def status(project: Project, own: dict[str, str]) -> tuple[int, Any]:
    answer = project.troth("hook", "status", "--json", env=own)
    return answer.exit, answer.json


def test_an_agent_that_calls_it_done_is_sent_back_until_it_is(project: Project, tmp_path: Path) -> None:
    state = tmp_path / "state"
    own = installed(project, state)
    assert status(project, own)[1]["error"]["code"] == "E_HOOK_UNDECIDED"
    with playing("All done, the tests pass.", MEND, "Now it is done.") as model:
        done = drive(project, model, state)
    assert done.returncode == 0, done
    first, second, third = sent(model)[:3]
    assert "acceptance" not in first
    # The lie was answered with what the verifier found, and the work went on.
    assert "All done, the tests pass." in second
    assert "troth: contradicted" in second
    assert "test_double" in second
    assert "tool_result" in third
    assert json.loads(done.stdout)["result"] == "Now it is done."
    exit_status, last = status(project, own)
    # Nothing contradicts any more, and nobody watched: a person decides.
    assert (exit_status, last["done"]["decision"], last["stop_decision"]["action"]) == (
        4,
        "not_established",
        "escalate",
    )


def test_an_agent_that_never_mends_it_is_let_go_and_nothing_counts(project: Project, tmp_path: Path) -> None:
    state = tmp_path / "state"
    own = installed(project, state)
    with playing("Done.") as model:
        done = drive(project, model, state)
    assert done.returncode == 0, done
    assert len(sent(model)) == 4  # sent back thrice, as the table allows
    exit_status, last = status(project, own)
    assert (exit_status, last["done"]["decision"]) == (4, "contradicted")
    assert last["stop_decision"]["limited"] is True


def test_weakened_tests_are_told_at_once(project: Project, tmp_path: Path) -> None:
    state = tmp_path / "state"
    own = installed(project, state)
    with playing(WEAKEN, "Done.", "Done.", "Done.", "Done.") as model:
        drive(project, model, state)
    assert "Put it back as it was" in sent(model)[1]
    exit_status, last = status(project, own)
    assert (exit_status, last["done"]["reason"]) == (4, "protected_path_digest_changed")


def test_without_the_hook_it_is_not_sent_back(project: Project, tmp_path: Path) -> None:
    state = tmp_path / "state"
    own = installed(project, state)
    assert project.troth("hook", "claude-code", "uninstall", env=own).exit == 0
    with playing("All done, the tests pass.") as model:
        done = drive(project, model, state)
    assert done.returncode == 0, done
    assert len(sent(model)) == 1
    # And a hook that was not called counts for nothing.
    assert status(project, own) == (1, status(project, own)[1])
    assert status(project, own)[1]["error"]["code"] == "E_HOOK_UNDECIDED"
