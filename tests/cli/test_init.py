"""``troth init``, and the instructions that it writes for agents (ledger spec §1, §15)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.ledgers import fingerprint
from support.shell import WRITING, Shell, troth
from troth.cli.main import COMMANDS
from troth.stores.workspace import read_config

__all__ = ["troth"]


def test_init_creates_once_and_says_so(tmp_path: Path, troth: Shell) -> None:
    before = fingerprint(tmp_path)
    again = troth("init", "--workspace", "other")
    assert again.exit == 0
    assert "already" in again.out
    assert "keeps its name" in again.err
    assert fingerprint(tmp_path) == before
    assert set(before) == {
        ".mentu",
        *(f".mentu/{name}" for name in (".lock", "AGENTS.md", "config.yaml", "ledger.jsonl")),
    }
    config = read_config(tmp_path / ".mentu" / "config.yaml")
    assert (config.workspace, config.unhashed_prefix) == ("w", 0)


def test_init_in_another_folder_answers_json(tmp_path: Path, troth: Shell) -> None:
    (tmp_path / "my project").mkdir()
    answer = troth("init", tmp_path / "my project", "--json").json
    assert answer["workspace"] == "my-project"
    assert answer["created"] == ["config.yaml", "AGENTS.md", "ledger.jsonl"]
    assert troth("init", tmp_path / "my project", "--json").json["created"] == []


REQUIRED_OF_THE_TEMPLATE = {
    # clause of the spec's section 15 -> words that carry it
    "append-only and linked": r"append-only.*linked.*hash",
    "actions are logged": r"logged under your name",
    "read this first, then status": r"Read this file first.*troth status",
    "resume own claimed work first": r"Resume your own work.*before taking more",
    "claim before starting": r"Claim before you start",
    "evidence: specific, checkable, linked": r"evidence.*linked to its source.*--refs",
    "submit rather than close, then move on": r"Submit, then move on.*Do not close commitments yourself",
    "reviewers approve or reopen; reopened is its own": r"reopened is yours again.*approve.*reopen",
    "findings, step results and learnings need a parent": r"finding.*step_result.*learning.*parent",
    "no claim of another, no closed item": r"another actor holds.*closed",
    "no finishing without evidence": r"Finish without evidence",
    "no confidence of its own": r"confident.*measured by the tool, never supplied",
    "release with a reason when stuck": r"stuck.*release.*--reason",
    "new problem to capture, commit, claim": r"new problem.*troth capture.*troth commit.*troth claim",
    "good and poor evidence": r"Good evidence.*Poor evidence",
    "command summary": r"## Commands.*\| `troth verify` \|",
    "no private state": r"Keep no private list.*ledger is the truth",
}


@pytest.mark.parametrize("clause", REQUIRED_OF_THE_TEMPLATE)
def test_the_instructions_say_what_the_spec_demands(tmp_path: Path, troth: Shell, clause: str) -> None:
    text = (tmp_path / ".mentu" / "AGENTS.md").read_text()
    assert re.search(REQUIRED_OF_THE_TEMPLATE[clause], text, re.DOTALL), clause


def test_commands_named_in_the_instructions_exist(tmp_path: Path, troth: Shell) -> None:
    text = (tmp_path / ".mentu" / "AGENTS.md").read_text()
    named = set(re.findall(r"\btroth ([a-z]+)", text))
    assert named <= set(COMMANDS)
    assert set(WRITING) - {"close"} <= named
