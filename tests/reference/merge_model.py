"""A slow, literal model of a merge of two ledgers, over plain lists of rows; imports nothing from the product.

Everything is asked anew for every row, and searched for in lists. Rows are hashed rows of ledgers that verify.
"""

from __future__ import annotations

import copy
import hashlib
from typing import Any

from reference.ledger_bytes import row_hash

Json = Any
Rows = list[dict[str, Json]]

REFERENCES = ("source", "commitment", "evidence", "duplicate_of", "target", "memory")


def common(ours: Rows, theirs: Rows) -> int:
    """How many rows both begin with."""
    count = 0
    while count < len(ours) and count < len(theirs) and row_hash(ours[count]) == row_hash(theirs[count]):
        count += 1
    return count


def replaced(value: Json, old: str, new: str) -> Json:
    """The value with one text in the place of another, at any depth."""
    if isinstance(value, dict):
        return {name: replaced(item, old, new) for name, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, old, new) for item in value]
    return new if value == old and isinstance(value, str) else value


def with_new_id(row: dict[str, Json], old: str, new: str) -> dict[str, Json]:
    """The row with one id in the place of another, wherever a row names an id."""
    row = copy.deepcopy(row)
    if row["id"] == old:
        row["id"] = new
    for name in ("trace", "sourceIds"):
        if name in row:
            row[name] = replaced(row[name], old, new)
    for relation in row.get("relations", []):
        if relation["targetId"] == old:
            relation["targetId"] = new
    payload = row["payload"]
    for name in REFERENCES:
        if payload.get(name) == old:
            payload[name] = new
    for name in ("refs", "meta"):
        if name in payload:
            payload[name] = replaced(payload[name], old, new)
    return row


def without_mark(row: dict[str, Json]) -> dict[str, Json]:
    """The content of a row, but for its hash, its link and the mark of a merge."""
    return {name: item for name, item in row.items() if name not in ("hash", "prevHash", "x_merged")}


def added(ours: Rows, theirs: Rows) -> Rows:
    """The contents that a first merge puts behind `ours`, the event left out, neither linked nor hashed."""
    start = common(ours, theirs)
    mine = ours[start:]
    rest = [row for row in theirs[start:] if all(row_hash(row) != row_hash(other) for other in mine)]
    if start == len(ours):
        return [without_mark(row) for row in rest]
    taken = {row["id"] for row in ours} | {row["id"] for row in theirs}
    result = list(rest)
    for row in rest:
        if any(other["id"] == row["id"] for other in mine):
            prefix = row["id"].partition("_")[0] + "_"
            new, number = prefix + row["hash"][:16], 0
            while new in taken:
                number += 1
                new = prefix + hashlib.sha256(f"{row['hash']} {number}".encode()).hexdigest()[:16]
            taken.add(new)
            result = [with_new_id(one, row["id"], new) for one in result]
    for row in result:
        if any(other.get("source_key") == row.get("source_key") != None for other in mine):  # noqa: E711 - a chain
            row.pop("source_key")
    return [without_mark(row) for row in result]
