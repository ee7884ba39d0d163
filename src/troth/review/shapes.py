"""The member lists of the review documents, as data (§§5-7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Kind = Literal["response", "reconciliation", "rebuttal"]
Check = Literal["date-time", "uri", "finding-id", "digest"]


@dataclass(frozen=True, slots=True)
class Text:
    """A string with at least one character; ``visible`` ones still show something, ``check`` names a further form."""

    visible: bool = False
    check: Check | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these strings."""

    of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer that is not smaller than this; ``2.0`` is one, as JSON Schema has it, and ``true`` is none."""

    at_least: int


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean."""


@dataclass(frozen=True, slots=True)
class Anything:
    """An object whose members are others' business."""


@dataclass(frozen=True, slots=True)
class Many:
    """A list; a ``filled`` one has at least one element."""

    of: Shape
    filled: bool = True


@dataclass(frozen=True, slots=True)
class Record:
    """A closed object, by its name in :data:`RECORDS`."""

    name: str


@dataclass(frozen=True, slots=True)
class Union:
    """An anchor: its ``type`` chooses the members it has, in :data:`ANCHORS`."""


Shape = Text | Choice | Whole | Flag | Anything | Many | Record | Union


class Member(NamedTuple):
    """A member of a closed object."""

    shape: Shape
    required: bool = False


_TEXT: Final = Text()
_SEEN: Final = Text(visible=True)
_TIME: Final = Text(check="date-time")
_DIGEST: Final = Text(check="digest")
_FINDING_ID: Final = Text(check="finding-id")
_TEXTS: Final = Many(_TEXT)

# fmt: off
ARTIFACT_KINDS: Final = ("code", "document", "decision", "research", "data", "other")
ASSESSMENTS: Final = ("approve", "needs_attention", "unable_to_assess")
SEVERITIES: Final = ("critical", "high", "medium", "low")
GROUNDINGS: Final = ("artifact_observed", "source_retrieved", "caller_provided", "inferred", "not_verified")
POINTER_FORMATS: Final = ("json_pointer", "xpath", "yaml_path", "field_path")
OUTCOMES: Final = ("converged", "deadlocked", "incomplete", "failed")
FINAL_STATES: Final = ("accepted", "rejected", "resolved", "deadlocked", "withdrawn")
METHODS: Final = ("artifact_inspection", "command", "source_retrieval", "operator_confirmation", "model_inference")
RESULTS: Final = ("supports", "contradicts", "inconclusive")
DISPUTE_KINDS: Final = (
    "evidence_conflict", "evidence_gap", "assumption_difference", "interpretation_difference",
    "value_or_priority_tradeoff", "policy_or_authority_required", "unverified_refutation",
)
OPERATOR_KINDS: Final = ("value_or_priority_tradeoff", "policy_or_authority_required")
"""The kinds of dispute that models may not settle (§7)."""
STOP_REASONS: Final = (
    "no_new_information", "round_limit", "budget_limit", "verification_unavailable", "operator_authority_required",
)
FAILURE_CODES: Final[Mapping[str, bool]] = {
    "backend_error": False, "rate_limited": True, "service_unavailable": True, "auth_error": False, "timeout": True,
    "consent_denied": False, "invalid_response": True, "artifact_unavailable": False, "cancelled": True,
}
"""Failure code -> whether recovery is plausible (§6)."""

RECORDS: Final[Mapping[str, Mapping[str, Member]]] = {
    "response": {
        "schema_version": Member(Choice(("1.0",)), required=True),
        "review_id": Member(_TEXT, required=True),
        "artifact": Member(Record("artifact"), required=True),
        "assessment": Member(Choice(ASSESSMENTS), required=True),
        "summary": Member(_SEEN, required=True),
        "findings": Member(Many(Record("finding"), filled=False), required=True),
        "created_at": Member(_TIME),
        "producer": Member(Record("producer")),
        "scope": Member(Record("scope")),
        "limitations": Member(_TEXTS),
        "extensions": Member(Anything()),
    },
    "artifact": {
        "kind": Member(Choice(ARTIFACT_KINDS), required=True),
        "revision": Member(Record("revision"), required=True),
        "id": Member(_TEXT),
    },
    "revision": {
        "algorithm": Member(Choice(("sha256", "git", "other")), required=True),
        "value": Member(_TEXT, required=True),
    },
    "producer": {
        "backend": Member(_TEXT, required=True), "model": Member(_TEXT), "request_id": Member(_TEXT),
    },
    "scope": {
        "requested": Member(_TEXTS), "excluded": Member(_TEXTS), "assumptions": Member(_TEXTS),
    },
    "finding": {
        "id": Member(_FINDING_ID, required=True),
        "severity": Member(Choice(SEVERITIES), required=True),
        "claim": Member(_SEEN, required=True),
        "evidence": Member(Many(Record("evidence")), required=True),
        "recommendation": Member(_SEEN, required=True),
        "confidence": Member(Choice(("high", "medium", "low")), required=True),
        "category": Member(_TEXT),
        "impact": Member(_TEXT),
    },
    "evidence": {
        "anchor": Member(Union(), required=True),
        "observation": Member(_SEEN, required=True),
        "grounding": Member(Choice(GROUNDINGS), required=True),
        "external_source": Member(Record("external_source")),
    },
    "external_source": {
        "type": Member(Choice(("external_source",)), required=True),
        "uri": Member(Text(check="uri")), "title": Member(_TEXT), "author": Member(_TEXT),
        "published_at": Member(_TEXT), "accessed_at": Member(_TIME), "quote": Member(_TEXT),
        "digest": Member(_DIGEST),
    },
    "reconciliation": {
        "schema_version": Member(Choice(("1.0",)), required=True),
        "reconciliation_id": Member(_TEXT, required=True),
        "review_id": Member(_TEXT, required=True),
        "outcome": Member(Choice(OUTCOMES), required=True),
        "items": Member(Many(Record("item"), filled=False), required=True),
        "artifact_revision": Member(Record("revision")),
        "started_at": Member(_TIME),
        "completed_at": Member(_TIME),
        "rounds_used": Member(Whole(0)),
        "producer": Member(Record("host")),
        "failure": Member(Record("failure")),
        "limitations": Member(_TEXTS),
        "extensions": Member(Anything()),
    },
    "host": {"backend": Member(_TEXT, required=True), "model": Member(_TEXT)},
    "item": {
        "finding_id": Member(_FINDING_ID, required=True),
        "state": Member(Choice(FINAL_STATES), required=True),
        "host_position": Member(_TEXT),
        "reviewer_position": Member(_TEXT),
        "verification": Member(Many(Record("verification"))),
        "resolution": Member(_SEEN),
        "escalation": Member(Record("escalation")),
    },
    "verification": {
        "method": Member(Choice(METHODS), required=True),
        "result": Member(Choice(RESULTS), required=True),
        "detail": Member(_TEXT),
    },
    "escalation": {
        "dispute_kind": Member(Choice(DISPUTE_KINDS), required=True),
        "stop_reason": Member(Choice(STOP_REASONS), required=True),
        "host_position": Member(_TEXT),
        "reviewer_position": Member(_TEXT),
        "operator_question": Member(_SEEN),
    },
    "failure": {
        "code": Member(Choice(tuple(FAILURE_CODES)), required=True),
        "message": Member(_SEEN, required=True),
        "retryable": Member(Flag()),
        "backend_request_id": Member(_TEXT),
    },
    "rebuttal": {
        "finding_id": Member(_FINDING_ID, required=True),
        "decision": Member(Choice(("substantiate", "withdraw")), required=True),
        "position": Member(_SEEN, required=True),
        "evidence": Member(Many(Record("evidence"), filled=False), required=True),
    },
}
"""Name of a closed object -> its members. ``producer`` is a reviewer, ``host`` who reconciled."""

ANCHORS: Final[Mapping[str, Mapping[str, Member]]] = {
    "file_range": {
        "path": Member(_TEXT, required=True), "line_start": Member(Whole(1)), "line_end": Member(Whole(1)),
        "symbol": Member(_TEXT),
    },
    "text_quote": {
        "quote": Member(_TEXT), "digest": Member(_DIGEST), "section": Member(_TEXT), "occurrence": Member(Whole(1)),
    },
    "section": {"heading": Member(_TEXT, required=True), "path": Member(_TEXT)},
    "structured_path": {
        "pointer": Member(_TEXT, required=True), "format": Member(Choice(POINTER_FORMATS)), "label": Member(_TEXT),
    },
    "generic": {"locator": Member(_TEXT, required=True), "excerpt": Member(_TEXT)},
}
"""Type of an anchor -> its members beside ``type``."""
# fmt: on
