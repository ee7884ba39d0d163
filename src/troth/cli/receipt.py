"""``troth receipt``: the table of its commands, each imported when it is called."""

from __future__ import annotations

from typing import Final

import click

from troth.cli.lazy import LazyTable, Table

COMMANDS: Final[Table] = {
    # name: (module, one line of help shown by `troth receipt --help`)
    "check": ("troth.cli.receipt_check", "Check one folder of records, or thousands; write reports."),
    "verify": ("troth.cli.receipt_verify", "Tell what a member's receipt comes to, why, and by whose policy."),
    "sign": ("troth.cli.receipt_signing", "Sign a valid receipt, with a key or by an identity."),
    "decide": ("troth.cli.receipt_deciding", "Turn a verdict into what to do, by a table."),
    "show": ("troth.cli.receipt_verify", "Print what the receipt in a folder says, unverified."),
}


class ReceiptGroup(LazyTable):
    """The commands of :data:`COMMANDS`."""

    table = COMMANDS


@click.group("receipt", cls=ReceiptGroup)
def receipt_cmd() -> None:
    """Check and verify done receipts.

    A member folder holds the records of one run (contract, tree, observation, capability, grade, claims), a case and a
    policy for each check, and the receipt.
    """
