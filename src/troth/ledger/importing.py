"""Version 1 rows made into a chained ledger: the pure part of ``import`` (ledger spec §6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from troth.core.canonical import row_bytes
from troth.core.digests import ZERO
from troth.core.errors import Place, Refused
from troth.ledger.fields import V1_OPS, is_blank, is_empty, read_target
from troth.ledger.hashing import row_hash
from troth.ledger.rows import MAX_ROW_BYTES

DEFAULT_WORKSPACE: Final = "default"


def normalised(value: dict[str, Any]) -> dict[str, Any]:
    """Return a version 1 row as a row of today, without ``hash`` and ``prevHash``; the argument is not changed.

    ``link``, ``dismiss`` and ``triage`` become ``annotate`` of that kind, with ``target`` taken from ``source``
    or ``memory`` where it is absent and the old name kept in ``payload.meta.v1_op`` ([D23]). A missing body is
    the name of the operation, a missing workspace ``default``. Everything else stays as it is.
    """
    row = {name: member for name, member in value.items() if name not in ("hash", "prevHash")}
    op = row.get("op")
    payload = row.get("payload")
    payload = dict(payload) if isinstance(payload, dict) else {}
    if is_blank(payload.get("body")):
        payload = {**payload, "body": op if isinstance(op, str) else ""}
    if isinstance(op, str) and op in V1_OPS:
        row["op"] = "annotate"
        payload["kind"] = op
        target = read_target(op, payload)
        if not is_blank(target):
            payload["target"] = target
        meta = payload.get("meta")
        payload["meta"] = {**(meta if isinstance(meta, dict) else {}), "v1_op": op}
    row["payload"] = payload
    if is_blank(row.get("workspace")):
        row["workspace"] = DEFAULT_WORKSPACE
    return row


_NEEDED: Final = ("id", "op", "ts", "actor")


def refuse_unfit(value: dict[str, Any]) -> None:
    """Refuse what has no default, and what would hide a broken chain behind a new one.

    Raises:
        Refused: ``E_NOT_IMPORTABLE``.
    """
    payload = value.get("payload")
    if not is_empty(value.get("hash")):
        message = "the row is hashed already; such a ledger is copied, not imported"
    elif lacks := [name for name in _NEEDED if not isinstance(value.get(name), str) or not value[name]]:
        message = f"the row has no {lacks[0]}"
    elif not isinstance(payload, dict | None):
        message = "the payload is no object"
    elif payload and value["op"] in V1_OPS and not isinstance(payload.get("meta"), dict | None):
        message = "payload.meta is no object"
    else:
        return
    raise Refused("E_NOT_IMPORTABLE", message)


def chained(values: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield each row normalised, linked to the one before it and hashed, the first to 64 zeros.

    Args:
        values: parsed rows, of version 1 or of today, in file order.

    Raises:
        Refused: ``E_DUPLICATE_ID`` for a second row with one id, ``E_CONSTRAINT_VIOLATED`` (``bad_value``) for a
            row that would be longer than a row may be; in both cases the result would not verify. The place's
            line is the position among the values, from 1.
    """
    last = ZERO
    ids: set[str] = set()
    for position, value in enumerate(values, 1):
        row = normalised(value)
        identifier = row.get("id")
        if isinstance(identifier, str) and identifier:
            if identifier in ids:
                raise Refused(
                    "E_DUPLICATE_ID",
                    f"{identifier} stands twice",
                    remedy="Take one of the two rows out of the file.",
                    place=Place(line=position),
                    detail=identifier,
                )
            ids.add(identifier)
        row["prevHash"] = last
        row["hash"] = last = row_hash(row)
        if len(row_bytes(row)) > MAX_ROW_BYTES:
            raise Refused(
                "E_CONSTRAINT_VIOLATED",
                f"the row would have more than {MAX_ROW_BYTES} bytes",
                place=Place(line=position),
                detail="bad_value",
            )
        yield row
