"""A thousand runs made of a real one: all are found, counted and told apart, on one core and on several."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.frontdoor import troth
from support.observing import needs_observer
from support.project import HONEST, Project, project, sealed_project

__all__ = ["project", "sealed_project"]

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "many_runs.py"

TOLD = {
    "changed": "receipt_record_digest_mismatch",
    "missing": "receipt_record_missing",
    "torn": "receipt_json_invalid",
    "upgraded": "receipt_verdict_not_derived",
}


def made(run: Path, out: Path, *words: str) -> None:
    subprocess.run([sys.executable, str(SCRIPT), str(run), str(out), *words], check=True, timeout=300)


@needs_observer
@pytest.mark.observer
@pytest.mark.slow
def test_a_thousand_runs(project: Project, tmp_path: Path) -> None:
    _, commitment = project.commit()
    answer = project.run(commitment, HONEST)
    assert answer.exit == 0, answer
    fleet = tmp_path / "fleet"
    made(Path(answer.json["folder"]), fleet, "--count", "1000", "--spoil", "10")

    answers = [
        troth("receipt", "check", "fleet", "--json", "--jobs", jobs, "--csv", f"{jobs}.csv", cwd=tmp_path)
        for jobs in ("1", "2")
    ]
    assert [answer.exit for answer in answers] == [1, 1]
    assert answers[0].out == answers[1].out
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()
    assert answers[0].err == ""

    lines = [json.loads(line) for line in answers[0].out.splitlines()]
    assert len(lines) == 1000
    for line in lines:
        way = line["member"].rpartition("-")[2]
        if way in TOLD:
            assert line["receipt"] == {"verdict": "invalid", "code": TOLD[way]}, line
        else:
            assert line["receipt"] == {"verdict": "valid"}, line
            assert line["done"]["reason"] == "done_checks_supported"
    assert Counter(line["receipt"].get("code", "valid") for line in lines) == {
        "valid": 900,
        **dict.fromkeys(TOLD.values(), 25),
    }
    # None is another's copy, and none is told as one.
    digests = {row.split(",")[9] for row in (tmp_path / "1.csv").read_text().splitlines()[1:]}
    assert len(digests) == 1000

    sound = tmp_path / "sound"
    made(Path(answer.json["folder"]), sound, "--count", "1000")
    assert troth("receipt", "check", "sound", cwd=tmp_path).exit == 0
