"""`troth run` with credentials in argument lists: told on stderr and in the side report, and cut on request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.observing import needs_observer
from support.project import CLAIM, HEAD, HONEST, MEND, RUN, Project, project, sealed_project

__all__ = ["project", "sealed_project"]
pytestmark = [needs_observer, pytest.mark.observer]

PASSWORD = "v8Kq2Zt5Lw"
CALLS = f"subprocess.run(['true', '--password', {PASSWORD!r}])\n"
WITH_PASSWORD = HEAD + MEND + CALLS + RUN + CLAIM


def holding(folder: str) -> list[str]:
    """The files of a run's folder in which the password stands."""
    found = [path for path in Path(folder).rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    return sorted(path.name for path in found)


@pytest.mark.slow
def test_a_credential_is_told_on_stderr_and_in_the_report_and_costs_nothing(project: Project) -> None:
    answer = project.run(None, WITH_PASSWORD)
    assert answer.exit == 0, answer
    assert "the value of --password" in answer.err
    assert PASSWORD not in answer.err + answer.out
    assert any("--redact" in line for line in answer.json["notes"])
    secrets = json.loads((Path(answer.json["folder"]) / "report.json").read_text())["secrets"]
    assert secrets["cut"] is False
    (called,) = [one for one in secrets["found"] if one["program"] == "true"]
    assert (called["record"], called["argument"], called["kind"]) == ("observation.json", 2, "the value of --password")
    assert "observation.json" in holding(answer.json["folder"])


def test_cut_it_stands_nowhere_and_the_receipt_is_valid_and_open(project: Project) -> None:
    answer = project.run(None, WITH_PASSWORD, "--redact")
    assert answer.exit == 3, answer
    assert answer.json["done"]["reason"] == "observation_coverage_unestablished"
    assert "credentials were cut out of argument lists" in answer.json["sentence"]
    assert "the value of --password" in answer.err
    assert PASSWORD not in answer.err + answer.out
    assert holding(answer.json["folder"]) == []
    assert PASSWORD not in (project.root / ".mentu" / "ledger.jsonl").read_text()
    assert project.troth("receipt", "check", answer.json["folder"], "--json").json["receipt"] == {"verdict": "valid"}


@pytest.mark.slow
def test_an_agent_without_credentials_loses_nothing_by_it(project: Project) -> None:
    answer = project.run(None, HONEST, "--redact")
    assert (answer.exit, answer.json["done"]["decision"]) == (0, "supported")
    assert "credential" not in answer.err
