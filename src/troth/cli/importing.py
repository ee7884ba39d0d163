"""``troth import``: version 1 rows, rows of other programs, whole ledgers and git's history brought in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.options import Notes, acting, actor_option, json_option, open_ledger, store_option
from troth.cli.progress import Progress
from troth.core.errors import Refused
from troth.ledger.foreign import FORMATS, ROWS, V1, WHOLE, Fields

if TYPE_CHECKING:
    from troth.stores.importing import Line
    from troth.stores.protocol import LedgerStore

SHOWN: Final = 20
"""Refused lines, and rows without effect, printed one by one for a person; --json has more."""

AUTO: Final = "auto"


@click.command(
    "import",
    epilog="Example: troth import issues.jsonl --body-field title --key-field id --key-prefix tracker:",
)
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--git", "repo", type=click.Path(path_type=Path), metavar="REPO", help="Commits as captures, one each.")
@click.option(
    "--format",
    "kind",
    type=click.Choice([AUTO, *FORMATS]),
    default=AUTO,
    show_default=True,
    help="v1: rows of version 1, into an empty ledger. rows: objects known by their source_key, into any ledger. "
    "whole: a hashed ledger byte for byte, into an empty one.",
)
@click.option("--body-field", metavar="NAME", help="The member that is the body, in objects that are not rows.")
@click.option("--key-field", metavar="NAME", help="The member by which an object is known.")
@click.option("--actor-field", metavar="NAME", help="The member that says who acted.")
@click.option("--ts-field", metavar="NAME", help="The member that is the time: ISO 8601, or seconds since 1970.")
@click.option("--key-prefix", default="", metavar="TEXT", help="Stands before every key, such as tracker:")
@click.option("--dry-run", is_flag=True, help="Only tell what would be imported.")
@click.option("--strict", is_flag=True, help="Import nothing unless every line is accepted.")
@actor_option
@store_option
@json_option
def import_cmd(
    *,
    file: Path | None,
    repo: Path | None,
    kind: str,
    body_field: str | None,
    key_field: str | None,
    actor_field: str | None,
    ts_field: str | None,
    key_prefix: str,
    dry_run: bool,
    strict: bool,
    actor: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Bring the lines of FILE (- is stdin) into the ledger; FILE stays as it is.

    Rows of other programs are appended with their source_key, one signal each. Those that are there already are counted
    and change nothing, so the same import can run again. Lines that are refused are told with their number and code.
    """
    fields = Fields(body_field, key_field, actor_field, ts_field, key_prefix)
    if (file is None) == (repo is None):
        raise Refused("E_USAGE", "name the file to import, or a repository with --git")
    if repo is not None and (kind != AUTO or fields != Fields()):
        raise Refused("E_USAGE", "--git takes no format and no fields")
    if kind in (V1, WHOLE) and fields != Fields():
        raise Refused("E_USAGE", f"a {kind} ledger has its own fields", remedy="Leave them out, or use --format rows.")
    ledger = open_ledger(store, Notes())
    if repo is not None:
        from troth.stores.githistory import history

        with Progress("importing") as progress:
            lines = history(repo, acting(actor, ledger))
            return _rows(ledger, lines, progress, 0, as_json, dry_run=dry_run, strict=strict)
    assert file is not None
    _refuse_itself(ledger, file)
    from troth.stores.importing import bring_whole, format_of, lines_of, opened, read_v1

    with opened(file) as fd, Progress("importing") as progress:
        kind = format_of(fd, fields) if kind == AUTO else kind
        if kind == ROWS:
            total = _count(fd)
            lines = lines_of(fd, fields, acting(actor, ledger))
            return _rows(ledger, lines, progress, total, as_json, dry_run=dry_run, strict=strict)
        if dry_run:
            raise Refused("E_USAGE", f"a {kind} ledger comes in whole or not at all; --dry-run is for rows")
        if kind == WHOLE:
            count = bring_whole(ledger, file, fd, progress).total
        else:
            rows = read_v1(file, fd)
            ledger.fill(rows)
            count = len(rows)
    return _told(ledger, kind, count, as_json)


def _count(fd: int) -> int:
    """Return how many lines there are, for the progress that is shown."""
    from troth.stores.lines import physical_lines

    return sum(1 for _ in physical_lines(fd, 0)) if os.isatty(2) else 0


def _rows(
    ledger: LedgerStore,
    lines: Iterable[Line],
    progress: Progress,
    total: int,
    as_json: bool,
    *,
    dry_run: bool,
    strict: bool,
) -> int:
    from troth.stores.importing import bring

    report = bring(
        ledger, lines, strict=strict, dry_run=dry_run, progress=lambda done: progress(done, total) if total else None
    )
    found = ledger.read().verification
    if as_json:
        emit_json({**report.as_json(), "format": ROWS, "dry_run": dry_run, "head": found.head, "ok": found.ok})
    else:
        for one in report.refused[:SHOWN]:
            note(f"line {one.line}  {printable(str(one.fault), 400)}")
        if report.refused_count > SHOWN:
            note(f"and {report.refused_count - SHOWN} more")
        counts = f"{report.present} already present, {report.refused_count} refused"
        if report.written:
            say(f"{report.imported} imported into {printable(ledger.location)}, {counts}; {found.summary()}")
        else:
            say(f"{report.imported} would be imported, {counts}; nothing was written")
    return 1 if not found.ok else 2 if report.refused_count else 0


def _told(ledger: LedgerStore, kind: str, count: int, as_json: bool) -> int:
    snapshot = ledger.read()
    found, anomalies = snapshot.verification, snapshot.state.anomalies
    if as_json:
        told: dict[str, Any] = {"imported": count, "present": 0, "refused": [], "format": kind}
        emit_json(
            {**told, "head": found.head, "ok": found.ok, "anomalies": [anomaly.as_json() for anomaly in anomalies]}
        )
    else:
        from troth.cli.faults import tell_anomalies

        say(f"{count} rows imported into {printable(ledger.location)}; {found.summary()}")
        tell_anomalies(anomalies[:SHOWN], len(anomalies))
    return 0 if found.ok else 1


def _refuse_itself(ledger: LedgerStore, file: Path) -> None:
    with suppress(OSError):  # what cannot be looked at is not read or written either, and refused there
        if file.samefile(ledger.location):
            raise Refused("E_USAGE", "a ledger cannot be imported into itself")
