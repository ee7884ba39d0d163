"""A suite's results as files: ``report.json`` and ``report.html``, and the plots beside them.

The page stands alone: plots are within it as images, nothing is loaded and nothing runs, whatever is written by others
is escaped, and a Content-Security-Policy allows the page's own style sheet, by its digest, and images in the page. Same
results, same bytes: numbers in the JSON are rounded to :data:`DIGITS` significant digits, which is far more than they
mean and less than a library's rounding may change.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import math
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from troth import __version__
from troth.core.canonical import record_bytes
from troth.core.words import printable
from troth.deals.codes import LABELS, NON_CLAIMS, NON_CLAIMS_REF
from troth.lab.falsification import Decision, decide
from troth.lab.inference import Measured, Results, Tested
from troth.lab.measures import Mean, Paired, Rate, Rule
from troth.lab.plots import Picture, draw
from troth.lab.statistics import CORRECTIONS, Estimate

if TYPE_CHECKING:
    from jinja2 import Template

SCHEMA: Final = "urn:troth:lab:report:1"
"""Names the shape of ``report.json``."""

DIGITS: Final = 10
"""Significant digits of a number in the JSON."""

SHOWN: Final = 1000
"""Longest text of others on the page, in characters."""


def report_files(results: Results | Sequence[Results], rule: Rule | None = None) -> dict[str, bytes]:
    """Return the files of a report by their relative names.

    Args:
        results: one suite's, or several suites' for one page.
        rule: decides over all of them; without it a single suite's own rule does.
    """
    every = [results] if isinstance(results, Results) else list(results)
    pictures = [draw(one) for one in every]
    files: dict[str, bytes] = {}
    for one, drawn in zip(every, pictures, strict=True):
        prefix = "" if len(every) == 1 else f"{_slug(one.report.suite)}-"
        for picture in drawn:
            files[f"plots/{prefix}{picture.name}.svg"] = picture.svg
            files[f"plots/{prefix}{picture.name}.png"] = picture.png
    decision, rule = _decided(every, rule)
    files["report.json"] = _json(every, decision, rule, sorted(files))
    files["report.html"] = _html(every, pictures, decision, rule)
    return files


def report_value(results: Results | Sequence[Results], rule: Rule | None = None) -> dict[str, Any]:
    """Return what ``report.json`` says, without the plots' names, for ``--json``."""
    every = [results] if isinstance(results, Results) else list(results)
    return _value(every, *_decided(every, rule))


def _decided(every: Sequence[Results], rule: Rule | None) -> tuple[Decision | None, Rule | None]:
    if rule is not None:
        return decide(rule, [one.report for one in every]), rule
    if len(every) == 1:
        return every[0].decision, every[0].report.rule
    return None, None


def command_of(results: Results, rule: Rule | None) -> str:
    """Return the command that gives the same bytes again, with the rule's file where it is not the built-in one."""
    command = results.report.command
    if rule is None or rule.source == "built in":
        return command
    return f"{command} --rule {shlex.quote(rule.source)}"


def _slug(suite: str) -> str:
    """Return a suite's id as a part of a file's name."""
    plain = suite.lower().replace("′", "-prime")
    return "".join(char if char.isascii() and (char.isalnum() or char == "-") else "_" for char in plain)[:40] or "_"


# JSON ----------------------------------------------------------------------------------------------------------------


def _json(every: Sequence[Results], decision: Decision | None, rule: Rule | None, plots: Sequence[str]) -> bytes:
    return record_bytes({**_value(every, decision, rule), "plots": list(plots)})


def _value(every: Sequence[Results], decision: Decision | None, rule: Rule | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "labels": list(LABELS),
        "non_claims": {"source": NON_CLAIMS_REF, "claims": list(NON_CLAIMS)},
        "version": __version__,
        "suites": [{**_suite(one), "command": command_of(one, rule)} for one in every],
        "falsification": None if decision is None or rule is None else _falsification(decision, rule),
    }


def _suite(results: Results) -> dict[str, Any]:
    report = results.report
    return {
        "suite": report.suite,
        "title": report.title,
        "sentence": report.sentence,
        "seed": report.seed,
        "derivation": report.derivation,
        "deals": report.deals,
        "plan": report.plan,
        "axis": report.axis,
        "findings": list(report.findings),
        "demands": [
            {"arm": one.arm, "sentence": one.sentence, "k": one.k, "n": one.n, "holds": one.holds}
            for one in report.demands
        ],
        "confidence": _rounded(results.confidence),
        "truths": {"known": results.truths[0], "outside": results.truths[1]},
        "arms": [
            {
                "name": arm.name,
                "sentence": arm.sentence,
                "dose": _rounded(arm.dose),
                "measures": [_measured(one) for one in results.measured if one.arm is arm],
            }
            for arm in report.arms
        ],
        "comparisons": [_tested(one) for one in results.tested],
        "family": {
            "comparisons": results.family,
            "correction": results.correction,
            "sentence": CORRECTIONS[results.correction],
        },
        "references": [
            {"name": one.name, "low": _rounded(one.low), "high": _rounded(one.high), "sentence": one.sentence}
            for one in report.references
        ],
    }


def _measured(one: Measured) -> dict[str, Any]:
    measure = one.named.measure
    counted = (
        {"k": measure.k, "n": measure.n}
        if isinstance(measure, Rate)
        else {"n": measure.n, "counts": [[_rounded(value), count] for value, count in measure.counts]}
    )
    return {
        "name": one.named.name,
        "sentence": one.named.sentence,
        "unit": one.named.unit,
        **counted,
        **_estimate(one.estimate),
        "truth": _rounded(one.named.truth),
        "truth_inside": one.truth_inside,
    }


def _tested(one: Tested) -> dict[str, Any]:
    counts, compared = one.comparison.counts, one.compared
    counted: dict[str, Any]
    if isinstance(counts, Paired):
        counted = {"b": counts.b, "c": counts.c, "both": counts.both, "neither": counts.neither}
    else:
        counted = {"first": {"k": counts[0].k, "n": counts[0].n}, "second": {"k": counts[1].k, "n": counts[1].n}}
    return {
        "first": one.comparison.first,
        "second": one.comparison.second,
        "measure": one.comparison.measure,
        "sentence": one.comparison.sentence,
        "counts": counted,
        "test": compared.test,
        "p": _rounded(compared.p),
        "mid_p": _rounded(compared.mid_p),
        "adjusted_p": _rounded(one.adjusted),
        "difference": _estimate(compared.difference),
        "cohens_h": _rounded(compared.cohens_h),
        "odds_ratio": _estimate(compared.odds_ratio),
    }


def _falsification(decision: Decision, rule: Rule) -> dict[str, Any]:
    return {
        "word": decision.word,
        "sentence": decision.sentence,
        "rule": {
            "source": rule.source,
            "sha256": decision.digest,
            "confidence": _rounded(rule.confidence),
            "confidence_each": _rounded(decision.confidence_each),
            "least": rule.least,
        },
        "criteria": [
            {
                "suite": one.criterion.suite,
                "arm": one.criterion.arm,
                "measure": one.criterion.measure,
                "sense": one.criterion.sense,
                "bound": _rounded(one.criterion.bound),
                "grade": one.criterion.grade,
                "sentence": one.criterion.sentence,
                "outcome": one.outcome,
                "found": None if one.found is None else _estimate(one.found),
                "needed": one.needed,
            }
            for one in decision.judged
        ],
    }


def _estimate(found: Estimate) -> dict[str, Any]:
    return {
        "value": _rounded(found.value),
        "low": _rounded(found.low),
        "high": _rounded(found.high),
        "method": found.method,
    }


def _rounded(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


# HTML ----------------------------------------------------------------------------------------------------------------


@functools.cache
def _page() -> tuple[Template, str, str]:
    from importlib.resources import files

    from jinja2 import Environment, StrictUndefined

    here = files("troth.lab").joinpath("pages")
    style = here.joinpath("report.css").read_text(encoding="utf-8")
    digest = "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters.update(
        shown=lambda text: printable(str(text), SHOWN),
        number=_number,
        interval=_interval,
        odds=lambda found: "unbounded" if found.value is None and found.low is not None else _number(found.value),
        ratio=_ratio,
        chance=_chance,
        percent=lambda share: f"{100 * share:.4g} %",
        counted=_counted,
        methods=_methods,
        base64=lambda data: base64.b64encode(data).decode("ascii"),
    )
    return environment.from_string(here.joinpath("report.html").read_text(encoding="utf-8")), style, digest


def _html(
    every: Sequence[Results], pictures: Sequence[Sequence[Picture]], decision: Decision | None, rule: Rule | None
) -> bytes:
    from markupsafe import Markup

    template, style, digest = _page()
    correction = every[0].correction if every else "holm"
    page = template.render(
        head=f"Deals: {every[0].report.suite}, {every[0].report.title}" if len(every) == 1 else "Deals: the suites",
        labels=LABELS,
        results=every,
        pictures=pictures,
        decision=decision,
        rule=rule,
        commands=[command_of(one, rule) for one in every],
        correction_name=correction.capitalize(),
        correction_sentence=CORRECTIONS[correction],
        non_claims=NON_CLAIMS,
        non_claims_ref=NON_CLAIMS_REF,
        version=__version__,
        style=Markup(style),  # noqa: S704 - a file of ours, and a style element takes no escapes
        style_digest=digest,
    )
    return (page + "\n").encode("utf-8")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def _interval(found: Estimate) -> str:
    return "none" if found.low is None or found.high is None else f"{found.low:.4g} to {found.high:.4g}"


def _ratio(found: Estimate) -> str:
    if found.low is None and found.high is None:
        return ""
    ends = ["unbounded" if end is None else f"{end:.4g}" for end in (found.low, found.high)]
    return " to ".join(ends)


def _chance(value: float | None) -> str:
    if value is None:
        return "none"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _counted(measure: Rate | Mean | Paired | tuple[Rate, Rate]) -> str:
    if isinstance(measure, Rate):
        return f"{measure.k} of {measure.n}"
    if isinstance(measure, Mean):
        return f"{measure.n} values"
    if isinstance(measure, Paired):
        return f"{measure.b} : {measure.c} of {measure.n} pairs"
    return f"{_counted(measure[0])}; {_counted(measure[1])}"


def _methods(results: Results) -> str:
    """Return the methods of the comparisons, each once."""
    told: dict[str, None] = {}
    for one in results.tested:
        compared = one.compared
        told[f"{compared.test} for p"] = None
        told[f"{compared.difference.method} for the interval of the difference"] = None
        told[f"{compared.odds_ratio.method} for that of the odds ratio"] = None
        if compared.mid_p is not None:
            told["of pairs, first only : second only is shown, and the odds ratio is theirs"] = None
    return "; ".join(told)
