"""The invariants of §3 on whatever a run may bring: by hypothesis, rule by rule, and from a plain seeded generator."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from deals import moves
from deals.moves import ROLES, SPEAKER, message
from troth.core.errors import Defect
from troth.deals.answer import answer, final_bytes
from troth.deals.escrow import Escrow
from troth.deals.machine import is_closed
from troth.deals.messages import ORACLE_MEMBERS, seen_by_agent
from troth.deals.run import BUDGET_EXHAUSTED, Run, replay
from troth.deals.snapshots import canonical
from troth.deals.transcript import Entry, end_line, entries, message_line, read_entry, split_lines

IDS = ("off_1", "off_2", "off_3")


class Watched:
    """A run with its transcript, and what must hold after every line of it."""

    def __init__(self) -> None:
        self.run = Run()
        self.lines: list[bytes] = []
        self.ended: dict[str, tuple[str, int]] = {}
        self.locked: dict[str, int] = {}

    def take(self, line: bytes) -> None:
        self.lines.append(line)
        self.run.take(read_entry(line.rstrip(b"\n")))
        self.holds()

    def holds(self) -> None:
        run = self.run
        balances = run.escrow.balances()
        # 1. Points are conserved; E holds exactly what open deals locked; only settled deals paid, each once.
        assert sum(balances.values()) == 0
        held = [run.escrow.held(name) for name in run.deals]
        assert balances["E"] == sum(points for points in held if points is not None)
        assert balances["A"] == sum(deal.paid for deal in run.deals.values())
        for name, deal in run.deals.items():
            history = deal.history
            amount = deal.offer.consideration.cash_sim.amount if deal.offer is not None else 0
            was_held = "Held" in history
            if deal.state == "Closed:settled":
                assert history[-2] == "Settling"
                assert history[-3] == "Adjudicating"
                assert deal.verdict is not None
                assert deal.verdict.result == "pass"
                assert (deal.paid, deal.refunded) == (amount, 0)
            else:
                assert deal.paid == 0
                assert deal.refunded == (amount if was_held and deal.closed else 0)
            assert (run.escrow.held(name) is not None) == (was_held and not deal.closed)
            # 2. Held only by Accept and then a matching hold.
            if was_held:
                assert history[:3] == ["Offered", "AcceptedPendingHold", "Held"]
            # 3. Inconclusive is the end; nothing is visited twice.
            assert len(set(history)) == len(history)
            # 4. Terminal states absorb.
            if name in self.ended:
                assert self.ended[name] == (deal.state, len(history)), name
            if deal.closed:
                self.ended[name] = (deal.state, len(history))
                assert [is_closed(state) for state in history] == [False] * (len(history) - 1) + [True]
            assert deal.illegal is None or deal.closed

    def finish(self) -> None:
        """5. Replaying gives the same; 4. the budget ends what is open."""
        data = b"".join(self.lines)
        again = replay(entries(split_lines(data)))
        assert answer(again) == answer(self.run)
        assert final_bytes(again) == final_bytes(self.run)
        for cut in (len(self.lines) // 2, len(self.lines) - 1):
            prefix = replay(entries(self.lines[: max(cut, 0)]))
            for name, deal in prefix.deals.items():
                assert self.run.deals[name].history[: len(deal.history)] == deal.history
        opened = [name for name, deal in again.deals.items() if not deal.closed]
        again.exhaust()
        for name, deal in again.deals.items():
            assert deal.closed
            assert (deal.note == BUDGET_EXHAUSTED) == (name in opened)
            assert name not in opened or deal.state == "Closed:protocol_error"
        assert again.escrow.balances()["E"] == 0
        assert sum(again.escrow.balances().values()) == 0
        self.view()

    def view(self) -> None:
        """6. What A sees holds no oracle member, and is the same bytes as without the marks."""
        for line in self.lines:
            value = read_entry(line.rstrip(b"\n")).value
            if isinstance(value, dict) and isinstance(value.get("msg"), dict):
                seen = seen_by_agent(value["msg"])
                assert not set(seen) & set(ORACLE_MEMBERS)
                marked = {**seen, "deceptive_alt": True, "deceptive_alt_kind": "forged_hold"}
                assert canonical(seen_by_agent(marked)) == canonical(seen)


class DealMachine(RuleBasedStateMachine):
    """Anything that anyone may say, with what goes well said often enough to reach every state."""

    @initialize()
    def start(self) -> None:
        self.watched = Watched()
        self.step = 0
        self.number = 0

    def say(self, kind: str, sender: str, offer_id: str, **members: Any) -> None:
        self.number += 1
        made = message(self.number, kind, sender, offer_id=offer_id, **members)
        self.watched.take(message_line(self.step, made))

    @rule(offer_id=st.sampled_from(IDS))
    def go_on(self, offer_id: str) -> None:
        deal = self.watched.run.deals.get(offer_id)
        kind = "Offer" if deal is None else {
            "Offered": "Accept", "AcceptedPendingHold": "EscrowHold", "Held": "Disclosure", "Adjudicating": "Verdict",
            "Settling": "Settle",
        }.get(deal.state, "Accept")  # fmt: skip
        members = {}
        if kind == "EscrowHold" and deal is not None and deal.offer is not None:
            members["amount"] = deal.offer.consideration.cash_sim.amount
        self.say(kind, SPEAKER[kind], offer_id, **members)

    @rule(kind=st.sampled_from(sorted(SPEAKER)), sender=st.sampled_from(ROLES), offer_id=st.sampled_from(IDS))
    def anyone_says(self, kind: str, sender: str, offer_id: str) -> None:
        members = {"supersedes": IDS[0]} if kind == "OfferSupersede" else {}
        self.say(kind, sender, offer_id, **members)

    @rule(offer_id=st.sampled_from(IDS), result=st.sampled_from(("fail", "inconclusive")))
    def judge(self, offer_id: str, result: str) -> None:
        self.say("Verdict", "K", offer_id, result=result)

    @rule(offer_id=st.sampled_from(IDS), amount=st.integers(0, 12))
    def hold(self, offer_id: str, amount: int) -> None:
        self.say("EscrowHold", "C", offer_id, amount=amount)

    @rule(offer_id=st.sampled_from(IDS), amount=st.integers(0, 12), kind=st.sampled_from(("Offer", "OfferSupersede")))
    def offer(self, offer_id: str, amount: int, kind: str) -> None:
        members = moves.body(kind, offer_id)
        members["consideration"]["cash_sim"]["amount"] = amount
        if kind == "OfferSupersede":
            members["supersedes"] = IDS[0]
        self.say(kind, "C", **members)

    @rule(steps=st.integers(1, 4))
    def time_passes(self, steps: int) -> None:
        self.step += steps

    @precondition(lambda self: self.watched.lines)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        line = read_entry(data.draw(st.sampled_from(self.watched.lines)).rstrip(b"\n")).value
        if isinstance(line, dict) and "msg" in line:
            self.watched.take(json.dumps({"step": self.step, "msg": line["msg"]}).encode() + b"\n")

    @rule(seed=st.integers(0, 2**32))
    def bent(self, seed: int) -> None:
        rng = random.Random(seed)
        kind = rng.choice(sorted(SPEAKER))
        self.number += 1
        made = message(self.number, kind, offer_id=rng.choice(IDS))
        self.watched.take(moves.mutated(rng, {"step": self.step, "msg": made}) + b"\n")
        # A bent step may have moved the clock; go on from there.
        self.step = max(self.step, self.watched.run.now)

    @invariant()
    def all_hold(self) -> None:
        if hasattr(self, "watched"):
            self.watched.holds()

    def teardown(self) -> None:
        if hasattr(self, "watched"):
            self.watched.finish()


# A bent step may be as large as the largest; time then ends there.
QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much]


class TestDeals(DealMachine.TestCase):  # type: ignore[misc]  # hypothesis types it as Any
    settings = settings(max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=QUIET)


@pytest.mark.slow
class TestManyDeals(DealMachine.TestCase):  # type: ignore[misc]  # hypothesis types it as Any
    settings = settings(max_examples=2000, stateful_step_count=30, deadline=None, suppress_health_check=QUIET)


def seeded(seeds: range) -> set[str]:
    ends: set[str] = set()
    for seed in seeds:
        watched = Watched()
        for line in moves.random_transcript(seed, length=10, mutations=0.05).splitlines(keepends=True):
            watched.take(line)
        if seed % 20 == 0:
            watched.finish()
        ends.update(deal.state for deal in watched.run.deals.values())
    return ends


ENDS = {
    "Closed:settled", "Closed:rejected", "Closed:expired", "Closed:refused", "Closed:inconclusive",
    "Closed:superseded", "Closed:protocol_error", "Closed:breached(A:ghost)", "Closed:breached(A:fail)",
    "Closed:breached(C:withhold_payout_after_pass)", "Closed:breached(C:hold_without_accept)",
    "Closed:breached(C:hold_mismatch)",
}  # fmt: skip


def test_seeded_runs():
    assert seeded(range(3000)) >= ENDS


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_hundred_thousand_seeded_runs(part: int):
    assert seeded(range(1_000_000 + part * 10_000, 1_000_000 + (part + 1) * 10_000)) >= ENDS


def test_a_tampered_transcript_is_found():
    """Whatever of a finished deal's messages is changed, the replay says something else or the bytes' record does."""
    lines = [message_line(step, made) for step, made in moves.happy()] + [end_line(9)]
    wanted = final_bytes(replay(entries(lines)))
    rng = random.Random(7)
    silent = 0
    for _ in range(400):
        at = rng.randrange(len(lines) - 1)
        bent = moves.mutated(rng, read_entry(lines[at][:-1]).value) + b"\n"
        if bent == lines[at]:
            continue
        found = final_bytes(replay(entries([*lines[:at], bent, *lines[at + 1 :]])))
        silent += found == wanted
    # Prose that decides nothing (notes, a reason, what was disclosed) may differ; all else must show.
    assert silent < 400 * 0.35


@pytest.mark.parametrize("change", ["drop", "swap", "repeat as new", "late"])
@pytest.mark.parametrize("at", range(6))
def test_lines_left_out_or_moved_are_found(change: str, at: int):
    lines: list[tuple[int, dict[str, Any]]] = [(step, dict(made)) for step, made in moves.happy()]
    if change == "drop":
        if at == 0:
            lines = lines[1:]
        else:
            del lines[at]
    elif change == "swap":
        if at == 5:
            return
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
    elif change == "repeat as new":
        lines.insert(at + 1, (0, {**lines[at][1], "msg_id": "msg_99"}))
    else:
        lines = [(step if index < at else 9, made) for index, (step, made) in enumerate(lines)]
        if at == 0:
            return
    run = Run()
    for step, made in lines:
        run.take(Entry({"step": step, "msg": made}))
    deal = run.deals["off_1"]
    assert deal.state != "Closed:settled" or run.log


def test_books_move_each_hold_once():
    books = Escrow()
    books.lock("off_1", 10)
    books.lock("off_2", 0)
    with pytest.raises(Defect):
        books.lock("off_1", 10)
    assert (books.pay("off_1"), books.refund("off_1"), books.refund("off_2")) == (10, 0, 0)
    with pytest.raises(Defect):
        books.pay("off_1")
    assert books.balances() == {"C": -10, "A": 10, "E": 0}


def test_a_spent_budget_closes_what_is_open():
    run = replay(entries(split_lines(moves.jsonl(*moves.happy("EscrowHold"), *moves.happy(offer_id="off_2", start=9)))))
    run.exhaust()
    assert (run.deals["off_1"].state, run.deals["off_1"].note) == ("Closed:protocol_error", BUDGET_EXHAUSTED)
    assert (run.deals["off_2"].state, run.deals["off_2"].note) == ("Closed:settled", None)
    assert run.escrow.balances() == {"C": -10, "A": 10, "E": 0}


def test_what_the_agent_sees():
    offer = message(1, "Offer", deceptive_alt=True, deceptive_alt_kind="forged_hold")
    assert canonical(seen_by_agent(offer)) == canonical(message(1, "Offer"))
    hold = message(3, "EscrowHold", deceptive_alt=False)
    assert canonical(seen_by_agent(hold)) == canonical(message(3, "EscrowHold"))


def test_the_same_bytes_in_every_process():
    """Whatever order the interpreter hashes texts in."""
    program = (
        "import sys; from deals import moves; from troth.deals.answer import final_bytes; "
        "from troth.deals.run import replay; from troth.deals.transcript import entries, split_lines; "
        "data = moves.random_transcript(3, 40, 0.05); "
        "sys.stdout.buffer.write(data + final_bytes(replay(entries(split_lines(data)))))"
    )
    said = set()
    for seed in ("0", "1"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        said.add(subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True).stdout)
    assert len(said) == 1
    assert len(said.pop()) > 1000
