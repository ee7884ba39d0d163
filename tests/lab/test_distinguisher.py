"""F-D′: nothing in the bytes that A sees tells a forged deal; the same distinguisher finds one planted byte."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from lab.calibrating import inside
from troth.lab.distinguisher import Told, distinguish, measured, plant, views
from troth.lab.measures import Rate
from troth.lab.playing import FORGERIES

COUNT = 200


@cache
def honest() -> list[bytes]:
    return views(None, 5, 0, COUNT)


@cache
def forged(kind: str = "forged_hold") -> list[bytes]:
    return views(kind, 5, COUNT, COUNT)


def test_the_views_differ_from_deal_to_deal() -> None:
    assert len(set(honest())) > COUNT * 2 // 3
    assert {b"Accept" in view for view in honest()} == {True, False}
    assert {b"Disclosure" in view for view in honest()} == {True, False}
    assert b"deceptive" not in b"".join(forged())


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forged_deal_is_not_told_from_an_honest_one(kind: str) -> None:
    told = distinguish(honest(), forged(kind), "one")
    assert not told.beats_chance
    assert told.accuracy.holds(0.5)
    assert told.features > 100  # there was plenty to go by


def test_twins_are_told_in_exactly_half_of_the_cases() -> None:
    # the honest and the forged deal of one index are the same bytes: whatever is said of both is right once
    twins = views("forged_hold", 5, 0, COUNT)
    assert twins == honest()
    told = distinguish(honest(), twins, "one")
    assert told.right == Rate(COUNT // 2, COUNT)
    assert told.area == pytest.approx(0.5)


LEAKS: dict[str, Callable[[bytes], bytes]] = {
    "a byte behind it": lambda view: view + b" ",
    "a byte within": lambda view: view.replace(b'"amount":', b'"amount": ', 1),
    "the case of one letter": lambda view: view.replace(b"sim_points", b"sim_Points", 1),
    "two bytes changed about": lambda view: view.replace(b"C_id_stub", b"C_id_tsub", 1),
    "a digit": lambda view: view.replace(b"00:00:00Z", b"00:00:09Z", 1),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_one_planted_byte_is_found(leak: str) -> None:
    told = distinguish(honest(), [plant(view, LEAKS[leak]) for view in forged()], "one")
    assert told.accuracy.value is not None
    assert told.accuracy.value > 0.9
    assert told.accuracy.low is not None
    assert told.accuracy.low > 0.9
    assert told.beats_chance
    assert told.area > 0.95


def test_a_leak_in_some_views_is_found_as_far_as_it_goes() -> None:
    some = [plant(view, LEAKS["a byte within"]) if number % 2 else view for number, view in enumerate(forged())]
    told = distinguish(honest(), some, "one")
    assert told.beats_chance
    assert told.right.k < told.right.n


def test_over_many_seeds_it_is_right_in_half_of_the_cases() -> None:
    right = Rate(0, 0)
    found: list[Told] = []
    for seed in range(10):
        one = distinguish(views(None, seed, 0, 40), views("forged_honesty", seed, 40, 40), "many")
        found.append(one)
        right += one.right
    assert inside(right.k, right.n, 0.5)
    said = sum(one.beats_chance for one in found)
    assert said <= binom.isf(1e-4, len(found), 0.05)  # its interval calls chance more than chance no more than it may


def test_halves_are_drawn_by_the_seed_and_nothing_else() -> None:
    some, others = honest()[:40], forged()[:40]
    one = distinguish(some, others, "one")
    assert distinguish(some, others, "one") == one
    assert distinguish(some, others, "two").area != one.area


def test_the_arm_of_f_d_prime_has_its_truth_within() -> None:
    arm = measured(3, 60)
    assert [named.name for named in arm.measures] == [f"told_{kind}" for kind in FORGERIES]
    for named in arm.measures:
        assert named.truth == 0.5
        assert isinstance(named.measure, Rate)
        assert inside(named.measure.k, named.measure.n, 0.5)


def test_what_cannot_be_judged_is_an_error() -> None:
    with pytest.raises(ValueError):
        distinguish([b"a"] * 4, [b"b"] * 5, "s")
    with pytest.raises(ValueError):
        distinguish([b"a"] * 3, [b"b"] * 3, "s")
    with pytest.raises(ValueError):
        plant(b"a", lambda view: view)


def test_views_that_are_all_the_same_or_empty_are_judged_too() -> None:
    assert distinguish([b""] * 4, [b""] * 4, "s").right == Rate(2, 4)
    assert distinguish([b"same"] * 8, [b"same"] * 8, "s").features == 0
    rng = np.random.default_rng(1)
    noise = [rng.bytes(300) for _ in range(80)]
    assert inside(distinguish(noise[:40], noise[40:], "s").right.k, 40, 0.5)
    assert distinguish(noise[:40], [view + b"\0\0" for view in noise[40:]], "s").right.n == 40
