"""The cutover event: the first hashed row after rows without a hash, which says what those were (ledger spec §6 [D24]).

Rows of version 1 carry no hash, so nothing inside them shows a change. The event's own hash covers their number and
the digest of their bytes, and with it every later head does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from troth.core.digests import is_digest

AUTHOR: Final = "system:cutover"
"""Who writes the event; exempt from permissions for it."""

KIND: Final = "event"

MARK: Final = b'"system:cutover"'
"""What the bytes of an event hold when they are written as this project writes rows."""


class Prefix(NamedTuple):
    """The unhashed rows at the start: how many, and the SHA-256 of the ledger's bytes before the first hashed row.

    These are the bytes of the file, whatever stands there (a byte order mark, carriage returns and blank lines too),
    each line with its LF; the one that a writer adds to an unterminated last line belongs to them.
    """

    rows: int
    sha256: str


def cutover_payload(prefix: Prefix) -> dict[str, Any]:
    """Return the payload of the event for a prefix."""
    return {
        "body": f"{prefix.rows} {'row stands' if prefix.rows == 1 else 'rows stand'} before this one without a hash",
        "kind": KIND,
        "meta": {"cutover": {"rows": prefix.rows, "sha256": prefix.sha256}},
    }


def cutover_of(value: Mapping[str, Any]) -> Prefix | None:
    """Return what a row says as a cutover event, ``None`` when it is none or lacks good figures."""
    payload = value.get("payload")
    if value.get("actor") != AUTHOR or value.get("op") != "capture" or not isinstance(payload, dict):
        return None
    meta = payload.get("meta")
    told = meta.get("cutover") if isinstance(meta, dict) else None
    if payload.get("kind") != KIND or not isinstance(told, dict):
        return None
    rows, sha256 = told.get("rows"), told.get("sha256")
    if type(rows) is not int or rows < 0 or not isinstance(sha256, str) or not is_digest(sha256):
        return None
    return Prefix(rows, sha256)
