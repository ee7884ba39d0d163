"""The table of decisions: what it says of every verdict, and which tables are refused."""

from __future__ import annotations

import json
import random
import tomllib
from typing import Any, get_args

import pytest

from receipts.mutate import draft_of, mutated
from receipts.scenarios import lossy, other_tree, with_effects
from receipts.test_differential import ours
from receipts.test_receipt import sealed
from support.receipt_members import TEST, Draft, event, sha
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.receipts.checks import Answer
from troth.receipts.deciding import ACTIONS, CODES, EXAMPLE, OUTCOMES, Action, decide, decision_of, read_table
from troth.receipts.envelopes import ENVELOPE_FILE
from troth.receipts.member import MappingMember
from troth.receipts.reasons import DECISIONS
from troth.receipts.verify import STOP_ACTIONS, examine, read_receipt
from troth.receipts.writing import build_receipt, decided_receipt

SHIPPED = read_table(EXAMPLE.encode())
SUPPORTED = Answer("supported", "done_checks_supported", "PEER")


def table(*rules: str, limits: str = 'replans = 2\nthen = "stop"', version: str = "troth-stop-table/v1") -> bytes:
    rows = "\n".join(f"[[rule]]\n{rule}" for rule in rules)
    return f'schema_version = "{version}"\n{rows}\n[limits]\n{limits}\n'.encode()


def bare(decision: str, action: str) -> str:
    return f'decision = "{decision}"\naction = "{action}"'


ALL = (bare("supported", "continue"), bare("contradicted", "replan"), bare("not_established", "escalate"))


def said(draft: Draft, data: bytes = EXAMPLE.encode(), replans: int = 0) -> tuple[str, str]:
    found = examine(MappingMember(draft.seal()))
    assert found.done is not None
    decision = decide(read_table(data), found.done, found.answers, replans=replans)
    return decision.action, decision.reason


def test_the_words_are_those_of_the_receipt() -> None:
    assert ACTIONS == get_args(Action) == STOP_ACTIONS


def unrun(draft: Draft) -> Draft:
    draft.values["grade"]["results"] = []
    return draft


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        (Draft(), ("continue", "done_checks_supported")),
        (Draft().add_events(event(5, "write", path="tests/test_a.py")), ("replan", "protected_path_mutated")),
        (other_tree(Draft()), ("replan", "protected_path_digest_changed")),
        (Draft().claim({"id": "c9", "argv": [*TEST, "x"], "exit": 0}), ("replan", "tool_claim_unmatched")),
        (with_effects(Draft(), {"paths": ["/usr/lib/python3/sitecustomize.py"]}),
         ("stop", "external_effect_on_grader_path")),
        (lossy(Draft()), ("escalate", "observation_coverage_unestablished")),
        (unrun(Draft()), ("replan", "acceptance_result_missing")),
        (unrun(lossy(Draft())), ("replan", "acceptance_result_missing")),
    ],
)  # fmt: skip
def test_the_shipped_table(draft: Draft, expected: tuple[str, str]) -> None:
    assert said(draft) == expected


def test_the_limit_turns_a_replan_into_what_the_table_says() -> None:
    draft = other_tree(Draft())
    assert [said(draft, replans=count)[0] for count in (0, 2, 3, 4)] == ["replan", "replan", "escalate", "escalate"]
    assert said(draft, table(*ALL), replans=2) == ("stop", "protected_path_digest_changed")
    assert said(draft, table(*ALL, limits='replans = 0\nthen = "escalate"'))[0] == "escalate"
    # What is no replan is not limited.
    assert said(Draft(), replans=99)[0] == "continue"


def test_rules_are_tried_in_order() -> None:
    first = (
        'decision = "contradicted"\nreason = ["tool_claim_unmatched", "protected_path_digest_changed"]\naction = "stop"'
    )
    assert said(other_tree(Draft()), table(first, *ALL))[0] == "stop"
    assert said(Draft().add_events(event(5, "write", path="tests/test_a.py")), table(first, *ALL))[0] == "replan"


def test_a_rule_can_ask_for_the_scope() -> None:
    external = 'decision = "supported"\nwitness_scope = "EXTERNAL"\naction = "continue"'
    rules = (external, bare("supported", "escalate"), *ALL[1:])
    assert said(Draft(), table(*rules)) == ("escalate", "done_checks_supported")
    decided = decide(read_table(table(*rules)), SUPPORTED._replace(scope="EXTERNAL"), {})
    assert (decided.action, decided.rule) == ("continue", 1)


def test_every_reason_has_its_decision() -> None:
    """By what the checks themselves answer over many members, not by the table's own word."""
    chance = random.Random(4)
    seen: dict[str, set[str]] = {}
    for _ in range(500):
        found = examine(MappingMember(mutated(chance, ours)[0]))
        for answer in [*found.answers.values(), *([found.done] if found.done else [])]:
            seen.setdefault(answer.reason, set()).add(answer.decision)
    assert len(seen) > 15
    assert {reason: {decision_of(reason)} for reason in seen} == seen
    assert {decision_of(reason) for reason in DECISIONS} == set(OUTCOMES)


def test_every_verdict_gets_an_answer() -> None:
    chance = random.Random(5)
    actions = set()
    for _ in range(300):
        found = examine(MappingMember(draft_of(chance).seal()))
        if found.done is not None:
            actions.add(decide(SHIPPED, found.done, found.answers).action)
    assert {"replan", "escalate"} <= actions


REFUSED: dict[str, tuple[bytes, str]] = {
    "no TOML": (b"x", "$"),
    "no UTF-8": (b"\xff", "$"),
    "too large": (b"#" * 70_000, "$"),
    "another version": (table(*ALL, version="troth-stop-table/v2"), "$.schema_version"),
    "no rule": (b'schema_version = "troth-stop-table/v1"\nrule = []\n[limits]\nreplans = 1\nthen = "stop"\n', "$.rule"),
    "an unknown member": (table(*ALL) + b"[more]\n", "$"),
    "an unknown member of a rule": (table(ALL[0] + "\nresaon = []", *ALL[1:]), "$.rule[0]"),
    "an unknown decision": (table(bare("maybe", "stop"), *ALL), "$.rule[0].decision"),
    "an unknown action": (table(bare("supported", "halt"), *ALL[1:]), "$.rule[0].action"),
    "an unknown reason": (table(ALL[1] + '\nreason = ["nonsense"]', *ALL), "$.rule[0].reason"),
    "a reason of another decision": (table(ALL[1] + '\nreason = ["tool_claims_matched"]', *ALL), "$.rule[0].reason"),
    "a reason as text": (table(ALL[1] + '\nreason = "tool_claim_unmatched"', *ALL), "$.rule[0].reason"),
    "no reason in the list": (table(ALL[1] + "\nreason = []", *ALL), "$.rule[0].reason"),
    "an unknown check": (table(ALL[1] + '\ncheck = "acceptance"', *ALL), "$.rule[0].check"),
    "one check that says continue": (
        table('check = "acceptance_observed/v1"\n' + bare("supported", "continue"), *ALL), "$.rule[0].action"
    ),
    "a scope of nothing": (table(ALL[2] + '\nwitness_scope = "PEER"', *ALL), "$.rule[0].witness_scope"),
    "a decision without an answer": (table(*ALL[:2]), "$.rule"),
    "an answer with a condition only": (table(*ALL[:2], ALL[2] + '\nreason = ["tool_exit_unobserved"]'), "$.rule"),
    "a rule that is never reached": (table(*ALL, ALL[1] + '\nreason = ["tool_claim_unmatched"]'), "$.rule[3]"),
    "a rule of a check behind all": (
        table(*ALL, 'check = "acceptance_observed/v1"\n' + bare("contradicted", "stop")), "$.rule[3]"
    ),
    "no limit": (b'schema_version = "troth-stop-table/v1"\n', "$"),
    "a limit of true": (table(*ALL, limits='replans = true\nthen = "stop"'), "$.limits.replans"),
    "a limit below zero": (table(*ALL, limits='replans = -1\nthen = "stop"'), "$.limits.replans"),
    "a limit that goes on": (table(*ALL, limits='replans = 1\nthen = "continue"'), "$.limits.then"),
    "a limit as an array": (table(*ALL).replace(b"[limits]", b"[[limits]]"), "$.limits"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_table_is_refused(what: str) -> None:
    data, path = REFUSED[what]
    with pytest.raises(Refused) as fault:
        read_table(data)
    assert fault.value.code == "E_STOP_TABLE"
    assert fault.value.code in CODES
    assert fault.value.place is not None
    assert fault.value.place.path == path
    assert read_table(table(*ALL)).replans == 2  # the honest twin


def test_the_shipped_table_is_toml_that_names_known_things() -> None:
    assert tomllib.loads(EXAMPLE)["limits"] == {"replans": 3, "then": "escalate"}
    assert SHIPPED.sha256 == sha256_hex(EXAMPLE.encode())


# --- in the receipt ---


def predicate(data: bytes) -> Any:
    return json.loads(data)["predicate"]


def test_a_receipt_carries_the_decision_and_the_digest_of_the_table() -> None:
    files = other_tree(Draft()).seal()
    receipt = build_receipt(files, verifier_id="urn:x:y", table=SHIPPED, replans=3)
    assert predicate(receipt)["stop_decision"] == {"action": "escalate", "reason": "protected_path_digest_changed"}
    assert predicate(receipt)["policy"] == {"table_sha256": SHIPPED.sha256}
    assert examine(MappingMember({**files, "receipt.json": receipt})).result["receipt"] == {"verdict": "valid"}


def test_a_decision_is_written_once() -> None:
    files = sealed()
    found = examine(MappingMember(files))
    assert found.done is not None
    decision = decide(SHIPPED, found.done, found.answers)
    written = decided_receipt(MappingMember(files), decision)
    after = {**files, "receipt.json": written}
    assert examine(MappingMember(after)).result["receipt"] == {"verdict": "valid"}
    assert read_receipt(written)["predicate"]["stop_decision"] == decision.member()
    assert decided_receipt(MappingMember(after), decision) == written
    other = decide(read_table(table(*ALL)), found.done, found.answers)
    with pytest.raises(Refused) as fault:
        decided_receipt(MappingMember(after), other)
    assert fault.value.code == "E_RECEIPT_DECIDED"
    with pytest.raises(Refused) as fault:
        decided_receipt(MappingMember({**files, ENVELOPE_FILE: b"{}"}), decision)
    assert fault.value.code == "E_RECEIPT_SIGNED"
    assert sha(written) != sha(files["receipt.json"])
