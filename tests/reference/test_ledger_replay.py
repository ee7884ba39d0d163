"""The yardstick's replay (§6, §16), held to small cases made by hand and to the published sample."""

from __future__ import annotations

from typing import Any

import pytest

from reference.ledger_admission import admit
from reference.ledger_made import (
    APPROVED,
    BASE,
    COMMITMENT,
    NOW,
    OWED,
    PROOF,
    SEEN,
    SUBMITTED,
    TAKEN,
    as_bytes,
    chained,
    made_ledger,
    made_row,
)
from reference.ledger_replay import replay
from support.shared import conformance, needs_shared


@needs_shared
def test_sample_ledger_replays_to_one_closed_commitment() -> None:
    found = replay(conformance("sample-ledger.jsonl").read_bytes())
    record = found["commitments"]["cmt_e5f6g7h8"]
    assert found["anomalies"] == []
    assert record["state"] == "closed"
    assert record["owner"] == "agent:claude"
    assert record["evidence"] == "mem_m3n4o5p6"


def _after(*rows: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[int, str | None, str, str | None]]]:
    found = replay(made_ledger(*BASE, *rows))
    return found["commitments"]["cmt_00000001"], found["anomalies"]


def test_review_path() -> None:
    record, anomalies = _after(TAKEN, SUBMITTED)
    assert anomalies == []
    assert (record["state"], record["owner"], record["evidence"]) == ("in_review", "agent:worker", None)
    assert record["submission"] == {"id": "op_00000002", "evidence": "mem_00000002"}
    record, _ = _after(TAKEN, SUBMITTED, APPROVED)
    assert (record["state"], record["evidence"], record["owner"]) == ("closed", "mem_00000002", "agent:worker")
    reopened = made_row("op_00000004", "reopen", "human:reviewer", **COMMITMENT)
    record, _ = _after(TAKEN, SUBMITTED, APPROVED, reopened)
    assert (record["state"], record["evidence"], record["reopen_count"]) == ("claimed", None, 1)


STATES: dict[str, list[dict[str, Any]]] = {
    "open": [],
    "claimed": [TAKEN],
    "in_review": [TAKEN, SUBMITTED],
    "closed": [TAKEN, SUBMITTED, APPROVED],
}
OWNER, STRANGER = "agent:worker", "agent:stranger"
STATE, MINE, HELD, DONE = "bad_state", "E_NOT_OWNER", "E_ALREADY_CLAIMED", "E_ALREADY_CLOSED"


@pytest.mark.parametrize(
    ("state", "actor", "outcomes"),
    [
        ("open", OWNER, ["claimed", MINE, MINE, STATE, STATE, MINE]),
        ("open", STRANGER, ["claimed", MINE, MINE, STATE, STATE, MINE]),
        ("claimed", OWNER, ["claimed", "open", "in_review", STATE, STATE, "closed"]),
        ("claimed", STRANGER, [HELD, MINE, MINE, STATE, STATE, MINE]),
        ("in_review", OWNER, [STATE, STATE, STATE, "closed", "claimed", STATE]),
        ("in_review", STRANGER, [HELD, MINE, MINE, "closed", "claimed", MINE]),
        ("closed", OWNER, [DONE, DONE, DONE, DONE, "claimed", DONE]),
        ("closed", STRANGER, [DONE, DONE, DONE, DONE, "claimed", DONE]),
    ],
)
def test_the_table_cell_by_cell_in_replay_and_admission(state: str, actor: str, outcomes: list[str]) -> None:
    ops = ["claim", "release", "submit", "approve", "reopen", "close"]
    for op, outcome in zip(ops, outcomes, strict=True):
        more = {"evidence": "mem_00000002"} if op in ("submit", "close") else {}
        row = made_row("op_00000009", op, actor, **COMMITMENT, **more)
        record, anomalies = _after(*STATES[state], row)
        refused = admit(made_ledger(*BASE, *STATES[state]), row, "w", NOW, 0)
        if outcome in STATES:
            assert (record["state"], anomalies, refused) == (outcome, [], None)
        else:
            code = ("E_CONSTRAINT_VIOLATED", STATE) if outcome == STATE else (outcome, None)
            line = 5 + len(STATES[state])
            assert anomalies == [(line, "op_00000009", *code)]
            assert (record["state"], refused) == (state, code)


def test_duplicate_close_by_anyone_from_open_and_its_pointer_dropped_on_reopening() -> None:
    duplicate = made_row("op_00000001", "close", STRANGER, duplicate_of="cmt_00000002", **COMMITMENT)
    record, anomalies = _after(duplicate)
    assert anomalies == []
    assert (record["state"], record["owner"]) == ("closed", None)
    assert record["evidence"] == record["duplicate_of"] == "cmt_00000002"
    again = made_row("op_00000002", "reopen", **COMMITMENT)
    record, _ = _after(duplicate, again)
    assert (record["state"], record["evidence"], record["duplicate_of"]) == ("open", None, None)
    back = made_row("op_00000003", "close", commitment="cmt_00000002", duplicate_of="cmt_00000001")
    refused = ("E_CONSTRAINT_VIOLATED", "bad_state")
    assert admit(made_ledger(*BASE, duplicate), back, "w", NOW, 0) == refused
    assert admit(made_ledger(*BASE, duplicate, again), back, "w", NOW, 0) is None
    assert replay(made_ledger(*BASE, duplicate, back))["anomalies"] == []


@pytest.mark.parametrize(
    ("row", "code", "detail"),
    [
        ({**TAKEN, "op": "grab"}, "E_INVALID_OP", None),
        ({**TAKEN, "actor": None}, "E_MISSING_FIELD", "actor"),
        ({**TAKEN, "payload": []}, "E_MISSING_FIELD", "payload"),
        (made_row("op_00000001", "claim"), "E_MISSING_FIELD", "commitment"),
        (made_row("op_00000001", "claim", commitment=5), "E_CONSTRAINT_VIOLATED", "bad_value"),
        (made_row("cmt_00000001", "claim", **COMMITMENT), "E_DUPLICATE_ID", None),
        (made_row("mem_00000009", "capture", kind="finding"), "E_CITATION_REQUIRED", None),
        (made_row("op_00000001", "claim", commitment="cmt_00000009"), "E_REF_NOT_FOUND", "absent"),
        (made_row("op_00000001", "claim", commitment="mem_00000001"), "E_REF_NOT_FOUND", "wrong_kind"),
        (made_row("ann_00000001", "annotate", target="ann_00000001"), "E_REF_NOT_FOUND", "absent"),
    ],
)
def test_anomalies_have_their_codes(row: dict[str, Any], code: str, detail: str | None) -> None:
    record, anomalies = _after(row)
    assert [(line, *rest) for line, _, *rest in anomalies] == [(5, code, detail)]
    assert record["state"] == "open"


def test_repeated_source_key_names_the_row_that_has_it() -> None:
    first, second = {**SEEN, "source_key": "k"}, {**PROOF, "source_key": "k"}
    expected = [(2, "mem_00000002", "E_DUPLICATE_ID", "mem_00000001")]
    assert replay(made_ledger(first, second))["anomalies"] == expected


def test_operations_on_a_commit_that_is_an_anomaly_find_no_record() -> None:
    bad = {**OWED, "payload": {"body": "text", "source": "mem_00000009"}}
    found = replay(made_ledger(SEEN, bad, TAKEN))
    assert found["commitments"] == {}
    assert [code for _, _, code, _ in found["anomalies"]] == ["E_REF_NOT_FOUND", "E_REF_NOT_FOUND"]


def test_evidence_may_be_an_anomaly_and_of_any_op_in_replay() -> None:
    finding = made_row("mem_00000009", "capture", kind="finding")
    submitted = made_row("op_00000002", "submit", evidence="mem_00000009", **COMMITMENT)
    record, anomalies = _after(finding, TAKEN, submitted)
    assert [row_id for _, row_id, _, _ in anomalies] == ["mem_00000009"]
    assert record["state"] == "in_review"
    odd = made_row("op_00000002", "submit", evidence="cmt_00000002", **COMMITMENT)
    assert _after(TAKEN, odd)[1] == []
    assert admit(made_ledger(*BASE, TAKEN), odd, "w", NOW, 0) == ("E_REF_NOT_FOUND", "wrong_kind")


@pytest.mark.parametrize("payload", [{"evidence": "mem_00000001"}, {"meta": {"submission": "op_00000001"}}])
def test_an_approval_of_something_else_is_bad_state(payload: dict[str, Any]) -> None:
    row = made_row("op_00000003", "approve", "human:reviewer", **COMMITMENT, **payload)
    record, anomalies = _after(TAKEN, SUBMITTED, row)
    assert anomalies == [(7, "op_00000003", "E_CONSTRAINT_VIOLATED", "bad_state")]
    assert record["state"] == "in_review"
    refused = admit(made_ledger(*BASE, TAKEN, SUBMITTED), row, "w", NOW, 0)
    assert refused == ("E_CONSTRAINT_VIOLATED", "bad_state")


def test_version_1_rows() -> None:
    old = {"id": "mem_00000009", "op": "capture", "ts": "2025-01-01T00:00:00Z", "actor": "a", "payload": {}}
    link = {**old, "id": "ann_00000009", "op": "link", "payload": {"memory": "mem_00000009"}}
    dismiss = made_row("ann_00000008", "dismiss", source="mem_00000009")
    data = as_bytes([old, link]) + made_ledger(SEEN, dismiss)
    assert replay(data)["anomalies"] == []
    assert replay(made_ledger(SEEN, made_row("ann_00000008", "triage")))["anomalies"] == [
        (2, "ann_00000008", "E_MISSING_FIELD", "target")
    ]


def test_faulty_rows_take_part_and_malformed_lines_do_not() -> None:
    lines = as_bytes([{**row, "hash": "x"} for row in chained(*BASE, TAKEN)]).splitlines(keepends=True)
    data = b"".join([*lines[:2], b"{]\n", *lines[2:], b'{"torn'])
    found = replay(data)
    assert found["anomalies"] == []
    assert found["commitments"]["cmt_00000001"]["state"] == "claimed"
