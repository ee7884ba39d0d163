"""Verification with and without a checkpoint, and making a proof: medians and their ratio.

    python bench/checkpoint.py [--rows N] [--rounds R] [--ledger FILE]

The rounds alternate, so that a busy machine meets both alike; one core. The ledger is generated with the generator
that lies beside the plain verifier (see verify_ledger.py).
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from troth.ledger.merkle import Frontier, RangeRoots, inclusion_ranges
from troth.stores.jsonl import JsonlStore
from verify_ledger import shared_bench


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that a piece of work took."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ledger", type=Path, help="an existing ledger instead of a generated one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
        ledger = options.ledger
        if ledger is None:
            ledger = Path(folder) / "ledger.jsonl"
            generator = str(shared_bench() / "gen_ledger.py")
            subprocess.run([sys.executable, generator, str(options.rows), str(ledger)], check=True)
        store = JsonlStore.open(ledger)
        rows = store.verify(workers=1).total
        ranges = inclusion_ranges(rows // 3, rows)
        ways: dict[str, Callable[[], object]] = {
            "verify": lambda: store.verify(workers=1),
            "verify --checkpoint": lambda: store.verify(workers=1, leaves=Frontier([rows // 2]).extend),
            "a proof's nodes": lambda: store.verify(workers=1, leaves=RangeRoots(ranges).extend),
        }
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, work in ways.items():
                found[name].append(timed(work))
    base = statistics.median(found["verify"])
    for name, times in found.items():
        seconds = statistics.median(times)
        print(
            f"{name:20} {seconds:8.3f} s  {rows / seconds:9.0f} rows/s  {seconds / base:5.2f} x verify  ({rows} rows)"
        )
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.1f} MiB, median of {options.rounds}")


if __name__ == "__main__":
    main()
