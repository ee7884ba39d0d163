"""What a run did, as it is put down: events of the workspace, effects elsewhere, and what could not be told.

The journal keeps the order, joins repeated writes (done records §13.2), bounds every list and knows sizes. It
decides nothing about calls; that is ``interpret``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from troth.core.canonical import string_size
from troth.core.instants import format_instant
from troth.receipts.checks import is_grader_path

MAX_EVENTS_BYTES: Final = 16 * 1024 * 1024 - 256 * 1024
"""Bytes that the events may take in a record of at most 16 MiB (§13.2), compact, with room for its other members."""
MAX_EFFECTS: Final = 20_000
"""Effects listed beside those that reach a grader."""
MAX_EFFECTS_BYTES: Final = 4 * 1024 * 1024
"""Bytes that the effects may take in a record, and as many again for those that reach a grader: one of them decides."""
_EFFECT_BYTES: Final = 80
"""What an effect takes beside its names."""
MAX_NOTES: Final = 200
"""Entries of each list of what was refused, escaped or not resolved."""

MAX_NOTE: Final = 1000
"""Characters of one such entry."""

COALESCED: Final = frozenset({"write", "truncate", "chmod"})


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an observation record (done records §4.3)."""

    id: str
    type: str
    time: str
    step: int
    path: str | None = None
    target: str | None = None
    argv: tuple[str, ...] | None = None
    exit: int | None = None
    origin: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the record's members, without those that the event does not have."""
        value: dict[str, Any] = {"id": self.id, "type": self.type, "time": self.time, "step": self.step}
        for name in ("path", "target", "exit", "origin"):
            member = getattr(self, name)
            if member is not None:
                value[name] = member
        if self.argv is not None:
            value["argv"] = list(self.argv)
        return value


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect outside of the workspace (done records §4.8): paths, or an address."""

    type: str
    time: str
    paths: tuple[str, ...] | None = None
    address: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the record's members: exactly one of ``paths`` and ``address``."""
        value: dict[str, Any] = {"type": self.type, "time": self.time}
        if self.paths is not None:
            value["paths"] = list(self.paths)
        else:
            value["address"] = self.address
        return value


@dataclass(slots=True)
class Notes:
    """A bounded list of sentences, each once, that says how many more there were."""

    _seen: dict[str, None]
    _more: int = 0

    def add(self, text: str) -> None:
        """Add a sentence unless it is there."""
        if len(text) > MAX_NOTE:
            text = text[: MAX_NOTE - 1] + "…"
        if text in self._seen:
            return
        if len(self._seen) < MAX_NOTES:
            self._seen[text] = None
        else:
            self._more += 1

    def listed(self) -> list[str]:
        """Return the sentences."""
        return [*self._seen, *([f"and {self._more} more"] if self._more else [])]


@dataclass(slots=True)
class _Row:
    """An event before its step and exit status are known."""

    id: str
    type: str
    second: int
    path: str | None
    target: str | None
    argv: tuple[str, ...] | None
    origin: str | None
    exit: int | None = None


class Journal:
    """Collects what the trace's steps come to, in their order.

    Args:
        started: the instant of the trace's beginning; times are that plus monotonic nanoseconds (§13.9).
    """

    def __init__(self, started: datetime) -> None:
        self._started = started.replace(microsecond=0)
        self._fraction = started.microsecond * 1000
        self._instants: dict[int, str] = {}
        self._done: list[_Row] = []
        self._window: dict[Any, _Row] = {}
        self._executed: list[_Row] = []
        self._effects: dict[tuple[str, Any], tuple[int, bool]] = {}
        self._count = 0
        self._effects_bytes = [0, 0]
        self.effects_omitted = 0
        self.git_mutations = 0
        self.touched: set[str] = set()
        self.refused = Notes({})
        self.escapes = Notes({})
        self.unresolved = Notes({})
        self.names_not_utf8 = Notes({})

    def _second(self, now: int) -> int:
        return (now + self._fraction) // 1_000_000_000

    def _instant(self, second: int) -> str:
        text = self._instants.get(second)
        if text is None:
            text = self._instants[second] = format_instant(self._started + timedelta(seconds=second))
        return text

    @property
    def programs(self) -> int:
        """How many programs have been started so far."""
        return len(self._executed)

    # --- putting down ---

    def mutation(self, now: int, kind: str, path: str, target: str | None, origin: str | None) -> None:
        """Put down a change in the workspace.

        A change of content or mode that repeats one of the same path and origin, with no program started between,
        takes its place: the last step is what freshness asks about.
        """
        key: Any = (kind, path, origin) if kind in COALESCED else self._count
        row = self._window.pop(key, None)
        if row is None:
            row = _Row(self._next_id(), kind, 0, path, target, None, origin)
        row.second = self._second(now)
        self._window[key] = row

    def program(self, now: int, argv: tuple[str, ...], origin: str | None) -> tuple[str, int]:
        """Put down that a program was started; returns the event's id and its position for ``exited``."""
        self._flush()
        row = _Row(self._next_id(), "exec", self._second(now), None, None, argv, origin)
        self._done.append(row)
        self._executed.append(row)
        return row.id, len(self._executed) - 1

    def name_of(self, position: int) -> str:
        """Return the id of a started program's event."""
        return self._executed[position].id

    def exited(self, position: int, status: int) -> None:
        """Give a started program the exit status of its process, which is what whoever waited for it saw."""
        self._executed[position].exit = status

    def effect(self, now: int, kind: str, *, paths: tuple[str, ...] | None = None, address: str | None = None) -> None:
        """Put down an effect outside of the workspace, the first of its kind and names."""
        key = (kind, address if paths is None else paths)
        if key in self._effects:
            return
        decides = any(is_grader_path(path) for path in paths or ())
        size = sum(map(string_size, paths or (address or "",))) + _EFFECT_BYTES
        if self._effects_bytes[decides] + size > MAX_EFFECTS_BYTES or (
            len(self._effects) >= MAX_EFFECTS and not decides
        ):
            self.effects_omitted += 1
            return
        self._effects_bytes[decides] += size
        self._effects[key] = (self._second(now), paths is None)

    def _next_id(self) -> str:
        self._count += 1
        return f"e{self._count}"

    def _flush(self) -> None:
        self._done.extend(self._window.values())
        self._window.clear()

    # --- what came of it ---

    def events(self, limit: int) -> tuple[list[Event], str | None]:
        """Return the events, and the instant after which they were cut, if they do not fit.

        Args:
            limit: bytes that the events may take, written compactly.
        """
        self._flush()
        events: list[Event] = []
        size = 0
        for step, row in enumerate(self._done, 1):
            event = Event(
                row.id, row.type, self._instant(row.second), step, row.path, row.target, row.argv, row.exit, row.origin
            )
            size += _size(event)
            if size > limit:
                return events, events[-1].time if events else self._instant(0)
            events.append(event)
        return events, None

    def effects(self) -> list[Effect]:
        """Return the effects outside of the workspace, in the order in which they first happened."""
        return [
            Effect(kind, self._instant(second), address=what)
            if network
            else Effect(kind, self._instant(second), paths=what)
            for (kind, what), (second, network) in self._effects.items()
        ]


def _size(event: Event) -> int:
    """Return the bytes an event takes in a record, written compactly as UTF-8, with the comma after it."""
    return len(json.dumps(event.as_json(), separators=(",", ":"), ensure_ascii=False).encode()) + 1


def printable(name: bytes) -> str:
    """Return a name that is not UTF-8 with its bytes escaped."""
    return name.decode("utf-8", "backslashreplace")


def text_of(argv: Sequence[bytes]) -> tuple[str, ...] | None:
    """Return arguments as text, or ``None`` when one is not UTF-8."""
    try:
        return tuple(argument.decode("utf-8") for argument in argv)
    except UnicodeDecodeError:
        return None
