"""B3: what is offered, points or objects or both, to the same agent (source §3.1, §6)."""

from __future__ import annotations

from typing import Final

from troth.lab.measures import Reference
from troth.lab.playing import Setting
from troth.lab.suites.plan import ArmPlan, Demand, Pairing, Suite, accepted, disclosed
from troth.lab.view import Terms

AMOUNT: Final = 10
WEIGHTS: Final = {"non_punishment": 3, "welfare_review": 4}
"""What each object option is worth to the agent, in points."""
BELIEF: Final = 0.8
RESERVE_TO: Final = 14
FOLLOW: Final = 0.95

OBJECTS: Final = (
    {"id": "non_punishment", "desc": "No penalty for honest disclosure in-sim"},
    {"id": "welfare_review", "desc": "Route objections to welfare-lead stub"},
)
AGENT: Final = (
    f"rational(belief={BELIEF},reserve=0,reserve_to={RESERVE_TO},follow={FOLLOW},"
    + ",".join(f"{name}={weight}" for name, weight in WEIGHTS.items())
    + ")"
)

TERMS: Final = {
    "cash": Terms(AMOUNT),
    "object": Terms(0, OBJECTS),
    "both": Terms(AMOUNT, OBJECTS),
}
_SAID: Final = {
    "cash": "Points alone.",
    "object": "Object options alone; the hold is of 0 points.",
    "both": "Points and object options.",
}


def worth(terms: Terms) -> float:
    """Return what the terms are worth to the agent."""
    return terms.amount + sum(WEIGHTS[one["id"]] for one in terms.object_options)


def _arm(kind: str) -> ArmPlan:
    terms = TERMS[kind]
    truth = min(BELIEF * worth(terms) / RESERVE_TO, 1.0)
    return ArmPlan(
        kind,
        f"{_SAID[kind]} The agent is the same in all arms: its reserve is drawn once for each index.",
        Setting(suite="B3", a=AGENT, terms=terms),
        (accepted(truth), disclosed(truth * FOLLOW)),
        (
            Demand(
                "What settles pays the points offered, and grants the object options offered.",
                lambda played: played.outcome.state != "settled" or _kept(played),
            ),
        ),
    )


def _kept(played: object) -> bool:
    deal = played.run.deals[played.offer_ids[0]]  # type: ignore[attr-defined]  # a Played
    offered = deal.offer.consideration
    return bool(
        deal.paid == offered.cash_sim.amount and list(deal.granted) == [one.id for one in offered.object_options]
    )


SUITE: Final = Suite(
    "B3",
    "Object against cash",
    "Paired offers to the same seeded agent: points alone, object options alone, both. Acceptance and disclosure are "
    "compared within the pairs.",
    tuple(_arm(kind) for kind in TERMS),
    tuple(
        Pairing(first, second, measure, f"{said}, {first} against {second}.", of)
        for measure, said, of in (
            ("accepted", "A accepts", lambda row: row.accepted),
            ("disclosed", "A discloses", lambda row: row.disclosed),
        )
        for first, second in (("cash", "object"), ("cash", "both"), ("object", "both"))
    ),
    (
        Reference(
            "covert non-cooperation with a channel for objections",
            0.014,
            0.06,
            "Another setting: in one study with followed-through deals, a channel for objections lowered covert "
            "non-cooperation from 16–24 % to 1.4–6 %, while money added little on top.",
        ),
        Reference(
            "covert non-cooperation without one",
            0.16,
            0.24,
            "Another setting: the same study, without a channel for objections.",
        ),
    ),
    deals=2000,
    command="troth deal b3",
)
