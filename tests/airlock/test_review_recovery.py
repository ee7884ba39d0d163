"""After a timeout: whether anything came, that nothing is reusable, and the ways on with what each changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.test_review_flow import APPROVE, THREE, Desk
from support.reviewing import Reviewer, finding, response, started
from troth.airlock.reviewing.recovery import recovery
from troth.airlock.reviewing.session import Limits
from troth.backends.asking import failure_of
from troth.backends.protocol import Failure

LATE = failure_of("timeout", "It took too long.")


def options(folder: Path, failure: Failure = LATE, **edits: Any) -> list[str]:
    """Return the ways on of a run whose reviewer failed."""
    session = started(folder, Reviewer(failure), {"a.py": b"a\n", "b.py": b"b\n"})
    session.setup = replace(session.setup, **edits)
    return [option.option for option in recovery(session)]


def backend(name: str) -> dict[str, Any]:
    return {"backend": {"asked": name, "name": name, "kind": "cli", "endpoint": "https://x.example"}}


ALWAYS = ["fewer or smaller files", "--backend ANOTHER"]


@pytest.mark.parametrize(
    ("edits", "wanted"),
    [
        ({}, ["--wall 600"]),
        ({"limits": Limits(wall=4000)}, ["--wall 5400"]),
        ({"limits": Limits(wall=5400)}, []),
        ({"kind": "code"}, ["--wall 600", "troth review chunks"]),
        (backend("codex"), ["--wall 600", "--effort low", "--speed fast"]),
        ({**backend("codex"), "effort": "xhigh", "speed": "fast"}, ["--wall 600", "--effort high"]),
        ({**backend("codex"), "effort": "none", "speed": "fast"}, ["--wall 600"]),
        ({**backend("claude"), "effort": "low"}, ["--wall 600"]),
        ({**backend("claude"), "effort": "medium"}, ["--wall 600", "--effort low"]),
    ],
)
def test_each_way_on_is_one_that_the_run_leaves(tmp_path: Path, edits: dict[str, Any], wanted: list[str]) -> None:
    assert options(tmp_path, **edits) == [*wanted, *ALWAYS]


@pytest.mark.parametrize("code", ["auth_error", "rate_limited", "invalid_response", "cancelled"])
def test_other_failures_have_none(tmp_path: Path, code: str) -> None:
    assert options(tmp_path, failure_of(code, "It failed.")) == []


def test_a_run_with_an_answer_has_none(tmp_path: Path) -> None:
    assert recovery(started(tmp_path, Reviewer(response(finding(1))))) == ()


def test_they_are_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"end": "idle_timeout"})
    told = desk.start(*APPROVE, "--idle", "5", "--wall", "60")
    assert told.exit == 3
    assert "nothing of this one is reusable" in told.out
    assert "--idle 60: it may be silent for as long as the call may take" in told.out
    given = desk("review", "status", "--json").json
    assert [option["option"] for option in given["recovery"]] == ["--idle 60", *ALWAYS]
    assert all(option["changes"] for option in given["recovery"])
    desk.script(THREE)
    assert desk.start(*APPROVE, "--json").json["recovery"] == []
