"""Objects of other programs made into candidates: the pure part of importing by ``source_key`` (ledger spec §5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from troth.core.errors import Place, Refused
from troth.core.instants import format_instant, parse_instant
from troth.ledger.fields import PAYLOAD_TYPES, is_empty
from troth.ledger.operations import Candidate

V1: Final = "v1"
ROWS: Final = "rows"
WHOLE: Final = "whole"
FORMATS: Final = (V1, ROWS, WHOLE)

MAX_REST_BYTES: Final = 1 << 16
"""Bytes of what an object holds besides the members that are mapped, as JSON."""

META: Final = "import"
"""The member of ``payload.meta`` that keeps the rest, so that no name in it means anything to a reader."""

_V1_MEMBERS: Final = ("id", "op", "ts", "actor")


@dataclass(frozen=True, slots=True)
class Fields:
    """Which members of an object are body, key, actor and time; all ``None``: the object has the wire's names.

    ``key_prefix`` stands before every key.
    """

    body: str | None = None
    key: str | None = None
    actor: str | None = None
    ts: str | None = None
    key_prefix: str = ""

    @property
    def mapped(self) -> bool:
        """Tell whether the object is anything, and not one with the wire's names."""
        return any(name is not None for name in (self.body, self.key, self.actor, self.ts))


def detect(first: Mapping[str, Any] | None, fields: Fields) -> str:
    """Return the format that the first object of a file shows; ``None`` when there is none."""
    if fields.mapped or fields.key_prefix:
        return ROWS
    if first is None:
        return V1
    if not is_empty(first.get("hash")):
        return WHOLE
    if "source_key" in first or any(name not in first for name in _V1_MEMBERS):
        return ROWS
    return V1


def candidate_of(value: Any, fields: Fields, actor: str) -> Candidate:
    """Return what one line asks to be appended; the rules of §5 judge it afterwards.

    Args:
        value: the parsed line.
        fields: what its members are.
        actor: who acts where the line does not say.

    Raises:
        Refused: ``E_MISSING_FIELD`` without a key, by which the line is known when it comes again, or without a body;
            ``E_CONSTRAINT_VIOLATED`` (``bad_value``) for what no row can be made of.
    """
    if not isinstance(value, dict):
        raise _bad("the line is no object", "$")
    members = _mapped(value, fields) if fields.mapped else _native(value)
    if is_empty(members.get("source_key")):
        name = fields.key or "source_key"
        raise Refused(
            "E_MISSING_FIELD",
            f"{name} is missing, by which the line is known when it comes again",
            place=Place(path=f"$.{name}"),
            detail=name,
            remedy="Name the member that is unique with --key-field.",
        )
    key = members["source_key"]
    if fields.key_prefix and isinstance(key, str):
        members["source_key"] = fields.key_prefix + key
    if is_empty(members.get("actor")):
        members["actor"] = actor
    return Candidate.of(members)


def _native(value: dict[str, Any]) -> dict[str, Any]:
    """Return the members; fields of the payload may stand beside those of the envelope."""
    members = {name: member for name, member in value.items() if name not in PAYLOAD_TYPES}
    beside = {name: member for name, member in value.items() if name in PAYLOAD_TYPES}
    if beside:
        payload = value.get("payload", {})
        twice = next((name for name in beside if not isinstance(payload, dict) or name in payload), None)
        if twice is not None:
            raise _bad(f"{twice} stands twice, or beside a payload that is no object", f"$.{twice}")
        members["payload"] = {**beside, **payload}
    members.setdefault("op", "capture")
    return members


def _mapped(value: dict[str, Any], fields: Fields) -> dict[str, Any]:
    body, key = fields.body or "body", fields.key or "source_key"
    text = value.get(body)
    if is_empty(text):
        raise Refused("E_MISSING_FIELD", f"{body} is missing", place=Place(path=f"$.{body}"), detail=body)
    named = value.get(key)
    members: dict[str, Any] = {
        "op": "capture",
        "payload": {"body": text},
        "source_key": str(named) if type(named) is int else named,
    }
    taken = {body, key}
    if fields.actor is not None:
        members["actor"] = value.get(fields.actor)
        taken.add(fields.actor)
    if fields.ts is not None:
        members["ts"] = instant_of(value.get(fields.ts))
        taken.add(fields.ts)
    rest = {name: member for name, member in value.items() if name not in taken}
    if rest:
        if len(json.dumps(rest, ensure_ascii=False).encode("utf-8", "surrogatepass")) > MAX_REST_BYTES:
            raise _bad(f"the other members take more than {MAX_REST_BYTES} bytes", "$")
        members["payload"]["meta"] = {META: rest}
    return members


def instant_of(value: Any) -> Any:
    """Return a time as a row has it: of ISO 8601 with an offset, or of seconds since 1970; else the value itself."""
    try:
        if type(value) in (int, float):
            return format_instant(datetime.fromtimestamp(value, UTC))
        if isinstance(value, str):
            if parse_instant(value, offset=False) is not None:
                return value  # as rows have it already, with its fraction
            instant = datetime.fromisoformat(value)
            return format_instant(instant) if instant.tzinfo is not None else value
    except (ValueError, OverflowError, OSError):
        return value
    return value


def _bad(message: str, path: str) -> Refused:
    return Refused("E_CONSTRAINT_VIOLATED", message, place=Place(path=path), detail="bad_value")
