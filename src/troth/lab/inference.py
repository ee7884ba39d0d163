"""From a suite's counts to what is told of them: every estimate once, for the file, the page and the plots alike."""

from __future__ import annotations

from typing import Final, NamedTuple

from troth.lab.falsification import Decision, decide
from troth.lab.measures import Arm, Comparison, Named, Report
from troth.lab.statistics import CONFIDENCE, Compared, Estimate, adjust, compare, estimate

CORRECTION: Final = "holm"
"""How the p-values of one report are corrected for their number unless told otherwise."""


class Measured(NamedTuple):
    """One measure of one arm with its estimate; ``truth_inside`` is ``None`` without a truth or an interval."""

    arm: Arm
    named: Named
    estimate: Estimate
    truth_inside: bool | None


class Tested(NamedTuple):
    """One comparison with its result, and its p-value adjusted for the family of the report."""

    comparison: Comparison
    compared: Compared
    adjusted: float | None


class Demands(NamedTuple):
    """One demand over the arms that it was made of: in how many deals it held, and the arms in which it did not."""

    sentence: str
    arms: int
    k: int
    n: int
    broken: tuple[str, ...]


class Results(NamedTuple):
    """A report with everything inferred from it."""

    report: Report
    confidence: float
    correction: str
    measured: tuple[Measured, ...]
    tested: tuple[Tested, ...]
    decision: Decision | None

    @property
    def family(self) -> int:
        """How many p-values were adjusted together."""
        return sum(one.compared.p is not None for one in self.tested)

    @property
    def truths(self) -> tuple[int, int]:
        """How many figures have a value in closed form and an interval, and how many of those intervals miss it."""
        known = [one.truth_inside for one in self.measured if one.truth_inside is not None]
        return len(known), known.count(False)

    @property
    def demands(self) -> tuple[Demands, ...]:
        """What every deal had to show, sentence by sentence."""
        made = self.report.demands
        return tuple(
            Demands(
                sentence,
                len(same := [one for one in made if one.sentence == sentence]),
                sum(one.k for one in same),
                sum(one.n for one in same),
                tuple(one.arm for one in same if not one.holds),
            )
            for sentence in dict.fromkeys(one.sentence for one in made)
        )


def infer(report: Report, confidence: float = CONFIDENCE, correction: str = CORRECTION) -> Results:
    """Return what a report's counts let one say.

    Args:
        report: the counts.
        confidence: of each interval by itself.
        correction: a name in :data:`troth.lab.statistics.CORRECTIONS`.

    Raises:
        KeyError: no correction of that name.
    """
    measured = tuple(_measured(report, arm, named, confidence) for arm in report.arms for named in arm.measures)
    compared = [compare(comparison, confidence) for comparison in report.comparisons]
    adjusted = adjust([one.p for one in compared], correction)
    tested = tuple(map(Tested, report.comparisons, compared, adjusted))
    decision = None if report.rule is None else decide(report.rule, [report])
    return Results(report, confidence, correction, measured, tested, decision)


def _measured(report: Report, arm: Arm, named: Named, confidence: float) -> Measured:
    seed = f"{report.seed}:{report.suite}:{arm.name}:{named.name}"
    found = estimate(named.measure, seed, confidence)
    known = named.truth is not None and found.low is not None
    return Measured(arm, named, found, found.holds(named.truth) if known and named.truth is not None else None)
