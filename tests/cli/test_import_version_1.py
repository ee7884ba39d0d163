"""``troth import`` of a ledger of version 1 (ledger spec §6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.ledgers import fingerprint
from support.shell import Shell, troth

__all__ = ["troth"]

_WHEN = {"ts": "2020-01-01T00:00:00Z", "actor": "human:reviewer"}
V1: list[dict[str, object]] = [
    {"id": "mem_00000001", "op": "capture", **_WHEN, "payload": {"body": "seen"}},
    {"id": "op_00000002", "op": "triage", **_WHEN, "payload": {"memory": "mem_00000001", "meta": {"a": 1}}},
    {
        "id": "cmt_00000003",
        "op": "commit",
        **_WHEN,
        "payload": {"body": "mend", "source": "mem_00000001"},
        "hash": None,
    },
    {
        "id": "op_00000004",
        "op": "claim",
        "ts": "2020-01-01T00:00:01Z",
        "actor": "agent:worker",
        "payload": {"commitment": "cmt_00000003"},
        "workspace": "old",
        "x_more": [1],
    },
]


def _old(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("\ufeff" + "".join(json.dumps(row) + "\r\n\n" for row in rows), encoding="utf-8")
    return path


def test_import_brings_old_rows_into_an_empty_ledger(tmp_path: Path, troth: Shell) -> None:
    old = _old(tmp_path / "old.jsonl", V1)
    before = old.read_bytes()
    said = troth("import", old)
    assert said.exit == 0, said.err
    assert "4 rows imported" in said.out
    assert old.read_bytes() == before
    assert troth("verify").out.splitlines()[0] == "4/4 verified"
    rows = [json.loads(line) for line in (tmp_path / ".mentu" / "ledger.jsonl").read_text().splitlines()]
    assert rows[1]["op"] == "annotate"
    assert rows[1]["payload"] == {
        "body": "triage",
        "memory": "mem_00000001",
        "meta": {"a": 1, "v1_op": "triage"},
        "kind": "triage",
        "target": "mem_00000001",
    }
    assert [row["workspace"] for row in rows] == ["default", "default", "default", "old"]
    assert rows[3]["payload"]["body"] == "claim"
    assert rows[3]["x_more"] == [1]
    (found,) = troth("status", "--json").json["commitments"]
    assert (found["id"], found["owner"]) == ("cmt_00000003", "agent:worker")


def test_import_as_json_into_a_new_bare_file(tmp_path: Path, troth: Shell) -> None:
    old = _old(tmp_path / "old.jsonl", V1)
    new = tmp_path / "new.jsonl"
    answer = troth("import", old, "--store", new, "--json").json
    assert (answer["imported"], answer["ok"], answer["anomalies"]) == (4, True, [])
    assert troth("verify", new, "--expect-head", answer["head"]).exit == 0


def test_import_needs_an_empty_ledger(tmp_path: Path, troth: Shell) -> None:
    old = _old(tmp_path / "old.jsonl", V1)
    troth("capture", "here already")
    before = fingerprint(tmp_path)
    assert "E_NOT_EMPTY" in troth("import", old).err
    assert "E_USAGE" in troth("import", tmp_path / ".mentu" / "ledger.jsonl").err
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([V1[0], V1[0]], "twice"),
        ([V1[0] | {"hash": "0" * 64, "prevHash": "0" * 64}], "hashed already"),
        ([{**V1[0], "id": ""}], "no id"),
        ([{**V1[0], "ts": None}], "no ts"),
        ([{**V1[0], "payload": []}], "payload"),
        ([{**V1[1], "payload": {"meta": 1}}], "meta"),
    ],
)
def test_what_cannot_be_imported(tmp_path: Path, troth: Shell, rows: list[dict[str, object]], words: str) -> None:
    old = _old(tmp_path / "old.jsonl", rows)
    before = fingerprint(tmp_path)
    said = troth("import", old)
    assert said.exit == 2
    assert "E_NOT_IMPORTABLE" in said.err
    assert words in said.err
    assert f"{old}:" in said.err
    assert fingerprint(tmp_path) == before


def test_a_malformed_line_is_not_imported(tmp_path: Path, troth: Shell) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text('{"a":1,"a":2}\n')
    assert "E_NOT_IMPORTABLE" in troth("import", old).err
    assert "E_NO_LEDGER" in troth("import", tmp_path / "gone.jsonl").err
