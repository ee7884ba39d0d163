"""The validator `technical`: a receipt counts as far as it can be computed anew from the run's folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.airlock import PERSON, captured, committed, failing, one_tier, run_folder, shown, submit, validations
from support.airlock import workspace as made
from troth.airlock.pinned import PRODUCERS
from troth.airlock.validating import Airlock, Report
from troth.ledger.operations import Candidate
from troth.observer import grade, records
from troth.stores.jsonl import JsonlStore

RUN = "run_0badcafe"
TECHNICAL = one_tier(auto_close=True)


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return made(tmp_path, TECHNICAL)


def asked(store: JsonlStore, commitment: str, evidence: str) -> Report:
    return Airlock(store).take(submit(store, commitment, evidence))


def folder_of(store: JsonlStore, run: str = RUN) -> Path:
    assert store.space is not None
    return store.space.folder / "runs" / run


def root_of(store: JsonlStore) -> Path:
    assert store.space is not None
    return store.space.root


def failed(report: Report, words: str) -> None:
    assert report.outcome == "failed"
    (answered,) = report.results
    assert answered.result.result == "failed"
    assert words in answered.result.reason, answered.result.reason


def test_a_supported_receipt_closes_the_commitment(store: JsonlStore) -> None:
    commitment = committed(store)
    digest = run_folder(root_of(store), RUN, commitment)
    report = asked(store, commitment, captured(store, RUN, commitment, digest))
    assert (report.outcome, report.tier) == ("closed", 1)
    assert report.results[0].result.reason == f"the receipt of {RUN} verifies: supported"
    closed = store.read().state.commitments[commitment]
    assert (closed.state, closed.closed_by, closed.closed_row) == ("closed", "system:validator", report.approval)
    (row,) = validations(store)
    assert row["facts"]["receipt_sha256"] == digest
    assert row["facts"]["done"]["decision"] == "supported"


def test_the_producers_believed_are_those_that_write_the_records() -> None:
    assert PRODUCERS == {"observation": records.PRODUCER, "tree": records.PRODUCER, "grade": grade.PRODUCER}


def test_a_receipt_that_says_contradicted_fails_and_its_row_is_not_asked(store: JsonlStore) -> None:
    commitment = committed(store)
    digest = run_folder(root_of(store), RUN, commitment, edit=failing)
    # The row claims `supported`, as every row of `captured` does.
    report = asked(store, commitment, captured(store, RUN, commitment, digest))
    failed(report, "contradicted (acceptance_failed_in_verifier)")
    assert store.read().state.commitments[commitment].state == "in_review"


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"receipt": None}, "names no done receipt"),
        ({"run": None}, "not in the folder of a run"),
        ({"run": "../../elsewhere"}, "not in the folder of a run"),
        ({"run": 7}, "not in the folder of a run"),
        ({"receipt": ".mentu/runs/../x/receipt.json"}, "not in the folder of a run"),
        ({"receipt": "/etc/receipt.json"}, "not in the folder of a run"),
        ({"receipt_sha256": None}, "receipt_sha256 is missing"),
        ({"receipt_sha256": "0" * 64}, "its digest differs"),
        ({"run": "run_00000000", "receipt": ".mentu/runs/run_00000000/receipt.json"}, "is not there"),
    ],
)
def test_a_row_that_names_no_receipt_of_a_run(store: JsonlStore, meta: dict[str, Any], words: str) -> None:
    commitment = committed(store)
    digest = run_folder(root_of(store), RUN, commitment)
    failed(asked(store, commitment, captured(store, RUN, commitment, digest, **meta)), words)


def test_mere_words_are_no_receipt(store: JsonlStore) -> None:
    commitment = committed(store)
    failed(asked(store, commitment, shown(store)), "names no done receipt")


def test_a_note_may_be_evidence_and_is_no_receipt(store: JsonlStore) -> None:
    commitment = committed(store)
    note = store.append(Candidate("annotate", PERSON, {"body": "it works", "target": commitment}))["id"]
    failed(asked(store, commitment, note), "names no done receipt")


def _edit_json(name: str, change: Callable[[Any], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        value = json.loads((folder / name).read_text())
        change(value)
        (folder / name).write_text(json.dumps(value))

    return edit


TAMPERED: dict[str, tuple[Callable[[Path], None], str]] = {
    "receipt_changed": (lambda folder: (folder / "receipt.json").write_text("{}"), "its digest differs"),
    "receipt_gone": (lambda folder: (folder / "receipt.json").unlink(), "holds no receipt"),
    "record_changed": (
        _edit_json("grade.json", lambda value: value["results"][0].update(exit=1)),
        "receipt_record_digest_mismatch",
    ),
    "record_gone": (lambda folder: (folder / "tree.json").unlink(), "receipt_record_missing"),
    "record_is_no_json": (lambda folder: (folder / "observation.json").write_text("{"), "observation_json_invalid"),
    "record_is_a_link": (
        lambda folder: ((folder / "tree.json").unlink(), (folder / "tree.json").symlink_to("/etc/passwd")),
        "member_unreadable",
    ),
    "receipt_is_a_link": (
        lambda folder: ((folder / "receipt.json").rename(folder / "r"), (folder / "receipt.json").symlink_to("r")),
        "cannot be read",
    ),
    "folder_gone": (shutil.rmtree, "is not there"),
    "folder_is_a_link": (
        lambda folder: (folder.rename(folder.with_name("moved")), folder.symlink_to("moved")),
        "is a symbolic link",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_folder_that_was_changed_fails_with_a_sentence(store: JsonlStore, name: str) -> None:
    tamper, words = TAMPERED[name]
    commitment = committed(store)
    evidence = captured(store, RUN, commitment, run_folder(root_of(store), RUN, commitment))
    tamper(folder_of(store))
    report = asked(store, commitment, evidence)
    assert report.outcome == "failed"
    assert words in report.results[0].result.reason, report.results[0].result.reason


def test_a_policy_that_was_loosened_decides_nothing(store: JsonlStore) -> None:
    """The folder is judged by our own pins: what it says about whom to believe is not read."""
    commitment = committed(store)
    evidence = captured(store, RUN, commitment, run_folder(root_of(store), RUN, commitment))
    for path in folder_of(store).glob("*.policy.json"):
        path.write_text("{}")
    assert asked(store, commitment, evidence).outcome == "closed"


def test_records_by_others_than_our_observer_and_grader_are_not_believed(store: JsonlStore) -> None:
    commitment = committed(store)
    digest = run_folder(root_of(store), RUN, commitment, producers=("agent", "agent-too"))
    failed(asked(store, commitment, captured(store, RUN, commitment, digest)), "does not verify")


def test_another_commitments_receipt_does_not_carry(store: JsonlStore) -> None:
    first, second = committed(store), committed(store)
    digest = run_folder(root_of(store), RUN, first)
    evidence = captured(store, RUN, first, digest)
    failed(asked(store, second, evidence), f"are about {first}, not about this commitment")
    assert asked(store, first, evidence).outcome == "closed"  # it is a good one, of the other


def test_another_runs_receipt_does_not_carry(store: JsonlStore) -> None:
    commitment = committed(store)
    digest = run_folder(root_of(store), RUN, commitment, invocation="run_11111111")
    failed(asked(store, commitment, captured(store, RUN, commitment, digest)), "are those of run_11111111")


def test_a_receipt_over_another_claim_but_with_right_records_does_not_carry(store: JsonlStore) -> None:
    """Checks are the same whatever the receipt's own claim says, so that is compared too."""
    commitment = committed(store)
    run_folder(root_of(store), RUN, commitment)
    folder = folder_of(store)
    value = json.loads((folder / "receipt.json").read_text())
    value["predicate"]["claim_id"] = "cmt_ffffffff"
    data = json.dumps(value).encode()
    (folder / "receipt.json").write_bytes(data)
    evidence = captured(store, RUN, commitment, hashlib.sha256(data).hexdigest())
    failed(asked(store, commitment, evidence), "is about cmt_ffffffff")


def test_a_rejected_receipt_does_not_close_what_was_reopened(store: JsonlStore) -> None:
    commitment = committed(store)
    evidence = captured(store, RUN, commitment, run_folder(root_of(store), RUN, commitment))
    assert asked(store, commitment, evidence).outcome == "closed"
    reopened = store.append(Candidate("reopen", PERSON, {"body": "it fails here", "commitment": commitment}))["id"]
    failed(asked(store, commitment, evidence), f"from before {reopened} reopened")
    store.append(Candidate("reopen", PERSON, {"body": "again", "commitment": commitment}))
    other = captured(store, "run_22222222", commitment, run_folder(root_of(store), "run_22222222", commitment))
    assert asked(store, commitment, other).outcome == "closed"


def test_capturing_a_rejected_receipt_once_more_does_not_make_it_new(store: JsonlStore) -> None:
    commitment = committed(store)
    digest = run_folder(root_of(store), RUN, commitment)
    assert asked(store, commitment, captured(store, RUN, commitment, digest)).outcome == "closed"
    reopened = store.append(Candidate("reopen", PERSON, {"body": "it fails here", "commitment": commitment}))["id"]
    meta = {"run": RUN, "receipt": f".mentu/runs/{RUN}/receipt.json", "receipt_sha256": digest}
    payload = {"body": "done, really", "kind": "evidence", "meta": meta}
    again = store.append(Candidate("capture", "agent:worker", payload))["id"]
    failed(asked(store, commitment, str(again)), f"from before {reopened} reopened")
    store.append(Candidate("reopen", PERSON, {"body": "again", "commitment": commitment}))
    other = captured(store, "run_22222222", commitment, run_folder(root_of(store), "run_22222222", commitment))
    assert asked(store, commitment, other).outcome == "closed"


def test_what_its_own_submitter_withdrew_may_be_submitted_again(store: JsonlStore) -> None:
    commitment = committed(store)
    evidence = captured(store, RUN, commitment, run_folder(root_of(store), RUN, commitment))
    submit(store, commitment, evidence)
    store.append(Candidate("reopen", "agent:worker", {"body": "not yet", "commitment": commitment}))
    assert asked(store, commitment, evidence).outcome == "closed"


def test_a_ledger_without_a_workspace_has_no_runs(tmp_path: Path) -> None:
    store = made(tmp_path, TECHNICAL)
    commitment = committed(store)
    evidence = captured(store, RUN, commitment, run_folder(tmp_path, RUN, commitment))
    store.space = None
    failed(asked(store, commitment, evidence), "stands in no workspace")
