"""The real Claude Code and Codex under the observer, a local endpoint in the model's place: what they record is read.

They are looked for on the search path; nothing leaves the machine.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.model_endpoint import playing
from support.observing import needs_observer
from support.toolagents import MEND, SUITE
from support.watching import Watch, watch, workspace
from troth.observer.sources import REPORT
from troth.receipts.checks import CONTRADICTING, judge_claims

__all__ = ["watch", "workspace"]
pytestmark = [needs_observer, pytest.mark.observer, pytest.mark.slow]

COMMANDS = [MEND, f"cd src && cd .. && {SUITE}", "grep -c nothing src/app.py", f"{SUITE} 2>&1 | tail -2"]


def started(name: str) -> tuple[str, Path]:
    """Return the program itself and the folder of packages that it stands in."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no program {name} on the search path")
    path = Path(found).resolve()
    return str(path), next(folder for folder in path.parents if folder.name == "node_modules")


def accused(seen: Any) -> list[str]:
    judged = judge_claims(seen.claims, seen.observation)
    return [one.outcome for one in judged if one.outcome in CONTRADICTING]


def test_claude_code_is_read_from_its_home_and_not_accused(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    program, packages = started("claude")
    calls = [("Bash", {"command": command, "description": "work"}) for command in COMMANDS]
    with playing(
        *calls, ("Bash", {"command": "git push", "description": "no"}), "Done; `npm test` was not run."
    ) as model:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        seen = watch(
            "", argv=[program, "-p", "--allowedTools", "Bash", "--disallowedTools", "Bash(git push:*)",
                      "--model", "model-9", "mend"],
            network=True, allow_read=(packages,), terminal=False, transcripts=("auto",), timeout=150,
            env=("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"),
        )  # fmt: skip
    report = json.loads(seen.observed.files[REPORT])
    assert [source["format"] for source in report["sources"]] == ["claude-code"]
    assert [run["said"]["text"] for run in report["runs"]] == COMMANDS
    assert report["sources"][0]["no_claim"] == {"denied, or not started": 1}
    assert report["counts"]["not_observed"] == 0
    assert accused(seen) == []
    assert seen.complete, seen.observed.coverage_faults


def test_codex_is_read_from_its_home_and_not_accused(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    program, packages = started("codex")
    calls = [("exec_command", {"cmd": command}) for command in COMMANDS]
    with playing(*calls, "Done; `npm test` was not run.") as model:
        monkeypatch.setenv("CODEX_API_KEY", "test-key")
        seen = watch(
            "", argv=["/usr/bin/env", "node", program, "exec", "--skip-git-repo-check",
                      "--dangerously-bypass-approvals-and-sandbox",
                      "-c", "features.shell_snapshot=false", "-c", f'openai_base_url="{model.url}/v1"', "mend"],
            network=True, allow_read=(packages,), terminal=False, transcripts=("auto",), timeout=150,
            env=("CODEX_API_KEY",),
        )  # fmt: skip
    report = json.loads(seen.observed.files[REPORT])
    assert [source["format"] for source in report["sources"]] == ["codex-rollout"]
    assert [run["said"]["text"] for run in report["runs"]] == COMMANDS
    assert report["counts"]["not_observed"] == 0
    assert accused(seen) == []
    assert seen.complete, seen.observed.coverage_faults
