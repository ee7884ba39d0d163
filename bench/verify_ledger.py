"""Full verification of a large ledger against the plain verifier: medians, their ratio, peak memory.

    python bench/verify_ledger.py [--rows N] [--rounds R] [--ledger FILE] [--replay]

Each measurement is a process of its own on one core, except "two workers", which may have two. The rounds alternate,
so that a busy machine meets all alike; beside wall time stands the processes' CPU time, start-up included, which a
busy machine disturbs less. The ledger is generated once into a temporary folder with the generator that lies beside
the plain verifier; both are found in the folder TROTH_SHARED names, or in ../shared beside the project. The plain
verifier also replays states; --replay adds a measurement of ours that replays by every rule of the ledger spec.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHUNK = 1 << 18


def shared_bench() -> Path:
    """Return the folder with the generator and the plain verifier."""
    named = os.environ.get("TROTH_SHARED")
    beside = Path(__file__).resolve().parents[2] / "shared"
    for folder in ([Path(named)] if named else []) + [beside]:
        if (folder / "bench" / "plain_verify.py").is_file():
            return folder / "bench"
    raise SystemExit("plain_verify.py not found: name its folder's parent with TROTH_SHARED")


def chunks(path: Path) -> Iterator[bytes]:
    """Yield a file in pieces."""
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            yield piece


def measure_ours(path: Path, replaying: bool) -> dict[str, Any]:
    """Verify, with or without replay, and return what was found and what it took."""
    from troth.ledger.chain import ChainReader
    from troth.ledger.replay import Replay

    reader, replay = ChainReader(), Replay()
    started = time.perf_counter()
    reader.feed_all(chunks(path), replay.apply if replaying else None)
    found = reader.finish()
    seconds = time.perf_counter() - started
    return {
        "rows": found.total,
        "bad": len(found.faults),
        "s": seconds,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure_workers(path: Path) -> dict[str, Any]:
    """Verify through the store with two workers beside the process that joins what they find."""
    from troth.stores.jsonl import JsonlStore

    started = time.perf_counter()
    found = JsonlStore(path).verify(workers=2)
    seconds = time.perf_counter() - started
    peak = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "rows": found.total,
        "bad": len(found.faults),
        "s": seconds,
        "peak_rss_mb": (peak[0] + 2 * peak[1]) / 1024,
    }


def run(argv: list[str], cores: int = 1) -> dict[str, Any]:
    """Run one measurement in a process of its own, kept to that many cores where the system can."""

    def pin() -> None:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *argv], check=True, capture_output=True, text=True, preexec_fn=pin)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer: dict[str, Any] = json.loads(done.stdout)
    answer["cpu"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return answer


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ledger", type=Path, help="an existing ledger instead of a generated one")
    parser.add_argument("--replay", action="store_true", help="measure verification with replay too")
    parser.add_argument("--one", choices=("verify", "replay", "two workers"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        if options.one == "two workers":
            print(json.dumps(measure_workers(options.ledger)))
        else:
            print(json.dumps(measure_ours(options.ledger, options.one == "replay")))
        return
    bench = shared_bench()
    with tempfile.TemporaryDirectory(prefix="verify-ledger-") as folder:
        ledger = options.ledger
        if ledger is None:
            ledger = Path(folder) / "ledger.jsonl"
            subprocess.run([sys.executable, str(bench / "gen_ledger.py"), str(options.rows), str(ledger)], check=True)
        ours = [str(Path(__file__).resolve()), "--ledger", str(ledger), "--one"]
        ways = {"plain": [str(bench / "plain_verify.py"), str(ledger)], "verify": [*ours, "verify"]}
        ways["two workers"] = [*ours, "two workers"]
        if options.replay:
            ways["verify+replay"] = [*ours, "replay"]
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, argv in ways.items():
                results[name].append(run(argv, 2 if name == "two workers" else 1))

    def median(name: str, what: str) -> float:
        return statistics.median(result[what] for result in results[name])

    for name, found in results.items():
        seconds = median(name, "s")
        rows = found[0]["rows"]
        peak = max(result["peak_rss_mb"] for result in found)
        print(
            f"{name:14} {seconds:8.3f} s  {rows / seconds:9.0f} rows/s  {median('plain', 's') / seconds:5.2f} x plain"
            f"  cpu {median(name, 'cpu'):8.3f} s  {median('plain', 'cpu') / median(name, 'cpu'):5.2f} x"
            f"  peak {peak:6.1f} MiB  ({rows} rows, {found[0]['bad']} faults, median of {len(found)})"
        )


if __name__ == "__main__":
    main()
