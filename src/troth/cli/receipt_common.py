"""What the commands of ``troth receipt`` share: exit statuses, words in colour, JSON of whatever a record holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import coloured, emit_json, say
from troth.core.errors import Place, Refused

if TYPE_CHECKING:
    from troth.receipts.pinning import ConsumerPins

EXITS: Final = {"holds": 0, "does_not_hold": 1, "refused": 2, "not_established": 3}
"""Standing of a result -> exit status."""

COLOURS: Final = {
    "supported": "green",
    "valid": "green",
    "contradicted": "red",
    "invalid": "red",
    "refused": "red",
    "not_established": "yellow",
}
"""Verdict -> the colour of its word."""

checks_option = click.option(
    "--checks",
    "names",
    multiple=True,
    metavar="NAME",
    help="A check to run where there is no receipt: protected_paths/v1, acceptance_observed/v1 or tool_claim_match/v1 "
    "(also without /v1). Repeatable. Default: all three.",
)


def emit(value: Any) -> None:
    """Print one JSON object; text with unpaired surrogates, which no terminal takes, as escapes."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        say(json.dumps(value))
    else:
        emit_json(value)


def word(verdict: str) -> str:
    """Return a verdict as a person reads it, in its colour."""
    return coloured(verdict.replace("_", " "), COLOURS[verdict])


def in_short(result: Mapping[str, Any]) -> str:
    """Return the result of a member on one line."""
    parts = []
    if "refused" in result:
        parts.append(f"{word('refused')} ({result['refused']})")
    for name in ("contract", "receipt"):
        if name in result:
            verdict = result[name]["verdict"]
            code = f" ({result[name]['code']})" if "code" in result[name] else ""
            parts.append(f"{name} {word(verdict)}{code}")
    if "done" in result:
        parts.append(f"done {word(result['done']['decision'])} ({result['done']['reason']})")
    else:
        parts += [
            f"{name} {word(answer['decision'])} ({answer['reason']})"
            for name, answer in result.get("checks", {}).items()
        ]
    return "; ".join(parts)


def read_pin_file(path: str) -> ConsumerPins:
    """Read a consumer's pins.

    Raises:
        Refused: ``E_PIN_UNREADABLE`` or ``E_PIN_MALFORMED``.
    """
    from pathlib import Path

    from troth.receipts.pinning import MAX_PINS, parse_pins, unreadable_pins

    try:
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_PINS + 1)
        except (OSError, ValueError) as fault:
            raise unreadable_pins(str(fault)) from None
        return parse_pins(data)
    except Refused as fault:
        raise Refused(fault.code, fault.message, remedy=fault.remedy, place=Place(file=path)) from None
