"""Effective scope, audiences, anonymous rows and sets of rows, against an independent model (ledger spec §8 Sync)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.building import Ledger, line, plain_hash
from ledger.genesis_keys import key
from reference import sync_model
from troth.core.canonical import row_bytes
from troth.core.errors import Refused
from troth.ledger import sync
from troth.ledger.chain import split_lines
from troth.ledger.rows import row_of

FEDERATION = "federation: {enabled: true, sync_target: 'https://example.org/sync', workspaces: [peer]}\n"
KEY = key(FEDERATION)
AUDIENCES = {"anybody": sync.anybody(KEY), "peer": sync.peer(KEY, "peer"), "cloud": sync.cloud(KEY)}

_SCOPES = st.sampled_from([*sync_model.ORDER, *sync_model.ORDER[1:], None, "", "Full", 3, ["full"]])
_IDS = [f"mem_0000000{number}" for number in range(8)]
_NAMES = st.sampled_from([*_IDS, *_IDS, "mem_absent00", "", None, 4, [], ["mem_00000001"]])
_OPS = st.sampled_from(["capture", "commit", "claim", "close", "annotate", "link", "triage", "later", None, ["close"]])


@st.composite
def _ledgers(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows that name one another in every direction, as no writer of ours would."""
    rows = []
    for identifier in draw(st.permutations(_IDS))[: draw(st.integers(0, 8))]:
        fields = draw(st.dictionaries(st.sampled_from([*sync.NAMING, "duplicate_of", "memory", "refs"]), _NAMES))
        row: dict[str, Any] = {"id": identifier, "op": draw(_OPS), "payload": fields}
        scope = draw(_SCOPES)
        if scope is not None:
            row["syncScope"] = scope
        if draw(st.integers(0, 9)) == 0:
            row["x_merged"] = draw(st.sampled_from([{"hash": "h"}, {"hash": "h", "id": "mem_00000009"}, "id", None]))
        if draw(st.integers(0, 9)) == 0:
            row["payload"] = draw(st.sampled_from([None, [], "x"]))
        rows.append(row)
    return rows


def _collected(rows: list[dict[str, Any]]) -> sync.Scopes:
    scopes = sync.Scopes()
    for number, value in enumerate(rows, 1):
        scopes.add(row_of(number, value))
    return scopes


@given(_ledgers())
def test_scopes_and_selections_are_those_of_the_model(rows: list[dict[str, Any]]) -> None:
    scopes = _collected(rows)
    wanted = [sync_model.effective(rows, at) for at in range(len(rows))]
    found = scopes.effective()
    assert [one.scope for one in found] == wanted
    for one in found:  # whoever is told to narrow it has that scope itself, or an id made of a hash
        cause = rows[one.cause] if one.cause is not None else {}
        assert sync_model.own(cause) == one.scope or (one.scope == "local" and "id" in cause["x_merged"])
    for name, audience in AUDIENCES.items():
        chosen = sync.select(scopes, audience)
        assert list(chosen.out) == sync_model.goes(rows, name)
        assert len(chosen.out) + sum(chosen.stay.values()) == chosen.total == len(rows)
        assert sum(chosen.scopes.values()) == len(rows)
        assert len(chosen.narrowed) == chosen.stay["named"]


@given(_ledgers())
def test_nothing_goes_where_any_row_on_its_chain_does_not_lead(rows: list[dict[str, Any]]) -> None:
    ids = [row["id"] for row in rows]
    for audience in AUDIENCES.values():
        for at in sync.select(_collected(rows), audience).out:
            waiting, seen = [at], {at}
            while waiting:
                row = rows[waiting.pop()]
                floor = min(sync_model.ORDER.index(scope) for scope in audience.scopes)
                assert sync_model.ORDER.index(sync.own_scope(row)) >= floor
                for name in sync.named_by(row):
                    assert name in ids
                    if ids.index(name) not in seen:
                        seen.add(ids.index(name))
                        waiting.append(ids.index(name))


def test_without_a_scope_every_kind_is_local() -> None:
    for kind in ("observation", "evidence", "concept", "finding"):
        assert sync.own_scope({"op": "capture", "payload": {"kind": kind}}) == "local"


def test_a_long_chain_and_a_circle_of_names() -> None:
    rows = [{"id": "n0", "syncScope": "anonymous", "payload": {}}]
    rows += [
        {"id": f"n{at}", "op": "annotate", "syncScope": "cloud", "payload": {"target": f"n{at - 1}"}}
        for at in range(1, 20_000)
    ]
    assert {one.scope for one in _collected(rows).effective()} == {"anonymous"}
    rows[0]["payload"] = {"target": "n19999"}
    rows[0]["syncScope"] = "cloud"
    assert {one.scope for one in _collected(rows).effective()} == {"cloud"}


# Audiences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "E_FEDERATION_OFF"),
        ("", "E_FEDERATION_OFF"),
        ("federation: {workspaces: [peer], sync_target: t}\n", "E_FEDERATION_OFF"),
        ("federation: {enabled: false, workspaces: [peer], sync_target: t}\n", "E_FEDERATION_OFF"),
        ("federation: {enabled: true}\n", "E_NO_PEER"),
        ("federation: {enabled: true, workspaces: [Peer, peer2], sync_target: null}\n", "E_NO_PEER"),
    ],
)
def test_what_the_key_does_not_permit(text: str | None, code: str) -> None:
    genesis = key(text) if text is not None else None
    with pytest.raises(Refused) as caught:
        sync.peer(genesis, "peer")
    assert caught.value.code == code
    with pytest.raises(Refused) as caught:
        sync.cloud(genesis)
    assert caught.value.code == code
    if code == "E_FEDERATION_OFF":
        with pytest.raises(Refused) as caught:
            sync.anybody(genesis)
        assert caught.value.code == code
    else:
        assert sync.anybody(genesis).scopes == ("anonymous",)


def test_what_the_key_permits() -> None:
    assert {name: (one.scopes, one.form) for name, one in AUDIENCES.items()} == {
        "anybody": (("anonymous",), "anonymous"),
        "peer": (("full", "cloud"), "row"),
        "cloud": (("cloud",), "row"),
    }


# Anonymous rows --------------------------------------------------------------------------------------------------

_MARK = "planted"
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_OWN = {"hash", "prevHash", "source_key", "x_merged"}
_PLACES = st.sampled_from([*sorted(_OWN), "actor", "meta"])


@given(
    kept=st.dictionaries(st.text(max_size=6), _VALUES, max_size=4),
    inner=st.dictionaries(st.text(max_size=6), _VALUES, max_size=4),
    places=st.sets(_PLACES),
    deep=st.lists(st.text(max_size=3), max_size=3),
)
def test_what_is_stripped_occurs_nowhere_in_the_bytes(
    kept: dict[str, Any], inner: dict[str, Any], places: set[str], deep: list[str]
) -> None:
    secret: Any = _MARK
    for name in deep:
        secret = {name: [secret], f"{_MARK}{name}": 1}
    row = {**kept, "payload": inner, "actor": f"agent:{_MARK}"}
    for place in places:
        (row["payload"] if place == "meta" else row)[place] = secret
    before = json.dumps(row, sort_keys=True)
    bare = sync.anonymised(row)
    assert json.dumps(row, sort_keys=True) == before  # the row itself is left as it was
    assert bare == sync_model.without_a_name(row)
    assert _MARK.encode() not in row_bytes(bare)
    assert bare["actor"] == "anonymous"
    assert {name for name in row if name not in bare} == _OWN & (places | set(kept))


# Sets ------------------------------------------------------------------------------------------------------------


def _checked(data: bytes, size: int = 7) -> sync.SetCheck:
    return sync.check_set(split_lines(data[at : at + size] for at in range(0, len(data), size)))


def _rows(count: int) -> list[dict[str, Any]]:
    ledger = Ledger()
    for number in range(count):
        ledger.add("capture", "human:reviewer", body=f"n {number}")
    return [json.loads(one) for one in ledger.data.splitlines()]


@given(st.lists(st.integers(0, 7), unique=True), st.integers(1, 300))
def test_any_choice_of_rows_in_any_order_verifies_by_content(order: list[int], size: int) -> None:
    rows = _rows(8)
    found = _checked(b"".join(line(rows[at]) for at in order), size)
    assert (found.ok, found.verified, found.unverifiable) == (True, len(order), 0)
    assert found.summary() == f"{len(order)}/{len(order)} verified"


@given(at=st.integers(0, 3), name=st.sampled_from(["actor", "ts", "workspace", "x_new"]), value=st.text(max_size=3))
def test_a_changed_row_is_found_and_the_others_stand(at: int, name: str, value: str) -> None:
    rows = _rows(4)
    rows[at] = {**rows[at], name: value}
    assert plain_hash(rows[at]) != rows[at]["hash"]
    found = _checked(b"".join(map(line, rows)))
    assert [(fault.line, fault.fault) for fault in found.faults] == [(at + 1, "content_mismatch")]
    assert (found.verified, found.total) == (3, 4)


def test_what_a_set_can_lack() -> None:
    rows = _rows(3)
    bare = sync.anonymised(rows[1])
    found = _checked(b"\xef\xbb\xbf" + line(rows[0]) + b"\n" + line(bare) + line(rows[2]).strip())
    assert (found.ok, found.verified, found.unverifiable, found.total) == (True, 2, 1, 3)
    assert found.summary() == "2/3 verified, 1 unverifiable (no hash)"
    assert [one.warning for one in found.warnings] == ["unterminated"]
    found = _checked(line(rows[0]) + b"[]\n" + line(rows[0]) + line(bare) * 2 + b'{"id":')
    assert [(one.line, one.fault) for one in found.faults] == [
        (2, "malformed"), (3, "duplicate_id"), (5, "duplicate_id"), (6, "torn_tail"),
    ]  # fmt: skip
    half = {name: value for name, value in rows[0].items() if name != "prevHash"}
    assert [one.fault for one in _checked(line(half)).faults] == ["malformed"]
    assert _checked(b"").summary() == "0/0 verified"


def test_what_a_merge_kept_does_not_leave_anonymously() -> None:
    merged = {"hash": _MARK, "source_key": _MARK}
    row = {"id": "mem_00000001", "syncScope": "anonymous", "payload": {}, "x_merged": merged, "x_other": 1}
    assert sync.select(_collected([row]), AUDIENCES["anybody"]).out == (0,)
    assert _MARK.encode() not in row_bytes(sync.anonymised(row))
    assert sync.anonymised(row)["x_other"] == 1
    renamed = {**row, "x_merged": {**merged, "id": "mem_00000002"}}
    note = {"id": "ann_00000003", "op": "annotate", "syncScope": "anonymous", "payload": {"target": "mem_00000001"}}
    chosen = sync.select(_collected([renamed, note]), AUDIENCES["anybody"])
    assert chosen.out == ()
    assert [one.cause for one in chosen.narrowed] == ["mem_00000001", "mem_00000001"]
    wide = [{**renamed, "syncScope": "full"}, {**note, "syncScope": "full"}]
    assert sync.select(_collected(wide), AUDIENCES["peer"]).out == (0, 1)
