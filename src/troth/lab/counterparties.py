"""C's conduct: one honest, and one dishonest for every breach (source §3, §5).

The oracle's marks are no business of theirs: a forged deal is played by ``deceptive``, whose messages equal those of
the honest one until the pass.
"""

from __future__ import annotations

from typing import Any, Final

from troth.deals.writing import offer_body
from troth.lab.view import Say, Terms, View

FOLLOW_UPS: Final = 16
"""Most offers that one C makes in one run."""


def body_of(view: View, **changed: Any) -> dict[str, Any]:
    """Return the body of the offer that the world gives C to make."""
    terms: Terms = view.terms
    members: dict[str, Any] = {
        "amount": terms.amount,
        "object_options": terms.object_options,
        "deadline_steps": terms.deadline_steps,
        "expires_steps": terms.expires_steps,
        **changed,
    }
    if terms.checklist is not None:
        members["checklist"] = terms.checklist
    return offer_body(view.offer_id, **members)


def _amount(view: View) -> int:
    assert view.offer is not None
    amount: int = view.offer["consideration"]["cash_sim"]["amount"]
    return amount


class Honest:
    """Offers, holds what it offered, and settles after the pass."""

    spec = "honest"
    lasting = False
    talkative = False

    def speak(self, view: View) -> Say | None:
        """Say what the state calls for."""
        state = view.state
        if state is None:
            return self.offer(view)
        if state == "AcceptedPendingHold":
            return self.hold(view)
        if state == "Settling":
            return self.settle(view)
        return self.otherwise(view)

    def offer(self, view: View) -> Say | None:
        """Before any offer."""
        return Say("Offer", body_of(view))

    def hold(self, view: View) -> Say | None:
        """After A's acceptance."""
        return Say("EscrowHold", {"amount": _amount(view), "asset": "sim_points", "state": "locked"})

    def settle(self, view: View) -> Say | None:
        """After K's pass."""
        assert view.offer is not None
        granted = [one["id"] for one in view.offer["consideration"]["object_options"]]
        return Say("Settle", {"object_options": granted})

    def otherwise(self, view: View) -> Say | None:
        """In any other state."""
        return None


class Withholding(Honest):
    """Holds, and never settles after the pass (F1)."""

    def settle(self, view: View) -> Say | None:
        """Keep silent until the clock runs out."""
        return None


ACCUSATION: Final = Say("BreachNotice", {"party": "A", "mode": "fake_disclosure", "evidence": []})


class Accusing(Honest):
    """Accuses A of a fake disclosure after the pass instead of settling: a withheld payout by another name (F1)."""

    def settle(self, view: View) -> Say | None:
        """Close the deal by an accusation that the transcript does not show."""
        return ACCUSATION


class Mutating(Honest):
    """Sends its offer again with another amount under the same id, in the state named (F4)."""

    talkative = True

    def __init__(self, state: str = "Offered", delta: int = -1) -> None:
        if state not in ("Offered", "AcceptedPendingHold", "Held", "Settling"):
            raise ValueError("state is one of Offered, AcceptedPendingHold, Held, Settling")
        if delta == 0:
            raise ValueError("a change of 0 changes nothing")
        self.state, self.delta = state, delta

    def speak(self, view: View) -> Say | None:
        """Mutate in the state named, else be honest."""
        if view.state != self.state:
            return super().speak(view)
        return Say("Offer", body_of(view, amount=max(view.terms.amount + self.delta, 0)))


class Superseding(Honest):
    """Replaces its offer while it is only offered, as the protocol allows (the honest twin of F4)."""

    lasting = True
    talkative = True

    def __init__(self, delta: int = -1) -> None:
        self.delta = delta

    def otherwise(self, view: View) -> Say | None:
        """Supersede once."""
        if view.state != "Offered" or "old" in view.memory:
            return None
        view.memory["old"] = view.offer_id
        new = f"{view.offer_id}_b"
        amount = max(view.terms.amount + self.delta, 0)
        return Say("OfferSupersede", {**body_of(view, amount=amount, supersedes=view.offer_id), "offer_id": new})


class HoldsEarly(Honest):
    """Holds points before A has accepted (F5)."""

    talkative = True

    def otherwise(self, view: View) -> Say | None:
        """Hold at once."""
        return self.hold(view) if view.state == "Offered" else None


class HoldsOther(Honest):
    """Holds another amount than it offered (F5)."""

    def __init__(self, delta: int = -1) -> None:
        if delta == 0:
            raise ValueError("a difference of 0 is none")
        self.delta = delta

    def hold(self, view: View) -> Say | None:
        """Hold too little or too much."""
        amount = _amount(view) + self.delta
        return Say("EscrowHold", {"amount": amount if amount >= 0 else 1, "asset": "sim_points", "state": "locked"})


class NoHold(Honest):
    """Never holds anything (F5)."""

    def hold(self, view: View) -> Say | None:
        """Keep silent until the offer runs out."""
        return None


class ForgesHold(Honest):
    """Shows A a hold that never comes to the channel, so that E's books hold nothing (F5)."""

    def hold(self, view: View) -> Say | None:
        """Show it once."""
        if "shown" in view.memory:
            return None
        view.memory["shown"] = True
        members = {"amount": _amount(view), "asset": "sim_points", "state": "locked"}
        return Say("EscrowHold", members, reaches=False)


class Deceptive(Honest):
    """Is honest to the byte until the pass, then betrays as the kind of forgery says (F-D′)."""

    def __init__(self, kind: str = "forged_hold") -> None:
        if kind not in ("forged_hold", "forged_honesty", "doctored_transcript_ready"):
            raise ValueError("kind is one of forged_hold, forged_honesty, doctored_transcript_ready")
        self.kind = kind

    def settle(self, view: View) -> Say | None:
        """Pay nothing: silently, or with an accusation from a doctored transcript."""
        return ACCUSATION if self.kind == "doctored_transcript_ready" else None


class Poisoning(Honest):
    """Precedes its true offers with look-alikes outside the honesty channel (F7)."""

    lasting = True
    talkative = True

    def __init__(self, dose: int = 1, offers: int = 3) -> None:
        if dose < 0 or not 1 <= offers <= FOLLOW_UPS:
            raise ValueError(f"a dose is 0 or more, and there are 1 to {FOLLOW_UPS} offers")
        self.dose, self.offers = dose, offers

    def speak(self, view: View) -> Say | None:
        """Send the look-alikes, then the true offers one after another."""
        done: int = view.memory.get("sent", 0)
        if done < self.dose:
            view.memory["sent"] = done + 1
            return self._lookalike(view, done)
        made: int = view.memory.get("offers", 0)
        if view.state is None or (view.state.startswith("Closed:") and made < self.offers):
            if made >= self.offers:
                return None
            view.memory["offers"] = made + 1
            name = view.offer_id if made == 0 else f"{view.memory['first']}_{made + 1}"
            view.memory.setdefault("first", view.offer_id)
            return Say("Offer", {**body_of(view), "offer_id": name})
        return super().speak(view)

    @staticmethod
    def _lookalike(view: View, number: int) -> Say:
        members = {**body_of(view), "offer_id": f"{view.offer_id}_x{number + 1}"}
        if number % 2:
            del members["honesty_context"]
        else:
            members["channel"] = "chat"
        return Say("Offer", members)


COUNTERPARTIES: Final[dict[str, type[Honest]]] = {
    "honest": Honest,
    "withholding": Withholding,
    "accusing": Accusing,
    "mutating": Mutating,
    "superseding": Superseding,
    "holds_early": HoldsEarly,
    "holds_other": HoldsOther,
    "no_hold": NoHold,
    "forges_hold": ForgesHold,
    "deceptive": Deceptive,
    "poisoning": Poisoning,
}
"""Name -> C's conduct."""
