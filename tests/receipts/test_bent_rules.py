"""A rule that is bent shows: each bend below is caught by one of the vectors of this folder, and none when unbent."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from receipts import test_checks, test_done, test_policy, test_receipt, test_records
from receipts.faults import ALLOWED, RECORD_FAULTS
from receipts.scenarios import CLAIMS, PATHS, pin, run
from support.receipt_members import CHECKS, Draft
from troth.receipts import checks, kinds, launch, policy, reader, records, statements, verify
from troth.receipts.member import MappingMember
from troth.receipts.verify import check_member


def differences() -> Iterator[str]:
    """Run the vectors and name every one that does not give what it should."""
    for code, kind, edit in RECORD_FAULTS:
        if test_records.fault_of(kind, test_records.edited(kind, edit)) != code:
            yield f"record {code}"
    for kind, edit in ALLOWED:
        if test_records.fault_of(kind, test_records.edited(kind, edit)) is not None:
            yield f"allowed {kind}"
    for code, stem, which, edit in test_policy.FAULTS:
        claim_type = next(name for name, check in CHECKS.items() if check[0] == stem)
        files = test_policy.sealed((stem, which, edit))
        if check_member(MappingMember(files), [claim_type]) != {"refused": code}:
            yield f"policy {code}"
    for reason, (check, draft) in test_checks.REASONS.items():
        result = run(draft) if check == "done" else run(draft, check)
        if (result.get("done") if check == "done" else result.get("checks", {}).get(check, {})).get("reason") != reason:
            yield f"reason {reason}"
    for events, decision in test_checks.MUTATION_CASES:
        result = run(Draft().add_events(*events), PATHS)
        if result.get("checks", {}).get(PATHS, {}).get("decision") != decision:
            yield f"mutation {events}"
    for why, claims, events, reason in test_checks.CLAIM_CASES:
        result = run(Draft().claim(*claims).add_events(*events), CLAIMS)
        if result.get("checks", {}).get(CLAIMS, {}).get("reason") != reason:
            yield f"claim {why}"
    for path, reaches in test_done.GRADER_PATHS:
        if checks.is_grader_path(path) is not reaches:
            yield f"grader path {path}"
    for code, edit in test_receipt.SHAPE_FAULTS:
        if test_receipt.verdict(test_receipt.sealed(edit=edit)) != code:
            yield f"receipt {code}"
    for code, change in test_receipt.LAUNCH_FAULTS:
        if test_receipt.verdict(test_receipt.sealed(change(Draft()))) != code:
            yield f"launch {code}"
    for change in test_receipt.LAUNCH_ALLOWED:
        if test_receipt.verdict(test_receipt.sealed(change(Draft()))) != "valid":
            yield "launch, allowed"
    for kind, check, reason in test_checks.CONTEXT:
        draft = Draft()
        draft.values[kind]["invocation_id"] = "another"
        if run(draft, check).get("checks", {}).get(check, {}).get("reason") != reason:
            yield f"context of {kind} in {check}"
    for kind, check, reason in test_checks.DEPENDENT:
        if run(pin(Draft(), kind, producer="stranger"), check).get("checks", {}).get(check, {}).get("reason") != reason:
            yield f"independence of {kind} in {check}"
    for check in (PATHS, CLAIMS):
        for unseen in ("exec", "chmod"):
            draft = Draft()
            draft.values["capability"]["visible_event_types"].remove(unseen)
            decision = run(draft, check).get("checks", {}).get(check, {}).get("decision")
            if (decision == "supported") != (check == PATHS and unseen == "exec"):
                yield f"visibility of {unseen} in {check}"
        draft = Draft()
        draft.values["capability"]["producer"] = "verifier"
        if run(draft, check).get("checks", {}).get(check, {}).get("reason") != "capability_context_mismatch":
            yield f"capability of another observer in {check}"
    for code, edit in test_receipt.STATEMENT_FAULTS:
        if test_receipt.contract_verdict(test_receipt.stated(edit)) != code:
            yield f"statement {code}"


def test_no_vector_differs() -> None:
    assert list(differences()) == []


def rewritten(function: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """Return the function with one piece of its source replaced."""
    source = inspect.getsource(function)
    assert source.count(old) == 1, (function, old)
    scope = dict(vars(inspect.getmodule(function)))
    exec(compile(re.sub(r"^ {4}(?=def |@)", "", source.replace(old, new)), "bent", "exec"), scope)
    bent: Callable[..., Any] = scope[function.__name__]
    return bent


TABLES: list[tuple[Any, str, Any]] = [
    (kinds, "MAX_EXIT", 256),
    (records, "TWO_ENDED", ("rename",)),
    (records, "MUTATIONS", records.MUTATIONS - {"truncate"}),
    (checks, "MUTATIONS", records.MUTATIONS - {"chmod"}),
    (checks, "_CLAIM_TYPES", records.MUTATIONS),
    (checks, "_GRADER_SEGMENTS", frozenset({"dist-packages", "verifier"})),
    (checks, "_GRADER_FILES", frozenset({"sitecustomize.py", "usercustomize.py", "reward.json"})),
    (launch, "LOSSES", launch.LOSSES[1:]),
    (launch, "EFFECT", kinds.shape("type time", "paths address path")),
    (policy, "PINNED", ("observation", "tree")),
    (policy, "MAX_BYTES", 16_777_217),
    (verify, "STOP_ACTIONS", ("continue", "replan", "escalate", "stop", "halt")),
    (statements, "STATEMENT_TYPE", "https://in-toto.io/Statement/v0.1"),
]

RULES: list[tuple[Any, str, str, str]] = [
    # (module, function, what its source says, what a near-miss reader would say)
    (records, "_exclude_holds", 'entry["kind"] != "directory" or ', ""),
    (records, "_gaps", "start < end <= last", "start <= end <= last"),
    (records, "_events", "step <= previous", "step < previous"),
    (records, "_events", "runs.add(name)", "runs.add(name), runs.update(ids)"),
    (records, "_events", "not first <= time <= last", "not first <= time"),
    (
        launch,
        "_effect_holds",
        '("paths" in effect) == ("address" in effect)',
        '"paths" not in effect and "address" not in effect',
    ),
    (launch, "reported_losses", "sensors[sensor].get(name)", "name in sensors[sensor]"),
    (policy, "_bind", "data is not None and digest == pin", "data is not None and digest != pin"),
    (checks, "_heard", ' or capability["producer"] != observation["producer"]', ""),
    (checks, "_protected_finding", '    if not asked.independent("observation", observation):\n', "    if False:\n"),
    (checks, "_answers", 'return "acceptance_result_unexpected" if results else None', "return None"),
    (checks, "acceptance_observed", 'contract["adequacy"]["killed"] == 0', "False"),
    (checks, "judge_claims", 'event["step"] > since', "True"),
    (checks, "judge_claims", 'event.get("origin", event["id"])', 'event["id"]'),
    (checks, "judge_claims", '"unseen" if None in exits else "mismatch"', '"mismatch"'),
    (checks, "mutations_of_protected", '("path", "target")', '("path",)'),
    (checks, "is_grader_path", 'path.endswith(".pth")', 'segments[-1] == ".pth"'),
    (verify, "_require_launch", '("observation", "capability", "tree")', '("observation", "tree")'),
    (verify, "_require_launch", 'scope == tree["witness_scope"] == ', "scope == "),
    (verify, "checks_member", '"claim_type": name, ', '"claim_type": "", '),
]


@pytest.mark.parametrize(("module", "name", "bent"), TABLES, ids=[f"{name}" for _, name, _ in TABLES])
def test_a_bent_table_is_caught(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, bent: Any) -> None:
    monkeypatch.setattr(module, name, bent)
    assert next(differences(), None) is not None


@pytest.mark.parametrize(
    ("module", "name", "old", "new"), RULES, ids=[f"{name}-{number}" for number, (_, name, _, _) in enumerate(RULES)]
)
def test_a_bent_rule_is_caught(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, old: str, new: str) -> None:
    straight = getattr(module, name)
    bent = rewritten(straight, old, new)
    for other in (module, verify):
        if getattr(other, name, None) is straight:
            monkeypatch.setattr(other, name, bent)
    for table in (reader.RULES, checks.RUN):
        for key, rule in table.items():
            if rule.__name__ == name:
                monkeypatch.setitem(table, key, bent)
    assert next(differences(), None) is not None
