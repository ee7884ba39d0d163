"""The shapes of what a run keeps of itself: a file that somebody wrote otherwise is refused, never half believed (§11).

Only what was fixed by the runner has a shape here: ``run.json`` and the record of calls. Documents have rules of their
own, events are the machine's, and the free ``extensions`` of a set-up are read with care where they are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from troth.review.formats import instant
from troth.review.shapes import ARTIFACT_KINDS, FAILURE_CODES

Shape = Callable[[Any], bool]

_MOST: Final = 1 << 53
"""Largest number that is meant, in bytes, tokens or seconds; all of them are exact as floating point."""


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _number(value: Any) -> bool:
    return _count(value) or (isinstance(value, float) and math.isfinite(value) and 0 <= value <= _MOST)


def _time(value: Any) -> bool:
    return isinstance(value, str) and instant(value) is not None


def _one_of(*allowed: str) -> Shape:
    return lambda value: isinstance(value, str) and value in allowed


def _maybe(shape: Shape) -> Shape:
    return lambda value: value is None or shape(value)


def _many(shape: Shape) -> Shape:
    return lambda value: isinstance(value, list) and all(shape(each) for each in value)


def _members(**shapes: Shape) -> Shape:
    """Return the shape of an object that has these members; others may stand beside them."""
    return lambda value: (
        isinstance(value, dict) and all(name in value and shape(value[name]) for name, shape in shapes.items())
    )


def _given(**shapes: Shape) -> Shape:
    """Return the shape of an object that may have these members."""
    return lambda value: (
        isinstance(value, dict) and all(shape(value[name]) for name, shape in shapes.items() if name in value)
    )


_LIMITS: Final = _members(
    rounds=_count, deadline=_number, bytes=_count, tokens=_count, wall=_number, idle=_number
)  # fmt: skip

SETUP: Final[Mapping[str, Shape]] = {
    "review_id": _text, "created": _time, "actor": _text, "kind": _one_of(*ARTIFACT_KINDS),
    "members": _many(_members(path=_text, bytes=_count, sha256=_text)),
    "revision": _members(algorithm=_text, value=_text),
    "backend": _members(
        asked=_text, name=_text, kind=_text, endpoint=_text, provider=_maybe(_text), sandboxed=_flag
    ),
    "limits": _LIMITS, "lens": _maybe(_text), "model": _maybe(_text), "effort": _maybe(_text),
    "speed": _maybe(_text), "root": _maybe(_text),
    "independence": _given(tier=_maybe(_text), host=_maybe(_text), notices=_many(_text)),
    "consent": _given(key=_text, basis=_maybe(_text), reason=_text),
    "unreviewed": _many(_text), "extensions": lambda value: isinstance(value, dict),
}  # fmt: skip
"""Members of ``run.json`` beside its schema's version."""

_FAILURE: Final = _members(code=_one_of(*FAILURE_CODES), message=_text, retryable=_flag)

SENT: Final = _members(
    call=_count, purpose=_one_of("review", "rebuttal"), about=_maybe(_text), bytes=_count, wall=_number, time=_time
)
"""A line of the record of calls before a question leaves."""

ANSWERED: Final = _members(
    call=_count, time=_time, failure=_maybe(_FAILURE), model=_maybe(_text), model_basis=_text, bytes=_count,
    tokens=_count, seconds=_number, attempts=_count, request_id=_maybe(_text),
    raw=_many(_members(bytes=_count, sha256=_text)),
)  # fmt: skip
"""A line of the record of calls after what came of it."""

NOTICES: Final = _given(notices=_many(_text))


def is_setup(value: Mapping[str, Any]) -> bool:
    """Tell whether ``run.json``, without its schema's version, has every member and each in its shape."""
    return value.keys() == SETUP.keys() and all(shape(value[name]) for name, shape in SETUP.items())


def is_sent(value: Any) -> bool:
    """Tell whether a line says that a question left."""
    return SENT(value) and value.get("event") == "sent"


def is_answered(value: Any) -> bool:
    """Tell whether a line says what came of a question."""
    return ANSWERED(value) and NOTICES(value) and value.get("event") == "answered"
