"""A slow, literal reader of done records: the yardstick of differential tests.

Written straight down the done-records spec, one function a section, and sharing nothing with the product: no
import from it, no table in common, every code typed again from the spec. Sections 2 to 4 stand in
`receipt_records`, sections 5 to 9 here. Where the spec leaves a corner open, the plainest reading stands at
the place, in a comment that begins with "Open:".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from reference.receipt_records import (
    LARGEST_FILE,
    MUTATIONS,
    READ_FAULT,
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
    launch,
    launch_receipt,
    need,
    observation,
    read,
    reports_lost_event,
    scope_rules,
    strict_json,
    tree,
    tree_digest,
)

__all__ = ["READ_FAULT", "Files", "check"]

PROTECTED, ACCEPTANCE, CLAIMS = "protected_paths/v1", "acceptance_observed/v1", "tool_claim_match/v1"


# --- Section 5: the Statement -----------------------------------------------------------------------------


def same_json(one: Json, other: Json) -> bool:
    """Equality of JSON values. Open: numbers are equal by value (1 and 1.0), booleans equal no number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same_json(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def statement(prefix: str, raw: bytes, predicate_type: str) -> dict[str, Json]:
    """Section 5, rules 1 to 3; also section 9, rule 1."""
    # 1
    value = strict_json(prefix, raw)
    need(has_members(value, "_type subject predicateType predicate"), f"{prefix}_fields")
    # 2
    need(value["_type"] == "https://in-toto.io/Statement/v1", f"{prefix}_type_wrong")
    need(value["predicateType"] == predicate_type, f"{prefix}_predicate_type_wrong")
    # 3
    subject = value["subject"]
    need(isinstance(subject, list) and len(subject) == 1, f"{prefix}_subject_malformed")
    need(has_members(subject[0], "name digest"), f"{prefix}_subject_malformed")
    need(is_text(subject[0]["name"]), f"{prefix}_subject_malformed")
    need(has_members(subject[0]["digest"], "sha256"), f"{prefix}_subject_malformed")
    need(is_digest(subject[0]["digest"]["sha256"]), f"{prefix}_subject_malformed")
    return value


def contract_statement(files: Files) -> dict[str, Json]:
    """Section 5: a member of the contract corpus."""
    # Open: which comes first when one file is absent and the other at fault. As in section 6: faults first.
    carried = read(files, "statement.json", "member_unreadable")
    record = read(files, "contract.json", "member_unreadable")
    if carried is None or record is None:
        raise Refused("member_incomplete")
    try:
        kind = "https://w3id.org/agent-evidence/predicate/v1/done-contract"
        value = statement("statement", carried, kind)
        # 4
        parsed = contract(record)
        # 5
        bound = value["subject"][0]["digest"]["sha256"] == file_digest(record)
        need(bound, "statement_subject_unbound")
        # 6
        need(same_json(value["predicate"], parsed), "statement_predicate_differs")
    except Broken as broken:
        return {"contract": {"verdict": "invalid", "code": broken.code}}
    return {"contract": {"verdict": "valid"}}


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


# --- Section 8: the done verdict --------------------------------------------------------------------------


def external_effects(files: Files) -> list[Json]:
    raw = read(files, "launch-receipt.json", "member_unreadable")
    if raw is None:
        return []
    effects: list[Json] = parse(launch_receipt, raw)["sensors"]["external_effects"]
    return effects


def is_grader_path(path: str) -> bool:
    segments = path.split("/")
    last = segments[-1]
    if last in ("sitecustomize.py", "usercustomize.py", "reward.json", "reward.txt") or last.endswith(".pth"):
        return True
    return any(segment in ("site-packages", "dist-packages", "verifier") for segment in segments)


def done_verdict(results: Mapping[str, Json], effects: list[Json]) -> dict[str, Json]:
    in_order = [results[PROTECTED], results[ACCEPTANCE], results[CLAIMS]]
    contradicted = [one for one in in_order if one["decision"] == "contradicted"]
    open_ones = [one for one in in_order if one["decision"] == "not_established"]
    if contradicted:
        decision, reason = "contradicted", contradicted[0]["reason"]
    elif any(is_grader_path(path) for effect in effects for path in effect.get("paths", [])):
        decision, reason = "contradicted", "external_effect_on_grader_path"
    elif not open_ones:
        decision, reason = "supported", "done_checks_supported"
    else:
        return not_established(open_ones[0]["reason"])
    scopes = [one["witness_scope"] for one in in_order if one["decision"] != "not_established"]
    external = scopes != [] and all(scope == "EXTERNAL" for scope in scopes)
    scope = "EXTERNAL" if external else "PEER"
    return {"decision": decision, "reason": reason, "vantage": "independent", "witness_scope": scope}


# --- Section 9: verifying a receipt -----------------------------------------------------------------------

RECORD_FILES: Final = {
    "contract": "contract.json",
    "tree": "tree.json",
    "observation": "observation.json",
    "capability": "capability.json",
    "grade": "grade.json",
    "claims": "claims.json",
    "launch": "launch.json",
    "launch_receipt": "launch-receipt.json",
}


def predicate_rules(predicate: Json) -> None:
    """Section 9, rule 2."""
    needed = "schema_version claim_id invocation_id records checks verdict external_effects verifier"
    fields = has_members(predicate, needed, "policy verifier_isolation stop_decision")
    need(fields, "receipt_predicate_fields")
    need(predicate["schema_version"] == "probity-done-receipt/v1", "receipt_schema_unsupported")
    need(is_text(predicate["claim_id"]), "receipt_predicate_malformed")
    need(is_text(predicate["invocation_id"]), "receipt_predicate_malformed")
    need(has_members(predicate["verifier"], "id"), "receipt_verifier_malformed")
    name = predicate["verifier"]["id"]
    # Open: "white space" is every character that Unicode calls so.
    uri = isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", name) is not None
    need(uri, "receipt_verifier_malformed")
    if "policy" in predicate:
        need(has_members(predicate["policy"], "table_sha256"), "receipt_predicate_malformed")
        need(is_digest(predicate["policy"]["table_sha256"]), "receipt_predicate_malformed")
    if "verifier_isolation" in predicate:
        report = predicate["verifier_isolation"]
        named = isinstance(report, dict) and isinstance(report.get("contract_sha256"), str)
        need(named, "receipt_isolation_malformed")
    if "stop_decision" in predicate:
        stop = predicate["stop_decision"]
        need(has_members(stop, "action reason"), "receipt_stop_decision_malformed")
        action = stop["action"] in ("continue", "replan", "escalate", "stop")
        need(action and is_text(stop["reason"]), "receipt_stop_decision_malformed")


def launch_rules(predicate: Json, raws: Mapping[str, bytes], final: Json, seen: Json) -> None:
    """Section 9, rule 6."""
    parse(launch, raws["launch"])
    sensed = parse(launch_receipt, raws["launch_receipt"])
    same_run = all(sensed[name] == predicate[name] for name in ("claim_id", "invocation_id"))
    need(same_run, "receipt_launch_context_mismatch")
    need(sensed["launch_sha256"] == file_digest(raws["launch"]), "receipt_launch_digest_unbound")
    for name in ("observation", "capability", "tree"):
        need(sensed[f"{name}_sha256"] == file_digest(raws[name]), "receipt_launch_records_unbound")
    same_tree = sensed["sensors"]["s3_tree"]["tree_sha256"] == final["tree_sha256"]
    need(same_tree, "receipt_launch_tree_unbound")
    need(sensed["witnessScope"] == final["witness_scope"], "receipt_launch_scope_differs")
    need(sensed["witnessScope"] == seen["witness_scope"], "receipt_launch_scope_differs")
    need(sensed["coverage"] == seen["coverage"], "receipt_launch_coverage_differs")
    overstated = seen["coverage"] == "complete" and reports_lost_event(sensed["sensors"])
    need(not overstated, "receipt_launch_coverage_overstated")


def receipt(files: Files, raw: bytes) -> dict[str, Json]:
    """Section 9: a member that carries a receipt."""
    shown: dict[str, Json] = {}
    try:
        # 1
        kind = "https://w3id.org/agent-evidence/predicate/v1/done-receipt"
        value = statement("receipt", raw, kind)
        # 2
        predicate = value["predicate"]
        predicate_rules(predicate)
        # 3
        records = predicate["records"]
        core = "contract tree observation capability grade claims"
        shape = has_members(records, core) or has_members(records, core + " launch launch_receipt")
        need(shape, "receipt_records_shape")
        for entry in records.values():
            need(has_members(entry, "sha256") and is_digest(entry["sha256"]), "receipt_records_shape")
        if "verifier_isolation" in predicate:
            same = predicate["verifier_isolation"]["contract_sha256"] == records["contract"]["sha256"]
            need(same, "receipt_isolation_contract_differs")
        # 4
        raws: dict[str, bytes] = {}
        for name, entry in records.items():
            held = read(files, RECORD_FILES[name], "member_unreadable")
            need(held is not None, "receipt_record_missing")
            assert held is not None
            need(file_digest(held) == entry["sha256"], "receipt_record_digest_mismatch")
            raws[name] = held
        # 5
        final = parse(tree, raws["tree"])
        seen = parse(observation, raws["observation"])
        bound = value["subject"][0]["digest"]["sha256"] == final["tree_sha256"]
        need(bound, "receipt_subject_unbound")
        # 6
        if "launch" in records:
            launch_rules(predicate, raws, final, seen)
        # 7
        effects = external_effects(files)
        need(same_json(predicate["external_effects"], effects), "receipt_external_effects_differ")
        # 8
        results = {claim_type: run_check(files, claim_type) for claim_type in (PROTECTED, ACCEPTANCE, CLAIMS)}
        shown = {"checks": results, "done": done_verdict(results, effects)}
        need(isinstance(predicate["checks"], list), "receipt_predicate_malformed")
        recomputed = [{"claim_type": claim_type, **one} for claim_type, one in results.items()]
        need(same_json(predicate["checks"], recomputed), "receipt_check_not_recomputed")
        # 9
        need(same_json(predicate["verdict"], shown["done"]), "receipt_verdict_not_derived")
    except Broken as broken:
        return {"receipt": {"verdict": "invalid", "code": broken.code}, **shown}
    return {"receipt": {"verdict": "valid"}, **shown}


def check(files: Files, checks: Sequence[str] | None) -> dict[str, Json]:
    """Return the "Result of a member" (section 9) of a member's files.

    Args:
        files: name to stored bytes; an absent file is not in the mapping, a read fault is `READ_FAULT`.
        checks: the claim types to run when the member has no receipt, in that order; None says that the
            member belongs to the contract corpus, as a manifest row without `checks` does.

    Raises:
        ValueError: a claim type that is none of the three.
    """
    try:
        if checks is None:
            return contract_statement(files)
        raw = read(files, "receipt.json", "member_unreadable")
        if raw is not None:
            return receipt(files, raw)
        results = {claim_type: run_check(files, claim_type) for claim_type in checks}
        if set(results) == {PROTECTED, ACCEPTANCE, CLAIMS}:
            return {"checks": results, "done": done_verdict(results, external_effects(files))}
    except Refused as refused:
        return {"refused": refused.code}
    return {"checks": results}
