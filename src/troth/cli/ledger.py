"""``init``, ``show`` and ``log``: a ledger begun and looked into."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.faults import reason_of, tell_broken, tell_warnings
from troth.cli.options import (
    at_option,
    json_option,
    open_ledger,
    reading_instant,
    reading_options,
)
from troth.cli.status import commitment_json, facts_of
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.ledger.rows import Row
    from troth.stores.snapshot import Snapshot

NAMING_SHOWN: Final = 10
"""Rows that name another, printed for a person."""


def agents_text() -> str:
    """Return the instructions for agents that ``init`` writes (ledger spec §15)."""
    return Path(__file__).with_name("agents_template.md").read_text(encoding="utf-8")


@click.command("init", epilog="Example: troth init --workspace my-project")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--workspace", "name", metavar="NAME", help="Name written into rows. Default: the folder's name.")
@click.option("--genesis", type=click.Path(path_type=Path), metavar="FILE", help="Put this genesis key into it.")
@click.option(
    "--store", metavar="URL", help="Keep the ledger in a database: postgresql://HOST/DATABASE?workspace=NAME."
)
@click.option("--git", is_flag=True, help="Tell this clone's git, too, how ledgers are merged (git config).")
@json_option
def init_cmd(
    *, folder: Path | None, name: str | None, genesis: Path | None, store: str | None, git: bool, as_json: bool
) -> int:
    """Create a workspace in FOLDER (default: here): .mentu with an empty ledger, settings and AGENTS.md.

    FOLDER is made when only it is missing. Nothing that exists is overwritten; run again, it adds what is missing. A
    genesis key is validated before anything is written. With --store nothing is created here, but a workspace in a
    database. In a git work tree, lines are added to .gitattributes and .gitignore, so that ledgers are merged and the
    lock stays out.
    """
    from troth.stores import gitfiles
    from troth.stores.constitution import key_to_install
    from troth.stores.workspace import create_workspace, here

    key = key_to_install(genesis) if genesis is not None else {}
    if store is not None:
        from troth.cli.store import init_database

        if folder is not None:
            raise Refused("E_USAGE", "name a folder or --store, not both")
        return init_database(store, name, key, as_json)
    root = folder if folder is not None else here()
    if git:
        gitfiles.need_git(root)
    space, created = create_workspace(root, name=name, agents_text=agents_text(), key=key)
    config = space.config()
    told = [entry for entry in created if not entry.startswith(".")]
    versioned = gitfiles.prepare(space.root, configure=git)
    if as_json:
        answer = {"root": str(space.root), "workspace": config.workspace, "created": told}
        emit_json(answer if versioned is None else answer | {"git": versioned.as_json()})
        return 0
    where = printable(str(space.folder))
    if not told:
        say(f"{where} is a workspace already; nothing was changed.")
    else:
        say(f"Created {', '.join(told)} in {where} (workspace {printable(config.workspace or 'default')}).")
        say('Next: troth capture "what you saw"')
    if versioned is not None:
        for line in versioned.lines():
            say(printable(line, 400))
    if key and "genesis.key" not in created:
        note("troth: the workspace keeps its genesis key; nothing that exists is overwritten")
    if name is not None and config.workspace != name:
        note(f"troth: the workspace keeps its name {config.workspace!r}; change it in config.yaml")
    return 0


# show and log --------------------------------------------------------------------------------------------------


@click.command("show", epilog="Example: troth show cmt_e5f6g7h8")
@click.argument("identifier", metavar="ID")
@at_option
@reading_options
def show_cmd(identifier: str, at: str | None, store: str | None, as_json: bool) -> int:
    """Show one signal, what it is worth and why; for a commitment also its state and every row about it."""
    from troth.airlock.history import decisions_in, rows_about, validations_in
    from troth.cli.airlock import answer_line, decision_line
    from troth.cli.worth import tell_trust, trust_json

    instant = reading_instant(at)
    ledger = open_ledger(store)
    snapshot = ledger.read(trust=True)
    row = row_meant(snapshot, identifier)
    governed = ledger.ruling().warnings()
    record = snapshot.state.commitments.get(row.id or "")
    about = [] if record is None else rows_about(snapshot.rows, record.id)
    without_effect = {one.line for one in snapshot.state.anomalies}
    validations = validations_in(about, without_effect)
    decisions = decisions_in(about, without_effect)
    anomaly = next((found for found in snapshot.state.anomalies if found.line == row.line), None)
    naming = _naming(snapshot, row)
    if as_json:
        emit_json(
            {
                "ok": snapshot.verification.ok,
                "line": row.line,
                "signal": row.value,
                "commitment": commitment_json(record) if record is not None else None,
                "history": [brief_of(other) for other in about],
                "validations": [dict(one) for one in validations],
                "decisions": [dict(one) for one in decisions],
                "anomaly": anomaly.as_json() if anomaly is not None else None,
                "children": [one["id"] for one in naming if "parent" in one["via"]],
                "named_by": naming,
                "trust": trust_json(snapshot, row, instant),
                "warnings": [warning.as_json() for warning in governed],
            }
        )
        return 0
    tell_broken(snapshot.verification)
    tell_warnings(governed)
    for name, value in _flat(row.value):
        say(f"{name}: {printable(value)}")
    if anomaly is not None:
        say(f"This row has no effect: {reason_of(anomaly)}")
    if record is not None:
        say(f"state: {record.state}{facts_of(record)}")
        if record.evidence is not None:
            say(f"closed with: {printable(record.evidence, 80)}")
        for one in validations:
            if one["counts"]:
                say(f"validator {answer_line(one)}")
        for one in decisions:
            say(f"decided: {decision_line(one)}")
        for other in about:
            say(f"  {line_of(other)}")
    for one in naming[:NAMING_SHOWN]:
        say(f"named by {printable(one['id'] or '-', 80)}: {', '.join(printable(way, 40) for way in one['via'])}")
    if len(naming) > NAMING_SHOWN:
        say(f"and by {len(naming) - NAMING_SHOWN} more rows; `troth impact` follows them")
    tell_trust(snapshot, row, instant)
    return 0


def _naming(snapshot: Snapshot, row: Row) -> list[dict[str, Any]]:
    """Return the rows that name one, in file order, and how."""
    from troth.ledger.graph import naming

    return [{"line": other.line, "id": other.id, "via": ways} for other, ways in naming(snapshot.rows, row.id or "")]


def row_meant(snapshot: Snapshot, written: str) -> Row:
    """Return the row that an id, an unambiguous beginning of one, or ``@last`` means.

    Raises:
        Refused: ``E_REF_NOT_FOUND``, ``E_AMBIGUOUS_ID``.
    """
    from troth.stores.requests import resolve

    identifier = resolve(written, snapshot.state)
    signal = snapshot.state.signals.get(identifier)
    if signal is None:
        raise Refused(
            "E_REF_NOT_FOUND",
            f"no row is {identifier}",
            remedy="`troth log` shows recent rows.",
            detail="absent",
        )
    return snapshot.rows.at_line(signal.line)


def _flat(value: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    import json

    for name, item in value.items():
        if isinstance(item, dict) and item and not prefix:
            yield from _flat(item, f"{name}.")
        else:
            shown = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            yield printable(f"{prefix}{name}", 80), shown


def _payload_text(row: Row, name: str) -> str | None:
    payload = row.value.get("payload")
    text = payload.get(name) if isinstance(payload, dict) else None
    return text if isinstance(text, str) else None


def brief_of(row: Row) -> dict[str, Any]:
    """Return a row as lists show it in JSON."""
    return {
        "line": row.line,
        "id": row.id,
        "op": row.op,
        "ts": row.value.get("ts"),
        "actor": row.value.get("actor"),
        "kind": _payload_text(row, "kind"),
        "body": _payload_text(row, "body"),
    }


def line_of(row: Row) -> str:
    """Return a row as lists show it to a person."""
    body = printable(_payload_text(row, "body") or "", 72)
    words = (str(row.value.get("ts")), str(row.value.get("actor")), str(row.op), row.id or "-")
    return "  ".join([*(printable(word, 80) for word in words), body])


@click.command("log", epilog="Example: troth log -n 50")
@click.option("-n", "count", type=click.IntRange(1), default=20, show_default=True, help="How many of the newest rows.")
@reading_options
def log_cmd(count: int, store: str | None, as_json: bool) -> int:
    """Show recent signals, the newest last."""
    ledger = open_ledger(store)
    snapshot = ledger.read()
    rows = snapshot.rows[-count:]
    governed = ledger.ruling().warnings()
    if as_json:
        emit_json(
            {
                "ok": snapshot.verification.ok,
                "head": snapshot.head,
                "total": snapshot.verification.total,
                "signals": [row.value for row in rows],
                "warnings": [warning.as_json() for warning in governed],
            }
        )
        return 0
    tell_broken(snapshot.verification)
    tell_warnings(governed)
    for row in rows:
        say(line_of(row))
    if not rows:
        say("No rows yet.")
    return 0
