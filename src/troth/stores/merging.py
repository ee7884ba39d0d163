"""Two ledger files made one: read, planned, written whole beside the target, verified there, put in its place."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from troth.core.canonical import row_bytes
from troth.core.errors import Defect, DoesNotHold, Place, Refused
from troth.core.instants import Clock, system_clock
from troth.ledger.chain import BOM, ChainReader, Verification
from troth.ledger.merging import Plan, merged_rows, plan_merge
from troth.ledger.replay import Anomaly, Replay, State
from troth.stores.durable import FILE_MODE, WriteFailed, create_from, open_regular, sync_folder
from troth.stores.jsonl import JsonlStore
from troth.stores.lines import CHUNK, physical_lines
from troth.stores.opening import SETTING
from troth.stores.snapshot import FileRows, Snapshot
from troth.stores.workspace import is_workspace_name


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did, or would do.

    ``heads`` are those of both ledgers with their hashed rows. ``lost`` holds the rows of the second ledger that had an
    effect there and have none in the result, ``idle`` those that had none before. ``event`` is the id of the event,
    ``None`` where none was due. ``other_genesis``: the second ledger recorded another constitution last.
    """

    plan: Plan
    heads: tuple[tuple[str, int], tuple[str, int]]
    found: Verification
    lost: tuple[Anomaly, ...]
    idle: tuple[Anomaly, ...]
    event: str | None
    other_genesis: bool


class _Side:
    """One ledger, read and verified."""

    def __init__(self, store: JsonlStore) -> None:
        self.store = store
        self.snapshot: Snapshot = store.read()
        self.found = self.snapshot.verification
        if not self.found.ok:
            first = self.found.faults[0]
            raise DoesNotHold(
                "E_CHAIN_BROKEN",
                f"the ledger does not verify ({first.fault}: {first.message}), so it is not merged",
                place=Place(file=store.location, line=first.line),
                remedy="Run `troth verify` for the faults; nothing was changed.",
            )

    @property
    def size(self) -> int:
        """Return how many bytes were verified."""
        rows = self.snapshot.rows
        assert isinstance(rows, FileRows)
        return rows.size

    def depth(self, name: str) -> int:
        """Return the causal depth of a row."""
        signal = self.snapshot.state.signals.get(name)
        return 0 if signal is None else signal.depth


class _Writing:
    """The bytes of the result, and what is learnt while they pass."""

    def __init__(self, ours: _Side, theirs: _Side, plan: Plan, clock: Clock) -> None:
        self._ours, self._theirs, self._plan, self._clock = ours, theirs, plan, clock
        self.lines = 0  # physical lines of the first ledger
        self.event: str | None = None

    def pieces(self) -> Iterator[bytes]:
        """Yield the first ledger byte for byte, then what is added."""
        yield from self._first()
        if self._plan.outcome == "fast_forward":
            yield from self._rest()
        elif self._plan.outcome == "merged":
            rows = self._ours.snapshot.rows
            newest = rows[-1].value.get("workspace") if rows else None
            for row in merged_rows(
                self._plan,
                self._theirs.snapshot.rows,
                last_hash=self._ours.found.last_hash,
                heads=(self._ours.found.head, self._theirs.found.head),
                workspace=self._ours.store.workspace or (str(newest) if is_workspace_name(newest) else "default"),
                now=self._clock(),
            ):
                self.event = row["id"]
                yield row_bytes(row) + b"\n"

    def _first(self) -> Iterator[bytes]:
        self.lines = 0
        last = b"\n"
        fd = open_regular(self._ours.store.ledger_file, os.O_RDONLY, "E_NO_LEDGER", "the ledger")
        with os.fdopen(fd, "rb", buffering=0) as file:
            left = self._ours.size
            while left and (chunk := file.read(min(left, CHUNK))):
                left -= len(chunk)
                self.lines += chunk.count(b"\n")
                last = chunk[-1:]
                yield chunk
        if last != b"\n" and self._plan.outcome != "nothing_to_add":
            self.lines += 1
            yield b"\n"

    def _rest(self) -> Iterator[bytes]:
        fd = open_regular(self._theirs.store.ledger_file, os.O_RDONLY, "E_NO_LEDGER", "the ledger")
        try:
            for line, (raw, _) in enumerate(physical_lines(fd, 0, self._theirs.size), 1):
                if line > self._plan.common_line:
                    text = raw.removeprefix(BOM) if line == 1 and self._ours.size else raw
                    yield text + b"\n"
        finally:
            os.close(fd)


def merge(
    ours: Path,
    theirs: Path,
    *,
    out: Path | None = None,
    in_place: bool = False,
    locked: bool = True,
    unrelated: bool = False,
    ancestor: Path | None = None,
    clock: Clock = system_clock,
) -> Merged:
    """Merge two ledgers: all of the first as it stands, then what it lacks of the second.

    Args:
        ours, theirs: a ledger file, or a folder that holds ``.mentu``.
        out: a file to create with the result.
        in_place: put the result in the first ledger's place. With neither, nothing is written.
        locked: hold the first ledger's write lock meanwhile, when it is replaced.
        unrelated: merge ledgers without a row in common.
        ancestor: what both ledgers once were; both must still begin with it.
        clock: gives the instant of the event.

    Raises:
        DoesNotHold: ``E_CHAIN_BROKEN``: one of the ledgers does not verify.
        Refused: ``E_UNRELATED``, ``E_REWRITTEN``, ``E_UNHASHED``, ``E_MERGED_TOO_LARGE``, ``E_FILE_EXISTS``,
            ``E_WRITE_FAILED``, or what opening a ledger may raise. Nothing was changed.
        Busy: another writer held the lock.
    """
    store = _in_a_file(ours, clock)
    with store.alone() if in_place and locked else nullcontext():
        one, two = _Side(store), _Side(_in_a_file(theirs, clock))
        plan = plan_merge(one.snapshot.rows, two.snapshot.rows, (one.depth, two.depth), unrelated=unrelated)
        if ancestor is not None and plan.common < (begun := len(_Side(JsonlStore.open(ancestor)).snapshot.rows)):
            raise Refused(
                "E_REWRITTEN",
                f"both ledgers began with the same {begun} rows, and now only {plan.common} are the same",
                place=Place(file=store.location),
                remedy="Rows were changed or taken out on one side; find out where before you merge.",
            )
        writing = _Writing(one, two, plan, clock)
        target = store.ledger_file if in_place else out
        if target is None or (in_place and plan.outcome == "nothing_to_add"):
            chain, run = ChainReader(unhashed_prefix=store.unhashed_prefix), Replay()
            chain.feed_all(writing.pieces(), run.apply)
            found, state = chain.finish(), run.state
            _must_verify(found)
        else:
            found, state = _write(target, writing, store, replace=in_place)
    lost, idle = _without_effect(plan, two, state, writing.lines)
    return Merged(
        plan,
        ((one.found.head, one.found.hashed), (two.found.head, two.found.hashed)),
        found,
        lost,
        idle,
        writing.event,
        two.snapshot.state.genesis != one.snapshot.state.genesis,
    )


def _in_a_file(where: Path, clock: Clock) -> JsonlStore:
    """Open a ledger file; a workspace whose settings name a database has its ledger elsewhere."""
    store = JsonlStore.open(where, clock=clock)
    if store.config.other.get(SETTING) is not None and os.path.isdir(where):
        raise Refused(
            "E_UNSUPPORTED",
            "the ledger of this workspace is in a database, and is not merged there",
            place=Place(file=str(where)),
            remedy="`troth store dump FILE` writes it to a file, `troth store load` takes the result into a new one.",
        )
    return store


def _write(target: Path, writing: _Writing, store: JsonlStore, *, replace: bool) -> tuple[Verification, State]:
    if not replace and os.path.lexists(target):
        raise _exists(target)
    temp = target.with_name(f".{target.name}.{secrets.token_hex(6)}.new")
    try:
        now = os.lstat(target) if replace else None
        create_from(temp, writing.pieces(), stat.S_IMODE(now.st_mode) if now is not None else FILE_MODE)
        if now is not None:
            os.chmod(temp, stat.S_IMODE(now.st_mode))
            with suppress(OSError, AttributeError):  # only root may give a file away, and only POSIX has owners
                os.chown(temp, now.st_uid, now.st_gid)
        snapshot = JsonlStore(temp, unhashed_prefix=store.unhashed_prefix).read()
        _must_verify(snapshot.verification)
        if replace:
            temp.replace(target)
        else:
            _publish(temp, target)
    except OSError as fault:
        raise WriteFailed(
            "E_WRITE_FAILED",
            f"the merged ledger could not be written: {fault.strerror or fault}",
            place=Place(file=str(target)),
            remedy="Make room or mend the disk, then try again; the ledgers are as they were.",
            detail=fault.errno,
        ) from None
    finally:
        with suppress(OSError):
            temp.unlink(missing_ok=True)
    try:
        sync_folder(target.parent)
    except OSError as fault:
        raise WriteFailed(
            "E_WRITE_FAILED",
            f"the merged ledger stands there, but whether it would survive a crash is unknown: {fault.strerror}",
            place=Place(file=str(target)),
            remedy="Mend the disk, then merge again: what is there already is not added twice.",
            detail=fault.errno,
        ) from None
    return snapshot.verification, snapshot.state


def _publish(temp: Path, target: Path) -> None:
    """Give the file its name, unless something has it."""
    try:
        if os.name == "nt":
            temp.rename(target)  # refuses an existing name there
        else:
            os.link(temp, target, follow_symlinks=False)
    except FileExistsError:
        raise _exists(target) from None
    except (OSError, NotImplementedError):
        # A file system without hard links: looking first is the best there is.
        if os.path.lexists(target):
            raise _exists(target) from None
        temp.replace(target)


def _exists(target: Path) -> Refused:
    return Refused("E_FILE_EXISTS", "a file is there already", place=Place(file=str(target)), remedy="Name another.")


def _must_verify(found: Verification) -> None:
    if not found.ok:
        first = found.faults[0]
        if first.fault == "unhashed_count":  # what A's settings allow, and B's rows would break
            raise Refused("E_UNHASHED", first.message, remedy="`troth import` makes a hashed ledger of such rows.")
        raise Defect("E_DEFECT", f"the merged ledger would not verify: line {first.line}, {first.fault}")


def _without_effect(
    plan: Plan, theirs: _Side, state: State, lines: int
) -> tuple[tuple[Anomaly, ...], tuple[Anomaly, ...]]:
    """Return the added rows without effect: those that had one in their own ledger, and those that had none there."""
    added = [anomaly for anomaly in state.anomalies if anomaly.line > lines]
    if not added:
        return (), ()
    if plan.outcome == "fast_forward":  # the same rows in the same order
        return (), tuple(added)
    before = {anomaly.line for anomaly in theirs.snapshot.state.anomalies}
    origin = _lines_added(plan, theirs)
    lost: list[Anomaly] = []
    idle: list[Anomaly] = []
    for anomaly in added:
        at = anomaly.line - lines - 1
        (idle if at < len(origin) and origin[at] in before else lost).append(anomaly)
    return tuple(lost), tuple(idle)


def _lines_added(plan: Plan, theirs: _Side) -> list[int]:
    return [row.line for row in theirs.snapshot.rows if row.line > plan.common_line and row.line not in plan.skipped]


def as_json(done: Merged) -> dict[str, Any]:
    """Return what ``troth merge --json`` prints, but for where it went."""
    plan = done.plan
    return {
        "result": plan.outcome,
        "common": plan.common,
        "rows": list(plan.rows),
        "heads": [f"{head}:{hashed}" for head, hashed in done.heads],
        "added": plan.added,
        "shared": plan.shared,
        "shared_ids": plan.shared_ids,
        "renamed": [one.as_json() for one in plan.renamed],
        "rekeyed": [one.as_json() for one in plan.rekeyed],
        "without_effect": [one.as_json() for one in done.lost],
        "without_effect_before": [one.as_json() for one in done.idle],
        "event": done.event,
        "head": done.found.head,
        "hashed": done.found.hashed,
        "total": done.found.total,
        "ok": done.found.ok,
    }
