"""0.3-proxy: its table exhausted, its reader strict, points conserved whatever P does, and nothing of it in v0.2."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from deals import moves
from deals.moves import jsonl
from troth.core.errors import Refused
from troth.deals import machine, messages, proxy, proxy_messages
from troth.deals.answer import answer, exit_status, final_bytes, final_record
from troth.deals.machine import is_closed
from troth.deals.proxy_run import ProxyRun
from troth.deals.run import Run, replay
from troth.deals.show import draw, lanes, lanes_of, mermaid, page
from troth.deals.transcript import entries, split_lines
from troth.deals.writing import Scribe
from troth.lab.trustees import TRUSTEES, deal_with, proxy_offer

ROLES = "CAKEP"
ID = "off_1"
OWN = {
    "Undertake": {},
    "Decline": {"reason": "no"},
    "Deliver": {"beneficiary": "A", "amount": 10, "asset": "sim_points"},
}
SPEAKER = {**moves.SPEAKER, "Undertake": "P", "Decline": "P", "Deliver": "P"}
TO = {
    "Offered": ["Offer"],
    "AcceptedPendingTrust": ["Offer", "Accept"],
    "AcceptedPendingHold": ["Offer", "Accept", "Undertake"],
    "Held": ["Offer", "Accept", "Undertake", "EscrowHold"],
    "Adjudicating": ["Offer", "Accept", "Undertake", "EscrowHold", "Disclosure"],
    "Settling": ["Offer", "Accept", "Undertake", "EscrowHold", "Disclosure", "Verdict"],
    "Entrusted": ["Offer", "Accept", "Undertake", "EscrowHold", "Disclosure", "Verdict", "Settle"],
    "Proposed": [],
}  # fmt: skip
HAPPY = (*TO["Entrusted"], "Deliver")


def body(kind: str, **members: Any) -> dict[str, Any]:
    if kind in OWN:
        own: dict[str, Any] = {"offer_id": ID, **OWN[kind]}
    elif kind in ("Offer", "OfferSupersede"):
        own = proxy_offer(ID, supersedes=None if kind == "Offer" else "off_0")
    else:
        own = moves.body(kind)
    return {**own, **members}


def message(number: int, kind: str, sender: str | None = None, **members: Any) -> dict[str, Any]:
    envelope = {"msg_id": f"msg_{number}", "ts": "2026-01-01T00:00:00Z", "from": sender or SPEAKER[kind], "to": "A"}
    return {**envelope, "type": kind, **body(kind, **members)}


def ran(*lines: Any, made: type[Run] = ProxyRun) -> Run:
    return replay(entries(split_lines(jsonl(*lines))), run=made())


def led_to(state: str, offer_id: str = ID) -> list[tuple[int, dict[str, Any]]]:
    return [
        (0, message(at, kind, offer_id=offer_id, **({"result": "pass"} if kind == "Verdict" else {})))
        for at, kind in enumerate(TO[state], 1)
    ]


COLUMNS: dict[str, tuple[str, dict[str, Any]]] = {
    "Offer": ("Offer", {}),
    "Offer:other_bytes": ("Offer", {"expires_steps": 9}),
    "superseded": ("OfferSupersede", {"offer_id": "off_new", "supersedes": ID}),
    "Accept": ("Accept", {}),
    "Reject": ("Reject", {}),
    "Undertake": ("Undertake", {}),
    "Decline": ("Decline", {}),
    "EscrowHold": ("EscrowHold", {}),
    "EscrowHold:other_amount": ("EscrowHold", {"amount": 9}),
    "Refuse": ("Refuse", {}),
    "Disclosure": ("Disclosure", {}),
    "Verdict:pass": ("Verdict", {"result": "pass"}),
    "Verdict:fail": ("Verdict", {"result": "fail"}),
    "Verdict:inconclusive": ("Verdict", {"result": "inconclusive"}),
    "Settle": ("Settle", {}),
    "Deliver": ("Deliver", {}),
    "Deliver:other_amount": ("Deliver", {"amount": 9}),
    "Deliver:to_C": ("Deliver", {"beneficiary": "C"}),
    "Deliver:to_other": ("Deliver", {"beneficiary": "somebody"}),
    "BreachNotice": ("BreachNotice", {"party": "P", "mode": "withholds"}),
}

NOT_REACHED = {
    ("Proposed", "Offer:other_bytes"): "there is no other yet: the first offer under an id is that offer",
    ("Proposed", "EscrowHold:other_amount"): "without an offer no amount is another: it is an unknown offer's hold",
    ("Proposed", "Deliver:other_amount"): "nothing is entrusted, so no amount is another",
    **{
        (state, "Deliver:other_amount"): "nothing is entrusted, so no amount is another"
        for state in TO
        if state != "Entrusted"
    },
}
"""Cells of the table that no message reaches, each with its reason."""


def test_every_triple_is_a_cell_of_the_table() -> None:
    reached = set()
    for state in proxy.STATES:
        for column, (kind, members) in COLUMNS.items():
            for sender in ROLES:
                run = ran(*led_to(state), (0, message(50, kind, sender, **members)))
                allowed = sender in proxy.SPEAKERS[kind]
                cell = proxy.TABLE[state][column]
                if not allowed:
                    named = run.deals["off_new" if column == "superseded" else ID]
                    assert (named.state, named.illegal and named.illegal.code) == (machine.PROTOCOL_ERROR, "sender")
                    continue
                if (state, column) in NOT_REACHED:
                    continue
                reached.add((state, column))
                deal = run.deals[ID]
                wanted = "Closed:breached(P:withholds)" if cell.to == machine.BREACHED else cell.to
                assert (deal.state, deal.illegal and deal.illegal.code) == (wanted, cell.code), (state, column, sender)
                assert sum(run.escrow.balances().values()) == 0
    assert reached | set(NOT_REACHED) == {(state, column) for state in proxy.STATES for column in proxy.COLUMNS}
    assert reached & set(NOT_REACHED) == set()


def test_every_open_state_has_a_clock_and_no_dead_end() -> None:
    assert set(proxy.TIMERS) == set(proxy.STATES) - {"Proposed"}
    for state, timer in proxy.TIMERS.items():
        run = ran(*led_to(state), {"step": 99, "end": True})
        assert run.deals[ID].state == timer.to
    leads = {cell.to for cells in proxy.TABLE.values() for cell in cells.values()}
    assert {to for to in leads if not is_closed(to)} == set(proxy.STATES) - {"Proposed"}


def test_what_v02_has_is_the_same_here() -> None:
    """But for the steps through P, both tables send every message of v0.2 to the same place."""
    moved = {("Offered", "Accept"), ("Settling", "Settle")}
    for state in machine.STATES:
        for column in machine.COLUMNS:
            if (state, column) not in moved:
                assert proxy.TABLE[state][column] == machine.TABLE[state][column]
    assert {state: timer for state, timer in proxy.TIMERS.items() if state in machine.TIMERS} == machine.TIMERS


ENDS = {
    "honest": ("Closed:settled", {"C": -10, "A": 10, "E": 0, "P": 0, "X": 0}, 0),
    "declines": ("Closed:declined", {"C": 0, "A": 0, "E": 0, "P": 0, "X": 0}, 3),
    "withholds": ("Closed:breached(P:withholds)", {"C": -10, "A": 0, "E": 0, "P": 10, "X": 0}, 1),
    "short": ("Closed:breached(P:withholds)", {"C": -10, "A": 0, "E": 0, "P": 10, "X": 0}, 1),
    "pays_another": ("Closed:breached(P:pays_another)", {"C": -10, "A": 0, "E": 0, "P": 0, "X": 10}, 1),
    "colludes": ("Closed:breached(P:colludes)", {"C": 0, "A": 0, "E": 0, "P": 0, "X": 0}, 1),
}


@pytest.mark.parametrize("name", TRUSTEES)
def test_each_betrayal_shows_and_its_points_are_accounted_for(name: str) -> None:
    scribe = deal_with(name)
    state, balances, status = ENDS[name]
    run = replay(entries(split_lines(scribe.transcript())), run=ProxyRun())
    assert run.deals[ID].state == state
    assert run.escrow.balances() == balances
    assert exit_status(run) == status
    assert run.deals[ID].paid == balances["A"]
    assert final_record(run)["protocol"] == "0.3-proxy"
    assert final_bytes(run) == final_bytes(scribe.run)


def test_of_nothing_nothing_is_delivered() -> None:
    run = deal_with("honest", amount=0).run
    assert run.deals[ID].state == "Closed:settled"
    assert set(run.escrow.balances().values()) == {0}


def test_an_accusation_while_the_points_are_with_p_moves_none() -> None:
    run = ran(*led_to("Entrusted"), (0, message(50, "BreachNotice", "A", party="P", mode="colludes")))
    assert run.deals[ID].state == "Closed:breached(P:colludes)"
    assert [one.event for one in run.log] == ["unsupported_breach_notice"]
    assert run.escrow.balances() == {"C": -10, "A": 0, "E": 0, "P": 10, "X": 0}
    honest = ran(*led_to("Entrusted"), (0, message(50, "Deliver")))
    assert honest.escrow.balances()["A"] == 10


def test_notices_about_p() -> None:
    unlisted = ran(*led_to("Held"), (0, message(50, "BreachNotice", "C", party="P", mode="unheard")))
    assert unlisted.deals[ID].illegal is not None
    assert unlisted.deals[ID].illegal.code == "malformed"
    late = [*led_to("Entrusted"), (0, message(50, "Deliver", beneficiary="C"))]
    told = ran(*late, (0, message(51, "BreachNotice", "A", party="P", mode="colludes")))
    assert [one.event for one in told.log] == ["breach_confirmed"]
    other = ran(*late, (0, message(51, "BreachNotice", "A", party="P", mode="withholds")))
    assert [one.event for one in other.log] == ["late_message"]
    against_itself = ran(*led_to("Held"), (0, message(50, "BreachNotice", "A", party="A", mode="no_disclosure")))
    assert against_itself.deals[ID].illegal is not None
    assert against_itself.deals[ID].illegal.code == "sender"


# Absent from v0.2 ------------------------------------------------------------------------------------------------


def test_v02_knows_nothing_of_it() -> None:
    assert set(messages.TYPES) == set(machine.SPEAKERS) == set(proxy_messages.TYPES) - set(OWN)
    assert all("P" not in roles for roles in machine.SPEAKERS.values())
    assert not {"Undertake", "Decline", "Deliver"} & {column.partition(":")[0] for column in machine.COLUMNS}


@pytest.mark.parametrize("name", TRUSTEES)
def test_a_v02_run_refuses_it(name: str) -> None:
    run = replay(entries(split_lines(deal_with(name).transcript())))
    deal = run.deals[ID]
    assert (deal.state, deal.illegal and deal.illegal.code) == (machine.PROTOCOL_ERROR, "malformed")
    assert run.escrow.balances() == {"C": 0, "A": 0, "E": 0}


@pytest.mark.parametrize("kind", OWN)
def test_a_v02_run_refuses_ps_messages_in_its_own_deals(kind: str) -> None:
    run = ran(*moves.happy("Verdict"), (0, message(50, kind)), made=Run)
    assert run.deals[ID].illegal is not None
    assert run.deals[ID].illegal.code == "malformed"
    for sender_to in ({"from": "P"}, {"to": "P"}, {"to": ["A", "P"]}):
        told = ran(*moves.happy("Offer"), (0, moves.message(50, "Accept") | sender_to), made=Run)
        assert told.deals[ID].illegal is not None
        assert told.deals[ID].illegal.code == "malformed"


def test_a_proxy_run_refuses_v02s_offers() -> None:
    run = ran(*moves.happy())
    assert run.deals[ID].illegal is not None
    assert run.deals[ID].illegal.code == "malformed"


# The reader ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SPEAKER)
def test_every_member_is_required_and_no_other_allowed(kind: str) -> None:
    good = message(1, kind)
    proxy_messages.read_message(good)
    optional = {"Reject": {"reason"}, "Settle": {"object_options"}}.get(kind, set())
    for name in good:
        if name in optional:
            continue
        with pytest.raises(messages.Malformed):
            proxy_messages.read_message({key: value for key, value in good.items() if key != name})
    with pytest.raises(messages.Malformed):
        proxy_messages.read_message({**good, "x": 1})
    for to in ("P", ["A", "P"], [], "A"):
        proxy_messages.read_message({**good, "to": to})
    for wrong in ({"to": "Q"}, {"to": ["P", 1]}, {"from": "Q"}, {"from": None}, {"ts": "now"}):
        with pytest.raises(messages.Malformed):
            proxy_messages.read_message({**good, **wrong})
    assert proxy_messages.read_message({**good, "from": "P"}).sender == "P"


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("Offer", {"protocol": "0.2"}),
        ("Offer", {"protocol": "0.3"}),
        ("Offer", {"trust": {"trustee": "t"}}),
        ("Offer", {"trust": {"trustee": "t", "deliver_steps": -1}}),
        ("Offer", {"trust": {"trustee": "t", "deliver_steps": 1, "x": 1}}),
        ("Offer", {"breach_P": "withholds"}),
        ("Deliver", {"amount": -1}),
        ("Deliver", {"amount": 1.0}),
        ("Deliver", {"amount": True}),
        ("Deliver", {"amount": 2**53}),
        ("Deliver", {"asset": "gold"}),
        ("Deliver", {"beneficiary": ""}),
        ("BreachNotice", {"party": "K"}),
        ("Accept", {"type": ["Accept"]}),
    ],
)
def test_bent_members_are_refused(kind: str, members: dict[str, Any]) -> None:
    with pytest.raises(messages.Malformed):
        proxy_messages.read_message({**message(1, kind), **members})


@pytest.mark.parametrize("value", [None, 1, "Offer", [], {}, {"type": None}, {"type": "Undertaken"}])
def test_what_is_no_message_at_all(value: Any) -> None:
    with pytest.raises(messages.Malformed):
        proxy_messages.read_message(value)


# Invariants ------------------------------------------------------------------------------------------------------


def random_lines(rng: random.Random, length: int) -> Iterator[dict[str, Any]]:
    step, place = 0, dict.fromkeys(("off_1", "off_2"), 0)
    for number in range(length):
        step += rng.choices((0, 1, 2, 6), (24, 6, 1, 1))[0]
        offer_id = rng.choice(tuple(place))
        if rng.random() < 0.93 and place[offer_id] < len(HAPPY):
            kind = HAPPY[place[offer_id]]
            place[offer_id] += 1
        else:
            kind = rng.choice(tuple(SPEAKER))
        sender = SPEAKER[kind] if rng.random() < 0.98 else rng.choice(ROLES)
        made = message(number, kind, sender, offer_id=offer_id)
        if kind == "Offer":
            made["trust"]["deliver_steps"] = rng.choice((3, 3, 9, 0))
        if kind == "OfferSupersede":
            made["supersedes"] = rng.choice(("off_1", "off_2", "off_0"))
        if kind == "Verdict":
            made["result"] = rng.choice(("pass", "pass", "pass", "fail", "inconclusive"))
        if kind == "Deliver":
            made["beneficiary"] = rng.choice(("A", "A", "C", "a friend"))
            made["amount"] = rng.choice((10, 10, 10, 9, 11, 0))
        if kind == "EscrowHold" and rng.random() < 0.1:
            made["amount"] = 9
        if kind == "BreachNotice":
            made["party"] = rng.choice("CAP")
            made["mode"] = rng.choice(("fake_disclosure", "withhold_payout_after_pass", "withholds", "colludes"))
            made["from"] = rng.choice("CCAAPK")
        yield {"step": step, "msg": made}
    yield {"step": step + rng.choice((0, 1, 30)), "end": True}


def check_invariants(seed: int) -> list[str]:
    """Run one random transcript, holding every invariant at every line; return how its deals ended."""
    lines = list(random_lines(random.Random(seed), 20))
    run = ProxyRun()
    ended: dict[str, str] = {}
    for entry in entries(split_lines(jsonl(*lines))):
        before = dict(run.escrow.balances())
        run.take(entry)
        balances = run.escrow.balances()
        assert sum(balances.values()) == 0
        assert balances["A"] >= before["A"]
        assert min(balances["E"], balances["P"], balances["X"]) >= 0
        assert balances["E"] == sum(run.escrow.held(name) or 0 for name in run.deals)
        for name, deal in run.deals.items():
            assert ended.get(name, deal.state) == deal.state
            if deal.closed:
                ended[name] = deal.state
                assert run.escrow.held(name) is None
            if "Held" in deal.history:
                at = deal.history.index("Held")
                assert deal.history[:at] == ["Offered", "AcceptedPendingTrust", "AcceptedPendingHold"]
            if "Entrusted" in deal.history:
                assert deal.verdict is not None
                assert deal.verdict.result == "pass"
            else:
                assert run.escrow.entrusted(name) is None
            assert (deal.paid > 0) == (deal.state == "Closed:settled" and deal.paid == 10)
    run.exhaust()
    assert all(deal.closed for deal in run.deals.values())
    assert sum(run.escrow.balances().values()) == 0
    if seed % 8 == 0:
        again = replay(entries(split_lines(jsonl(*lines))), run=ProxyRun())
        again.exhaust()
        assert final_bytes(again) == final_bytes(run)
    return [deal.state for deal in run.deals.values()]


def test_invariants_over_random_transcripts() -> None:
    ends = {state for seed in range(600) for state in check_invariants(seed)}
    named = {cell.to for cells in proxy.MOVES.values() for cell in cells.values() if is_closed(cell.to)}
    assert named | {timer.to for timer in proxy.TIMERS.values()} <= ends


@pytest.mark.slow
def test_invariants_over_many_random_transcripts() -> None:
    assert sum(len(check_invariants(10_000 + seed)) for seed in range(30_000)) > 30_000


def test_bent_lines_are_refused_and_never_crash() -> None:
    """Whatever is changed in a line, points are conserved and the run is replayed the same."""
    for seed in range(150):
        rng = random.Random(seed)
        lines = list(random_lines(rng, 20))
        data = b"".join(moves.mutated(rng, line) + b"\n" if rng.random() < 0.3 else jsonl(line) for line in lines)
        try:
            read = list(entries(split_lines(data)))
        except Refused:
            continue
        run = ProxyRun()
        for entry in read:
            run.take(entry)
            assert sum(run.escrow.balances().values()) == 0
        assert final_bytes(replay(iter(read), run=ProxyRun())) == final_bytes(run)


# Drawing ---------------------------------------------------------------------------------------------------------


def test_the_machine_is_drawn_whole() -> None:
    text = proxy.mermaid()
    for cells in proxy.MOVES.values():
        for column, cell in cells.items():
            assert column.replace(":", " ") in text
            assert f'"{cell.to}"' in text or f"--> {cell.to}" in text
    assert "deliver_steps after the settlement" in text


def test_a_transcript_is_drawn_with_p_in_a_lane_of_its_own() -> None:
    steps, run = draw(entries(split_lines(deal_with("pays_another").transcript())), made=ProxyRun)
    roles = lanes_of(run)
    assert roles == ("C", "A", "K", "E", "P")
    told = "\n".join(lanes(steps, roles=roles))
    assert "P trustee" in told
    assert "Deliver off_1 10 points to a friend" in told
    assert "participant P as P trustee" in mermaid(steps, roles)
    assert "<th>P trustee</th>" in page(steps, run)


def test_a_v02_drawing_has_no_lane_for_p() -> None:
    steps, run = draw(entries(split_lines(jsonl(*moves.happy()))))
    assert lanes_of(run) == ("C", "A", "K", "E")
    assert "trustee" not in "\n".join(lanes(steps, roles=lanes_of(run))) + mermaid(steps) + page(steps, run)


def test_the_answer_has_the_same_shape() -> None:
    told = answer(deal_with("honest").run)
    assert list(told) == ["deals", "log", "balances"]
    assert told["deals"][ID]["history"] == [*list(proxy.STATES)[1:], "Closed:settled"]
    assert json.loads(final_bytes(deal_with("honest").run))["protocol"] == "0.3-proxy"
    assert Scribe().run.protocol == "0.2"
