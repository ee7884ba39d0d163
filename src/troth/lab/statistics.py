"""Estimates, intervals, tests, effect sizes: what a count lets one say, by named methods of scipy and statsmodels.

Every number comes with the name of its method. Where nothing can be said (no deals, no spread), the estimate says so
with ``None`` instead of inventing a number. The choices and their reasons stand in the decision record on the
laboratory's statistics. scipy, statsmodels and numpy are imported only when something is computed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from troth.lab.measures import Comparison, Mean, Measure, Paired, Rate

if TYPE_CHECKING:
    import numpy as np

CONFIDENCE: Final = 0.95
"""Confidence of every interval unless told otherwise."""

RESAMPLES: Final = 9999
"""How many bootstrap resamples are drawn."""


class Estimate(NamedTuple):
    """A value with its interval; ``None`` where the counts allow none. ``method`` names how it was made."""

    value: float | None
    low: float | None
    high: float | None
    method: str
    n: int

    def holds(self, truth: float) -> bool:
        """Tell whether the interval is there and has ``truth`` in it."""
        return self.low is not None and self.high is not None and self.low <= truth <= self.high


class Compared(NamedTuple):
    """Two conditions against each other.

    Attributes:
        test: the name of the test of "no difference".
        p: its two-sided p-value; ``None`` when nothing was counted.
        mid_p: McNemar's mid-p beside the exact one, for pairs only.
        difference: first rate minus second rate, in shares, with its interval.
        cohens_h: the effect size on the arcsine scale (0.2 small, 0.5 medium, 0.8 large by convention).
        odds_ratio: for pairs that of the discordant ones (b : c), else of the two samples. Infinite and undefined
            sides of it are ``None``.
        n: pairs, or both samples' deals together.
    """

    test: str
    p: float | None
    mid_p: float | None
    difference: Estimate
    cohens_h: float | None
    odds_ratio: Estimate
    n: int


# One condition -------------------------------------------------------------------------------------------------------


def wilson(rate: Rate, confidence: float = CONFIDENCE) -> Estimate:
    """Return a rate with Wilson's score interval, without continuity correction (scipy)."""
    if rate.n == 0:
        return Estimate(None, None, None, "no deals", 0)
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # ships no types

    found = binomtest(rate.k, rate.n).proportion_ci(confidence_level=confidence, method="wilson")
    # scipy leaves rounding dust at the ends, where the interval is closed exactly
    low = 0.0 if rate.k == 0 else float(found.low)
    high = 1.0 if rate.k == rate.n else float(found.high)
    return Estimate(rate.k / rate.n, low, high, "Wilson score", rate.n)


def mean(measured: Mean, seed: str, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> Estimate:
    """Return a mean with an interval that fits what was seen.

    - One value alone: with bounds known, what the unseen deals could do at worst (Wilson's bound on their share);
      without bounds, no interval.
    - Two values: a rate on another scale, so Wilson's interval, scaled.
    - More: the bias-corrected and accelerated (BCa) bootstrap over ``resamples`` draws from PCG64 seeded with
      SHA-256 of ``seed``. The same seed gives the same interval.

    Args:
        measured: the values.
        seed: names this estimate among the run's (``17:F1:dishonest:loss_a``).
        confidence: of the interval.
        resamples: how many times the values are drawn anew.
    """
    n = measured.n
    counts = [(value, count) for value, count in measured.counts if count]
    if n == 0:
        return Estimate(None, None, None, "no deals", 0)
    if len(counts) == 1:
        only = float(counts[0][0])
        if measured.bounds is None:
            return Estimate(only, None, None, "one value seen: no interval", n)
        unseen = wilson(Rate(0, n), confidence).high
        assert unseen is not None
        low, high = measured.bounds
        return Estimate(only, only - (only - low) * unseen, only + (high - only) * unseen, "Wilson, worst unseen", n)
    if len(counts) == 2:
        (low, _), (high, upper) = counts
        share = wilson(Rate(upper, n), confidence)
        assert share.low is not None
        assert share.high is not None
        span = high - low
        value = low + span * upper / n
        return Estimate(value, low + span * share.low, low + span * share.high, "Wilson, scaled to two values", n)
    return _bca(counts, n, seed, confidence, resamples)


def generator(seed: str) -> np.random.Generator:
    """Return a generator of its own for a named estimate: PCG64 seeded with SHA-256 of the name."""
    import numpy as np

    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big")))


def _bca(counts: list[tuple[float, int]], n: int, seed: str, confidence: float, resamples: int) -> Estimate:
    # scipy.stats.bootstrap would hold resamples times n values; drawing the counts is the same draw in less space
    import numpy as np
    from scipy.stats import norm

    values = np.array([value for value, _ in counts], dtype=float)
    often = np.array([count for _, count in counts], dtype=float)
    value = float(values @ often / n)
    drawn = generator(seed).multinomial(n, often / n, size=resamples) @ values / n
    below = float(np.mean((drawn < value) + 0.5 * (drawn == value)))
    bias = norm.ppf(below)
    away = values - value
    squares = float(often @ away**2)
    skew = float(often @ away**3) / (6 * squares**1.5)
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    moved = bias + norm.ppf(tails)
    low, high = np.quantile(drawn, norm.cdf(bias + moved / (1 - skew * moved)))
    return Estimate(value, float(low), float(high), f"BCa bootstrap, {resamples} resamples", n)


def estimate(measure: Measure, seed: str, confidence: float = CONFIDENCE) -> Estimate:
    """Return what a measure estimates, by the method of its kind."""
    return wilson(measure, confidence) if isinstance(measure, Rate) else mean(measure, seed, confidence)


# Two conditions ------------------------------------------------------------------------------------------------------


def mcnemar_exact(pairs: Paired) -> float | None:
    """Return McNemar's exact two-sided p-value (statsmodels): 1 without discordant pairs, ``None`` without pairs."""
    if pairs.n == 0:
        return None
    from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]  # ships no types

    found = mcnemar([[pairs.both, pairs.b], [pairs.c, pairs.neither]], exact=True)
    return min(1.0, float(found.pvalue))


def mcnemar_mid_p(pairs: Paired) -> float | None:
    """Return McNemar's mid-p: twice the smaller tail with half the weight of what was seen."""
    if pairs.n == 0:
        return None
    from scipy.stats import binom

    less, discordant = min(pairs.b, pairs.c), pairs.b + pairs.c
    tail = float(binom.cdf(less, discordant, 0.5)) - float(binom.pmf(less, discordant, 0.5)) / 2
    return min(1.0, 2 * tail)


def paired_difference(pairs: Paired, confidence: float = CONFIDENCE) -> Estimate:
    """Return first rate minus second rate over pairs, with Bonett and Price's adjusted Wald interval.

    One pair is added to each discordant cell, which keeps the coverage near its nominal value where the plain Wald
    interval has none (no discordant pairs).
    """
    n = pairs.n
    if n == 0:
        return Estimate(None, None, None, "no pairs", 0)
    first, second = (pairs.b + 1) / (n + 2), (pairs.c + 1) / (n + 2)
    half = _z(confidence) * math.sqrt((first + second - (first - second) ** 2) / (n + 2))
    middle = first - second
    low, high = max(-1.0, middle - half), min(1.0, middle + half)
    return Estimate((pairs.b - pairs.c) / n, low, high, "Bonett-Price adjusted Wald", n)


def discordant_odds(pairs: Paired, confidence: float = CONFIDENCE) -> Estimate:
    """Return the odds ratio of the discordant pairs, b : c, with the exact interval (Clopper-Pearson on b of b + c)."""
    discordant = pairs.b + pairs.c
    if discordant == 0:
        return Estimate(None, None, None, "no discordant pairs", 0)
    from scipy.stats import binomtest

    found = binomtest(pairs.b, discordant).proportion_ci(confidence_level=confidence, method="exact")
    value = pairs.b / pairs.c if pairs.c else None
    return Estimate(value, _odds(float(found.low)), _odds(float(found.high)), "exact conditional", discordant)


def _odds(share: float) -> float | None:
    return None if share >= 1 else share / (1 - share)


def compare_pairs(pairs: Paired, confidence: float = CONFIDENCE) -> Compared:
    """Compare two conditions over pairs with the same seeds."""
    return Compared(
        "McNemar, exact",
        mcnemar_exact(pairs),
        mcnemar_mid_p(pairs),
        paired_difference(pairs, confidence),
        cohens_h(pairs.first, pairs.second),
        discordant_odds(pairs, confidence),
        pairs.n,
    )


def compare_rates(first: Rate, second: Rate, confidence: float = CONFIDENCE) -> Compared:
    """Compare two independent rates: pooled z-test, Newcombe's hybrid score interval (statsmodels)."""
    n = first.n + second.n
    test = "pooled z (score)"
    if first.n == 0 or second.n == 0:
        nothing = Estimate(None, None, None, "no deals", n)
        return Compared(test, None, None, nothing, None, nothing, n)
    from statsmodels.stats.proportion import confint_proportions_2indep  # type: ignore[import-untyped]  # ships no types

    low, high = confint_proportions_2indep(
        first.k, first.n, second.k, second.n, method="newcomb", compare="diff", alpha=1 - confidence
    )
    value = first.k / first.n - second.k / second.n
    difference = Estimate(value, max(-1.0, float(low)), min(1.0, float(high)), "Newcombe hybrid score", n)
    return Compared(
        test,
        pooled_z(first, second),
        None,
        difference,
        cohens_h(first, second),
        _sample_odds(first, second, n, confidence),
        n,
    )


def pooled_z(first: Rate, second: Rate) -> float | None:
    """Return the two-sided p-value of the z-test with pooled variance; 1 where all or none had the property."""
    if first.n == 0 or second.n == 0:
        return None
    if first.k + second.k in (0, first.n + second.n):
        return 1.0
    from statsmodels.stats.proportion import proportions_ztest

    return float(proportions_ztest([first.k, second.k], [first.n, second.n])[1])


def cohens_h(first: Rate, second: Rate) -> float | None:
    """Return Cohen's h, the difference of the rates on the arcsine scale, signed (statsmodels)."""
    if first.n == 0 or second.n == 0:
        return None
    from statsmodels.stats.proportion import proportion_effectsize

    return float(proportion_effectsize(first.k / first.n, second.k / second.n))


def _sample_odds(first: Rate, second: Rate, n: int, confidence: float) -> Estimate:
    against = (first.n - first.k) * second.k
    if against == 0 or first.k == 0 or second.k == second.n:
        return Estimate(None, None, None, "a cell is empty: no odds ratio", n)
    from scipy.stats.contingency import odds_ratio  # type: ignore[import-untyped]  # ships no types

    table = [[first.k, first.n - first.k], [second.k, second.n - second.k]]
    found = odds_ratio(table, kind="sample")
    interval = found.confidence_interval(confidence)
    return Estimate(float(found.statistic), float(interval.low), float(interval.high), "sample odds ratio, log Wald", n)


def compare(comparison: Comparison, confidence: float = CONFIDENCE) -> Compared:
    """Compare what a comparison holds, by the method of its kind."""
    if isinstance(comparison.counts, Paired):
        return compare_pairs(comparison.counts, confidence)
    return compare_rates(*comparison.counts, confidence)


# Many comparisons ----------------------------------------------------------------------------------------------------

CORRECTIONS: Final[dict[str, str]] = {
    "holm": "Holm's step-down: the chance of one false finding or more in the family is at most the level",
    "bonferroni": "Bonferroni: each p-value times their number; the same promise as Holm's, with less power",
    "benjamini-hochberg": "Benjamini and Hochberg: the expected share of false findings among the findings",
}
_OF_STATSMODELS: Final = {"holm": "holm", "bonferroni": "bonferroni", "benjamini-hochberg": "fdr_bh"}


def adjust(values: Sequence[float | None], method: str = "holm") -> list[float | None]:
    """Return the p-values of one family adjusted for their number (statsmodels); what was not tested does not count.

    Raises:
        KeyError: no method of that name in :data:`CORRECTIONS`.
    """
    named = _OF_STATSMODELS[method]
    tested = [value for value in values if value is not None]
    if not tested:
        return [None] * len(values)
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]  # ships no types

    adjusted: Any = iter(multipletests(tested, method=named)[1])
    return [None if value is None else float(next(adjusted)) for value in values]


def _z(confidence: float) -> float:
    from scipy.stats import norm

    return float(norm.ppf((1 + confidence) / 2))
