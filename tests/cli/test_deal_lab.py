"""``troth deal suite | b3``: how many deals, and by which rule."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from troth.cli.deal_lab import _tell
from troth.cli.main import main
from troth.lab.falsification import built_in, read_rule, rule_digest
from troth.lab.inference import infer
from troth.lab.measures import Comparison, Paired, Report
from troth.lab.power import deals_for_half_width, pairs_for_difference

RULE = """\
confidence = 0.9
least = 20
[[criterion]]
suite = "F3"
arm = "ghost"
measure = "breach_A"
sense = ">="
bound = 0.8
grade = "must"
sentence = "Silence is told."
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(["deal", *words])
    return status, capsys.readouterr().out


def test_runs_are_chosen_by_a_half_width(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = said(capsys, "suite", "f3", "--half-width", "0.2", "--json")
    assert status == 0
    value = json.loads(out)
    n = deals_for_half_width(0.2)
    (suite,) = value["suites"]
    assert {measure["n"] for arm in suite["arms"] for measure in arm["measures"]} == {n}
    assert suite["command"] == f"troth deal suite F3 --seed 1 --runs {n}"
    assert "at most 0.1" in suite["plan"] or "at most 0.2" in suite["plan"]
    assert value["falsification"]["rule"]["sha256"] == rule_digest(built_in())
    assert value["falsification"]["rule"]["source"] == "built in"
    assert (here / f"f3-seed1-{n}" / "report.html").is_file()


def test_pairs_are_chosen_by_a_power(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = said(capsys, "b3", "--difference", "0.3", "--power", "0.5", "--json")
    assert status == 0
    value = json.loads(out)
    n = pairs_for_difference(0.3, 0.5, comparisons=6)
    counts = [one["counts"] for one in value["suites"][0]["comparisons"]]
    assert {sum(count.values()) for count in counts} == {n}
    assert value["falsification"] is None  # the rule says nothing of B3
    assert (here / f"b3-seed1-{n}" / "plots" / "differences.svg").is_file()


def test_a_rule_of_ones_own_is_printed_and_kept(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "mine.toml").write_text(RULE)
    status, out = said(capsys, "suite", "F3", "--runs", "30", "--rule", "mine.toml", "--out", "kept")
    assert status == 0
    assert "template: keep" in out
    told = json.loads((here / "kept" / "report.json").read_bytes())
    rule = read_rule(RULE.encode(), "mine.toml")
    assert told["falsification"]["rule"]["sha256"] == rule_digest(rule)
    assert told["suites"][0]["command"] == "troth deal suite F3 --seed 1 --runs 30 --rule mine.toml"
    page = (here / "kept" / "report.html").read_text(encoding="utf-8")
    assert rule_digest(rule) in page
    assert "Silence is told." in page
    assert said(capsys, "report", "kept")[0] == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["suite", "F3", "--half-width", "0"], "E_POWER_ARGUMENT"),
        (["suite", "F3", "--half-width", "nan"], "E_POWER_ARGUMENT"),
        (["suite", "F3", "--half-width", "0.1", "--runs", "5"], "E_USAGE"),
        (["b3", "--difference", "0.1", "--runs", "5"], "E_USAGE"),
        (["b3", "--power", "0.9"], "E_USAGE"),
        (["b3", "--difference", "0.1", "--power", "1"], "E_POWER_ARGUMENT"),
        (["b3", "--difference", "0.00001"], "E_POWER_UNREACHABLE"),
        (["suite", "F3", "--half-width", "0.001"], "E_SETTING"),
        (["suite", "F3", "--rule", "bad.toml"], "E_RULE_MALFORMED"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    words: list[str], code: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "bad.toml").write_text(RULE.replace("must", "perhaps"))
    status, out = said(capsys, *words, "--json")
    assert status == 2
    assert json.loads(out)["error"]["code"] == code
    assert [path.name for path in here.iterdir()] == ["bad.toml"]


def test_a_comparison_is_told_with_its_difference_and_no_chance_is_told_as_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def told(counts: Paired) -> str:
        compared = (Comparison("object", "both", "accepted", "A accepts.", counts),)
        _tell(infer(Report("B3", "t", "s", "troth deal b3", 1, "d", counts.n, (), compared)))
        (line,) = [line for line in capsys.readouterr().out.splitlines() if "object against both, accepted" in line]
        return line

    beyond = told(Paired(0, 1200, 700, 100))
    assert "difference -0.6 [-0.62" in beyond
    assert beyond.endswith("p < 1e-300 (holm)")
    assert told(Paired(5, 8, 50, 37)).endswith("p 0.581 (holm)")
    assert told(Paired(0, 0, 0, 0)).endswith("no difference to test")


def test_names_of_measures_stand_apart_from_their_values(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = said(capsys, "suite", "f1", "--runs", "2")
    assert "    unsupported_after_pass 1 [" in out
    _, one = said(capsys, "run")
    assert "One setting: 1 deal, seed 1" in one


def test_a_quick_check_claims_nothing_of_what_it_did_not_look_at(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, "run", "--out", "kept")[0] == 0
    assert "Every file is what its transcript comes to" in said(capsys, "report", "kept")[1]
    (here / "kept" / "report.html").write_text("another page")
    status, out = said(capsys, "report", "kept", "--quick")
    assert (status, "were not looked at" in out, "Every file" in out) == (0, True, False)
    assert said(capsys, "report", "kept")[0] == 1


def test_without_the_extra_it_is_named_and_no_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "scipy", None)
    for name in [name for name in sys.modules if name.startswith(("scipy.", "statsmodels"))]:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["deal", "suite", "F1", "--runs", "5", "--out", "f1"]) == 2
    assert "troth[lab]" in capsys.readouterr().err
