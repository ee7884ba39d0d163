"""What was decided and how long it took: told from the ledger, so that haste can be seen."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from support.airlock import PERSON, WORKER, committed, in_review, shown, submit, workspace
from support.ledgers import START
from troth.airlock.decided import HASTE_SECONDS, Decision, decisions, paces
from troth.ledger.operations import Candidate
from troth.stores.jsonl import JsonlStore

OTHER = "human:lead"


class Hands:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)


def ledger(root: Path) -> tuple[JsonlStore, Hands]:
    hands = Hands()
    return workspace(root, None, clock=hands), hands


def approve(store: JsonlStore, commitment: str, by: str = PERSON, **fields: object) -> None:
    store.append(Candidate("approve", by, {"body": "Approved", "commitment": commitment, **fields}))


def reopen(store: JsonlStore, commitment: str, by: str = PERSON) -> None:
    store.append(Candidate("reopen", by, {"body": "Not so", "commitment": commitment, "reason": "the suite fails"}))


def told(store: JsonlStore) -> list[Decision]:
    return list(decisions(store.read()))


def test_each_decision_tells_how_long_its_submission_waited(tmp_path: Path) -> None:
    store, hands = ledger(tmp_path)
    first, one = in_review(store)
    hands.wait(90)
    approve(store, first)
    hands.wait(30)
    second, two = in_review(store)
    hands.wait(3600)
    reopen(store, second)
    found = told(store)
    assert [(d.commitment, d.submission, d.decision, d.by) for d in found] == [
        (first, one, "approved", PERSON),
        (second, two, "reopened", PERSON),
    ]
    assert [(d.waited, d.since_last, d.hasty) for d in found] == [(90, None, False), (3600, 3630, False)]
    assert found[1].reason == "the suite fails"


def test_haste_is_a_persons_and_told_from_what_was_decided_before(tmp_path: Path) -> None:
    store, hands = ledger(tmp_path)
    waiting = [in_review(store)[0] for _ in range(5)]
    hands.wait(60)
    approve(store, waiting[0])
    hands.wait(HASTE_SECONDS - 1)
    approve(store, waiting[1])
    hands.wait(HASTE_SECONDS)
    approve(store, waiting[2])  # looked at for as long as it takes
    approve(store, waiting[3], by=OTHER)  # another's own first decision
    approve(store, waiting[4], by="agent:runner")
    assert [d.hasty for d in told(store)] == [False, True, False, False, False]
    assert next((p.by, p.approved, p.hasty) for p in paces(told(store))) == (PERSON, 3, 1)


def test_a_group_approved_as_one_is_no_haste(tmp_path: Path) -> None:
    store, hands = ledger(tmp_path)
    for commitment, submission in [in_review(store) for _ in range(3)]:
        approve(store, commitment, meta={"submission": submission, "group": "grp_0123456789ab"})
    found = told(store)
    assert {d.group for d in found} == {"grp_0123456789ab"}
    assert not any(d.hasty for d in found)
    hands.wait(1)
    approve(store, in_review(store)[0])
    assert told(store)[-1].hasty


def test_a_withdrawal_is_nobodys_decision_about_another(tmp_path: Path) -> None:
    store, hands = ledger(tmp_path)
    commitment, _ = in_review(store)
    hands.wait(5)
    reopen(store, commitment, by=WORKER)
    again = submit(store, commitment)
    hands.wait(7)
    approve(store, commitment)
    assert [(d.decision, d.waited) for d in told(store)] == [("withdrawn", 5), ("approved", 7)]
    assert told(store)[1].submission == again
    assert [(p.by, p.approved, p.reopened, p.waited) for p in paces(told(store))] == [(PERSON, 1, 0, 7)]


def test_what_decides_no_submission_is_not_told(tmp_path: Path) -> None:
    store, _ = ledger(tmp_path)
    direct = committed(store)
    store.append(Candidate("close", WORKER, {"body": "done", "commitment": direct, "evidence": shown(store)}))
    reopen(store, direct)  # a dispute of what is closed
    assert told(store) == []


def test_a_clock_that_runs_backwards_gives_no_time(tmp_path: Path) -> None:
    store, hands = ledger(tmp_path)
    commitment, _ = in_review(store)
    hands.wait(-3600)
    approve(store, commitment)
    assert [(d.waited, d.hasty) for d in told(store)] in ([(None, False)], [(0, False)])
