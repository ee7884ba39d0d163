"""Keep, revise or retire the template: by a rule fixed before the run, on intervals (source §7 C9).

A criterion holds one measure of one arm to a bound. What an interval makes of it:

- ``met``: the whole interval is on the right side of the bound.
- ``missed``: the whole interval is on the wrong side, and still is when the worst deal is left out.
- ``open``: neither, or fewer deals than the rule asks for; said with how many more would settle it.
- ``not played``: its suite or arm is not among the results.

The word follows from the played criteria alone: ``retire`` when a ``must`` is missed, ``revise`` when a ``should`` is
missed or anything is open, ``keep`` when all are met. Intervals are simultaneous: by Bonferroni each has the confidence
``1 - (1 - confidence) / number of criteria`` of the whole rule, played or not.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from troth.core.canonical import record_bytes
from troth.core.errors import Place, Refused
from troth.core.words import printable
from troth.lab.measures import Criterion, Mean, Measure, Named, Rate, Report, Rule
from troth.lab.power import MOST
from troth.lab.statistics import Estimate, estimate

CODES: Final[dict[str, str]] = {
    "E_RULE_MALFORMED": "The falsification rule is not one: TOML with a confidence, a least number and criteria.",
}
"""Refusals of rules."""

LARGEST: Final = 1 << 20
"""Longest rule that is read, in bytes."""

MEANINGS: Final[dict[str, str]] = {
    "keep": "Every criterion is met by its whole interval.",
    "revise": "Nothing that must hold is missed, but something is missed or not yet shown.",
    "retire": "Something that must hold is missed by its whole interval.",
    "undecided": "No criterion of the rule was played.",
}
"""The words, and what each says."""


class Judged(NamedTuple):
    """One criterion: what the interval makes of it, and how many counted deals in all would settle it.

    ``needed`` counts as ``found.n`` does: of a measure of some deals only (the forged ones), those.
    """

    criterion: Criterion
    outcome: str
    found: Estimate | None
    needed: int | None


class Decision(NamedTuple):
    """The word by the rule, over what was played; ``digest`` is the SHA-256 of the rule as it stood before the run."""

    word: str
    sentence: str
    judged: tuple[Judged, ...]
    confidence_each: float
    digest: str


def rule_digest(rule: Rule) -> str:
    """Return the SHA-256 of a rule's canonical JSON, whatever file it came from."""
    body = asdict(rule)
    del body["source"]
    return hashlib.sha256(record_bytes(body)).hexdigest()


def decide(rule: Rule, reports: Sequence[Report]) -> Decision:
    """Return what the rule makes of the results."""
    each = 1 - (1 - rule.confidence) / max(1, len(rule.criteria))
    judged = tuple(_judge(criterion, rule, reports, each) for criterion in rule.criteria)
    played = [one for one in judged if one.outcome != "not played"]
    if not played:
        word = "undecided"
    elif any(one.outcome == "missed" and one.criterion.grade == "must" for one in played):
        word = "retire"
    elif any(one.outcome != "met" for one in played):
        word = "revise"
    else:
        word = "keep"
    counted = ", ".join(
        f"{sum(one.outcome == outcome for one in judged)} {outcome}"
        for outcome in ("met", "missed", "open", "not played")
    )
    return Decision(word, f"{MEANINGS[word]} Criteria: {counted}.", judged, each, rule_digest(rule))


def _judge(criterion: Criterion, rule: Rule, reports: Sequence[Report], confidence: float) -> Judged:
    named = _measured(criterion, reports)
    if named is None:
        return Judged(criterion, "not played", None, None)
    seed = f"falsification:{criterion.suite}:{criterion.arm}:{criterion.measure}"
    found = estimate(named.measure, seed, confidence)
    side = _side(criterion, found)
    if found.n < rule.least:
        more = _needed(criterion, named.measure, confidence) if side == "open" else rule.least
        return Judged(criterion, "open", found, None if more is None else max(rule.least, more))
    if side == "missed" and _side(criterion, estimate(_spared(criterion, named.measure), seed, confidence)) != "missed":
        side = "open"
    needed = _needed(criterion, named.measure, confidence) if side == "open" else None
    return Judged(criterion, side, found, needed)


def _measured(criterion: Criterion, reports: Sequence[Report]) -> Named | None:
    for report in reports:
        if report.suite == criterion.suite:
            try:
                return report.arm(criterion.arm).of(criterion.measure)
            except KeyError:
                continue
    return None


def _side(criterion: Criterion, found: Estimate) -> str:
    if found.low is None or found.high is None:
        return "open"
    least = criterion.sense == ">="
    if (found.low >= criterion.bound) if least else (found.high <= criterion.bound):
        return "met"
    if (found.high < criterion.bound) if least else (found.low > criterion.bound):
        return "missed"
    return "open"


def _spared(criterion: Criterion, measure: Measure) -> Measure:
    """Return the measure without its worst deal, so that one bad deal never decides."""
    least = criterion.sense == ">="
    if isinstance(measure, Rate):
        return Rate(measure.k, measure.n - 1) if least else Rate(max(0, measure.k - 1), measure.n - 1)
    counts = [list(pair) for pair in measure.counts if pair[1]]
    worst = counts[0] if least else counts[-1]
    worst[1] -= 1
    return Mean(tuple((value, int(count)) for value, count in counts if count), measure.bounds)


def _needed(criterion: Criterion, measure: Measure, confidence: float) -> int | None:
    """Return how many deals would clear the bound if what was found stayed as it is; ``None`` where none would."""
    if measure.n == 0:
        return None
    from scipy.stats import norm  # type: ignore[import-untyped]  # ships no types

    square = float(norm.ppf((1 + confidence) / 2)) ** 2
    away, spread = _distance(criterion.bound, measure)

    def is_clear(n: int) -> bool:
        return away**2 * n >= square * spread

    if away == 0 or not is_clear(MOST):
        return None
    low, high = measure.n, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_clear(middle) else (middle, high)
    return high


def _distance(bound: float, measure: Measure) -> tuple[float, float]:
    """Return how far from the bound the measure lies, and the variance of one deal that its interval goes by.

    Wilson's interval of a rate lies on one side of the bound when the score test tells the rate from it: the variance
    is the bound's. Means of one value or two are rates on another scale; the bootstrap's interval of others is about as
    wide as the normal one.
    """
    if isinstance(measure, Rate):
        return measure.k / measure.n - bound, bound * (1 - bound)
    counts = [(value, count) for value, count in measure.counts if count]
    mean = sum(value * count for value, count in counts) / measure.n
    if len(counts) > 2:
        return mean - bound, sum((value - mean) ** 2 * count for value, count in counts) / measure.n
    low, high = counts[0][0], counts[-1][0]
    if low == high and measure.bounds is not None:
        # What was never seen lies at worst at the end beyond the bound.
        low, high = (low, measure.bounds[1]) if bound > low else (measure.bounds[0], high)
    return mean - bound, max(0.0, (bound - low) * (high - bound))


# Reading -------------------------------------------------------------------------------------------------------------

_CRITERION: Final[dict[str, tuple[type, ...]]] = {
    "suite": (str,),
    "arm": (str,),
    "measure": (str,),
    "sense": (str,),
    "bound": (int, float),
    "grade": (str,),
    "sentence": (str,),
}


def read_rule(data: bytes, name: str) -> Rule:
    """Return a rule from its TOML.

    Args:
        data: ``confidence`` (between 0 and 1), ``least`` (deals, from 2) and tables ``[[criterion]]`` with ``suite``,
            ``arm``, ``measure``, ``sense``, ``bound``, ``grade`` and ``sentence``; no other member.
        name: of the file, for the report and for errors.

    Raises:
        Refused: ``E_RULE_MALFORMED`` with the member's path.
    """
    if len(data) > LARGEST:
        raise _malformed(name, "$", f"longer than {LARGEST} bytes")
    try:
        value = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as fault:  # no UTF-8, no TOML, a number too long, nested too deep
        raise _malformed(name, "$", f"no TOML: {printable(str(fault), 200)}") from None
    return _checked(value, name)


def built_in() -> Rule:
    """Return the rule that a run is held to unless it names another (``rules/template.toml``)."""
    from importlib.resources import files

    return read_rule(files("troth.lab").joinpath("rules", "template.toml").read_bytes(), "built in")


def applicable(rule: Rule, suites: Iterable[str]) -> Rule | None:
    """Return the rule, or ``None`` when it says nothing of any of these suites."""
    played = set(suites)
    return rule if any(criterion.suite in played for criterion in rule.criteria) else None


def rule_from_json(value: Any, name: str) -> Rule:
    """Return a rule from the members that ``dataclasses.asdict`` gives of one.

    Raises:
        Refused: ``E_RULE_MALFORMED`` with the member's path.
    """
    if not isinstance(value, dict) or not isinstance(value.get("source"), str):
        raise _malformed(name, "$", "no object with the members of a rule")
    members = {("criterion" if member == "criteria" else member): held for member, held in value.items()}
    return _checked({member: held for member, held in members.items() if member != "source"}, value["source"])


def _checked(value: dict[str, Any], name: str) -> Rule:
    for member in value:
        if member not in ("confidence", "least", "criterion"):
            raise _malformed(name, f"$.{printable(member, 60)}", "unknown member")
    confidence, least = value.get("confidence", 0.95), value.get("least", 100)
    if type(confidence) is not float or not 0 < confidence < 1:
        raise _malformed(name, "$.confidence", "not a number between 0 and 1")
    if type(least) is not int or not 2 <= least <= MOST:
        raise _malformed(name, "$.least", f"not an integer from 2 to {MOST}")
    tables = value.get("criterion")
    if not isinstance(tables, list | tuple) or not tables:
        raise _malformed(name, "$.criterion", "no criteria: write [[criterion]] tables")
    criteria = tuple(_criterion(name, f"$.criterion[{place}]", table) for place, table in enumerate(tables))
    keys = [(one.suite, one.arm, one.measure, one.sense) for one in criteria]
    for place, key in enumerate(keys):
        if key in keys[:place]:
            raise _malformed(name, f"$.criterion[{place}]", "the same measure is held to two bounds of one sense")
    return Rule(criteria, confidence, least, name)


def _criterion(name: str, path: str, table: Any) -> Criterion:
    if not isinstance(table, dict):
        raise _malformed(name, path, "not a table")
    for member in table:
        if member not in _CRITERION:
            raise _malformed(name, f"{path}.{printable(member, 60)}", "unknown member")
    for member, types in _CRITERION.items():
        if type(table.get(member)) not in types:
            raise _malformed(name, f"{path}.{member}", f"missing, or not a {'text' if str in types else 'number'}")
    bound = float(table["bound"])
    if not abs(bound) < 1e15:
        raise _malformed(name, f"{path}.bound", "not a finite number below 1e15")
    try:
        return Criterion(**{**table, "bound": bound})
    except ValueError as fault:
        raise _malformed(name, path, str(fault)) from None


def _malformed(name: str, path: str, what: str) -> Refused:
    return Refused(
        "E_RULE_MALFORMED",
        what,
        remedy="See the laboratory's page on falsification rules.",
        place=Place(file=name, path=path),
    )
