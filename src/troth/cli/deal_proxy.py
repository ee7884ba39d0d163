"""``troth deal proxy``: one deal of 0.3-proxy with a trustee who keeps or breaks the trust."""

from __future__ import annotations

from pathlib import Path

import click

from troth.cli.answer import emit_json, printable, say


@click.command("proxy")
@click.argument("trustee", metavar="TRUSTEE")
@click.option("--amount", type=click.IntRange(0, 2**53 - 1), default=10, show_default=True, help="Points offered.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the transcript; no file is written over."
)
@click.option("--json", "as_json", is_flag=True, help="Print the final record as one JSON object.")
def proxy_cmd(trustee: str, amount: int, out: Path | None, as_json: bool) -> int:
    """Play a deal in which everyone but the proxy trustee keeps their word (F8), in the protocol 0.3-proxy.

    \b
    TRUSTEE is one of:
      honest        undertakes the trust and delivers to the agent
      declines      does not take it on
      withholds     never delivers
      short         delivers one point less than it was entrusted with
      pays_another  delivers to somebody else
      colludes      gives the points back to the counterparty

    The protocol version is ours: the source's v0.2 defers this role, and no v0.2 run or reader knows it.

    Exit status: 0 played, whatever became of the points; 2 refused.

    Example: troth deal proxy colludes --out proxy.jsonl
    """
    from troth.deals.answer import final_record
    from troth.deals.codes import LABELS, NON_CLAIMS_REF
    from troth.deals.proxy import PROTOCOL
    from troth.lab.trustees import OFFER_ID, deal_with

    scribe = deal_with(trustee, amount)
    if out is not None:
        from troth.stores.transcripts import created

        with created(out) as file:
            file.append(scribe.transcript())
    if as_json:
        emit_json(final_record(scribe.run))
        return 0
    say(f"{', '.join(LABELS)} ({NON_CLAIMS_REF}); protocol {PROTOCOL} is ours, not the source's")
    say(f"{OFFER_ID}: {printable(scribe.run.deals[OFFER_ID].state, 200)}")
    say("points  " + "  ".join(f"{party} {points:+d}" for party, points in scribe.run.escrow.balances().items()))
    return 0
