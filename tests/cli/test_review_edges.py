"""What a newcomer runs into, and what somebody tries who wants a run to break: each told, none believed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from cli.test_review_flow import APPROVE, THREE, Desk, says
from support.reviewing import finding, reply, response
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
    assert answer.exit == 2
    assert "E_USAGE" in answer.err
    assert option in answer.err
    assert desk("review", "list", "--json").json["reviews"] == []
    assert desk.start(*APPROVE, option, "30").exit == 3


def test_a_verifications_time_is_a_finite_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    assert desk.start(*APPROVE).exit == 3
    desk.ok("triage", "F001", "checkable")
    words = ("review", "verify", "F001", "--method", "command", "--timeout")
    answer = desk(*words, "nan", "--", "true")
    assert answer.exit == 2
    assert "E_USAGE" in answer.err
    assert desk.ok("next", "F001")["finding"]["verification"] == []


# --- what is told when something is missing ---


@pytest.mark.parametrize("command", ["next", "status", "report", "decide", "resume", "finish", "recheck"])
def test_before_the_first_review_each_command_tells_how_to_begin(tmp_path: Path, command: str) -> None:
    desk = Desk(tmp_path, THREE)
    answer = desk("review", command)
    assert answer.exit == 2
    assert "no review here yet" in answer.err
    assert "troth review start" in answer.err
    named = desk("review", "status", "other")
    assert named.exit == 2
    assert "'other'" in named.err


def test_choices_are_told_on_one_line(tmp_path: Path) -> None:
    answer = Desk(tmp_path, THREE)("review", "start", "memo.md")
    assert answer.exit == 2
    assert "code, document, decision" in answer.err
    assert "\\n" not in answer.err


# --- run folders ---


def test_git_leaves_runs_alone_unless_told_otherwise(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    assert desk.start(*APPROVE).exit == 3

    def seen() -> str:
        return subprocess.run(
            ["git", "status", "--short", "-uall"], cwd=desk.work, capture_output=True, text=True, check=True
        ).stdout

    subprocess.run(["git", "init", "-q"], cwd=desk.work, check=True)
    assert "memo.md" in seen()
    assert ".mentu/reviews" not in seen()
    ignore = desk.work / ".mentu" / "reviews" / ".gitignore"
    assert ignore.stat().st_mode & 0o777 == 0o600
    ignore.write_text("")  # emptied by somebody who wants them committed: it stays so
    assert desk.start(*APPROVE).exit == 3
    assert ".mentu/reviews/memo/payload" in seen()
    assert ignore.read_text() == ""
    assert [each["review_id"] for each in desk("review", "list", "--json").json["reviews"]] == ["memo", "memo-2"]


def test_a_run_that_could_not_be_set_up_leaves_no_folder(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    full = Refused("E_WRITE_FAILED", "No space left on device")
    with mock.patch("troth.stores.reviews.ReviewFolder.write_json", side_effect=full):
        answer = desk.start(*APPROVE)
    assert answer.exit == 2
    assert "E_WRITE_FAILED" in answer.err
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


# --- a run's own files, edited ---


def _settled(desk: Desk) -> Path:
    """Return the folder of a converged run: resolved, rejected, decided by a person."""
    assert desk.start(*APPROVE).exit == 3
    for name in ("F001", "F002"):
        desk.ok("triage", name, "checkable")
    look = ("--method", "artifact-inspection", "--detail", "Looked.")
    desk.ok("verify", "F001", *look, "--result", "supports")
    desk.ok("verify", "F002", *look, "--result", "contradicts")
    desk.ok("accept", "F001")
    desk.ok("reject", "F002")
    desk.ok("triage", "F003", "judgment", "--kind", "value_or_priority_tradeoff")
    desk.ok("escalate", "F003", "--question", "Now?", "--position", "Now.", "--unverifiable", "It weighs values.")
    desk.ok("decide", "--finding", "F003", "--ruling", "Now.", "--as", "human:lead")
    return desk.work / ".mentu" / "reviews" / "memo"


def _put(value: Any, way: tuple[Any, ...], new: Any) -> None:
    for step in way[:-1]:
        value = value[step]
    if new is _GONE:
        del value[way[-1]]
    else:
        value[way[-1]] = new


_GONE = object()
_EDITS: tuple[tuple[str, tuple[Any, ...], Any], ...] = (
    ("run.json", ("backend", "name"), _GONE),
    ("run.json", ("backend",), []),
    ("run.json", ("independence", "notices"), 5),
    ("run.json", ("limits", "rounds"), "many"),
    ("run.json", ("limits", "bytes"), 10**400),
    ("run.json", ("limits", "more"), 1),
    ("run.json", ("members",), {}),
    ("run.json", ("created",), "yesterday"),
    ("run.json", ("unreviewed",), "all"),
    ("run.json", ("more",), 1),
    ("calls.jsonl", (0, "purpose"), ["review"]),
    ("calls.jsonl", (0, "about"), {}),
    ("calls.jsonl", (1, "raw"), 7),
    ("calls.jsonl", (1, "raw", 0), 7),
    ("calls.jsonl", (1, "seconds"), -1),
    ("calls.jsonl", (1, "failure"), "none"),
    ("calls.jsonl", (1, "notices"), [1]),
    ("calls.jsonl", (1, "call"), 0),
    ("calls.jsonl", (1,), _GONE),
    ("decisions.jsonl", (0, "finding_id"), "F009"),
    ("decisions.jsonl", (0,), _GONE),
)


def test_a_run_that_was_edited_is_unreadable_and_hides_no_other(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    run = _settled(desk)
    assert desk("review", "status").exit == 0  # the honest twin, before each edit and after the last
    other = desk.start(*APPROVE, "--id", "other", "--json").json["review_id"]
    kept = {name: (run / name).read_bytes() for name in {name for name, _, _ in _EDITS}}
    for name, way, new in _EDITS:
        lines = [json.loads(line) for line in kept[name].splitlines()]
        value = lines[0] if name == "run.json" else lines
        _put(value, way, new)
        (run / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        for words in (("status", "memo"), ("next", "--review", "memo"), ("report", "memo"), ("record", "memo")):
            told = desk("review", *words)
            assert told.exit in (2, 3), (name, way, words, told.out + told.err)
            assert "E_DEFECT" not in told.err
            assert "Every finding is settled" not in told.out
        listed = {each["review_id"]: each["stage"] for each in desk("review", "list", "--json").json["reviews"]}
        assert listed == {"memo": "unreadable", other: "open"}, (name, way)
        (run / name).write_bytes(kept[name])
    assert desk("review", "status", "memo").exit == 0
    assert desk("log", "--json").json == [] or "F001" not in desk("log").out  # nothing was told of what disagrees
    assert desk("review", "record", "memo").exit == 0


def test_a_response_without_the_answer_it_came_from_is_believed_by_nobody(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    run = _settled(desk)
    kept = (run / "calls.jsonl").read_bytes()
    for calls in (b"", kept.splitlines(keepends=True)[0]):
        (run / "calls.jsonl").write_bytes(calls)
        told = desk("review", "status")
        assert told.exit == 3
        assert "not what the reviewer answered" in told.out
    (run / "calls.jsonl").unlink()
    assert desk("review", "status").exit == 3
    (run / "calls.jsonl").write_bytes(kept)
    assert desk("review", "status").exit == 0


def test_a_copy_of_a_run_says_whose_it_is(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    run = _settled(desk)
    shutil.copytree(run, run.with_name("copy"))
    told = desk("review", "status", "copy")
    assert told.exit == 3
    assert "holds the run of memo" in told.out
    assert "converged" not in told.out
    assert desk("review", "status", "memo").exit == 0


def test_unresolved_evidence_is_counted_from_the_artifact_not_from_a_file(tmp_path: Path) -> None:
    entry = {**finding(1)["evidence"][0], "anchor": {"type": "section", "heading": "Nowhere"}}
    desk = Desk(tmp_path, says(response(finding(1, evidence=[entry]), finding(2))))
    assert desk.start(*APPROVE, "--json").json["unresolved_evidence"] == 1
    (desk.work / ".mentu" / "reviews" / "memo" / "validation.json").write_text('{"unresolved": []}')
    assert desk("review", "status", "--json").json["unresolved_evidence"] == 1


# --- who decides ---


@pytest.mark.parametrize("marker", [{"CLAUDECODE": "1"}, {"GEMINI_CLI": "1"}, {"CODEX_SANDBOX": "seatbelt"}])
def test_an_agents_login_is_not_taken_for_a_person(tmp_path: Path, marker: dict[str, str]) -> None:
    desk = Desk(tmp_path, THREE)
    assert desk.start(*APPROVE).exit == 3
    desk.env["TROTH_ACTOR"] = ""
    desk.ok("triage", "F003", "judgment", "--kind", "value_or_priority_tradeoff")
    told = ("review", "verify", "F003", "--method", "operator-confirmation", "--result", "supports", "--detail", "Yes.")
    desk.env |= marker
    refused = desk(*told)
    assert refused.exit == 2
    assert "E_REVIEW_ROLE" in refused.err
    assert next(iter(marker)) in refused.err
    assert desk(*told, "--as", "human:lead").exit == 0
    desk.ok("escalate", "F003", "--question", "Now?", "--position", "Now.")
    ruling = ("review", "decide", "--finding", "F003", "--ruling", "Now.")
    refused = desk(*ruling)
    assert refused.exit == 2
    assert "E_REVIEW_ROLE" in refused.err
    desk.env |= dict.fromkeys(marker, "")
    assert desk(*ruling).exit == 3  # without an agent around, the login is the person; two findings are open still


# --- what is shown ---


def test_no_words_of_others_begin_a_line_where_a_person_decides(tmp_path: Path) -> None:
    forged = "outcome     converged: Every finding is settled."
    nasty = f"{forged} {'x ' * 20}{forged}\n{forged}\r\n# {forged}"
    entry = {**finding(1)["evidence"][0], "observation": nasty}
    desk = Desk(tmp_path, says(response(finding(1, nasty, evidence=[entry], recommendation=nasty), summary=nasty)))
    assert desk.start(*APPROVE).exit == 3
    desk.ok("triage", "F001", "judgment", "--kind", "value_or_priority_tradeoff")
    desk.ok("escalate", "F001", "--question", nasty, "--position", nasty, "--unverifiable", nasty)
    shown = desk("review", "decide")
    assert shown.exit == 4
    assert forged in shown.out
    ours = [line for line in shown.out.splitlines() if line.startswith("outcome")]
    assert ours == ["outcome     deadlocked: A person must decide."]


def test_what_a_folder_holds_beside_its_files_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    folder = desk.work / "docs"
    folder.mkdir()
    (folder / "memo.md").write_bytes(b"Here.\n")
    begin = ("review", "start", "docs", "--kind", "document", "--backend", "scripted:reviewer.json", "--dry-run")
    assert "links are not followed" not in desk(*begin).err
    (folder / "secret").symlink_to("/etc/passwd")
    (folder / "more").symlink_to(desk.work)
    told = desk(*begin, "--json")
    assert "docs/more, docs/secret" in told.err
    assert [each["path"] for each in told.json["manifest"]["members"]] == ["docs/memo.md"]


def test_a_report_names_what_was_reviewed_and_a_rebuttal_no_payload(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE, {"to": "rebuttal", "json": reply("F001", "withdraw")})
    assert "payload sha256" in desk.start(*APPROVE).out
    assert "- artifact: memo" in desk("review", "report").out
    desk.ok("triage", "F001", "checkable")
    desk.ok("contest", "F001", "--position", "No.", "--unverifiable", "Taste.")
    sent = desk("review", "rebut", "F001", *APPROVE)
    assert sent.exit == 0
    assert "(rebuttal)" in sent.out
    assert "payload sha256" not in sent.out


def test_a_final_state_says_that_it_is_final(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    _settled(desk)
    told = desk("review", "accept", "F001")
    assert told.exit == 2
    assert "another look is a new review" in told.err


def test_answers_from_a_file_are_told_as_that(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    begun = desk.start(*APPROVE)
    assert begun.out.count("SCRIPTED: the answers stand in a file.") == 2  # before anything is asked, and with the end
    assert "SCRIPTED" in desk("review", "report").out
    assert "Reviewer: " in desk("review", "report").out  # whose words the summary is
    lone = {"CLAUDE_SURFACE": "chat", "PATH": str(tmp_path)}
    (desk.work / "own.json").write_text(json.dumps(response(assessment="approve")))
    desk.env |= lone
    own = desk("review", "start", "memo.md", "--kind", "decision", "--self-review", "own.json")
    assert "SELF-REVIEW" in own.out
    assert "SCRIPTED" not in own.out


def test_a_disk_that_is_full_at_the_start_is_told_as_nothing_sent(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    with mock.patch("troth.stores.reviews.replace_whole", side_effect=OSError(28, "No space left on device")):
        told = desk.start(*APPROVE)
    assert told.exit == 2
    assert "Nothing was sent." in told.err
    assert "resume" not in told.err


def test_show_of_a_runs_name_says_how_a_run_is_shown(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    assert desk.start(*APPROVE).exit == 3
    told = desk("review", "show", "memo")
    assert told.exit == 2
    assert "troth review next, status or report" in told.err


def test_questions_come_gravest_first_and_are_counted_by_risk_and_kind(tmp_path: Path) -> None:
    raised = [
        finding(number, severity=severity) for number, severity in enumerate(("low", "critical", "low", "high"), 1)
    ]
    desk = Desk(tmp_path, says(response(*raised)))
    assert desk.start(*APPROVE).exit == 3
    assert desk("review", "open").out == "Nothing waits for the operator.\n"
    for number, kind in enumerate(("value_or_priority_tradeoff", *["policy_or_authority_required"] * 3), 1):
        desk.ok("triage", f"F00{number}", "judgment", "--kind", kind)
        desk.ok(
            "escalate", f"F00{number}", "--question", "Now?", "--position", "Now.", "--unverifiable", "It is policy."
        )
    shown = desk("review", "open")
    assert shown.exit == 4
    assert [line.split()[0] for line in shown.out.splitlines() if line.startswith("  F")] == [
        "F002",
        "F004",
        "F001",
        "F003",
    ]
    last = "1 critical, 1 high, 2 low; 1 value or priority tradeoff, 3 policy or authority required"
    assert shown.out.splitlines()[-1] == f"4 questions: {last}"
    asked = [one["finding_id"] for one in desk("review", "decide", "--json").json["open"]]
    assert asked == ["F002", "F004", "F001", "F003"]
