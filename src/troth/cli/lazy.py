"""A group of commands as a table: each is imported when it is called, so that start-up stays light."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import ClassVar

import click

from troth.core.errors import Defect

Table = Mapping[str, tuple[str, str]]
"""Name of a command -> the module that holds it under that name with ``_cmd`` behind it, and its line of help."""


class LazyTable(click.Group):
    """A group whose commands stand in :attr:`table`, in the order in which they are listed."""

    table: ClassVar[Table] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command.

        Raises:
            Defect: ``E_DEFECT`` when the table names what is no command.
        """
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        command = getattr(importlib.import_module(entry[0]), f"{cmd_name.replace('-', '_')}_cmd", None)
        if not isinstance(command, click.Command):
            raise Defect("E_DEFECT", f"the table of commands names {cmd_name!r}, which is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table alone, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[1]) for name, entry in self.table.items()])
