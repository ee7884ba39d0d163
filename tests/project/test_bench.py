"""The benchmarks run, at sizes that measure nothing: what they print is looked at, how long it took is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.shared import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("append.py", ["--rows", "3", "--rounds", "1", "--threads", "3"], "x one thread"),
        pytest.param("verify_ledger.py", ["--rows", "300", "--rounds", "1", "--replay"], "x plain", marks=needs_shared),
        pytest.param("status.py", ["--rows", "300", "--rounds", "1"], "of plain", marks=needs_shared),
        pytest.param("checkpoint.py", ["--rows", "300", "--rounds", "1"], "x verify", marks=needs_shared),
        pytest.param("confidence.py", ["--rows", "300", "--rounds", "1"], "", marks=needs_shared),
        pytest.param("receipt_check.py", ["--rounds", "1", "--repeat", "1"], "two processes", marks=needs_shared),
        ("sweep.py", ["--deals", "16", "--rounds", "1"], "the same bytes:          yes"),
        ("deals.py", ["--deals", "20", "--rounds", "1"], "played by policies"),
        ("startup.py", ["--repeats", "1"], ""),
    ],
)
def test_a_benchmark_runs(name: str, words: list[str], told: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    if SHARED is not None:
        environment["TROTH_SHARED"] = str(SHARED)
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / name), *words],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert told in done.stdout
