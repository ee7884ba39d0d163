"""A deal played by people: only legal moves are offered, whatever is typed, and the transcript is like any other."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from deals import moves
from deals.moves import happy, jsonl
from troth.deals.answer import answer, final_bytes
from troth.deals.checker import Helpers
from troth.deals.machine import STATES
from troth.deals.run import replay
from troth.deals.transcript import entries, split_lines
from troth.lab.play import NO_UNDO, KeptScribe, Left, Move, Person, legal_moves, told
from troth.lab.playing import Game, Setting

UPTO = {
    "Proposed": [],
    "Offered": happy("Offer"),
    "AcceptedPendingHold": happy("Accept"),
    "Held": happy("EscrowHold"),
    "Adjudicating": happy("Disclosure"),
    "Settling": happy("Verdict"),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("role", ["C", "A", "K", "E"])
def test_a_move_is_offered_exactly_when_it_breaks_no_rule(state: str, role: str) -> None:
    offered = {move.kind: move.leads for move in legal_moves(None if state == "Proposed" else state, role)}
    for kind in moves.SPEAKER:
        members = {"offer_id": "off_9", "supersedes": "off_1"} if kind == "OfferSupersede" else {}
        if kind == "BreachNotice":
            members = {"party": "C", "mode": "withhold_payout_after_pass"}
        line = (0, moves.message(50, kind, role, **members))
        run = replay(entries(split_lines(jsonl(*UPTO[state], line))))
        legal = all(deal.illegal is None for deal in run.deals.values())
        assert (kind in offered) == legal, (kind, role)
        if legal and kind not in ("BreachNotice", "Verdict"):
            assert run.deals["off_1"].state in offered[kind]


def test_nothing_is_offered_when_a_deal_is_closed() -> None:
    assert legal_moves("Closed:settled", "C") == []
    assert legal_moves("Adjudicating", "K") == [
        Move("Verdict", ("Settling", "Closed:breached(A:fail)", "Closed:inconclusive"))
    ]


class Table:
    """People whose answers are given beforehand, and what they were told."""

    def __init__(self, answers: Iterator[str], roles: str, **setting: str) -> None:
        self.answers = answers
        self.heard: list[str] = []
        self.kept: list[bytes] = []
        people = {role: Person(role, self.ask, self.heard.append, Helpers()) for role in roles}
        self.game = Game(Setting(suite="play", budget=2000, **setting), Helpers(), people)
        self.scribe = KeptScribe(self.kept.append)
        self.left = False

    def ask(self, prompt: str) -> str:
        self.heard.append(prompt)
        try:
            return next(self.answers)
        except StopIteration:
            raise EOFError from None

    def play(self) -> str:
        try:
            self.game.play(0, 0, self.scribe)
        except Left:
            self.left = True
        self.scribe.end(self.scribe.run.now)
        assert b"".join(self.kept) == self.scribe.transcript()
        again = replay(entries(split_lines(self.scribe.transcript())))
        assert final_bytes(again) == final_bytes(self.scribe.run)
        assert all(deal.illegal is None for deal in again.deals.values())
        return "".join(deal["state"] for deal in answer(again)["deals"].values())


def test_two_people_and_a_third_settle_a_deal() -> None:
    words = [
        "Offer", "7", "write it down", "w",  # C
        "accept", "",  # A; K has nothing to say
        "EscrowHold", "",  # C
        "disc", "a run", "the hidden_goal", "", "",  # A
        "Verdict", "",  # K
        "settle",  # C
    ]  # fmt: skip
    table = Table(iter(words), "CAK")
    assert table.play() == "Closed:settled", table.heard
    assert table.scribe.run.escrow.balances() == {"C": -7, "A": 7, "E": 0}


def test_undo_is_not_possible_and_says_so() -> None:
    table = Table(iter(["accept", "undo", "u", "quit"]), "A")
    assert table.play() == "AcceptedPendingHold"
    assert table.left
    assert table.heard.count(NO_UNDO) == 2
    assert len(table.kept) == 3


def test_whoever_leaves_leaves_the_deal_as_it_stands() -> None:
    table = Table(iter([]), "A")
    assert (table.play(), table.left) == ("Offered", True)


def test_what_others_said_is_told_and_harmless() -> None:
    table = Table(iter(["Offer", "x", "9" * 20, "5", "\x1b[31mred\ud800", "w", "quit"]), "CA")
    assert table.play() == "Offered"
    heard = "\n".join(table.heard)
    assert "\x1b" not in heard
    assert "\\x1b[31mred?" in heard
    assert heard.count("a whole number from 0") == 2
    message = moves.message(1, "Disclosure", artifacts={"a\x1b": {"b": "\u202e"}}, claims=["x" * 9000])
    assert told(message).isprintable()
    assert len(told(message)) < 1000


def test_an_odd_word_is_no_move() -> None:
    table = Table(iter(["Settle", "0", "99", "-1", "B0", "\u0661", "re", "too dear"]), "A")
    assert table.play() == "Closed:rejected"
    assert sum("is no move here" in line for line in table.heard) == 6


WORDS = (
    "",
    "1",
    "2",
    "3",
    "wait",
    "accept",
    "offer",
    "hold",
    "x",
    "undo",
    "terms",
    "?",
    "hidden_goal",
    "4",
    "\x00",
    "\ud800",
)


@pytest.mark.parametrize("roles", ["A", "C", "CA", "CAK", "K"])
def test_whatever_is_typed_no_rule_is_broken(roles: str) -> None:
    ends = set()
    for seed in range(60):
        rng = random.Random(f"{roles}{seed}")
        table = Table((rng.choice(WORDS) for _ in range(80)), roles, c="honest", a="cooperative")
        ends.add(table.play())
    assert len(ends) > 2
