"""Playing a suite: its arms' deals in one transcript, its measures, and whether every deal showed what it must."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from troth.core.errors import Refused
from troth.deals.writing import Scribe
from troth.lab.measures import Arm, Demanded, Mean, Named, Rate, Report
from troth.lab.outcome import Outcome
from troth.lab.power import plan_of
from troth.lab.seeds import VERSION
from troth.lab.suites.plan import COMMON, ArmPlan, Measured, Suite

DERIVATION: Final = (
    f"Each draw is the first 53 bits of SHA-256 of “{VERSION}|SEED|SUITE|INDEX|WHO|NAME” divided by 2^53; arms share "
    "their draws, so that the deals of an index are twins."
)
MAX_DEALS: Final = 100_000
"""Most deals of one arm in one run folder; a sweep takes more."""
MAX_SEED: Final = 2**63 - 1


class Result(NamedTuple):
    """A suite played."""

    suite: Suite
    seed: int
    deals: int
    rows: dict[str, list[Outcome]]
    scribe: Scribe
    shown: tuple[Demanded, ...]

    @property
    def holds(self) -> bool:
        """Whether the protocol showed everything that it must."""
        return all(one.holds for one in self.shown)


def deals_of(arm: ArmPlan, deals: int) -> int:
    """Return how many deals an arm plays when so many are asked for: whole series."""
    series = arm.setting.series
    return -(-deals // series) * series


def play_suite(
    suite: Suite,
    seed: int,
    deals: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """Play a suite.

    Args:
        suite: which.
        seed: from 0; everything derives from it.
        deals: of each arm.
        progress: told how many deals are done, of how many.

    Raises:
        Refused: ``E_SETTING``, a number that is too small or too large.
    """
    wanted = suite.deals if deals is None else deals
    if not 1 <= wanted <= MAX_DEALS:
        raise Refused(
            "E_SETTING", f"{wanted} deals of each arm", remedy=f"Ask for 1 to {MAX_DEALS}; a sweep takes more."
        )
    if not 0 <= seed <= MAX_SEED:
        raise Refused("E_SETTING", f"the seed {seed}", remedy=f"Give a seed from 0 to {MAX_SEED}.")
    longest = max(suite.arms, key=lambda arm: arm.setting.series).setting.series
    if longest > MAX_DEALS:
        raise Refused("E_SETTING", f"series of {longest} deals", remedy=f"Ask for series of 1 to {MAX_DEALS}.")
    total = sum(deals_of(arm, wanted) for arm in suite.arms)
    scribe = Scribe.after(suite.run())
    rows: dict[str, list[Outcome]] = {}
    shown: list[Demanded] = []
    done = 0
    settings = {arm.name: arm.setting._replace(arm=arm.name) for arm in suite.arms}
    for arm in suite.arms:
        game = suite.game(settings[arm.name])
        alone = {
            name: suite.game(settings[name])
            for demand in arm.demands
            if demand.twin
            for name in (arm.name, demand.twin)
        }
        counts = [0] * len(demands := (*(suite.common or COMMON), *arm.demands))
        rows[arm.name] = kept = []
        for index in range(deals_of(arm, wanted)):
            done += 1
            played = game.play(seed, index, scribe, f"off_{done}")
            kept.append(played.outcome)
            for number, demand in enumerate(demands):
                if demand.twin:
                    counts[number] += demand.holds(
                        alone[arm.name].play(seed, index), alone[demand.twin].play(seed, index)
                    )
                else:
                    counts[number] += demand.holds(played)
            if done % 64 == 0:
                progress(done, total)
        shown += [Demanded(arm.name, demand.sentence, k, len(kept)) for demand, k in zip(demands, counts, strict=True)]
    scribe.end(scribe.run.now)
    return Result(suite, seed, wanted, rows, scribe, tuple(shown))


def measured(plan: Measured, rows: list[Outcome], bounds: tuple[float, float] | None = None) -> Named:
    """Return one measure of the rows; ``bounds`` are the least and the most points that a deal is about."""
    values = [plan.of(row) for row in rows if plan.when(row)]
    measure = (
        Mean.of([float(value) for value in values], bounds) if plan.points else Rate.of(bool(value) for value in values)
    )
    return Named(plan.name, plan.sentence, plan.unit, measure, plan.truth)


def report_of(
    suite: Suite, seed: int, deals: int, rows: dict[str, list[Outcome]], shown: tuple[Demanded, ...]
) -> Report:
    """Return the report's record of a suite's rows."""
    arms = tuple(
        Arm(
            arm.name,
            arm.sentence,
            tuple(measured(plan, rows[arm.name], (0.0, float(arm.setting.terms.amount))) for plan in arm.measures),
            arm.dose,
        )
        for arm in suite.arms
    )
    return Report(
        suite=suite.id,
        title=suite.title,
        sentence=suite.sentence,
        command=f"{suite.command or f'troth deal suite {suite.id}'} --seed {seed} --runs {deals}",
        seed=seed,
        derivation=DERIVATION,
        deals=sum(len(of_arm) for of_arm in rows.values()),
        arms=(*arms, *suite.also(seed, deals)),
        comparisons=tuple(one.counted(rows[one.first], rows[one.second]) for one in suite.pairings),
        references=suite.references,
        axis=suite.axis,
        plan=plan_of(deals, len(suite.pairings)) if deals > 1 else None,
        findings=suite.findings(rows),
        demands=shown,
    )
