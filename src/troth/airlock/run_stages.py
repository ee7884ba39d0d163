"""The stages of a run behind its observation: grade, write the receipt, capture it as evidence, submit, tell.

Each is saved before the next begins, so that what a crash leaves can be taken up where it stood; rows of the ledger are
found again by their ``source_key``, so taking a run up twice writes nothing twice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from troth import __version__
from troth.airlock.evidence import (
    WITNESS,
    append_once,
    evidence_row,
    key_of,
    note_row,
    submission_row,
    trust_of_run,
)
from troth.airlock.run_parts import MOVED_ON, TABLE, Bench, Outcome, options_of
from troth.airlock.runs import RunState, put, record_of
from troth.airlock.sealed import CONTRACT, read_seal
from troth.airlock.sealings import sealing_of
from troth.airlock.stopping import load_table
from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused

if TYPE_CHECKING:
    from troth.ledger.replay import Commitment

VERIFIER: Final = f"urn:troth:verifier:{__version__}"

RECEIPT: Final = "receipt.json"
REPORT: Final = "report.json"


def from_observed(bench: Bench, state: RunState) -> Outcome:
    if state.stage == "observed":
        state = _grade(bench, state)
    if state.stage == "graded":
        state = _write_receipt(bench, state)
    if state.stage == "receipted":
        state = _capture(bench, state)
    if state.stage == "captured":
        state = _conclude(bench, state)
    return _outcome(bench, state)


def _grade(bench: Bench, state: RunState) -> RunState:
    from troth.observer.grade import grade
    from troth.observer.tree import snapshot

    folder = bench.runs.path(state.id)
    tree = record_of(folder, "tree.json")
    bench.tell("grading: the acceptance commands on a copy of the final tree")
    if snapshot(bench.workspace.root).digest != tree.get("tree_sha256"):
        raise Refused(
            "E_RUN_TREE_CHANGED",
            f"the workspace is no longer the tree that {state.id} left, so it cannot be graded",
            place=Place(file=str(bench.workspace.root)),
            remedy=f"Put it back, or clear the run with: troth release {state.commitment}",
        )
    seal = read_seal(folder / CONTRACT)
    graded = grade(
        (folder / CONTRACT).read_bytes(),
        bench.workspace.root,
        folder / "private" / "start",
        tree_sha256=tree["tree_sha256"],
        claim_id=state.commitment,
        invocation_id=state.id,
        inside=str(bench.workspace.root),
        repeats=options_of(state).repeats,
        seal=json.loads(seal) if seal is not None else None,
        scratch=folder / "private",
    )
    put(folder / "grade.json", graded.record)
    report = {"grade": graded.report, "isolation": graded.isolation, "secrets": (state.measured or {}).get("secrets")}
    put(folder / REPORT, record_bytes(report))
    return bench.runs.advance(state, "graded")


def _write_receipt(bench: Bench, state: RunState) -> RunState:
    from troth.airlock.telling import tell_run
    from troth.receipts.member import MappingMember
    from troth.receipts.verify import examine
    from troth.receipts.writing import build_receipt, self_pin

    folder = bench.runs.path(state.id)
    options = options_of(state)
    names = ("contract", "tree", "observation", "capability", "grade", "claims", "launch", "launch-receipt")
    files = {f"{name}.json": (folder / f"{name}.json").read_bytes() for name in names}
    measured = state.measured or {}
    pinned = self_pin(
        files,
        claim_id=state.commitment,
        invocation_id=state.id,
        scope=measured["scope"],
        observed_party=state.actor,
        authority=f"{WITNESS}, by its own pins",
    )
    report = record_of(folder, REPORT, "grade", "isolation")
    receipt = build_receipt(
        {**files, **pinned},
        verifier_id=options.verifier_id or VERIFIER,
        with_launch=options.with_launch,
        isolation=report["isolation"],
        table=load_table(folder / TABLE) if options.table is not None else None,
        replans=_replans(bench, state),
    )
    for name, data in {**pinned, RECEIPT: receipt}.items():
        put(folder / name, data)
    told = tell_run(examine(MappingMember({**files, **pinned, RECEIPT: receipt})), measured, report["grade"])
    predicate = json.loads(receipt)["predicate"]
    verdict = predicate["verdict"]
    return bench.runs.advance(
        state,
        "receipted",
        decision=verdict["decision"],
        reason=verdict["reason"],
        told=told.as_json(),
        stop=predicate.get("stop_decision"),
    )


def _replans(bench: Bench, state: RunState) -> int:
    """Return how often in a row the commitment was sent back already, by the decisions of its earlier runs."""
    count = 0
    for earlier in bench.runs.states():
        if earlier.commitment == state.commitment and earlier.id != state.id and earlier.stop is not None:
            count = count + 1 if earlier.stop["action"] == "replan" else 0
    return count


def _capture(bench: Bench, state: RunState) -> RunState:
    folder = bench.runs.path(state.id)
    report = record_of(folder, REPORT, "grade")["grade"]
    ledger = bench.store.read().state
    source = ledger.commitments[state.commitment].source
    sealing = sealing_of((folder / CONTRACT).read_bytes(), read_seal(folder / CONTRACT))
    row = evidence_row(
        run_id=state.id,
        commitment=state.commitment,
        source=source,
        agent=state.actor,
        verdict={"decision": state.decision, "reason": state.reason},
        sentence=state.told["sentence"],
        receipt_sha256=sha256_hex((folder / RECEIPT).read_bytes()),
        sealing=sealing.as_meta() if sealing is not None else {},
    )

    def trust() -> dict[str, Any]:
        ruling = bench.store.ruling()
        return trust_of_run(
            supported=state.decision == "supported",
            measured=state.measured or {},
            report=report,
            causal_depth=ledger.depth_of([source]),
            weights=ruling.weights,
            half_life_days=ruling.half_life_days,
        )

    evidence = append_once(bench.store, key_of(state.id), row, trust)
    return bench.runs.advance(state, "captured", evidence=evidence)


def _conclude(bench: Bench, state: RunState) -> RunState:
    options = options_of(state)
    submission = refused = None
    why = f"was not submitted: {state.decision}. {state.told['sentence']}"
    if state.decision == "supported" or (state.decision == "not_established" and options.submit_anyway):
        row = submission_row(
            run_id=state.id, commitment=state.commitment, actor=state.actor, evidence=state.evidence or ""
        )
        try:
            submission = append_once(bench.store, key_of(state.id, "submit"), row)
        except Refused as fault:
            if fault.code not in MOVED_ON:
                raise
            refused = fault.code
            why = f"was not submitted: the ledger refused with {fault.code}: {fault.message}"
    if submission is None:
        meta: dict[str, Any] = {"evidence": state.evidence, "decision": state.decision, "reason": state.reason}
        if state.told["missing"]:
            meta["missing"] = state.told["missing"]
        note = note_row(run_id=state.id, commitment=state.commitment, text=why, meta=meta)
        append_once(bench.store, key_of(state.id, "told"), note)
    if not options.keep_trace:
        bench.runs.discard_private(state.id)
    return bench.runs.advance(state, "finished", submission=submission, note=why if refused else None, refused=refused)


def _outcome(bench: Bench, state: RunState) -> Outcome:
    from troth.airlock.telling import ends_of_output, whole_output
    from troth.airlock.validating import Airlock

    airlock = None
    if state.submission is not None:
        # The run is finished and its lock still held: what a validator's command looks at is what the agent left.
        airlock = Airlock(bench.store, tell=bench.tell).take(state.submission)
    folder = bench.runs.path(state.id)
    predicate = record_of(folder, RECEIPT, "predicate")["predicate"]
    report = record_of(folder, REPORT, "grade")["grade"]
    commitment = bench.store.read().state.commitments[state.commitment]
    lines = list(state.told["lines"])
    if state.note is not None:
        lines.append(f"{state.id} {state.note}")
    if state.stop is not None:
        lines.append(f"decided by the table: {state.stop['action']} ({state.stop['reason']})")
    return Outcome(
        run=state.id,
        folder=folder,
        commitment=state.commitment,
        done=predicate["verdict"],
        checks=predicate["checks"],
        sentence=state.told["sentence"],
        lines=tuple(lines),
        missing=tuple(state.told["missing"]),
        evidence=state.evidence or "",
        submission=state.submission,
        ledger_says=_ledger_words(commitment),
        refused=state.refused,
        airlock=airlock,
        stop=state.stop,
        ends=tuple(ends_of_output(report)),
        printed=tuple(whole_output(report)),
    )


def _ledger_words(commitment: Commitment) -> str:
    if commitment.state == "in_review":
        return "in_review, waiting for an approval"
    if commitment.state == "claimed":
        return f"claimed by {commitment.owner}"
    if commitment.state == "closed":
        return f"closed by {commitment.closed_by}"
    return str(commitment.state)
