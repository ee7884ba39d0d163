"""Every reason of the rules has something to be done about it."""

from __future__ import annotations

from troth.receipts.reasons import DECISIONS, REASONS
from troth.receipts.remedies import _EXACT, remedy

SOUND = {
    "protected_paths_untouched",
    "acceptance_passed_in_verifier",
    "tool_claims_matched",
    "done_checks_supported",
}


def test_every_reason_has_one_and_only_what_is_well_needs_nothing() -> None:
    told = {code: remedy(code) for code in REASONS}
    assert {code for code, text in told.items() if text == "Nothing."} == SOUND
    assert [code for code, text in told.items() if not text.endswith(".") or len(text) < 8] == []


def test_none_is_for_a_code_that_is_not() -> None:
    assert set(_EXACT) <= set(REASONS)
    assert "troth help codes E_X" in remedy("E_X")


def test_no_decision_is_answered_as_a_broken_file() -> None:
    broken = remedy("tree_files_type")
    assert all(remedy(code) != broken for code in DECISIONS)
