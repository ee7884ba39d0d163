"""What a run came to, in sentences for a person."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troth.receipts.reasons import sentence


def tell_run(folder: Path, predicate: Mapping[str, Any], measured: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the verdict's sentence and the lines behind it: claims, coverage, and what the grader noticed."""
    lines: list[str] = []
    if measured.get("timed_out"):
        lines.append(f"the agent was ended after {measured['timeout']:g} seconds")
    if measured.get("interrupted"):
        lines.append("the agent was interrupted")
    if not measured.get("claims"):
        lines.append("the agent claimed nothing")
    lines += [
        f"line {number} of the claims is no claim: {why}" for number, why in measured.get("claim_lines_refused", ())
    ]
    lines += [f"not seen whole: {fault}" for fault in measured.get("coverage_faults", ())]
    return sentence(predicate["verdict"]["reason"]), lines
