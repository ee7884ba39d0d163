"""The yardstick's admission (§2, §5), held to small cases made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from reference.ledger_admission import admit
from reference.ledger_made import BASE, COMMITMENT, NOW, TAKEN, made_ledger, made_row

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
    assert admit(made_ledger(*BASE), {**NOTE, **change}, "w", NOW, 0) == (code, detail)


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
    assert admit(made_ledger(*BASE), {**NOTE, **change}, "w", NOW, 0) is None


def test_broken_chain_refuses_and_a_torn_tail_does_not() -> None:
    data = made_ledger(*BASE)
    assert admit(data + b'{"torn', NOTE, "w", NOW, 0) is None
    assert admit(data + b'{"torn\n', NOTE, "w", NOW, 0) == ("E_CHAIN_BROKEN", None)
    bad = {**NOTE, "id": "mem_00000001"}
    assert admit(data.replace(b"text", b"test", 1), bad, "w", NOW, 0) == ("E_CHAIN_BROKEN", None)


def test_kinds_of_references_when_written() -> None:
    data = made_ledger(*BASE, TAKEN)
    for payload, detail in [
        ({"source": "cmt_00000002"}, "wrong_kind"),
        ({"source": "mem_00000009"}, "absent"),
    ]:
        row = {"op": "commit", "actor": "agent:worker", "payload": {"body": "text", **payload}}
        assert admit(data, row, "w", NOW, 0) == ("E_REF_NOT_FOUND", detail)
    own = made_row("op_00000009", "close", evidence="mem_00000002", duplicate_of="cmt_00000001", **COMMITMENT)
    assert admit(data, own, "w", NOW, 0) == ("E_CONSTRAINT_VIOLATED", "bad_value")
    kind = made_row("op_00000009", "close", duplicate_of="mem_00000002", **COMMITMENT)
    assert admit(data, kind, "w", NOW, 0) == ("E_REF_NOT_FOUND", "wrong_kind")
    direct = made_row("op_00000009", "close", evidence="mem_00000002", **COMMITMENT)
    assert admit(data, direct, "w", NOW, 0) is None
