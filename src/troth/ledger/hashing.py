"""The hash of a row (ledger spec §3), by the reference path."""

from __future__ import annotations

import hashlib
from typing import Any

from troth.core.canonical import hashed_form


def canonical_row(value: dict[str, Any]) -> bytes:
    """Return the ASCII bytes that are hashed: ``hash`` and ``prevHash`` present and empty, the rest as parsed.

    Raises:
        ValueError: for NaN and infinities, which no parsed row holds.
    """
    return hashed_form({**value, "hash": "", "prevHash": ""})


def row_hash(value: dict[str, Any]) -> str:
    """Return the lowercase hexadecimal SHA-256 of a row's canonical bytes."""
    return hashlib.sha256(canonical_row(value)).hexdigest()


def stored_form(value: Any) -> bytes:
    """Return a stored ``hash`` or ``prevHash`` as bytes that are equal only for equal values (§16: "as it stands").

    A string gives its UTF-8 bytes, so that a proper digest gives its 64 ASCII digits. A number, truth value,
    array or object gives its canonical JSON behind the byte FF, which no UTF-8 text holds.
    """
    if isinstance(value, str):
        return value.encode("utf-8")
    return b"\xff" + hashed_form(value)


def fold_head(head: str, stored: Any) -> str:
    """Return the next head digest: SHA-256 over the last one's digits followed by the row's hash (§4 [D10]).

    A stored hash that is no string, always a fault, is folded as its canonical JSON.
    """
    text = stored.encode("utf-8") if isinstance(stored, str) else hashed_form(stored)
    return hashlib.sha256(head.encode("ascii") + text).hexdigest()
