"""What the agent said it ran: the neutral claims file, one JSON object a line.

A line is ``{"argv": ["program", …], "exit": n}``; ``exit`` may be left out. The record holds the agent's last claim for
each argument vector (done records §13.12), in the order in which those last claims were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from troth.core.strictjson import JsonFault, Limits, loads

MAX_BYTES: Final = 8 << 20
"""Bytes read of a claims file; what lies beyond is told and not read."""

_LINE: Final = Limits(max_bytes=1 << 20, max_depth=8, refuse_overflow=True)


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims as the record holds them, how many lines made them, and the lines that were no claim (with a reason).

    ``at`` has, for each entry, the line of the claim that it is.
    """

    entries: tuple[Mapping[str, Any], ...]
    lines: int
    refused: tuple[tuple[int, str], ...] = ()
    at: tuple[int, ...] = ()


def fault_of(value: Any) -> str | None:
    """Return why a value is no line of a claims file, or None."""
    if not isinstance(value, dict):
        return "not an object"
    if set(value) - {"argv", "exit"}:
        return f"unknown member {min(set(value) - {'argv', 'exit'})!r}"
    argv = value.get("argv")
    if not (isinstance(argv, list) and argv and all(isinstance(part, str) for part in argv) and argv[0]):
        return "argv is not a non-empty array of strings"
    code = value.get("exit", 0)
    if isinstance(code, bool) or not isinstance(code, int) or not -255 <= code <= 255:
        return "exit is not an integer from -255 to 255"
    return None


def read_claims(data: bytes) -> Claims:
    """Read a claims file. Never raises: a line that is no claim is listed and claims nothing."""
    last: dict[tuple[str, ...], tuple[int, Mapping[str, Any]]] = {}
    refused: list[tuple[int, str]] = []
    count = 0
    if len(data) > MAX_BYTES:
        refused.append((0, f"only the first {MAX_BYTES} of {len(data)} bytes were read"))
        data = data[:MAX_BYTES]
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = loads(line, _LINE)
        except JsonFault as fault:
            refused.append((number, fault.message))
            continue
        reason = fault_of(value)
        if reason is not None:
            refused.append((number, reason))
            continue
        count += 1
        key = tuple(value["argv"])
        last.pop(key, None)  # so that the order is that of the last claims
        last[key] = (number, value)
    entries = tuple({"id": f"c{count}", **value} for count, (_, value) in enumerate(last.values(), 1))
    return Claims(entries=entries, lines=count, refused=tuple(refused), at=tuple(line for line, _ in last.values()))
