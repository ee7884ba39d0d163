"""``troth export``: rows let out as their scopes allow, or the whole ledger for oneself; ``verify --set`` for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from troth.cli.answer import coloured, drop_output, emit_json, note, printable, say
from troth.cli.options import Notes, json_option, open_ledger, store_option
from troth.core.errors import Defect, Refused

if TYPE_CHECKING:
    from troth.ledger.sync import Audience, Selection
    from troth.stores.protocol import LedgerStore

NARROWED_SHOWN: Final = 20
"""Rows held back by one that they name, printed for a person; --json has them all."""

STDOUT: Final = "-"

_FREE_TEXT: Final = "free text may identify people: bodies, tags and whatever else is kept leave as they were written"
_FORMS: Final = {"row": "unmodified", "anonymous": "anonymous"}
_WHY: Final = {
    "own": "are local themselves",
    "named": "name a row that does not go there",
    "audience": "have a scope that does not lead there",
}


@click.command("export", epilog="Example: troth export --to other-workspace -o rows.jsonl")
@click.option("--to", "workspace", metavar="WORKSPACE", help="`full` and `cloud` rows, for a peer that the key names.")
@click.option("--cloud", "to_cloud", is_flag=True, help="`cloud` rows, for the key's sync_target.")
@click.option("--anonymous", is_flag=True, help="`anonymous` rows, without actor, hashes, source_key and meta.")
@click.option("--whole", type=click.Path(path_type=Path), metavar="FILE", help="A copy of every byte, for yourself.")
@click.option("-o", "--output", default=STDOUT, metavar="FILE", help="Where the rows go; - is stdout, the default.")
@click.option("--dry-run", is_flag=True, help="Only tell what would go, and why the rest stays.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@store_option
@json_option
def export_cmd(
    *,
    workspace: str | None,
    to_cloud: bool,
    anonymous: bool,
    whole: Path | None,
    output: str,
    dry_run: bool,
    force: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Let rows out of the ledger as their scopes allow, as a set without links.

    Needs federation.enabled in the genesis key. A row goes nowhere that its own syncScope or one of the rows it names
    (by commitment, source, evidence or target, and on from there) does not lead to; without a syncScope it stays.
    Nothing is sent: the rows go into a file or to stdout. Whoever gets them checks them with `troth verify --set`.
    """
    if sum((workspace is not None, to_cloud, anonymous, whole is not None)) != 1:
        raise Refused("E_USAGE", "name one of --to WORKSPACE, --cloud, --anonymous and --whole FILE")
    if whole is not None:
        from troth.cli.store import dump_to

        if dry_run or output != STDOUT:
            raise Refused("E_USAGE", "--whole names its own file and has no --dry-run")
        return dump_to(whole, store, as_json, force=force)
    if output == STDOUT and not dry_run and (as_json or force):
        raise Refused("E_USAGE", "--json and --force need a file: the rows take stdout", remedy="Add -o FILE.")
    from troth.stores.exporting import prepare, write

    notes = Notes()
    ledger = open_ledger(store, notes)
    export = prepare(ledger, _audience(ledger, workspace, to_cloud=to_cloud))
    chosen = export.selection
    warnings = [warning.as_json() for warning in ledger.ruling().warnings()]
    if chosen.out:
        warnings.append({"line": None, "id": None, "warning": "free_text", "message": _FREE_TEXT})
    file = Path(output) if output != STDOUT and not dry_run else None
    if file is not None:
        write(ledger, file, export.pieces(), force=force)
    if as_json:
        where = {"file": str(file) if file is not None else None}
        emit_json({**chosen.as_json(), **where, "warnings": [*warnings, *notes.as_json()]})
        return 0
    for warning in warnings:
        note(f"warning: {warning['warning']}: {printable(str(warning['message']), 400)}")
    if dry_run:
        for text in _told(chosen):
            say(text)
    elif file is not None:
        say(f"{_brief(chosen)}, in {printable(str(file))}")
    else:
        _to_stdout(export.pieces())
        note(f"troth: {_brief(chosen)}")
    return 0


def _audience(ledger: LedgerStore, workspace: str | None, *, to_cloud: bool) -> Audience:
    from troth.ledger import sync

    genesis = ledger.genesis()
    if workspace is not None:
        return sync.peer(genesis, workspace)
    return sync.cloud(genesis) if to_cloud else sync.anybody(genesis)


def _brief(chosen: Selection) -> str:
    form = _FORMS[chosen.audience.form]
    return f"{len(chosen.out)} of {chosen.total} rows for {printable(chosen.audience.name, 200)}, {form}"


def _told(chosen: Selection) -> Iterator[str]:
    yield _brief(chosen)
    yield "Effective scopes: " + ", ".join(f"{name} {count}" for name, count in chosen.scopes.items())
    for name, count in chosen.stay.items():
        if count:
            yield f"Stay: {count} {_WHY[name]}"
    for one in chosen.narrowed[:NARROWED_SHOWN]:
        by = printable(one.cause, 80) if one.cause is not None else "a name that no row has"
        yield f"  {printable(one.id or '-', 80)}  {one.own}, narrowed to {one.effective} by {by}"
    if len(chosen.narrowed) > NARROWED_SHOWN:
        yield f"  and {len(chosen.narrowed) - NARROWED_SHOWN} more; --json lists them all"


def _to_stdout(pieces: Iterable[bytes]) -> None:
    out = sys.stdout.buffer
    for piece in pieces:
        try:
            out.write(piece)
        except BrokenPipeError:
            raise
        except OSError as fault:
            raise _lost(fault) from None
    try:
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise _lost(fault) from None


def _lost(fault: OSError) -> Defect:
    drop_output(1)
    return Defect("E_OUTPUT", f"the rows could not be written: {fault.strerror or fault}", remedy="Use -o FILE.")


# verify --set ---------------------------------------------------------------------------------------------------


def verify_set(file: str, as_json: bool) -> int:
    """Answer ``verify --set``: 1 when a row is not what its hash says, 3 when nothing can be checked of some rows."""
    from troth.ledger.chain import split_lines
    from troth.ledger.sync import check_set
    from troth.stores.durable import open_regular

    fd = 0 if file == STDOUT else open_regular(Path(file), os.O_RDONLY, "E_NO_LEDGER", "the set of rows")
    try:
        found = check_set(split_lines(_chunks(fd, file)))
    finally:
        if fd:
            os.close(fd)
    status = 1 if not found.ok else 3 if found.unverifiable else 0
    if as_json:
        emit_json(found.as_json())
        return status
    say(found.summary())
    for fault in found.faults:
        text = f"line {fault.line}  {printable(fault.id or '-', 80)}  {fault.fault}: {printable(fault.message, 400)}"
        say(coloured(text, "red"))
    for warning in found.warnings:
        note(f"warning: line {warning.line}  {warning.warning}: {warning.message}")
    if found.unverifiable:
        note("troth: not established: rows without a hash, as anonymous ones are, may be anything")
    say("A set has no links: which rows are missing from it, or were added, cannot be told.")
    return status


def _chunks(fd: int, file: str) -> Iterator[bytes]:
    from troth.stores.durable import os_fault

    try:
        while chunk := os.read(fd, 1 << 18):
            yield chunk
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, Path(file), "the set cannot be read") from None
