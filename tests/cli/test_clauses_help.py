"""`troth help machine`: the states of a commitment from the table that decides them, in words and drawn (ledger §6)."""

from __future__ import annotations

import json

import pytest

from troth.cli.main import main
from troth.ledger.machine import TABLE, mermaid


def test_the_machine_is_told_as_the_table_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "machine"]) == 0
    said = capsys.readouterr().out.splitlines()
    told = {line.strip().split(": ")[0]: line.split(": ", 1)[1] for line in said if line.startswith("  ")}
    assert set(told) == {f"{state}, {who}" for state, who in TABLE}
    for (state, who), cells in TABLE.items():
        moves = [cell.to for cell in cells.values() if cell.to is not None]
        assert told[f"{state}, {who}"].count(" -> ") == len(moves)
    assert told["claimed, owner"].startswith("claim -> claimed, release -> open, submit -> in_review")
    assert told["claimed, other"] == "nothing"


def test_the_drawing_is_the_machine_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "machine", "--mermaid"]) == 0
    assert capsys.readouterr().out == mermaid()


@pytest.mark.parametrize("words", [["exit", "--mermaid"], ["--mermaid"], ["machine", "--json"], ["machine", "more"]])
def test_words_that_do_not_go_together_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", *words]) == 2
    told = capsys.readouterr()
    assert "E_USAGE" in (json.loads(told.out)["error"]["code"] if "--json" in words else told.err)
