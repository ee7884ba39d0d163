"""F8's suite: every betrayal is told as P's, the points are accounted for, and no run of v0.2 has any of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from troth.core.errors import Refused
from troth.deals.proxy_run import ProxyRun
from troth.deals.run import Run, replay
from troth.deals.transcript import entries, split_lines
from troth.lab.folders import check, files_of, write
from troth.lab.measures import Rate
from troth.lab.playing import Setting
from troth.lab.statistics import estimate
from troth.lab.suites import PROTOCOLS, SUITES, find
from troth.lab.suites.playing import Result, play_suite, report_of
from troth.lab.trustees import TrustGame

SUITE = find("f8", "0.3-proxy")


@pytest.fixture(scope="module")
def played() -> Result:
    return play_suite(SUITE, 3, 300)


def test_everything_demanded_is_shown(played: Result) -> None:
    assert played.holds
    assert len(played.shown) > 30
    assert {one.n for one in played.shown} == {300}


def test_figures_in_closed_form(played: Result) -> None:
    report = report_of(SUITE, played.seed, played.deals, played.rows, played.shown)
    certain = chancy = 0
    for arm in report.arms:
        for named in arm.measures:
            assert named.truth is not None
            value = estimate(named.measure, "x").value
            assert value is not None
            if isinstance(named.measure, Rate) and 0 < named.truth < 1:
                chancy += 1
                error = (named.truth * (1 - named.truth) / named.measure.n) ** 0.5
                assert abs(value - named.truth) < 4 * error, (arm.name, named.name)
            elif named.truth in (0, 1, 10):
                certain += 1
                assert value == named.truth, (arm.name, named.name)
            else:
                chancy += 1
                assert abs(value - named.truth) < 4 * (100 * 0.25 / 300) ** 0.5
    assert (certain, chancy) == (13, 6)
    (comparison,) = report.comparisons
    assert (comparison.counts.b > 40, comparison.counts.c) == (True, 0)  # type: ignore[union-attr]  # pairs


def test_every_trustee_leaves_the_points_somewhere(played: Result) -> None:
    where = {
        name: {(row.state, row.note) for row in rows}
        for name, rows in played.rows.items()
        if name not in ("naive", "informed")
    }
    assert where == {
        "withholds": {("breached(P:withholds)", "points_with_P")},
        "short": {("breached(P:withholds)", "points_with_P,deliver_mismatch")},
        "pays_another": {("breached(P:pays_another)", "points_with_X")},
        "colludes": {("breached(P:colludes)", "points_with_C")},
        "declines": {("declined", "")},
        "twin": {("settled", "points_with_A")},
    }
    tempted = {row.state for row in played.rows["naive"]}
    assert tempted == {
        "settled", "rejected", "breached(P:withholds)", "breached(P:pays_another)", "breached(P:colludes)",
    }  # fmt: skip


def test_a_demand_does_not_hold_of_another_trustee() -> None:
    arms = {arm.name: arm for arm in SUITE.arms}
    for name, other in (("withholds", "honest"), ("twin", "colludes"), ("colludes", "withholds")):
        swapped = arms[name]._replace(setting=arms[name].setting._replace(p=other))
        assert not play_suite(SUITE._replace(arms=(swapped,), pairings=()), 1, 2).holds
        assert play_suite(SUITE._replace(arms=(arms[name],), pairings=()), 1, 2).holds


def test_its_transcript_is_of_its_own_protocol(played: Result) -> None:
    lines = list(split_lines(played.scribe.transcript()))[:40]
    own = replay(entries(lines), run=ProxyRun())
    assert {deal.illegal for deal in own.deals.values()} == {None}
    plain = replay(entries(lines), run=Run())
    assert {deal.illegal.code for deal in plain.deals.values() if deal.illegal is not None} == {"malformed"}
    assert len(plain.deals) == len(own.deals)


def test_no_run_of_the_other_protocol_has_it() -> None:
    assert "F8" not in SUITES
    assert list(PROTOCOLS["0.3-proxy"]) == ["F8"]
    with pytest.raises(Refused, match="deferred"):
        find("f8")
    with pytest.raises(Refused, match="no suite"):
        find("f1", "0.3-proxy")


def test_what_is_no_trustee_is_refused() -> None:
    for known in ("honest", "tempted(0)", "tempted(0.25)", "tempted(1)"):
        assert TrustGame(Setting(p=known)).play(1, 0).outcome.state
    for unknown in ("", "tempted", "tempted(1.5)", "tempted(-0.1)", "kind", "tempted(0.1)\n"):
        with pytest.raises(Refused) as told:
            TrustGame(Setting(p=unknown))
        assert told.value.code == "E_TRUSTEE_UNKNOWN"


def test_a_deal_stands_in_a_transcript_of_its_own_as_among_others() -> None:
    setting = Setting(suite="F8", p="tempted(0.5)", a="rational(belief=0.5,reserve=0,reserve_to=12)")
    game = TrustGame(setting)
    rows = [game.play(7, index).outcome for index in range(40)]
    arm = SUITE.arms[0]._replace(setting=setting)
    together = play_suite(SUITE._replace(arms=(arm,), pairings=()), 7, 40).rows[arm.name]
    assert [row._replace(arm="") for row in together] == rows


def test_its_folder_is_played_again_and_tampering_is_found(tmp_path: Path) -> None:
    files = files_of(play_suite(SUITE, 5, 4))
    assert json.loads(files["run.json"])["protocol"] == "0.3-proxy"
    folder = tmp_path / "f8"
    assert write(folder, files)
    assert check(folder).faults == ()
    recipe = folder / "run.json"
    recipe.write_bytes(recipe.read_bytes().replace(b"0.3-proxy", b"0.2"))
    with pytest.raises(Refused, match="names no suite"):
        check(folder)
    recipe.write_bytes(files["run.json"].replace(b'"0.3-proxy"', b'["0.2"]'))
    with pytest.raises(Refused, match="names no suite"):
        check(folder)
    recipe.write_bytes(files["run.json"])
    rows = folder / "outcomes.jsonl"
    rows.write_bytes(files["outcomes.jsonl"].replace(b"points_with_P", b"points_with_A", 1))
    assert [name for name, _ in check(folder).faults] == ["outcomes.jsonl"]
