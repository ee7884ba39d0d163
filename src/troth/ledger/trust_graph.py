"""The graph of support and doubt, whole or around one signal, and how it is drawn (ledger spec §10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troth.core.words import charted
from troth.ledger.confidence import Edge, Trust, current
from troth.ledger.trust_edges import DOUBT, VIA


@dataclass(frozen=True, slots=True)
class Graph:
    """Rows, by line, and the edges among them, both in file order; ``counted`` holds the numbers of edges that do."""

    trust: Trust
    lines: list[int]
    edges: list[Edge]
    counted: frozenset[int]

    def name(self, line: int) -> str:
        """Return the id of a row, or its line where it has none."""
        return self.trust.row_at(line).id or f"line {line}"

    def as_json(self, at: datetime) -> dict[str, Any]:
        """Return ``nodes`` and ``edges``; an edge leads from the row that speaks to the one it speaks of."""
        return {
            "nodes": [self._node(line, at) for line in self.lines],
            "edges": [
                {
                    "from": self.name(edge.citer),
                    "to": self.name(edge.target),
                    "type": "doubt" if edge.kind == DOUBT else "support",
                    "via": VIA[edge.via],
                    "actor": edge.actor,
                    "weight": edge.weight,
                    "counts": edge.number in self.counted,
                }
                for edge in self.edges
            ],
        }

    def _node(self, line: int, at: datetime) -> dict[str, Any]:
        standing = self.trust.at_line(line)
        return {
            "id": self.name(line),
            "asserted": standing.asserted,
            "own": standing.own,
            "effective": standing.effective,
            "current": current(standing.effective, self.trust.row_at(line).ts, standing.half_life_days, at),
            "verification": standing.verification,
            "scored": standing.scored,
        }


def graph_of(trust: Trust, identifier: str | None = None) -> Graph:
    """Return the whole graph, or what bears on one signal: who speaks of it, who of them, and what drags it down.

    Raises:
        KeyError: no row has that id.
    """
    if identifier is None:
        edges = list(trust.edges())
        lines = sorted({edge.citer for edge in edges} | {edge.target for edge in edges})
    else:
        start = trust.line_of(identifier)
        reached = {start, *dragged_by(trust, start)}
        waiting = list(reached)
        found: dict[int, Edge] = {}
        while waiting:
            for edge in trust.onto(waiting.pop()):
                found[edge.number] = edge
                if edge.citer not in reached:
                    reached.add(edge.citer)
                    waiting.append(edge.citer)
        edges, lines = [found[number] for number in sorted(found)], sorted(reached)
    counted: set[int] = set()
    for target in {edge.target for edge in edges}:
        factors = trust.factors(target)
        counted.update(edge.number for edge in (*factors.supports, *factors.doubts))
    return Graph(trust, lines, edges, frozenset(counted))


def dragged_by(trust: Trust, line: int) -> list[int]:
    """Return the lines of what drags the row of a line down, and what drags that, and so on."""
    found: list[int] = []
    below = trust.weakest(line)
    while below is not None:
        found.append(below)
        below = trust.weakest(below)
    return found


def tree(graph: Graph, roots: list[int] | None = None) -> Iterator[str]:
    """Yield the lines of a drawing in text: under each row those that speak of it, ``+`` for support, ``-`` for doubt.

    What does not count is marked ``·``. A row that several speak through is drawn once and named again.

    Args:
        graph: what to draw.
        roots: lines to begin with; by default the rows that speak of no other.
    """
    onto: dict[int, list[Edge]] = {}
    for edge in graph.edges:
        onto.setdefault(edge.target, []).append(edge)
    if roots is None:
        speaking = {edge.citer for edge in graph.edges}
        roots = [line for line in graph.lines if line not in speaking]
    drawn: set[int] = set()
    for root in roots:
        yield f"{graph.name(root)}  {_worth(graph, root)}"
        drawn.add(root)
        # A stack of its own: a chain of citations is as long as somebody makes it.
        stack: list[tuple[str, Iterator[tuple[Edge, bool]]]] = [("", _with_last(onto.get(root, [])))]
        while stack:
            indent, following = stack[-1]
            step = next(following, None)
            if step is None:
                stack.pop()
                continue
            edge, last = step
            again = edge.citer in drawn
            yield f"{indent}{'└─' if last else '├─'} {_told(graph, edge)}{'  (above)' if again else ''}"
            if not again:
                drawn.add(edge.citer)
                below = onto.get(edge.citer, [])
                if below:
                    stack.append((indent + ("   " if last else "│  "), _with_last(below)))


def _with_last(edges: list[Edge]) -> Iterator[tuple[Edge, bool]]:
    return ((edge, number == len(edges)) for number, edge in enumerate(edges, start=1))


def _worth(graph: Graph, line: int) -> str:
    standing = graph.trust.at_line(line)
    unscored = "" if standing.scored else " unscored"
    return f"{standing.asserted:.6g}{unscored} -> {standing.effective:.6g}"


def _told(graph: Graph, edge: Edge) -> str:
    sign = "·" if edge.number not in graph.counted else "-" if edge.kind == DOUBT else "+"
    weight = f", weight {edge.weight:.6g}" if edge.number in graph.counted else ", does not count"
    who = edge.actor or "nobody"
    return f"{sign} {graph.name(edge.citer)}  {VIA[edge.via]} by {who}{weight}  {_worth(graph, edge.citer)}"


def mermaid(graph: Graph) -> Iterator[str]:
    """Yield the lines of a Mermaid flow chart: an arrow from who speaks to whom it is about, dotted where it does not
    count. Text of others is reduced to characters that mean nothing there."""
    number = {line: f"n{position}" for position, line in enumerate(graph.lines, start=1)}
    yield "flowchart TD"
    for line in graph.lines:
        standing = graph.trust.at_line(line)
        yield f'    {number[line]}["{charted(graph.name(line))} {standing.effective:.4g}"]'
    for edge in graph.edges:
        weight = f"{'-' if edge.kind == DOUBT else '+'}{edge.weight:.4g} "
        counts = edge.number in graph.counted
        label = f"{weight if counts else ''}{VIA[edge.via]}"
        arrow = f'-->|"{label}"|' if counts else f'-.->|"{label}"|'
        yield f"    {number[edge.citer]} {arrow} {number[edge.target]}"
