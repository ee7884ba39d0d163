"""Sections of a text: under the ATX headings of Markdown, or behind a line of a text that has no such headings (§5)."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

    from troth.review.artifact import Member

_LONE_CR: Final = re.compile("\r")


class Heading(NamedTuple):
    """An ATX heading: its rank from 1, its trimmed text, its line from 0, and the line behind it."""

    rank: int
    text: str
    line: int
    after: int


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])  # headings are blocks; what stands in lines is not parsed
    return parser


@functools.lru_cache(maxsize=64)
def headings(text: str) -> tuple[Heading, ...]:
    """Return the ATX headings of a text as CommonMark has them, in order; none within code or HTML."""
    if "#" not in text:
        return ()
    # A carriage return alone would be a line's end to the parser, and is none here.
    tokens = _parser().parse(_LONE_CR.sub(" ", text))
    return tuple(
        Heading(int(token.tag[1]), tokens[number + 1].content.strip(), token.map[0], token.map[1])
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.markup.startswith("#") and token.map is not None
    )


def body_of(heading: str, member: Member) -> tuple[int, int] | None:
    """Return where the body of the first section of that heading stands in the member's text, or ``None``."""
    if member.text is None:
        return None
    known = headings(member.text)
    if not known:
        for number, line in enumerate(member.lines):
            if line.strip() == heading:
                return member.starts[number + 1], len(member.text)
        return None
    for number, found in enumerate(known):
        if found.text == heading:
            return _body(number, known, member)
    return None


def bodies_of(member: Member) -> list[tuple[int, int]]:
    """Return where the body of each section under a heading stands."""
    known = headings(member.text) if member.text is not None else ()
    return [_body(number, known, member) for number in range(len(known))]


def _body(number: int, known: tuple[Heading, ...], member: Member) -> tuple[int, int]:
    own = known[number]
    until = next((later.line for later in known[number + 1 :] if later.rank <= own.rank), len(member.lines))
    return member.starts[own.after], member.starts[min(until, len(member.lines))]
