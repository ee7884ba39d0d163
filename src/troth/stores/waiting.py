"""Threads that wait to append to the same store, so that one of them can serve all with one sync."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from troth.ledger.operations import Candidate
    from troth.stores.snapshot import Snapshot

    Built = tuple[Candidate, dict[str, Any] | None]
    Build = Callable[[Snapshot], Candidate | Built]

MOST_TOGETHER: Final = 64
"""Rows asked for that one sync stands for at most; who serves the others is kept from its own answer by no more."""


def decided(build: Build | Built, snapshot: Snapshot) -> Built:
    """Return the row that is asked for, and its trust, where ``build`` decides on it or is it."""
    built = build if isinstance(build, tuple) else build(snapshot)
    return built if isinstance(built, tuple) else (built, None)


class Asked:
    """One row that somebody asks for, and the answer: its rows (an event may precede it) or why there are none.

    ``build`` decides on the row while the lock is held, or is the row, with its trust, where that is known before.
    ``answered`` is set by the thread that served it, while that one leads.
    """

    __slots__ = ("answered", "build", "fault", "okf_ingest", "rows", "seen", "turn")

    def __init__(self, build: Build | Built, seen: str | None, okf_ingest: bool) -> None:
        self.build = build
        self.seen = seen
        self.okf_ingest = okf_ingest
        self.rows: list[dict[str, Any]] = []
        self.fault: BaseException | None = None
        self.answered = False
        self.turn = threading.Lock()  # held while its thread must wait


class Queue:
    """Of the threads that append one leads; the others wait until they were served or it is their turn to lead."""

    def __init__(self) -> None:
        self._waiting: deque[Asked] = deque()
        self._own = threading.Lock()  # held for a moment
        self._leader: int | None = None

    def lead(self, asked: Asked) -> bool:
        """Return whether this thread leads now; after a no what was asked is answered. Who leads calls :meth:`hand_on`.

        A thread that leads may ask again.
        """
        me = threading.get_ident()
        with self._own:
            if self._leader is None or self._leader == me:
                self._leader = me
                return True
            asked.turn.acquire()
            self._waiting.append(asked)
        try:
            asked.turn.acquire()
        except BaseException:
            self._went_away(asked)
            raise
        if not asked.answered:
            self._leader = me  # it was handed on
        return not asked.answered

    def next(self) -> Asked | None:
        """Return who has waited longest, ``None`` when nobody waits; for who leads."""
        with self._own:
            return self._waiting.popleft() if self._waiting else None

    def hand_on(self, served: Iterable[Asked] = ()) -> None:
        """Let those go that were served, and whoever has waited longest lead."""
        for one in served:
            one.turn.release()
        with self._own:
            if self._waiting:
                self._leader = 0  # until that thread has woken
                self._waiting.popleft().turn.release()
            else:
                self._leader = None

    def _went_away(self, asked: Asked) -> None:
        """Forget who was interrupted: nobody appends for it, unless it is being served already."""
        with self._own:
            if asked in self._waiting:
                self._waiting.remove(asked)
                return
        asked.turn.acquire()
        if not asked.answered:
            self.hand_on()
