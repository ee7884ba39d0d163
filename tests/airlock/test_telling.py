"""Verdicts in sentences: the fact is named, in the words of done records §13.13; without a sandbox."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.receipt_members import LINT, TEST, Draft, event
from troth.airlock.evidence import test_counts as counts_of
from troth.airlock.evidence import trust_of_run
from troth.airlock.telling import tell_run
from troth.receipts.member import MappingMember
from troth.receipts.policy import ALL_CHECKS
from troth.receipts.telling import told_fact, verdict
from troth.receipts.verify import Examination, examine

MEASURED: dict[str, Any] = {"timed_out": False, "interrupted": False, "seconds": 10.0, "timeout": 100.0, "claims": 1}


def examined(draft: Draft) -> Examination:
    return examine(MappingMember(draft.seal()), ALL_CHECKS)


def mutated(*events: dict[str, Any]) -> Draft:
    return Draft().add_events(*events)


@pytest.mark.parametrize(
    ("draft", "sentence"),
    [
        (
            Draft(),
            "No protected path was touched, all 2 acceptance commands passed on a copy of the final tree, "
            "and the one run claimed was observed after the last edit.",
        ),
        (mutated(event(9, "write", path="tests/test_a.py")), "tests/test_a.py was changed during the run."),
        (mutated(event(9, "create", path="tests/new.py")), "tests/new.py was created during the run."),
        (mutated(event(9, "unlink", path="setup.cfg")), "setup.cfg was deleted during the run."),
        (mutated(event(9, "chmod", path="setup.cfg")), "setup.cfg had its mode changed during the run."),
        (mutated(event(9, "rename", path="setup.cfg", target="x")), "setup.cfg was moved away during the run."),
        (mutated(event(9, "rename", path="x", target="setup.cfg")), "setup.cfg was replaced during the run."),
        (mutated(event(9, "link", path="setup.cfg", target="x")), "setup.cfg was given a second name during the run."),
        (
            mutated(event(9, "write", path="tests/\x1b[2J"), event(10, "write", path="setup.cfg")),
            "tests/\\x1b[2J was changed during the run (and 1 more protected name).",
        ),
        (
            Draft().claim({"id": "c1", "argv": ["gh", "issue list"], "exit": 0}, {"id": "c2", "argv": ["x"]}),
            "Not observed: gh 'issue list' was claimed with exit 0, and no such run is on record (and 1 more claim).",
        ),
        (
            mutated(event(9, "write", path="src/late.py")),
            "Stale: ruff check . ran, then src/late.py was written, and it did not run again.",
        ),
        (
            Draft().claim({"id": "c1", "argv": LINT, "exit": 3}),
            "ruff check . was claimed with exit 3; observed was exit 0.",
        ),
    ],
)
def test_a_verdict_names_its_fact(draft: Draft, sentence: str) -> None:
    assert verdict(examined(draft)) == sentence


def test_a_failing_command_is_named_with_its_exit() -> None:
    draft = Draft()
    draft.values["grade"]["results"][1]["exit"] = 4
    assert verdict(examined(draft)) == "Acceptance command 'lint' ended with exit 4 in the verifier: ruff check .."


def test_an_effect_that_reaches_the_grader_is_named_by_its_file() -> None:
    draft = Draft().launched()
    paths = ["/home/agent/site-packages", "/home/agent/site-packages/usercustomize.py"]
    draft.values["launch_receipt"]["sensors"]["external_effects"] = [
        {"type": "create", "time": draft.values["observation"]["scope"]["start"], "paths": [path]} for path in paths
    ]
    assert verdict(examined(draft)).startswith(f"{paths[1]} was written outside the workspace")


def test_an_open_verdict_says_which_record_was_missing_and_why() -> None:
    draft = Draft()
    scope = draft.values["observation"]["scope"]
    draft.values["observation"] |= {
        "coverage": "incomplete",
        "gaps": [{"start": scope["start"], "end": scope["end"]}],
    }
    told = tell_run(examined(draft), MEASURED | {"coverage_faults": ["the trace ends early", "x"]}, {})
    assert told.sentence == "The observation is incomplete: the trace ends early (and 1 more reasons)."
    assert [(point["claim_type"], point["record"]) for point in told.missing] == [
        ("protected_paths/v1", "observation"),
        ("tool_claim_match/v1", "observation"),
    ]
    assert json.loads(json.dumps(told.as_json()))["missing"][0]["why"] == told.sentence


def test_a_command_without_result_says_why_and_shows_the_exits_that_disagree() -> None:
    draft = Draft()
    del draft.values["grade"]["results"][0]
    command = {
        "id": "unit",
        "argv": TEST,
        "exit": None,
        "why": "runs_disagree",
        "words": "its repeated runs do not agree",
        "runs": [{"exit": 0}, {"exit": 1}],
        "tests": {"executed": 3, "passed": 3},
    }
    told = tell_run(examined(draft), MEASURED, {"commands": [command]})
    assert told.sentence == ("Acceptance command 'unit' has no result: its repeated runs do not agree (exits 0, 1).")
    assert told.missing[0]["record"] == "grade"
    assert counts_of({"commands": [command]}) == (3, 0)


def test_contradictions_behind_the_first_are_told_too() -> None:
    draft = mutated(event(9, "write", path="setup.cfg"))
    draft.values["grade"]["results"][0]["exit"] = 1
    lines = tell_run(examined(draft), MEASURED, {}).lines
    assert [line.split(": ")[0] for line in lines if line.startswith(("protected", "acceptance", "tool"))] == [
        "protected_paths/v1",
        "acceptance_observed/v1",
        "tool_claim_match/v1",
    ]


def test_every_kind_of_fact_has_words() -> None:
    for draft in (
        mutated(event(9, "write", path="setup.cfg")),
        Draft().claim({"id": "c1", "argv": ["x"]}),
        Draft().claim({"id": "c1", "argv": LINT, "exit": 3}),
    ):
        from troth.receipts.explain import stories

        facts = [fact for story in stories(examined(draft)) for fact in story["facts"]]
        assert facts
        assert all(told_fact(fact) for fact in facts)


# --- trust ---


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ([], (0, 0)),
        ([{"exit": 0, "tests": {"executed": 5, "passed": 5}}], (5, 5)),
        ([{"exit": 1, "tests": {"executed": 5, "passed": 2}}, {"exit": 0, "tests": {"executed": None}}], (6, 3)),
        ([{"exit": 1, "tests": {}}], (1, 0)),
        ([{"exit": None, "tests": {"executed": 0, "passed": 0}}], (0, 0)),
        ([{"exit": None, "tests": {}}], (1, 0)),
    ],
)
def test_what_was_run_and_passed(commands: list[dict[str, Any]], expected: tuple[int, int]) -> None:
    assert counts_of({"commands": commands}) == expected


@pytest.mark.parametrize(
    ("supported", "changes", "confidence", "level"),
    [
        # weights: exit .20, pass rate .20, context .20 (never measured: 0), loop .15, duration .10, no errors .10,
        # depth .05 times 1 - 0.6^1 = 0.4
        (True, {}, 0.20 + 0.20 + 0.15 + 0.10 + 0.10 + 0.02, "machine_verified"),
        (False, {}, 0.20 + 0.15 + 0.10 + 0.02, "unverified"),
        (True, {"seconds": 0.5}, 0.20 + 0.20 + 0.15 + 0.05 + 0.10 + 0.02, "machine_verified"),
        (True, {"seconds": 90.0}, 0.20 + 0.20 + 0.15 + 0.05 + 0.10 + 0.02, "machine_verified"),
        (True, {"timed_out": True, "seconds": 100.0}, 0.20 + 0.20 + 0.02, "machine_verified"),
        (True, {"interrupted": True}, 0.20 + 0.20 + 0.10 + 0.02, "machine_verified"),
    ],
)
def test_trust_is_what_was_measured(supported: bool, changes: dict[str, Any], confidence: float, level: str) -> None:
    report = {"commands": [{"exit": 0, "tests": {"executed": 2, "passed": 2}}]}
    trust = trust_of_run(supported=supported, measured=MEASURED | changes, report=report, causal_depth=1)
    assert trust["confidence"] == pytest.approx(confidence, abs=1e-9)
    assert trust["verification"] == level
