"""Receipts and contract Statements (done records §5, §9): every code, refused against invalid, and the order."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from receipts.codes import ALL_CODES, DECISION_CODES, POLICY_CODES, RECEIPT_CODES, RECORD_CODES, STATEMENT_CODES
from receipts.faults import JSON_FAULTS, NOT_DIGESTS, Edit, chain, drop, put, whole
from receipts.test_policy import Faulty
from support.receipt_members import (
    CHECKS,
    FILES,
    HONEST,
    Draft,
    at,
    contract_statement,
    dump,
    event,
    receipt_value,
    sha,
)
from troth.receipts.member import MAX_BYTES, MappingMember
from troth.receipts.reasons import DECISIONS, INVALID, REASONS, REFUSALS
from troth.receipts.verify import check_member, standing

PREDICATE = "predicate"
VALID = {"receipt": {"verdict": "valid"}}


def sealed(draft: Draft | None = None, edit: Edit = lambda value: value) -> dict[str, bytes]:
    """A member with a receipt that states its result, the receipt edited."""
    draft = Draft() if draft is None else draft
    files = draft.seal()
    result = check_member(MappingMember(files), list(CHECKS))
    # A member whose records refuse it gets the receipt an honest one would have.
    files["receipt.json"] = dump(edit(receipt_value(draft, files, result if "checks" in result else HONEST)))
    return files


def check(files: dict[str, bytes]) -> dict[str, Any]:
    return check_member(MappingMember(files))


def verdict(files: dict[str, bytes]) -> str:
    """Return "valid", the code of an invalid receipt, or "refused " and the code."""
    result = check(files)
    if "refused" in result:
        assert list(result) == ["refused"]
        return f"refused {result['refused']}"
    assert ("checks" in result) == ("done" in result)
    assert list(result["receipt"]) == (["verdict"] if result["receipt"]["verdict"] == "valid" else ["verdict", "code"])
    return str(result["receipt"].get("code", "valid"))


def launched() -> Draft:
    return Draft().launched()


LOSS = "sensors.s2_strace.tracer"
EFFECT = {"type": "write", "time": at(5), "paths": ["/tmp/a", "/tmp/b"]}

SHAPE_FAULTS: list[tuple[str, Edit]] = [
    ("receipt_fields", whole([])),
    ("receipt_fields", put("more", 1)),
    ("receipt_fields", drop("subject")),
    ("receipt_type_wrong", put("_type", "https://in-toto.io/Statement/v0.1")),
    ("receipt_type_wrong", put("_type", None)),
    (
        "receipt_predicate_type_wrong",
        put("predicateType", "https://w3id.org/agent-evidence/predicate/v1/done-contract"),
    ),
    (
        "receipt_predicate_type_wrong",
        put("predicateType", "https://w3id.org/agent-evidence/predicate/v1/done-receipt/"),
    ),
    ("receipt_subject_malformed", put("subject", [])),
    ("receipt_subject_malformed", put("subject", {})),
    ("receipt_subject_malformed", lambda value: put("subject", value["subject"] * 2)(value)),
    ("receipt_subject_malformed", put("subject.0.name", "")),
    ("receipt_subject_malformed", put("subject.0.uri", "x")),
    ("receipt_subject_malformed", put("subject.0.digest", {})),
    ("receipt_subject_malformed", put("subject.0.digest.sha1", "x")),
    *(("receipt_subject_malformed", put("subject.0.digest.sha256", value)) for value in NOT_DIGESTS),
    ("receipt_predicate_fields", put(PREDICATE, [])),
    ("receipt_predicate_fields", drop("predicate.verdict")),
    ("receipt_predicate_fields", put("predicate.more", None)),
    ("receipt_schema_unsupported", put("predicate.schema_version", "probity-done-receipt/v2")),
    ("receipt_predicate_malformed", put("predicate.claim_id", "")),
    ("receipt_predicate_malformed", put("predicate.invocation_id", 1)),
    *(
        ("receipt_verifier_malformed", put("predicate.verifier", value))
        for value in (
            "urn:x:y",
            {},
            {"id": "urn:x", "name": "x"},
            *(
                {"id": text}
                for text in ("", "urn", "urn:", ":x", "1rn:x", "u_n:x", "urn:a b", "urn:x\n", "é:x", None, "urn:\u00a0")
            ),
        )
    ),
    *(
        ("receipt_predicate_malformed", put("predicate.policy", value))
        for value in (None, [], {}, {"table_sha256": "x"}, {"table_sha256": sha("x"), "more": 1})
    ),
    *(
        ("receipt_isolation_malformed", put("predicate.verifier_isolation", value))
        for value in (None, [], {}, {"contract_sha256": 1})
    ),
    *(
        ("receipt_stop_decision_malformed", put("predicate.stop_decision", value))
        for value in (
            None,
            "stop",
            {"action": "stop"},
            {"action": "halt", "reason": "x"},
            {"action": ["stop"], "reason": "x"},
            {"action": "stop", "reason": ""},
            {"action": "stop", "reason": "x", "more": 1},
        )
    ),
    ("receipt_records_shape", put("predicate.records", [])),
    ("receipt_records_shape", drop("predicate.records.claims")),
    ("receipt_records_shape", put("predicate.records.launch", {"sha256": sha("x")})),
    ("receipt_records_shape", put("predicate.records.policy", {"sha256": sha("x")})),
    ("receipt_records_shape", put("predicate.records.tree", sha("x"))),
    ("receipt_records_shape", put("predicate.records.tree.sha1", "x")),
    *(("receipt_records_shape", put("predicate.records.tree.sha256", value)) for value in NOT_DIGESTS),
    ("receipt_isolation_contract_differs", put("predicate.verifier_isolation", {"contract_sha256": sha("x")})),
    ("receipt_isolation_contract_differs", put("predicate.verifier_isolation", {"contract_sha256": ""})),
    ("receipt_record_digest_mismatch", put("predicate.records.claims.sha256", sha("x"))),
    ("receipt_subject_unbound", put("subject.0.digest.sha256", sha("x"))),
    ("receipt_external_effects_differ", put("predicate.external_effects", [EFFECT])),
    ("receipt_external_effects_differ", put("predicate.external_effects", None)),
    ("receipt_predicate_malformed", put("predicate.checks", {})),
    ("receipt_predicate_malformed", put("predicate.checks", None)),
    ("receipt_check_not_recomputed", put("predicate.checks", [])),
    ("receipt_check_not_recomputed", lambda value: put("predicate.checks", value["predicate"]["checks"][::-1])(value)),
    ("receipt_check_not_recomputed", drop("predicate.checks.2")),
    ("receipt_check_not_recomputed", put("predicate.checks.0.witness_scope", "EXTERNAL")),
    ("receipt_check_not_recomputed", put("predicate.checks.0.more", 1)),
    ("receipt_check_not_recomputed", drop("predicate.checks.0.vantage")),
    ("receipt_verdict_not_derived", put("predicate.verdict", None)),
    ("receipt_verdict_not_derived", put("predicate.verdict.witness_scope", "EXTERNAL")),
    ("receipt_verdict_not_derived", put("predicate.verdict.reason", "protected_paths_untouched")),
    ("receipt_verdict_not_derived", put("predicate.verdict.decision", "not_established")),
    ("receipt_verdict_not_derived", put("predicate.verdict.claim_type", "x")),
]

SHAPES_ALLOWED: list[Edit] = [
    put("subject.0.name", "anything"),
    put("predicate.verifier.id", "A+.-1:%"),
    put("predicate.verifier.id", "https://example.org/\ud83d\ude00"),
    put("predicate.policy", {"table_sha256": sha("x")}),
    *(
        put("predicate.stop_decision", {"action": action, "reason": "x"})
        for action in ("continue", "replan", "escalate", "stop")
    ),
    lambda value: put(
        "predicate.verifier_isolation",
        {"contract_sha256": value["predicate"]["records"]["contract"]["sha256"], "network": [1.5, {"a": None}]},
    )(value),
    # claim and run of a receipt are compared with a launch receipt alone (§10.6)
    put("predicate.claim_id", "anything"),
    lambda value: put("predicate.records", dict(reversed(value["predicate"]["records"].items())))(value),
]


@pytest.mark.parametrize(
    ("code", "edit"), [pytest.param(*fault, id=f"{fault[0]}-{number}") for number, fault in enumerate(SHAPE_FAULTS)]
)
def test_faults_of_a_receipt(code: str, edit: Edit) -> None:
    assert verdict(sealed(edit=edit)) == code


@pytest.mark.parametrize("edit", SHAPES_ALLOWED)
def test_what_a_receipt_may_say(edit: Edit) -> None:
    assert check(sealed(edit=edit)) == {**VALID, **HONEST}


@pytest.mark.parametrize(("code", "spoil"), JSON_FAULTS)
def test_json_faults_of_a_receipt(code: str, spoil: Any) -> None:
    files = sealed()
    files["receipt.json"] = spoil(files["receipt.json"])
    assert verdict(files) == f"receipt_{code}"


def value(kind: str, edit: Edit) -> Callable[[Draft], Draft]:
    def change(draft: Draft) -> Draft:
        draft.values[kind] = edit(draft.values[kind])
        return draft

    return change


def both(kind: str, edit: Edit) -> Callable[[Draft], Draft]:
    """Edit a record of a launched draft; the receipt states what comes of it."""
    return lambda draft: value(kind, edit)(draft.launched())


LAUNCH_FAULTS: list[tuple[str, Callable[[Draft], Draft]]] = [
    ("receipt_launch_context_mismatch", both("launch_receipt", put("claim_id", "x"))),
    ("receipt_launch_context_mismatch", both("launch_receipt", put("invocation_id", "x"))),
    ("receipt_launch_digest_unbound", both("launch_receipt", put("launch_sha256", sha("x")))),
    ("receipt_launch_records_unbound", both("launch_receipt", put("observation_sha256", sha("x")))),
    ("receipt_launch_records_unbound", both("launch_receipt", put("capability_sha256", sha("x")))),
    ("receipt_launch_records_unbound", both("launch_receipt", put("tree_sha256", sha("x")))),
    # the top level names the file's digest, the sensor the tree's: not the other way round
    ("receipt_launch_records_unbound", both("launch_receipt", put("tree_sha256", Draft().tree_sha256()))),
    ("receipt_launch_tree_unbound", both("launch_receipt", put("sensors.s3_tree.tree_sha256", sha("x")))),
    ("receipt_launch_scope_differs", both("launch_receipt", put("witnessScope", "EXTERNAL"))),
    ("receipt_launch_scope_differs", both("tree", put("witness_scope", "EXTERNAL"))),
    ("receipt_launch_scope_differs", both("observation", put("witness_scope", "EXTERNAL"))),
    ("receipt_launch_coverage_differs", both("launch_receipt", put("coverage", "unknown"))),
    ("receipt_launch_coverage_overstated", both("launch_receipt", put("sensors.s2_strace.tracer", "lost"))),
    *(
        ("receipt_launch_coverage_overstated", both("launch_receipt", put(f"sensors.{name}", lost)))
        for name in (
            "s1_inotify.overflow",
            "s1_inotify.watch_failures",
            "s2_strace.escapes",
            "s2_strace.unresolved",
            "s2_strace.unparsed_lines",
            "join.unattributed",
        )
        for lost in (True, 1, ["x"], {"a": 0}, "0", 0.5)
    ),
]

LAUNCH_ALLOWED: list[Callable[[Draft], Draft]] = [
    Draft.launched,
    lambda draft: draft.launched().external(),
    *(
        both("launch_receipt", put(f"sensors.{name}", empty))
        for name in ("s1_inotify.overflow", "s2_strace.escapes", "join.unattributed")
        for empty in (None, False, 0, 0.0, "", [], {})
    ),
    both("launch_receipt", chain(drop("sensors.s1_inotify.overflow"), put("sensors.join", {"other": ["x"]}))),
    # never compared, though both carry them
    both("launch_receipt", chain(put("trace_expression", "x"), put("start_tarball_sha256", sha("x")))),
]


@pytest.mark.parametrize(("code", "change"), LAUNCH_FAULTS)
def test_faults_of_the_launch_records(code: str, change: Callable[[Draft], Draft]) -> None:
    assert verdict(sealed(change(Draft()))) == code


@pytest.mark.parametrize("change", LAUNCH_ALLOWED)
def test_what_launch_records_may_say(change: Callable[[Draft], Draft]) -> None:
    assert verdict(sealed(change(Draft()))) == "valid"


def unnamed(draft: Draft) -> dict[str, bytes]:
    """A member whose launch records are there and not named."""
    return sealed(
        draft.launched(),
        lambda receipt: drop("predicate.records.launch")(drop("predicate.records.launch_receipt")(receipt)),
    )


def test_launch_records_that_are_not_named_are_held_to_less() -> None:
    for _, change in LAUNCH_FAULTS:
        if change(Draft()).values["tree"]["witness_scope"] == "PEER":
            assert verdict(unnamed(change(Draft()))) == "valid"


def test_a_loss_beside_admitted_gaps_is_no_overstatement() -> None:
    draft = value("launch_receipt", put(LOSS, "lost"))(launched())
    for kind in ("observation", "launch_receipt"):
        draft.values[kind]["coverage"] = "unknown"
    assert verdict(sealed(draft)) == "valid"


def test_effects_are_those_of_the_launch_receipt_named_or_not() -> None:
    draft = value("launch_receipt", put("sensors.external_effects", [EFFECT, {**EFFECT, "paths": ["/x"]}]))(launched())
    assert verdict(sealed(draft)) == "valid"
    assert verdict(unnamed(draft)) == "valid"
    for edit in (
        put("predicate.external_effects", []),
        drop("predicate.external_effects.1"),
        put("predicate.external_effects.0.paths", ["/tmp/b", "/tmp/a"]),
        put("predicate.external_effects.0.more", 1),
        lambda receipt: put("predicate.external_effects", receipt["predicate"]["external_effects"][::-1])(receipt),
    ):
        assert verdict(sealed(draft, edit)) == "receipt_external_effects_differ"


def test_missing_and_unreadable() -> None:
    for kind in ("contract", "tree", "observation", "capability", "grade", "claims"):
        files = sealed()
        del files[FILES[kind]]
        assert verdict(files) == "receipt_record_missing"
        assert check_member(Faulty(sealed(), FILES[kind])) == {"refused": "member_unreadable"}
    assert check_member(Faulty(sealed(), "receipt.json")) == {"refused": "member_unreadable"}
    assert check_member(Faulty(sealed(), "launch-receipt.json")) == {"refused": "member_unreadable"}
    assert check_member(Faulty(Draft().seal(), "launch-receipt.json")) == {"refused": "member_unreadable"}
    # An unreadable launch.json matters only when it is named.
    assert check_member(Faulty(sealed(), "launch.json"))["receipt"] == VALID["receipt"]
    assert check_member(Faulty(sealed(launched()), "launch.json")) == {"refused": "member_unreadable"}
    # Whatever else lies in the folder is not looked at.
    assert check({**sealed(), "statement.json": b"{", "other.json": b""})["receipt"] == VALID["receipt"]


def test_records_are_looked_at_in_the_order_the_receipt_lists_them() -> None:
    files = sealed()
    del files["claims.json"]
    files["tree.json"] += b" "

    def listing(*kinds: str) -> str:
        def order(receipt: Any) -> Any:
            records = receipt["predicate"]["records"]
            first = {kind: records[kind] for kind in kinds}
            return put("predicate.records", {**first, **records})(receipt)

        import json

        edited = order(json.loads(files["receipt.json"]))
        return verdict({**files, "receipt.json": json.dumps(edited).encode()})

    assert listing("claims", "tree") == "receipt_record_missing"
    assert listing("tree", "claims") == "receipt_record_digest_mismatch"


@pytest.mark.parametrize("kind", FILES)
def test_a_receipt_over_a_broken_record_is_not_judged(kind: str) -> None:
    draft = value(kind, put("schema_version", "x"))(launched())
    assert verdict(sealed(draft, put("predicate.verdict", "laundered"))) == f"refused {kind}_schema_unsupported"


def test_order_across_refusing_and_invalidating_rules() -> None:
    broken_tree = value("tree", put("schema_version", "x"))
    # (1-4) come before the records are parsed, (5) after the tree and the observation, (8) after all.
    assert verdict(sealed(broken_tree(Draft()), put("_type", "x"))) == "receipt_type_wrong"
    assert verdict(sealed(broken_tree(Draft()), put("predicate.records", {}))) == "receipt_records_shape"
    assert verdict(sealed(broken_tree(Draft()), put("subject.0.digest.sha256", sha("x")))) == (
        "refused tree_schema_unsupported"
    )
    broken_observation = value("observation", put("coverage", "x"))
    assert verdict(sealed(broken_observation(Draft()), put("subject.0.digest.sha256", sha("x")))) == (
        "refused observation_coverage"
    )
    broken_grade = value("grade", put("schema_version", "x"))
    assert verdict(sealed(broken_grade(Draft()), put("subject.0.digest.sha256", sha("x")))) == "receipt_subject_unbound"
    assert verdict(sealed(broken_grade(Draft()), put("predicate.external_effects", 1))) == (
        "receipt_external_effects_differ"
    )
    assert verdict(sealed(broken_grade(Draft()), put("predicate.checks", 1))) == "refused grade_schema_unsupported"
    unbound = value("launch_receipt", chain(put("claim_id", "x"), put("launch_sha256", sha("x"))))(launched())
    assert verdict(sealed(unbound)) == "receipt_launch_context_mismatch"
    broken_launch = value("launch", put("backend", "x"))(value("launch_receipt", put("coverage", "x"))(launched()))
    assert verdict(sealed(broken_launch)) == "refused launch_backend"


def test_the_result_shows_checks_and_verdict_once_they_were_run() -> None:
    result = check(sealed(edit=put("predicate.checks", 1)))
    assert result == {"receipt": {"verdict": "invalid", "code": "receipt_predicate_malformed"}, **HONEST}
    result = check(sealed(edit=put("predicate.external_effects", 1)))
    assert result == {"receipt": {"verdict": "invalid", "code": "receipt_external_effects_differ"}}


@pytest.mark.parametrize(
    "change",
    [
        lambda draft: draft.add_events(event(5, "write", path="setup.cfg")),
        value("grade", put("results.0.exit", 1)),
        value("contract", put("adequacy.killed", 0)),
        lambda draft: draft.claim({"id": "c", "argv": ["never"]}),
    ],
)
def test_a_receipt_that_states_a_bad_verdict_correctly_is_valid(change: Callable[[Draft], Draft]) -> None:
    files = sealed(change(Draft()))
    result = check(files)
    assert result["receipt"] == VALID["receipt"]
    assert result["done"]["decision"] != "supported"
    assert standing(result) in ("does_not_hold", "not_established")
    # The same records under the honest receipt: the laundering is found.
    honest = sealed()
    import json

    laundered = json.loads(files["receipt.json"])
    honest_predicate = json.loads(honest["receipt.json"])["predicate"]
    for name in ("checks", "verdict"):
        laundered["predicate"][name] = honest_predicate[name]
    assert verdict({**files, "receipt.json": dump(laundered)}) == "receipt_check_not_recomputed"
    laundered["predicate"]["checks"] = json.loads(files["receipt.json"])["predicate"]["checks"]
    assert verdict({**files, "receipt.json": dump(laundered)}) == "receipt_verdict_not_derived"


def test_policy_faults_refuse_a_receipt() -> None:
    files = sealed()
    del files["tool-claims.policy.json"]
    assert verdict(files) == "refused case_missing"
    assert check_member(Faulty(sealed(), "acceptance.policy.json")) == {"refused": "policy_unreadable"}


def test_too_large_a_file_is_a_read_fault() -> None:
    files = sealed()
    files["receipt.json"] = files["receipt.json"].ljust(MAX_BYTES)
    assert verdict(files) == "valid"
    files["receipt.json"] += b" "
    assert verdict(files) == "refused member_unreadable"


# --- contract Statements (§5) ---

STATEMENT_FAULTS: list[tuple[str, Edit]] = [
    ("statement_fields", whole(None)),
    ("statement_fields", put("more", 1)),
    ("statement_type_wrong", put("_type", "x")),
    (
        "statement_predicate_type_wrong",
        put("predicateType", "https://w3id.org/agent-evidence/predicate/v1/done-receipt"),
    ),
    ("statement_subject_malformed", put("subject", [])),
    ("statement_subject_malformed", put("subject.0.name", 1)),
    ("statement_subject_malformed", put("subject.0.digest.sha256", "A" * 64)),
    ("statement_subject_unbound", put("subject.0.digest.sha256", sha("x"))),
    ("statement_predicate_differs", put("predicate", {})),
    ("statement_predicate_differs", put("predicate.task", "another")),
    ("statement_predicate_differs", drop("predicate.task")),
    ("statement_predicate_differs", put("predicate.more", 1)),
    ("statement_predicate_differs", put("predicate.adequacy.killed", 3.5)),
    ("statement_predicate_differs", put("predicate.acceptance.0.argv", ["x"])),
]


def contract_verdict(files: dict[str, bytes]) -> str:
    result = check(files)
    if "refused" in result:
        return f"refused {result['refused']}"
    assert list(result) == ["contract"]
    return str(result["contract"].get("code", result["contract"]["verdict"]))


def stated(edit: Edit = lambda value: value, draft: Draft | None = None) -> dict[str, bytes]:
    import json

    files = (Draft() if draft is None else draft).statement()
    files["statement.json"] = dump(edit(json.loads(files["statement.json"])))
    return files


@pytest.mark.parametrize(("code", "edit"), STATEMENT_FAULTS)
def test_faults_of_a_statement(code: str, edit: Edit) -> None:
    assert contract_verdict(stated(edit)) == code
    assert contract_verdict(stated()) == "valid"


@pytest.mark.parametrize(("code", "spoil"), JSON_FAULTS)
def test_json_faults_of_a_statement(code: str, spoil: Any) -> None:
    files = stated()
    files["statement.json"] = spoil(files["statement.json"])
    assert contract_verdict(files) == f"statement_{code}"


def test_numbers_of_a_statement_are_not_booleans() -> None:
    draft = value("contract", put("adequacy", {"mutants": 1, "killed": 1}))(Draft())
    assert contract_verdict(stated(draft=draft)) == "valid"
    assert contract_verdict(stated(put("predicate.adequacy.killed", True), draft)) == "statement_predicate_differs"
    assert contract_verdict(stated(put("predicate.adequacy.killed", 1.0), draft)) == "valid"


def test_contract_codes_invalidate_a_statement_and_come_before_its_binding() -> None:
    draft = value("contract", put("contract_id", ""))(Draft())
    assert contract_verdict(stated(put("subject.0.digest.sha256", sha("x")), draft)) == "contract_id"
    assert contract_verdict(stated(put("subject.0.name", ""), draft)) == "statement_subject_malformed"
    files = stated()
    files["contract.json"] = b'{"a": NaN}'
    assert contract_verdict(files) == "contract_json_number"


def test_a_subject_is_bound_to_stored_bytes() -> None:
    files = stated()
    files["contract.json"] = files["contract.json"].replace(b"\n", b"\r\n")
    assert contract_verdict(files) == "statement_subject_unbound"


def test_missing_or_unreadable_files_of_a_contract_member() -> None:
    files = stated()
    for name in files:
        assert (
            contract_verdict({key: data for key, data in files.items() if key != name}) == "refused member_incomplete"
        )
        assert check_member(Faulty(files, name)) == {"refused": "member_unreadable"}


def test_checks_named_by_the_caller_decide_where_their_policy_lies() -> None:
    files = {**Draft().seal(), **stated()}
    assert check_member(MappingMember(files), ["protected_paths"])["checks"].keys() == {"protected_paths/v1"}
    assert check_member(MappingMember(stated()), ["protected_paths"]) == {"contract": {"verdict": "valid"}}
    assert check({}) == {"refused": "case_missing"}


def test_statement_helper_is_bound_to_its_bytes() -> None:
    assert contract_statement(b"x", {})["subject"][0]["digest"]["sha256"] == sha(b"x")


# --- all codes ---


def test_every_code_of_receipts_and_statements_is_exercised() -> None:
    tried = {code for code, _ in SHAPE_FAULTS} | {code for code, _ in LAUNCH_FAULTS}
    tried |= {f"receipt_{code}" for code, _ in JSON_FAULTS}
    assert tried | {"receipt_record_missing", "member_unreadable"} == RECEIPT_CODES
    tried = {code for code, _ in STATEMENT_FAULTS} | {f"statement_{code}" for code, _ in JSON_FAULTS}
    assert tried | {"member_incomplete"} == STATEMENT_CODES


def test_every_code_has_a_sentence_and_no_other() -> None:
    assert set(REASONS) == ALL_CODES
    assert set(DECISIONS) == DECISION_CODES
    assert set(INVALID) == (RECEIPT_CODES | STATEMENT_CODES) - {"member_unreadable", "member_incomplete"}
    assert set(REFUSALS) == POLICY_CODES.union(*RECORD_CODES.values()) | {"member_unreadable", "member_incomplete"}
    assert all(
        (text.endswith(".") and text[0].isupper()) or text.startswith(("statement.json", "receipt.json"))
        for text in REASONS.values()
    )


def test_drafts_are_not_shared() -> None:
    one, two = Draft(), Draft()
    one.values["tree"]["files"].clear()
    assert copy.deepcopy(two.values["tree"]["files"])
