"""The laboratory's own truth: over many seeds intervals cover, tests err and find as often as they say.

Each check has its twin that a broken method fails: the plain Wald interval, a bootstrap of the wrong values, a test
without its correction.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from lab.calibrating import at_least, at_most, band, inside
from troth.core.errors import Refused
from troth.lab.measures import Mean, Paired, Rate
from troth.lab.power import (
    deals_for_half_width,
    deals_for_two_rates,
    difference_told,
    pairs_for_difference,
    pairs_for_mcnemar,
    plan_of,
    power_mcnemar,
    power_two_rates,
    wilson_half_width,
)
from troth.lab.statistics import (
    adjust,
    compare_rates,
    discordant_odds,
    mcnemar_exact,
    mcnemar_mid_p,
    mean,
    paired_difference,
    pooled_z,
    wilson,
)

LEVEL = 0.05


@pytest.fixture(autouse=True)
def _cheap_collections() -> Iterator[None]:
    gc.freeze()  # statsmodels collects garbage at every correction
    yield
    gc.unfreeze()


@cache
def interval(k: int, n: int) -> tuple[float, float]:
    found = wilson(Rate(k, n))
    return found.low, found.high


# Intervals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "rate"), [(40, 0.03), (40, 0.5), (200, 0.2), (1000, 0.99)])
def test_wilson_covers_as_often_as_the_sum_over_all_counts_says(n: int, rate: float) -> None:
    exact = math.fsum(binom.pmf(k, n, rate) for k in range(n + 1) if interval(k, n)[0] <= rate <= interval(k, n)[1])
    drawn = np.random.default_rng(1).binomial(n, rate, 4000).tolist()
    covered = sum(interval(k, n)[0] <= rate <= interval(k, n)[1] for k in drawn)
    assert inside(covered, 4000, exact)


def test_wilson_covers_at_its_nominal_rate_over_all_rates() -> None:
    rng = np.random.default_rng(2)
    truths = rng.uniform(0, 1, 6000)
    drawn = rng.binomial(80, truths).tolist()
    covered = sum(interval(k, 80)[0] <= truth <= interval(k, 80)[1] for k, truth in zip(drawn, truths, strict=True))
    assert inside(covered, 6000, 0.95)


def test_the_plain_interval_would_be_caught() -> None:
    drawn = np.random.default_rng(1).binomial(40, 0.03, 4000) / 40
    half = 1.96 * np.sqrt(drawn * (1 - drawn) / 40)
    covered = int(np.sum((drawn - half <= 0.03) & (drawn + half >= 0.03)))
    assert not at_least(covered, 4000, 0.95)


LOSSES, CHANCES = np.array([0, 2, 5, 10]), np.array([0.4, 0.3, 0.2, 0.1])


def _draw(seed: int, n: int) -> Mean:
    counts = np.random.default_rng(seed).multinomial(n, CHANCES).tolist()
    return Mean(tuple((float(value), count) for value, count in zip(LOSSES.tolist(), counts, strict=True)))


def test_the_bootstrap_covers_at_its_nominal_rate() -> None:
    truth = float(LOSSES @ CHANCES)
    found = [mean(_draw(seed, 400), f"calibration:{seed}", resamples=1999) for seed in range(1000)]
    assert all(one.method.startswith("BCa") for one in found)
    assert inside(sum(one.holds(truth) for one in found), 1000, 0.95)
    assert not at_least(sum(one.holds(truth * 1.2) for one in found), 1000, 0.95)  # another truth would be noticed


def test_a_mean_of_two_values_covers_like_its_rate() -> None:
    drawn = np.random.default_rng(3).binomial(120, 0.3, 1500).tolist()
    covered = sum(mean(Mean(((0.0, 120 - k), (10.0, k))), "s").holds(3.0) for k in drawn)
    exact = math.fsum(binom.pmf(k, 120, 0.3) for k in range(121) if interval(k, 120)[0] <= 0.3 <= interval(k, 120)[1])
    assert inside(covered, 1500, exact)


def test_a_rare_loss_within_bounds_covers_like_its_rate() -> None:
    # a loss of 0 or 10 with a rare 10: where no loss was seen, the interval must still reach the mean
    drawn = np.random.default_rng(4).binomial(100, 0.01, 2000).tolist()
    seen = [mean(Mean.of([0.0] * (100 - k) + [10.0] * k, (0, 10)), "s") for k in drawn]
    exact = math.fsum(binom.pmf(k, 100, 0.01) for k in range(101) if interval(k, 100)[0] <= 0.01 <= interval(k, 100)[1])
    assert inside(sum(one.holds(0.1) for one in seen), 2000, exact)
    assert any(one.value == 0 for one in seen)


CELLS = [(0.15, 0.1, 0.45, 0.3), (0.05, 0.05, 0.4, 0.5), (0.3, 0.02, 0.5, 0.18)]


def _tables(seed: int, cells: tuple[float, ...], n: int, times: int) -> list[Paired]:
    return [Paired(*row) for row in np.random.default_rng(seed).multinomial(n, cells, times).tolist()]


@pytest.mark.parametrize("cells", CELLS)
def test_the_paired_difference_covers_at_least_nominally(cells: tuple[float, ...]) -> None:
    tables = _tables(5, cells, 150, 3000)
    covered = sum(paired_difference(table).holds(cells[0] - cells[1]) for table in tables)
    assert at_least(covered, 3000, 0.95)
    assert at_most(covered, 3000, 0.975)  # and is no wider than it need be: not that of a confidence of 97.5 %
    assert not at_least(sum(paired_difference(t).holds(cells[0] - cells[1] + 0.1) for t in tables), 3000, 0.95)


def test_the_discordant_odds_cover_at_least_nominally() -> None:
    tables = _tables(6, CELLS[0], 150, 400)
    assert at_least(sum(discordant_odds(table).holds(1.5) for table in tables), 400, 0.95)
    assert not at_least(sum(discordant_odds(table).holds(4.0) for table in tables), 400, 0.95)


def test_the_difference_of_two_rates_covers_at_its_nominal_rate() -> None:
    rng = np.random.default_rng(7)
    pairs = list(zip(rng.binomial(150, 0.6, 1500).tolist(), rng.binomial(150, 0.45, 1500).tolist(), strict=True))
    found = [compare_rates(Rate(one, 150), Rate(two, 150)) for one, two in pairs]
    assert inside(sum(one.difference.holds(0.15) for one in found), 1500, 0.95)
    odds = (0.6 / 0.4) / (0.45 / 0.55)
    assert inside(sum(one.odds_ratio.holds(odds) for one in found), 1500, 0.95)


# Tests ---------------------------------------------------------------------------------------------------------------


def _size(p_value: object, share: float, n: int) -> float:
    """The chance of p <= LEVEL where there is no difference: the sum over every discordant table."""
    total = 0.0
    for discordant in range(n + 1):
        weight = binom.pmf(discordant, n, share)
        if weight < 1e-9:
            continue
        told = [b for b in range(discordant + 1) if p_value(Paired(b, discordant - b, 0, 1)) <= LEVEL]  # type: ignore[operator]  # a function
        total += weight * math.fsum(binom.pmf(b, discordant, 0.5) for b in told)
    return float(total)


def test_mcnemar_errs_no_more_than_its_level() -> None:
    tables = _tables(8, (0.1, 0.1, 0.4, 0.4), 150, 3000)
    exact = sum(mcnemar_exact(table) <= LEVEL for table in tables)
    mid = sum(mcnemar_mid_p(table) <= LEVEL for table in tables)
    assert at_most(exact, 3000, LEVEL)
    assert inside(mid, 3000, LEVEL)
    assert inside(exact, 3000, power_mcnemar(0.1, 0.1, 150))  # with no difference the power is the size
    assert exact < mid


def test_the_power_of_no_difference_is_the_size_by_enumeration() -> None:
    assert power_mcnemar(0.2, 0.2, 25) == pytest.approx(_size(mcnemar_exact, 0.4, 25), abs=1e-8)
    assert power_mcnemar(0.2, 0.2, 25) < LEVEL


@pytest.mark.parametrize(("b", "c"), [(0.15, 0.05), (0.3, 0.15)])
def test_mcnemar_finds_as_often_as_planned(b: float, c: float) -> None:
    n = pairs_for_mcnemar(b, c, power=0.8)
    planned = power_mcnemar(b, c, n)
    assert 0.8 <= planned < 0.83
    tables = _tables(9, (b, c, 0.3, 0.7 - b - c), n, 3000)
    assert inside(sum(mcnemar_exact(table) <= LEVEL for table in tables), 3000, planned)
    fewer = _tables(9, (b, c, 0.3, 0.7 - b - c), n // 2, 3000)
    assert not at_least(sum(mcnemar_exact(table) <= LEVEL for table in fewer), 3000, 0.8)


def test_two_rates_are_told_apart_as_often_as_planned() -> None:
    n = deals_for_two_rates(0.5, 0.65, power=0.9)
    planned = power_two_rates(0.5, 0.65, n)
    assert 0.9 <= planned < 0.91
    rng = np.random.default_rng(10)
    drawn = list(zip(rng.binomial(n, 0.5, 1500).tolist(), rng.binomial(n, 0.65, 1500).tolist(), strict=True))
    assert inside(sum(pooled_z(Rate(one, n), Rate(two, n)) <= LEVEL for one, two in drawn), 1500, planned)
    same = list(zip(rng.binomial(n, 0.5, 1500).tolist(), rng.binomial(n, 0.5, 1500).tolist(), strict=True))
    assert inside(
        sum(pooled_z(Rate(one, n), Rate(two, n)) <= LEVEL for one, two in same), 1500, power_two_rates(0.5, 0.5, n)
    )


def test_holm_errs_in_a_family_no_more_than_its_level() -> None:
    def families(seed: int) -> list[list[float]]:
        tables = _tables(seed, (0.2, 0.2, 0.3, 0.3), 200, 400 * 6)
        values = [mcnemar_mid_p(table) for table in tables]
        return [values[start : start + 6] for start in range(0, len(values), 6)]

    found = families(11)
    wrong = sum(min(adjust(family)) <= LEVEL for family in found)
    assert at_most(wrong, 400, LEVEL)
    assert wrong > 0
    assert not at_most(sum(min(family) <= LEVEL for family in found), 400, LEVEL)  # uncorrected would be caught


# Planning ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("half", "rate"), [(0.1, 0.5), (0.03, 0.5), (0.02, 0.1), (0.05, 0.0)])
def test_the_half_width_is_reached_and_one_deal_less_does_not_reach_it(half: float, rate: float) -> None:
    n = deals_for_half_width(half, rate)
    assert wilson_half_width(rate, n) <= half < wilson_half_width(rate, n - 1)
    if rate == 0.5:  # the worst case holds whatever comes
        assert all((interval(k, n)[1] - interval(k, n)[0]) / 2 <= half + 1e-12 for k in range(0, n + 1, 7))


def test_more_comparisons_ask_for_more_pairs() -> None:
    assert pairs_for_mcnemar(0.2, 0.1, comparisons=6) > pairs_for_mcnemar(0.2, 0.1)
    assert deals_for_two_rates(0.2, 0.1, comparisons=6) > deals_for_two_rates(0.2, 0.1)
    assert pairs_for_mcnemar(0.2, 0.1, power=0.95) > pairs_for_mcnemar(0.2, 0.1, power=0.8)


@pytest.mark.parametrize("difference", [0.05, 0.2])
def test_the_worst_case_is_one_and_its_plan_is_kept(difference: float) -> None:
    n = pairs_for_difference(difference, power=0.8, comparisons=6)
    for middle in (0.3, 0.5, 0.8):
        first, second = middle + difference / 2, middle - difference / 2
        apart = (first * (1 - second), second * (1 - first))  # nothing in common
        nested = (difference, 0.0)  # whoever has it under the second condition has it under the first
        assert power_mcnemar(*apart, n, LEVEL / 6) >= 0.79
        assert power_mcnemar(*nested, n, LEVEL / 6) >= 0.79
    worst = (((1 + difference) / 2) ** 2, ((1 - difference) / 2) ** 2)
    assert power_mcnemar(*worst, n // 2, LEVEL / 6) < 0.7
    told = difference_told(n, power=0.8, comparisons=6)
    assert told is not None
    assert abs(told - difference) <= 0.002


def test_a_plan_says_what_so_many_deals_can_show() -> None:
    assert "at most 0.049" in plan_of(400, 0)
    assert "comparisons" not in plan_of(400, 0)
    assert f"a difference of {difference_told(400, comparisons=6):.3f}" in plan_of(400, 6)
    assert difference_told(4) is None
    assert "no difference of shares is sure" in plan_of(4, 1)


def test_what_cannot_be_planned_is_refused() -> None:
    for ask, code in (
        (lambda: deals_for_half_width(0.0), "E_POWER_ARGUMENT"),
        (lambda: deals_for_half_width(math.nan), "E_POWER_ARGUMENT"),
        (lambda: pairs_for_mcnemar(0.2, 0.2), "E_POWER_ARGUMENT"),
        (lambda: pairs_for_mcnemar(0.7, 0.6), "E_POWER_ARGUMENT"),
        (lambda: pairs_for_difference(0.0), "E_POWER_ARGUMENT"),
        (lambda: deals_for_two_rates(0.5, 0.4, power=1.0), "E_POWER_ARGUMENT"),
        (lambda: deals_for_two_rates(0.5, 0.4, comparisons=0), "E_POWER_ARGUMENT"),
        (lambda: pairs_for_mcnemar(0.2, 0.19999), "E_POWER_UNREACHABLE"),
    ):
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.code == code


def test_the_bands_are_no_wider_than_they_must_be() -> None:
    low, high = band(1000, 0.95)
    assert 0.9 < low / 1000 < 0.95 < high / 1000 < 0.99
    assert not inside(low - 1, 1000, 0.95)
    assert not inside(high + 1, 1000, 0.95)
