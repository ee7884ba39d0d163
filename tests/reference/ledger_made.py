"""Small ledgers made by hand and hashed by the model, for its own tests."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from reference.ledger_bytes import ZEROS, row_hash

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def made_row(row_id: str, op: str, actor: str = "agent:worker", **payload: Any) -> dict[str, Any]:
    envelope = {"id": row_id, "op": op, "ts": "2026-01-01T00:00:00Z", "actor": actor, "workspace": "w"}
    return {**envelope, "payload": {"body": "text", **payload}}


def chained(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    previous, out = ZEROS, []
    for row in rows:
        out.append({**row, "prevHash": previous, "hash": row_hash(row)})
        previous = out[-1]["hash"]
    return out


def as_bytes(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def made_ledger(*rows: dict[str, Any]) -> bytes:
    return as_bytes(chained(*rows))


SEEN = made_row("mem_00000001", "capture", "human:reviewer")
PROOF = made_row("mem_00000002", "capture")
OWED = made_row("cmt_00000001", "commit", "human:reviewer", source="mem_00000001")
OTHER = made_row("cmt_00000002", "commit", "human:reviewer", source="mem_00000001")
BASE = [SEEN, PROOF, OWED, OTHER]
COMMITMENT = {"commitment": "cmt_00000001"}
TAKEN = made_row("op_00000001", "claim", **COMMITMENT)
SUBMITTED = made_row("op_00000002", "submit", evidence="mem_00000002", **COMMITMENT)
APPROVED = made_row("op_00000003", "approve", "human:reviewer", **COMMITMENT)
FOUR = chained(SEEN, PROOF, TAKEN, SUBMITTED)
