"""The linear-time engine: what it finds, what it refuses, and that no pattern makes it run away."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from troth.deals.checker import Helpers, judge
from troth.lab import regexes
from troth.lab.regexes import Searcher, search

HELPERS = Helpers(search=search)


def judged(pattern: Any, *claims: str) -> tuple[str, str]:
    found = judge([{"id": "r", "predicate": "claim_regex", "pattern": pattern}], {}, claims, HELPERS)
    return found.result, found.notes()


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("hidden_[a-z]+", "the hidden_goal", True),
        ("^goal$", "the goal", False),
        ("caf\u00e9", "a caf\u00e9", True),
        ("^.$", "\u00e9", True),
        ("(?i)GOAL", "goal", True),
        ("", "", True),
        ("a.b", "a\nb", False),
    ],
)
def test_it_finds_as_a_regular_expression_does(pattern: str, text: str, found: bool):
    assert search(pattern, text) is found


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("(", "no pattern: missing )"),
        (r"(a)\1", "no pattern: invalid escape sequence"),
        ("(?=x)", "no pattern: invalid perl operator"),
        ("a{2000}", "no pattern: invalid repetition size"),
        (r"\pL{900}" * 3, "no pattern: pattern too large"),
        ("x" * 4097, "more than 4096 bytes"),
        ("\ud800", "UTF-8"),
    ],
)
def test_what_is_no_pattern_is_inconclusive_with_the_reason(pattern: str, word: str):
    result, notes = judged(pattern, "x")
    assert result == "inconclusive"
    assert word in notes
    assert judged(pattern)[0] == "inconclusive"  # also when nothing was claimed


def test_a_claim_that_is_too_long_is_not_searched():
    assert judged("x$", "y" * (1 << 20)) == ("fail", "")
    result, notes = judged("x$", "y" * (1 << 20) + "x")
    assert result == "inconclusive"
    assert "1048576 bytes" in notes


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(a|aa)+$", r"^(a*)*b$", r"^(.*a){12}$", "(a?){30}a{30}$"])
def test_what_blows_up_an_engine_that_goes_back_is_harmless(pattern: str):
    """With an engine that goes back each of these would not end in this life; that they end is the test."""
    assert judged(pattern, "a" * 100_000 + "!")[0] == "fail"
    assert judged(pattern.replace("b$", "$"), "a" * 60)[0] == "pass"


def test_without_the_engine_it_is_inconclusive(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    assert judged("x", "x") == ("inconclusive", f"r: {regexes.ABSENT}")
    assert judge([{"id": "r", "predicate": "claim_regex", "pattern": "x"}], {}, ["x"]).notes() == (
        "r: no linear-time engine for claim_regex is at hand"
    )


def test_true_items_of_several_claims():
    assert judged("second", "first", "the second") == ("pass", "")


def test_one_verdict_searches_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(regexes, "MAX_SEARCHED_BYTES", 100)
    items = [{"id": f"r{number}", "predicate": "claim_regex", "pattern": "x"} for number in range(3)]
    few = judge(items[:2], {}, ["x" * 50], Helpers(search=Searcher()))
    assert few.result == "pass"
    many = judge(items, {}, ["x" * 50], Helpers(search=Searcher()))
    assert (many.result, many.results[-1]) == ("inconclusive", ("r2", None))
    assert "more than 100 bytes" in many.notes()
