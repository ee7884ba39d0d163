"""One run from claim to proof: claim, observe, grade, write the receipt, capture it as evidence, submit.

Whatever can be refused is refused before anything is written, to the ledger or to the disk. From then on each stage is
saved before the next begins, so that what a crash leaves can be taken up where it stood; rows of the ledger are found
again by their ``source_key``, so taking a run up twice writes nothing twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
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
from troth.airlock.runs import PREFIX, Runs, RunState, put
from troth.airlock.sealed import CONTRACT, SEAL, read_contract, read_seal, read_signed
from troth.airlock.stopping import load_table, table_bytes
from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused, TrothError
from troth.core.ids import RandomHex, new_id, system_random
from troth.core.instants import Clock, format_instant, system_clock
from troth.ledger.operations import Candidate
from troth.observer.protected import Entry, entries_of
from troth.stores.durable import read_regular
from troth.stores.requests import resolve

if TYPE_CHECKING:
    from troth.airlock.validating import Report
    from troth.ledger.replay import Commitment
    from troth.observer.observe import Request
    from troth.observer.tree import Snapshot
    from troth.stores.protocol import LedgerStore
    from troth.stores.workspace import Workspace

VERIFIER: Final = f"urn:troth:verifier:{__version__}"

EXITS: Final = {"supported": 0, "contradicted": 1, "not_established": 3}
REFUSED_EXIT: Final = 2

RECEIPT: Final = "receipt.json"
REPORT: Final = "report.json"
TABLE: Final = "stop-table.toml"
WORDS: Final = "private/words.json"
"""Where a run that cuts credentials keeps its agent's argument vector until it has ended."""

_MOVED_ON: Final = frozenset({"E_ALREADY_CLOSED", "E_ALREADY_CLAIMED", "E_NOT_OWNER", "E_CONSTRAINT_VIOLATED"})
"""Refusals of a submission that say: while the run went on, the commitment went another way."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is made; plain values, so that a run can be taken up again. ``timeout`` in seconds."""

    timeout: float = 3600.0
    network: bool = False
    allow_read: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    profile: str | None = None
    claims_file: str | None = None
    transcripts: tuple[str, ...] = ()
    repeats: int = 1
    with_launch: bool = False
    submit_anyway: bool = False
    keep_trace: bool = False
    redact: bool = False
    verifier_id: str | None = None
    table: str | None = None
    contract_keys: tuple[str, ...] = ()
    contract_threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    ``done`` and ``checks`` have the shapes of done records §9; ``sentence`` says the verdict for a person; ``lines``
    are further facts; ``missing`` names, for each check that was not established, the record that did not allow an
    answer and why; ``evidence`` and ``submission`` are ids of ledger rows; ``refused`` is the code with which the
    ledger refused the submission; ``airlock`` is what the submission's tier made of it; ``stop``
    is the receipt's ``stop_decision``, where a table was given; ``ends`` are the last lines that each acceptance
    command without a passing result printed, and ``printed`` all that they printed, run by run.
    """

    run: str
    folder: Path
    commitment: str
    done: Mapping[str, Any]
    checks: Sequence[Mapping[str, Any]]
    sentence: str
    lines: tuple[str, ...]
    missing: tuple[Mapping[str, str], ...]
    evidence: str
    submission: str | None
    ledger_says: str
    refused: str | None = None
    airlock: Report | None = None
    stop: Mapping[str, str] | None = None
    ends: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Return the exit status: the verdict's, or that of a refusal when a supported run could not be submitted."""
        return REFUSED_EXIT if self.refused is not None else EXITS[self.done["decision"]]

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
            "missing": [dict(item) for item in self.missing],
            "evidence": self.evidence,
            "submission": self.submission,
            "state": self.ledger_says,
            "submission_refused": self.refused,
            "airlock": self.airlock.as_json() if self.airlock is not None else None,
            "stop_decision": dict(self.stop) if self.stop is not None else None,
            "ends_of_output": list(self.ends),
        }


@dataclass(frozen=True, slots=True)
class _Bench:
    """What every stage of a run needs."""

    workspace: Workspace
    store: LedgerStore
    runs: Runs
    show: tuple[int, int] | None
    tell: Tell
    clock: Clock
    random_hex: RandomHex = field(default=system_random)
    warn: Tell = lambda _: None


@dataclass(frozen=True, slots=True)
class _Ready:
    """What was found fit to begin with."""

    contract: bytes
    seal: bytes | None
    entries: tuple[Entry, ...]
    start: Snapshot
    commitment: str | None
    table: bytes | None
    tools: tuple[Path, ...]
    signed: Mapping[str, bytes]


def run_commitment(
    workspace: Workspace,
    store: LedgerStore,
    *,
    commitment: str | None,
    new: str | None,
    contract_file: Path,
    argv: Sequence[str],
    actor: str,
    options: RunOptions,
    show: tuple[int, int] | None,
    tell: Tell = lambda _: None,
    warn: Tell = lambda _: None,
    clock: Clock = system_clock,
    random_hex: RandomHex = system_random,
) -> Outcome:
    """Run an agent on a commitment and write what the records establish.

    Args:
        workspace: where the agent works.
        store: its ledger.
        commitment: id (or unambiguous prefix, or ``@last``) of the commitment; ``None`` with ``new``.
        new: text of an observation to record and commit to first.
        contract_file: the sealed contract; read before anything starts.
        argv: the agent's program and arguments.
        actor: who claims and submits.
        options: how the run is made.
        show: descriptors for the agent's output, or ``None``.
        tell: told in words which stage begins.
        warn: told what a person should know although nothing is wrong.
        clock, random_hex: where time and randomness come from.

    Raises:
        Refused: an operation's code, ``E_START_DIFFERS``, or a code of the observer's; nothing was run or written.
        DoesNotHold: ``E_CHAIN_BROKEN``.
        Busy: ``E_RUN_BUSY``.
    """
    bench = _Bench(workspace, store, Runs(workspace.folder), show, tell, clock, random_hex, warn)
    asked = RunState(
        id=new_id(PREFIX, lambda name: bench.runs.path(name).exists(), random_hex),
        commitment=commitment or "",
        actor=actor,
        argv=tuple(argv),
        contract_sha256="",
        stage="started",
        started="",
        options=asdict(options),
    )
    bench.runs.refuse_under_way()
    ready = _prepare(bench, asked, contract_file, new)
    with bench.runs.exclusively():
        # Once more: only now can no other run change the ledger's state or the tree.
        return _begin(bench, asked, _prepare(bench, asked, contract_file, new, ready.start), new)


def resume_run(
    workspace: Workspace,
    store: LedgerStore,
    word: str,
    *,
    show: tuple[int, int] | None,
    tell: Tell = lambda _: None,
    warn: Tell = lambda _: None,
    clock: Clock = system_clock,
    random_hex: RandomHex = system_random,
) -> Outcome:
    """Take up a run that was left before its end.

    A run whose observation was not written is abandoned and made anew with the same arguments; a later one goes on from
    its last stage. One whose commitment went another way meanwhile is cleared.

    Raises:
        Refused: ``E_RUN_UNKNOWN``, ``E_RUN_FINISHED``, ``E_RUN_TREE_CHANGED``; as ``run_commitment`` for one made anew.
        Busy: ``E_RUN_BUSY``.
    """
    bench = _Bench(workspace, store, Runs(workspace.folder), show, tell, clock, random_hex, warn)
    bench.runs.find(word)
    with bench.runs.exclusively():
        state = bench.runs.find(word)
        bench.runs.name_current(state.id)
        if not state.open:
            raise Refused("E_RUN_FINISHED", f"{state.id} has ended ({state.stage})", remedy="See: troth runs")
        if state.stage != "started":
            return _from_observed(bench, state)
        contract_file = bench.runs.path(state.id) / CONTRACT
        anew = new_id(PREFIX, lambda name: bench.runs.path(name).exists(), random_hex)
        asked = replace(_with_words(bench, state), id=anew)
        if asked.options.get("table") is not None:
            # The table as it was when the run began, not as it has become since.
            asked = replace(asked, options={**asked.options, "table": str(bench.runs.path(state.id) / TABLE)})
        try:
            ready = _prepare(bench, asked, contract_file, None)
        except Refused as fault:
            if fault.code in _MOVED_ON:
                bench.runs.abandon(state, f"could not be taken up: {fault.code}: {fault.message}")
            raise
        return _begin(bench, asked, ready, None, instead_of=state)


def _prepare(
    bench: _Bench, asked: RunState, contract_file: Path, new: str | None, known: Snapshot | None = None
) -> _Ready:
    """Refuse whatever can be refused; nothing is written."""
    from troth.observer.observe import check_request
    from troth.observer.seal import require_start
    from troth.observer.tools import require_tools, tools_of
    from troth.observer.tree import snapshot

    data, record = read_contract(contract_file)
    seal = read_seal(contract_file)
    signed = _signed(contract_file, data, seal, options_of(asked))
    sealed_with = tools_of(json.loads(seal) if seal is not None else None)
    tools = tuple(tool.path for tool in sealed_with)
    check_request(_request(bench, asked, tools))
    if known is None:
        require_tools(sealed_with, writable=list(map(Path, options_of(asked).allow_write)))
    commitment = _would_be_admitted(bench, asked, new)
    entries = entries_of(record)
    start = snapshot(bench.workspace.root, before=known)
    require_start(entries, start, bench.workspace.root)
    named = options_of(asked).table
    table = table_bytes(Path(named)) if named is not None else None
    return _Ready(data, seal, entries, start, commitment, table, tools, signed)


def _signed(contract_file: Path, data: bytes, seal: bytes | None, options: RunOptions) -> Mapping[str, bytes]:
    """Return the contract's envelopes, where signatures are asked for; whatever they lack then, it is refused."""
    if not options.contract_keys:
        return {}
    try:
        return read_signed(contract_file, data, seal, options.contract_keys, options.contract_threshold)[0]
    except TrothError as fault:
        raise Refused(fault.code, fault.message, remedy=fault.remedy, place=fault.place) from None


def _would_be_admitted(bench: _Bench, asked: RunState, new: str | None) -> str | None:
    """Return the commitment's id, once the ledger would take the first row of the run; ``None`` for a new one."""
    snapshot = bench.store.read()
    if new is not None:
        commitment = None
        candidate = Candidate("capture", asked.actor, {"body": new})
    else:
        commitment = resolve(asked.commitment, snapshot.state, ("commit",))
        candidate = _claim_row(asked.actor, commitment)
    bench.store.rehearse(lambda _: candidate)
    _would_be_permitted(bench.store, asked.actor)
    return commitment


def _would_be_permitted(store: LedgerStore, actor: str) -> None:
    """Refuse a run whose rows the genesis key would refuse when the work is done."""
    genesis = store.genesis()
    if genesis is None:
        return
    for who, op in ((WITNESS, "capture"), (WITNESS, "annotate"), (actor, "submit")):
        if not genesis.permits(who, op):
            raise Refused(
                "E_PERMISSION_DENIED",
                f"no role of {who} may {op}, which the run ends with",
                remedy="Give it such a role in the genesis key; `troth genesis explain` tells what decides.",
                place=Place(path="$.actor"),
            )


def _begin(
    bench: _Bench, asked: RunState, ready: _Ready, new: str | None, *, instead_of: RunState | None = None
) -> Outcome:
    """Claim, make the run's folder, and go through all stages; the run lock is held."""
    if ready.commitment is None:
        assert new is not None
        commitment = _commit_new(bench, asked, new)
    else:
        commitment = ready.commitment
    _claim(bench.store, commitment, asked.actor)
    state = replace(
        asked,
        commitment=commitment,
        contract_sha256=sha256_hex(ready.contract),
        started=format_instant(bench.clock()),
    )
    bench.runs.name_current(state.id)
    files = {CONTRACT: ready.contract} | ({SEAL: ready.seal} if ready.seal is not None else {})
    if ready.table is not None:
        files[TABLE] = ready.table
    files |= ready.signed
    state = _create(bench, state, files)
    if instead_of is not None:
        bench.runs.abandon(instead_of, f"made anew as {state.id}")
    return _from_start(bench, state, ready)


def _create(bench: _Bench, state: RunState, files: Mapping[str, bytes]) -> RunState:
    """Make the run's folder; where credentials are to be cut, the agent's own words stand among what is removed."""
    if not options_of(state).redact:
        bench.runs.create(state, files)
        return state
    # What is a credential in them may show only when the agent uses it: until then the program's name must do.
    shown = replace(state, argv=state.argv[:1])
    bench.runs.create(shown, {**files, WORDS: record_bytes(list(state.argv))})
    return shown


def _with_words(bench: _Bench, state: RunState) -> RunState:
    """Return a run that has not been observed yet, with the words that its agent is to be started with."""
    if not options_of(state).redact:
        return state
    path = bench.runs.path(state.id) / WORDS
    data = read_regular(path, 1 << 22, "E_RUN_UNREADABLE", "the words of the run's agent")
    return replace(state, argv=tuple(json.loads(data)))


def options_of(state: RunState) -> RunOptions:
    """Return the options a run was started with."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in state.options.items()
    }
    return RunOptions(**values)


def _claim_row(actor: str, commitment: str) -> Candidate:
    return Candidate("claim", actor, {"body": f"Claimed by {actor}", "commitment": commitment})


def _commit_new(bench: _Bench, asked: RunState, text: str) -> str:
    seen = append_once(
        bench.store,
        key_of(asked.id, "observation"),
        Candidate("capture", asked.actor, {"body": text}, source_key=key_of(asked.id, "observation")),
    )
    row = Candidate(
        "commit",
        asked.actor,
        {"body": text, "source": seen},
        relations=[{"type": "cites", "targetId": seen}],
        source_key=key_of(asked.id, "commitment"),
    )
    return append_once(bench.store, key_of(asked.id, "commitment"), row)


def _claim(store: LedgerStore, commitment: str, actor: str) -> None:
    found = store.read().state.commitments[commitment]
    if found.state == "claimed" and found.owner == actor:
        return  # reopened work, or a second attempt: it is the actor's already
    store.append(_claim_row(actor, commitment))


def _request(bench: _Bench, state: RunState, tools: tuple[Path, ...]) -> Request:
    from troth.observer.observe import Request
    from troth.observer.profiles import grant

    options = options_of(state)
    granted = grant(options.profile, state.argv[0], environment=os.environ, home=Path.home())
    return Request(
        workspace=bench.workspace.root,
        argv=state.argv,
        claim_id=state.commitment,
        invocation_id=state.id,
        private=bench.runs.path(state.id) / "private",
        protects=lambda _: False,
        timeout=options.timeout,
        network=options.network,
        allow_read=tuple(map(Path, options.allow_read)),
        allow_write=tuple(map(Path, options.allow_write)),
        env=options.env,
        tools=tools,
        granted=granted,
        claims_file=Path(options.claims_file) if options.claims_file else None,
        transcripts=options.transcripts or (() if options.claims_file else granted.transcripts),
        show=bench.show,
        redact=options.redact,
        keep_trace=options.keep_trace,
    )


def _from_start(bench: _Bench, state: RunState, ready: _Ready) -> Outcome:
    from troth.observer.observe import observe
    from troth.observer.seal import require_start

    folder = bench.runs.path(state.id)
    request = replace(
        _request(bench, _with_words(bench, state), ready.tools),
        protects=lambda path: any(entry.covers(path) for entry in ready.entries),
        known=ready.start,
        accept=lambda start: require_start(ready.entries, start, bench.workspace.root),
    )
    request.private.mkdir(mode=0o700, exist_ok=True)
    for line in request.granted.told:
        bench.warn(line)
    try:
        observed = observe(request, clock=bench.clock, tell=bench.tell, warn=bench.warn)
    except Refused as fault:
        _give_up(bench, state, fault)
        raise
    for name, data in observed.files.items():
        put(folder / name, data)
    measured = {
        "agent_exit": observed.report.root_exit,
        "timed_out": observed.launched.timed_out,
        "interrupted": observed.launched.interrupted,
        "seconds": round(observed.seconds, 3),
        "timeout": request.timeout,
        "scope": observed.origin.scope,
        "coverage_faults": list(observed.coverage_faults),
        "claims": len(observed.gathered.claims.entries),
        "claim_lines_refused": [list(item) for item in observed.gathered.claims.refused[:20]],
        "claim_notes": list(observed.gathered.notes[:20]),
        "totals_differ": list(observed.gathered.differing[:20]),
        "refused": len(observed.report.refused),
        "secrets": observed.secrets,
    }
    argv = observed.agent_argv if request.redact else state.argv
    state = bench.runs.advance(state, "observed", measured=measured, argv=argv)
    return _from_observed(bench, state)


def _give_up(bench: _Bench, state: RunState, fault: Refused) -> None:
    """End a run that came to no records, and say so on the commitment, which stays the actor's."""
    text = f"came to nothing: {fault.code}: {fault.message}"
    note = note_row(run_id=state.id, commitment=state.commitment, text=text, meta={"code": fault.code})
    append_once(bench.store, key_of(state.id, "told"), note)
    bench.runs.abandon(state, text)


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


def _write_receipt(bench: _Bench, state: RunState) -> RunState:
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
    report = json.loads((folder / REPORT).read_bytes())
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


def _replans(bench: _Bench, state: RunState) -> int:
    """Return how often in a row the commitment was sent back already, by the decisions of its earlier runs."""
    count = 0
    for earlier in bench.runs.states():
        if earlier.commitment == state.commitment and earlier.id != state.id and earlier.stop is not None:
            count = count + 1 if earlier.stop["action"] == "replan" else 0
    return count


def _capture(bench: _Bench, state: RunState) -> RunState:
    folder = bench.runs.path(state.id)
    report = json.loads((folder / REPORT).read_bytes())["grade"]
    ledger = bench.store.read().state
    source = ledger.commitments[state.commitment].source
    row = evidence_row(
        run_id=state.id,
        commitment=state.commitment,
        source=source,
        agent=state.actor,
        verdict={"decision": state.decision, "reason": state.reason},
        sentence=state.told["sentence"],
        receipt_sha256=sha256_hex((folder / RECEIPT).read_bytes()),
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


def _conclude(bench: _Bench, state: RunState) -> RunState:
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
            if fault.code not in _MOVED_ON:
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


def _outcome(bench: _Bench, state: RunState) -> Outcome:
    from troth.airlock.telling import ends_of_output, whole_output
    from troth.airlock.validating import Airlock

    airlock = None
    if state.submission is not None:
        # The run is finished and its lock still held: what a validator's command looks at is what the agent left.
        airlock = Airlock(bench.store, tell=bench.tell).take(state.submission)
    folder = bench.runs.path(state.id)
    predicate = json.loads((folder / RECEIPT).read_bytes())["predicate"]
    report = json.loads((folder / REPORT).read_bytes())["grade"]
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
