"""A model's seat: what it is told, what its tools take, and what its calls become, whatever they are."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import jsonschema_rs
import pytest
from hypothesis import given, settings

from deals.moves import body
from troth.deals.answer import answer, final_bytes
from troth.deals.machine import SPEAKERS, is_closed
from troth.deals.messages import ORACLE_MEMBERS, TYPES
from troth.deals.run import replay
from troth.deals.transcript import entries, split_lines
from troth.lab.playing import FORGERIES, Game, Played, Setting
from troth.lab.seat import (
    MAX_CALLS,
    MAX_MESSAGE_BYTES,
    MAX_UNASKED,
    ROLES,
    WAIT,
    Call,
    Seat,
    arguments_schema,
    brief,
    description,
    material_of,
    moves,
)
from troth.lab.view import Terms

MATERIAL = material_of(0, 0)
HONEST_A = [
    [Call("Accept", {})],
    [Call("Disclosure", {"artifacts": {"transcript": MATERIAL}, "claims": ["it shows hidden_goal"]})],
]
HONEST_C = [
    [Call("Offer", {})],
    [Call("EscrowHold", {"amount": 10, "asset": "sim_points", "state": "locked"})],
    [Call("Settle", {"object_options": []})],
]


def plays(role: str, turns: Sequence[Sequence[Call]], **setting: Any) -> tuple[Played, list[str]]:
    """A deal in which a seat says the calls of its turns and is silent ever after, and what it was told."""
    told: list[str] = []
    left = iter(turns)

    def ask(text: str) -> Sequence[Call]:
        told.append(text)
        return next(left, ())

    seat = Seat(role, ask, MATERIAL if role == "A" else None)
    return Game(Setting(**setting), seats={role: seat}).play(0, 0), told


def is_closed_and_replays(played: Played) -> None:
    """Every deal is closed, and whoever replays the transcript finds the very same."""
    assert all(is_closed(deal.state) for deal in played.run.deals.values())
    again = replay(entries(split_lines(played.transcript())))
    assert answer(again) == answer(played.run)
    assert final_bytes(again) == played.final()


def test_the_tools_are_the_messages_that_the_role_may_send():
    assert {role: set(moves(role)) for role in ROLES} == {
        role: {kind for kind, roles in SPEAKERS.items() if role in roles} for role in ROLES
    }
    assert "Verdict" not in moves("A") + moves("C")


@pytest.mark.parametrize("kind", sorted({*moves("A"), *moves("C"), WAIT}))
def test_a_tool_takes_what_the_reader_reads_and_knows_no_mark_and_no_envelope(kind):
    schema = arguments_schema(kind)
    known = set(schema["properties"])
    assert not known & {*ORACLE_MEMBERS, "msg_id", "ts", "from", "to", "type"}
    assert description(kind)
    assert all(member.get("description") for member in schema["properties"].values())
    assert "$ref" not in json.dumps(schema)
    checker = jsonschema_rs.validator_for(schema)
    good = {} if kind == WAIT else {name: value for name, value in body(kind).items() if value is not None}
    assert checker.is_valid(good)
    assert not checker.is_valid({**good, "deceptive_alt": True})
    if good:
        assert not checker.is_valid({**good, "offer_id": 7})


def test_an_honest_agent_is_paid():
    played, told = plays("A", HONEST_A)
    assert played.outcome.state == "settled"
    assert played.outcome.satisfied
    assert played.outcome.paid == 10
    assert "Offered" in told[0]
    assert '"type":"Offer"' in told[0]
    assert '"type":"EscrowHold"' in told[1]
    assert '"type":"Offer"' not in told[1]
    is_closed_and_replays(played)


def test_what_passes_without_the_thing_itself_is_no_satisfied_obligation():
    stuffed = Call("Disclosure", {"artifacts": {"transcript": "-"}, "claims": ["hidden_goal"]})
    played, _ = plays("A", [HONEST_A[0], [stuffed]])
    assert (played.outcome.state, played.outcome.satisfied) == ("settled", False)


def test_an_honest_counterparty_settles_and_offers_what_it_may():
    played, told = plays("C", HONEST_C, terms=Terms(amount=10))
    assert played.outcome.state == "settled"
    assert "no offer yet" in told[0]
    is_closed_and_replays(played)


def test_an_offer_is_changed_where_its_caller_says_so_and_superseded():
    cash = {"cash_sim": {"asset": "sim_points", "amount": 3, "path": "escrow_hold"}, "object_options": []}
    pair = {"offer_id": "off_b", "supersedes": "off_a"}
    turns = [
        [Call("Offer", {"offer_id": "off_a"}), Call("OfferSupersede", {**pair, "consideration": cash})],
        [Call("EscrowHold", {"offer_id": "off_b", "amount": 3, "asset": "sim_points", "state": "locked"})],
        [Call("Settle", {})],
    ]  # fmt: skip
    played, _ = plays("C", turns)
    assert {name: deal.state for name, deal in played.run.deals.items()} == {
        "off_a": "Closed:superseded",
        "off_b": "Closed:settled",
    }
    assert played.outcome.paid == 3
    is_closed_and_replays(played)


@pytest.mark.parametrize(
    ("turns", "state", "code"),
    [
        ([], "expired", None),
        ([[Call(WAIT, {})], [Call("Accept", {})]], "breached(A:ghost)", None),
        ([[Call("Reject", {})]], "rejected", None),
        ([[Call("Disclosure", {"artifacts": {}, "claims": []})]], "protocol_error", "type_for_state"),
        ([[Call("Accept", {}), Call("Accept", {})]], "protocol_error", "type_for_state"),
        ([[Call("Accept", {"offer_id": "off_2"})]], "expired", "unknown_offer"),
        ([[Call("Settle", {})]], "protocol_error", "sender"),
        ([[Call("Verdict", {"result": "pass", "notes": "", "checklist_results": []})]], "protocol_error", "sender"),
        ([[Call("BreachNotice", {"party": "A", "mode": "no_disclosure", "evidence": []})]], "protocol_error", "sender"),
        ([[Call("BreachNotice", {"party": "C", "mode": "x", "evidence": []})]], "protocol_error", "malformed"),
        ([[Call("Accept", {"from": "C"})]], "protocol_error", "malformed"),
        ([[Call("Accept", {"type": "Reject"})]], "protocol_error", "malformed"),
        ([[Call("Accept", {"deceptive_alt": True})]], "protocol_error", "malformed"),
        ([[Call("Accept", {"offer_id": ["off_1"]})]], "protocol_error", "malformed"),
        ([[Call("Pay me <b>now</b>", {"x": 1})]], "protocol_error", "malformed"),
        ([[Call("\ud800", {})]], "protocol_error", "malformed"),
        ([[Call("Reject", {"reason": 7})]], "protocol_error", "malformed"),
        ([[Call("Reject", {"reason": "\ud800"})]], "protocol_error", "malformed"),
        ([[Call("Reject", {"reason": float("nan")})]], "protocol_error", "malformed"),
        ([[Call("Reject", {"reason": 10**30})]], "protocol_error", "malformed"),
        ([[Call("Reject", {"reason": "x" * (MAX_MESSAGE_BYTES + 1)})]], "protocol_error", "malformed"),
    ],
)
def test_whatever_a_model_calls_the_machine_judges_and_the_deal_ends(turns, state, code):
    played, _ = plays("A", turns)
    assert played.outcome.state == state
    codes = [deal.illegal.code for deal in played.run.deals.values() if deal.illegal is not None]
    assert codes == ([] if code is None else [code])
    is_closed_and_replays(played)


def test_arguments_too_deep_to_be_read_are_a_malformed_message():
    deep: Any = "x"
    for _ in range(150):
        deep = {"a": deep}
    played, _ = plays("A", [HONEST_A[0], [Call("Disclosure", {"artifacts": deep, "claims": []})]])
    assert played.outcome.state == "protocol_error"
    is_closed_and_replays(played)


def test_a_turn_of_too_many_messages_has_its_first_ones_sent():
    played, _ = plays("A", [[Call("Accept", {})] * (MAX_CALLS + 5)])
    said = [json.loads(line) for line in split_lines(played.transcript())]
    assert sum(line.get("msg", {}).get("from") == "A" for line in said) == MAX_CALLS


def test_two_offers_of_one_counterparty_both_end():
    played, _ = plays(
        "C", [[Call("Offer", {"offer_id": "off_a"}), Call("Offer", {"offer_id": "off_b"})]], a="rejecting"
    )
    assert sorted(played.run.deals) == ["off_a", "off_b"]
    is_closed_and_replays(played)


def test_a_counterparty_that_never_offers_is_not_asked_for_ever():
    played, told = plays("C", [])
    assert len(told) == MAX_UNASKED
    assert played.outcome.state == ""
    assert not played.run.deals


def test_a_seat_is_told_of_no_mark_and_sees_the_same_in_a_forged_deal():
    honest, plain = plays("A", HONEST_A)
    assert honest.outcome.state == "settled"
    for kind in FORGERIES:
        forged, told = plays("A", HONEST_A, forged=kind)
        assert forged.outcome.loss_a == 10
        assert told[: len(plain)] == plain
        assert b"deceptive_alt" in forged.transcript()
        assert not any("deceptive" in text for text in told)


def test_a_brief_names_the_role_its_material_and_its_offer():
    terms = Terms(amount=17)
    assert MATERIAL in brief("A", terms, MATERIAL)
    assert '"amount":17' in brief("C", terms)
    assert MATERIAL not in brief("C", terms, MATERIAL)
    assert len({material_of(seed, index) for seed, index in itertools.product(range(3), range(3))}) == 9


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["offer_id", "artifacts", "claims", "reason", "party", "mode", "evidence", "from", "type", "amount", "channel",
     "supersedes", "consideration", "expires_steps"]
)  # fmt: skip
CALLS = st.builds(
    Call,
    st.sampled_from([*TYPES, WAIT]) | st.text(max_size=6),
    st.dictionaries(NAMES | st.text(max_size=4), st.sampled_from(["off_1", "off_2", "", 10, []]) | JSONS, max_size=4),
)


@settings(max_examples=150, deadline=None)
@given(role=st.sampled_from(ROLES), turns=st.lists(st.lists(CALLS, max_size=3), max_size=4))
def test_no_call_crashes_or_leaves_a_deal_open(role, turns):
    opening = [HONEST_C[0]] if role == "C" else [HONEST_A[0]]
    played, _ = plays(role, opening + turns)
    assert all(is_closed(deal.state) for deal in played.run.deals.values())
    again = replay(entries(split_lines(played.transcript())))
    if not any(deal.note for deal in played.run.deals.values()):
        assert final_bytes(again) == played.final()
