"""The walk of a document along its member lists (§4, the common rules): each broken rule with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from troth.review.formats import instant, is_digest, is_finding_id, is_uri, is_visible
from troth.review.rules import RULES
from troth.review.shapes import (
    ANCHORS,
    RECORDS,
    Anything,
    Check,
    Choice,
    Flag,
    Kind,
    Many,
    Member,
    Record,
    Shape,
    Text,
    Union,
    Whole,
)

Step = str | int
Path = tuple[Step, ...]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SHOWN: Final = 80


class Violation(NamedTuple):
    """A broken rule, the JSON path of what breaks it, and a sentence."""

    rule: str
    path: str
    message: str

    def as_json(self) -> dict[str, str]:
        """Return the form in which validators report."""
        return {"rule": self.rule, "path": self.path, "message": self.message}


def path_text(path: Path) -> str:
    """Return a JSON path: ``$.findings[0].claim``; a name that is no plain word stands quoted in brackets."""
    told = "$"
    for step in path:
        if isinstance(step, int):
            told += f"[{step}]"
        elif _NAME.match(step):
            told += f".{step}"
        else:
            told += f"[{json.dumps(step)}]"
    return told


class Findings:
    """What was found so far, and which parts of the document can no longer be relied on.

    One fault gives one violation: a rule that relates parts is applied only where each of them is sound.
    """

    def __init__(self, *, published: bool = False) -> None:
        self.published = published
        self.violations: list[Violation] = []
        self._bad: set[Path] = set()
        self._around: set[Path] = set()  # what a spoilt part lies in, so that each question costs the same

    def report(self, rule: str, path: Path, message: str, *, spoils: Path | None = None) -> None:
        """Take one violation, and no longer rely on the place or on the part that it ``spoils``.

        A rule that the published schemas do not state is dropped at their level. So is what lies within a part that
        is spoilt already.
        """
        if self.published and not RULES[rule].published:
            return
        if rule != "duplicate-member" and not self.usable(path):
            return
        self.violations.append(Violation(rule, path_text(path), message))
        spoilt = path if spoils is None else spoils
        self._bad.add(spoilt)
        self._around.update(spoilt[:length] for length in range(len(spoilt) + 1))

    def relate(self, rule: str, path: Path, message: str) -> None:
        """Take one violation that leaves every part usable; dropped as in :meth:`report`."""
        if (RULES[rule].published or not self.published) and self.usable(path[:-1]):
            self.violations.append(Violation(rule, path_text(path), message))

    def usable(self, path: Path) -> bool:
        """Tell whether the part itself and what it lies in can be relied on; something within it may be spoilt."""
        return not self._bad or not any(path[:length] in self._bad for length in range(len(path) + 1))

    def sound(self, *paths: Path) -> bool:
        """Tell whether each part, what it lies in and all within it can be relied on."""
        return all(path not in self._around and self.usable(path) for path in paths)


_ARTICLE: Final = {
    Text: "a string", Choice: "a string", Whole: "an integer", Flag: "a boolean", Anything: "an object",
    Many: "a list", Record: "an object", Union: "an object",
}  # fmt: skip

_TYPES: Final[Mapping[type, tuple[type, ...]]] = {
    Text: (str,), Choice: (str,), Flag: (bool,), Anything: (dict,), Many: (list,), Record: (dict,), Union: (dict,),
}  # fmt: skip


def whole(value: Any) -> int | None:
    """Return the integer that a JSON number is, or ``None``: ``2.0`` is 2 as in JSON Schema, ``true`` is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def walk(kind: Kind, value: Any, findings: Findings) -> None:
    """Check the whole document against the member list of its kind."""
    _check(Record(kind), value, (), findings)


def _check(shape: Shape, value: Any, path: Path, findings: Findings) -> None:
    fits = whole(value) is not None if isinstance(shape, Whole) else isinstance(value, _TYPES[type(shape)])
    if not fits:
        findings.report("wrong-type", path, f"{_article(value)} stands where {_ARTICLE[type(shape)]} belongs")
        return
    match shape:
        case Text():
            _check_text(shape, value, path, findings)
        case Choice():
            if value not in shape.of:
                findings.report("enum-value", path, f"{_quoted(value)} is none of {', '.join(shape.of)}")
        case Whole():
            if value < shape.at_least:
                findings.report("minimum", path, f"{value} is less than {shape.at_least}")
        case Many():
            if shape.filled and not value:
                findings.report("empty-list", path, "the list is empty")
            for number, element in enumerate(value):
                _check(shape.of, element, (*path, number), findings)
        case Record():
            _check_members(RECORDS[shape.name], value, path, findings)
        case Union():
            _check_anchor(value, path, findings)
        case Flag() | Anything():
            pass


def _check_text(shape: Text, value: str, path: Path, findings: Findings) -> None:
    if shape.check is not None:
        rule, says, holds = _CHECKS[shape.check]
        if not holds(value):
            findings.report(rule, path, f"{_quoted(value)} is no {says}")
    elif not value:
        findings.report("empty-text", path, "the text is empty")
    elif shape.visible and not is_visible(value):
        findings.report("visible-text", path, "nothing of the text can be seen")


def _check_members(members: Mapping[str, Member], value: dict[str, Any], path: Path, findings: Findings) -> None:
    for name, member in members.items():
        if name in value:
            _check(member.shape, value[name], (*path, name), findings)
        elif member.required:
            findings.report("required-member", (*path, name), f"the member {name!r} is missing")
    for name in value:
        if name not in members:
            findings.relate("unknown-member", (*path, name), f"no member {_quoted(name)} belongs here")


def _check_anchor(value: dict[str, Any], path: Path, findings: Findings) -> None:
    place = (*path, "type")
    if "type" not in value:
        findings.report("anchor-variant", path, "an anchor without a type")
        return
    kind = value["type"]
    if not isinstance(kind, str):
        findings.report("wrong-type", place, f"{_article(kind)} stands where a string belongs", spoils=path)
        return
    members = ANCHORS.get(kind)
    if members is None:
        findings.report("enum-value", place, f"{_quoted(kind)} is none of {', '.join(ANCHORS)}", spoils=path)
        return
    for name, member in members.items():
        if name in value:
            _check(member.shape, value[name], (*path, name), findings)
        elif member.required:
            findings.report("anchor-variant", (*path, name), f"a {kind} anchor needs {name!r}")
    for name in value:
        if name not in members and name != "type":
            findings.relate("anchor-variant", (*path, name), f"a {kind} anchor has no member {_quoted(name)}")


_CHECKS: Final[Mapping[Check, tuple[str, str, Any]]] = {
    "date-time": ("format", "date-time of RFC 3339 with an offset", lambda text: instant(text) is not None),
    "uri": ("format", "absolute URI", is_uri),
    "finding-id": ("id-pattern", "finding id: F and three or more digits", is_finding_id),
    "digest": ("digest-pattern", "digest: sha256: and 64 hexadecimal digits", is_digest),
}


def _article(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return {str: "a string", list: "a list", dict: "an object"}[
        next(t for t in (str, list, dict) if isinstance(value, t))
    ]


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
