"""An independent reading of the document rules (L1 and L2), as predicates over a whole document.

It says whether a document is valid and, where it is not, which rules any fault in it may be told by. It shares nothing
with the program: no member table, no order, no notion of soundness.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Any

TEXT, INT, BOOL, OBJ = "text", "int", "bool", "obj"
SEEN_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def visible(text: Any) -> bool:
    return isinstance(text, str) and bool(SEEN_CONTROL.sub("", text).strip())


def text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(text(each) for each in value)


def one_of(*words: str) -> Any:
    return lambda value: isinstance(value, str) and value in words


def integer(least: int) -> Any:
    return lambda value: (
        not isinstance(value, bool) and isinstance(value, (int, float)) and value == int(value) and value >= least
    )


def moment(value: Any) -> bool:
    if not isinstance(value, str) or not re.fullmatch(
        r"[0-9-]{10}T[0-9:]{8}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})", value
    ):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def digest(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch("sha256:[0-9A-Fa-f]{64}", value))


def finding_id(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch("F[0-9]{3,}", value))


def uri(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"[a-z]+:[!-~]*", value))


def closed(value: Any, required: dict[str, Any], optional: dict[str, Any]) -> bool:
    if not isinstance(value, dict) or not required.keys() <= value.keys():
        return False
    members = {**required, **optional}
    return all(name in members and members[name](part) for name, part in value.items())


def each(test: Any, *, filled: bool = True) -> Any:
    return lambda value: isinstance(value, list) and (bool(value) or not filled) and all(test(part) for part in value)


def revision(value: Any) -> bool:
    if not closed(value, {"algorithm": one_of("sha256", "git", "other"), "value": text}, {}):
        return False
    return value["algorithm"] != "sha256" or bool(re.fullmatch("[0-9A-Fa-f]{64}", value["value"]))


def anchor(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    rest = {name: part for name, part in value.items() if name != "type"}
    match value["type"]:
        case "file_range":
            lines = {"line_start": integer(1), "line_end": integer(1)}
            if not closed(rest, {"path": text}, {**lines, "symbol": text}):
                return False
            return "line_end" not in rest or ("line_start" in rest and rest["line_start"] <= rest["line_end"])
        case "text_quote":
            members = {"quote": text, "digest": digest, "section": text, "occurrence": integer(1)}
            if not closed(rest, {}, members) or not rest.keys() & {"quote", "digest"}:
                return False
            if not {"quote", "digest"} <= rest.keys():
                return True
            return hashlib.sha256(rest["quote"].encode()).hexdigest() == rest["digest"][7:].lower()
        case "section":
            return closed(rest, {"heading": text}, {"path": text})
        case "structured_path":
            kinds = one_of("json_pointer", "xpath", "yaml_path", "field_path")
            return closed(rest, {"pointer": text}, {"format": kinds, "label": text})
        case "generic":
            return closed(rest, {"locator": text}, {"excerpt": text})
    return False


def source(value: Any) -> bool:
    optional = {"uri": uri, "title": text, "author": text, "published_at": text, "accessed_at": moment, "quote": text,
                "digest": digest}  # fmt: skip
    return closed(value, {"type": one_of("external_source")}, optional) and bool(
        value.keys() & {"uri", "title", "digest"}
    )


def evidence(value: Any) -> bool:
    groundings = one_of("artifact_observed", "source_retrieved", "caller_provided", "inferred", "not_verified")
    required = {"anchor": anchor, "observation": visible, "grounding": groundings}
    return closed(value, required, {"external_source": source})


def finding(value: Any) -> bool:
    required = {
        "id": finding_id, "severity": one_of("critical", "high", "medium", "low"), "claim": visible,
        "evidence": each(evidence), "recommendation": visible, "confidence": one_of("high", "medium", "low"),
    }  # fmt: skip
    return closed(value, required, {"category": text, "impact": text})


def producer(*names: str) -> Any:
    return lambda value: closed(value, {"backend": text}, dict.fromkeys(names, text))


def anything(value: Any) -> bool:
    return isinstance(value, dict)


def artifact(value: Any) -> bool:
    kinds = one_of("code", "document", "decision", "research", "data", "other")
    return closed(value, {"kind": kinds, "revision": revision}, {"id": text})


def response(value: Any) -> bool:
    scope = lambda part: closed(part, {}, dict.fromkeys(("requested", "excluded", "assumptions"), texts))  # noqa: E731 - one use
    required = {
        "schema_version": one_of("1.0"), "review_id": text, "artifact": artifact, "summary": visible,
        "assessment": one_of("approve", "needs_attention", "unable_to_assess"),
        "findings": each(finding, filled=False),
    }  # fmt: skip
    optional = {"created_at": moment, "producer": producer("model", "request_id"), "scope": scope,
                "limitations": texts, "extensions": anything}  # fmt: skip
    if not closed(value, required, optional):
        return False
    names = [each_finding["id"] for each_finding in value["findings"]]
    if len(set(names)) < len(names) or (value["assessment"] == "needs_attention") != bool(names):
        return False
    return value["assessment"] != "unable_to_assess" or "limitations" in value


METHODS = ("artifact_inspection", "command", "source_retrieval", "operator_confirmation", "model_inference")


def verification(value: Any) -> bool:
    required = {"method": one_of(*METHODS), "result": one_of("supports", "contradicts", "inconclusive")}
    return closed(value, required, {"detail": text})


def escalation(value: Any) -> bool:
    kinds = one_of("evidence_conflict", "evidence_gap", "assumption_difference", "interpretation_difference",
                   "value_or_priority_tradeoff", "policy_or_authority_required", "unverified_refutation")  # fmt: skip
    stops = one_of("no_new_information", "round_limit", "budget_limit", "verification_unavailable",
                   "operator_authority_required")  # fmt: skip
    optional = {"host_position": text, "reviewer_position": text, "operator_question": visible}
    return closed(value, {"dispute_kind": kinds, "stop_reason": stops}, optional)


def counts(item: dict[str, Any], result: str) -> bool:
    return any(v["result"] == result and v["method"] != "model_inference" for v in item.get("verification", []))


def item_stands(item: dict[str, Any], rounds: int) -> bool:
    state, held = item["state"], item.get("escalation")
    if (state == "deadlocked" and held is None) or (
        state in ("accepted", "rejected", "withdrawn") and held is not None
    ):
        return False
    if state == "rejected" and not counts(item, "contradicts"):
        return False
    if (state == "accepted" or (state == "resolved" and held is None)) and not counts(item, "supports"):
        return False
    if state == "resolved" and "resolution" not in item:
        return False
    if state == "withdrawn" and ("reviewer_position" not in item or rounds < 1):
        return False
    if held is None:
        return True
    for name in ("host_position", "reviewer_position"):
        if not visible(held.get(name)) and not visible(item.get(name)):
            return False
    if held["dispute_kind"] == "unverified_refutation" and counts(item, "contradicts"):
        return False
    return "operator_question" in held and (held["stop_reason"] != "round_limit" or rounds >= 1)


def reconciliation(value: Any) -> bool:
    states = one_of("accepted", "rejected", "resolved", "deadlocked", "withdrawn")
    optional_item = {"host_position": text, "reviewer_position": text, "verification": each(verification),
                     "resolution": visible, "escalation": escalation}  # fmt: skip
    item = lambda part: closed(part, {"finding_id": finding_id, "state": states}, optional_item)  # noqa: E731 - one use
    codes = one_of("backend_error", "rate_limited", "service_unavailable", "auth_error", "timeout", "consent_denied",
                   "invalid_response", "artifact_unavailable", "cancelled")  # fmt: skip
    failure = lambda part: closed(  # noqa: E731 - one use
        part,
        {"code": codes, "message": visible},
        {"retryable": lambda v: isinstance(v, bool), "backend_request_id": text},
    )
    required = {
        "schema_version": one_of("1.0"), "reconciliation_id": text, "review_id": text,
        "outcome": one_of("converged", "deadlocked", "incomplete", "failed"), "items": each(item, filled=False),
    }  # fmt: skip
    optional = {"artifact_revision": revision, "started_at": moment, "completed_at": moment, "rounds_used": integer(0),
                "producer": producer("model"), "failure": failure, "limitations": texts,
                "extensions": anything}  # fmt: skip
    if not closed(value, required, optional):
        return False
    rounds = value.get("rounds_used", 0)
    names = [part["finding_id"] for part in value["items"]]
    stuck = any(part["state"] == "deadlocked" for part in value["items"])
    outcome = value["outcome"]
    if len(set(names)) < len(names) or not all(item_stands(part, rounds) for part in value["items"]):
        return False
    if (outcome == "converged" and stuck) or (outcome == "deadlocked" and not stuck):
        return False
    if (outcome == "failed") != ("failure" in value) or (outcome == "incomplete" and "limitations" not in value):
        return False
    if outcome != "failed" and "artifact_revision" not in value:
        return False
    if "started_at" not in value or "completed_at" not in value:
        return True
    start, end = (datetime.fromisoformat(value[n]) for n in ("started_at", "completed_at"))
    return end >= start
