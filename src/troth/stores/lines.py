"""Physical lines of a ledger file, read in chunks with bounded memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Final

from troth.core.strictjson import LEDGER_ROW

CHUNK: Final = 1 << 20

KEPT: Final = LEDGER_ROW.max_bytes + 16
"""Bytes kept of one line. A longer line is malformed by its size alone, whatever else it holds; the margin covers a
byte order mark and a carriage return, which do not count."""


class PrefixDigest:
    """SHA-256 of everything up to and including the last LF seen, kept while a file is read in chunks."""

    __slots__ = ("_covered", "_running")

    def __init__(self) -> None:
        self._running = hashlib.sha256()
        self._covered = self._running.copy()

    def chunk(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        cut = data.rfind(b"\n") + 1
        if cut:
            self._running.update(data[:cut])
            self._covered = self._running.copy()
        self._running.update(data[cut:])

    def settle(self) -> None:
        """Forget the bytes after the last LF."""
        self._running = self._covered.copy()

    def digest(self) -> bytes:
        """Return the digest of the covered bytes."""
        return self._covered.digest()


def physical_lines(fd: int, start: int, digest: PrefixDigest | None = None) -> Iterator[tuple[int, bytes, bool]]:
    """Yield ``(offset after the line, bytes without the LF, terminated)`` for each line from ``start`` on.

    Args:
        fd: open for reading; its position is used.
        start: offset of a line's first byte.
        digest: takes every chunk read.

    A final line without LF comes with ``terminated`` false; nothing comes for zero bytes after the last LF. Of a
    line longer than :data:`KEPT` only that many bytes are given.
    """
    os.lseek(fd, start, os.SEEK_SET)
    offset = start
    carry = b""
    carry_size = 0
    while True:
        chunk = os.read(fd, CHUNK)
        if not chunk:
            break
        if digest is not None:
            digest.chunk(chunk)
        lines = chunk.split(b"\n")
        if carry_size:
            head_size = carry_size + len(lines[0])
            head = carry + lines[0][: max(0, KEPT - len(carry))]
        else:
            head = lines[0]
            head_size = len(head)
        if len(lines) == 1:
            carry, carry_size = head, head_size
            continue
        offset += head_size + 1
        yield offset, head, True
        for raw in lines[1:-1]:
            offset += len(raw) + 1
            yield offset, raw, True
        carry = lines[-1]
        carry_size = len(carry)
    if carry_size:
        yield offset + carry_size, carry, False
