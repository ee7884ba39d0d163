"""Runs: one folder each under ``.mentu/runs``, a state file in it, and one lock for the workspace.

The folder of a run is a member folder: its receipt and records can be checked where they lie. ``run.json`` says how far
the run came, so that what a crash left can be told, resumed or cleared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from troth.airlock.shapes import anything, each, given, many, maybe, members, one_of, text
from troth.core.canonical import record_bytes
from troth.core.errors import Busy, Place, Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.observer.folders import remove_tree
from troth.stores.durable import read_regular, replace_whole
from troth.stores.lock import exclusive

FOLDER: Final = "runs"
STATE: Final = "run.json"
LOCK: Final = ".lock"
PREFIX: Final = "run_"

GLANCE_SECONDS: Final = 0.5
"""How long to wait for the run lock: others hold it for a moment just to see whether a run is under way."""

STAGES: Final = ("started", "observed", "graded", "receipted", "captured", "finished", "abandoned")
"""How far a run came. ``finished`` and ``abandoned`` need nothing more."""


def put(path: Path, data: bytes) -> None:
    """Write a file of a run, durably and whole.

    Raises:
        Refused: ``E_WRITE_FAILED``; what stood there before is untouched.
    """
    try:
        replace_whole(path, data)
    except OSError as fault:
        raise Refused(
            "E_WRITE_FAILED",
            f"the run's file could not be written: {fault.strerror or fault}",
            place=Place(file=str(path)),
            remedy="Make room or mend the disk, then take the run up with: troth run --resume @last",
        ) from None


RECORD_LIMIT: Final = 1 << 28
"""Bytes of a record that is read back from a run's folder; what was observed can be long."""


def record_of(folder: Path, name: str, *needed: str) -> dict[str, Any]:
    """Return a record that an earlier stage of a run left in its folder.

    Args:
        folder: the run's.
        name: the file's.
        needed: members that it has, each an object.

    Raises:
        Refused: ``E_RUN_UNREADABLE``: somebody took it away or bent it.
    """
    data = read_regular(folder / name, RECORD_LIMIT, "E_RUN_UNREADABLE", f"the run's {name}")
    try:
        value = loads(data, Limits(max_bytes=RECORD_LIMIT, max_depth=200, refuse_overflow=True))
    except JsonFault:
        value = None
    if not isinstance(value, dict) or not all(isinstance(value.get(member), dict) for member in needed):
        raise Refused("E_RUN_UNREADABLE", f"the run's {name} is not what was kept", place=Place(str(folder / name)))
    return value


_STATE_LIMIT: Final = 1 << 22
_STATE: Final = Limits(max_bytes=_STATE_LIMIT, max_depth=64, refuse_overflow=True)


@dataclass(frozen=True, slots=True)
class RunState:
    """What ``run.json`` holds.

    Ids are the ledger's; ``stage`` is one of :data:`STAGES`; ``told`` is the verdict in words (``sentence``, ``lines``,
    ``missing``); ``refused`` the code with which the ledger refused the submission; ``stop`` the receipt's decision.
    """

    id: str
    commitment: str
    actor: str
    argv: tuple[str, ...]
    contract_sha256: str
    stage: str
    started: str
    decision: str | None = None
    reason: str | None = None
    evidence: str | None = None
    submission: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Any] | None = None
    told: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None
    refused: str | None = None
    stop: Mapping[str, str] | None = None

    @property
    def open(self) -> bool:
        """Tell whether the run was left before its end."""
        return self.stage not in ("finished", "abandoned")


_TOLD: Final = members(sentence=text, lines=many(text), missing=many(each(text)))
_FIXED: Final = members(
    schema_version=text, id=text, commitment=text, actor=text, argv=many(text), contract_sha256=text,
    stage=one_of(*STAGES), started=text,
)  # fmt: skip
_MORE: Final = given(
    decision=maybe(text), reason=maybe(text), evidence=maybe(text), submission=maybe(text), options=anything,
    measured=maybe(anything), told=lambda value: value == {} or _TOLD(value), note=maybe(text), refused=maybe(text),
    stop=maybe(members(action=text, reason=text)),
)  # fmt: skip
_NAMES: Final = frozenset({"schema_version", *(one.name for one in fields(RunState))})
_UNTOLD: Final = ("started", "observed", "graded", "abandoned")
"""Stages at which nothing is told of a run yet, or perhaps never will be."""


def _is_state(value: Any) -> bool:
    """Tell whether ``run.json`` is what was saved, or could be."""
    whole = _FIXED(value) and _MORE(value) and value.keys() <= _NAMES
    return whole and (bool(value.get("told")) or value["stage"] in _UNTOLD)


class Runs:
    """The runs of one workspace."""

    def __init__(self, mentu: Path) -> None:
        self.folder = mentu / FOLDER

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the workspace's run lock.

        Raises:
            Busy: ``E_RUN_BUSY``: another run is under way in this workspace.
        """
        self.folder.mkdir(mode=0o755, exist_ok=True)
        with self._held():
            try:
                yield
            finally:
                self.name_current(None)

    @contextmanager
    def _held(self) -> Iterator[None]:
        manager = exclusive(self._lock, GLANCE_SECONDS)
        try:
            manager.__enter__()
        except Busy:
            current = self._current()
            named = f" ({current})" if current else ""
            raise Busy(
                "E_RUN_BUSY",
                f"another run is under way in this workspace{named}",
                place=Place(file=str(self.folder)),
                remedy="Wait for it to end: one run at a time can be attributed to one agent.",
                detail=current,
            ) from None
        try:
            yield
        finally:
            manager.__exit__(None, None, None)
            manager.close()

    @property
    def _lock(self) -> Path:
        return self.folder / LOCK

    def name_current(self, run_id: str | None) -> None:
        """Write into the lock's file whose run holds it; for people only, the lock itself is the system's."""
        with open(self._lock, "w", encoding="ascii") as file:  # noqa: PTH123 - in place: the lock is on this very file
            file.write(run_id or "")

    def _current(self) -> str | None:
        try:
            data = read_regular(self._lock, 1 << 10, "E_RUN_UNKNOWN", "the run lock")
        except Refused:
            return None
        said = data.decode("ascii", "replace").strip()
        return said if said.startswith(PREFIX) else None

    def refuse_under_way(self) -> None:
        """Refuse when a run is under way; nothing is created.

        Raises:
            Busy: ``E_RUN_BUSY``.
        """
        if self._lock.exists():
            with self._held():
                pass

    def under_way(self) -> str | None:
        """Return the id of the run that holds the lock at this moment (empty when it has not said), else ``None``."""
        try:
            self.refuse_under_way()
        except Busy as busy:
            return busy.detail or ""
        return None

    def path(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self.folder / run_id

    def create(self, state: RunState, files: Mapping[str, bytes]) -> Path:
        """Make the folder of a new run, owner-only, with some files and then its state in it."""
        folder = self.path(state.id)
        folder.mkdir(mode=0o700)
        for name, data in files.items():
            (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
            put(folder / name, data)
        self.save(state)
        return folder

    def save(self, state: RunState) -> RunState:
        """Replace the state of a run, durably."""
        value = asdict(state) | {"argv": list(state.argv), "schema_version": "troth-run/v1"}
        put(self.path(state.id) / STATE, record_bytes(value))
        return state

    def advance(self, state: RunState, stage: str, **changes: Any) -> RunState:
        """Return the state at a later stage, saved."""
        return self.save(replace(state, stage=stage, **changes))

    def states(self) -> list[RunState]:
        """Return every run whose state can be read, oldest first."""
        if not self.folder.is_dir():
            return []
        found = []
        for entry in sorted(os.scandir(self.folder), key=lambda item: item.name):
            if entry.is_dir(follow_symlinks=False) and (Path(entry.path) / STATE).is_file():
                try:
                    found.append(self.load(entry.name))
                except Refused:
                    continue
        return sorted(found, key=lambda run: (run.started, run.id))

    def load(self, run_id: str) -> RunState:
        """Read one run.

        Raises:
            Refused: ``E_RUN_UNKNOWN`` or ``E_RUN_UNREADABLE``.
        """
        path = self.path(run_id) / STATE
        data = read_regular(path, _STATE_LIMIT, "E_RUN_UNKNOWN", "the run")
        try:
            value = loads(data, _STATE)
        except JsonFault:
            value = None
        if not _is_state(value) or value["id"] != run_id:
            raise Refused("E_RUN_UNREADABLE", "the state of the run cannot be read", place=Place(file=str(path)))
        del value["schema_version"]
        return RunState(**{**value, "argv": tuple(value["argv"])})

    def find(self, word: str) -> RunState:
        """Return the run that a person means: an id, an unambiguous prefix, or ``@last``.

        Raises:
            Refused: ``E_RUN_UNKNOWN``.
        """
        states = self.states()
        if word == "@last" and states:
            return states[-1]
        matches = [run for run in states if run.id == word] or [
            run for run in states if run.id.startswith(word) or run.id.removeprefix("run_").startswith(word)
        ]
        if len(matches) != 1:
            what = "no run" if not matches else f"{len(matches)} runs"
            raise Refused("E_RUN_UNKNOWN", f"{what} of that name: {word!r}", remedy="See: troth runs")
        return matches[0]

    def open_for(self, commitment: str) -> list[RunState]:
        """Return the unfinished runs of a commitment."""
        return [run for run in self.states() if run.open and run.commitment == commitment]

    def abandon(self, state: RunState, note: str) -> RunState:
        """End a run without a verdict; the caller holds the lock."""
        self.discard_private(state.id)
        return self.advance(state, "abandoned", note=note)

    @contextmanager
    def clearing(self) -> Iterator[Clearing]:
        """Clear the unfinished runs of a commitment together with giving it back.

        The body names the commitment to the clearing before it releases, and calls ``clear`` when that has been done;
        in between no run can be taken up.
        """
        with ExitStack() as stack:
            yield Clearing(self, stack)

    def discard_private(self, run_id: str) -> None:
        """Remove the tracer's files and the sandbox's folders of a run."""
        with suppress(OSError):
            remove_tree(self.path(run_id) / "private")


class Clearing:
    """What :meth:`Runs.clearing` hands out."""

    def __init__(self, runs: Runs, stack: ExitStack) -> None:
        self._runs = runs
        self._stack = stack
        self._left: list[RunState] = []

    def of(self, commitment: str) -> None:
        """Name the commitment; from here to the end of the body no run can begin.

        Raises:
            Busy: ``E_RUN_BUSY``: one of its runs is under way.
        """
        if self._runs.open_for(commitment):
            self._stack.enter_context(self._runs.exclusively())
            self._left = self._runs.open_for(commitment)

    def clear(self) -> list[str]:
        """Mark the commitment's unfinished runs as abandoned and return their ids."""
        return [self._runs.abandon(run, "the commitment was released").id for run in self._left]
