"""``troth merge``: one chain of two ledgers that grew apart; also as git's merge driver."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from troth.cli.answer import emit_json, note, printable, say, tell_error
from troth.cli.options import json_option
from troth.core.errors import Refused, TrothError

if TYPE_CHECKING:
    from troth.stores.merging import Merged

SHOWN: Final = 20
"""Changed rows and rows without effect told one by one to a person; --json has them all."""

_DRIVER_EXIT: Final = 1  # to git: a conflict that a person must look at


@click.command("merge", epilog="Example: troth merge .mentu/ledger.jsonl ../other/.mentu/ledger.jsonl -o both.jsonl")
@click.argument("ledgers", nargs=-1, required=True, metavar="A B", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="A new file for the result.")
@click.option("--in-place", is_flag=True, help="Put the result in A's place, under A's write lock.")
@click.option("--dry-run", is_flag=True, help="Tell what would come of it; nothing is written.")
@click.option("--unrelated", is_flag=True, help="Merge ledgers that have no row in common, too.")
@click.option("--driver", is_flag=True, help="For git: the arguments are %O %A %B [%P], and the result goes into %A.")
@json_option
def merge_cmd(
    *,
    ledgers: tuple[Path, ...],
    out: Path | None,
    in_place: bool,
    dry_run: bool,
    unrelated: bool,
    driver: bool,
    as_json: bool,
) -> int:
    """Make one chain of the ledgers A and B: all of A, then what only B has, then an event that names both heads.

    Each is a ledger file or a folder that holds .mentu. Nothing is lost: where an id or a source_key would stand twice,
    B's row gets another id or gives up the key, and keeps in x_merged what it was. Rows of B that have no effect
    any more, because A's rows came first, are told. Exit codes: 0 done, 1 a ledger does not verify, 2 refused.
    """
    if driver:
        return _drive(ledgers, out is not None or in_place or dry_run or unrelated, as_json)
    if len(ledgers) != 2:
        raise Refused("E_USAGE", "two ledgers are merged", remedy="troth merge A B -o FILE")
    if (out is not None) + in_place + dry_run != 1:
        raise Refused(
            "E_USAGE",
            "say where the result goes",
            remedy="One of: -o FILE for a new file, --in-place to put it in A's place, --dry-run to see first.",
        )
    from troth.stores.merging import merge

    for ledger in ledgers:
        _refuse_address(ledger)
    done = merge(*ledgers, out=out, in_place=in_place, unrelated=unrelated)
    where = None if dry_run else str(out if out is not None else ledgers[0])
    _tell(done, where, as_json)
    return 0


def _drive(words: tuple[Path, ...], other_options: bool, as_json: bool) -> int:
    from troth.stores.merging import merge

    if len(words) not in (3, 4) or other_options:
        raise Refused("E_USAGE", "git's driver takes --driver %O %A %B [%P] and nothing else")
    ancestor, ours, theirs = words[:3]
    name = printable(os.fspath(words[3] if len(words) == 4 else ours), 200)
    try:
        done = merge(ours, theirs, in_place=True, locked=False, ancestor=ancestor)
    except TrothError as fault:
        tell_error(fault, as_json=as_json)
        note(f"troth: {name} was left as it is on the branch that is checked out")
        return _DRIVER_EXIT
    _tell(done, name, as_json)
    return 0


def _refuse_address(ledger: Path) -> None:
    from troth.stores.postgres.address import is_address

    # Path has made one slash of two.
    if is_address(os.fspath(ledger).replace(":/", "://", 1)):
        raise Refused(
            "E_UNSUPPORTED",
            "ledgers in a database are not merged there",
            remedy="`troth store dump FILE` writes one to a file, `troth store load` takes the result into a new one.",
        )


def _tell(done: Merged, where: str | None, as_json: bool) -> None:
    from troth.stores.merging import as_json as members

    if as_json:
        emit_json(members(done) | {"out": where})
        return
    plan = done.plan
    target = printable(where) if where is not None else "nothing was written"
    if plan.outcome == "nothing_to_add":
        say(f"Nothing to add: A has all {plan.rows[1]} rows of B ({target}).")
    elif plan.outcome == "fast_forward":
        say(f"B only went on from A: {plan.added} row(s) taken byte for byte ({target}).")
    else:
        shared = f", {plan.shared} of B's were there already" if plan.shared else ""
        say(f"Merged {plan.added} row(s) of B behind {plan.rows[0]} of A, {plan.common} in common{shared} ({target}).")
        say(f"  {done.event} names both heads: {done.heads[0][0]}, {done.heads[1][0]}")
    _some([f"{printable(one.id, 80)} is {one.new} now: A has another row of that id" for one in plan.renamed])
    _some(
        [
            f"{printable(one.id or '-', 80)} gave up its source_key: {printable(one.kept_by or 'a row without id', 80)}"
            f" has {printable(one.source_key, 80)}"
            for one in plan.rekeyed
        ]
    )
    _some(
        [
            f"line {one.line}  {printable(one.id or '-', 80)}  {one.code}"
            f"{f' ({printable(one.detail, 80)})' if one.detail else ''}: no effect any more, it stays in the ledger"
            for one in done.lost
        ]
    )
    if plan.outcome == "merged":
        note("troth: checkpoints and heads remembered of B do not hold for the result; those of A do")
        if done.other_genesis:
            note("troth: the two ledgers recorded different constitutions; the next row is preceded by A's key again")
    say(f"{done.found.summary()}  head {done.found.head}")


def _some(lines: list[str]) -> None:
    for line in lines[:SHOWN]:
        say(f"  {line}")
    if len(lines) > SHOWN:
        say(f"  … and {len(lines) - SHOWN} more; --json lists them all")
