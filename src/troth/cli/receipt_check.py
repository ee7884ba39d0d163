"""``troth receipt check``: the result of each member folder."""

from __future__ import annotations

import click

from troth.cli.answer import printable, say, worst
from troth.cli.receipt_common import EXITS, checks_option, emit, in_short
from troth.core.errors import TrothError


@click.command("check")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path())
@checks_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, one line a folder.")
def check_cmd(folders: tuple[str, ...], names: tuple[str, ...], as_json: bool) -> int:
    """Give the result of each member folder, in the shape a reader is compared by.

    \b
    Exit status: 0 receipt valid and done supported (or the checks asked for, or a contract statement valid),
    1 invalid or contradicted, 2 refused, 3 not established; for several folders the first of 2, 1, 3, 0 that occurs.

    Example: troth receipt check --json runs/*/
    """
    from troth.receipts.verify import check_member, check_names, standing
    from troth.stores.members import FolderMember

    wanted = check_names(names) if names else None
    codes = []
    for folder in folders:
        try:
            result = check_member(FolderMember(folder), wanted)
        except TrothError as fault:
            if len(folders) == 1:
                raise
            codes.append(fault.exit_code)
            if as_json:
                emit({"member": folder, **fault.as_json()})
            else:
                say(f"{printable(folder)}: {printable(str(fault))}")
            continue
        codes.append(EXITS[standing(result)])
        if as_json:
            emit(result if len(folders) == 1 else {"member": folder, **result})
        else:
            say(f"{printable(folder)}: {in_short(result)}")
    return worst(codes)
