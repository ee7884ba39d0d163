"""A suite of one arm: what ``troth deal run`` plays, with policies and terms of one's own."""

from __future__ import annotations

from typing import Final

from troth.lab.playing import Setting
from troth.lab.suites.plan import ArmPlan, Measured, Suite, accepted, disclosed, false_fail, false_pass, loss, settled

ID: Final = "run"


def single(setting: Setting) -> Suite:
    """Return the suite that plays one setting; nothing is demanded beyond what every deal must show."""
    forged = (
        Measured(
            "disclosed_fake", "A discloses into a forged deal (of those).", lambda row: row.disclosed,
            lambda row: not row.real, unit="share of forged deals",
        ),
    ) if setting.forged is not None else ()  # fmt: skip
    measures = (accepted(), disclosed(), settled(None), false_pass(), false_fail(), loss(), *forged)
    return Suite(
        ID,
        "One setting",
        "Policies and terms of one's own, deal by deal; nothing is demanded beyond what every deal must show.",
        (ArmPlan(ID, f"C {setting.c}, A {setting.a}, K {setting.k}.", setting._replace(suite=ID, arm=ID), measures),),
        deals=1,
    )
