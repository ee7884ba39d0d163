#!/usr/bin/env python3
"""What observing costs: the same suites plain and under observation, in one run.

bench/observe.py [--repeats N] [--suite NAME] [--floor]      prints medians in seconds and the ratio to plain

``observed`` is the launch alone (sandbox and tracer); ``with records`` adds the two tree snapshots, reading the trace
and writing the records. ``CPU`` is processor time of the whole observation, our own and that of all it starts, beside
that of the plain run: what counts where others use the machine too. It is that of a control group, which root can make;
elsewhere it is left out. With ``--floor`` the tracer alone is measured besides, without sandbox, sensors and records,
told to stop for opens and writes only, or for program starts only: below that no observation by this tracer comes.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
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
            "            for i in range(4000):",
            "                path = pathlib.Path(folder, f'{i % 50}.txt')",
            "                path.write_text(str(i) * 50)",
            "                self.assertTrue(sorted(path.read_text().split()))",
        ]
    ),
}


FLOOR = {
    "cpu-bound": "openat",
    "spawns": "execve,clone,clone3,vfork,fork",
    "opens": "openat,write",
}
"""The calls that an observation of a suite cannot do without."""


def _used(file: Path, unit: float) -> float:
    return int(file.read_text().removeprefix("usage_usec").split()[0]) / unit


@contextmanager
def group() -> Iterator[Callable[[], float]]:
    """Put this process into a control group of its own and yield what tells the group's processor seconds so far.

    The times of a sandbox's processes reach no parent of theirs; the group counts them all.
    """
    for top, usage, unit in (
        (Path("/sys/fs/cgroup/cpuacct"), "cpuacct.usage", 1e9),
        (Path("/sys/fs/cgroup"), "cpu.stat", 1e6),
    ):
        own = top / f"troth-bench-{os.getpid()}"
        try:
            own.mkdir()
            (own / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            if own.is_dir():
                own.rmdir()
            continue
        try:
            yield partial(_used, own / usage, unit)
        finally:
            (top / "cgroup.procs").write_text(str(os.getpid()))
            own.rmdir()
        return
    yield lambda: 0.0


def one(name: str, root: Path, cpu: Callable[[], float]) -> tuple[float, float, float, float, float]:
    """Return seconds of one plain run, one observed launch, one whole observation; CPU of the first and the last."""
    workspace = root / "workspace"
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir()
    (workspace / "test_suite.py").write_text(SUITES[name])
    argv = [sys.executable, "-m", "unittest", "-q", "test_suite"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    started, busy = time.perf_counter(), cpu()
    subprocess.run(argv, cwd=workspace, check=True, capture_output=True, env=environment)
    plain, plain_cpu = time.perf_counter() - started, cpu() - busy
    private = root / "private"
    shutil.rmtree(private, ignore_errors=True)
    private.mkdir(mode=0o700)
    started, busy = time.perf_counter(), cpu()
    seen = observe(
        Request(
            workspace=workspace, argv=argv, claim_id="cmt_bench000", invocation_id="run_bench000", private=private,
            protects=lambda path: False, show=None,
        )
    )  # fmt: skip
    whole, whole_cpu = time.perf_counter() - started, cpu() - busy
    if seen.report.root_exit != 0 or seen.coverage_faults:
        raise SystemExit(f"{name}: exit {seen.report.root_exit}, {seen.coverage_faults}")
    return plain, seen.seconds, whole, plain_cpu, whole_cpu


def floor(name: str, root: Path, cpu: Callable[[], float]) -> tuple[float, float]:
    """Return seconds and CPU of the suite under the tracer alone, stopping for ``FLOOR`` only."""
    argv = ["strace", "-f", "--seccomp-bpf", "-o", str(root / "trace"), "-e", f"trace={FLOOR[name]}"]
    argv += [sys.executable, "-m", "unittest", "-q", "test_suite"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    started, busy = time.perf_counter(), cpu()
    subprocess.run(argv, cwd=root / "workspace", check=True, capture_output=True, env=environment)
    return time.perf_counter() - started, cpu() - busy


def main() -> None:
    """Measure every suite and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--suite", choices=tuple(SUITES), action="append")
    parser.add_argument("--floor", action="store_true", help="measure the tracer alone besides")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, group() as cpu:
        for name in asked.suite or SUITES:
            runs, floors = [], []
            for _ in range(asked.repeats):
                runs.append(one(name, Path(folder), cpu))
                if asked.floor:
                    floors.append(floor(name, Path(folder), cpu))
            plain, launched, whole, plain_cpu, whole_cpu = (
                statistics.median(column) for column in zip(*runs, strict=True)
            )
            print(
                f"{name:10} plain {plain:.3f} s   observed {launched:.3f} s ({launched / plain:.2f}x)   "
                f"with records {whole:.3f} s ({whole / plain:.2f}x)   "
                + (f"CPU {plain_cpu:.3f} s, {whole_cpu:.3f} s ({whole_cpu / plain_cpu:.2f}x)" if plain_cpu else "")
            )
            if floors:
                alone, alone_cpu = (statistics.median(column) for column in zip(*floors, strict=True))
                print(
                    f"{'':10} the tracer alone, {FLOOR[name]}: {alone:.3f} s ({alone / plain:.2f}x)   "
                    + (f"CPU {alone_cpu:.3f} s ({alone_cpu / plain_cpu:.2f}x)" if plain_cpu else "")
                )


if __name__ == "__main__":
    main()
