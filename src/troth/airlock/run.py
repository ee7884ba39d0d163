"""One run from claim to proof: claim, observe, grade, write the receipt, capture it as evidence, submit.

Whatever can be refused is refused before anything is written, to the ledger or to the disk. What is behind the
observation stands in ``run_stages``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from troth.airlock.evidence import (
    WITNESS,
    append_once,
    key_of,
    note_row,
)
from troth.airlock.run_parts import MOVED_ON, TABLE, Bench, Outcome, RunOptions, Tell, options_of
from troth.airlock.run_stages import from_observed
from troth.airlock.runs import PREFIX, Runs, RunState, put
from troth.airlock.sealed import CONTRACT, SEAL, read_contract, read_seal, read_signed
from troth.airlock.sealings import require_latest
from troth.airlock.shapes import many, text
from troth.airlock.stopping import table_bytes
from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused, TrothError
from troth.core.ids import RandomHex, new_id, system_random
from troth.core.instants import Clock, format_instant, system_clock
from troth.core.strictjson import JsonFault, Limits, loads
from troth.ledger.operations import Candidate
from troth.observer.protected import Entry, entries_of, require_start
from troth.stores.durable import read_regular
from troth.stores.requests import resolve

if TYPE_CHECKING:
    from troth.observer.observe import Request
    from troth.observer.tree import Snapshot
    from troth.stores.protocol import LedgerStore
    from troth.stores.workspace import Workspace

WORDS: Final = "private/words.json"
"""Where a run that cuts credentials keeps its agent's argument vector until it has ended."""


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
        Refused: an operation's code, ``E_SEAL_OLDER``, ``E_START_DIFFERS``, or a code of the observer's; nothing was
            run or written.
        DoesNotHold: ``E_CHAIN_BROKEN``.
        Busy: ``E_RUN_BUSY``.
    """
    bench = Bench(workspace, store, Runs(workspace.folder), show, tell, clock, random_hex, warn)
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
    bench = Bench(workspace, store, Runs(workspace.folder), show, tell, clock, random_hex, warn)
    bench.runs.find(word)
    with bench.runs.exclusively():
        state = bench.runs.find(word)
        bench.runs.name_current(state.id)
        if not state.open:
            raise Refused("E_RUN_FINISHED", f"{state.id} has ended ({state.stage})", remedy="See: troth runs")
        if state.stage != "started":
            return from_observed(bench, state)
        contract_file = bench.runs.path(state.id) / CONTRACT
        anew = new_id(PREFIX, lambda name: bench.runs.path(name).exists(), random_hex)
        asked = replace(_with_words(bench, state), id=anew)
        if asked.options.get("table") is not None:
            # The table as it was when the run began, not as it has become since.
            asked = replace(asked, options={**asked.options, "table": str(bench.runs.path(state.id) / TABLE)})
        try:
            ready = _prepare(bench, asked, contract_file, None)
        except Refused as fault:
            if fault.code in MOVED_ON:
                bench.runs.abandon(state, f"could not be taken up: {fault.code}: {fault.message}")
            raise
        return _begin(bench, asked, ready, None, instead_of=state)


def _prepare(
    bench: Bench, asked: RunState, contract_file: Path, new: str | None, known: Snapshot | None = None
) -> _Ready:
    """Refuse whatever can be refused; nothing is written."""
    from troth.observer.observe import check_request
    from troth.observer.tools import require_tools, tools_of
    from troth.observer.tree import snapshot

    data, record = read_contract(contract_file)
    seal = read_seal(contract_file)
    signed = _signed(contract_file, data, seal, options_of(asked))
    require_latest(bench.store.read(), data, seal, contract_file)
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


def _would_be_admitted(bench: Bench, asked: RunState, new: str | None) -> str | None:
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
    bench: Bench, asked: RunState, ready: _Ready, new: str | None, *, instead_of: RunState | None = None
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


def _create(bench: Bench, state: RunState, files: Mapping[str, bytes]) -> RunState:
    """Make the run's folder; where credentials are to be cut, the agent's own words stand among what is removed."""
    if not options_of(state).redact:
        bench.runs.create(state, files)
        return state
    # What is a credential in them may show only when the agent uses it: until then the program's name must do.
    shown = replace(state, argv=state.argv[:1])
    bench.runs.create(shown, {**files, WORDS: record_bytes(list(state.argv))})
    return shown


def _with_words(bench: Bench, state: RunState) -> RunState:
    """Return a run that has not been observed yet, with the words that its agent is to be started with."""
    if not options_of(state).redact:
        return state
    path = bench.runs.path(state.id) / WORDS
    data = read_regular(path, 1 << 22, "E_RUN_UNREADABLE", "the words of the run's agent")
    try:
        words = loads(data, Limits(max_bytes=1 << 22, max_depth=2, refuse_overflow=True))
    except JsonFault:
        words = None
    if not many(text)(words):
        raise Refused("E_RUN_UNREADABLE", "the words of the run's agent cannot be read", place=Place(file=str(path)))
    return replace(state, argv=tuple(words))


def _claim_row(actor: str, commitment: str) -> Candidate:
    return Candidate("claim", actor, {"body": f"Claimed by {actor}", "commitment": commitment})


def _commit_new(bench: Bench, asked: RunState, text: str) -> str:
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


def _request(bench: Bench, state: RunState, tools: tuple[Path, ...]) -> Request:
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


def _from_start(bench: Bench, state: RunState, ready: _Ready) -> Outcome:
    from troth.observer.observe import observe

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
    return from_observed(bench, state)


def _give_up(bench: Bench, state: RunState, fault: Refused) -> None:
    """End a run that came to no records, and say so on the commitment, which stays the actor's."""
    text = f"came to nothing: {fault.code}: {fault.message}"
    note = note_row(run_id=state.id, commitment=state.commitment, text=text, meta={"code": fault.code})
    append_once(bench.store, key_of(state.id, "told"), note)
    bench.runs.abandon(state, text)
