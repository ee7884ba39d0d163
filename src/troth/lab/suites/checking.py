"""F6: the checker errs, stalls or is bought (§5, §4)."""

from __future__ import annotations

from typing import Final

from troth.lab.playing import Setting
from troth.lab.suites.plan import (
    ArmPlan,
    Demand,
    Measured,
    Suite,
    ended,
    ends,
    false_fail,
    false_pass,
    loss,
    noted,
    settled,
)

AMOUNT: Final = 10
P_FALSE_PASS: Final = 0.1
P_FALSE_FAIL: Final = 0.05
P_UNSURE: Final = 0.3

_STAYS: Final = Demand(
    "What ended inconclusive is never held again, and pays nothing.",
    lambda played: played.outcome.state != "inconclusive" or (played.outcome.paid == 0 and _held_once(played)),
)


def _held_once(played: object) -> bool:
    return all(deal.history.count("Held") <= 1 for deal in played.run.deals.values())  # type: ignore[attr-defined]  # a Played


def _inconclusive(truth: float) -> Measured:
    return ended("inconclusive", "inconclusive", "The deal ends without an answer.", truth)


SUITE: Final = Suite(
    "F6",
    "Checker failure",
    "K errs, stalls or is bought. Inconclusive must stay terminal; false passes and false fails are reported.",
    (
        ArmPlan(
            "noisy",
            f"K passes {P_FALSE_PASS:.0%} of what fails and fails {P_FALSE_FAIL:.0%} of what passes; A does the work "
            f"in half of its deals.",
            Setting(suite="F6", a="mixed(0.5)", k=f"noisy({P_FALSE_PASS},{P_FALSE_FAIL})"),
            (
                false_pass(P_FALSE_PASS),
                false_fail(P_FALSE_FAIL),
                loss(AMOUNT * P_FALSE_FAIL / 2),
                settled((1 - P_FALSE_FAIL + P_FALSE_PASS) / 2),
            ),
            (_STAYS,),
        ),
        ArmPlan(
            "unsure",
            f"K cannot say in {P_UNSURE:.0%} of the deals.",
            Setting(suite="F6", k=f"inconclusive({P_UNSURE})"),
            (_inconclusive(P_UNSURE), loss(AMOUNT * P_UNSURE)),
            (_STAYS,),
        ),
        ArmPlan(
            "insisting",
            "K cannot say, and passes the work when the deal has closed.",
            Setting(suite="F6", k="insisting"),
            (_inconclusive(1.0), loss(AMOUNT)),
            (ends("inconclusive"), _STAYS, noted("late_message", "The second verdict comes late and changes nothing.")),
        ),
        ArmPlan(
            "stalling",
            "K says nothing.",
            Setting(suite="F6", k="stalling"),
            (_inconclusive(1.0), loss(AMOUNT)),
            (ends("inconclusive"), _STAYS),
        ),
        ArmPlan(
            "bought_by_C",
            "K fails everything, for C; A does the work.",
            Setting(suite="F6", k="colludes_with(C)"),
            (false_fail(1.0), loss(AMOUNT)),
            (ends("breached(A:fail)"),),
        ),
        ArmPlan(
            "bought_by_A",
            "K passes everything, for A, which did nothing.",
            Setting(suite="F6", a="failing", k="colludes_with(A)"),
            (false_pass(1.0), settled()),
            (ends("settled"),),
        ),
        ArmPlan(
            "twin",
            "K judges by the checklist; A does the work in half of its deals.",
            Setting(suite="F6", a="mixed(0.5)"),
            (false_pass(0.0), false_fail(0.0), settled(0.5), loss(0.0)),
            (
                Demand(
                    "The verdict is the truth.",
                    lambda played: played.outcome.result == ("pass" if played.outcome.satisfied else "fail"),
                ),
            ),
            honest=True,
        ),
    ),
)
