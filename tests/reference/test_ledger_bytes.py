"""The yardstick ledger model, held to the published vectors and to small cases made by hand."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.ledger_bytes import ZEROS, Malformed, canonical, parse_row, row_hash, verify
from reference.ledger_model import admit, replay
from support.shared import conformance, needs_shared

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SAMPLE_HASHES = {
    "mem_a1b2c3d4": "5173eb478ed285bfe5709cc74d51c0ebd33520f6aeab44a95b2b80569a5c0023",
    "cmt_e5f6g7h8": "2c7a0154db1654e98173855fd15ab8835912d5a83a897f971dd807695212ecaf",
    "op_i9j0k1l2": "b238a07fc8fc186b61c36c0d260609f8c80cdcf2bef1343569a76dbafc2eccaf",
    "mem_m3n4o5p6": "f7658824fda58bce7ddd44deaa2e8edeea7dfb4035f1ecc288f406ad38d47614",
    "op_q7r8s9t0": "389f98fec131c21c8d125f1e08a3052f94f8a0764795aefc7653a44609725b55",
    "op_u1v2w3x4": "c7fa6811f72e37dafa06f12543f17c894a69ecaf8449427a7dcbfc774001fc16",
}
SAMPLE_HEAD = "249e77c516acfd718a8a58a08ec969239083de6ff02f109fe48f20a1f9c78219"
FIRST = (
    '{"actor":"human:rashid","hash":"","id":"mem_a1b2c3d4","observationLevel":"explicit","op":"capture",'
    '"payload":{"body":"Customer reported checkout fails on empty cart","kind":"observation"},"prevHash":"",'
    '"ts":"2026-04-02T10:30:00Z","workspace":"my-project"}'
)
VECTORS = [
    (
        r'{"body":"a\/b \"q\" \\ \u00e9 \ud83d\ude00 \u007f\n\u0001","kind":"observation"}',
        "3f6637e20d5b9cd3cf6bf0f752e6600cf6eb2975e35f17e4d9eeac0275f1ff9d",
    ),
    (
        '{"body":"n","meta":{"f":1.0,"g":0.85,"h":1e+16,"i":1e-05,"j":123456789012345678901234567890,"k":-0.0,'
        '"l":1000000000000000.0,"m":100.0,"n":null,"z":true}}',
        "e2b72239bd03b1b93a4d3e8c8ed5cfb8189572e6b08b3ee61c62c657e5384615",
    ),
    (r'{"body":"\\\/"}', "4413ee2c8e2fee0e8ae39638af55fa44a62baac0a7009628371f2f711dcd54e8"),
    (
        r'{"body":"x","meta":{"Z":4,"a":5,"a\/b":3,"\ufb01":1,"\ud83d\ude00":2}}',
        "b61266761ecc5ea705203091c317163902880dd52b205105fc6e5b1b9dea6de5",
    ),
]

# --- §3 ---------------------------------------------------------------------------------------------------


@needs_shared
def test_sample_rows_hash_as_listed_and_the_ledger_verifies() -> None:
    data = conformance("sample-ledger.jsonl").read_bytes()
    rows = [parse_row(line) for line in data.splitlines()]
    assert {row["id"]: row_hash(row) for row in rows} == SAMPLE_HASHES
    assert canonical({**rows[0], "hash": "", "prevHash": ""}) == FIRST
    found = verify(data, unhashed_prefix=0, in_workspace="my-project", expect_head=SAMPLE_HEAD)
    expected = {"faults": [], "warnings": [], "verified": 6, "total": 6, "unhashed": 0, "head": SAMPLE_HEAD}
    assert found == expected


@needs_shared
def test_sample_ledger_replays_to_one_closed_commitment() -> None:
    found = replay(conformance("sample-ledger.jsonl").read_bytes())
    record = found["commitments"]["cmt_e5f6g7h8"]
    assert found["anomalies"] == []
    assert record["state"] == "closed"
    assert record["owner"] == "agent:claude"
    assert record["evidence"] == "mem_m3n4o5p6"


@pytest.mark.parametrize(("payload", "digest"), VECTORS)
def test_extra_vectors(payload: str, digest: str) -> None:
    head = '{"id":"mem_00000001","op":"capture","ts":"2026-01-01T00:00:00Z","actor":"human:a","workspace":"w",'
    row = parse_row((head + '"payload":' + payload + "}").encode())
    assert canonical(row["payload"]) == payload
    assert row_hash(row) == digest


@pytest.mark.parametrize(
    ("literal", "printed"),
    [
        ("1", "1"),
        ("-0", "0"),
        ("1.0", "1.0"),
        ("0.850", "0.85"),
        ("-0.0", "-0.0"),
        ("1E3", "1000.0"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("1e15", "1000000000000000.0"),
        ("1e16", "1e+16"),
        ("1.25e-7", "1.25e-07"),
        ("5e-324", "5e-324"),
        ("123456.789e0", "123456.789"),
        ("1e-999", "0.0"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("-12.5e20", "-1.25e+21"),
    ],
)
def test_numbers(literal: str, printed: str) -> None:
    assert canonical(parse_row(b'{"n":' + literal.encode() + b"}")["n"]) == printed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_canonical_form_equals_the_published_recipe(value: Any) -> None:
    recipe = json.dumps(value, sort_keys=True, separators=(",", ":")).replace("/", "\\/")
    assert canonical(value) == recipe


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"[]",
        b"{",
        b'{"a":NaN}',
        b'{"a":1e400}',
        b'{"a":-Infinity}',
        b'{"a":1,"a":1}',
        b'{"a":"\xff"}',
        b'{"a":{"b":1,"\\u0062":2}}',
        b'{"a":"\\ud800"}',
        b'{"\\udc00":1}',
        b"\xef\xbb\xbf{}",
        b'{"a":01}',
        b'{"a":' + b"1" * 4301 + b"}",
        b'{"a":' + b"[" * 100 + b"]" * 100 + b"}",
        b'{"hash":"x"}',
        b'{"a":"' + b"x" * 1_048_570 + b'"}',
        b'{"hash":"x","prevHash":null}',
        b'{"a":' * 50_000,
    ],
    ids=lambda raw: ascii(raw[:20]),
)
def test_malformed(raw: bytes) -> None:
    with pytest.raises(Malformed):
        parse_row(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b' {"a":1}\t',
        b'{"a":"\\ud83d\\ude00"}',
        b'{"a":"\xef\xbb\xbf"}',
        b'{"hash":"","prevHash":"x"}',
        b'{"a":-' + b"1" * 4300 + b"}",
        b'{"a":' + b"[" * 99 + b"]" * 99 + b"}",
        b'{"a":"' + b"x" * 1_048_568 + b'"}',
        b'{"hash":5,"prevHash":"X"}',
    ],
    ids=lambda raw: ascii(raw[:20]),
)
def test_well_formed(raw: bytes) -> None:
    assert isinstance(parse_row(raw), dict)


# --- hand-made ledgers ------------------------------------------------------------------------------------


def _row(row_id: str, op: str, actor: str = "agent:worker", **payload: Any) -> dict[str, Any]:
    envelope = {"id": row_id, "op": op, "ts": "2026-01-01T00:00:00Z", "actor": actor, "workspace": "w"}
    return {**envelope, "payload": {"body": "text", **payload}}


def _chained(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    previous, out = ZEROS, []
    for row in rows:
        out.append({**row, "prevHash": previous, "hash": row_hash(row)})
        previous = out[-1]["hash"]
    return out


def _bytes(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _ledger(*rows: dict[str, Any]) -> bytes:
    return _bytes(_chained(*rows))


SEEN = _row("mem_00000001", "capture", "human:reviewer")
PROOF = _row("mem_00000002", "capture")
OWED = _row("cmt_00000001", "commit", "human:reviewer", source="mem_00000001")
OTHER = _row("cmt_00000002", "commit", "human:reviewer", source="mem_00000001")
BASE = [SEEN, PROOF, OWED, OTHER]
COMMITMENT = {"commitment": "cmt_00000001"}
TAKEN = _row("op_00000001", "claim", **COMMITMENT)
SUBMITTED = _row("op_00000002", "submit", evidence="mem_00000002", **COMMITMENT)
APPROVED = _row("op_00000003", "approve", "human:reviewer", **COMMITMENT)
FOUR = _chained(SEEN, PROOF, TAKEN, SUBMITTED)


def _faults(data: bytes, **settings: Any) -> list[tuple[int | None, str | None, str]]:
    faults: list[tuple[int | None, str | None, str]] = verify(data, **settings)["faults"]
    return faults


# --- §4 ---------------------------------------------------------------------------------------------------


def test_empty_ledger_holds() -> None:
    found = verify(b"", unhashed_prefix=0)
    assert (found["faults"], found["verified"], found["total"], found["head"]) == ([], 0, 0, ZEROS)


def test_head_digest_and_expected_head() -> None:
    head = ZEROS
    for row in FOUR:
        head = hashlib.sha256((head + row["hash"]).encode()).hexdigest()
    data = _bytes(FOUR)
    assert verify(data)["head"] == head
    assert _faults(data, expect_head=f"{head}:4") == []
    assert _faults(_bytes(FOUR[:3]), expect_head=f"{head}:4") == [(None, None, "head_mismatch")]


def test_changed_text_is_content_mismatch_alone() -> None:
    rows = [*FOUR]
    rows[1] = {**rows[1], "actor": "agent:other"}
    found = verify(_bytes(rows))
    assert found["faults"] == [(2, "mem_00000002", "content_mismatch")]
    assert (found["verified"], found["total"]) == (3, 4)


def test_a_deleted_row_leaves_a_missing_ancestor_and_relinking_it_hides_from_all_but_the_head() -> None:
    cut = [FOUR[0], *FOUR[2:]]
    assert _faults(_bytes(cut)) == [(2, "op_00000001", "missing_ancestor")]
    relinked = [FOUR[0], {**FOUR[2], "prevHash": FOUR[0]["hash"]}, FOUR[3]]
    head = verify(_bytes(FOUR))["head"]
    assert _faults(_bytes(relinked)) == []
    assert _faults(_bytes(relinked), expect_head=head) == [(None, None, "head_mismatch")]


@pytest.mark.parametrize(
    ("at", "named", "fault"),
    [
        (0, "f" * 64, "missing_ancestor"),
        (2, ZEROS, "link_mismatch"),
        (2, FOUR[0]["hash"], "link_mismatch"),
        (2, FOUR[1]["hash"].upper(), "missing_ancestor"),
        (2, FOUR[1]["hash"][:63], "missing_ancestor"),
        (2, FOUR[2]["hash"], "missing_ancestor"),
        (2, 5, "missing_ancestor"),
    ],
)
def test_wrong_links(at: int, named: Any, fault: str) -> None:
    rows = [*FOUR]
    rows[at] = {**rows[at], "prevHash": named}
    assert _faults(_bytes(rows)) == [(at + 1, rows[at]["id"], fault)]


def test_malformed_line_and_its_successor() -> None:
    lines = _bytes(FOUR).splitlines(keepends=True)
    lines[1] = b"{not json}\n"
    found = verify(b"".join(lines))
    assert found["faults"] == [(2, None, "malformed"), (3, "op_00000001", "missing_ancestor")]
    assert (found["verified"], found["total"]) == (2, 4)
    inserted = [lines[0], b"   \n", *_bytes(FOUR).splitlines(keepends=True)[1:]]
    assert _faults(b"".join(inserted)) == [(2, None, "malformed")]


def test_torn_tail_and_unterminated_row() -> None:
    data = _bytes(FOUR)
    torn = verify(data + b'{"id":')
    assert torn["faults"] == [(5, None, "torn_tail")]
    assert (torn["verified"], torn["total"]) == (4, 5)
    assert _faults(data[:-1]) == []
    assert verify(data[:-1])["warnings"] == [(4, "op_00000002", "no_final_newline")]


def test_byte_order_mark_carriage_returns_and_blank_lines_only_warn() -> None:
    data = b"\xef\xbb\xbf" + _bytes(FOUR).replace(b"\n", b"\r\n\n")
    found = verify(data, unhashed_prefix=0)
    assert found["faults"] == []
    assert (found["verified"], found["total"]) == (4, 4)
    assert {name for _, _, name in found["warnings"]} == {"bom", "trailing_cr", "blank_line"}


def test_duplicate_id() -> None:
    assert _faults(_ledger(SEEN, {**PROOF, "id": SEEN["id"]})) == [(2, "mem_00000001", "duplicate_id")]


def test_unhashed_rows() -> None:
    late = [FOUR[0], {**PROOF, "id": "mem_00000009", "prevHash": "x"}, *FOUR[1:]]
    assert _faults(_bytes(late), unhashed_prefix=0) == [(2, "mem_00000009", "unhashed_after_cutover")]
    early = [{**PROOF, "id": "mem_00000009", "hash": None}, *FOUR]
    found = verify(_bytes(early), unhashed_prefix=1)
    assert found["faults"] == []
    assert (found["verified"], found["total"], found["unhashed"]) == (4, 5, 1)
    assert _faults(_bytes(early), unhashed_prefix=0) == [(None, None, "unhashed_count")]
    assert verify(_bytes(early))["warnings"] == [(None, None, "unhashed_prefix")]


def test_envelope_trouble_is_a_warning() -> None:
    odd = [{**SEEN, "op": "ponder"}, {**PROOF, "payload": []}, {"op": "capture", "payload": {}}]
    found = verify(_ledger(*odd), unhashed_prefix=0)
    assert found["faults"] == []
    assert [(line, name) for line, _, name in found["warnings"]] == [(1, "envelope"), (2, "envelope"), (3, "envelope")]


# --- §6, §16: replay --------------------------------------------------------------------------------------


def _after(*rows: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[int, str | None, str, str | None]]]:
    found = replay(_ledger(*BASE, *rows))
    return found["commitments"]["cmt_00000001"], found["anomalies"]


def test_review_path() -> None:
    record, anomalies = _after(TAKEN, SUBMITTED)
    assert anomalies == []
    assert (record["state"], record["owner"], record["evidence"]) == ("in_review", "agent:worker", None)
    assert record["submission"] == {"id": "op_00000002", "evidence": "mem_00000002"}
    record, _ = _after(TAKEN, SUBMITTED, APPROVED)
    assert (record["state"], record["evidence"], record["owner"]) == ("closed", "mem_00000002", "agent:worker")
    reopened = _row("op_00000004", "reopen", "human:reviewer", **COMMITMENT)
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
        row = _row("op_00000009", op, actor, **COMMITMENT, **more)
        record, anomalies = _after(*STATES[state], row)
        refused = admit(_ledger(*BASE, *STATES[state]), row, "w", NOW, 0)
        if outcome in STATES:
            assert (record["state"], anomalies, refused) == (outcome, [], None)
        else:
            code = ("E_CONSTRAINT_VIOLATED", STATE) if outcome == STATE else (outcome, None)
            line = 5 + len(STATES[state])
            assert anomalies == [(line, "op_00000009", *code)]
            assert (record["state"], refused) == (state, code)


def test_duplicate_close_by_anyone_from_open_and_its_pointer_dropped_on_reopening() -> None:
    duplicate = _row("op_00000001", "close", STRANGER, duplicate_of="cmt_00000002", **COMMITMENT)
    record, anomalies = _after(duplicate)
    assert anomalies == []
    assert (record["state"], record["owner"]) == ("closed", None)
    assert record["evidence"] == record["duplicate_of"] == "cmt_00000002"
    again = _row("op_00000002", "reopen", **COMMITMENT)
    record, _ = _after(duplicate, again)
    assert (record["state"], record["evidence"], record["duplicate_of"]) == ("open", None, None)
    back = _row("op_00000003", "close", commitment="cmt_00000002", duplicate_of="cmt_00000001")
    refused = ("E_CONSTRAINT_VIOLATED", "bad_state")
    assert admit(_ledger(*BASE, duplicate), back, "w", NOW, 0) == refused
    assert admit(_ledger(*BASE, duplicate, again), back, "w", NOW, 0) is None
    assert replay(_ledger(*BASE, duplicate, back))["anomalies"] == []


@pytest.mark.parametrize(
    ("row", "code", "detail"),
    [
        ({**TAKEN, "op": "grab"}, "E_INVALID_OP", None),
        ({**TAKEN, "actor": None}, "E_MISSING_FIELD", "actor"),
        ({**TAKEN, "payload": []}, "E_MISSING_FIELD", "payload"),
        (_row("op_00000001", "claim"), "E_MISSING_FIELD", "commitment"),
        (_row("op_00000001", "claim", commitment=5), "E_CONSTRAINT_VIOLATED", "bad_value"),
        (_row("cmt_00000001", "claim", **COMMITMENT), "E_DUPLICATE_ID", None),
        (_row("mem_00000009", "capture", kind="finding"), "E_CITATION_REQUIRED", None),
        (_row("op_00000001", "claim", commitment="cmt_00000009"), "E_REF_NOT_FOUND", "absent"),
        (_row("op_00000001", "claim", commitment="mem_00000001"), "E_REF_NOT_FOUND", "wrong_kind"),
        (_row("ann_00000001", "annotate", target="ann_00000001"), "E_REF_NOT_FOUND", "absent"),
    ],
)
def test_anomalies_have_their_codes(row: dict[str, Any], code: str, detail: str | None) -> None:
    record, anomalies = _after(row)
    assert [(line, *rest) for line, _, *rest in anomalies] == [(5, code, detail)]
    assert record["state"] == "open"


def test_repeated_source_key_names_the_row_that_has_it() -> None:
    first, second = {**SEEN, "source_key": "k"}, {**PROOF, "source_key": "k"}
    expected = [(2, "mem_00000002", "E_DUPLICATE_ID", "mem_00000001")]
    assert replay(_ledger(first, second))["anomalies"] == expected


def test_operations_on_a_commit_that_is_an_anomaly_find_no_record() -> None:
    bad = {**OWED, "payload": {"body": "text", "source": "mem_00000009"}}
    found = replay(_ledger(SEEN, bad, TAKEN))
    assert found["commitments"] == {}
    assert [code for _, _, code, _ in found["anomalies"]] == ["E_REF_NOT_FOUND", "E_REF_NOT_FOUND"]


def test_evidence_may_be_an_anomaly_and_of_any_op_in_replay() -> None:
    finding = _row("mem_00000009", "capture", kind="finding")
    submitted = _row("op_00000002", "submit", evidence="mem_00000009", **COMMITMENT)
    record, anomalies = _after(finding, TAKEN, submitted)
    assert [row_id for _, row_id, _, _ in anomalies] == ["mem_00000009"]
    assert record["state"] == "in_review"
    odd = _row("op_00000002", "submit", evidence="cmt_00000002", **COMMITMENT)
    assert _after(TAKEN, odd)[1] == []
    assert admit(_ledger(*BASE, TAKEN), odd, "w", NOW, 0) == ("E_REF_NOT_FOUND", "wrong_kind")


@pytest.mark.parametrize("payload", [{"evidence": "mem_00000001"}, {"meta": {"submission": "op_00000001"}}])
def test_an_approval_of_something_else_is_bad_state(payload: dict[str, Any]) -> None:
    row = _row("op_00000003", "approve", "human:reviewer", **COMMITMENT, **payload)
    record, anomalies = _after(TAKEN, SUBMITTED, row)
    assert anomalies == [(7, "op_00000003", "E_CONSTRAINT_VIOLATED", "bad_state")]
    assert record["state"] == "in_review"
    refused = admit(_ledger(*BASE, TAKEN, SUBMITTED), row, "w", NOW, 0)
    assert refused == ("E_CONSTRAINT_VIOLATED", "bad_state")


def test_version_1_rows() -> None:
    old = {"id": "mem_00000009", "op": "capture", "ts": "2025-01-01T00:00:00Z", "actor": "a", "payload": {}}
    link = {**old, "id": "ann_00000009", "op": "link", "payload": {"memory": "mem_00000009"}}
    dismiss = _row("ann_00000008", "dismiss", source="mem_00000009")
    data = _bytes([old, link]) + _ledger(SEEN, dismiss)
    assert replay(data)["anomalies"] == []
    assert replay(_ledger(SEEN, _row("ann_00000008", "triage")))["anomalies"] == [
        (2, "ann_00000008", "E_MISSING_FIELD", "target")
    ]


def test_faulty_rows_take_part_and_malformed_lines_do_not() -> None:
    lines = _bytes([{**row, "hash": "x"} for row in _chained(*BASE, TAKEN)]).splitlines(keepends=True)
    data = b"".join([*lines[:2], b"{]\n", *lines[2:], b'{"torn'])
    found = replay(data)
    assert found["anomalies"] == []
    assert found["commitments"]["cmt_00000001"]["state"] == "claimed"


# --- §5: admission ----------------------------------------------------------------------------------------

NOTE = {"op": "capture", "actor": "agent:worker", "payload": {"body": "text"}}


@pytest.mark.parametrize(
    ("change", "code", "detail"),
    [
        ({"op": "link"}, "E_INVALID_OP", None),
        ({"op": "link", "actor": None}, "E_INVALID_OP", None),
        ({"actor": None, "payload": None}, "E_MISSING_FIELD", "actor"),
        ({"payload": "text"}, "E_MISSING_FIELD", "payload"),
        ({"payload": {"kind": "finding"}}, "E_MISSING_FIELD", "body"),
        ({"payload": {"body": " \n"}}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"payload": {"body": "text", "colour": "red"}}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"payload": {"body": "\ud800"}}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"payload": {"body": "text", "meta": {"n": 2**53}}}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"payload": {"body": "text", "kind": "Finding"}}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"actor": "team:red"}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"ts": "2026-02-30T00:00:00Z"}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"ts": "2026-02-03T00:00:00+00:00"}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"id": "cmt_00000009"}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"workspace": "a b"}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"source_key": ""}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"relations": [{"type": "supports", "targetId": "mem_00000001"}]}, "E_CONSTRAINT_VIOLATED", "bad_value"),
        ({"trust": {"confidence": 1}}, "E_CONSTRAINT_VIOLATED", "trust_self_reported"),
        ({"id": "mem_00000001"}, "E_DUPLICATE_ID", None),
        ({"payload": {"body": "text", "kind": "learning"}}, "E_CITATION_REQUIRED", None),
        ({"trace": {"parent": ["mem_00000009"]}}, "E_REF_NOT_FOUND", "absent"),
        ({"relations": [{"type": "cites", "targetId": "mem_00000009"}]}, "E_REF_NOT_FOUND", "absent"),
        ({"sourceIds": ["mem_00000009"]}, "E_REF_NOT_FOUND", "absent"),
        ({"payload": {"body": "text", "refs": ["mem_00000009"]}}, "E_REF_NOT_FOUND", "absent"),
    ],
)
def test_refusals_of_a_capture(change: dict[str, Any], code: str, detail: str | None) -> None:
    assert admit(_ledger(*BASE), {**NOTE, **change}, "w", NOW, 0) == (code, detail)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"x_colour": 5},
        {"actor": "someone@example.org"},
        {"trace": {"parent": ["mem_00000001"]}},
        {"id": "mem_0000000z"},
        {"ts": "2026-02-03T00:00:00.123456789Z"},
        {"trust": None},
        {"source_key": "k"},
        {"relations": [{"type": "contradicts", "targetId": "cmt_00000001"}]},
    ],
)
def test_captures_that_are_written(change: dict[str, Any]) -> None:
    assert admit(_ledger(*BASE), {**NOTE, **change}, "w", NOW, 0) is None


def test_broken_chain_refuses_and_a_torn_tail_does_not() -> None:
    data = _ledger(*BASE)
    assert admit(data + b'{"torn', NOTE, "w", NOW, 0) is None
    assert admit(data + b'{"torn\n', NOTE, "w", NOW, 0) == ("E_CHAIN_BROKEN", None)
    bad = {**NOTE, "id": "mem_00000001"}
    assert admit(data.replace(b"text", b"test", 1), bad, "w", NOW, 0) == ("E_CHAIN_BROKEN", None)


def test_kinds_of_references_when_written() -> None:
    data = _ledger(*BASE, TAKEN)
    for payload, detail in [
        ({"source": "cmt_00000002"}, "wrong_kind"),
        ({"source": "mem_00000009"}, "absent"),
    ]:
        row = {"op": "commit", "actor": "agent:worker", "payload": {"body": "text", **payload}}
        assert admit(data, row, "w", NOW, 0) == ("E_REF_NOT_FOUND", detail)
    own = _row("op_00000009", "close", evidence="mem_00000002", duplicate_of="cmt_00000001", **COMMITMENT)
    assert admit(data, own, "w", NOW, 0) == ("E_CONSTRAINT_VIOLATED", "bad_value")
    kind = _row("op_00000009", "close", duplicate_of="mem_00000002", **COMMITMENT)
    assert admit(data, kind, "w", NOW, 0) == ("E_REF_NOT_FOUND", "wrong_kind")
    direct = _row("op_00000009", "close", evidence="mem_00000002", **COMMITMENT)
    assert admit(data, direct, "w", NOW, 0) is None
