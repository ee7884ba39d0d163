"""``init``, ``status``, ``show``, ``log`` and ``verify``: the ledger as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from troth.cli.answer import coloured, emit_json, note, printable, say, worst
from troth.cli.options import (
    acting,
    actor_option,
    at_option,
    json_option,
    open_ledger,
    reading_instant,
    reading_options,
    trust_options,
)
from troth.cli.progress import Progress
from troth.core.errors import Refused, TrothError

if TYPE_CHECKING:
    from datetime import datetime

    from troth.ledger.chain import Verification, Warning_
    from troth.ledger.replay import Anomaly, Commitment
    from troth.ledger.rows import Row
    from troth.stores.checkpoints import Anchors
    from troth.stores.index import Summary
    from troth.stores.protocol import LedgerStore
    from troth.stores.snapshot import Snapshot
    from troth.stores.workspace import Workspace

WARNINGS_SHOWN: Final = 20
"""Warnings printed one by one for a person; --json has them all."""

ANOMALIES_SHOWN: Final = 20
"""Rows without effect printed one by one for a person; --json has them all."""

NAMING_SHOWN: Final = 10
"""Rows that name another, printed for a person."""

_EXPECTED: Final = re.compile(r"([0-9a-f]{64})(?::([0-9]{1,15}))?\Z")
_NOT_ANCHORED: Final = (
    "The tail is not anchored: rows cut off the end would not show. Keep this outside the ledger for next time:"
)


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


# status --------------------------------------------------------------------------------------------------------


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
        note(f"warning: {_finding(told.line, told.id, told.warning, told.message)}")
    if len(summary.notes) > WARNINGS_SHOWN:
        note(f"warning: {len(summary.notes) - WARNINGS_SHOWN} more; --json lists them all")
    _warn(governed)
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
                f"  {printable(one.id, 80)}  {printable(one.body, 72)}{_about(one)}"
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


def _about(record: Commitment) -> str:
    facts = []
    if record.owner is not None:
        facts.append(printable(record.owner, 60))
    if record.submission is not None:
        facts.append(f"evidence {printable(record.submission.evidence, 80)}")
    if record.reopen_count:
        facts.append(f"reopened {record.reopen_count}x")
    return f"  [{', '.join(facts)}]" if facts else ""


def tell_anomalies(few: list[Anomaly], count: int) -> None:
    if not count:
        return
    say(coloured(f"Rows without effect ({count})", "yellow"))
    for anomaly in few:
        say(f"  line {anomaly.line}  {printable(anomaly.id or '-', 80)}  {_why(anomaly)}")
    if count > len(few):
        say(f"  and {count - len(few)} more; --json lists them all")


def _why(anomaly: Anomaly) -> str:
    # A detail may be another row's id, and those are whatever somebody wrote into the file.
    return anomaly.code + (f" ({printable(anomaly.detail, 80)})" if anomaly.detail else "")


def _replay_notes(summary: Summary) -> list[dict[str, Any]]:
    return [
        {"line": found.line, "id": found.id, "warning": found.warning, "message": found.message}
        for found in summary.notes
    ]


def tell_broken(found: Verification) -> bool:
    """Tell a broken chain on stderr, and whether it is sound."""
    if not found.ok:
        first = found.faults[0]
        where = f"line {first.line}: " if first.line is not None else ""
        note(
            f"troth: the ledger does not verify: {len(found.faults)} fault(s), the first is {where}{first.fault}. "
            "`troth verify` lists them all."
        )
    return found.ok


def _warn(warnings: Iterable[Warning_]) -> None:
    """Tell warnings about the ledger as a whole on stderr."""
    for warning in warnings:
        note(f"warning: {_finding(warning.line, warning.id, warning.warning, warning.message)}")


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
    _warn(governed)
    for name, value in _flat(row.value):
        say(f"{name}: {printable(value)}")
    if anomaly is not None:
        say(f"This row has no effect: {_why(anomaly)}")
    if record is not None:
        say(f"state: {record.state}{_about(record)}")
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
    _warn(governed)
    for row in rows:
        say(line_of(row))
    if not rows:
        say("No rows yet.")
    return 0


# verify --------------------------------------------------------------------------------------------------------


@click.command("verify", epilog="Example: troth verify .mentu/ledger.jsonl --expect-head 249e77c5…8219:6")
@click.argument("file", required=False, metavar="[FILE]")
@click.option(
    "--expect-head",
    metavar="HEX[:ROWS]",
    help="The head digest you remember; with the number of rows it covered, a cut ledger is told from a changed one.",
)
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Prove that the ledger continues this checkpoint. Repeatable.",
)
@trust_options
@click.option(
    "--set",
    "set_file",
    metavar="FILE",
    help="Check the content hashes of exported rows instead, which form no chain; - reads stdin.",
)
@click.option("--repair-tail", is_flag=True, help="Set a torn last line aside first, as the next writer would.")
@click.option("--remarks", is_flag=True, help="Also warn of values that a writer would have refused, row by row.")
@reading_options
def verify_cmd(
    *,
    file: str | None,
    expect_head: str | None,
    checkpoints: tuple[Path, ...],
    keys: tuple[str, ...],
    quorum: int,
    set_file: str | None,
    repair_tail: bool,
    remarks: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Check every hash and link of a ledger, from its first byte.

    With --checkpoint also that nothing the checkpoint covers was cut off, changed, dropped, put in or moved. Exit 3:
    the ledger is sound, and nobody named with --key (or, without it, in checkpoint_keys of config.yaml) signed it, or
    the set holds rows without a hash.
    """
    if set_file is not None:
        from troth.cli.export import verify_set

        if file or expect_head or checkpoints or keys or quorum or repair_tail or remarks or store:
            raise Refused("E_USAGE", "--set is about a file of exported rows and stands with --json alone")
        return verify_set(set_file, as_json)
    if file is not None and store is not None:
        raise Refused("E_USAGE", "name the ledger once, as FILE or with --store")
    if (keys or quorum) and not checkpoints:
        raise Refused("E_USAGE", "--key and --quorum are about a checkpoint", remedy="Name one with --checkpoint.")
    head, rows = _expected(expect_head)
    ledger = open_ledger(file if file is not None else store)
    anchors = _anchors(checkpoints, keys, quorum, ledger)
    repaired = ledger.repair_tail() if repair_tail else None
    with Progress("verifying") as progress:
        leaves = anchors.take if anchors is not None else None
        found = ledger.verify(expect_head=head, expect_rows=rows, progress=progress, leaves=leaves)
    if anchors is not None:
        found = anchors.judge(found)
    governed = ledger.ruling().warnings()
    if remarks or governed:
        found = replace(found, warnings=(*governed, *found.warnings, *(_remarks(ledger) if remarks else ())))
    anchored = head is not None or (anchors is not None and anchors.anchored)
    status = worst([0 if found.ok else 1, 0 if anchors is None or anchors.established else 3])
    if as_json:
        answer = found.as_json() | {"anchored": anchored}
        if anchors is not None:
            answer["checkpoints"] = anchors.as_json()
        if repair_tail:
            answer["repaired"] = str(repaired) if repaired is not None else None
        emit_json(answer)
        return status
    say(found.summary())
    for fault in found.faults:
        say(coloured(_finding(fault.line, fault.id, fault.fault, fault.message), "red"))
    for warning in found.warnings[:WARNINGS_SHOWN]:
        note(f"warning: {_finding(warning.line, warning.id, warning.warning, warning.message)}")
    if len(found.warnings) > WARNINGS_SHOWN:
        note(f"warning: {len(found.warnings) - WARNINGS_SHOWN} more; --json lists them all")
    say(f"head {found.head}")
    if anchors is not None:
        _tell_anchors(anchors)
    if not anchored:
        say(f"{_NOT_ANCHORED} --expect-head {found.head}:{found.hashed}")
    return status


def _anchors(files: Sequence[Path], keys: Sequence[str], quorum: int, ledger: LedgerStore) -> Anchors | None:
    if not files:
        return None
    from troth.stores.checkpoints import Anchors, trusted_keys

    return Anchors.read(files, trusted_keys(keys, ledger), quorum)


def _tell_anchors(anchors: Anchors) -> None:
    for told in anchors.as_json():
        size, rows = told["size"], anchors.size
        says = (
            f"continued: {size} of the {rows} rows are covered" if told["extends"] else f"not continued ({size} rows)"
        )
        names = ", ".join(printable(one["name"], 100) for one in told["signed_by"]) or "nobody who is trusted"
        say(f"checkpoint {printable(told['file'])}  {says}; signed by {names}")
        if told["lacks"] is not None:
            note(f"troth: not established: {printable(told['lacks'], 400)}; name whom you trust with --key")


def _remarks(ledger: LedgerStore) -> list[Warning_]:
    """Return what a reader warns of beyond integrity (ledger spec §2, §8); it looks at every row once more."""
    from troth.ledger.remarks import Remarks

    collected = Remarks(ledger.workspace if ledger.space is not None else None)
    snapshot = ledger.read(trust=True)
    for row in snapshot.rows:
        collected.apply(row)
    return sorted([*collected.warnings, *snapshot.trust.warnings], key=lambda found: found.line or 0)


def _finding(line: int | None, identifier: str | None, name: str, message: str) -> str:
    where = f"line {line}" if line is not None else "ledger"
    return f"{where}  {printable(identifier or '-', 80)}  {name}: {printable(message, 400)}"


def _expected(text: str | None) -> tuple[str | None, int | None]:
    if text is None:
        return None, None
    match = _EXPECTED.match(text)
    if match is None:
        raise Refused(
            "E_USAGE", "--expect-head takes 64 lowercase hexadecimal digits, then perhaps a colon and a number of rows"
        )
    return match[1], int(match[2]) if match[2] is not None else None
