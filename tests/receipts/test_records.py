"""Records (done records §4): every code, its honest twin, and the order of the rules."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from receipts.codes import RECORD_CODES
from receipts.faults import ALLOWED, JSON_FAULTS, RECORD_FAULTS, Edit, chain, drop, push, put, whole
from support.receipt_members import FILES, HONEST, TEST, Draft, dump
from troth.receipts.kinds import Broken
from troth.receipts.member import MappingMember
from troth.receipts.reader import MemberReader
from troth.receipts.strict import parse_strict
from troth.receipts.verify import check_member


def fault_of(kind: str, data: bytes) -> str | None:
    """Return the code of the first rule a record breaks, or ``None``."""
    try:
        MemberReader(MappingMember({FILES[kind]: data})).record(kind, FILES[kind])
    except Broken as fault:
        return fault.code
    return None


def edited(kind: str, edit: Edit) -> bytes:
    draft = Draft().launched()
    draft.values[kind] = edit(draft.values[kind])
    return draft.records()[FILES[kind]]


def named(faults: list[tuple[Any, ...]]) -> list[Any]:
    return [pytest.param(*fault, id=f"{fault[0]}-{number}") for number, fault in enumerate(faults)]


@pytest.mark.parametrize(("code", "kind", "edit"), named(RECORD_FAULTS))
def test_every_broken_rule_has_its_code(code: str, kind: str, edit: Edit) -> None:
    assert fault_of(kind, edited(kind, edit)) == code


@pytest.mark.parametrize(("kind", "edit"), named(ALLOWED))
def test_what_stands_next_to_a_rule_is_allowed(kind: str, edit: Edit) -> None:
    assert fault_of(kind, edited(kind, edit)) is None


@pytest.mark.parametrize("kind", FILES)
def test_the_honest_record_breaks_nothing(kind: str) -> None:
    assert fault_of(kind, edited(kind, lambda value: value)) is None


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize(("code", "spoil"), named(JSON_FAULTS))
def test_json_faults_in_every_kind(kind: str, code: str, spoil: Any) -> None:
    assert fault_of(kind, spoil(edited(kind, lambda value: value))) == f"{kind}_{code}"


def test_every_code_of_the_records_is_exercised() -> None:
    tried = {code for code, _, _ in RECORD_FAULTS}
    tried |= {f"{kind}_{code}" for kind in FILES for code, _ in JSON_FAULTS}
    assert tried == set().union(*RECORD_CODES.values())


@pytest.mark.parametrize(
    ("kind", "edit", "other", "code"),
    [
        # two faults in one record: the earlier rule is named, wherever it stands in the file
        ("contract", put("schema_version", "x"), put("more", 1), "contract_fields"),
        ("contract", put("contract_id", ""), put("adequacy", []), "contract_id"),
        ("contract", put("task", ""), put("contract_id", 1), "contract_id"),
        ("contract", put("authority_sha256", "x"), put("protected_paths", 1), "contract_digest_malformed"),
        (
            "contract",
            put("protected_paths.1.sha256", "x"),
            put("protected_paths.1.kind", "x"),
            "contract_protected_kind",
        ),
        ("contract", put("protected_paths.1.path", "tests"), put("acceptance", []), "contract_protected_duplicate"),
        ("contract", put("acceptance.0.argv", []), put("acceptance.1", 1), "contract_acceptance_argv"),
        (
            "contract",
            put("adequacy", {"mutants": 1, "killed": 2}),
            put("acceptance.1.id", "unit"),
            "contract_acceptance_duplicate_id",
        ),
        ("tree", put("files", {"/a": 1}), put("witness_scope", "x"), "tree_witness_scope"),
        ("tree", put("files", {"/a": "y"}), put("schema_version", "x"), "tree_schema_unsupported"),
        ("tree", put("tree_sha256", "0" * 64), put("files", {"/a": "x"}), "tree_path_not_normalized"),
        ("observation", put("scope.start", "x"), put("vantage", "x"), "observation_vantage"),
        ("observation", put("scope.end", "x"), put("scope.id", ""), "observation_scope_id"),
        ("observation", put("gaps", []), put("events", 1), "observation_gaps_unexpected"),
        ("observation", put("events.0.time", "x"), put("events.0.path", "/"), "observation_path_not_normalized"),
        ("observation", put("events.1.exit", 999), put("events.0.step", 7), "observation_exec_exit"),
        ("observation", put("events.0.step", 7), put("events.2.id", ""), "observation_steps_not_increasing"),
        ("observation", put("events.3.step", -1), put("events.3.origin", "x"), "observation_step"),
        ("capability", put("producer", ""), put("visible_event_types", 1), "capability_producer"),
        ("grade", put("tree_sha256", "x"), put("results", 1), "grade_digest_malformed"),
        ("grade", put("results.1.id", "unit"), put("results.1.exit", 999), "grade_result_exit"),
        ("claims", put("claims.0.exit", 999), put("claims.0.id", ""), "claims_entry_id"),
        ("launch", put("strace_version", ""), put("image", ""), "launch_image"),
        ("launch", put("container_argv", []), put("container_workspace", ""), "launch_container_workspace"),
        ("launch", put("env", 1), put("start_tarball_sha256", 1), "launch_types"),
        ("launch_receipt", put("timed_out", 1), put("trace_sha256", 1), "launch_receipt_digest_malformed"),
        ("launch_receipt", put("sensors.join", 1), put("sensors.s3_tree", 1), "launch_receipt_sensors"),
        (
            "launch_receipt",
            put("sensors.s3_tree", 1),
            put("sensors.external_effects", 1),
            "launch_receipt_sensors_fields",
        ),
    ],
)
def test_of_two_faults_the_earlier_rule_is_named(kind: str, edit: Edit, other: Edit, code: str) -> None:
    one, two = fault_of(kind, edited(kind, edit)), fault_of(kind, edited(kind, other))
    assert one is not None
    assert two is not None
    assert one != two
    assert fault_of(kind, edited(kind, chain(edit, other))) == code
    assert fault_of(kind, edited(kind, chain(other, edit))) == code


def test_one_element_passes_all_its_rules_before_the_next() -> None:
    late_first = chain(put("events.0.time", "x"), put("events.1.id", ""))
    assert fault_of("observation", edited("observation", late_first)) == "observation_event_instant"
    assert fault_of("tree", edited("tree", put("files", {"a": "x", "b/": "0" * 64}))) == "tree_digest_malformed"
    assert fault_of("tree", edited("tree", put("files", {"a/": "0" * 64, "b": "x"}))) == "tree_path_not_normalized"


def test_a_fault_names_file_and_place() -> None:
    draft = Draft()
    draft.values["observation"]["events"][2]["step"] = 1
    with pytest.raises(Broken) as caught:
        MemberReader(MappingMember(draft.records())).record("observation", "observation.json")
    assert str(caught.value.place) == "observation.json at $.events[2].step"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("kind", ["contract", "tree", "observation", "capability", "grade", "claims"])
def test_a_malformed_record_refuses_the_member(kind: str) -> None:
    draft = Draft()
    draft.values[kind] = put("schema_version", "x")(draft.values[kind])
    assert check_member(MappingMember(draft.seal())) == {"refused": f"{kind}_schema_unsupported"}
    assert check_member(MappingMember(Draft().seal())) == HONEST


def test_origin_may_name_only_an_earlier_run() -> None:
    forward = chain(put("events.2.origin", "e4"))
    assert fault_of("observation", edited("observation", forward)) == "observation_origin_unknown"
    to_mutation = put("events.2.origin", "e1")
    assert fault_of("observation", edited("observation", to_mutation)) == "observation_origin_unknown"


def test_tree_digest_of_nothing_and_of_bytes_order() -> None:
    draft = Draft()
    # U+FFFD sorts after U+1F600 in UTF-16 and before it in UTF-8, which is what counts.
    draft.values["tree"]["files"] = {"\U0001f600": "1" * 64, "\ufffd": "2" * 64, "a": "3" * 64}
    assert fault_of("tree", draft.records()["tree.json"]) is None
    draft.values["tree"]["files"] = {}
    assert b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" in draft.records()["tree.json"]
    assert fault_of("tree", draft.records()["tree.json"]) is None


def test_layouts_do_not_matter() -> None:
    value = parse_strict(edited("claims", lambda value: value), "claims")
    for data in (dump(value), repr(value).replace("'", '"').encode(), b" \r\n\t" + dump(value) + b"\n\n"):
        assert fault_of("claims", data) is None


def test_the_tables_differ_from_each_other() -> None:
    """The tables are data; make sure that no fault is an honest record by mistake of the table."""
    honest = {kind: edited(kind, lambda value: value) for kind in FILES}
    for code, kind, edit in RECORD_FAULTS:
        assert edited(kind, edit) != honest[kind], code
    for (kind, edit), _ in pairwise(ALLOWED):
        assert edited(kind, edit) != honest[kind]
    assert drop("a")({"a": 1}) == {}
    assert push("a", 1)({"a": []}) == {"a": [1]}
    assert whole(TEST)(None) == TEST
