"""The yardstick's reading of bytes (§3, §4), held to the published vectors and to small cases made by hand."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.ledger_bytes import ZEROS, Malformed, canonical, parse_row, row_hash, verify
from reference.ledger_made import FOUR, PROOF, SEEN, as_bytes, made_ledger
from support.shared import conformance, needs_shared

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
    data = as_bytes(FOUR)
    assert verify(data)["head"] == head
    assert _faults(data, expect_head=f"{head}:4") == []
    assert _faults(as_bytes(FOUR[:3]), expect_head=f"{head}:4") == [(None, None, "head_mismatch")]


def test_changed_text_is_content_mismatch_alone() -> None:
    rows = [*FOUR]
    rows[1] = {**rows[1], "actor": "agent:other"}
    found = verify(as_bytes(rows))
    assert found["faults"] == [(2, "mem_00000002", "content_mismatch")]
    assert (found["verified"], found["total"]) == (3, 4)


def test_a_deleted_row_leaves_a_missing_ancestor_and_relinking_it_hides_from_all_but_the_head() -> None:
    cut = [FOUR[0], *FOUR[2:]]
    assert _faults(as_bytes(cut)) == [(2, "op_00000001", "missing_ancestor")]
    relinked = [FOUR[0], {**FOUR[2], "prevHash": FOUR[0]["hash"]}, FOUR[3]]
    head = verify(as_bytes(FOUR))["head"]
    assert _faults(as_bytes(relinked)) == []
    assert _faults(as_bytes(relinked), expect_head=head) == [(None, None, "head_mismatch")]


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
    assert _faults(as_bytes(rows)) == [(at + 1, rows[at]["id"], fault)]


def test_malformed_line_and_its_successor() -> None:
    lines = as_bytes(FOUR).splitlines(keepends=True)
    lines[1] = b"{not json}\n"
    found = verify(b"".join(lines))
    assert found["faults"] == [(2, None, "malformed"), (3, "op_00000001", "missing_ancestor")]
    assert (found["verified"], found["total"]) == (2, 4)
    inserted = [lines[0], b"   \n", *as_bytes(FOUR).splitlines(keepends=True)[1:]]
    assert _faults(b"".join(inserted)) == [(2, None, "malformed")]


def test_torn_tail_and_unterminated_row() -> None:
    data = as_bytes(FOUR)
    torn = verify(data + b'{"id":')
    assert torn["faults"] == [(5, None, "torn_tail")]
    assert (torn["verified"], torn["total"]) == (4, 5)
    assert _faults(data[:-1]) == []
    assert verify(data[:-1])["warnings"] == [(4, "op_00000002", "no_final_newline")]


def test_byte_order_mark_carriage_returns_and_blank_lines_only_warn() -> None:
    data = b"\xef\xbb\xbf" + as_bytes(FOUR).replace(b"\n", b"\r\n\n")
    found = verify(data, unhashed_prefix=0)
    assert found["faults"] == []
    assert (found["verified"], found["total"]) == (4, 4)
    assert {name for _, _, name in found["warnings"]} == {"bom", "trailing_cr", "blank_line"}


def test_duplicate_id() -> None:
    assert _faults(made_ledger(SEEN, {**PROOF, "id": SEEN["id"]})) == [(2, "mem_00000001", "duplicate_id")]


def test_unhashed_rows() -> None:
    late = [FOUR[0], {**PROOF, "id": "mem_00000009", "prevHash": "x"}, *FOUR[1:]]
    assert _faults(as_bytes(late), unhashed_prefix=0) == [(2, "mem_00000009", "unhashed_after_cutover")]
    early = [{**PROOF, "id": "mem_00000009", "hash": None}, *FOUR]
    found = verify(as_bytes(early), unhashed_prefix=1)
    assert found["faults"] == []
    assert (found["verified"], found["total"], found["unhashed"]) == (4, 5, 1)
    assert _faults(as_bytes(early), unhashed_prefix=0) == [(None, None, "unhashed_count")]
    assert verify(as_bytes(early))["warnings"] == [(None, None, "unhashed_prefix")]


def test_envelope_trouble_is_a_warning() -> None:
    odd = [{**SEEN, "op": "ponder"}, {**PROOF, "payload": []}, {"op": "capture", "payload": {}}]
    found = verify(made_ledger(*odd), unhashed_prefix=0)
    assert found["faults"] == []
    assert [(line, name) for line, _, name in found["warnings"]] == [(1, "envelope"), (2, "envelope"), (3, "envelope")]
