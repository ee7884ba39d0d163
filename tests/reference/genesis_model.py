"""A slow, literal model of a genesis key: permissions, constraints, tiers (§11, §16), over the key as plain data.

The yardstick for differential tests: nothing is imported from the product and nothing is shared with it. The key is
the mapping that its YAML stands for; the ledger is the list of its rows, all of which had an effect. Where the spec
leaves a corner open, the plainest reading stands at the place, in a comment that begins with "Open:".
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

Json = Any
ALL_OPS = ("capture", "commit", "claim", "release", "close", "submit", "approve", "reopen", "annotate")


def fits(pattern: str, actor: str) -> bool:
    if pattern[-1:] == "*":
        literal = pattern[:-1]
        return actor[: len(literal)] == literal
    return pattern == actor


def roles_of(key: dict[str, Json], actor: str) -> list[str]:
    """The longest literal match wins, exact first; entries with that same id combine their roles."""
    exact = [entry["role"] for entry in key["actors"] if entry["id"] == actor]
    if exact:
        return exact
    wild = [entry["id"] for entry in key["actors"] if entry["id"][-1:] == "*" and fits(entry["id"], actor)]
    if not wild:
        return []
    longest = max(wild, key=len)
    return [entry["role"] for entry in key["actors"] if entry["id"] == longest]


def by_entries(key: dict[str, Json], actor: str, op: str) -> bool:
    if "actors" not in key:
        return True
    for role in roles_of(key, actor):
        ops = key["permissions"][role]
        if ops == "*" or op in ops:
            return True
    return False


def permitted(key: dict[str, Json], actor: str, op: str) -> bool:
    if actor == "system:validator" and op in ("approve", "annotate"):
        return True
    return by_entries(key, actor, op)


def tier_name(key: dict[str, Json], tags: set[str]) -> str | None:
    """The strictest matching tier; no match: the default; no default: the strictest that is defined."""
    validation = key.get("validation", {})
    tiers = validation.get("tiers", {})
    if not tiers:
        return None
    found = []
    default = None
    for entry in validation.get("classification", []):
        if "default" in entry:
            default = entry["default"]
        elif any(tag in tags for tag in entry["match"]["tags"]):
            found.append(entry["tier"])
    for name in ("tier_3", "tier_2", "tier_1"):
        if name in found:
            return name
    if default is not None:
        return str(default)
    return next(name for name in ("tier_3", "tier_2", "tier_1") if name in tiers)


def is_a_person(actor: str) -> bool:
    return actor.startswith("human:") or ("@" in actor and ":" not in actor)


def about(rows: list[dict[str, Json]], commitment: str) -> list[dict[str, Json]]:
    return [row for row in rows if row["payload"].get("commitment") == commitment]


def tags_about(rows: list[dict[str, Json]], commitment: str) -> set[str]:
    """Those of the commit and of its direct source (§16)."""
    commit = next(row for row in rows if row["id"] == commitment)
    source = next(row for row in rows if row["id"] == commit["payload"]["source"])
    return {*commit["payload"].get("tags", []), *source["payload"].get("tags", [])}


def seconds(window: str) -> int:
    return int(window[:-1]) * {"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}[window[-1]]


def broken_rule(key: dict[str, Json], rows: list[dict[str, Json]], row: dict[str, Json], now: datetime) -> str | None:
    """The first constraint, then tier rule, that a row breaks which passed every step before."""
    constraints = key.get("constraints", {})
    op, actor, payload = row["op"], row["actor"], row["payload"]
    if op == "commit":
        if constraints.get("commit", {}).get("require_tags", False) and not payload.get("tags"):
            return "require_tags"
        return None
    if op not in ("approve", "close", "reopen"):
        return None
    history = about(rows, payload["commitment"])
    tags = tags_about(rows, payload["commitment"])
    # Open: the sections of all its tags hold, and a source's tags count for them as they do for tiers.
    sections = [rules for name, rules in constraints.items() if name in tags and name not in OP_SECTIONS]
    name = tier_name(key, tags)
    tier = key["validation"]["tiers"][name] if name is not None else {}
    if op == "approve":
        submitter = [one["actor"] for one in history if one["op"] == "submit"][-1]
        if submitter == actor and not constraints.get("approve", {}).get("allow_self", False):
            return "allow_self"
        for rules in sections:
            if "approvers" in rules and not any(fits(pattern, actor) for pattern in rules["approvers"]):
                return "approvers"
        if tier.get("require_human", False) and not is_a_person(actor):
            return "require_human"
        # Open: what the validator holds implicitly it holds for automatic closing only.
        if actor == "system:validator" and not tier.get("auto_close", False) and not by_entries(key, actor, "approve"):
            return "auto_close"
        return None
    if op == "close":
        # Open: a close as a duplicate is a direct close too.
        if any(rules.get("require_approval", False) for rules in sections):
            return "require_approval"
        return "require_human" if tier.get("require_human", False) else None
    last = history[-1]
    if last["op"] == "approve" and last["actor"] == "system:validator" and tier.get("review_window") is not None:
        closed = datetime.fromisoformat(last["ts"])
        if now > closed + timedelta(seconds=seconds(tier["review_window"])):
            return "review_window_passed"
    return None


OP_SECTIONS = ("claim", "close", "commit", "approve")
EARLIER = ("E_INVALID_OP", "E_MISSING_FIELD", "E_CHAIN_BROKEN", "E_DUPLICATE_ID")


def answer(
    key: dict[str, Json],
    rows: list[dict[str, Json]],
    row: dict[str, Json],
    now: datetime,
    without_key: tuple[str, str | None] | None,
) -> tuple[str, str | None] | None:
    """The code and detail of an operation, given what it would get without a key (§5: steps 7 and 11)."""
    if without_key is not None and (
        without_key[0] in EARLIER or without_key[1] in ("bad_value", "trust_self_reported")
    ):
        return without_key
    if not permitted(key, row["actor"], row["op"]):
        return ("E_PERMISSION_DENIED", None)
    if without_key is not None:
        return without_key
    rule = broken_rule(key, rows, row, now)
    return None if rule is None else ("E_CONSTRAINT_VIOLATED", rule)
