"""Every code of the done-record rules, by the section that names it. A test holds each of them to be exercised."""

from __future__ import annotations

_JSON = ("json_invalid", "json_number", "json_duplicate_key")
_NAMES = ("claim_id", "invocation_id", "producer")
_ORIGIN = (*_NAMES, "vantage", "witness_scope")
_SCOPE = ("scope_fields", "scope_id", "scope_instant", "scope_order")


def _with(prefix: str, *families: tuple[str, ...]) -> set[str]:
    return {f"{prefix}_{name}" for family in families for name in family}


_BEGIN = (*_JSON, "fields", "schema_unsupported")

RECORD_CODES: dict[str, set[str]] = {
    "contract": _with("contract", _BEGIN)
    | {
        "contract_id",
        "contract_task",
        "contract_digest_malformed",
        "contract_protected_paths_type",
        "contract_protected_path_fields",
        "contract_protected_path_not_normalized",
        "contract_protected_kind",
        "contract_exclude_invalid",
        "contract_protected_duplicate",
        "contract_acceptance_empty",
        "contract_acceptance_fields",
        "contract_acceptance_id",
        "contract_acceptance_argv",
        "contract_acceptance_duplicate_id",
        "contract_adequacy_fields",
        "contract_adequacy_count",
        "contract_adequacy_overcount",
    },
    "tree": _with("tree", _BEGIN, _ORIGIN)
    | {"tree_files_type", "tree_path_not_normalized", "tree_digest_malformed", "tree_digest_mismatch"},
    "observation": _with("observation", _BEGIN, _ORIGIN, _SCOPE)
    | {
        "observation_coverage",
        "observation_gaps_required",
        "observation_gaps_unexpected",
        "observation_gap_fields",
        "observation_gap_instant",
        "observation_gap_outside_scope",
        "observation_events_type",
        "observation_event_fields",
        "observation_event_id",
        "observation_event_type",
        "observation_step",
        "observation_origin_unknown",
        "observation_exec_argv",
        "observation_exec_exit",
        "observation_exec_path",
        "observation_argv_on_file_event",
        "observation_path_required",
        "observation_path_not_normalized",
        "observation_target_unexpected",
        "observation_event_instant",
        "observation_event_duplicate_or_outside",
        "observation_steps_not_increasing",
    },
    "capability": _with("capability", _BEGIN, _NAMES) | {"capability_types", "capability_types_duplicate"},
    "grade": _with("grade", _BEGIN, _ORIGIN)
    | {
        "grade_digest_malformed",
        "grade_results_type",
        "grade_result_fields",
        "grade_result_id",
        "grade_result_argv",
        "grade_result_exit",
        "grade_result_duplicate_id",
    },
    "claims": _with("claims", _BEGIN, _NAMES)
    | {
        "claims_type",
        "claims_entry_fields",
        "claims_entry_id",
        "claims_entry_argv",
        "claims_entry_exit",
        "claims_duplicate_id",
    },
    "launch": _with("launch", _BEGIN)
    | {
        "launch_backend",
        "launch_image",
        "launch_image_id",
        "launch_runtime_version",
        "launch_strace_version",
        "launch_trace_expression",
        "launch_container_workspace",
        "launch_container_argv",
        "launch_tracer_flags",
        "launch_agent_argv",
        "launch_types",
        "launch_digest_malformed",
    },
    "launch_receipt": _with("launch_receipt", _BEGIN, _NAMES)
    | {
        "launch_receipt_witness_scope",
        "launch_receipt_coverage",
        "launch_receipt_digest_malformed",
        "launch_receipt_types",
        "launch_receipt_sensors_fields",
        "launch_receipt_sensors",
        "launch_receipt_effect_fields",
        "launch_receipt_effect",
    },
}

STATEMENT_CODES = _with("statement", _JSON) | {
    "statement_fields",
    "statement_type_wrong",
    "statement_predicate_type_wrong",
    "statement_subject_malformed",
    "statement_subject_unbound",
    "statement_predicate_differs",
    "member_incomplete",
}

POLICY_CODES = (
    _with("case", _JSON)
    | _with("policy", _JSON, _SCOPE)
    | {f"policy_{role}_witness" for role in ("contract", "capability", "observation", "tree", "grade", "claims")}
    | {
        "case_missing",
        "case_unreadable",
        "policy_unreadable",
        "case_artifact_unsafe",
        "case_fields",
        "policy_fields",
        "case_schema_unsupported",
        "case_id",
        "case_objects",
        "policy_assessment_missing",
        "policy_assessment_fields",
        "policy_claim_type_unsupported",
        "policy_invocation_id",
        "policy_observed_party",
        "policy_witness_shared",
        "policy_artifact_shared",
        "policy_witness_unknown",
        "policy_witness_fields",
        "policy_witness_artifact",
        "case_artifact_unknown",
        "policy_witness_digest_malformed",
        "policy_witness_authority",
        "case_artifact_fields",
        "case_artifact_path",
        "case_artifact_path_not_normalized",
        "case_artifact_digest_malformed",
        "case_artifact_length",
        "case_artifact_binding_mismatch",
        "policy_witness_producer",
        "policy_witness_vantage",
        "policy_witness_scope",
    }
)

DECISION_CODES = {
    "contract_unavailable_or_unbound",
    "observation_unavailable_or_unbound",
    "observation_context_mismatch",
    "observation_vantage_unestablished",
    "capability_unavailable_or_unbound",
    "capability_context_mismatch",
    "field_visibility_unestablished",
    "observation_coverage_unestablished",
    "protected_path_mutated",
    "protected_path_digest_changed",
    "final_tree_unestablished",
    "protected_paths_untouched",
    "grade_unavailable_or_unbound",
    "grade_context_mismatch",
    "grade_vantage_unestablished",
    "grade_contract_mismatch",
    "grade_tree_unbound",
    "acceptance_result_missing",
    "acceptance_argv_mismatch",
    "acceptance_result_unexpected",
    "acceptance_failed_in_verifier",
    "contract_adequacy_zero",
    "acceptance_passed_in_verifier",
    "claims_unavailable_or_unbound",
    "claims_context_mismatch",
    "tool_claim_unmatched",
    "tool_claim_precedes_last_edit",
    "tool_claim_exit_mismatch",
    "tool_exit_unobserved",
    "tool_claims_matched",
    "external_effect_on_grader_path",
    "done_checks_supported",
}

RECEIPT_CODES = _with("receipt", _JSON) | {
    "receipt_fields",
    "receipt_type_wrong",
    "receipt_predicate_type_wrong",
    "receipt_subject_malformed",
    "receipt_predicate_fields",
    "receipt_schema_unsupported",
    "receipt_predicate_malformed",
    "receipt_verifier_malformed",
    "receipt_isolation_malformed",
    "receipt_stop_decision_malformed",
    "receipt_records_shape",
    "receipt_isolation_contract_differs",
    "member_unreadable",
    "receipt_record_missing",
    "receipt_record_digest_mismatch",
    "receipt_subject_unbound",
    "receipt_launch_context_mismatch",
    "receipt_launch_digest_unbound",
    "receipt_launch_records_unbound",
    "receipt_launch_tree_unbound",
    "receipt_launch_scope_differs",
    "receipt_launch_coverage_differs",
    "receipt_launch_coverage_overstated",
    "receipt_external_effects_differ",
    "receipt_check_not_recomputed",
    "receipt_verdict_not_derived",
}

ALL_CODES = set().union(*RECORD_CODES.values(), STATEMENT_CODES, POLICY_CODES, DECISION_CODES, RECEIPT_CODES)
