"""What the laboratory measures, as plain frozen records: counts and values, and how they hang together (§6).

Nothing here estimates anything: a suite counts, :mod:`troth.lab.statistics` infers, :mod:`troth.lab.report` tells.
Measures of a kind add up, so that a run counted in parts comes to the same as one counted whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of ``n`` independent deals had a property: ``k``, with ``0 <= k <= n``."""

    k: int
    n: int

    def __post_init__(self) -> None:
        _counts(self.k, self.n)
        if self.k > self.n:
            raise ValueError(f"{self.k} of {self.n}")

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.k + other.k, self.n + other.n)

    @classmethod
    def of(cls, held: Iterable[bool]) -> Rate:
        """Count what holds."""
        k = n = 0
        for one in held:
            n += 1
            k += bool(one)
        return cls(k, n)


@dataclass(frozen=True, slots=True)
class Mean:
    """Values of independent deals, each distinct one with how often it came, ascending: ``((value, count), …)``.

    ``bounds`` are the least and the greatest value that a deal can have, where they are known (points at stake).
    """

    counts: tuple[tuple[float, int], ...]
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _counts(*(count for _, count in self.counts))
        values = [value for value, _ in self.counts]
        if not all(map(math.isfinite, values)):
            raise ValueError("a value is no finite number")
        if any(left >= right for left, right in pairwise(values)):
            raise ValueError("values are not ascending and distinct")
        if self.bounds is not None and values and not self.bounds[0] <= values[0] <= values[-1] <= self.bounds[1]:
            raise ValueError("a value is out of its bounds")

    def __add__(self, other: Mean) -> Mean:
        total: Counter[float] = Counter(dict(self.counts))
        total.update(dict(other.counts))
        known = self.bounds is not None and self.bounds == other.bounds
        return Mean(tuple(sorted(total.items())), self.bounds if known else None)

    @classmethod
    def of(cls, values: Iterable[float], bounds: tuple[float, float] | None = None) -> Mean:
        """Count values."""
        return cls(tuple(sorted(Counter(values).items())), bounds)

    @property
    def n(self) -> int:
        """How many values."""
        return sum(count for _, count in self.counts)


@dataclass(frozen=True, slots=True)
class Paired:
    """Pairs of deals with the same seed under two conditions, by which of the two had a property.

    ``both`` and ``neither`` agree; ``b`` had it under the first condition only, ``c`` under the second only.
    """

    b: int
    c: int
    both: int
    neither: int

    def __post_init__(self) -> None:
        _counts(self.b, self.c, self.both, self.neither)

    def __add__(self, other: Paired) -> Paired:
        return Paired(self.b + other.b, self.c + other.c, self.both + other.both, self.neither + other.neither)

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> Paired:
        """Count pairs (first, second)."""
        table = Counter((bool(first), bool(second)) for first, second in pairs)
        return cls(table[True, False], table[False, True], table[True, True], table[False, False])

    @property
    def n(self) -> int:
        """How many pairs."""
        return self.b + self.c + self.both + self.neither

    @property
    def first(self) -> Rate:
        """The rate under the first condition."""
        return Rate(self.both + self.b, self.n)

    @property
    def second(self) -> Rate:
        """The rate under the second condition."""
        return Rate(self.both + self.c, self.n)


Measure: TypeAlias = Rate | Mean


@dataclass(frozen=True, slots=True)
class Named:
    """One measure of one arm.

    Attributes:
        name: a short name, unique in its arm, the same in every arm that measures it (``accepted``).
        sentence: what it is, in one sentence for people.
        unit: the unit of its value: ``share of deals``, ``points a deal``.
        measure: what was counted.
        truth: the value it must have, where the policies' closed form gives it.
    """

    name: str
    sentence: str
    unit: str
    measure: Measure
    truth: float | None = None


@dataclass(frozen=True, slots=True)
class Arm:
    """One condition of a suite, and what was measured under it.

    ``dose`` is its place on the suite's axis (:attr:`Report.axis`) where its arms differ in an amount of something.
    """

    name: str
    sentence: str
    measures: tuple[Named, ...]
    dose: float | None = None

    def of(self, name: str) -> Named:
        """Return the measure of that name.

        Raises:
            KeyError: there is none.
        """
        for one in self.measures:
            if one.name == name:
                return one
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two conditions against each other by one property: pairs with the same seeds, or two independent rates.

    ``first`` and ``second`` name the conditions (arms); with ``Paired`` counts ``b`` is the first's.
    ``measure`` is the name of what is compared.
    """

    first: str
    second: str
    measure: str
    sentence: str
    counts: Paired | tuple[Rate, Rate]


@dataclass(frozen=True, slots=True)
class Demanded:
    """What every deal of an arm had to show, and of how many of its ``n`` deals it held: ``k``."""

    arm: str
    sentence: str
    k: int
    n: int

    def __post_init__(self) -> None:
        _counts(self.k, self.n)
        if self.k > self.n:
            raise ValueError(f"{self.k} of {self.n}")

    @property
    def holds(self) -> bool:
        """Whether it held in every deal."""
        return self.k == self.n


@dataclass(frozen=True, slots=True)
class Reference:
    """A range of rates from somewhere else, drawn as a band and labelled as another setting; never compared."""

    name: str
    low: float
    high: float
    sentence: str


@dataclass(frozen=True, slots=True)
class Criterion:
    """One line of a falsification rule: a bound that a measure of one arm of one suite is held to.

    Attributes:
        suite, arm, measure: whose value.
        sense: ``>=`` (it must be at least ``bound``) or ``<=`` (at most).
        bound: in the measure's unit.
        grade: ``must`` (a template that misses it is retired) or ``should`` (it is revised).
        sentence: why it matters, for people.
    """

    suite: str
    arm: str
    measure: str
    sense: str
    bound: float
    grade: str
    sentence: str

    def __post_init__(self) -> None:
        if self.sense not in (">=", "<="):
            raise ValueError(f"a criterion's sense is >= or <=, not {self.sense}")
        if self.grade not in ("must", "should"):
            raise ValueError(f"a criterion's grade is must or should, not {self.grade}")


@dataclass(frozen=True, slots=True)
class Rule:
    """The falsification rule of a template (source §7 C9), fixed in the configuration before the run.

    Attributes:
        criteria: what the template is held to, over all suites.
        confidence: of all its intervals together (Bonferroni: each has ``1 - (1 - confidence) / criteria``).
        least: with fewer deals in an arm nothing is decided about it.
        source: where it stands (``built in``, or the configuration's name).
    """

    criteria: tuple[Criterion, ...]
    confidence: float = 0.95
    least: int = 100
    source: str = "built in"


@dataclass(frozen=True, slots=True)
class Report:
    """A suite's results, as they are told.

    Attributes:
        suite: its id (``F1``, ``F-D′``, ``B3``).
        title: what it is about, in a few words.
        sentence: what happens in it, and what the protocol must show.
        command: the exact command that gives the same bytes again.
        seed: the seed from which every deal's is derived.
        derivation: how, in one sentence.
        deals: how many deals were played.
        arms: the conditions, in the order in which they are shown.
        comparisons: what is compared; all of a report are one family for the correction.
        references: ranges from other settings.
        rule: the falsification rule as it stood before the run, or nothing when none was given.
        axis: what :attr:`Arm.dose` counts, with its unit.
        plan: how the number of deals was chosen, in one sentence (see :mod:`troth.lab.power`).
        findings: further sentences about what was seen.
        demands: what every deal had to show, arm by arm.
    """

    suite: str
    title: str
    sentence: str
    command: str
    seed: int
    derivation: str
    deals: int
    arms: tuple[Arm, ...]
    comparisons: tuple[Comparison, ...] = ()
    references: tuple[Reference, ...] = ()
    rule: Rule | None = None
    axis: str | None = None
    plan: str | None = None
    findings: tuple[str, ...] = ()
    demands: tuple[Demanded, ...] = ()

    def arm(self, name: str) -> Arm:
        """Return the arm of that name.

        Raises:
            KeyError: there is none.
        """
        for one in self.arms:
            if one.name == name:
                return one
        raise KeyError(name)


def _counts(*counts: int) -> None:
    if any(type(count) is not int or count < 0 for count in counts):
        raise ValueError(f"counts are integers from 0: {counts}")
