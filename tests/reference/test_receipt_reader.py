"""The yardstick reader, held to the published members and to small cases made by hand."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from reference.receipt_reader import check, is_grader_path
from reference.receipt_records import READ_FAULT, Broken, is_path, strict_json
from support.shared import SHARED, conformance, needs_shared

CHECKS = ["protected_paths/v1", "acceptance_observed/v1", "tool_claim_match/v1"]


def _vectors() -> list[tuple[str, dict[str, Any]]]:
    if SHARED is None:
        return []
    found = []
    for manifest in sorted((SHARED / "conformance" / "receipts").glob("*/MANIFEST.json")):
        rows = json.loads(manifest.read_bytes())["vectors"]
        found += [(manifest.parent.name, row) for row in rows]
    return found


VECTORS = _vectors()


def _member(folder: Path) -> dict[str, Any]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.json")}


def _published(suite: str, row_id: str) -> dict[str, Any]:
    return _member(conformance("receipts", suite, "cases", row_id))


@needs_shared
@pytest.mark.parametrize(("suite", "row"), VECTORS, ids=[f"{suite}:{row['id']}" for suite, row in VECTORS])
def test_every_published_member_gives_its_declared_result(suite: str, row: dict[str, Any]) -> None:
    files = _member(conformance("receipts", suite) / row["path"])
    assert check(files, row.get("checks")) == row["expected"]


@needs_shared
def test_the_published_members_are_all_there() -> None:
    assert len(VECTORS) == 48


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'{"a":1,"a":2}', "p_json_duplicate_key"),
        (b'{"a":1,"\\u0061":2}', "p_json_duplicate_key"),
        (b'{"a":1,"a":NaN}', "p_json_number"),
        (b'{"a":1,"a":2', "p_json_invalid"),
        (b'{"a":{"b":1,"b":2},"c":NaN}', "p_json_duplicate_key"),
        (b"[-Infinity", "p_json_number"),
        (b"[1,]", "p_json_invalid"),
        (b"\xef\xbb\xbf{}", "p_json_invalid"),
        (b'"\xff"', "p_json_invalid"),
        (b"{} {}", "p_json_invalid"),
        (b"", "p_json_invalid"),
        (b"[" * 100_000, "p_json_invalid"),
        (b"1" * 5000, "p_json_invalid"),
    ],
)
def test_the_first_json_fault_met_decides(raw: bytes, code: str) -> None:
    with pytest.raises(Broken) as met:
        strict_json("p", raw)
    assert met.value.code == code


def test_sound_json_passes() -> None:
    assert strict_json("p", b' {"a":[1,1.5,true,null,"\\u00e9"]}\n') == {"a": [1, 1.5, True, None, "é"]}


def test_paths_and_grader_paths() -> None:
    assert is_path("a/b c/.d")
    assert not any(is_path(bad) for bad in ("", "/a", "a/", "a//b", "a/./b", "../a", "a\0b", 1, None))
    assert all(is_grader_path(name) for name in ("/x/a.pth", "reward.json", "/v/site-packages/q/r.py"))
    assert not any(is_grader_path(name) for name in ("/x/reward.jsonl", "/verifiers/a", "/x.pth/a"))


@needs_shared
@pytest.mark.parametrize(
    ("name", "absent", "fault"),
    [
        ("protected-paths.case.json", "case_missing", "case_unreadable"),
        ("acceptance.policy.json", "case_missing", "policy_unreadable"),
        ("tree.json", None, "case_artifact_unsafe"),
        ("launch-receipt.json", None, "member_unreadable"),
        ("receipt.json", None, "member_unreadable"),
    ],
)
def test_absent_and_unreadable_files_without_receipt(name: str, absent: str | None, fault: str) -> None:
    files = _published("done-receipt", "honest")
    del files["receipt.json"]
    without = {key: raw for key, raw in files.items() if key != name}
    result = check(without, CHECKS)
    if absent is None:
        assert set(result) == {"checks", "done"}
    else:
        assert result == {"refused": absent}
    assert check({**files, name: READ_FAULT}, CHECKS) == {"refused": fault}


@needs_shared
def test_absent_and_unreadable_files_with_receipt() -> None:
    files = _published("done-receipt", "honest")
    without = {key: raw for key, raw in files.items() if key != "claims.json"}
    invalid = {"receipt": {"verdict": "invalid", "code": "receipt_record_missing"}}
    assert check(without, CHECKS) == invalid
    assert check({**files, "claims.json": READ_FAULT}, CHECKS) == {"refused": "member_unreadable"}
    assert check({**files, "claims.json": bytes(16_777_217)}, CHECKS) == {"refused": "member_unreadable"}


@needs_shared
def test_contract_corpus_absent_and_unreadable() -> None:
    files = _published("done-contract", "valid-directory-protected")
    only = {"contract.json": files["contract.json"]}
    assert check(only, None) == {"refused": "member_incomplete"}
    assert check({**files, "contract.json": READ_FAULT}, None) == {"refused": "member_unreadable"}


@needs_shared
def test_subject_over_the_same_contract_with_other_white_space_is_unbound() -> None:
    files = _published("done-contract", "valid-directory-protected")
    files["contract.json"] += b"\n"
    result = check(files, None)
    assert result == {"contract": {"verdict": "invalid", "code": "statement_subject_unbound"}}


@needs_shared
def test_predicate_that_differs_from_its_record() -> None:
    files = _published("done-contract", "valid-directory-protected")
    statement = json.loads(files["statement.json"])
    statement["predicate"]["contract_id"] += "x"
    files["statement.json"] = json.dumps(statement).encode()
    result = check(files, None)
    assert result == {"contract": {"verdict": "invalid", "code": "statement_predicate_differs"}}


def _redone(files: dict[str, Any], name: str, change: dict[str, Any]) -> dict[str, Any]:
    """The member with one record changed and its case and policy files repinned to the new bytes."""
    record = {**json.loads(files[name]), **change}
    raw = json.dumps(record).encode()
    out = {**files, name: raw}
    old = hashlib.sha256(files[name]).hexdigest()
    for other in out:
        if other.endswith(".case.json"):
            case = json.loads(out[other])
            for entry in case["artifacts"].values():
                if entry["sha256"] == old:
                    entry.update(sha256=hashlib.sha256(raw).hexdigest(), length=len(raw))
            out[other] = json.dumps(case).encode()
        elif other.endswith(".policy.json"):
            out[other] = out[other].replace(old.encode(), hashlib.sha256(raw).hexdigest().encode())
    return out


@needs_shared
def test_events_lost_leave_absence_open_but_the_tree_still_contradicts() -> None:
    files = _published("done-receipt", "honest")
    del files["receipt.json"]
    lost = _redone(files, "observation.json", {"coverage": "unknown"})
    result = check(lost, CHECKS)
    reason = "observation_coverage_unestablished"
    assert result["checks"]["protected_paths/v1"]["reason"] == reason
    assert result["done"] == {"decision": "not_established", "reason": reason, "vantage": "unestablished"}
    contract = json.loads(lost["contract.json"])
    entries = [{**entry, "sha256": "0" * 64} for entry in contract["protected_paths"]]
    both = _redone(lost, "contract.json", {"protected_paths": entries})
    assert check(both, CHECKS[:1])["checks"]["protected_paths/v1"]["reason"] == "protected_path_digest_changed"


@needs_shared
def test_claims_follow_claim_order_and_unseen_exits_stay_open() -> None:
    files = _published("done-receipt", "honest")
    del files["receipt.json"]
    claim = json.loads(files["claims.json"])["claims"][0]
    stale_then_missing = [
        {"id": "never", "argv": ["never", "run"]},
        {"id": "wrong", "argv": claim["argv"], "exit": 77},
    ]
    first = _redone(files, "claims.json", {"claims": stale_then_missing})
    assert check(first, CHECKS[2:])["checks"][CHECKS[2]]["reason"] == "tool_claim_unmatched"
    second = _redone(files, "claims.json", {"claims": stale_then_missing[::-1]})
    assert check(second, CHECKS[2:])["checks"][CHECKS[2]]["reason"] == "tool_claim_exit_mismatch"
    none = _redone(files, "claims.json", {"claims": []})
    assert check(none, CHECKS[2:])["checks"][CHECKS[2]]["reason"] == "tool_claims_matched"
    events = json.loads(files["observation.json"])["events"]
    blind = [{key: value for key, value in event.items() if key != "exit"} for event in events]
    unseen = _redone(files, "claims.json", {"claims": [{**claim, "exit": 0}]})
    unseen = _redone(unseen, "observation.json", {"events": blind})
    assert check(unseen, CHECKS[2:])["checks"][CHECKS[2]]["reason"] == "tool_exit_unobserved"


@needs_shared
def test_a_mutilated_member_never_crashes_the_reader_and_some_still_pass() -> None:
    """Each value of each file, replaced by each of a few wrong ones: always one of the four result shapes."""
    files = _published("done-receipt", "honest-with-launch")
    outcomes: dict[str, int] = {}
    for name in files:
        whole = json.loads(files[name])
        for place in _places(whole):
            for wrong in (None, 0, "", [], {}, True, "x"):
                changed = {**files, name: json.dumps(_replaced(whole, place, wrong)).encode()}
                result = check(changed, CHECKS)
                outcome = result.get("refused") or result["receipt"].get("code", "valid")
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes["valid"] > 0
    assert len(outcomes) > 40


def _places(value: Any, limit: int = 3) -> list[tuple[Any, ...]]:
    if limit == 0 or not isinstance(value, dict | list):
        return [()]
    keys = list(value) if isinstance(value, dict) else range(min(2, len(value)))
    return [()] + [(key, *rest) for key in keys for rest in _places(value[key], limit - 1)]


def _replaced(value: Any, place: tuple[Any, ...], wrong: Any) -> Any:
    if not place:
        return wrong
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = _replaced(value[place[0]], place[1:], wrong)
    return copy
