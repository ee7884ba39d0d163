"""Which row bears on which: supports, doubts, deltas and levels, collected in file order (ledger spec §10, §12, §16).

Nothing is weighed here; :mod:`troth.ledger.confidence` does that. A row is known by its line. Edges lie in flat
arrays, because a ledger may have millions of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from troth.ledger.chain import Warning_
from troth.ledger.chains import (
    DEFAULT_TERMS,
    HUMAN,
    MACHINE,
    UNVERIFIED,
    Terms,
    assess,
    genesis_terms,
    stored_half_life,
)
from troth.ledger.codes import WARNINGS
from troth.ledger.fields import is_blank
from troth.ledger.genesis_event import AUTHOR
from troth.ledger.replay import Signal, read_kind
from troth.ledger.rows import Row
from troth.ledger.values import is_human

SUPPORT: Final = 0
OWN: Final = 1
DOUBT: Final = 2
"""Kinds of edges. A support by the target's own actor (``OWN``) counts for the cascade alone."""

VIA: Final = ("cites", "supports", "source", "evidence", "approval", "contradicts", "retraction")
"""How one row bears on another: a relation of that type, or what its operation implies."""

_RELATIONS: Final = {"cites": 0, "supports": 1, "contradicts": 5}
_SOURCE: Final = 2
_EVIDENCE: Final = 3
_APPROVAL: Final = 4
_RETRACTION: Final = 6

DELTAS: Final[dict[str, tuple[str, dict[str, float]]]] = {
    "verdict": ("verdict", {"SURVIVED": 0.10, "COMPROMISED": -0.30, "INCONCLUSIVE": 0.0}),
    "selection": ("result", {"winner": 0.10, "loser": -0.05}),
}
"""Kind of annotation -> the member of its ``meta`` that decides, and what each word adds (§10, §12)."""

VALIDATOR: Final = "system:validator"
"""Its approval raises evidence to ``machine_verified`` (§9)."""


class Delta(NamedTuple):
    """What one run said about one row: the saying row's line, the amount, the run, the word."""

    line: int
    amount: float
    run: str
    word: str


class Raised(NamedTuple):
    """A verification level and the line of the row that brought it, the row's own for a level at creation."""

    level: int
    line: int


class Stray(NamedTuple):
    """A row that bears on others and cannot be found by its id, because it has none or an earlier row has it."""

    id: str | None
    ts: str | None
    actor: str | None


class TrustEdges:
    """Collects, row by row in file order, all that confidence is computed from.

    Args:
        signals: the replayed rows by id. It holds the first row of every id up to the one that is applied; later
            ones do no harm.

    ``citer``, ``target``, ``kind``, ``via`` and ``who`` describe edge *e* from 0, ascending by citer; ``who``
    numbers ``actors``. ``head[line]`` is 1 + the newest edge onto that line, 0 for none; ``following[e]`` 1 + the
    next older edge onto the same target. ``changes`` holds the lines where terms changed, and the terms from there on.
    """

    def __init__(self, signals: Mapping[str, Signal]) -> None:
        self._signals = signals
        self.lines = 0
        self.terms: Terms = DEFAULT_TERMS
        self.changes: list[tuple[int, Terms]] = [(0, DEFAULT_TERMS)]
        self.warnings: list[Warning_] = []
        self.asserted: dict[int, float] = {}
        self.half_lives: dict[int, int] = {}
        self.levels: dict[int, Raised] = {}
        self.citer: array[int] = array("I")
        self.target: array[int] = array("I")
        self.kind: array[int] = array("B")
        self.via: array[int] = array("B")
        self.who: array[int] = array("I")
        self.following: array[int] = array("I")
        self.head: array[int] = array("I", bytes(4 * 1024))
        self.actors: list[str | None] = []
        self.runs: dict[int, str] = {}
        self.deltas: dict[int, list[Delta]] = {}
        self.zeroed: dict[int, int] = {}
        self.strays: dict[int, Stray] = {}
        self._numbers: dict[str | None, int] = {}
        self._submitted: dict[str, str] = {}
        self._spoken: set[tuple[int, str]] = set()
        self._speaker = 0
        self._actor: str | None = None
        self._number = 0
        self._run: str | None = None

    def apply(self, row: Row, has_effect: bool) -> None:
        """Take the next row.

        Args:
            row: it.
            has_effect: replay listed no anomaly for it. Without effect it implies no edge, says no verdict and
                changes no terms; its relations count (§16).
        """
        value = row.value
        self.lines = row.line
        if "trust" in value:
            self._trust(row)
        if "relations" in value:
            self._relations(row)
        if has_effect:
            op = row.op
            if op == "capture":
                if value["actor"] == AUTHOR:
                    self._genesis(row)
            elif op not in _IDLE:
                self._effect(row, op)

    def _genesis(self, row: Row) -> None:
        terms = genesis_terms(row.value, self.terms)
        if terms != self.terms:
            self.terms = terms
            self.changes.append((row.line, terms))

    def _trust(self, row: Row) -> None:
        value = row.value
        found = assess(value, self.terms.weights)
        if found.scored:
            self.asserted[row.line] = found.value
            if found.level:
                self.levels[row.line] = Raised(found.level, row.line)
            if found.mismatch:
                self._warn(row, "trust_mismatch", f"{found.stored!r} is stored and {found.recomputed!r} is computed")
        days, invalid = stored_half_life(value["trust"])
        if days is not None:
            self.half_lives[row.line] = days
        elif invalid:
            self._warn(row, "half_life", WARNINGS["half_life"])

    def _relations(self, row: Row) -> None:
        relations = row.value["relations"]
        if type(relations) is not list:
            return
        for item in relations:
            if type(item) is not dict:
                continue
            kind, target = item.get("type"), item.get("targetId")
            if type(kind) is str and kind in _RELATIONS and type(target) is str:
                self._edge(row, target, _RELATIONS[kind])

    def _effect(self, row: Row, op: str | None) -> None:
        payload = row.value["payload"]
        if op == "commit":
            self._edge(row, payload["source"], _SOURCE)
        elif op == "submit":
            self._submitted[payload["commitment"]] = payload["evidence"]
        elif op == "approve":
            evidence = self._submitted[payload["commitment"]]
            self._edge(row, evidence, _APPROVAL)
            self._raise(row, evidence)
        elif op == "close":
            if is_blank(payload.get("duplicate_of")):
                self._edge(row, payload["evidence"], _EVIDENCE)
        else:
            kind = read_kind(op, payload)
            if kind == "retraction":
                self._retraction(row, payload["target"])
            elif kind in DELTAS:
                self._delta(row, payload, *DELTAS[kind])

    def _edge(self, row: Row, target: str, via: int) -> None:
        """Draw an edge to an earlier row; one to any other carries no trust."""
        aim = self._signals.get(target)
        line = row.line
        if aim is None or aim.line >= line:
            return
        if line != self._speaker:
            self._speak(row)
        if via < _RELATIONS["contradicts"]:
            kind = OWN if (aim.actor or None) == self._actor else SUPPORT
        else:
            kind = DOUBT
            if self._run is not None:
                self.runs[line] = self._run
        goal = aim.line
        head = self.head
        if goal >= len(head):
            head.frombytes(bytes(4 * max(len(head), goal + 1 - len(head))))
        self.following.append(head[goal])
        self.citer.append(line)
        head[goal] = len(self.citer)
        self.target.append(goal)
        self.kind.append(kind)
        self.via.append(via)
        self.who.append(self._number)

    def _speak(self, row: Row) -> None:
        """Find out once who writes a row that bears on others."""
        self._speaker = row.line
        self._actor = actor_of(row.value)
        self._number = self._numbers.setdefault(self._actor, len(self.actors))
        if self._number == len(self.actors):
            self.actors.append(self._actor)
        self._run = run_of(row.value)
        known = self._signals.get(row.id) if row.id is not None else None
        if known is None or known.line != row.line:
            ts = row.value.get("ts")
            self.strays[row.line] = Stray(row.id, ts if type(ts) is str else None, self._actor)

    def _raise(self, row: Row, evidence: str) -> None:
        """Let an approval raise the level of what it approved: a person's not that of their own work (§9, §16)."""
        aim, actor = self._signals[evidence], row.value["actor"]
        level = MACHINE if actor == VALIDATOR else UNVERIFIED
        if is_human(actor) and actor != aim.actor:
            level = HUMAN
        before = self.levels.get(aim.line)
        if level > (before.level if before is not None else UNVERIFIED):
            self.levels[aim.line] = Raised(level, row.line)

    def _retraction(self, row: Row, target: str) -> None:
        aim = self._signals[target]
        if (aim.actor or None) == actor_of(row.value):
            self.zeroed.setdefault(aim.line, row.line)
        else:
            self._edge(row, target, _RETRACTION)

    def _delta(self, row: Row, payload: dict[str, Any], member: str, words: Mapping[str, float]) -> None:
        actor, aim = row.value["actor"], self._signals[payload["target"]]
        meta, run = payload.get("meta"), run_of(row.value)
        word = meta.get(member) if type(meta) is dict else None
        if run is None or type(word) is not str or word not in words:
            return
        if not actor.startswith("system:") or actor == aim.actor or (aim.line, run) in self._spoken:
            return
        self._spoken.add((aim.line, run))
        self.deltas.setdefault(aim.line, []).append(Delta(row.line, words[word], run, word))

    def _warn(self, row: Row, name: str, message: str) -> None:
        self.warnings.append(Warning_(row.line, row.id, name, message))


_IDLE: Final = frozenset({"claim", "release", "reopen"})
"""Operations that bear on no row by themselves."""


def actor_of(value: Mapping[str, Any]) -> str | None:
    """Return who wrote a row; rows that name nobody have one actor together, ``None``."""
    actor = value.get("actor")
    return actor if type(actor) is str and actor else None


def run_of(value: Mapping[str, Any]) -> str | None:
    """Return the run that a row belongs to, by ``payload.meta.run`` (§16)."""
    payload = value.get("payload")
    meta = payload.get("meta") if type(payload) is dict else None
    run = meta.get("run") if type(meta) is dict else None
    return run if type(run) is str and run else None
