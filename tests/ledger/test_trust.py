"""Asserted confidence from measured components (ledger spec §9)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.ledger import trust
from troth.ledger.trust import WEIGHTS, asserted, components, creation_trust

FULL = dict.fromkeys(WEIGHTS, 1.0)


def measured(**changes: object) -> dict[str, float]:
    run: dict[str, object] = {
        "exit_status": 0,
        "passed": 19,
        "run": 20,
        "seconds": 10.0,
        "timeout": 100.0,
        "causal_depth": 1,
    }
    return components(**{**run, **changes})


def test_the_weights_sum_to_one() -> None:
    assert math.isclose(sum(WEIGHTS.values()), 1.0, abs_tol=1e-12)
    assert len(WEIGHTS) == 7


def test_the_sample_chain_sums_to_0884() -> None:
    chain = {
        "exit_code": 1.0,
        "test_pass_rate": 0.95,
        "context_utilization": 0.72,
        "loop_complete": 1.0,
        "duration_reasonable": 0.80,
        "no_errors": 1.0,
        "evidence_depth": 0.40,
    }
    confidence, written = asserted(chain)
    assert confidence == 0.884
    assert written == [
        "exit_code:1.0",
        "test_pass_rate:0.95",
        "context_utilization:0.72",
        "loop_complete:1.0",
        "duration_reasonable:0.8",
        "no_errors:1.0",
        "evidence_depth:0.4",
    ]


def test_the_components_of_a_run() -> None:
    values = measured(tokens_used=28_000, tokens_window=100_000)
    assert values == {
        "exit_code": 1.0,
        "test_pass_rate": 0.95,
        "context_utilization": 0.72,
        "loop_complete": 1.0,
        "duration_reasonable": 1.0,
        "no_errors": 1.0,
        "evidence_depth": pytest.approx(0.4),
    }
    assert list(values) == list(WEIGHTS)


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({"exit_status": 1}, "exit_code", 0.0),
        ({"exit_status": None}, "exit_code", 0.0),
        ({"exit_status": 1}, "no_errors", 0.0),
        ({"keyword_seen": False}, "no_errors", 0.0),
        ({"passed": 0, "run": 0}, "test_pass_rate", 0.0),
        ({"passed": 3, "run": 4}, "test_pass_rate", 0.75),
        ({}, "context_utilization", 0.0),
        ({"tokens_used": 5, "tokens_window": 0}, "context_utilization", 0.0),
        ({"tokens_used": 200, "tokens_window": 100}, "context_utilization", 0.0),
        ({"tokens_used": 0, "tokens_window": 100}, "context_utilization", 1.0),
        ({"keyword_seen": True, "ended_by_itself": False}, "loop_complete", 1.0),
        ({"keyword_seen": False, "ended_by_itself": True}, "loop_complete", 0.0),
        ({"ended_by_itself": False}, "loop_complete", 0.0),
        ({"seconds": 0.25}, "duration_reasonable", 0.25),
        ({"seconds": 90.0}, "duration_reasonable", 0.5),
        ({"seconds": 100.0}, "duration_reasonable", 0.0),
        ({"seconds": 250.0}, "duration_reasonable", 0.0),
        ({"seconds": 1.0, "timeout": 0.0}, "duration_reasonable", 0.0),
        ({"causal_depth": 0}, "evidence_depth", 0.0),
        ({"causal_depth": 2}, "evidence_depth", 0.64),
    ],
)
def test_one_component(changes: dict[str, object], name: str, value: float) -> None:
    assert measured(**changes)[name] == pytest.approx(value)


def test_verification_at_creation() -> None:
    good = creation_trust(measured(), half_life_days=30)
    assert good["verification"] == "machine_verified"
    assert good["decayHalfLifeDays"] == 30
    bad = creation_trust(measured(exit_status=2))
    assert bad["verification"] == "unverified"
    assert "decayHalfLifeDays" not in bad


@pytest.mark.parametrize(
    "wrong",
    [{}, {**FULL, "extra": 1.0}, {k: v for k, v in FULL.items() if k != "no_errors"}, {**FULL, "exit_code": 1.1},
     {**FULL, "exit_code": -0.1}, {**FULL, "exit_code": math.nan}],
)  # fmt: skip
def test_only_the_seven_components_in_their_range(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"seven|not in"):
        asserted(wrong)


def test_weights_of_a_genesis_key() -> None:
    weights = {**dict.fromkeys(WEIGHTS, 0.0), "exit_code": 1.0}
    assert asserted({**dict.fromkeys(WEIGHTS, 0.0), "exit_code": 0.3}, weights)[0] == 0.3


def test_the_stamp_is_never_shared() -> None:
    stamp = trust.human_stamp()
    stamp["chain"].append("x")
    assert trust.human_stamp()["chain"] == ["manual_review:1.0"]


@given(st.fixed_dictionaries({name: st.floats(0, 1) for name in WEIGHTS}), st.sampled_from(list(WEIGHTS)))
def test_laws(values: dict[str, float], name: str) -> None:
    confidence, chain = asserted(values)
    assert 0.0 <= confidence <= 1.0
    assert round(confidence, 4) == confidence
    assert {part.split(":")[0]: float(part.split(":")[1]) for part in chain} == values
    better, _ = asserted({**values, name: 1.0})
    assert better >= confidence
    exact = sum(WEIGHTS[key] * value for key, value in values.items())
    assert abs(confidence - exact) <= 0.5e-4 + 1e-12
