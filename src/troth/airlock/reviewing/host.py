"""The host's moves: a finding is labelled, verified, accepted, rejected, resolved, contested, escalated (§3, §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from troth.airlock.reviewing import finishing
from troth.airlock.reviewing.session import Session, Step
from troth.core.errors import Refused
from troth.review.machine import LABELLING, VERIFYING, Case
from troth.review.relations import counting

MOST_TEXT: Final = 20_000
"""Longest text that a host may give, in characters."""


def text_of(text: str | None, what: str) -> str | None:
    """Return a text that may stand in a record.

    Raises:
        Refused: ``E_USAGE`` for one that is empty, too long, or no text.
    """
    if text is None:
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("E_NOT_TEXT", f"{what} is not UTF-8") from None
    if not text.strip() or len(text) > MOST_TEXT:
        raise Refused("E_USAGE", f"{what} has between 1 and {MOST_TEXT} characters that can be seen")
    return text


def triage(session: Session, finding_id: str, label: str, dispute_kind: str | None, actor: str) -> None:
    """Label a finding and open it for verification; a later call relabels it.

    Raises:
        Refused: ``E_REVIEW_FINDING``, ``E_REVIEW_SPENT`` for one that was not begun when the run's means ended (§7),
            and the machine's codes.
    """
    case = session.case(finding_id)
    basis = {"label": label, **({"dispute_kind": dispute_kind} if dispute_kind is not None else {})}
    if case.state == "reviewed":
        if (bound := session.exhausted) is not None:
            raise Refused(
                "E_REVIEW_SPENT",
                f"the run's {bound} is spent, so {finding_id} is not begun any more",
                remedy=f"End the run, which is incomplete then: troth review finish {session.id}",
                detail=bound,
            )
        session.record(
            Step(finding_id, "finding_triage", basis, actor), Step(finding_id, "evidence_verification", {}, actor)
        )
        return
    steps = []
    if (case.label, case.kind) != (label, dispute_kind) or case.state not in LABELLING:  # where the machine refuses it
        steps.append(Step(finding_id, None, basis, actor, kind="label"))
    if case.state == "finding_triage":
        steps.append(Step(finding_id, "evidence_verification", {}, actor))
    session.record(*steps)


def new_evidence(session: Session, finding_id: str) -> list[tuple[Mapping[str, Any], str, bool]]:
    """Return what the reviewer's last reply brought: each evidence, its key, whether it waits to be verified."""
    from troth.review.machine import evidence_key

    case = session.case(finding_id)
    replies = [
        record["basis"]["reply"]
        for record in session.started().records
        if record["finding_id"] == finding_id and record["event"] == "reply"
    ]
    if not replies or case.state != "reviewer_rebuttal":
        return []
    keys = [(entry, evidence_key(entry)) for entry in replies[-1]["evidence"]]
    return [(entry, key, key in case.fresh) for entry, key in keys]


def verify(
    session: Session,
    finding_id: str,
    verification: Mapping[str, Any],
    actor: str,
    *,
    of: Sequence[int] = (),
    facts: Mapping[str, Any] | None = None,
) -> bool:
    """Record a verification; the very same one is not recorded twice.

    Args:
        session: the run.
        finding_id: what it is about.
        verification: ``method``, ``result``, perhaps ``detail``.
        actor: who verified.
        of: which of the reviewer's new evidence it is about, from 1; where there is but one, that one.
        facts: what makes it re-runnable, kept beside it: ``run``, ``anchor``, ``absent`` and the like.

    Returns:
        Whether it was recorded; ``False`` when it stood there already.

    Raises:
        Refused: ``E_REVIEW_FINDING``, ``E_USAGE`` for evidence that is not there, and the machine's codes.
    """
    case = session.case(finding_id)
    brought = new_evidence(session, finding_id)
    keys = _about(brought, of)
    entry = {name: value for name, value in verification.items() if value is not None}
    basis: dict[str, Any] = {"verification": entry, **(facts or {})}
    if not set(keys) & case.fresh and basis in _recorded(session, finding_id):
        return False
    if keys:
        basis["of"] = keys
    session.record(*_opened(case, actor), Step(finding_id, None, basis, actor, kind="verify"))
    return True


def _recorded(session: Session, finding_id: str) -> list[dict[str, Any]]:
    """Return what is on record of a finding's verifications, but for the evidence that each was about."""
    return [
        {name: value for name, value in record["basis"].items() if name != "of"}
        for record in session.started().records
        if record["event"] == "verify" and record["finding_id"] == finding_id
    ]


def _about(brought: Sequence[tuple[Mapping[str, Any], str, bool]], of: Sequence[int]) -> list[str]:
    if not of:
        return [brought[0][1]] if len(brought) == 1 else []
    if any(not 1 <= number <= len(brought) for number in of):
        raise Refused("E_USAGE", f"the reviewer's last reply has {len(brought)} pieces of evidence")
    return list(dict.fromkeys(brought[number - 1][1] for number in of))


def _opened(case: Case, actor: str) -> list[Step]:
    """Return the step that was left out where a crash came between triage and verification."""
    return [Step(case.finding_id, "evidence_verification", {}, actor)] if case.state == "finding_triage" else []


def already_run(session: Session, finding_id: str, argv: Sequence[str], tree: str) -> Mapping[str, Any] | None:
    """Return the record of a command that ran for this finding on this very tree, or ``None``."""
    for record in session.started().records:
        ran = record["basis"].get("run") if record["event"] == "verify" else None
        if (
            isinstance(ran, dict)
            and record["finding_id"] == finding_id
            and ran.get("argv") == list(argv)
            and ran.get("tree_sha256") == tree
        ):
            return record
    return None


def may_verify(case: Case) -> None:
    """Refuse where nothing is verified in the finding's state, before anything is run for it.

    Raises:
        Refused: ``E_REVIEW_TRANSITION``.
    """
    if case.state not in (*VERIFYING, "finding_triage"):
        first = "; label it first with `troth review triage`" if case.state == "reviewed" else ""
        raise Refused("E_REVIEW_TRANSITION", f"{case.finding_id} is {case.state} and cannot be verified{first}")


def conclude(
    session: Session,
    finding_id: str,
    target: str,
    basis: Mapping[str, Any],
    actor: str,
    *,
    unverifiable: str | None = None,
) -> dict[str, Any] | None:
    """Move a finding to what the host concludes, by way of ``host_response``; the result is kept when it was the last.

    Args:
        session: the run.
        finding_id: which finding.
        target: ``accepted``, ``rejected``, ``resolved``, ``contested`` or ``deadlocked``.
        basis: ``host_position``, ``resolution``, ``escalation`` as the move needs them.
        actor: who concludes.
        unverifiable: why nothing can verify it, where no verification is recorded.

    Returns:
        The reconciliation when one was kept.

    Raises:
        Refused: ``E_REVIEW_FINDING`` and the machine's codes; nothing was recorded.
    """
    case = session.case(finding_id)
    if case.state == "reviewed":
        raise Refused(
            "E_REVIEW_TRANSITION",
            f"{finding_id} cannot go from reviewed to {target}: it was neither labelled nor verified",
            remedy=f"First: troth review triage {finding_id} checkable|judgment",
        )
    steps = _opened(case, actor)
    if case.state in ("finding_triage", "evidence_verification"):
        why = {"unverifiable": unverifiable} if unverifiable is not None else {}
        steps.append(Step(finding_id, "host_response", why, actor))
    session.record(*steps, Step(finding_id, target, basis, actor))
    return finishing.settle(session)


def escalation(
    session: Session,
    finding_id: str,
    *,
    question: str,
    position: str | None = None,
    reviewer_position: str | None = None,
    dispute_kind: str | None = None,
    stop_reason: str | None = None,
) -> dict[str, Any]:
    """Return the escalation of a finding; kind and reason are computed from the records where they are not given.

    Raises:
        Refused: ``E_REVIEW_BASIS`` for a stop reason that the records belie.
    """
    case = session.case(finding_id)
    reason = stop_reason or _stop_reason(session, case)
    if reason == "budget_limit" and not _spent(session, finding_id):
        raise Refused("E_REVIEW_BASIS", f"{finding_id}: deadline and budget are not spent", detail="stop_reason")
    if reason == "round_limit" and not (case.rounds and case.news):
        raise Refused(
            "E_REVIEW_BASIS",
            f"{finding_id}: the limit of rounds stops what still brings new evidence, and nothing new came",
            detail="stop_reason",
        )
    held = {
        "dispute_kind": dispute_kind or case.kind or dispute_of(case),
        "stop_reason": reason,
        "operator_question": question,
    }
    if position is not None:
        held["host_position"] = position
    theirs = reviewer_position or (None if case.reviewer_position else session.finding(finding_id)["claim"])
    if theirs is not None:
        held["reviewer_position"] = theirs
    return held


def _spent(session: Session, finding_id: str) -> bool:
    """Tell whether deadline or budget leaves no room to ask the reviewer about a finding."""
    from troth.airlock.reviewing.rebutting import check_room

    try:
        check_room(session, finding_id)
    except Refused:
        return True
    return False


def _stop_reason(session: Session, case: Case) -> str:
    if case.label == "judgment":
        return "operator_authority_required"
    if _spent(session, case.finding_id):
        return "budget_limit"
    if case.rounds and case.news:
        return "round_limit"
    if not any(counting(case.verification, result) for result in ("supports", "contradicts")):
        return "verification_unavailable"
    return "no_new_information"


def dispute_of(case: Case) -> str:
    """Return the kind of dispute that the verifications themselves show (§7)."""
    supports, contradicts = (bool(counting(case.verification, result)) for result in ("supports", "contradicts"))
    if supports and contradicts:
        return "evidence_conflict"
    return "interpretation_difference" if supports or contradicts else "evidence_gap"
