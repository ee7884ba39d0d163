#!/usr/bin/env python3
"""`troth status` on a ledger that was verified before, against the plain verifier, in one run.

bench/status.py [--rows N] [--rounds N]     prints medians in seconds, the ratio, and the first reading's time

The index lies in a cache folder of the run's own; the ledger is made by the peer's generator.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARED = Path(os.environ.get("TROTH_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "bench"


def seconds(argv: list[str], environment: dict[str, str], allowed: tuple[int, ...]) -> float:
    """Return the wall time of one command, whose output is dropped."""
    started = time.perf_counter()
    done = subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if done.returncode not in allowed:
        raise SystemExit(f"{argv} ended with {done.returncode}")
    return time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ledger = str(Path(folder, "ledger.jsonl"))
        environment = {**os.environ, "XDG_CACHE_HOME": str(Path(folder, "cache"))}
        subprocess.run([sys.executable, str(SHARED / "gen_ledger.py"), str(arguments.rows), ledger], check=True)
        status = [sys.executable, "-m", "troth", "status", "--store", ledger]
        plain = [sys.executable, str(SHARED / "plain_verify.py"), ledger]
        first = seconds(status, environment, (0,))
        again = statistics.median(seconds(status, environment, (0,)) for _ in range(arguments.rounds))
        peer = statistics.median(seconds(plain, environment, (0,)) for _ in range(arguments.rounds))
    print(f"{arguments.rows:,} rows, median of {arguments.rounds}")
    print(f"plain verifier   {peer:8.3f} s")
    print(f"status, first    {first:8.3f} s   (verifies and replays everything)")
    print(f"status, again    {again:8.3f} s   {again / peer:.3f} of plain")


if __name__ == "__main__":
    main()
