"""What a host and a person see of a run: the finding to work on with its anchored text, the standing, the next step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from troth.airlock.reviewing import finishing, host
from troth.airlock.reviewing.recovery import recovery
from troth.airlock.reviewing.session import Session
from troth.core.errors import Refused
from troth.review.anchors import resolve
from troth.review.context import Shown, shown
from troth.review.machine import PERSISTED, Case
from troth.review.run import ENDS
from troth.review.shapes import SEVERITIES
from troth.stores.reviews import LAST, RECONCILIATION, ReviewFolder, Reviews, created


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of a reviewer's evidence and what its anchor points at in the snapshot.

    ``new`` is set for what a reply brought, ``waiting`` where no verification is about it yet.
    """

    entry: Mapping[str, Any]
    anchored: Shown
    new: bool = False
    waiting: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the form of the command's answer."""
        told: dict[str, Any] = {**self.entry, "anchored": self.anchored.as_json()}
        return told | ({"new": True, "waiting": self.waiting} if self.new else {})


@dataclass(frozen=True, slots=True)
class View:
    """A finding as it stands: what the reviewer says, what the records hold, what may be done next."""

    finding: Mapping[str, Any]
    case: Case
    evidence: tuple[Evidence, ...]
    brought: tuple[Evidence, ...]
    steps: tuple[tuple[str, str], ...]

    @property
    def rests_on_nothing(self) -> bool:
        """Whether no anchor of the finding resolves: it rests on the host's own verification alone ([D8])."""
        return all(held.anchored.state == "unresolved" for held in self.evidence)

    def as_json(self) -> dict[str, Any]:
        """Return the form of the command's answer."""
        case = self.case
        return {
            **{name: value for name, value in self.finding.items() if name != "evidence"},
            "evidence": [held.as_json() for held in self.evidence],
            "new_evidence": [held.as_json() for held in self.brought],
            "rests_on_nothing": self.rests_on_nothing,
            "state": case.state,
            "label": case.label,
            "dispute_kind": case.kind,
            "verification": [dict(entry) for entry in case.verification],
            "host_position": case.host_position,
            "reviewer_position": case.reviewer_position,
            "reply": case.reply,
            "rounds": case.rounds,
            "resolution": case.resolution,
            "escalation": dict(case.escalation) if case.escalation is not None else None,
            "next": [{"command": command, "when": when} for command, when in self.steps],
        }


def view(session: Session, finding_id: str) -> View:
    """Return a finding as it stands.

    Raises:
        Refused: ``E_REVIEW_FINDING``.
    """
    finding, case = session.finding(finding_id), session.case(finding_id)
    evidence = tuple(Evidence(entry, shown(entry["anchor"], session.artifact)) for entry in finding["evidence"])
    brought = tuple(
        Evidence(entry, shown(entry["anchor"], session.artifact), new=True, waiting=waiting)
        for entry, _, waiting in host.new_evidence(session, finding_id)
    )
    return View(finding, case, evidence, brought, tuple(_steps(session, case)))


def next_finding(session: Session) -> str | None:
    """Return the finding to work on: the gravest that is not settled, in the reviewer's order; ``None`` at the end."""
    open_ones = [
        finding for finding in session.started().review["findings"]
        if session.started().cases[finding["id"]].state not in PERSISTED
    ]  # fmt: skip
    if not open_ones:
        return None
    found: str = min(open_ones, key=lambda finding: SEVERITIES.index(finding["severity"]))["id"]
    return found


_VERIFY: Final = "verify {id} --method command -- COMMAND…"
_INSPECT: Final = "verify {id} --method artifact-inspection --result RESULT --detail TEXT"
_STEPS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "prepared": (("resume", "the run was interrupted"),),
    "reviewed": (
        ("triage {id} checkable", "something can show it true or false"),
        ("triage {id} judgment --kind value_or_priority_tradeoff", "it weighs values or priorities"),
        ("triage {id} judgment --kind policy_or_authority_required", "it needs somebody's authority"),
    ),
    "finding_triage": ((_VERIFY, "a command can tell"), (_INSPECT, "the artifact itself tells")),
    "evidence_verification": (
        (_VERIFY, "a command can tell"),
        (_INSPECT, "the artifact itself tells"),
        ("contest {id} --position TEXT --unverifiable WHY", "nothing can verify it, and you disagree"),
    ),
    "reviewer_rebuttal": ((_INSPECT, "to check what the reviewer brought"),),
}


def _steps(session: Session, case: Case) -> list[tuple[str, str]]:
    from troth.review.relations import counting

    steps = [*_STEPS.get(case.state, ())]
    supported, refuted = (counting(case.verification, result) for result in ("supports", "contradicts"))
    if case.label == "judgment" and case.state not in PERSISTED:
        if case.verification or case.state in ("contested", "reviewer_rebuttal"):
            steps.append(("escalate {id} --position TEXT --question TEXT", "it belongs to the operator"))
        else:
            steps.append(("escalate {id} --position TEXT --question TEXT --unverifiable WHY", "it is the operator's"))
    elif case.state in ("evidence_verification", "host_response", "reviewer_rebuttal"):
        why = " --position WHY-THIS-GOVERNS" if supported and refuted else ""
        ready = case.state != "reviewer_rebuttal" or not case.fresh
        if supported and ready:
            steps.append((f"accept {{id}}{why}", "a verification supports it"))
            steps.append((f"resolve {{id}} --done TEXT{why}", "it is true and was mended"))
        if refuted and ready:
            steps.append((f"reject {{id}}{why}", "a verification contradicts it"))
        if case.state != "reviewer_rebuttal" and case.verification and not (refuted and not supported):
            steps.append(("contest {id} --position TEXT", "you disagree on judgment, or nothing is decisive"))
    spent = session.exhausted is not None
    left = case.rounds < session.setup.limits.rounds and not spent
    if case.state == "contested" and left:
        steps.append(("rebut {id}", "ask the reviewer to substantiate or withdraw"))
    if case.state == "reviewer_rebuttal" and case.reply is None and not spent:
        steps.append(("rebut {id}", "the reviewer's reply did not come"))
    if case.state == "reviewer_rebuttal" and case.news and left and session.setup.limits.rounds > 1:
        steps.append(("contest {id} --position TEXT", "another round: something new came"))
    if case.state in ("contested", "reviewer_rebuttal") and case.label != "judgment":
        steps.append(("escalate {id} --position TEXT --question TEXT", "a person must decide"))
    if case.state == "deadlocked":
        steps.append(("decide", "the operator answers the question"))
    if case.verification:  # then something can verify it
        steps = [step for step in steps if not step[0].startswith("contest") or "--unverifiable" not in step[0]]
    named = "" if _is_last(session) else f" --review {session.id}"
    told = []
    for command, when in dict.fromkeys(steps):
        head, dashes, argv = command.format(id=case.finding_id).partition(" -- ")
        told.append((f"troth review {head}{named}{dashes}{argv}", when))
    return told


def _is_last(session: Session) -> bool:
    """Tell whether the run is the one that commands mean when none is named."""
    return Reviews(session.folder.path.parent).find(LAST).id == session.id


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run is: ``stage`` is ``waiting``, ``open``, ``finished`` or ``unreadable``.

    ``outcome`` is what was kept, or what would be if the run ended now; it is a success only when ``kept`` and
    ``converged``.
    """

    id: str
    created: str
    stage: str
    outcome: str | None = None
    kept: bool = False
    states: Mapping[str, int] | None = None
    unresolved: int = 0
    problem: str | None = None
    session: Session | None = None

    @property
    def exit_code(self) -> int:
        """Exit status: that of the kept outcome, 3 while nothing is established."""
        if self.kept and self.outcome is not None:
            return ENDS[self.outcome].exit
        return 3

    @property
    def open_questions(self) -> int:
        """How many findings wait for the operator."""
        return (self.states or {}).get("deadlocked", 0)

    def as_json(self) -> dict[str, Any]:
        """Return the form of the command's answer."""
        told: dict[str, Any] = {
            "review_id": self.id, "created": self.created, "stage": self.stage,
            "outcome": self.outcome if self.kept else None, "would_be": None if self.kept else self.outcome,
            "success": self.exit_code == 0, "findings": dict(self.states or {}),
            "unresolved_evidence": self.unresolved, "open_questions": self.open_questions, "problem": self.problem,
        }  # fmt: skip
        if self.session is not None:
            told |= _facts(self.session)
        return told


def _facts(session: Session) -> dict[str, Any]:
    setup, spent = session.setup, session.spent
    return {
        "kind": setup.kind,
        "revision": dict(setup.revision),
        "members": [dict(member) for member in setup.members],
        "backend": dict(setup.backend),
        "independence": dict(setup.independence),
        "bounds": {"rounds": setup.limits.rounds, "deadline": setup.limits.deadline, "bytes": setup.limits.bytes,
                   "tokens": setup.limits.tokens},
        "spent": {"seconds": round(spent.seconds, 3), "bytes": spent.bytes, "tokens": spent.tokens},
        "exhausted": session.exhausted,
        "failure": dict(finishing.failure_of(session)) if session.run is None and session.finished else None,
        "recovery": [option._asdict() for option in recovery(session)],
    }  # fmt: skip


def standing(folder: ReviewFolder, *, deep: bool = True) -> Standing:
    """Return how far a run is; what cannot be read is told and never taken for a success.

    Args:
        folder: the run's.
        deep: replay the records; otherwise only what was kept is looked at.
    """
    try:
        session = Session(folder)
        document = finishing.reconciliation(session)
    except Refused as fault:
        return Standing(folder.id, created(folder), "unreadable", problem=str(fault))
    kept = folder.read_json(RECONCILIATION) if session.finished else None
    states: dict[str, int] = {}
    for case in session.run.cases.values() if session.run is not None else ():
        states[case.state] = states.get(case.state, 0) + 1
    unresolved = sum(
        bool(resolve(entry["anchor"], session.artifact).faults)
        for finding in (session.response or {"findings": ()})["findings"] for entry in finding["evidence"]
    )  # fmt: skip
    # What was kept counts only while it is what the records come to.
    sound = kept is not None and kept == document
    stage = "finished" if sound else "open" if session.run is not None else "waiting"
    problem = None
    if kept is not None and not sound:
        problem = "the kept result is not what the records come to; `troth review resume` mends it"
    return Standing(
        session.id, session.setup.created, stage, document["outcome"], sound, states, unresolved, problem,
        session if deep else None,
    )  # fmt: skip
