"""``status``: what is open, claimed and in review."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.faults import WARNINGS_SHOWN, finding_line, tell_anomalies, tell_broken, tell_warnings
from troth.cli.options import (
    acting,
    actor_option,
    at_option,
    open_ledger,
    reading_instant,
    reading_options,
)
from troth.core.errors import TrothError

if TYPE_CHECKING:
    from datetime import datetime

    from troth.ledger.replay import Commitment
    from troth.stores.index import Summary
    from troth.stores.workspace import Workspace


class Section(NamedTuple):
    """A further part of ``status``: its member in the JSON object, its title, and both forms of its content."""

    key: str
    title: str
    items: list[dict[str, Any]]
    lines: list[str]


def extra_sections(space: Workspace | None) -> list[Section]:
    """Return what other parts of the tool add to ``status``; each section is shown when it has lines."""
    if space is None or not (space.folder / "runs").is_dir():
        return []
    from troth.airlock.runs import Runs

    runs = Runs(space.folder)
    try:
        left = [run for run in runs.states() if run.open]
        current = runs.under_way() if left else None
    except TrothError as fault:
        return [Section("runs", "Runs", [], [printable(str(fault))])]
    items = []
    lines = []
    for run in left:
        going = run.id == current
        items.append(
            {"id": run.id, "commitment": run.commitment, "actor": run.actor, "stage": run.stage, "under_way": going}
        )
        about = printable(run.commitment, 80)
        lines.append(f"{run.id}  {about}  {printable(run.actor, 60)}  at stage {printable(run.stage, 20)}")
        if going:
            lines[-1] += ", under way"
        else:
            lines[-1] += ", left there by a crash or an interruption"
            lines.append(f"  take it up: troth run --resume {run.id}   or clear it: troth release {about}")
    return [Section("runs", "Unfinished runs", items, lines)]


def commitment_json(record: Commitment) -> dict[str, Any]:
    """Return a commitment as ``status --json`` shows it."""
    return {
        "id": record.id,
        "state": record.state,
        "owner": record.owner,
        "evidence": record.evidence,
        "reopen_count": record.reopen_count,
        "submission": record.submission.as_json() if record.submission else None,
        "duplicate_of": record.duplicate_of,
        "source": record.source,
        "body": record.body,
        "tags": list(record.tags),
        "actor": record.actor,
        "ts": record.ts,
        "line": record.line,
        "reopened": record.reopened,
        "self_approval": record.self_approved,
    }


@click.command("status", epilog="Example: troth status --mine --as agent:worker")
@click.option("--mine", is_flag=True, help="Only what you hold and have not finished.")
@click.option("--in-review", is_flag=True, help="Only what waits for a review.")
@at_option
@actor_option
@reading_options
def status_cmd(
    *, mine: bool, in_review: bool, at: str | None, actor: str | None, store: str | None, as_json: bool
) -> int:
    """Show open, claimed and in-review commitments with their evidence and its confidence, anomalies, and the head."""
    from troth.cli.worth import ageless, confidence_of

    instant = reading_instant(at)
    ledger = open_ledger(store)
    summary = ledger.summary()
    found = summary.verification
    governed = ledger.ruling().warnings()
    owner = acting(actor, ledger) if mine else None
    narrowed = mine or in_review
    sections = extra_sections(ledger.space)
    if as_json:
        whole = summary.everything()
        listed = summary.live if narrowed else whole.commitments.values()
        chosen = _chosen(listed, owner, in_review)
        emit_json(
            {
                "workspace": ledger.workspace,
                "ok": found.ok,
                "verified": found.verified,
                "total": found.total,
                "head": found.head,
                "commitments": [
                    commitment_json(record) | {"confidence": confidence_of(record, whole.evidence, instant)}
                    for record in chosen
                ],
                "anomalies": [anomaly.as_json() for anomaly in whole.anomalies],
                "uncommitted": summary.uncommitted,
                "faults": [fault.as_json() for fault in found.faults],
                "warnings": [
                    *(warning.as_json() for warning in (*found.warnings, *governed)),
                    *_replay_notes(summary),
                    *ageless(chosen, whole.evidence, instant),
                ],
                **{section.key: section.items for section in sections},
            }
        )
        return 0 if found.ok else 1
    chosen = _chosen(summary.live, owner, in_review)
    _tell_status(chosen, summary, instant, narrowed=narrowed)
    for section in sections:
        if section.lines:
            say(f"{section.title} ({len(section.items)})")
            for line in section.lines:
                say(f"  {line}")
    tell_anomalies(summary.anomalies, summary.anomaly_count)
    for told in summary.notes[:WARNINGS_SHOWN]:
        note(f"warning: {finding_line(told.line, told.id, told.warning, told.message)}")
    if len(summary.notes) > WARNINGS_SHOWN:
        note(f"warning: {len(summary.notes) - WARNINGS_SHOWN} more; --json lists them all")
    tell_warnings(governed)
    for odd in ageless(chosen, summary.evidence, instant)[:WARNINGS_SHOWN]:
        note(f"warning: {printable(odd['id'], 80)}  {odd['warning']}: {odd['message']}")
    say(f"{found.summary()}  head {found.head}")
    return 0 if tell_broken(found) else 1


def _chosen(records: Iterable[Commitment], owner: str | None, in_review: bool) -> list[Commitment]:
    return [
        record
        for record in records
        if (owner is None or record.owner == owner) and (not in_review or record.state == "in_review")
    ]


_LISTED: Final = (("in_review", "In review"), ("claimed", "Claimed"), ("open", "Open"))


def _tell_status(chosen: list[Commitment], summary: Summary, at: datetime, *, narrowed: bool) -> None:
    from troth.cli.worth import worth_of

    by_state: dict[str, list[Commitment]] = {}
    for record in chosen:
        by_state.setdefault(record.state, []).append(record)
    for name, title in _LISTED:
        if by_state.get(name):
            # In one piece: a line at a time would cost more than finding out what to say.
            lines = [
                f"  {printable(one.id, 80)}  {printable(one.body, 72)}{facts_of(one)}"
                f"{worth_of(one, summary.evidence, at)}"
                for one in by_state[name]
            ]
            say("\n".join([coloured(f"{title} ({len(lines)})", "cyan"), *lines]))
    if narrowed:
        if not chosen:
            say("Nothing here.")
        return
    if summary.closed:
        say(f"Closed: {summary.closed}")
    elif not summary.live:
        say("No commitments yet.")
    if summary.uncommitted:
        say(f"Observations without a commitment: {summary.uncommitted}")


def facts_of(record: Commitment) -> str:
    """Return what a list shows behind a commitment, in brackets."""
    facts = []
    if record.owner is not None:
        facts.append(printable(record.owner, 60))
    if record.submission is not None:
        facts.append(f"evidence {printable(record.submission.evidence, 80)}")
    if record.reopen_count:
        facts.append(f"reopened {record.reopen_count}x")
    return f"  [{', '.join(facts)}]" if facts else ""


def _replay_notes(summary: Summary) -> list[dict[str, Any]]:
    return [
        {"line": found.line, "id": found.id, "warning": found.warning, "message": found.message}
        for found in summary.notes
    ]
