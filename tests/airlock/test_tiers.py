"""What a tier makes of its validators' answers: every case, and against a model of its own."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.airlock_model import becomes
from troth.airlock.tiers import Close, Failed, Mark, Outcome, Result, WaitForPerson, marks, outcome
from troth.ledger.genesis import Tier

MARKS: tuple[Mark, ...] = ("passed", "failed", "waiting")
WORDS = {Close: "closed", WaitForPerson: "waits", Failed: "failed"}
NAMES = ("technical", "safety", "intent", "suite")


def tier(auto_close: bool = True, require_human: bool = False, validators: tuple[str, ...] = ("technical",)) -> Tier:
    return Tier(1, auto_close, None, require_human, validators)


def results(*answers: tuple[str, Mark]) -> list[Result]:
    return [Result(name, mark, "because") for name, mark in answers]


@pytest.mark.parametrize("auto_close", [True, False])
@pytest.mark.parametrize("require_human", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_every_case_of_up_to_three_validators(auto_close: bool, require_human: bool, count: int) -> None:
    names = NAMES[:count]
    for answered in itertools.product((None, *MARKS), repeat=count):
        given_ = [(name, mark) for name, mark in zip(names, answered, strict=True) if mark is not None]
        found = outcome(tier(auto_close, require_human, names), results(*given_))
        assert WORDS[type(found)] == becomes(auto_close, require_human, list(names), given_), (names, answered)


@pytest.mark.parametrize(
    ("held", "answers", "expected"),
    [
        (tier(), [("technical", "passed")], Close(("technical",))),
        (tier(), [("technical", "failed")], Failed(("technical",))),
        (tier(auto_close=False), [("technical", "passed")], WaitForPerson(())),
        (tier(auto_close=False, require_human=True), [("technical", "passed")], WaitForPerson(())),
        (
            tier(validators=("technical", "intent")),
            [("technical", "passed"), ("intent", "waiting")],
            WaitForPerson(("intent",)),
        ),
        (
            tier(validators=("technical", "safety", "intent")),
            [("technical", "failed"), ("safety", "failed"), ("intent", "waiting")],
            Failed(("technical", "safety")),
        ),
        (tier(), [("other", "passed")], Failed(("technical",))),
        (tier(), [("technical", "passed"), ("technical", "failed")], Failed(("technical",))),
        (tier(validators=("a", "a")), [("a", "passed")], Close(("a",))),
    ],
)
def test_who_is_named(held: Tier, answers: list[tuple[str, Mark]], expected: Outcome) -> None:
    assert outcome(held, results(*answers)) == expected


answer_lists = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(MARKS)), max_size=8)
tiers = st.builds(tier, st.booleans(), st.booleans(), st.lists(st.sampled_from(NAMES), max_size=4).map(tuple))


@given(tiers, answer_lists)
def test_the_same_as_the_model(held: Tier, answers: list[tuple[str, Mark]]) -> None:
    found = outcome(held, results(*answers))
    assert WORDS[type(found)] == becomes(held.auto_close, held.require_human, list(held.validators), answers)


@given(tiers, answer_lists, st.randoms())
def test_order_of_answers_counts_nothing(held: Tier, answers: list[tuple[str, Mark]], random: object) -> None:
    shuffled = list(answers)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert outcome(held, results(*answers)) == outcome(held, results(*shuffled))


@given(tiers, answer_lists)
def test_closing_needs_a_pass_of_every_validator_and_no_demand_for_a_person(
    held: Tier, answers: list[tuple[str, Mark]]
) -> None:
    if isinstance(outcome(held, results(*answers)), Close):
        assert held.validators
        assert held.auto_close
        assert not held.require_human
        assert set(marks(held, results(*answers)).values()) == {"passed"}
