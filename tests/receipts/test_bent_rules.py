"""A rule that is bent shows: each bend below is caught by one of the vectors of this folder, and none when unbent."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pytest

from receipts import test_checks, test_done, test_policy, test_receipt, test_records
from receipts.faults import ALLOWED, RECORD_FAULTS
from receipts.scenarios import CLAIMS, PATHS, pin
from support.receipt_members import CHECKS, Draft
from troth.receipts import checks, kinds, launch, policy, reader, records, statements, verify
from troth.receipts.member import MappingMember
from troth.receipts.verify import check_member

Vector = tuple[str, Callable[[], Any], Any]
"""(what it is about, what the reader makes of it, what it should make of it)"""


def _member(
    files: dict[str, bytes], names: list[str] | None, about: Callable[[dict[str, Any]], Any]
) -> Callable[[], Any]:
    return lambda: about(check_member(MappingMember(files), names))


def _reason(check: str) -> Callable[[dict[str, Any]], Any]:
    return lambda result: result.get("checks", {}).get(check, result.get(check, {})).get("reason")


def _code(result: dict[str, Any]) -> Any:
    return result.get("refused", result.get("receipt", result.get("contract", {})))


def _invalid(code: str) -> Any:
    return {"verdict": "invalid", "code": code}


@cache
def vectors() -> list[Vector]:
    """Return the vectors of this folder's tables, each with its bytes made while the rules were straight."""
    made: list[Vector] = []
    records_of = [(f"record {code}", kind, edit, code) for code, kind, edit in RECORD_FAULTS]
    records_of += [(f"allowed {kind}", kind, edit, "") for kind, edit in ALLOWED]
    made += [
        (about, partial(test_records.fault_of, kind, test_records.edited(kind, edit)), code or None)
        for about, kind, edit, code in records_of
    ]
    for code, stem, which, edit in test_policy.FAULTS:
        names = [name for name, check in CHECKS.items() if check[0] == stem]
        made.append((f"policy {code}", _member(test_policy.sealed((stem, which, edit)), names, _code), code))
    for reason, (check, draft) in test_checks.REASONS.items():
        made.append((reason, _member(draft.seal(), None if check == "done" else [check], _reason(check)), reason))
    for events, decision in test_checks.MUTATION_CASES:
        reason = "protected_path_mutated" if decision == "contradicted" else "protected_paths_untouched"
        made.append((f"{events}", _member(Draft().add_events(*events).seal(), [PATHS], _reason(PATHS)), reason))
    for why, claims, events, reason in test_checks.CLAIM_CASES:
        files = Draft().claim(*claims).add_events(*events).seal()
        made.append((why, _member(files, [CLAIMS], _reason(CLAIMS)), reason))
    for path, reaches in test_done.GRADER_PATHS:
        made.append((f"grader path {path}", lambda path=path: checks.is_grader_path(path), reaches))
    for code, edit in test_receipt.SHAPE_FAULTS:
        made.append((f"receipt {code}", _member(test_receipt.sealed(edit=edit), None, _code), _invalid(code)))
    for code, change in test_receipt.LAUNCH_FAULTS:
        made.append((f"launch {code}", _member(test_receipt.sealed(change(Draft())), None, _code), _invalid(code)))
    for change in test_receipt.LAUNCH_ALLOWED:
        made.append(("launch", _member(test_receipt.sealed(change(Draft())), None, _code), {"verdict": "valid"}))
    for kind, check, reason in test_checks.CONTEXT:
        draft = Draft()
        draft.values[kind]["invocation_id"] = "another"
        made.append((f"context of {kind}", _member(draft.seal(), [check], _reason(check)), reason))
    for kind, check, reason in test_checks.DEPENDENT:
        files = pin(Draft(), kind, producer="stranger").seal()
        made.append((f"independence of {kind}", _member(files, [check], _reason(check)), reason))
    for check, honest in ((PATHS, "protected_paths_untouched"), (CLAIMS, "tool_claims_matched")):
        for unseen in ("exec", "chmod"):
            draft = Draft()
            draft.values["capability"]["visible_event_types"].remove(unseen)
            reason = honest if check == PATHS and unseen == "exec" else "field_visibility_unestablished"
            made.append((f"visibility of {unseen}", _member(draft.seal(), [check], _reason(check)), reason))
        draft = Draft()
        draft.values["capability"]["producer"] = "verifier"
        files = draft.seal()
        made.append(("capability", _member(files, [check], _reason(check)), "capability_context_mismatch"))
    for code, edit in test_receipt.STATEMENT_FAULTS:
        made.append((f"statement {code}", _member(test_receipt.stated(edit), None, _code), _invalid(code)))
    return made


def differences() -> Iterator[str]:
    """Run the vectors and name every one that does not give what it should."""
    for about, run, expected in vectors():
        if run() != expected:
            yield about


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


@pytest.fixture(autouse=True, scope="module")
def _made_straight() -> None:
    """Make the vectors before any rule is bent."""
    assert len(vectors()) > 800


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
