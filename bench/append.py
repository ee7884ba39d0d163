"""Durable append in an open process against a bare write and sync of the same bytes: medians and their ratio.

    python bench/append.py [--rows N] [--ledger FILE] [--rounds R] [--folder DIR] [--threads T]

Each round appends N rows through an open store, then writes the very same lines with one write and one sync each to
a file beside it; the rounds alternate, so that a busy disk meets both alike. With --ledger the store starts from a
copy of that file (a million rows, for example), without it from an empty ledger. Processor time stands beside the wall
time, because a busy machine disturbs it less. At the end T threads append at once: rows a second against one thread.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path

from troth.ledger.operations import Candidate
from troth.stores.jsonl import JsonlStore
from troth.stores.workspace import create_workspace


def store_times(store: JsonlStore, rows: int) -> list[float]:
    """Return the seconds of each append."""
    times = []
    for number in range(rows):
        candidate = Candidate("capture", "agent:worker", {"body": f"row {number} of a benchmark", "kind": "evidence"})
        started = time.perf_counter()
        store.append(candidate)
        times.append(time.perf_counter() - started)
    return times


def bare_times(path: Path, lines: list[bytes]) -> list[float]:
    """Return the seconds of each write and sync."""
    times = []
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for line in lines:
        started = time.perf_counter()
        os.write(fd, line)
        os.fsync(fd)
        times.append(time.perf_counter() - started)
    os.close(fd)
    return times


def together(store: JsonlStore, rows: int, threads: int) -> float:
    """Return the rows a second of threads that append to one store at the same time."""
    crowd = [threading.Thread(target=store_times, args=(store, rows)) for _ in range(threads)]
    started = time.perf_counter()
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    return threads * rows / (time.perf_counter() - started)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--ledger", type=Path)
    parser.add_argument("--folder", type=Path, help="where to measure; the disk matters")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="append-", dir=options.folder))
    try:
        space, _ = create_workspace(root, name="bench", agents_text="bench\n")
        if options.ledger is not None:
            shutil.copyfile(options.ledger, space.ledger)
        bare = root / "bare"
        if options.ledger is not None:
            shutil.copyfile(options.ledger, bare)
        store = JsonlStore.open(root)
        started = time.perf_counter()
        store.append(Candidate("capture", "agent:worker", {"body": "the first append verifies the whole ledger"}))
        first = time.perf_counter() - started
        ours, theirs, ours_cpu, theirs_cpu = [], [], [], []
        for _ in range(options.rounds):
            size = space.ledger.stat().st_size
            before = time.process_time()
            ours.append(statistics.median(store_times(store, options.rows)))
            ours_cpu.append((time.process_time() - before) / options.rows)
            with space.ledger.open("rb") as file:
                file.seek(size)
                lines = file.read().splitlines(keepends=True)
            before = time.process_time()
            theirs.append(statistics.median(bare_times(bare, lines)))
            theirs_cpu.append((time.process_time() - before) / options.rows)
        ratios = [mine / plain for mine, plain in zip(ours, theirs, strict=True)]
        alone, crowd = (
            statistics.median(together(store, options.rows, n) for _ in range(3)) for n in (1, options.threads)
        )
        print(f"rows in the ledger at the end   {len(store.read().rows)}")
        print(f"first append (verifies all)     {first * 1e3:9.3f} ms")
        print(f"durable append, median          {statistics.median(ours) * 1e6:9.1f} us")
        print(f"bare write and sync, median     {statistics.median(theirs) * 1e6:9.1f} us")
        print(f"ratio, median of {options.rounds} rounds       {statistics.median(ratios):9.2f}")
        print(f"processor time, ours and bare   {statistics.median(ours_cpu) * 1e6:9.1f} us")
        print(f"                                {statistics.median(theirs_cpu) * 1e6:9.1f} us")
        print(f"rows a second, 1 thread         {alone:9.0f}")
        print(f"rows a second, {options.threads} threads        {crowd:9.0f}  {crowd / alone:.2f} x one thread")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
