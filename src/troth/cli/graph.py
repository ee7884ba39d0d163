"""``why`` and ``impact``: what stands under a signal and what stands on it, as trees (ledger spec §8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.faults import tell_broken
from troth.cli.ledger import row_meant
from troth.cli.options import open_ledger, reading_options
from troth.core.errors import Refused
from troth.core.words import charted

if TYPE_CHECKING:
    from troth.ledger.graph import Edge, Link, Walk
    from troth.ledger.rows import Row
    from troth.stores.snapshot import Snapshot

_F = TypeVar("_F", bound=Callable[..., Any])

DEPTH: Final = 12
"""Steps that a tree goes unless told otherwise."""

ROWS: Final = 500
"""Rows that a tree holds unless told otherwise."""

INDENTED: Final = 40
"""Levels that are drawn by indentation; deeper ones stay there, or lines would outgrow every screen."""

MANY: Final = 8
"""Ways in which one row names another that are told."""

_WHY: Final = {
    "commitment": "about the commitment",
    "source": "made from",
    "evidence": "with the evidence",
    "duplicate_of": "a duplicate of",
    "target": "about",
    "parent": "child of",
    "premise": "derived from",
    "ref": "refers to",
    "judgement": "judged by",
}
_IMPACT: Final = {
    "commitment": "named as commitment by",
    "source": "committed as",
    "evidence": "evidence of",
    "duplicate_of": "has the duplicate",
    "target": "annotated by",
    "parent": "parent of",
    "premise": "premise of",
    "ref": "referred to by",
    "step": "a step of",
    "judgement": "judges",
}
_RELATIONS: Final = {
    "cites": "cited by",
    "extends": "extended by",
    "contradicts": "contradicted by",
    "refines": "refined by",
    "supersedes": "superseded by",
    "supports": "supported by",
    "okf_link": "linked from",
}
_STEPS: Final = {
    "claim": "claimed",
    "release": "released",
    "submit": "submitted",
    "approve": "approved",
    "reopen": "reopened",
    "close": "closed",
}


def _walking(command: _F) -> _F:
    """Add what both trees take."""
    for option in reversed(
        (
            click.argument("identifier", metavar="ID"),
            click.option("--depth", type=click.IntRange(0), default=DEPTH, show_default=True, help="Steps to go."),
            click.option("--rows", type=click.IntRange(1), default=ROWS, show_default=True, help="Rows to show."),
            click.option("--mermaid", is_flag=True, help="Draw it as a Mermaid flow chart."),
            reading_options,
        )
    ):
        command = option(command)
    return command


@click.command("why", epilog="Example: troth why cmt_e5f6g7h8")
@_walking
def why_cmd(**options: Any) -> int:
    """Show what stands under a signal: what it names, and for a commitment its source, steps, evidence and judgements.

    Each row is expanded once. --json prints {ok, root, direction, nodes, edges, cut}: nodes with id, line, op, kind,
    actor, ts, body, depth, state, effect, verification and confidence; edges lead `from` the row asked about `to` what
    stands under it, by `via`; `standing` other than earlier marks a reference that no writer makes; `cut` tells which
    limits kept something out.
    """
    return _answer("why", **options)


@click.command("impact", epilog="Example: troth impact mem_a1b2c3d4 --depth 3")
@_walking
def impact_cmd(**options: Any) -> int:
    """Show what stands on a signal: who cites it, commits it, closes with it, derives from it, contradicts it.

    The opposite of `troth why`, with the same --json: edges lead `from` the row asked about `to` what stands on it.
    """
    return _answer("impact", **options)


def _answer(
    direction: str, *, identifier: str, depth: int, rows: int, mermaid: bool, store: str | None, as_json: bool
) -> int:
    from troth.ledger.graph import graph_of

    if mermaid and as_json:
        raise Refused("E_USAGE", "--mermaid and --json are two answers", remedy="Leave one out.")
    snapshot = open_ledger(store).read(trust=True)
    row = row_meant(snapshot, identifier)
    effects = {one.line: one.code for one in snapshot.state.anomalies}
    graph = graph_of(snapshot.rows, snapshot.state.signals, frozenset(effects))
    walk = (graph.why if direction == "why" else graph.impact)(row.line, depth=depth, rows=rows)
    nodes = {place.line: _node(snapshot, place.line, place.depth, effects) for place in walk.places}
    if as_json:
        emit_json(
            {
                "ok": snapshot.verification.ok,
                "root": nodes[walk.root]["id"],
                "direction": direction,
                "nodes": list(nodes.values()),
                "edges": [
                    {
                        "from": nodes[link.origin]["id"],
                        "from_line": link.origin,
                        "to": nodes[link.to]["id"] if link.to is not None else link.edge.name,
                        "to_line": link.to,
                        "via": link.edge.relation or link.edge.via,
                        "relation": link.edge.relation is not None,
                        "standing": link.edge.standing,
                        "first": link.first,
                    }
                    for link in walk.links
                ],
                "cut": {"depth": walk.deeper, "rows": walk.more},
            }
        )
        return 0 if snapshot.verification.ok else 1
    sound = tell_broken(snapshot.verification)
    if mermaid:
        say("\n".join(_chart(walk, nodes, direction)))
    else:
        say("\n".join(_tree(walk, nodes, direction)))
        if not walk.links and not walk.deeper:
            say("It rests on nothing." if direction == "why" else "Nothing stands on it.")
    if walk.deeper:
        note(f"troth: there is more behind {depth} steps; --depth goes further")
    if walk.more:
        note(f"troth: there are more than {rows} rows or {4 * rows} references; --rows shows more")
    return 0 if sound else 1


def _node(snapshot: Snapshot, line: int, depth: int, effects: dict[int, str]) -> dict[str, Any]:
    row: Row = snapshot.rows.at_line(line)
    payload = row.value.get("payload")
    fields = payload if isinstance(payload, dict) else {}
    signal = snapshot.state.signals.get(row.id or "")
    known = signal is not None and signal.line == line
    record = snapshot.state.commitments.get(row.id or "") if known else None
    standing = snapshot.trust.at_line(line) if known else None
    return {
        "id": row.id,
        "line": line,
        "op": row.op,
        "kind": _text(fields.get("kind")),
        "actor": _text(row.value.get("actor")),
        "ts": _text(row.value.get("ts")),
        "body": _text(fields.get("body")),
        "depth": depth,
        "state": record.state if record is not None else None,
        "owner": record.owner if record is not None else None,
        "effect": effects.get(line),
        "verification": standing.verification if standing is not None else None,
        "confidence": standing.effective if standing is not None else None,
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _name(node: dict[str, Any]) -> str:
    return node["id"] or f"line {node['line']}"


def _told(node: dict[str, Any]) -> str:
    words = [coloured(printable(_name(node), 80), "cyan"), printable(node["op"] or "?", 20)]
    if node["kind"] and node["kind"] != node["op"]:
        words.append(printable(node["kind"], 40))
    if node["state"] is not None:
        words.append(f"[{node['state']}]")
    words.append(f"by {printable(node['actor'] or 'nobody', 60)}:")
    words.append(printable(node["body"] or "", 72))
    if node["verification"] not in (None, "unverified"):
        words.append(f"({node['verification']}, {node['confidence']:.4g})")
    if node["effect"] is not None:
        words.append(f"(without effect: {node['effect']})")
    return " ".join(words)


def _between(edge: Edge, nodes: dict[int, dict[str, Any]], direction: str) -> str:
    """Return in words how the row above stands to the row below."""
    if edge.relation is not None:
        turned = _RELATIONS.get(edge.relation, f"{edge.relation}, said by")
        return printable(edge.relation if direction == "why" else turned, 60)
    if edge.via == "step" and direction == "why":
        return _STEPS.get(nodes[edge.citer]["op"], "step") if edge.citer in nodes else "step"
    return (_WHY if direction == "why" else _IMPACT)[edge.via]


_ODD: Final = {
    "later": "  (names a LATER row)",
    "self": "  (names ITSELF)",
    "absent": "",
    "earlier": "",
}


def _tree(walk: Walk, nodes: dict[int, dict[str, Any]], direction: str) -> Iterator[str]:
    """Yield the lines of the tree; a row that several lead to is expanded where the way is shortest."""
    below: dict[int, dict[int | str, list[Link]]] = {}
    for link in walk.links:
        aim = link.to if link.to is not None else link.edge.name
        below.setdefault(link.origin, {}).setdefault(aim, []).append(link)
    drawn = {walk.root}
    yield _told(nodes[walk.root])
    stack = [("", _with_last(below.get(walk.root, {})))]
    while stack:
        indent, following = stack[-1]
        step = next(following, None)
        if step is None:
            stack.pop()
            continue
        links, last = step
        to = links[0].to
        how = ", ".join(dict.fromkeys(_between(link.edge, nodes, direction) for link in links[:MANY]))
        branch = f"{indent}{'└─' if last else '├─'} {how} "
        odd = _ODD[links[0].edge.standing]
        if to is None:
            yield f"{branch}{printable(links[0].edge.name, 80)}  (no such row)"
        elif not links[0].first:
            yield f"{branch}{printable(_name(nodes[to]), 80)}  ({'above' if to in drawn else 'below'}){odd}"
        else:
            drawn.add(to)
            yield f"{branch}{_told(nodes[to])}{odd}"
            if to in below:
                if len(stack) < INDENTED:
                    indent += "   " if last else "│  "
                stack.append((indent, _with_last(below[to])))


def _with_last(links: dict[int | str, list[Link]]) -> Iterator[tuple[list[Link], bool]]:
    return ((found, number == len(links)) for number, found in enumerate(links.values(), start=1))


def _chart(walk: Walk, nodes: dict[int, dict[str, Any]], direction: str) -> Iterator[str]:
    """Yield a Mermaid flow chart; names of nodes are numbers, and text of others is reduced to what means nothing."""
    yield "flowchart TD"
    number = {line: f"n{position}" for position, line in enumerate(nodes, start=1)}
    for line, node in nodes.items():
        state = f" {node['state']}" if node["state"] is not None else ""
        about = f"{charted(node['op'] or '?', 20)}{state} by {charted(node['actor'] or 'nobody', 60)}"
        yield f'    {number[line]}["{charted(_name(node))}<br/>{about}<br/>{charted(node["body"] or "", 60)}"]'
    absent: dict[str, str] = {}
    for link in walk.links:
        words = charted(_between(link.edge, nodes, direction), 60)
        if link.to is None:
            fresh = link.edge.name not in absent
            to = absent.setdefault(link.edge.name, f"a{len(absent) + 1}")
            if fresh:
                yield f'    {to}["{charted(link.edge.name)}<br/>no such row"]'
        else:
            to = number[link.to]
        arrow = "-->" if link.edge.standing == "earlier" else "-.->"
        yield f'    {number[link.origin]} {arrow}|"{words}"| {to}'
