"""Changing a JSON file by cutting and pasting text, so that every other byte stays as a person wrote it.

What is put in can be told from what stood there: text put into a container that was empty touches its bracket, while
a container made here begins with a line feed. So taking out what was put in gives the very bytes of before, with no
memory of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # its stubs leave it out
from typing import Any, Final

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


@dataclass(slots=True)
class Node:
    """A value of JSON text with where it stands: characters from ``start`` up to ``end``.

    ``items`` holds (key, where the item begins, value); a member of an object begins with its key, an element of an
    array has none.
    """

    start: int
    end: int
    kind: str
    value: Any = None
    items: list[tuple[str | None, int, Node]] = field(default_factory=list)

    def member(self, name: str) -> Node | None:
        """Return the value of a member of an object."""
        return next((value for key, _, value in self.items if key == name), None)


def parse_spans(text: str) -> Node:
    """Return the value that the text is, each part with its place.

    Raises:
        ValueError: no JSON, or a repeated member name; the caller has bounded its size and depth.
    """
    node, end = _value(text, _skip(text, 0))
    if _skip(text, end) != len(text):
        raise ValueError("text behind the value")
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _value(text: str, at: int) -> tuple[Node, int]:
    head = text[at : at + 1]
    if head not in ("{", "["):
        value, end = _DECODER.raw_decode(text, at)
        return Node(at, end, "scalar", value), end
    node = Node(at, at, "object" if head == "{" else "array")
    close = "}" if head == "{" else "]"
    here = _skip(text, at + 1)
    while text[here : here + 1] != close:
        if node.items:
            if text[here : here + 1] != ",":
                raise ValueError(f"a comma is missing at character {here}")
            here = _skip(text, here + 1)
        began, key = here, None
        if head == "{":
            if text[here : here + 1] != '"':
                raise ValueError(f"a member name is missing at character {here}")
            key, here = scanstring(text, here + 1, True)
            here = _skip(text, here)
            if text[here : here + 1] != ":" or node.member(key) is not None:
                raise ValueError(f"a colon is missing, or a name stands twice, at character {here}")
            here = _skip(text, here + 1)
        value, here = _value(text, here)
        node.items.append((key, began, value))
        here = _skip(text, here)
    node.end = here + 1
    return node, node.end


def appended(text: str, container: Node, item: str, indent: str) -> str:
    """Return the text with an item at the end of a container; ``indent`` begins its line where there are others."""
    if container.items:
        at = container.items[-1][2].end
        return f"{text[:at]},\n{indent}{item}{text[at:]}"
    at = container.start + 1
    return f"{text[:at]}{item}{text[at:]}"


def without(text: str, ours: Callable[[Any], bool], path: tuple[str, ...]) -> str:
    """Return the text without the elements that are ours, in every array that is a member of the object at a path.

    A container that was made for them goes with the last of them.
    """
    while True:
        cut = _first_cut(text, ours, path)
        if cut is None:
            return text
        text = text[: cut[0]] + text[cut[1] :]


def _first_cut(text: str, ours: Callable[[Any], bool], path: tuple[str, ...]) -> tuple[int, int] | None:
    chain = [parse_spans(text)]
    for name in path:
        inner = chain[-1].member(name) if chain[-1].kind == "object" else None
        if inner is None:
            return None
        chain.append(inner)
    if chain[-1].kind != "object":
        return None
    for _, _, array in chain[-1].items:
        if array.kind != "array":
            continue
        for number, (_, _, element) in enumerate(array.items):
            if ours(json.loads(text[element.start : element.end])):
                return _cut(text, [*chain, array], number)
    return None


def _cut(text: str, chain: list[Node], number: int) -> tuple[int, int]:
    """Return what to cut out for one item of the last container, going up while a container was made for it."""
    container = chain[-1]
    if len(container.items) > 1:
        if number > 0:
            return container.items[number - 1][2].end, container.items[number][2].end
        return container.items[0][1], container.items[1][1]
    began, item = container.items[0][1], container.items[0][2]
    made_here = text[container.start + 1 : began].startswith("\n")
    if not made_here or len(chain) == 1:
        return began, item.end
    outer = chain[-2]
    place = next(index for index, (_, _, value) in enumerate(outer.items) if value.start == container.start)
    return _cut(text, chain[:-1], place)
