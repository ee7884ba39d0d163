"""Measures are plain records: they count, they add up, and they refuse what cannot be a count."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.lab.measures import Arm, Criterion, Mean, Named, Paired, Rate

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30)


@given(PAIRS, PAIRS)
def test_counted_in_parts_is_counted_whole(left: list[tuple[bool, bool]], right: list[tuple[bool, bool]]) -> None:
    whole = Paired.of(left + right)
    assert Paired.of(left) + Paired.of(right) == whole
    assert whole.first == Rate.of(first for first, _ in left + right)
    assert whole.second == Rate.of(second for _, second in left) + Rate.of(second for _, second in right)
    assert whole.n == len(left) + len(right)


@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-5, 5)))
def test_values_add_up(left: list[int], right: list[int]) -> None:
    whole = Mean.of(left + right)
    assert Mean.of(left) + Mean.of(right) == whole
    assert sorted(left + right) == [value for value, count in whole.counts for _ in range(count)]
    assert whole.n == len(left + right)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Rate(2, 1),
        lambda: Rate(-1, 1),
        lambda: Rate(1.0, 2),  # type: ignore[arg-type]  # what is refused
        lambda: Rate(True, 2),
        lambda: Paired(1, 1, 1, -1),
        lambda: Mean(((1.0, -1),)),
        lambda: Mean(((2.0, 1), (1.0, 1))),
        lambda: Mean(((1.0, 1), (1.0, 1))),
        lambda: Mean(((math.nan, 1),)),
        lambda: Mean(((math.inf, 1),)),
        lambda: Mean(((1.0, 1),), (2.0, 3.0)),
        lambda: Criterion("F1", "a", "m", "==", 0.5, "must", "s"),
        lambda: Criterion("F1", "a", "m", ">=", 0.5, "perhaps", "s"),
    ],
)
def test_what_is_no_count_is_refused(made: object) -> None:
    with pytest.raises(ValueError):
        made()  # type: ignore[operator]  # each is a call


def test_nothing_counted_is_a_measure_too() -> None:
    assert Rate(0, 0) + Rate(0, 0) == Rate(0, 0)
    assert Mean(()).n == Mean.of([]).n == Paired(0, 0, 0, 0).n == 0


def test_bounds_stay_where_both_have_them() -> None:
    assert (Mean.of([0], (0, 10)) + Mean.of([10], (0, 10))).bounds == (0, 10)
    assert (Mean.of([0], (0, 10)) + Mean.of([10])).bounds is None


def test_an_arm_finds_its_measures_by_name() -> None:
    arm = Arm("honest", "All keep their word.", (Named("accepted", "A accepted.", "share of deals", Rate(1, 2)),))
    assert arm.of("accepted").measure == Rate(1, 2)
    with pytest.raises(KeyError):
        arm.of("disclosed")
