"""``troth deal record``: a transcript's deals as signals on the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.deal_protocol import made_by, protocol_option
from troth.cli.options import Notes, acting, actor_option, json_option, open_ledger, store_option
from troth.cli.progress import Progress

if TYPE_CHECKING:
    from troth.airlock.deal_record import Recorded
    from troth.deals.transcript import Entry

SHOWN: Final = 20
"""Refused rows, and deals, told one by one."""


@click.command("record")
@click.argument("transcript", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Tell what would be recorded and write nothing.")
@protocol_option
@json_option
@store_option
@actor_option
def record_cmd(  # noqa: PLR0917 - click calls it by name
    transcript: Path, dry_run: bool, protocol: str, actor: str | None, store: str | None, as_json: bool
) -> int:
    """Record the deals of a transcript on the ledger, each message as the signal that it amounts to.

    An offer becomes an observation and a commitment, Accept a claim, a disclosure evidence and a submission, the
    verdict an approval or a reopening, the close an annotation; an illegal message is recorded as illegal. Recording
    again writes nothing twice and goes on where it was cut off or where the transcript has grown.

    The roles act as system:deal-c, -a, -k and -e: what they said was simulated, so no name of a person stands under it.

    Exit status: 0 recorded, 1 the ledger does not verify or says another state, 2 refused, or some rows were refused.

    Example: troth deal record transcript.jsonl --as human:reviewer
    """
    from troth.airlock.deal_record import record
    from troth.stores.transcripts import reading

    ledger = open_ledger(store, Notes())
    with reading(transcript) as file, Progress("recording") as progress:
        total = sum(1 for _ in file.lines())

        def read() -> Iterator[tuple[bytes, Entry]]:
            return file.lines()

        done = record(
            ledger,
            read,
            acting(actor, ledger),
            made=made_by(protocol),
            dry_run=dry_run,
            progress=lambda line: progress(line, total),
        )
    if as_json:
        emit_json(done.as_json())
    else:
        _tell(done)
    if done.report.refused_count:
        return 2
    return 0 if done.ok and (done.agree or dry_run) else 1


def _tell(done: Recorded) -> None:
    from troth.deals.codes import LABELS, NON_CLAIMS_REF

    say(f"{', '.join(LABELS)} ({NON_CLAIMS_REF})")
    for one in done.report.refused[:SHOWN]:
        note(f"line {one.line}  {printable(str(one.fault), 400)}")
    counts = f"{done.report.present} already present, {done.report.refused_count} refused"
    if not done.report.written:
        say(f"{done.report.imported} signals would be recorded, {counts}; nothing was written")
        return
    say(f"transcript {done.transcript}: {done.report.imported} signals recorded, {counts}")
    for offer_id, state, commitment, there in done.deals[:SHOWN]:
        say(f"  {offer_id}: {printable(state, 200)}  {commitment or 'no commitment'} {there or ''}".rstrip())
    if len(done.deals) > SHOWN:
        say(f"  and {len(done.deals) - SHOWN} more deals")
