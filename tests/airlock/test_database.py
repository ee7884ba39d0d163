"""The airlock over a ledger in a database: the same answers and the same closing, the work on the local disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.airlock import (
    PERSON,
    approvals,
    captured,
    committed,
    one_tier,
    run_folder,
    settle,
    submit,
    validations,
)
from support.houses import DatabaseHouse
from support.ledgers import fresh
from support.postgres import needs_postgres
from troth.airlock.queue import queue_of
from troth.airlock.validating import Airlock
from troth.core.instants import system_clock
from troth.ledger.operations import Candidate
from troth.stores.postgres.store import PostgresStore

pytestmark = needs_postgres
RUN = "run_0badcafe"


def opened(house: DatabaseHouse) -> PostgresStore:
    store = house.open()
    assert isinstance(store, PostgresStore)
    return store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PostgresStore:
    """A ledger in the database of a workspace that lies here."""
    fresh(tmp_path)
    settle(tmp_path, None, {"suite": ["true"]})
    monkeypatch.chdir(tmp_path)
    found = opened(DatabaseHouse())
    found.enact(one_tier(auto_close=True, validators=["technical", "suite"]).encode())
    return found


def test_a_receipt_closes(store: PostgresStore, tmp_path: Path) -> None:
    commitment = committed(store)
    digest = run_folder(tmp_path, RUN, commitment)
    evidence = captured(store, RUN, commitment, digest)
    submission = submit(store, commitment, evidence)
    report = Airlock(store).take(submission)
    assert (report.outcome, report.because) == ("closed", "every validator of tier_1 passed")
    assert Airlock(store).take(submission).outcome == "superseded"
    assert len(validations(store)) == 2
    assert len(approvals(store)) == 1
    assert store.verify().ok


def test_a_failure_waits_and_asking_again_writes_nothing_twice(store: PostgresStore) -> None:
    commitment = committed(store)
    submission = submit(store, commitment)
    first = Airlock(store).take(submission)
    assert first.outcome == "failed"
    rows = len(store.read().rows)
    again = Airlock(store).take(submission)
    assert [one.row for one in again.results] == [one.row for one in first.results]
    assert len(store.read().rows) == rows
    (waiting,) = queue_of(store.read(), store.genesis(), at=system_clock()).waiting
    assert waiting.risks == ("validator_failed",)
    store.append(Candidate("approve", PERSON, {"body": "fine", "commitment": commitment}))


def test_a_key_that_changed_meanwhile_closes_nothing(store: PostgresStore, tmp_path: Path) -> None:
    store.enact(one_tier(auto_close=True, validators=["suite"]).encode())
    commitment = committed(store)
    submission = submit(store, commitment)
    told: list[str] = []

    def meddle(text: str) -> None:
        told.append(text)
        store.enact(one_tier(require_human=True, validators=["suite"]).encode())

    report = Airlock(store, tell=meddle).take(submission)
    assert told
    assert report.outcome == "stopped"
    assert "key changed" in report.because
    assert store.read().state.commitments[commitment].state == "in_review"
