"""Sections 6 and 7 of the done-records spec, literally: the consumer's case and policy, and the three checks.

Part of the yardstick reader; `receipt_reader` says what it is for and gives the result of a member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reference.receipt_records import (
    LARGEST_FILE,
    MUTATIONS,
    Broken,
    Files,
    Json,
    Refused,
    capability,
    claims,
    contract,
    distinct,
    file_digest,
    grade,
    has_members,
    is_digest,
    is_integer,
    is_path,
    is_text,
    need,
    observation,
    read,
    scope_rules,
    strict_json,
    tree,
    tree_digest,
)

PROTECTED, ACCEPTANCE, CLAIMS = "protected_paths/v1", "acceptance_observed/v1", "tool_claim_match/v1"


# --- Section 6: the consumer's case and policy ------------------------------------------------------------


class Bound:
    """A role bound by case and policy; `raw` is None when the artifact is unavailable."""

    def __init__(self, pin: dict[str, Json], raw: bytes | None) -> None:
        self.pin = pin
        self.raw = raw


class Setting:
    """What one check is asked: the case id, the assessment and the bound roles."""

    def __init__(self, case_id: str, assessment: dict[str, Json], roles: dict[str, Bound]) -> None:
        self.case_id = case_id
        self.assessment = assessment
        self.roles = roles


def setting(files: Files, claim_type: str) -> Setting:
    """Section 6; every broken rule refuses."""
    if claim_type == PROTECTED:
        stem, scoped, roles = "protected-paths", True, ["contract", "capability", "observation", "tree"]
        pinned = ["observation", "tree"]
    elif claim_type == ACCEPTANCE:
        stem, scoped, roles = "acceptance", False, ["contract", "tree", "grade"]
        pinned = ["tree", "grade"]
    elif claim_type == CLAIMS:
        stem, scoped, roles = "tool-claims", True, ["claims", "capability", "observation"]
        pinned = ["observation"]
    else:
        raise ValueError(f"no such check: {claim_type}")
    # 1
    case_raw = read(files, f"{stem}.case.json", "case_unreadable")
    policy_raw = read(files, f"{stem}.policy.json", "policy_unreadable")
    if case_raw is None or policy_raw is None:
        raise Refused("case_missing")
    try:
        # 2
        case = strict_json("case", case_raw)
        policy = strict_json("policy", policy_raw)
        # 3
        need(has_members(case, "schema_version case_id artifacts"), "case_fields")
        need(has_members(policy, "schema_version witnesses assessments"), "policy_fields")
        need(case["schema_version"] == "probity-case/v1", "case_schema_unsupported")
        need(policy["schema_version"] == "probity-policy/v1", "case_schema_unsupported")
        need(is_text(case["case_id"]), "case_id")
        objects = isinstance(case["artifacts"], dict) and isinstance(policy["witnesses"], dict)
        need(objects, "case_objects")
        # 4
        assessments = policy["assessments"]
        present = isinstance(assessments, dict) and case["case_id"] in assessments
        need(present, "policy_assessment_missing")
        assessment = assessments[case["case_id"]]
        fields = ["claim_type", "invocation_id", "observed_party", *[f"{role}_witness" for role in roles]]
        if scoped:
            fields.append("scope")
        need(has_members(assessment, " ".join(fields)), "policy_assessment_fields")
        need(assessment["claim_type"] == claim_type, "policy_claim_type_unsupported")
        # 5
        need(is_text(assessment["invocation_id"]), "policy_invocation_id")
        if scoped:
            scope_rules("policy", assessment["scope"])
        need(is_text(assessment["observed_party"]), "policy_observed_party")
        # 6
        for role in roles:
            need(is_text(assessment[f"{role}_witness"]), f"policy_{role}_witness")
        need(distinct([assessment[f"{role}_witness"] for role in roles]), "policy_witness_shared")
        # 7
        bound = {role: bind(files, case, policy, assessment[f"{role}_witness"], role in pinned) for role in roles}
        # Open: "their artifacts" are read as the artifact names that the pins give, not as the files' paths.
        need(distinct([one.pin["artifact"] for one in bound.values()]), "policy_artifact_shared")
    except Broken as broken:
        raise Refused(broken.code) from None
    return Setting(case["case_id"], assessment, bound)


def bind(files: Files, case: Json, policy: Json, witness: str, pinned: bool) -> Bound:
    """Section 6, "Binding one role"."""
    # 1
    need(witness in policy["witnesses"], "policy_witness_unknown")
    pin = policy["witnesses"][witness]
    fields = "artifact sha256 authority" + (" producer vantage witness_scope" if pinned else "")
    need(has_members(pin, fields), "policy_witness_fields")
    # 2
    need(is_text(pin["artifact"]), "policy_witness_artifact")
    need(pin["artifact"] in case["artifacts"], "case_artifact_unknown")
    need(is_digest(pin["sha256"]), "policy_witness_digest_malformed")
    need(is_text(pin["authority"]), "policy_witness_authority")
    # 3
    entry = case["artifacts"][pin["artifact"]]
    need(has_members(entry, "path sha256 length"), "case_artifact_fields")
    need(is_text(entry["path"]), "case_artifact_path")
    need(is_path(entry["path"]), "case_artifact_path_not_normalized")
    need(is_digest(entry["sha256"]), "case_artifact_digest_malformed")
    length = is_integer(entry["length"]) and 0 <= entry["length"] <= LARGEST_FILE
    need(length, "case_artifact_length")
    # 4
    raw = read(files, entry["path"], "case_artifact_unsafe")
    if raw is not None:
        same = len(raw) == entry["length"] and file_digest(raw) == entry["sha256"]
        need(same, "case_artifact_binding_mismatch")
    # 5
    if entry["sha256"] != pin["sha256"]:
        raw = None
    # 6
    if pinned:
        need(is_text(pin["producer"]), "policy_witness_producer")
        need(pin["vantage"] in ("independent", "self_reported"), "policy_witness_vantage")
        need(pin["witness_scope"] in ("PEER", "EXTERNAL"), "policy_witness_scope")
    return Bound(pin, raw)


def in_context(given: Setting, record: Json, with_scope: bool = False) -> bool:
    if record["claim_id"] != given.case_id or record["invocation_id"] != given.assessment["invocation_id"]:
        return False
    return not with_scope or record["scope"] == given.assessment["scope"]


def independent(given: Setting, role: str, record: Json) -> bool:
    pin = given.roles[role].pin
    if record["vantage"] != "independent" or pin["vantage"] != "independent":
        return False
    return record["producer"] == pin["producer"] and record["producer"] != given.assessment["observed_party"]


# --- Section 7: the three checks --------------------------------------------------------------------------


def parse(record: Callable[[bytes], dict[str, Json]], raw: bytes) -> dict[str, Json]:
    """Section 7: apply section 4 and refuse on a broken rule."""
    try:
        return record(raw)
    except Broken as broken:
        raise Refused(broken.code) from None


def not_established(reason: str) -> dict[str, Json]:
    return {"decision": "not_established", "reason": reason, "vantage": "unestablished"}


def decided(given: Setting, decision: str, reason: str, rests_on: dict[str, Json]) -> dict[str, Json]:
    """A supported or contradicted check, with the records, by role, that it rests on."""
    external = all(
        record["witness_scope"] == "EXTERNAL" and given.roles[role].pin["witness_scope"] == "EXTERNAL"
        for role, record in rests_on.items()
    )
    scope = "EXTERNAL" if external else "PEER"
    return {"decision": decision, "reason": reason, "vantage": "independent", "witness_scope": scope}


def protects(entry: Json, name: str) -> bool:
    if name == entry["path"]:
        return True
    beginning = entry["path"] + "/"
    if not name.startswith(beginning):
        return False
    rest = name[len(beginning) :].split("/")
    return not any(segment in entry.get("exclude", []) for segment in rest)


def changed(entry: Json, files: Mapping[str, str]) -> bool:
    if entry["kind"] == "file":
        return files.get(entry["path"]) != entry["sha256"]
    beneath = {
        name: digest for name, digest in files.items() if name.startswith(entry["path"] + "/") and protects(entry, name)
    }
    return tree_digest(beneath) != entry["sha256"]


def check_protected_paths(given: Setting) -> dict[str, Json]:
    """Section 7.1."""
    roles = given.roles
    # 1
    if roles["contract"].raw is None:
        return not_established("contract_unavailable_or_unbound")
    agreed = parse(contract, roles["contract"].raw)
    final = parse(tree, roles["tree"].raw) if roles["tree"].raw is not None else None
    # 2
    seen: Json = None
    if roles["observation"].raw is None:
        finding = "observation_unavailable_or_unbound"
    else:
        seen = parse(observation, roles["observation"].raw)
        finding = protected_finding(given, agreed, seen)
    # 3
    if finding == "mutated":
        return decided(given, "contradicted", "protected_path_mutated", {"observation": seen})
    # 4
    met = False
    if final is not None and in_context(given, final) and independent(given, "tree", final):
        if any(changed(entry, final["files"]) for entry in agreed["protected_paths"]):
            return decided(given, "contradicted", "protected_path_digest_changed", {"tree": final})
        met = True
    # 5
    if finding != "clean":
        return not_established(finding)
    if not met:
        return not_established("final_tree_unestablished")
    # 6
    rests_on = {"observation": seen, "tree": final}
    return decided(given, "supported", "protected_paths_untouched", rests_on)


def protected_finding(given: Setting, agreed: Json, seen: Json) -> str:
    """Section 7.1, rules 2.2 to 2.9."""
    # 2.2
    if not in_context(given, seen, with_scope=True):
        return "observation_context_mismatch"
    raw = given.roles["capability"].raw
    able = parse(capability, raw) if raw is not None else None
    # 2.3
    if not independent(given, "observation", seen):
        return "observation_vantage_unestablished"
    # 2.4
    for event in seen.get("events", []):
        if event["type"] in MUTATIONS:
            names = [event[which] for which in ("path", "target") if which in event]
            if any(protects(entry, name) for entry in agreed["protected_paths"] for name in names):
                return "mutated"
    # 2.5 to 2.9
    return visibility(given, seen, able, list(MUTATIONS)) or "clean"


def visibility(given: Setting, seen: Json, able: Json, wanted: list[str]) -> str | None:
    """Section 7.1, rules 2.5 to 2.8; None when none of the reasons applies."""
    # 2.5
    if able is None:
        return "capability_unavailable_or_unbound"
    # 2.6
    if not in_context(given, able) or able["producer"] != seen["producer"]:
        return "capability_context_mismatch"
    # 2.7
    if any(one not in able["visible_event_types"] for one in wanted):
        return "field_visibility_unestablished"
    # 2.8
    if seen["coverage"] != "complete":
        return "observation_coverage_unestablished"
    return None


def check_acceptance(given: Setting) -> dict[str, Json]:
    """Section 7.2."""
    roles = given.roles
    agreed = parse(contract, roles["contract"].raw) if roles["contract"].raw is not None else None
    final = parse(tree, roles["tree"].raw) if roles["tree"].raw is not None else None
    graded = parse(grade, roles["grade"].raw) if roles["grade"].raw is not None else None
    # 1
    if agreed is None:
        return not_established("contract_unavailable_or_unbound")
    # 2
    if final is None or not in_context(given, final) or not independent(given, "tree", final):
        return not_established("final_tree_unestablished")
    # 3
    if graded is None:
        return not_established("grade_unavailable_or_unbound")
    if not in_context(given, graded):
        return not_established("grade_context_mismatch")
    if not independent(given, "grade", graded):
        return not_established("grade_vantage_unestablished")
    # 4
    if graded["contract_sha256"] != roles["contract"].pin["sha256"]:
        return not_established("grade_contract_mismatch")
    # 5
    if graded["tree_sha256"] != final["tree_sha256"]:
        return not_established("grade_tree_unbound")
    # 6
    left = {result["id"]: result for result in graded["results"]}
    for command in agreed["acceptance"]:
        if command["id"] not in left:
            return not_established("acceptance_result_missing")
        if left.pop(command["id"])["argv"] != command["argv"]:
            return not_established("acceptance_argv_mismatch")
    if left:
        return not_established("acceptance_result_unexpected")
    rests_on = {"tree": final, "grade": graded}
    # 7
    if any(result["exit"] != 0 for result in graded["results"]):
        return decided(given, "contradicted", "acceptance_failed_in_verifier", rests_on)
    # 8
    if agreed["adequacy"]["killed"] == 0:
        return not_established("contract_adequacy_zero")
    # 9
    return decided(given, "supported", "acceptance_passed_in_verifier", rests_on)


def check_tool_claims(given: Setting) -> dict[str, Json]:
    """Section 7.3."""
    roles = given.roles
    said = parse(claims, roles["claims"].raw) if roles["claims"].raw is not None else None
    seen = parse(observation, roles["observation"].raw) if roles["observation"].raw is not None else None
    able = parse(capability, roles["capability"].raw) if roles["capability"].raw is not None else None
    if said is None:
        return not_established("claims_unavailable_or_unbound")
    if not in_context(given, said):
        return not_established("claims_context_mismatch")
    if seen is None:
        return not_established("observation_unavailable_or_unbound")
    if not in_context(given, seen, with_scope=True):
        return not_established("observation_context_mismatch")
    if not independent(given, "observation", seen):
        return not_established("observation_vantage_unestablished")
    reason = visibility(given, seen, able, [*MUTATIONS, "exec"])
    if reason is not None:
        return not_established(reason)
    found = [judge_claim(claim, seen.get("events", [])) for claim in said["claims"]]
    for one in found:
        if one in ("tool_claim_unmatched", "tool_claim_precedes_last_edit", "tool_claim_exit_mismatch"):
            return decided(given, "contradicted", one, {"observation": seen})
    if "unseen" in found:
        return not_established("tool_exit_unobserved")
    return decided(given, "supported", "tool_claims_matched", {"observation": seen})


def judge_claim(claim: Json, events: list[Json]) -> str:
    """One claim: "matched", "unseen" or the code that contradicts it."""
    candidates = [event for event in events if event["type"] == "exec" and event["argv"] == claim["argv"]]
    own_roots = [event.get("origin", event["id"]) for event in candidates]
    last_edit = -1
    for event in events:
        if event["type"] in MUTATIONS and ("origin" not in event or event["origin"] not in own_roots):
            last_edit = max(last_edit, event["step"])
    fresh = [event for event in candidates if event["step"] > last_edit]
    if not candidates:
        return "tool_claim_unmatched"
    if not fresh:
        return "tool_claim_precedes_last_edit"
    if "exit" not in claim or any("exit" in run and run["exit"] == claim["exit"] for run in fresh):
        return "matched"
    if any("exit" not in run for run in fresh):
        return "unseen"
    return "tool_claim_exit_mismatch"


def run_check(files: Files, claim_type: str) -> dict[str, Json]:
    given = setting(files, claim_type)
    if claim_type == PROTECTED:
        return check_protected_paths(given)
    if claim_type == ACCEPTANCE:
        return check_acceptance(given)
    return check_tool_claims(given)
