"""What the agent said it ran: the neutral claims file, one JSON object a line.

A line is ``{"argv": ["program", …], "exit": n, "totals": "12 passed, 1 failed"}``; ``exit`` and ``totals`` (of tests,
in a runner's words or as ``12/12``) may be left out. Totals stand in no record: they are compared beside it. The
record holds the agent's last claim for each argument vector (done records §13.12), in the order in which those last
claims were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from troth.core.strictjson import JsonFault, Limits, loads
from troth.observer.totals import Totals, read_line

MAX_BYTES: Final = 8 << 20
"""Bytes read of a claims file; what lies beyond is told and not read."""

_LINE: Final = Limits(max_bytes=1 << 20, max_depth=8, refuse_overflow=True)


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims as the record holds them, how many lines made them, and the lines that were no claim (with a reason).

    ``at`` has, for each entry, the line of the claim that it is; ``totals`` those that a line says; ``cut`` tells that
    the file goes on behind what was read.
    """

    entries: tuple[Mapping[str, Any], ...]
    lines: int
    refused: tuple[tuple[int, str], ...] = ()
    at: tuple[int, ...] = ()
    totals: Mapping[int, Totals] = field(default_factory=dict)
    cut: bool = False


def fault_of(value: Any) -> str | None:
    """Return why a value is no line of a claims file, or None."""
    if not isinstance(value, dict):
        return "not an object"
    unknown = value.keys() - {"argv", "exit", "totals"}
    if unknown:
        return f"unknown member {min(unknown)!r}"
    argv = value.get("argv")
    if not (isinstance(argv, list) and argv and all(isinstance(part, str) for part in argv) and argv[0]):
        return "argv is not a non-empty array of strings"
    code = value.get("exit", 0)
    if isinstance(code, bool) or not isinstance(code, int) or not -255 <= code <= 255:
        return "exit is not an integer from -255 to 255"
    if "totals" in value and not (isinstance(value["totals"], str) and read_line(value["totals"])):
        return "totals is none that is known, such as 12/12 or 12 passed, 1 failed"
    return None


def read_claims(data: bytes) -> Claims:
    """Read a claims file. Never raises: a line that is no claim is listed and claims nothing."""
    last: dict[tuple[str, ...], tuple[int, Mapping[str, Any]]] = {}
    refused: list[tuple[int, str]] = []
    totals: dict[int, Totals] = {}
    count = 0
    cut = len(data) > MAX_BYTES
    if cut:
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
        told = read_line(value.pop("totals", ""))
        if told is not None:
            totals[number] = told
        key = tuple(value["argv"])
        last.pop(key, None)  # so that the order is that of the last claims
        last[key] = (number, value)
    entries = tuple({"id": f"c{count}", **value} for count, (_, value) in enumerate(last.values(), 1))
    return Claims(
        entries=entries, lines=count, refused=tuple(refused), at=tuple(line for line, _ in last.values()),
        totals=totals, cut=cut,
    )  # fmt: skip
