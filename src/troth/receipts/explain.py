"""The facts behind an answer, for a person: which claim, which write, which command (done records §13.13).

Everything here is read off an `Examination`; nothing is decided anew. Every function of a check's facts uses the very
functions the check decided with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from troth.receipts.checks import CONTRADICTING, Answer, judge_claims, mutations_of_protected, reaches_grader
from troth.receipts.kinds import Broken, Record
from troth.receipts.member import CORE_RECORDS, FILES, LAUNCH_RECORDS, ReadFault
from troth.receipts.policy import ACCEPTANCE_OBSERVED, PROTECTED_PATHS, TOOL_CLAIM_MATCH, Assessment
from troth.receipts.protection import Guard
from troth.receipts.reader import MemberReader
from troth.receipts.reasons import sentence
from troth.receipts.records import MUTATIONS
from troth.receipts.verify import Examination

MAX_FACTS: Final = 50
"""Facts listed for one check; what is beyond them is counted."""


def records_of(found: Examination) -> dict[str, dict[str, Any]]:
    """Return kind -> {file, sha256, length} of the records that are there; a read fault stands as ``fault``."""
    held: dict[str, dict[str, Any]] = {}
    for kind in CORE_RECORDS + LAUNCH_RECORDS:
        name = FILES[kind]
        try:
            data = found.reader.read(name)
        except ReadFault as fault:
            held[kind] = {"file": name, "fault": fault.message}
            continue
        if data is not None:
            held[kind] = {"file": name, "sha256": found.reader.digest(name), "length": len(data)}
    return held


def authorities(found: Examination) -> list[str]:
    """Return who is responsible for the pins that were used, each once."""
    named = {bound.pin["authority"]: None for asked in found.asked.values() for bound in asked.bound.values()}
    return list(named)


def effects_of(found: Examination) -> list[dict[str, Any]]:
    """Return the effects outside the workspace, each with whether it reaches the grader (§8)."""
    return [{**effect, "reaches_grader": reaches_grader(effect)} for effect in found.effects]


def stories(found: Examination) -> list[dict[str, Any]]:
    """Return, for every check that was run, {claim_type, decision, reason, vantage, witness_scope?, told, facts}.

    ``told`` is the reason in a sentence. ``facts`` are objects with a ``kind``: ``mutation``, ``changed``,
    ``result``, ``claim`` or ``record``.
    """
    told: list[dict[str, Any]] = []
    if found.fault is not None:
        return told  # no verdict exists for a member that is refused (§1)
    for claim_type, answer in found.answers.items():
        facts = _FACTS[claim_type](found.reader, found.asked[claim_type], answer)
        story: dict[str, Any] = {"claim_type": claim_type, **answer.as_json(), "told": sentence(answer.reason)}
        story["facts"] = facts[:MAX_FACTS]
        if len(facts) > MAX_FACTS:
            story["facts_left_out"] = len(facts) - MAX_FACTS
        told.append(story)
    return told


def _held(reader: MemberReader, asked: Assessment, role: str) -> Record | None:
    """Return a record that the check could rest on; one that it never parsed may be malformed, and is none."""
    bound = asked.bound.get(role)
    if bound is None or not bound.available:
        return None
    try:
        return reader.record(role, bound.path)
    except Broken:
        return None


_TOLD: Final = ("id", "type", "time", "step", "path", "target", "argv", "exit")


def _event(event: Record) -> dict[str, Any]:
    return {name: event[name] for name in _TOLD if name in event}


def _command_of(observation: Record, event: Record) -> list[str] | None:
    """Return the argv of the command that a mutation came from, when the record says."""
    origin = event.get("origin")
    if origin is None:
        return None
    for other in observation.get("events", ()):
        if other["id"] == origin:
            argv: list[str] = other["argv"]
            return argv
    return None


def _about_record(reader: MemberReader, asked: Assessment, role: str) -> list[dict[str, Any]]:
    """Return why a record is not believed: what it says beside what is asked."""
    bound = asked.bound.get(role)
    if bound is None:
        return []
    fact: dict[str, Any] = {"kind": "record", "role": role, "file": bound.path}
    if not bound.available:
        there = reader.read(bound.path) is not None
        fact["why"] = "the policy pins other bytes" if there else "the file is not there"
        fact["pinned_sha256"] = bound.pin["sha256"]
        if there:
            fact["sha256"] = reader.digest(bound.path)
        return [fact]
    record = _held(reader, asked, role)
    if record is None:
        return []
    wanted: dict[str, Any] = {"claim_id": asked.case_id, "invocation_id": asked.invocation_id}
    if "scope" in record:
        wanted["scope"] = asked.scope
    if role == "capability":
        observation = _held(reader, asked, "observation")
        wanted["producer"] = observation["producer"] if observation is not None else None
    differs = {
        name: {"record": record[name], "asked": value} for name, value in wanted.items() if record[name] != value
    }
    if not differs and "vantage" in record:
        pin = bound.pin
        differs = {
            name: {"record": record[name], "asked": pin[name]}
            for name in ("producer", "vantage")
            if record[name] != pin[name]
        }
        if record["producer"] == asked.observed_party:
            differs["producer"] = {"record": record["producer"], "asked": "anyone but the observed party"}
        if record["vantage"] != "independent":
            differs["vantage"] = {"record": record["vantage"], "asked": "independent"}
    fact["differs"] = differs
    return [fact] if differs else []


_ABOUT: Final = {
    "contract": ("contract_unavailable_or_unbound",),
    "tree": ("final_tree_unestablished",),
    "grade": ("grade_unavailable_or_unbound", "grade_context_mismatch", "grade_vantage_unestablished"),
    "claims": ("claims_unavailable_or_unbound", "claims_context_mismatch"),
    "observation": (
        "observation_unavailable_or_unbound",
        "observation_context_mismatch",
        "observation_vantage_unestablished",
    ),
    "capability": ("capability_unavailable_or_unbound", "capability_context_mismatch"),
}
"""Role -> reasons that are about that record as a whole."""


def _common(reader: MemberReader, asked: Assessment, answer: Answer) -> list[dict[str, Any]]:
    for role, reasons in _ABOUT.items():
        if answer.reason in reasons:
            return _about_record(reader, asked, role)
    if answer.reason == "field_visibility_unestablished":
        capability = _held(reader, asked, "capability")
        visible = capability["visible_event_types"] if capability is not None else []
        needed = MUTATIONS | ({"exec"} if "claims" in asked.bound else set())
        return [{"kind": "record", "role": "capability", "not_visible": sorted(needed.difference(visible))}]
    if answer.reason == "observation_coverage_unestablished":
        observation = _held(reader, asked, "observation")
        if observation is not None:
            return [
                {
                    "kind": "record",
                    "role": "observation",
                    "coverage": observation["coverage"],
                    "gaps": observation.get("gaps", []),
                }
            ]
    return []


def _protected_facts(reader: MemberReader, asked: Assessment, answer: Answer) -> list[dict[str, Any]]:
    contract, observation, tree = (_held(reader, asked, role) for role in ("contract", "observation", "tree"))
    if contract is None:
        return _common(reader, asked, answer)
    guard = Guard(contract)
    if answer.reason == "protected_path_mutated" and observation is not None:
        return [
            {
                "kind": "mutation",
                "name": name,
                "protected_by": entry["path"],
                "event": _event(event),
                "by_command": _command_of(observation, event),
            }
            for event, name, entry in mutations_of_protected(observation, guard)
        ]
    if answer.reason == "protected_path_digest_changed" and tree is not None:
        return [
            {"kind": "changed", "path": entry["path"], "entry": entry["kind"], "sha256": entry["sha256"]}
            for entry in guard.changed(tree["files"])
        ]
    return _common(reader, asked, answer)


def _acceptance_facts(reader: MemberReader, asked: Assessment, answer: Answer) -> list[dict[str, Any]]:
    contract, tree, grade = (_held(reader, asked, role) for role in ("contract", "tree", "grade"))
    if contract is None or grade is None:
        return _common(reader, asked, answer)
    results = {result["id"]: result for result in grade["results"]}
    if answer.reason == "acceptance_failed_in_verifier":
        return [{"kind": "result", **result} for result in grade["results"] if result["exit"] != 0]
    if answer.reason == "acceptance_result_missing":
        return [{"kind": "result", **command} for command in contract["acceptance"] if command["id"] not in results]
    if answer.reason == "acceptance_argv_mismatch":
        return [
            {"kind": "result", **command, "graded_argv": results[command["id"]]["argv"]}
            for command in contract["acceptance"]
            if command["id"] in results and results[command["id"]]["argv"] != command["argv"]
        ]
    if answer.reason == "acceptance_result_unexpected":
        known = {command["id"] for command in contract["acceptance"]}
        return [{"kind": "result", **result} for result in grade["results"] if result["id"] not in known]
    if answer.reason == "grade_contract_mismatch":
        pinned = asked.bound["contract"].pin["sha256"]
        differs = {"contract_sha256": {"record": grade["contract_sha256"], "asked": pinned}}
        return [{"kind": "record", "role": "grade", "differs": differs}]
    if answer.reason == "grade_tree_unbound" and tree is not None:
        differs = {"tree_sha256": {"record": grade["tree_sha256"], "asked": tree["tree_sha256"]}}
        return [{"kind": "record", "role": "grade", "differs": differs}]
    return _common(reader, asked, answer)


def _claim_facts(reader: MemberReader, asked: Assessment, answer: Answer) -> list[dict[str, Any]]:
    claims, observation = (_held(reader, asked, role) for role in ("claims", "observation"))
    telling = {*CONTRADICTING.values(), "tool_exit_unobserved"}
    if claims is None or observation is None or answer.reason not in telling:
        return _common(reader, asked, answer)
    facts = []
    for judged in judge_claims(claims, observation):
        if judged.outcome == "matched":
            continue
        fact: dict[str, Any] = {"kind": "claim", "outcome": judged.outcome, **judged.claim}
        if judged.candidates:
            fact["last_run"] = _event(judged.candidates[-1])
        if judged.outcome == "stale" and judged.last_edit is not None:
            fact["written_after"] = _event(judged.last_edit)
            fact["written_by"] = _command_of(observation, judged.last_edit)
            fact["mend"] = judged.claim["argv"]
        if judged.outcome == "mismatch":
            fact["observed_exits"] = sorted({event["exit"] for event in judged.fresh})
        facts.append(fact)
    return facts


_FACTS: Final[Mapping[str, Callable[[MemberReader, Assessment, Answer], list[dict[str, Any]]]]] = {
    PROTECTED_PATHS: _protected_facts,
    ACCEPTANCE_OBSERVED: _acceptance_facts,
    TOOL_CLAIM_MATCH: _claim_facts,
}
