"""Processes that tests look after."""

from __future__ import annotations

import time
from pathlib import Path


def assert_gone(pid: int) -> None:
    """A killed process is gone, or a zombie that waits for whoever adopted it."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except OSError:
            return
        if state in "ZX":
            return
        time.sleep(0.02)
    raise AssertionError(f"{pid} goes on")
