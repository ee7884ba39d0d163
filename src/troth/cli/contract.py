"""``troth contract``: the table of its commands, each imported when it is called."""

from __future__ import annotations

from typing import Final

import click

from troth.cli.lazy import LazyTable, Table

COMMANDS: Final[Table] = {
    # name: (module, one line of help shown by `troth contract --help`)
    "propose": ("troth.cli.contract_propose", "Propose a contract from the project's own files."),
    "seal": ("troth.cli.contract_seal", "Seal a contract file over a workspace."),
    "check": ("troth.cli.contract_check", "Check a sealed contract against a workspace."),
    "sign": ("troth.cli.contract_sign", "Sign a sealed contract, so that a run can ask for it."),
    "show": ("troth.cli.contract_check", "Show a sealed contract and what its mutants told."),
    "diff": ("troth.cli.contract_diff", "Tell what differs between two sealed contracts."),
}


class ContractGroup(LazyTable):
    """The commands of :data:`COMMANDS`."""

    table = COMMANDS


@click.group("contract", cls=ContractGroup)
def contract_cmd() -> None:
    """Seal, check and show contracts: what is protected, and the commands whose passing means done."""
