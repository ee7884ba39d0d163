"""A whole sweep: what is missing is played and kept, then all is joined."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from troth.core.errors import Place, Refused
from troth.lab import workers
from troth.lab.sweepconfig import Sweep
from troth.lab.sweepfolder import SweepFolder, put_in_place, write_whole
from troth.lab.sweeps import summary, write_table


class Workers(NamedTuple):
    """Who plays: ``jobs`` processes (1: this one), or with ``cluster`` a Dask cluster (``local``, or an address)."""

    jobs: int = 1
    cluster: str | None = None


HERE: Final = Workers()


class Swept(NamedTuple):
    """What became of a sweep: its summary, how many deals were there already, and which chunks had to be played again
    because they were not what had been written."""

    summary: dict[str, Any]
    found: int
    spoilt: tuple[int, ...]


def _nothing(done: int, total: int) -> None:
    """Tell nobody."""


def run(sweep: Sweep, path: Path, by: Workers = HERE, told: Callable[[int, int], None] = _nothing) -> Swept:
    """Play a sweep into a folder, or go on with one that was cut off there.

    Args:
        sweep: what to play.
        path: its folder; made when it is not there.
        by: who plays. It makes no difference to a single byte.
        told: is told how many deals are done, of how many.

    Raises:
        Refused: ``E_SWEEP_*``. What was finished is kept.
    """
    folder = SweepFolder.open(path, sweep)
    try:
        return _run(folder, by, told)
    finally:
        folder.close()


def _run(folder: SweepFolder, by: Workers, told: Callable[[int, int], None]) -> Swept:
    sweep = folder.sweep
    done = folder.finished()
    if done is not None:
        folder.drop_chunks()
        told(sweep.deals, sweep.deals)
        return Swept(done, sweep.deals, ())
    spoilt: list[int] = []
    missing = folder.missing(spoilt.append)
    count = found = sweep.deals - sum(sweep.size(chunk) for chunk in missing)
    told(count, sweep.deals)
    # Closed at once when something is wrong here, so that no process goes on for nothing.
    with closing(_played(sweep, missing, by)) as played:
        for chunk, payload in played:
            folder.keep(chunk, payload)
            count += sweep.size(chunk)
            told(count, sweep.deals)
    return Swept(join(folder), found, tuple(spoilt))


def _played(sweep: Sweep, missing: list[int], by: Workers) -> Generator[tuple[int, bytes]]:
    if by.cluster is not None and missing:
        return workers.cluster(sweep.form, missing, by.cluster, by.jobs)
    if by.jobs > 1 and len(missing) > 1:
        return workers.processes(sweep.form, missing, min(by.jobs, len(missing)))
    return workers.here(sweep.form, missing)


def join(folder: SweepFolder) -> dict[str, Any]:
    """Write the table and the summary of a sweep whose chunks are all there, then drop the chunks.

    Raises:
        Refused: ``E_SWEEP_CHUNK``, one is not there or not what was written; ``E_SWEEP_FOLDER``.
    """
    sweep = folder.sweep

    def tables() -> Iterator[Any]:
        for chunk in range(sweep.chunks):
            table = folder.load(chunk)
            if table is None:
                raise Refused("E_SWEEP_CHUNK", f"chunk {chunk} is gone", remedy="Start the sweep again.")
            yield table

    aside = folder.results.with_name(f".{folder.results.name}.{secrets.token_hex(6)}.new")
    try:
        try:
            with aside.open("xb") as file:
                tallies = write_table(sweep, tables(), file)
                file.flush()
                os.fsync(file.fileno())
            made = summary(sweep, tallies, folder.digest_of_results(aside))
            put_in_place(aside, folder.results)
        finally:
            aside.unlink(missing_ok=True)
        data = orjson.dumps(made, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        write_whole(folder.summary, data)
    except OSError as fault:
        raise Refused(
            "E_SWEEP_FOLDER",
            f"the results cannot be written: {fault.strerror or fault}",
            remedy="Make room and start the sweep again; what was played is kept.",
            place=Place(file=str(folder.path)),
        ) from None
    folder.drop_chunks()
    return made
