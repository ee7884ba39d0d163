"""The operator's questions of a run, put only as a whole, and rulings on them made durable (Impasse spec, §8).

A ruling stands in three places: the record of decisions, the log of events, the reconciliation. It is written in that
order, and the record of decisions alone is enough to make the others anew after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from troth.airlock.reviewing import finishing
from troth.core.canonical import record_bytes
from troth.core.errors import Refused
from troth.review.decisions import Question, open_questions, owed, ruled, ruling_event, unverifiable_of
from troth.review.shapes import DISPUTE_KINDS, SEVERITIES
from troth.stores.reviews import DECISIONS, RECONCILIATION, RESPONSE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from troth.airlock.reviewing.session import Session

MOST_RULING: Final = 4000
"""Characters of a ruling, a question as it was put, or a reason."""


def require_named(actor: str, environment: Mapping[str, str]) -> None:
    """Refuse to take the login for a person's word where the surroundings tell of an agent: it runs under that login.

    Args:
        actor: who would act because nobody was named.
        environment: of the process.

    Raises:
        Refused: ``E_REVIEW_ROLE``.
    """
    from troth.backends.independence import detect
    from troth.ledger.values import is_human

    host = detect(environment)
    if host.markers and is_human(actor):
        raise Refused(
            "E_REVIEW_ROLE",
            f"{', '.join(host.markers)} says that an agent is at work here, so {actor} is not taken for who decides",
            remedy="Name the person who decided with --as human:NAME.",
        )


def questions(session: Session) -> tuple[Question, ...]:
    """Return every open question of a run, complete, in the order of the findings; nothing in part.

    Raises:
        Refused: ``E_REVIEW_VIEW``; ``E_REVIEW_NO_RESPONSE`` for a run without a response.
    """
    run = session.started()
    lines = finishing.decisions(session)
    # What is stored is what is judged; a run that is still at work has stored nothing yet, and is told as it stands.
    folder = session.folder
    stored = folder.has(RECONCILIATION) and not owed(run, lines)
    document = folder.read(RECONCILIATION) if stored else record_bytes(finishing.reconciliation(session))
    found = open_questions(
        folder.read(RESPONSE),
        document,
        session.artifact,
        unverifiable=unverifiable_of(run.records),
        decisions=lines,
    )
    waiting = {name for name, case in run.cases.items() if case.state == "deadlocked"}
    if waiting != {asked.finding_id for asked in found}:
        raise Refused(
            "E_REVIEW_VIEW",
            "the stored reconciliation and the records tell different open questions; none is shown",
            detail="reconciliation",
            remedy="`troth review resume` makes the reconciliation anew from the records.",
        )
    return found


def gravest_first(asked: Sequence[Question]) -> tuple[Question, ...]:
    """Return the questions as a person is to meet them: by severity, those of one kind of dispute together."""
    return tuple(
        sorted(
            asked, key=lambda one: (SEVERITIES.index(one.finding["severity"]), DISPUTE_KINDS.index(one.dispute_kind))
        )
    )


def decide(
    session: Session,
    finding_id: str,
    ruling: str,
    *,
    actor: str,
    channel: str,
    question: str | None = None,
    reason: str | None = None,
) -> dict[str, Any]:
    """Record the operator's ruling on one finding and return the reconciliation after it. The caller holds the run.

    Args:
        session: the run.
        finding_id: a finding that waits for the operator, or one that an operator decided before (a correction).
        ruling: what is ruled.
        actor: who decides; a person.
        channel: by which way it came.
        question: as it was actually put; the escalation's own otherwise.
        reason: why an earlier ruling is corrected.

    Raises:
        Refused: ``E_REVIEW_ROLE`` for anybody but a person; ``E_REVIEW_DECISION``; ``E_REVIEW_VIEW`` when what had to
            be seen before is not there; ``E_NOT_TEXT``; ``E_WRITE_FAILED``.
    """
    from troth.ledger.values import is_human

    if not is_human(actor):
        raise Refused(
            "E_REVIEW_ROLE",
            f"{actor} is no person, and only a person decides what is open",
            remedy="Name the person who decided with --as human:NAME.",
        )
    for name, text in (("ruling", ruling), ("question", question), ("reason", reason), ("actor", actor)):
        if text is not None and len(text) > MOST_RULING:
            raise Refused("E_REVIEW_DECISION", f"the {name} has more than {MOST_RULING} characters", detail=name)
        if text is not None and not _is_utf8(text):
            raise Refused("E_NOT_TEXT", f"the {name} is not UTF-8, so no record can hold it")
    held = session.started()
    session.take_up(owed(held, finishing.decisions(session)))
    asked = {one.finding_id: one for one in questions(session)}
    before = finishing.reconciliation(session)
    if question is None:
        question = asked[finding_id].question if finding_id in asked else _put(before, finding_id)
    after = ruled(
        before, finding_id, question=question, ruling=ruling, time=session.now(), actor=actor, channel=channel,
        reason=reason,
    )  # fmt: skip
    session.folder.append(DECISIONS, record_bytes(after.line))
    if finding_id in asked:
        session.take_up([ruling_event(session.started(), after.line)])
    finishing.settle(session)
    return finishing.reconciliation(session)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _put(document: dict[str, Any], finding_id: str) -> str:
    """Return the question as it was put when the finding was decided before."""
    for item in document["items"]:
        if item["finding_id"] == finding_id and "escalation" in item:
            return str(item["escalation"]["operator_question"])
    raise Refused("E_REVIEW_DECISION", f"{finding_id} waits for nobody, and nobody decided it", detail="closed")
