"""How answers leave: one JSON object on stdout, or words; errors in one shape; text from outside made harmless."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, Final

import click

from troth.core.errors import TrothError
from troth.core.words import printable

__all__ = ["PRECEDENCE", "coloured", "emit_json", "note", "printable", "say", "tell_error", "worst"]

PRECEDENCE: Final = (70, 75, 2, 1, 4, 3, 0)
"""Several inputs: the first of these that occurs is the exit status."""


def worst(codes: Iterable[int]) -> int:
    """Return the exit status for several inputs."""
    seen = set(codes)
    return next((code for code in PRECEDENCE if code in seen), 0)


def emit_json(value: Any) -> None:
    """Print one JSON object on one line of stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def say(text: str = "") -> None:
    """Print a line for a person on stdout."""
    click.echo(text)


def note(text: str) -> None:
    """Print a diagnostic or progress line on stderr."""
    click.echo(text, err=True)


def tell_error(fault: TrothError, *, as_json: bool) -> None:
    """Print an error: as JSON on stdout, or as one line on stderr."""
    if as_json:
        emit_json(fault.as_json())
        return
    click.echo(f"troth: {printable(str(fault), 4000)}", err=True)


def coloured(text: str, colour: str) -> str:
    """Return the text in a colour when stdout is a terminal and ``NO_COLOR`` is not set."""
    import os

    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return click.style(text, fg=colour)
