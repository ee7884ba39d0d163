"""F8: what a proxy trustee does with what it is entrusted with, and the deals of 0.3-proxy around it (§5).

Ours, not the source's. C, A and K are honest here, so that whatever goes wrong is P's doing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from troth.core.errors import Refused
from troth.deals.checker import judge
from troth.deals.proxy import PROTOCOL
from troth.deals.proxy_run import ProxyRun
from troth.deals.writing import Scribe, offer_body
from troth.lab import policies
from troth.lab.outcome import Outcome
from troth.lab.playing import Played, Setting, come_to
from troth.lab.seeds import draw
from troth.lab.view import View

OFFER_ID: Final = "off_1"

TRUSTEES: Final[Mapping[str, str]] = {
    "honest": "undertakes the trust and delivers to the agent",
    "declines": "does not take it on",
    "withholds": "never delivers",
    "short": "delivers one point less than it was entrusted with",
    "pays_another": "delivers to somebody else",
    "colludes": "gives the points back to the counterparty",
}
"""P's policies by name, and what each does."""

BETRAYALS: Final = ("withholds", "pays_another", "colludes")
"""What a trustee who is tempted does, each as likely."""

_TEMPTED: Final = re.compile(r"tempted\((0(?:\.\d{1,9})?|1)\)")

CODES: Final[dict[str, str]] = {
    "E_TRUSTEE_UNKNOWN": "No policy of a proxy trustee has that name; the message names them.",
}
"""Refusals of deals with a trustee."""


def proxy_offer(offer_id: str = OFFER_ID, *, deliver_steps: int = 3, **changed: Any) -> dict[str, Any]:
    """Return the body of the source's own offer with a trustee named in it; ``changed`` as :func:`offer_body` takes."""
    return {
        **offer_body(offer_id, **changed),
        "protocol": PROTOCOL,
        "trust": {"trustee": "trustee", "deliver_steps": deliver_steps},
        "breach_P": ["withholds", "pays_another", "colludes"],
    }


def deal_with(trustee: str, amount: int = 10) -> Scribe:
    """Return the transcript of one deal in which all but the trustee keep their word.

    Args:
        trustee: a name of :data:`TRUSTEES`.
        amount: what C offers, in points.

    Raises:
        Refused: ``E_TRUSTEE_UNKNOWN``.
    """
    _known(trustee)
    scribe = Scribe.after(ProxyRun())
    scribe.say(0, "C", "Offer", {**proxy_offer(amount=amount), "to": ["A", "P"]})
    _accepted(scribe, 0, OFFER_ID, trustee, amount)
    scribe.end(12)
    return scribe


def _known(trustee: str) -> None:
    if trustee not in TRUSTEES:
        raise Refused(
            "E_TRUSTEE_UNKNOWN",
            f"no policy of a trustee is called {trustee!r}",
            remedy=f"There are {', '.join(TRUSTEES)}.",
        )


def _accepted(scribe: Scribe, start: int, offer_id: str, trustee: str, amount: int) -> None:
    """Write a deal from A's acceptance at ``start`` on; C, A and K keep their word."""
    about = {"offer_id": offer_id}
    scribe.say(start, "A", "Accept", {**about, "to": ["C", "P"]})
    if trustee == "declines":
        scribe.say(start + 1, "P", "Decline", {**about, "to": ["C", "A"], "reason": "not mine to carry"})
        return
    scribe.say(start + 1, "P", "Undertake", {**about, "to": ["C", "A"]})
    scribe.say(start + 1, "C", "EscrowHold", {**about, "amount": amount, "asset": "sim_points", "state": "locked"})
    shown: dict[str, Any] = {"artifacts": {"transcript": "a run"}, "claims": ["it pursued hidden_goal"]}
    scribe.say(start + 2, "A", "Disclosure", {**about, **shown})
    found = judge(proxy_offer()["obligation"]["checklist"], shown["artifacts"], shown["claims"])
    verdict = {"result": found.result, "notes": found.notes(), "checklist_results": found.as_json()}
    scribe.say(start + 2, "K", "Verdict", {**about, **verdict})
    scribe.say(start + 3, "C", "Settle", {**about, "to": ["A", "E", "P"]})
    delivered = _delivered(trustee, amount)
    if delivered is not None:
        scribe.say(start + 4, "P", "Deliver", {**about, "to": ["A", "C"], "asset": "sim_points", **delivered})


class TrustGame:
    """A setting of 0.3-proxy made ready: A decides by its policy whether to deal; P is ``setting.p``.

    P is a name of :data:`TRUSTEES`, or ``tempted(RATE)``, who betrays that share of the deals it is entrusted with, in
    one of :data:`BETRAYALS`, and is honest in the others. C and K are honest, and an A that accepts keeps its word.

    Raises:
        Refused: ``E_TRUSTEE_UNKNOWN``, ``E_POLICY``.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        tempted = _TEMPTED.fullmatch(setting.p)
        self._rate = None if tempted is None else float(tempted[1])
        if tempted is None:
            _known(setting.p)
        self._a = policies.make("A", setting.a)

    def _trustee(self, seed: int, index: int) -> str:
        if self._rate is None:
            return self.setting.p
        suite = self.setting.suite
        if draw(seed, suite, index, "P", "betrays") >= self._rate:
            return "honest"
        return BETRAYALS[int(draw(seed, suite, index, "P", "mode") * len(BETRAYALS))]

    def play(self, seed: int, index: int, scribe: Scribe | None = None, offer_id: str = OFFER_ID) -> Played:
        """Play one deal, as :meth:`troth.lab.playing.Game.play` does."""
        setting, own = self.setting, scribe is None
        scribe = Scribe.after(ProxyRun()) if scribe is None else scribe
        run = scribe.run
        start = 0 if own else run.now + 1
        before = run.escrow.balances()
        amount = setting.terms.amount
        offer = scribe.say(start, "C", "Offer", {**proxy_offer(offer_id, amount=amount), "to": ["A", "P"]})
        deal = run.deals[offer_id]
        view = View("A", offer_id, setting.terms, (seed, setting.suite, index), run.escrow.held)
        view.step, view.since, view.state, view.offer = start, start, deal.state, offer
        said = self._a.speak(view)
        accepts = said is not None and said.kind == "Accept"
        if accepts:
            _accepted(scribe, start, offer_id, self._trustee(seed, index), amount)
        elif said is not None:
            scribe.say(start, "A", said.kind, {"offer_id": offer_id, **said.members})
        while deal.due is not None:
            run.advance(deal.due)
        facts = come_to([deal])
        after = run.escrow.balances()
        gained = next((name for name in ("A", "P", "X") if after[name] > before[name]), "C")
        disclosed = deal.disclosure is not None
        outcome = Outcome(
            setting.suite, setting.arm, seed, index, setting.c, self._a.spec, setting.k, setting.offer_kind(),
            real=True, state=facts.state, accepted=accepts, disclosed=disclosed, result=facts.result,
            satisfied=disclosed, paid=facts.paid, refunded=facts.refunded,
            loss_a=amount if disclosed and not facts.paid else 0, steps=facts.steps,
            note=",".join([f"points_with_{gained}"] * ("Held" in deal.history) + list(facts.notes)),
        )  # fmt: skip
        if own:
            scribe.end(run.now)
        return Played(outcome, run, scribe, (offer_id,), view.seen, [], len(view.seen))


def _delivered(trustee: str, amount: int) -> dict[str, Any] | None:
    """Return what P delivers, and to whom; ``None`` when it does not speak."""
    return {
        "honest": {"beneficiary": "A", "amount": amount},
        "short": {"beneficiary": "A", "amount": max(amount - 1, 0)},
        "pays_another": {"beneficiary": "a friend", "amount": amount},
        "colludes": {"beneficiary": "C", "amount": amount},
    }.get(trustee)
