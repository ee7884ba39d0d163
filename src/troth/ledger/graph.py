"""Which row names which: references of every kind, followed down to premises and up to consequences (ledger spec §8).

The graph says who names whom; what that is worth is the business of :mod:`troth.ledger.confidence`. A row is known
by its line. References lie in flat arrays, because a ledger may have millions of them. Children are the inversion of
parents, and ``children`` that a row stores are not looked at ([D27]).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from troth.ledger.fields import ON_COMMITMENT, is_blank, read_op, read_target
from troth.ledger.replay import Signal, parents_of, read_kind
from troth.ledger.rows import Row

VIA: Final = (
    "commitment", "source", "evidence", "duplicate_of", "target", "parent", "relation", "premise", "ref",
    "step", "judgement",
)  # fmt: skip
"""How a row names another. ``parent`` is ``trace.parent``, ``premise`` ``sourceIds``, ``ref`` ``payload.refs``.
``step`` is the ``commitment`` of an operation on it; ``judgement`` the target of a validation, verdict or selection."""

_CODE: Final = {name: code for code, name in enumerate(VIA)}
_COMMITMENT, _TARGET, _PARENT = _CODE["commitment"], _CODE["target"], _CODE["parent"]
_RELATION, _PREMISE, _REF = _CODE["relation"], _CODE["premise"], _CODE["ref"]
_STEP, _JUDGEMENT = _CODE["step"], _CODE["judgement"]
_PLAIN: Final = ("source", "evidence", "duplicate_of")
_DERIVING: Final = (_PARENT, _PREMISE)

JUDGING_KINDS: Final = frozenset({"validation", "verdict", "selection"})
"""Annotations that what they judge rests on, rather than the other way round."""

CONTRADICTS: Final = "contradicts"
RETRACTION: Final = "retraction"


class Edge(NamedTuple):
    """One row naming another.

    ``citer`` is the line of the row that names, ``target`` the line of the row named (``None``: no such row),
    ``name`` the id as it was written. ``via`` is one of :data:`VIA`, ``relation`` the type of a relation.
    """

    citer: int
    target: int | None
    name: str
    via: str
    relation: str | None

    @property
    def standing(self) -> str:
        """Return ``earlier``, as it should be, or what a hostile row brings: ``self``, ``later`` or ``absent``."""
        if self.target is None:
            return "absent"
        return "earlier" if self.target < self.citer else "self" if self.target == self.citer else "later"

    @property
    def upside(self) -> bool:
        """Tell whether the row named rests on the one that names it: a commitment on its steps, work on judgements."""
        return self.via in ("step", "judgement")


class Contradiction(NamedTuple):
    """A row that disputes.

    ``name`` and ``target`` are the id and line of what it disputes, both ``None`` for a row of level
    ``contradiction`` that says no target. ``withdrawn`` is ``retracted``, ``contradicted`` or ``None`` and ``by``
    the line of the row that did it; a retraction counts before a contradiction.
    """

    line: int
    name: str | None
    target: int | None
    level: bool
    withdrawn: str | None
    by: int | None


class Place(NamedTuple):
    """A row that a walk came to: its line, and how many steps from the root at the least."""

    line: int
    depth: int


class Link(NamedTuple):
    """A step of a walk, from the row asked about to one that stands under or on it.

    ``to`` is ``None`` when no such row exists. ``first`` tells that the walk came to ``to`` by this link; every other
    link to it is a repetition.
    """

    origin: int
    to: int | None
    edge: Edge
    first: bool


class Walk(NamedTuple):
    """What stands under a row (``why``) or on it (``impact``), the nearest first.

    ``deeper`` tells that the limit of depth kept rows out, ``more`` that the limit of rows or links did.
    """

    root: int
    places: list[Place]
    links: list[Link]
    deeper: bool
    more: bool


class Graph:
    """Collects references row by row in file order, then answers.

    Args:
        signals: the replayed rows by id, complete when the first question is asked.

    A row without an id, or with one that an earlier row has, can name others and cannot be named.
    """

    def __init__(self, signals: Mapping[str, Signal]) -> None:
        self._signals = signals
        self._lines = 0
        self._citer: array[int] = array("I")
        self._name: list[str] = []
        self._via: array[int] = array("B")
        self._relation: array[int] = array("I")  # 1 + place among the types, 0 for none
        self._types: list[str] = []
        self._numbers: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._levels: list[int] = []
        self._retractions: set[int] = set()
        self._target: array[int] = array("I")  # line, 0 for none; filled when the first question is asked
        self._head: array[int] = array("I")  # by line: 1 + the newest reference to it, 0 for none
        self._following: array[int] = array("I")  # 1 + the next older reference to the same line

    def apply(self, row: Row, has_effect: bool = True) -> None:
        """Take the next row; without effect (an anomaly of replay) it retracts nothing, while its references stand."""
        self._lines = row.line
        line = row.line
        for code, name, relation in _references(row.value):
            self._citer.append(line)
            self._name.append(self._names.setdefault(name, name))
            self._via.append(code)
            self._relation.append(0 if relation is None else 1 + self._number(relation))
        if row.value.get("observationLevel") == "contradiction":
            self._levels.append(line)
        payload = row.value.get("payload")
        op = row.value.get("op")
        if not has_effect or type(payload) is not dict or read_op(op) != "annotate":
            return
        if read_kind(op, payload) == RETRACTION:
            self._retractions.add(line)

    def _number(self, relation: str) -> int:
        number = self._numbers.setdefault(relation, len(self._types))
        if number == len(self._types):
            self._types.append(relation)
        return number

    def _invert(self) -> None:
        """Find the rows that are named and turn all references around, as far as that is not done yet."""
        done = len(self._target)
        if done == len(self._citer) and len(self._head) > self._lines:
            return
        self._head.frombytes(bytes(4 * (self._lines + 1 - len(self._head))))
        if done:  # what was absent may have come meanwhile
            self._target, self._following = array("I"), array("I")
            self._head = array("I", bytes(4 * (self._lines + 1)))
        head, signals = self._head, self._signals
        for number, name in enumerate(self._name):
            aim = signals.get(name)
            line = aim.line if aim is not None and aim.line <= self._lines else 0
            self._target.append(line)
            self._following.append(head[line] if line else 0)
            if line:
                head[line] = number + 1

    def _edge(self, number: int) -> Edge:
        relation = self._relation[number]
        return Edge(
            self._citer[number],
            self._target[number] or None,
            self._name[number],
            VIA[self._via[number]],
            self._types[relation - 1] if relation else None,
        )

    def named_by(self, line: int) -> Iterator[Edge]:
        """Yield the references that a row makes, in the order of the envelope's tables."""
        self._invert()
        number = bisect_left(self._citer, line)
        while number < len(self._citer) and self._citer[number] == line:
            yield self._edge(number)
            number += 1

    def naming(self, line: int) -> Iterator[Edge]:
        """Yield the references made to a row, the newest first."""
        self._invert()
        number = self._head[line] if 0 < line < len(self._head) else 0
        while number:
            yield self._edge(number - 1)
            number = self._following[number - 1]

    def children(self, line: int) -> list[int]:
        """Return the lines of the rows that name this one as a parent, in file order ([D27])."""
        return sorted({edge.citer for edge in self.naming(line) if edge.via == "parent"})

    def derived_from(self, line: int) -> list[int]:
        """Return the lines of all rows derived from one, transitively over parents and premises, in file order."""
        self._invert()
        found = {line}
        waiting = [line]
        while waiting:
            number = self._head[waiting.pop()]
            while number:
                citer = self._citer[number - 1]
                if self._via[number - 1] in _DERIVING and citer not in found:
                    found.add(citer)
                    waiting.append(citer)
                number = self._following[number - 1]
        found.discard(line)
        return sorted(found)

    def contradictions(self) -> list[Contradiction]:
        """Return every row of that level and every relation of that type, in file order, and if it still stands."""
        self._invert()
        found: list[Contradiction] = []
        levels = set(self._levels)
        disputing: set[int] = set()
        kind = self._numbers.get(CONTRADICTS, -1) + 1
        for number in range(len(self._citer)):
            if kind and self._relation[number] == kind:
                edge = self._edge(number)
                disputing.add(edge.citer)
                withdrawn, by = self._withdrawn(edge.citer)
                found.append(Contradiction(edge.citer, edge.name, edge.target, edge.citer in levels, withdrawn, by))
        found.extend(
            Contradiction(line, None, None, True, *self._withdrawn(line))
            for line in self._levels
            if line not in disputing
        )
        return sorted(found, key=lambda one: one.line)

    def _withdrawn(self, line: int) -> tuple[str | None, int | None]:
        retracted = [
            edge.citer for edge in self.naming(line) if edge.via == "target" and edge.citer in self._retractions
        ]
        if retracted:
            return "retracted", min(retracted)
        disputed = [edge.citer for edge in self.naming(line) if edge.relation == CONTRADICTS and edge.citer != line]
        return ("contradicted", min(disputed)) if disputed else (None, None)

    def why(self, line: int, *, depth: int, rows: int) -> Walk:
        """Return what stands under a row: what it names, the steps of a commitment, the judgements on a row.

        Args:
            line: the row.
            depth: how many steps to go at most.
            rows: how many rows to come to at most, the root included, and four times as many links.
        """
        return self._walk(line, depth, rows, down=True)

    def impact(self, line: int, *, depth: int, rows: int) -> Walk:
        """Return what stands on a row: every row that :meth:`why` leads from to this one. Arguments as there."""
        return self._walk(line, depth, rows, down=False)

    def _beside(self, line: int, down: bool) -> Iterator[tuple[int | None, Edge]]:
        for edge in self.named_by(line):
            if edge.upside != down:
                yield edge.target, edge
        turned = [edge for edge in self.naming(line) if edge.upside == down]
        for edge in reversed(turned):
            yield edge.citer, edge

    def _walk(self, root: int, depth: int, rows: int, *, down: bool) -> Walk:
        places = [Place(root, 0)]
        seen = {root}
        links: list[Link] = []
        deeper = more = False
        for place in places:  # it grows while it is read: the nearest rows come first
            for to, edge in self._beside(place.line, down):
                if to is None and not down:
                    continue
                fresh = to is not None and to not in seen
                if place.depth >= depth:
                    deeper = True
                    break
                if len(links) >= 4 * rows:
                    more = True
                    break
                if fresh and len(places) >= rows:
                    more = True
                    continue
                if to is not None and fresh:
                    seen.add(to)
                    places.append(Place(to, place.depth + 1))
                links.append(Link(place.line, to, edge, fresh))
        return Walk(root, places, links, deeper, more)


def graph_of(rows: Iterable[Row], signals: Mapping[str, Signal], without_effect: frozenset[int]) -> Graph:
    """Return the graph of rows in file order; ``without_effect`` holds the lines of replay's anomalies."""
    graph = Graph(signals)
    for row in rows:
        graph.apply(row, row.line not in without_effect)
    return graph


def naming(rows: Iterable[Row], identifier: str) -> Iterator[tuple[Row, list[str]]]:
    """Yield the rows that name one by its id, in file order, and how: types of relations, else of :data:`VIA`.

    A single question needs no graph. Steps of a commitment are its history and left out.
    """
    for row in rows:
        ways = {
            relation or VIA[code]
            for code, name, relation in _references(row.value)
            if name == identifier and code != _STEP
        }
        if ways:
            yield row, sorted(ways)


def _references(value: dict[str, Any]) -> Iterator[tuple[int, str, str | None]]:
    """Yield every reference of a row with its code and, of a relation, the type; what has no such form is none."""
    payload, written_op = value.get("payload"), value.get("op")
    op = read_op(written_op)
    fields: dict[str, Any] = payload if type(payload) is dict else {}
    if _is_name(fields.get("commitment")):
        yield _STEP if type(op) is str and op in ON_COMMITMENT else _COMMITMENT, fields["commitment"], None
    target = read_target(written_op, fields)
    lent = target is not None and is_blank(fields.get("target"))  # a version 1 note's source is its target
    for name in _PLAIN:
        if _is_name(fields.get(name)) and not (lent and name == "source"):
            yield _CODE[name], fields[name], None
    if _is_name(target):
        judging = op == "annotate" and read_kind(written_op, fields) in JUDGING_KINDS
        yield _JUDGEMENT if judging else _TARGET, target, None
    for parent in parents_of(value):
        yield _PARENT, parent, None
    relations = value.get("relations")
    if type(relations) is list:
        for item in relations:
            if type(item) is dict and type(item.get("type")) is str and _is_name(item.get("targetId")):
                yield _RELATION, item["targetId"], item["type"]
    for code, names in ((_PREMISE, value.get("sourceIds")), (_REF, fields.get("refs"))):
        if type(names) is list:
            for name in names:
                if _is_name(name):
                    yield code, name, None


def _is_name(value: Any) -> bool:
    return type(value) is str and value != ""
