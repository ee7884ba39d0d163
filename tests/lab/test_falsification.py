"""The rule is fixed before, told with its digest, and decides on intervals: no single bad deal moves it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from lab.calibrating import at_most
from troth.core.errors import Refused
from troth.lab.falsification import applicable, built_in, decide, read_rule, rule_digest, rule_from_json
from troth.lab.measures import Arm, Criterion, Mean, Measure, Named, Rate, Report, Rule
from troth.lab.statistics import wilson
from troth.lab.suites import SUITES

MUST = Criterion("F1", "dishonest", "breached", ">=", 0.9, "must", "A withheld payout is told.")
SHOULD = Criterion("F1", "dishonest", "loss", "<=", 5.0, "should", "A loses little.")


def report(breached: Measure, loss: Measure | None = None, suite: str = "F1") -> Report:
    measures = [Named("breached", "It was told.", "share of deals", breached)]
    if loss is not None:
        measures.append(Named("loss", "What A lost.", "points a deal", loss))
    arm = Arm("dishonest", "C never settles.", tuple(measures))
    return Report(suite, "t", "s", "troth deal suite F1", 1, "d", 1, (arm,))


def words(rule: Rule, *reports: Report) -> tuple[str, list[str]]:
    decision = decide(rule, reports)
    return decision.word, [one.outcome for one in decision.judged]


def test_the_three_words() -> None:
    rule = Rule((MUST, SHOULD))
    good, bad, unclear = Rate(990, 1000), Rate(700, 1000), Rate(905, 1000)
    low, high = Mean.of([2.0] * 500 + [4.0] * 500, (0, 10)), Mean.of([8.0] * 500 + [9.0] * 500, (0, 10))
    assert words(rule, report(good, low)) == ("keep", ["met", "met"])
    assert words(rule, report(good, high)) == ("revise", ["met", "missed"])
    assert words(rule, report(unclear, low)) == ("revise", ["open", "met"])
    assert words(rule, report(bad, low)) == ("retire", ["missed", "met"])
    assert words(rule, report(bad, None)) == ("retire", ["missed", "not played"])
    assert words(rule, report(good, low, suite="F2"))[0] == "undecided"
    assert words(rule) == ("undecided", ["not played", "not played"])


def test_one_bad_deal_decides_nothing() -> None:
    always = replace(MUST, bound=1.0)
    never = Criterion("F1", "dishonest", "loss", "<=", 0.0, "must", "s")
    one_loss = Mean.of([0.0] * 999 + [10.0], (0, 10))
    assert words(Rule((always,)), report(Rate(999, 1000)))[0] == "revise"
    assert words(Rule((never,)), report(Rate(1, 1), one_loss))[0] == "revise"
    assert words(Rule((MUST,), least=100), report(Rate(0, 1))) == ("revise", ["open"])
    assert words(Rule((MUST,), least=100), report(Rate(0, 99))) == ("revise", ["open"])
    # and the honest twin: many bad deals do decide
    assert words(Rule((always,)), report(Rate(900, 1000)))[0] == "retire"
    assert words(Rule((never,)), report(Rate(1, 1), Mean.of([0.0] * 900 + [10.0] * 100, (0, 10))))[0] == "retire"
    assert words(Rule((MUST,), least=100), report(Rate(0, 100)))[0] == "retire"


def test_what_is_open_is_told_with_the_deals_that_would_settle_it() -> None:
    (judged,) = decide(Rule((MUST,)), [report(Rate(183, 200))]).judged
    assert judged.outcome == "open"
    assert judged.needed is not None
    n = judged.needed
    (settled,) = decide(Rule((MUST,)), [report(Rate(round(n * 183 / 200) + 1, n))]).judged
    assert settled.outcome == "met"
    (fewer,) = decide(Rule((MUST,)), [report(Rate(round(n * 0.8 * 183 / 200), round(n * 0.8)))]).judged
    assert fewer.outcome == "open"
    (few,) = decide(Rule((MUST,), least=150), [report(Rate(10, 10))]).judged
    assert few.needed == 150


def test_what_too_few_deals_leave_open_is_told_by_what_they_show() -> None:
    # a value close by its bound takes more than the least number; one far from it takes no more than that
    (close,) = decide(Rule((MUST,), least=100), [report(Rate(46, 50))]).judged
    (far,) = decide(Rule((MUST,), least=100), [report(Rate(10, 50))]).judged
    (at_it,) = decide(Rule((MUST,), least=100), [report(Rate(45, 50))]).judged
    assert close.needed is not None
    assert close.needed > 800
    assert (far.needed, at_it.needed) == (100, None)


@pytest.mark.parametrize(
    "shares",
    [((0.0, 6), (10.0, 5)), ((0.0, 40), (3.0, 30), (10.0, 40)), ((4.5, 1),), ((5.5, 1),)],
    ids=["two values", "three values", "one value below", "one value above"],
)
def test_a_mean_is_told_with_the_deals_that_would_settle_it(shares: tuple[tuple[float, int], ...]) -> None:
    whole = sum(share for _, share in shares)

    def judged(deals: float) -> tuple[str, int | None]:
        values = Mean(tuple((value, round(share * deals / whole)) for value, share in shares), (0, 10))
        (one,) = decide(Rule((SHOULD,), least=2), [report(Rate(1, 1), values)]).judged
        return one.outcome, one.needed

    outcome, needed = judged(22)
    assert outcome == "open"
    assert needed is not None
    assert judged(needed * 1.1)[0] != "open"
    assert judged(needed * 0.9)[0] == "open"


def test_intervals_hold_together() -> None:
    # ten criteria exactly at their bounds: one of them or more is missed no more often than the rule allows
    criteria = tuple(replace(MUST, arm=f"arm {number}", bound=0.5) for number in range(10))
    rng = np.random.default_rng(1)

    def played(confidence: float, times: int) -> int:
        wrong = 0
        for counts in rng.binomial(400, 0.5, (times, 10)).tolist():
            arms = tuple(
                Arm(one.arm, "s", (Named("breached", "s", "u", Rate(count, 400)),))
                for one, count in zip(criteria, counts, strict=True)
            )
            wrong += decide(Rule(criteria, confidence), [replace(report(Rate(0, 0)), arms=arms)]).word == "retire"
        return wrong

    assert at_most(played(0.95, 150), 150, 0.05)
    assert not at_most(played(0.5, 150), 150, 0.05)  # a rule of less confidence would be caught


def test_the_digest_is_the_rules_and_not_the_files() -> None:
    rule = Rule((MUST, SHOULD), source="one.toml")
    assert rule_digest(rule) == rule_digest(replace(rule, source="two.toml"))
    assert rule_digest(rule) != rule_digest(replace(rule, least=101))
    assert rule_digest(rule) != rule_digest(Rule((MUST, replace(SHOULD, bound=5.5)), source="one.toml"))
    assert decide(rule, []).digest == rule_digest(rule)


def test_the_built_in_rule_names_what_the_suites_measure() -> None:
    rule = built_in()
    for criterion in rule.criteria:
        suite = SUITES[criterion.suite]
        (arm,) = [arm for arm in suite.arms if arm.name == criterion.arm]
        assert criterion.measure in [measure.name for measure in arm.measures], criterion
    assert {criterion.suite for criterion in rule.criteria} == set(SUITES) - {"B3"}
    # a share without exception clears its bound with as many deals as a suite plays by itself
    each = 1 - (1 - rule.confidence) / len(rule.criteria)
    for criterion in rule.criteria:
        if criterion.grade == "must":
            n = SUITES[criterion.suite].deals
            found = wilson(Rate(n if criterion.sense == ">=" else 0, n), each)
            assert found.low is not None
            assert found.high is not None
            assert found.low >= criterion.bound if criterion.sense == ">=" else found.high <= criterion.bound


def test_a_rule_applies_where_it_says_something() -> None:
    rule = Rule((MUST,))
    assert applicable(rule, ["F1", "B3"]) is rule
    assert applicable(rule, ["B3"]) is None


def test_a_rule_comes_back_from_its_json() -> None:
    rule = built_in()
    value = json.loads(json.dumps(asdict(rule)))
    assert rule_from_json(value, "run.json") == rule
    for changed in (
        None,
        {**value, "source": 1},
        {**value, "criteria": {}},
        {**value, "confidence": "0.9"},
        {**value, "criteria": [{**value["criteria"][0], "bound": None}]},
        {**value, "more": 1},
    ):
        with pytest.raises(Refused):
            rule_from_json(changed, "run.json")


TEXT = b"""\
confidence = 0.9
least = 50
[[criterion]]
suite = "F1"
arm = "dishonest"
measure = "breached"
sense = ">="
bound = 0.9
grade = "must"
sentence = "A withheld payout is told."
"""


def test_a_rule_is_read_from_toml() -> None:
    assert read_rule(TEXT, "rule.toml") == Rule((MUST,), 0.9, 50, "rule.toml")


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        (b"", "$.criterion"),
        (b"\xff", "$"),
        (b"x = ", "$"),
        (b"a = " + b"[" * 100_000, "$"),
        (b"a = " + b"9" * 5000, "$"),
        (b"#" * (1 << 21), "$"),
        (TEXT.replace(b"confidence", b"certainty"), "$.certainty"),
        (TEXT.replace(b"0.9\nleast", b"1.0\nleast"), "$.confidence"),
        (TEXT.replace(b"0.9\nleast", b"nan\nleast"), "$.confidence"),
        (TEXT.replace(b"least = 50", b"least = 1"), "$.least"),
        (TEXT.replace(b"least = 50", b"least = true"), "$.least"),
        (TEXT.replace(b"bound = 0.9", b"bound = inf"), "$.criterion[0].bound"),
        (TEXT.replace(b"bound = 0.9", b"bound = nan"), "$.criterion[0].bound"),
        (TEXT.replace(b"bound = 0.9", b'bound = "0.9"'), "$.criterion[0].bound"),
        (TEXT.replace(b'grade = "must"\n', b""), "$.criterion[0].grade"),
        (TEXT.replace(b'"must"', b'"may"'), "$.criterion[0]"),
        (TEXT.replace(b'">="', b'">"'), "$.criterion[0]"),
        (TEXT.replace(b"grade", b"weight"), "$.criterion[0].weight"),
        (TEXT + TEXT[TEXT.index(b"[[") :], "$.criterion[1]"),
        (b"criterion = [1]", "$.criterion[0]"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_path(changed: bytes, path: str) -> None:
    with pytest.raises(Refused) as refused:
        read_rule(changed, "rule.toml")
    assert refused.value.code == "E_RULE_MALFORMED"
    assert refused.value.place is not None
    assert (refused.value.place.file, refused.value.place.path) == ("rule.toml", path)
