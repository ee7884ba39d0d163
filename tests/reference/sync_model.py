"""What may leave a ledger, after the specification alone: closures by naive search. Imports nothing of ours.

Rows are parsed objects in file order, in a ledger that verifies.
"""

from __future__ import annotations

from typing import Any

ORDER = ["local", "anonymous", "full", "cloud"]
OLD_NOTES = {"link", "dismiss", "triage"}

AUDIENCES = {"anybody": {"anonymous"}, "peer": {"full", "cloud"}, "cloud": {"cloud"}}


def own(row: dict[str, Any]) -> str:
    """Return what a row says itself."""
    said = row.get("syncScope")
    return said if said in ORDER else "local"


def names(row: dict[str, Any]) -> list[Any]:
    """Return the names in the four fields, as a reader of the row understands them."""
    payload, op = row.get("payload"), row.get("op")
    if not isinstance(payload, dict):
        return []
    found = {name: payload.get(name) for name in ("commitment", "source", "evidence", "target")}
    if op == "close" and found["evidence"] in (None, ""):
        found["evidence"] = payload.get("duplicate_of")
    if isinstance(op, str) and op in OLD_NOTES:
        for other in ("source", "memory"):
            if found["target"] in (None, ""):
                found["target"] = payload.get(other)
    return [value for value in found.values() if value not in (None, "")]


def effective(rows: list[dict[str, Any]], place: int) -> str:
    """Return the narrowest scope among everything that can be reached from a row by names."""
    seen, waiting, scopes, renamed = {place}, [place], [], False
    while waiting:
        row = rows[waiting.pop()]
        scopes.append(own(row))
        renamed = renamed or (isinstance(row.get("x_merged"), dict) and "id" in row["x_merged"])
        for name in names(row):
            behind = [at for at, other in enumerate(rows) if isinstance(name, str) and other.get("id") == name]
            if not behind:
                scopes.append("local")
            for at in behind:
                if at not in seen:
                    seen.add(at)
                    waiting.append(at)
    narrowest = min(scopes, key=ORDER.index)
    # An id that a merge made of a former hash confirms a guessed actor as that hash would.
    return "local" if renamed and narrowest == "anonymous" else narrowest


def goes(rows: list[dict[str, Any]], audience: str) -> list[int]:
    """Return the places of the rows that go to ``anybody``, a ``peer`` or the ``cloud``."""
    return [at for at in range(len(rows)) if effective(rows, at) in AUDIENCES[audience]]


def without_a_name(row: dict[str, Any]) -> dict[str, Any]:
    """Return the anonymous form of a row."""
    copy = {name: value for name, value in row.items() if name not in ("hash", "prevHash", "source_key", "x_merged")}
    copy["actor"] = "anonymous"
    if isinstance(copy.get("payload"), dict):
        copy["payload"] = {name: value for name, value in copy["payload"].items() if name != "meta"}
    return copy
