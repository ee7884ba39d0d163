"""Strict JSON in: one value of RFC 8259, or a fault with its kind and position.

The first fault met from left to right decides. A repeated member name counts as met at its object's closing
brace, so that a fault inside the object comes first (done records §3).
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

from troth.core.errors import Place, Refused

JsonFaultKind = Literal["invalid", "number", "duplicate_key", "depth", "size", "surrogate"]

MAX_INT_DIGITS: Final = 4300
"""Longest integer literal kept exactly (ledger spec §3 [D8])."""

# An environment (PYTHONINTMAXSTRDIGITS) may set the interpreter's own limit lower; what a row is must not depend on it.
if 0 < sys.get_int_max_str_digits() < MAX_INT_DIGITS:
    sys.set_int_max_str_digits(MAX_INT_DIGITS)


class JsonFault(Refused):
    """The bytes are not the strict JSON that was asked for.

    ``kind`` says which rule broke: ``invalid`` (syntax, truncation, trailing text, encoding, byte order mark,
    an integer too long), ``number`` (``NaN``, an infinity, or a literal overflowing a double where the limits
    refuse that), ``duplicate_key``, ``depth``, ``size``, ``surrogate`` (an unpaired surrogate).
    """

    def __init__(self, kind: JsonFaultKind, message: str, place: Place | None = None) -> None:
        super().__init__(f"json_{kind}", message, place=place)
        self.kind: JsonFaultKind = kind


@dataclass(frozen=True, slots=True)
class Limits:
    """What a reader is ready to take. Sizes in bytes; the outermost container is depth 1."""

    max_bytes: int
    max_depth: int
    refuse_overflow: bool
    surrogates: bool = False
    """Let unpaired surrogates written as escapes pass."""

    def __post_init__(self) -> None:
        if self.max_bytes < 1 or self.max_depth < 1:
            raise ValueError("limits are positive")


LEDGER_ROW: Final = Limits(max_bytes=1 << 20, max_depth=100, refuse_overflow=True)
"""A ledger row: 1 MiB, nesting 100, no literal beyond a double (ledger spec §3 [D8])."""

RECORD: Final = Limits(max_bytes=1 << 24, max_depth=200, refuse_overflow=False)
"""A done record: 16 MiB (done records §2); the depth is ours (§11 leaves it open)."""

# Cheap tests on the raw bytes decide whether a costly check can matter at all.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONG_DIGITS = re.compile(rb"[0-9]{300}")
# Strings, to step over them, and runs of brackets; possessive, so that no text makes it back-track.
_BRACKETS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[\[{]++|[\]}]++', re.DOTALL)
_EXPONENT = re.compile(rb"[0-9][eE]\+?[0-9]{2}")


def _duplicates_refused(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise JsonFault("duplicate_key", f"the member name {name!r} stands twice in one object")
            seen.add(name)
    return value


def _constant_refused(token: str) -> NoReturn:
    raise JsonFault("number", f"{token} is no JSON number")


def _bounded_int(literal: str) -> int:
    if len(literal.lstrip("-")) > MAX_INT_DIGITS:
        raise JsonFault("invalid", f"an integer of more than {MAX_INT_DIGITS} digits")
    return int(literal)


def _finite_float(literal: str) -> float:
    value = float(literal)
    if value in (float("inf"), float("-inf")):
        raise JsonFault("number", f"{literal[:40]} does not fit a double")
    return value


def max_depth(data: bytes, stop_above: int) -> int:
    """Return the deepest container nesting of JSON text, or the first depth above ``stop_above``."""
    deepest = depth = 0
    for match in _BRACKETS.finditer(data):
        run = match[0]
        if run[0] in b"[{":
            depth += len(run)
            if depth > deepest:
                deepest = depth
                if depth > stop_above:
                    return stop_above + 1
        elif run[0] in b"]}":
            depth -= len(run)
    return deepest


def has_unpaired_surrogate(value: Any) -> bool:
    """Tell whether any string in the value, names included, holds an unpaired surrogate."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if any("\ud800" <= char <= "\udfff" for char in item):
                return True
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False


_PLAIN = json.JSONDecoder(object_pairs_hook=_duplicates_refused, parse_constant=_constant_refused)
_BOUNDED = json.JSONDecoder(
    object_pairs_hook=_duplicates_refused, parse_constant=_constant_refused, parse_int=_bounded_int
)
_FINITE = json.JSONDecoder(
    object_pairs_hook=_duplicates_refused,
    parse_constant=_constant_refused,
    parse_int=_bounded_int,
    parse_float=_finite_float,
)


def loads(data: bytes, limits: Limits) -> Any:
    """Parse one JSON value with only white space around it.

    Objects become ``dict`` in document order, integers without fraction or exponent ``int``, other numbers
    ``float``.

    Raises:
        JsonFault: with the kind of the first fault met.
    """
    if len(data) > limits.max_bytes:
        raise JsonFault("size", f"{len(data)} bytes, more than the limit of {limits.max_bytes}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise JsonFault("invalid", f"byte {fault.start} is not UTF-8") from None
    if text.startswith("\ufeff"):
        raise JsonFault("invalid", "a byte order mark at the start")
    if data.count(b"{") + data.count(b"[") > limits.max_depth and (
        max_depth(data, limits.max_depth) > limits.max_depth
    ):
        raise JsonFault("depth", f"nesting deeper than {limits.max_depth}")
    numbers_matter = _LONG_DIGITS.search(data) is not None
    if limits.refuse_overflow and (numbers_matter or _EXPONENT.search(data) is not None):
        decoder = _FINITE
    else:
        decoder = _BOUNDED if numbers_matter else _PLAIN
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as fault:
        raise JsonFault("invalid", f"{fault.msg} at character {fault.pos}") from None
    except (RecursionError, ValueError):
        raise JsonFault("invalid", "nesting or a number too large to parse") from None
    if not limits.surrogates and _SURROGATE_ESCAPE.search(data) is not None and has_unpaired_surrogate(value):
        raise JsonFault("surrogate", "an unpaired surrogate")
    return value
