"""Metrics: one row for each run that reached a reviewer, apart from its record (Impasse §11).

Rows hold settings, sizes, times and how it ended, each member typed and named here; never a word of an artifact or of
an answer. The newest :data:`MOST_ROWS` are kept. Writing one never stops a review: whatever goes wrong, the row is lost
and the run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from troth.backends.consent import PrivateFile
from troth.backends.estimate import Settings, Timing
from troth.backends.protocol import ENDS, Answer, Request
from troth.core.digests import is_digest
from troth.review.shapes import FAILURE_CODES

MOST_ROWS: Final = 1000
MOST_TEXT: Final = 200
"""Longest string kept, in characters."""
MOST_BYTES: Final = 4 << 20
"""Largest file of rows read."""
_MOST_NUMBER: Final = 1 << 53

VARIABLE: Final = "TROTH_REVIEW_METRICS"
"""``off`` keeps no metrics."""

FIELDS: Final[Mapping[str, type]] = {
    "at": str, "backend": str, "endpoint": str, "model": str, "resolved_model": str, "effort": str, "speed": str,
    "wall": float, "idle": float, "kind": str, "members": int, "payload_bytes": int, "payload_sha256": str,
    "sent": int, "received": int, "tokens": int, "attempts": int, "seconds": float, "any_byte": bool, "end": str,
    "failure": str, "assessment": str, "findings": int, "tier": str, "host": str, "rebuttal": bool,
}  # fmt: skip
"""Every member that a row may have. One of another name or type is left out."""


def enabled(environment: Mapping[str, str]) -> bool:
    """Tell whether metrics are kept."""
    return environment.get(VARIABLE, "").lower() not in ("off", "0", "no", "false")


def clean(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a row is kept: known members of their types, strings cut, numbers finite and not negative."""
    kept: dict[str, Any] = {}
    for name, kind in FIELDS.items():
        value = row.get(name)
        if kind is float and type(value) is int:
            value = float(value) if 0 <= value < _MOST_NUMBER else None
        if type(value) is not kind:
            continue
        if isinstance(value, str):
            value = "".join(char if char.isprintable() else "?" for char in value[:MOST_TEXT])
        elif isinstance(value, (int, float)) and not 0 <= value < _MOST_NUMBER:
            continue
        if name == "payload_sha256" and not is_digest(value):
            continue
        kept[name] = value
    return kept


def row_of(
    *,
    at: str,
    backend: str,
    endpoint: str,
    request: Request,
    answer: Answer,
    payload_sha256: str | None,
    **more: Any,
) -> dict[str, Any] | None:
    """Return the row of a run, ``None`` for one that reached no reviewer.

    Args:
        at: the instant at which it began, as text.
        backend, endpoint: name and key of consent.
        request: what was asked; the artifact's size is taken from it.
        answer: what came of it.
        payload_sha256: ``None`` where the run keeps no record.
        more: further members of :data:`FIELDS`; ``model`` is that of the backend, where the request names none.
    """
    if answer.end == "spawn_error" or (answer.sent == 0 and not answer.any_byte):
        return None
    return clean(
        {
            **more,
            "at": at,
            "backend": backend,
            "endpoint": endpoint,
            "model": request.model or more.get("model"),
            "resolved_model": answer.model if answer.model_basis == "resolved" else None,
            "effort": request.effort,
            "speed": request.speed,
            "wall": request.wall,
            "idle": request.idle,
            "payload_bytes": len(request.payload),
            "payload_sha256": payload_sha256,
            "sent": answer.sent,
            "received": answer.received,
            "tokens": answer.tokens,
            "attempts": answer.attempts,
            "seconds": answer.seconds,
            "any_byte": answer.any_byte,
            "end": answer.end,
            "failure": answer.failure.code if answer.failure is not None else None,
        }
    )


def parse_rows(data: bytes | None) -> list[dict[str, Any]]:
    """Return the rows of a file, the oldest first; a line that is none is passed over."""
    found = []
    for line in (data or b"").split(b"\n"):
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and (row := clean(value)):
            found.append(row)
    return found[-MOST_ROWS:]


class Metrics:
    """The rows of earlier runs.

    Args:
        file: where they lie; ``None`` keeps none and has none.
    """

    def __init__(self, file: PrivateFile | None) -> None:
        self._file = file

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows, the oldest first; none where they cannot be read."""
        if self._file is None:
            return []
        try:
            return parse_rows(self._file.read())
        except Exception:  # an estimate without history is better than none
            return []

    def record(self, row: Mapping[str, Any] | None) -> bool:
        """Add a row, and tell whether it was kept. Nothing is raised, whatever goes wrong."""
        if self._file is None or not row:
            return False
        try:
            kept = clean(row)

            def added(data: bytes | None) -> bytes:
                rows = [*parse_rows(data), kept][-MOST_ROWS:]
                return b"".join(json.dumps(one, sort_keys=True).encode() + b"\n" for one in rows)

            self._file.change(added)
        except Exception:  # metrics never stop a review (§11)
            return False
        return True


def timings(rows: Iterable[Mapping[str, Any]]) -> list[Timing]:
    """Return what an estimate needs of the rows; one that lacks a member it needs is passed over."""
    found = []
    for row in rows:
        needed = ("backend", "endpoint", "payload_bytes", "seconds", "wall", "end")
        if any(name not in row for name in needed) or row["end"] not in ENDS or row.get("rebuttal"):
            continue
        failure = row.get("failure")
        if failure is not None and failure not in FAILURE_CODES:
            continue
        settings = Settings(row["backend"], row["endpoint"], row.get("model"), row.get("effort"), row.get("speed"))
        completed = row["end"] == "completed" and failure is None
        exceeded = row["end"] == "wall_timeout"
        found.append(Timing(settings, row["payload_bytes"], row["seconds"], row["wall"], completed, exceeded))
    return found
