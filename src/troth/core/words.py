"""Text from outside made harmless, and argument vectors as a person would write them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final


def printable(text: str, limit: int = 2000) -> str:
    """Return text from outside with control characters shown as escapes, so that it cannot drive a terminal.

    Args:
        text: whatever an agent, a file or a person wrote.
        limit: longest result in characters before escaping; longer text is cut with an ellipsis.
    """
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode("ascii")
        for char in text
    )


_SPANS: Final = ((86_400, "d"), (3600, "h"), (60, "min"))


def lasting(seconds: float) -> str:
    """Return a span of time in its largest unit: ``3.5 d``, ``2.0 h``, ``1.3 min``, ``12 s``."""
    for size, name in _SPANS:
        if seconds >= size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.3g} s"


def command_line(argv: Sequence[str], limit: int = 300) -> str:
    """Return an argument vector as a shell would take it, made harmless and cut."""
    return printable(shlex.join(argv), limit)


_CHARTED = frozenset("_-:. /,()")


def charted(text: str, limit: int = 80) -> str:
    """Return text for a label of a Mermaid chart: letters and digits of any script and what means nothing there.

    Everything else becomes ``?``, so that no quote, bracket, entity, markup or address of others gets into the chart.
    """
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    kept = "".join(char if char.isalnum() or char in _CHARTED or char == "…" else "?" for char in text)
    return kept.replace("//", "/ /")
