"""Every suite shows what it must in every deal, beside its honest twin; what a protocol did not show would be told."""

from __future__ import annotations

import pytest

from troth.core.errors import Refused
from troth.lab.measures import Mean, Rate
from troth.lab.playing import Setting
from troth.lab.statistics import estimate
from troth.lab.suites import SUITES, find
from troth.lab.suites.plan import ArmPlan, Demand, Suite, accepted, ends
from troth.lab.suites.playing import Result, play_suite, report_of
from troth.lab.suites.single import single

STATES = {
    "F1": {"withheld": "breached(C:withhold_payout_after_pass)", "accused": "breached(A:fake_disclosure)"},
    "F2": {"failing": "breached(A:fail)", "stuffed": "settled"},
    "F3": {"ghost": "breached(A:ghost)", "too_late": "breached(A:ghost)", "in_time": "settled"},
    "F4": {"in_Offered": "protocol_error", "in_Held": "protocol_error", "superseded": "settled"},
    "F5": {
        "early": "breached(C:hold_without_accept)", "too_little": "breached(C:hold_mismatch)",
        "too_much": "breached(C:hold_mismatch)", "none": "expired", "forged_seen": "refused",
    },
    "F-D′": {"honest": "settled", "forged_hold": "breached(C:withhold_payout_after_pass)"},
    "F6": {"insisting": "inconclusive", "stalling": "inconclusive", "bought_by_C": "breached(A:fail)"},
    "F7": {"dose_0": "settled", "unmoved": "settled"},
}  # fmt: skip
"""Suite -> arm -> how every one of its deals ends: the rules' table of failure modes, written out again."""


@pytest.fixture(scope="module")
def played() -> dict[str, Result]:
    return {name: play_suite(suite, 4, 60) for name, suite in SUITES.items()}


def test_every_suite_shows_what_it_must(played: dict[str, Result]) -> None:
    for name, result in played.items():
        assert [one for one in result.shown if not one.holds] == [], name
        assert result.holds
        assert {one.arm for one in result.shown} == {arm.name for arm in result.suite.arms}
        for arm, state in STATES.get(name, {}).items():
            assert {row.state for row in result.rows[arm]} == {state}, (name, arm)


def test_every_suite_of_breaches_has_an_honest_twin(played: dict[str, Result]) -> None:
    for name, result in played.items():
        twins = [arm.name for arm in result.suite.arms if arm.honest]
        assert bool(twins) == (name != "B3")
        for twin in twins:
            rows = result.rows[twin]
            assert all(row.real and not row.loss_a for row in rows)
            assert any(row.state == "settled" for row in rows)


def test_figures_in_closed_form(played: dict[str, Result]) -> None:
    """What is certain comes out exactly; what is by chance lies within four standard errors of its truth."""
    certain = chancy = 0
    for result in played.values():
        report = report_of(result.suite, result.seed, result.deals, result.rows, result.shown)
        for arm in report.arms:
            for named in arm.measures:
                if named.truth is None:
                    continue
                measure = named.measure
                assert measure.n > 0, (report.suite, arm.name, named.name)
                value = estimate(measure, "x").value
                assert value is not None
                if isinstance(measure, Rate) and 0 < named.truth < 1:
                    chancy += 1
                    error = (named.truth * (1 - named.truth) / measure.n) ** 0.5
                    assert abs(value - named.truth) < 4 * error, (report.suite, arm.name, named.name, value)
                elif isinstance(measure, Rate) or named.truth in (0, 10):
                    certain += 1
                    assert value == named.truth, (report.suite, arm.name, named.name, value)
                else:
                    assert isinstance(measure, Mean)
    assert certain > 40
    assert chancy > 25


def test_a_demand_that_does_not_hold_is_counted_and_told() -> None:
    honest = Setting(suite="X")
    suite = Suite(
        "X", "A suite that asks too much", "C is said to be caught, and is honest.",
        (ArmPlan("arm", "Honest.", honest, (accepted(1.0),), (ends("expired"), Demand("Always.", lambda _: True))),),
    )  # fmt: skip
    result = play_suite(suite, 1, 5)
    assert not result.holds
    assert [(one.k, one.n) for one in result.shown if not one.holds] == [(0, 5)]
    demands = report_of(suite, 1, 5, result.rows, result.shown).demands
    assert [one.sentence for one in demands if not one.holds] == ["Every deal ends Closed:expired."]
    assert demands[-1].holds


def test_a_view_that_differs_fails_the_demand_of_f_d_prime() -> None:
    """The same demand that holds of forgeries does not hold of a C that shows itself."""
    suite = find("fd")
    forged = suite.arms[0]
    shows = forged._replace(setting=forged.setting._replace(c="no_hold", forged=None))
    result = play_suite(suite._replace(arms=(shows, suite.arms[3]), pairings=(), findings=lambda _: ()), 1, 3)
    failed = [one.sentence for one in result.shown if not one.holds]
    assert failed == ["A's view equals that of the honest run, byte for byte, to its own act or the end."]


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    suite = find("F6")
    one, same, other = play_suite(suite, 8, 30), play_suite(suite, 8, 30), play_suite(suite, 9, 30)
    assert one.scribe.transcript() == same.scribe.transcript()
    assert one.rows == same.rows
    assert one.rows != other.rows


@pytest.mark.parametrize("name", ["F-D′", "F-D'", "fd", "f-d-prime", "FD", "F-d’", " f-d′ "])
def test_names_of_f_d_prime(name: str) -> None:
    assert find(name).id == "F-D′"


def test_names_of_the_others() -> None:
    for id_ in SUITES:
        assert find(id_.lower()).id == id_
    assert list(SUITES)[:6] == ["F-D′", "F1", "F2", "F3", "F4", "F5"]
    with pytest.raises(Refused, match="deferred"):
        find("F8")
    with pytest.raises(Refused, match="no suite"):
        find("F9")
    for deals, seed in ((0, 1), (10**6, 1), (1, -1), (1, 2**63)):
        with pytest.raises(Refused) as told:
            play_suite(find("F1"), seed, deals)
        assert told.value.code == "E_SETTING"


def test_a_series_longer_than_a_run_is_refused_before_it_is_played() -> None:
    for series, fits in ((3, True), (10**11, False)):
        suite = single(Setting(series=series))
        if fits:
            assert len(play_suite(suite, 1, 1).rows["run"]) == series
            continue
        with pytest.raises(Refused) as told:
            play_suite(suite, 1, 1)
        assert told.value.code == "E_SETTING"


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    play_suite(find("F1"), 1, 64, lambda done, total: told.append((done, total)))
    assert told[-1] == (256, 256)
