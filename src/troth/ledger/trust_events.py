"""Trust events: why a signal is worth what it is, told cause by cause (ledger spec §10 [D34]).

Events are derived from replay and never stored. Those of one signal form a chain: the first one's ``old`` is the
asserted confidence, each ``old`` is the ``new`` before it, the last ``new`` is the effective confidence. Causes come
in file order, each with the weight that it has in the whole ledger (a supporter that was doubted later weighs what is
left of it); what the signal takes over from what it supports comes last. Time, told when it is asked for, comes behind
that, and its ``new`` is the current confidence.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from troth.core.instants import format_instant
from troth.core.words import lasting
from troth.ledger.confidence import Decay, Edge, Trust, decay, own_value
from troth.ledger.trust_edges import VIA, Delta

CITATION: Final = "citation_added"
REINFORCEMENT: Final = "reinforcement_update"
CONTRADICTION: Final = "contradiction_detected"
DECAY: Final = "decay_applied"

PATH_SHOWN: Final = 12
"""Signals of a cascade's path that a reason names, from both ends."""


class Event(NamedTuple):
    """One step from ``old`` to ``new``; ``cause`` is the id of the row behind it and ``ts`` that row's."""

    signal: str
    type: str
    old: float
    new: float
    cause: str | None
    reason: str
    ts: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the members under the specification's names."""
        return {
            "signalId": self.signal,
            "type": self.type,
            "old": self.old,
            "new": self.new,
            "causeId": self.cause,
            "reason": self.reason,
            "ts": self.ts,
        }


class _Teller:
    """Steps one signal from its asserted to its effective confidence."""

    def __init__(self, trust: Trust, identifier: str) -> None:
        self.trust = trust
        self.identifier = identifier
        self.line = trust.line_of(identifier)
        self.asserted = trust.at_line(self.line).asserted
        self.moved = 0.0
        self.missing = self.left = 1.0
        self.cited = False
        self.retracted = False
        self.value = self.asserted
        self.events: list[Event] = []

    def step(self, type_: str, cause: int, reason: str, new: float | None = None) -> None:
        if new is None:
            base = min(1.0, max(0.0, self.asserted + self.moved))
            new = 0.0 if self.retracted else own_value(base, self.missing, self.left)
        row = self.trust.row_at(cause)
        self.events.append(Event(self.identifier, type_, self.value, new, row.id, reason, row.ts))
        self.value = new

    def delta(self, found: Delta) -> None:
        self.moved += found.amount
        if found.amount:
            type_ = REINFORCEMENT if found.amount > 0 else CONTRADICTION
            self.step(type_, found.line, f"run {found.run}: {found.word}, {found.amount:+.2f}")

    def support(self, edge: Edge) -> None:
        type_ = REINFORCEMENT if self.cited else CITATION
        self.cited = True
        self.missing *= 1.0 - edge.weight
        how = _HOW[VIA[edge.via]].format(who=edge.actor or "somebody")
        self.step(type_, edge.citer, f"{how}, weight {edge.weight:.6g}")

    def doubt(self, edge: Edge) -> None:
        self.left *= 1.0 - edge.weight
        how = _HOW[VIA[edge.via]].format(who=edge.actor or "somebody")
        self.step(CONTRADICTION, edge.citer, f"{how}, weight {edge.weight:.6g}")

    def retraction(self, line: int) -> None:
        self.retracted = True
        self.step(CONTRADICTION, line, "retracted by its own actor")

    def cascade(self) -> None:
        effective = self.trust.at_line(self.line).effective
        path = cascade_path(self.trust, self.line)
        if len(path) < 2:
            return
        ratio = self.trust.ratio(path[1])
        names = [self.trust.row_at(line).id or "a row without id" for line in path]
        reason = f"cascade {_arrows(names)}: {names[1]} kept {ratio:.6g} of its asserted confidence"
        self.step(CONTRADICTION, root_cause(self.trust, path[-1]), reason, effective)


_HOW: Final[dict[str, str]] = {
    "cites": "cited by {who}",
    "supports": "supported by {who}",
    "source": "source of a commitment of {who}",
    "evidence": "evidence that {who} closed with",
    "approval": "approved by {who}",
    "contradicts": "contradicted by {who}",
    "retraction": "retracted by {who}",
}


def events_of(trust: Trust, identifier: str, at: datetime | None = None) -> list[Event]:
    """Return the events of one signal, in the order of the module's chain.

    Args:
        trust: the confidence of the ledger.
        identifier: of the signal.
        at: the instant of reading; with one, ``decay_applied`` comes last where time took something away. Its cause
            is the signal itself.

    Raises:
        KeyError: no row has that id.
    """
    told = _Teller(trust, identifier)
    found = trust.factors(told.line)
    steps: list[tuple[int, int, Any]] = [(delta.line, 0, (told.delta, delta)) for delta in found.deltas]
    steps += [(edge.citer, 1, (told.support, edge)) for edge in found.supports]
    steps += [(edge.citer, 2, (told.doubt, edge)) for edge in found.doubts]
    if found.retracted_by is not None:
        steps.append((found.retracted_by, 3, (told.retraction, found.retracted_by)))
    for _, _, (tell, what) in sorted(steps, key=lambda step: step[:2]):
        tell(what)
    told.cascade()
    if at is not None:
        standing = trust.standing(identifier)
        worn = decay(standing.ts, standing.half_life_days, at)
        if worn.factor < 1.0:
            told.step(DECAY, told.line, _decay_reason(worn, standing.half_life_days, at), told.value * worn.factor)
    return told.events


def cascade_path(trust: Trust, line: int) -> list[int]:
    """Return the lines from a row along what drags each down, to the one that lost by what was said about itself.

    At each step the greater loss decides: the row's own, or what it takes over from below.
    """
    path = [line]
    while (below := trust.weakest(path[-1])) is not None:
        path.append(below)
        standing = trust.at_line(below)
        taken_over = standing.effective / standing.own if standing.own > 0.0 else 1.0
        if standing.asserted <= 0.0 or standing.own / standing.asserted <= taken_over:
            break
    return path


def root_cause(trust: Trust, line: int) -> int:
    """Return the line of the row that took most from the own value of a row: a retraction, a doubt or a delta.

    Where nothing did, the row itself.
    """
    found = trust.factors(line)
    if found.retracted_by is not None:
        return found.retracted_by
    losses = [(edge.weight, -edge.citer) for edge in found.doubts]
    asserted = trust.at_line(line).asserted
    losses += [(-delta.amount / asserted, -delta.line) for delta in found.deltas if delta.amount < 0 < asserted]
    return -max(losses)[1] if losses else line


def _arrows(names: list[str]) -> str:
    if len(names) > PATH_SHOWN:
        half = PATH_SHOWN // 2
        names = [*names[:half], f"{len(names) - 2 * half} more", *names[-half:]]
    return " -> ".join(names)


def _decay_reason(worn: Decay, half_life_days: int, at: datetime) -> str:
    age = lasting(worn.age_days * 86_400)
    return f"{age} old at {format_instant(at)}, half-life {half_life_days} days: x {worn.factor:.6g}"
