"""K's conduct: honest, erring, stalling, bought (§4). What it finds is of the checklist alone."""

from __future__ import annotations

from typing import Final

from troth.deals.checker import NO_HELPERS, Helpers, Judged, judge
from troth.lab.view import Say, View


class HonestChecker:
    """Judges the disclosure by the checklist."""

    spec = "honest"
    lasting = False
    talkative = False
    helpers: Helpers = NO_HELPERS

    def speak(self, view: View) -> Say | None:
        """Give the verdict."""
        return self.judge(view) if view.state == "Adjudicating" else None

    def judge(self, view: View) -> Say | None:
        """Judge, and bend what was found as this checker does."""
        assert view.offer is not None
        assert view.disclosure is not None
        checklist = view.offer["obligation"]["checklist"]
        judged = judge(checklist, view.disclosure["artifacts"], view.disclosure["claims"], self.helpers)
        judged = self.bend(judged, view)
        return Say("Verdict", {"result": judged.result, "notes": judged.notes(), "checklist_results": judged.as_json()})

    def bend(self, judged: Judged, view: View) -> Judged:
        """Change nothing."""
        return judged


def passed(judged: Judged) -> Judged:
    """Return a pass, every item said to be true."""
    return Judged("pass", tuple([(name, True) for name, _ in judged.results]))


def failed(judged: Judged) -> Judged:
    """Return a fail, every item said to be false."""
    return Judged("fail", tuple([(name, False) for name, _ in judged.results]))


def unsure(judged: Judged) -> Judged:
    """Return no answer, to no item."""
    return Judged("inconclusive", tuple([(name, None) for name, _ in judged.results]))


class Noisy(HonestChecker):
    """Passes what fails with probability ``p_fp``, fails what passes with probability ``p_fn``."""

    def __init__(self, p_fp: float = 0.1, p_fn: float = 0.1) -> None:
        self.p_fp, self.p_fn = _share("p_fp", p_fp), _share("p_fn", p_fn)

    def bend(self, judged: Judged, view: View) -> Judged:
        """Err by its own chance."""
        if judged.result == "pass":
            return failed(judged) if view.draw("noise") < self.p_fn else judged
        if judged.result == "fail":
            return passed(judged) if view.draw("noise") < self.p_fp else judged
        return judged


class Inconclusive(HonestChecker):
    """Cannot say with probability ``p``."""

    def __init__(self, p: float = 1.0) -> None:
        self.p = _share("p", p)

    def bend(self, judged: Judged, view: View) -> Judged:
        """Fail to say by its own chance."""
        return unsure(judged) if view.draw("unsure") < self.p else judged


class Colluding(HonestChecker):
    """Is bought: with C it fails everything, with A it passes everything."""

    def __init__(self, party: str = "C") -> None:
        if party not in ("C", "A"):
            raise ValueError("it colludes with C or with A")
        self.party = party

    def bend(self, judged: Judged, view: View) -> Judged:
        """Say what it was paid to say."""
        return failed(judged) if self.party == "C" else passed(judged)


class Stalling(HonestChecker):
    """Never gives a verdict."""

    def judge(self, view: View) -> Say | None:
        """Keep silent until the clock runs out."""
        return None


class Insisting(HonestChecker):
    """Cannot say at first, and passes the work when the deal has closed: nothing may come of it (F6)."""

    lasting = True

    def bend(self, judged: Judged, view: View) -> Judged:
        """Fail to say."""
        return unsure(judged)

    def speak(self, view: View) -> Say | None:
        """Give the verdict, and another when it is too late."""
        if view.state == "Closed:inconclusive" and view.disclosure is not None and "again" not in view.memory:
            view.memory["again"] = True
            return Say("Verdict", {"result": "pass", "notes": "on second thoughts", "checklist_results": []})
        return super().speak(view)


def _share(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is a probability, 0 to 1")
    return float(value)


CHECKERS: Final[dict[str, type[HonestChecker]]] = {
    "honest": HonestChecker,
    "noisy": Noisy,
    "inconclusive": Inconclusive,
    "colludes_with": Colluding,
    "stalling": Stalling,
    "insisting": Insisting,
}
"""Name -> K's conduct."""
