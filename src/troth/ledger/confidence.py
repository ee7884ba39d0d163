"""Effective and current confidence, computed on replay and never stored (ledger spec §10 [D33] [D35], §16 Trust).

Rows are taken in file order by :class:`~troth.ledger.trust_edges.TrustEdges`; :class:`Trust` weighs them. A row's own
value comes of what later rows say about it, newest first; then what a row supports and has lost drags it down,
oldest first. Both passes look at each edge a fixed number of times.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from troth.core.instants import parse_instant
from troth.ledger.chain import Warning_
from troth.ledger.chains import LEVELS, UNSCORED, Terms
from troth.ledger.replay import Replay, Signal, State, newest_first
from troth.ledger.rows import Row
from troth.ledger.trust import HALF_LIFE_DAYS
from troth.ledger.trust_edges import DOUBT, SUPPORT, Delta, Raised, Stray, TrustEdges

SUPPORT_WEIGHT: Final = 0.10
"""How much of what is missing a supporter of own confidence 1 takes away."""

DOUBT_WEIGHT: Final = 0.30
"""How much a doubter of own confidence 1 takes away of what is there."""

CASCADE: Final = 0.5
"""How much of the loss of what it supports a row takes over."""

_SECONDS_PER_DAY: Final = 86_400.0
_LONGEST_HALF_LIFE: Final = 2**53  # longer ones decay no further within a double


class Standing(NamedTuple):
    """What one signal is worth.

    ``asserted``, ``own`` and ``effective`` are confidences in [0, 1]; ``scored`` tells whether the asserted one is
    the row's, or what every row without a score has. ``verification`` is the highest level ever reached. ``ts`` is
    as written, ``half_life_days`` resolved.
    """

    asserted: float
    scored: bool
    own: float
    effective: float
    verification: str
    ts: str | None
    half_life_days: int


class Decay(NamedTuple):
    """How far time has worn a signal down: ``factor`` in [0, 1], and the name of a warning or none."""

    age_days: float
    factor: float
    warning: str | None


class Edge(NamedTuple):
    """One row bearing on another, both by line. ``weight`` is what the citer's own confidence makes of it."""

    number: int
    citer: int
    target: int
    kind: int
    via: int
    actor: str | None
    weight: float


class Factors(NamedTuple):
    """What moves a signal's own value: for each actor the strongest support and the strongest doubt, in file order,
    and what runs said. ``retracted_by`` is the line of a retraction by the signal's own actor."""

    deltas: list[Delta]
    supports: list[Edge]
    doubts: list[Edge]
    retracted_by: int | None


def decay(ts: str | None, half_life_days: int, at: datetime) -> Decay:
    """Return what time makes of a signal (§10).

    An instant in the future, and one that is no instant, gives age 0 with the warning ``future_timestamp`` or
    ``bad_timestamp``.
    """
    written = parse_instant(ts) if ts is not None else None
    if written is None:
        return Decay(0.0, 1.0, "bad_timestamp")
    age = (at - written).total_seconds() / _SECONDS_PER_DAY
    if age < 0.0:
        return Decay(0.0, 1.0, "future_timestamp")
    return Decay(age, 2.0 ** -(age / min(half_life_days, _LONGEST_HALF_LIFE)), None)


def current(effective: float, ts: str | None, half_life_days: int, at: datetime) -> float:
    """Return effective x 2^(-age / half-life), the age in fractional days (§10)."""
    return effective * decay(ts, half_life_days, at).factor


class Trust:
    """The confidence of every signal of a ledger, at one moment.

    Args:
        edges: what was collected; it may go on collecting, but this then no longer answers for it.
        signals: the replayed rows by id.
        half_life_days: the default of a genesis key that the caller holds; else the latest genesis event's, else 90.
    """

    def __init__(self, edges: TrustEdges, signals: Mapping[str, Signal], half_life_days: int | None = None) -> None:
        self._edges = edges
        self._signals = signals
        self.default_half_life = half_life_days or edges.terms.half_life_days or HALF_LIFE_DAYS
        last = signals[next(newest_first(signals))].line if signals else 0
        size = max(edges.lines, last) + 1
        self._asserted = array("d", [UNSCORED]) * size
        for line, value in edges.asserted.items():
            self._asserted[line] = value
        self._own = self._own_values()
        self._effective = array("d", self._own)
        self._weakest: dict[int, int] = {}
        self._cascade()
        self._ids: dict[int, str] | None = None

    @property
    def warnings(self) -> list[Warning_]:
        """What a reader warns of: ``trust_mismatch``, ``half_life`` (§9, §10)."""
        return self._edges.warnings

    @property
    def changes(self) -> list[tuple[int, Terms]]:
        """The terms in force from each line on, ascending; the first are the specification's, from line 0."""
        return self._edges.changes

    # What a signal is worth --------------------------------------------------------------------------------------

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._signals

    def __len__(self) -> int:
        return len(self._signals)

    def __iter__(self) -> Iterator[str]:
        """Yield the ids in file order."""
        return iter(self._signals)

    def standing(self, identifier: str) -> Standing:
        """Return what a signal is worth.

        Raises:
            KeyError: no row has that id.
        """
        return self.at_line(self._signals[identifier].line)._replace(ts=self._signals[identifier].ts)

    def standings(self) -> Iterator[tuple[str, Standing]]:
        """Yield id and worth of every signal in file order."""
        for identifier, signal in self._signals.items():
            yield identifier, self.at_line(signal.line)._replace(ts=signal.ts)

    def at_line(self, line: int) -> Standing:
        """Return what the row of a line is worth; its timestamp is not known here."""
        edges = self._edges
        raised = edges.levels.get(line)
        return Standing(
            self._asserted[line],
            line in edges.asserted,
            self._own[line],
            self._effective[line],
            LEVELS[raised.level if raised is not None else 0],
            None,
            edges.half_lives.get(line, self.default_half_life),
        )

    # Why -----------------------------------------------------------------------------------------------------------

    def line_of(self, identifier: str) -> int:
        """Return the line of a signal.

        Raises:
            KeyError: no row has that id.
        """
        return self._signals[identifier].line

    def row_at(self, line: int) -> Stray:
        """Return id, timestamp and actor of the row of a line."""
        stray = self._edges.strays.get(line)
        if stray is not None:
            return stray
        if self._ids is None:
            self._ids = {signal.line: identifier for identifier, signal in self._signals.items()}
        identifier = self._ids[line]
        signal = self._signals[identifier]
        return Stray(identifier, signal.ts, signal.actor)

    def factors(self, line: int) -> Factors:
        """Return what moves the own value of the row of a line."""
        supports, doubts = self._strongest(line, self._own)
        return Factors(
            self._edges.deltas.get(line, []),
            [self._edge(number) for number in supports],
            [self._edge(number) for number in doubts],
            self._edges.zeroed.get(line),
        )

    def onto(self, line: int) -> list[Edge]:
        """Return every edge onto the row of a line in file order, those that do not count too."""
        return [self._edge(number) for number in reversed(list(self._numbers(line)))]

    def edges(self) -> Iterator[Edge]:
        """Yield every edge in file order."""
        return map(self._edge, range(len(self._edges.citer)))

    def runs_on(self, line: int) -> set[str]:
        """Return the runs that judged the row of a line; their doubts about it do not count beside that."""
        return {delta.run for delta in self._edges.deltas.get(line, ())}

    def run_of(self, line: int) -> str | None:
        """Return the run that a doubting row belongs to."""
        return self._edges.runs.get(line)

    def weakest(self, line: int) -> int | None:
        """Return the line of what drags the row of a line down: of all it supports, what lost most; or ``None``."""
        return self._weakest.get(line)

    def ratio(self, line: int) -> float:
        """Return how much of its asserted confidence the row of a line has kept: min(1, effective / asserted)."""
        asserted = self._asserted[line]
        return min(1.0, self._effective[line] / asserted) if asserted > 0.0 else 1.0

    def level(self, line: int) -> Raised | None:
        """Return the level above ``unverified`` of the row of a line, and the line that brought it."""
        return self._edges.levels.get(line)

    # Weighing ------------------------------------------------------------------------------------------------------

    def base(self, line: int) -> float:
        """Return clamp(asserted + the sum of deltas)."""
        moved = sum(delta.amount for delta in self._edges.deltas.get(line, ()))
        return min(1.0, max(0.0, self._asserted[line] + moved))

    def _own_values(self) -> array[float]:
        """Weigh newest to oldest, so that each citer is finished before what it cites."""
        edges = self._edges
        own = array("d", self._asserted)
        for line in edges.deltas:
            own[line] = self.base(line)
        for line in edges.zeroed:
            own[line] = 0.0
        head, following, kind, citer, zeroed = edges.head, edges.following, edges.kind, edges.citer, edges.zeroed
        for line in range(min(len(head), len(own)) - 1, 0, -1):
            newest = head[line]
            if not newest or line in zeroed:
                continue
            base, number = own[line], newest - 1
            if not following[number] and kind[number] != DOUBT:  # one edge that is no doubt needs no grouping
                if kind[number] == SUPPORT:
                    own[line] = own_value(base, 1.0 - SUPPORT_WEIGHT * own[citer[number]], 1.0)
                continue
            supports, doubts = self._strongest(line, own)
            missing = left = 1.0
            for number in supports:
                missing *= 1.0 - SUPPORT_WEIGHT * own[citer[number]]
            for number in doubts:
                left *= 1.0 - DOUBT_WEIGHT * own[citer[number]]
            own[line] = own_value(base, missing, left)
        return own

    def _numbers(self, line: int) -> Iterator[int]:
        """Yield the edges onto a line, newest first."""
        head, following = self._edges.head, self._edges.following
        newest = head[line] if line < len(head) else 0
        while newest:
            yield newest - 1
            newest = following[newest - 1]

    def _strongest(self, line: int, own: array[float]) -> tuple[list[int], list[int]]:
        """Return the edges that count: of each actor the strongest support and doubt, the first of equals."""
        edges = self._edges
        silent = self.runs_on(line) if line in edges.deltas else ()
        best: tuple[dict[int, int], dict[int, int]] = ({}, {})
        for number in self._numbers(line):
            kind = edges.kind[number]
            if kind == SUPPORT:
                found = best[0]
            elif kind == DOUBT and not (silent and edges.runs.get(edges.citer[number]) in silent):
                found = best[1]
            else:
                continue
            who = edges.who[number]
            other = found.get(who)
            if other is None or own[edges.citer[number]] >= own[edges.citer[other]]:
                found[who] = number
        return sorted(best[0].values()), sorted(best[1].values())

    def _cascade(self) -> None:
        """Go oldest to newest: whoever supports what has lost, loses with it."""
        edges, asserted, effective = self._edges, self._asserted, self._effective
        citer = 0
        least, weakest = 1.0, 0
        for number, source in enumerate(edges.citer):
            if source != citer:
                if weakest:
                    self._drag(citer, weakest, least)
                citer, least, weakest = source, 1.0, 0
            if edges.kind[number] != DOUBT:
                target = edges.target[number]
                if asserted[target] > 0.0:
                    ratio = effective[target] / asserted[target]
                    if ratio < least:
                        least, weakest = ratio, target
        if weakest:
            self._drag(citer, weakest, least)

    def _drag(self, line: int, weakest: int, ratio: float) -> None:
        self._effective[line] = self._own[line] * (1.0 - CASCADE * (1.0 - ratio))
        self._weakest[line] = weakest

    def _edge(self, number: int) -> Edge:
        edges = self._edges
        kind, citer = edges.kind[number], edges.citer[number]
        weight = DOUBT_WEIGHT if kind == DOUBT else SUPPORT_WEIGHT if kind == SUPPORT else 0.0
        return Edge(
            number,
            citer,
            edges.target[number],
            kind,
            edges.via[number],
            edges.actors[edges.who[number]],
            weight * self._own[citer],
        )


def own_value(base: float, missing: float, left: float) -> float:
    """Return (1 - (1 - base) x missing) x left (§10); ``base`` to the last digit where neither takes anything away.

    Args:
        base: asserted confidence with deltas.
        missing: the product of 1 - the weight of each supporter.
        left: the product of 1 - the weight of each doubter.
    """
    return (base if missing == 1.0 else 1.0 - (1.0 - base) * missing) * left


def collect(rows: Iterable[Row], state: State) -> TrustEdges:
    """Return what the rows of a replayed ledger say about each other; ``state`` is their replay."""
    edges = TrustEdges(state.signals)
    without = {anomaly.line for anomaly in state.anomalies}
    for row in rows:
        edges.apply(row, row.line not in without)
    return edges


def trust_of(rows: Iterable[Row], half_life_days: int | None = None) -> Trust:
    """Return the confidence of every signal of a ledger: replay and weighing in one."""
    run = Replay()
    edges = TrustEdges(run.state.signals)
    anomalies = run.state.anomalies
    for row in rows:
        before = len(anomalies)
        run.apply(row)
        edges.apply(row, len(anomalies) == before)
    return Trust(edges, run.state.signals, half_life_days)
