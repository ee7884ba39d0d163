"""Many processes, one ledger: nothing lost, nothing doubled, one winner."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import commitment, environment, fresh
from troth.core.digests import sha256_hex
from troth.ledger.genesis_event import event_of
from troth.stores.durable import replace_whole
from troth.stores.jsonl import JsonlStore

WORKER = Path(__file__).with_name("worker.py")
PROCESSES = 8


class Worker:
    """A process that waits for its lines; ``prefix`` is a command that starts it."""

    prefix: Sequence[str] = ()

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [*self.prefix, sys.executable, str(WORKER), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )

    def hear(self) -> Any:
        """Return the next thing it says."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def tell(self, line: str) -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """Let it go, and see that it ended well."""
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0


def _check_all_there(store: JsonlStore, ids: list[str]) -> None:
    found = store.verify()
    assert found.ok
    assert found.verified == found.total == len(ids)
    assert Counter(row.id for row in store.read().rows) == Counter(ids)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("each", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_eight_processes_append_through_the_library(tmp_path: Path, each: int) -> None:
    store = fresh(tmp_path)
    workers = [Worker("many", str(tmp_path), f"worker {number}", str(each)) for number in range(PROCESSES)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("go")
    ids = [identifier for worker in workers for identifier in worker.hear()]
    for worker in workers:
        worker.end()
    assert len(ids) == PROCESSES * each
    _check_all_there(JsonlStore.open(tmp_path), ids)
    bodies = Counter(row.value["payload"]["body"] for row in store.read().rows)
    assert bodies == Counter(f"worker {number} {turn}" for number in range(PROCESSES) for turn in range(each))


@pytest.mark.parametrize("each", [3, pytest.param(25, marks=pytest.mark.slow)])
def test_eight_processes_append_through_the_command_line(tmp_path: Path, each: int) -> None:
    store = fresh(tmp_path)

    def one(number: int) -> list[str]:
        ids = []
        for turn in range(each):
            done = subprocess.run(
                [sys.executable, "-m", "troth", "capture", f"{number} {turn}", "--as", f"agent:w{number}", "--json"],
                cwd=tmp_path,
                env=environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            ids.append(json.loads(done.stdout)["id"])
        return ids

    with ThreadPoolExecutor(PROCESSES) as pool:
        ids = [identifier for found in pool.map(one, range(PROCESSES)) for identifier in found]
    _check_all_there(store, ids)


@pytest.mark.parametrize("rounds", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_of_eight_that_claim_one_commitment_exactly_one_wins(tmp_path: Path, rounds: int) -> None:
    store = fresh(tmp_path)
    actors = [f"agent:w{number}" for number in range(PROCESSES)]
    workers = [Worker("claims", str(tmp_path), actor) for actor in actors]
    for worker in workers:
        assert worker.hear() == "ready"
    for _ in range(rounds):
        identifier = commitment(store)
        for worker in workers:
            worker.tell(identifier)
        answers = dict(zip(actors, [worker.hear() for worker in workers], strict=True))
        winners = [actor for actor, answer in answers.items() if "id" in answer]
        assert len(winners) == 1
        assert store.read().state.commitments[identifier].owner == winners[0]
        for actor, answer in answers.items():
            if actor != winners[0]:
                assert answer["code"] == "E_ALREADY_CLAIMED"
                assert winners[0] in answer["message"]
    for worker in workers:
        worker.end()
    found = store.verify()
    assert found.ok
    assert found.total == rounds * 3
    assert store.read().state.anomalies == []


def test_readers_never_see_half_a_ledger(tmp_path: Path) -> None:
    fresh(tmp_path)
    workers = [Worker("many", str(tmp_path), f"worker {number}", "40") for number in range(2)]
    for worker in workers:
        assert worker.hear() == "ready"
        worker.tell("go")
    reader = JsonlStore.open(tmp_path)
    counts = []
    while not counts or counts[-1] < 80:
        snapshot = reader.read()
        assert snapshot.verification.ok
        counts.append(len(snapshot.rows))
    assert counts == sorted(counts)
    for worker in workers:
        worker.hear()
        worker.end()


def test_a_key_that_changes_under_many_writers_is_recorded_before_what_it_governs(tmp_path: Path) -> None:
    root = tmp_path / "space"
    store = fresh(root)
    key = root / ".mentu" / "genesis.key"
    workers = [Worker("many", str(root), f"w{number}", "30") for number in range(4)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("")
    digests = set()
    for turn in range(40):
        text = f"identity: {{name: n, owner: human:reviewer}} # {turn}\n".encode()
        digests.add(sha256_hex(text))
        replace_whole(key, text)
    acked = [identifier for worker in workers for identifier in worker.hear()]
    for worker in workers:
        worker.end()
    assert store.verify().ok
    rows = store.read().rows
    told = [event_of(row.value) for row in rows]
    assert {row.id for row, event in zip(rows, told, strict=True) if event is None} == set(acked)
    assert len(acked) == 120
    recorded = [event.sha256 for event in told if event is not None]
    assert set(recorded) <= digests
    assert recorded
    # An event is written for a key that differs from the last one, and together with the row that it governs.
    assert all(one != other for one, other in itertools.pairwise(recorded))
    assert all(one is None or other is None for one, other in itertools.pairwise(told))
    assert told[-1] is None
