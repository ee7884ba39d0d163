"""Threads that wait to append to the same store, so that whoever gets the lock can serve them all with one sync."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from troth.ledger.operations import Candidate
    from troth.stores.snapshot import Snapshot

    Build = Callable[[Snapshot], Candidate | tuple[Candidate, dict[str, Any] | None]]

MOST_TOGETHER: Final = 64
"""Rows asked for that one sync stands for at most; whoever holds the lock is kept from its own answer by no more."""


class Asked:
    """One row that somebody asks for, and the answer: its rows (an event may precede it) or why there are none.

    ``answered`` is set under the lock, by the thread that served it.
    """

    __slots__ = ("answered", "build", "fault", "okf_ingest", "rows", "seen")

    def __init__(self, build: Build, seen: str | None, okf_ingest: bool) -> None:
        self.build = build
        self.seen = seen
        self.okf_ingest = okf_ingest
        self.rows: list[dict[str, Any]] = []
        self.fault: BaseException | None = None
        self.answered = False


class Queue:
    """A lock, and what those who wait for it ask.

    ``lock`` may be taken again by the thread that holds it.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._waiting: deque[Asked] = deque()

    def enter(self, asked: Asked) -> None:
        """Take the lock; while another thread has it, what is asked stands in the queue."""
        if self.lock.acquire(blocking=False):
            return
        self._waiting.append(asked)
        try:
            self.lock.acquire()
        except BaseException:
            # Nobody appends for one who was interrupted and went away; if it was served already, so be it.
            self._leave(asked)
            raise
        self._leave(asked)

    def _leave(self, asked: Asked) -> None:
        try:
            self._waiting.remove(asked)
        except ValueError:
            return

    def next(self) -> Asked | None:
        """Return who has waited longest, ``None`` when nobody waits; the lock is held."""
        try:
            return self._waiting.popleft()
        except IndexError:
            return None
