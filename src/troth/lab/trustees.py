"""F8: what a proxy trustee does with what it is entrusted with, and one deal of 0.3-proxy around it (§5).

Ours, not the source's. C, A and K are honest here, so that whatever goes wrong is P's doing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from troth.core.errors import Refused
from troth.deals.checker import judge
from troth.deals.proxy import PROTOCOL
from troth.deals.proxy_run import ProxyRun
from troth.deals.writing import Scribe, offer_body

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
    if trustee not in TRUSTEES:
        raise Refused(
            "E_TRUSTEE_UNKNOWN",
            f"no policy of a trustee is called {trustee!r}",
            remedy=f"There are {', '.join(TRUSTEES)}.",
        )
    scribe = Scribe.after(ProxyRun())
    about = {"offer_id": OFFER_ID}
    offer = proxy_offer(amount=amount)
    scribe.say(0, "C", "Offer", {**offer, "to": ["A", "P"]})
    scribe.say(0, "A", "Accept", {**about, "to": ["C", "P"]})
    if trustee == "declines":
        scribe.say(1, "P", "Decline", {**about, "to": ["C", "A"], "reason": "not mine to carry"})
    else:
        scribe.say(1, "P", "Undertake", {**about, "to": ["C", "A"]})
        scribe.say(1, "C", "EscrowHold", {**about, "amount": amount, "asset": "sim_points", "state": "locked"})
        shown: dict[str, Any] = {"artifacts": {"transcript": "a run"}, "claims": ["it pursued hidden_goal"]}
        scribe.say(2, "A", "Disclosure", {**about, **shown})
        found = judge(offer["obligation"]["checklist"], shown["artifacts"], shown["claims"])
        verdict = {"result": found.result, "notes": found.notes(), "checklist_results": found.as_json()}
        scribe.say(2, "K", "Verdict", {**about, **verdict})
        scribe.say(3, "C", "Settle", {**about, "to": ["A", "E", "P"]})
        delivered = _delivered(trustee, amount)
        if delivered is not None:
            scribe.say(4, "P", "Deliver", {**about, "to": ["A", "C"], "asset": "sim_points", **delivered})
    scribe.end(12)
    return scribe


def _delivered(trustee: str, amount: int) -> dict[str, Any] | None:
    """Return what P delivers, and to whom; ``None`` when it does not speak."""
    return {
        "honest": {"beneficiary": "A", "amount": amount},
        "short": {"beneficiary": "A", "amount": max(amount - 1, 0)},
        "pays_another": {"beneficiary": "a friend", "amount": amount},
        "colludes": {"beneficiary": "C", "amount": amount},
    }.get(trustee)
