"""What a reader warns of reaches a person: odd values of rows, self-approvals, duplicates left behind (§2, §6, §8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.shell import Shell, troth
from troth.core.canonical import row_bytes
from troth.ledger.hashing import row_hash

__all__ = ["troth"]


def _append_raw(path: Path, **members: Any) -> None:
    """Append a row as another program might: linked and hashed, whatever its values."""
    last = json.loads(path.read_text().splitlines()[-1])
    row = {
        "id": "mem_0000000f",
        "op": "capture",
        "ts": "2099-01-01T00:00:00Z",
        "actor": "human:reviewer",
        "workspace": "w",
        "payload": {"body": "raw", "kind": "observation"},
        **members,
        "prevHash": last["hash"],
    }
    with path.open("ab") as file:
        file.write(row_bytes(row | {"hash": row_hash(row)}) + b"\n")


def test_odd_values_are_warned_of_and_are_no_faults(tmp_path: Path, troth: Shell) -> None:
    troth("capture", "seen")
    ledger = tmp_path / ".mentu" / "ledger.jsonl"
    _append_raw(ledger, id="op_0000000f", workspace="v", ts="2099-01-01T00:00:00+00:00", observationLevel="deductive")
    _append_raw(ledger, ts="2020-01-01T00:00:00Z", relations=[{"type": "hugs", "targetId": "op_0000000f"}])
    found = troth("verify", "--remarks", "--json")
    assert found.exit == 0
    assert (found.json["ok"], found.json["verified"]) == (True, 3)
    assert [(entry["line"], entry["warning"]) for entry in found.json["warnings"]] == [
        (2, "workspace_differs"),
        (2, "id_prefix"),
        (2, "offset_timestamp"),
        (2, "level_premises"),
        (3, "time_backwards"),
        (3, "relation_type"),
    ]
    said = troth("verify", "--remarks")
    assert said.exit == 0
    assert "workspace_differs" in said.err
    assert troth("verify", "--json").json["warnings"] == []  # integrity alone, unless asked


def test_a_ledger_of_our_own_draws_no_remark(troth: Shell) -> None:
    troth("capture", "seen")
    troth("capture", "done", "--kind", "evidence", "--refs", "@last")
    assert troth("verify", "--remarks", "--json").json["warnings"] == []


def test_a_self_approval_is_flagged(troth: Shell) -> None:
    troth("capture", "seen")
    work = troth("commit", "mend it", "--source", "@last").id
    troth("claim", work)
    troth("submit", work, "--evidence", "@last")
    assert troth("status").err == ""
    approval = troth("approve", work).id
    said = troth("status")
    assert said.exit == 0
    assert "self_approval" in said.err
    assert approval in said.err
    listed = troth("status", "--json").json
    assert [entry["warning"] for entry in listed["warnings"]] == ["self_approval"]
    assert listed["commitments"][0]["self_approval"] is True


def test_a_duplicate_whose_other_was_reopened_is_warned_of_and_stays_closed(troth: Shell) -> None:
    troth("capture", "seen")
    one = troth("commit", "one", "--source", "@last").id
    two = troth("commit", "two", "--source", "@last").id
    troth("close", two, "--duplicate-of", one)
    troth("claim", one)
    troth("close", one, "--evidence", "@last")
    troth("reopen", one, "--reason", "not so")
    said = troth("status")
    assert "duplicate_reopened" in said.err
    assert two in said.err
    states = {entry["id"]: entry["state"] for entry in troth("status", "--json").json["commitments"]}
    assert states == {one: "claimed", two: "closed"}
