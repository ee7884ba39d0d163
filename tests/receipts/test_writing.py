"""The writer's side: self-pinned policies, receipts and Statements that their own reader finds valid (§5, §9, §13)."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from receipts.faults import put
from receipts.mutate import draft_of
from receipts.test_receipt import launched, value
from support.receipt_members import CORE, FILES, HONEST, SCOPE, Draft, event, sha
from troth.core.errors import DoesNotHold, Refused
from troth.receipts.kinds import Broken
from troth.receipts.member import MappingMember
from troth.receipts.pinning import ConsumerPins, consumer_files, read_pins
from troth.receipts.policy import POLICY_FILES
from troth.receipts.verify import check_member
from troth.receipts.writing import build_receipt, self_pin, write_contract_statement

VERIFIER = "urn:example:verifier"


def pinned(draft: Draft, **change: Any) -> dict[str, bytes]:
    records = draft.records()
    asked = {
        "claim_id": "claim-1",
        "invocation_id": "run-1",
        "scope": SCOPE,
        "observed_party": "agent",
        "authority": "the tests",
        **change,
    }
    return {**records, **self_pin(records, **asked)}


def test_a_receipt_is_valid_and_says_what_the_reader_finds() -> None:
    files = pinned(Draft())
    receipt = build_receipt(files, verifier_id=VERIFIER)
    assert check_member(MappingMember({**files, "receipt.json": receipt})) == {
        "receipt": {"verdict": "valid"},
        **HONEST,
    }
    assert build_receipt(files, verifier_id=VERIFIER) == receipt
    predicate = json.loads(receipt)["predicate"]
    assert list(predicate["records"]) == sorted(CORE)
    assert predicate["verifier"] == {"id": VERIFIER}


def test_everything_a_receipt_may_carry() -> None:
    files = pinned(launched())
    receipt = build_receipt(
        files,
        verifier_id=VERIFIER,
        with_launch=True,
        isolation={"network": "none", "uid": 65534},
        stop_decision={"action": "continue", "reason": "done_checks_supported"},
        policy_table_sha256=sha("table"),
    )
    predicate = json.loads(receipt)["predicate"]
    assert set(predicate["records"]) == set(FILES)
    assert predicate["verifier_isolation"]["contract_sha256"] == sha(files["contract.json"])
    assert check_member(MappingMember({**files, "receipt.json": receipt}))["receipt"] == {"verdict": "valid"}


def test_effects_count_whether_or_not_the_receipt_names_the_launch() -> None:
    effect = {"type": "write", "time": "2026-03-01T10:00:05Z", "paths": ["/x/y.pth"]}
    draft = value("launch_receipt", put("sensors.external_effects", [effect]))(launched())
    for with_launch in (False, True):
        predicate = json.loads(build_receipt(pinned(draft), verifier_id=VERIFIER, with_launch=with_launch))["predicate"]
        assert predicate["external_effects"] == [effect]
        assert predicate["verdict"]["reason"] == "external_effect_on_grader_path"


def test_a_stale_receipt_in_the_folder_does_not_matter() -> None:
    files = pinned(Draft())
    receipt = build_receipt(files, verifier_id=VERIFIER)
    again = build_receipt({**files, "receipt.json": b"{", "statement.json": b"{"}, verifier_id=VERIFIER)
    assert again == receipt


@pytest.mark.parametrize("name", [*(FILES[kind] for kind in CORE), *POLICY_FILES])
def test_what_is_missing_is_refused_by_its_code(name: str) -> None:
    files = pinned(Draft())
    del files[name]
    with pytest.raises(Refused) as caught:
        build_receipt(files, verifier_id=VERIFIER)
    assert caught.value.code == ("case_missing" if name in POLICY_FILES else "receipt_record_missing")


def test_launch_records_must_be_there_to_be_named() -> None:
    with pytest.raises(Refused, match="receipt_record_missing"):
        build_receipt(pinned(Draft()), verifier_id=VERIFIER, with_launch=True)


def test_a_malformed_record_is_refused_by_its_code() -> None:
    files = pinned(Draft())
    files["grade.json"] = b"{}"
    with pytest.raises(Broken, match="case_artifact_binding_mismatch"):
        build_receipt(files, verifier_id=VERIFIER)
    with pytest.raises(Broken, match="grade_fields"):
        pinned(value("grade", put("more", 1))(Draft()))
    records = Draft().records()
    del records["claims.json"]
    with pytest.raises(Refused, match="receipt_record_missing"):
        self_pin(records, claim_id="c", invocation_id="i", scope=SCOPE, observed_party="a", authority="x")


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("receipt_verifier_malformed", {"verifier_id": "me"}),
        ("receipt_stop_decision_malformed", {"stop_decision": {"action": "halt", "reason": "x"}}),
        ("receipt_predicate_malformed", {"policy_table_sha256": "x"}),
        ("receipt_isolation_contract_differs", {"isolation": {"contract_sha256": sha("x")}}),
    ],
)
def test_no_invalid_receipt_is_handed_out(code: str, more: dict[str, Any]) -> None:
    with pytest.raises(DoesNotHold) as caught:
        build_receipt(pinned(Draft()), **{"verifier_id": VERIFIER, **more})
    assert caught.value.code == code


def test_an_overstated_coverage_is_not_put_into_a_receipt_that_names_the_launch() -> None:
    draft = value("launch_receipt", put("sensors.join.unattributed", ["x"]))(launched())
    with pytest.raises(DoesNotHold, match="receipt_launch_coverage_overstated"):
        build_receipt(pinned(draft), verifier_id=VERIFIER, with_launch=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=0, max_value=2**48))
@example(6895)
def test_any_sound_run_gets_a_valid_receipt(seed: int) -> None:
    draft = draft_of(random.Random(seed))
    files = draft.seal()
    receipt = build_receipt(files, verifier_id=VERIFIER)
    result = check_member(MappingMember({**files, "receipt.json": receipt}))
    assert result.pop("receipt") == {"verdict": "valid"}
    assert result == check_member(MappingMember(files))


def test_self_pins_are_peer_and_bind_the_bytes() -> None:
    files = pinned(Draft().external())
    assert check_member(MappingMember(files))["done"]["witness_scope"] == "PEER"
    policy = json.loads(files["acceptance.policy.json"])
    assert {pin["witness_scope"] for role, pin in policy["witnesses"].items() if role != "contract"} == {"PEER"}
    files["grade.json"] += b" "
    assert check_member(MappingMember(files)) == {"refused": "case_artifact_binding_mismatch"}


def test_contract_statements() -> None:
    contract = Draft().records()["contract.json"]
    statement = write_contract_statement(contract, name="app.toml")
    assert check_member(MappingMember({"contract.json": contract, "statement.json": statement})) == {
        "contract": {"verdict": "valid"}
    }
    assert json.loads(statement)["subject"][0]["name"] == "app.toml"
    respaced = contract.replace(b"\n", b"\n ")
    assert check_member(MappingMember({"contract.json": respaced, "statement.json": statement})) == {
        "contract": {"verdict": "invalid", "code": "statement_subject_unbound"}
    }
    with pytest.raises(Broken, match="contract_json_duplicate_key"):
        write_contract_statement(b'{"a": 1, "a": 1}')


# --- a consumer's pins ---

PINS = {
    "observed_party": "agent",
    "producers": {"observation": "observer", "tree": "observer", "grade": "verifier"},
}


def judged(draft: Draft, pins: ConsumerPins) -> dict[str, Any]:
    files = {name: data for name, data in draft.seal().items() if name not in POLICY_FILES}
    return check_member(MappingMember({**files, **consumer_files(MappingMember(files), pins)}))


def test_pins_judge_without_the_folders_own_policy() -> None:
    assert judged(Draft(), read_pins(PINS)) == HONEST
    assert read_pins(PINS).open_points()[:3] == ["claim_id", "invocation_id", "scope"]
    external = {**PINS, "witness_scope": dict.fromkeys(("observation", "tree", "grade"), "EXTERNAL")}
    assert judged(Draft().external(), read_pins(external))["done"]["witness_scope"] == "EXTERNAL"
    assert judged(Draft().external(), read_pins(PINS))["done"]["witness_scope"] == "PEER"


@pytest.mark.parametrize(
    ("change", "check", "reason"),
    [
        ({"observed_party": "observer"}, "protected_paths/v1", "observation_vantage_unestablished"),
        ({"producers": {**PINS["producers"], "grade": "x"}}, "acceptance_observed/v1", "grade_vantage_unestablished"),
        ({"claim_id": "x"}, "tool_claim_match/v1", "claims_context_mismatch"),
        ({"invocation_id": "x"}, "acceptance_observed/v1", "final_tree_unestablished"),
        ({"scope": {**SCOPE, "id": "x"}}, "protected_paths/v1", "observation_context_mismatch"),
        ({"sha256": {"contract": "0" * 64}}, "protected_paths/v1", "contract_unavailable_or_unbound"),
        ({"sha256": {"claims": "0" * 64}}, "tool_claim_match/v1", "claims_unavailable_or_unbound"),
    ],
)
def test_what_a_consumer_pins_is_held(change: dict[str, Any], check: str, reason: str) -> None:
    assert judged(Draft(), read_pins({**PINS, **change}))["checks"][check]["reason"] == reason


def test_digests_pinned_to_what_is_there_hold() -> None:
    records = Draft().records()
    pins = read_pins({**PINS, "sha256": {kind: sha(records[FILES[kind]]) for kind in CORE}, "scope": SCOPE})
    assert judged(Draft(), pins) == HONEST
    assert pins.open_points() == ["claim_id", "invocation_id"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"observed_party": None}, "observed_party"),
        ({"more": 1}, "more"),
        ({"authority": ""}, "authority"),
        ({"producers": []}, "producers"),
        ({"producers": {"tree": "x"}}, "producers.observation"),
        ({"producers": {**PINS["producers"], "claims": "x"}}, "producers.claims"),
        ({"witness_scope": {"tree": "peer"}}, "witness_scope.tree"),
        ({"sha256": {"contract": "x"}}, "sha256.contract"),
        ({"sha256": {"launch": "0" * 64}}, "sha256.launch"),
        ({"scope": {"id": "x"}}, "scope"),
    ],
)
def test_malformed_pins_are_refused_with_their_place(change: dict[str, Any], where: str) -> None:
    with pytest.raises(Refused) as caught:
        read_pins({**PINS, **change})
    assert caught.value.code == "E_PIN_MALFORMED"
    assert caught.value.message.startswith(f"{where}:")
    missing = {name: value for name, value in PINS.items() if name != "observed_party"}
    with pytest.raises(Refused, match="observed_party"):
        read_pins(missing)


def test_pins_need_the_records() -> None:
    files = Draft().seal()
    del files["grade.json"]
    with pytest.raises(Broken, match="receipt_record_missing"):
        consumer_files(MappingMember(files), read_pins(PINS))
    broken = value("observation", put("coverage", "x"))(Draft()).seal()
    with pytest.raises(Broken, match="observation_coverage"):
        consumer_files(MappingMember(broken), read_pins(PINS))


def test_a_forged_folder_is_valid_by_its_own_policy_and_fails_by_a_consumers() -> None:
    """§13.8: consistent with itself is all a self-pinned folder can be."""
    forged = Draft()
    for kind in ("observation", "capability", "tree", "grade"):
        forged.values[kind]["producer"] = "forger"
    files = pinned(forged)
    files["receipt.json"] = build_receipt(files, verifier_id=VERIFIER)
    assert check_member(MappingMember(files))["receipt"] == {"verdict": "valid"}
    mine = consumer_files(MappingMember(files), read_pins(PINS))
    result = check_member(MappingMember({**files, **mine}))
    assert result["receipt"] == {"verdict": "invalid", "code": "receipt_check_not_recomputed"}
    assert result["done"]["decision"] == "not_established"
    # A forger who takes the observer's name is stopped by a pinned digest.
    copied = pinned(Draft().add_events(event(5, "exec", argv=["never"], exit=0)))
    copied["receipt.json"] = build_receipt(copied, verifier_id=VERIFIER)
    honest = Draft().records()
    strict = read_pins({**PINS, "sha256": {"observation": sha(honest["observation.json"])}})
    result = check_member(MappingMember({**copied, **consumer_files(MappingMember(copied), strict)}))
    assert result["receipt"]["verdict"] == "invalid"
    assert result["checks"]["tool_claim_match/v1"]["reason"] == "observation_unavailable_or_unbound"
