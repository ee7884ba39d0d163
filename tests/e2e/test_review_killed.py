"""`kill -9` while a decision or a run's rows are being written: nothing is lost, nothing stands twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.test_review_operator import PERSON, house
from support.frontdoor import troth
from troth.airlock.reviews import proven
from troth.stores.reviews import Reviews

pytestmark = pytest.mark.slow


def killed(root: Path, after: float, *words: str) -> int:
    """Run a command and kill it after so many seconds; return its status."""
    env = {**os.environ, "TROTH_ACTOR": PERSON}
    process = subprocess.Popen(
        [sys.executable, "-m", "troth", "review", *words],
        cwd=root,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    return process.wait()


def test_rows_are_written_once(tmp_path: Path) -> None:
    house(tmp_path, "resolved", "accepted", "resolved", "accepted")
    chance = random.Random(3)
    for _ in range(12):
        killed(tmp_path, 0.2 + chance.random() * 1.5, "record")
    last = troth("review", "record", "--json", cwd=tmp_path)
    assert last.exit == 0
    assert troth("verify", cwd=tmp_path).exit == 0
    rows = [json.loads(line) for line in (tmp_path / ".mentu" / "ledger.jsonl").read_text().splitlines()]
    keys = [row["source_key"] for row in rows if row.get("source_key", "").startswith("review:")]
    assert len(keys) == len(set(keys)) == len(last.json["rows"])


def test_a_decision_counts_once(tmp_path: Path) -> None:
    house(tmp_path, *["deadlocked"] * 8)
    chance = random.Random(4)
    folder = Reviews(tmp_path / ".mentu" / "reviews").open("memo")
    for number in range(1, 9):
        killed(
            tmp_path, 0.2 + chance.random() * 1.2, "decide", "--finding", f"F{number:03d}", "--ruling", f"R{number}."
        )  # fmt: skip
        assert troth("review", "resume", cwd=tmp_path).exit in (0, 4)
        lines = [json.loads(line) for line in folder.lines("decisions.jsonl").splitlines()]
        names = [line["finding_id"] for line in lines]
        assert len(names) == len(set(names))
        decided = {
            item["finding_id"] for item in proven(folder).reconciliation["items"] if item["state"] == "resolved"
        }  # fmt: skip
        assert decided == set(names)
