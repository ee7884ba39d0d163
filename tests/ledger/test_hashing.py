"""Canonical bytes and hash (ledger spec §3), against published vectors and our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.building import head_of
from support.shared import conformance, needs_shared
from troth.ledger.chain import verify_lines
from troth.ledger.fastpath import quick
from troth.ledger.hashing import canonical_row, fold_head, row_hash, stored_form
from troth.ledger.rows import parse_row

VECTORS = json.loads((Path(__file__).parent / "vectors" / "hashes.json").read_text("utf-8"))["vectors"]
PUBLISHED = {
    "mem_a1b2c3d4": "5173eb478ed285bfe5709cc74d51c0ebd33520f6aeab44a95b2b80569a5c0023",
    "cmt_e5f6g7h8": "2c7a0154db1654e98173855fd15ab8835912d5a83a897f971dd807695212ecaf",
    "op_i9j0k1l2": "b238a07fc8fc186b61c36c0d260609f8c80cdcf2bef1343569a76dbafc2eccaf",
    "mem_m3n4o5p6": "f7658824fda58bce7ddd44deaa2e8edeea7dfb4035f1ecc288f406ad38d47614",
    "op_q7r8s9t0": "389f98fec131c21c8d125f1e08a3052f94f8a0764795aefc7653a44609725b55",
    "op_u1v2w3x4": "c7fa6811f72e37dafa06f12543f17c894a69ecaf8449427a7dcbfc774001fc16",
}
HEAD = "249e77c516acfd718a8a58a08ec969239083de6ff02f109fe48f20a1f9c78219"
ROW = (
    '{"id":"mem_00000001","op":"capture","ts":"2026-01-01T00:00:00Z","actor":"human:a","workspace":"w","payload":%s%s}'
)


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_vectors(vector: dict[str, str]) -> None:
    value = parse_row((ROW % (vector["payload"], "")).encode())
    assert f'"payload":{vector["canonical"]},' in canonical_row(value).decode("ascii")
    assert row_hash(value) == vector["hash"]


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_vectors_with_stored_links(vector: dict[str, str]) -> None:
    links = f',"hash":"{vector["hash"]}","prevHash":"{"0" * 64}"'
    raw = (ROW % (vector["payload"], links)).encode()
    assert row_hash(parse_row(raw)) == vector["hash"]
    assert (quick(raw) or (None, vector["hash"]))[1] == vector["hash"]
    assert verify_lines(raw + b"\n").summary() == "1/1 verified"


def test_the_four_vectors_of_the_spec_are_here() -> None:
    assert [vector["hash"] for vector in VECTORS[:4]] == [
        "3f6637e20d5b9cd3cf6bf0f752e6600cf6eb2975e35f17e4d9eeac0275f1ff9d",
        "e2b72239bd03b1b93a4d3e8c8ed5cfb8189572e6b08b3ee61c62c657e5384615",
        "4413ee2c8e2fee0e8ae39638af55fa44a62baac0a7009628371f2f711dcd54e8",
        "b61266761ecc5ea705203091c317163902880dd52b205105fc6e5b1b9dea6de5",
    ]


def test_integers_and_doubles_hash_differently() -> None:
    base = {"id": "a", "payload": {"n": 1}}
    assert row_hash(base) != row_hash({"id": "a", "payload": {"n": 1.0}})


def test_present_links_and_absent_ones_hash_alike() -> None:
    assert row_hash({"id": "a"}) == row_hash({"id": "a", "hash": "x", "prevHash": None})


def test_absent_null_and_empty_hash_differently() -> None:
    forms = [{"id": "a"}, {"id": "a", "relations": None}, {"id": "a", "relations": []}]
    assert len({row_hash(form) for form in forms}) == 3


def test_a_stored_form_is_never_taken_for_another() -> None:
    forms = ["1", 1, 1.0, True, None, [1], {"a": 1}, "", "\x00", "true", "null"]
    assert len({stored_form(form) for form in forms}) == len(forms)
    assert len({fold_head("0" * 64, form) for form in ("a", "b", 1.0, "2", True)}) == 5


@needs_shared
def test_the_published_sample() -> None:
    data = conformance("sample-ledger.jsonl").read_bytes()
    rows = [parse_row(raw) for raw in data.splitlines()]
    assert {row["id"]: row_hash(row) for row in rows} == PUBLISHED
    verification = verify_lines(data)
    assert verification.ok
    assert verification.warnings == ()
    assert verification.summary() == "6/6 verified"
    assert verification.head == HEAD == head_of(PUBLISHED.values())
    assert verification.last_hash == PUBLISHED["op_u1v2w3x4"]
    assert canonical_row(rows[0]).decode() == (
        '{"actor":"human:rashid","hash":"","id":"mem_a1b2c3d4","observationLevel":"explicit","op":"capture",'
        '"payload":{"body":"Customer reported checkout fails on empty cart","kind":"observation"},"prevHash":"",'
        '"ts":"2026-04-02T10:30:00Z","workspace":"my-project"}'
    )
