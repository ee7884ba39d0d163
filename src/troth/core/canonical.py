"""Canonical JSON out."""

from __future__ import annotations

import json
from typing import Any, Final

# Encoders are made once: `json.dumps` with options of its own makes a new one at every call.
_HASHED: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_RECORD: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_ROW: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def hashed_form(value: Any) -> bytes:
    """Return the ASCII bytes whose SHA-256 is a signal's hash (ledger spec §3).

    Keys sorted by code point, no white space, every character outside U+0020-U+007E as a lowercase ``\\u``
    escape (the five short escapes aside), every ``/`` as ``\\/``, integers with their exact digits, other numbers
    as the shortest round-trip double.

    Raises:
        ValueError: for NaN and infinities.
    """
    return _HASHED.encode(value).replace("/", "\\/").encode("ascii")


def record_bytes(value: Any) -> bytes:
    """Return the bytes in which this project writes a record or statement: sorted, compact, UTF-8, one LF."""
    return _RECORD.encode(value).encode("utf-8") + b"\n"


def string_size(text: str) -> int:
    """Return how many bytes a string takes in a record, with its quotes."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return len(text) + 2
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def row_bytes(value: Any) -> bytes:
    """Return one ledger line without its LF: members in the order given, compact, UTF-8."""
    return _ROW.encode(value).encode("utf-8")
