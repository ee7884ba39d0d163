"""A submission through its tier: answers on record, closing, what came in between, and what a crash leaves."""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.airlock import (
    PERSON,
    WORKER,
    approvals,
    captured,
    committed,
    in_review,
    one_tier,
    run_folder,
    settle,
    submit,
    validations,
)
from support.airlock import workspace as made
from support.ledgers import START
from troth.airlock.validating import WITHIN, Airlock, Report
from troth.airlock.validators import Finding, ReviewOutcome, Submitted
from troth.core.errors import Refused
from troth.ledger.operations import Candidate
from troth.stores.jsonl import JsonlStore
from troth.stores.snapshot import Snapshot

FAIL = ["sh", "-c", "echo why; exit 3"]


def answers(report: Report) -> dict[str, str]:
    return {one.result.validator: one.result.result for one in report.results}


def state_of(store: JsonlStore, commitment: str) -> str:
    return store.read().state.commitments[commitment].state


# --- the tiers ---------------------------------------------------------------------------------------------------


def test_all_pass_and_the_tier_closes_by_itself(tmp_path: Path) -> None:
    store = made(tmp_path)
    commitment, submission = in_review(store)
    report = Airlock(store).take(submission)
    assert (report.outcome, report.tier, answers(report)) == ("closed", 2, {"suite": "passed"})
    (row,) = approvals(store)
    assert (row["id"], row["actor"]) == (report.approval, "system:validator")
    assert row["payload"]["meta"]["submission"] == submission
    assert row["payload"]["meta"]["validations"] == [report.results[0].row]
    assert "trust" not in row
    (answer,) = validations(store)
    assert (answer["validator"], answer["result"], answer["submission"]) == ("suite", "passed", submission)
    assert (answer["target"], answer["actor"], answer["commitment"]) == (submission, "system:validator", commitment)
    assert answer["reason"] == "the command ended with exit 0"
    assert state_of(store, commitment) == "closed"


def test_a_failure_leaves_it_in_review_and_a_person_may_still_decide(tmp_path: Path) -> None:
    store = made(tmp_path, validators={"suite": FAIL})
    commitment, submission = in_review(store)
    report = Airlock(store).take(submission)
    assert (report.outcome, report.because) == ("failed", "suite did not pass")
    assert validations(store)[0]["reason"] == "the command ended with exit 3: why"
    assert state_of(store, commitment) == "in_review"
    store.append(Candidate("approve", PERSON, {"body": "I looked", "commitment": commitment}))
    assert state_of(store, commitment) == "closed"


def test_tier_three_is_annotated_and_a_person_approves(tmp_path: Path) -> None:
    store = made(tmp_path)
    commitment, submission = in_review(store, "security")
    report = Airlock(store).take(submission)
    assert (report.outcome, report.tier) == ("waiting", 3)
    assert answers(report) == {"suite": "passed", "intent": "waiting"}
    assert [row["result"] for row in validations(store)] == ["passed", "waiting"]
    for actor in ("system:validator", "agent:rival"):
        with pytest.raises(Refused) as fault:
            store.append(Candidate("approve", actor, {"body": "fine", "commitment": commitment}))
        assert fault.value.detail == "require_human"
    store.append(Candidate("approve", PERSON, {"body": "fine", "commitment": commitment}))
    assert state_of(store, commitment) == "closed"


def test_without_tiers_nothing_is_asked_and_nothing_is_written(tmp_path: Path) -> None:
    for number, key in enumerate((None, "identity: {name: w, owner: human:reviewer}\n")):
        store = made(tmp_path / str(number), key)
        commitment, submission = in_review(store)
        rows = len(store.read().rows)
        report = Airlock(store).take(submission)
        assert (report.outcome, report.tier, report.results) == ("waiting", None, ())
        assert len(store.read().rows) == rows
        assert state_of(store, commitment) == "in_review"


def test_a_tier_that_names_no_validators_asks_for_a_receipt(tmp_path: Path) -> None:
    store = made(tmp_path)
    _, submission = in_review(store, "docs")
    assert answers(Airlock(store).take(submission)) == {"technical": "failed"}


def test_a_tier_with_an_empty_list_waits(tmp_path: Path) -> None:
    store = made(tmp_path, one_tier(validators=[]))
    commitment, submission = in_review(store)
    assert Airlock(store).take(submission).outcome == "waiting"
    assert state_of(store, commitment) == "in_review"


def test_an_auto_close_tier_that_also_asks_for_intent_waits_for_the_person(tmp_path: Path) -> None:
    store = made(tmp_path, one_tier(auto_close=True, validators=["suite", "intent"]))
    commitment, submission = in_review(store)
    report = Airlock(store).take(submission)
    assert (report.outcome, report.because) == (
        "waiting", "intent: a person has to approve; tier_1 closes on an approval",
    )  # fmt: skip
    assert state_of(store, commitment) == "in_review"


def test_an_unknown_name_fails_until_it_is_mapped(tmp_path: Path) -> None:
    key = one_tier(auto_close=True, validators=["lint"])
    store = made(tmp_path, key)
    commitment, submission = in_review(store)
    report = Airlock(store).take(submission)
    assert report.outcome == "failed"
    assert "no validator is called lint" in report.results[0].result.reason
    settle(tmp_path, None, {"lint": ["true"]})
    again = JsonlStore.open(tmp_path)
    assert Airlock(again).take(submission).outcome == "closed"
    assert state_of(again, commitment) == "closed"


@pytest.mark.parametrize("name", ["technical", "safety", "intent"])
def test_a_command_may_stand_in_for_a_name_of_the_specification(tmp_path: Path, name: str) -> None:
    store = made(tmp_path, one_tier(auto_close=True, validators=[name]), {name: ["true"]})
    _, submission = in_review(store)
    assert Airlock(store).take(submission).outcome == "closed"


def test_a_command_is_told_what_it_is_asked_about(tmp_path: Path) -> None:
    script = (
        "import json, os; json.dump({k: v for k, v in os.environ.items() if k.startswith('TROTH_')}, open('told', 'w'))"
    )
    store = made(tmp_path, validators={"suite": [sys.executable, "-c", script]})
    commitment = committed(store)
    submission = submit(store, commitment)
    assert Airlock(store).take(submission).outcome == "closed"
    told = json.loads((tmp_path / "told").read_text())
    record = store.read().state.commitments[commitment]
    assert told == {
        "TROTH_VALIDATOR": "suite", "TROTH_TIER": "2", "TROTH_COMMITMENT": commitment, "TROTH_SUBMISSION": submission,
        "TROTH_EVIDENCE": record.evidence,
    }  # fmt: skip


def test_approvers_of_a_tag_stand_above_the_validators(tmp_path: Path) -> None:
    key = one_tier(auto_close=True, validators=["suite"]) + "constraints: {money: {approvers: ['human:lead-*']}}\n"
    store = made(tmp_path, key)
    commitment, submission = in_review(store, "money")
    report = Airlock(store).take(submission)
    assert report.outcome == "waiting"
    assert "approvers" in report.because
    assert state_of(store, commitment) == "in_review"
    _, other = in_review(store)
    assert Airlock(store).take(other).outcome == "closed"


def test_permissions_need_no_entry_for_the_validator(tmp_path: Path) -> None:
    key = one_tier(auto_close=True, validators=["suite"]) + (
        "actors: [{id: human:reviewer, role: lead}, {id: 'agent:*', role: worker}]\n"
        "permissions: {lead: '*', worker: [capture, claim, submit]}\n"
    )
    store = made(tmp_path, key)
    _, submission = in_review(store)
    assert Airlock(store).take(submission).outcome == "closed"


# --- safety ------------------------------------------------------------------------------------------------------

ARTIFACT = "ab" * 32


class Reviews:
    """One review on record."""

    def __init__(self, outcome: str = "converged", artifact: str = ARTIFACT, findings: Sequence[Finding] = ()) -> None:
        self.found = ReviewOutcome("rev-1", artifact, outcome, findings)

    def find(self, review: str, submitted: Submitted) -> ReviewOutcome | None:
        return self.found if review == "rev-1" else None


SEVERE = Finding("f1", "high", "accepted")

SAFETY: dict[str, tuple[Reviews | None, Mapping[str, Any], str, str]] = {
    "converged": (Reviews(), {"review": "rev-1", "artifact": ARTIFACT}, "passed", "converged"),
    "nothing_reads_reviews": (None, {"review": "rev-1", "artifact": ARTIFACT}, "failed", "no review is on record"),
    "none_named": (Reviews(), {}, "failed", "no review is on record"),
    "another_named": (Reviews(), {"review": "rev-2", "artifact": ARTIFACT}, "failed", "no review is on record"),
    "revision_not_said": (Reviews(), {"review": "rev-1"}, "failed", "which revision"),
    "another_revision": (Reviews(artifact="cd" * 32), {"review": "rev-1", "artifact": ARTIFACT}, "failed", "another"),
    "incomplete": (Reviews("incomplete"), {"review": "rev-1", "artifact": ARTIFACT}, "failed", "is incomplete"),
    "deadlocked": (Reviews("deadlocked"), {"review": "rev-1", "artifact": ARTIFACT}, "failed", "is deadlocked"),
    "severe": (Reviews(findings=[SEVERE]), {"review": "rev-1", "artifact": ARTIFACT}, "failed", "not resolved: f1"),
    "critical": (
        Reviews(findings=[Finding("f2", "critical", "accepted")]),
        {"review": "rev-1", "artifact": ARTIFACT}, "failed", "not resolved: f2",
    ),
    "resolved": (
        Reviews(findings=[Finding("f1", "high", "resolved"), Finding("f2", "critical", "rejected")]),
        {"review": "rev-1", "artifact": ARTIFACT}, "passed", "converged",
    ),
    "minor": (
        Reviews(findings=[Finding("f1", "medium", "accepted")]),
        {"review": "rev-1", "artifact": ARTIFACT}, "passed", "converged",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAFETY)
def test_safety_is_a_converged_review_of_the_same_revision(tmp_path: Path, name: str) -> None:
    reviews, meta, mark, words = SAFETY[name]
    store = made(tmp_path, one_tier(auto_close=True, validators=["safety"]))
    submission = submit(store, committed(store), **meta)
    report = (Airlock(store) if reviews is None else Airlock(store, finder=reviews)).take(submission)
    (answered,) = report.results
    assert (answered.result.result, report.outcome) == (mark, "closed" if mark == "passed" else "failed")
    assert words in answered.result.reason


# --- what comes in between ----------------------------------------------------------------------------------------


class Meddling:
    """A finder of reviews that does something while the validators work, and finds a good one."""

    def __init__(self, act: Any) -> None:
        self.act = act

    def find(self, review: str, submitted: Submitted) -> ReviewOutcome | None:
        self.act()
        return ReviewOutcome("rev-1", ARTIFACT, "converged", ())


REVIEWED = one_tier(auto_close=True, validators=["safety"])


def meddled(tmp_path: Path, act: Any) -> tuple[JsonlStore, str, str, Report]:
    store = made(tmp_path, REVIEWED)
    commitment = committed(store)
    submission = submit(store, commitment, review="rev-1", artifact=ARTIFACT)
    report = Airlock(store, finder=Meddling(lambda: act(store, commitment))).take(submission)
    return store, commitment, submission, report


def test_a_stale_pass_approves_nothing(tmp_path: Path) -> None:
    later: list[str] = []

    def act(store: JsonlStore, commitment: str) -> None:
        store.append(Candidate("reopen", PERSON, {"body": "no", "commitment": commitment}))
        later.append(submit(store, commitment))

    store, commitment, submission, report = meddled(tmp_path, act)
    assert report.outcome == "superseded"
    assert later[0] in report.because
    record = store.read().state.commitments[commitment]
    assert (record.state, record.submission.id if record.submission else None) == ("in_review", later[0])
    assert approvals(store) == []
    (answer,) = validations(store)
    assert (answer["submission"], answer["result"]) == (submission, "passed")  # true of what it was asked about
    # The machine itself refuses it too, whoever brings it.
    with pytest.raises(Refused) as fault:
        store.append(
            Candidate(
                "approve", "system:validator",
                {"body": "stale", "commitment": commitment, "meta": {"submission": submission}},
            )
        )  # fmt: skip
    assert (fault.value.code, fault.value.detail) == ("E_CONSTRAINT_VIOLATED", "bad_state")


@pytest.mark.parametrize("op", ["reopen", "approve"])
def test_what_people_decided_meanwhile_stands(tmp_path: Path, op: str) -> None:
    def act(store: JsonlStore, commitment: str) -> None:
        store.append(Candidate(op, PERSON, {"body": "I decide", "commitment": commitment}))

    store, commitment, _, report = meddled(tmp_path, act)
    assert report.outcome == "superseded"
    assert len(approvals(store)) == (op == "approve")
    assert state_of(store, commitment) == ("claimed" if op == "reopen" else "closed")


@pytest.mark.parametrize(
    "key",
    [
        one_tier(auto_close=True, validators=["safety", "intent"]),
        one_tier(require_human=True, validators=["safety"]),
        "identity: {name: w, owner: human:reviewer}\n",
    ],
)
def test_a_key_that_changed_meanwhile_closes_nothing(tmp_path: Path, key: str) -> None:
    store, commitment, submission, report = meddled(tmp_path, lambda *_: settle(tmp_path, key))
    assert report.outcome == "stopped"
    assert "key changed" in report.because
    assert state_of(store, commitment) == "in_review"
    settle(tmp_path, REVIEWED)
    assert Airlock(store, finder=Reviews()).take(submission).outcome == "closed"


def test_a_key_that_became_invalid_stops_and_does_not_lose_the_submission(tmp_path: Path) -> None:
    store, commitment, _, report = meddled(tmp_path, lambda *_: settle(tmp_path, "nonsense: ["))
    assert report.outcome == "stopped"
    assert "E_CONSTRAINT_VIOLATED" in report.because
    assert state_of(store, commitment) == "in_review"


def test_a_broken_chain_stops(tmp_path: Path) -> None:
    store = made(tmp_path, validators={"suite": ["touch", "asked"]})
    _, submission = in_review(store)
    file = tmp_path / ".mentu" / "ledger.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"seen"', b'"SEEN"'))
    report = Airlock(JsonlStore.open(tmp_path)).take(submission)
    assert (report.outcome, report.because.partition(":")[0]) == ("stopped", "E_CHAIN_BROKEN")
    assert len(file.read_bytes().splitlines()) == len(store.read().rows)
    assert not (tmp_path / "asked").exists()


def test_what_is_not_in_review_is_not_asked_about(tmp_path: Path) -> None:
    store = made(tmp_path)
    commitment, submission = in_review(store)
    store.append(Candidate("approve", PERSON, {"body": "fine", "commitment": commitment}))
    assert Airlock(store).take(submission).outcome == "superseded"
    assert validations(store) == []
    assert Airlock(store).take(commitment).outcome == "stopped"  # no submission at all
    assert Airlock(store).take("op_00000000").outcome == "stopped"


def test_a_validator_s_command_that_submits_starts_no_validators(tmp_path: Path) -> None:
    store = made(tmp_path)
    _, submission = in_review(store)
    report = Airlock(store, environment={WITHIN: "suite"}).take(submission)
    assert report.outcome == "stopped"
    assert validations(store) == []
    assert Airlock(store, environment={}).take(submission).outcome == "closed"


# --- again, and at the same time -----------------------------------------------------------------------------------


def test_asked_again_nothing_is_written_twice(tmp_path: Path) -> None:
    store = made(tmp_path)
    _, submission = in_review(store, "security")
    first = Airlock(store).take(submission)
    rows = len(store.read().rows)
    again = Airlock(store).take(submission)
    assert len(store.read().rows) == rows
    assert [one.row for one in again.results] == [one.row for one in first.results]


def test_a_newer_answer_counts_and_names_the_one_it_takes_the_place_of(tmp_path: Path) -> None:
    store = made(tmp_path, validators={"suite": FAIL})
    commitment, submission = in_review(store)
    assert Airlock(store).take(submission).outcome == "failed"
    settle(tmp_path, None, {"suite": ["true"]})
    store = JsonlStore.open(tmp_path)
    assert Airlock(store).take(submission).outcome == "closed"
    old, new = validations(store)
    assert (old["result"], new["result"], new["supersedes"]) == ("failed", "passed", old["id"])
    assert approvals(store)[0]["payload"]["meta"]["validations"] == [new["id"]]
    assert state_of(store, commitment) == "closed"


def test_a_pass_on_record_closes_nothing(tmp_path: Path) -> None:
    """What anybody wrote into the ledger in the validator's name is not an answer that counts."""
    store = made(tmp_path, validators={"suite": FAIL})
    commitment, submission = in_review(store)
    meta = {"validator": "suite", "result": "passed", "reason": "trust me", "submission": submission}
    store.append(
        Candidate(
            "annotate", "system:validator",
            {"body": "suite passed", "kind": "validation", "target": submission, "meta": meta},
            source_key=f"validation:{submission}:suite:1",
        )
    )  # fmt: skip
    assert Airlock(store).take(submission).outcome == "failed"
    assert [row["result"] for row in validations(store)] == ["passed", "failed"]
    assert state_of(store, commitment) == "in_review"


def test_a_key_that_somebody_took_stops_no_answer(tmp_path: Path) -> None:
    store = made(tmp_path)
    _, submission = in_review(store)
    for number in (1, 2):
        store.append(
            Candidate("capture", WORKER, {"body": "mine"}, source_key=f"validation:{submission}:suite:{number}")
        )
    assert Airlock(store).take(submission).outcome == "closed"
    assert len(validations(store)) == 1


def test_a_name_as_long_as_can_be_is_recorded(tmp_path: Path) -> None:
    name = "n" * 900
    store = made(tmp_path, one_tier(auto_close=True, validators=[name]), {name: ["true"]})
    _, submission = in_review(store)
    assert Airlock(store).take(submission).outcome == "closed"
    assert validations(store)[0]["validator"] == name


@pytest.mark.parametrize("survives", [0, 1, 2])
def test_whatever_a_crash_leaves_is_taken_up(tmp_path: Path, survives: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Death after so many rows of the airlock: the submission stays in review, and is finished exactly once."""
    key = one_tier(auto_close=True, validators=["suite", "more"])
    store = made(tmp_path, key, {"suite": ["true"], "more": ["true"]})
    commitment, submission = in_review(store)
    written = 0
    append_with = JsonlStore.append_with

    class Dead(BaseException):
        """The process is gone."""

    def dying(self: JsonlStore, *words: Any, **options: Any) -> Any:
        nonlocal written
        if written == survives:
            raise Dead
        written += 1
        return append_with(self, *words, **options)

    monkeypatch.setattr(JsonlStore, "append_with", dying)
    with pytest.raises(Dead):
        Airlock(store).take(submission)
    monkeypatch.undo()
    assert state_of(store, commitment) == "in_review"
    after = JsonlStore.open(tmp_path)
    assert Airlock(after).take(submission).outcome == "closed"
    assert Airlock(after).take(submission).outcome == "superseded"
    assert sorted(row["validator"] for row in validations(after)) == ["more", "suite"]
    assert len(approvals(after)) == 1
    assert after.read().state.anomalies == []


def _take(root: str, submission: str, start: Any, outcomes: Any) -> None:
    store = JsonlStore.open(root)
    start.wait(30)
    outcomes.put(Airlock(store).take(submission).outcome)


def test_several_processes_close_once(tmp_path: Path) -> None:
    store = made(tmp_path)
    context = multiprocessing.get_context("spawn")
    for _ in range(2):
        _, submission = in_review(store)
        start, outcomes = context.Barrier(3), context.Queue()
        workers = [context.Process(target=_take, args=(str(tmp_path), submission, start, outcomes)) for _ in range(3)]
        for worker in workers:
            worker.start()
        came = sorted(outcomes.get(timeout=60) for _ in workers)
        for worker in workers:
            worker.join(60)
        assert came.count("closed") == 1
        assert set(came) <= {"closed", "superseded"}
    found = JsonlStore.open(tmp_path)
    assert len(approvals(found)) == 2
    assert len(validations(found)) == 2
    assert found.verify().ok
    assert found.read().state.anomalies == []


# --- the window ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "disputed"),
    [(timedelta(0), True), (timedelta(hours=24), True), (timedelta(hours=24, microseconds=1), False),
     (timedelta(days=400), False), (timedelta(seconds=-5), True)],
)  # fmt: skip
def test_an_automatic_closing_is_disputed_until_its_window_ends(
    tmp_path: Path, after: timedelta, disputed: bool
) -> None:
    now = [START]
    store = made(tmp_path, clock=lambda: now[0])
    commitment, submission = in_review(store)
    report = Airlock(store).take(submission)
    assert (report.outcome, report.disputable_until) == ("closed", "2026-01-02T00:00:00Z")
    now[0] = START + after
    row = Candidate("reopen", PERSON, {"body": "it fails", "commitment": commitment})
    if disputed:
        store.append(row)
        record = store.read().state.commitments[commitment]
        assert (record.state, record.owner, record.reopened) == ("claimed", WORKER, True)
    else:
        with pytest.raises(Refused) as fault:
            store.append(row)
        assert (fault.value.code, fault.value.detail) == ("E_CONSTRAINT_VIOLATED", "review_window_passed")
        assert state_of(store, commitment) == "closed"


def test_what_a_person_closed_has_no_window(tmp_path: Path) -> None:
    now = [START]
    store = made(tmp_path, validators={"suite": FAIL}, clock=lambda: now[0])
    commitment, submission = in_review(store)
    Airlock(store).take(submission)
    store.append(Candidate("approve", PERSON, {"body": "fine", "commitment": commitment}))
    now[0] = START + timedelta(days=400)
    store.append(Candidate("reopen", PERSON, {"body": "not fine", "commitment": commitment}))
    assert state_of(store, commitment) == "claimed"


def test_a_tier_without_a_window_tells_none(tmp_path: Path) -> None:
    store = made(tmp_path, one_tier(auto_close=True, validators=["suite"]))
    _, submission = in_review(store)
    report = Airlock(store).take(submission)
    assert (report.outcome, report.disputable_until) == ("closed", None)


def test_a_finder_that_reads_and_writes_sees_the_snapshot_it_was_given(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Looking:
        def find(self, review: str, submitted: Submitted) -> ReviewOutcome | None:
            seen.append((submitted.commitment, submitted.row["id"], submitted.evidence_row["id"], submitted.actor))
            return None

    store = made(tmp_path, REVIEWED)
    commitment = committed(store)
    submission = submit(store, commitment, review="rev-1", artifact=ARTIFACT)
    Airlock(store, finder=Looking()).take(submission)
    record = store.read().state.commitments[commitment]
    assert record.submission is not None
    assert seen == [(commitment, submission, record.submission.evidence, WORKER)]


def test_answers_are_plain_rows_of_the_ledger(tmp_path: Path) -> None:
    store = made(tmp_path)
    run = "run_0badcafe"
    commitment = committed(store, "docs")
    evidence = captured(store, run, commitment, run_folder(tmp_path, run, commitment))
    assert Airlock(store).take(submit(store, commitment, evidence)).outcome == "closed"
    assert store.verify().ok
    found: Snapshot = store.read()
    assert found.trust.standing(evidence).verification == "machine_verified"
