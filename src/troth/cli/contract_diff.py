"""``troth contract diff``: what differs between two sealed contracts, and which of it asks less."""

from __future__ import annotations

from pathlib import Path

import click

from troth.cli.answer import coloured, emit_json, printable, say
from troth.cli.contract_common import read_sealed


@click.command("diff", epilog="Example: troth contract diff .mentu/contracts/empty-cart sealed-before/contract.json")
@click.argument("before", type=click.Path(path_type=Path), metavar="A")
@click.argument("after", type=click.Path(path_type=Path), metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def diff_cmd(before: Path, after: Path, as_json: bool) -> int:
    """Tell what differs between two sealed contracts; what asks less of whoever works under it is marked.

    Exits with 0 when both say the same, 1 when they differ.
    """
    from troth.core.digests import sha256_hex
    from troth.observer.comparing import differences

    _, data, one = read_sealed(before)
    _, other_data, other = read_sealed(after)
    found = differences(one, other)
    if as_json:
        emit_json(
            {
                "before": sha256_hex(data),
                "after": sha256_hex(other_data),
                "same": not found,
                "differences": [item.as_json() for item in found],
            }
        )
        return 1 if found else 0
    for item in found:
        mark = coloured("less", "red") if item.less else "    "
        say(f"{mark}  {item.what:<8}  {printable(item.name, 200)}: {printable(item.told, 400)}")
    if not found:
        say("the same")
    return 1 if found else 0
