"""What a sweep costs: ``python bench/sweep.py [--deals N] [--rounds N] [--cluster]``.

Plays the same deals bare (one after another, rows thrown away), as a sweep in this process, as a sweep in two processes
and, with ``--cluster``, on a local Dask cluster of two workers; each into a fresh folder, starting of processes
included. Prints the median of each over the rounds in deals a second by the clock on the wall and by this process's own
time, the ratios, and whether all folders hold the same bytes. What a sweep adds to bare play is told by processor time,
what two processes gain by the clock on the wall, which on a machine with other work tells more of that work.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from troth.lab.playing import Game
from troth.lab.sweepconfig import Sweep, read_sweep
from troth.lab.sweeping import Workers, run

CONFIG = """
name = "bench"
deals = {deals}
chunk = {chunk}
counterparties = ["honest", "withholding"]
agents = ["cooperative", "rational(belief=0.7, reserve=0, reserve_to=14)"]
[[offers]]
name = "cash"
[[noise]]
name = "none"
[[noise]]
name = "noisy"
checker = "noisy(0.05, 0.1)"
"""


def bare(sweep: Sweep) -> None:
    """Play the deals and keep nothing."""
    for chunk in range(sweep.chunks):
        for cell, seed, indices in sweep.pieces(chunk):
            game = Game(cell.setting)
            for index in indices:
                game.play(seed, index)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deals", type=int, default=80_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cluster", action="store_true")
    asked = parser.parse_args()
    each = max(asked.deals // 8, 1)
    sweep = read_sweep(CONFIG.format(deals=each, chunk=max(asked.deals // 16, 1)).encode())
    ways: dict[str, Workers] = {"one process": Workers(), "two processes": Workers(2)}
    if asked.cluster:
        ways["local cluster of two"] = Workers(2, "local")
    rates: dict[str, list[Rate]] = {name: [] for name in ("bare play", *ways)}
    digests = set()
    with tempfile.TemporaryDirectory() as place:
        # What is imported once is imported before anything is timed.
        run(read_sweep(CONFIG.format(deals=1, chunk=1).encode()), Path(place) / "first")
        for number in range(asked.rounds):
            rates["bare play"].append(timed(sweep, lambda: bare(sweep)))
            for name, by in ways.items():
                folder = Path(place) / f"{number} {name}"
                rates[name].append(timed(sweep, lambda folder=folder, by=by: run(sweep, folder, by)))
                digests.add((folder / "results.parquet").read_bytes())
    wall = {name: statistics.median(rate.wall for rate in found) for name, found in rates.items()}
    own = {name: statistics.median(rate.own for rate in found) for name, found in rates.items()}
    print(f"{sweep.deals:,} deals, {sweep.chunks} chunks, {asked.rounds} rounds")
    for name in rates:
        cpu = f"{own[name]:>10,.0f} by processor time" if name in ("bare play", "one process") else ""
        print(f"{name:<22}{wall[name]:>10,.0f} deals a second  {cpu}")
    print(f"sweep to bare play:      {own['one process'] / own['bare play']:.2f} by processor time")
    print(f"two processes to one:    {wall['two processes'] / wall['one process']:.2f} by the clock")
    print(f"the same bytes:          {'yes' if len(digests) == 1 else 'NO'}")


class Rate(NamedTuple):
    """Deals a second: by the clock on the wall, and by this process's own time."""

    wall: float
    own: float


def timed(sweep: Sweep, work: Callable[[], object]) -> Rate:
    """Return how many of the sweep's deals a second the work does."""
    clock, own = time.perf_counter(), time.process_time()
    work()
    return Rate(sweep.deals / (time.perf_counter() - clock), sweep.deals / (time.process_time() - own))


if __name__ == "__main__":
    main()
