#!/usr/bin/env python3
"""What observing costs: the same suites plain and under observation, in one run.

bench/observe.py [--repeats N]      prints medians in seconds and the ratio to plain

``observed`` is the launch alone (sandbox and tracer); ``with records`` adds the two tree snapshots, reading the trace
and writing the records.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from troth.observer.observe import Request, observe

SUITES = {
    "cpu-bound": "\n".join(
        [
            "import hashlib, unittest",
            "class Busy(unittest.TestCase):",
            "    def test_busy(self):",
            "        total = 0",
            "        for i in range(20_000_000):",
            "            total += i * i % 7",
            "        for i in range(200_000):",
            "            hashlib.sha256(b'x' * 1000).hexdigest()",
            "        self.assertGreater(total, 0)",
        ]
    ),
    "spawns": "\n".join(
        [
            "import subprocess, sys, unittest",
            "class Spawns(unittest.TestCase):",
            "    def test_spawns(self):",
            "        for i in range(60):",
            "            subprocess.run([sys.executable, '-S', '-c', 'pass'], check=True)",
        ]
    ),
    "opens": "\n".join(
        [
            "import pathlib, tempfile, unittest",
            "class Opens(unittest.TestCase):",
            "    def test_opens(self):",
            "        with tempfile.TemporaryDirectory() as folder:",
            "            for i in range(8000):",
            "                path = pathlib.Path(folder, f'{i % 50}.txt')",
            "                path.write_text(str(i) * 50)",
            "                self.assertTrue(sorted(path.read_text().split()))",
        ]
    ),
}


def one(name: str, root: Path) -> tuple[float, float, float]:
    """Return seconds of one plain run, one observed launch, and one whole observation."""
    workspace = root / "workspace"
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir()
    (workspace / "test_suite.py").write_text(SUITES[name])
    argv = [sys.executable, "-m", "unittest", "-q", "test_suite"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    started = time.perf_counter()
    subprocess.run(argv, cwd=workspace, check=True, capture_output=True, env=environment)
    plain = time.perf_counter() - started
    private = root / "private"
    shutil.rmtree(private, ignore_errors=True)
    private.mkdir(mode=0o700)
    started = time.perf_counter()
    seen = observe(
        Request(
            workspace=workspace, argv=argv, claim_id="cmt_bench000", invocation_id="run_bench000", private=private,
            protects=lambda path: False, show=None,
        )
    )  # fmt: skip
    whole = time.perf_counter() - started
    if seen.report.root_exit != 0 or seen.coverage_faults:
        raise SystemExit(f"{name}: exit {seen.report.root_exit}, {seen.coverage_faults}")
    return plain, seen.seconds, whole


def main() -> None:
    """Measure every suite and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        for name in SUITES:
            runs = [one(name, Path(folder)) for _ in range(repeats)]
            plain, launched, whole = (statistics.median(column) for column in zip(*runs, strict=True))
            print(
                f"{name:10} plain {plain:.3f} s   observed {launched:.3f} s ({launched / plain:.2f}x)   "
                f"with records {whole:.3f} s ({whole / plain:.2f}x)"
            )


if __name__ == "__main__":
    main()
