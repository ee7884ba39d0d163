"""How far a long piece of work has come, told on stderr when that is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final

from troth.core.words import lasting

QUIET_SECONDS: Final = 1.0
"""Work that takes less shows nothing."""

_EVERY_SECONDS: Final = 0.1


class Progress:
    """A percentage on one line of a terminal; a context manager that leaves no trace on it.

    Args:
        what: the work in one word, such as ``verifying``.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._next = time.monotonic() + QUIET_SECONDS
        self._shown = False
        self._terminal = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        """Take how much of the whole is done."""
        if not self._terminal or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_SECONDS
        self._shown = True
        sys.stderr.write(f"\r{self._what} {100 * done // max(total, 1)} %")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wipe the line."""
        if self._shown:
            sys.stderr.write("\r" + " " * (len(self._what) + 6) + "\r")
            sys.stderr.flush()


class Countdown(Progress):
    """A bar on one line of a terminal: how many are done, of how many, and the time that is left at this pace.

    Args:
        what: the work in one word, such as ``playing``.
        things: what is counted, such as ``deals``.
    """

    def __init__(self, what: str, things: str) -> None:
        super().__init__(what)
        self._things = things
        self._began = time.monotonic()
        self._first: int | None = None
        self._width = 0

    def __call__(self, done: int, total: int) -> None:
        """Take how many are done; what the first call tells was done before."""
        if self._first is None:
            self._first, self._began = done, time.monotonic()
        now = time.monotonic()
        if not self._terminal or now < self._next:
            return
        self._next = now + _EVERY_SECONDS
        text = self.line(done, total, now - self._began)
        # Shorter than what stood there: the rest of the line is wiped.
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._shown, self._width = True, len(text)

    def line(self, done: int, total: int, passed: float) -> str:
        """Return the bar's text after so many seconds."""
        filled = _BAR * done // max(total, 1)
        bar = "#" * filled + "." * (_BAR - filled)
        fresh = done - (self._first or 0)
        left = f", {lasting(passed / fresh * (total - done))} left" if fresh > 0 and done < total else ""
        return f"{self._what} [{bar}] {done:,} of {total:,} {self._things}{left}"

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wipe the line."""
        if self._shown:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


_BAR: Final = 24
