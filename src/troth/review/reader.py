"""The strict reader: bytes to a document of a known kind, with what its text breaks (§4)."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault, Limits, has_unpaired_surrogate, loads
from troth.review.shapes import Kind
from troth.review.structure import Findings, Path, Violation, path_text

MAX_BYTES: Final = 1 << 24
"""Largest document that is read, in bytes."""

MAX_DEPTH: Final = 64
_LIMITS: Final = Limits(max_bytes=MAX_BYTES, max_depth=MAX_DEPTH, refuse_overflow=True)

CODES: Final = {
    "E_REVIEW_KIND": "The file is no review document: neither a reviewer's response nor a reconciliation.",
    "E_REVIEW_TOO_LARGE": "The file is larger than a review document may be.",
    "E_REVIEW_UNFIT": "A document that is to be shown or held against is itself not valid.",
    "E_ARTIFACT_MEMBER": "The artifact has no members, two of one name, or a name that is no plain relative path.",
    "E_DECISIONS_UNREADABLE": "The file of the operator's decisions is not one JSON object on each line.",
}
"""Refusals of this package -> what they mean."""


def unfit(violation: Violation) -> Refused:
    """Return the refusal of a document that must be valid and breaks a rule of its text."""
    return Refused(
        "E_REVIEW_UNFIT",
        f"the document breaks {violation.rule} at {violation.path}: {violation.message}",
        remedy="`troth review validate` on it names every broken rule.",
    )


class Text:
    """A document as it was read: its kind, its value, and whether the value can be judged further."""

    def __init__(self, kind: Kind, value: Any, *, readable: bool) -> None:
        self.kind: Kind = kind
        self.value = value
        self.readable = readable


class _Repeated(dict[str, Any]):
    """An object in which names stood more than once; the last value of each is kept."""

    names: tuple[str, ...] = ()


def read(data: bytes, findings: Findings, kind: Kind | None = None) -> Text:
    """Read a document and report what its text breaks: ``json-text`` and ``duplicate-member``.

    Args:
        data: the file's bytes.
        findings: takes the violations.
        kind: what it is where it does not say so itself. ``rebuttal`` is never guessed and always kept.

    Raises:
        Refused: ``E_REVIEW_KIND`` where neither the text nor ``kind`` tells, ``E_REVIEW_TOO_LARGE``.
    """
    if len(data) > MAX_BYTES:
        raise Refused("E_REVIEW_TOO_LARGE", f"{len(data)} bytes; a review document has at most {MAX_BYTES}")
    try:
        value = loads(data, _LIMITS)
    except JsonFault as fault:
        if fault.kind == "duplicate_key":
            try:
                value = _TOLERANT.decode(data.decode())
            except (ValueError, RecursionError, JsonFault) as other:
                return _unreadable(data, str(getattr(other, "message", other)), findings, kind)
            if has_unpaired_surrogate(value):
                return _unreadable(data, "an unpaired surrogate", findings, kind)
            found = _kind_of(value, kind)
            _report_repeated(value, findings)
            return Text(found, value, readable=True)
        return _unreadable(data, fault.message, findings, kind)
    return Text(_kind_of(value, kind), value, readable=True)


def _unreadable(data: bytes, message: str, findings: Findings, kind: Kind | None) -> Text:
    found = kind if kind == "rebuttal" else _kind_by_names({name.decode() for name in _NAMED.findall(data)}, kind)
    findings.report("json-text", (), message)
    return Text(found, None, readable=False)


def _kind_of(value: Any, kind: Kind | None) -> Kind:
    if kind == "rebuttal":
        return kind
    return _kind_by_names(set(value) if isinstance(value, dict) else set(), kind)


def _kind_by_names(names: set[str], kind: Kind | None) -> Kind:
    if names & {"items", "reconciliation_id"}:
        return "reconciliation"
    if names & {"findings", "assessment"}:
        return "response"
    if kind is None:
        raise Refused(
            "E_REVIEW_KIND",
            "the file is neither a reviewer's response (findings, assessment) nor a reconciliation (items, "
            "reconciliation_id)",
            remedy="Name its kind with --kind if it is one all the same.",
        )
    return kind


_NAMED: Final = re.compile(rb'"(items|reconciliation_id|findings|assessment)"\s*:')
"""Names by which a document tells its kind, where its text is no JSON."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for name, _ in pairs:
        if name in seen:
            twice[name] = None
        seen.add(name)
    marked = _Repeated(value)
    marked.names = tuple(twice)
    return marked


def _no_constant(token: str) -> NoReturn:
    raise ValueError(f"{token} is no JSON number")


def _finite(literal: str) -> float:
    value = float(literal)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{literal[:40]} does not fit a double")
    return value


_TOLERANT: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, parse_float=_finite)


def _report_repeated(value: Any, findings: Findings) -> None:
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, dict):
            for name in part.names if isinstance(part, _Repeated) else ():
                place = (*path, name)
                findings.report("duplicate-member", place, f"{path_text(place)} stands more than once")
            waiting += [((*path, name), inner) for name, inner in part.items()]
        elif isinstance(part, list):
            waiting += [((*path, number), inner) for number, inner in enumerate(part)]


def read_decisions(data: bytes) -> dict[str, dict[str, Any]]:
    """Return finding id -> its newest line, of a run's record of decisions (§8).

    Args:
        data: JSON Lines, each an object with at least ``finding_id``.

    Raises:
        Refused: ``E_DECISIONS_UNREADABLE`` with the line.
    """
    found = {}
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        if not line and not data:
            continue
        try:
            value = loads(line, _LIMITS)
        except JsonFault as fault:
            raise _bad_decision(number, fault.message) from None
        if not isinstance(value, dict) or not isinstance(value.get("finding_id"), str):
            raise _bad_decision(number, "no object with a finding_id")
        found[value["finding_id"]] = value
    return found


def _bad_decision(line: int, message: str) -> Refused:
    return Refused("E_DECISIONS_UNREADABLE", f"the record of decisions: {message}", place=Place(line=line))
