"""Strict JSON of a record (done records §3): a fast reader that answers only when it can prove itself right.

A fast parser keeps the last of two equal names and turns long integers into floats, silently. So its answer counts
only when writing it again gives the very bytes that were read: a repeated name, a lost digit, an escape, a byte
order mark or odd white space would all show. Whatever does not come back byte for byte is read by the strict
parser, which alone decides what is wrong with it.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from troth.core.errors import Place
from troth.core.strictjson import JsonFault, Limits, loads
from troth.receipts.kinds import Broken
from troth.receipts.member import MAX_BYTES

LIMITS: Final = Limits(max_bytes=MAX_BYTES, max_depth=254, refuse_overflow=False, surrogates=True)
"""Nesting deeper than 254 is ``P_json_invalid`` (§11); the fast writer goes exactly as deep."""

_LINE_FEED: Final = 0x0A
_CODES: Final = {"number": "json_number", "duplicate_key": "json_duplicate_key"}


def parse_strict(data: bytes, prefix: str) -> Any:
    """Parse one JSON value with the strict parser alone.

    Raises:
        Broken: ``P_json_invalid``, ``P_json_number`` or ``P_json_duplicate_key``: the first fault met.
    """
    try:
        return loads(data, LIMITS)
    except JsonFault as fault:
        broken = Broken(f"{prefix}_{_CODES.get(fault.kind, 'json_invalid')}")
        broken.detail = fault.message
        broken.place = Place()
        raise broken from None


def parse(data: bytes, prefix: str) -> Any:
    """Parse one JSON value: the result, or the exception, of `parse_strict`, sooner.

    Raises:
        Broken: as `parse_strict`.
    """
    # Two layouts are tried: two spaces of indent, as the published records have it, and none, as ours have.
    option = orjson.OPT_INDENT_2 if data[1:2] == b"\n" else 0
    if data[-1:] == b"\n":
        option |= orjson.OPT_APPEND_NEWLINE
    try:
        value = orjson.loads(data)
        if orjson.dumps(value, option=option) == data:
            return value
    except (ValueError, TypeError):
        pass
    return parse_strict(data, prefix)
