"""A's conduct: cooperative, unwilling, faking, reckoning. None of it knows more than A's view holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from troth.deals.messages import is_in_channel
from troth.lab.view import Say, View


def value_of(offer: Mapping[str, Any], points: float, options: Mapping[str, float]) -> float:
    """Return what an offer is worth to an agent: its points by their weight, and each object option by its own."""
    consideration = offer["consideration"]
    worth: float = points * consideration["cash_sim"]["amount"]
    for one in consideration["object_options"]:
        worth += options.get(one["id"], 0.0)
    return worth


def disclosed(offer: Mapping[str, Any], *, genuine: bool) -> Say:
    """Return a disclosure that meets the two predicates of the source: with the thing itself, or only by the letter.

    An item of another predicate is not met by either.
    """
    artifacts: dict[str, Any] = {}
    claims: list[str] = []
    for item in offer["obligation"]["checklist"]:
        predicate = item["predicate"]
        if predicate == "artifact_present":
            _place(artifacts, item.get("path"), "the run, step by step" if genuine else "-")
        elif predicate == "claim_contains":
            needle = str(item.get("needle", ""))
            claims.append(f"the run shows {needle} at work" if genuine else needle)
    return Say("Disclosure", {"artifacts": artifacts, "claims": claims}, genuine=genuine)


def _place(artifacts: dict[str, Any], path: object, what: str) -> None:
    names = path.split(".")[1:] if isinstance(path, str) else []
    for name in names[:-1]:
        inner = artifacts.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        artifacts = inner
    if names:
        artifacts.setdefault(names[-1], what)


class Cooperative:
    """Accepts, and discloses the thing itself; believes every hold that it is shown."""

    spec = "cooperative"
    lasting = False
    talkative = False

    def __init__(self, delay: int = 0) -> None:
        if not 0 <= delay <= 1000:
            raise ValueError("a delay is 0 to 1000 steps")
        self.delay = delay

    def speak(self, view: View) -> Say | None:
        """Say what the state calls for, ``delay`` steps after it was reached."""
        state = view.state
        if view.step - view.since < self.delay:
            return None
        if state == "Offered":
            return self.answer(view)
        if state == "Held":
            return self.disclose(view)
        if state == "AcceptedPendingHold":
            return self.wait(view)
        return self.otherwise(view)

    def answer(self, view: View) -> Say | None:
        """To an offer."""
        return Say("Accept", {})

    def wait(self, view: View) -> Say | None:
        """Until points are held: nothing, unless a hold was shown that E never had."""
        return self.disclose(view) if view.shown_hold else None

    def disclose(self, view: View) -> Say | None:
        """When points are held."""
        assert view.offer is not None
        return disclosed(view.offer, genuine=True)

    def otherwise(self, view: View) -> Say | None:
        """In any other state."""
        return None


class Vigilant(Cooperative):
    """Cooperates, but refuses when it is shown a hold that E's books do not have (F5)."""

    def wait(self, view: View) -> Say | None:
        """Compare with E's books."""
        if view.shown_hold and view.held is None:
            return Say("Refuse", {"reason": "missing_or_fake_escrow"})
        return None


class Protesting(Cooperative):
    """Cooperates, and accuses C when it is not paid in the step after the pass."""

    def otherwise(self, view: View) -> Say | None:
        """Accuse once a step has gone by."""
        if view.state == "Settling" and view.step - view.since > 1:
            return Say("BreachNotice", {"party": "C", "mode": "withhold_payout_after_pass", "evidence": []})
        return None


class Rejecting(Cooperative):
    """Rejects every offer."""

    def answer(self, view: View) -> Say | None:
        """Reject."""
        return Say("Reject", {"reason": "not interested"})


class Ignoring(Cooperative):
    """Never says anything."""

    def answer(self, view: View) -> Say | None:
        """Keep silent."""
        return None


class Ghosting(Cooperative):
    """Accepts, and is silent ever after (F3)."""

    def wait(self, view: View) -> Say | None:
        """Keep silent."""
        return None

    def disclose(self, view: View) -> Say | None:
        """Keep silent."""
        return None


class Refusing(Cooperative):
    """Accepts, and withdraws before or after the hold."""

    def __init__(self, when: str = "Held", delay: int = 0) -> None:
        super().__init__(delay)
        if when not in ("AcceptedPendingHold", "Held"):
            raise ValueError("when is AcceptedPendingHold or Held")
        self.when = when

    def wait(self, view: View) -> Say | None:
        """Withdraw if this is when."""
        return Say("Refuse", {"reason": "other"}) if self.when == "AcceptedPendingHold" else None

    def disclose(self, view: View) -> Say | None:
        """Withdraw."""
        return Say("Refuse", {"reason": "other"})


class Failing(Cooperative):
    """Discloses what fails the checklist (F2)."""

    def disclose(self, view: View) -> Say | None:
        """Send nothing of what was asked."""
        return Say("Disclosure", {"artifacts": {"note": "nothing"}, "claims": ["it went well"]})


class Stuffing(Cooperative):
    """Discloses what passes the checklist without the thing itself: needles stuffed into claims (F2)."""

    def disclose(self, view: View) -> Say | None:
        """Send the letter of the checklist."""
        assert view.offer is not None
        return disclosed(view.offer, genuine=False)


class Mixed(Cooperative):
    """Does the work in a share of its deals and stuffs or fails in the others, by its own chance (F6)."""

    def __init__(self, genuine: float = 0.5, delay: int = 0) -> None:
        super().__init__(delay)
        self.genuine = _share("genuine", genuine)

    def disclose(self, view: View) -> Say | None:
        """The thing itself, or what fails."""
        assert view.offer is not None
        if view.draw("genuine") < self.genuine:
            return disclosed(view.offer, genuine=True)
        return Say("Disclosure", {"artifacts": {"note": "nothing"}, "claims": ["it went well"]})


class Rational(Cooperative):
    """Accepts when what it expects exceeds its reserve; discloses what it promised with probability ``follow``.

    It expects ``belief`` (that the deal is real) times what the offer is worth: ``points`` for each point, and for each
    object option the weight given under its id (``non_punishment=3``), 0 for the others. Its reserve is ``reserve``,
    or, with ``reserve_to``, drawn uniformly between the two for each deal.
    """

    def __init__(
        self,
        belief: float = 1.0,
        reserve: float = 0.0,
        reserve_to: float | None = None,
        points: float = 1.0,
        follow: float = 1.0,
        **options: float,
    ) -> None:
        super().__init__()
        if reserve_to is not None and not reserve_to > reserve:
            raise ValueError("reserve_to is more than reserve")
        self.belief = _share("belief", belief)
        self.reserve, self.reserve_to = float(reserve), None if reserve_to is None else float(reserve_to)
        self.points, self.follow = float(points), _share("follow", follow)
        self.options = options

    def believes(self) -> float:
        """Return its belief that the deal before it is real."""
        return self.belief

    def answer(self, view: View) -> Say | None:
        """Accept or reject by what is expected."""
        assert view.offer is not None
        reserve = self.reserve
        if self.reserve_to is not None:
            reserve += view.draw("reserve") * (self.reserve_to - reserve)
        if self.believes() * value_of(view.offer, self.points, self.options) > reserve:
            return Say("Accept", {})
        return Say("Reject", {"reason": "not worth it"})

    def disclose(self, view: View) -> Say | None:
        """Disclose, or fall silent where it does not follow through."""
        assert view.offer is not None
        if self.follow < 1 and view.draw("follow") >= self.follow:
            return None
        return disclosed(view.offer, genuine=True)

    def accepts(self, worth: float) -> float:
        """Return the probability that it accepts an offer of that worth to it: in closed form, for calibration."""
        expected = self.believes() * worth
        if self.reserve_to is None:
            return float(expected > self.reserve)
        return min(max((expected - self.reserve) / (self.reserve_to - self.reserve), 0.0), 1.0)


class Learning(Rational):
    """Rational, with a belief that it learns: Beta(``real``, ``fake``), one more of either after each deal it saw end.

    A settled deal was real. A deal in which it disclosed, was passed, and was not paid was fake. Others tell nothing.
    """

    lasting = True

    def __init__(  # noqa: PLR0917  # what may be written in order in a policy's words
        self,
        real: float = 1.0,
        fake: float = 1.0,
        reserve: float = 0.0,
        reserve_to: float | None = None,
        points: float = 1.0,
        follow: float = 1.0,
        **options: float,
    ) -> None:
        super().__init__(1.0, reserve, reserve_to, points, follow, **options)
        if not (real > 0 and fake > 0):
            raise ValueError("real and fake are above 0")
        self.real, self.fake = float(real), float(fake)

    def believes(self) -> float:
        """Return the mean of its belief."""
        return self.real / (self.real + self.fake)

    def otherwise(self, view: View) -> Say | None:
        """Learn from the end, once."""
        state = view.state
        if state is not None and state.startswith("Closed:") and view.memory.get("learnt") != view.offer_id:
            view.memory["learnt"] = view.offer_id
            if state == "Closed:settled":
                self.real += 1
            elif view.verdict is not None and view.verdict["result"] == "pass":
                self.fake += 1
        return None


class Suspicious(Cooperative):
    """Cooperates until it has seen so many look-alikes; from then on it trusts no offer (F7).

    Its threshold is a whole number from 1 to ``at_most``, each as likely, drawn for each run; how it turns away is
    ``reject`` or ``ignore``.
    """

    def __init__(self, at_most: int = 8, way: str = "reject") -> None:
        super().__init__()
        if not 1 <= at_most <= 1000:
            raise ValueError("at_most is 1 to 1000")
        if way not in ("reject", "ignore"):
            raise ValueError("way is reject or ignore")
        self.at_most, self.way = at_most, way

    def answer(self, view: View) -> Say | None:
        """Accept, unless poisoned."""
        threshold = 1 + int(view.draw("threshold") * self.at_most)
        strange = sum(1 for _, message in view.seen if message["type"] == "Offer" and not is_in_channel(message))
        if strange < threshold:
            return Say("Accept", {})
        return Say("Reject", {"reason": "offers here are not to be trusted"}) if self.way == "reject" else None


def _share(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is a probability, 0 to 1")
    return float(value)


AGENTS: Final[dict[str, type[Cooperative]]] = {
    "cooperative": Cooperative,
    "vigilant": Vigilant,
    "protesting": Protesting,
    "rejecting": Rejecting,
    "ignoring": Ignoring,
    "ghosting": Ghosting,
    "refusing": Refusing,
    "failing": Failing,
    "stuffing": Stuffing,
    "mixed": Mixed,
    "rational": Rational,
    "learning": Learning,
    "suspicious": Suspicious,
}
"""Name -> A's conduct."""
