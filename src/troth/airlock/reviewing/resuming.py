"""A run taken up where a crash or a limit left it: what is on record is brought to its end, nothing is asked twice."""

from __future__ import annotations

from dataclasses import dataclass

from troth.airlock.reviewing import finishing
from troth.airlock.reviewing.rebutting import stop, take_reply
from troth.airlock.reviewing.running import take
from troth.airlock.reviewing.session import Session
from troth.review.decisions import owed


@dataclass(frozen=True, slots=True)
class Resumed:
    """What was mended, a sentence each, and whether the reviewer is to be asked (again) for the review itself."""

    mended: tuple[str, ...]
    unanswered: bool


def resume(session: Session) -> Resumed:
    """Bring everything that is on record to its end. Nothing is sent.

    An answer that was kept is taken, a reply that was kept is recorded, a decision on record gets its event, contests
    go to the operator once deadline or budget is spent, and a result that is due is kept.

    Raises:
        Refused: what is on record was changed; ``E_WRITE_FAILED``.
    """
    mended = []
    answered = any(call.answer is not None for call in session.calls if call.purpose == "review")
    # First: until the log has every decision, nothing can be computed from it.
    if session.run is not None and (missing := owed(session.run, finishing.decisions(session))):
        session.take_up(missing)
        mended.append(f"{len(missing)} of the operator's decisions were entered in the log")
    before = _mark(session)
    take(session)
    if _mark(session) != before:
        mended.append("the reviewer's answer was taken")
    if session.run is None:
        return Resumed(tuple(mended), unanswered=not answered and not session.finished)
    for case in list(session.run.cases.values()):
        before = _mark(session)
        take_reply(session, case.finding_id)
        if _mark(session) != before:
            mended.append(f"the reviewer's reply about {case.finding_id} was taken")
    if session.exhausted is not None:
        before = _mark(session)
        stop(session)
        if _mark(session) != before:
            mended.append("what was contested waits for the operator: nothing is left to spend")
    kept = session.finished
    finishing.settle(session)
    if session.finished and not kept:
        mended.append("the result was kept")
    return Resumed(tuple(mended), unanswered=False)


def _mark(session: Session) -> tuple[int, bool]:
    return (len(session.run.records) if session.run is not None else -1, session.finished)
