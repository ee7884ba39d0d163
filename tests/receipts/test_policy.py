"""The consumer's case and policy (done records §6): every code, binding, and the order of the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from receipts.codes import POLICY_CODES
from receipts.faults import JSON_FAULTS, NOT_DIGESTS, NOT_INSTANTS, NOT_PATHS, drop, put, whole
from support.receipt_members import CHECKS, HONEST, SUPPORTED, Draft, dump, sha
from troth.receipts.member import MAX_BYTES, MappingMember, ReadFault
from troth.receipts.verify import check_member

PolicyEdit = Callable[[Any, Any], tuple[Any, Any]]
Fault = tuple[str, str, str, Callable[[Any], Any]]

PIN = "witnesses.observation-pin"
ASKED = "assessments.claim-1"
ENTRY = "artifacts.observation-file"

FAULTS: list[Fault] = [
    # (code, check's stem, "case" or "policy", edit)
    ("case_fields", "acceptance", "case", whole([])),
    ("case_fields", "acceptance", "case", put("more", 1)),
    ("policy_fields", "acceptance", "policy", drop("witnesses")),
    ("policy_fields", "acceptance", "policy", whole("policy")),
    ("case_schema_unsupported", "acceptance", "case", put("schema_version", "probity-case/v2")),
    ("case_schema_unsupported", "acceptance", "policy", put("schema_version", ["probity-policy/v1"])),
    ("case_id", "acceptance", "case", put("case_id", "")),
    ("case_id", "acceptance", "case", put("case_id", ["claim-1"])),
    ("case_objects", "acceptance", "case", put("artifacts", [])),
    ("case_objects", "acceptance", "policy", put("witnesses", None)),
    ("policy_assessment_missing", "acceptance", "policy", put("assessments", {})),
    ("policy_assessment_missing", "acceptance", "policy", put("assessments", ["claim-1"])),
    ("policy_assessment_missing", "acceptance", "case", put("case_id", "claim-2")),
    ("policy_assessment_fields", "acceptance", "policy", put(f"{ASKED}.scope", {})),
    ("policy_assessment_fields", "acceptance", "policy", put(ASKED, None)),
    ("policy_assessment_fields", "protected-paths", "policy", drop(f"{ASKED}.scope")),
    ("policy_assessment_fields", "tool-claims", "policy", drop(f"{ASKED}.claims_witness")),
    ("policy_claim_type_unsupported", "acceptance", "policy", put(f"{ASKED}.claim_type", "protected_paths/v1")),
    ("policy_claim_type_unsupported", "acceptance", "policy", put(f"{ASKED}.claim_type", {})),
    ("policy_invocation_id", "acceptance", "policy", put(f"{ASKED}.invocation_id", "")),
    ("policy_scope_fields", "tool-claims", "policy", put(f"{ASKED}.scope", "run")),
    ("policy_scope_fields", "protected-paths", "policy", put(f"{ASKED}.scope.more", 1)),
    ("policy_scope_id", "tool-claims", "policy", put(f"{ASKED}.scope.id", None)),
    *(
        ("policy_scope_instant", "tool-claims", "policy", put(f"{ASKED}.scope.{end}", value))
        for end in ("start", "end")
        for value in NOT_INSTANTS
    ),
    ("policy_scope_order", "tool-claims", "policy", put(f"{ASKED}.scope.start", "2026-03-01T11:00:01Z")),
    ("policy_observed_party", "acceptance", "policy", put(f"{ASKED}.observed_party", "")),
    *(
        (f"policy_{role}_witness", stem, "policy", put(f"{ASKED}.{role}_witness", value))
        for stem, roles, _ in CHECKS.values()
        for role in roles
        for value in ("", None)
    ),
    ("policy_witness_shared", "acceptance", "policy", put(f"{ASKED}.tree_witness", "contract-pin")),
    ("policy_witness_unknown", "acceptance", "policy", put(f"{ASKED}.tree_witness", "nobody")),
    ("policy_witness_fields", "tool-claims", "policy", put(PIN, [])),
    ("policy_witness_fields", "tool-claims", "policy", drop(f"{PIN}.producer")),
    ("policy_witness_fields", "tool-claims", "policy", put("witnesses.claims-pin.vantage", "independent")),
    ("policy_witness_fields", "acceptance", "policy", put("witnesses.contract-pin.producer", "x")),
    ("policy_witness_artifact", "tool-claims", "policy", put(f"{PIN}.artifact", "")),
    ("policy_witness_artifact", "tool-claims", "policy", put(f"{PIN}.artifact", ["observation-file"])),
    ("case_artifact_unknown", "tool-claims", "policy", put(f"{PIN}.artifact", "nothing")),
    *(("policy_witness_digest_malformed", "tool-claims", "policy", put(f"{PIN}.sha256", v)) for v in NOT_DIGESTS),
    ("policy_witness_authority", "tool-claims", "policy", put(f"{PIN}.authority", "")),
    ("case_artifact_fields", "tool-claims", "case", put(ENTRY, "observation.json")),
    ("case_artifact_fields", "tool-claims", "case", put(f"{ENTRY}.more", 1)),
    ("case_artifact_path", "tool-claims", "case", put(f"{ENTRY}.path", "")),
    ("case_artifact_path", "tool-claims", "case", put(f"{ENTRY}.path", None)),
    *(
        ("case_artifact_path_not_normalized", "tool-claims", "case", put(f"{ENTRY}.path", path))
        for path in NOT_PATHS
        if isinstance(path, str) and path
    ),
    *(("case_artifact_digest_malformed", "tool-claims", "case", put(f"{ENTRY}.sha256", v)) for v in NOT_DIGESTS),
    *(
        ("case_artifact_length", "tool-claims", "case", put(f"{ENTRY}.length", value))
        for value in (-1, MAX_BYTES + 1, True, 1.0, "1", None)
    ),
    ("case_artifact_binding_mismatch", "tool-claims", "case", put(f"{ENTRY}.length", 1)),
    ("case_artifact_binding_mismatch", "tool-claims", "case", put(f"{ENTRY}.sha256", "0" * 64)),
    ("case_artifact_binding_mismatch", "tool-claims", "case", put(f"{ENTRY}.path", "tree.json")),
    ("policy_witness_producer", "tool-claims", "policy", put(f"{PIN}.producer", "")),
    ("policy_witness_vantage", "tool-claims", "policy", put(f"{PIN}.vantage", "PEER")),
    ("policy_witness_scope", "tool-claims", "policy", put(f"{PIN}.witness_scope", ["PEER"])),
    ("policy_artifact_shared", "tool-claims", "policy", put("witnesses.claims-pin.artifact", "capability-file")),
]


def sealed(*edits: tuple[str, str, Callable[[Any], Any]]) -> dict[str, bytes]:
    """Seal an honest draft with edits of (stem, "case" or "policy", edit)."""
    import json

    files = Draft().seal()
    for stem, which, edit in edits:
        name = f"{stem}.{which}.json"
        files[name] = dump(edit(json.loads(files[name])))
    return files


class Faulty:
    """A member whose named entries cannot be read."""

    def __init__(self, files: dict[str, bytes], *names: str) -> None:
        self._files = files
        self._names = names

    def read(self, name: str) -> bytes | None:
        if name in self._names:
            raise ReadFault(name, "made unreadable by a test")
        return self._files.get(name)


@pytest.mark.parametrize(
    ("code", "stem", "which", "edit"),
    [pytest.param(*fault, id=f"{fault[0]}-{number}") for number, fault in enumerate(FAULTS)],
)
def test_every_broken_rule_has_its_code(code: str, stem: str, which: str, edit: Any) -> None:
    claim_type = next(name for name, check in CHECKS.items() if check[0] == stem)
    assert check_member(MappingMember(sealed((stem, which, edit))), [claim_type]) == {"refused": code}


@pytest.mark.parametrize(("claim_type", "stem"), [(name, check[0]) for name, check in CHECKS.items()])
@pytest.mark.parametrize("which", ["case", "policy"])
@pytest.mark.parametrize(("code", "spoil"), JSON_FAULTS)
def test_json_faults_of_case_and_policy(claim_type: str, stem: str, which: str, code: str, spoil: Any) -> None:
    files = Draft().seal()
    files[f"{stem}.{which}.json"] = spoil(files[f"{stem}.{which}.json"])
    assert check_member(MappingMember(files), [claim_type]) == {"refused": f"{which}_{code}"}


FILE_FAULTS: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    # (code, unreadable, missing)
    ("case_unreadable", ("acceptance.case.json",), ("acceptance.policy.json",)),
    ("policy_unreadable", ("acceptance.policy.json",), ("acceptance.case.json",)),
    ("case_unreadable", ("acceptance.case.json", "acceptance.policy.json"), ()),
    ("case_missing", (), ("acceptance.case.json",)),
    ("case_missing", (), ("acceptance.policy.json",)),
    ("case_artifact_unsafe", ("tree.json",), ()),
]


@pytest.mark.parametrize(("code", "unreadable", "missing"), FILE_FAULTS)
def test_files_that_are_not_there_or_not_readable(
    code: str, unreadable: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    files = {name: data for name, data in Draft().seal().items() if name not in missing}
    found = check_member(Faulty(files, *unreadable), ["acceptance_observed/v1"])
    assert found == {"refused": code}


def test_every_code_of_case_and_policy_is_exercised() -> None:
    tried = {fault[0] for fault in FAULTS} | {fault[0] for fault in FILE_FAULTS}
    tried |= {f"{which}_{code}" for which in ("case", "policy") for code, _ in JSON_FAULTS}
    assert tried == POLICY_CODES


def test_the_honest_twin() -> None:
    assert check_member(MappingMember(sealed())) == HONEST


def test_entries_nobody_asks_about_are_ignored() -> None:
    files = sealed(
        ("acceptance", "policy", put("assessments.other", "anything")),
        ("acceptance", "policy", put("witnesses.other", None)),
        ("acceptance", "case", put("artifacts.other", 1)),
    )
    assert check_member(MappingMember(files)) == HONEST


@pytest.mark.parametrize(
    ("code", "edits"),
    [
        ("case_fields", (("case", whole([])), ("policy", whole([])))),
        ("case_id", (("case", put("case_id", 1)), ("policy", put("witnesses", 1)))),
        ("case_schema_unsupported", (("case", put("case_id", 1)), ("policy", put("schema_version", "x")))),
        (
            "policy_claim_type_unsupported",
            (("policy", put(f"{ASKED}.claim_type", 1)), ("policy", put(f"{ASKED}.invocation_id", 1))),
        ),
        ("policy_invocation_id", (("policy", put(f"{ASKED}.scope", 1)), ("policy", put(f"{ASKED}.invocation_id", 1)))),
        ("policy_scope_fields", (("policy", put(f"{ASKED}.scope", 1)), ("policy", put(f"{ASKED}.observed_party", 1)))),
        (
            "policy_claims_witness",
            (("policy", put(f"{ASKED}.claims_witness", 1)), ("policy", put(f"{ASKED}.observation_witness", 1))),
        ),
        (
            "policy_witness_shared",
            (("policy", put(f"{ASKED}.claims_witness", "capability-pin")), ("policy", put("witnesses", {}))),
        ),
        # one role is bound wholly before the next
        (
            "case_artifact_length",
            (("case", put("artifacts.claims-file.length", -1)), ("policy", put("witnesses.capability-pin", 1))),
        ),
        # the file is compared before the pin's origin is looked at
        (
            "case_artifact_binding_mismatch",
            (("case", put(f"{ENTRY}.length", 1)), ("policy", put(f"{PIN}.producer", 1))),
        ),
        # an unavailable record's pin is still held to its rules
        ("policy_witness_vantage", (("policy", put(f"{PIN}.sha256", "0" * 64)), ("policy", put(f"{PIN}.vantage", 1)))),
        (
            "policy_witness_producer",
            (
                ("policy", put("witnesses.claims-pin.artifact", "capability-file")),
                ("policy", put(f"{PIN}.producer", 1)),
            ),
        ),
    ],
)
def test_of_two_faults_the_earlier_rule_is_named(code: str, edits: tuple[Any, ...]) -> None:
    files = sealed(*(("tool-claims", which, edit) for which, edit in edits))
    assert check_member(MappingMember(files), ["tool_claim_match/v1"]) == {"refused": code}


def test_case_is_parsed_before_policy() -> None:
    files = Draft().seal()
    files["acceptance.case.json"] = files["acceptance.policy.json"] = b"{"
    assert check_member(MappingMember(files), ["acceptance_observed/v1"]) == {"refused": "case_json_invalid"}


def test_pin_on_other_bytes_makes_unavailable_where_a_wrong_case_refuses() -> None:
    pinned = sealed(("acceptance", "policy", put("witnesses.grade-pin.sha256", "0" * 64)))
    answer = check_member(MappingMember(pinned), ["acceptance_observed/v1"])["checks"]["acceptance_observed/v1"]
    assert answer == {
        "decision": "not_established",
        "reason": "grade_unavailable_or_unbound",
        "vantage": "unestablished",
    }
    cased = sealed(("acceptance", "case", put("artifacts.grade-file.sha256", "0" * 64)))
    assert check_member(MappingMember(cased), ["acceptance_observed/v1"]) == {
        "refused": "case_artifact_binding_mismatch"
    }


def test_an_absent_artifact_is_unavailable_whatever_its_case_says() -> None:
    files = sealed(("acceptance", "case", put("artifacts.grade-file.length", 0)))
    del files["grade.json"]
    answer = check_member(MappingMember(files), ["acceptance_observed/v1"])["checks"]["acceptance_observed/v1"]
    assert answer["reason"] == "grade_unavailable_or_unbound"


def test_an_artifact_may_lie_under_any_plain_path() -> None:
    files = sealed(("acceptance", "case", put("artifacts.grade-file.path", "deep/down/x.json")))
    files["deep/down/x.json"] = files.pop("grade.json")
    answers = check_member(MappingMember(files), ["acceptance_observed/v1"])["checks"]
    assert answers["acceptance_observed/v1"] == {**SUPPORTED, "reason": "acceptance_passed_in_verifier"}


def test_a_length_of_exactly_the_limit_is_allowed() -> None:
    files = sealed(("acceptance", "case", put("artifacts.grade-file.length", MAX_BYTES)))
    files["grade.json"] = files["grade.json"].ljust(MAX_BYTES)
    assert check_member(MappingMember(files), ["acceptance_observed/v1"]) == {
        "refused": "case_artifact_binding_mismatch"
    }
    files["grade.json"] += b" "
    assert check_member(MappingMember(files), ["acceptance_observed/v1"]) == {"refused": "case_artifact_unsafe"}


@pytest.mark.parametrize("value", [True, 1.0])
def test_a_role_bound_before_is_still_held_to_its_own_words(value: Any) -> None:
    """Two checks bind one role; the second one's length equals the first's and is no integer."""
    files = Draft().seal()
    one = {"path": "contract.json", "sha256": sha(b"1"), "length": 1}
    honest = put("artifacts.contract-file", one)
    pinned = put("witnesses.contract-pin.sha256", "0" * 64)
    edits = [
        (stem, which, edit)
        for stem in ("protected-paths", "acceptance")
        for which, edit in (("case", honest), ("policy", pinned))
    ]
    files = {**sealed(*edits), "contract.json": b"1"}
    names = ["protected_paths/v1", "acceptance_observed/v1"]
    assert check_member(MappingMember(files), names).keys() == {"checks"}
    bent = sealed(*edits, ("acceptance", "case", put("artifacts.contract-file.length", value)))
    assert check_member(MappingMember({**bent, "contract.json": b"1"}), names) == {"refused": "case_artifact_length"}
