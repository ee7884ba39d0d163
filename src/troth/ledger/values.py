"""What a writer asks of the values of a new row, beyond their type (ledger spec §2, §3 [D8])."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container
from functools import lru_cache
from typing import Any, Final

from troth.core.instants import parse_instant
from troth.ledger.fastpath import portable
from troth.ledger.fields import (
    CORE_RELATIONS,
    DEFAULT_KIND,
    ENVELOPE_TYPES,
    ID_PREFIX,
    KIND_MAY_DIFFER,
    LEVELS,
    OKF_RELATIONS,
    PAYLOAD_TYPES,
    SCOPES,
    Check,
    is_object,
    is_text,
    is_texts,
)

MAX_SAFE_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 100
_ID: Final = re.compile(r"(?:mem|cmt|op|ann)_[0-9a-z]{8,64}")
_KIND: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_ACTOR: Final = re.compile(r"(?:human|agent|system):[^\s:]\S{0,255}")
_EMAIL: Final = re.compile(r"[^\s:@]+@[^\s:@]+")
_WORKSPACE: Final = re.compile(r"\S{1,128}")

_REMEMBERED: Final = 256
"""Names about which the answer is remembered: a ledger has few actors and kinds and many rows."""

_SHORT: Final = 64
"""Longest name that is remembered; nothing a stranger writes makes the memory large. No kind is longer."""

Problem = tuple[str, str]
"""A JSON path and what is wrong there."""


def is_human(actor: str) -> bool:
    """Tell whether an actor is a person: ``human:NAME`` or an e-mail address (§2)."""
    return actor.startswith("human:") or _EMAIL.fullmatch(actor) is not None


def is_actor(text: str) -> bool:
    """Tell whether a writer may name this actor (§2 [D7])."""
    return _known_actor(text) if len(text) <= _SHORT else _names_actor(text)


def _names_actor(text: str) -> bool:
    return _ACTOR.fullmatch(text) is not None or _EMAIL.fullmatch(text) is not None


_known_actor: Final = lru_cache(_REMEMBERED)(_names_actor)


def is_id(text: str) -> bool:
    """Tell whether a text has the form of an id (§2 [D5])."""
    return _ID.fullmatch(text) is not None


def is_workspace(text: str) -> bool:
    """Tell whether a text may name a workspace: 1 to 128 characters, no white space."""
    return _WORKSPACE.fullmatch(text) is not None


def is_writer_instant(text: str) -> bool:
    """Tell whether a text is a timestamp as writers give it: a real date, ``Z``, 0 or 1 to 9 digits (§2 [D6])."""
    return parse_instant(text, offset=False) is not None


def unportable(value: Any, path: str = "$") -> Problem | None:
    """Return the first place that is no portable JSON: the writer's side of [D8].

    Only ``dict`` with string keys, ``list``, ``str``, ``bool``, ``int`` within 2**53 - 1, finite ``float`` and
    ``None``; no unpaired surrogate; at most 100 levels of containers, the value itself being level 1.
    """
    if portable(value):
        return None
    stack: list[tuple[Any, str, int]] = [(value, path, 1)]
    while stack:
        item, where, level = stack.pop()
        if isinstance(item, str):
            if _has_surrogate(item):
                return where, "an unpaired surrogate"
        elif item is None or isinstance(item, bool):
            continue
        elif isinstance(item, int):
            if abs(item) > MAX_SAFE_INTEGER:
                return where, "an integer beyond 2**53 - 1"
        elif isinstance(item, float):
            if not math.isfinite(item):
                return where, "not a finite number"
        elif isinstance(item, (dict, list)):
            if level > MAX_DEPTH:
                return where, f"nesting deeper than {MAX_DEPTH}"
            if isinstance(item, dict):
                for name in item:
                    if not isinstance(name, str) or _has_surrogate(name):
                        return where, "a member name that is no well-formed string"
                children = [(member, f"{where}.{name}", level + 1) for name, member in item.items()]
            else:
                children = [(member, f"{where}[{index}]", level + 1) for index, member in enumerate(item)]
            stack.extend(reversed(children))
        else:
            return where, f"{type(item).__name__} is no JSON type"
    return None


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def _unknown_member(value: dict[str, Any], known: Container[str]) -> str | None:
    """Return the first member that is neither known nor the caller's own, prefixed ``x_`` ([D2])."""
    for name in value:
        if name not in known and not name.startswith("x_"):
            return name
    return None


def _semantic_problem(semantic: dict[str, Any]) -> str | None:
    unknown = _unknown_member(semantic, ("entities", "intent", "domain"))
    if unknown is not None:
        return f"{unknown!r} is unknown; members of your own start with x_"
    if any(member is None for member in semantic.values()):
        return "a member that is null"
    return None


def _trace_problem(trace: dict[str, Any]) -> str | None:
    unknown = _unknown_member(trace, ("parent", "children", "causalDepth"))
    if unknown is not None:
        return f"{unknown!r} is unknown; members of your own start with x_"
    for name in ("parent", "children"):
        if name in trace and not _are_ids(trace[name]):
            return f"{name} is an array of ids"
    depth = trace.get("causalDepth", 0)
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        return "causalDepth is an integer from 0"
    return None


def _are_ids(value: Any) -> bool:
    """Tell whether a value is an array of what may be ids; whether rows have them is for a later step (§5)."""
    return is_texts(value) and "" not in value


def _relations_problem(relations: list[dict[str, Any]], okf_ingest: bool) -> str | None:
    allowed = CORE_RELATIONS | OKF_RELATIONS if okf_ingest else CORE_RELATIONS
    for relation in relations:
        unknown = _unknown_member(relation, ("type", "targetId"))
        if unknown is not None:
            return f"{unknown!r} is unknown; members of your own start with x_"
        if relation["type"] not in allowed:
            return f"the relation type {relation['type']!r} is not one a writer may use here"
        if not relation["targetId"]:
            return "a relation without target"
    return None


def _id_problem(identifier: str, op: str) -> str | None:
    if is_id(identifier) and identifier.startswith(ID_PREFIX[op]):
        return None
    return f"an id of {op} is {ID_PREFIX[op]} and 8 to 64 of 0-9a-z"


def _unless(good: Callable[[Any], bool], complaint: str) -> _Rule:
    return lambda item, _, __: None if good(item) else complaint


_Rule = Callable[[Any, str, bool], str | None]
_RULES: Final[dict[str, _Rule]] = {
    "id": lambda item, op, _: _id_problem(item, op),
    "ts": _unless(is_writer_instant, "a timestamp is YYYY-MM-DDTHH:MM:SS[.fraction]Z"),
    "actor": _unless(is_actor, "an actor is human:NAME, agent:NAME, system:NAME or an e-mail address"),
    "workspace": _unless(is_workspace, "a workspace is 1 to 128 characters without white space"),
    "syncScope": _unless(SCOPES.__contains__, f"syncScope is one of {', '.join(SCOPES)}"),
    "semantic": lambda item, _, __: _semantic_problem(item),
    "trace": lambda item, _, __: _trace_problem(item),
    "relations": lambda item, _, okf_ingest: _relations_problem(item, okf_ingest),
    "observationLevel": _unless(LEVELS.__contains__, f"observationLevel is one of {', '.join(LEVELS)}"),
    "sourceIds": _unless(_are_ids, "sourceIds is an array of ids"),
    "source_key": _unless(lambda item: 1 <= len(item) <= 512, "a source_key is 1 to 512 characters"),
}
"""What is asked of a field beyond its type: its value, the operation, whether bundles are ingested -> a complaint."""


@lru_cache(_REMEMBERED)
def _is_label(text: str) -> bool:
    return _KIND.fullmatch(text) is not None


def _kind_problem(kind: str, op: str) -> str | None:
    if len(kind) > _SHORT or not _is_label(kind):
        return "a kind is a lowercase label of at most 64 characters"
    if op not in KIND_MAY_DIFFER and kind != DEFAULT_KIND[op]:
        return f"the kind of {op} is {DEFAULT_KIND[op]}"
    return None


_NAMED: Final = _unless(bool, "an empty id")
_PAYLOAD_RULES: Final[dict[str, _Rule]] = {
    "body": _unless(lambda item: bool(item.strip()), "only white space"),
    "kind": lambda item, op, _: _kind_problem(item, op),
    "refs": _unless(lambda item: "" not in item, "an empty id"),
    **dict.fromkeys(("source", "commitment", "evidence", "target", "duplicate_of"), _NAMED),
}
"""The same for a field of the payload."""

_Asked = tuple[int, type | None, Check, _Rule | None]
"""A field's place in its table, its type where that alone settles the check, the check, the rule."""


def _table(checks: dict[str, Check], rules: dict[str, _Rule]) -> dict[str, _Asked]:
    settled: dict[Check, type] = {is_text: str, is_object: dict}
    return {name: (at, settled.get(check), check, rules.get(name)) for at, (name, check) in enumerate(checks.items())}


_ENVELOPE: Final = _table(ENVELOPE_TYPES, _RULES)
_PAYLOAD: Final = _table(PAYLOAD_TYPES, _PAYLOAD_RULES)
_PAYLOAD_PLACE: Final = _ENVELOPE["payload"][0]


def _first_problem(
    members: dict[str, Any], table: dict[str, _Asked], op: str, okf_ingest: bool
) -> tuple[int, str, str] | None:
    """Return the place, name and complaint of the first field in table order; an unknown one comes before all (-1).

    Only the members that are there are walked: they are few, and every row passes here.
    """
    first: tuple[int, str, str] | None = None
    for name, item in members.items():
        asked = table.get(name)
        if asked is None:
            if name.startswith("x_"):
                continue
            return -1, name, "an unknown field; fields of your own start with x_"
        place, settled, check, rule = asked
        if type(item) is not settled and (settled is not None or not check(item)):
            complaint: str | None = "the wrong type"
        elif rule is None:
            continue
        else:
            complaint = rule(item, op, okf_ingest)
        if complaint is not None and (first is None or place < first[0]):
            first = place, name, complaint
    return first


def envelope_problem(value: dict[str, Any], *, okf_ingest: bool) -> Problem | None:
    """Return the first envelope field, in table order, with a wrong type, format or value; the payload is an object."""
    op = value["op"]
    first = _first_problem(value, _ENVELOPE, op, okf_ingest)
    if first is None or first[0] > _PAYLOAD_PLACE:
        inner = payload_problem(op, value["payload"])
        if inner is not None:
            return inner
    return None if first is None else (f"$.{first[1]}", first[2])


def payload_problem(op: str, payload: dict[str, Any]) -> Problem | None:
    """Return the first payload field, in table order, with a wrong type, format or value."""
    first = _first_problem(payload, _PAYLOAD, op, False)
    if first is not None:
        return f"$.payload.{first[1]}", first[2]
    if op == "close" and payload.get("duplicate_of") == payload["commitment"]:
        return "$.payload.duplicate_of", "the commitment itself, not another one"
    return None
