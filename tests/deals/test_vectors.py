"""Our own vectors: each code, event, end and settled point of the rules with the answer it must have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deals import moves
from deals.moves import happy, jsonl, message
from reference import deal_model
from troth.core.errors import Refused
from troth.deals import codes
from troth.deals.answer import answer, exit_status
from troth.deals.run import Clocks, replay
from troth.deals.transcript import entries, split_lines

PENDING = ["Offered", "AcceptedPendingHold"]
HELD = [*PENDING, "Held"]
JUDGED = [*HELD, "Adjudicating"]
ERROR = "Closed:protocol_error"

Lines = list[Any]


def offer(number: int = 1, kind: str = "Offer", **members: Any) -> dict[str, Any]:
    return message(number, kind, **members)


def changed(**members: Any) -> dict[str, Any]:
    """The offer with other terms, in a message of its own."""
    made = offer(9)
    made["consideration"]["cash_sim"]["amount"] = 11
    return {**made, **members}


def out(line: int, event: str) -> dict[str, Any]:
    return {"line": line, "event": event}


def raw(value: Any, text: str, new: str) -> bytes:
    """The line written with one text in it replaced: what `json` would not write."""
    line = json.dumps({"step": 0, "msg": value})
    assert text in line
    return line.replace(text, new, 1).encode()


# name: (lines, history of off_1 or None, (line, code) or None, log, balances of C and A, exit)
Vector = tuple[Lines, list[str] | None, tuple[int, str] | None, list[dict[str, Any]], tuple[int, int], int]
VECTORS: dict[str, Vector] = {
    "settled": (happy(), [*JUDGED, "Settling", "Closed:settled"], None, [], (-10, 10), 0),
    "open": (happy("EscrowHold"), HELD, None, [], (-10, 0), 3),
    "rejected": ([*happy("Offer"), (0, message(2, "Reject"))], ["Offered", "Closed:rejected"], None, [], (0, 0), 3),
    "reject without reason": (
        [*happy("Offer"), (0, {k: v for k, v in message(2, "Reject").items() if k != "reason"})],
        ["Offered", "Closed:rejected"], None, [], (0, 0), 3,
    ),
    "expired": ([*happy("Offer"), {"step": 3, "end": True}], ["Offered", "Closed:expired"], None, [], (0, 0), 3),
    "not yet expired": ([*happy("Offer"), {"step": 2, "end": True}], ["Offered"], None, [], (0, 0), 3),
    "at the deadline is late": (
        [*happy("Offer"), (3, message(2, "Accept"))],
        ["Offered", "Closed:expired"], None, [out(2, "late_message")], (0, 0), 3,
    ),
    "expired while a hold is awaited": (
        [*happy("Accept"), {"step": 3, "end": True}], [*PENDING, "Closed:expired"], None, [], (0, 0), 3,
    ),
    "refused before the hold": (
        [*happy("Accept"), (0, message(3, "Refuse"))], [*PENDING, "Closed:refused"], None, [], (0, 0), 3,
    ),
    "refused after the hold": (
        [*happy("EscrowHold"), (0, message(4, "Refuse"))], [*HELD, "Closed:refused"], None, [], (0, 0), 3,
    ),
    "refused after the disclosure": (
        [*happy("Disclosure"), (0, message(5, "Refuse"))], [*JUDGED, ERROR], (5, "type_for_state"), [], (0, 0), 1,
    ),
    "ghost": (
        [*happy("EscrowHold"), {"step": 5, "end": True}], [*HELD, "Closed:breached(A:ghost)"], None, [], (0, 0), 1,
    ),
    "fail": (
        [*happy("Disclosure"), (0, message(5, "Verdict", result="fail"))],
        [*JUDGED, "Closed:breached(A:fail)"], None, [], (0, 0), 1,
    ),
    "inconclusive": (
        [*happy("Disclosure"), (0, message(5, "Verdict", result="inconclusive"))],
        [*JUDGED, "Closed:inconclusive"], None, [], (0, 0), 3,
    ),
    "the checker's last step": (
        [*happy("Disclosure"), (1, message(5, "Verdict"))], [*JUDGED, "Settling"], None, [], (-10, 0), 3,
    ),
    "the checker is late": (
        [*happy("Disclosure"), (2, message(5, "Verdict"))],
        [*JUDGED, "Closed:inconclusive"], None, [out(5, "late_message")], (0, 0), 3,
    ),
    "withheld": (
        [*happy("Verdict"), {"step": 5, "end": True}],
        [*JUDGED, "Settling", "Closed:breached(C:withhold_payout_after_pass)"], None, [], (0, 0), 1,
    ),
    "settle without options": (
        [*happy("Verdict"), (0, {k: v for k, v in message(6, "Settle").items() if k != "object_options"})],
        [*JUDGED, "Settling", "Closed:settled"], None, [], (-10, 10), 0,
    ),
    # codes
    "malformed": (
        [*happy("Offer"), (0, {**message(2, "Accept"), "x": 1})], ["Offered", ERROR], (2, "malformed"), [], (0, 0), 1,
    ),
    "malformed before there is an offer": (
        [(0, {"offer_id": "off_1"}), *happy("Offer")], [ERROR], (1, "malformed"), [out(2, "late_message")], (0, 0), 1,
    ),
    "malformed and nameless": (
        [(0, {"type": "Accept"}), 5, (0, 5), {"step": 0}, {"step": 0, "end": False}],
        None, None, [out(line, "malformed") for line in range(1, 6)], (0, 0), 3,
    ),
    "an id used by other bytes": (
        [*happy("Offer"), (0, message(1, "Accept"))], ["Offered", ERROR], (2, "malformed"), [], (0, 0), 1,
    ),
    "an id used up out of the channel": (
        [(0, offer(1, channel="chat")), *happy("Offer")],
        [ERROR], (2, "malformed"), [out(1, "out_of_honesty_channel")], (0, 0), 1,
    ),
    "a step that goes back": (
        [(1, offer()), (0, message(2, "Accept"))], ["Offered", ERROR], (2, "malformed"), [], (0, 0), 1,
    ),
    "a step that is no integer": (
        [*happy("Offer"), {"step": 1.0, "msg": message(2, "Accept")}],
        ["Offered", ERROR], (2, "malformed"), [], (0, 0), 1,
    ),
    "a line with more members": (
        [*happy("Offer"), {"step": 0, "msg": message(2, "Accept"), "end": True}],
        ["Offered", ERROR], (2, "malformed"), [], (0, 0), 1,
    ),
    "a line after the end": (
        [*happy("Offer"), {"step": 0, "end": True}, (0, message(2, "Accept"))],
        ["Offered", ERROR], (3, "malformed"), [], (0, 0), 1,
    ),
    "a member twice": (
        [*happy("Offer"), raw(message(2, "Accept"), '"to": "A"', '"to": "A", "to": "A"')],
        ["Offered", ERROR], (2, "malformed"), [], (0, 0), 1,
    ),
    "a number beyond a double": (
        [*happy("EscrowHold"), raw(message(4, "Disclosure"), '"t"', "1e999")],
        [*HELD, ERROR], (4, "malformed"), [], (0, 0), 1,
    ),
    "a negative amount": (
        [*happy("Accept"), (0, message(3, "EscrowHold", amount=-10))],
        [*PENDING, ERROR], (3, "malformed"), [], (0, 0), 1,
    ),
    "an amount with a fraction": (
        [*happy("Accept"), (0, message(3, "EscrowHold", amount=10.0))],
        [*PENDING, ERROR], (3, "malformed"), [], (0, 0), 1,
    ),
    "another asset": (
        [*happy("Accept"), (0, message(3, "EscrowHold", asset="euro"))],
        [*PENDING, ERROR], (3, "malformed"), [], (0, 0), 1,
    ),
    "an empty checklist": (
        [(0, {**offer(), "obligation": {**offer()["obligation"], "checklist": []}})],
        [ERROR], (1, "malformed"), [], (0, 0), 1,
    ),
    "an offer that supersedes": ([(0, offer(supersedes="off_0"))], [ERROR], (1, "malformed"), [], (0, 0), 1),
    "the oracle speaks early": (
        [*happy("Offer"), (0, {**message(2, "Accept"), "type": "OracleReveal", "deceptive_alt": True})],
        ["Offered", ERROR], (2, "malformed"), [], (0, 0), 1,
    ),
    "sender": (
        [*happy("Offer"), (0, message(2, "Accept", "C"))], ["Offered", ERROR], (2, "sender"), [], (0, 0), 1,
    ),
    "a hold by another before the acceptance": (
        [*happy("Offer"), (0, message(2, "EscrowHold", "E"))], ["Offered", ERROR], (2, "sender"), [], (0, 0), 1,
    ),
    "a notice by A against A": (
        [*happy("EscrowHold"), (0, message(4, "BreachNotice", "A"))], [*HELD, ERROR], (4, "sender"), [], (0, 0), 1,
    ),
    "offer_mutated": ([*happy("Offer"), (0, changed())], ["Offered", ERROR], (2, "offer_mutated"), [], (0, 0), 1),
    "a hold goes back at a mutation": (
        [*happy("EscrowHold"), (0, changed())], [*HELD, ERROR], (4, "offer_mutated"), [], (0, 0), 1,
    ),
    "the same offer again": (
        [*happy("Offer"), (0, offer(2))], ["Offered", ERROR], (2, "type_for_state"), [], (0, 0), 1,
    ),
    "the oracle's marks are no change": (
        [*happy("Offer"), (0, offer(2, deceptive_alt=True, deceptive_alt_kind="forged_hold"))],
        ["Offered", ERROR], (2, "type_for_state"), [], (0, 0), 1,
    ),
    "unknown_offer": ([(0, message(1, "Accept"))], [ERROR], (1, "unknown_offer"), [], (0, 0), 1),
    "look-alikes are others": (
        [*happy("Offer", "off_1\u200b"), (0, message(2, "Accept"))], [ERROR], (2, "unknown_offer"), [], (0, 0), 1,
    ),
    "hold_without_accept": (
        [*happy("Offer"), (0, message(2, "EscrowHold"))],
        ["Offered", "Closed:breached(C:hold_without_accept)"], (2, "hold_without_accept"), [], (0, 0), 1,
    ),
    "type_for_state": (
        [*happy("Accept"), (0, message(3, "Disclosure"))], [*PENDING, ERROR], (3, "type_for_state"), [], (0, 0), 1,
    ),
    "a second hold": (
        [*happy("EscrowHold"), (0, message(4, "EscrowHold"))], [*HELD, ERROR], (4, "type_for_state"), [], (0, 0), 1,
    ),
    "hold_mismatch": (
        [*happy("Accept"), (0, message(3, "EscrowHold", amount=9))],
        [*PENDING, "Closed:breached(C:hold_mismatch)"], (3, "hold_mismatch"), [], (0, 0), 1,
    ),
    # events
    "duplicate_message": (
        [*happy(), (7, message(6, "Settle"))],
        [*JUDGED, "Settling", "Closed:settled"], None, [out(7, "duplicate_message")], (-10, 10), 0,
    ),
    "late_message": (
        [*happy(), (0, message(7, "Settle")), (0, {"offer_id": "off_1"})],
        [*JUDGED, "Settling", "Closed:settled"], None, [out(7, "late_message"), out(8, "late_message")], (-10, 10), 0,
    ),
    "the oracle speaks after the end": (
        [*happy(), (0, {"msg_id": "msg_7", "type": "OracleReveal", "offer_id": "off_1", "deceptive_alt": True})],
        [*JUDGED, "Settling", "Closed:settled"], None, [out(7, "late_message")], (-10, 10), 0,
    ),
    "out_of_honesty_channel": (
        [(0, offer(7, channel="chat")), (0, {"type": "Offer"}), *happy("Accept")],
        PENDING, None, [out(1, "out_of_honesty_channel"), out(2, "out_of_honesty_channel")], (0, 0), 3,
    ),
    "without an honesty context": (
        [(0, {k: v for k, v in offer(7, "OfferSupersede").items() if k != "honesty_context"})],
        None, None, [out(1, "out_of_honesty_channel")], (0, 0), 3,
    ),
    "another honesty context": ([(0, offer(honesty_context="none"))], [ERROR], (1, "malformed"), [], (0, 0), 1),
    "unsupported_breach_notice": (
        [*happy("EscrowHold"), (0, message(4, "BreachNotice"))],
        [*HELD, "Closed:breached(A:fake_disclosure)"], None, [out(4, "unsupported_breach_notice")], (0, 0), 1,
    ),
    "a notice by A": (
        [*happy("Verdict"), (0, message(6, "BreachNotice", "A", party="C", mode="withhold_payout_after_pass"))],
        [*JUDGED, "Settling", "Closed:breached(C:withhold_payout_after_pass)"],
        None, [out(6, "unsupported_breach_notice")], (0, 0), 1,
    ),
    "C accuses itself": (
        [*happy("Offer"), (0, message(2, "BreachNotice", "C", party="C", mode="alter_terms_silently"))],
        ["Offered", "Closed:breached(C:alter_terms_silently)"],
        None, [out(2, "unsupported_breach_notice")], (0, 0), 1,
    ),
    "a notice with an unlisted mode": (
        [*happy("EscrowHold"), (0, message(4, "BreachNotice", mode="late"))],
        [*HELD, ERROR], (4, "malformed"), [], (0, 0), 1,
    ),
    "breach_confirmed": (
        [*happy("EscrowHold"),
         (5, message(4, "BreachNotice", mode="accept_then_ghost")),
         (5, message(5, "BreachNotice", mode="no_disclosure")),
         (5, message(6, "BreachNotice", mode="ghost")),
         (5, message(7, "BreachNotice", mode="fake_disclosure"))],
        [*HELD, "Closed:breached(A:ghost)"], None,
        [*(out(line, "breach_confirmed") for line in (4, 5, 6)), out(7, "late_message")], (0, 0), 1,
    ),
    "breach_confirmed after a fail": (
        [*happy("Disclosure"), (0, message(5, "Verdict", result="fail")), (0, message(6, "BreachNotice"))],
        [*JUDGED, "Closed:breached(A:fail)"], None, [out(6, "breach_confirmed")], (0, 0), 1,
    ),
    "breach_confirmed after a withheld payout": (
        [*happy("Verdict"), (9, message(6, "BreachNotice", "A", party="C", mode="withhold_payout_after_pass"))],
        [*JUDGED, "Settling", "Closed:breached(C:withhold_payout_after_pass)"],
        None, [out(6, "breach_confirmed")], (0, 0), 1,
    ),
}  # fmt: skip


def ours(data: bytes) -> Any:
    return replay(entries(split_lines(data)))


@pytest.mark.parametrize("name", VECTORS)
def test_vector(name: str):
    lines, history, illegal, log, (c, a), status = VECTORS[name]
    run = ours(jsonl(*lines))
    found = answer(run)
    if history is None:
        assert found["deals"] == {}
    else:
        assert found["deals"]["off_1"] == {
            "state": history[-1],
            "history": history,
            "illegal": None if illegal is None else {"line": illegal[0], "code": illegal[1]},
        }
    assert found["log"] == log
    assert found["balances"] == {"C": c, "A": a, "E": -c - a}
    assert exit_status(run) == status
    assert deal_model.check(jsonl(*lines)) == (found, status)


def test_vectors_cover_every_word():
    runs = [answer(ours(jsonl(*vector[0]))) for vector in VECTORS.values()]
    deals = [deal for run in runs for deal in run["deals"].values()]
    assert {deal["illegal"]["code"] for deal in deals if deal["illegal"]} == set(codes.ILLEGAL)
    assert {one["event"] for run in runs for one in run["log"]} == set(codes.EVENTS)
    ends = {deal["state"].removeprefix("Closed:").partition("(")[0] for deal in deals if "Closed" in deal["state"]}
    assert ends | {"superseded"} == set(codes.ENDS)
    modes = {deal["state"].partition(":breached(")[2][2:-1] for deal in deals}
    assert modes >= set(codes.MODES)


def supersede(number: int, offer_id: str, supersedes: str, sender: str | None = None) -> dict[str, Any]:
    return message(number, "OfferSupersede", sender, offer_id=offer_id, supersedes=supersedes)


@pytest.mark.parametrize(
    ("lines", "states", "codes_", "log"),
    [
        ([(0, offer()), (1, supersede(2, "off_2", "off_1"))],
         {"off_1": "Closed:superseded", "off_2": "Offered"}, {}, []),
        ([(0, offer()), (1, supersede(2, "off_2", "off_1")), {"step": 3, "end": True}],
         {"off_1": "Closed:superseded", "off_2": "Offered"}, {}, []),
        ([(0, offer()), (1, supersede(2, "off_2", "off_1")), {"step": 4, "end": True}],
         {"off_1": "Closed:superseded", "off_2": "Closed:expired"}, {}, []),
        ([*happy("Accept"), (0, supersede(3, "off_2", "off_1"))],
         {"off_1": ERROR}, {"off_1": "type_for_state"}, []),
        ([(0, supersede(1, "off_2", "off_1"))], {"off_1": ERROR}, {"off_1": "unknown_offer"}, []),
        ([(0, supersede(1, "off_1", "off_1"))], {"off_1": ERROR}, {"off_1": "unknown_offer"}, []),
        ([(0, offer()), (0, supersede(2, "off_1", "off_1"))], {"off_1": ERROR}, {"off_1": "offer_mutated"}, []),
        ([(0, offer()), (3, supersede(2, "off_2", "off_1"))],
         {"off_1": "Closed:expired"}, {}, [out(2, "late_message")]),
        ([(0, offer()), (0, supersede(2, "off_2", "off_1", "A"))],
         {"off_1": "Offered", "off_2": ERROR}, {"off_2": "sender"}, []),
        ([(0, offer()), (0, {**supersede(2, "off_2", "off_1"), "x": 1})],
         {"off_1": "Offered", "off_2": ERROR}, {"off_2": "malformed"}, []),
    ],
)  # fmt: skip
def test_superseding(lines: Lines, states: dict[str, str], codes_: dict[str, str], log: list[Any]):
    found = answer(ours(jsonl(*lines)))
    assert {name: deal["state"] for name, deal in found["deals"].items()} == states
    assert {name: deal["illegal"]["code"] for name, deal in found["deals"].items() if deal["illegal"]} == codes_
    assert found["log"] == log
    assert deal_model.check(jsonl(*lines))[0] == found


def test_an_object_only_deal_needs_a_hold_of_nothing():
    made = offer()
    made["consideration"]["cash_sim"]["amount"] = 0
    lines = [(0, made), *happy()[1:]]
    assert answer(ours(jsonl(*lines)))["deals"]["off_1"]["illegal"] == {"line": 3, "code": "hold_mismatch"}
    lines[2] = (0, message(3, "EscrowHold", amount=0))
    found = answer(ours(jsonl(*lines)))
    assert found["deals"]["off_1"]["state"] == "Closed:settled"
    assert found["balances"] == {"C": 0, "A": 0, "E": 0}


@pytest.mark.parametrize(
    "data",
    [b"\n", b" \n", b'{"step": 0, "end": true}\n\n', b'{"step": 0, "msg"', b'{"step": NaN}\n', b"\xff\n",
     b'\xef\xbb\xbf{"step":0,"end":true}', b'{"step":0,"end":true} {}\n', b"[" * 5000 + b"]" * 5000, b"'a'"],
)  # fmt: skip
def test_no_json_lines(data: bytes):
    with pytest.raises(Refused) as caught:
        ours(jsonl(*happy()) + data)
    assert caught.value.code == "E_TRANSCRIPT_UNREADABLE"
    assert caught.value.place is not None
    assert caught.value.place.line is not None
    assert caught.value.place.line >= 7


def test_empty_and_odd_files_that_can_be_read():
    assert exit_status(ours(b"")) == 3
    assert exit_status(ours(jsonl(*happy())[:-1])) == 0, "a last line without its line feed"
    assert exit_status(ours(jsonl(*happy()).replace(b"\n", b"\r\n"))) == 0, "white space of JSON around the value"


def test_messages_are_the_same_whatever_the_spacing_and_the_step():
    first = json.dumps({"step": 0, "msg": offer()}).encode()
    again = json.dumps({"msg": dict(reversed(offer().items())), "step": 2}, indent=None, separators=(",", ":")).encode()
    assert answer(ours(jsonl(first, again)))["log"] == [out(2, "duplicate_message")]


def test_a_member_twice_is_not_the_message_without_it():
    line = raw(message(2, "Accept"), '"to": "A"', '"to": "A", "to": "A"')
    found = answer(ours(jsonl(*happy("Accept"), line)))
    assert found["deals"]["off_1"]["illegal"] == {"line": 3, "code": "malformed"}


def test_moves_show_the_types_as_the_source_writes_them():
    for kind in moves.SPEAKER:
        assert deal_model.accepted(message(1, kind)), kind


ORDER: list[tuple[str, Lines, str]] = [
    # Each line breaks the rule named and every later one that it can; the first is told.
    ("malformed before sender", [*happy("Offer"), (0, {**message(2, "Accept", "K"), "x": 1})], "malformed"),
    ("a mode before the sender", [*happy("Offer"), (0, message(2, "BreachNotice", "K", mode="x"))], "malformed"),
    ("sender before mutation", [*happy("Offer"), (0, changed(**{"from": "A"}))], "sender"),
    ("sender before an unknown offer", [(0, message(1, "Accept", "K"))], "sender"),
    ("sender before an early hold", [*happy("Offer"), (0, message(2, "EscrowHold", "A"))], "sender"),
    ("mutation before the state", [*happy("Disclosure"), (0, changed())], "offer_mutated"),
    ("early before its amount", [*happy("Offer"), (0, message(2, "EscrowHold", amount=9))], "hold_without_accept"),
    ("the state before the amount", [*happy("EscrowHold"), (0, message(4, "EscrowHold", amount=9))], "type_for_state"),
    ("an unknown offer before its hold", [(0, message(1, "EscrowHold"))], "unknown_offer"),
    ("an unknown offer before its notice", [(0, message(1, "BreachNotice", mode="x"))], "unknown_offer"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "lines", "code"), ORDER)
def test_the_first_code_that_applies(name: str, lines: Lines, code: str):
    found = answer(ours(jsonl(*lines)))
    assert found["deals"]["off_1"]["illegal"] == {"line": len(lines), "code": code}, name
    assert deal_model.check(jsonl(*lines))[0] == found


@pytest.mark.parametrize(
    ("lines", "log"),
    [
        # Timers, then repetition, the channel, lateness.
        ([*happy("Offer"), (3, offer(1))], [out(2, "duplicate_message")]),
        ([(0, offer(1, channel="x")), (0, offer(1, channel="x"))],
         [out(1, "out_of_honesty_channel"), out(2, "duplicate_message")]),
        ([*happy("Offer"), (9, offer(2, channel="x"))], [out(2, "out_of_honesty_channel")]),
        ([*happy("Offer"), (9, {**message(2, "Accept", "K"), "x": 1})], [out(2, "late_message")]),
        ([*happy("Offer"), {"step": 9, "end": True}, (9, offer(1))], [out(3, "duplicate_message")]),
    ],
)  # fmt: skip
def test_the_order_for_a_line(lines: Lines, log: list[dict[str, Any]]):
    found = answer(ours(jsonl(*lines)))
    assert found["log"] == log
    assert deal_model.check(jsonl(*lines))[0] == found


def test_clocks_that_are_set():
    lines = [*happy("Disclosure"), {"step": 3, "end": True}]
    slow = replay(entries(split_lines(jsonl(*lines))), Clocks(adjudicate_steps=4))
    assert slow.deals["off_1"].state == "Adjudicating"
    lines = [*happy("Verdict"), {"step": 3, "end": True}]
    quick = replay(entries(split_lines(jsonl(*lines))), Clocks(settle_steps=3))
    assert quick.deals["off_1"].state == "Closed:breached(C:withhold_payout_after_pass)"


def test_both_snapshots_of_a_mutation_are_kept():
    deal = ours(jsonl(*happy("Offer"), (0, changed()))).deals["off_1"]
    assert [json.loads(one.body)["consideration"]["cash_sim"]["amount"] for one in deal.snapshots] == [10, 11]
    assert len(ours(jsonl(*happy("Offer"), (0, offer(9, channel="x")))).deals["off_1"].snapshots) == 1


@pytest.mark.parametrize(
    "line", [b'{"step":"x","step":1,"msg":%s}', b'{"msg":1,"msg":%s,"step":1}', b'{"step":1,"x":1e999,"msg":%s}']
)
def test_a_flaw_beside_a_message_leaves_it_the_same_message(line: bytes):
    again = line % json.dumps(message(2, "Accept")).encode()
    found = answer(ours(jsonl(*happy("Accept"), again)))
    assert found["log"] == [out(3, "duplicate_message")]
    assert deal_model.check(jsonl(*happy("Accept"), again))[0] == found
