"""What every code of the done-record rules means, in one sentence a person can act on.

`DECISIONS` are the reasons of checks and verdicts, `INVALID` what makes a receipt or contract Statement invalid,
`REFUSALS` what refuses a member; `REASONS` is all of them. A stale claim is told as stale, an unmatched one as not
observed: neither is called a lie, since neither is shown to be one (§13.13).
"""

from __future__ import annotations

from typing import Final

DECISIONS: Final[dict[str, str]] = {
    # protected_paths/v1
    "protected_paths_untouched": ("No protected path was changed, and the record would show it if one had been."),
    "protected_path_mutated": "A protected path was changed during the run.",
    "protected_path_digest_changed": "The final tree's protected files are not those of the contract.",
    # acceptance_observed/v1
    "acceptance_passed_in_verifier": ("Every acceptance command passed when the verifier ran it on the final tree."),
    "acceptance_failed_in_verifier": ("An acceptance command failed when the verifier ran it on the final tree."),
    "contract_adequacy_zero": (
        "The acceptance commands passed, but are not shown to tell a fix from doing nothing: no mutant was killed."
    ),
    "grade_unavailable_or_unbound": "There is no grade that the policy believes.",
    "grade_context_mismatch": "The grade is about another claim or run.",
    "grade_vantage_unestablished": "The grade is not shown to be independent of the agent.",
    "grade_contract_mismatch": "The grade was made for another contract.",
    "grade_tree_unbound": "The grade was made on another tree than the agent left.",
    "acceptance_result_missing": (
        "An acceptance command has no result: it ran no test, disagreed with itself, or was not run."
    ),
    "acceptance_argv_mismatch": "A result is of another command than the contract's.",
    "acceptance_result_unexpected": "The grade holds a result that the contract did not ask for.",
    # tool_claim_match/v1
    "tool_claims_matched": (
        "Every command the agent says it ran was observed, after the last edit and with the exit it claims."
    ),
    "tool_claim_unmatched": "Not observed: a command the agent says it ran does not appear in the record.",
    "tool_claim_precedes_last_edit": (
        "Stale: a claimed command ran, then a file was written, and it did not run again."
    ),
    "tool_claim_exit_mismatch": "A claimed command ended with another exit than the agent says.",
    "tool_exit_unobserved": "A claimed command ran, but its exit was not seen.",
    "claims_unavailable_or_unbound": "There is no claims record that the policy names.",
    "claims_context_mismatch": "The claims are about another claim or run.",
    # common to several checks
    "contract_unavailable_or_unbound": "There is no contract that the policy names.",
    "final_tree_unestablished": ("There is no final tree of this run that is shown to be independent of the agent."),
    "observation_unavailable_or_unbound": "There is no observation that the policy names.",
    "observation_context_mismatch": "The observation is about another claim, run or interval.",
    "observation_vantage_unestablished": "The observation is not shown to be independent of the agent.",
    "observation_coverage_unestablished": "The observer does not say that it saw everything.",
    "capability_unavailable_or_unbound": "There is no record of what the observer can see.",
    "capability_context_mismatch": ("The record of what the observer can see is about another run or observer."),
    "field_visibility_unestablished": "The observer could not see every kind of event that matters here.",
    # the done verdict
    "done_checks_supported": "All three checks are supported.",
    "external_effect_on_grader_path": (
        "The run reached, outside its workspace, a path that a grader loads or writes to."
    ),
}
"""Reason of a check or of the done verdict -> sentence (§7-8)."""

_RECEIPT: Final[dict[str, str]] = {
    "receipt_fields": ("The receipt's Statement has not exactly _type, subject, predicateType and predicate."),
    "receipt_type_wrong": "The receipt is no in-toto Statement v1.",
    "receipt_predicate_type_wrong": "The Statement's predicate type is not that of a done receipt.",
    "receipt_subject_malformed": "The receipt's subject is not one name with one SHA-256 digest.",
    "receipt_predicate_fields": "The receipt's predicate lacks a member or has one too many.",
    "receipt_schema_unsupported": "The receipt's version is not probity-done-receipt/v1.",
    "receipt_predicate_malformed": "A member of the receipt's predicate has a value it may not have.",
    "receipt_verifier_malformed": "The receipt's verifier is not one id that is a URI.",
    "receipt_isolation_malformed": "The isolation report is no object that names a contract.",
    "receipt_stop_decision_malformed": "The stop decision is not one of the four actions with a reason.",
    "receipt_records_shape": (
        "The receipt does not name exactly the six core records, or those and both launch records."
    ),
    "receipt_isolation_contract_differs": ("The isolation report is about another contract than the receipt names."),
    "receipt_record_missing": "A record that the receipt names is not there.",
    "receipt_record_digest_mismatch": "A record was changed after the receipt was written.",
    "receipt_subject_unbound": "The receipt is about another tree than its tree record.",
    "receipt_launch_context_mismatch": "The launch receipt is about another claim or run.",
    "receipt_launch_digest_unbound": "The launch receipt names another launch record.",
    "receipt_launch_records_unbound": ("The launch receipt names another observation, capability or tree record."),
    "receipt_launch_tree_unbound": "The sensors saw another final tree than the tree record holds.",
    "receipt_launch_scope_differs": "Launch receipt, tree and observation do not name one witness scope.",
    "receipt_launch_coverage_differs": "Launch receipt and observation do not name one coverage.",
    "receipt_launch_coverage_overstated": ("The observation says it is complete, and the sensors report a lost event."),
    "receipt_external_effects_differ": "The receipt leaves out or alters effects outside the workspace.",
    "receipt_check_not_recomputed": "The receipt's checks are not what records and policy give.",
    "receipt_verdict_not_derived": "The receipt's verdict does not follow from its checks.",
}

_STATEMENT: Final[dict[str, str]] = {
    "statement_fields": "The Statement has not exactly _type, subject, predicateType and predicate.",
    "statement_type_wrong": "This is no in-toto Statement v1.",
    "statement_predicate_type_wrong": "The Statement's predicate type is not that of a done contract.",
    "statement_subject_malformed": "The Statement's subject is not one name with one SHA-256 digest.",
    "statement_subject_unbound": "The Statement is about other bytes than contract.json.",
    "statement_predicate_differs": "The Statement's predicate is not the contract record.",
}

_MEMBER: Final[dict[str, str]] = {
    "member_unreadable": "A file is a symbolic link, no regular file, too large or unreadable.",
    "member_incomplete": "statement.json or contract.json is missing.",
    "case_missing": "The case or the policy of a check is missing.",
    "case_unreadable": "A case is a symbolic link, no regular file, too large or unreadable.",
    "policy_unreadable": "A policy is a symbolic link, no regular file, too large or unreadable.",
    "case_artifact_unsafe": ("A record named by a case is a symbolic link, no regular file, too large or unreadable."),
    "case_artifact_binding_mismatch": "A record has not the length and digest that its case says.",
}

_POLICY: Final[dict[str, str]] = {
    "case_fields": "The case has not exactly schema_version, case_id and artifacts.",
    "case_schema_unsupported": "The case or the policy has a version this reader does not know.",
    "case_id": "The case's id is no text.",
    "case_objects": "The case's artifacts or the policy's witnesses are no object.",
    "case_artifact_unknown": "A policy names an artifact that its case does not hold.",
    "case_artifact_fields": "An artifact of the case has not exactly path, sha256 and length.",
    "case_artifact_path": "An artifact's path is no text.",
    "case_artifact_path_not_normalized": "An artifact's path is not a plain relative path.",
    "case_artifact_digest_malformed": "An artifact's digest is not 64 lowercase hexadecimal digits.",
    "case_artifact_length": "An artifact's length is not an integer from 0 to 16777216.",
    "policy_fields": "The policy has not exactly schema_version, witnesses and assessments.",
    "policy_assessment_missing": "The policy has no assessment for this case.",
    "policy_assessment_fields": "The policy's assessment lacks a member or has one too many.",
    "policy_claim_type_unsupported": "The policy's assessment is of another check.",
    "policy_invocation_id": "The policy's invocation_id is no text.",
    "policy_observed_party": "The policy's observed party is no text.",
    "policy_witness_shared": "Two roles of a policy have one witness.",
    "policy_artifact_shared": "Two roles of a policy rest on one artifact.",
    "policy_witness_unknown": "A policy's role names a witness that the policy does not pin.",
    "policy_witness_fields": "A pin lacks a member or has one too many.",
    "policy_witness_artifact": "A pin's artifact is no text.",
    "policy_witness_digest_malformed": "A pin's digest is not 64 lowercase hexadecimal digits.",
    "policy_witness_authority": "A pin's authority is no text.",
    "policy_witness_producer": "A pin's producer is no text.",
    "policy_witness_vantage": "A pin's vantage is neither independent nor self_reported.",
    "policy_witness_scope": "A pin's scope is neither PEER nor EXTERNAL.",
}
for _role in ("contract", "capability", "observation", "tree", "grade", "claims"):
    _POLICY[f"policy_{_role}_witness"] = f"The policy's witness of the {_role} record is no text."

_RECORDS: Final[dict[str, str]] = {
    "contract_id": "The contract's id is no text.",
    "contract_task": "The contract's task is no text.",
    "contract_digest_malformed": "A digest in the contract is not 64 lowercase hexadecimal digits.",
    "contract_protected_paths_type": "The contract's protected paths are no array.",
    "contract_protected_path_fields": ("A protected path has not exactly path, kind, sha256 and perhaps exclude."),
    "contract_protected_path_not_normalized": "A protected path is not a plain relative path.",
    "contract_protected_kind": "A protected path is neither a file nor a directory.",
    "contract_exclude_invalid": (
        "An exclude list is empty, repeats itself, names no plain segment or stands on a file."
    ),
    "contract_protected_duplicate": "One path is protected twice.",
    "contract_acceptance_empty": "The contract has no acceptance command.",
    "contract_acceptance_fields": "An acceptance command has not exactly id and argv.",
    "contract_acceptance_id": "An acceptance command's id is no text.",
    "contract_acceptance_argv": "An acceptance command's argv is no array of strings with a program first.",
    "contract_acceptance_duplicate_id": "Two acceptance commands have one id.",
    "contract_adequacy_fields": "The contract's adequacy has not exactly mutants and killed.",
    "contract_adequacy_count": "The contract's mutants or killed is no integer of at least 0.",
    "contract_adequacy_overcount": "The contract's acceptance killed more mutants than there were.",
    "tree_files_type": "The tree's files are no object.",
    "tree_path_not_normalized": "A name in the tree is not a plain relative path.",
    "tree_digest_malformed": "A digest in the tree is not 64 lowercase hexadecimal digits.",
    "tree_digest_mismatch": "The tree's digest is not that of its files.",
    "observation_coverage": "The observation's coverage is not complete, incomplete or unknown.",
    "observation_gaps_required": "The observation is incomplete and names no gap.",
    "observation_gaps_unexpected": "The observation names gaps and is not incomplete.",
    "observation_gap_fields": "A gap has not exactly start and end.",
    "observation_gap_instant": "An end of a gap is no instant.",
    "observation_gap_outside_scope": "A gap is empty or reaches beyond the observation's scope.",
    "observation_events_type": "The observation's events are no array.",
    "observation_event_fields": "An event lacks a member or has one too many.",
    "observation_event_id": "An event's id is no text.",
    "observation_event_type": "An event's type is no text.",
    "observation_step": "An event's step is no integer of at least 0.",
    "observation_origin_unknown": "An event's origin is no earlier exec event.",
    "observation_exec_argv": "An exec event has no argv of strings with a program first.",
    "observation_exec_exit": "An exec event's exit is no integer from -255 to 255.",
    "observation_exec_path": "An exec event has a path or a target.",
    "observation_argv_on_file_event": "An event that is no exec has an argv or an exit.",
    "observation_path_required": "A mutation names no path.",
    "observation_path_not_normalized": "An event's path or target is not a plain relative path.",
    "observation_target_unexpected": "An event that is neither rename nor link has a target.",
    "observation_event_instant": "An event's time is no instant.",
    "observation_event_duplicate_or_outside": ("An event's id was used before, or its time lies outside the scope."),
    "observation_steps_not_increasing": "An event's step is not above that of the event before it.",
    "capability_types": "The visible event types are no array of texts.",
    "capability_types_duplicate": "A visible event type is named twice.",
    "grade_digest_malformed": "A digest in the grade is not 64 lowercase hexadecimal digits.",
    "grade_results_type": "The grade's results are no array.",
    "grade_result_fields": "A result has not exactly id, argv and exit.",
    "grade_result_id": "A result's id is no text.",
    "grade_result_argv": "A result's argv is no array of strings with a program first.",
    "grade_result_exit": "A result's exit is no integer from -255 to 255.",
    "grade_result_duplicate_id": "Two results have one id.",
    "claims_type": "The claims are no array.",
    "claims_entry_fields": "A claim has not exactly id, argv and perhaps exit.",
    "claims_entry_id": "A claim's id is no text.",
    "claims_entry_argv": "A claim's argv is no array of strings with a program first.",
    "claims_entry_exit": "A claim's exit is no integer from -255 to 255.",
    "claims_duplicate_id": "Two claims have one id.",
    "launch_backend": "The launch names a backend this reader does not know.",
    "launch_types": "A launch member is not of its type (booleans, integers, an environment object).",
    "launch_digest_malformed": "A digest in the launch is not 64 lowercase hexadecimal digits.",
    "launch_receipt_witness_scope": "The launch receipt's scope is neither PEER nor EXTERNAL.",
    "launch_receipt_coverage": "The launch receipt's coverage is not complete, incomplete or unknown.",
    "launch_receipt_digest_malformed": ("A digest in the launch receipt is not 64 lowercase hexadecimal digits."),
    "launch_receipt_types": "A launch receipt member is not of its type (boolean, array, integer or null).",
    "launch_receipt_sensors_fields": "The sensors' report lacks a member or has one too many.",
    "launch_receipt_sensors": "A member of the sensors' report is not of its type.",
    "launch_receipt_effect_fields": "An external effect lacks a member or has one too many.",
    "launch_receipt_effect": "An external effect has no type, time and either paths or an address.",
}
for _name in ("image", "image_id", "runtime_version", "strace_version", "trace_expression", "container_workspace"):
    _RECORDS[f"launch_{_name}"] = f"The launch's {_name} is no text."
for _name in ("container_argv", "tracer_flags", "agent_argv"):
    _RECORDS[f"launch_{_name}"] = f"The launch's {_name} is no array of strings with a program first."

_PREFIXES: Final = (
    "receipt", "statement", "contract", "tree", "observation", "capability", "grade", "claims", "launch",
    "launch_receipt", "case", "policy",
)  # fmt: skip
_JSON: Final[dict[str, str]] = {}
for _prefix in _PREFIXES:
    _JSON[f"{_prefix}_json_invalid"] = f"The {_prefix} file is not one value of UTF-8 JSON."
    _JSON[f"{_prefix}_json_number"] = f"The {_prefix} file holds NaN or an infinity, which are no JSON."
    _JSON[f"{_prefix}_json_duplicate_key"] = f"The {_prefix} file names a member twice in one object."
for _prefix in ("contract", "tree", "observation", "capability", "grade", "claims", "launch", "launch_receipt"):
    _RECORDS[f"{_prefix}_fields"] = f"The {_prefix} record lacks a member or has one too many."
    _RECORDS[f"{_prefix}_schema_unsupported"] = f"The {_prefix} record has a version this reader does not know."
for _prefix in ("tree", "observation", "capability", "grade", "claims", "launch_receipt"):
    for _name in ("claim_id", "invocation_id", "producer"):
        _RECORDS[f"{_prefix}_{_name}"] = f"The {_prefix} record's {_name} is no text."
for _prefix in ("tree", "observation", "grade"):
    _RECORDS[f"{_prefix}_vantage"] = f"The {_prefix} record's vantage is neither independent nor self_reported."
    _RECORDS[f"{_prefix}_witness_scope"] = f"The {_prefix} record's witness scope is neither PEER nor EXTERNAL."
for _prefix in ("observation", "policy"):
    _RECORDS[f"{_prefix}_scope_fields"] = f"The {_prefix}'s scope has not exactly id, start and end."
    _RECORDS[f"{_prefix}_scope_id"] = f"The {_prefix}'s scope id is no text."
    _RECORDS[f"{_prefix}_scope_instant"] = f"An end of the {_prefix}'s scope is no instant."
    _RECORDS[f"{_prefix}_scope_order"] = f"The {_prefix}'s scope ends before it starts."

INVALID: Final[dict[str, str]] = {
    **{code: text for code, text in _JSON.items() if code.startswith(("receipt_", "statement_"))},
    **_RECEIPT,
    **_STATEMENT,
}
"""Code that makes a receipt or a contract Statement invalid -> sentence (§5, §9)."""

REFUSALS: Final[dict[str, str]] = {
    **{code: text for code, text in _JSON.items() if code not in INVALID},
    **_MEMBER,
    **_POLICY,
    **_RECORDS,
}
"""Code that refuses a member -> sentence (§2-4, §6). In a contract Statement's member they make it invalid."""

REASONS: Final[dict[str, str]] = {**DECISIONS, **INVALID, **REFUSALS}
"""Every code of the done-record rules -> one sentence."""


def sentence(code: str) -> str:
    """Return what a code means, or the code itself when it is none of these."""
    return REASONS.get(code, code)
