"""One deal by policies and a seed: its transcript, its final record, what it came to.

In each step C, A and K have their turns in this order; whoever has the turn speaks until it is silent. What A sees is
each message without the oracle's marks; the marks of a forged offer and its hold stand in the transcript alone, and
after its end the oracle says so (source §3.10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from troth.core.errors import Refused
from troth.deals.answer import final_bytes
from troth.deals.checker import NO_HELPERS, Helpers
from troth.deals.messages import seen_by_agent
from troth.deals.run import DEFAULT_CLOCKS, Clocks, Deal, Run
from troth.deals.writing import Scribe
from troth.lab import policies
from troth.lab.counterparties import Deceptive
from troth.lab.outcome import Outcome
from troth.lab.seeds import draw
from troth.lab.view import Policy, Say, Terms, View, view_bytes

MAX_SPEECHES: Final = 64
"""Most messages of one party in one turn: a policy that never falls silent is cut off there."""

BUDGET: Final = 256
"""Steps after which a run that is still open is closed as out of its budget (§3 invariant 4)."""

FORGERIES: Final = ("forged_hold", "forged_honesty", "doctored_transcript_ready")


class Setting(NamedTuple):
    """What one arm of an experiment plays: policies by their words, terms, and how often the oracle forges.

    ``forged`` names the kind of forgery; with probability ``forged_rate`` a deal of the arm is forged, and then C is
    ``deceptive(KIND)``, whatever ``c`` says. ``series`` deals in a row are played by the same A, which may learn.
    ``p`` is the proxy trustee's policy, of deals that have one.
    """

    c: str = "honest"
    a: str = "cooperative"
    k: str = "honest"
    terms: Terms = Terms()
    suite: str = ""
    arm: str = ""
    forged: str | None = None
    forged_rate: float = 1.0
    series: int = 1
    clocks: Clocks = DEFAULT_CLOCKS
    budget: int = BUDGET
    p: str = ""

    def offer_kind(self) -> str:
        """Return ``cash``, ``object``, ``both``, or ``nothing`` when neither is offered."""
        if self.terms.amount:
            return "both" if self.terms.object_options else "cash"
        return "object" if self.terms.object_options else "nothing"


class Played(NamedTuple):
    """One deal played: the row, the run that it was played in (others may have been before), and A's view of it."""

    outcome: Outcome
    run: Run
    scribe: Scribe
    offer_ids: tuple[str, ...]
    seen: list[tuple[int, Mapping[str, Any]]]
    acts: list[int]
    """Where in ``seen`` A's own messages stand."""
    before_end: int
    """How much of ``seen`` came before what closed the deal."""

    def transcript(self) -> bytes:
        """Return the transcript of all that its scribe wrote."""
        return self.scribe.transcript()

    def final(self) -> bytes:
        """Return the final record of all that its scribe wrote."""
        return final_bytes(self.run)

    def view(self) -> bytes:
        """Return what A saw, as canonical JSON Lines."""
        return view_bytes(self.seen)


def looks_the_same(one: Played, other: Played) -> bool:
    """Tell whether A saw the same bytes in both until its own first differing act or the terminal state (F-D′).

    Both are of transcripts of their own.
    """
    first, second = one.seen[: one.before_end], other.seen[: other.before_end]
    for at, (mine, theirs) in enumerate(zip(first, second, strict=False)):
        if view_bytes([mine]) != view_bytes([theirs]):
            # Whichever came first is where they part; in a step C speaks before A, and A before K.
            return min((_order(mine), at in one.acts), (_order(theirs), at in other.acts))[1]
    # What one run goes on with, the other has no room for: A acted where it did not, or the other had ended by then.
    shorter, longer = sorted((one, other), key=lambda played: played.before_end)
    at = shorter.before_end
    return at == longer.before_end or at in longer.acts or longer.seen[at][0] >= shorter.outcome.steps


def _order(entry: tuple[int, Mapping[str, Any]]) -> tuple[int, int]:
    return entry[0], "CAK".find(entry[1]["from"])


NO_SEATS: Final[Mapping[str, Policy]] = {}


class Game:
    """A setting made ready: its policies, to be played with any number of seeds.

    Raises:
        Refused: ``E_POLICY``; ``E_SETTING`` for numbers that fit no experiment.
    """

    def __init__(self, setting: Setting, helpers: Helpers = NO_HELPERS, seats: Mapping[str, Policy] = NO_SEATS) -> None:
        if setting.forged is not None and setting.forged not in FORGERIES:
            raise Refused(
                "E_SETTING", f"no forgery is called {setting.forged!r}", remedy=f"One of: {', '.join(FORGERIES)}."
            )
        if not 0 <= setting.forged_rate <= 1:
            raise Refused("E_SETTING", "the rate of forgeries is no probability", remedy="Give a number from 0 to 1.")
        if setting.series < 1 or setting.budget < 1:
            raise Refused("E_SETTING", "a series and a budget are 1 or more", remedy="Give whole numbers from 1.")
        self._c = policies.make("C", setting.c)
        if isinstance(self._c, Deceptive) and setting.forged is None:
            setting = setting._replace(forged=self._c.kind, forged_rate=1.0)
        self.setting = setting
        self._fake = policies.make("C", f"deceptive({setting.forged})") if setting.forged is not None else self._c
        self._k = policies.make("K", setting.k)
        self._k.helpers = helpers  # type: ignore[attr-defined]  # every checker has them
        self._a = policies.make("A", setting.a)
        self._c, self._k, self._a = seats.get("C", self._c), seats.get("K", self._k), seats.get("A", self._a)
        self._fake = seats.get("C", self._fake)
        self._renewed = "A" not in seats
        self.a_spec, self.c_spec, self.k_spec = self._a.spec, self._c.spec, self._k.spec
        self.kind = setting.offer_kind()

    def play(self, seed: int, index: int, scribe: Scribe | None = None, offer_id: str = "off_1") -> Played:
        """Play one deal.

        Args:
            seed: of the whole run, from 0.
            index: which deal of the arm; with ``series`` the deals of one series are to be played in their order,
                beginning at its first.
            scribe: goes on in this transcript, one step after its last; a new one is ended when the deal is.
            offer_id: the offer's name, unused in the transcript.
        """
        setting = self.setting
        if index % setting.series == 0 and self._a.lasting and self._renewed:
            self._a = policies.make("A", setting.a)
        table = _Table(self, seed, index, scribe, offer_id, forged=forged_one(setting, seed, index))
        table.play()
        return table.told()


def forged_one(setting: Setting, seed: int, index: int) -> bool:
    """Tell whether the oracle forges that deal."""
    return setting.forged is not None and draw(seed, setting.suite, index, "oracle", "forged") < setting.forged_rate


class _Table:
    """The parties around one deal."""

    def __init__(
        self, game: Game, seed: int, index: int, scribe: Scribe | None, offer_id: str, *, forged: bool
    ) -> None:
        setting = game.setting
        self.game, self.setting, self.seed, self.index, self.forged = game, setting, seed, index, forged
        self.own = scribe is None
        self.scribe = Scribe(setting.clocks) if scribe is None else scribe
        self.run = self.scribe.run
        self.start = self.step = 0 if scribe is None else self.run.now + 1
        self.logged = len(self.run.log)
        chance, books = (seed, setting.suite, index), self.run.escrow.held
        self.c = View("C", offer_id, setting.terms, chance, books)
        self.a = View("A", offer_id, setting.terms, chance, books)
        self.k = View("K", offer_id, setting.terms, chance, books)
        c = game._fake if forged else game._c
        self.turns: tuple[tuple[Policy, View], ...] = ((c, self.c), (game._a, self.a), (game._k, self.k))
        self.lasting = c.lasting or game._a.lasting or game._k.lasting
        self.deal: Deal | None = None
        self.offer_ids: list[str] = []
        self.acts: list[int] = []
        self.before_end: int | None = None
        self.revealed = self.genuine = self.disclosed = self.shown = False

    def play(self) -> None:
        """Go step by step until the deal is closed and nobody goes on, or the budget is spent."""
        last = self.start + self.setting.budget
        while True:
            if self.step > self.start:
                self.run.advance(self.step)
            spoke = self._round()
            deal = self.deal
            if deal is not None and deal.closed and not (spoke and self.lasting):
                break
            if self.step >= last:
                self._exhaust()
                break
            self.step += 1
        if self.forged and deal is not None and deal.closed:
            members = {"offer_id": self.offer_ids[0], "deceptive_alt": True, "to": []}
            self.scribe.say(self.step, "oracle", "OracleReveal", members)
            self.revealed = True
        if self.own:
            # Whoever left another deal open: time passes until its clock has run out too.
            due = [one.due for one in self.run.deals.values() if one.due is not None]
            self.scribe.end(max([self.step, *due]))

    def _round(self) -> bool:
        """Give each party its turn; tell whether anyone spoke."""
        spoke = False
        for policy, view in self.turns:
            view.step = self.step
            left = MAX_SPEECHES if policy.talkative else 1
            while left:
                left -= 1
                deal = self.deal
                if deal is not None:
                    view.state, view.since = deal.state, deal.steps[-1]
                said = policy.speak(view)
                if said is None:
                    break
                spoke = True
                self._say(view.who, said)
            deal = self.deal
            if deal is not None and deal.closed and not self.lasting:
                break
        return spoke

    def _say(self, who: str, said: Say) -> None:
        kind, members, _, reaches = said
        a = self.a
        if "offer_id" not in members:
            members = {"offer_id": a.offer_id, **members}
        if not reaches:
            # A message that only A is shown: it has no line, since it never came to the channel.
            a.seen.append((self.step, {"from": who, "type": kind, **members}))
            a.shown_hold = self.shown = True
            return
        if self.forged and kind in ("Offer", "EscrowHold"):
            members = {**members, "deceptive_alt": True, "deceptive_alt_kind": self.setting.forged}
        was_open = self.deal is None or not self.deal.closed
        message = self.scribe.say(self.step, who, kind, members)
        plain = seen_by_agent(message) if self.forged else message
        if who == "A":
            self.acts.append(len(a.seen))
        self.c.seen.append((self.step, message))
        a.seen.append((self.step, plain))
        if kind in ("Offer", "OfferSupersede"):
            self._offered(message["offer_id"], message, plain)
        elif kind == "Disclosure":
            self.disclosed, self.genuine = True, said.genuine
            self.c.disclosure = a.disclosure = self.k.disclosure = plain
            self.k.seen.append((self.step, plain))
        elif kind == "Verdict":
            self.c.verdict = a.verdict = self.k.verdict = plain
            self.k.seen.append((self.step, plain))
        if was_open and self.deal is not None and self.deal.closed:
            self.before_end = len(a.seen) - 1

    def _offered(self, offer_id: str, message: Mapping[str, Any], plain: Mapping[str, Any]) -> None:
        """Turn everyone to an offer that starts a deal of its own."""
        deal = self.run.deals.get(offer_id)
        if deal is None or deal is self.deal:
            return
        self.deal = deal
        self.offer_ids.append(offer_id)
        for view in (self.c, self.a, self.k):
            view.offer_id, view.offer = offer_id, plain
            view.disclosure = view.verdict = None
        self.c.offer = message

    def _exhaust(self) -> None:
        if self.own:
            self.run.exhaust()
            return
        raise Refused(
            "E_SETTING",
            "a deal among others in one transcript did not end within its budget of steps",
            remedy="Give shorter clocks, or play it alone.",
        )

    def told(self) -> Played:
        """Return what the deal came to."""
        setting = self.setting
        events: dict[str, int] = {}
        for event in self.run.log[self.logged :]:
            events[event.event] = events.get(event.event, 0) + 1
        if self.revealed:
            events["late_message"] -= 1
        notes = [name if count == 1 else f"{name}*{count}" for name, count in events.items() if count]
        if self.shown:
            notes.append("forged_hold_shown")
        facts = come_to([self.run.deals[name] for name in self.offer_ids])
        notes += facts.notes
        outcome = Outcome(
            setting.suite,
            setting.arm,
            self.seed,
            self.index,
            self.turns[0][0].spec,
            self.game.a_spec,
            self.game.k_spec,
            self.game.kind,
            not self.forged and not self.shown,
            facts.state,
            facts.accepted,
            self.disclosed,
            facts.result,
            self.genuine,
            facts.paid,
            facts.refunded,
            facts.amount if self.genuine and facts.paid == 0 else 0,
            facts.steps,
            ",".join(notes),
        )
        return Played(
            outcome,
            self.run,
            self.scribe,
            tuple(self.offer_ids),
            self.a.seen,
            self.acts,
            len(self.a.seen) if self.before_end is None else self.before_end,
        )


class Facts(NamedTuple):
    """What of a row the machine shows, whoever replays the transcript."""

    state: str
    accepted: bool
    result: str
    paid: int
    refunded: int
    steps: int
    amount: int
    notes: tuple[str, ...]


def is_accepted(deal: Deal) -> bool:
    """Tell whether A accepted the deal's offer, in either version of the protocol."""
    return len(deal.history) > 1 and deal.history[1] in ("AcceptedPendingHold", "AcceptedPendingTrust")


def come_to(deals: Sequence[Deal]) -> Facts:
    """Return what one game's deals came to: of several offers that of the first that A accepted, else of the last."""
    if not deals:
        return Facts("", accepted=False, result="", paid=0, refunded=0, steps=0, amount=0, notes=())
    deal = next((one for one in deals if is_accepted(one)), deals[-1]) if deals[1:] else deals[0]
    code = (deal.illegal.code,) if deal.illegal is not None else ()
    return Facts(
        deal.state.removeprefix("Closed:"),
        is_accepted(deal),
        "" if deal.verdict is None else deal.verdict.result,
        deal.paid,
        deal.refunded,
        deal.steps[-1] - deal.steps[0],
        0 if deal.offer is None else deal.offer.consideration.cash_sim.amount,
        code if deal.note is None else (*code, deal.note),
    )


CODES: Final[dict[str, str]] = {
    "E_SETTING": "The numbers of an experiment with deals do not fit together; the message says which.",
}
"""Refusals where deals are played."""


def play(setting: Setting, seed: int, index: int = 0) -> Played:
    """Play one deal in a transcript of its own."""
    return Game(setting).play(seed, index)
