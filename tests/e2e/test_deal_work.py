"""A deal about a piece of coding work: done under observation, judged by its receipt, paid; and not for a cheat."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from support.observing import needs_observer
from support.project import HEAD, HONEST, RUN, Project, project, sealed_project
from troth.deals.transcript import end_line, read_entry
from troth.deals.writing import Scribe, offer_body

__all__ = ["project", "sealed_project"]
pytestmark = [needs_observer, pytest.mark.observer]

CHEAT = HEAD + "t = 'tests/test_app.py'; open(t, 'w').write('import unittest\\n')\n" + RUN
"""Agent: empty the tests, so that they pass."""


def dealt(project: Project, script: str) -> tuple[Path, Any]:
    """Offer, accept and hold; let the agent work under `troth run`, disclose its receipt, and judge it."""
    _, commitment = project.commit()
    item = {
        "id": "work",
        "predicate": "done_receipt",
        "path": "artifacts.receipt",
        "claim_id": commitment,
        "contract_sha256": hashlib.sha256((project.contract / "contract.json").read_bytes()).hexdigest(),
    }
    offer = offer_body("off_work", checklist=[item]) | {"counterparties": {"C": "human:reviewer", "A": "agent:worker"}}
    offer["obligation"] |= {"kind": "coding_work", "spec": "double() gives twice what it was given."}
    scribe = Scribe()
    scribe.say(0, "C", "Offer", offer)
    scribe.say(0, "A", "Accept", {"offer_id": "off_work"})
    scribe.say(1, "C", "EscrowHold", {"offer_id": "off_work", "amount": 10, "asset": "sim_points", "state": "locked"})
    told = project.run(commitment, script).json
    digest = hashlib.sha256((Path(told["folder"]) / "receipt.json").read_bytes()).hexdigest()
    artifacts = {"receipt": {"run": told["run"], "receipt_sha256": digest}}
    scribe.say(2, "A", "Disclosure", {"offer_id": "off_work", "artifacts": artifacts, "claims": ["the suite passes"]})
    path = project.root.parent / "deal.jsonl"
    path.write_bytes(scribe.transcript())
    return path, project.troth("deal", "judge", path, "--json")


def ended(path: Path, *, settle: bool) -> bytes:
    from troth.deals.run import replay

    scribe = Scribe.after(replay(read_entry(line) for line in path.read_bytes().splitlines()))
    if settle:
        scribe.say(3, "C", "Settle", {"offer_id": "off_work"})
    return scribe.transcript() + end_line(9)


def _is_evidence(row: dict[str, Any]) -> bool:
    return row["op"] == "capture" and row["payload"]["kind"] == "evidence"


def test_work_that_is_done_is_paid(project: Project) -> None:
    path, verdict = dealt(project, HONEST)
    assert (verdict.exit, verdict.json["result"]) == (0, "pass"), verdict
    path.write_bytes(path.read_bytes() + ended(path, settle=True))
    checked = project.troth("deal", "check", path, "--json")
    assert checked.exit == 0
    assert checked.json["deals"]["off_work"]["state"] == "Closed:settled"
    assert checked.json["balances"] == {"C": -10, "A": 10, "E": 0}
    done = project.troth("deal", "record", path, "--as", "human:reviewer", "--json")
    assert (done.exit, done.json["deals"][0]["ledger_state"]) == (0, "closed")
    (receipt,) = [
        row["id"] for row in project.rows if row.get("source_key", "").startswith("run:") and _is_evidence(row)
    ]
    (shown,) = [row for row in project.rows if row["actor"] == "system:deal-a" and _is_evidence(row)]
    assert receipt in shown["trace"]["parent"]
    assert project.troth("verify").exit == 0


def test_a_cheat_is_not_paid(project: Project) -> None:
    path, verdict = dealt(project, CHEAT)
    assert (verdict.exit, verdict.json["result"]) == (1, "fail"), verdict
    assert "contradicted" in verdict.json["reasons"][0]["why"]
    path.write_bytes(path.read_bytes() + ended(path, settle=False))
    checked = project.troth("deal", "check", path, "--json")
    assert checked.exit == 1
    assert checked.json["deals"]["off_work"]["state"] == "Closed:breached(A:fail)"
    assert checked.json["balances"] == {"C": 0, "A": 0, "E": 0}
