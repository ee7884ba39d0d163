"""Strict YAML in: one YAML 1.2 mapping as a tree whose every node knows its line and its path (ledger spec §11 [D36]).

Refused: repeated names, anchors and aliases, tags other than those of YAML's own core schema, merge keys, names that
are not text, several documents, another version of YAML, and whatever goes beyond the limits. Nothing is constructed
but text, numbers, booleans, null, lists and mappings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from troth.core.words import printable

MAX_BYTES: Final = 1 << 16
"""Longest text read, in bytes: rules written by people, never data."""

MAX_DEPTH: Final = 12
"""Deepest nesting of lists and mappings; the deepest member of a genesis key stands at 6."""

MAX_FINDINGS: Final = 100
"""Where a text is wrong everywhere, no more than this is told."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DIGITS: Final = 40
_CORE: Final = "tag:yaml.org,2002:"

# The core schema of YAML 1.2 (§10.3.2): what a plain scalar is.
_NULL: Final = re.compile(r"(?:~|null|Null|NULL)?")
_BOOL: Final = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL: Final = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, or worth knowing, at a place of the text: physical line (from 1), JSON path, what, and what
    to do."""

    line: int
    path: str
    message: str
    remedy: str

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {"line": self.line, "path": self.path, "message": self.message, "remedy": self.remedy}


@dataclass(slots=True)
class Node:
    """One value: ``str``, ``int``, ``float``, ``bool``, ``None``, a list of nodes or a mapping of names to nodes.

    ``bad`` tells that a finding about the node itself stands already, so that no second one is due.
    """

    line: int
    path: str
    value: Any
    bad: bool = False
    names: dict[str, int] = field(default_factory=dict)
    """Of a mapping: the line of each name."""


class _Stop(Exception):
    """The text cannot be read any further."""


def read_tree(data: bytes) -> tuple[Node | None, list[Finding]]:
    """Return the tree and everything wrong with the text as YAML; without a tree nothing more can be said.

    A pure function of the bytes.
    """
    reader = _Reader()
    try:
        return reader.read(data), reader.findings
    except _Stop:
        return None, reader.findings


def member_path(path: str, name: str) -> str:
    """Return the JSON path of a member."""
    shown = printable(name, 60)
    return f"{path}.{shown}" if _NAME.fullmatch(shown) else f"{path}[{json.dumps(shown, ensure_ascii=False)}]"


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come; ``name`` is the one that waits for its value."""

    node: Node
    name: str | None = None
    name_line: int = 0
    repeated: bool = False


class _Reader:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._open: list[_Open] = []
        self._root: Node | None = None

    def read(self, data: bytes) -> Node:
        if len(data) > MAX_BYTES:
            raise self._stop(1, "$", f"{len(data)} bytes, more than the limit of {MAX_BYTES}", "Shorten it.")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as fault:
            line = data.count(b"\n", 0, fault.start) + 1
            raise self._stop(line, "$", f"byte {fault.start} is not UTF-8", "Save the file as UTF-8.") from None
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        try:
            for event in _events(text):
                self._take(event)
        except MarkedYAMLError as fault:
            mark = fault.problem_mark or fault.context_mark
            line = mark.line + 1 if mark is not None else 1
            problem = " ".join((fault.problem or fault.context or "not YAML").split())
            remedy = _STAR if "alias" in (fault.context or "") else _SYNTAX
            raise self._stop(line, self._here(), f"not YAML: {printable(problem, 200)}", remedy) from None
        except (YAMLError, ValueError, TypeError, AttributeError, IndexError, KeyError, RecursionError) as fault:
            # The library lets some faults of hostile text through as they are.
            problem = " ".join(str(fault).split()) or type(fault).__name__
            position = getattr(fault, "position", 0)  # of a character that may not stand in YAML
            line = text.count("\n", 0, position) + 1
            raise self._stop(line, self._here(), f"not YAML: {printable(problem, 200)}", _SYNTAX) from None
        if self._root is None:
            raise self._stop(1, "$", "nothing stands in it", "Write a mapping; `troth genesis init` shows one.")
        return self._root

    def _take(self, event: Any) -> None:
        from ruamel.yaml import events

        line = event.start_mark.line + 1
        match event:
            case events.DocumentStartEvent():
                if self._root is not None:
                    raise self._stop(line, "$", "a second document begins here", "Keep one document in the file.")
                if event.version is not None and tuple(event.version) != (1, 2):
                    raise self._stop(line, "$", "another version of YAML than 1.2", "Remove the %YAML line.")
                if event.tags:
                    raise self._stop(line, "$", "a %TAG directive", "Remove it; tags of your own are not read.")
            case events.AliasEvent():
                where = self._here()
                self._told(
                    line,
                    where,
                    f"the alias *{printable(str(event.anchor), 40)}",
                    f"Write the value out. {_STAR}",
                )
                self._put(Node(line, where, None, bad=True))
            case events.ScalarEvent():
                self._scalar(event, line)
            case events.MappingStartEvent() | events.SequenceStartEvent():
                self._begin(event, line)
            case events.MappingEndEvent() | events.SequenceEndEvent():
                self._put(self._open.pop().node)

    def _begin(self, event: Any, line: int) -> None:
        from ruamel.yaml import events

        where = self._here()
        if len(self._open) >= MAX_DEPTH:
            raise self._stop(line, where, f"nesting deeper than {MAX_DEPTH}", "Flatten it.")
        is_map = isinstance(event, events.MappingStartEvent)
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.node.value, dict) and top.name is None:
            raise self._stop(line, where, "a name that is a list or a mapping", "Names are text.")
        node = Node(line, where, {} if is_map else [])
        node.bad = self._odd(event, line, where, ("map",) if is_map else ("seq",))
        self._open.append(_Open(node))

    def _scalar(self, event: Any, line: int) -> None:
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.node.value, dict) and top.name is None:
            self._name(top, event, line)
            return
        where = self._here()
        if top is not None and top.name is not None and not event.value and event.style is None:
            line = top.name_line  # a value left out is told where its name stands
        node = Node(line, where, event.value)
        node.bad = self._odd(event, line, where, ("str", "int", "float", "bool", "null"))
        if not node.bad:
            self._resolve(node, event)
        self._put(node)

    def _name(self, top: _Open, event: Any, line: int) -> None:
        """Take the name of a member; a wrong one is told, and its value is read and left out."""
        name, path = event.value, top.node.path
        where = member_path(path, name)
        top.name, top.name_line, top.repeated = name, line, True
        if self._odd(event, line, where, ("str",)) or self._unpaired(name, line, where):
            return
        if event.tag is None and event.style is None:
            if name == "<<":
                self._told(line, where, "a merge key", "Write the members out.")
                return
            if not isinstance(_plain(name), str):
                self._told(line, where, "a name that is no text", "Put the name in quotes.")
                return
        if name in top.node.names:
            first = top.node.names[name]
            self._told(line, where, f"the name stands on line {first} already", "Keep one of them.")
            return
        top.node.names[name] = line
        top.repeated = False

    def _resolve(self, node: Node, event: Any) -> None:
        tag = event.tag
        if self._unpaired(node.value, node.line, node.path):
            node.bad = True
        elif tag is None:
            if event.style is None:
                node.value = _plain(node.value)
        elif tag != f"{_CORE}str":
            value = _plain(node.value)
            wanted: Any = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}[tag[len(_CORE) :]]
            if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
                self._told(node.line, node.path, f"the value is not what its tag {tag} says", "Remove the tag.")
                node.bad = True
            node.value = value
        if isinstance(node.value, _TooLong):
            self._told(node.line, node.path, f"a number of more than {_DIGITS} digits", "Write a smaller one.")
            node.value, node.bad = None, True

    def _odd(self, event: Any, line: int, where: str, core: tuple[str, ...]) -> bool:
        """Tell anchors and foreign tags; return whether there was one."""
        odd = False
        if event.anchor is not None:
            self._told(
                line,
                where,
                f"the anchor &{printable(str(event.anchor), 40)}",
                "Remove it; nothing may be written once and meant twice.",
            )
            odd = True
        if event.tag is not None and event.tag not in {f"{_CORE}{name}" for name in core}:
            self._told(
                line, where, f"the tag {printable(str(event.tag), 60)}", "Remove it; only plain values are read."
            )
            odd = True
        return odd

    def _unpaired(self, text: str, line: int, where: str) -> bool:
        if not any("\ud800" <= char <= "\udfff" for char in text):
            return False
        self._told(line, where, "an unpaired surrogate", "Write the character itself.")
        return True

    def _put(self, node: Node) -> None:
        """Give a finished value its place."""
        if not self._open:
            self._root = node
            return
        top = self._open[-1]
        if isinstance(top.node.value, list):
            top.node.value.append(node)
            return
        if top.name is None:  # an alias in the place of a name: told already
            top.name, top.repeated = "", True
            return
        if not top.repeated:
            top.node.value[top.name] = node
        top.name = None

    def _here(self) -> str:
        """Return the path of the value that begins now."""
        if not self._open:
            return "$"
        top = self._open[-1]
        if isinstance(top.node.value, list):
            return f"{top.node.path}[{len(top.node.value)}]"
        return top.node.path if top.name is None else member_path(top.node.path, top.name)

    def _told(self, line: int, path: str, message: str, remedy: str) -> None:
        self.findings.append(Finding(line, path, message, remedy))
        if len(self.findings) >= MAX_FINDINGS:
            raise _Stop

    def _stop(self, line: int, path: str, message: str, remedy: str) -> _Stop:
        self.findings.append(Finding(line, path, message, remedy))
        return _Stop()


_STAR: Final = 'A wildcard stands in quotes: "*".'
_SYNTAX: Final = "Mend the line: indent with spaces, and put text that YAML would read otherwise in quotes."


class _TooLong(str):
    """The digits of a number that nobody means."""

    __slots__ = ()


def _events(text: str) -> Iterator[Any]:
    """Yield the events of the library's parser."""
    import warnings

    # Imported here: a ledger without a key should not pay for it.
    from ruamel.yaml import YAML

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from YAML(typ="safe", pure=True).parse(text)


def _plain(text: str) -> Any:
    """Return what a plain scalar is in the core schema of YAML 1.2."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if text.lower() in _SPECIAL:
        return float(_SPECIAL[text.lower()])
    if _INT.fullmatch(text) or _FLOAT.fullmatch(text):
        if len(text) > _DIGITS:
            return _TooLong(text)
        if not _INT.fullmatch(text):
            return float(text)
        return int(text, {"o": 8, "x": 16}.get(text[1:2], 10))
    return text
