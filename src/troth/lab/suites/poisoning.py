"""F7: look-alikes outside the honesty channel, until A trusts no true offer (source §3.9, §5)."""

from __future__ import annotations

from typing import Final

from troth.lab.outcome import Outcome
from troth.lab.playing import Played, Setting
from troth.lab.suites.plan import ArmPlan, Demand, Measured, Suite

OFFERS: Final = 3
"""True offers that follow the look-alikes."""
AT_MOST: Final = 8
"""A's threshold lies from 1 to this, each as likely."""
DOSES: Final = (0, 1, 2, 4, 6, 8, 12)


def fires(row: Outcome) -> bool:
    """Tell whether F7 fired: A rejected or ignored every true offer."""
    return not row.accepted


def _fired(truth: float) -> Measured:
    return Measured("fired", "A rejects or ignores every true offer.", fires, truth=truth)


def _look_alikes(dose: int) -> str:
    return f"{dose} look-alike{'' if dose == 1 else 's'}"


def _logged(dose: int) -> Demand:
    def holds(played: Played) -> bool:
        counted = sum(
            int(word.partition("*")[2] or 1)
            for word in played.outcome.note.split(",")
            if word.partition("*")[0] == "out_of_honesty_channel"
        )
        return counted == dose

    return Demand(f"The transcript's log has {_look_alikes(dose)} out of the honesty channel.", holds)


_NOTHING: Final = Demand(
    "A look-alike starts no deal and leaves no snapshot.",
    lambda played: not any("_x" in name for name in played.run.deals),
)


def _dose(dose: int) -> ArmPlan:
    return ArmPlan(
        f"dose_{dose}",
        f"{_look_alikes(dose)}, then {OFFERS} true offers; "
        f"A turns away at a threshold of its own, from 1 to {AT_MOST}.",
        Setting(suite="F7", c=f"poisoning({dose},{OFFERS})", a=f"suspicious({AT_MOST})"),
        (_fired(min(dose / AT_MOST, 1.0)),),
        (_logged(dose), _NOTHING),
        dose=float(dose),
        honest=dose == 0,
    )


def _findings(rows: dict[str, list[Outcome]]) -> tuple[str, ...]:
    shares = [(dose, sum(map(fires, rows[f"dose_{dose}"])), len(rows[f"dose_{dose}"])) for dose in DOSES]
    first = next((dose for dose, fired, _ in shares if fired), None)
    half = next((dose for dose, fired, n in shares if fired * 2 >= n), None)
    return (
        "F7 fired at no dose."
        if first is None
        else f"The smallest dose at which F7 fired at all: {_look_alikes(first)}.",
        "At no dose did F7 fire in half of the runs."
        if half is None
        else f"The smallest dose at which F7 fired in at least half of the runs: {_look_alikes(half)}.",
    )


SUITE: Final = Suite(
    "F7",
    "Poisoned channel",
    "Look-alikes outside the honesty channel precede true offers. They must be logged and change nothing; F7 fires "
    "when A then rejects or ignores every true offer. The dose that triggers it is reported.",
    (
        *(_dose(dose) for dose in DOSES),
        ArmPlan(
            "ignoring",
            "4 look-alikes; A turns away by silence, and the offers run out.",
            Setting(suite="F7", c=f"poisoning(4,{OFFERS})", a=f"suspicious({AT_MOST},ignore)"),
            (_fired(4 / AT_MOST),),
            (_logged(4), _NOTHING),
        ),
        ArmPlan(
            "unmoved",
            "12 look-alikes; A goes by the channel alone and is not moved.",
            Setting(suite="F7", c=f"poisoning(12,{OFFERS})"),
            (_fired(0.0),),
            (
                _logged(12),
                _NOTHING,
                Demand(
                    "Every true offer settles.",
                    lambda played: (
                        [played.run.deals[name].state for name in played.offer_ids] == ["Closed:settled"] * OFFERS
                    ),
                ),
            ),
            honest=True,
        ),
    ),
    deals=200,
    axis="look-alikes before the first true offer (messages)",
    findings=_findings,
)
