"""A reconciliation as it goes: its events recorded and replayed, its outcome, the document it ends in (§§3-8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from troth.core.canonical import record_bytes
from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.review.artifact import Artifact
from troth.review.formats import instant
from troth.review.machine import PERSISTED, Bounds, Case, Spent, labelled, moved, opened, replied, verified
from troth.review.panel import unreviewed as left_out
from troth.review.shapes import FAILURE_CODES
from troth.review.validate import validate

MEMBERS: Final = ("time", "actor", "role", "finding_id", "event", "from", "to", "basis")
"""Members of a record: each event of a finding is one line of JSON."""

EVENTS: Final = ("move", "label", "verify", "reply")
_LINE: Final = Limits(max_bytes=1 << 22, max_depth=64, refuse_overflow=True)

CODES: Final[Mapping[str, str]] = {
    "artifact_unavailable": "The artifact is no longer what was reviewed, or nothing binds the review to bytes.",
}


class End(NamedTuple):
    """What an outcome comes to: exit status, colour, sentence."""

    exit: int
    colour: str
    says: str


ENDS: Final[Mapping[str, End]] = {
    "failed": End(3, "red", "The review failed; nothing was established."),
    "incomplete": End(3, "yellow", "The review is incomplete: not everything was looked at."),
    "deadlocked": End(4, "yellow", "A person must decide."),
    "converged": End(0, "green", "Every finding is settled."),
}
"""Outcome -> what it comes to, in the order in which outcomes are decided (§6). Only ``converged`` is a success."""


def outcome(*, failed: bool, undone: bool, deadlocked: bool) -> str:
    """Return the outcome of a run: the first that applies of failed, incomplete, deadlocked, converged (§6)."""
    return next(name for name, applies in zip(ENDS, (failed, undone, deadlocked, True), strict=True) if applies)


@dataclass(frozen=True, slots=True)
class Run:
    """A reconciliation under way: the review, its bounds, every finding, and the records that led here."""

    review: Mapping[str, Any]
    bounds: Bounds
    cases: Mapping[str, Case]
    records: tuple[Mapping[str, Any], ...] = ()

    @property
    def rounds_used(self) -> int:
        """The largest number of rounds spent on any one finding (§7)."""
        return max((case.rounds for case in self.cases.values()), default=0)


def begun(review: Mapping[str, Any], artifact: Artifact, bounds: Bounds | None = None) -> Run:
    """Return a run on a valid review of the artifact as it was kept.

    Raises:
        Refused: ``artifact_unavailable`` when the review is not bound to these bytes by sha256; nothing is restamped.
    """
    revision = review["artifact"]["revision"]
    if revision["algorithm"] != "sha256" or revision["value"].lower() != artifact.digest:
        raise Refused(
            "artifact_unavailable",
            f"the review is about {revision['algorithm']} {revision['value']}, the artifact is {artifact.digest}",
            remedy="Reconcile against the bytes that were reviewed, or have these reviewed.",
        )
    cases = {finding["id"]: opened(finding) for finding in review["findings"]}
    return Run(review, bounds or Bounds(), cases)


def event(
    case: Case, to: str, basis: Mapping[str, Any], *, time: str, actor: str, role: str, kind: str = "move"
) -> dict[str, Any]:
    """Return the record of an event of a finding; everything but a move leaves it in its state."""
    return {
        "time": time, "actor": actor, "role": role, "finding_id": case.finding_id, "event": kind,
        "from": case.state, "to": to, "basis": dict(basis),
    }  # fmt: skip


def applied(run: Run, record: Mapping[str, Any]) -> Run:
    """Return the run after one record.

    Raises:
        Refused: ``E_REVIEW_RECORD`` for what is no record or does not fit; the machine's codes for an illegal event.
    """
    _check_record(run, record)
    case = run.cases[record["finding_id"]]
    kind, role, basis = record["event"], record["role"], record["basis"]
    if kind == "move":
        case = moved(case, record["to"], role, basis, run.bounds)
    elif kind == "label":
        case = labelled(case, role, basis)
    elif kind == "verify":
        case = verified(case, role, basis)
    else:
        report = validate(record_bytes(basis.get("reply")), kind="rebuttal")
        if report.violations:
            raise Refused("E_REVIEW_BASIS", f"the reply breaks {report.violations[0].rule}", detail="reply")
        case = replied(case, role, basis)
    return replace(run, cases={**run.cases, case.finding_id: case}, records=(*run.records, record))


def _check_record(run: Run, record: Mapping[str, Any]) -> None:
    if not isinstance(record, dict) or set(record) != set(MEMBERS) or not isinstance(record["basis"], dict):
        raise Refused("E_REVIEW_RECORD", f"a record has exactly {', '.join(MEMBERS)}")
    try:
        record_bytes(record)
    except (ValueError, TypeError, RecursionError):
        raise Refused("E_REVIEW_RECORD", "the record holds what no JSON text can") from None
    texts = [record[name] for name in MEMBERS if name != "basis"]
    if not all(isinstance(text, str) and text for text in texts) or instant(record["time"]) is None:
        raise Refused("E_REVIEW_RECORD", "a member of the record is no text, or its time is no date-time")
    case = run.cases.get(record["finding_id"])
    if case is None:
        raise Refused("E_REVIEW_RECORD", f"the review has no finding {record['finding_id']}")
    if record["event"] not in EVENTS:
        raise Refused("E_REVIEW_RECORD", f"{record['event']!r} is no event")
    if record["from"] != case.state or (record["event"] != "move" and record["to"] != case.state):
        raise Refused("E_REVIEW_RECORD", f"{case.finding_id} is {case.state}, and the record has it otherwise")


def replay(run: Run, records: Iterable[Mapping[str, Any]]) -> Run:
    """Return the run after all records; the same records give the same run.

    Raises:
        Refused: as :func:`applied`, with the number of the record from 1 as the line.
    """
    for number, record in enumerate(records, 1):
        try:
            run = applied(run, record)
        except Refused as fault:
            fault.place = Place(line=number)
            raise
    return run


def record_line(record: Mapping[str, Any]) -> bytes:
    """Return the line of a record."""
    return record_bytes(record)


def read_records(data: bytes) -> list[Any]:
    """Return the records of JSON Lines.

    Raises:
        Refused: ``E_REVIEW_RECORD`` with the line that is no JSON.
    """
    found = []
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n") if data else (), 1):
        try:
            found.append(loads(line, _LINE))
        except JsonFault as fault:
            raise Refused("E_REVIEW_RECORD", fault.message, place=Place(line=number)) from None
    return found


# --- ends ---


def stopped(run: Run, spent: Spent, time: str, actor: str) -> Run:
    """Return the run after deadline or budget ended: what is contested waits for the operator (§7).

    Findings that were not contested yet stay where they are, and make the run incomplete.

    Raises:
        ValueError: something is left to spend.
    """
    bound = spent.exhausts(run.bounds)
    if bound is None:
        raise ValueError("deadline and budget are not exhausted")
    for case in list(run.cases.values()):
        if case.state not in ("contested", "reviewer_rebuttal"):
            continue
        claim = next(finding["claim"] for finding in run.review["findings"] if finding["id"] == case.finding_id)
        escalation = {
            "dispute_kind": case.kind or _dispute(case),
            "stop_reason": "budget_limit",
            "operator_question": f"Does this finding stand: {claim}",
            **({} if case.reviewer_position else {"reviewer_position": claim}),
        }
        basis = {
            "escalation": escalation,
            "spent": {"seconds": spent.seconds, "bytes": spent.bytes, "tokens": spent.tokens},
        }
        run = applied(run, event(case, "deadlocked", basis, time=time, actor=actor, role="runner"))
    return run


def _dispute(case: Case) -> str:
    """Return the kind of dispute that the verifications themselves show."""
    from troth.review.relations import counting

    supports, contradicts = (bool(counting(case.verification, result)) for result in ("supports", "contradicts"))
    if supports and contradicts:
        return "evidence_conflict"
    return "interpretation_difference" if supports or contradicts else "evidence_gap"


def result(
    run: Run,
    reconciliation_id: str,
    *,
    failure: Mapping[str, Any] | None = None,
    unreviewed: Sequence[str] = (),
    started_at: str | None = None,
    completed_at: str | None = None,
) -> dict[str, Any]:
    """Return the reconciliation that the run comes to, as it stands now.

    Args:
        run: the run.
        reconciliation_id: the document's id.
        failure: what failed, with one of the nine codes; it makes the outcome ``failed``.
        unreviewed: parts of the artifact that were not looked at, each as a sentence for ``limitations``; seats of a
            panel and chunks that failed are told without it.
        started_at: first instant, RFC 3339.
        completed_at: last instant, RFC 3339.

    Raises:
        ValueError: a failure of an unknown code.
    """
    if failure is not None and failure["code"] not in FAILURE_CODES:
        raise ValueError(failure["code"])
    unreviewed = [*left_out(run.review), *unreviewed]
    limits = [*run.review.get("limitations", ()), *unreviewed]
    undone = bool(unreviewed)
    if run.review["assessment"] == "unable_to_assess":
        undone = True
        limits.append("The reviewer was unable to assess the artifact.")
    items = []
    for finding in run.review["findings"]:
        case = run.cases[finding["id"]]
        if case.state in PERSISTED:
            items.append(_item(case))
        else:
            undone = True
            limits.append(f"{case.finding_id} was not reconciled: the run stopped while it was {case.state}.")
    decided = outcome(
        failed=failure is not None, undone=undone, deadlocked=any(item["state"] == "deadlocked" for item in items)
    )
    document: dict[str, Any] = {
        "schema_version": "1.0",
        "reconciliation_id": reconciliation_id,
        "review_id": run.review["review_id"],
        "artifact_revision": dict(run.review["artifact"]["revision"]),
        "outcome": decided,
        "rounds_used": run.rounds_used,
        "items": items,
    }
    given = {"started_at": started_at, "completed_at": completed_at, "failure": failure}
    document |= {name: value for name, value in given.items() if value is not None}
    if limits:
        document["limitations"] = limits
    return document


def _item(case: Case) -> dict[str, Any]:
    item: dict[str, Any] = {"finding_id": case.finding_id, "state": case.state}
    for name in ("host_position", "reviewer_position", "resolution", "escalation"):
        value = getattr(case, name)
        if value is not None:
            item[name] = value
    if case.verification:
        item["verification"] = [dict(entry) for entry in case.verification]
    return item
