"""Rules between the parts of one document: those a schema can state (L1) and those none can (L2), §§5-7."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from troth.core.digests import sha256_hex
from troth.review.formats import instant, is_sha256, is_visible
from troth.review.shapes import OPERATOR_KINDS, Kind
from troth.review.structure import Findings, Path, whole

__all__ = ["OPERATOR_KINDS", "counting", "evidence_of", "relate"]

INFERENCE: Final = "model_inference"


def relate(kind: Kind, value: Any, findings: Findings) -> None:
    """Apply every rule between parts of the document, each where the parts it reads are sound."""
    if not isinstance(value, dict):
        return
    for place in _REVISIONS.get(kind, ()):
        _relate_revision(value, place, findings)
    for place, evidence in evidence_of(kind, value):
        _relate_evidence(place, evidence, findings)
    if kind == "response":
        _relate_response(value, findings)
    elif kind == "reconciliation":
        _relate_reconciliation(value, findings)
    elif findings.sound(("decision",), ("evidence",)) and value["decision"] == "substantiate" and not value["evidence"]:
        findings.relate("rebuttal-evidence", ("evidence",), "the finding is substantiated without evidence")


_REVISIONS: Final[Mapping[str, tuple[Path, ...]]] = {
    "response": (("artifact", "revision"),),
    "reconciliation": (("artifact_revision",),),
}


def evidence_of(kind: Kind, value: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each evidence object of a document with its path, whatever else is wrong with the document."""
    if not isinstance(value, dict):
        return
    if kind == "response":
        for number, finding in _objects(value.get("findings")):
            for inner, evidence in _objects(finding.get("evidence")):
                yield ("findings", number, "evidence", inner), evidence
    elif kind == "rebuttal":
        for inner, evidence in _objects(value.get("evidence")):
            yield ("evidence", inner), evidence


def _objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    if not isinstance(value, list):
        return []
    return [(number, element) for number, element in enumerate(value) if isinstance(element, dict)]


def _relate_revision(document: dict[str, Any], place: Path, findings: Findings) -> None:
    value: Any = document
    for step in place:
        value = value.get(step) if isinstance(value, dict) and isinstance(step, str) else None
    if not isinstance(value, dict) or not findings.sound((*place, "algorithm"), (*place, "value")):
        return
    if value["algorithm"] == "sha256" and not is_sha256(value["value"]):
        findings.report("sha256-shape", (*place, "value"), "a sha256 value is 64 hexadecimal digits")


def _relate_evidence(place: Path, evidence: dict[str, Any], findings: Findings) -> None:
    source = evidence.get("external_source")
    where = (*place, "external_source")
    if (
        isinstance(source, dict)
        and findings.usable(where)
        and not any(name in source for name in ("uri", "title", "digest"))
    ):
        findings.relate("source-identity", where, "the source has neither uri nor title nor digest")
    anchor = evidence.get("anchor")
    where = (*place, "anchor")
    if not isinstance(anchor, dict) or not findings.usable(where):
        return
    if anchor.get("type") == "text_quote":
        _relate_quote(where, anchor, findings)
    elif anchor.get("type") == "file_range" and "line_end" in anchor:
        end = (*where, "line_end")
        if "line_start" not in anchor:
            findings.relate("line-end-alone", end, "line_end stands without line_start")
        elif findings.sound((*where, "line_start"), end):
            first, last = whole(anchor["line_start"]), whole(anchor["line_end"])
            if first is not None and last is not None and last < first:
                findings.report("line-order", end, f"line {last} is before line {first}")


def _relate_quote(where: Path, anchor: dict[str, Any], findings: Findings) -> None:
    if "quote" not in anchor and "digest" not in anchor:
        findings.relate("text-quote-content", where, "the anchor has neither quote nor digest")
    elif "quote" in anchor and "digest" in anchor and findings.sound((*where, "quote"), (*where, "digest")):
        own = "sha256:" + sha256_hex(anchor["quote"].encode())
        if own != anchor["digest"].lower():
            findings.report("quote-digest", (*where, "digest"), f"the quote's digest is {own}")


def _relate_response(value: dict[str, Any], findings: Findings) -> None:
    if findings.sound(("assessment",)) and findings.usable(("findings",)) and "findings" in value:
        wanted = value["assessment"] == "needs_attention"
        if wanted != bool(value["findings"]):
            said = "none under needs_attention" if wanted else f"{len(value['findings'])} under {value['assessment']}"
            findings.relate("assessment-findings", ("findings",), f"findings: {said}")
    if findings.sound(("assessment",)) and value["assessment"] == "unable_to_assess" and "limitations" not in value:
        findings.relate("unable-limitations", ("limitations",), "unable_to_assess does not say why")
    _unique(value.get("findings"), "findings", "id", "unique-finding-ids", findings)


def _unique(elements: Any, name: str, member: str, rule: str, findings: Findings) -> None:
    seen: set[str] = set()
    for number, element in _objects(elements):
        place = (name, number, member)
        if not findings.sound(place):
            continue
        if element[member] in seen:
            findings.relate(rule, place, f"{element[member]} stands twice")
        seen.add(element[member])


# --- the reconciliation ---


def counting(verification: Any, result: str) -> bool | None:
    """Tell whether a verification of that result is among them: ``True`` one that counts, ``False`` only a model's.

    ``None`` when there is none at all. One counts unless its method is ``model_inference`` (§3).
    """
    methods = [entry["method"] for entry in verification if entry["result"] == result]
    return None if not methods else any(method != INFERENCE for method in methods)


def _relate_reconciliation(value: dict[str, Any], findings: Findings) -> None:
    for number, item in _objects(value.get("items")):
        _relate_item(value, item, ("items", number), findings)
    _unique(value.get("items"), "items", "finding_id", "unique-item-ids", findings)
    _relate_times(value, findings)
    if not findings.sound(("outcome",)):
        return
    outcome = value["outcome"]
    _relate_outcome(value, outcome, findings)
    if (outcome == "failed") != ("failure" in value):
        said = "the outcome is failed and no failure is told" if outcome == "failed" else "a failure under " + outcome
        if outcome == "failed" or not findings.published:
            findings.relate("failure-presence", ("failure",), said)
    if outcome == "incomplete" and "limitations" not in value:
        findings.relate(
            "incomplete-limitations", ("limitations",), "what is undone, and which bound was hit, is not told"
        )
    if outcome != "failed" and "artifact_revision" not in value:
        findings.relate("revision-presence", ("artifact_revision",), "the artifact's revision is missing")


def _relate_outcome(value: dict[str, Any], outcome: str, findings: Findings) -> None:
    items = value.get("items", ())
    if not findings.usable(("items",)) or not all(isinstance(item, dict) for item in items):
        return
    if not all(findings.sound(("items", number, "state")) for number in range(len(items))):
        return
    deadlocked = [item for item in items if item["state"] == "deadlocked"]
    if outcome == "converged" and deadlocked:
        findings.relate("outcome-items", ("outcome",), f"converged with {len(deadlocked)} deadlocked")
    elif outcome == "deadlocked" and not deadlocked:
        findings.relate("outcome-items", ("outcome",), "deadlocked without a deadlocked item")


def _relate_times(value: dict[str, Any], findings: Findings) -> None:
    if "started_at" in value and "completed_at" in value and findings.sound(("started_at",), ("completed_at",)):
        start, end = instant(value["started_at"]), instant(value["completed_at"])
        if start is not None and end is not None and end < start:
            findings.relate("time-order", ("completed_at",), "completed before it was started")


def _relate_item(document: dict[str, Any], item: dict[str, Any], place: Path, findings: Findings) -> None:
    if not findings.sound((*place, "state")):
        return
    state = item["state"]
    escalated = "escalation" in item
    if escalated != (state == "deadlocked") and state != "resolved":
        where = (*place, "escalation")
        if not escalated:
            findings.relate("escalation-presence", where, "a deadlocked item without an escalation")
        elif not findings.published:
            findings.relate("escalation-presence", where, f"an escalation on an item that is {state}")
    if state == "rejected":
        _needs("contradicts", "rejection-contradiction", item, place, findings)
    elif state == "accepted" or (state == "resolved" and not escalated):
        _needs("supports", "agreement-support", item, place, findings)
    if state == "resolved" and "resolution" not in item:
        findings.relate("resolution-text", (*place, "resolution"), "the item does not say what was done")
    if state == "withdrawn":
        lacking = [] if "reviewer_position" in item else ["no position of the reviewer"]
        if findings.sound(("rounds_used",)) and not _rounds(document):
            lacking.append("no round was used")
        if lacking:
            findings.relate("withdrawal-basis", place, f"withdrawn with {' and '.join(lacking)}")
    if isinstance(item.get("escalation"), dict) and state in ("deadlocked", "resolved"):
        _relate_escalation(document, item, place, findings)


def _rounds(document: dict[str, Any]) -> int:
    return whole(document.get("rounds_used", 0)) or 0


def _needs(result: str, rule: str, item: dict[str, Any], place: Path, findings: Findings) -> None:
    where = (*place, "verification")
    if not findings.sound(where):
        return
    found = counting(item.get("verification", ()), result)
    if found is None:
        findings.relate(rule, where if "verification" in item else place, f"{item['state']}: no verification {result}")
    elif not found:
        findings.relate("inference-only", where, f"only a model's opinion {result}")


def _relate_escalation(document: dict[str, Any], item: dict[str, Any], place: Path, findings: Findings) -> None:
    escalation, where = item["escalation"], (*place, "escalation")
    lacking = [] if "operator_question" in escalation else ["the operator's question"]
    for name, whose in (("host_position", "the host's position"), ("reviewer_position", "the reviewer's position")):
        sound = findings.sound((*where, name), (*place, name))
        if sound and not any(is_visible(held[name]) for held in (escalation, item) if name in held):
            lacking.append(whose)
    if lacking:
        findings.relate("escalation-context", where, f"the escalation lacks {', '.join(lacking)}")
    if (
        escalation.get("dispute_kind") == "unverified_refutation"
        and findings.sound((*place, "verification"))
        and counting(item.get("verification", ()), "contradicts")
    ):
        findings.relate(
            "unverified-refutation-basis", where, "an unverified refutation with a verification that contradicts"
        )
    if escalation.get("stop_reason") == "round_limit" and findings.sound(("rounds_used",)) and not _rounds(document):
        findings.relate("round-limit-basis", (*where, "stop_reason"), "a limit of rounds, and no round was used")
