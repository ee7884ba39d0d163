"""Random ledgers that are about trust: who cites, doubts, approves, retracts and judges whom."""

from __future__ import annotations

import random
from typing import Any

from ledger.building import Ledger
from troth.ledger.confidence import Trust, trust_of
from troth.ledger.rows import row_of
from troth.ledger.trust import WEIGHTS

ACTORS = (
    "agent:worker",
    "agent:other",
    "human:reviewer",
    "reviewer@example.org",
    "system:witness",
    "system:validator",
    "system:arena",
)
STAMP = {
    "confidence": 0.95,
    "verification": "human_verified",
    "chain": ["manual_review:1.0"],
    "decayHalfLifeDays": 180,
}


def chain(**values: float | str) -> list[str]:
    """Return a chain of all seven components, 1.0 where nothing else is said."""
    return [f"{name}:{values.get(name, 1.0)}" for name in WEIGHTS]


def scored(confidence: float, **more: Any) -> dict[str, Any]:
    """Return a trust block whose chain sums to 1, so that the stored confidence is the lower one."""
    return {"confidence": confidence, "chain": chain(), **more}


def read(ledger: Ledger) -> Trust:
    """Return what the product makes of a ledger."""
    return trust_of(row_of(number, row) for number, row in enumerate(ledger.rows, start=1))


def effective(ledger: Ledger) -> dict[str, float]:
    """Return the effective confidence of every signal."""
    return {name: standing.effective for name, standing in read(ledger).standings()}


class Author:
    """Writes plausible rows, and with ``oddity`` rows that nobody should write."""

    def __init__(self, source: random.Random, oddity: float) -> None:
        self.source = source
        self.oddity = oddity
        self.ledger = Ledger()
        self.ids: list[str] = []
        self.commits: list[str] = []
        self.held: dict[str, str] = {}
        self.runs = ("run-1", "run-2", "run-3")

    def odd(self) -> bool:
        return self.source.random() < self.oddity

    def any_id(self) -> str:
        pick = self.source.choice
        if self.odd() or not self.ids:
            return pick(["mem_nobody00", f"mem_{len(self.ledger.rows) + 3:08x}", ""])
        # Mostly recent rows, so that paths grow long; now and then an old one, so that hubs grow.
        return pick(self.ids[-6:]) if self.source.random() < 0.7 else pick(self.ids)

    def relations(self) -> Any:
        pick, source = self.source.choice, self.source
        if self.odd():
            return pick([None, {}, "x", [5], [{"type": "cites"}], [{"type": 5, "targetId": self.any_id()}], []])
        kinds = ("cites", "cites", "supports", "contradicts", "contradicts", "extends", "okf_link")
        return [{"type": pick(kinds), "targetId": self.any_id()} for _ in range(source.choice((0, 1, 1, 2, 4)))]

    def trust(self) -> Any:
        pick, source = self.source.choice, self.source
        if self.odd():
            return pick([None, {}, "high", [], {"confidence": 0.9}, {"chain": chain()}, {"decayHalfLifeDays": pick(
                [0, -1, 1.5, 30.0, "30", True, 7, 10**30, None, ""])}])  # fmt: skip
        names = list(WEIGHTS)
        values: dict[str, Any] = {name: round(source.random(), pick((1, 2, 16))) for name in names}
        if self.odd():
            values[pick(names)] = pick(
                ["1", "0", "1.5", "-0", "-0.1", "1e-3", "1e400", "nan", "0x1", "+1", ".5", " 1", ""]
            )
        if source.random() < 0.4:
            values["exit_code"] = 1.0
        entries: list[Any] = [f"{name}:{value}" for name, value in values.items()]
        if self.odd():
            entries = pick([entries[1:], [*entries, entries[0]], [*entries, "extra:1.0"], [*entries[1:], 5], "x", None])
        if isinstance(entries, list) and source.random() < 0.2:
            source.shuffle(entries)
        total = sum(WEIGHTS[name] * float(value) for name, value in values.items() if isinstance(value, float))
        confidence = pick([round(total, 4), round(total, 4), round(min(1.0, total + 0.001), 4), source.random(), 0, 1])
        if self.odd():
            confidence = pick([None, "", True, "0.5", -0.1, 1.0001, 10**40, [0.5]])
        block = {"confidence": confidence, "chain": entries}
        if source.random() < 0.7:
            block["verification"] = pick(["unverified", "machine_verified", "machine_verified", "human_verified", 5])
        if source.random() < 0.3:
            block["decayHalfLifeDays"] = pick([1, 7, 30, 400])
        return block

    def meta(self) -> Any:
        pick = self.source.choice
        if self.odd():
            return pick([None, "x", {"run": 5}, {"run": ["run-1"], "verdict": "SURVIVED"}, {"run": ""}])
        return {
            "run": pick(self.runs),
            "verdict": pick(["SURVIVED", "COMPROMISED", "COMPROMISED", "INCONCLUSIVE", "LOST"]),
            "result": pick(["winner", "loser", "draw"]),
        }

    def genesis(self) -> None:
        source, pick = self.source, self.source.choice
        shares = [source.random() for _ in WEIGHTS]
        weights: Any = {name: share / sum(shares) for name, share in zip(WEIGHTS, shares, strict=True)}
        event: Any = {"sha256": "0" * 64, "weights": weights, "half_life_days": pick([30, 400, None])}
        actor, kind = "system:genesis", "event"
        match source.randrange(10) if self.odd() else 99:
            case 0:
                weights["exit_code"] += 0.5
            case 1:
                del weights["no_errors"]
            case 2:
                weights["more"] = 0.0
            case 3:
                event["weights"] = pick([None, [], "x", dict.fromkeys(WEIGHTS, True)])
            case 4:
                event["half_life_days"] = pick([0, 1.5, True, "30"])
            case 5:
                del event["sha256"]
            case 6:
                event = pick([None, [], "x"])
            case 7:
                actor = "system:other"
            case 8:
                kind = "note"
        self.put("capture", actor, kind=kind, meta={"genesis": event})

    def put(self, op: str, actor: str, **members: Any) -> str:
        """Append a row, one in a while broken so that it has no effect."""
        envelope: dict[str, Any] = {}
        if self.source.random() < 0.5 and "relations" not in members:
            members["relations"] = self.relations()
        if self.source.random() < 0.4 and "trust" not in members:
            members["trust"] = self.trust()
        if self.odd():
            envelope = self.source.choice(
                [{"id": self.any_id() or "x"}, {"id": ""}, {"actor": None}, {"actor": ""}, {"ts": None}, {"op": "hug"},
                 {"op": "link"}, {"payload": None}, {"actor": 5}, {"ts": "yesterday"}]
            )  # fmt: skip
        identifier = self.ledger.add(op, actor, envelope=envelope, **members)
        if isinstance(identifier, str) and identifier:
            self.ids.append(identifier)
        return identifier

    def step(self) -> None:
        source, pick = self.source, self.source.choice
        actor = pick(ACTORS)
        match source.randrange(14):
            case 0 | 1 | 2:
                more = {"meta": {"run": pick(self.runs)}} if source.random() < 0.3 else {}
                self.put("capture", actor, **more)
            case 3:
                self.commits.append(self.put("commit", actor, source=self.any_id()))
            case 4 | 5 if self.commits:
                commitment = pick(self.commits)
                self.held[commitment] = actor
                self.put("claim", actor, commitment=commitment)
            case 6 | 7 if self.held:
                commitment = pick(list(self.held))
                self.put("submit", self.held[commitment], commitment=commitment, evidence=self.any_id())
                if source.random() < 0.7:
                    trust = STAMP | (pick([{}, {"confidence": 0.94}, {"chain": [*chain()]}]) if self.odd() else {})
                    more = {"trust": trust} if source.random() < 0.6 else {}
                    self.put("approve", pick(ACTORS), commitment=commitment, **more)
            case 8 if self.held:
                commitment = pick(list(self.held))
                more = {"duplicate_of": pick(self.commits)} if source.random() < 0.3 else {}
                self.put("close", self.held[commitment], commitment=commitment, evidence=self.any_id(), **more)
            case 9 if self.commits:
                self.put("reopen", actor, commitment=pick(self.commits))
            case 10:
                kind = "retraction" if source.random() < 0.7 else "note"
                self.put("annotate", actor, kind=kind, target=self.any_id(), meta=self.meta())
            case 11 | 12:
                by = pick(["system:arena", "system:witness", actor])
                self.put("annotate", by, kind=pick(["verdict", "selection"]), target=self.any_id(), meta=self.meta())
            case 13 if source.random() < 0.3:
                self.genesis()
            case _:
                self.put("capture", actor)


def ledger_of(seed: int, rows: int, oddity: float) -> Ledger:
    """Return a random ledger of about that many rows."""
    author = Author(random.Random(seed), oddity)
    while len(author.ledger.rows) < rows:
        author.step()
    return author.ledger
