"""``trust``: what signals are worth, why, and who bears on whom (ledger spec §9, §10)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import coloured, emit_json, emit_json_list, note, printable, say
from troth.cli.faults import WARNINGS_SHOWN, tell_broken
from troth.cli.ledger import row_meant
from troth.cli.options import at_option, open_ledger, reading_instant, reading_options
from troth.cli.worth import event_line
from troth.core.errors import Refused
from troth.core.words import lasting

if TYPE_CHECKING:
    from datetime import datetime

    from troth.ledger.confidence import Trust
    from troth.ledger.trust_account import Account, Bearing

DRAWN: Final = 400
"""Lines of a drawing printed for a person; --json and --mermaid have everything."""

_IDLE: Final = {
    "own_actor": "does not count: nobody supports their own signal",
    "weaker": "does not count: the same actor has a stronger one",
    "run": "does not count: its run gave a verdict, which counts instead",
}
_VIA: Final = {
    "cites": "cites it",
    "supports": "supports it",
    "source": "made a commitment of it",
    "evidence": "closed with it",
    "approval": "approved it",
    "contradicts": "contradicts it",
    "retraction": "retracts it",
}


@click.group("trust", epilog="Example: troth trust show mem_a1b2c3d4")
def trust_cmd() -> None:
    """Tell what signals are worth, and why.

    Asserted confidence is what was measured when a signal was written. Support and doubt by others make it the
    effective one, age the current one. All is computed from the ledger and never stored.
    """


@trust_cmd.command("all", epilog="Example: troth trust all --at 2026-04-03T00:00:00Z --json")
@at_option
@reading_options
def all_cmd(at: str | None, store: str | None, as_json: bool) -> int:
    """List every signal with its asserted, effective and current confidence and its verification level."""
    instant = reading_instant(at)
    snapshot = open_ledger(store).read(trust=True)
    trust = snapshot.trust
    notes: list[str] = []
    if as_json:
        emit_json_list("signals", _all(trust, instant, notes))
    elif not len(trust):
        say("No signals yet.")
    else:
        lines = (
            f"{one['id']:<14}  {one['asserted']:8.4f}  {one['effective']:9.4f}  {one['current']:7.4f}  "
            f"{one['verification']}{'' if one['scored'] else '  unscored'}"
            for one in _all(trust, instant, notes, scored=True)
        )
        say(f"{'signal':<14}  asserted  effective  current  verification")
        while piece := "\n".join(islice(lines, 2000)):
            say(piece)
    _tell_notes(trust, notes)
    return 0 if tell_broken(snapshot.verification) else 1


def _all(trust: Trust, at: datetime, notes: list[str], *, scored: bool = False) -> Iterator[dict[str, Any]]:
    """Yield what ``--json`` prints of each signal; in words the ids are made harmless and ``scored`` is told."""
    from troth.ledger.confidence import decay

    for identifier, standing in trust.standings():
        worn = decay(standing.ts, standing.half_life_days, at)
        if worn.warning is not None:
            notes.append(f"{printable(identifier, 80)}  {worn.warning}")
        found: dict[str, Any] = {
            "id": printable(identifier, 80) if scored else identifier,
            "asserted": standing.asserted,
            "effective": standing.effective,
            "current": standing.effective * worn.factor,
            "verification": standing.verification,
        }
        if scored:
            found["scored"] = standing.scored
        yield found


def _tell_notes(trust: Trust, notes: list[str]) -> None:
    told = [
        f"line {found.line}  {printable(found.id or '-', 80)}  {found.warning}: {found.message}"
        for found in trust.warnings[:WARNINGS_SHOWN]
    ]
    count = len(trust.warnings) + len(notes)
    told += [f"{text}: it counts as new" for text in notes[: max(0, WARNINGS_SHOWN - len(told))]]
    for text in told:
        note(f"warning: {text}")
    if count > len(told):
        note(f"warning: {count - len(told)} more")


@trust_cmd.command("show", epilog="Example: troth trust show @last")
@click.argument("identifier", metavar="ID")
@at_option
@reading_options
def show_cmd(identifier: str, at: str | None, store: str | None, as_json: bool) -> int:
    """Explain the confidence of one signal, figure by figure, and list its trust events."""
    from troth.ledger.trust_account import account

    instant = reading_instant(at)
    snapshot = open_ledger(store).read(trust=True)
    row = row_meant(snapshot, identifier)
    trust = snapshot.trust
    found = account(trust, row, instant)
    warnings = [warning.as_json() for warning in trust.warnings if warning.line == row.line]
    if found.worn.warning is not None:
        warnings.append({"line": row.line, "id": row.id, "warning": found.worn.warning, "message": "it counts as new"})
    if as_json:
        emit_json({"ok": snapshot.verification.ok, **found.as_json(), "warnings": warnings})
        return 0 if snapshot.verification.ok else 1
    for line in account_lines(found):
        say(line)
    for warning in warnings:
        note(f"warning: line {warning['line']}  {warning['warning']}: {warning['message']}")
    return 0 if tell_broken(snapshot.verification) else 1


def account_lines(found: Account) -> Iterator[str]:
    """Yield the sentences that explain a signal's confidence."""
    yield coloured(printable(found.id, 80), "cyan")
    yield from _asserted_lines(found)
    yield from _own_lines(found)
    yield from _cascade_lines(found)
    yield from _time_lines(found)
    level = found.standing.verification
    by = f", by {printable(found.raised_by, 80)}" if found.raised_by is not None else ""
    yield f"Verification: {level}{by}. It only rises."
    if found.events:
        yield "Events"
        yield from (event_line(event.as_json()) for event in found.events)


def _asserted_lines(found: Account) -> Iterator[str]:
    value = f"{found.standing.asserted:.6g}"
    if not found.standing.scored:
        yield f"Asserted {value}: unscored, it carries no confidence that counts."
    elif not found.parts:
        yield f"Asserted {value}: the stamp of a person on an approval."
    else:
        yield f"Asserted {value}, from what was measured when it was written:"
        for part in found.parts:
            yield f"  {part.name:<19}  {part.weight:.4g} x {part.value:.6g} = {part.product:.6g}"
        of = "of the genesis key in force then" if found.own_weights else "of the specification"
        stored, recomputed = found.asserted.stored, found.asserted.recomputed
        yield f"  With the weights {of} that makes {recomputed:.6g}; {stored:.6g} is stored."
        if stored != recomputed:
            yield f"  The lower of the two is taken{', and they differ too much' if found.asserted.mismatch else ''}."


def _own_lines(found: Account) -> Iterator[str]:
    for delta, identifier in found.deltas:
        by = printable(identifier or "a row without id", 80)
        yield f"Run {printable(delta.run, 80)} found {delta.word} ({by}): {delta.amount:+.2f}."
    if found.deltas:
        yield f"With what runs found: {found.base:.6g}."
    yield from _bearings("Support, each taking a part of what is missing to 1:", found.supports)
    yield from _bearings("Doubt, each taking a part of what is there:", found.doubts)
    if found.retracted_by is not None:
        yield f"Retracted by its own actor ({printable(found.retracted_by, 80)}), so its own confidence is 0."
    if not (found.supports or found.doubts or found.deltas or found.retracted_by):
        yield "Nobody supports or doubts it."
    yield f"Own confidence {found.standing.own:.6g}."


def _bearings(title: str, bearings: tuple[Bearing, ...]) -> Iterator[str]:
    if not bearings:
        return
    yield title
    for one in bearings:
        who, name = printable(one.actor or "somebody", 60), printable(one.id or "a row without id", 80)
        end = _IDLE[one.idle] if one.idle is not None else f"own confidence {one.own:.6g}, weight {one.weight:.6g}"
        yield f"  {who} {_VIA[one.via]} ({name}): {end}"


def _cascade_lines(found: Account) -> Iterator[str]:
    if found.path:
        path = " -> ".join(printable(name, 80) for name in found.path)
        below = printable(found.path[1], 80)
        yield f"It rests on {below}, which kept {found.kept:.6g} of its asserted confidence; half of that loss counts."
        yield f"  Path: {path}"
    yield f"Effective {found.standing.effective:.6g}."


def _time_lines(found: Account) -> Iterator[str]:
    half_life = found.standing.half_life_days
    if found.worn.warning is not None:
        yield f"Current {found.current:.6g}: its age is not known, so it counts as new."
    else:
        yield (
            f"Current {found.current:.6g}: {lasting(found.worn.age_days * 86_400)} old, with a half-life of "
            f"{half_life} days, x {found.worn.factor:.6g}."
        )


@trust_cmd.command("graph", epilog="Example: troth trust graph mem_a1b2c3d4 --mermaid")
@click.argument("identifier", metavar="[ID]", required=False)
@click.option("--mermaid", is_flag=True, help="Draw it as a Mermaid flow chart.")
@at_option
@reading_options
def graph_cmd(identifier: str | None, mermaid: bool, at: str | None, store: str | None, as_json: bool) -> int:
    """Draw who supports and doubts whom: the whole ledger, or what bears on one signal."""
    from troth.ledger import trust_graph

    if mermaid and as_json:
        raise Refused("E_USAGE", "--mermaid and --json are two answers", remedy="Leave one out.")
    instant = reading_instant(at)
    snapshot = open_ledger(store).read(trust=True)
    row = row_meant(snapshot, identifier) if identifier is not None else None
    trust = snapshot.trust
    graph = trust_graph.graph_of(trust, row.id if row is not None else None)
    if as_json:
        emit_json({"ok": snapshot.verification.ok, **graph.as_json(instant)})
        return 0 if snapshot.verification.ok else 1
    if mermaid:
        for line in trust_graph.mermaid(graph):
            say(line)
    elif not graph.lines:
        say("Nobody supports or doubts anything yet.")
    else:
        roots = [row.line, *trust_graph.dragged_by(trust, row.line)] if row is not None else None
        lines = trust_graph.tree(graph, roots)
        for line in islice(lines, DRAWN):
            say(printable(line, 400))
        if (more := sum(1 for _ in lines)) > 0:
            say(f"and {more} more lines; name a signal, or take --json for everything")
    return 0 if tell_broken(snapshot.verification) else 1
