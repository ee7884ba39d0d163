"""Ledgers for the tests, hashed by a few lines of their own rather than by the code under test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from troth.ledger.chain import ChainReader, Verification
from troth.ledger.replay import Replay, State

ZERO = "0" * 64
_PREFIX = {"capture": "mem_", "commit": "cmt_", "annotate": "ann_"}


def plain_hash(value: dict[str, Any]) -> str:
    """Return a row's hash as the published algorithm writes it."""
    text = json.dumps({**value, "hash": "", "prevHash": ""}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.replace("/", "\\/").encode()).hexdigest()


def head_of(hashes: Iterable[str]) -> str:
    """Return the head digest over hashes."""
    head = ZERO
    for one in hashes:
        head = hashlib.sha256((head + one).encode()).hexdigest()
    return head


def line(value: dict[str, Any]) -> bytes:
    """Return a row as one line."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def lines(values: Iterable[dict[str, Any]]) -> bytes:
    """Return rows as a file."""
    return b"".join(line(value) for value in values)


def verify_and_replay(data: bytes, **settings: Any) -> tuple[Verification, State]:
    """Return what both readers make of a file."""
    reader, run = ChainReader(**settings), Replay()
    reader.feed_all([data], run.apply)
    return reader.finish(), run.state


class Ledger:
    """Builds chained rows one after the other."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.last = ZERO

    def add(self, op: str, actor: str = "agent:worker", *, hashed: bool = True, **members: Any) -> str:
        """Append a row of that operation; members that are no envelope fields go into the payload. Returns its id."""
        number = len(self.rows) + 1
        envelope = {
            name: members.pop(name)
            for name in ("id", "ts", "workspace", "trace", "relations", "trust", "source_key", "sourceIds")
            if name in members
        }
        extra = members.pop("envelope", {})
        row: dict[str, Any] = {
            "id": f"{_PREFIX.get(op, 'op_')}{number:08x}",
            "op": op,
            "ts": f"2026-01-01T00:00:{number % 60:02d}Z",
            "actor": actor,
            "workspace": "w",
            "payload": {"body": f"row {number}", **members},
            **envelope,
            **extra,
        }
        return self.put({name: item for name, item in row.items() if item is not ...}, hashed=hashed)

    def put(self, row: dict[str, Any], *, hashed: bool = True) -> str:
        """Append a row as it is, with its link and hash when it is to be hashed. Returns its id."""
        if hashed:
            row = {**row, "prevHash": self.last}
            row["hash"] = self.last = plain_hash(row)
        self.rows.append(row)
        return row.get("id", "")

    @property
    def data(self) -> bytes:
        """The file."""
        return lines(self.rows)

    def run(self, **settings: Any) -> tuple[Verification, State]:
        """Return verification and state."""
        return verify_and_replay(self.data, **settings)

    def state(self) -> State:
        """Return the state of a ledger that verifies."""
        verification, state = self.run(unhashed_prefix=sum("hash" not in row for row in self.rows))
        assert verification.ok, verification.faults
        return state


def reviewed() -> Ledger:
    """Return a ledger like the published sample: observation to approval, with every kind of value in it."""
    ledger = Ledger()
    seen = ledger.add("capture", "human:reviewer", body="Checkout fails on an empty cart/basket")
    work = ledger.add("commit", "human:reviewer", source=seen, tags=["bug", "checkout"])
    ledger.add("claim", commitment=work)
    proof = ledger.add(
        "capture",
        kind="evidence",
        refs=[work],
        trace={"parent": [seen], "causalDepth": 1},
        relations=[{"type": "cites", "targetId": seen}],
        trust={"confidence": 0.85, "chain": ["exit_code:1.0"], "decayHalfLifeDays": 90},
        meta={"é/\U0001f600": [1, -2.5, True, None, 0.85], "z": {"a": "\u007f"}},
    )
    ledger.add("submit", commitment=work, evidence=proof, summary="null check")
    ledger.add("approve", "human:reviewer", commitment=work, comment="fine")
    return ledger
