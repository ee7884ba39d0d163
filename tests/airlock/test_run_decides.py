"""``troth run --table``: the decision stands in the receipt, by the table as it was, within its limit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.observing import needs_observer
from support.project import HEAD, HONEST, RUN, Project, project, sealed_project
from troth.core.digests import sha256_hex
from troth.receipts.deciding import EXAMPLE

__all__ = ["project", "sealed_project"]
pytestmark = [needs_observer, pytest.mark.observer]


def predicate(told: Any) -> Any:
    with open(f"{told['folder']}/receipt.json", "rb") as file:
        return json.load(file)["predicate"]


def test_runs_are_sent_back_until_the_limit_and_go_on_when_done(project: Project) -> None:
    table = EXAMPLE.replace("replans = 3", "replans = 1")
    path = project.root.parent / "stop.toml"
    path.write_text(table)
    _, commitment = project.commit()
    said = []
    for script in (HEAD + RUN, HEAD + RUN, HONEST):
        told = project.run(commitment, script, "--table", str(path)).json
        assert predicate(told)["stop_decision"] == told["stop_decision"]
        assert predicate(told)["policy"] == {"table_sha256": sha256_hex(table.encode())}
        assert project.troth("receipt", "verify", told["folder"]).exit in (0, 1)
        said.append((told["stop_decision"]["action"], told["done"]["decision"]))
    assert said == [("replan", "contradicted"), ("escalate", "contradicted"), ("continue", "supported")]


def test_a_bad_table_is_refused_before_anything_starts(project: Project) -> None:
    path = project.root.parent / "stop.toml"
    path.write_text(EXAMPLE.replace("[limits]", "[limit]"))
    _, commitment = project.commit()
    before = len(project.rows)
    answer = project.run(commitment, HONEST, "--table", str(path))
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_STOP_TABLE")
    assert len(project.rows) == before
