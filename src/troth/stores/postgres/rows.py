"""The rows of a ledger in the database, fetched and parsed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from troth.core.strictjson import JsonFault
from troth.ledger.rows import Row, parse_row, row_of
from troth.stores.snapshot import Rows, bare

FIRST: Final = 64
"""Rows fetched at once before their size is known."""

BATCH_BYTES: Final = 1 << 18
"""Bytes of rows fetched at once from a cursor, about; small enough to pass through the caches."""

PAGE_BYTES: Final = 1 << 22
"""Bytes of rows fetched by a query of their own, about; large enough for its planning not to count."""

Fetch = Callable[[str, Sequence[Any]], list[tuple[int, bytes]]]
"""Runs one query for (line, bytes)."""

ROWS: Final = "SELECT line, raw FROM troth.rows WHERE workspace = %s AND line > %s ORDER BY line"
"""Rows behind a line."""

_UP: Final = "SELECT line, raw FROM troth.rows WHERE workspace = %s AND line > %s AND line <= %s ORDER BY line LIMIT %s"
_DOWN: Final = "SELECT line, raw FROM troth.rows WHERE workspace = %s AND line < %s ORDER BY line DESC LIMIT %s"


def next_batch(rows: int, size: int, wanted: int = BATCH_BYTES) -> int:
    """Return how many rows to fetch next for that many bytes, given how many came last and their bytes."""
    return max(FIRST // 4, min(wanted // 64, wanted * rows // max(size, 1))) if rows else FIRST


def lines_until(fetch: Fetch, workspace: int, last: int) -> Iterator[tuple[int, bytes]]:
    """Yield (line, bytes) up to a line, one query after the other."""
    return _pages(fetch, _UP, workspace, 0, last)


def _pages(fetch: Fetch, query: str, workspace: int, edge: int, *bounds: int) -> Iterator[tuple[int, bytes]]:
    """Yield (line, bytes) from behind a line on, or before it, in the query's order."""
    limit = FIRST
    while True:
        found = fetch(query, (workspace, edge, *bounds, limit))
        yield from found
        if len(found) < limit:
            return
        edge = found[-1][0]
        limit = next_batch(len(found), sum(len(raw) for _, raw in found), PAGE_BYTES)


class DatabaseRows(Rows):
    """The well-formed rows up to a line.

    Args:
        fetch: runs a query.
        workspace: the workspace's number.
        line: the last line that belongs to the snapshot; later ones are not seen.
        count: how many rows there are.
    """

    def __init__(self, fetch: Fetch, workspace: int, line: int, count: int) -> None:
        super().__init__(count)
        self._fetch = fetch
        self._workspace = workspace
        self._line = line

    def __iter__(self) -> Iterator[Row]:
        for line, raw in lines_until(self._fetch, self._workspace, self._line):
            yield from _parsed(line, raw)

    def at_line(self, line: int) -> Row:
        """Return the row of a line.

        Raises:
            KeyError: no well-formed row stands there.
        """
        if line <= self._line:
            for found, raw in self._fetch(_UP, (self._workspace, line - 1, line, 1)):
                for row in _parsed(found, raw):
                    return row
        raise KeyError(line)

    def _span(self, start: int, end: int) -> list[Row]:
        """Return the rows at the positions from ``start`` to before ``end``, counted from the nearer end."""
        found: list[Row] = []
        if start < self._count - end:
            for row in self:
                found.append(row)
                if len(found) == end:
                    return found[start:]
        else:
            for line, raw in _pages(self._fetch, _DOWN, self._workspace, self._line + 1):
                found.extend(_parsed(line, raw))
                if len(found) == self._count - start:
                    return found[::-1][: end - start]
        raise IndexError(start)


def _parsed(line: int, raw: bytes) -> list[Row]:
    text = bare(raw, line)
    if text:
        with suppress(JsonFault):
            return [row_of(line, parse_row(text))]
    return []
