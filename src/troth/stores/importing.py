"""Version 1 ledgers brought into a hashed one (ledger spec §6, Version 1)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from troth.core.digests import ZERO
from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault
from troth.ledger.fields import V1_OPS, is_empty, read_target
from troth.ledger.hashing import row_hash
from troth.ledger.rows import parse_row
from troth.stores.durable import open_regular
from troth.stores.lines import physical_lines
from troth.stores.snapshot import bare

DEFAULT_WORKSPACE: Final = "default"
_NEEDED: Final = ("id", "op", "ts", "actor")
_CHAINED: Final = ("hash", "prevHash")


def read_v1(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a version 1 ledger, normalised, hashed and chained from zeros; the file is only read.

    Raises:
        Refused: ``E_NO_LEDGER``, ``E_NOT_REGULAR``, ``E_UNREADABLE``, or ``E_NOT_IMPORTABLE`` with the line.
    """
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    link = ZERO
    for line, value in _values(path):
        row = normalised(value, Place(file=str(path), line=line))
        if row["id"] in seen:
            raise _refusal(f"the id {row['id']} stands twice", Place(file=str(path), line=line))
        seen.add(row["id"])
        row["prevHash"] = link
        link = row["hash"] = row_hash(row)
        rows.append(row)
    return rows


def normalised(value: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return a version 1 row as an unlinked row of today; what it does not know stays as it was.

    Raises:
        Refused: ``E_NOT_IMPORTABLE``: the row is hashed already, or something that has no default is missing.
    """
    if not is_empty(value.get("hash")):
        raise _refusal("the row is hashed already; such a ledger is copied, not imported", place)
    for name in _NEEDED:
        if not isinstance(value.get(name), str) or not value[name]:
            raise _refusal(f"the row has no {name}", place)
    payload = value.get("payload")
    if payload is None:
        payload = {}
    if not isinstance(payload, dict):
        raise _refusal("the payload is no object", place)
    op = value["op"]
    payload = dict(payload)
    if op in V1_OPS:
        target = read_target(op, payload)
        meta = payload.get("meta")
        if meta is not None and not isinstance(meta, dict):
            raise _refusal("payload.meta is no object", place)
        payload |= {"kind": op, "meta": {**(meta or {}), "v1_op": op}}
        if not is_empty(target):
            payload["target"] = target
    if payload.get("body") is None:
        payload["body"] = op
    row: dict[str, Any] = {
        "id": value["id"],
        "op": "annotate" if op in V1_OPS else op,
        "ts": value["ts"],
        "actor": value["actor"],
        "workspace": value.get("workspace") or DEFAULT_WORKSPACE,
        "prevHash": "",
        "payload": {"body": payload.pop("body"), **payload},
    }
    # Writers omit what is unused (ledger spec §2).
    row |= {
        name: item for name, item in value.items() if name not in row and name not in _CHAINED and not is_empty(item)
    }
    return row


def _values(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    fd = open_regular(path, os.O_RDONLY, "E_NO_LEDGER", "the file to import")
    try:
        for line, (_, raw, _) in enumerate(physical_lines(fd, 0), 1):
            text = bare(raw, line)
            if not text:
                continue
            try:
                yield line, parse_row(text)
            except JsonFault as fault:
                raise _refusal(fault.message, Place(file=str(path), line=line)) from None
    finally:
        os.close(fd)


def _refusal(message: str, place: Place) -> Refused:
    return Refused("E_NOT_IMPORTABLE", message, place=place, remedy="Correct a copy of the file; nothing was imported.")
