"""``troth deal``: the table of its commands, each imported when it is called."""

from __future__ import annotations

import importlib
from typing import Final

import click

from troth.core.errors import Defect

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    # name: (module, one line of help shown by `troth deal --help`); the module's `NAME_cmd` is the command
    "check": ("troth.cli.deal_check", "Replay a transcript and tell how each of its deals ended."),
    "show": ("troth.cli.deal_check", "Draw a transcript as lanes, one for each role."),
    "record": ("troth.cli.deal_record", "Record a transcript's deals as signals on the ledger."),
    "judge": ("troth.cli.deal_judge", "Let the checker judge a disclosure, and write its verdict."),
    "machine": ("troth.cli.deal_check", "Tell what each message does in each state."),
}


class LazyDealGroup(click.Group):
    """The group of deal commands; naming them imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; ``None`` when the table has none of that name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(importlib.import_module(entry[0]), f"{cmd_name.replace('-', '_')}_cmd")
        if not isinstance(command, click.Command):
            raise Defect("E_DEFECT", f"the table of deal commands names {cmd_name!r}, which is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[1]) for name, entry in COMMANDS.items()])


@click.group("deal", cls=LazyDealGroup, epilog="Example: troth deal check transcript.jsonl --json")
def deal_cmd() -> None:
    """Check, show, play and stress-test simulated deals: offer, accept, hold, disclose, judge, settle.

    Experimental and non-transfer: nothing here binds anyone, moves money, or shows that a deal would hold in the world.
    """
