"""What stands under what, after the specification alone: pairs and naive fixpoints. Imports nothing of ours.

A row is known by its place in the list, from 0.
"""

from __future__ import annotations

from typing import Any

STEPS = {"claim", "release", "submit", "approve", "reopen", "close"}
JUDGING = {"validation", "verdict", "selection"}
OLD_NOTES = {"link", "dismiss", "triage"}

Pairs = set[tuple[int, int]]


def first_of(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Return which row an id means: the first that has it."""
    found: dict[str, int] = {}
    for place, row in enumerate(rows):
        if isinstance(row.get("id"), str) and row["id"]:
            found.setdefault(row["id"], place)
    return found


def names_in(row: dict[str, Any], *path: str, many: bool = False) -> list[str]:
    """Return the ids under a path: the strings of a list if ``many``, else a string."""
    value: Any = row
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    items = (value if isinstance(value, list) else []) if many else [value]
    return [item for item in items if isinstance(item, str) and item]


def relations_of(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (type, id) of the well-formed relations."""
    items = row.get("relations")
    return [
        (item["type"], item["targetId"])
        for item in (items if isinstance(items, list) else [])
        if isinstance(item, dict) and isinstance(item.get("type"), str)
        if isinstance(item.get("targetId"), str) and item["targetId"]
    ]


def note_target(row: dict[str, Any]) -> list[str]:
    """Return the target of a note; that of a version 1 note may stand elsewhere."""
    places = ("target", "source", "memory") if row.get("op") in OLD_NOTES else ("target",)
    for name in places:
        payload = row.get("payload")
        if isinstance(payload, dict) and payload.get(name) not in (None, ""):
            return names_in(row, "payload", name)
    return []


def derivations(rows: list[dict[str, Any]]) -> Pairs:
    """Return (derived, premise) over parents and premises."""
    known = first_of(rows)
    return {
        (place, known[name])
        for place, row in enumerate(rows)
        for name in [
            *names_in(row, "trace", "parent", many=True),
            *names_in(row, "sourceIds", many=True),
        ]
        if name in known
    }


def supports(rows: list[dict[str, Any]]) -> Pairs:
    """Return (upper, lower): what stands on what."""
    known = first_of(rows)
    pairs = derivations(rows)
    for place, row in enumerate(rows):
        payload = row["payload"]
        plain = [name for member in ("evidence", "duplicate_of") for name in names_in(row, "payload", member)]
        target = note_target(row)
        if not (row["op"] in OLD_NOTES and payload.get("target") in (None, "")):
            plain += names_in(row, "payload", "source")
        plain += names_in(row, "payload", "refs", many=True) + [name for _, name in relations_of(row)]
        upward = []
        (upward if row["op"] in STEPS else plain).extend(names_in(row, "payload", "commitment"))
        judging = row["op"] == "annotate" and payload.get("kind") in JUDGING
        (upward if judging else plain).extend(target)
        pairs |= {(place, known[name]) for name in plain if name in known}
        pairs |= {(known[name], place) for name in upward if name in known}
    return pairs


def reached(pairs: Pairs, start: int) -> set[int]:
    """Return what is reached from a row, itself left out: add until nothing is added."""
    found = {start}
    while True:
        more = {lower for upper, lower in pairs if upper in found} - found
        if not more:
            return found - {start}
        found |= more


def turned(pairs: Pairs) -> Pairs:
    """Return the pairs the other way round."""
    return {(lower, upper) for upper, lower in pairs}


def contradictions(rows: list[dict[str, Any]], without_effect: set[int]) -> set[tuple[int, str | None, str | None]]:
    """Return (row, id disputed, how it was withdrawn) of every dispute."""
    known = first_of(rows)
    retracted = {
        known[name]
        for place, row in enumerate(rows)
        if place not in without_effect and row["op"] == "annotate" and row["payload"].get("kind") == "retraction"
        for name in note_target(row)
        if name in known
    }
    disputed = {
        known[name]
        for place, row in enumerate(rows)
        for kind, name in relations_of(row)
        if kind == "contradicts" and name in known and known[name] != place
    }
    found: set[tuple[int, str | None, str | None]] = set()
    for place, row in enumerate(rows):
        end = "retracted" if place in retracted else "contradicted" if place in disputed else None
        targets: list[str | None] = [name for kind, name in relations_of(row) if kind == "contradicts"]
        if not targets and row.get("observationLevel") == "contradiction":
            targets = [None]
        found |= {(place, name, end) for name in targets}
    return found
