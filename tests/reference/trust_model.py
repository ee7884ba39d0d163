"""A slow, literal model of confidence (§9, §10, §12, §16), over `ledger_replay`.

The yardstick for differential tests: nothing is imported from the product. Formulas stand as the spec prints them;
every question is answered by looking at all rows again. Where the spec leaves a corner open, the reading stands at
the place, in a comment that begins with "Open:".
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from reference.ledger_bytes import read_lines
from reference.ledger_replay import as_read, replay

Json = Any

WEIGHTS = {
    "exit_code": 0.20,
    "test_pass_rate": 0.20,
    "context_utilization": 0.20,
    "loop_complete": 0.15,
    "duration_reasonable": 0.10,
    "no_errors": 0.10,
    "evidence_depth": 0.05,
}
VERDICTS = {"SURVIVED": 0.10, "COMPROMISED": -0.30, "INCONCLUSIVE": 0.0}
SELECTIONS = {"winner": 0.10, "loser": -0.05}
LEVELS = ["unverified", "machine_verified", "human_verified"]


class Node:
    """A row and what is found out about it."""

    def __init__(self, line: int, row: dict[str, Json], plain: bool) -> None:
        self.line = line
        self.row = row
        self.effect = plain
        """Whether replay gave it its effect."""
        payload = row.get("payload")
        self.payload: dict[str, Json] = payload if isinstance(payload, dict) else {}
        actor = row.get("actor")
        # Open: rows that name nobody have one actor together.
        self.actor = actor if isinstance(actor, str) and actor else None
        meta = self.payload.get("meta")
        self.meta: dict[str, Json] = meta if isinstance(meta, dict) else {}
        self.supported: list[Node] = []
        self.doubted: list[Node] = []
        self.retracts_own: Node | None = None
        self.asserted = 0.5
        self.scored = False
        self.level = 0
        self.mismatch = False
        self.own = 0.0
        self.effective = 0.0


def number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_human(actor: str | None) -> bool:
    if actor is None:
        return False
    return actor.startswith("human:") or (actor.count("@") == 1 and bool(re.fullmatch(r"[^\s:@]+@[^\s:@]+", actor)))


# --- §9


def components(chain: Json) -> dict[str, float] | None:
    """Each of the seven names exactly once with a number in [0, 1], and nothing else."""
    if not isinstance(chain, list) or not all(isinstance(entry, str) for entry in chain):
        return None
    found: dict[str, float] = {}
    for entry in chain:
        if ":" not in entry:
            return None
        name, text = entry.split(":", 1)
        if name not in WEIGHTS or name in found:
            return None
        # Open: a number is what JSON calls one.
        if not re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", text, re.ASCII):
            return None
        found[name] = float(text)
        if not (0 <= found[name] <= 1):
            return None
    return found if len(found) == 7 else None


def stamp(node: Node, trust: dict[str, Json]) -> bool:
    return (
        node.row.get("op") == "approve"
        and is_human(node.actor)
        and number(trust.get("confidence"))
        and trust["confidence"] == 0.95
        and trust.get("verification") == "human_verified"
        and trust.get("chain") == ["manual_review:1.0"]
    )


def assert_confidence(node: Node, weights: dict[str, float]) -> None:
    trust = node.row.get("trust")
    if not isinstance(trust, dict):
        return
    stored = trust.get("confidence")
    if not number(stored) or stored < 0 or stored > 1:
        return
    if stamp(node, trust):
        node.asserted, node.scored, node.level = 0.95, True, 2
        return
    parts = components(trust.get("chain"))
    if parts is None:
        return
    total = 0.0
    for name in WEIGHTS:
        total += weights[name] * parts[name]
    computed = round(max(0.0, min(1.0, total)), 4)
    node.scored = True
    node.asserted = min(stored, computed)
    node.mismatch = abs(Fraction(stored) - Fraction(computed)) > Fraction(1, 1000) + Fraction(1, 10**9)
    # Open: what a row says of itself beyond a machine's check is not taken.
    if trust.get("verification") == "machine_verified" and parts["exit_code"] == 1:
        node.level = 1


def event_weights(node: Node) -> dict[str, float] | None:
    event = genesis_event(node)
    weights = event.get("weights") if event is not None else None
    if not isinstance(weights, dict) or sorted(weights) != sorted(WEIGHTS):
        return None
    if not all(number(weight) and 0 <= weight <= 1 for weight in weights.values()):
        return None
    return weights if abs(math.fsum(weights.values()) - 1) <= 1e-6 else None


def event_half_life(node: Node) -> int | None:
    event = genesis_event(node)
    days = event.get("half_life_days") if event is not None else None
    return days if isinstance(days, int) and not isinstance(days, bool) and days >= 1 else None


def genesis_event(node: Node) -> dict[str, Json] | None:
    # Open: a row without effect is no event.
    if not node.effect or node.actor != "system:genesis" or node.row.get("op") != "capture":
        return None
    event = node.meta.get("genesis")
    if node.payload.get("kind") != "event" or not isinstance(event, dict) or "sha256" not in event:
        return None
    return event


# --- §10: edges


def relate(nodes: list[Node]) -> None:
    """Find whom each row supports and doubts, among earlier rows alone."""
    first: dict[str, Node] = {}
    submitted: dict[str, str] = {}
    for node in nodes:

        def aim(identifier: Json, known: dict[str, Node] = first) -> Node | None:
            return known.get(identifier) if isinstance(identifier, str) else None

        relations = node.row.get("relations")
        for relation in relations if isinstance(relations, list) else []:
            if not isinstance(relation, dict):
                continue
            target = aim(relation.get("targetId"))
            if target is not None and relation.get("type") in ("cites", "supports"):
                node.supported.append(target)
            if target is not None and relation.get("type") == "contradicts":
                node.doubted.append(target)
        if node.effect:
            op, payload = node.row["op"], node.payload
            implied = None
            if op == "commit":
                implied = aim(payload["source"])
            elif op == "submit":
                submitted[payload["commitment"]] = payload["evidence"]
            elif op == "approve":
                implied = aim(submitted[payload["commitment"]])
                assert implied is not None
                if is_human(node.actor) and node.actor != implied.actor:
                    implied.level = max(implied.level, 2)
                if node.actor == "system:validator":
                    implied.level = max(implied.level, 1)
            elif op == "close" and not payload.get("duplicate_of"):
                implied = aim(payload["evidence"])
            if implied is not None:
                node.supported.append(implied)
            if op == "annotate" and payload.get("kind") == "retraction":
                target = aim(payload["target"])
                assert target is not None
                if target.actor == node.actor:
                    node.retracts_own = target
                else:
                    node.doubted.append(target)
        identifier = node.row.get("id")
        if isinstance(identifier, str) and identifier:
            first.setdefault(identifier, node)


def verdicts_on(target: Node, nodes: list[Node], first: dict[str, Node]) -> dict[str, float]:
    """Run -> delta. Open: one run counts once for a target, whether it gave a verdict or a selection first."""
    found: dict[str, float] = {}
    for node in nodes:
        if not node.effect or node.row["op"] != "annotate" or first.get(node.payload["target"]) is not target:
            continue
        kind, run = node.payload.get("kind"), node.meta.get("run")
        if kind == "verdict":
            word, table = node.meta.get("verdict"), VERDICTS
        elif kind == "selection":
            word, table = node.meta.get("result"), SELECTIONS
        else:
            continue
        if not isinstance(run, str) or run == "" or not isinstance(word, str) or word not in table:
            continue
        assert node.actor is not None
        if node.actor.startswith("system:") and node.actor != target.actor:
            found.setdefault(run, table[word])
    return found


def run_of(node: Node) -> str | None:
    run = node.meta.get("run")
    return run if isinstance(run, str) else None


def strongest(nodes: list[Node]) -> list[float]:
    """Of each actor the largest own value."""
    best: dict[str | None, float] = {}
    for node in nodes:
        best[node.actor] = max(best.get(node.actor, 0.0), node.own)
    return list(best.values())


def weigh(nodes: list[Node]) -> None:
    first: dict[str, Node] = {}
    for node in nodes:
        identifier = node.row.get("id")
        if isinstance(identifier, str) and identifier:
            first.setdefault(identifier, node)
    for target in reversed(nodes):
        runs = verdicts_on(target, nodes, first)
        supporters = [node for node in nodes if target in node.supported and node.actor != target.actor]
        doubters = [node for node in nodes if target in node.doubted and run_of(node) not in runs]
        base = max(0.0, min(1.0, target.asserted + sum(runs.values())))
        support = math.prod(1 - 0.10 * own for own in strongest(supporters))
        doubt = math.prod(1 - 0.30 * own for own in strongest(doubters))
        target.own = (1 - (1 - base) * support) * doubt
        if any(node.retracts_own is target for node in nodes):
            target.own = 0.0
    for node in nodes:
        node.effective = node.own
        if node.supported:
            node.effective = node.own * (1 - 0.5 * (1 - min(ratio(x) for x in node.supported)))


def ratio(node: Node) -> float:
    return 1.0 if node.asserted == 0 else min(1.0, node.effective / node.asserted)


# --- the whole


def trust(data: bytes) -> dict[str, Json]:
    """Return `signals` by id, the lines that are warned of, by warning, and the half-life of the key."""
    without = {line for line, *_ in replay(data)["anomalies"]}
    nodes = [
        Node(line.number, as_read(line.row), line.number not in without)
        for line in read_lines(data)[0]
        if line.row is not None
    ]
    weights, key_days = WEIGHTS, 90
    warned: dict[str, list[int]] = {"trust_mismatch": [], "half_life": []}
    days: dict[int, int] = {}
    for node in nodes:
        assert_confidence(node, weights)
        if node.mismatch:
            warned["trust_mismatch"].append(node.line)
        weights = event_weights(node) or weights
        key_days = event_half_life(node) or key_days
        block = node.row.get("trust")
        stored = block.get("decayHalfLifeDays") if isinstance(block, dict) else None
        if stored is None or stored == "":
            continue
        if isinstance(stored, int) and not isinstance(stored, bool) and stored >= 1:
            days[node.line] = stored
        else:
            warned["half_life"].append(node.line)
    relate(nodes)
    weigh(nodes)
    signals: dict[str, Json] = {}
    for node in nodes:
        identifier = node.row.get("id")
        if isinstance(identifier, str) and identifier and identifier not in signals:
            signals[identifier] = {
                "line": node.line,
                "asserted": node.asserted,
                "scored": node.scored,
                "own": node.own,
                "effective": node.effective,
                "verification": LEVELS[node.level],
                # Open: the key's default is that of the latest event, whatever the row's age.
                "half_life": days.get(node.line, key_days),
                "ts": node.row.get("ts"),
            }
    return {"signals": signals, "warned": warned}


def current(effective: float, ts: Json, half_life: int, at: datetime) -> float:
    """Effective x 2^(-age / half-life). Open: what is no instant has age 0, as what lies in the future has."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|\+00:00)", ts, re.ASCII) if ts else None
    if found is None:
        return effective
    try:
        written = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    except ValueError:
        return effective
    age = (at - written) / timedelta(days=1) - float(found[2] or 0) / 86400
    return effective * math.exp(-math.log(2) * max(0.0, age) / half_life)
