"""The three checks and the done verdict (done records §7-8): every reason, with the honest run next to it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from receipts.codes import DECISION_CODES
from receipts.faults import put
from receipts.scenarios import ACCEPT, CLAIMS, PATHS, lose, lossy, other_tree, pin, run, with_effects
from support.receipt_members import (
    CHECKS,
    HONEST,
    LINT,
    SCOPE,
    TEST,
    Draft,
    dump,
    event,
    sha,
    tree_digest,
)


def answer(draft: Draft, check: str, files: dict[str, bytes] | None = None) -> tuple[str, str]:
    result = run(draft, check, files=files)
    found = result["checks"][check]
    assert ("witness_scope" in found) == (found["decision"] != "not_established")
    assert found["vantage"] == ("independent" if "witness_scope" in found else "unestablished")
    return found["decision"], found["reason"]


def test_the_honest_run() -> None:
    assert run(Draft()) == HONEST


# --- 7.1 ---

UNAVAILABLE = [
    ("contract", PATHS, "contract_unavailable_or_unbound"),
    ("observation", PATHS, "observation_unavailable_or_unbound"),
    ("capability", PATHS, "capability_unavailable_or_unbound"),
    ("tree", PATHS, "final_tree_unestablished"),
    ("contract", ACCEPT, "contract_unavailable_or_unbound"),
    ("tree", ACCEPT, "final_tree_unestablished"),
    ("grade", ACCEPT, "grade_unavailable_or_unbound"),
    ("claims", CLAIMS, "claims_unavailable_or_unbound"),
    ("observation", CLAIMS, "observation_unavailable_or_unbound"),
    ("capability", CLAIMS, "capability_unavailable_or_unbound"),
]


@pytest.mark.parametrize(("kind", "check", "reason"), UNAVAILABLE)
def test_a_record_that_the_policy_does_not_bind(kind: str, check: str, reason: str) -> None:
    assert answer(lose(Draft(), kind), check) == ("not_established", reason)
    files = Draft().seal()
    del files[f"{kind}.json"]
    assert answer(Draft(), check, files) == ("not_established", reason)


CONTEXT = [
    ("observation", PATHS, "observation_context_mismatch"),
    ("capability", PATHS, "capability_context_mismatch"),
    ("tree", PATHS, "final_tree_unestablished"),
    ("tree", ACCEPT, "final_tree_unestablished"),
    ("grade", ACCEPT, "grade_context_mismatch"),
    ("claims", CLAIMS, "claims_context_mismatch"),
    ("observation", CLAIMS, "observation_context_mismatch"),
    ("capability", CLAIMS, "capability_context_mismatch"),
]


@pytest.mark.parametrize(("kind", "check", "reason"), CONTEXT)
@pytest.mark.parametrize("name", ["claim_id", "invocation_id"])
def test_a_record_about_something_else(kind: str, check: str, reason: str, name: str) -> None:
    draft = Draft()
    draft.values[kind][name] = "another"
    assert answer(draft, check) == ("not_established", reason)


@pytest.mark.parametrize("check", [PATHS, CLAIMS])
@pytest.mark.parametrize(
    ("name", "value"), [("id", "scope-2"), ("start", "2026-03-01T09:00:00Z"), ("end", "2026-03-01T12:00:00Z")]
)
def test_an_observation_of_another_interval(check: str, name: str, value: str) -> None:
    draft = Draft()
    draft.values["observation"]["scope"][name] = value
    assert answer(draft, check) == ("not_established", "observation_context_mismatch")


@pytest.mark.parametrize("check", [PATHS, CLAIMS])
def test_a_capability_record_of_another_observer(check: str) -> None:
    draft = Draft()
    draft.values["capability"]["producer"] = "verifier"
    assert answer(draft, check) == ("not_established", "capability_context_mismatch")


DEPENDENT = [
    ("observation", PATHS, "observation_vantage_unestablished"),
    ("observation", CLAIMS, "observation_vantage_unestablished"),
    ("tree", PATHS, "final_tree_unestablished"),
    ("tree", ACCEPT, "final_tree_unestablished"),
    ("grade", ACCEPT, "grade_vantage_unestablished"),
]


@pytest.mark.parametrize(("kind", "check", "reason"), DEPENDENT)
def test_nobody_is_independent_by_saying_so(kind: str, check: str, reason: str) -> None:
    record_low, pin_low, both_low, stranger, agent = (Draft() for _ in range(5))
    record_low.values[kind]["vantage"] = "self_reported"
    pin(pin_low, kind, vantage="self_reported")
    both_low.values[kind]["vantage"] = "self_reported"
    pin(both_low, kind, vantage="self_reported")
    stranger.values[kind]["producer"] = "stranger"
    agent.values[kind]["producer"] = "agent"
    pin(agent, kind, producer="agent")
    if kind == "observation":
        stranger.values["capability"]["producer"] = "stranger"
        agent.values["capability"]["producer"] = "agent"
    for draft in (record_low, pin_low, both_low, stranger, agent):
        assert answer(draft, check) == ("not_established", reason)


MUTATION_CASES: list[tuple[list[dict[str, Any]], str]] = [
    ([event(5, "write", path="tests/test_a.py")], "contradicted"),
    ([event(5, "create", path="tests/new.py")], "contradicted"),
    ([event(5, "truncate", path="setup.cfg")], "contradicted"),
    ([event(5, "chmod", path="tests/sub/test_b.py")], "contradicted"),
    ([event(5, "unlink", path="tests")], "contradicted"),
    ([event(5, "write", path="setup.cfg/x")], "contradicted"),
    ([event(5, "rename", path="src/a", target="tests/test_a.py")], "contradicted"),
    ([event(5, "rename", path="tests/test_a.py", target="src/a")], "contradicted"),
    ([event(5, "link", path="tests/test_a.py", target="src/alias.py")], "contradicted"),
    ([event(5, "write", path="tests/cache2/x")], "contradicted"),
    ([event(5, "write", path="tests/test_a.py", origin="e2")], "contradicted"),
    ([event(5, "write", path="tests/test_a.py"), event(6, "write", path="tests/test_a.py")], "contradicted"),
    ([event(5, "read", path="tests/test_a.py")], "supported"),
    ([event(5, "open", path="tests/test_a.py")], "supported"),
    ([event(5, "write", path="tests2/a")], "supported"),
    ([event(5, "write", path="Tests/test_a.py")], "supported"),
    ([event(5, "write", path="tests/cache/x")], "supported"),
    ([event(5, "write", path="tests/sub/cache/deep/x")], "supported"),
    ([event(5, "write", path="tests/sub/cache")], "supported"),
    ([event(5, "write", path="src/tests/test_a.py")], "supported"),
    ([event(5, "write", path="setup.cfg2")], "supported"),
    ([event(5, "write", path="conftest.py")], "supported"),
]


@pytest.mark.parametrize(("events", "decision"), MUTATION_CASES)
def test_what_counts_as_a_mutation_of_a_protected_path(events: list[dict[str, Any]], decision: str) -> None:
    reason = "protected_path_mutated" if decision == "contradicted" else "protected_paths_untouched"
    assert answer(Draft().add_events(*events), PATHS) == (decision, reason)
    # Under any coverage a recorded edit contradicts; an empty record then supports nothing.
    lossy_answer = answer(lossy(Draft().add_events(*events)), PATHS)
    assert lossy_answer == (
        (decision, reason) if decision == "contradicted" else ("not_established", "observation_coverage_unestablished")
    )


def test_a_sealed_absence_is_broken_by_a_creation() -> None:
    absent = {"path": "conftest.py", "kind": "directory", "sha256": tree_digest({})}
    draft = Draft()
    draft.values["contract"]["protected_paths"].append(absent)
    assert answer(draft, PATHS) == ("supported", "protected_paths_untouched")
    draft.add_events(event(5, "create", path="conftest.py"))
    assert answer(draft, PATHS) == ("contradicted", "protected_path_mutated")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda files: files.update({"tests/test_a.py": sha("weaker")}),
        lambda files: files.pop("tests/test_a.py"),
        lambda files: files.update({"tests/planted.py": sha("planted")}),
        lambda files: files.update({"tests/sub/conftest.py": sha("planted")}),
        lambda files: files.pop("setup.cfg"),
        lambda files: files.update({"setup.cfg": sha("other")}),
    ],
)
def test_the_tree_shows_what_the_events_lost(spoil: Any) -> None:
    for draft in (lossy(Draft()), lose(Draft(), "observation"), lose(Draft(), "capability"), Draft()):
        spoil(draft.values["tree"]["files"])
        assert answer(draft, PATHS) == ("contradicted", "protected_path_digest_changed")


@pytest.mark.parametrize(
    "harmless",
    [
        lambda files: files.update({"tests/cache/y": sha("y")}),
        lambda files: files.update({"tests2/test_a.py": sha("y"), "tests.py": sha("y"), "tests-a/b": sha("y")}),
        lambda files: files.update({"src/app.py": sha("y")}),
        lambda files: files.pop("tests/cache/x"),
    ],
)
def test_the_tree_beside_the_protected_paths_is_free(harmless: Any) -> None:
    draft = Draft()
    harmless(draft.values["tree"]["files"])
    assert answer(draft, PATHS) == ("supported", "protected_paths_untouched")


def test_a_tree_that_is_not_believed_contradicts_nothing() -> None:
    for spoiled in (
        pin(other_tree(Draft()), "tree", vantage="self_reported"),
        lose(other_tree(Draft()), "tree"),
    ):
        assert answer(spoiled, PATHS) == ("not_established", "final_tree_unestablished")


def test_the_first_finding_is_the_reason() -> None:
    # A lost observation outranks an unbelieved tree; a dependent observer's mutation is not taken as one.
    draft = pin(lossy(Draft()), "tree", vantage="self_reported")
    assert answer(draft, PATHS) == ("not_established", "observation_coverage_unestablished")
    draft = pin(Draft().add_events(event(5, "write", path="setup.cfg")), "observation", vantage="self_reported")
    assert answer(draft, PATHS) == ("not_established", "observation_vantage_unestablished")
    # A mutation outranks a changed tree.
    draft = other_tree(Draft().add_events(event(5, "write", path="setup.cfg")))
    assert answer(draft, PATHS) == ("contradicted", "protected_path_mutated")


@pytest.mark.parametrize("missing", ["write", "create", "rename", "link", "unlink", "truncate", "chmod", "exec"])
def test_visibility(missing: str) -> None:
    draft = Draft()
    draft.values["capability"]["visible_event_types"].remove(missing)
    unseen = ("not_established", "field_visibility_unestablished")
    assert answer(draft, PATHS) == (("supported", "protected_paths_untouched") if missing == "exec" else unseen)
    assert answer(draft, CLAIMS) == unseen


def test_nested_entries_each_count() -> None:
    draft = Draft()
    inner = {"tests/sub/test_b.py": sha("test b")}
    draft.values["contract"]["protected_paths"].append(
        {"path": "tests/sub", "kind": "directory", "sha256": tree_digest(inner)}
    )
    assert answer(draft, PATHS) == ("supported", "protected_paths_untouched")
    # The outer entry leaves "cache" out; the inner one does not.
    assert answer(copy.deepcopy(draft).add_events(event(5, "write", path="tests/sub/cache/x")), PATHS)[0] == (
        "contradicted"
    )


def test_what_is_not_parsed_does_not_refuse() -> None:
    # No contract: nothing else is parsed.
    draft = lose(Draft(), "contract")
    draft.text["tree"] = draft.text["observation"] = draft.text["capability"] = b"{"
    assert answer(draft, PATHS) == ("not_established", "contract_unavailable_or_unbound")
    # Observation out of context: the capability record is not parsed.
    draft = Draft()
    draft.values["observation"]["claim_id"] = "another"
    draft.text["capability"] = b"{"
    assert answer(draft, PATHS) == ("not_established", "observation_context_mismatch")
    # In context but dependent: it is.
    draft = pin(Draft(), "observation", vantage="self_reported")
    draft.text["capability"] = b"{"
    assert run(draft, PATHS) == {"refused": "capability_json_invalid"}
    # The tree is parsed before the observation, whatever the finding.
    draft = lose(Draft(), "observation")
    draft.text["tree"] = b"{"
    assert run(draft, PATHS) == {"refused": "tree_json_invalid"}
    # An unavailable record is not parsed.
    draft = lose(Draft(), "tree")
    draft.text["tree"] = b"{"
    assert answer(draft, PATHS) == ("not_established", "final_tree_unestablished")
    # Acceptance parses contract, tree and grade, each if available, before anything else.
    draft = lose(Draft(), "contract")
    draft.text["grade"] = b"{"
    assert run(draft, ACCEPT) == {"refused": "grade_json_invalid"}
    # Tool claims parse all three, even when the claims are not there.
    draft = lose(Draft(), "claims")
    draft.text["capability"] = b"{"
    assert run(draft, CLAIMS) == {"refused": "capability_json_invalid"}


# --- 7.2 ---

SECOND = [{"id": "unit", "argv": TEST, "exit": 0}]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (put("contract_sha256", "0" * 64), ("not_established", "grade_contract_mismatch")),
        (put("tree_sha256", "0" * 64), ("not_established", "grade_tree_unbound")),
        (put("results", []), ("not_established", "acceptance_result_missing")),
        (put("results", SECOND), ("not_established", "acceptance_result_missing")),
        (put("results.0.argv", LINT), ("not_established", "acceptance_argv_mismatch")),
        (put("results.0.argv", [*TEST, "-x"]), ("not_established", "acceptance_argv_mismatch")),
        (put("results.0.id", "more"), ("not_established", "acceptance_result_missing")),
        (
            lambda value: put("results", [*value["results"], {"id": "x", "argv": ["x"], "exit": 1}])(value),
            ("not_established", "acceptance_result_unexpected"),
        ),
        (put("results.1.exit", 1), ("contradicted", "acceptance_failed_in_verifier")),
        (put("results.1.exit", -9), ("contradicted", "acceptance_failed_in_verifier")),
        (lambda value: put("results", value["results"][::-1])(value), ("supported", "acceptance_passed_in_verifier")),
    ],
)
def test_grades(edit: Any, expected: tuple[str, str]) -> None:
    draft = Draft()
    draft.values["grade"] = edit(draft.values["grade"])
    assert answer(draft, ACCEPT) == expected


def test_adequacy_zero_withholds_support_and_not_contradiction() -> None:
    draft = Draft()
    draft.values["contract"]["adequacy"] = {"mutants": 4, "killed": 0}
    assert answer(draft, ACCEPT) == ("not_established", "contract_adequacy_zero")
    draft.values["grade"]["results"][0]["exit"] = 2
    assert answer(draft, ACCEPT) == ("contradicted", "acceptance_failed_in_verifier")


def test_commands_are_taken_in_contract_order() -> None:
    draft = Draft()
    draft.values["grade"]["results"] = [
        {"id": "unit", "argv": LINT, "exit": 1},
        {"id": "more", "argv": LINT, "exit": 1},
    ]
    assert answer(draft, ACCEPT) == ("not_established", "acceptance_argv_mismatch")


# --- 7.3 ---


def claimed(argv: list[str] = TEST, exit_code: int | None = 0, name: str = "c1") -> dict[str, Any]:
    return {"id": name, "argv": argv} | ({} if exit_code is None else {"exit": exit_code})


EDIT = event(5, "write", path="src/late.py")
RERUN = event(6, "exec", argv=TEST, exit=0)

CLAIM_CASES: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]], str]] = [
    ("no claims", [], [EDIT], "tool_claims_matched"),
    ("the honest run", [claimed()], [], "tool_claims_matched"),
    ("no exit claimed", [claimed(exit_code=None)], [], "tool_claims_matched"),
    ("never ran", [claimed(["pytest"])], [], "tool_claim_unmatched"),
    ("one more flag", [claimed([*TEST, "-x"])], [], "tool_claim_unmatched"),
    ("one flag fewer", [claimed(TEST[:-1])], [], "tool_claim_unmatched"),
    ("another order", [claimed(TEST[::-1])], [], "tool_claim_unmatched"),
    ("edited after", [claimed()], [EDIT], "tool_claim_precedes_last_edit"),
    ("edited after, by a later command", [claimed()], [{**EDIT, "origin": "e4"}], "tool_claim_precedes_last_edit"),
    ("its own write", [claimed()], [{**EDIT, "origin": "e2"}], "tool_claims_matched"),
    ("run again", [claimed()], [EDIT, RERUN], "tool_claims_matched"),
    ("a chmod is an edit", [claimed()], [event(5, "chmod", path="a")], "tool_claim_precedes_last_edit"),
    ("a read is none", [claimed()], [event(5, "read", path="a")], "tool_claims_matched"),
    ("another exit", [claimed(exit_code=1)], [], "tool_claim_exit_mismatch"),
    ("the old exit is not fresh", [claimed(exit_code=0)], [EDIT, {**RERUN, "exit": 1}], "tool_claim_exit_mismatch"),
    ("a fresh run has the exit", [claimed(exit_code=1)], [{**RERUN, "exit": 1}], "tool_claims_matched"),
    ("exit not seen", [claimed(exit_code=1)], [event(6, "exec", argv=TEST)], "tool_exit_unobserved"),
    ("exit not seen, settled by another", [claimed()], [event(6, "exec", argv=TEST)], "tool_claims_matched"),
    (
        "nested under a shell: its root is the shell's",
        [claimed(["sh"], None), claimed(["x"], None, "c2")],
        [
            event(5, "exec", argv=["sh"]),
            event(6, "exec", argv=["x"], origin="e5"),
            event(7, "write", path="a", origin="e5"),
        ],
        "tool_claims_matched",
    ),
    (
        "a write of the claimed run's child",
        [claimed(["x"], None)],
        [
            event(5, "exec", argv=["x"]),
            event(6, "exec", argv=["y"], origin="e5"),
            event(7, "write", path="a", origin="e5"),
        ],
        "tool_claims_matched",
    ),
    ("first bad claim decides", [claimed(exit_code=1), claimed(["pytest"], name="c2")], [], "tool_claim_exit_mismatch"),
    (
        "first bad claim decides, otherwise ordered",
        [claimed(["pytest"]), claimed(exit_code=1, name="c2")],
        [],
        "tool_claim_unmatched",
    ),
    (
        "contradiction outranks an earlier unseen",
        [claimed(exit_code=1), claimed(["pytest"], name="c2")],
        [event(6, "exec", argv=TEST)],
        "tool_claim_unmatched",
    ),
    (
        "two roots of one argv are both own",
        [claimed()],
        [RERUN, event(7, "write", path="a", origin="e2"), event(8, "write", path="b", origin="e6")],
        "tool_claims_matched",
    ),
]


@pytest.mark.parametrize(("why", "claims", "events", "reason"), CLAIM_CASES, ids=[case[0] for case in CLAIM_CASES])
def test_claims(why: str, claims: list[dict[str, Any]], events: list[dict[str, Any]], reason: str) -> None:
    decision = {
        "tool_claims_matched": "supported",
        "tool_exit_unobserved": "not_established",
    }.get(reason, "contradicted")
    assert answer(Draft().claim(*claims).add_events(*events), CLAIMS) == (decision, reason), why
    # Under incomplete coverage nothing is said at all: fabrication is not proven by a record with gaps.
    assert answer(lossy(Draft().claim(*claims).add_events(*events)), CLAIMS) == (
        "not_established",
        "observation_coverage_unestablished",
    )


def test_claims_out_of_context_come_before_the_observation() -> None:
    draft = lose(Draft(), "observation")
    draft.values["claims"]["claim_id"] = "another"
    assert answer(draft, CLAIMS) == ("not_established", "claims_context_mismatch")


def test_an_edit_of_any_path_makes_stale_also_before_the_first_run() -> None:
    draft = Draft().claim(claimed())
    draft.values["observation"]["events"] = [event(1, "exec", argv=TEST, exit=0), event(2, "write", path="a")]
    assert answer(draft, CLAIMS) == ("contradicted", "tool_claim_precedes_last_edit")
    draft.values["observation"]["events"] = [event(0, "exec", argv=TEST, exit=0)]
    assert answer(draft, CLAIMS) == ("supported", "tool_claims_matched")


# --- scope ---


def test_external_needs_every_record_and_every_pin() -> None:
    def scopes(draft: Draft) -> dict[str, str]:
        result = run(draft)
        found = {name: check["witness_scope"] for name, check in result["checks"].items()}
        return {**found, "done": result["done"]["witness_scope"]}

    every = (*CHECKS, "done")
    assert scopes(Draft().external()) == dict.fromkeys(every, "EXTERNAL")
    rests = {"observation": {PATHS, CLAIMS}, "tree": {PATHS, ACCEPT}, "grade": {ACCEPT}}
    for kind, checks in rests.items():
        peer = {name: "PEER" if name in {*checks, "done"} else "EXTERNAL" for name in every}
        low_record = Draft().external()
        low_record.values[kind]["witness_scope"] = "PEER"
        pin(low_record, kind, witness_scope="EXTERNAL")
        assert scopes(low_record) == peer
        assert scopes(pin(Draft().external(), kind, witness_scope="PEER")) == peer


def test_a_contradiction_rests_on_one_record_only() -> None:
    mutated = pin(Draft().external().add_events(event(5, "write", path="setup.cfg")), "tree", witness_scope="PEER")
    assert run(mutated)["checks"][PATHS]["witness_scope"] == "EXTERNAL"
    changed = pin(other_tree(Draft().external()), "observation", witness_scope="PEER")
    assert run(changed)["checks"][PATHS]["witness_scope"] == "EXTERNAL"


# --- results without a receipt ---


def test_checks_run_in_the_order_named_and_only_those() -> None:
    result = run(Draft(), CLAIMS, PATHS)
    assert list(result) == ["checks"]
    assert list(result["checks"]) == [CLAIMS, PATHS]
    result = run(Draft(), CLAIMS, ACCEPT, PATHS)
    assert list(result["checks"]) == [CLAIMS, ACCEPT, PATHS]
    assert result["done"] == HONEST["done"]
    draft = Draft()
    draft.text["claims"] = draft.text["grade"] = b""
    assert run(draft, CLAIMS, ACCEPT) == {"refused": "claims_json_invalid"}
    assert run(draft, ACCEPT, CLAIMS) == {"refused": "grade_json_invalid"}


def test_presence_of_files_decides_nothing() -> None:
    files = Draft().seal()
    for name in [name for name in files if name.startswith(("acceptance", "tool-claims", "grade", "claims"))]:
        del files[name]
    assert run(Draft(), PATHS, files=files)["checks"][PATHS]["decision"] == "supported"
    assert run(Draft(), files=files) == {"refused": "case_missing"}


def test_scope_of_the_policy_is_the_consumers() -> None:
    draft = Draft()
    draft.policy_edits.append(
        ("protected-paths", lambda _case, policy: policy["assessments"]["claim-1"].update(scope={**SCOPE, "id": "x"}))
    )
    assert answer(draft, PATHS) == ("not_established", "observation_context_mismatch")
    assert answer(draft, CLAIMS) == ("supported", "tool_claims_matched")


def test_digests_are_of_stored_bytes() -> None:
    files = Draft().seal()
    files["claims.json"] = files["claims.json"].replace(b"\n", b"\n ", 1)
    assert run(Draft(), CLAIMS, files=files) == {"refused": "case_artifact_binding_mismatch"}
    assert dump({"a": 1}) != b'{"a": 1}'


def edited(kind: str, edit: Any) -> Draft:
    draft = Draft()
    draft.values[kind] = edit(draft.values[kind])
    return draft


REASONS: dict[str, tuple[str, Draft]] = {
    "contract_unavailable_or_unbound": (PATHS, lose(Draft(), "contract")),
    "observation_unavailable_or_unbound": (PATHS, lose(Draft(), "observation")),
    "observation_context_mismatch": (CLAIMS, edited("observation", put("claim_id", "x"))),
    "observation_vantage_unestablished": (CLAIMS, pin(Draft(), "observation", producer="x")),
    "capability_unavailable_or_unbound": (PATHS, lose(Draft(), "capability")),
    "capability_context_mismatch": (CLAIMS, edited("capability", put("invocation_id", "x"))),
    "field_visibility_unestablished": (PATHS, edited("capability", put("visible_event_types", []))),
    "observation_coverage_unestablished": (PATHS, edited("observation", put("coverage", "unknown"))),
    "protected_path_mutated": (PATHS, Draft().add_events(event(5, "write", path="setup.cfg"))),
    "protected_path_digest_changed": (PATHS, other_tree(Draft())),
    "final_tree_unestablished": (ACCEPT, lose(Draft(), "tree")),
    "protected_paths_untouched": (PATHS, Draft()),
    "grade_unavailable_or_unbound": (ACCEPT, lose(Draft(), "grade")),
    "grade_context_mismatch": (ACCEPT, edited("grade", put("claim_id", "x"))),
    "grade_vantage_unestablished": (ACCEPT, edited("grade", put("vantage", "self_reported"))),
    "grade_contract_mismatch": (ACCEPT, edited("grade", put("contract_sha256", "0" * 64))),
    "grade_tree_unbound": (ACCEPT, edited("grade", put("tree_sha256", "0" * 64))),
    "acceptance_result_missing": (ACCEPT, edited("grade", put("results", SECOND))),
    "acceptance_argv_mismatch": (ACCEPT, edited("grade", put("results.0.argv", LINT))),
    "acceptance_result_unexpected": (ACCEPT, edited("contract", put("acceptance", [{"id": "lint", "argv": LINT}]))),
    "acceptance_failed_in_verifier": (ACCEPT, edited("grade", put("results.0.exit", 1))),
    "contract_adequacy_zero": (ACCEPT, edited("contract", put("adequacy.killed", 0))),
    "acceptance_passed_in_verifier": (ACCEPT, Draft()),
    "claims_unavailable_or_unbound": (CLAIMS, lose(Draft(), "claims")),
    "claims_context_mismatch": (CLAIMS, edited("claims", put("claim_id", "x"))),
    "tool_claim_unmatched": (CLAIMS, Draft().claim(claimed(["pytest"]))),
    "tool_claim_precedes_last_edit": (CLAIMS, Draft().add_events(EDIT)),
    "tool_claim_exit_mismatch": (CLAIMS, Draft().claim(claimed(exit_code=3))),
    "tool_exit_unobserved": (CLAIMS, Draft()),
    "tool_claims_matched": (CLAIMS, Draft()),
    "external_effect_on_grader_path": ("done", with_effects(Draft(), {"paths": ["/x.pth"]})),
    "done_checks_supported": ("done", Draft()),
}
REASONS["tool_exit_unobserved"][1].values["observation"]["events"][3].pop("exit")


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_is_reached(reason: str) -> None:
    check, draft = REASONS[reason]
    result = run(draft) if check == "done" else run(draft, check)
    assert (result["done"] if check == "done" else result["checks"][check])["reason"] == reason


def test_every_reason_of_the_rules_is_exercised() -> None:
    assert set(REASONS) == DECISION_CODES
