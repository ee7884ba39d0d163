"""Objects of other programs as candidates, and the commits of git; pure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.core.errors import Refused
from troth.ledger.commits import MAX_FIELD_BYTES, Commit, commits
from troth.ledger.foreign import META, V1, Fields, candidate_of, detect, instant_of
from troth.ledger.replay import State

AS = "agent:importer"
NATIVE = Fields()
MAPPED = Fields(body="title", key="number", actor="who", ts="at", key_prefix="t:")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("first", "fields", "kind"),
    [
        (None, NATIVE, "v1"),
        ({"id": "mem_1", "op": "capture", "ts": "t", "actor": "a"}, NATIVE, "v1"),
        ({"id": "mem_1", "op": "capture", "ts": "t", "actor": "a", "hash": None}, NATIVE, "v1"),
        ({"id": "mem_1", "op": "capture", "ts": "t", "actor": "a", "source_key": "k"}, NATIVE, "rows"),
        ({"id": "mem_1", "op": "capture", "ts": "t"}, NATIVE, "rows"),
        ({"body": "x"}, NATIVE, "rows"),
        ({"hash": "0" * 64, "source_key": "k"}, NATIVE, "whole"),
        ({"hash": "0" * 64}, Fields(body="hash"), "rows"),
        (None, Fields(key_prefix="x:"), "rows"),
    ],
)
def test_the_first_object_shows_the_format(first: Any, fields: Fields, kind: str) -> None:
    assert detect(first, fields) == kind


def test_native_members_keep_their_names() -> None:
    found = candidate_of({"body": "b", "source_key": "k"}, NATIVE, AS)
    assert (found.op, found.actor, found.payload, found.source_key) == ("capture", AS, {"body": "b"}, "k")
    full = {"op": "annotate", "actor": "human:x", "payload": {"body": "b", "target": "mem_1"}, "source_key": "k"}
    found = candidate_of(full | {"hash": "0", "prevHash": "1", "x_more": 1, "odd": 2}, Fields(key_prefix="p:"), AS)
    assert (found.op, found.actor, found.source_key) == ("annotate", "human:x", "p:k")
    assert found.extra == {"x_more": 1, "odd": 2}


def test_other_members_are_mapped_and_the_rest_is_kept() -> None:
    value = {"title": "b", "number": 7, "who": "human:x", "at": "2020-01-01T02:00:00+02:00", "merge": {"a": [1]}}
    found = candidate_of(value, MAPPED, AS)
    assert (found.op, found.actor, found.ts, found.source_key) == ("capture", "human:x", "2020-01-01T00:00:00Z", "t:7")
    assert found.payload == {"body": "b", "meta": {META: {"merge": {"a": [1]}}}}
    assert candidate_of({"title": "b", "number": "7"}, MAPPED, AS).payload == {"body": "b"}


@pytest.mark.parametrize(
    ("value", "fields", "code"),
    [
        ([], NATIVE, "E_CONSTRAINT_VIOLATED"),
        ({"body": "b"}, NATIVE, "E_MISSING_FIELD"),
        ({"body": "b", "source_key": ""}, NATIVE, "E_MISSING_FIELD"),
        ({"body": "b", "payload": {"body": "c"}, "source_key": "k"}, NATIVE, "E_CONSTRAINT_VIOLATED"),
        ({"body": "b", "payload": [], "source_key": "k"}, NATIVE, "E_CONSTRAINT_VIOLATED"),
        ({"number": 1}, MAPPED, "E_MISSING_FIELD"),
        ({"title": "b"}, MAPPED, "E_MISSING_FIELD"),
        ({"title": "b", "number": 1, "rest": "x" * (1 << 16)}, MAPPED, "E_CONSTRAINT_VIOLATED"),
        ({"title": "b", "number": 1, "rest": "ü" * (1 << 15)}, MAPPED, "E_CONSTRAINT_VIOLATED"),
    ],
)
def test_what_no_row_can_be_made_of(value: Any, fields: Fields, code: str) -> None:
    with pytest.raises(Refused) as caught:
        candidate_of(value, fields, AS)
    assert caught.value.code == code


@given(json_values, st.booleans())
def test_any_value_is_made_a_candidate_or_refused(value: Any, mapped: bool) -> None:
    code = None
    try:
        assert candidate_of(value, MAPPED if mapped else NATIVE, AS).source_key
    except Refused as fault:
        code = fault.code
    assert code in (None, "E_MISSING_FIELD", "E_CONSTRAINT_VIOLATED")


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=5), st.text(min_size=1), st.integers())
def test_of_a_mapped_object_nothing_is_lost(rest: dict[str, Any], body: str, key: int) -> None:
    value = {**rest, "title": body, "number": key}
    found = candidate_of(value, Fields(body="title", key="number"), AS)
    kept = found.payload.get("meta", {}).get(META, {})
    assert {**kept, "title": found.payload["body"], "number": int(found.source_key)} == value
    json.dumps(found.payload)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1.5, "1970-01-01T00:00:01Z"),
        ("2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00Z"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00", "2020-01-01T00:00:00"),
        ("yesterday", "yesterday"),
        (10**30, 10**30),
        (None, None),
        ("2020-01-01T00:00:00.123456789Z", "2020-01-01T00:00:00.123456789Z"),
        ("2020-13-01T00:00:00Z", "2020-13-01T00:00:00Z"),
    ],
)
def test_times(value: Any, told: Any) -> None:
    assert instant_of(value) == told


def _printed(*fields: bytes) -> bytes:
    return b"".join(field + b"\0" for field in fields)


def test_commits_are_read_from_whatever_pieces_come() -> None:
    first = _printed(b"a" * 40, b"", b"A \xff", b"a@x", b"2020", b"0", b"one\n\x1b[31m\ntwo\n")
    second = _printed(b"b" * 40, b"a" * 40 + b" " + b"c" * 40, b"B", b"b@x", b"2020", b"99999999999999999", b"")
    data = first + second
    for size in (1, 7, 1000):
        found = list(commits(data[at : at + size] for at in range(0, len(data), size)))
        assert [one.sha for one in found] == ["a" * 40, "b" * 40]
        assert (found[0].author, found[0].ts, found[0].parents) == ("A \ufffd", "1970-01-01T00:00:00Z", ())
        assert found[1].ts == "99999999999999999"
    state = State()
    state.source_keys["git:" + "a" * 40] = "mem_00000001"
    candidate = found[1].candidate(AS, state)
    assert candidate.trace == {"parent": ["mem_00000001"]}
    assert candidate.payload["body"] == f"commit {'b' * 40} without a message"
    assert found[0].candidate(AS, state).trace is None
    with pytest.raises(Refused):
        list(commits([data[:-1]]))


def test_of_an_endless_message_only_a_part_is_kept() -> None:
    head = _printed(b"a" * 40, b"", b"A", b"a@x", b"2020", b"0")
    pieces = [head, *([b"x" * (1 << 16)] * 64), b"\0"]
    (found,) = commits(pieces)
    assert len(found.message) == MAX_FIELD_BYTES
    assert found.ts == "1970-01-01T00:00:00Z"


def test_a_commit_has_its_key() -> None:
    assert Commit("ab", (), "", "", "", "", "").source_key == "git:ab"
    assert V1 == "v1"


def test_fields_of_the_payload_may_stand_beside_those_of_the_envelope() -> None:
    value = {"body": "seen", "kind": "finding", "tags": ["a"], "source_key": "k:1", "payload": {"meta": {"n": 1}}}
    candidate = candidate_of(value, Fields(), "system:ci")
    assert candidate.payload == {"body": "seen", "kind": "finding", "tags": ["a"], "meta": {"n": 1}}
    for twice in ({"kind": "event", "payload": {"kind": "finding", "body": "x"}}, {"tags": [], "payload": 3}):
        with pytest.raises(Refused, match="stands twice") as caught:
            candidate_of({"source_key": "k:1", **twice}, Fields(), "system:ci")
        assert (caught.value.code, caught.value.detail) == ("E_CONSTRAINT_VIOLATED", "bad_value")
