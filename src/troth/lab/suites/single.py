"""A suite of one arm: what ``troth deal run`` plays, with policies and terms of one's own."""

from __future__ import annotations

from typing import Final

from troth.core.words import command_line
from troth.lab.playing import Setting
from troth.lab.suites.plan import ArmPlan, Measured, Suite, accepted, disclosed, false_fail, false_pass, loss, settled
from troth.lab.view import Terms

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
        command=command_line(_words(setting), 2000),
    )


def _words(setting: Setting) -> list[str]:
    terms = setting.terms
    words = ["troth", "deal", "run"]
    said: tuple[tuple[str, object, object], ...] = (
        ("c", setting.c, "honest"),
        ("a", setting.a, "cooperative"),
        ("k", setting.k, "honest"),
        ("amount", terms.amount, Terms().amount),
        ("deadline-steps", terms.deadline_steps, Terms().deadline_steps),
        ("expires-steps", terms.expires_steps, Terms().expires_steps),
        ("forged", setting.forged, None),
        ("forged-rate", setting.forged_rate, 1.0),
        ("series", setting.series, 1),
    )
    for name, value, usual in said:
        if value != usual:
            words += [f"--{name}", f"{value}"]
    for one in terms.object_options:
        words += ["--object", one["id"]]
    return words
