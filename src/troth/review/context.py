"""What an anchor points at, with the lines around it, for a person who looks (§4 [D8])."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from troth.review.anchors import Fault, Span, resolve
from troth.review.artifact import Artifact

AROUND: Final = 2
"""Lines shown before and after."""
MOST_LINES: Final = 30
MOST_PLACES: Final = 3


class Line(NamedTuple):
    """A line of a member: its number from 1, its text, whether the anchor points at it."""

    number: int
    text: str
    anchored: bool


class Passage(NamedTuple):
    """Lines of one member around one place; ``left_out`` lines in the middle of a long place are not shown."""

    path: str
    lines: tuple[Line, ...]
    left_out: int = 0


class Shown(NamedTuple):
    """What can be shown of an anchor: passages, perhaps a value, what is broken, what was not checked."""

    state: str
    """``resolved``, ``unresolved`` or ``unchecked``."""
    passages: tuple[Passage, ...]
    places: int
    value: str | None
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the form of the command's answer."""
        return {
            "state": self.state,
            "places": self.places,
            "passages": [
                {
                    "path": passage.path,
                    "lines": [line._asdict() for line in passage.lines],
                    "left_out": passage.left_out,
                }
                for passage in self.passages
            ],
            "value": self.value,
            "violations": [{"rule": fault.rule, "message": fault.message} for fault in self.faults],
            "notes": list(self.notes),
        }


def shown(anchor: dict[str, Any], artifact: Artifact) -> Shown:
    """Resolve a valid anchor and return what it points at, in context."""
    found = resolve(anchor, artifact)
    notes = [message for _, message in found.unchecked]
    spans = [span for span in found.spans if span.end > span.start]
    value = None
    if anchor["type"] == "structured_path":
        value, more = _value(anchor, found.value, found.spans, artifact)
        notes += more
    state = "unresolved" if found.faults else "resolved" if found.spans else "unchecked"
    passages = tuple(passage(span, artifact) for span in spans[:MOST_PLACES])
    return Shown(state, passages, len(found.spans), value, found.faults, tuple(notes))


def _value(
    anchor: dict[str, Any], value: Any, spans: tuple[Span, ...], artifact: Artifact
) -> tuple[str | None, list[str]]:
    if anchor.get("format", "json_pointer") == "json_pointer":
        return (_told(spans[0].path, value), []) if spans else (None, [])
    from troth.review.paths import followed

    found = followed(anchor, artifact)
    if found is None:
        return None, ["followed as a help, it leads nowhere"]
    return _told(*found), ["followed as a help"]


def _told(path: str, value: Any) -> str:
    text = f"{path}: {json.dumps(value, ensure_ascii=False, default=str)}"
    return text.encode("utf-8", "backslashreplace").decode()  # half of a pair is no text


def passage(span: Span, artifact: Artifact) -> Passage:
    """Return the lines of a place and those around it; of a long one the first and the last."""
    member = artifact.members[span.path]
    first = _line_at(span.start, member.starts)
    last = _line_at(span.end - 1, member.starts)
    numbers = list(range(max(0, first - AROUND), min(len(member.lines), last + AROUND + 1)))
    left_out = max(0, len(numbers) - MOST_LINES)
    if left_out:
        numbers = [*numbers[: MOST_LINES // 2], *numbers[-(MOST_LINES // 2) :]]
    lines = tuple(Line(number + 1, member.lines[number], first <= number <= last) for number in numbers)
    return Passage(span.path, lines, left_out)


def _line_at(offset: int, starts: tuple[int, ...]) -> int:
    import bisect

    return max(0, min(bisect.bisect_right(starts, offset) - 1, len(starts) - 2))
