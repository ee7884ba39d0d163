"""How many deals it takes: by a half-width for one rate, by a stated power for two rates and for pairs.

Powers are exact for the very tests that :mod:`troth.lab.statistics` makes (the sum over every table that can come, not
a normal approximation), so that what is promised here can be checked there. With several comparisons in one family the
level of each is the family's divided by their number: what Holm's first step asks, so the promise is on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from troth.core.errors import Refused

LEVEL: Final = 0.05
"""Two-sided level of every test unless told otherwise."""

MOST: Final = 10_000_000
"""More deals (or pairs) than this are not planned for."""

_UNLIKELY: Final = 1e-10
"""Tables less likely than this on either side do not change a power that is printed with four digits."""

CODES: Final[dict[str, str]] = {
    "E_POWER_ARGUMENT": "A rate, power, level or width that planning cannot work with.",
    "E_POWER_UNREACHABLE": "No number of deals that the laboratory plans for reaches the stated power.",
}
"""Refusals of planning."""


def wilson_half_width(rate: float, n: int, confidence: float = 0.95) -> float:
    """Return half the width of Wilson's interval for an observed rate over ``n`` deals; widest at one half."""
    z = _z((1 + confidence) / 2)
    return float(z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n))


def deals_for_half_width(half: float, rate: float = 0.5, confidence: float = 0.95) -> int:
    """Return the least number of deals at which Wilson's interval is no wider than ``half`` to each side.

    Args:
        half: half the width, a share between 0 and 0.5.
        rate: the rate expected; the default is the worst case and so a guarantee.
        confidence: of the interval.

    Raises:
        Refused: ``E_POWER_ARGUMENT``, ``E_POWER_UNREACHABLE``.
    """
    _within("half-width", half, 0, 0.5)
    _within("rate", rate, 0, 1, closed=True)
    _within("confidence", confidence, 0, 1)
    return _least(lambda n: wilson_half_width(rate, n, confidence) <= half)


def power_two_rates(first: float, second: float, n: int, level: float = LEVEL) -> float:
    """Return the chance that the pooled z-test tells two rates apart, ``n`` deals in each arm."""
    import numpy as np
    from scipy.stats import binom  # type: ignore[import-untyped]  # ships no types

    cut = _z(1 - level / 2)

    def outcomes(rate: float) -> tuple[Any, Any]:
        low, high = binom.ppf([_UNLIKELY, 1 - _UNLIKELY], n, rate)
        k = np.arange(int(low), int(high) + 1)
        return k, binom.pmf(k, n, rate)

    k1, p1 = outcomes(first)
    k2, p2 = outcomes(second)
    power = 0.0
    for k, p in zip(k1, p1, strict=True):
        pooled = (k + k2) / (2 * n)
        variance = pooled * (1 - pooled) * 2 / n
        # sides compared as squares: no division where all or none had the property
        told = ((k - k2) / n) ** 2 > cut * cut * variance
        power += float(p * p2[told].sum())
    return power


def deals_for_two_rates(
    first: float, second: float, power: float = 0.8, level: float = LEVEL, comparisons: int = 1
) -> int:
    """Return how many deals each arm needs for the pooled z-test to tell two rates apart with that power.

    Args:
        first, second: the rates to be told apart.
        power: the chance wanted.
        level: of the family of comparisons, two-sided.
        comparisons: how many there are in the family.

    Raises:
        Refused: ``E_POWER_ARGUMENT``, ``E_POWER_UNREACHABLE``.
    """
    _within("rate", first, 0, 1, closed=True)
    _within("rate", second, 0, 1, closed=True)
    _asked(power, level, comparisons, differs=first != second)
    return _least(lambda n: power_two_rates(first, second, n, level / comparisons) >= power)


def power_mcnemar(b: float, c: float, n: int, level: float = LEVEL) -> float:
    """Return the chance that McNemar's exact test tells the conditions apart over ``n`` pairs.

    Args:
        b: the chance that a pair has the property under the first condition only.
        c: under the second only.
        n: how many pairs.
        level: two-sided.
    """
    import numpy as np
    from scipy.stats import binom

    if b + c == 0:
        return 0.0
    low, high = binom.ppf([_UNLIKELY, 1 - _UNLIKELY], n, b + c)
    discordant = np.arange(int(low), int(high) + 1)
    # the greatest smaller cell that is still significant, -1 where none is
    critical = binom.ppf(level / 2, discordant, 0.5)
    critical = np.where(2 * binom.cdf(critical, discordant, 0.5) > level, critical - 1, critical)
    share = b / (b + c)
    told = binom.cdf(critical, discordant, share) + binom.sf(discordant - critical - 1, discordant, share)
    return float(binom.pmf(discordant, n, b + c) @ np.where(critical < 0, 0.0, told))


def pairs_for_mcnemar(b: float, c: float, power: float = 0.8, level: float = LEVEL, comparisons: int = 1) -> int:
    """Return how many pairs McNemar's exact test needs for that power; arguments as in :func:`power_mcnemar`.

    Raises:
        Refused: ``E_POWER_ARGUMENT``, ``E_POWER_UNREACHABLE``.
    """
    _within("rate", b, 0, 1, closed=True)
    _within("rate", c, 0, 1, closed=True)
    _within("sum of the discordant rates", b + c, 0, 1, closed=True)
    _asked(power, level, comparisons, differs=b != c)
    return _least(lambda n: power_mcnemar(b, c, n, level / comparisons) >= power)


def pairs_for_difference(difference: float, power: float = 0.8, level: float = LEVEL, comparisons: int = 1) -> int:
    """Return how many pairs tell a difference of two rates with that power, whatever the rates and the pairing.

    It is the worst case that common seeds can come to: rates around one half, and deals of a pair that have nothing in
    common. Pairs that agree more often than by chance need fewer.

    Raises:
        Refused: ``E_POWER_ARGUMENT``, ``E_POWER_UNREACHABLE``.
    """
    _within("difference", difference, 0, 1)
    return pairs_for_mcnemar(*_worst(difference), power, level, comparisons)


def difference_told(pairs: int, power: float = 0.8, level: float = LEVEL, comparisons: int = 1) -> float | None:
    """Return the difference that so many pairs tell with that power in the worst case, up to a thousandth.

    ``None`` when not even a difference of nearly 1 is told.
    """
    low, high = 0, 999
    if power_mcnemar(*_worst(high / 1000), pairs, level / comparisons) < power:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        told = power_mcnemar(*_worst(middle / 1000), pairs, level / comparisons) >= power
        low, high = (low, middle) if told else (middle, high)
    return high / 1000


def _worst(difference: float) -> tuple[float, float]:
    """Return the discordant rates of independent deals at rates that lie around one half."""
    first, second = (1 + difference) / 2, (1 - difference) / 2
    return first * (1 - second), second * (1 - first)


def plan_of(deals: int, comparisons: int, power: float = 0.8) -> str:
    """Say in a sentence or two what so many deals of each arm can show."""
    told = f"{deals} deals of each condition: the interval of a share over all of them is at most "
    told += f"{wilson_half_width(0.5, deals):.3f} to each side."
    if comparisons:
        found = difference_told(deals, power, comparisons=comparisons)
        family = f"with {comparisons} comparisons in the family"
        told += (
            f" In pairs and {family} no difference of shares is sure to be found with power {power:g}."
            if found is None
            else f" In pairs and {family} a difference of {found:.3f} is found with power {power:g} or more, "
            "whatever the shares."
        )
    return told


def _least(enough: Callable[[int], bool]) -> int:
    """Return the least number that is enough, where more is; exact tests waver by a few, and then it is one of them."""
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST:
            raise Refused(
                "E_POWER_UNREACHABLE",
                f"more than {MOST:,} deals would be needed",
                remedy="Ask for less power, a wider interval or a greater difference.",
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def _asked(power: float, level: float, comparisons: int, *, differs: bool) -> None:
    _within("power", power, 0, 1)
    _within("level", level, 0, 1)
    if comparisons < 1:
        raise Refused("E_POWER_ARGUMENT", f"{comparisons} comparisons", remedy="Name at least one.")
    if not differs:
        raise Refused("E_POWER_ARGUMENT", "the two rates are the same", remedy="Name the difference to be told apart.")


def _within(name: str, value: float, low: float, high: float, *, closed: bool = False) -> None:
    if not (low <= value <= high if closed else low < value < high):
        raise Refused(
            "E_POWER_ARGUMENT",
            f"the {name} is {value}",
            remedy=f"Give a number {'from' if closed else 'between'} {low} {'to' if closed else 'and'} {high}.",
        )


def _z(share: float) -> float:
    from scipy.stats import norm

    return float(norm.ppf(share))
