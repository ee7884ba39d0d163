"""Version 1 rows made into a chained ledger (ledger spec §6)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.building import lines, reviewed, verify_and_replay
from troth.core.errors import Refused
from troth.ledger.importing import chained, normalised
from troth.ledger.rows import MAX_ROW_BYTES

OLD: list[dict[str, Any]] = [
    {"id": "mem_1", "op": "capture", "ts": "t", "actor": "a", "payload": {"kind": "observation"}, "x": [1]},
    {
        "id": "cmt_1",
        "op": "commit",
        "ts": "t",
        "actor": "a",
        "workspace": "",
        "payload": {"body": "", "source": "mem_1"},
    },
    {
        "id": "l",
        "op": "link",
        "ts": "t",
        "actor": "a",
        "workspace": "v",
        "payload": {"source": "cmt_1", "meta": {"k": 1}},
    },
    {"id": "d", "op": "dismiss", "ts": "t", "actor": "a", "payload": {"memory": "mem_1", "body": "no"}, "hash": None},
    {"id": "t", "op": "triage", "ts": "t", "actor": "a", "payload": {"target": "mem_1", "source": "x", "kind": "old"}},
]


def test_rows_are_normalised() -> None:
    before = deepcopy(OLD)
    rows = [normalised(row) for row in OLD]
    assert before == OLD
    assert rows[0]["payload"] == {"kind": "observation", "body": "capture"}
    assert rows[0]["workspace"] == "default"
    assert rows[0]["x"] == [1]
    assert rows[1]["payload"]["body"] == "commit"
    assert rows[2]["op"] == "annotate"
    assert rows[2]["workspace"] == "v"
    assert rows[2]["payload"] == {
        "source": "cmt_1",
        "meta": {"k": 1, "v1_op": "link"},
        "body": "link",
        "kind": "link",
        "target": "cmt_1",
    }
    assert rows[3]["payload"]["target"] == "mem_1"
    assert rows[4]["payload"] | {"meta": None} == {
        "target": "mem_1",
        "source": "x",
        "kind": "triage",
        "body": "triage",
        "meta": None,
    }
    assert all("hash" not in row for row in rows)


def test_the_result_verifies_and_means_the_same() -> None:
    rows = list(chained(OLD))
    found, state = verify_and_replay(lines(rows), unhashed_prefix=0)
    assert found.ok
    assert found.summary() == "5/5 verified"
    assert found.warnings == ()
    assert state.anomalies == []
    assert state.dismissed == {"mem_1"}
    _, old = verify_and_replay(lines(OLD), unhashed_prefix=5)
    assert old.anomalies == []
    assert {name: record.state for name, record in old.commitments.items()} == {
        name: record.state for name, record in state.commitments.items()
    }


def test_rows_of_today_keep_their_hashes() -> None:
    rows = reviewed().rows
    assert list(chained(rows)) == rows


def test_what_could_not_verify_is_refused_with_its_place() -> None:
    with pytest.raises(Refused) as refusal:
        list(chained([OLD[0], OLD[1], OLD[0]]))
    assert (refusal.value.code, refusal.value.detail) == ("E_DUPLICATE_ID", "mem_1")
    assert refusal.value.place is not None
    assert refusal.value.place.line == 3
    long = {"id": "a", "op": "capture", "payload": {"body": "x" * (MAX_ROW_BYTES - 100)}}
    with pytest.raises(Refused, match="bytes"):
        list(chained([long]))


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                name: st.sampled_from(
                    [None, "", "a", "link", "capture", 5, [], {}, {"body": "b"}, {"meta": 5, "memory": "a"}]
                )
                for name in ("op", "payload", "workspace", "hash", "prevHash", "ts")
            },
        ),
        max_size=5,
    )
)
def test_whatever_comes_in_a_chain_comes_out(values: list[dict[str, Any]]) -> None:
    found, _ = verify_and_replay(lines(chained(values)), unhashed_prefix=0)
    assert found.ok
    assert found.verified == len(values)
