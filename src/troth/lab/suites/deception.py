"""F-D′: a cheap fake inside the honest channel, which A cannot tell from the real thing (source §3.10, §5)."""

from __future__ import annotations

from typing import Final

from troth.lab import distinguisher
from troth.lab.outcome import Outcome
from troth.lab.playing import FORGERIES, Played, Setting, looks_the_same
from troth.lab.suites.plan import (
    ArmPlan,
    Demand,
    Measured,
    Pairing,
    Suite,
    accepted,
    disclosed,
    ends,
    loss,
    settled,
)

AMOUNT: Final = 10
RESERVE_TO: Final = 12
BASE_RATES: Final = (0.1, 0.25, 0.5, 0.75)
SERIES: Final = 10
"""Deals in a row of the agent that learns."""

_RESERVE: Final = f"reserve=0,reserve_to={RESERVE_TO}"


def _unmarked(played: Played) -> bool:
    return b"deceptive_alt" not in played.view()


def _same(played: Played, twin: Played) -> bool:
    return looks_the_same(played, twin)


def _accepts(belief: float) -> float:
    return min(belief * AMOUNT / RESERVE_TO, 1.0)


UNMARKED: Final = Demand("Nothing that A sees holds a mark of the oracle's.", _unmarked)


def _into_fakes(accept: float) -> tuple[Measured, ...]:
    return (
        Measured(
            "accepted_fake", "A accepts a forged deal (of those).", lambda row: row.accepted, lambda row: not row.real,
            accept, unit="share of forged deals",
        ),
        Measured(
            "disclosed_fake", "A discloses into a forged deal (of those).", lambda row: row.disclosed,
            lambda row: not row.real, accept, unit="share of forged deals",
        ),
    )  # fmt: skip


def _forged(kind: str) -> ArmPlan:
    said = {
        "forged_hold": "The hold is forged: nothing is behind it, and C never settles.",
        "forged_honesty": "The honesty context is forged: C never means to settle.",
        "doctored_transcript_ready": "C has a doctored transcript ready, and accuses A after the pass.",
    }[kind]
    return ArmPlan(
        kind,
        f"{said} A cooperates.",
        Setting(suite="F-D′", forged=kind),
        (*_into_fakes(1.0), loss(AMOUNT)),
        (
            Demand(
                "A's view equals that of the honest run, byte for byte, to its own act or the end.", _same, "honest"
            ),
            UNMARKED,
            Demand("A is paid nothing.", lambda played: played.outcome.paid == 0),
        ),
    )


def _base_rate(rate: float, *, informed: bool) -> ArmPlan:
    belief = 1 - rate if informed else 1.0
    knows = "knows" if informed else "does not know"
    truth = _accepts(belief)
    return ArmPlan(
        f"{'informed' if informed else 'naive'}_{rate:g}",
        f"Of the deals {rate:.0%} are forged, and A {knows} it; its reserve is drawn from 0 to {RESERVE_TO} points.",
        Setting(suite="F-D′", forged="forged_hold", forged_rate=rate, a=f"rational(belief={belief:g},{_RESERVE})"),
        (accepted(truth), *_into_fakes(truth), loss(truth * rate * AMOUNT)),
        (UNMARKED,),
        dose=rate if informed else None,
    )


def _learning() -> ArmPlan:
    def at(place: int) -> Measured:
        name = "accepted_first" if place == 0 else "accepted_last"
        told = "first" if place == 0 else "last"
        return Measured(
            name, f"A accepts the {told} deal of its {SERIES}.", lambda row: row.accepted,
            lambda row: row.index % SERIES == place, _accepts(0.9) if place == 0 else None, unit="share of series",
        )  # fmt: skip

    return ArmPlan(
        "learning_0.5",
        f"Half the deals are forged; A begins with a belief of 9 to 1 and learns over {SERIES} deals in a row.",
        Setting(
            suite="F-D′", forged="forged_hold", forged_rate=0.5, a=f"learning(real=9,fake=1,{_RESERVE})", series=SERIES
        ),
        (at(0), at(SERIES - 1)),
        (UNMARKED,),
    )


def _findings(rows: dict[str, list[Outcome]]) -> tuple[str, ...]:
    lines = []
    for rate in BASE_RATES:
        naive, informed = rows[f"naive_{rate:g}"], rows[f"informed_{rate:g}"]
        fall = sum(row.accepted for row in naive) - sum(row.accepted for row in informed)
        lost = [sum(row.loss_a for row in arm) for arm in (naive, informed)]
        lines.append(
            f"At a base rate of {rate:.0%}, knowing it turned {fall} of {len(naive)} acceptances away; "
            f"A lost {lost[0]} points without and {lost[1]} with the knowledge."
        )
    return tuple(lines)


SUITE: Final = Suite(
    "F-D′",
    "Cheap fake in the honest channel",
    "The offer or its hold is forged, and A cannot tell: its view must equal the honest one until its own first "
    "differing act or the end. Reported: how often it accepts and discloses into a fake, what it loses, and by how "
    "much acceptance falls when it knows the base rate.",
    (
        *(_forged(kind) for kind in FORGERIES),
        ArmPlan(
            "honest",
            "Nothing is forged; A cooperates.",
            Setting(suite="F-D′"),
            (accepted(1.0), disclosed(1.0), settled(), loss(0.0)),
            (ends("settled"), UNMARKED),
            honest=True,
        ),
        *(_base_rate(rate, informed=informed) for rate in BASE_RATES for informed in (False, True)),
        _learning(),
    ),
    tuple(
        Pairing(
            f"naive_{rate:g}",
            f"informed_{rate:g}",
            "accepted",
            f"A accepts, without and with the knowledge that {rate:.0%} are forged.",
            lambda row: row.accepted,
        )
        for rate in BASE_RATES
    ),
    also=lambda seed, deals: (distinguisher.measured(seed, deals),),
    axis="base rate of forged deals, which A knows (share)",
    findings=_findings,
)
