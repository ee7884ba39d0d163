"""The Merkle tree of RFC 6962 as its definitions read, word for word; knows nothing of the code under test."""

from __future__ import annotations

import hashlib

Leaf = bytes


def _sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _k(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def mth(data: list[bytes]) -> bytes:
    """Section 2.1: the Merkle tree hash of entries."""
    if not data:
        return _sha(b"")
    if len(data) == 1:
        return _sha(b"\x00" + data[0])
    k = _k(len(data))
    return _sha(b"\x01" + mth(data[:k]) + mth(data[k:]))


def path(m: int, data: list[bytes]) -> list[bytes]:
    """Section 2.1.1: the audit path of entry m."""
    n = len(data)
    if n == 1:
        return []
    k = _k(n)
    if m < k:
        return [*path(m, data[:k]), mth(data[k:])]
    return [*path(m - k, data[k:]), mth(data[:k])]


def proof(m: int, data: list[bytes]) -> list[bytes]:
    """Section 2.1.2: the consistency proof for the first m entries."""
    return _subproof(m, data, True)


def _subproof(m: int, data: list[bytes], whole: bool) -> list[bytes]:
    n = len(data)
    if m == n:
        return [] if whole else [mth(data)]
    k = _k(n)
    if m <= k:
        return [*_subproof(m, data[:k], whole), mth(data[k:])]
    return [*_subproof(m - k, data[k:], False), mth(data[:k])]


def root_from_path(leaf: bytes, m: int, n: int, steps: list[bytes]) -> bytes | None:
    """The root that an audit path leads to, by recursion over the tree's shape; none when its length is wrong."""
    if n == 1:
        return _sha(b"\x00" + leaf) if not steps else None
    if not steps:
        return None
    k = _k(n)
    if m < k:
        below = root_from_path(leaf, m, k, steps[:-1])
        return None if below is None else _sha(b"\x01" + below + steps[-1])
    below = root_from_path(leaf, m - k, n - k, steps[:-1])
    return None if below is None else _sha(b"\x01" + steps[-1] + below)


def roots_from_proof(m: int, n: int, old: bytes, steps: list[bytes]) -> tuple[bytes, bytes] | None:
    """The two roots that a consistency proof leads to, by recursion over the definition; none for a wrong length."""
    return _roots(m, n, old, steps, True)


def _roots(m: int, n: int, old: bytes, steps: list[bytes], whole: bool) -> tuple[bytes, bytes] | None:
    if m == n:
        if whole:
            return (old, old) if not steps else None
        return (steps[0], steps[0]) if len(steps) == 1 else None
    if not steps:
        return None
    k = _k(n)
    below = _roots(m, k, old, steps[:-1], whole) if m <= k else _roots(m - k, n - k, old, steps[:-1], False)
    if below is None:
        return None
    if m <= k:
        return below[0], _sha(b"\x01" + below[1] + steps[-1])
    return _sha(b"\x01" + steps[-1] + below[0]), _sha(b"\x01" + steps[-1] + below[1])


def row_entry(content_hash: str, link: str) -> bytes:
    """What a row is as an entry of the tree: the digits of its content's hash, then its link as it stands."""
    return (content_hash + link).encode("ascii")
