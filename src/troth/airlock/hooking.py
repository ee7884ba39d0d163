"""What a hook in an agent's own harness can establish about a workspace, and what it decides by it.

A hook is no witness: nobody outside the agent saw the run. So it judges the tree that lies on the disk (protected paths
by their digests, the acceptance commands in the sandbox), writes an observation that says of itself that it is not
independent, and lets the published checks come to what they come to: *contradicted*, or *not established*; never
*supported*. Every judgement is a member folder with its receipt, kept with the user's own state, not in the workspace.

A hook that was not called, or that failed, leaves nothing that says *continue* for the tree as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from troth import __version__
from troth.airlock.hook_claims import NOTHING, Heard
from troth.airlock.sealed import SEAL, read_contract, read_seal
from troth.airlock.shapes import anything, count, each, many, maybe, members, one_of, text
from troth.airlock.telling import about_grade, ends_of_output
from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import DoesNotHold, Place, Refused
from troth.core.instants import Clock, system_clock
from troth.core.strictjson import JsonFault, Limits, loads
from troth.core.words import printable
from troth.observer import records as rec
from troth.observer.grade import GRADE_VERSION, grade
from troth.observer.grade import PRODUCER as VERIFIER_NAME
from troth.observer.protected import Entry, entries_of, unmet_entries
from troth.observer.tree import Snapshot, snapshot
from troth.receipts.deciding import StopDecision, StopTable, decide
from troth.receipts.member import RECEIPT_FILE, MappingMember
from troth.receipts.telling import verdict
from troth.receipts.verify import examine
from troth.receipts.writing import build_receipt, self_pin
from troth.stores.durable import read_regular, replace_whole
from troth.stores.keys import private_folder, state_folder
from troth.stores.lock import exclusive

CODES: Final[dict[str, str]] = {
    "E_HOOK_INPUT": "What the hook was given is not what the agent's tool sends; nothing was judged.",
    "E_HOOK_CONTRACT": "The contract is not the one that the hook was installed with.",
    "E_HOOK_SETTINGS": "The settings file cannot be read as what it should be, so nothing was changed in it.",
    "E_HOOK_TAKEN": "Another program stands where the hook would have to; it was left alone.",
    "E_HOOK_UNDECIDED": "No hook has decided about the tree as it is now, so nothing is known about it.",
    "E_PUSH_REFUSED": "What is being pushed has no receipt by which the table says continue.",
}
"""The refusals of hooks, each with one sentence for people."""

PRODUCER: Final = "troth-hook"
"""Producer of the record that says that nobody watched."""

LOCK_SECONDS: Final = 20.0
"""How long one hook waits for another to have written down what it found."""

STATE_LIMIT: Final = 1 << 26
STATE_VERSION: Final = "troth-hook-state/v1"
_STATE: Final = Limits(max_bytes=STATE_LIMIT, max_depth=64, refuse_overflow=True)


@dataclass(frozen=True, slots=True)
class Bound:
    """What a hook was installed for: the workspace, the sealed contract, the table.

    ``sha256`` and ``seal_sha256`` are the digests of the contract and of the report of its sealing; the latter is empty
    where there was none.
    """

    root: Path
    contract: Path
    sha256: str
    seal_sha256: str
    table: StopTable

    def read(self) -> tuple[bytes, tuple[Entry, ...]]:
        """Return the contract's bytes and protected paths.

        Raises:
            Refused: ``E_HOOK_CONTRACT``: it was changed since; as ``read_contract``.
        """
        data, record = read_contract(self.contract)
        if sha256_hex(data) != self.sha256:
            raise Refused(
                "E_HOOK_CONTRACT",
                "the contract was changed after the hook was installed",
                place=Place(file=str(self.contract)),
                remedy="Look at what changed; then install the hook anew.",
            )
        return data, entries_of(record)

    def seal(self) -> bytes | None:
        """Return the report of sealing, as which tools and limits hold.

        Raises:
            Refused: ``E_HOOK_CONTRACT``: it was exchanged since; as ``read_seal``.
        """
        data = read_seal(self.contract)
        if (sha256_hex(data) if data is not None else "") != self.seal_sha256:
            raise Refused(
                "E_HOOK_CONTRACT",
                "the contract's report of sealing was changed after the hook was installed",
                place=Place(file=str(self.contract.with_name(SEAL))),
                remedy="Look at what changed; then install the hook anew.",
            )
        return data


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement: the decision, the verdict as {decision, reason, …}, a sentence and lines for a reader, the files."""

    stop: StopDecision
    done: Mapping[str, str]
    sentence: str
    lines: tuple[str, ...]
    tree_sha256: str
    files: Mapping[str, bytes]


def run_name(text: str) -> str:
    """Return what the records of a judgement call it, from a name that somebody else gave."""
    return f"hook_{re.sub('[^0-9A-Za-z_-]', '_', text)[:80] or 'turn'}"


def judge(
    bound: Bound, *, run: str, agent: str, heard: Heard = NOTHING, replans: int = 0, clock: Clock = system_clock
) -> Judged:
    """Judge a workspace as it lies on the disk.

    Args:
        bound: what the hook was installed for.
        run: what the records call this judgement.
        agent: the observed party, ``agent:NAME``.
        heard: what the session's own record claims. Nobody observed it, so that no check comes to more by it; what the
            agent says against that record sends it back, within the table's limit.
        replans: how often in a row the agent was sent back.
        clock: where time comes from.

    Raises:
        Refused: ``E_HOOK_CONTRACT``; a code of the tree, the sandbox or the grader.
    """
    contract, entries = bound.read()
    final = snapshot(bound.root)
    began = clock()
    unmet = unmet_entries(entries, final.files, final.symlinks)
    graded, report = _graded(bound, contract, final, unmet, run)
    origin = rec.Origin(run, run, began, rec.interval_end(began, clock()))
    files = {
        "contract.json": contract,
        "tree.json": rec.tree_record(origin, final),
        "observation.json": record_bytes(
            {
                "schema_version": "probity-observation/v2",
                "scope": origin.scope,
                "coverage": "unknown",
                "events": [],
                **origin.members(PRODUCER),
                "vantage": "self_reported",
            }
        ),
        "capability.json": record_bytes(
            {**_named("probity-capabilities/v1", run, PRODUCER), "visible_event_types": []}
        ),
        "grade.json": graded,
        "claims.json": record_bytes({**_named("probity-tool-claims/v1", run, PRODUCER), "claims": list(heard.entries)}),
    }
    files |= self_pin(
        files,
        claim_id=run,
        invocation_id=run,
        scope=origin.scope,
        observed_party=agent,
        authority="a hook in the agent's harness, by its own pins",
    )
    receipt = build_receipt(files, verifier_id=f"urn:troth:hook:{__version__}", table=bound.table, replans=replans)
    files[RECEIPT_FILE] = receipt
    found = examine(MappingMember(files))
    assert found.done is not None
    stop = _sent_back(decide(bound.table, found.done, found.answers, replans=replans), bound.table, heard, replans)
    shown = ", ".join(printable(entry.path, 200) for entry in unmet[:10])
    told = (
        *(f"not borne out: {line}" for line in heard.belied),
        *heard.notes,
        *([f"not graded, since what the contract protects is not as it was sealed: {shown}"] if unmet else []),
        *about_grade(report),
        *ends_of_output(report),
    )
    return Judged(stop, found.done.as_json(), verdict(found), told, final.digest, files)


BELIED: Final = "claims_not_in_session"
"""The reason of a decision that rests on what the session's own record does not bear out; no check has it."""


def _sent_back(stop: StopDecision, table: StopTable, heard: Heard, replans: int) -> StopDecision:
    """Return the table's decision, or, where it lets the agent go, that it is sent back for what it said."""
    if not heard.belied or stop.action in ("replan", "stop") or stop.limited:
        return stop
    limited = replans >= table.replans
    return replace(stop, action=table.then if limited else "replan", reason=BELIED, limited=limited)


def _named(version: str, run: str, producer: str) -> dict[str, str]:
    return {"schema_version": version, "claim_id": run, "invocation_id": run, "producer": producer}


def _graded(
    bound: Bound, contract: bytes, final: Snapshot, unmet: list[Entry], run: str
) -> tuple[bytes, Mapping[str, Any]]:
    """Return the grade and the grader's report; without the sealed files there is nothing to grade with."""
    if unmet:
        return record_bytes(
            {
                **_named(GRADE_VERSION, run, VERIFIER_NAME),
                "vantage": "independent",
                "witness_scope": "PEER",
                "contract_sha256": bound.sha256,
                "tree_sha256": final.digest,
                "results": [],
            }
        ), {}
    seal = bound.seal()
    made = grade(
        contract,
        bound.root,
        bound.root,
        tree_sha256=final.digest,
        claim_id=run,
        invocation_id=run,
        seal=json.loads(seal) if seal is not None else None,
        final=final,
    )
    return made.record, made.report


def protected_now(bound: Bound) -> tuple[str, ...]:
    """Return the protected paths that are not as they were sealed; nothing else of the workspace is read.

    Raises:
        Refused: ``E_HOOK_CONTRACT``; a code of the tree.
    """
    _, entries = bound.read()
    files: dict[str, str] = {}
    links: set[str] = set()
    for entry in entries:
        _read_beneath(bound.root, entry.path, files, links)
    return tuple(entry.path for entry in unmet_entries(entries, files, links))


def _read_beneath(root: Path, name: str, files: dict[str, str], links: set[str]) -> None:
    """Add the digests of a path and what lies beneath it, as a snapshot of the whole would have them: by no link."""
    path = root / name
    if any((root / part).is_symlink() for part in Path(name).parents):
        return
    if path.is_symlink():
        links.add(name)
    elif path.is_dir():
        beneath = snapshot(path, outside=frozenset())
        files.update({f"{name}/{inner}": digest for inner, digest in beneath.files.items()})
    elif path.is_file():
        try:
            with path.open("rb") as file:
                files[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return  # what cannot be read is not what was sealed


# What is remembered --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Session:
    """What is remembered of one session of an agent: how often in a row it was sent back, and of what it was told."""

    replans: int = 0
    told: tuple[str, ...] = ()
    baseline: Mapping[str, str] | None = None
    named: tuple[str, ...] = ()
    commands: int = 0


_SESSION: Final = members(
    replans=count, told=many(text), baseline=maybe(each(text)), named=many(text), commands=count
)  # fmt: skip
_LAST: Final = members(
    schema_version=one_of(STATE_VERSION), source=text, tree_sha256=text, done=anything, sentence=text,
    stop_decision=members(action=text, reason=text),
)  # fmt: skip


def _held(data: bytes) -> Any:
    """Return what a file of ours holds, ``None`` where it is no JSON."""
    try:
        return loads(data, _STATE)
    except JsonFault:
        return None


@dataclass(frozen=True, slots=True)
class Memory:
    """The folder in which hooks of one workspace remember, below the user's folder for state."""

    folder: Path
    root: Path = field(compare=False)

    @classmethod
    def of(cls, root: Path) -> Memory:
        """Return the memory of a workspace, made where it is missing.

        Raises:
            Refused: ``E_KEY_FOLDER``, ``E_UNREADABLE``.
        """
        name = hashlib.sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return cls(private_folder(state_folder() / "hooks" / name), root)

    def _session(self, session: str) -> Path:
        return self.folder / f"session-{hashlib.sha256(session.encode('utf-8', 'replace')).hexdigest()[:32]}.json"

    def session(self, session: str) -> Session:
        """Return what is remembered of a session.

        Raises:
            Refused: it is there and cannot be read: whoever counts must not begin anew for that.
        """
        path = self._session(session)
        if not path.exists():
            return Session()
        data = read_regular(path, STATE_LIMIT, "E_UNREADABLE", "what the hook remembers")
        value = _held(data)
        if not _SESSION(value) or value.keys() != Session.__dataclass_fields__.keys():
            raise Refused("E_UNREADABLE", "what the hook remembers cannot be read", place=Place(file=str(path)))
        return Session(**{**value, "told": tuple(value["told"]), "named": tuple(value["named"])})

    def keep(self, session: str, state: Session) -> None:
        """Remember a session.

        Raises:
            OSError: it cannot be written.
        """
        replace_whole(self._session(session), record_bytes(asdict(state)), 0o600)

    def conclude(self, judged: Judged, source: str) -> Path:
        """Keep a judgement as the last one, and return the folder of its records.

        What stood there before is taken away first: were we ended in between, nothing would be known.

        Raises:
            Busy: another hook of the workspace is at it for too long.
            OSError: it cannot be written.
        """
        last, member = self.folder / "last.json", self.folder / "last"
        value = {
            "schema_version": STATE_VERSION,
            "source": source,
            "tree_sha256": judged.tree_sha256,
            "stop_decision": judged.stop.as_json(),
            "done": dict(judged.done),
            "sentence": judged.sentence,
        }
        with exclusive(self.folder / ".lock", LOCK_SECONDS):
            last.unlink(missing_ok=True)
            private_folder(member)
            for name, data in judged.files.items():
                replace_whole(member / name, data, 0o600)
            replace_whole(last, record_bytes(value), 0o600)
        return member

    def forget_last(self) -> None:
        """Take the last judgement away, for instance because a later one failed."""
        (self.folder / "last.json").unlink(missing_ok=True)

    def last(self) -> dict[str, Any]:
        """Return the last judgement, empty where there is none that can be read."""
        path = self.folder / "last.json"
        try:
            value = _held(read_regular(path, 1 << 20, "E_HOOK_UNDECIDED", "a hook's decision"))
        except Refused:
            return {}
        return value if _LAST(value) else {}


def standing_decision(root: Path) -> dict[str, Any]:
    """Return what the last hook decided, if it was about the tree as it is now.

    Raises:
        DoesNotHold: ``E_HOOK_UNDECIDED``: no hook was called, the last one failed, or the tree changed since.
    """
    last = Memory.of(root).last()
    if last and last.get("tree_sha256") == snapshot(root).digest:
        return last
    why = "the tree changed since the last hook decided" if last else "no hook has decided anything here"
    raise DoesNotHold(
        "E_HOOK_UNDECIDED",
        why,
        place=Place(file=str(root)),
        remedy="A hook that was not called, or failed, is no success: run the agent again, or `troth run` it.",
    )


# Changes that no event names -----------------------------------------------------------------------------------------


def unnamed_changes(judged: Judged, state: Session) -> tuple[str, ...]:
    """Return the paths that changed between a session's begin and a judgement and that no event named.

    What a shell command wrote is among them: events name the command, not its files.
    """
    if state.baseline is None:
        return ()
    now = json.loads(judged.files["tree.json"])["files"]
    changed = {name for name in state.baseline.keys() | now.keys() if state.baseline.get(name) != now.get(name)}
    return tuple(sorted(changed - set(state.named)))
