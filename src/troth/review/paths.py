"""Paths into YAML and XML, followed for a reader's help: nothing is judged by them (§5 leaves them unchecked)."""

from __future__ import annotations

import re
from typing import Any, Final

from troth.review.artifact import Artifact, Member

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]|\[['\"]([^'\"]*)['\"]\]")
_MAX_YAML: Final = 200_000
_MAX_POINTER: Final = 1000


def followed(anchor: dict[str, Any], artifact: Artifact) -> tuple[str, Any] | None:
    """Return the member and the value that a path of another format than JSON Pointer leads to, or ``None``.

    ``xpath`` is followed in members that are XML without a document type, ``yaml_path`` and ``field_path`` (names with
    dots between them, numbers in brackets; or as a JSON Pointer) in members that are YAML or JSON.
    """
    if len(anchor["pointer"]) > _MAX_POINTER:
        return None
    for member in artifact.members.values():
        try:
            found = _FOLLOW[anchor["format"]](anchor["pointer"], member)
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
            continue
        return member.path, found
    return None


def _xpath(pointer: str, member: Member) -> Any:
    from xml.etree import ElementTree as Xml

    import elementpath

    # Entities are declared in a document type: without one, none can be expanded into something large.
    if member.text is None or "<!DOCTYPE" in member.text or "<!ENTITY" in member.text:
        raise ValueError(member.path)
    try:
        root = Xml.fromstring(member.data)  # noqa: S314 - no document type, so no entities
        found = elementpath.select(root, pointer, parser=elementpath.XPath1Parser)  # no loops, no documents
    except (Xml.ParseError, elementpath.ElementPathError) as fault:
        raise ValueError(member.path) from fault
    if found is None or found == []:
        raise LookupError(pointer)
    shown = [Xml.tostring(each, encoding="unicode").strip() if isinstance(each, Xml.Element) else each
             for each in (found if isinstance(found, list) else [found])]  # fmt: skip
    return [each if isinstance(each, (bool, int, float)) else str(each) for each in shown]


def _fields(pointer: str, member: Member) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    from troth.review.anchors import pointed

    if member.text is None or len(member.data) > _MAX_YAML or re.search(r"(?m)(?:^|[\s\[{,])[&*]\w", member.text):
        raise ValueError(member.path)  # anchors and aliases of YAML can stand for more than memory holds
    try:
        value = YAML(typ="safe", pure=True).load(member.text)
    except YAMLError as fault:
        raise ValueError(member.path) from fault
    if pointer.startswith("/"):
        return pointed(pointer, value)
    way = pointer.removeprefix("$")
    if "".join(step[0] for step in _STEP.finditer(way)) != way:
        raise LookupError(pointer)
    for name, number, quoted in _STEP.findall(way):
        value = _at(value, int(number)) if number else _at(value, name or quoted)
    return value


def _at(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return value[step]
    if isinstance(value, list) and isinstance(step, int):
        return value[step]
    raise LookupError(step)


_FOLLOW: Final = {"xpath": _xpath, "yaml_path": _fields, "field_path": _fields}
