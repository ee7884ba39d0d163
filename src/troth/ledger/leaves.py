"""What a row is as a leaf of the ledger's Merkle tree.

A leaf holds, in ASCII, the 64 digits of the hash that the row's *content* gives (ledger spec §3) and behind them its
``prevHash`` as it stands, 64 digits in a sound ledger. Content and link together are all of a row: whoever has the row
can build its leaf, and a leaf fits no other row. How a row is spelled in its file (order of members, spacing, escapes)
decides nothing, so a ledger keeps its tree when it moves to another store.

A row without a hash (ledger spec §6, Cutover) is the 64 digits alone. Every well-formed row is one leaf, in file
order; blank lines, malformed ones and a torn tail are none.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from troth.ledger.hashing import row_hash, stored_form
from troth.ledger.merkle import leaf_hash

Leaves = Callable[[list[bytes]], None]
"""Takes the hashes of the next leaves, in order."""


def leaf_of(content_hash: str, link: bytes) -> bytes:
    """Return the hash of one leaf.

    Args:
        content_hash: the hash that the content gives.
        link: the stored form of ``prevHash``, nothing for a row without a hash.
    """
    return leaf_hash(content_hash.encode("ascii") + link)


def leaves_of(first_link: str, hashes: list[str]) -> list[bytes]:
    """Return the hashes of the leaves of consecutive rows, each linked to the one before it."""
    links = [first_link, *hashes[:-1]]
    return [sha256(f"\0{one}{link}".encode()).digest() for one, link in zip(hashes, links, strict=True)]


def leaf_of_row(value: dict[str, Any]) -> bytes:
    """Return the hash of a parsed row's leaf."""
    stored = value.get("hash")
    link = b"" if stored is None or stored == "" else stored_form(value.get("prevHash"))
    return leaf_of(row_hash(value), link)
