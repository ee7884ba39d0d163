"""A round with the reviewer: the contest is sent, the reply is validated, what is new in it is computed (§7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troth.airlock.reviewing import finishing
from troth.airlock.reviewing.running import RUNNER, Asking, call, check_means, heard, told_of
from troth.airlock.reviewing.session import Call, Session, Step
from troth.backends.asking import ask
from troth.backends.instruction import compose_rebuttal
from troth.backends.protocol import Backend
from troth.core.canonical import record_bytes
from troth.core.errors import Refused
from troth.review.context import shown
from troth.review.rules import RULES
from troth.review.run import stopped
from troth.review.validate import validate


def contest_document(session: Session, finding_id: str) -> bytes:
    """Return what the reviewer is sent: its finding, what its anchors point at, the host's reason and verifications."""
    finding, case = session.finding(finding_id), session.case(finding_id)
    passages = []
    for entry in finding["evidence"]:
        told = shown(entry["anchor"], session.artifact).as_json()
        passages.append({"anchor": entry["anchor"], "state": told["state"], "passages": told["passages"]})
    return record_bytes({
        "review_id": session.id,
        "artifact": {"kind": session.setup.kind, "revision": dict(session.setup.revision)},
        "finding": finding,
        "anchored": passages,
        "host_position": case.host_position,
        "verification": [dict(entry) for entry in case.verification],
        **({"reviewer_position": case.reviewer_position} if case.reviewer_position else {}),
    })  # fmt: skip


def check_room(session: Session, finding_id: str) -> None:
    """Refuse to begin a round whose contest deadline or budget does not leave room for.

    Raises:
        Refused: ``E_REVIEW_SPENT`` with the bound as its detail.
    """
    leaving = len(contest_document(session, finding_id)) + len(compose_rebuttal().encode())
    check_means(session.setup.limits.bounds, session.spent, leaving)


def open_round(session: Session, finding_id: str, actor: str) -> None:
    """Begin a round for a contested finding, or take up one whose answer did not come.

    Raises:
        Refused: ``E_REVIEW_DONE`` where no round is open to it, ``E_REVIEW_SPENT`` when nothing is left to spend: what
            is contested waits for the operator then, and that is recorded.
    """
    case = session.case(finding_id)
    if session.exhausted is not None:
        stop(session)
        raise Refused(
            "E_REVIEW_SPENT",
            f"the run's {session.exhausted} is spent; what is contested waits for a person now",
            remedy=f"See: troth review status {session.id}",
            detail=session.exhausted,
        )
    if case.state == "reviewer_rebuttal" and case.reply is None:
        return
    if case.state != "contested":
        raise Refused(
            "E_REVIEW_DONE", f"{finding_id} is {case.state}; only a contested finding goes back to the reviewer",
            remedy=f"See: troth review next {finding_id} --review {session.id}",
        )  # fmt: skip
    check_room(session, finding_id)

    spent = session.spent
    basis = {"spent": {"seconds": spent.seconds, "bytes": spent.bytes, "tokens": spent.tokens}}
    session.record(Step(finding_id, "reviewer_rebuttal", basis, actor))


def send_contest(session: Session, finding_id: str, backend: Backend, instruction: str, asking: Asking = ask) -> None:
    """Ask the reviewer about a contested finding whose round is open, and take the reply.

    Raises:
        Refused: ``E_REVIEW_SPENT``, ``E_WRITE_FAILED``.
    """

    def judge(document: dict[str, Any]) -> str | None:
        found = replied(session, finding_id, document)
        return found if isinstance(found, str) else None

    call(
        session, backend, instruction, contest_document(session, finding_id), wanted="rebuttal", judge=judge,
        about=finding_id, asking=asking,
    )  # fmt: skip
    take_reply(session, finding_id)
    finishing.settle(session)


def replied(session: Session, finding_id: str, document: Mapping[str, Any]) -> list[str] | str:
    """Return the paths of a reply's evidence that resolves nowhere, or a sentence that says why it is no reply."""
    report = validate(record_bytes(document), kind="rebuttal", artifact=session.artifact)
    for violation in report.violations:
        if RULES[violation.rule].level != "L3":
            return told_of(violation)
    if document["finding_id"] != finding_id:
        return f"it is about another finding than {finding_id}"
    return sorted({violation.path.partition(".anchor")[0] for violation in report.violations})


def take_reply(session: Session, finding_id: str) -> None:
    """Record the kept reply of the open round, unless it is recorded already; a retracted finding is withdrawn."""
    case = session.case(finding_id)
    if case.state != "reviewer_rebuttal":
        return
    last = last_call(session, finding_id)
    if case.reply is None:
        if last is None or last.answer is None or last.failure is not None:
            return
        reply = heard(session, last, "rebuttal")
        unresolved = replied(session, finding_id, reply)
        if isinstance(unresolved, str):  # it was judged when it came
            raise Refused("E_REVIEW_UNREADABLE", f"the kept reply about {finding_id} is none: {unresolved}")
        basis = {"reply": reply, "call": last.number, "unresolved": unresolved}
        reviewer = f"agent:{session.setup.backend['name']}"
        session.record(Step(finding_id, None, basis, reviewer, "reviewer", "reply"))
    if session.case(finding_id).reply == "withdraw":
        session.record(Step(finding_id, "withdrawn", {}, RUNNER, "runner"))
        finishing.settle(session)


def last_call(session: Session, finding_id: str) -> Call | None:
    """Return the call of the finding's open round, ``None`` before it was sent.

    A round begins with the move that opens it; a call that is older belongs to an earlier round.
    """
    rounds = session.case(finding_id).rounds
    replies = sum(
        record["event"] == "reply" and record["finding_id"] == finding_id for record in session.started().records
    )
    calls = [call for call in session.calls if call.purpose == "rebuttal" and call.about == finding_id]
    told = [record["basis"].get("call") for record in session.started().records if record["event"] == "reply"]
    open_calls = [call for call in calls if call.number not in told]
    return open_calls[-1] if rounds > replies and open_calls else None


def stop(session: Session) -> None:
    """Let what is contested wait for the operator, once deadline or budget is spent (§7)."""
    run = session.started()
    after = stopped(run, session.spent, session.now(), RUNNER)
    session.keep(after)
    finishing.settle(session)
