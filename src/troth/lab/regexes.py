"""``claim_regex`` by RE2: time linear in the text, memory bounded, whatever the pattern (§4).

A pattern is the offer's and a text the agent's, so neither is trusted. RE2 has neither look-around nor back-references,
which are what makes other engines go back; a pattern that uses them is none here.
"""

from __future__ import annotations

from typing import Final

MAX_PATTERN_BYTES: Final = 4096
"""Longest pattern, in UTF-8."""

MAX_PROGRAM_BYTES: Final = 1 << 20
"""Memory for a compiled pattern and its search; a pattern that needs more is none."""

MAX_TEXT_BYTES: Final = 1 << 20
"""Longest claim searched, in UTF-8."""

MAX_SEARCHED_BYTES: Final = 1 << 28
"""Text searched for one verdict, a claim counting anew for each pattern."""

ABSENT: Final = "no linear-time engine for claim_regex is installed (google-re2)"


def search(pattern: str, text: str) -> bool:
    """Tell whether the pattern is found anywhere in the text.

    Raises:
        ValueError: it cannot be told, with the reason: no engine, no pattern, or one of the two is too long.
    """
    try:
        import re2  # type: ignore[import-untyped]  # the package has no types
    except ImportError:
        raise ValueError(ABSENT) from None
    pattern_bytes, text_bytes = pattern.encode(), text.encode()
    if len(pattern_bytes) > MAX_PATTERN_BYTES:
        raise ValueError(f"a pattern of more than {MAX_PATTERN_BYTES} bytes")
    if len(text_bytes) > MAX_TEXT_BYTES:
        raise ValueError(f"a claim of more than {MAX_TEXT_BYTES} bytes")
    options = re2.Options()
    options.max_mem = MAX_PROGRAM_BYTES
    options.never_capture = True
    options.log_errors = False
    try:
        compiled = re2.compile(pattern_bytes, options)
    except re2.error as fault:
        said = fault.args[0] if fault.args else b""
        told = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise ValueError(f"no pattern: {told}") from None
    return compiled.search(text_bytes) is not None


class Searcher:
    """:func:`search` for one verdict, which ends when very much has been searched."""

    def __init__(self) -> None:
        self._left = MAX_SEARCHED_BYTES

    def __call__(self, pattern: str, text: str) -> bool:
        """Search as :func:`search` does.

        Raises:
            ValueError: as there, or more than :data:`MAX_SEARCHED_BYTES` would be searched.
        """
        self._left -= len(text.encode())
        if self._left < 0:
            raise ValueError(f"more than {MAX_SEARCHED_BYTES} bytes to search for one verdict")
        return search(pattern, text)
