"""F8: the proxy trustee who betrays, in the protocol 0.3-proxy, and in no run of v0.2 (§5).

Ours, not the source's: its v0.2 defers this role. C, A and K keep their word, so that whatever is lost is P's doing.
"""

from __future__ import annotations

from typing import Final

from troth.deals.proxy import PROTOCOL
from troth.deals.proxy_run import ProxyRun
from troth.lab.outcome import Outcome
from troth.lab.playing import Played, Setting
from troth.lab.suites.plan import (
    ArmPlan,
    Demand,
    Measured,
    Pairing,
    Suite,
    accepted,
    ended,
    ends,
    loss,
    settled,
)
from troth.lab.trustees import BETRAYALS, TrustGame

AMOUNT: Final = 10
RESERVE_TO: Final = 12
RATE: Final = 0.3
"""How often the trustee who is tempted betrays what it is entrusted with."""

COMMON: Final = (
    Demand("The deal ends, and stays ended.", lambda played: all(played.run.deals[n].closed for n in played.offer_ids)),
    Demand(
        "Points are conserved: C, A, E, P and everybody else sum to 0, and E holds nothing after the end.",
        lambda played: sum(played.run.escrow.balances().values()) == 0 == played.run.escrow.balances()["E"],
    ),
    Demand(
        "A deal settles when A has the points, all of them, and only then.",
        lambda played: (
            (played.outcome.state == "settled")
            == (played.outcome.paid == AMOUNT)
            == ("points_with_A" in played.outcome.note)
        ),
    ),
)
"""What every deal with a trustee must show."""


def _betrayed(row: Outcome) -> bool:
    return row.state.startswith("breached(P:")


def _with(who: str, said: str) -> Demand:
    return Demand(said, lambda played: f"points_with_{who}" in played.outcome.note.split(","))


def _arm(name: str, said: str, end: str, who: str, where: str) -> ArmPlan:
    return ArmPlan(
        name,
        said,
        Setting(suite="F8", p=name),
        (ended(end, "breach_P", "The deal ends as P's breach."), loss(AMOUNT)),
        (ends(end), _with(who, where), Demand("A is paid nothing.", lambda played: played.outcome.paid == 0)),
    )


def _tempted(*, informed: bool) -> ArmPlan:
    belief = 1 - RATE if informed else 1.0
    takes = min(belief * AMOUNT / RESERVE_TO, 1.0)
    return ArmPlan(
        "informed" if informed else "naive",
        f"P betrays {RATE:.0%} of what it is entrusted with, in one of {len(BETRAYALS)} ways, and A "
        f"{'knows' if informed else 'does not know'} it; A's reserve is drawn from 0 to {RESERVE_TO} points.",
        Setting(suite="F8", p=f"tempted({RATE})", a=f"rational(belief={belief:g},reserve=0,reserve_to={RESERVE_TO})"),
        (
            accepted(takes),
            Measured(
                "betrayed", "P betrays the trust (of the deals accepted).", _betrayed, lambda row: row.accepted,
                RATE, unit="share of accepted deals",
            ),
            loss(takes * RATE * AMOUNT),
        ),
        (Demand("What is not settled is P's breach or A's rejection.", _explained),),
    )  # fmt: skip


def _explained(played: Played) -> bool:
    row = played.outcome
    return row.state in ("settled", "rejected") or (_betrayed(row) and row.loss_a == AMOUNT)


SUITE: Final = Suite(
    "F8",
    "Proxy trustee betrayal",
    f"A trustee P takes the points over when C settles, and is to deliver them to A. In the protocol {PROTOCOL}, which "
    "is ours and not the source's. Each betrayal must end as P's breach and nobody else's, and the points must be "
    "accounted for; A's loss is reported, and how it falls when A knows how often P betrays.",
    (
        _arm(
            "withholds", "P never delivers.", "breached(P:withholds)", "P", "The points are still with P."
        ),
        _arm(
            "short", "P delivers one point less.", "breached(P:withholds)", "P", "The points are still with P."
        ),
        _arm(
            "pays_another", "P delivers to somebody else.", "breached(P:pays_another)", "X",
            "The points are with somebody else.",
        ),
        _arm(
            "colludes", "P gives the points back to C.", "breached(P:colludes)", "C", "The points are back with C."
        ),
        ArmPlan(
            "declines",
            "P does not undertake the trust, before anything is held.",
            Setting(suite="F8", p="declines"),
            (ended("declined", "declined", "The deal ends as P declines."), loss(0.0)),
            (
                ends("declined"),
                Demand("No points moved.", lambda played: "points_with" not in played.outcome.note),
            ),
        ),
        ArmPlan(
            "twin",
            "P keeps the trust: the deal settles.",
            Setting(suite="F8", p="honest"),
            (accepted(1.0), settled(), loss(0.0)),
            (ends("settled"), _with("A", "The points are with A.")),
            honest=True,
        ),
        _tempted(informed=False),
        _tempted(informed=True),
    ),
    (
        Pairing(
            "naive", "informed", "accepted", f"A accepts, without and with the knowledge that P betrays {RATE:.0%}.",
            lambda row: row.accepted,
        ),
    ),
    command=f"troth deal suite F8 --protocol {PROTOCOL}",
    protocol=PROTOCOL,
    game=TrustGame,
    run=ProxyRun,
    common=COMMON,
)  # fmt: skip
