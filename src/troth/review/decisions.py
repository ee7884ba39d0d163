"""The operator's part: what has to be seen before anything is asked, rulings, and their corrections (§8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.review.artifact import Artifact
from troth.review.context import Shown, shown
from troth.review.formats import instant, is_digest, is_visible
from troth.review.machine import STATES
from troth.review.run import Run, event, outcome, replay, result
from troth.review.validate import validate

CODES: Final[Mapping[str, str]] = {
    "E_REVIEW_VIEW": "Not all that an operator must see of the open questions is there, so nothing of it is shown.",
    "E_REVIEW_DECISION": "A decision does not fit what it is about: the finding is not open, or the record differs.",
}
"""Refusals of the operator's part -> what they mean."""

MEMBERS: Final = (
    "finding_id", "time", "actor", "channel", "question", "ruling", "previous_state", "previous_item",
)  # fmt: skip
"""Members of a line of ``decisions.jsonl``; a correction has ``reason`` besides ([D28])."""

CHANNELS: Final = ("terminal", "command", "conversation", "page")
"""By which way a ruling came; any of them makes it an escalation, also one given in conversation."""

_LINE: Final = Limits(max_bytes=1 << 20, max_depth=16, refuse_overflow=True)


# --- what the operator sees -----------------------------------------------------------------------------------------


class Evidence(NamedTuple):
    """The reviewer's evidence as the response has it, and what its anchor points at in the artifact."""

    entry: Mapping[str, Any]
    anchored: Shown


@dataclass(frozen=True, slots=True)
class Question:
    """One open question with everything that must be seen before it is answered.

    ``unverifiable`` is the recorded reason why nothing could verify the finding; it is there where ``verification`` is
    empty.
    """

    finding: Mapping[str, Any]
    evidence: tuple[Evidence, ...]
    verification: tuple[Mapping[str, Any], ...]
    unverifiable: str | None
    host_position: str
    reviewer_position: str
    dispute_kind: str
    stop_reason: str
    question: str

    @property
    def finding_id(self) -> str:
        """The finding's id."""
        return str(self.finding["id"])

    def as_json(self) -> dict[str, Any]:
        """Return the form of the command's answer."""
        return {
            "finding_id": self.finding_id,
            "severity": self.finding["severity"],
            "confidence": self.finding["confidence"],
            "claim": self.finding["claim"],
            "recommendation": self.finding["recommendation"],
            "evidence": [{**held.entry, "anchored": held.anchored.as_json()} for held in self.evidence],
            "verification": [dict(entry) for entry in self.verification],
            "unverifiable": self.unverifiable,
            "host_position": self.host_position,
            "reviewer_position": self.reviewer_position,
            "dispute_kind": self.dispute_kind,
            "stop_reason": self.stop_reason,
            "question": self.question,
        }


def open_questions(
    review: bytes,
    reconciliation: bytes,
    artifact: Artifact,
    *,
    unverifiable: Mapping[str, str] | None = None,
    decisions: Sequence[Mapping[str, Any]] = (),
) -> tuple[Question, ...]:
    """Return every open question of a run, each complete, in the order of the findings.

    Args:
        review: the stored response.
        reconciliation: the stored reconciliation.
        artifact: the snapshot that was reviewed.
        unverifiable: finding id -> the recorded reason why nothing could verify it.
        decisions: the lines of the record of decisions so far.

    Raises:
        Refused: ``E_REVIEW_VIEW`` with the missing thing as its detail: a document breaks a rule, the review or the
            artifact is another's, an id stands twice, or a question lacks evidence, verification, position or words.
            Nothing is shown in part.
    """
    theirs = validate(review, kind="response", artifact=artifact)
    for broken in theirs.violations:
        # An anchor that resolves nowhere is shown as such; all else makes the review unfit to be shown ([D8]).
        if broken.rule not in _ANCHOR_RULES:
            _unseen(f"the stored review breaks {broken.rule} at {broken.path}", broken.rule)
    if theirs.kind != "response":
        _unseen("the stored review is no reviewer's response", "review")
    judged = validate(
        reconciliation,
        kind="reconciliation",
        artifact=artifact,
        review=theirs.value,
        decided=by_finding(decisions),
    )
    for broken in judged.violations:
        _unseen(f"the stored reconciliation breaks {broken.rule} at {broken.path}: {broken.message}", broken.rule)
    items = {item["finding_id"]: item for item in judged.value["items"]}
    reasons = unverifiable or {}
    return tuple(
        _question(finding, items[finding["id"]], artifact, reasons.get(finding["id"]))
        for finding in theirs.value["findings"]
        if items.get(finding["id"], {}).get("state") == "deadlocked"
    )


_ANCHOR_RULES: Final = frozenset(
    {
        "path-in-artifact", "line-in-file", "symbol-in-file", "section-in-artifact", "quote-in-artifact",
        "quote-occurrence", "excerpt-in-artifact", "digest-in-artifact", "pointer-resolves",
    }
)  # fmt: skip


def _question(
    finding: Mapping[str, Any], item: Mapping[str, Any], artifact: Artifact, unverifiable: str | None
) -> Question:
    held = item["escalation"]
    verification = tuple(item.get("verification", ()))
    reason = unverifiable if unverifiable is not None and is_visible(unverifiable) else None
    if not verification and reason is None:
        _unseen(f"{finding['id']} has neither a verification nor a reason why none could run", "verification")
    return Question(
        finding=finding,
        evidence=tuple(Evidence(entry, shown(entry["anchor"], artifact)) for entry in finding["evidence"]),
        verification=verification,
        unverifiable=None if verification else reason,
        host_position=_position(held, item, "host_position"),
        reviewer_position=_position(held, item, "reviewer_position"),
        dispute_kind=held["dispute_kind"],
        stop_reason=held["stop_reason"],
        question=held["operator_question"],
    )


def _position(escalation: Mapping[str, Any], item: Mapping[str, Any], name: str) -> str:
    """Return a position as the escalation puts it, else as the item does; escalation-context says that it shows."""
    text = escalation.get(name)
    return text if text is not None and is_visible(text) else str(item[name])


def _unseen(message: str, detail: str) -> NoReturn:
    raise Refused(
        "E_REVIEW_VIEW",
        f"{message}; no open question is shown",
        detail=detail,
        remedy="`troth review validate` on the run's documents names every broken rule.",
    )


def unverifiable_of(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return finding id -> the recorded reason why nothing could verify it, from the events of a run."""
    found = {}
    for record in records:
        reason = record["basis"].get("unverifiable")
        if record["event"] == "move" and isinstance(reason, str):
            found[record["finding_id"]] = reason
    return found


# --- rulings --------------------------------------------------------------------------------------------------------


class Ruled(NamedTuple):
    """The reconciliation after a ruling, and the line for the record of decisions."""

    document: dict[str, Any]
    line: dict[str, Any]


def item_digest(item: Mapping[str, Any]) -> str:
    """Return the digest by which a decision names the item as it was before: sha256 of its canonical JSON ([D28])."""
    return "sha256:" + sha256_hex(record_bytes(item))


def ruled(
    document: Mapping[str, Any],
    finding_id: str,
    *,
    question: str,
    ruling: str,
    time: str,
    actor: str,
    channel: str,
    reason: str | None = None,
) -> Ruled:
    """Return the reconciliation after the operator's ruling on one finding, its outcome computed anew.

    An open item becomes ``resolved``: its escalation stays, with the question as it was put. An item that an operator
    decided before is corrected, which needs a reason; date, reason and what stood before are told in its resolution.

    Args:
        document: a valid reconciliation; not changed.
        finding_id: the finding.
        question: the question as it was actually put.
        ruling: what the operator ruled.
        time: RFC 3339 with an offset.
        actor: who decided.
        channel: one of :data:`CHANNELS`.
        reason: why an earlier ruling is corrected.

    Raises:
        Refused: ``E_REVIEW_DECISION`` for a finding that waits for nobody, for words that show nothing, for an unknown
            channel, or a correction without a reason.
    """
    for name, text in (("question", question), ("ruling", ruling), ("actor", actor)):
        if not is_visible(text):
            raise Refused("E_REVIEW_DECISION", f"the {name} shows nothing", detail=name)
    if channel not in CHANNELS or instant(time) is None:
        raise Refused("E_REVIEW_DECISION", f"a decision comes at an instant and by one of {', '.join(CHANNELS)}")
    before = next((item for item in document["items"] if item["finding_id"] == finding_id), None)
    if before is None:
        raise Refused("E_REVIEW_DECISION", f"the reconciliation has no item about {finding_id}", detail="unknown")
    line = {
        "finding_id": finding_id, "time": time, "actor": actor, "channel": channel, "question": question,
        "ruling": ruling, "previous_state": before["state"], "previous_item": item_digest(before),
    }  # fmt: skip
    if before["state"] == "deadlocked":
        if reason is not None:
            raise Refused("E_REVIEW_DECISION", f"{finding_id} was not decided yet, so nothing is corrected")
        resolution = ruling
    elif before["state"] == "resolved" and "escalation" in before:
        if reason is None or not is_visible(reason):
            raise Refused(
                "E_REVIEW_DECISION",
                f"{finding_id} was decided before, and a correction says why",
                detail="reason",
                remedy="Give the reason with --reason.",
            )
        line["reason"] = reason
        resolution = f"{ruling} [Corrected {time}: {reason} Before: {before['state']}, {before['resolution']}]"
    else:
        raise Refused("E_REVIEW_DECISION", f"{finding_id} is {before['state']} and waits for nobody", detail="closed")
    after = {
        **before,
        "state": "resolved",
        "resolution": resolution,
        "escalation": {**before["escalation"], "operator_question": question},
    }
    items = [after if item is before else item for item in document["items"]]
    decided = outcome(
        failed="failure" in document,
        undone=document["outcome"] == "incomplete",
        deadlocked=any(item["state"] == "deadlocked" for item in items),
    )
    return Ruled({**document, "items": items, "outcome": decided}, line)


def ruling_event(run: Run, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of the log for the first ruling on a finding: the move that is the operator's alone (§3, 17)."""
    return event(
        run.cases[line["finding_id"]],
        "resolved",
        {"question": line["question"], "ruling": line["ruling"]},
        time=line["time"],
        actor=line["actor"],
        role="operator",
    )


# --- the record of decisions ----------------------------------------------------------------------------------------


def read_lines(data: bytes) -> tuple[dict[str, Any], ...]:
    """Return the lines of ``decisions.jsonl``, each with exactly its members.

    Raises:
        Refused: ``E_DECISIONS_UNREADABLE`` with the line.
    """
    found = []
    for number, text in enumerate(data.removesuffix(b"\n").split(b"\n") if data else (), 1):
        try:
            value = loads(text, _LINE)
        except JsonFault as fault:
            raise _unreadable(number, fault.message) from None
        if not isinstance(value, dict) or set(value) - {"reason"} != set(MEMBERS):
            raise _unreadable(number, f"a decision has exactly {', '.join(MEMBERS)}, a correction reason besides")
        if not all(isinstance(text, str) and text for text in value.values()):
            raise _unreadable(number, "a member is no text")
        if value["previous_state"] not in STATES or not is_digest(value["previous_item"]):
            raise _unreadable(number, "the state or the digest of the previous item is none")
        found.append(value)
    return tuple(found)


def _unreadable(line: int, message: str) -> Refused:
    return Refused("E_DECISIONS_UNREADABLE", f"the record of decisions: {message}", place=Place(line=line))


def by_finding(lines: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return finding id -> its newest line."""
    return {line["finding_id"]: line for line in lines}


def decided(document: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the reconciliation after all decisions on record, each held against the item as it was before.

    Raises:
        Refused: ``E_REVIEW_DECISION`` with the number of the line that does not fit.
    """
    value = dict(document)
    for number, line in enumerate(lines, 1):
        given = {name: line[name] for name in ("question", "ruling", "time", "actor", "channel")}
        try:
            after = ruled(value, line["finding_id"], **given, reason=line.get("reason"))
        except Refused as fault:
            fault.place = Place(line=number)
            raise
        if after.line != line:
            raise Refused(
                "E_REVIEW_DECISION",
                f"the item of {line['finding_id']} is not the one that was decided",
                place=Place(line=number),
            )
        value = after.document
    return value


def _is_ruling(record: Mapping[str, Any]) -> bool:
    return bool(isinstance(record, dict) and record.get("event") == "move" and record.get("role") == "operator")


def owed(run: Run, lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the events that the log still lacks of decisions on record: a crash can come between the two.

    Args:
        run: the run as its log has it.
        lines: the record of decisions.
    """
    seen: set[str] = set()
    missing = []
    for line in lines:
        name = line["finding_id"]
        if name not in seen and name in run.cases and run.cases[name].state == "deadlocked":
            missing.append(ruling_event(run, line))
        seen.add(name)
    return missing


def concluded(
    run: Run,
    records: Sequence[Mapping[str, Any]],
    lines: Sequence[Mapping[str, Any]],
    reconciliation_id: str,
    **given: Any,
) -> dict[str, Any]:
    """Return the reconciliation that events and decisions come to together; neither can say what the other does not.

    Args:
        run: the run as it began (:func:`troth.review.run.begun`).
        records: every event of the log.
        lines: every line of the record of decisions.
        reconciliation_id: the document's id.
        given: as :func:`troth.review.run.result` takes them.

    Raises:
        Refused: the machine's codes for an event that is illegal; ``E_REVIEW_DECISION`` for a decision that does not
            fit, or a ruling in one record that the other lacks.
    """
    full = replay(run, records)
    first: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        first.setdefault(line["finding_id"], line)
    rulings = {record["finding_id"]: record for record in records if _is_ruling(record)}
    if rulings.keys() != first.keys():
        name = min(rulings.keys() ^ first.keys())
        where = "the log of events" if name in first else "the record of decisions"
        raise Refused(
            "E_REVIEW_DECISION",
            f"{where} lacks the ruling on {name}",
            detail="unrecorded",
            remedy="`troth review resume` makes up for a crash between the two.",
        )
    for name, record in rulings.items():
        line = first[name]
        told = (record["time"], record["actor"], record["basis"].get("question"), record["basis"].get("ruling"))
        if told != (line["time"], line["actor"], line["question"], line["ruling"]):
            raise Refused("E_REVIEW_DECISION", f"log and record tell different rulings on {name}", detail="unrecorded")
    # Bounds and positions of the full run; what operators decided is folded in from their own record.
    before = replay(run, [record for record in records if not _is_ruling(record)]) if rulings else full
    return decided(result(before, reconciliation_id, **given), lines)
