"""Links and sections of a Markdown text, as CommonMark has them (markdown-it-py)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

CITATIONS: Final = "citations"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading: its level from 1, its text, its line in the text from 0, and the line its section ends before."""

    level: int
    title: str
    line: int
    end: int


@dataclass(frozen=True, slots=True)
class Link:
    """A link's destination as written, its line in the text from 0, and whether it stands under Citations."""

    target: str
    line: int
    cited: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """What was found in a text, in order."""

    sections: tuple[Section, ...]
    links: tuple[Link, ...]


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    # Links are read here and never rendered, so each destination is taken as it was written.
    setattr(parser, "validateLink", _any_link)  # noqa: B010 - the library's hook, typed as a method
    setattr(parser, "normalizeLink", str)  # noqa: B010 - the library's hook, typed as a method
    return parser


def _any_link(_: str) -> bool:
    return True


def outline(text: str) -> Outline:
    """Return the sections and links of a text; images are no links."""
    tokens = _parser().parse(text)
    heads: list[tuple[int, str, int]] = []
    links: list[Link] = []
    stack: list[tuple[int, str]] = []
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            level = int(token.tag[1:])
            title = _plain(tokens[at + 1])
            stack = [(above, name) for above, name in stack if above < level]
            stack.append((level, title.strip().rstrip(":").casefold()))
            heads.append((level, title, (token.map or [0])[0]))
        elif token.type == "inline":
            cited = any(name == CITATIONS for _, name in stack)
            line = (token.map or [0])[0]
            for child in token.children or ():
                if child.type in ("softbreak", "hardbreak"):
                    line += 1
                elif child.type == "link_open":
                    links.append(Link(str(child.attrs.get("href", "")), line, cited))
    last = text.count("\n") + (not text.endswith("\n"))
    sections = []
    for at, (level, title, line) in enumerate(heads):
        end = next((below for other, _, below in heads[at + 1 :] if other <= level), last)
        sections.append(Section(level, title, line, end))
    return Outline(tuple(sections), tuple(links))


def _plain(token: Token) -> str:
    children = token.children or ()
    return "".join(
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in children
        if child.type in ("text", "code_inline", "softbreak", "hardbreak", "text_special")
    )
