"""The Merkle tree of RFC 6962 over a stream of leaves: roots, inclusion proofs, consistency proofs.

``MTH({}) = SHA-256()``, a leaf is ``SHA-256(00 || data)``, a node ``SHA-256(01 || left || right)``, and a tree of n
leaves divides at the largest power of two below n. Proofs are lists of node hashes in the order of RFC 6962 §2.1.

A proof names ranges of leaves whose subtree roots it holds (:func:`inclusion_ranges`, :func:`consistency_ranges`);
:class:`RangeRoots` finds them while the leaves pass by, so that nothing here ever keeps all leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()
"""The root of a tree without leaves."""

MAX_PROOF: Final = 64
"""Most hashes an inclusion proof can have, for any number of leaves below 2^64; a consistency proof has one more."""

_BLOCK: Final = 256  # leaves folded together: a power of two, so that each block is a subtree of every larger tree
_BLOCK_LEVEL: Final = 8

Range = tuple[int, int]
"""Leaves from the first number up to, not including, the second."""


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return sha256(b"\1" + left + right).digest()


def _fold(nodes: list[bytes]) -> bytes:
    """Return the root over neighbouring nodes of one level; an odd last one rises until it finds a partner."""
    while len(nodes) > 1:
        pairs = [sha256(b"\1" + left + right).digest() for left, right in zip(nodes[::2], nodes[1::2], strict=False)]
        if len(nodes) % 2:
            pairs.append(nodes[-1])
        nodes = pairs
    return nodes[0] if nodes else EMPTY_ROOT


class Frontier:
    """The root over leaves that come one after the other, in memory that grows with the logarithm of their number.

    Args:
        watch: sizes at which the root is to be remembered, in ``roots``.
    """

    __slots__ = ("_peaks", "_tail", "_watch", "roots", "size")

    def __init__(self, watch: Iterable[int] = ()) -> None:
        self.size = 0
        self.roots: dict[int, bytes] = {}
        self._watch = sorted(set(watch), reverse=True)
        self._peaks: list[tuple[int, bytes]] = []  # whole subtrees from left to right: level and root
        self._tail: list[bytes] = []  # the leaves behind them, fewer than a block
        self.extend(())

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Take the next leaves, each as its hash."""
        start = 0
        while self._watch and self._watch[-1] - self.size <= len(leaves) - start:
            wanted = self._watch.pop()
            stop = start + wanted - self.size
            self._take(leaves[start:stop])
            self.roots[wanted] = self.root()
            start = stop
        self._take(leaves[start:] if start else leaves)

    def _take(self, leaves: Sequence[bytes]) -> None:
        self.size += len(leaves)
        tail = self._tail
        tail += leaves
        start = 0
        while len(tail) - start >= _BLOCK:
            level, root = _BLOCK_LEVEL, _fold(tail[start : start + _BLOCK])
            while self._peaks and self._peaks[-1][0] == level:
                root = node_hash(self._peaks.pop()[1], root)
                level += 1
            self._peaks.append((level, root))
            start += _BLOCK
        if start:
            del tail[:start]

    def root(self) -> bytes:
        """Return the root over all leaves taken so far."""
        parts = [root for _, root in self._peaks]
        if self._tail:
            parts.append(_fold(self._tail))
        if not parts:
            return EMPTY_ROOT
        root = parts.pop()
        while parts:
            root = node_hash(parts.pop(), root)
        return root


class RangeRoots:
    """The subtree roots over some ranges of the leaves that pass by.

    Args:
        ranges: ranges of leaves; no two overlap.
    """

    __slots__ = ("_at", "_ordered", "size")

    def __init__(self, ranges: Iterable[Range]) -> None:
        self.size = 0
        self._ordered = [(start, end, Frontier()) for start, end in sorted(ranges)]
        self._at = 0

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Take the next leaves, each as its hash."""
        begin, after = self.size, self.size + len(leaves)
        self.size = after
        while self._at < len(self._ordered):
            start, end, frontier = self._ordered[self._at]
            if start < after:
                frontier.extend(leaves[max(start - begin, 0) : end - begin])
            if end > after:
                return
            self._at += 1

    def roots(self) -> dict[Range, bytes]:
        """Return the root over each range, the whole of which has passed by.

        Raises:
            ValueError: fewer leaves came than a range reaches to.
        """
        if self._at < len(self._ordered):
            raise ValueError("the leaves ended before the last range did")
        return {(start, end): frontier.root() for start, end, frontier in self._ordered}


def _split(size: int) -> int:
    """Return the largest power of two below a size of 2 or more."""
    return 1 << ((size - 1).bit_length() - 1)


def inclusion_ranges(index: int, size: int) -> list[Range]:
    """Return the ranges whose roots prove that a leaf is in a tree, from its sibling up (RFC 6962 §2.1.1).

    Args:
        index: of the leaf, from 0.
        size: leaves in the tree.

    Raises:
        ValueError: the tree has no such leaf.
    """
    if not 0 <= index < size:
        raise ValueError("no such leaf")
    found: list[Range] = []
    start, end = 0, size
    while end - start > 1:
        cut = start + _split(end - start)
        if index < cut:
            found.append((cut, end))
            end = cut
        else:
            found.append((start, cut))
            start = cut
    return found[::-1]


def consistency_ranges(old: int, new: int) -> list[Range]:
    """Return the ranges whose roots prove that one tree begins with another (RFC 6962 §2.1.2).

    Args:
        old, new: leaves of the smaller and the larger tree. For an empty or an equal one nothing is to be proven.

    Raises:
        ValueError: the old tree is larger.
    """
    if not 0 <= old <= new:
        raise ValueError("the old tree is the larger one")
    found: list[Range] = []
    start, end = 0, new
    if old == 0:
        return found
    while end != old:
        cut = start + _split(end - start)
        if old <= cut:
            found.append((cut, end))
            end = cut
        else:
            found.append((start, cut))
            start = cut
    if start:
        # The old tree is no subtree of the new one's left edge, so its last part has to be told.
        found.append((start, end))
    return found[::-1]


def holds_leaf(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Tell whether an inclusion proof holds (RFC 9162 §2.1.3.2).

    Args:
        leaf: the hash of the leaf.
        index: of the leaf, from 0.
        size, root: of the tree.
        path: the proof.
    """
    if not 0 <= index < size:
        return False
    at, last = index, size - 1
    found = leaf
    for step in path:
        if last == 0:
            return False
        if at & 1 or at == last:
            found = node_hash(step, found)
            while at and not at & 1:
                at >>= 1
                last >>= 1
        else:
            found = node_hash(found, step)
        at >>= 1
        last >>= 1
    return last == 0 and found == root


def extends(old: int, old_root: bytes, new: int, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Tell whether a consistency proof holds (RFC 9162 §2.1.4.2).

    Args:
        old, old_root: size and root of the tree that is said to be the beginning of the other.
        new, new_root: of the other.
        path: the proof.
    """
    if not 0 <= old <= new:
        return False
    if old == new:
        return not path and old_root == new_root
    if old == 0:
        return not path and old_root == EMPTY_ROOT
    steps = [old_root, *path] if old & (old - 1) == 0 else list(path)
    if not steps:
        return False
    at, last = old - 1, new - 1
    while at & 1:
        at >>= 1
        last >>= 1
    first = second = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            first = node_hash(step, first)
            second = node_hash(step, second)
            while at and not at & 1:
                at >>= 1
                last >>= 1
        else:
            second = node_hash(second, step)
        at >>= 1
        last >>= 1
    return last == 0 and first == old_root and second == new_root
