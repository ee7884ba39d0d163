"""A run under a genesis key: refused before the agent starts where its rows would be, and measured by the key."""

from __future__ import annotations

import pytest

from support.observing import needs_observer
from support.project import HONEST, Project, project, sealed_project

__all__ = ["project", "sealed_project"]
pytestmark = [needs_observer, pytest.mark.observer]

KEY = """\
identity: {name: project, owner: human:reviewer}
actors:
  - {id: "human:*", role: lead}
  - {id: "agent:*", role: worker}
  - {id: system:witness, role: witness}
permissions:
  lead: "*"
  worker: [claim, submit]
  witness: [capture, annotate]
trust:
  weights: {exit_code: 0.5, test_pass_rate: 0.5, context_utilization: 0, loop_complete: 0, duration_reasonable: 0, \
no_errors: 0, evidence_depth: 0}
  decay: {default_half_life_days: 14}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "who"),
    [
        ("worker: [claim, submit]", "worker: [submit]", "agent:worker may claim"),
        ("worker: [claim, submit]", "worker: [claim]", "agent:worker may submit"),
        ("witness: [capture, annotate]", "witness: [annotate]", "system:witness may capture"),
        ("witness: [capture, annotate]", "witness: [capture]", "system:witness may annotate"),
    ],
)
def test_what_the_key_would_refuse_at_the_end_is_refused_at_the_start(
    project: Project, right: str, wrong: str, who: str
) -> None:
    _, work = project.commit()
    (project.root / ".mentu" / "genesis.key").write_text(KEY.replace(right, wrong))
    before = project.rows
    said = project.run(work, "open('src/ran', 'w')")
    assert said.exit == 2
    assert said.json["error"]["code"] == "E_PERMISSION_DENIED"
    assert who in said.json["error"]["message"]
    assert project.rows == before
    assert not (project.root / "src" / "ran").exists()


def test_an_invalid_key_takes_no_run(project: Project) -> None:
    _, work = project.commit()
    (project.root / ".mentu" / "genesis.key").write_text("identity: {}\n")
    said = project.run(work, "open('src/ran', 'w')")
    assert (said.exit, said.json["error"]["detail"]) == (2, "genesis_invalid")
    assert not (project.root / "src" / "ran").exists()


def test_the_evidence_of_a_run_is_measured_by_the_key(project: Project) -> None:
    _, work = project.commit()
    (project.root / ".mentu" / "genesis.key").write_text(KEY)
    said = project.run(work, HONEST)
    assert said.exit == 0
    evidence = next(row for row in project.rows_of("capture") if row["actor"] == "system:witness")
    assert evidence["trust"]["confidence"] == 1.0
    assert evidence["trust"]["decayHalfLifeDays"] == 14
    assert [row["actor"] for row in project.rows].count("system:genesis") == 1
    refused = project.troth("approve", work, "--as", "agent:worker", "--json")
    assert refused.json["error"]["code"] == "E_PERMISSION_DENIED"
    assert project.troth("approve", work, "--as", "human:reviewer").exit == 0
