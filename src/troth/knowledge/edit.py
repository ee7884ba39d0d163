"""Writing a concept, and changing one field of it while every other byte stays (ledger spec §13)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from troth.core.errors import Place, Refused
from troth.knowledge.bundle import read_file
from troth.knowledge.frontmatter import compose, decoded, read_yaml, split
from troth.knowledge.writing import refused, replace_file, write_new
from troth.knowledge.yamlout import quoted

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?: [A-Za-z0-9_-]+)*")
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_BARE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def scalar(text: str) -> str:
    """Return a text as YAML: bare where that can be nothing else, quoted otherwise."""
    return text if _PLAIN.fullmatch(text) and text.casefold() not in _WORDS else quoted(text)


def new_concept(kind: str, title: str | None, tags: list[str]) -> bytes:
    """Return the bytes of a new concept, with the customary headings."""
    lines = [f"type: {scalar(kind)}"]
    if title is not None:
        lines.append(f"title: {scalar(title)}")
    if tags:
        lines.append(f"tags: [{', '.join(map(scalar, tags))}]")
    heading = " ".join((title or kind).split())
    front = "".join(f"{line}\n" for line in lines)
    return f"---\n{front}---\n\n# {heading}\n\n## Schema\n\n## Examples\n\n## Citations\n".encode()


def write_concept(path: Path, data: bytes) -> None:
    """Write a new concept, its folders made.

    Raises:
        Refused: ``E_OKF_EXISTS``, ``E_OKF_WRITE``.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise refused(fault, path) from None
    write_new(path, data)


def with_field(data: bytes, name: str, value: str) -> bytes:
    """Return a file with one field at the top of its frontmatter set to a text, every other byte as it was.

    A file without frontmatter gets one.

    Raises:
        Refused: ``E_OKF_EDIT`` when the frontmatter cannot be read, or the field holds more than one value.
    """
    if _BARE_NAME.fullmatch(name) is None:
        raise _cannot("a name of a field is a word: letters, digits, _ and -")
    parts = split(data)
    if parts.yaml is None:
        return f"---\n{name}: {scalar(value)}\n---\n".encode() + data
    before = read_yaml(parts.yaml)
    text, is_utf8 = decoded(parts.yaml)
    if before.problem is not None or not is_utf8:
        raise _cannot(f"the frontmatter cannot be read: {before.problem or 'not UTF-8'}")
    edited = _edited(text, name, value)
    changed = edited.encode("utf-8")
    result = parts.opening + changed + parts.closing + parts.body
    # Whatever the text looked like: it must now say the new value, the rest as before, and end where it ended.
    after = read_yaml(changed)
    again = split(result)
    if after.problem is not None or after.values != {**before.values, name: value} or again.body != parts.body:
        raise _cannot("the field cannot be changed alone")
    return result


def _edited(text: str, name: str, value: str) -> str:
    ending = "\r\n" if "\r\n" in text else "\n"
    root: Any = compose(text)
    if root is not None and root.id == "mapping":
        for name_node, value_node in root.value:
            if name_node.id == "scalar" and name_node.value == name:
                if value_node.id != "scalar" or value_node.style in ("|", ">"):
                    raise _cannot("the field holds more than one line or value")
                if value_node.start_mark.index < name_node.end_mark.index:
                    raise _cannot("the field is an alias of another one")
                start, end = value_node.start_mark.index, value_node.end_mark.index
                gap = " " if text[start - 1 : start] == ":" else ""
                return text[:start] + gap + scalar(value) + text[end:]
        if root.flow_style:
            raise _cannot("the frontmatter is written in one line")
    start = "" if not text or text.endswith("\n") else ending
    return f"{text}{start}{name}: {scalar(value)}{ending}"


def set_field(path: Path, name: str, value: str) -> bool:
    """Set one field of a concept's file; return whether anything changed.

    Raises:
        Refused: ``E_OKF_EDIT``, ``E_OKF_UNREADABLE``, ``E_OKF_WRITE``.
    """
    data = read_file(path)
    if data is None:
        raise _cannot("the file is too large for a concept")
    try:
        changed = with_field(data, name, value)
    except Refused as fault:
        raise Refused(fault.code, fault.message, place=Place(file=str(path), path=name), remedy=fault.remedy) from None
    if changed != data:
        replace_file(path, changed)
    return changed != data


def _cannot(message: str) -> Refused:
    return Refused("E_OKF_EDIT", message, remedy="Change the file by hand.")
