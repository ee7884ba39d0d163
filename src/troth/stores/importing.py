"""Version 1 ledgers brought into a hashed one (ledger spec §6, Version 1)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault
from troth.ledger.fields import V1_OPS, is_empty
from troth.ledger.importing import chained
from troth.ledger.rows import parse_row
from troth.stores.durable import open_regular
from troth.stores.lines import physical_lines
from troth.stores.snapshot import bare

_NEEDED: Final = ("id", "op", "ts", "actor")


def read_v1(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a version 1 ledger, normalised, hashed and chained from zeros; the file is only read.

    Raises:
        Refused: ``E_NO_LEDGER``, ``E_NOT_REGULAR``, ``E_UNREADABLE``, or ``E_NOT_IMPORTABLE`` with the line.
    """
    lines: list[int] = []

    def values() -> Iterator[dict[str, Any]]:
        for line, value in _values(path):
            _check(value, Place(file=str(path), line=line))
            lines.append(line)
            yield value

    try:
        return list(chained(values()))
    except Refused as fault:
        if fault.code == "E_NOT_IMPORTABLE" or fault.place is None or fault.place.line is None:
            raise
        raise _refusal(fault.message, Place(file=str(path), line=lines[fault.place.line - 1])) from None


def _check(value: dict[str, Any], place: Place) -> None:
    """Refuse what has no default, and what would hide a broken chain behind a new one."""
    if not is_empty(value.get("hash")):
        raise _refusal("the row is hashed already; such a ledger is copied, not imported", place)
    for name in _NEEDED:
        if not isinstance(value.get(name), str) or not value[name]:
            raise _refusal(f"the row has no {name}", place)
    payload = value.get("payload")
    if not isinstance(payload, dict | None):
        raise _refusal("the payload is no object", place)
    if payload and value["op"] in V1_OPS and not isinstance(payload.get("meta"), dict | None):
        raise _refusal("payload.meta is no object", place)


def _values(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    fd = open_regular(path, os.O_RDONLY, "E_NO_LEDGER", "the file to import")
    try:
        for line, (raw, _) in enumerate(physical_lines(fd, 0), 1):
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
