#!/usr/bin/env python3
"""CPU time of starting up: `troth --help`, and `troth status` on a small ledger; a bare interpreter beside them.

bench/startup.py [--repeats N]      prints medians in milliseconds of CPU (user and system)
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def cpu(argv: list[str], folder: Path) -> float:
    """Return milliseconds of CPU of one process, waited for alone."""
    process = subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{argv} ended with {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1000


def main() -> None:
    """Measure and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=11)
    repeats = parser.parse_args().repeats
    troth = [sys.executable, "-m", "troth"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for words in (["init"], ["capture", "seen"], ["commit", "mend it", "--source", "@last"]):
            subprocess.run([*troth, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for title, argv in (
            ("bare interpreter", [sys.executable, "-c", "pass"]),
            ("troth --help", [*troth, "--help"]),
            ("troth status", [*troth, "status"]),
        ):
            median = statistics.median(cpu(argv, folder) for _ in range(repeats))
            print(f"{title:18} {median:6.0f} ms of CPU")


if __name__ == "__main__":
    main()
