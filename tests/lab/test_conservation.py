"""Points are conserved over random deals: policies, terms, noise and forgeries drawn anew for every hundred (§3, 1)."""

from __future__ import annotations

import random

import pytest

from troth.deals.escrow import Escrow
from troth.deals.writing import Scribe
from troth.lab.playing import FORGERIES, Game, Setting
from troth.lab.suites.consideration import OBJECTS
from troth.lab.view import Terms

COUNTERPARTIES = (
    "honest", "withholding", "accusing", "mutating(Offered)", "mutating(Held)", "mutating(Settling)", "superseding",
    "holds_early", "holds_other(-1)", "holds_other(1)", "no_hold", "forges_hold", "poisoning(2,2)",
)  # fmt: skip
AGENTS = (
    "cooperative", "vigilant", "protesting", "rejecting", "ignoring", "ghosting", "refusing", "failing", "stuffing",
    "mixed", "rational(belief=0.6,reserve=0,reserve_to=20)", "learning(reserve=0,reserve_to=9)", "suspicious(3)",
)  # fmt: skip
CHECKERS = (
    "honest", "noisy(0.3,0.2)", "inconclusive(0.3)", "colludes_with(C)", "colludes_with(A)", "stalling", "insisting",
)  # fmt: skip
EACH = 100


def drawn(chance: random.Random) -> Setting:
    terms = Terms(
        # below 1 there is nothing less to hold
        chance.choice((1, 2, 10, 999, 2**40, 2**53 - 2)),
        tuple(OBJECTS) if chance.random() < 0.3 else (),
        None,
        chance.randrange(2, 9),
        chance.randrange(2, 9),
    )
    forged = chance.choice((None, *FORGERIES))
    return Setting(
        chance.choice(COUNTERPARTIES), chance.choice(AGENTS), chance.choice(CHECKERS), terms, "random", "arm",
        forged, chance.random(), series=chance.choice((1, 5)),
    )  # fmt: skip


def conserved(first: int, deals: int) -> set[str]:
    """Play so many deals and return how they ended."""
    ends: set[str] = set()
    for block in range(first, first + deals // EACH):
        game, scribe = Game(drawn(random.Random(block))), Scribe()
        run = scribe.run
        paid = 0
        for index in range(EACH):
            played = game.play(block, index, scribe, f"off_{index}")
            for name in played.offer_ids:
                deal = run.deals[name]
                held = deal.offer.consideration.cash_sim.amount if deal.offer and "Held" in deal.history else 0
                assert deal.closed
                assert (deal.paid, deal.refunded) in ((held, 0), (0, held)), (block, index)
                assert deal.paid == 0 or deal.state == "Closed:settled", (block, index)
                paid += deal.paid
                ends.add(deal.state)
            assert run.escrow.balances() == {"C": -paid, "A": paid, "E": 0}, (block, index)
    return ends


@pytest.mark.parametrize("part", range(4))
def test_points_are_conserved_over_a_hundred_thousand_random_deals(part: int) -> None:
    ends = conserved(250 * part, 25_000)
    assert {"Closed:settled", "Closed:rejected", "Closed:expired", "Closed:refused", "Closed:inconclusive"} <= ends
    assert {"Closed:superseded", "Closed:protocol_error", "Closed:breached(A:fail)"} <= ends


def test_a_book_that_loses_a_point_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def loses_one(self: Escrow, offer_id: str) -> int:
        amount = self._take(offer_id)
        self.c += amount - 1
        return amount

    monkeypatch.setattr(Escrow, "refund", lambda self, name: loses_one(self, name) if name in self._held else 0)
    with pytest.raises(AssertionError):
        conserved(0, 500)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_points_are_conserved_over_a_million_random_deals(part: int) -> None:
    assert "Closed:settled" in conserved(1000 * (part + 1), 100_000)
