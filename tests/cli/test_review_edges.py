"""What a newcomer runs into, and what somebody tries who wants a run to break: each told, none believed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from unittest import mock

import pytest

from cli.test_review_flow import APPROVE, THREE, Desk
from troth.core.errors import Refused
from troth.review.anchors import resolve
from troth.review.artifact import Artifact
from troth.stores.reviews import Reviews

# --- numbers ---


@pytest.mark.parametrize("option", ["--wall", "--idle", "--deadline"])
@pytest.mark.parametrize("number", ["nan", "inf", "1e308", "0.5"])
def test_a_time_is_a_finite_one_and_nothing_is_begun_without(tmp_path: Path, option: str, number: str) -> None:
    desk = Desk(tmp_path, THREE)
    answer = desk.start(*APPROVE, option, number)
    assert answer.exit == 2 and "E_USAGE" in answer.err and option in answer.err
    assert desk("review", "list", "--json").json["reviews"] == []
    assert desk.start(*APPROVE, option, "30").exit == 3


def test_a_verifications_time_is_a_finite_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    assert desk.start(*APPROVE).exit == 3
    desk.ok("triage", "F001", "checkable")
    words = ("review", "verify", "F001", "--method", "command", "--timeout")
    answer = desk(*words, "nan", "--", "true")
    assert answer.exit == 2 and "E_USAGE" in answer.err
    assert desk.ok("next", "F001")["finding"]["verification"] == []


# --- what is told when something is missing ---


@pytest.mark.parametrize("command", ["next", "status", "report", "decide", "resume", "finish", "recheck"])
def test_before_the_first_review_each_command_tells_how_to_begin(tmp_path: Path, command: str) -> None:
    desk = Desk(tmp_path, THREE)
    answer = desk("review", command)
    assert answer.exit == 2 and "no review here yet" in answer.err and "troth review start" in answer.err
    named = desk("review", "status", "other")
    assert named.exit == 2 and "'other'" in named.err


def test_choices_are_told_on_one_line(tmp_path: Path) -> None:
    answer = Desk(tmp_path, THREE)("review", "start", "memo.md")
    assert answer.exit == 2 and "code, document, decision" in answer.err and "\\n" not in answer.err


# --- run folders ---


def test_git_leaves_runs_alone_unless_told_otherwise(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    assert desk.start(*APPROVE).exit == 3

    def seen() -> str:
        return subprocess.run(
            ["git", "status", "--short", "-uall"], cwd=desk.work, capture_output=True, text=True, check=True
        ).stdout

    subprocess.run(["git", "init", "-q"], cwd=desk.work, check=True)
    assert "memo.md" in seen() and ".mentu/reviews" not in seen()
    ignore = desk.work / ".mentu" / "reviews" / ".gitignore"
    assert ignore.stat().st_mode & 0o777 == 0o600
    ignore.write_text("")  # emptied by somebody who wants them committed: it stays so
    assert desk.start(*APPROVE).exit == 3
    assert ".mentu/reviews/memo/payload" in seen() and ignore.read_text() == ""
    assert [each["review_id"] for each in desk("review", "list", "--json").json["reviews"]] == ["memo", "memo-2"]


def test_a_run_that_could_not_be_set_up_leaves_no_folder(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    full = Refused("E_WRITE_FAILED", "No space left on device")
    with mock.patch("troth.stores.reviews.ReviewFolder.write_json", side_effect=full):
        answer = desk.start(*APPROVE)
    assert answer.exit == 2 and "E_WRITE_FAILED" in answer.err
    assert Reviews(desk.work / ".mentu" / "reviews").list() == []
    assert desk.start(*APPROVE, "--json").json["review_id"] == "memo"


# --- readings of the specification ---


@pytest.mark.parametrize(
    ("heading", "holds"), [("Cost", True), (" Cost", False), ("Cost ", False), ("cost", False), ("## Cost", False)]
)
def test_a_heading_is_its_trimmed_text_and_nothing_around_it(heading: str, holds: bool) -> None:
    marked = Artifact([("memo.md", b"# Memo\n\n##   Cost  \n\nIt costs 40.\n")])
    plain = Artifact([("memo.txt", b"Memo\n\n  Cost  \nIt costs 40.\n")])
    for artifact in (marked, plain):
        assert resolve({"type": "section", "heading": heading}, artifact).holds is holds
        found = resolve({"type": "text_quote", "quote": "40", "section": heading}, artifact)
        assert [fault.rule for fault in found.faults] == ([] if holds else ["section-in-artifact"])
