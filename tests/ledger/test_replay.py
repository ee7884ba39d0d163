"""Replay: records, anomalies with their codes, version 1, determinism (ledger spec §6, §16)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import Ledger, lines, reviewed, verify_and_replay
from troth.ledger.fields import OPS
from troth.ledger.machine import COLUMNS
from troth.ledger.replay import Replay, State, replay
from troth.ledger.rows import parse_row, row_of

ACTORS = ["agent:worker", "agent:other", "human:reviewer"]


def problems(state: State) -> list[tuple[int, str, str | None]]:
    return [(anomaly.line, anomaly.code, anomaly.detail) for anomaly in state.anomalies]


def based() -> tuple[Ledger, str, str]:
    ledger = Ledger()
    seen = ledger.add("capture", "human:reviewer")
    return ledger, seen, ledger.add("commit", "human:reviewer", source=seen, body="Fix it", tags=["bug"])


def test_a_reviewed_commitment() -> None:
    ledger = reviewed()
    _, state = ledger.run()
    (record,) = state.commitments.values()
    assert state.anomalies == []
    assert record.as_json() == {
        "id": ledger.rows[1]["id"],
        "state": "closed",
        "owner": "agent:worker",
        "evidence": ledger.rows[3]["id"],
        "submission": None,
        "duplicateOf": None,
        "reopenCount": 0,
        "source": ledger.rows[0]["id"],
        "body": "row 2",
        "tags": ["bug", "checkout"],
        "actor": "human:reviewer",
        "line": 2,
        "ts": ledger.rows[1]["ts"],
        "selfApproval": False,
    }
    assert (record.closed_by, record.closed_row, record.last_row) == (
        "human:reviewer",
        ledger.rows[5]["id"],
        ledger.rows[5]["id"],
    )
    assert list(state.signals) == [row["id"] for row in ledger.rows]
    assert [signal.depth for signal in state.signals.values()] == [0, 0, 0, 1, 0, 0]
    assert [signal.kind for signal in state.signals.values()] == [
        "observation",
        "commitment",
        "claim",
        "evidence",
        "submission",
        "approval",
    ]


def test_the_record_on_its_way() -> None:
    ledger, seen, work = based()
    record = ledger.state().commitments[work]
    assert (record.state, record.owner, record.evidence, record.submission) == ("open", None, None, None)
    ledger.add("claim", commitment=work)
    assert ledger.state().commitments[work].owner == "agent:worker"
    proof = ledger.add("annotate", target=work)
    submit = ledger.add("submit", commitment=work, evidence=proof)
    record = ledger.state().commitments[work]
    assert (record.state, record.evidence) == ("in_review", None)
    assert record.submission is not None
    assert record.submission.as_json() == {"id": submit, "evidence": proof}
    ledger.add("reopen", "human:reviewer", commitment=work)
    record = ledger.state().commitments[work]
    assert (record.state, record.owner, record.submission, record.reopen_count) == ("claimed", "agent:worker", None, 1)
    assert record.reopened
    ledger.add("submit", commitment=work, evidence=seen)
    ledger.add("approve", commitment=work)
    state = ledger.state()
    record = state.commitments[work]
    assert (record.state, record.evidence, record.submission, record.owner) == ("closed", seen, None, "agent:worker")
    assert record.self_approved
    assert [note.warning for note in state.notes] == ["self_approval"]
    ledger.add("reopen", "human:reviewer", commitment=work)
    record = ledger.state().commitments[work]
    assert (record.state, record.owner, record.evidence, record.reopen_count) == ("claimed", "agent:worker", None, 2)
    assert not record.self_approved
    assert record.closed_by is record.closed_row is record.closed_ts is None
    ledger.add("release", commitment=work)
    record = ledger.state().commitments[work]
    assert (record.state, record.owner) == ("open", None)
    assert not record.reopened


def test_direct_close_and_duplicates() -> None:
    ledger, seen, work = based()
    other = ledger.add("commit", source=seen)
    third = ledger.add("commit", source=seen)
    ledger.add("close", "agent:anyone", commitment=work, duplicate_of=other)
    ledger.add("close", "agent:anyone", commitment=third, duplicate_of=other, evidence=seen)
    state = ledger.state()
    record = state.commitments[work]
    assert (record.state, record.owner, record.evidence, record.duplicate_of) == ("closed", None, other, other)
    assert state.commitments[third].evidence == seen
    ledger.add("claim", commitment=other)
    ledger.add("close", commitment=other, evidence=seen)
    ledger.add("reopen", "human:reviewer", commitment=other)
    state = ledger.state()
    assert state.anomalies == []
    assert [note.warning for note in state.notes] == ["duplicate_reopened"] * 2
    assert state.commitments[work].state == "closed"
    ledger.add("reopen", "human:reviewer", commitment=work)
    record = ledger.state().commitments[work]
    assert (record.state, record.duplicate_of, record.evidence) == ("open", None, None)


def test_self_reference_and_circles_of_duplicates_are_not_looked_at() -> None:
    ledger, seen, work = based()
    other = ledger.add("commit", source=seen)
    ledger.add("close", commitment=work, duplicate_of=work)
    ledger.add("close", commitment=other, duplicate_of=work, evidence=other)
    assert ledger.state().anomalies == []


def test_approval_with_the_submission_named() -> None:
    for meta, evidence, right in (
        (None, None, True),
        ({}, None, True),
        ({"submission": "SUBMIT"}, "PROOF", True),
        ({"submission": None}, "", True),
        ({"submission": "SUBMIT"}, "WORK", False),
        ({"submission": "WORK"}, "PROOF", False),
        ({"submission": "nothing"}, None, False),
        ({"submission": 7}, None, False),
        (None, "absent", False),
    ):
        ledger, seen, work = based()
        ledger.add("claim", commitment=work)
        submit = ledger.add("submit", commitment=work, evidence=seen)
        names = {"SUBMIT": submit, "PROOF": seen, "WORK": work}
        members: dict[str, Any] = {"commitment": work}
        if meta is not None:
            members["meta"] = {key: names.get(value, value) for key, value in meta.items()}
        if evidence is not None:
            members["evidence"] = names.get(evidence, evidence)
        ledger.add("approve", "human:reviewer", **members)
        expected = [] if right else [(5, "E_CONSTRAINT_VIOLATED", "bad_state")]
        assert problems(ledger.state()) == expected, (meta, evidence)


def one_row(change: dict[str, Any], *, op: str = "claim", **payload: Any) -> list[tuple[int, str, str | None]]:
    """Return the anomalies when a fourth row is added with these changes."""
    ledger, seen, work = based()
    ledger.add("capture", source_key="used")
    members = {"commitment": work, "body": "b", "evidence": seen, "source": seen, "target": seen, **payload}
    row = {
        "id": "op_00000009",
        "op": op,
        "ts": "2026-01-01T00:00:09Z",
        "actor": "agent:worker",
        "workspace": "w",
        "payload": {name: value for name, value in members.items() if value is not ...},
        **change,
    }
    ledger.put({name: value for name, value in row.items() if value is not ...})
    _, state = ledger.run()
    assert state.commitments[work].state == ("open" if state.anomalies else "claimed") or op != "claim"
    return problems(state)


@pytest.mark.parametrize(
    ("change", "code", "detail"),
    [
        ({}, None, None),
        ({"op": "destroy"}, "E_INVALID_OP", None),
        ({"op": 5}, "E_INVALID_OP", None),
        ({"op": ["claim"]}, "E_INVALID_OP", None),
        ({"op": "Claim"}, "E_INVALID_OP", None),
        ({"op": "destroy", "id": ...}, "E_INVALID_OP", None),
        ({"op": ...}, "E_INVALID_OP", None),
        ({"op": ""}, "E_INVALID_OP", None),
        ({"id": ...}, "E_MISSING_FIELD", "id"),
        ({"id": ""}, "E_MISSING_FIELD", "id"),
        ({"ts": None}, "E_MISSING_FIELD", "ts"),
        ({"actor": ...}, "E_MISSING_FIELD", "actor"),
        ({"workspace": ...}, "E_MISSING_FIELD", "workspace"),
        ({"payload": ...}, "E_MISSING_FIELD", "payload"),
        ({"payload": "text"}, "E_MISSING_FIELD", "payload"),
        ({"payload": {}}, "E_MISSING_FIELD", "body"),
        ({"actor": ..., "ts": 5}, "E_MISSING_FIELD", "actor"),
        ({"ts": 5}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"actor": 5}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"id": 5}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"workspace": ["w"]}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"trace": []}, None, None),
        ({"trace": "x"}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"trace": {"parent": "x"}}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"trace": {"parent": [5]}}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"relations": [{}]}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"relations": [{"type": "cites", "targetId": 1}]}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"semantic": {"entities": [1]}}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"sourceIds": "x"}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"source_key": 1}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"syncScope": 1}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"trust": "high"}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        # Inside trust, readers never fail; formats are a writer's matter.
        ({"trust": {"confidence": "x", "decayHalfLifeDays": -1}}, None, None),
        ({"ts": "yesterday", "workspace": "a b", "syncScope": "moon"}, None, None),
        ({"relations": [{"type": "hugs", "targetId": "nobody"}], "sourceIds": ["nobody"]}, None, None),
        ({"trace": {"parent": ["nobody"], "causalDepth": "x", "children": 5}}, None, None),
        ({"x_own": {"a": 1}, "unknown": 5}, None, None),
        ({"trace": None, "relations": [], "semantic": {}, "sourceIds": None, "source_key": ""}, None, None),
        ({"id": "mem_00000001"}, "E_DUPLICATE_ID", None),
        ({"source_key": "used"}, "E_DUPLICATE_ID", "mem_00000003"),
        ({"id": [], "actor": {}}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"trace": 0}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"relations": False}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"syncScope": []}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"source_key": "fresh"}, None, None),
    ],
)
def test_envelopes_in_replay(change: dict[str, Any], code: str | None, detail: str | None) -> None:
    assert one_row(change) == ([] if code is None else [(4, code, detail)])


@pytest.mark.parametrize(
    ("op", "payload", "code", "detail"),
    [
        ("claim", {"body": ...}, "E_MISSING_FIELD", "body"),
        ("claim", {"body": None}, "E_MISSING_FIELD", "body"),
        ("claim", {"body": ""}, None, None),
        ("claim", {"body": "  "}, None, None),
        ("claim", {"body": 5}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ("claim", {"commitment": ...}, "E_MISSING_FIELD", "commitment"),
        ("claim", {"commitment": ""}, "E_MISSING_FIELD", "commitment"),
        ("claim", {"commitment": 5}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ("claim", {"commitment": "nobody"}, "E_REF_NOT_FOUND", "absent"),
        ("claim", {"commitment": "op_00000009"}, "E_REF_NOT_FOUND", "absent"),
        ("claim", {"commitment": "mem_00000001"}, "E_REF_NOT_FOUND", "wrong_kind"),
        ("claim", {"source": "nobody", "evidence": "nobody", "target": "nobody", "refs": ["nobody"]}, None, None),
        ("claim", {"kind": "finding"}, "E_CITATION_REQUIRED", None),
        ("claim", {"kind": "Whatever kind"}, None, None),
        ("claim", {"tags": "x"}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ("claim", {"meta": []}, None, None),
        ("claim", {"meta": 5}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ("commit", {"source": ...}, "E_MISSING_FIELD", "source"),
        ("commit", {"source": "nobody"}, "E_REF_NOT_FOUND", "absent"),
        ("commit", {"source": "op_00000009"}, "E_REF_NOT_FOUND", "absent"),
        ("commit", {"source": "cmt_00000002"}, None, None),
        ("submit", {"evidence": ...}, "E_MISSING_FIELD", "evidence"),
        ("submit", {"evidence": "nobody"}, "E_REF_NOT_FOUND", "absent"),
        ("submit", {"evidence": "nobody", "commitment": "mem_00000001"}, "E_REF_NOT_FOUND", "wrong_kind"),
        ("submit", {}, "E_NOT_OWNER", None),
        ("close", {"evidence": ...}, "E_MISSING_FIELD", "evidence"),
        ("close", {"evidence": ..., "duplicate_of": "nobody"}, "E_REF_NOT_FOUND", "absent"),
        ("close", {"evidence": ..., "duplicate_of": "mem_00000001"}, None, None),
        ("close", {"duplicate_of": "nobody"}, None, None),
        ("close", {"duplicate_of": 5}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ("annotate", {"target": ...}, "E_MISSING_FIELD", "target"),
        ("annotate", {"target": "nobody"}, "E_REF_NOT_FOUND", "absent"),
        ("annotate", {"target": "op_00000009"}, "E_REF_NOT_FOUND", "absent"),
        ("capture", {"kind": "learning"}, "E_CITATION_REQUIRED", None),
        ("capture", {"kind": "step_result"}, "E_CITATION_REQUIRED", None),
        ("capture", {}, None, None),
    ],
)
def test_payloads_in_replay(op: str, payload: dict[str, Any], code: str | None, detail: str | None) -> None:
    assert one_row({}, op=op, **payload) == ([] if code is None else [(4, code, detail)])


def test_the_citation_gate_wants_a_parent_of_any_name() -> None:
    assert one_row({"trace": {"parent": ["nobody"]}}, op="capture", kind="finding") == []
    assert one_row({"trace": {"parent": []}}, op="capture", kind="finding") == [(4, "E_CITATION_REQUIRED", None)]
    assert one_row({"sourceIds": ["mem_00000001"]}, op="capture", kind="finding", refs=["mem_00000001"]) == [
        (4, "E_CITATION_REQUIRED", None)
    ]


@pytest.mark.parametrize("kind", ["finding", "step_result", "learning"])
@pytest.mark.parametrize("op", OPS)
def test_the_citation_gate_in_replay_is_for_every_operation(op: str, kind: str) -> None:
    named = ("mem_00000001", "cmt_00000002")
    beside = {
        "relations": [{"type": "cites", "targetId": name} for name in named],
        "sourceIds": list(named),
        "trace": {"parent": [], "children": list(named)},
    }
    ungated = one_row({}, op=op)
    gated = [(4, "E_CITATION_REQUIRED", None)]
    assert one_row({}, op=op, kind=kind) == gated
    assert one_row(beside, op=op, kind=kind, refs=list(named)) == gated
    assert one_row({"trace": {"parent": ["mem_00000001"]}}, op=op, kind=kind) == ungated


def test_an_anomalous_commit_makes_no_record() -> None:
    ledger, _, _ = based()
    bad = ledger.add("commit", source="nobody")
    ledger.add("claim", commitment=bad)
    ledger.add("annotate", target=bad)
    gated = ledger.add("capture", kind="finding")
    work = ledger.add("commit", source=gated)
    ledger.add("claim", commitment=work)
    ledger.add("submit", commitment=work, evidence=gated)
    state = ledger.state()
    assert problems(state) == [
        (3, "E_REF_NOT_FOUND", "absent"),
        (4, "E_REF_NOT_FOUND", "absent"),
        (6, "E_CITATION_REQUIRED", None),
    ]
    assert bad not in state.commitments
    assert state.commitments[work].state == "in_review"


def test_anomalies_use_up_their_id_and_source_key() -> None:
    ledger, _, work = based()
    ledger.add("claim", commitment="nobody", id="op_0000000a", source_key="k")
    ledger.add("claim", commitment=work, id="op_0000000a")
    ledger.add("claim", commitment=work, source_key="k")
    _, state = ledger.run()
    assert problems(state)[1:] == [(4, "E_DUPLICATE_ID", None), (5, "E_DUPLICATE_ID", "op_0000000a")]
    assert state.source_keys == {"k": "op_0000000a"}


def test_a_row_without_an_id_uses_up_its_source_key() -> None:
    ledger = Ledger()
    ledger.add("capture", id=None, source_key="k")
    ledger.add("capture", source_key="k")
    _, state = ledger.run()
    assert problems(state) == [(1, "E_MISSING_FIELD", "id"), (2, "E_DUPLICATE_ID", None)]


def test_version_1() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "m1", "op": "capture", "ts": "t", "actor": "a", "payload": {}},
        {"id": "c1", "op": "commit", "ts": "t", "actor": "a", "payload": {"source": "m1"}},
        {"id": "n1", "op": "link", "ts": "t", "actor": "a", "payload": {"source": "c1"}},
        {"id": "n2", "op": "dismiss", "ts": "t", "actor": "a", "payload": {"memory": "m1"}},
        {"id": "n3", "op": "triage", "ts": "t", "actor": "a", "payload": {"target": "m1", "source": "x"}},
        {"id": "n4", "op": "triage", "ts": "t", "actor": "a", "payload": {"source": "nobody", "memory": "m1"}},
        {"id": "n5", "op": "link", "ts": "t", "actor": "a", "payload": {}},
        {"id": "n6", "op": "link", "ts": "t", "actor": "a", "payload": {"memory": {"a": 1}}},
        {"id": "k1", "op": "claim", "ts": "t", "actor": "a", "payload": {"commitment": "c1", "body": None}},
        {"id": "k2", "op": "claim", "ts": "t", "payload": {"commitment": "c1"}},
    ]
    found, state = verify_and_replay(lines(rows), unhashed_prefix=10)
    assert found.summary() == "0/10 verified, 10 unhashed"
    assert problems(state) == [
        (6, "E_REF_NOT_FOUND", "absent"),
        (7, "E_MISSING_FIELD", "target"),
        (8, "E_CONSTRAINT_VIOLATED", "bad_value"),
        (10, "E_MISSING_FIELD", "actor"),
    ]
    assert state.commitments["c1"].body == ""
    assert state.commitments["c1"].owner == "a"
    assert state.dismissed == {"m1"}
    assert [state.signals[name].op for name in ("n1", "n2", "n3")] == ["annotate"] * 3
    assert [state.signals[name].kind for name in ("n1", "n2", "n3")] == ["link", "dismiss", "triage"]
    # The default of a missing body and workspace is version 1's alone; its notes are read in hashed rows too.
    ledger = Ledger()
    seen = ledger.add("capture")
    ledger.add("dismiss", memory=seen)
    ledger.put({**ledger.rows[1], "id": "ann_0000000a", "payload": {"source": seen}})
    ledger.add("annotate", memory=seen)
    ledger.put({**ledger.rows[1], "id": "ann_0000000b", "payload": {"source": seen, "body": ""}})
    _, state = ledger.run()
    assert problems(state) == [(3, "E_MISSING_FIELD", "body"), (4, "E_MISSING_FIELD", "target")]
    assert state.dismissed == {seen}


def test_uncommitted_captures() -> None:
    ledger, seen, _ = based()
    one, two = ledger.add("capture"), ledger.add("capture")
    ledger.add("annotate", kind="dismiss", target=one)
    state = ledger.state()
    assert list(state.uncommitted()) == [two]
    assert state.cited == {seen}


def test_in_a_broken_ledger_all_but_malformed_rows_take_part() -> None:
    ledger, seen, work = based()
    ledger.add("claim", commitment=work)
    rows = [*ledger.rows]
    rows[1] = {**rows[1], "prevHash": "b" * 64}
    rows[2] = {**rows[2], "actor": "agent:thief"}
    data = b"{\n" + lines(rows) + b'{"torn":'
    found, state = verify_and_replay(data)
    assert {fault.fault for fault in found.faults} == {"malformed", "missing_ancestor", "content_mismatch", "torn_tail"}
    assert state.commitments[work].owner == "agent:thief"
    assert state.signals[seen].line == 2


def drawn_ledger(data: st.DataObject) -> Ledger:
    """Return a ledger of rows that are often wrong in their state, references or fields."""
    ledger = Ledger()
    names = ["nobody"]
    for _ in range(data.draw(st.integers(0, 14))):
        actor = data.draw(st.sampled_from(ACTORS))
        column = data.draw(st.sampled_from(["capture", "commit", "annotate", *COLUMNS, *COLUMNS]))
        pick = st.sampled_from(names[-6:])
        members: dict[str, Any] = {}
        for field in ("commitment", "source", "evidence", "target"):
            members[field] = data.draw(pick)
        if column == "duplicate":
            members["duplicate_of"] = data.draw(pick)
        op = "close" if column == "duplicate" else column
        names.append(ledger.add(op, actor, **members))
    return ledger


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_replay_is_deterministic_and_prefixes_agree(data: st.DataObject) -> None:
    ledger = drawn_ledger(data)
    _, whole = ledger.run()
    assert ledger.run()[1] == whole
    assert ledger.run()[1].digest() == whole.digest()
    run = Replay()
    for count, raw in enumerate(ledger.data.splitlines(), 1):
        run.apply(row_of(count, parse_row(raw)))
        _, prefix = verify_and_replay(lines(ledger.rows[:count]))
        assert run.state == prefix
    assert run.state == whole


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_anomalies_have_no_effect(data: st.DataObject) -> None:
    ledger = drawn_ledger(data)
    rows = [row_of(count, parse_row(raw)) for count, raw in enumerate(ledger.data.splitlines(), 1)]
    whole = replay(rows)
    wrong = {anomaly.line for anomaly in whole.anomalies}
    # Without the anomalous rows that nothing refers to, every record is the same.
    named = json.dumps([row.value["payload"] for row in rows])
    kept = [row for row in rows if row.line not in wrong or str(row.id) in named]
    assert replay(kept).commitments == whole.commitments
