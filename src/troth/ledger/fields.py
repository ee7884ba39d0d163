"""The tables of the envelope and the payload as data, and what a reader asks of them (ledger spec §2, §6, §16)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

OPS: Final = ("capture", "commit", "claim", "release", "close", "submit", "approve", "reopen", "annotate")
"""The nine operations."""

V1_OPS: Final = frozenset({"link", "dismiss", "triage"})
"""Operations of version 1, read as ``annotate`` of that kind (§6 [D23])."""

READ_OPS: Final = frozenset(OPS) | V1_OPS
"""Operations that a reader knows."""

ID_PREFIX: Final = dict.fromkeys(OPS, "op_") | {"capture": "mem_", "commit": "cmt_", "annotate": "ann_"}
"""The prefix of an id by operation."""

DEFAULT_KIND: Final = {
    "capture": "observation",
    "commit": "commitment",
    "claim": "claim",
    "release": "release",
    "close": "verdict",
    "submit": "submission",
    "approve": "approval",
    "reopen": "reopen",
    "annotate": "note",
}
"""The kind a writer gives when the caller gives none (§2 [D4])."""

KIND_MAY_DIFFER: Final = frozenset({"capture", "annotate"})
CITING_KINDS: Final = frozenset({"finding", "step_result", "learning"})
"""Kinds that need a parent, whatever the operation (§7, invariant 3)."""

REQUIRED_ENVELOPE: Final = ("id", "ts", "actor", "workspace", "payload")
"""Required fields in table order; ``op`` is looked at before; ``hash`` and ``prevHash`` are the verifier's matter."""

REQUIRED_PAYLOAD: Final[dict[str, tuple[str, ...]]] = {
    "capture": ("body",),
    "commit": ("body", "source"),
    "claim": ("body", "commitment"),
    "release": ("body", "commitment"),
    "close": ("body", "commitment", "evidence"),
    "submit": ("body", "commitment", "evidence"),
    "approve": ("body", "commitment"),
    "reopen": ("body", "commitment"),
    "annotate": ("body", "target"),
}
"""Required payload fields by operation, in table order (§2, §5)."""

ON_COMMITMENT: Final = frozenset({"claim", "release", "submit", "approve", "reopen", "close"})
"""Operations that step a commitment through the state table."""

CORE_RELATIONS: Final = frozenset({"cites", "extends", "contradicts", "refines"})
OKF_RELATIONS: Final = frozenset({"supersedes", "supports", "okf_link"})
"""Relation types that only OKF ingest may write (§8 [D26])."""

LEVELS: Final = ("explicit", "deductive", "inductive", "contradiction")
SCOPES: Final = ("local", "anonymous", "full", "cloud")


def is_blank(value: Any) -> bool:
    """Tell whether a field that is a string counts as absent for state: ``null`` or empty (§2)."""
    return value is None or value == ""


def is_empty(value: Any) -> bool:
    """Tell whether a field that is an array or an object counts as absent for state: ``null`` or empty (§2)."""
    return value is None or value in ("", [], {})


def is_text(value: Any) -> bool:
    """Tell whether it is a string."""
    return type(value) is str


def is_object(value: Any) -> bool:
    """Tell whether it is an object."""
    return type(value) is dict


def is_texts(value: Any) -> bool:
    """Tell whether it is an array of strings."""
    if type(value) is not list:
        return False
    for item in value:  # noqa: SIM110 - a generator costs twice as much, and every row passes here
        if type(item) is not str:
            return False
    return True


def is_relations(value: Any) -> bool:
    """Tell whether it is an array of objects with the strings ``type`` and ``targetId``."""
    if type(value) is not list:
        return False
    for item in value:
        if type(item) is not dict or type(item.get("type")) is not str or type(item.get("targetId")) is not str:
            return False
    return True


def is_semantic(value: Any) -> bool:
    """Tell whether it is an object whose known members have their types."""
    if type(value) is not dict:
        return False
    entities, intent, domain = value.get("entities"), value.get("intent"), value.get("domain")
    return (
        (entities is None or is_texts(entities))
        and (intent is None or type(intent) is str)
        and (domain is None or is_texts(domain))
    )


def is_trace(value: Any) -> bool:
    """Tell whether it is an object whose parents are ids; stored children and depth are not looked at (§8)."""
    return type(value) is dict and (value.get("parent") is None or is_texts(value["parent"]))


Check = Callable[[Any], bool]

ENVELOPE_TYPES: Final[dict[str, Check]] = {
    "id": is_text,
    "op": is_text,
    "ts": is_text,
    "actor": is_text,
    "workspace": is_text,
    "payload": is_object,
    "syncScope": is_text,
    "semantic": is_semantic,
    "trust": is_object,
    "trace": is_trace,
    "relations": is_relations,
    "observationLevel": is_text,
    "sourceIds": is_texts,
    "source_key": is_text,
}
"""Types that a reader asks for (§16 Replay); what is inside ``trust`` never stops a row (§9, §10)."""

PAYLOAD_TYPES: Final[dict[str, Check]] = {
    "body": is_text,
    "kind": is_text,
    "source": is_text,
    "commitment": is_text,
    "evidence": is_text,
    "target": is_text,
    "duplicate_of": is_text,
    "summary": is_text,
    "reason": is_text,
    "comment": is_text,
    "tags": is_texts,
    "refs": is_texts,
    "meta": is_object,
}


# Members whose type alone settles the check, so that the usual row needs no call for them. No name stands in both
# tables, which is why one lookup serves both.
_PLAIN_TYPES: Final[dict[str, type]] = {
    name: str if check is is_text else dict
    for name, check in (ENVELOPE_TYPES | PAYLOAD_TYPES).items()
    if check in (is_text, is_object)
}


def read_op(op: Any) -> Any:
    """Return the operation under which a row is read: version 1 notes are ``annotate`` (§6 [D23], §16)."""
    return "annotate" if type(op) is str and op in V1_OPS else op


def read_target(op: Any, payload: dict[str, Any]) -> Any:
    """Return the target of a note: ``target``, in a version 1 note else ``source``, else ``memory``."""
    target = payload.get("target")
    if is_blank(target) and isinstance(op, str) and op in V1_OPS:
        target = payload.get("source")
        if is_blank(target):
            target = payload.get("memory")
    return target


def required_value(op: Any, payload: dict[str, Any], name: str) -> Any:
    """Return a required payload field as a reader sees it.

    A close with ``duplicate_of`` and no ``evidence`` reads the former as its evidence (§5 [D17], §16).
    """
    if name == "target":
        return read_target(op, payload)
    value = payload.get(name)
    if name == "evidence" and op == "close" and is_blank(value):
        return payload.get("duplicate_of")
    return value


def missing_field(value: dict[str, Any], *, hashed: bool, filled: frozenset[str] = frozenset()) -> str | None:
    """Return the name of the first missing required field, those of the envelope first, in table order.

    Args:
        value: the row, its operation known.
        hashed: an unhashed row is one of version 1, whose workspace and body have defaults (§6).
        filled: envelope fields that a tool fills later.
    """
    for name in REQUIRED_ENVELOPE:
        if name in filled or (name == "workspace" and not hashed):
            continue
        field = value.get(name)
        if type(field) is not dict if name == "payload" else is_blank(field):
            return name
    payload = value["payload"]
    op = value["op"]
    for name in REQUIRED_PAYLOAD[read_op(op)]:
        field = required_value(op, payload, name)
        if name == "body":
            # Readers accept any string, the empty one too; in version 1 a missing body reads as empty.
            if field is None and hashed:
                return name
        elif is_blank(field):
            return name
    return None


_ENVELOPE_TEXTS: Final = tuple(name for name in REQUIRED_ENVELOPE if name != "payload")


def surely_complete(value: dict[str, Any], op: str, envelope: tuple[str, ...] = _ENVELOPE_TEXTS) -> bool:
    """Tell quickly that no required field is missing; "no" only means that ``missing_field`` must be asked.

    Args:
        value: the row.
        op: its operation as read.
        envelope: the fields beside the payload that are required.
    """
    payload = value.get("payload")
    if type(payload) is not dict:
        return False
    for name in envelope:
        if not value.get(name):
            return False
    for name in REQUIRED_PAYLOAD[op]:  # noqa: SIM110 - a generator costs twice as much, and every row passes here
        if not payload.get(name):
            return False
    return True


def mistyped_field(value: dict[str, Any]) -> str | None:
    """Return the JSON path of a field of the wrong type, ``None`` when every known field has its type."""
    plain_type = _PLAIN_TYPES.get
    for name, member in value.items():
        if type(member) is not plain_type(name) and _mistyped(ENVELOPE_TYPES.get(name), member):
            return f"$.{name}"
    for name, member in value["payload"].items():
        if type(member) is not plain_type(name) and _mistyped(PAYLOAD_TYPES.get(name), member):
            return f"$.payload.{name}"
    return None


def _mistyped(check: Check | None, member: Any) -> bool:
    if check is None or check(member):
        return False
    return member is not None if check is is_text else not is_empty(member)
