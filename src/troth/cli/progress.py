"""How far a long piece of work has come, told on stderr when that is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final

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
