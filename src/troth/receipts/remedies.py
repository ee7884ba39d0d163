"""What to do about a reason of the done-record rules: one sentence for each code, by the code or its family."""

from __future__ import annotations

from typing import Final

_EXACT: Final[dict[str, str]] = {
    # nothing to do
    "protected_paths_untouched": "Nothing.",
    "acceptance_passed_in_verifier": "Nothing.",
    "tool_claims_matched": "Nothing.",
    "done_checks_supported": "Nothing.",
    # contradicted facts
    "protected_path_mutated": (
        "`troth receipt verify` names the write; put the file back and run again, or seal a contract that allows it."
    ),
    "protected_path_digest_changed": (
        "`troth receipt verify` names the files; put them back and run again, or seal the contract anew."
    ),
    "acceptance_failed_in_verifier": "`troth receipt verify` names the command; mend what it tests, then run again.",
    "tool_claim_unmatched": "Run the command under observation and claim it as it was run, or do not claim it.",
    "tool_claim_precedes_last_edit": "Run the command again after the last edit.",
    "tool_claim_exit_mismatch": "Claim the exit that was seen; `troth receipt verify` shows both.",
    "external_effect_on_grader_path": (
        "`troth receipt verify` names the path; judge the run by hand, and run again without reaching it."
    ),
    # not established
    "contract_adequacy_zero": "Seal the contract with acceptance commands that fail when the code is broken.",
    "acceptance_result_missing": "Grade again, with commands that execute tests and do not disagree with themselves.",
    "acceptance_argv_mismatch": "Grade with the contract's own commands.",
    "acceptance_result_unexpected": "Grade with the contract's own commands, and no others.",
    "tool_exit_unobserved": "Run the command to its end before the run ends.",
    "observation_coverage_unestablished": (
        "`troth receipt verify` names what was not seen; run again where the observer sees everything."
    ),
    "field_visibility_unestablished": "Observe with an observer that sees every kind of change and every program.",
    "final_tree_unestablished": "Check that case and policy name this run's tree and a producer other than the agent.",
    # invalid
    "receipt_record_missing": "Get the whole folder: the record was left out or lost.",
    "receipt_record_digest_mismatch": (
        "Get the folder as it was written, or make the receipt anew: a record was changed afterwards."
    ),
    "receipt_check_not_recomputed": (
        "Believe the checks shown here, not the receipt's; ask its writer which records and policy it was made from."
    ),
    "receipt_verdict_not_derived": "Believe the verdict shown here, not the receipt's.",
    "receipt_external_effects_differ": "Read the effects in launch-receipt.json; the receipt does not tell all.",
    "receipt_subject_unbound": "Make the receipt anew from the records that lie in the folder.",
    "statement_subject_unbound": "Make the Statement anew from contract.json, or get the contract it was made for.",
    "statement_predicate_differs": "Make the Statement anew from contract.json.",
    # refused
    "case_missing": (
        "Bring the case and the policy of each check into the folder, or ask for fewer checks with --checks."
    ),
    "case_artifact_binding_mismatch": "Get the record that the case describes, or write the case for this one.",
    "member_incomplete": "Bring both statement.json and contract.json into the folder.",
    "tree_digest_mismatch": "Get the tree record as it was written; its digest is not that of its files.",
}

_UNSAFE: Final = "Put a regular file of at most 16 MiB there that can be read, no link."
_PINS: Final = "Check that case and policy name this run, its records and the producers you believe."
_AGAIN: Final = "Get the folder as it was written, or make the receipt anew."
_ANEW: Final = "Get the file as it was written; records are not mended by hand."

_FAMILIES: Final[tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...]] = (
    # (beginnings, endings, what to do); the first that fits
    ((), ("_unreadable", "_artifact_unsafe"), _UNSAFE),
    ((), ("_unavailable_or_unbound", "_context_mismatch", "_vantage_unestablished"), _PINS),
    (("grade_contract_mismatch", "grade_tree_unbound"), (), "Grade the final tree with this contract again."),
    ((), ("_schema_unsupported",), "Use a reader of that version, or have the file written in version 1."),
    ((), ("_json_invalid", "_json_number", "_json_duplicate_key"), _ANEW),
    (("receipt_launch_",), (), "Get the launch records of this very run, as they were written."),
    (("receipt_", "statement_"), (), _AGAIN),
    (("case_", "policy_"), (), "Write the case and the policy as the specification has them (§6)."),
)


def remedy(code: str) -> str:
    """Return what to do about a reason; what is no reason of these rules gets the way to find out more."""
    from troth.receipts.reasons import REASONS

    if code in _EXACT:
        return _EXACT[code]
    if code not in REASONS:
        return f"`troth help codes {code}` tells what it means."
    for beginnings, endings, told in _FAMILIES:
        if (not beginnings or code.startswith(beginnings)) and (not endings or code.endswith(endings)):
            return told
    return _ANEW
