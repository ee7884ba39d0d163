"""What a run comes to: the answer of ``check``, its exit status, and the final record (§3)."""

from __future__ import annotations

from typing import Any, Final

import orjson

from troth.deals.codes import LABELS, NON_CLAIMS, NON_CLAIMS_REF
from troth.deals.run import Deal, Run
from troth.deals.snapshots import canonical


def answer(run: Run) -> dict[str, Any]:
    """Return the answer of ``check``, to the letter of §3."""
    return {
        "deals": {name: _deal(deal) for name, deal in run.deals.items()},
        "log": [{"line": line, "event": event} for line, event in run.log],
        "balances": run.escrow.balances(),
    }


def _deal(deal: Deal) -> dict[str, Any]:
    illegal = deal.illegal
    return {
        "state": deal.state,
        "history": deal.history,
        "illegal": None if illegal is None else {"line": illegal.line, "code": illegal.code},
    }


def exit_status(run: Run) -> int:
    """Return 1 when a deal is breached or ended in a protocol error, 0 when all are settled, else 3."""
    states = [deal.state for deal in run.deals.values()]
    if any(state == "Closed:protocol_error" or state.startswith("Closed:breached(") for state in states):
        return 1
    return 0 if states and all(state == "Closed:settled" for state in states) else 3


def final_record(run: Run) -> dict[str, Any]:
    """Return the final record: the answer, and for each deal its snapshots, points, grants and the checker's results.

    The same transcript gives the same record, byte for byte when it is written by :func:`final_bytes`.
    """
    return {
        "labels": LABELS,
        "non_claims": {"see": NON_CLAIMS_REF, "says": NON_CLAIMS},
        "protocol": run.protocol,
        "step": run.now,
        "deals": {name: {**_deal(deal), **_facts(deal)} for name, deal in run.deals.items()},
        "log": [{"line": line, "event": event} for line, event in run.log],
        "balances": run.escrow.balances(),
    }


def _facts(deal: Deal) -> dict[str, Any]:
    verdict = deal.verdict
    return {
        "steps": deal.steps,
        "snapshots": [one.sha256 for one in deal.snapshots],
        "paid": deal.paid,
        "refunded": deal.refunded,
        "granted": deal.granted,
        "verdict": None if verdict is None else verdict.result,
        "checklist_results": None if verdict is None else [[item.id, item.ok] for item in verdict.checklist_results],
        "note": deal.note,
    }


def final_bytes(run: Run) -> bytes:
    """Return the final record as canonical JSON with a line feed."""
    record = final_record(run)
    try:
        return orjson.dumps(record | _CONSTANT, option=orjson.OPT_SORT_KEYS) + b"\n"
    except TypeError:
        return canonical(record) + b"\n"  # an id that no UTF-8 carries


_CONSTANT: Final = {
    "labels": orjson.Fragment(canonical(LABELS)),
    "non_claims": orjson.Fragment(canonical({"see": NON_CLAIMS_REF, "says": NON_CLAIMS})),
}
"""What is the same in every final record, written once."""
