"""Bands in which a count over many seeds must lie when the laboratory is right: computed, never typed."""

from __future__ import annotations

from typing import Final

from scipy.stats import binom

DOUBT: Final = 1e-4
"""Chance that a right laboratory is called wrong by one check; seeds are fixed, so a check that passes stays passed."""


def band(trials: int, chance: float) -> tuple[int, int]:
    """Return the counts between which ``trials`` of that chance lie but for :data:`DOUBT`."""
    low, high = binom.interval(1 - DOUBT, trials, chance)
    return int(low), int(high)


def inside(count: int, trials: int, chance: float) -> bool:
    """Tell whether a count is one that ``trials`` of that chance give."""
    low, high = band(trials, chance)
    return low <= count <= high


def at_most(count: int, trials: int, chance: float) -> bool:
    """Tell whether a count is no more than ``trials`` of that chance or less give."""
    return count <= band(trials, chance)[1]


def at_least(count: int, trials: int, chance: float) -> bool:
    """Tell whether a count is no less than ``trials`` of that chance or more give."""
    return count >= band(trials, chance)[0]
