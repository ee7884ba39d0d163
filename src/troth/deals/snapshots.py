"""Canonical JSON of messages, and the byte snapshot of an offer (§2)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

_SLOW: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_NO_BODY: Final = ("msg_id", "ts", "from", "to", "deceptive_alt", "deceptive_alt_kind")


def canonical(value: Any) -> bytes:
    """Return canonical JSON: members sorted by code point, no white space, UTF-8.

    A value that no UTF-8 or no 64 bits can carry is written in ASCII with escapes and all digits; nothing that the
    reader accepts is among them but long integers in what it leaves free.

    Raises:
        ValueError: nested deeper than can be written.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        try:
            return _SLOW.encode(value).encode("ascii")
        except RecursionError:
            raise ValueError("nested too deep") from None


def trimmed(data: bytes) -> bytes:
    """Return a copy in the room that it needs: what orjson returns keeps that of its buffer."""
    return bytes(memoryview(data))


class Snapshot(NamedTuple):
    """The bytes of an offer's body and their SHA-256 in lowercase hexadecimal."""

    body: bytes
    sha256: str


def snapshot(offer: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot of an Offer or OfferSupersede: without the envelope and without the oracle's marks."""
    terms = {**offer}
    for name in _NO_BODY:
        terms.pop(name, None)
    body = trimmed(canonical(terms))
    return Snapshot(body, hashlib.sha256(body).hexdigest())
