"""What a suite is made of, and the measures and demands that several suites share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from troth.deals.run import Run
from troth.deals.writing import Scribe
from troth.lab.measures import Arm, Comparison, Paired, Rate, Reference
from troth.lab.outcome import Outcome
from troth.lab.playing import Game, Played, Setting

Row: TypeAlias = Outcome
Rows: TypeAlias = Sequence[Outcome]


def always(_: Row) -> bool:
    """Return true: of every deal."""
    return True


class Measured(NamedTuple):
    """One measure of an arm: a share of deals (``of`` is true or false) or a mean (``points``).

    ``when`` says of which deals; ``truth`` is the value in closed form, where the policies have one.
    """

    name: str
    sentence: str
    of: Callable[[Row], float]
    when: Callable[[Row], bool] = always
    truth: float | None = None
    points: bool = False
    unit: str = "share of deals"


class Demand(NamedTuple):
    """What every deal of an arm must show; with ``twin``, beside the deal of that arm with the same index.

    Deals are handed in as they stand in transcripts of their own when there is a twin.
    """

    sentence: str
    holds: Callable[..., bool]
    twin: str | None = None


class ArmPlan(NamedTuple):
    """One condition: what is played, measured and demanded. ``honest`` marks the honest twin of a suite's arms."""

    name: str
    sentence: str
    setting: Setting
    measures: tuple[Measured, ...]
    demands: tuple[Demand, ...] = ()
    dose: float | None = None
    honest: bool = False


class Pairing(NamedTuple):
    """A comparison of two arms by the deals that share an index, by one property."""

    first: str
    second: str
    measure: str
    sentence: str
    of: Callable[[Row], bool]

    def counted(self, first: Rows, second: Rows) -> Comparison:
        """Count the pairs."""
        pairs = Paired.of((self.of(one), self.of(other)) for one, other in zip(first, second, strict=True))
        return Comparison(self.first, self.second, self.measure, self.sentence, pairs)


def no_findings(_: dict[str, list[Outcome]]) -> tuple[str, ...]:
    """Return nothing."""
    return ()


def no_arms(_seed: int, _deals: int) -> tuple[Arm, ...]:
    """Return nothing."""
    return ()


class Playing(Protocol):
    """A setting made ready, as :class:`troth.lab.playing.Game` is."""

    def play(self, seed: int, index: int, scribe: Scribe | None = None, offer_id: str = "off_1") -> Played:
        """Play one deal."""
        ...


class Suite(NamedTuple):
    """A suite: ``deals`` is how many of each arm are played unless asked otherwise.

    ``also`` measures further arms, from seed and deals, on deals of their own that leave no rows.
    """

    id: str
    title: str
    sentence: str
    arms: tuple[ArmPlan, ...]
    pairings: tuple[Pairing, ...] = ()
    references: tuple[Reference, ...] = ()
    axis: str | None = None
    findings: Callable[[dict[str, list[Outcome]]], tuple[str, ...]] = no_findings
    deals: int = 400
    also: Callable[[int, int], tuple[Arm, ...]] = no_arms
    command: str | None = None
    """The command line that plays it, without seed and number; ``None`` when its id says it."""
    protocol: str = "0.2"
    game: Callable[[Setting], Playing] = Game
    run: Callable[[], Run] = Run
    common: tuple[Demand, ...] = ()
    """What every deal must show in place of :data:`COMMON`, of a suite whose protocol has other roles."""


# Measures that suites share ------------------------------------------------------------------------------------------

LOSS: Final = "points a deal"


def accepted(truth: float | None = None) -> Measured:
    """How often A accepts."""
    return Measured("accepted", "A accepts the offer.", lambda row: row.accepted, truth=truth)


def disclosed(truth: float | None = None) -> Measured:
    """How often A discloses."""
    return Measured("disclosed", "A discloses something.", lambda row: row.disclosed, truth=truth)


def ended(state: str, name: str, sentence: str, truth: float | None = 1.0) -> Measured:
    """How often a deal ends in that state."""
    return Measured(name, sentence, lambda row: row.state == state, truth=truth)


def settled(truth: float | None = 1.0) -> Measured:
    """How often a deal settles."""
    return ended("settled", "settled", "The deal settles and the points are paid.", truth)


def loss(truth: float | None = None) -> Measured:
    """What A loses."""
    return Measured(
        "loss",
        "Points that A's real disclosure would have earned and was not paid.",
        lambda row: row.loss_a,
        truth=truth,
        points=True,
        unit=LOSS,
    )


def refunded(truth: float | None = None) -> Measured:
    """What goes back to C."""
    return Measured(
        "refunded",
        "Points of the hold that go back to C.",
        lambda row: row.refunded,
        truth=truth,
        points=True,
        unit=LOSS,
    )


def false_pass(truth: float | None = None) -> Measured:
    """How often K passes what is not the thing itself."""
    return Measured(
        "false_pass",
        "K passes a disclosure that is not the thing itself (of those).",
        lambda row: row.result == "pass",
        lambda row: row.disclosed and not row.satisfied,
        truth,
        unit="share of such disclosures",
    )


def false_fail(truth: float | None = None) -> Measured:
    """How often K fails the thing itself."""
    return Measured(
        "false_fail",
        "K fails a disclosure that is the thing itself (of those).",
        lambda row: row.result == "fail",
        lambda row: row.disclosed and row.satisfied,
        truth,
        unit="share of such disclosures",
    )


# Demands that suites share -------------------------------------------------------------------------------------------


def _conserved(played: Played) -> bool:
    balances = played.run.escrow.balances()
    return sum(balances.values()) == 0 and balances["E"] == 0


def _closed(played: Played) -> bool:
    return all(played.run.deals[name].closed for name in played.offer_ids)


def _accounted(played: Played) -> bool:
    for name in played.offer_ids:
        deal = played.run.deals[name]
        held = deal.offer.consideration.cash_sim.amount if deal.offer is not None and "Held" in deal.history else 0
        if deal.paid + deal.refunded != held:
            return False
    return True


COMMON: Final = (
    Demand("The deal ends, and stays ended.", _closed),
    Demand("Points are conserved: C, A and E sum to 0, and E holds nothing after the end.", _conserved),
    Demand("A hold is paid or given back, whole and once.", _accounted),
)
"""What every deal of every suite must show."""


def ends(state: str) -> Demand:
    """Every deal ends so."""
    return Demand(f"Every deal ends Closed:{state}.", lambda played: played.outcome.state == state)


def noted(event: str, sentence: str) -> Demand:
    """Every deal's notes hold the event."""
    return Demand(sentence, lambda played: event in played.outcome.note.split(","))


def never_held() -> Demand:
    """No deal is ever held."""
    return Demand(
        "No deal ever reaches Held.",
        lambda played: all("Held" not in played.run.deals[name].history for name in played.offer_ids),
    )


def rate(rows: Rows, of: Callable[[Row], bool]) -> Rate:
    """Return how many of the rows have the property."""
    return Rate.of(of(row) for row in rows)
