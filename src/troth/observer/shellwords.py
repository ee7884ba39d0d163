"""Words of shell text as far as the text tells them: literal, or patterns where the shell would expand something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH: Final = 60
"""Nesting followed; what is nested deeper is not understood."""

MAX_CELLS: Final = 200_000
"""Steps that one comparison of a pattern with words may take; a longer one is no match."""

_EXPANSIONS: Final = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion", "process_substitution"}
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word as far as the text tells it: literal parts with ``None`` between them for what an expansion puts there.

    ``least`` and ``several`` say how many words it can become: an unquoted expansion none or many.
    """

    parts: tuple[str | None, ...]
    least: int = 1
    several: bool = False

    @property
    def text(self) -> str | None:
        """Return the word when nothing in it is expanded."""
        if None in self.parts:
            return None
        return "".join(part for part in self.parts if part is not None)

    def fits(self, word: str) -> bool:
        """Tell whether an expansion can have made this word; linear in its length."""
        if None not in self.parts:
            return word == self.text
        first, last = self.parts[0] or "", self.parts[-1] or ""
        if len(word) < len(first) + len(last) or not word.startswith(first) or not word.endswith(last):
            return False
        at, end = len(first), len(word) - len(last)
        for part in self.parts[1:-1]:
            if part is not None:
                found = word.find(part, at, end)
                if found < 0:
                    return False
                at = found + len(part)
        return True


def fit(words: Sequence[Word], argv: Sequence[str]) -> bool:
    """Tell whether expansions can have made these words of the pattern."""
    if not any(word.several for word in words):
        return len(words) == len(argv) and all(word.fits(seen) for word, seen in zip(words, argv, strict=True))
    words, argv = list(words), list(argv)
    while words and not words[-1].several:
        if not argv or not words.pop().fits(argv.pop()):
            return False
    if len(words) * (len(argv) + 1) > MAX_CELLS:
        return False
    reached = {0}
    for word in words:
        after: set[int] = set()
        if word.least == 0:
            after |= reached
        for start in sorted(reached):
            at = start
            while at < len(argv) and at + 1 not in after and word.fits(argv[at]):
                at += 1
                after.add(at)
                if not word.several:
                    break
        reached = after
        if not reached:
            return False
    return len(argv) in reached


def text_of(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def words_of(node: Node, depth: int) -> list[Word]:
    """Return the words of a simple command, its name first."""
    words = []
    for child in node.named_children:
        if child.type == "command_name":
            words += [_word(inner, depth) for inner in child.named_children[:1]]
        elif child.type not in (
            "variable_assignment",
            "file_redirect",
            "heredoc_redirect",
            "herestring_redirect",
            "comment",
        ):
            words.append(_word(child, depth))
    return words


def _word(node: Node, depth: int) -> Word:
    parts, several = _parts(node, depth)
    joined: list[str | None] = []
    for part in parts:
        if part is None:
            if not joined or joined[-1] is not None:
                joined.append(None)
        elif joined and joined[-1] is not None:
            joined[-1] += part
        else:
            joined.append(part)
    bare = joined == [None] and node.type in _EXPANSIONS and several
    return Word(tuple(joined) or ("",), least=0 if bare else 1, several=several)


def _parts(node: Node, depth: int) -> tuple[list[str | None], bool]:
    """Return the parts of a word, None for an expansion, and whether it can become several words."""
    kind, text = node.type, text_of(node)
    if depth > MAX_DEPTH:
        return [None], True
    if kind == "raw_string":
        return [text[1:-1]], False
    if kind == "ansi_c_string":
        return [_ansi(text[2:-1])], False
    if kind in ("string", "translated_string"):
        return _quoted(node), False
    if kind in _EXPANSIONS:
        return [None], kind not in ("process_substitution", "arithmetic_expansion")
    if kind == "brace_expression" or (kind in ("word", "concatenation") and _braces(text)):
        return [None], True
    if kind == "concatenation":
        parts: list[str | None] = []
        several = False
        for child in node.children:
            found, more = _parts(child, depth + 1)
            parts += found
            several = several or more
        return parts, several
    return _unquoted(text)


def _braces(text: str) -> bool:
    opened = text.find("{")
    closed = text.find("}", opened)
    return 0 <= opened < closed and ("," in text[opened:closed] or ".." in text[opened:closed])


def _unquoted(text: str) -> tuple[list[str | None], bool]:
    parts: list[str | None] = []
    several = False
    if text.startswith("~"):
        parts.append(None)
        text = text[1:]
        while text and text[0] != "/":
            text = text[1:]
    held = ""
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            held += "" if text[at + 1] == "\n" else text[at + 1]
            at += 2
            continue
        if char in "*?" or (char == "[" and "]" in text[at:]):
            parts += [held, None]
            held, several = "", True
            if char == "[":
                at = text.index("]", at)
        else:
            held += char
        at += 1
    parts.append(held)
    return [part for part in parts if part != ""] or [""], several


def _quoted(node: Node) -> list[str | None]:
    """Return the parts of a double-quoted word: what is no expansion stands as it is, gaps of the tree included."""
    data = node.text or b""
    start = node.start_byte
    at = data.find(b'"') + 1
    parts: list[str | None] = []
    for child in node.named_children:
        if child.type in _EXPANSIONS:
            parts += [_unescaped(data[at : child.start_byte - start]), None]
            at = child.end_byte - start
    parts.append(_unescaped(data[at:-1]))
    return [part for part in parts if part != ""] or [""]


def _unescaped(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    found = ""
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text) and text[at + 1] in '"\\$`\n':
            found += "" if text[at + 1] == "\n" else text[at + 1]
            at += 2
        else:
            found += text[at]
            at += 1
    return found


_ANSI: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "e": "\x1b"}


def _ansi(text: str) -> str | None:
    """Return the text of ``$'…'`` where its escapes are the common ones, else None."""
    found = ""
    at = 0
    while at < len(text):
        if text[at] != "\\":
            found += text[at]
            at += 1
            continue
        known = _ANSI.get(text[at + 1 : at + 2])
        if known is None:
            return None
        found += known
        at += 2
    return found
