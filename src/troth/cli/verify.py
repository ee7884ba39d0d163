"""``verify``: every hash and link of a ledger."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from troth.cli.answer import coloured, emit_json, note, printable, say, worst
from troth.cli.faults import WARNINGS_SHOWN, finding_line
from troth.cli.options import (
    open_ledger,
    reading_options,
    trust_options,
)
from troth.cli.progress import Progress
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.ledger.chain import Warning_
    from troth.stores.checkpoints import Anchors
    from troth.stores.protocol import LedgerStore

_EXPECTED: Final = re.compile(r"([0-9a-f]{64})(?::([0-9]{1,15}))?\Z")
_NOT_ANCHORED: Final = (
    "The tail is not anchored: rows cut off the end would not show. Keep this outside the ledger for next time:"
)


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
        say(coloured(finding_line(fault.line, fault.id, fault.fault, fault.message), "red"))
    for warning in found.warnings[:WARNINGS_SHOWN]:
        note(f"warning: {finding_line(warning.line, warning.id, warning.warning, warning.message)}")
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


def _expected(text: str | None) -> tuple[str | None, int | None]:
    if text is None:
        return None, None
    match = _EXPECTED.match(text)
    if match is None:
        raise Refused(
            "E_USAGE", "--expect-head takes 64 lowercase hexadecimal digits, then perhaps a colon and a number of rows"
        )
    return match[1], int(match[2]) if match[2] is not None else None
