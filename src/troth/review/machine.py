"""The states of one finding as a table, one function that steps it and one that draws it (§3, §7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from troth.core.canonical import record_bytes
from troth.core.errors import Refused
from troth.review.formats import is_visible
from troth.review.relations import INFERENCE, counting
from troth.review.shapes import DISPUTE_KINDS, METHODS, OPERATOR_KINDS, RESULTS, STOP_REASONS

Role = Literal["runner", "host", "reviewer", "operator"]

WORKING: Final = (
    "prepared", "reviewed", "finding_triage", "evidence_verification", "host_response", "contested",
    "reviewer_rebuttal",
)  # fmt: skip
PERSISTED: Final = ("accepted", "rejected", "resolved", "deadlocked", "withdrawn")
STATES: Final = (*WORKING, *PERSISTED)
FINAL: Final = ("accepted", "rejected", "resolved", "withdrawn")
"""States that no move leads out of."""

CODES: Final[Mapping[str, str]] = {
    "E_REVIEW_TRANSITION": "The finding cannot go from its state to that one.",
    "E_REVIEW_ROLE": "That move is not for whoever makes it: host, reviewer, operator and runner each have theirs.",
    "E_REVIEW_BASIS": "The move lacks what it must rest on; the detail names the missing part.",
    "E_REVIEW_RECORD": "A line of a review's record is no event of a review, or does not fit what stands before it.",
}
"""Refusals of the machine -> what they mean."""


class Move(NamedTuple):
    """One legal transition: its number in §3, where it leads, who makes it, what it must rest on (in :data:`NEEDS`)."""

    number: int
    source: str
    target: str
    by: tuple[Role, ...]
    needs: tuple[str, ...]
    says: str


_HOST: Final[tuple[Role, ...]] = ("host",)
_RUN: Final[tuple[Role, ...]] = ("runner", "host")

# fmt: off
MOVES: Final = (
    Move(1, "prepared", "reviewed", ("runner",), ("consent", "revision", "levels"), "a valid response came"),
    Move(2, "reviewed", "finding_triage", _HOST, ("label",), "the host labels it"),
    Move(3, "finding_triage", "evidence_verification", _HOST, (), "always"),
    Move(4, "evidence_verification", "host_response", _HOST, ("verified",), "verified, or why it cannot be"),
    Move(5, "host_response", "accepted", _HOST, ("checkable", "supported"), "a counting support"),
    Move(6, "host_response", "rejected", _HOST, ("checkable", "contradicted"), "a counting contradiction"),
    Move(7, "host_response", "resolved", _HOST, ("checkable", "supported", "resolution"), "as accepted, and done"),
    Move(8, "host_response", "contested", _HOST, ("disagreement",), "judgment alone, conflict, nothing decisive"),
    Move(9, "host_response", "deadlocked", _HOST, ("judgment", "escalation"), "a judgment, escalated"),
    Move(10, "contested", "reviewer_rebuttal", _RUN, ("round", "means"), "a round is left, and means"),
    Move(11, "contested", "deadlocked", _RUN, ("escalation",), "no round, or escalated directly"),
    Move(12, "reviewer_rebuttal", "withdrawn", _RUN, ("retracted",), "the reviewer retracts"),
    Move(13, "reviewer_rebuttal", "accepted", _HOST, ("checkable", "checked", "supported"), "a counting support"),
    Move(13, "reviewer_rebuttal", "resolved", _HOST, ("checkable", "checked", "supported", "resolution"),
         "as accepted, and done"),
    Move(14, "reviewer_rebuttal", "rejected", _HOST, ("checkable", "checked", "contradicted"),
         "a counting contradiction"),
    Move(15, "reviewer_rebuttal", "contested", _HOST, ("several", "round", "news"), "another round, and news"),
    Move(16, "reviewer_rebuttal", "deadlocked", _RUN, ("escalation",), "anything else"),
    Move(17, "deadlocked", "resolved", ("operator",), ("ruling",), "the operator decides"),
)
# fmt: on

TABLE: Final[Mapping[tuple[str, str], Move]] = {(move.source, move.target): move for move in MOVES}

VERIFYING: Final = ("evidence_verification", "host_response", "contested", "reviewer_rebuttal")
"""States in which verifications are recorded."""

LABELLING: Final = ("finding_triage", "evidence_verification", "host_response")
"""States in which the host may change its label."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may spend (§7): rounds for each finding, seconds over all, bytes both ways, tokens."""

    rounds: int = 1
    deadline: float = 600.0
    bytes: int = 16_000_000
    tokens: int = 4_000_000


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has spent so far: seconds of one monotonic clock, bytes sent and received, tokens."""

    seconds: float = 0.0
    bytes: int = 0
    tokens: int = 0

    def exhausts(self, bounds: Bounds) -> str | None:
        """Return the bound that leaves nothing to spend, or ``None``."""
        for name, spent, bound in (
            ("deadline", self.seconds, bounds.deadline),
            ("bytes", self.bytes, bounds.bytes),
            ("tokens", self.tokens, bounds.tokens),
        ):
            if spent >= bound:
                return name
        return None


@dataclass(frozen=True, slots=True)
class Case:
    """What is known of one finding: its state, and what the records so far established."""

    finding_id: str
    state: str = "prepared"
    label: str | None = None
    kind: str | None = None
    verification: tuple[Mapping[str, Any], ...] = ()
    seen: frozenset[str] = frozenset()
    """Keys of the reviewer's evidence and of verifications that were brought before."""
    fresh: frozenset[str] = frozenset()
    """Keys of evidence that the reviewer brought in this round and that no verification is about yet."""
    news: bool = False
    """Whether the last round brought anything new."""
    reply: str | None = None
    rounds: int = 0
    host_position: str | None = None
    reviewer_position: str | None = None
    resolution: str | None = None
    escalation: Mapping[str, Any] | None = None


def evidence_key(evidence: Mapping[str, Any]) -> str:
    """Return what makes a reviewer's evidence new: its anchor and external source, not its words (§7)."""
    return record_bytes([evidence["anchor"], evidence.get("external_source")]).decode()


def verification_key(verification: Mapping[str, Any]) -> str:
    """Return what makes a verification new: its method and detail (§7)."""
    return record_bytes({"method": verification["method"], "detail": verification.get("detail")}).decode()


def opened(finding: Mapping[str, Any]) -> Case:
    """Return a finding of a valid response as it is before anything was recorded about it."""
    return Case(finding["id"], seen=frozenset(evidence_key(evidence) for evidence in finding["evidence"]))


# --- what moves rest on ---


def _text(basis: Mapping[str, Any], name: str) -> str | None:
    value = basis.get(name)
    return value if isinstance(value, str) and is_visible(value) else None


def _has(case: Case, result: str) -> bool:
    return bool(counting(case.verification, result))


def _governed(case: Case, basis: Mapping[str, Any], result: str) -> bool:
    """A counting result; where counting results conflict, the host's position says why this one governs."""
    other = "contradicts" if result == "supports" else "supports"
    return _has(case, result) and (not _has(case, other) or _text(basis, "host_position") is not None)


def _disagreement(case: Case, basis: Mapping[str, Any], bounds: Bounds) -> bool:
    return _text(basis, "host_position") is not None and not (
        case.label == "checkable" and _has(case, "contradicts") and not _has(case, "supports")
    )


def _escalation(case: Case, basis: Mapping[str, Any], bounds: Bounds) -> bool:
    held = basis.get("escalation")
    if not isinstance(held, dict):
        return False
    kind, reason = held.get("dispute_kind"), held.get("stop_reason")
    allowed = set(held) <= {"dispute_kind", "stop_reason", "host_position", "reviewer_position", "operator_question"}
    if kind not in DISPUTE_KINDS or reason not in STOP_REASONS or not allowed:
        return False
    if not all(isinstance(text, str) and text for text in held.values()) or _text(held, "operator_question") is None:
        return False
    if _text(held, "host_position") is None and _text(basis, "host_position") is None and not case.host_position:
        return False
    if _text(held, "reviewer_position") is None and not case.reviewer_position:
        return False
    if kind == "unverified_refutation" and _has(case, "contradicts"):
        return False
    if case.label == "judgment" and kind != case.kind:
        return False
    return reason != "round_limit" or case.rounds >= 1


def _label(case: Case, basis: Mapping[str, Any], bounds: Bounds) -> bool:
    label, kind = basis.get("label"), basis.get("dispute_kind")
    return (label == "checkable" and kind is None) or (label == "judgment" and kind in OPERATOR_KINDS)


def _revision(case: Case, basis: Mapping[str, Any], bounds: Bounds) -> bool:
    held = basis.get("revision")
    return isinstance(held, dict) and held.get("algorithm") == "sha256" and _text(held, "value") is not None


def _means(case: Case, basis: Mapping[str, Any], bounds: Bounds) -> bool:
    spent = spent_of(basis)
    return spent is not None and spent.exhausts(bounds) is None


def spent_of(basis: Mapping[str, Any]) -> Spent | None:
    """Return what a record says was spent, or ``None`` where it does not say it in numbers."""
    held = basis.get("spent")
    if not isinstance(held, dict):
        return None
    numbers = [held.get(name) for name in ("seconds", "bytes", "tokens")]
    if not all(isinstance(number, (int, float)) and not isinstance(number, bool) and number >= 0 for number in numbers):
        return None
    return Spent(float(held["seconds"]), int(held["bytes"]), int(held["tokens"]))


Need = Callable[[Case, Mapping[str, Any], Bounds], bool]

NEEDS: Final[Mapping[str, tuple[str, Need]]] = {
    "consent": ("consent to send the artifact is recorded", lambda c, b, _: _text(b, "consent") is not None),
    "revision": ("the revision is fixed by sha256", _revision),
    "levels": ("the response passed L1 and L2", lambda c, b, _: b.get("levels") == ["L1", "L2"]),
    "label": ("it is labelled checkable, or judgment with one of the operator's two kinds", _label),
    "verified": (
        "a verification is recorded, or why none can run",
        lambda c, b, _: bool(c.verification) or _text(b, "unverifiable") is not None,
    ),
    "checkable": ("the finding is checkable; models do not settle judgments", lambda c, b, _: c.label == "checkable"),
    "judgment": ("the finding is a judgment", lambda c, b, _: c.label == "judgment"),
    "supported": (
        "a verification that counts supports it, and where another contradicts the host says why this one governs",
        lambda c, b, _: _governed(c, b, "supports"),
    ),
    "contradicted": (
        "a verification that counts contradicts it, and where another supports the host says why this one governs",
        lambda c, b, _: _governed(c, b, "contradicts"),
    ),
    "resolution": ("a resolution says what was done", lambda c, b, _: _text(b, "resolution") is not None),
    "disagreement": ("the host says why it disagrees, and no contradiction stands unopposed", _disagreement),
    "escalation": (
        "an escalation with dispute kind, stop reason, question and both positions, true to what is recorded",
        _escalation,
    ),
    "round": ("a round is left", lambda c, _, bounds: c.rounds < bounds.rounds),
    "several": ("more than one round is allowed", lambda c, _, bounds: bounds.rounds > 1),
    "means": ("deadline and budget leave something to spend", _means),
    "retracted": ("the reviewer's reply withdraws the finding", lambda c, b, _: c.reply == "withdraw"),
    "checked": ("everything new that the reviewer brought is verified", lambda c, b, _: not c.fresh),
    "news": ("the round brought new evidence; rewording is not new", lambda c, b, _: c.news),
    "ruling": (
        "the question as put and the operator's ruling",
        lambda c, b, _: _text(b, "question") is not None and _text(b, "ruling") is not None,
    ),
}
"""What a move rests on: a sentence, and the test of it."""


# --- steps ---


def moved(case: Case, target: str, role: str, basis: Mapping[str, Any], bounds: Bounds) -> Case:
    """Return the finding after one transition.

    Raises:
        Refused: ``E_REVIEW_TRANSITION``, ``E_REVIEW_ROLE``, or ``E_REVIEW_BASIS`` with the name of what is missing.
    """
    move = TABLE.get((case.state, target))
    if move is None:
        final = "It is final; another look is a new review." if case.state in FINAL else None
        raise Refused("E_REVIEW_TRANSITION", f"{case.finding_id} cannot go from {case.state} to {target}", remedy=final)
    if role not in move.by:
        raise Refused(
            "E_REVIEW_ROLE", f"{case.finding_id}: {move.source} to {target} is for {' or '.join(move.by)}, not {role}"
        )
    for need in move.needs:
        says, holds = NEEDS[need]
        if not holds(case, basis, bounds):
            raise Refused(
                "E_REVIEW_BASIS",
                f"{case.finding_id}: {move.source} to {target} needs that {says}",
                detail=need,
            )
    return _after(case, move, basis)


def _after(case: Case, move: Move, basis: Mapping[str, Any]) -> Case:
    case = replace(case, state=move.target, host_position=_text(basis, "host_position") or case.host_position)
    if "label" in move.needs:
        case = replace(case, label=basis["label"], kind=basis.get("dispute_kind"))
    if "resolution" in move.needs:
        case = replace(case, resolution=basis["resolution"])
    if "escalation" in move.needs:
        case = replace(case, escalation=dict(basis["escalation"]))
    if move.target == "reviewer_rebuttal":
        case = replace(case, rounds=case.rounds + 1, reply=None, news=False, fresh=frozenset())
    if "ruling" in move.needs:
        asked = {**(case.escalation or {}), "operator_question": basis["question"]}
        case = replace(case, resolution=basis["ruling"], escalation=asked)
    return case


def labelled(case: Case, role: str, basis: Mapping[str, Any]) -> Case:
    """Return the finding under another label, which is logged like a move.

    Raises:
        Refused: ``E_REVIEW_ROLE``, ``E_REVIEW_TRANSITION``, ``E_REVIEW_BASIS``.
    """
    _allowed(case, role, "host", LABELLING, "labelled")
    if not _label(case, basis, Bounds()):
        raise Refused(
            "E_REVIEW_BASIS",
            f"{case.finding_id}: a label is right where {NEEDS['label'][0]}",
            detail="label",
        )
    return replace(case, label=basis["label"], kind=basis.get("dispute_kind"))


def verified(case: Case, role: str, basis: Mapping[str, Any]) -> Case:
    """Return the finding with one more verification; ``of`` names the reviewer's new evidence that it is about.

    Raises:
        Refused: ``E_REVIEW_ROLE``, ``E_REVIEW_TRANSITION``, ``E_REVIEW_BASIS``.
    """
    _allowed(case, role, "host", VERIFYING, "verified")
    held = basis.get("verification")
    about = basis.get("of", [])
    if (
        not isinstance(held, dict)
        or not set(held) <= {"method", "result", "detail"}
        or held.get("method") not in METHODS
        or held.get("result") not in RESULTS
        or not (held.get("detail") is None or (isinstance(held["detail"], str) and held["detail"]))
        or not isinstance(about, list)
        or not all(isinstance(key, str) for key in about)
    ):
        raise Refused(
            "E_REVIEW_BASIS", f"{case.finding_id}: a verification has a method, a result, perhaps a detail",
            detail="verification",
        )  # fmt: skip
    key = verification_key(held)
    settled = frozenset(about) if held["method"] != INFERENCE else frozenset()
    return replace(
        case,
        verification=(*case.verification, {name: value for name, value in held.items() if value is not None}),
        seen=case.seen | {key},
        fresh=case.fresh - settled,
        news=case.news or (case.state == "reviewer_rebuttal" and key not in case.seen),
    )


def replied(case: Case, role: str, basis: Mapping[str, Any]) -> Case:
    """Return the finding with the reviewer's reply of this round, which is valid as a document.

    Raises:
        Refused: ``E_REVIEW_ROLE``, ``E_REVIEW_TRANSITION``, ``E_REVIEW_BASIS`` for a reply about another finding, a
            second one in a round, or no reply.
    """
    _allowed(case, role, "reviewer", ("reviewer_rebuttal",), "answered by the reviewer")
    reply = basis.get("reply")
    if not isinstance(reply, dict) or reply.get("finding_id") != case.finding_id or case.reply is not None:
        raise Refused("E_REVIEW_BASIS", f"{case.finding_id}: one reply a round, and about this finding", detail="reply")
    brought = {evidence_key(evidence) for evidence in reply["evidence"]} - case.seen
    return replace(
        case,
        reply=reply["decision"],
        reviewer_position=reply["position"],
        seen=case.seen | brought,
        fresh=case.fresh | brought,
        news=case.news or bool(brought),
    )


def _allowed(case: Case, role: str, wanted: str, states: tuple[str, ...], what: str) -> None:
    if role != wanted:
        raise Refused("E_REVIEW_ROLE", f"{case.finding_id} is {what} by the {wanted}, not by {role}")
    if case.state not in states:
        raise Refused("E_REVIEW_TRANSITION", f"{case.finding_id} is {case.state} and cannot be {what}")


def mermaid() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> prepared"]
    lines += [f"    {move.source} --> {move.target}: {move.number} {move.says}" for move in MOVES]
    lines += [f"    {state} --> [*]" for state in PERSISTED if state != "deadlocked"]
    return "\n".join(lines) + "\n"
