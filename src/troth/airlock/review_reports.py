"""The report of a run: what its folder holds, handed to the protocol's own words (Impasse spec, §11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from troth.review.report import About, Report, report

if TYPE_CHECKING:
    from troth.airlock.reviewing.session import Session


def about(session: Session) -> About:
    """Return who was asked, by which model where that is known, and how independent of the host that is."""
    setup = session.setup
    last = next((call.answer for call in reversed(session.calls) if call.answer is not None), None) or {}
    independence = setup.independence
    return About(
        backend=str(setup.backend.get("name")),
        endpoint=str(setup.backend.get("endpoint")),
        model=last.get("model") or setup.model,
        model_basis=last.get("model_basis"),
        tier=independence.get("tier"),
        notices=tuple(str(text) for text in independence.get("notices", ())),
    )


def report_of(session: Session) -> Report:
    """Return the report of a run as its records stand; of one without a response, that it failed and why.

    Raises:
        Refused: log and record of decisions do not agree.
    """
    from troth.airlock.reviewing import finishing

    if session.run is None:
        return report(_nothing(session), finishing.reconciliation(session), about=about(session))
    run = session.run
    return report(
        run.review,
        finishing.reconciliation(session),
        artifact=session.artifact,
        records=run.records,
        decisions=finishing.decisions(session),
        about=about(session),
    )


def _nothing(session: Session) -> dict[str, Any]:
    """Return what stands in the place of a response that never came."""
    return {
        "review_id": session.id,
        "artifact": {"kind": session.setup.kind, "revision": dict(session.setup.revision)},
        "assessment": "none",
        "summary": "No valid response came.",
        "findings": [],
    }
