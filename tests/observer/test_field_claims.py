"""What went wrong elsewhere with claims held against observations, each beside its honest twin."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest

from troth.observer.matching import entries_of, match
from troth.observer.transcripts import read_transcript
from troth.receipts.checks import judge_claims


def log(*runs: tuple[str, int]) -> str:
    return "".join(f"```console\n$ {command}\n…\nexit {code}\n```\n\n" for command, code in runs)


def stream(*runs: tuple[str, int]) -> str:
    rows: list[dict[str, Any]] = []
    for number, (command, code) in enumerate(runs):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        text = "ok" if code == 0 else f"Exit code {code}\nno"
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text, "is_error": code != 0}
        rows.append({"type": "assistant", "session_id": "s", "message": {"content": [use]}})
        rows.append({"type": "user", "session_id": "s", "message": {"content": [answer]}})
    return "".join(json.dumps(row) + "\n" for row in rows)


def observed(*items: tuple[list[str], int] | str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for step, item in enumerate(items, 1):
        event: dict[str, Any] = {"id": f"e{step}", "time": "2026-01-01T00:00:00Z", "step": step}
        event |= {"type": "create", "path": item} if isinstance(item, str) else {}
        event |= {"type": "exec", "argv": item[0], "exit": item[1]} if not isinstance(item, str) else {}
        events.append(event)
    return events


def held(text: str, form: str, events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The record's claims as (words, outcome by the receipt's check)."""
    entries = entries_of(match([read_transcript(BytesIO(text.encode()), form).said], events))
    return [
        (" ".join(judged.claim["argv"]), judged.outcome)
        for judged in judge_claims({"claims": entries}, {"events": events})
    ]


BOTH = [(log, "plain"), (stream, "claude-stream")]


@pytest.mark.parametrize(("told", "form"), BOTH)
def test_a_claimed_result_that_is_not_the_observed_one(told: Any, form: str) -> None:
    events = observed((["python", "golden.py"], 1))
    assert held(told(("python golden.py", 0)), form, events) == [("python golden.py", "mismatch")]
    assert held(told(("python golden.py", 1)), form, events) == [("python golden.py", "matched")]


@pytest.mark.parametrize(("told", "form"), BOTH)
def test_other_activity_is_no_proof_of_the_command_that_was_claimed(told: Any, form: str) -> None:
    issues = "gh issue list --state open"
    busy = observed(
        (["ls"], 0), "a.py", (["grep", "x", "a.py"], 0), "b.py", (["cat", "a.py"], 0), (["gh", "--version"], 0)
    )
    assert held(told((issues, 0)), form, busy) == [(issues, "unmatched")]
    assert held(told((issues, 0)), form, [*busy, *observed(*["x"] * 6, (issues.split(), 0))[-1:]]) == [
        (issues, "matched")
    ]


def test_a_mention_of_a_command_is_no_claim_of_a_run() -> None:
    text = "To check, run `npm test`; I have not.\n\nCommit message: ran `pytest -x`, exit 0\n\n```sh\nnpm test\n```\n"
    assert held(text, "plain", observed((["ls"], 0))) == []
    said = {"type": "assistant", "session_id": "s", "message": {"content": [{"type": "text", "text": text}]}}
    assert held(json.dumps(said), "claude-stream", observed((["ls"], 0))) == []
    assert held(text + log(("npm test", 0)), "plain", observed((["ls"], 0))) == [("npm test", "unmatched")]


@pytest.mark.parametrize(("told", "form"), BOTH)
def test_what_ran_before_the_last_edit_is_stale_and_running_it_again_clears_it(told: Any, form: str) -> None:
    runs = (["pytest"], 0), (["ruff", "check"], 0)
    claimed = told(("pytest", 0), ("ruff check", 0))
    before, after = observed(*runs, ".changeset/x.md"), observed(*runs, ".changeset/x.md", *runs)
    assert held(claimed, form, before) == [("pytest", "stale"), ("ruff check", "stale")]
    assert held(claimed, form, after) == [("pytest", "matched"), ("ruff check", "matched")]
