"""A slow, literal reader of done records: the yardstick of differential tests.

Written straight down the done-records spec, one function a section, and sharing nothing with the product: no
import from it, no table in common, every code typed again from the spec. Sections 2 to 4 stand in
`receipt_records`, sections 6 and 7 in `receipt_checks`, sections 5, 8 and 9 here. Where the spec leaves a corner
open, the plainest reading stands at the place, in a comment that begins with "Open:".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from reference.receipt_checks import ACCEPTANCE, CLAIMS, PROTECTED, not_established, parse, run_check
from reference.receipt_records import (
    Broken,
    Files,
    Json,
    Refused,
    contract,
    file_digest,
    has_members,
    is_digest,
    is_text,
    launch,
    launch_receipt,
    need,
    observation,
    read,
    reports_lost_event,
    strict_json,
    tree,
)

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
