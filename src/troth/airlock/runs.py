"""Runs: one folder each under ``.mentu/runs``, a state file in it, and one lock for the workspace.

The folder of a run is a member folder: its receipt and records can be checked where they lie. ``run.json`` says how far
the run came, so that what a crash left can be told, resumed or cleared.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from troth.core.canonical import record_bytes
from troth.core.errors import Busy, Place, Refused
from troth.stores.durable import read_regular, replace_whole
from troth.stores.lock import exclusive

FOLDER: Final = "runs"
STATE: Final = "run.json"
LOCK: Final = ".lock"

STAGES: Final = ("started", "observed", "graded", "receipted", "captured", "finished", "abandoned")
"""How far a run came. ``finished`` and ``abandoned`` need nothing more."""

_STATE_LIMIT: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class RunState:
    """What ``run.json`` holds. Ids are the ledger's; ``stage`` is one of :data:`STAGES`."""

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
    note: str | None = None

    @property
    def open(self) -> bool:
        """Tell whether the run was left before its end."""
        return self.stage not in ("finished", "abandoned")


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
        manager = exclusive(self.folder / LOCK, 0.0)
        try:
            manager.__enter__()
        except Busy:
            active = [run.id for run in self.states() if run.open]
            named = f" ({active[-1]})" if active else ""
            raise Busy(
                "E_RUN_BUSY",
                f"another run is under way in this workspace{named}",
                place=Place(file=str(self.folder)),
                remedy="Wait for it to end: one run at a time can be attributed to one agent.",
            ) from None
        try:
            yield
        finally:
            manager.__exit__(None, None, None)

    def under_way(self) -> bool:
        """Tell whether a run holds the lock at this moment."""
        if not self.folder.is_dir():
            return False
        try:
            with self.exclusively():
                return False
        except Busy:
            return True

    def path(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self.folder / run_id

    def create(self, state: RunState) -> Path:
        """Make the folder of a new run, owner-only, with its state in it."""
        folder = self.path(state.id)
        folder.mkdir(mode=0o700)
        self.save(state)
        return folder

    def save(self, state: RunState) -> RunState:
        """Replace the state of a run, durably."""
        value = asdict(state) | {"argv": list(state.argv), "schema_version": "troth-run/v1"}
        replace_whole(self.path(state.id) / STATE, record_bytes(value))
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
            value = json.loads(data)
            value.pop("schema_version")
            value["argv"] = tuple(value["argv"])
            state = RunState(**value)
        except (ValueError, TypeError, KeyError, AttributeError):
            state = None
        if state is None or state.stage not in STAGES or state.id != run_id:
            raise Refused("E_RUN_UNREADABLE", "the state of the run cannot be read", place=Place(file=str(path)))
        return state

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

    def abandon(self, commitment: str) -> list[str]:
        """Clear the unfinished runs of a commitment (on release) and return their ids.

        Raises:
            Busy: one of them is still under way.
        """
        left = self.open_for(commitment)
        if not left:
            return []
        with self.exclusively():
            for run in left:
                self.discard_private(run.id)
                self.advance(run, "abandoned", note="the commitment was released")
        return [run.id for run in left]

    def discard_private(self, run_id: str) -> None:
        """Remove the tracer's files and the sandbox's folders of a run."""
        shutil.rmtree(self.path(run_id) / "private", ignore_errors=True)
