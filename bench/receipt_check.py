"""Receipt checking against its floor, measured in the same run.

    python bench/receipt_check.py [FOLDER ...] [--rounds N] [--repeat N]

The floor reads, digests (SHA-256) and parses (``json.loads``) every JSON file of each member folder; nothing that
checks a member with the standard library can be faster. Ours reads the same folders and gives the full result: one
member after the other, and as ``troth receipt check`` does with many, in this process and shared by two.
Each folder named is a member, or holds members (one level of folders, or ``*/cases/*``). Prints medians in members
a second by the clock and by processor time, and the ratios to the floor. On a machine that others use too only the
second ratio means something: for two processes it counts half of the processor time that they and this one took, which
is what two cores of their own would need.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from troth.airlock.fleets import check_all
from troth.receipts.verify import check_member
from troth.stores.members import FolderMember


def floor(folders: Sequence[str]) -> int:
    """Do the least that any reader must do."""
    for folder in folders:
        for file in Path(folder).iterdir():
            if file.suffix == ".json":
                data = file.read_bytes()
                hashlib.sha256(data).hexdigest()
                try:  # noqa: SIM105 - a context manager would slow the floor
                    json.loads(data)
                except ValueError:
                    pass
    return len(folders)


def ours(folders: Sequence[str]) -> int:
    """Check every member."""
    for folder in folders:
        check_member(FolderMember(folder))
    return len(folders)


def members(named: Sequence[Path]) -> list[str]:
    """Return the member folders below the names given: those that hold JSON files and no folders of members."""
    found: set[Path] = set()
    for top in named:
        for file in top.rglob("*.json"):
            if file.name != "MANIFEST.json":
                found.add(file.parent)
    return [str(folder) for folder in sorted(found)]


def fleet(folders: Sequence[str], jobs: int) -> int:
    """Check every member as the command does."""
    return sum(1 for _ in check_all(folders, None, jobs))


def took(work: Callable[[Sequence[str]], int], folders: Sequence[str], processes: int) -> tuple[float, float]:
    """Return members a second of one pass: by the clock, and by processor time shared evenly among the processes."""
    began, used = time.perf_counter(), os.times()
    count = work(folders)
    passed, now = time.perf_counter() - began, os.times()
    cpu = sum(now[:4]) - sum(used[:4])  # ours and that of processes which have ended, user and system
    return count / passed, count / max(cpu / processes, 0.01)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="*", type=Path, help="by default the published members beside the project")
    parser.add_argument("--rounds", type=int, default=9, help="passes of each, interleaved (default 9)")
    parser.add_argument("--repeat", type=int, default=50, help="times each folder is taken in a pass (default 50)")
    arguments = parser.parse_args()
    shared = Path(os.environ.get("TROTH_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    folders = members(arguments.folder or [shared / "conformance" / "receipts"]) * arguments.repeat
    if not folders:
        parser.error("no member folder found")
    ways: list[tuple[str, Callable[[Sequence[str]], int], int]] = [
        ("floor", floor, 1),
        ("one by one", ours, 1),
        ("many, one process", lambda some: fleet(some, 1), 1),
        ("many, two processes", lambda some: fleet(some, 2), 2),
    ]
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name, _, _ in ways}
    for _, work, _ in ways:
        work(folders[: len(folders) // arguments.repeat])
    for _ in range(arguments.rounds):
        for name, work, processes in ways:
            rates[name].append(took(work, folders, processes))
    print(f"{len(folders)} members a pass, median of {arguments.rounds} passes")
    least = [statistics.median(column) for column in zip(*rates["floor"], strict=True)]
    for name, measured in rates.items():
        clock, cpu = (statistics.median(column) for column in zip(*measured, strict=True))
        print(
            f"{name:<20} {clock:8.0f} members/s  {clock / least[0]:.2f} of the floor"
            f"   by processor time {cpu:8.0f}  {cpu / least[1]:.2f}"
        )


if __name__ == "__main__":
    main()
