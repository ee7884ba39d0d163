"""Real runs through the airlock: a receipt closes its commitment, and nothing else does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.airlock import one_tier
from support.ledgers import environment
from support.observing import needs_observer
from support.project import HEAD, HONEST, MEND, RUN, Project, agent, project, sealed_project

__all__ = ["project", "sealed_project"]
pytestmark = [needs_observer, pytest.mark.observer]

TECHNICAL = one_tier(auto_close=True, review_window="24h")


def constitute(project: Project, key: str) -> None:
    (project.root / ".mentu" / "genesis.key").write_text(key)


def test_a_supported_run_closes_by_its_receipt(project: Project) -> None:
    constitute(project, TECHNICAL)
    _, commitment = project.commit()
    answer = project.run(commitment, HONEST)
    assert answer.exit == 0, answer
    told = answer.json
    assert told["state"] == "closed by system:validator"
    airlock = told["airlock"]
    assert (airlock["tier"], airlock["outcome"]) == (1, "closed")
    assert airlock["results"][0]["reason"] == f"the receipt of {told['run']} verifies: supported"
    submit, answered, approve = project.rows[-3:]
    assert [row["op"] for row in (submit, answered, approve)] == ["submit", "annotate", "approve"]
    assert answered["payload"]["meta"]["facts"]["done"]["decision"] == "supported"
    assert approve["payload"]["meta"]["submission"] == submit["id"] == told["submission"]
    state = project.state_of(commitment)
    assert (state["state"], state["evidence"]) == ("closed", told["evidence"])
    assert project.troth("verify").exit == 0
    (open_to_dispute,) = project.troth("queue", "--json").json["disputable"]
    assert open_to_dispute["commitment"] == commitment


def test_in_words(project: Project) -> None:
    constitute(project, TECHNICAL)
    answer = project.troth(
        "run", "--new", "it fails", "--contract", project.contract, "--as", "agent:worker", "--quiet", "--",
        *agent(HONEST),
    )  # fmt: skip
    assert answer.exit == 0, answer
    assert "closed by system:validator" in answer.out
    assert "tier 1: closed: every validator of tier_1 passed" in answer.out
    assert "can be disputed until" in answer.out
    assert "troth approve" not in answer.out  # nothing is left to approve


@pytest.mark.parametrize("script", [HEAD + RUN, HEAD + MEND], ids=["contradicted", "not_established"])
def test_a_run_that_is_not_supported_closes_nothing(project: Project, script: str) -> None:
    constitute(project, TECHNICAL)
    if script == HEAD + MEND:
        script += "import os; os.write(1, b'x'); open(b'src/\\xff', 'w').write('x')\n"  # a name that no record can hold
    _, commitment = project.commit()
    answer = project.run(commitment, script)
    assert answer.exit in (1, 3)
    assert answer.json["airlock"] is None
    assert project.state_of(commitment)["state"] == "claimed"
    assert project.rows_of("approve") == project.rows_of("submit") == []


def test_what_is_submitted_anyway_does_not_pass(project: Project) -> None:
    constitute(project, TECHNICAL)
    _, commitment = project.commit()
    answer = project.run(commitment, HONEST + "open(b'src/\\xff', 'w').write('x')\n", "--submit-anyway")
    assert answer.exit == 3, answer
    assert answer.json["airlock"]["outcome"] == "failed"
    assert "not established" in answer.json["airlock"]["results"][0]["reason"]
    assert project.state_of(commitment)["state"] == "in_review"


def test_a_folder_that_was_changed_after_the_run_closes_nothing(project: Project) -> None:
    """The run waits without a key; then tiers come, and somebody has been at the records."""
    _, commitment = project.commit()
    told = project.run(commitment, HONEST).json
    assert (told["airlock"]["tier"], told["airlock"]["outcome"]) == (None, "waiting")
    constitute(project, TECHNICAL)
    folder = Path(told["folder"])
    kept = project.root / "kept"
    shutil.copytree(folder, kept)

    def asked() -> dict[str, Any]:
        (report,) = project.troth("queue", "run", commitment, "--json").json["reports"]
        return dict(report)

    for name, words in (("grade.json", "receipt_record_digest_mismatch"), ("receipt.json", "its digest differs")):
        value = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(value))  # the same, in other bytes
        report = asked()
        assert report["outcome"] == "failed"
        assert words in report["results"][0]["reason"]
        shutil.copy(kept / name, folder / name)
    shutil.rmtree(folder)
    assert "is not there" in asked()["results"][0]["reason"]
    shutil.copytree(kept, folder)
    report = asked()
    assert report["outcome"] == "closed"
    history = project.troth("show", commitment, "--json").json["validations"]
    assert [one["result"] for one in history] == ["failed", "failed", "failed", "passed"]


def test_tier_three_runs_its_validators_and_waits_for_a_person(project: Project) -> None:
    constitute(project, one_tier(require_human=True, validators=["technical", "safety", "intent"]))
    _, commitment = project.commit()
    told = project.run(commitment, HONEST)
    assert told.exit == 0
    marks = [(one["validator"], one["result"]) for one in told.json["airlock"]["results"]]
    assert marks == [("technical", "passed"), ("safety", "failed"), ("intent", "waiting")]
    assert project.state_of(commitment)["state"] == "in_review"
    refused = project.troth("approve", commitment, "--as", "agent:rival", "--json")
    assert refused.json["error"]["detail"] == "require_human"
    assert project.troth("approve", commitment, "--as", "human:reviewer").exit == 0


DRIVER = """
import os, sys
from troth.cli.main import main
from troth.stores.jsonl import JsonlStore

last = sys.argv[1]
original = JsonlStore.append_with

def dying(self, *words, **options):
    row = original(self, *words, **options)
    if f"{row['op']}:{row['payload']['kind']}" == last:
        os._exit(9)
    return row

JsonlStore.append_with = dying
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("last", ["submit:submission", "annotate:validation", "approve:approval"])
def test_a_run_that_dies_in_the_airlock_is_finished_once(project: Project, last: str) -> None:
    constitute(project, TECHNICAL)
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, last, "run", "--new", "it fails", "--contract", str(project.contract),
         "--as", "agent:worker", "--json", "--", *agent(HONEST)],
        cwd=project.root, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 9, (done.stdout, done.stderr)
    (made,) = project.rows_of("commit")
    closed = last == "approve:approval"
    assert project.state_of(made["id"])["state"] == ("closed" if closed else "in_review")
    if last == "submit:submission":
        # The run itself had not noted that it was submitted: taking it up goes through the airlock.
        answer = project.troth("run", "--resume", "@last", "--json")
        assert answer.json["airlock"]["outcome"] == "closed"
    else:
        assert project.troth("queue", "run").exit == 0
    assert project.state_of(made["id"])["state"] == "closed"
    assert len(project.rows_of("submit")) == len(project.rows_of("approve")) == 1
    assert len([row for row in project.rows_of("annotate") if row["payload"]["kind"] == "validation"]) == 1
    assert project.troth("verify").exit == 0
