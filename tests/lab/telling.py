"""A small suite's report for the tests of plots and pages; names and texts can be handed in."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from troth.lab.inference import infer
from troth.lab.measures import (
    Arm,
    Comparison,
    Criterion,
    Demanded,
    Mean,
    Named,
    Paired,
    Rate,
    Reference,
    Report,
    Rule,
)
from troth.lab.report import report_files


@cache
def files() -> dict[str, bytes]:
    """The files of the plain report, drawn once for all tests."""
    return report_files(infer(report()))


@cache
def hostile_files() -> dict[str, bytes]:
    """The files of a report in which every text and every name is hostile."""
    return report_files(infer(report(HOSTILE, HOSTILE)))


def small() -> Report:
    """A report with one arm and one measure, quickly drawn."""
    plain = report()
    arms = (replace(plain.arms[0], measures=plain.arms[0].measures[:1]),)
    return replace(plain, arms=arms, comparisons=(), references=(), rule=None, axis=None)


HOSTILE = "<script>alert(1)</script>&\"'$x^2$\x1b[31m\u202e{{ 7*7 }}]]>--><svg onload=a>"


def arm(name: str, accepted: int, dose: float | None = None, text: str = "A sentence.") -> Arm:
    return Arm(
        name,
        text,
        (
            Named("accepted", text, "share of deals", Rate(accepted, 200), accepted / 200),
            Named("loss", text, "points a deal", Mean.of([0.0] * 100 + [5.0] * 60 + [10.0] * 40, (0, 10))),
        ),
        dose,
    )


def report(text: str = "A sentence.", name: str = "cash") -> Report:
    return Report(
        suite="B3",
        title=text,
        sentence=text,
        command=text,
        seed=7,
        derivation=text,
        deals=600,
        arms=(arm(name, 120, 0.0, text), arm("object", 90, 1.0, text), arm("both", 150, 2.0, text)),
        comparisons=(
            Comparison(name, "object", "accepted", text, Paired(50, 20, 70, 60)),
            Comparison(name, "both", "accepted", text, Paired(10, 40, 110, 40)),
            Comparison("object", "both", "accepted", text, (Rate(90, 200), Rate(150, 200))),
        ),
        references=(Reference(name, 0.16, 0.24, text),),
        rule=Rule((Criterion("B3", name, "accepted", ">=", 0.4, "must", text),), source=name),
        axis=f"look-alikes before the offer (messages) {text[:20]}",
        plan=text,
        findings=(text,),
        demands=(Demanded(name, text, 200, 200), Demanded("object", text, 199, 200)),
    )
