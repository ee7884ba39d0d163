"""How a run ends: the reconciliation computed from the records, held against every rule, kept with its forerunners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troth.airlock.reviewing.session import Session
from troth.core.canonical import record_bytes
from troth.core.errors import Defect
from troth.review.decisions import by_finding, concluded, read_lines
from troth.review.formats import instant
from troth.review.run import begun
from troth.review.validate import validate
from troth.stores.reviews import DECISIONS, RECONCILIATION, RESPONSE


def reconciliation(session: Session) -> dict[str, Any]:
    """Return the reconciliation that the records come to as they stand; the same records give the same document.

    Raises:
        Refused: ``E_REVIEW_DECISION``, ``E_DECISIONS_UNREADABLE`` when log and record of decisions do not agree.
    """
    identifier = f"{session.id}-result"
    if session.run is None:
        return _failed(session, identifier)
    assert session.response is not None
    document = concluded(
        begun(session.response, session.artifact, session.setup.limits.bounds),
        session.run.records,
        decisions(session),
        identifier,
        unreviewed=tuple(session.setup.unreviewed),
        started_at=session.setup.created,
        completed_at=_completed(session),
    )
    limits = [*document.get("limitations", ()), *_unanswered(session)]
    if (bound := session.exhausted) is not None and document["outcome"] == "incomplete":
        limits.append(f"The run's {bound} was spent.")
    if limits:
        document["limitations"] = limits
    if session.setup.extensions:
        document["extensions"] = dict(session.setup.extensions)
    return document


def decisions(session: Session) -> tuple[dict[str, Any], ...]:
    """Return the operator's decisions on record.

    Raises:
        Refused: ``E_DECISIONS_UNREADABLE``.
    """
    return read_lines(session.folder.lines(DECISIONS))


def _unanswered(session: Session) -> list[str]:
    """Return a sentence for each contest that the reviewer never answered."""
    assert session.run is not None
    answered = {record["finding_id"] for record in session.run.records if record["event"] == "reply"}
    told: dict[str, str] = {}
    for call in session.calls:
        if call.purpose == "rebuttal" and call.about is not None and call.about not in answered:
            why = call.failure["code"] if call.failure is not None else "the answer was lost"
            told[call.about] = f"The reviewer never answered the contest of {call.about}: {why}."
    return list(told.values())


def _completed(session: Session) -> str:
    times = [session.setup.created]
    times += [call.answer["time"] for call in session.calls if call.answer is not None]
    if session.run is not None:
        times += [record["time"] for record in session.run.records]
    times += [line["time"] for line in decisions(session)]
    # A machine's clock may have been set back meanwhile; the end is never told to be before the start.
    return max(times, key=lambda text: instant(text) or (0, ""))


def failure_of(session: Session) -> Mapping[str, Any]:
    """Return why a run without a response has none."""
    last = next((call for call in reversed(session.calls) if call.purpose == "review"), None)
    if last is not None and last.failure is not None:
        return last.failure
    said = "the run was given up before the reviewer answered" if last is None else "the reviewer's answer was lost"
    return {"code": "cancelled", "message": said, "retryable": True}


def _failed(session: Session, identifier: str) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "reconciliation_id": identifier,
        "review_id": session.id,
        "artifact_revision": dict(session.setup.revision),
        "outcome": "failed",
        "rounds_used": 0,
        "items": [],
        "failure": dict(failure_of(session)),
        "started_at": session.setup.created,
        "completed_at": _completed(session),
    }


def save(session: Session) -> dict[str, Any]:
    """Compute the reconciliation, hold it against every rule at every level, and keep it; an earlier one is archived.

    Raises:
        Defect: ``E_REVIEW_RESULT`` when it breaks a rule; it is not saved then, and what stood there stays.
        Refused: ``E_WRITE_FAILED``.
    """
    document = reconciliation(session)
    data = record_bytes(document)
    report = validate(
        data,
        kind="reconciliation",
        artifact=session.artifact,
        review=session.response,
        decided=by_finding(decisions(session)),
    )
    if report.violations:
        broken = report.violations[0]
        raise Defect(
            "E_REVIEW_RESULT",
            f"the result breaks {broken.rule} at {broken.path}: {broken.message}; it was not saved",
            detail=[violation.rule for violation in report.violations],
        )
    if session.folder.has(RECONCILIATION):
        if session.folder.read(RECONCILIATION) == data:
            return document
        session.folder.archive(RECONCILIATION)
    session.folder.write(RECONCILIATION, data)
    return document


def settle(session: Session) -> dict[str, Any] | None:
    """Keep the reconciliation when every finding is settled, or an earlier one no longer tells the truth."""
    if session.settled or (session.run is not None and session.folder.has(RECONCILIATION)):
        return save(session)
    if session.run is None and not session.folder.has(RESPONSE) and session.calls and session.calls[-1].failure:
        return save(session)
    return None
