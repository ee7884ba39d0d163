"""The operator's part: the complete view or none of it, rulings, corrections, and both records telling the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from review.documents import artifact, document, edited
from review.playing import SUPPORTS, came_to, escalated, go, played, started
from troth.core.canonical import record_bytes
from troth.core.errors import Refused
from troth.review.artifact import Artifact
from troth.review.decisions import (
    MEMBERS,
    Question,
    concluded,
    decided,
    item_digest,
    open_questions,
    owed,
    read_lines,
    ruled,
    ruling_event,
    unverifiable_of,
)
from troth.review.run import Run, applied
from troth.review.validate import validate

GIVEN = {
    "question": "Is a saving without a source acceptable?", "ruling": "It is, for this quarter.",
    "time": "2026-03-02T09:00:00Z", "actor": "human:lead", "channel": "terminal",
}  # fmt: skip


def view(
    run: Run, *, review: Any = None, reconciliation: Any = None, of: Artifact | None = None, reasons: Any = None
) -> tuple[Question, ...]:
    return open_questions(
        record_bytes(review or document("response")),
        record_bytes(reconciliation or came_to(run)),
        of or artifact(),
        unverifiable=unverifiable_of(run.records) if reasons is None else reasons,
    )


def test_the_view_holds_all_that_must_be_seen() -> None:
    (asked,) = view(played())
    assert asked.finding_id == "F005"
    assert asked.finding["claim"] == "The saving is not backed by a source."
    assert {held.anchored.state for held in asked.evidence} == {"resolved"}
    assert any(line.anchored for held in asked.evidence for place in held.anchored.passages for line in place.lines)
    assert (asked.verification, asked.unverifiable) == ((), "No source.")
    assert (asked.host_position, asked.reviewer_position) == ("It does not.", "It does.")
    assert asked.question == "Does F005 stand?"
    told = asked.as_json()
    assert json.loads(json.dumps(told)) == told
    assert {"claim", "evidence", "verification", "host_position", "reviewer_position", "question"} <= told.keys()


def test_the_view_shows_verifications_and_anchors_that_lead_nowhere() -> None:
    run = escalated(started(), "F001", SUPPORTS)
    broken = edited(document("response"), {"set": {"$.findings[0].evidence[0].anchor.section": "Nowhere"}})
    (asked,) = view(run, review=broken)
    assert asked.verification == (SUPPORTS,)
    assert asked.unverifiable is None
    assert [held.anchored.state for held in asked.evidence] == ["unresolved"]


def stuck(**edits: Any) -> dict[str, Any]:
    return edited(came_to(played()), edits)


@pytest.mark.parametrize(
    ("detail", "given"),
    [
        ("escalation-context", {"reconciliation": stuck(delete=["$.items[4].escalation.operator_question"])}),
        ("visible-text", {"reconciliation": stuck(set={"$.items[4].escalation.operator_question": " "})}),
        ("escalation-context", {"reconciliation": stuck(delete=["$.items[4].escalation.host_position"])}),
        ("escalation-context", {"reconciliation": stuck(set={"$.items[4].escalation.reviewer_position": "\u0007 "})}),
        ("unique-item-ids", {"reconciliation": stuck(set={"$.items[3].finding_id": "F005"})}),
        ("finding-coverage", {"reconciliation": stuck(delete=["$.items[0]"])}),
        ("review-id-match", {"reconciliation": stuck(set={"$.review_id": "another"})}),
        ("revision-artifact", {"reconciliation": stuck(set={"$.artifact_revision.value": "0" * 64})}),
        ("unique-finding-ids", {"review": edited(document("response"), {"set": {"$.findings[3].id": "F005"}})}),
        ("required-member", {"review": edited(document("response"), {"delete": ["$.findings[4].claim"]})}),
        ("empty-list", {"review": edited(document("response"), {"set": {"$.findings[4].evidence": []}})}),
        ("revision-artifact", {"of": Artifact([("memo.md", b"another")])}),
        ("verification", {"reasons": {}}),
        ("verification", {"reasons": {"F005": " "}}),
    ],
)
def test_what_is_missing_refuses_the_whole_view(detail: str, given: dict[str, Any]) -> None:
    assert len(view(played())) == 1
    with pytest.raises(Refused) as refused:
        view(played(), **given)
    assert refused.value.code == "E_REVIEW_VIEW"
    assert refused.value.detail == detail
    assert refused.value.exit_code == 2


def test_one_incomplete_question_hides_the_complete_one_too() -> None:
    run = escalated(escalated(started(), "F001", SUPPORTS), "F005")
    assert [asked.finding_id for asked in view(run)] == ["F001", "F005"]
    with pytest.raises(Refused):
        view(run, reasons={})


# --- rulings ---


def test_a_ruling_moves_the_item_and_keeps_the_escalation() -> None:
    before = came_to(played())
    after = ruled(before, "F005", **GIVEN)
    item = after.document["items"][4]
    assert item["state"] == "resolved"
    assert item["resolution"] == GIVEN["ruling"]
    assert item["escalation"] == {**before["items"][4]["escalation"], "operator_question": GIVEN["question"]}
    assert (before["outcome"], after.document["outcome"]) == ("deadlocked", "converged")
    assert before["items"][4]["state"] == "deadlocked"
    assert tuple(after.line) == MEMBERS
    assert after.line["previous_state"] == "deadlocked"
    assert after.line["previous_item"] == item_digest(before["items"][4])
    data = record_bytes(after.document)
    given = {"artifact": artifact(), "review": document("response")}
    assert validate(data, **given, decided={"F005": after.line}).violations == ()
    for wrong in ({}, {"F005": {**after.line, "ruling": "No."}}, {"F005": {**after.line, "question": "Another?"}}):
        assert validate(data, **given, decided=wrong).rules == ("operator-decision-recorded",)


def test_two_questions_and_an_incomplete_run() -> None:
    run = escalated(escalated(started(), "F001", SUPPORTS), "F005")
    before = came_to(run)
    assert before["outcome"] == "incomplete"
    both = ruled(ruled(before, "F005", **GIVEN).document, "F001", **GIVEN).document
    assert both["outcome"] == "incomplete"
    waiting = ruled({**before, "outcome": "deadlocked"}, "F005", **GIVEN).document
    assert waiting["outcome"] == "deadlocked"


def test_a_correction_tells_what_stood_before() -> None:
    first = ruled(came_to(played()), "F005", **GIVEN)
    later = {**GIVEN, "ruling": "It is not.", "time": "2026-03-03T09:00:00Z"}
    with pytest.raises(Refused) as refused:
        ruled(first.document, "F005", **later)
    assert refused.value.detail == "reason"
    second = ruled(first.document, "F005", **later, reason="The auditor asked.")
    text = second.document["items"][4]["resolution"]
    for part in ("It is not.", "2026-03-03T09:00:00Z", "The auditor asked.", "resolved", GIVEN["ruling"]):
        assert part in text
    assert second.line["reason"] == "The auditor asked."
    assert second.line["previous_item"] == item_digest(first.document["items"][4])
    lines = (first.line, second.line)
    assert decided(came_to(played()), lines) == second.document
    data = record_bytes(second.document)
    given = {"artifact": artifact(), "review": document("response")}
    assert validate(data, **given, decided={"F005": second.line}).violations == ()


@pytest.mark.parametrize(
    ("finding", "change"),
    [("F001", {}), ("F002", {}), ("F003", {}), ("F004", {}), ("F009", {}), ("F005", {"ruling": "\u0000"}),
     ("F005", {"question": ""}), ("F005", {"actor": " "}), ("F005", {"channel": "rumour"}), ("F005", {"time": "today"}),
     ("F005", {"reason": "Nothing was decided yet."})],
)  # fmt: skip
def test_what_cannot_be_decided(finding: str, change: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        ruled(came_to(played()), finding, **{**GIVEN, **change})
    assert refused.value.code == "E_REVIEW_DECISION"


# --- the record ---


def lines_of(*lines: dict[str, Any]) -> bytes:
    return b"".join(record_bytes(line) for line in lines)


def test_the_record_reads_back_and_is_strict() -> None:
    line = ruled(came_to(played()), "F005", **GIVEN).line
    assert read_lines(lines_of(line)) == (line,)
    assert read_lines(b"") == ()
    for bad in (
        b"{}\n", b"[]\n", b"{\n", b"\n", lines_of({**line, "more": "x"}), lines_of({**line, "ruling": 7}),
        lines_of({**line, "previous_state": "open"}), lines_of({**line, "previous_item": "x"}),
        lines_of(line)[:-20],
    ):  # fmt: skip
        with pytest.raises(Refused) as refused:
            read_lines(bad)
        assert refused.value.code == "E_DECISIONS_UNREADABLE"
        assert refused.value.place is not None


def test_events_and_decisions_tell_the_same() -> None:
    run = played()
    after = ruled(came_to(run), "F005", **GIVEN)
    moved = ruling_event(run, after.line)
    full = applied(run, moved)
    assert concluded(started(), full.records, (after.line,), "rec-1") == after.document == came_to(full)
    assert concluded(started(), run.records, (), "rec-1") == came_to(run)
    other = {**after.line, "ruling": "No."}
    for records, lines in (
        (full.records, ()),
        (run.records, (after.line,)),
        (full.records, (other,)),
        (full.records, ({**after.line, "actor": "human:other"},)),
        (full.records, ({**after.line, "previous_item": "sha256:" + "0" * 64},)),
        (full.records, (after.line, after.line)),
    ):
        with pytest.raises(Refused) as refused:
            concluded(started(), records, lines, "rec-1")
        assert refused.value.code == "E_REVIEW_DECISION"


def test_a_crash_between_the_two_records_is_made_up_for() -> None:
    run = played()
    line = ruled(came_to(run), "F005", **GIVEN).line
    (missing,) = owed(run, (line,))
    assert missing == ruling_event(run, line)
    assert owed(applied(run, missing), (line,)) == []
    assert owed(run, ()) == []


def test_nobody_but_the_operator_makes_that_move() -> None:
    for role in ("host", "reviewer", "runner"):
        with pytest.raises(Refused) as refused:
            go(played(), "F005", "resolved", {"question": "Q?", "ruling": "R."}, role)
        assert refused.value.code == "E_REVIEW_ROLE"
