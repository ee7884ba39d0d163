"""The suites against their truths in closed form: over many seeds each figure lies in its interval as often as it says.

For a share over all deals of an arm the chance is exact: the sum over every count of the interval that it would give.
Where the number of such deals varies, or values are more than two, it is the nominal one, from below.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import pytest
from scipy.stats import binom

from lab.calibrating import at_least, inside
from troth.lab.falsification import built_in, decide
from troth.lab.inference import infer
from troth.lab.measures import Mean, Rate
from troth.lab.statistics import wilson
from troth.lab.suites import SUITES
from troth.lab.suites.playing import play_suite, report_of


@cache
def exact(n: int, truth: float) -> float:
    """The chance that Wilson's interval of a binomial count has its truth within."""
    return math.fsum(binom.pmf(k, n, truth) for k in range(n + 1) if wilson(Rate(k, n)).holds(truth))


def calibrate(suite_id: str, arms: set[str] | None, seeds: int, deals: int) -> int:
    """Play a suite from many seeds, hold every figure with a truth to its interval, and return how many there were."""
    suite = SUITES[suite_id]._replace(pairings=(), findings=lambda _: ())
    if arms is not None:
        suite = suite._replace(arms=tuple(arm for arm in suite.arms if arm.name in arms))
    covered: Counter[tuple[str, str]] = Counter()
    played: Counter[tuple[str, str]] = Counter()
    kinds: dict[tuple[str, str], tuple[bool, int, float]] = {}
    for seed in range(seeds):
        result = play_suite(suite, seed, deals)
        for one in infer(report_of(suite, seed, deals, result.rows, result.shown)).measured:
            if one.truth_inside is None or one.named.truth is None:
                continue
            key, measure = (one.arm.name, one.named.name), one.named.measure
            played[key] += 1
            covered[key] += one.truth_inside
            whole = isinstance(measure, Rate) and measure.n == len(result.rows.get(one.arm.name, range(measure.n)))
            kinds[key] = (whole and kinds.get(key, (True, 0, 0.0))[0], measure.n, one.named.truth)
    assert played
    for key, (whole, n, truth) in kinds.items():
        if whole:
            assert inside(covered[key], played[key], exact(n, truth)), (suite_id, *key, covered[key], played[key])
        else:
            # Wilson's own coverage of a rare rate dips below nominal: held against that of the typical count
            least = min(0.95, exact(n, truth)) if 0 < truth < 1 else 0.93
            assert at_least(covered[key], played[key], least), (suite_id, *key, covered[key], played[key])
    return len(kinds)


def test_consideration_lies_in_its_intervals() -> None:
    assert calibrate("B3", None, 100, 50) == 6


def test_a_noisy_checker_lies_in_its_intervals() -> None:
    assert calibrate("F6", {"noisy", "unsure"}, 80, 50) >= 6


def test_another_truth_would_be_noticed() -> None:
    suite = SUITES["B3"]
    arm = suite.arms[0]
    moved = arm._replace(
        measures=tuple(one._replace(truth=one.truth + 0.1) for one in arm.measures if one.truth is not None)
    )
    found = [
        one.truth_inside
        for seed in range(60)
        for result in [play_suite(suite._replace(arms=(moved,), pairings=()), seed, 100)]
        for one in infer(
            report_of(suite._replace(arms=(moved,), pairings=()), seed, 100, result.rows, result.shown)
        ).measured
    ]
    assert not at_least(sum(map(bool, found)), len(found), 0.95)


def test_a_loss_of_one_value_has_an_interval_within_what_a_deal_is_about() -> None:
    suite = SUITES["F1"]
    result = play_suite(suite, 1, 50)
    found = [
        one
        for one in infer(report_of(suite, 1, 50, result.rows, result.shown)).measured
        if isinstance(one.named.measure, Mean)
    ]
    assert found
    assert all(one.estimate.low is not None and one.truth_inside for one in found)


def told(suite_ids: list[str], deals: int | None) -> tuple[str, set[tuple[str, str, str]]]:
    """Play suites and return the built-in rule's word and what it calls missed."""
    reports = []
    for suite_id in suite_ids:
        suite = SUITES[suite_id]
        result = play_suite(suite, 1, deals)
        reports.append(report_of(suite, 1, result.deals, result.rows, result.shown))
    decision = decide(built_in(), reports)
    missed = {
        (one.criterion.suite, one.criterion.arm, one.criterion.measure)
        for one in decision.judged
        if one.outcome == "missed"
    }
    return decision.word, missed


WITHHELD = {("F1", "withheld", "loss"), ("F1", "accused", "loss")}


def test_what_the_built_in_rule_says_of_the_template_as_the_page_on_the_laboratory_tells_it() -> None:
    assert told(["F3"], 200) == ("keep", set())
    assert told(["F1", "F2"], 200) == ("revise", {*WITHHELD, ("F2", "stuffed", "false_pass")})


@pytest.mark.slow
def test_what_the_built_in_rule_says_of_all_suites() -> None:
    word, missed = told(list(SUITES), None)
    assert word == "revise"
    assert {*WITHHELD, ("F2", "stuffed", "false_pass"), ("F7", "dose_2", "fired")} <= missed


@pytest.mark.slow
@pytest.mark.parametrize("suite_id", list(SUITES))
def test_every_suite_lies_in_its_intervals(suite_id: str) -> None:
    assert calibrate(suite_id, None, 100, 60) >= 2
