"""One run from claim to proof: claim, observe, grade, write the receipt, capture it as evidence, submit.

Each stage is saved before the next begins, so that what a crash leaves can be taken up where it stood. Every row that a
run writes is found again by its ``source_key``, so taking a run up twice writes nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth import __version__
from troth.airlock.runs import Runs, RunState
from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused
from troth.core.ids import RandomHex, new_id, system_random
from troth.core.instants import Clock, format_instant, system_clock
from troth.ledger.operations import Candidate
from troth.observer.protected import entries_of
from troth.stores.durable import read_regular, replace_whole

if TYPE_CHECKING:
    from troth.ledger.replay import Commitment
    from troth.stores.jsonl import JsonlStore
    from troth.stores.workspace import Workspace

WITNESS: Final = "system:witness"
"""Who captures receipts (design page, actors of a run)."""

VERIFIER: Final = f"urn:troth:verifier:{__version__}"

EXITS: Final = {"supported": 0, "contradicted": 1, "not_established": 3}

CONTRACT: Final = "contract.json"
SEAL: Final = "seal.json"
RECEIPT: Final = "receipt.json"
REPORT: Final = "report.json"
_CONTRACT_LIMIT: Final = 1 << 24

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is made; plain values, so that a run can be taken up again. ``timeout`` in seconds."""

    timeout: float = 3600.0
    network: bool = False
    allow_read: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    claims_file: str | None = None
    repeats: int = 1
    with_launch: bool = False
    submit_anyway: bool = False
    keep_trace: bool = False
    verifier_id: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    ``done`` and ``checks`` have the shapes of done records §9; ``sentence`` says the verdict for a person; ``lines``
    are further facts; ``evidence`` and ``submission`` are ids of ledger rows.
    """

    run: str
    folder: Path
    commitment: str
    done: Mapping[str, Any]
    checks: Sequence[Mapping[str, Any]]
    sentence: str
    lines: tuple[str, ...]
    evidence: str
    submission: str | None
    ledger_says: str

    @property
    def exit_code(self) -> int:
        """Return the exit status of the verdict."""
        return EXITS[self.done["decision"]]

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``troth run --json`` prints."""
        return {
            "run": self.run,
            "folder": str(self.folder),
            "commitment": self.commitment,
            "done": dict(self.done),
            "checks": [dict(check) for check in self.checks],
            "sentence": self.sentence,
            "notes": list(self.lines),
            "evidence": self.evidence,
            "submission": self.submission,
            "state": self.ledger_says,
        }


@dataclass(frozen=True, slots=True)
class _Bench:
    """What every stage of a run needs."""

    workspace: Workspace
    store: JsonlStore
    runs: Runs
    show: tuple[int, int] | None
    tell: Tell
    clock: Clock
    random_hex: RandomHex = field(default=system_random)


def read_contract(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Read and parse a sealed contract.

    Raises:
        Refused: ``E_CONTRACT_MISSING``, or the record's own code (done records §4.1).
    """
    from troth.receipts import records
    from troth.receipts.strict import parse

    data = read_regular(path, _CONTRACT_LIMIT, "E_CONTRACT_MISSING", "the contract")
    try:
        return data, records.contract(parse(data, "contract"))
    except Refused as fault:
        raise Refused(
            fault.code, f"the contract is malformed: {fault.message}", place=Place(file=str(path)),
            remedy="Seal it anew with: troth contract seal FILE.toml",
        ) from None  # fmt: skip


def _read_seal(path: Path) -> bytes | None:
    """Return the side report of sealing that lies beside a contract, if one does."""
    return read_regular(path, _CONTRACT_LIMIT, "E_CONTRACT_MISSING", "the seal's report") if path.exists() else None


def run_commitment(
    workspace: Workspace,
    store: JsonlStore,
    *,
    commitment: str | None,
    new: str | None,
    contract_file: Path,
    argv: Sequence[str],
    actor: str,
    options: RunOptions,
    show: tuple[int, int] | None,
    tell: Tell = lambda _: None,
    clock: Clock = system_clock,
    random_hex: RandomHex = system_random,
) -> Outcome:
    """Run an agent on a commitment and write what the records establish.

    Args:
        workspace: where the agent works.
        store: its ledger.
        commitment: id (or unambiguous prefix) of the commitment; ``None`` with ``new``.
        new: text of an observation to record and commit to first.
        contract_file: the sealed contract; read before anything starts.
        argv: the agent's program and arguments.
        actor: who claims and submits.
        options: how the run is made.
        show: descriptors for the agent's output, or ``None``.
        tell: told in words which stage begins.
        clock, random_hex: where time and randomness come from.

    Raises:
        Refused: an operation's code, ``E_START_DIFFERS``, or a code of the observer's; nothing was run.
        Busy: ``E_RUN_BUSY``.
    """
    from troth.observer.seal import require_start
    from troth.observer.tree import snapshot

    bench = _Bench(workspace, store, Runs(workspace.folder), show, tell, clock, random_hex)
    data, record = read_contract(contract_file)
    seal = _read_seal(contract_file.parent / SEAL)
    with bench.runs.exclusively():
        require_start(entries_of(record), snapshot(workspace.root), workspace.root)
        target = _target(store, commitment, new, actor)
        _claim(store, target, actor)
        run_id = new_id("run_", lambda name: bench.runs.path(name).exists(), random_hex)
        state = RunState(
            id=run_id,
            commitment=target,
            actor=actor,
            argv=tuple(argv),
            contract_sha256=sha256_hex(data),
            stage="started",
            started=format_instant(clock()),
            options=asdict(options),
        )
        folder = bench.runs.create(state)
        replace_whole(folder / CONTRACT, data)
        if seal is not None:
            replace_whole(folder / SEAL, seal)
        return _from_start(bench, state)


def resume_run(
    workspace: Workspace,
    store: JsonlStore,
    word: str,
    *,
    show: tuple[int, int] | None,
    tell: Tell = lambda _: None,
    clock: Clock = system_clock,
    random_hex: RandomHex = system_random,
) -> Outcome:
    """Take up a run that was left before its end.

    A run whose observation was not written is abandoned and made anew with the same arguments; a later one goes on from
    its last stage.

    Raises:
        Refused: ``E_RUN_UNKNOWN``, ``E_RUN_FINISHED``, ``E_RUN_TREE_CHANGED``.
        Busy: ``E_RUN_BUSY``.
    """
    bench = _Bench(workspace, store, Runs(workspace.folder), show, tell, clock, random_hex)
    with bench.runs.exclusively():
        state = bench.runs.find(word)
        if not state.open:
            raise Refused("E_RUN_FINISHED", f"{state.id} has ended ({state.stage})", remedy="See: troth runs")
        if state.stage != "started":
            return _from_observed(bench, state)
        contract_file = bench.runs.path(state.id) / "contract.json"
    outcome = run_commitment(
        workspace,
        store,
        commitment=state.commitment,
        new=None,
        contract_file=contract_file,
        argv=state.argv,
        actor=state.actor,
        options=options_of(state),
        show=show,
        tell=tell,
        clock=clock,
        random_hex=random_hex,
    )
    bench.runs.discard_private(state.id)
    bench.runs.advance(state, "abandoned", note=f"made anew as {outcome.run}")
    return outcome


def options_of(state: RunState) -> RunOptions:
    """Return the options a run was started with."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in state.options.items()}
    return RunOptions(**values)


def _target(store: JsonlStore, commitment: str | None, new: str | None, actor: str) -> str:
    if new is not None:
        seen = store.append(Candidate("capture", actor, {"body": new}))
        row = store.append(
            Candidate(
                "commit", actor, {"body": new, "source": seen["id"]},
                relations=[{"type": "cites", "targetId": seen["id"]}],
            )
        )  # fmt: skip
        return str(row["id"])
    assert commitment is not None
    known = store.read().state.commitments
    matches = [known[commitment]] if commitment in known else [c for i, c in known.items() if i.startswith(commitment)]
    if len(matches) != 1:
        what = "no commitment" if not matches else f"{len(matches)} commitments"
        raise Refused(
            "E_REF_NOT_FOUND", f"{what} of that name: {commitment!r}", detail="absent", remedy="See: troth status"
        )
    return matches[0].id


def _claim(store: JsonlStore, commitment: str, actor: str) -> None:
    found = store.read().state.commitments[commitment]
    if found.state == "claimed" and found.owner == actor:
        return  # reopened work, or a second attempt: it is the actor's already
    store.append(Candidate("claim", actor, {"body": f"Claimed by {actor}", "commitment": commitment}))


def _from_start(bench: _Bench, state: RunState) -> Outcome:
    from troth.observer.observe import Request, observe

    options = options_of(state)
    folder = bench.runs.path(state.id)
    entries = entries_of(json.loads((folder / CONTRACT).read_bytes()))
    private = folder / "private"
    private.mkdir(mode=0o700)
    observed = observe(
        Request(
            workspace=bench.workspace.root,
            argv=state.argv,
            claim_id=state.commitment,
            invocation_id=state.id,
            private=private,
            protects=lambda path: any(entry.covers(path) for entry in entries),
            timeout=options.timeout,
            network=options.network,
            allow_read=tuple(map(Path, options.allow_read)),
            allow_write=tuple(map(Path, options.allow_write)),
            env=options.env,
            claims_file=Path(options.claims_file) if options.claims_file else None,
            show=bench.show,
        ),
        clock=bench.clock,
        tell=bench.tell,
    )
    for name, data in observed.files.items():
        replace_whole(folder / name, data)
    measured = {
        "agent_exit": observed.report.root_exit,
        "timed_out": observed.launched.timed_out,
        "interrupted": observed.launched.interrupted,
        "seconds": round(observed.seconds, 3),
        "timeout": options.timeout,
        "scope": observed.origin.scope,
        "coverage_faults": list(observed.coverage_faults),
        "claims": len(observed.claims.entries),
        "claim_lines_refused": [list(item) for item in observed.claims.refused[:20]],
        "refused": len(observed.report.refused),
    }
    state = bench.runs.advance(state, "observed", measured=measured)
    return _from_observed(bench, state)


def _from_observed(bench: _Bench, state: RunState) -> Outcome:
    if state.stage == "observed":
        state = _grade(bench, state)
    if state.stage == "graded":
        state = _write_receipt(bench, state)
    if state.stage == "receipted":
        state = _capture(bench, state)
    if state.stage == "captured":
        state = _conclude(bench, state)
    return _outcome(bench, state)


def _grade(bench: _Bench, state: RunState) -> RunState:
    from troth.observer.grade import grade
    from troth.observer.tree import snapshot

    folder = bench.runs.path(state.id)
    tree = json.loads((folder / "tree.json").read_bytes())
    bench.tell("grading: the acceptance commands on a copy of the final tree")
    if snapshot(bench.workspace.root).digest != tree["tree_sha256"]:
        raise Refused(
            "E_RUN_TREE_CHANGED",
            f"the workspace is no longer the tree that {state.id} left, so it cannot be graded",
            place=Place(file=str(bench.workspace.root)),
            remedy=f"Put it back, or clear the run with: troth release {state.commitment}",
        )
    seal = _read_seal(folder / SEAL)
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
    replace_whole(folder / "grade.json", graded.record)
    replace_whole(folder / REPORT, record_bytes({"grade": graded.report, "isolation": graded.isolation}))
    return bench.runs.advance(state, "graded")


def _write_receipt(bench: _Bench, state: RunState) -> RunState:
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
    isolation = json.loads((folder / REPORT).read_bytes())["isolation"]
    receipt = build_receipt(
        {**files, **pinned},
        verifier_id=options.verifier_id or VERIFIER,
        with_launch=options.with_launch,
        isolation=isolation,
    )
    for name, data in {**pinned, RECEIPT: receipt}.items():
        replace_whole(folder / name, data)
    verdict = json.loads(receipt)["predicate"]["verdict"]
    return bench.runs.advance(state, "receipted", decision=verdict["decision"], reason=verdict["reason"])


def _trust(state: RunState, report: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Return the asserted trust of the evidence, from what was measured (ledger spec §9)."""
    from troth.ledger.trust import components, creation_trust

    measured = state.measured or {}
    ran, passed = test_counts(report)
    return creation_trust(
        components(
            # The runner's check is the receipt: it passes when the verdict is supported.
            exit_status=EXITS[str(state.decision)],
            passed=passed,
            run=ran,
            ended_by_itself=not (measured["timed_out"] or measured["interrupted"]),
            seconds=measured["seconds"],
            timeout=measured["timeout"],
            causal_depth=depth,
        )
    )


def test_counts(report: Mapping[str, Any]) -> tuple[int, int]:
    """Return tests run and passed over all commands; a command of unknown count counts as one test, by its exit."""
    ran = good = 0
    for command in report.get("commands", ()):
        tests = command.get("tests") or {}
        if tests.get("executed") is not None and tests.get("passed") is not None:
            ran += tests["executed"]
            good += tests["passed"]
        else:
            ran += 1
            good += 1 if command.get("exit") == 0 else 0
    return ran, good


def _existing(store: JsonlStore, source_key: str) -> str | None:
    return store.read().state.source_keys.get(source_key)


def _append_once(store: JsonlStore, source_key: str, candidate: Candidate, trust: dict[str, Any] | None = None) -> str:
    return _existing(store, source_key) or str(store.append(candidate, engine_trust=trust)["id"])


def _capture(bench: _Bench, state: RunState) -> RunState:
    folder = bench.runs.path(state.id)
    receipt = (folder / RECEIPT).read_bytes()
    report = json.loads((folder / REPORT).read_bytes())["grade"]
    snapshot = bench.store.read()
    commitment = snapshot.state.commitments[state.commitment]
    depth = snapshot.state.signals[commitment.source].depth + 1
    trust = _trust(state, report, depth)
    key = f"run:{state.id}"
    evidence = _append_once(
        bench.store,
        key,
        Candidate(
            "capture",
            WITNESS,
            {
                "kind": "evidence",
                "body": f"{state.id}: {state.decision} ({state.reason})",
                "refs": [state.commitment],
                "meta": {
                    "run": state.id,
                    "receipt_sha256": sha256_hex(receipt),
                    "decision": state.decision,
                    "reason": state.reason,
                    "agent": state.actor,
                },
            },
            trace={"parent": [commitment.source]},
            relations=[{"type": "cites", "targetId": commitment.source}],
            source_key=key,
        ),
        trust,
    )
    return bench.runs.advance(state, "captured", evidence=evidence)


def _conclude(bench: _Bench, state: RunState) -> RunState:
    submission = None
    options = options_of(state)
    if state.decision == "supported" or (state.decision == "not_established" and options.submit_anyway):
        key = f"run:{state.id}:submit"
        submission = _append_once(
            bench.store,
            key,
            Candidate(
                "submit",
                state.actor,
                {
                    "body": f"Submitted with the receipt of {state.id}",
                    "commitment": state.commitment,
                    "evidence": state.evidence,
                },
                source_key=key,
            ),
        )
    else:
        key = f"run:{state.id}:told"
        _append_once(
            bench.store,
            key,
            Candidate(
                "annotate",
                WITNESS,
                {
                    "body": f"{state.id} was not submitted: {state.decision} ({state.reason})",
                    "target": state.commitment,
                    "meta": {"run": state.id, "evidence": state.evidence},
                },
                source_key=key,
            ),
        )
    if not options.keep_trace:
        bench.runs.discard_private(state.id)
    return bench.runs.advance(state, "finished", submission=submission)


def _outcome(bench: _Bench, state: RunState) -> Outcome:
    from troth.airlock.telling import tell_run

    folder = bench.runs.path(state.id)
    predicate = json.loads((folder / RECEIPT).read_bytes())["predicate"]
    commitment = bench.store.read().state.commitments[state.commitment]
    sentence, lines = tell_run(folder, predicate, state.measured or {})
    return Outcome(
        run=state.id,
        folder=folder,
        commitment=state.commitment,
        done=predicate["verdict"],
        checks=predicate["checks"],
        sentence=sentence,
        lines=tuple(lines),
        evidence=state.evidence or "",
        submission=state.submission,
        ledger_says=_ledger_words(commitment),
    )


def _ledger_words(commitment: Commitment) -> str:
    if commitment.state == "in_review":
        return "in_review, waiting for an approval"
    if commitment.state == "claimed":
        return f"claimed by {commitment.owner}"
    return str(commitment.state)
