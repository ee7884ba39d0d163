"""Physical lines of a ledger file, read in chunks with bounded memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Final

from troth.core.strictjson import LEDGER_ROW

CHUNK: Final = 1 << 16
"""Bytes read at once: large enough to be quick, small enough for what a block becomes to stay in the caches."""

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


def blocks(
    fd: int, start: int, digest: PrefixDigest | None = None, end: int | None = None
) -> Iterator[tuple[int, bytes, bool]]:
    """Yield ``(offset after the block, bytes, terminated)``: whole lines without their last LF, then what is left.

    Args:
        fd: open for reading; its position is used.
        start: offset of a line's first byte.
        digest: takes every chunk read.
        end: stop reading there; by default at the end of the file.

    What follows the last LF comes with ``terminated`` false; nothing comes for zero bytes there. Of a line longer
    than :data:`KEPT` only that many bytes are given.
    """
    os.lseek(fd, start, os.SEEK_SET)
    offset = start
    carry = b""
    carry_size = 0  # as it stands in the file, where `carry` may have been cut
    position = start
    while chunk := os.read(fd, CHUNK if end is None else min(CHUNK, end - position)):
        position += len(chunk)
        if digest is not None:
            digest.chunk(chunk)
        cut = chunk.rfind(b"\n")
        if cut < 0:
            carry += chunk[: max(0, KEPT - len(carry))]
            carry_size += len(chunk)
            continue
        if carry_size > KEPT:
            first = chunk.index(b"\n")
            offset += carry_size + first + 1
            yield offset, carry, True
            if first < cut:
                offset += cut - first
                yield offset, chunk[first + 1 : cut], True
        else:
            offset += carry_size + cut + 1
            yield offset, carry + chunk[:cut], True
        carry = chunk[cut + 1 :]
        carry_size = len(carry)
    if carry_size:
        yield offset + carry_size, carry, False


def physical_lines(fd: int, start: int, end: int | None = None) -> Iterator[tuple[bytes, bool]]:
    """Yield ``(bytes without the LF, terminated)`` for each line from the offset ``start`` on; see :func:`blocks`."""
    for _, block, terminated in blocks(fd, start, end=end):
        if terminated:
            for raw in block.split(b"\n"):
                yield raw, True
        else:
            yield block, False
