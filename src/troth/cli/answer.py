"""How answers leave: one JSON object on stdout, or words; errors in one shape; text from outside made harmless."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, Final

import click

from troth.core.errors import Defect, TrothError
from troth.core.words import printable

__all__ = [
    "PRECEDENCE",
    "coloured",
    "drop_output",
    "emit_json",
    "emit_json_list",
    "emit_json_text",
    "note",
    "printable",
    "say",
    "tell_error",
    "worst",
]

PRECEDENCE: Final = (70, 75, 2, 1, 4, 3, 0)
"""Several inputs: the first of these that occurs is the exit status."""

# Characters that drive a terminal or hide in one, and halves of pairs, which no UTF-8 can carry.
_UNFIT: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def worst(codes: Iterable[int]) -> int:
    """Return the exit status for several inputs."""
    seen = set(codes)
    return next((code for code in PRECEDENCE if code in seen), 0)


def emit_json(value: Any) -> None:
    """Print one JSON object on one line of stdout, what drives a terminal written as an escape.

    A byte of a path or an argument that is no UTF-8 becomes U+FFFD.

    Raises:
        Defect: ``E_OUTPUT``.
    """
    say(_UNFIT.sub(_escape, json.dumps(value, ensure_ascii=False, separators=(", ", ": "))))


def emit_json_text(text: str) -> None:
    """Print JSON text that is written already, on one line, as :func:`emit_json` does.

    Raises:
        Defect: ``E_OUTPUT``.
    """
    say(_UNFIT.sub(_escape, text))


def emit_json_list(name: str, items: Iterable[Any]) -> None:
    """Print the object ``{name: [items…]}`` as :func:`emit_json` does, without holding all of it at once.

    Raises:
        Defect: ``E_OUTPUT``.
    """
    say(f"{{{json.dumps(name)}: [", end="")
    waiting: list[str] = []
    before = ""
    for item in items:
        waiting.append(_UNFIT.sub(_escape, json.dumps(item, ensure_ascii=False, separators=(", ", ": "))))
        if len(waiting) >= _AT_ONCE:
            say(before + ", ".join(waiting), end="")
            waiting.clear()
            before = ", "
    say((before if waiting else "") + ", ".join(waiting) + "]}")


_AT_ONCE: Final = 2000


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    return "\ufffd" if "\ud800" <= char <= "\udfff" else f"\\u{ord(char):04x}"


def say(text: str = "", *, end: str = "\n") -> None:
    """Print a line for a person on stdout.

    Raises:
        Defect: ``E_OUTPUT`` when stdout does not take it; a reader that went away is none of these.
    """
    try:
        click.echo(text + end, nl=False)
    except BrokenPipeError:
        raise
    except OSError as fault:
        drop_output(1)
        raise Defect(
            "E_OUTPUT",
            f"the answer could not be written: {fault.strerror or fault}",
            remedy="What was recorded stays recorded; `troth log` shows it.",
        ) from None


def note(text: str) -> None:
    """Print a diagnostic or progress line on stderr; a stderr that does not take it stops nothing."""
    try:
        click.echo(text, err=True)
    except OSError:
        drop_output(2)


def drop_output(number: int) -> None:
    """Lead a standard stream nowhere, so that Python does not try again to write what it still holds."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    if null != number:
        os.close(null)


def tell_error(fault: TrothError, *, as_json: bool) -> None:
    """Print an error: as JSON on stdout, or as one line on stderr."""
    if as_json and fault.code != "E_OUTPUT":
        try:
            emit_json(fault.as_json())
        except Defect as lost:
            note(f"troth: {lost}")
        else:
            return
    note(f"troth: {printable(str(fault), 4000)}")


def coloured(text: str, colour: str) -> str:
    """Return the text in a colour when stdout is a terminal and ``NO_COLOR`` is not set."""
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return click.style(text, fg=colour)
