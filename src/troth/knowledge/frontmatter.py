"""A concept's bytes in two parts, and its YAML as plain values whose names know their lines (ledger spec §13).

The parts joined are the file, byte for byte. YAML is read by ruamel.yaml as nodes and nothing is constructed but
text, numbers, booleans, null, lists and mappings: dates stay as they were written, and aliases are counted as often
as they are used, so that a small file cannot become a large value.
"""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, field
from typing import Any, Final

from troth.core.strictjson import max_depth
from troth.core.words import printable

BOM: Final = b"\xef\xbb\xbf"
MAX_YAML_BYTES: Final = 1 << 18
"""Longest frontmatter that is read, in bytes."""
_MOST_BRACKETS: Final = 300
"""Far more than the nesting that is read. To find that out, the parser takes seconds where they stand side by side."""
MAX_NODES: Final = 20_000
"""Most values in one frontmatter, aliases counted each time."""
MAX_DEPTH: Final = 60
MAX_TEXT: Final = 1 << 20
"""Most characters of text in one frontmatter, aliases counted each time."""
_SAFE_INTEGER: Final = 2**53 - 1

_OPENING: Final = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n")
_CLOSING: Final = re.compile(rb"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Parts:
    """A file: ``opening + yaml + closing + body``. Without frontmatter all is body and the rest ``None`` or empty.

    ``unclosed`` tells that the first line opens frontmatter that nothing closes.
    """

    opening: bytes
    yaml: bytes | None
    closing: bytes
    body: bytes
    unclosed: bool = False

    @property
    def head(self) -> bytes:
        """Return everything before the body."""
        return self.opening + (self.yaml or b"") + self.closing

    @property
    def body_line(self) -> int:
        """Return the physical line, from 1, on which the body begins."""
        return self.head.count(b"\n") + 1


def split(data: bytes) -> Parts:
    """Return the parts of a file; the closing line is the first ``---`` or ``...`` at the start of a line."""
    opened = _OPENING.match(data)
    if opened is None:
        return Parts(b"", None, b"", data)
    closed = _CLOSING.search(data, opened.end())
    if closed is None:
        return Parts(b"", None, b"", data, unclosed=True)
    return Parts(opened[0], data[opened.end() : closed.start()], closed[0], data[closed.end() :])


def decoded(data: bytes) -> tuple[str, bool]:
    """Return the text and whether it was UTF-8; what was not shows as U+FFFD."""
    try:
        return data.decode("utf-8"), True
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), False


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """What the YAML says: plain JSON values, and the physical line of each name at the top and in ``x-mentu``.

    ``problem`` is why it could not be read (``values`` is empty then), with ``problem_line``.
    """

    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problem: str | None = None
    problem_line: int = 1


class _Unreadable(Exception):
    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def read_yaml(data: bytes, first_line: int = 2, limit: int | None = MAX_YAML_BYTES) -> Frontmatter:
    """Return what a frontmatter says; nothing is raised.

    Args:
        data: the bytes between the fences.
        first_line: the physical line they begin on.
        limit: the most bytes that are read, ``None`` for frontmatter of our own making.
    """
    if limit is not None and len(data) > limit:
        return Frontmatter(problem=f"longer than {limit} bytes", problem_line=first_line)
    if limit is not None and max_depth(data, _MOST_BRACKETS) > _MOST_BRACKETS:
        return Frontmatter(problem="nested too deeply", problem_line=first_line)
    try:
        node = compose(decoded(data)[0])
        if node is None:
            return Frontmatter()
        # What we derive holds what was read once, and a few values more.
        bounds = (MAX_NODES, MAX_TEXT) if limit is not None else (2 * MAX_NODES, len(data))
        reader = _Values(*bounds)
        values = reader.value(node, 1)
    except _Unreadable as fault:
        return Frontmatter(problem=fault.message, problem_line=first_line + fault.line)
    except RecursionError:
        return Frontmatter(problem="nested too deeply", problem_line=first_line)
    if not isinstance(values, dict):
        if values is None:
            return Frontmatter()
        return Frontmatter(problem="no mapping of names to values", problem_line=first_line)
    return Frontmatter(values, {path: first_line + line for path, line in reader.lines.items()})


def compose(text: str) -> Any:
    """Return the root node of one YAML document, ``None`` for an empty one.

    Raises:
        _Unreadable: it is no single YAML document.
    """
    # Imported here: a command that reads no bundle should not pay for it.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as fault:
        line = fault.problem_mark.line if fault.problem_mark is not None else 0
        raise _Unreadable(printable(" ".join((fault.problem or "not YAML").split()), 200), line) from None
    except RecursionError:
        raise
    except Exception as fault:
        raise _Unreadable(printable(" ".join(str(fault).split()) or "not YAML", 200), 0) from None


class _Values:
    """Turns nodes into plain values, counting."""

    def __init__(self, nodes: int, text: int) -> None:
        self.lines: dict[str, int] = {}
        self._left = nodes
        self._text = text

    def value(self, node: Any, depth: int, path: str = "") -> Any:
        line = node.start_mark.line
        self._left -= 1
        if self._left < 0:
            raise _Unreadable("too many values, aliases counted each time", line)
        if depth > MAX_DEPTH:
            raise _Unreadable(f"nested deeper than {MAX_DEPTH}", line)
        if node.id == "scalar":
            self._spend(node.value, line)
            return _scalar(node)
        if node.id == "sequence":
            return [self.value(item, depth + 1) for item in node.value]
        found: dict[str, Any] = {}
        for name_node, value_node in node.value:
            if name_node.id != "scalar":
                raise _Unreadable("a name that is no single value", name_node.start_mark.line)
            name = _text(name_node.value)
            self._spend(name, line)
            if name in found:
                raise _Unreadable(f"the name {name!r} stands twice", name_node.start_mark.line)
            below = ""
            if depth == 1 or path.startswith("x-mentu"):
                below = f"{path}.{name}" if path else name
                self.lines[below] = name_node.start_mark.line
            found[name] = self.value(value_node, depth + 1, below)
        return found

    def _spend(self, text: str, line: int) -> None:
        self._text -= len(text)
        if self._text < 0:
            raise _Unreadable("too many characters, aliases counted each time", line)


def _text(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text)


_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_INT: Final = re.compile(r"[-+]?[0-9]{1,20}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?")


def _scalar(node: Any) -> Any:
    """Return a scalar by YAML 1.2's core schema; what no row can hold as a number stays text."""
    text: str = node.value
    if node.style is not None or not str(node.ctag).startswith("tag:yaml.org,2002:"):
        return _text(text)
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        number = int(text)
        return number if abs(number) <= _SAFE_INTEGER else text
    if _FLOAT.fullmatch(text):
        real = float(text)
        return real if math.isfinite(real) else text
    return _text(text)
