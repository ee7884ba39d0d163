"""``troth deal``: the table of its commands, each imported when it is called."""

from __future__ import annotations

from typing import Final

import click

from troth.cli.lazy import LazyTable

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    # name: (module, one line of help shown by `troth deal --help`); the module's `NAME_cmd` is the command
    "check": ("troth.cli.deal_check", "Replay a transcript and tell how each of its deals ended."),
    "show": ("troth.cli.deal_check", "Draw a transcript as lanes, one for each role."),
    "record": ("troth.cli.deal_record", "Record a transcript's deals as signals on the ledger."),
    "judge": ("troth.cli.deal_judge", "Let the checker judge a disclosure, and write its verdict."),
    "play": ("troth.cli.deal_play", "Play a deal in the terminal: people, or a person and a policy."),
    "proxy": ("troth.cli.deal_proxy", "Play a deal with a trustee who keeps or breaks the trust (F8)."),
    "sweep": ("troth.cli.deal_sweep", "Play many deals from a configuration; Parquet and a summary."),
    "run": ("troth.cli.deal_lab", "Play deals by policies and a seed, and keep them in a folder."),
    "suite": ("troth.cli.deal_lab", "Run a failure suite: F1 to F7, F-D′, B3, or all."),
    "b3": ("troth.cli.deal_lab", "Compare points, object options and both, on the same agent."),
    "report": ("troth.cli.deal_lab", "Check a run's folder and tell what it holds."),
    "machine": ("troth.cli.deal_check", "Tell what each message does in each state."),
}


class DealTable(LazyTable):
    """The group's class: its commands are those of the table."""

    table = COMMANDS


@click.group("deal", cls=DealTable, epilog="Example: troth deal check transcript.jsonl --json")
def deal_cmd() -> None:
    """Check, show, play and stress-test simulated deals: offer, accept, hold, disclose, judge, settle.

    Experimental and non-transfer: nothing here binds anyone, moves money, or shows that a deal would hold in the world.
    """
