"""What a reader gets: rows parsed when they are asked for, the replayed state, the verification."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import overload

from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault
from troth.ledger.chain import BOM, Verification
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
    """The well-formed rows of a ledger in file order, parsed when they are asked for."""

    def __init__(self, path: Path, starts: array[int], lines: array[int]) -> None:
        self._path = path
        self._starts = starts  # offset of each row's first byte
        self._lines = lines  # physical line of each row, ascending
        self._count = len(lines)

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
            Refused: ``E_UNREADABLE`` when the file was replaced meanwhile.
        """
        fd = open_regular(self._path, os.O_RDONLY, "E_NO_LEDGER", "the ledger")
        try:
            if isinstance(index, slice):
                return [self._read(fd, at) for at in range(*index.indices(self._count))]
            if not -self._count <= index < self._count:
                raise IndexError(index)
            return self._read(fd, index % self._count)
        finally:
            os.close(fd)

    def __iter__(self) -> Iterator[Row]:
        for first in range(0, self._count, 1000):
            yield from self[first : first + 1000]

    def at_line(self, line: int) -> Row:
        """Return the row of a physical line.

        Raises:
            KeyError: no well-formed row stands there.
        """
        index = bisect_left(self._lines, line, 0, self._count)
        if index == self._count or self._lines[index] != line:
            raise KeyError(line)
        return self[index]

    def _read(self, fd: int, index: int) -> Row:
        line = self._lines[index]
        for _, raw, _ in physical_lines(fd, self._starts[index]):
            try:
                return row_of(line, parse_row(bare(raw, line)))
            except JsonFault:
                break
        raise Refused("E_UNREADABLE", "the ledger was replaced while it was read", place=Place(file=str(self._path)))


class Snapshot:
    """What a ledger said at one moment; the state is shared with the store and valid until its next call."""

    __slots__ = ("_verified", "rows", "state")

    def __init__(self, rows: Rows, state: State, verified: Callable[[], Verification]) -> None:
        self.rows = rows
        self.state = state
        self._verified = verified

    @property
    def verification(self) -> Verification:
        """Return what the verifier found in these rows."""
        return self._verified()

    @property
    def head(self) -> str:
        """Return the head digest."""
        return self.verification.head
