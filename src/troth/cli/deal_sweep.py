"""``troth deal sweep``: many deals from a configuration, in one process, on all cores, or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.progress import Countdown
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.lab.sweepconfig import Sweep
    from troth.lab.sweeping import Swept

_SHOWN: Final = 40
"""Cells told in words; the summary has them all."""


@click.command("sweep")
@click.argument("config", type=click.Path(path_type=Path), required=False)
@click.option("--out", type=click.Path(path_type=Path), metavar="FOLDER", help="Default: CONFIG without its ending.")
@click.option(
    "--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes. Default: one; on a local cluster all."
)
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler, or local to start one here.")
@click.option("--example", is_flag=True, help="Print a configuration that runs, every key explained.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a configuration, for editors.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: where, how many, the digest.")
def sweep_cmd(  # noqa: PLR0917 - click calls it by name
    config: Path | None,
    out: Path | None,
    jobs: int | None,
    cluster: str | None,
    example: bool,
    schema: bool,
    as_json: bool,
) -> int:
    """Play every combination of a configuration's policies, offers, noise and seeds (experimental, non-transfer).

    The folder gets results.parquet, a row a deal, and summary.json, counts and Wilson intervals of every combination.
    One process, many and a cluster write the same bytes. A sweep that was cut off goes on when it is started again.

    Exit status: 0 finished; 2 refused; 75 another process plays it; 130 interrupted, what is finished is kept.

    Example: troth deal sweep --example > sweep.toml && troth deal sweep sweep.toml --jobs 2
    """
    from troth.lab.sweepconfig import EXAMPLE, MAX_FILE_BYTES, json_schema, read_sweep

    if example:
        say(EXAMPLE, end="")
        return 0
    if schema:
        emit_json(json_schema())
        return 0
    if config is None:
        raise Refused("E_USAGE", "no configuration was named", remedy="`troth deal sweep --example` prints one.")
    sweep = read_sweep(_bytes(config, MAX_FILE_BYTES + 1), str(config))
    folder = out if out is not None else config.with_suffix("")
    if folder == config:
        raise Refused("E_USAGE", "the configuration's name has no ending", remedy="Name the folder with --out.")
    swept = _swept(sweep, folder, jobs, cluster)
    _tell(sweep, swept, folder, as_json=as_json)
    return 0


def _bytes(config: Path, limit: int) -> bytes:
    try:
        with config.open("rb") as file:
            return file.read(limit)
    except OSError as fault:
        raise Refused(
            "E_SWEEP_CONFIG",
            f"{printable(str(config), 300)} cannot be read: {fault.strerror or fault}",
            remedy="`troth deal sweep --example` prints a configuration.",
        ) from None


def _swept(sweep: Sweep, folder: Path, jobs: int | None, cluster: str | None) -> Swept:
    from troth.lab.sweeping import Workers, run
    from troth.lab.workers import cores

    count = jobs if jobs is not None else cores() if cluster == "local" else 1
    try:
        with Countdown("playing", "deals") as progress:
            return run(sweep, folder, Workers(count, cluster), progress)
    except KeyboardInterrupt:
        note(f"What is finished is kept in {printable(str(folder), 300)}; start the sweep again to go on.")
        raise
    except ImportError as fault:
        raise Refused("E_USAGE", f"{fault.name} is not installed", remedy="Install the extra `lab`.") from None


def _tell(sweep: Sweep, swept: Swept, folder: Path, *, as_json: bool) -> None:
    from troth.deals.codes import LABELS, NON_CLAIMS_REF

    label = f"{', '.join(LABELS)}: simulated deals show nothing about the world ({NON_CLAIMS_REF})"
    results = swept.summary["results"]
    for chunk in swept.spoilt:
        note(f"chunk {chunk} was not what had been written; it was played again")
    if as_json:
        note(f"troth: {label}")
        emit_json(
            {
                "labels": list(LABELS),
                "folder": str(folder),
                "deals": sweep.deals,
                "cells": len(sweep.cells),
                "found": swept.found,
                "spoilt": list(swept.spoilt),
                "config_sha256": sweep.digest,
                "results_sha256": results["sha256"],
            }
        )
        return
    say(label)
    say(f"{sweep.deals:,} deals of {len(sweep.cells):,} combinations" + _found(swept))
    for cell in swept.summary["cells"][:_SHOWN]:
        _cell(cell)
    if len(sweep.cells) > _SHOWN:
        say(f"… and {len(sweep.cells) - _SHOWN:,} more in {printable(str(folder / 'summary.json'), 300)}")
    say()
    say(f"{printable(str(folder / results['file']), 300)}  SHA-256 {results['sha256']}")


def _found(swept: Swept) -> str:
    return f", {swept.found:,} of them played before" if swept.found else ""


def _cell(cell: dict[str, Any]) -> None:
    say()
    say(f"{cell['counterparty']} × {cell['agent']} × {cell['offer']} × {cell['noise']}")
    for name in ("accepted", "disclosed", "settled"):
        rate = cell["rates"][name]
        say(
            f"  {name:<10}{rate['value']:7.2%}  [{rate['low']:.2%}, {rate['high']:.2%}]  {rate['k']:,} of {rate['n']:,}"
        )
    ends = ", ".join(f"{state or 'no offer'} {count:,}" for state, count in cell["ends"].items())
    say(f"  ends      {printable(ends, 400)}")
    say(f"  points    paid {cell['points']['paid']:,}, refunded {cell['points']['refunded']:,}, "
        f"lost by A {cell['points']['loss']:,}")  # fmt: skip
