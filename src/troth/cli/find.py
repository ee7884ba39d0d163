"""``find``: signals by words and fields (ledger spec §8)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.faults import tell_broken
from troth.cli.ledger import brief_of, line_of, row_meant
from troth.cli.options import open_ledger, reading_options
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.ledger.graph import Contradiction
    from troth.stores.snapshot import Snapshot

LIMIT: Final = 50
"""Rows shown unless told otherwise."""


@click.command("find", epilog='Example: troth find "empty cart" checkout --kind evidence --newest')
@click.argument("text", nargs=-1)
@click.option("--op", metavar="OP", help="The operation, such as capture.")
@click.option("--kind", metavar="K", help="The kind, such as finding.")
@click.option("--by", "--actor", "actor", metavar="ACTOR", help="Who wrote it.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="A tag it has. Repeatable.")
@click.option(
    "--state", type=click.Choice(["open", "claimed", "in_review", "closed"]), help="Commitments in that state."
)
@click.option("--workspace", metavar="NAME", help="The workspace it was written in.")
@click.option("--entity", "entities", multiple=True, metavar="TEXT", help="What it is about. Repeatable.")
@click.option("--domain", "domains", multiple=True, metavar="TEXT", help="The field it belongs to. Repeatable.")
@click.option("--intent", metavar="TEXT", help="What it is for.")
@click.option("--level", metavar="L", help="explicit, deductive, inductive or contradiction.")
@click.option("--source-key", metavar="KEY", help="The key of its origin.")
@click.option("--id", "id_prefix", metavar="PREFIX", help="How its id begins.")
@click.option("--since", metavar="INSTANT", help="Not before, such as 2026-04-02 or 2026-04-02T10:30:00Z.")
@click.option("--until", metavar="INSTANT", help="Before.")
@click.option("--derived-from", metavar="ID", help="All that is derived from this row, over parents and premises.")
@click.option("--contradictions", is_flag=True, help="All that contradicts something, and whether it still stands.")
@click.option("--newest", is_flag=True, help="The newest first.")
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True, help="How many rows at most.")
@reading_options
def find_cmd(
    *,
    text: tuple[str, ...],
    since: str | None,
    until: str | None,
    derived_from: str | None,
    contradictions: bool,
    newest: bool,
    limit: int,
    store: str | None,
    as_json: bool,
    **fields: Any,
) -> int:
    """Find signals by words of their body and by fields; everything given must hold.

    Each TEXT is a word, or several that stand together, whatever their case; all signs between words are alike. Fields
    are compared exactly, --entity, --domain and --intent without regard to case. --json prints {ok, results, more,
    indexed}.
    """
    from troth.ledger.search import Query, words_of
    from troth.stores.finding import find

    phrases = tuple(tuple(words_of(one)) for one in text)
    if () in phrases:
        raise Refused("E_USAGE", "there is no word in a text to look for", remedy="Letters and digits make words.")
    query = Query(phrases=phrases, since=_instant("--since", since), until=_instant("--until", until), **fields)
    disputes: dict[int, list[Contradiction]] = {}

    def within(snapshot: Snapshot) -> frozenset[int]:
        from troth.ledger.graph import graph_of

        origin = row_meant(snapshot, derived_from).line if derived_from is not None else None
        without_effect = frozenset(one.line for one in snapshot.state.anomalies)
        graph = graph_of(snapshot.rows, snapshot.state.signals, without_effect)
        if contradictions:
            for one in graph.contradictions():
                disputes.setdefault(one.line, []).append(one)
        if origin is None:
            return frozenset(disputes)
        derived = frozenset(graph.derived_from(origin))
        return derived & disputes.keys() if contradictions else derived

    ledger = open_ledger(store)
    graphed = contradictions or derived_from is not None
    found = find(ledger, query, newest=newest, limit=limit, within=within if graphed else None)
    if as_json:
        results = [brief_of(row) for row in found.rows]
        if contradictions:
            for one in results:
                one["contradicts"] = [_dispute(dispute) for dispute in disputes[one["line"]]]
        emit_json({"ok": found.verification.ok, "results": results, "more": found.more, "indexed": found.indexed})
        return 0 if found.verification.ok else 1
    sound = tell_broken(found.verification)
    for row in found.rows:
        say(line_of(row))
        for dispute in disputes.get(row.line, ()):
            about = printable(dispute.name or "nothing by name", 80)
            end = f", {dispute.withdrawn} at line {dispute.by}" if dispute.withdrawn is not None else ""
            say(f"  contradicts {about}{end}")
    if not found.rows:
        say("Nothing found.")
    if found.more:
        note(f"troth: there are more than {limit}; --limit shows more, --newest begins at the other end")
    return 0 if sound else 1


def _dispute(one: Contradiction) -> dict[str, Any]:
    return {
        "target": one.name,
        "target_line": one.target,
        "level": one.level,
        "withdrawn": one.withdrawn,
        "withdrawn_line": one.by,
    }


def _instant(option: str, text: str | None) -> datetime | None:
    from troth.core.instants import parse_instant

    if text is None:
        return None
    instant = parse_instant(text if "T" in text else f"{text}T00:00:00Z")
    if instant is None:
        raise Refused("E_USAGE", f"{option} takes a day or an instant in UTC", remedy="Write 2026-04-02T10:30:00Z.")
    return instant
