"""Runs of a review as a host would drive them, event by event; times count up so that each record differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from review.documents import artifact, document
from troth.review.machine import Bounds
from troth.review.run import Run, applied, begun, event, result
from troth.review.shapes import OPERATOR_KINDS

SUPPORTS = {"method": "command", "result": "supports", "detail": "ran"}
CONTRADICTS = {"method": "artifact_inspection", "result": "contradicts"}
OPINION = {"method": "model_inference", "result": "contradicts"}
JUDGED = {"label": "judgment", "dispute_kind": OPERATOR_KINDS[0]}
SPENT = {"seconds": 1, "bytes": 1, "tokens": 1}


def started(bounds: Bounds | None = None) -> Run:
    """Return a run on the vectors' response before anything happened."""
    return begun(document("response"), artifact(), bounds)


def go(run: Run, name: str, to: str, basis: Mapping[str, Any], role: str = "host", kind: str = "move") -> Run:
    """Return the run after one event of a finding; an empty ``to`` leaves it in its state."""
    case = run.cases[name]
    time = f"2026-03-01T10:{len(run.records) // 60:02}:{len(run.records) % 60:02}Z"
    return applied(run, event(case, to or case.state, basis, time=time, actor=f"{role}:x", role=role, kind=kind))


def answered(run: Run, name: str, *verifications: dict[str, Any], label: dict[str, Any] | None = None) -> Run:
    """Return the run with a finding labelled, verified and ready for the host's answer."""
    basis = {"consent": "scripted", "revision": dict(run.review["artifact"]["revision"]), "levels": ["L1", "L2"]}
    run = go(run, name, "reviewed", basis, "runner")
    run = go(run, name, "finding_triage", label or {"label": "checkable"})
    run = go(run, name, "evidence_verification", {})
    for entry in verifications:
        run = go(run, name, "", {"verification": entry}, kind="verify")
    return go(run, name, "host_response", {} if verifications else {"unverifiable": "No source."})


def escalated(run: Run, name: str, *verifications: dict[str, Any]) -> Run:
    """Return the run with a judgment put to the operator."""
    escalation = {
        "dispute_kind": OPERATOR_KINDS[0], "stop_reason": "operator_authority_required",
        "operator_question": f"Does {name} stand?", "host_position": "It does not.", "reviewer_position": "It does.",
    }  # fmt: skip
    return go(answered(run, name, *verifications, label=JUDGED), name, "deadlocked", {"escalation": escalation})


def played() -> Run:
    """Return a run that ended with each of the five states, the fifth finding waiting for the operator."""
    run = go(answered(started(), "F001", SUPPORTS), "F001", "resolved", {"resolution": "Added."})
    run = go(answered(run, "F002", SUPPORTS), "F002", "accepted", {})
    run = go(answered(run, "F003", CONTRADICTS), "F003", "rejected", {})
    run = go(answered(run, "F004"), "F004", "contested", {"host_position": "I disagree."})
    run = go(run, "F004", "reviewer_rebuttal", {"spent": SPENT})
    reply = {"finding_id": "F004", "decision": "withdraw", "position": "Right.", "evidence": []}
    run = go(run, "F004", "", {"reply": reply}, "reviewer", "reply")
    run = go(run, "F004", "withdrawn", {})
    return escalated(run, "F005")


def came_to(run: Run) -> dict[str, Any]:
    """Return the run's reconciliation."""
    return result(run, "rec-1")
