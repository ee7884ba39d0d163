"""What checks found, in sentences for a person (done records §13.13). Pure; the facts are those of `explain`.

Stale is told as stale, an unmatched claim as not observed; only a protected path, an acceptance command and an exit are
told as contradicted facts. Names and commands come from outside, so control characters in them come out as escapes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from troth.core.words import command_line, printable
from troth.receipts.explain import effects_of, stories
from troth.receipts.member import FILES
from troth.receipts.reasons import sentence
from troth.receipts.verify import Examination

Fact = Mapping[str, Any]

MAX_NAME: Final = 200
"""Characters of a path that a sentence shows."""


# --- a fact, whole ---


def told_fact(fact: Fact) -> list[str]:
    """Return a fact of `explain.stories` in one or two lines."""
    return _TOLD[fact["kind"]](fact)


def _told_claim(fact: Fact) -> list[str]:
    command = command_line(fact["argv"])
    claimed = f", claimed exit {fact['exit']}" if "exit" in fact else ""
    if fact["outcome"] == "unmatched":
        return [f"not observed: {command}{claimed}"]
    if fact["outcome"] == "unseen":
        return [f"exit not seen: {command}{claimed}"]
    if fact["outcome"] == "mismatch":
        return [f"contradicted: {command}{claimed}, observed exit {_numbers(fact['observed_exits'])}"]
    lines = [f"stale: {command} ran at {fact['last_run']['time']} (step {fact['last_run']['step']})"]
    write = fact.get("written_after")
    if write is not None:
        by = f" by {command_line(fact['written_by'])}" if fact["written_by"] else ""
        lines[0] += f", then {_ends(write)} was written ({write['type']}, {write['time']}, step {write['step']}){by}"
    return [*lines, f"run it again to mend that: {command}"]


def _numbers(codes: Sequence[int]) -> str:
    return ", ".join(str(code) for code in codes)


def _ends(event: Mapping[str, Any]) -> str:
    return printable(" -> ".join(event[end] for end in ("path", "target") if end in event), MAX_NAME)


def _told_mutation(fact: Fact) -> list[str]:
    event = fact["event"]
    by = f" by {command_line(fact['by_command'])}" if fact["by_command"] else ""
    entry = "" if fact["protected_by"] == fact["name"] else f", protected as {printable(fact['protected_by'])}"
    return [f"{printable(fact['name'])}{entry}: {event['type']} at {event['time']} (step {event['step']}){by}"]


def _told_changed(fact: Fact) -> list[str]:
    return [f"{fact['entry']} {printable(fact['path'])} is not what the contract sealed ({fact['sha256'][:12]}…)"]


def _told_result(fact: Fact) -> list[str]:
    text = f"{printable(fact['id'])}: {command_line(fact['argv'])}"
    if "exit" in fact:
        text += f" ended with exit {fact['exit']}"
    if "graded_argv" in fact:
        text += f"; graded was {command_line(fact['graded_argv'])}"
    return [text]


def _told_record(fact: Fact) -> list[str]:
    lines = []
    if "why" in fact:
        lines.append(f"{fact['role']} ({printable(fact['file'])}): {fact['why']}")
    for name, both in fact.get("differs", {}).items():
        says, asked = (printable(json.dumps(both[side], ensure_ascii=False), 200) for side in ("record", "asked"))
        lines.append(f"{fact['role']}: {name} is {says}, asked for is {asked}")
    if "not_visible" in fact:
        lines.append(f"not visible to the observer: {', '.join(fact['not_visible'])}")
    if "coverage" in fact:
        gaps = "".join(f", gap {gap['start']} to {gap['end']}" for gap in fact["gaps"])
        lines.append(f"coverage is {fact['coverage']}{gaps}")
    return lines


_TOLD: Final[Mapping[str, Callable[[Fact], list[str]]]] = {
    "claim": _told_claim,
    "mutation": _told_mutation,
    "changed": _told_changed,
    "result": _told_result,
    "record": _told_record,
}


# --- a check, in one sentence ---

_DONE_TO_PATH: Final[Mapping[str, str]] = {
    "write": "was changed",
    "truncate": "was changed",
    "create": "was created",
    "unlink": "was deleted",
    "chmod": "had its mode changed",
    "rename": "was moved away",
    "link": "was given a second name",
}
_DONE_TO_TARGET: Final[Mapping[str, str]] = {"rename": "was replaced", "link": "was created as a link"}


def _beyond(names: Sequence[str], what: str) -> str:
    more = len(names) - 1
    return f" (and {more} more {what}{'s' if more > 1 else ''})" if more else ""


def _mutated(facts: Sequence[Fact]) -> str:
    names = list(dict.fromkeys(fact["name"] for fact in facts))
    event = facts[0]["event"]
    table = _DONE_TO_PATH if event.get("path") == names[0] else _DONE_TO_TARGET
    verb = table.get(event["type"], "was changed")
    return f"{printable(names[0], MAX_NAME)} {verb} during the run{_beyond(names, 'protected name')}."


def _changed(facts: Sequence[Fact]) -> str:
    names = [fact["path"] for fact in facts]
    return f"{printable(names[0], MAX_NAME)} is not what the contract sealed{_beyond(names, 'entry')}."


def _failed(facts: Sequence[Fact]) -> str:
    first = facts[0]
    names = [fact["id"] for fact in facts]
    return (
        f"Acceptance command {printable(first['id'], 80)!r} ended with exit {first['exit']} in the verifier"
        f"{_beyond(names, 'command')}: {command_line(first['argv'])}."
    )


def _no_result(facts: Sequence[Fact]) -> str:
    names = [fact["id"] for fact in facts]
    return f"Acceptance command {printable(names[0], 80)!r} has no result{_beyond(names, 'command')}."


def _as_claimed(claim: Fact) -> str:
    return f" with exit {claim['exit']}" if "exit" in claim else ""


def _unmatched(facts: Sequence[Fact]) -> str:
    claim, *_ = facts
    command = command_line(claim["argv"])
    more = _beyond([fact["id"] for fact in facts], "claim")
    return f"Not observed: {command} was claimed{_as_claimed(claim)}, and no such run is on record{more}."


def _stale(facts: Sequence[Fact]) -> str:
    claim, *_ = facts
    write = claim.get("written_after")
    then = f"then {_ends(write)} was written" if write is not None else "then a file was written"
    more = _beyond([fact["id"] for fact in facts], "claim")
    return f"Stale: {command_line(claim['argv'])} ran, {then}, and it did not run again{more}."


def _mismatch(facts: Sequence[Fact]) -> str:
    claim, *_ = facts
    more = _beyond([fact["id"] for fact in facts], "claim")
    seen = _numbers(claim["observed_exits"])
    return f"{command_line(claim['argv'])} was claimed{_as_claimed(claim)}; observed was exit {seen}{more}."


def _unseen(facts: Sequence[Fact]) -> str:
    claim, *_ = facts
    return f"{command_line(claim['argv'])} ran, but how it ended was not seen."


_OUTCOMES: Final[Mapping[str, tuple[str, Callable[[Sequence[Fact]], str]]]] = {
    "tool_claim_unmatched": ("unmatched", _unmatched),
    "tool_claim_precedes_last_edit": ("stale", _stale),
    "tool_claim_exit_mismatch": ("mismatch", _mismatch),
    "tool_exit_unobserved": ("unseen", _unseen),
}
_SENTENCES: Final[Mapping[str, Callable[[Sequence[Fact]], str]]] = {
    "protected_path_mutated": _mutated,
    "protected_path_digest_changed": _changed,
    "acceptance_failed_in_verifier": _failed,
    "acceptance_result_missing": _no_result,
}


def because(story: Mapping[str, Any]) -> str:
    """Return one sentence on why a check of `explain.stories` decided so: its fact by name, else the reason's words."""
    reason, facts = story["reason"], story["facts"]
    if reason in _OUTCOMES:
        outcome, tell = _OUTCOMES[reason]
        facts = [fact for fact in facts if fact.get("outcome") == outcome]
    else:
        tell = _SENTENCES.get(reason, _nothing)
    return (tell(facts) if facts else "") or sentence(reason)


def _nothing(_: Sequence[Fact]) -> str:
    return ""


def verdict(found: Examination) -> str:
    """Return one sentence on why the done verdict is what it is; empty when no verdict was derived."""
    if found.done is None:
        return ""
    told = stories(found)
    if found.done.reason == "done_checks_supported":
        return _supported(found)
    if found.done.reason == "external_effect_on_grader_path":
        paths = [path for effect in effects_of(found) if effect["reaches_grader"] for path in effect["paths"]]
        # A folder made on the way to a file says less than the file.
        path = printable(max(paths, key=len), MAX_NAME)
        return f"{path} was written outside the workspace, where a grader would load or read it."
    first = next(
        story for story in told if story["decision"] == found.done.decision and story["reason"] == found.done.reason
    )
    return because(first)


def _supported(found: Examination) -> str:
    contract, claims = (found.reader.record(kind, FILES[kind]) for kind in ("contract", "claims"))
    graded = len(contract["acceptance"])
    commands = "the acceptance command passed" if graded == 1 else f"all {graded} acceptance commands passed"
    count = len(claims["claims"])
    said = {
        0: "the agent claimed no run",
        1: "the one run claimed was observed after the last edit",
    }.get(count, f"all {count} runs claimed were observed after the last edit")
    return f"No protected path was touched, {commands} on a copy of the final tree, and {said}."


# --- what was missing ---

_MISSING_RECORD: Final[Mapping[str, str]] = {
    "contract_unavailable_or_unbound": "contract",
    "contract_adequacy_zero": "contract",
    "final_tree_unestablished": "tree",
    "field_visibility_unestablished": "capability",
    "capability_unavailable_or_unbound": "capability",
    "capability_context_mismatch": "capability",
    "tool_exit_unobserved": "observation",
    "claims_unavailable_or_unbound": "claims",
    "claims_context_mismatch": "claims",
    "acceptance_result_missing": "grade",
    "acceptance_argv_mismatch": "grade",
    "acceptance_result_unexpected": "grade",
}


def missing(found: Examination) -> list[dict[str, str]]:
    """Return, for every check that was not established, {claim_type, record, reason, why}: what was missing, and why.

    ``record`` is the role of the record that did not allow an answer.
    """
    open_points = []
    for story in stories(found):
        if story["decision"] != "not_established":
            continue
        reason = story["reason"]
        record = _MISSING_RECORD.get(reason) or reason.partition("_")[0]
        open_points.append(
            {"claim_type": story["claim_type"], "record": record, "reason": reason, "why": because(story)}
        )
    return open_points
