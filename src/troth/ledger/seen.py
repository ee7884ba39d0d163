"""Sets of what a verifier has seen, small enough for millions of rows."""

from __future__ import annotations

import hashlib
from array import array
from typing import Final

WIDTH: Final = 32
"""Bytes of one digest."""

LONGEST_PLAIN_ID: Final = 72
"""Longer ids are kept as their digest, so that hostile ones cost no memory."""


class SeenDigests:
    """An exact set of 32-byte digests: a flat array, indexed only when somebody asks.

    A chain without a broken link never asks, so the usual cost of a row is 32 bytes and one append. The index is
    an open-addressing table of positions into that array; its slots come from Python's keyed hash, so that no
    file can choose digests which collide.
    """

    __slots__ = ("_flat", "_indexed", "_slots")

    def __init__(self) -> None:
        self._flat = bytearray()
        self._slots = array("I", bytes(4 * 1024))
        self._indexed = 0

    def __len__(self) -> int:
        return len(self._flat) // WIDTH

    def add(self, digest: bytes) -> None:
        """Add one digest of 32 bytes."""
        self._flat += digest

    def extend(self, digests: bytes) -> None:
        """Add several digests, one after the other."""
        self._flat += digests

    def __contains__(self, digest: bytes) -> bool:
        self._index()
        flat, slots = self._flat, self._slots
        mask = len(slots) - 1
        slot = hash(digest) & mask
        while position := slots[slot]:
            start = (position - 1) * WIDTH
            if flat[start : start + WIDTH] == digest:
                return True
            slot = (slot + 1) & mask
        return False

    def _index(self) -> None:
        count = len(self)
        if self._indexed == count:
            return
        if count * 2 > len(self._slots):
            size = len(self._slots)
            while size < count * 3:
                size *= 2
            self._slots = array("I", bytes(4 * size))
            self._indexed = 0
        # Only what is new is copied: a hostile ledger asks behind every row.
        flat, slots, first = self._flat, self._slots, self._indexed
        fresh = bytes(flat[first * WIDTH :])
        mask = len(slots) - 1
        for position in range(first, count):
            start = (position - first) * WIDTH
            digest = fresh[start : start + WIDTH]
            slot = hash(digest) & mask
            while other := slots[slot]:
                begin = (other - 1) * WIDTH
                if flat[begin : begin + WIDTH] == digest:
                    break
                slot = (slot + 1) & mask
            else:
                slots[slot] = position + 1
        self._indexed = count


def compact_id(identifier: str) -> str | bytes:
    """Return what stands for an id in a set: itself, or its digest when it is long."""
    if len(identifier) <= LONGEST_PLAIN_ID:
        return identifier
    return hashlib.sha256(identifier.encode("utf-8")).digest()
