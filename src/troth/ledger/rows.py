"""One line of a ledger, parsed (ledger spec §2)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from troth.core.strictjson import LEDGER_ROW, JsonFault, loads

MAX_ROW_BYTES: Final = LEDGER_ROW.max_bytes
"""A row's bytes without LF and CR (ledger spec §3 [D8], §16)."""


class Row(NamedTuple):
    """One parsed line.

    ``line`` is the physical line, from 1. ``value`` holds every member as parsed, unknown ones too; nobody
    changes it. ``id``, ``op`` and ``hash`` repeat the members of that name where they are non-empty strings.
    """

    line: int
    value: dict[str, Any]
    id: str | None
    op: str | None
    hash: str | None

    @property
    def hashed(self) -> bool:
        """Tell whether the row carries a hash: neither absent, nor null, nor empty (ledger spec §6)."""
        stored = self.value.get("hash")
        return stored is not None and stored != ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def row_of(line: int, value: dict[str, Any]) -> Row:
    """Return the row of a parsed object."""
    return Row(line, value, _text(value.get("id")), _text(value.get("op")), _text(value.get("hash")))


def parse_row(raw: bytes) -> dict[str, Any]:
    """Parse one line without its line feed by the reference path.

    Raises:
        JsonFault: not one JSON object within the limits, or ``hash`` beside an absent, null or empty
            ``prevHash`` (ledger spec §3 [D8], §4 [D11], §6).
    """
    if len(raw) > MAX_ROW_BYTES:
        raise JsonFault("size", f"more than {MAX_ROW_BYTES} bytes")
    value = loads(raw, LEDGER_ROW)
    if not isinstance(value, dict):
        raise JsonFault("invalid", "not a JSON object")
    refuse_half_link(value)
    return value


def refuse_half_link(value: dict[str, Any]) -> None:
    """Raise ``JsonFault`` for a ``hash`` without ``prevHash``."""
    stored, link = value.get("hash"), value.get("prevHash")
    if stored is not None and stored != "" and (link is None or link == ""):
        raise JsonFault("invalid", "a hash without a prevHash")
