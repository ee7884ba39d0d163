"""Receipt checking against its floor, measured in the same run.

    python bench/receipt_check.py [FOLDER ...] [--rounds N] [--repeat N]

The floor reads, digests (SHA-256) and parses (``json.loads``) every JSON file of each member folder; nothing that
checks a member with the standard library can be faster. Ours reads the same folders and gives the full result.
Each folder named is a member, or holds members (one level of folders, or ``*/cases/*``). Prints medians in members
a second and the ratio to the floor, on one process and on two.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

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


def rate(work: Callable[[Sequence[str]], int], folders: Sequence[str]) -> float:
    """Return members a second of one pass."""
    start = time.perf_counter()
    count = work(folders)
    return count / (time.perf_counter() - start)


def rate_on_two(pool: multiprocessing.pool.Pool, folders: Sequence[str], chunk: int) -> float:
    """Return members a second of one pass shared by the processes of a pool."""
    parts = [folders[at : at + chunk] for at in range(0, len(folders), chunk)]
    start = time.perf_counter()
    count = sum(pool.imap_unordered(ours, parts))
    return count / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="*", type=Path, help="by default the published members beside the project")
    parser.add_argument("--rounds", type=int, default=9, help="passes of each, interleaved (default 9)")
    parser.add_argument("--repeat", type=int, default=20, help="times each folder is taken in a pass (default 20)")
    arguments = parser.parse_args()
    shared = Path(os.environ.get("TROTH_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    folders = members(arguments.folder or [shared / "conformance" / "receipts"]) * arguments.repeat
    if not folders:
        parser.error("no member folder found")
    rates: dict[str, list[float]] = {"floor": [], "one": [], "two": []}
    with multiprocessing.Pool(2) as pool:
        rate_on_two(pool, folders, 64)
        floor(folders[: len(folders) // arguments.repeat])
        ours(folders[: len(folders) // arguments.repeat])
        for _ in range(arguments.rounds):
            rates["floor"].append(rate(floor, folders))
            rates["one"].append(rate(ours, folders))
            rates["two"].append(rate_on_two(pool, folders, 64))
    least = statistics.median(rates["floor"])
    print(f"{len(folders)} members a pass, median of {arguments.rounds} passes")
    print(f"floor            {least:8.0f} members/s")
    for name, label in (("one", "one process"), ("two", "two processes")):
        median = statistics.median(rates[name])
        print(f"{label:<16} {median:8.0f} members/s   {median / least:.2f} of the floor")


if __name__ == "__main__":
    main()
