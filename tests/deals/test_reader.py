"""The strict reader: what it takes, what it refuses and where, and that nothing makes it fall over."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from deals import moves
from deals.moves import message
from reference import deal_model
from troth.core.errors import Refused
from troth.deals.messages import Malformed, is_instant, read_message
from troth.deals.snapshots import canonical, snapshot
from troth.deals.transcript import EPOCH, instant_of, message_line, read_entry

KINDS = sorted(moves.SPEAKER)


def takes(value: Any) -> bool:
    try:
        read_message(value)
    except Malformed:
        return False
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_every_member_is_required_and_no_other_allowed(kind: str):
    made = message(1, kind)
    assert takes(made)
    optional = {"Reject": {"reason"}, "Settle": {"object_options"}}.get(kind, set())
    for path in moves.places(made):
        if not path or isinstance(path[-1], int) or "artifacts" in path[:-1] or "checklist" in path:
            continue
        without = copy.deepcopy(made)
        inner: Any = without
        for name in path[:-1]:
            inner = inner[name]
        del inner[path[-1]]
        assert takes(without) == (path[-1] in optional and len(path) == 1), path
        inner[path[-1]] = made if path[-1] == "evidence" else {"odd": 1}
        if path != ("artifacts",):
            assert not takes(without), path
        with_more = copy.deepcopy(made)
        inner = with_more
        for name in path[:-1]:
            inner = inner[name]
        inner["another"] = None
        assert not takes(with_more), path


@pytest.mark.parametrize(
    ("kind", "path", "value", "told"),
    [
        ("Offer", ("obligation", "checklist"), [], "$.obligation.checklist"),
        ("Offer", ("obligation", "checklist", 0, "predicate"), 5, "$.obligation.checklist[0].predicate"),
        ("Offer", ("obligation", "deadline_steps"), -1, "$.obligation.deadline_steps"),
        ("Offer", ("consideration", "cash_sim", "amount"), 2**53, "$.consideration.cash_sim.amount"),
        ("Offer", ("consideration", "cash_sim", "amount"), True, "$.consideration.cash_sim.amount"),
        ("Offer", ("consideration", "cash_sim", "asset"), "euro", "$.consideration.cash_sim.asset"),
        ("Offer", ("breach_C",), ["x", 1], "$.breach_C[1]"),
        ("Offer", ("delayed_clause",), {}, "$.delayed_clause"),
        ("Offer", ("supersedes",), "off_0", "$.supersedes"),
        ("Offer", ("deceptive_alt",), 1, "$.deceptive_alt"),
        ("Offer", ("deceptive_alt_kind",), "other", "$.deceptive_alt_kind"),
        ("OfferSupersede", ("supersedes",), None, "$.supersedes"),
        ("Offer", ("honesty_context",), "none", "$.honesty_context"),
        ("Offer", ("unheard",), 1, "$.unheard"),
        ("Accept", ("ts",), "2026-02-30T00:00:00Z", "$.ts"),
        ("Accept", ("from",), "oracle", "$.from"),
        ("Accept", ("to",), ["A", "B"], "$.to[1]"),
        ("Accept", ("msg_id",), "", "$.msg_id"),
        ("Accept", ("channel",), "deal_honesty", "$.channel"),
        ("Accept", ("type",), "OracleReveal", "$.type"),
        ("Accept", ("type",), ["Accept"], "$.type"),
        ("EscrowHold", ("state",), "open", "$.state"),
        ("Refuse", ("reason",), "because", "$.reason"),
        ("Disclosure", ("artifacts",), [], "$.artifacts"),
        ("Disclosure", ("claims",), "all", "$.claims"),
        ("Verdict", ("result",), "maybe", "$.result"),
        ("Verdict", ("checklist_results", 0, "ok"), 1, "$.checklist_results[0].ok"),
        ("BreachNotice", ("party",), "K", "$.party"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_member(kind: str, path: tuple[Any, ...], value: Any, told: str):
    made: Any = message(1, kind)
    inner = made
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(Malformed) as caught:
        read_message(made)
    assert caught.value.path == told
    assert caught.value.why


@pytest.mark.parametrize("value", [None, 5, [], "Accept", {}, {"type": None}])
def test_what_is_no_message_at_all(value: Any):
    assert not takes(value)


def test_what_may_stand_beside_the_source():
    offer = message(1, "Offer")
    offer["obligation"]["checklist"].append({"id": "x", "predicate": "unheard", "depth": {"any": [1.5, None]}})
    assert takes({**offer, "deceptive_alt": False})
    assert takes({**message(1, "EscrowHold"), "deceptive_alt": True, "deceptive_alt_kind": "forged_hold"})
    assert takes({**message(1, "Accept"), "to": ["C", "E"]})
    assert takes({**message(1, "Verdict"), "checklist_results": [{"id": "a", "ok": None}]})
    assert takes({**message(1, "Disclosure"), "artifacts": {}, "claims": []})


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("2026-01-01T00:00:00Z", True), ("2026-01-01t00:00:00z", True), ("2026-01-01T00:00:00.123456789+01:30", True),
        ("2024-02-29T23:59:60Z", True), ("0000-02-29T00:00:00Z", True), ("2026-13-01T00:00:00Z", False),
        ("2026-02-29T00:00:00Z", False), ("2026-01-01T24:00:00Z", False), ("2026-01-01T00:60:00Z", False),
        ("2026-01-01T00:00:61Z", False), ("2026-01-01T00:00:00", False), ("2026-01-01 00:00:00Z", False),
        ("2026-01-01T00:00:00+24:00", False), ("2026-01-01T00:00:00Z\n", False), ("٢٠٢٦-01-01T00:00:00Z", False),
        ("2026-00-01T00:00:00Z", False), ("2026-01-00T00:00:00Z", False), ("", False),
    ],
)  # fmt: skip
def test_instants(text: str, fits: bool):
    assert is_instant(text) is fits
    assert deal_model.instant(text) is fits


def test_steps_have_instants():
    assert instant_of(0) == "2026-01-01T00:00:00Z"
    assert instant_of(86_400) == "2026-01-02T00:00:00Z"
    assert is_instant(instant_of(10**9))
    with pytest.raises(ValueError, match="9999"):
        instant_of(10**15)
    assert EPOCH % 86_400 == 0


def test_bent_messages_as_the_independent_reading_has_them():
    """Fuzzed: both readers agree, and the bending leaves enough that is accepted and enough that is not."""
    rng = random.Random(11)
    accepted = 0
    for number in range(6000):
        made = message(number, rng.choice(KINDS))
        raw = moves.mutated(rng, {"step": 0, "msg": made})
        entry = read_entry(raw)
        value = entry.value["msg"] if isinstance(entry.value, dict) and "msg" in entry.value else None
        other = deal_model.load(raw)
        fits = isinstance(value, dict) and deal_model.accepted(other["msg"]) and not deal_model.unfit(other)
        assert (entry.flaw is None and takes(value)) == fits, raw
        accepted += fits
    assert 600 < accepted < 4000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=200)
def test_canonical_forms_are_equal_when_the_values_are(value: Any):
    """Whatever the spacing and the order; and both ways of reading give the same value."""
    spaced = read_entry(json.dumps(value).encode())
    if spaced.flaw is None:
        tight = read_entry(json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode())
        assert canonical(spaced.value) == canonical(tight.value)
        assert canonical(json.loads(canonical(value))) == canonical(value)


@example(b"1e310")
@example(b"9" * 5000)
@example(b"[1e310]")
@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_bytes_are_read_or_refused(data: bytes):
    try:
        told = read_entry(data).flaw
    except Refused as fault:
        told = fault.code
    flaws = ("a member name stands twice", "a number that no double holds", "a number of too many digits")
    assert told in (None, "E_TRANSCRIPT_UNREADABLE", *flaws)


def test_a_snapshot_is_the_body_alone():
    offer = message(1, "Offer")
    taken = snapshot(offer)
    body = json.loads(taken.body)
    assert set(body) == set(offer) - {"msg_id", "ts", "from", "to"}
    assert taken.body == json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert snapshot({**offer, "msg_id": "msg_2", "deceptive_alt": True, "deceptive_alt_kind": "forged_hold"}) == taken
    assert len(taken.sha256) == 64
    for path in moves.places(offer):
        if path and path[0] not in ("msg_id", "ts", "from", "to"):
            other: Any = copy.deepcopy(offer)
            inner = other
            for name in path[:-1]:
                inner = inner[name]
            inner[path[-1]] = "changed"
            assert snapshot(other) != taken, path


def test_long_numbers_are_not_rounded_in_what_is_free():
    """Two offers that differ in the last digit of a number that no double holds are two offers."""
    shots = set()
    for last in (1, 2):
        offer = message(1, "Offer")
        offer["obligation"]["checklist"][0]["n"] = 10**40 + last
        shots.add(snapshot(read_entry(json.dumps(offer).encode()).value).sha256)
    assert len(shots) == 2


def test_lines_written_here_are_canonical():
    line = message_line(3, message(1, "Accept"))
    assert line == json.dumps(json.loads(line), sort_keys=True, separators=(",", ":")).encode() + b"\n"
