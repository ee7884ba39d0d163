"""What a report of a review says: its heading, a tally that sums exactly, each finding's course, limits (§11).

Nothing here is laid out; :mod:`troth.review.pages` writes it as Markdown and as HTML. Every text is as it was recorded,
control characters gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from troth.core.words import printable
from troth.review.artifact import Artifact
from troth.review.context import Passage, shown
from troth.review.formats import heard
from troth.review.panel import breadth_of, held_in
from troth.review.run import ENDS

MAX_TEXT: Final = 4000
"""Characters of one text in a report; the run's records have the whole."""

_NAMED: Final = 5
"""How many members of an artifact the heading names."""


class Tally(NamedTuple):
    """What became of the findings; all but ``raised`` sum to it ([D37])."""

    raised: int
    resolved_by_models: int
    accepted: int
    rejected: int
    withdrawn: int
    awaiting_operator: int
    decided_by_operator: int
    not_reconciled: int

    def rows(self) -> list[tuple[str, int]]:
        """Return (words, number) in the order of the specification, without ``raised``."""
        return [(name.replace("_", " "), number) for name, number in zip(self._fields[1:], self[1:], strict=True)]

    def as_text(self) -> str:
        """Return the sum as one line."""
        return f"{self.raised} raised = " + " + ".join(f"{number} {words}" for words, number in self.rows())


def tally(review: Mapping[str, Any], reconciliation: Mapping[str, Any] | None) -> Tally:
    """Count what became of each finding of a valid review; one without an item is not reconciled.

    Items about findings that the review lacks are no part of the sum.
    """
    items = {item["finding_id"]: item for item in reconciliation["items"]} if reconciliation is not None else {}
    counts = Counter(_end(items.get(finding["id"])) for finding in review["findings"])
    return Tally(len(review["findings"]), *(counts[name] for name in Tally._fields[1:]))


def _end(item: Mapping[str, Any] | None) -> str:
    if item is None:
        return "not_reconciled"
    if item["state"] == "resolved":
        return "decided_by_operator" if "escalation" in item else "resolved_by_models"
    return "awaiting_operator" if item["state"] == "deadlocked" else str(item["state"])


# --- the parts of a report ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class About:
    """What a run knows of itself beside its documents: who was asked, and how independent of the host that is.

    ``model_basis`` is ``resolved``, ``requested`` or ``backend_default``.
    """

    backend: str | None = None
    endpoint: str | None = None
    model: str | None = None
    model_basis: str | None = None
    tier: str | None = None
    notices: Sequence[str] = ()
    raw: bool = False


class Shown(NamedTuple):
    """One evidence: where it stands, in words and in the artifact, what was observed there, how it was come by."""

    place: str
    state: str
    observation: str
    grounding: str
    source: str | None
    passages: tuple[Passage, ...]
    faults: tuple[str, ...]


class Step(NamedTuple):
    """One event of a finding: when, who in which role, what."""

    time: str
    actor: str
    role: str
    words: str


class Told(NamedTuple):
    """One finding and all that became of it."""

    id: str
    severity: str
    confidence: str
    category: str | None
    end: str
    claim: str
    impact: str | None
    recommendation: str
    evidence: tuple[Shown, ...]
    verification: tuple[str, ...]
    host_position: str | None
    reviewer_position: str | None
    dispute: str | None
    question: str | None
    resolution: str | None
    steps: tuple[Step, ...]
    decisions: tuple[Step, ...]
    breadth: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report. ``outcome`` is ``not reconciled`` without a reconciliation; ``success`` only for converged."""

    title: str
    head: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]
    outcome: str
    says: str
    success: bool
    summary: str
    tally: Tally
    findings: tuple[Told, ...]
    open: tuple[Told, ...]
    limits: tuple[str, ...]
    members: tuple[str, ...] = ()
    """Of a panel its reviewers, each with its own tier, of chunks the chunks; what each came to."""
    alternatives: tuple[str, ...] = ()
    """What reviewers of a panel suggested instead; nobody verified it."""


def report(
    review: Mapping[str, Any],
    reconciliation: Mapping[str, Any] | None = None,
    *,
    artifact: Artifact | None = None,
    records: Iterable[Mapping[str, Any]] = (),
    decisions: Iterable[Mapping[str, Any]] = (),
    about: About | None = None,
) -> Report:
    """Return what is to be said of a review.

    Args:
        review: the value of a valid response.
        reconciliation: the value of its valid reconciliation; without one nothing counts as settled.
        artifact: the snapshot, so that evidence is shown in its text.
        records: the events of the run.
        decisions: the lines of the record of decisions.
        about: who was asked.
    """
    about = about or About()
    items = {item["finding_id"]: item for item in reconciliation["items"]} if reconciliation is not None else {}
    courses = _grouped(records)
    lines = _grouped(decisions)
    findings = tuple(
        _told(
            finding,
            items.get(finding["id"]),
            artifact,
            courses.get(finding["id"], ()),
            lines.get(finding["id"], ()),
            breadth=_breadth(review, finding["id"]),
        )
        for finding in review["findings"]
    )
    outcome = str(reconciliation["outcome"]) if reconciliation is not None else "not reconciled"
    end = ENDS.get(outcome)
    says = end.says if end is not None else "Findings only: nobody has checked them."
    if reconciliation is not None and "failure" in reconciliation:
        says += f" {reconciliation['failure']['code']}: {_clean(reconciliation['failure']['message'])}"
    return Report(
        title=f"Review {_clean(review['review_id'], 160)}",
        head=tuple(_head(review, reconciliation, about, artifact)),
        notices=tuple(_clean(text) for text in about.notices),
        outcome=outcome,
        says=says,
        success=end is not None and end.exit == 0,
        summary=_clean(review["summary"]),
        tally=tally(review, reconciliation),
        findings=findings,
        open=tuple(told for told in findings if told.end == "awaiting_operator"),
        limits=tuple(_limits(review, reconciliation, about)),
        members=tuple(_clean(text, 600) for text in _members(review)),
        alternatives=tuple(
            f"{_clean(str(held.get('seat')), 160)}: {_clean(str(held.get('text')))}"
            for held in held_in(review, "panel", "alternatives")
        ),
    )


def _members(review: Mapping[str, Any]) -> Iterable[str]:
    for seat in held_in(review, "panel", "seats"):
        came = f"{seat.get('findings')} findings" if seat.get("outcome") == "answered" else "failed"
        tier = str(seat.get("tier")).replace("_", " ")
        yield f"{seat.get('seat')}: {seat.get('backend')}, {tier}, {came}"
    for chunk in held_in(review, "chunks"):
        members = chunk.get("members")
        named = ", ".join(map(str, members)) if isinstance(members, list) else "members not named"
        yield f"{chunk.get('id')} ({named}): {str(chunk.get('outcome')).replace('_', ' ')}"


def _grouped(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        found.setdefault(record["finding_id"], []).append(record)
    return found


def _head(
    review: Mapping[str, Any], reconciliation: Mapping[str, Any] | None, about: About, snapshot: Artifact | None
) -> Iterable[tuple[str, str]]:
    artifact = review["artifact"]
    producer = review.get("producer", {})
    yield "review", _clean(review["review_id"], 160)
    if reconciliation is not None:
        yield "reconciliation", _clean(reconciliation["reconciliation_id"], 160)
    yield "artifact", _clean(artifact.get("id") or _named(snapshot), 300)
    yield "kind", artifact["kind"]
    yield "revision", f"{artifact['revision']['algorithm']} {_clean(artifact['revision']['value'], 160)}"
    yield "backend", _clean(about.backend or producer.get("backend", "not told"), 160)
    if about.endpoint:
        yield "endpoint", _clean(about.endpoint, 300)
    model = about.model or producer.get("model")
    basis = about.model_basis or ("as the response states it" if model else None)
    yield "model", _clean(model or "not told", 160) + (f" ({basis.replace('_', ' ')})" if basis else "")
    yield "independence", (about.tier or "not told").replace("_", " ")
    yield "assessment", review["assessment"].replace("_", " ")
    if reconciliation is not None:
        for name in ("started_at", "completed_at", "rounds_used"):
            if name in reconciliation:
                yield name.replace("_", " "), _clean(str(reconciliation[name]), 80)


def _named(snapshot: Artifact | None) -> str:
    """Return the first members of an artifact and how many more there are."""
    names = list(snapshot.members) if snapshot is not None else []
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(_clean(name, 80) for name in names[:_NAMED]) + more if names else "not named"


def _limits(review: Mapping[str, Any], reconciliation: Mapping[str, Any] | None, about: About) -> Iterable[str]:
    told = [*review.get("limitations", ())]
    if reconciliation is not None:
        told += reconciliation.get("limitations", ())
    scope = review.get("scope", {})
    told += [f"Not asked for: {text}" for text in scope.get("excluded", ())]
    told += [f"Assumed: {text}" for text in scope.get("assumptions", ())]
    if about.raw:
        told.append("Raw output of a reviewer, not verified: this is no review.")
    if reconciliation is None:
        told.append("No finding was checked against the artifact.")
    if about.tier == "self_review":
        told.append("The work was reviewed by what made it; that is no independent opinion.")
    told.append("A finding that is not there was not looked for, or not seen: no review shows that nothing is wrong.")
    return dict.fromkeys(_clean(text) for text in told)


# --- one finding ----------------------------------------------------------------------------------------------------


def _told(
    finding: Mapping[str, Any],
    item: Mapping[str, Any] | None,
    artifact: Artifact | None,
    course: Sequence[Mapping[str, Any]],
    lines: Sequence[Mapping[str, Any]],
    *,
    breadth: str | None,
) -> Told:
    item = item or {}
    held = item.get("escalation", {})
    return Told(
        id=finding["id"],
        severity=finding["severity"],
        confidence=finding["confidence"],
        category=_maybe(finding.get("category")),
        end=_end(item or None),
        claim=_clean(finding["claim"]),
        impact=_maybe(finding.get("impact")),
        recommendation=_clean(finding["recommendation"]),
        evidence=tuple(_evidence(entry, artifact) for entry in finding["evidence"]),
        verification=tuple(verification_words(entry) for entry in item.get("verification", ())),
        host_position=_maybe(held.get("host_position") or item.get("host_position")),
        reviewer_position=_maybe(held.get("reviewer_position") or item.get("reviewer_position")),
        dispute=(
            f"{held['dispute_kind'].replace('_', ' ')}; stopped: {held['stop_reason'].replace('_', ' ')}"
            if held
            else None
        ),
        question=_maybe(held.get("operator_question")),
        resolution=_maybe(item.get("resolution")),
        steps=tuple(_step(record) for record in course),
        decisions=tuple(_decision(line) for line in lines),
        breadth=breadth,
    )


def _evidence(entry: Mapping[str, Any], artifact: Artifact | None) -> Shown:
    found = shown(entry["anchor"], artifact) if artifact is not None else None
    source = entry.get("external_source", {})
    told = (
        [str(source[name]) for name in ("title", "author", "uri", "published_at") if name in source] if source else []
    )
    return Shown(
        place=anchor_words(entry["anchor"]),
        state=found.state if found is not None else "not looked up",
        observation=_clean(entry["observation"]),
        grounding=entry["grounding"].replace("_", " "),
        source=_clean(", ".join(told)) if told else None,
        passages=found.passages if found is not None else (),
        faults=tuple(f"{fault.rule}: {_clean(fault.message)}" for fault in found.faults) if found is not None else (),
    )


def anchor_words(anchor: Mapping[str, Any]) -> str:
    """Return an anchor as one line."""
    rest = ", ".join(f"{name} {_clean(str(value), 300)}" for name, value in anchor.items() if name != "type")
    return f"{anchor['type']}: {' '.join(rest.split())}"


def verification_words(entry: Mapping[str, Any]) -> str:
    """Return a verification as one line; one that does not count says so."""
    detail = f": {_clean(entry['detail'])}" if entry.get("detail") else ""
    counts = " (an opinion, which does not count)" if entry["method"] == "model_inference" else ""
    return f"{entry['method'].replace('_', ' ')} {entry['result']}{counts}{detail}"


def _step(record: Mapping[str, Any]) -> Step:
    return Step(_clean(record["time"], 80), _clean(record["actor"], 160), record["role"], _words(record))


def _words(record: Mapping[str, Any]) -> str:
    basis = record["basis"]
    if record["event"] == "verify":
        return f"verified: {verification_words(basis['verification'])}"
    if record["event"] == "reply":
        reply = basis["reply"]
        brought = len(reply["evidence"])
        more = f" It brings {brought} piece{'' if brought == 1 else 's'} of evidence." if brought else ""
        return f"answered, {reply['decision']}s: {_clean(reply['position'])}{more}"
    if record["event"] == "label":
        return f"labelled anew: {_label(basis)}"
    told = f"{record['from']} to {record['to']}"
    parts = []
    if record["to"] == "finding_triage":
        parts.append(_label(basis))
    parts += [
        _clean(basis[name])
        for name in ("unverifiable", "host_position", "resolution", "ruling")
        if isinstance(basis.get(name), str)
    ]
    held = basis.get("escalation")
    if isinstance(held, Mapping):
        parts.append(f"{held['dispute_kind'].replace('_', ' ')}; {held['stop_reason'].replace('_', ' ')}")
        parts.append(_clean(held["operator_question"]))
    return ": ".join((told, " ".join(parts))) if parts else told


def _label(basis: Mapping[str, Any]) -> str:
    kind = basis.get("dispute_kind")
    return f"{basis.get('label')}{f', {kind}'.replace('_', ' ') if kind else ''}"


def _decision(line: Mapping[str, Any]) -> Step:
    why = f" Corrected because: {_clean(line['reason'])}" if "reason" in line else ""
    words = f"asked by {line['channel']}: {_clean(line['question'])} Ruled: {_clean(line['ruling'])}{why}"
    return Step(_clean(line["time"], 80), _clean(line["actor"], 160), "operator", words)


def _breadth(review: Mapping[str, Any], finding_id: str) -> str | None:
    """Return how many of a panel raised a finding; that is breadth and proves nothing (§12)."""
    seats = breadth_of(review, finding_id)
    if seats is None:
        return None
    return _clean(f"raised by {seats.get('reviewers')} of {seats.get('of')} reviewers; {seats.get('means')}", 300)


def _maybe(text: str | None) -> str | None:
    return None if text is None else _clean(text)


def _clean(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text without control characters, those that reorder or hide shown as escapes, on lines of its own."""
    return "\n".join(printable(line.replace("\t", "    "), limit) for line in heard(text)[: limit + 1].splitlines())
