#!/usr/bin/env python3
"""What confidence costs beside verifying and replaying, on two ledgers: the peer's, and one that is dense with trust.

bench/confidence.py [--rows N] [--rounds N]     prints medians of processor seconds and the ratio to reading alone

In the dense ledger every row carries a full chain and bears on three earlier ones.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from troth.core.canonical import row_bytes
from troth.ledger.hashing import row_hash
from troth.ledger.trust import WEIGHTS
from troth.stores.jsonl import JsonlStore

SHARED = Path(os.environ.get("TROTH_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "bench"


def dense(where: Path, rows: int) -> None:
    """Write a ledger in which every row is scored, cites two earlier rows and contradicts a third."""
    source, last = random.Random(1), "0" * 64
    with where.open("wb") as file:
        for number in range(rows):
            chain = [f"{name}:{round(source.random(), 2)}" for name in WEIGHTS]
            row: dict[str, Any] = {
                "id": f"mem_{number:08x}",
                "op": "capture",
                "ts": "2026-01-01T00:00:00Z",
                "actor": f"agent:n{number % 50}",
                "workspace": "w",
                "prevHash": last,
                "payload": {"body": f"row {number}", "kind": "evidence"},
                "trust": {"confidence": 0.5, "verification": "unverified", "chain": chain},
                "relations": [
                    {"type": kind, "targetId": f"mem_{source.randrange(max(1, number)):08x}"}
                    for kind in ("cites", "cites", "contradicts")
                ],
            }
            row["hash"] = last = row_hash(row)
            file.write(row_bytes(row) + b"\n")


def median(rounds: int, work: Callable[[], object]) -> float:
    """Return the median of processor seconds."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{arguments.rows:,} rows, median of {arguments.rounds}")
    with tempfile.TemporaryDirectory() as folder:
        usual, full = Path(folder, "usual.jsonl"), Path(folder, "dense.jsonl")
        subprocess.run([sys.executable, str(SHARED / "gen_ledger.py"), str(arguments.rows), str(usual)], check=True)
        dense(full, arguments.rows)
        for ledger in (usual, full):

            def read(*, trust: bool, weigh: bool = True, ledger: Path = ledger) -> object:
                snapshot = JsonlStore.open(ledger).read(trust=trust)
                return snapshot.trust if weigh else None

            alone = median(arguments.rounds, lambda read=read: read(trust=False, weigh=False))
            together = median(arguments.rounds, lambda read=read: read(trust=True))
            afterwards = median(arguments.rounds, lambda read=read: read(trust=False))
            print(f"{ledger.stem:<6} verify and replay      {alone:8.3f} s")
            print(f"{ledger.stem:<6} with confidence        {together:8.3f} s   {together / alone:.2f}")
            print(f"{ledger.stem:<6} confidence afterwards  {afterwards:8.3f} s   {afterwards / alone:.2f}")


if __name__ == "__main__":
    main()
