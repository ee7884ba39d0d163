"""A run's rows in the ledger: the receipt as evidence with measured trust, and what becomes of it.

Every row is found again by its ``source_key``, so writing it a second time writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from troth.core.errors import Refused
from troth.ledger.operations import Candidate
from troth.ledger.trust import WEIGHTS, components, creation_trust
from troth.stores.protocol import LedgerStore

WITNESS: Final = "system:witness"
"""Who captures receipts (design page, actors of a run)."""

MAX_BODY: Final = 600
"""Characters of a sentence that a row repeats; the receipt has the whole."""


def key_of(run_id: str, what: str = "") -> str:
    """Return the ``source_key`` of a run's row; without ``what`` that of its evidence."""
    return f"run:{run_id}:{what}" if what else f"run:{run_id}"


def append_once(
    store: LedgerStore, source_key: str, candidate: Candidate, trust: Callable[[], dict[str, Any]] | None = None
) -> str:
    """Append a row unless its key is there already, and return the id.

    ``trust`` is asked while nobody else can write, so that it is measured by the genesis key that governs the row.

    Raises:
        Refused: ``E_DUPLICATE_ID`` when the key stands on a row of another operation or actor; else the ledger's codes.
    """
    state = store.read().state
    known = state.source_keys.get(source_key)
    if known is None:
        row = store.append_with(lambda _: (candidate, trust() if trust is not None else None))
        return str(row["id"])
    signal = state.signals[known]
    if (signal.op, signal.actor) != (candidate.op, candidate.actor):
        raise Refused("E_DUPLICATE_ID", f"the key {source_key} stands on a row that is not this run's: {known}")
    return known


def test_counts(report: Mapping[str, Any]) -> tuple[int, int]:
    """Return tests run and passed over all graded commands (ledger spec §16).

    A command of unknown count counts as one test, by its exit. Of a command without a result nothing passed.
    """
    ran = good = 0
    for command in report.get("commands", ()):
        tests = command.get("tests") or {}
        executed, passed = tests.get("executed"), tests.get("passed")
        if executed is None or passed is None:
            executed, passed = 1, int(command.get("exit") == 0)
        ran += executed
        good += passed if command.get("exit") is not None else 0
    return ran, good


def trust_of_run(
    *,
    supported: bool,
    measured: Mapping[str, Any],
    report: Mapping[str, Any],
    causal_depth: int,
    weights: Mapping[str, float] = WEIGHTS,
    half_life_days: int | None = None,
) -> dict[str, Any]:
    """Return the asserted trust of the evidence (ledger spec §9), from what the observer and the grader measured.

    The runner's check is the receipt: its ``exit_code`` is 0 when the verdict is supported. The context window of
    an agent is not measured, so that component is 0.

    Args:
        supported: whether the verdict is.
        measured: ``seconds``, ``timeout``, ``timed_out`` and ``interrupted`` of the observed run.
        report: the grader's side report.
        causal_depth: of the evidence row.
        weights, half_life_days: those of the genesis key in force.
    """
    ran, passed = test_counts(report)
    return creation_trust(
        components(
            exit_status=0 if supported else 1,
            passed=passed,
            run=ran,
            ended_by_itself=not (measured["timed_out"] or measured["interrupted"]),
            seconds=measured["seconds"],
            timeout=measured["timeout"],
            causal_depth=causal_depth,
        ),
        weights=weights,
        half_life_days=half_life_days,
    )


def evidence_row(
    *,
    run_id: str,
    commitment: str,
    source: str,
    agent: str,
    verdict: Mapping[str, Any],
    sentence: str,
    receipt_sha256: str,
    sealing: Mapping[str, str],
) -> Candidate:
    """Return the capture that stands for a run's receipt: it cites the commitment's source.

    ``sealing`` says as which sealing the contract held, where that is known.
    """
    return Candidate(
        "capture",
        WITNESS,
        {
            "kind": "evidence",
            "body": _body(f"{run_id}: {verdict['decision']}. {sentence}"),
            "refs": [commitment],
            "meta": {
                "run": run_id,
                "receipt": f".mentu/runs/{run_id}/receipt.json",
                "receipt_sha256": receipt_sha256,
                "decision": verdict["decision"],
                "reason": verdict["reason"],
                "agent": agent,
                **sealing,
            },
        },
        trace={"parent": [source]},
        relations=[{"type": "cites", "targetId": source}],
        source_key=key_of(run_id),
    )


def submission_row(*, run_id: str, commitment: str, actor: str, evidence: str) -> Candidate:
    """Return the request for closure with a run's receipt."""
    return Candidate(
        "submit",
        actor,
        {"body": f"Submitted with the receipt of {run_id}", "commitment": commitment, "evidence": evidence},
        source_key=key_of(run_id, "submit"),
    )


def note_row(*, run_id: str, commitment: str, text: str, meta: Mapping[str, Any]) -> Candidate:
    """Return the witness's note on a commitment whose run was not submitted."""
    return Candidate(
        "annotate",
        WITNESS,
        {"body": _body(f"{run_id} {text}"), "target": commitment, "meta": {"run": run_id, **meta}},
        source_key=key_of(run_id, "told"),
    )


def _body(text: str) -> str:
    return text if len(text) <= MAX_BODY else text[: MAX_BODY - 1] + "…"
