"""``troth claims`` and ``troth run --transcript`` through the real front door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.observing import needs_observer
from support.project import Project, project, sealed_project
from support.shell import Shell, make_shell
from support.toolagents import AGENTS, transcript, words

__all__ = ["project", "sealed_project"]

SAMPLES = Path(__file__).resolve().parents[1] / "observer" / "transcripts"


@pytest.fixture
def shell(capfd: pytest.CaptureFixture[str]) -> Shell:
    return make_shell(capfd)


def test_a_transcript_alone_shows_what_is_said(shell: Shell) -> None:
    said = shell("claims", SAMPLES / "claude-stream" / "stream.jsonl")
    assert said.exit == 0
    first, *rest = said.out.splitlines()
    assert first == "claude-stream: claude-code 2.1.197, 9 runs reported as done"
    assert "  no claim: 1 (denied, or not started)" in rest
    assert "line 2: cd tests/.. && python3 -m unittest -q tests.test_cart (exit 1)" in rest
    found = shell("claims", SAMPLES / "claude-stream" / "stream.jsonl", "--json").json
    assert [run.get("exit") for run in found["runs"]] == [1, 0, 0, 0, None, 127, 0, 0, 0]
    assert found["sources"][0]["version_tried"] is True


def test_with_a_run_each_claim_has_its_match_and_what_the_check_makes_of_it(shell: Shell) -> None:
    folder = SAMPLES / "codex-rollout"
    said = shell("claims", folder / "rollout.jsonl", "--run", folder)
    assert said.exit == 0
    assert "  c1 observed: a shell was started with this very text" in said.out
    assert "  in no record: a later claim has the same words" in said.out
    found = shell("claims", folder / "rollout.jsonl", "--run", folder, "--json").json
    assert {entry["outcome"] for entry in found["record"]} == {"matched"}
    assert found["counts"]["not_observed"] == 0
    # The same words beside another tool's observation.
    other = shell("claims", folder / "rollout.jsonl", "--run", SAMPLES / "claude-code-subagent")
    assert "not observed: nothing that was observed fits it; it stays as said" in other.out


def test_a_version_that_was_not_tried_is_said(shell: Shell) -> None:
    said = shell("claims", SAMPLES / "codex-exec" / "events.jsonl")
    assert "  it tells no version; its reader was tried with 0.171.0" in said.out


def test_control_characters_of_a_transcript_stay_harmless(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("```sh\n$ echo \x1b[31m\x07\nexit 0\n```\n")
    said = shell("claims", file)
    assert said.exit == 0
    assert "\x1b" not in said.out
    assert "\\x1b[31m" in said.out


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (["no-such-file"], "E_TRANSCRIPT_UNREADABLE"),
        (["link"], "E_TRANSCRIPT_UNREADABLE"),
        (["log", "--format", "word"], "E_TRANSCRIPT_FORMAT"),
        (["log", "--run", "."], "E_OBSERVATION_UNREADABLE"),
        (["log", "--run", "broken"], "E_OBSERVATION_UNREADABLE"),
    ],
)
def test_refusals(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], code: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").write_text("")
    (tmp_path / "link").symlink_to("log")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "observation.json").write_text("{}")
    refused = shell("claims", *given, "--json")
    assert (refused.exit, refused.json["error"]["code"]) == (2, code)


def run(project: Project, style: str, steps: str, lie: str | None = None) -> tuple[int, dict[str, Any]]:
    answer = project.troth(
        "run", "--new", "double() does not double", "--contract", project.contract, "--as", "agent:worker", "--json",
        "--transcript", transcript(style), "--", *words(style, steps, lie),
    )  # fmt: skip
    return answer.exit, answer.json


@needs_observer
@pytest.mark.observer
def test_an_agents_own_records_make_the_claims_of_a_run(project: Project) -> None:
    status, answer = run(project, "claude-code", "looking")
    assert (status, answer["done"]["decision"]) == (0, "supported"), answer
    folder = Path(answer["folder"])
    assert "of claude-code 2.1.197: 7 runs reported as done" in " ".join(answer["notes"])
    assert any(note.startswith("seen as they were said, before later edits") for note in answer["notes"])
    claims = json.loads((folder / "claims.json").read_bytes())["claims"]
    assert [claim["argv"] for claim in claims][1:] == [  # the first is the edit itself
        ["python3", "-m", "unittest", "-q", "tests.test_app"], ["ls", "src"],
    ]  # fmt: skip
    report = json.loads((folder / "claims-report.json").read_bytes())
    assert [run["claimed"] for run in report["runs"] if "claim" in run][1:] == [
        "python3 -m unittest -q tests.test_app", "ls src",
    ]  # fmt: skip
    assert project.troth("receipt", "check", folder, "--json").json["receipt"] == {"verdict": "valid"}


@needs_observer
@pytest.mark.observer
@pytest.mark.slow
@pytest.mark.parametrize(("style", "steps"), AGENTS)
def test_every_honest_agent_is_supported(project: Project, style: str, steps: str) -> None:
    status, answer = run(project, style, steps)
    assert (status, answer["done"]["decision"]) == (0, "supported"), answer


@needs_observer
@pytest.mark.observer
def test_the_same_agent_with_an_invented_run_is_contradicted(project: Project) -> None:
    status, answer = run(project, "claude-code", "looking", "invented")
    assert (status, answer["done"]["reason"]) == (1, "tool_claim_unmatched")
    assert "tests.test_everything" in answer["sentence"]


@needs_observer
@pytest.mark.observer
def test_a_transcript_that_is_named_wrongly_is_refused_before_anything_is_written(project: Project) -> None:
    before = len(project.rows)
    answer = project.troth(
        "run", "--new", "x", "--contract", project.contract, "--as", "agent:worker", "--json",
        "--transcript", "word:x", "--", "true",
    )  # fmt: skip
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_TRANSCRIPT_FORMAT")
    assert len(project.rows) == before
