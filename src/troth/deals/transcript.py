"""Transcripts: lines of JSON in, lines of JSON out (§3 Transcript file, §7 File).

A line that is JSON at all is handed on, with a flaw when no message may look so; a line that is none makes the file
unreadable.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, Final, NamedTuple, NoReturn

import orjson

from troth.core.errors import Place, Refused
from troth.core.instants import format_instant
from troth.core.strictjson import MAX_INT_DIGITS, has_unpaired_surrogate, max_depth
from troth.deals.snapshots import canonical

MAX_DEPTH: Final = 200
"""Deepest nesting read, the line's own object being 1. RFC 8259 §9 lets a reader set one."""

MAX_LINE_BYTES: Final = 1 << 24
"""Longest line read, without its line feed."""

EPOCH: Final = 1767225600
"""2026-01-01T00:00:00Z: the instant of step 0 in transcripts written here."""


class Entry(NamedTuple):
    """A line's value.

    ``flaw`` says why no message may look so. ``form`` is what its message is compared by: its canonical JSON, where
    that is known already, and of a message with a flaw all that it holds.
    """

    value: Any
    flaw: str | None = None
    form: bytes | None = None


def _unreadable(line: int | None, why: str) -> Refused:
    return Refused(
        "E_TRANSCRIPT_UNREADABLE",
        f"the transcript cannot be read as JSON Lines: {why}",
        remedy="A transcript holds one JSON object on each line, in UTF-8, and no empty line.",
        place=Place(line=line),
    )


def read_entry(raw: bytes, number: int | None = None) -> Entry:
    """Return what one line holds.

    Args:
        raw: the line, without its line feed.
        number: which line it is, from 1; for the refusal's place.

    Raises:
        Refused: ``E_TRANSCRIPT_UNREADABLE``, the line is no JSON, or longer or deeper than is read.
    """
    # Written again, the value gives the very same bytes: then no member stood twice, no number lost a digit and no
    # text was odd. Lines that others spaced differently take the way below.
    try:
        value = orjson.loads(raw)
        if len(raw) <= MAX_LINE_BYTES:
            if raw.startswith(_CANONICAL) and orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == raw:
                # The line is canonical, and so is the message in it.
                return Entry(value, None, raw[len(_CANONICAL) : raw.rindex(b",")] if len(value) == 2 else None)
            if orjson.dumps(value) == raw:
                return Entry(value)
    except (ValueError, TypeError):
        pass
    return _read_slowly(raw, number)


_CANONICAL: Final = b'{"msg":'


def _read_slowly(raw: bytes, number: int | None) -> Entry:
    if len(raw) > MAX_LINE_BYTES:
        raise _unreadable(number, f"a line of more than {MAX_LINE_BYTES} bytes")
    if not raw.strip(b" \t\r"):
        raise _unreadable(number, "an empty line")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise _unreadable(number, f"byte {fault.start} is not UTF-8") from None
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and max_depth(raw, MAX_DEPTH) > MAX_DEPTH:
        raise _unreadable(number, f"nesting deeper than {MAX_DEPTH}")
    flaws: list[str] = []

    def pairs_to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            flaws.append("a member name stands twice")
        return value

    def finite(literal: str) -> float:
        value = float(literal)
        if value in (float("inf"), float("-inf")):
            flaws.append("a number that no double holds")
            return 0.0
        return value

    def whole(literal: str) -> int:
        if len(literal.lstrip("-")) > MAX_INT_DIGITS:
            flaws.append("a number of too many digits")
            return -1
        return int(literal)

    def constant(token: str) -> NoReturn:
        raise ValueError(f"{token} is no JSON")

    try:
        value = json.loads(
            text, object_pairs_hook=pairs_to_dict, parse_float=finite, parse_int=whole, parse_constant=constant
        )
    except json.JSONDecodeError as fault:
        raise _unreadable(number, f"{fault.msg} at character {fault.pos}") from None
    except (ValueError, RecursionError) as fault:
        raise _unreadable(number, str(fault)) from None
    if has_unpaired_surrogate(value):
        flaws.append("text that UTF-8 cannot carry")
    if not flaws:
        return Entry(value)
    return Entry(value, flaws[0], _form_of_flawed(text))


class _Odd(list[Any]):
    """What no value holds: an object with a member twice, as sorted pairs, or a number by its digits."""


def _form_of_flawed(text: str) -> bytes | None:
    """Return what a flawed line's message is compared by; ``None`` when the flaw lies beside it, or it has no message.

    Nothing is lost in it, so that a message with a member twice equals no message without.
    """

    def pairs_to_value(pairs: list[tuple[str, Any]]) -> Any:
        value = dict(pairs)
        return value if len(value) == len(pairs) else _Odd(sorted(([*pair] for pair in pairs), key=canonical))

    def number(literal: str) -> Any:
        digits = literal.lstrip("-")
        if digits.isdigit():
            return int(literal) if len(digits) <= MAX_INT_DIGITS else _Odd([literal])
        value = float(literal)
        return value if isfinite(value) else _Odd([literal])

    line = json.loads(text, object_pairs_hook=pairs_to_value, parse_float=number, parse_int=number)
    # Of a member that stands twice the last one counts, here as everywhere.
    if isinstance(line, _Odd):
        # A number alone, which no double holds, has no members.
        message = dict(line).get("msg") if isinstance(line[0], list) else None
    else:
        message = line.get("msg") if isinstance(line, dict) else None
    waiting = [message]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _Odd):
            return b"!" + canonical(message)
        waiting.extend(item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
    return None


def split_lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines of a transcript; a line feed at its end begins no further line."""
    if not data:
        return
    yield from (data[:-1] if data.endswith(b"\n") else data).split(b"\n")


def entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Yield what each line holds.

    Raises:
        Refused: ``E_TRANSCRIPT_UNREADABLE`` with the line's number.
    """
    for number, raw in enumerate(lines, 1):
        yield read_entry(raw.removesuffix(b"\n"), number)


# Writing -------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def instant_of(step: int) -> str:
    """Return the instant of a step: as many seconds after :data:`EPOCH` (§2).

    Raises:
        ValueError: later than the year 9999.
    """
    from datetime import UTC, datetime

    try:
        return format_instant(datetime.fromtimestamp(EPOCH + step, UTC))
    except (OverflowError, OSError, ValueError) as fault:
        raise ValueError(f"step {step} is beyond the year 9999") from fault


def message_line(step: int, message: Mapping[str, Any]) -> bytes:
    """Return one line of a transcript, sorted and compact, with its line feed."""
    # What orjson returns keeps the room that it was written in, several times its length; the sum is of its own length.
    return orjson.dumps({"step": step, "msg": message}, option=orjson.OPT_SORT_KEYS) + b"\n"


def message_form(line: bytes) -> bytes:
    """Return the canonical JSON of the message in a line that :func:`message_line` wrote."""
    return line[_BEFORE : line.rindex(b",")]


_BEFORE: Final = len(_CANONICAL)


def end_line(step: int) -> bytes:
    """Return the line that ends a transcript, with its line feed."""
    return orjson.dumps({"step": step, "end": True}, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
