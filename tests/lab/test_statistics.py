"""Each statistic against a second source, and at its edges."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from troth.lab.measures import Comparison, Mean, Paired, Rate
from troth.lab.statistics import (
    CORRECTIONS,
    adjust,
    cohens_h,
    compare,
    compare_pairs,
    compare_rates,
    discordant_odds,
    estimate,
    mcnemar_exact,
    mcnemar_mid_p,
    mean,
    paired_difference,
    pooled_z,
    wilson,
)

RATES = st.integers(1, 400).flatmap(lambda n: st.builds(Rate, st.integers(0, n), st.just(n)))
CELLS = st.builds(Paired, *[st.integers(0, 40)] * 4)
Z = 1.959963984540054


# Second sources ------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(RATES)
def test_wilson_is_the_closed_form_and_statsmodels(rate: Rate) -> None:
    found = wilson(rate)
    share, n = rate.k / rate.n, rate.n
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half), abs=1e-12)
    assert (found.low, found.high) == pytest.approx(proportion_confint(rate.k, n, method="wilson"), abs=1e-12)
    assert found.value == share
    assert found.holds(share)


@settings(max_examples=60, deadline=None)
@given(CELLS)
def test_mcnemar_is_the_sum_of_binomials(pairs: Paired) -> None:
    discordant, less = pairs.b + pairs.c, min(pairs.b, pairs.c)
    weights = [Fraction(comb(discordant, k), 2**discordant) for k in range(less + 1)]
    exact, mid = min(Fraction(1), 2 * sum(weights)), min(Fraction(1), 2 * sum(weights) - weights[-1])
    if pairs.n == 0:
        assert mcnemar_exact(pairs) is mcnemar_mid_p(pairs) is None
        return
    assert mcnemar_exact(pairs) == pytest.approx(float(exact), rel=1e-9)
    assert mcnemar_mid_p(pairs) == pytest.approx(float(mid), rel=1e-9)
    mirrored = Paired(pairs.c, pairs.b, pairs.both, pairs.neither)
    assert mcnemar_exact(mirrored) == mcnemar_exact(pairs)


@settings(max_examples=60, deadline=None)
@given(CELLS)
def test_the_paired_difference_is_antisymmetric_and_in_its_interval(pairs: Paired) -> None:
    found = paired_difference(pairs)
    if pairs.n == 0:
        assert found.value is found.low is None
        return
    other = paired_difference(Paired(pairs.c, pairs.b, pairs.both, pairs.neither))
    assert found.value == pytest.approx(pairs.first.k / pairs.n - pairs.second.k / pairs.n, abs=1e-12)
    assert found.value == -other.value
    assert (found.low, found.high) == pytest.approx((-other.high, -other.low), abs=1e-12)
    assert found.low < found.high


@settings(max_examples=60, deadline=None)
@given(RATES, RATES)
def test_two_rates_are_newcombe_and_the_chi_square(first: Rate, second: Rate) -> None:
    found = compare_rates(first, second)
    one, two = wilson(first), wilson(second)
    gap = one.value - two.value
    low = gap - math.hypot(one.value - one.low, two.high - two.value)
    high = gap + math.hypot(one.high - one.value, two.value - two.low)
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high), abs=1e-9)
    table = [[first.k, first.n - first.k], [second.k, second.n - second.k]]
    if 0 < first.k + second.k < first.n + second.n:
        assert found.p == pytest.approx(scipy.stats.chi2_contingency(table, correction=False).pvalue, rel=1e-6)
    else:
        assert found.p == 1.0


@settings(max_examples=60, deadline=None)
@given(RATES, RATES)
def test_cohens_h_is_the_closed_form(first: Rate, second: Rate) -> None:
    closed = 2 * math.asin(math.sqrt(first.k / first.n)) - 2 * math.asin(math.sqrt(second.k / second.n))
    assert cohens_h(first, second) == pytest.approx(closed, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_is_the_step_down(values: list[float]) -> None:
    order = sorted(range(len(values)), key=values.__getitem__)
    stepped: dict[int, float] = {}
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        stepped[place] = highest
    assert adjust(values) == pytest.approx([stepped[place] for place in range(len(values))], abs=1e-12)


def test_what_was_not_tested_does_not_count_in_the_family() -> None:
    assert adjust([0.01, None, 0.04]) == pytest.approx([0.02, None, 0.04])
    assert adjust([None]) == [None]
    assert adjust([0.01, 0.04], "bonferroni") == pytest.approx([0.02, 0.08])
    assert adjust([0.01, 0.04], "benjamini-hochberg") == pytest.approx([0.02, 0.04])
    with pytest.raises(KeyError):
        adjust([0.01], "none at all")
    assert {"holm", "bonferroni", "benjamini-hochberg"} == set(CORRECTIONS)


def test_the_bootstrap_agrees_with_scipys() -> None:
    values = [0] * 60 + [3] * 25 + [10] * 12 + [40] * 3
    found = mean(Mean.of(values), "one", resamples=20_000)
    theirs = scipy.stats.bootstrap(
        (np.array(values, dtype=float),), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(5)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert found.value == pytest.approx(np.mean(values))
    assert found.low == pytest.approx(theirs.low, abs=width / 40)
    assert found.high == pytest.approx(theirs.high, abs=width / 40)


def test_the_bootstrap_is_its_seeds() -> None:
    measured = Mean.of([0, 1, 2, 3, 4] * 9)
    assert mean(measured, "17:F1:loss") == mean(measured, "17:F1:loss")
    assert mean(measured, "17:F1:loss") != mean(measured, "18:F1:loss")


# Edges ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 500])
def test_none_and_all_have_one_sided_room(n: int) -> None:
    none, every = wilson(Rate(0, n)), wilson(Rate(n, n))
    assert none.value == none.low == 0.0
    assert none.high == pytest.approx(Z * Z / (n + Z * Z))
    assert every.value == every.high == 1.0
    assert every.low == pytest.approx(n / (n + Z * Z))


def test_no_deals_say_nothing() -> None:
    for found in (wilson(Rate(0, 0)), estimate(Mean(()), "s"), compare_rates(Rate(0, 0), Rate(1, 2)).difference):
        assert found.value is found.low is found.high is None
        assert not found.holds(0.0)
    assert compare_pairs(Paired(0, 0, 0, 0)).p is None
    assert compare_pairs(Paired(0, 0, 0, 0)).cohens_h is None
    assert pooled_z(Rate(0, 0), Rate(1, 1)) is None
    assert compare_rates(Rate(0, 0), Rate(1, 2)).p is None


def test_pairs_that_all_agree_are_no_evidence_and_have_an_interval() -> None:
    found = compare_pairs(Paired(0, 0, 30, 70))
    assert found.p == found.mid_p == 1.0
    assert found.difference.value == 0.0
    assert found.difference.low == pytest.approx(-found.difference.high)
    assert 0 < found.difference.high < 0.05
    assert found.odds_ratio.value is None
    assert found.cohens_h == 0.0


def test_an_empty_side_of_the_discordant_pairs_is_unbounded() -> None:
    found = discordant_odds(Paired(8, 0, 1, 1))
    assert found.value is None
    assert found.high is None
    assert found.low == pytest.approx(0.025 ** (1 / 8) / (1 - 0.025 ** (1 / 8)))  # Clopper-Pearson in closed form
    mirrored = discordant_odds(Paired(0, 8, 1, 1))
    assert (mirrored.value, mirrored.low) == (0.0, 0.0)
    assert mirrored.high == pytest.approx(1 / found.low)


def test_one_value_alone_has_an_interval_only_where_its_bounds_are_known() -> None:
    alone = mean(Mean.of([10] * 200), "s")
    assert (alone.value, alone.low, alone.high) == (10.0, None, None)
    bounded = mean(Mean.of([10] * 200, (0, 10)), "s")
    assert bounded.low == pytest.approx(10 * wilson(Rate(200, 200)).low)
    assert bounded.high == 10.0


def test_two_values_are_a_rate_on_another_scale() -> None:
    found, share = mean(Mean.of([0] * 70 + [10] * 30), "s"), wilson(Rate(30, 100))
    assert (found.value, found.low, found.high) == pytest.approx((3.0, 10 * share.low, 10 * share.high))


def test_odds_of_an_empty_cell_are_not_made_up() -> None:
    assert compare_rates(Rate(0, 10), Rate(5, 10)).odds_ratio.value is None
    plain = compare_rates(Rate(2, 10), Rate(5, 10)).odds_ratio
    assert plain.value == pytest.approx((2 / 8) / (5 / 5))
    assert plain.low < plain.value < plain.high


def test_confidence_widens_every_interval() -> None:
    pairs, rates = Paired(9, 4, 20, 17), (Rate(9, 30), Rate(14, 31))
    for wide, narrow in (
        (wilson(rates[0], 0.99), wilson(rates[0], 0.9)),
        (paired_difference(pairs, 0.99), paired_difference(pairs, 0.9)),
        (discordant_odds(pairs, 0.99), discordant_odds(pairs, 0.9)),
        (compare_rates(*rates, 0.99).difference, compare_rates(*rates, 0.9).difference),
        (compare_rates(*rates, 0.99).odds_ratio, compare_rates(*rates, 0.9).odds_ratio),
        (mean(Mean.of([1, 2, 3, 9]), "s", 0.99), mean(Mean.of([1, 2, 3, 9]), "s", 0.9)),
    ):
        assert wide.low < narrow.low < narrow.high < wide.high


def test_a_comparison_goes_by_what_it_holds() -> None:
    pairs, rates = Paired(9, 4, 20, 17), (Rate(9, 30), Rate(14, 31))
    assert compare(Comparison("cash", "both", "accepted", "s", pairs)) == compare_pairs(pairs)
    assert compare(Comparison("cash", "both", "accepted", "s", rates)) == compare_rates(*rates)
