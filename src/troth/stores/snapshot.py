"""What a reader gets: rows parsed when they are asked for, the replayed state, the verification."""

from __future__ import annotations

import os
from abc import abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import overload

from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault
from troth.ledger.chain import BOM, Verification
from troth.ledger.confidence import Trust, collect
from troth.ledger.fastpath import plain
from troth.ledger.replay import State
from troth.ledger.rows import Row, parse_row, row_of
from troth.stores.durable import open_regular
from troth.stores.lines import physical_lines


def bare(raw: bytes, line: int) -> bytes:
    """Return a physical line without what the verifier passes over: a byte order mark, one carriage return."""
    return (raw.removeprefix(BOM) if line == 1 else raw).removesuffix(b"\r")


def well_formed(raw: bytes, line: int) -> bool:
    """Tell whether an unterminated last line is a row (or nothing at all), so that it is not torn."""
    text = bare(raw, line)
    try:
        if text:
            parse_row(text)
    except JsonFault:
        return False
    return True


class Rows(Sequence[Row]):
    """The well-formed rows of a ledger in order, read again and parsed when they are asked for.

    Args:
        count: how many rows there are.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        """Return one row, or a list of rows.

        Raises:
            IndexError: there is no such row.
            Refused: they cannot be read any more.
        """
        if isinstance(index, slice):
            wanted = range(*index.indices(self._count))
            if not wanted:
                return []
            least = min(wanted[0], wanted[-1])
            found = self._span(least, max(wanted[0], wanted[-1]) + 1)
            return [found[at - least] for at in wanted]
        if not -self._count <= index < self._count:
            raise IndexError(index)
        at = index % self._count
        return self._span(at, at + 1)[0]

    @abstractmethod
    def _span(self, start: int, end: int) -> list[Row]:
        """Return the rows at the positions from ``start`` to before ``end``; those near the end come quickly."""

    @abstractmethod
    def at_line(self, line: int) -> Row:
        """Return the row of a physical line.

        Raises:
            KeyError: no well-formed row stands there.
        """


class FileRows(Rows):
    """The rows of a ledger file.

    Args:
        path: the ledger.
        starts: landmarks: offsets of the first byte of some lines, ascending.
        lines: the physical lines that begin there.
        size: bytes that the rows reach to.
        count: how many rows there are.
    """

    def __init__(self, path: Path, starts: array[int], lines: array[int], size: int, count: int) -> None:
        super().__init__(count)
        self._path = path
        self._starts = starts
        self._lines = lines
        self._landmarks = len(starts)
        self._size = size

    @property
    def size(self) -> int:
        """Return how many bytes of the file the rows reach to."""
        return self._size

    def __iter__(self) -> Iterator[Row]:
        return self._from(0, self._landmarks)

    def at_line(self, line: int) -> Row:
        """Return the row of a physical line.

        Raises:
            KeyError: no well-formed row stands there.
        """
        mark = bisect_right(self._lines, line, 0, self._landmarks) - 1
        for row in self._from(max(mark, 0), max(mark, 0) + 1):
            if row.line == line:
                return row
        raise KeyError(line)

    def _span(self, start: int, end: int) -> list[Row]:
        found: list[Row] = []
        count, mark = self._count - start, self._landmarks
        while len(found) < count and mark > 0:
            mark -= 1
            found[:0] = self._from(mark, mark + 1)
        if len(found) < count:
            raise self._replaced()
        return found[len(found) - count :][: end - start]

    def _from(self, mark: int, until: int) -> Iterator[Row]:
        """Yield the rows from one landmark up to another."""
        if mark >= self._landmarks:
            return
        end = self._starts[until] if until < self._landmarks else self._size
        line = self._lines[mark] - 1
        fd = open_regular(self._path, os.O_RDONLY, "E_NO_LEDGER", "the ledger")
        try:
            if os.fstat(fd).st_size < end:
                raise self._replaced()
            for raw, _ in physical_lines(fd, self._starts[mark], end):
                line += 1
                text = bare(raw, line)
                if text:
                    value = plain(text)
                    if value is not None:
                        yield row_of(line, value)
                        continue
                    with suppress(JsonFault):
                        yield row_of(line, parse_row(text))
        finally:
            os.close(fd)

    def _replaced(self) -> Refused:
        return Refused("E_UNREADABLE", "the ledger was replaced while it was read", place=Place(file=str(self._path)))


class Snapshot:
    """What a ledger said at one moment; the state is shared with the store and valid until its next call."""

    __slots__ = ("_trust", "_verified", "rows", "state")

    def __init__(
        self,
        rows: Rows,
        state: State,
        verified: Callable[[], Verification],
        trust: Callable[[], Trust] | None = None,
    ) -> None:
        self.rows = rows
        self.state = state
        self._verified = verified
        self._trust = trust

    @property
    def trust(self) -> Trust:
        """Return the confidence of every signal, computed when it is first asked for (ledger spec §9, §10)."""
        if self._trust is not None:
            return self._trust()
        trust = Trust(collect(self.rows, self.state), self.state.signals)
        self._trust = lambda: trust
        return trust

    @property
    def verification(self) -> Verification:
        """Return what the verifier found in these rows."""
        return self._verified()

    @property
    def head(self) -> str:
        """Return the head digest."""
        return self.verification.head
