"""How long a review will take: the wall that is proposed, and what it rests on (Impasse §11).

Pure: computed from rows of earlier runs (:mod:`troth.backends.metrics`), in exact fractions, so that the same rows
give the same number everywhere. Nothing is sent for it. ::

    tokens   = bytes / 4                       k = tokens / 1000
    seed     = base + rate * k                 rate by backend, effort and speed
    rate'    = p90 of max(0, duration - base) / max(k, 0.1), over the completed runs at the same settings
    estimate = max(base + rate' * k, p90 of the durations)                     from five such runs on
    wall     = estimate * 1.25, and 1.5 times a longer wall that such a payload exceeded already
    wall     = within 300 and 5400, up to the next 60
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

BASES: Final = {"codex": (180, 40)}
OTHERS: Final = (300, 70)
"""Seconds to begin with, and seconds for a thousand tokens."""

EFFORTS: Final = {
    "none": Fraction(3, 5), "low": Fraction(3, 4), "medium": Fraction(1),
    "high": Fraction(8, 5), "xhigh": Fraction(11, 5),
}  # fmt: skip
"""What the part for tokens is multiplied by; unset as medium."""

FAST: Final = Fraction(4, 5)
ENOUGH: Final = 5
"""Completed runs from which on they count."""

_LEAST_K: Final = Fraction(1, 10)
_MARGIN: Final = Fraction(5, 4)
_NEAR: Final = Fraction(6, 5)
_BEYOND: Final = Fraction(3, 2)
_LEAST, _MOST, _STEP = 300, 5400, 60


@dataclass(frozen=True, slots=True)
class Settings:
    """What makes two runs alike: the backend (its transport and the key of its endpoint), model, effort and speed."""

    backend: str
    endpoint: str
    model: str | None = None
    effort: str | None = None
    speed: str | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """One earlier run: its settings, the payload's bytes, the seconds it took, its wall, and how it ended.

    ``completed`` is true only where an answer came. ``exceeded`` is true where the wall ended it.
    """

    settings: Settings
    size: int
    seconds: float
    wall: float
    completed: bool
    exceeded: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """The wall that is proposed, in seconds, and what it rests on.

    Attributes:
        wall: a multiple of 60 from 300 to 5400.
        basis: ``empirical`` where it follows from earlier runs, else ``heuristic``.
        runs: completed runs at the same settings.
        tokens: that the payload is taken to have.
        notes: what else was decisive, in sentences.
    """

    wall: int
    basis: Literal["heuristic", "empirical"]
    runs: int
    tokens: int
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the members in which it is told."""
        return {
            "wall": self.wall,
            "basis": self.basis,
            "runs": self.runs,
            "estimated_tokens": self.tokens,
            "notes": list(self.notes),
        }


def nearest_rank(values: Iterable[Fraction], percent: int) -> Fraction:
    """Return the nearest-rank percentile: the smallest value that at least ``percent`` of all do not exceed.

    Raises:
        ValueError: there is no value.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("a percentile of nothing")
    return ordered[max(1, math.ceil(Fraction(percent * len(ordered), 100))) - 1]


def _median(values: Sequence[Fraction]) -> Fraction:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def seed(settings: Settings, size: int) -> Fraction:
    """Return the seconds that a payload takes where nothing is known, before any margin."""
    base, rate = BASES.get(settings.backend, OTHERS)
    factor = EFFORTS.get(settings.effort, Fraction(1)) if settings.effort is not None else Fraction(1)
    speed = FAST if settings.speed == "fast" else Fraction(1)
    return base + rate * factor * speed * Fraction(size, 4000)


def unrounded(
    settings: Settings, size: int, rows: Iterable[Timing]
) -> tuple[Fraction, Literal["heuristic", "empirical"], tuple[str, ...]]:
    """Return the seconds before limits and rounding, what they rest on, and what else was decisive."""
    alike = [row for row in rows if row.settings == settings]
    done = [row for row in alike if row.completed]
    tokens, k = Fraction(size, 4), Fraction(size, 4000)
    base, _ = BASES.get(settings.backend, OTHERS)
    seconds = seed(settings, size)
    basis: Literal["heuristic", "empirical"] = "heuristic"
    notes: list[str] = []
    if len(done) >= ENOUGH:
        durations = [Fraction(row.seconds) for row in done]
        rate = nearest_rank(
            (
                max(Fraction(0), duration - base) / max(Fraction(row.size, 4000), _LEAST_K)
                for row, duration in zip(done, durations, strict=True)
            ),
            90,
        )
        fitted = max(base + rate * k, nearest_rank(durations, 90))
        if tokens > 2 * _median([Fraction(row.size, 4) for row in done]) and seconds > fitted:
            notes.append("the payload is more than twice as large as those of the earlier runs, so they do not count")
        else:
            seconds, basis = fitted, "empirical"
    seconds *= _MARGIN
    walls = [Fraction(row.wall) for row in alike if row.exceeded and size <= 2 * row.size and row.size <= 2 * size]
    if walls and seconds <= _NEAR * max(walls):
        seconds = _BEYOND * max(walls)
        notes.append(f"a payload of about this size has exceeded {float(max(walls)):g} seconds before")
    return seconds, basis, tuple(notes)


def estimate(settings: Settings, size: int, rows: Iterable[Timing]) -> Estimate:
    """Return the wall for a payload of ``size`` bytes.

    Args:
        settings: of the run to come.
        size: of the payload, in bytes.
        rows: of earlier runs, in any order, those at other settings too; they are passed over.
    """
    held = list(rows)
    seconds, basis, notes = unrounded(settings, size, held)
    within = min(max(seconds, Fraction(_LEAST)), Fraction(_MOST))
    runs = sum(row.completed and row.settings == settings for row in held)
    return Estimate(math.ceil(within / _STEP) * _STEP, basis, runs, size // 4, notes)
