"""Paths into YAML and XML, followed for a reader's help: nothing is judged by them (§5 leaves them unchecked)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from troth.core.strictjson import max_depth
from troth.review.artifact import Artifact, Member

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]|\[['\"]([^'\"]*)['\"]\]")
_MAX_TEXT: Final = 200_000
_MAX_CALLS: Final = 400_000
_MAX_POINTER: Final = 1000
_MAX_NESTING: Final = 100
_NO_YAML: Final = object()


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
    if member.text is None or len(member.data) > _MAX_TEXT:
        raise ValueError(member.path)
    if "<!DOCTYPE" in member.text or "<!ENTITY" in member.text:
        raise ValueError(member.path)
    try:
        root = Xml.fromstring(member.data)  # noqa: S314 - no document type, so no entities
        # No loops, no documents; but a predicate within a predicate asks about every element for every element.
        found = _bounded(lambda: elementpath.select(root, pointer, parser=elementpath.XPath1Parser))
    except (Xml.ParseError, elementpath.ElementPathError) as fault:
        raise ValueError(member.path) from fault
    if found is None or found == []:
        raise LookupError(pointer)
    shown = [Xml.tostring(each, encoding="unicode").strip() if isinstance(each, Xml.Element) else each
             for each in (found if isinstance(found, list) else [found])]  # fmt: skip
    return [each if isinstance(each, (bool, int, float)) else str(each) for each in shown]


class _TooMuch(BaseException):
    """More calls than any path needs; nothing on the way takes it for an error of its own."""


def _bounded(work: Callable[[], Any]) -> Any:
    """Return what the work gives, unless it makes more than ``_MAX_CALLS`` calls; then it is a ``ValueError``."""
    left = _MAX_CALLS

    def called(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooMuch

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        return work()
    except _TooMuch:
        raise ValueError("too much to walk through") from None
    finally:
        sys.setprofile(before)


def _fields(pointer: str, member: Member) -> Any:
    from troth.review.anchors import pointed

    # A pass over the brackets costs nothing; the parser takes seconds to give up on a thousand of them.
    if member.text is None or len(member.data) > _MAX_TEXT or max_depth(member.data, _MAX_NESTING) > _MAX_NESTING:
        raise ValueError(member.path)
    value = _yaml(member.text)
    if value is _NO_YAML:
        raise ValueError(member.path)
    if pointer.startswith("/"):
        return _named(pointed(pointer, value))
    way = pointer.removeprefix("$")
    if "".join(step[0] for step in _STEP.finditer(way)) != way:
        raise LookupError(pointer)
    for name, number, quoted in _STEP.findall(way):
        value = _at(value, int(number)) if number else _at(value, name or quoted)
    return _named(value)


def _named(value: Any) -> Any:
    """Return a value whose mappings have texts for keys; YAML has dates, lists and numbers there as well."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _named(held) for key, held in value.items()}
    return [_named(held) for held in value] if isinstance(value, list) else value


@lru_cache(maxsize=8)
def _yaml(text: str) -> Any:
    """Return the value of a text, or ``_NO_YAML``; every anchor of a review may ask for the same member."""
    from ruamel.yaml import YAML
    from ruamel.yaml.composer import Composer
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent

    class NoAlias(Composer):
        """Aliases can stand for more than memory holds once they are written out."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.parser.check_event(AliasEvent):
                raise YAMLError("an alias")
            return super().compose_node(parent, index)

    reader = YAML(typ="safe", pure=True)
    reader.Composer = NoAlias
    try:
        return reader.load(text)
    except (YAMLError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return _NO_YAML


def _at(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return value[step]
    if isinstance(value, list) and isinstance(step, int):
        return value[step]
    raise LookupError(step)


_FOLLOW: Final = {"xpath": _xpath, "yaml_path": _fields, "field_path": _fields}
