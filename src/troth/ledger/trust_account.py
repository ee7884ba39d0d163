"""The account of one signal: every figure that its confidence comes of, in the order it is worked out (§9, §10)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from troth.core.instants import format_instant
from troth.ledger.chains import Asserted, assess, parse_chain
from troth.ledger.confidence import Decay, Edge, Standing, Trust, decay
from troth.ledger.rows import Row
from troth.ledger.trust_edges import DOUBT, OWN, VIA, Delta
from troth.ledger.trust_events import Event, cascade_path, events_of


class Part(NamedTuple):
    """One component of a chain: its value times its weight."""

    name: str
    weight: float
    value: float

    @property
    def product(self) -> float:
        """Return what it adds to the asserted confidence."""
        return self.weight * self.value


class Bearing(NamedTuple):
    """One row that supports or doubts the signal.

    ``own`` is that row's own confidence, ``weight`` what it comes to here. ``idle`` says why it does not count:
    ``own_actor``, ``weaker`` (the same actor has a stronger one) or ``run`` (a run's doubt whose verdict counts).
    """

    id: str | None
    actor: str | None
    via: str
    own: float
    weight: float
    idle: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Account:
    """Everything that one signal's confidence comes of.

    ``parts`` are the components of its chain, empty where it has none that counts; ``own_weights`` tells that a
    genesis event laid their weights down. ``path`` names the signals of a cascade from this one to the one that lost
    by what was said about itself, empty without; ``kept`` is what the first of them below kept of its asserted
    confidence. ``raised_by`` is the row that brought the verification level.
    """

    id: str
    line: int
    standing: Standing
    asserted: Asserted
    parts: tuple[Part, ...]
    own_weights: bool
    deltas: tuple[tuple[Delta, str | None], ...]
    base: float
    supports: tuple[Bearing, ...]
    doubts: tuple[Bearing, ...]
    retracted_by: str | None
    path: tuple[str, ...]
    kept: float
    at: datetime
    worn: Decay
    current: float
    raised_by: str | None
    events: tuple[Event, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the account with the specification's names where it has them."""
        return {
            "id": self.id,
            "asserted": self.standing.asserted,
            "effective": self.standing.effective,
            "current": self.current,
            "verification": self.standing.verification,
            "scored": self.standing.scored,
            "own": self.standing.own,
            "stored": self.asserted.stored,
            "recomputed": self.asserted.recomputed,
            "chain": [part._asdict() | {"product": part.product} for part in self.parts],
            "deltas": [
                {"id": identifier, "run": delta.run, "word": delta.word, "amount": delta.amount}
                for delta, identifier in self.deltas
            ],
            "base": self.base,
            "supports": [bearing.as_json() for bearing in self.supports],
            "doubts": [bearing.as_json() for bearing in self.doubts],
            "retractedBy": self.retracted_by,
            "cascade": {"path": list(self.path), "kept": self.kept} if self.path else None,
            "halfLifeDays": self.standing.half_life_days,
            "ageDays": self.worn.age_days,
            "factor": self.worn.factor,
            "at": format_instant(self.at),
            "verifiedBy": self.raised_by,
            "events": [event.as_json() for event in self.events],
        }


def account(trust: Trust, row: Row, at: datetime) -> Account:
    """Return the account of a signal at an instant.

    Args:
        trust: the confidence of the ledger.
        row: the signal's row, the first with its id.
        at: the instant of reading.
    """
    assert row.id is not None
    line, standing = row.line, trust.standing(row.id)
    weights, own_weights = _weights_at(trust, line)
    asserted = assess(row.value, weights)
    stored = row.value.get("trust")
    parts = parse_chain(stored.get("chain")) if asserted.recomputed is not None and type(stored) is dict else None
    factors = trust.factors(line)
    counted = {edge.number for edge in (*factors.supports, *factors.doubts)}
    onto = trust.onto(line)
    runs = trust.runs_on(line)
    path = cascade_path(trust, line)
    worn = decay(standing.ts, standing.half_life_days, at)
    raised = trust.level(line)
    return Account(
        id=row.id,
        line=line,
        standing=standing,
        asserted=asserted,
        parts=tuple(Part(name, weights[name], value) for name, value in (parts or {}).items()),
        own_weights=own_weights,
        deltas=tuple((delta, trust.row_at(delta.line).id) for delta in factors.deltas),
        base=trust.base(line),
        supports=tuple(_bearing(trust, edge, counted, runs) for edge in onto if edge.kind != DOUBT),
        doubts=tuple(_bearing(trust, edge, counted, runs) for edge in onto if edge.kind == DOUBT),
        retracted_by=trust.row_at(factors.retracted_by).id if factors.retracted_by is not None else None,
        path=tuple(trust.row_at(one).id or "-" for one in path) if len(path) > 1 else (),
        kept=trust.ratio(path[1]) if len(path) > 1 else 1.0,
        at=at,
        worn=worn,
        current=standing.effective * worn.factor,
        raised_by=trust.row_at(raised.line).id if raised is not None else None,
        events=tuple(events_of(trust, row.id, at)),
    )


def _weights_at(trust: Trust, line: int) -> tuple[Mapping[str, float], bool]:
    """Return the weights in force at a line, and whether a genesis event laid them down."""
    at = bisect_right(trust.changes, line - 1, key=lambda change: change[0]) - 1
    return trust.changes[at][1].weights, at > 0


def _bearing(trust: Trust, edge: Edge, counted: set[int], runs: set[str]) -> Bearing:
    idle = None
    if edge.kind == OWN:
        idle = "own_actor"
    elif edge.number not in counted:
        idle = "run" if edge.kind == DOUBT and trust.run_of(edge.citer) in runs else "weaker"
    own = trust.at_line(edge.citer).own
    return Bearing(trust.row_at(edge.citer).id, edge.actor, VIA[edge.via], own, edge.weight, idle)
