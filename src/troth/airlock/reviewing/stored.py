"""The shapes of what a run keeps of itself: a file that somebody wrote otherwise is refused, never half believed (§11).

Only what was fixed by the runner has a shape here: ``run.json`` and the record of calls. Documents have rules of their
own, events are the machine's, and the free ``extensions`` of a set-up are read with care where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from troth.airlock.shapes import Shape, anything, count, flag, given, many, maybe, members, number, one_of, text
from troth.review.formats import instant
from troth.review.shapes import ARTIFACT_KINDS, FAILURE_CODES


def _time(value: Any) -> bool:
    return isinstance(value, str) and instant(value) is not None


_LIMITS: Final = members(
    rounds=count, deadline=number, bytes=count, tokens=count, wall=number, idle=number
)  # fmt: skip

SETUP: Final[Mapping[str, Shape]] = {
    "review_id": text, "created": _time, "actor": text, "kind": one_of(*ARTIFACT_KINDS),
    "members": many(members(path=text, bytes=count, sha256=text)),
    "revision": members(algorithm=text, value=text),
    "backend": members(
        asked=text, name=text, kind=text, endpoint=text, provider=maybe(text), sandboxed=flag
    ),
    "limits": _LIMITS, "lens": maybe(text), "model": maybe(text), "effort": maybe(text),
    "speed": maybe(text), "root": maybe(text),
    "independence": given(tier=maybe(text), host=maybe(text), notices=many(text)),
    "consent": given(key=text, basis=maybe(text), reason=text),
    "unreviewed": many(text), "extensions": anything,
}  # fmt: skip
"""Members of ``run.json`` beside its schema's version."""

_FAILURE: Final = members(code=one_of(*FAILURE_CODES), message=text, retryable=flag)

SENT: Final = members(
    call=count, purpose=one_of("review", "rebuttal"), about=maybe(text), bytes=count, wall=number, time=_time
)
"""A line of the record of calls before a question leaves."""

ANSWERED: Final = members(
    call=count, time=_time, failure=maybe(_FAILURE), model=maybe(text), model_basis=text, bytes=count,
    tokens=count, seconds=number, attempts=count, request_id=maybe(text),
    raw=many(members(bytes=count, sha256=text)),
)  # fmt: skip
"""A line of the record of calls after what came of it."""

NOTICES: Final = given(notices=many(text))


def is_setup(value: Mapping[str, Any]) -> bool:
    """Tell whether ``run.json``, without its schema's version, has every member and each in its shape."""
    return value.keys() == SETUP.keys() and all(shape(value[name]) for name, shape in SETUP.items())


def is_sent(value: Any) -> bool:
    """Tell whether a line says that a question left."""
    return SENT(value) and value.get("event") == "sent"


def is_answered(value: Any) -> bool:
    """Tell whether a line says what came of a question."""
    return ANSWERED(value) and NOTICES(value) and value.get("event") == "answered"
