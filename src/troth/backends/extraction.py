"""The JSON document in what a reviewer said, or a failure (Impasse §9, Extraction)."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from troth.backends.protocol import MOST_MESSAGE, Failure
from troth.core.strictjson import JsonFault, Limits, loads
from troth.core.words import printable
from troth.review.reader import MAX_DEPTH

Wanted = Literal["response", "rebuttal"]

_LIMITS: Final = Limits(max_bytes=MOST_MESSAGE, max_depth=MAX_DEPTH, refuse_overflow=True)

_FENCE: Final = re.compile(rb"(`{3,}|~{3,})[^`]*")
# Strings, to step over them, and braces; possessive, so that no text makes it back-track.
_BRACES: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[{}]', re.DOTALL)

_SHAPES: Final[dict[Wanted, tuple[frozenset[str], frozenset[str], str]]] = {
    # what is wanted: (names of which one is there, names of which none is, what it is called)
    "response": (
        frozenset({"findings", "assessment"}), frozenset({"items", "reconciliation_id"}), "a reviewer's response",
    ),
    "rebuttal": (
        frozenset({"decision"}), frozenset({"items", "reconciliation_id", "findings"}), "a reviewer's reply",
    ),
}  # fmt: skip


def extract(message: bytes, wanted: Wanted = "response") -> dict[str, Any] | Failure:
    """Return the object that a final message holds, or ``invalid_response``.

    The message is trimmed and one code fence around it taken off; if the rest is no JSON, the text from its first
    brace to the balanced partner is tried.

    Args:
        message: the final message as the backend gave it.
        wanted: a response (with ``findings`` or an ``assessment``; a reconciliation is none [D35]), or the reply of
            a rebuttal.
    """
    if len(message) > MOST_MESSAGE:
        return invalid(f"the answer has {len(message)} bytes; at most {MOST_MESSAGE} are taken", oversized=True)
    text = _unfenced(message.strip())
    if not text:
        return invalid("the answer is empty")
    try:
        value = loads(text, _LIMITS)
    except JsonFault as fault:
        part = balanced(text)
        if part is None:
            return invalid(f"the answer holds no JSON object: {fault.message}")
        try:
            value = loads(part, _LIMITS)
        except JsonFault as other:
            return invalid(f"the JSON in the answer cannot be read: {printable(other.message, 300)}")
    some, none, called = _SHAPES[wanted]
    if not isinstance(value, dict) or not some & set(value) or none & set(value):
        return invalid(f"the answer is JSON, but not {called}")
    return value


def balanced(text: bytes) -> bytes | None:
    """Return the text from its first brace to the balanced partner, braces in strings not counted."""
    start = text.find(b"{")
    if start < 0:
        return None
    depth = 0
    for match in _BRACES.finditer(text, start):
        if match[0] == b"{":
            depth += 1
        elif match[0] == b"}":
            depth -= 1
            if depth == 0:
                return text[start : match.end()]
    return None


def _unfenced(text: bytes) -> bytes:
    head, _, rest = text.partition(b"\n")
    fence = _FENCE.fullmatch(head)
    if fence is None or not rest.endswith(fence[1]):
        return text
    return rest.removesuffix(fence[1]).strip()


def invalid(message: str, *, oversized: bool = False) -> Failure:
    """Return the failure of an answer that is no answer; size excess is never asked for again (§6)."""
    return Failure("invalid_response", message, retryable=True, oversized=oversized)
