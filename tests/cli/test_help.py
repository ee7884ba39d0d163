"""``troth help``: every code explained, unknown ones answered with the nearest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from troth.cli import helptext
from troth.cli.main import cli, main

SOURCE = Path(helptext.__file__).resolve().parents[1]


def test_every_table_explains_in_sentences() -> None:
    known = helptext.tables()
    assert len(known) >= 5
    for title, table in known.items():
        assert table, title
        for code, meaning in table.items():
            assert meaning.endswith("."), (title, code)
            assert len(meaning) >= 15, (title, code)


def test_all_codes_and_exit_statuses_on_one_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "codes"]) == 0
    said = capsys.readouterr().out
    for title, table in helptext.tables().items():
        assert title in said
        for code in table:
            assert re.search(rf"^  {re.escape(code)}(\s|$)", said, re.MULTILINE), code
    for status in helptext.EXITS:
        assert re.search(rf"^  {status}\s", said, re.MULTILINE)


def test_every_code_that_the_program_raises_is_explained() -> None:
    raised = {
        match[1]
        for path in SOURCE.rglob("*.py")
        for match in re.finditer(r'"(E_[A-Z0-9_]+)"', path.read_text(encoding="utf-8"))
    }
    assert {"E_USAGE", "E_DEFECT"} <= raised
    explained = {code for table in helptext.tables().values() for code in table}
    assert raised - explained == set()


@pytest.mark.parametrize("typed", ["E_NOT_OWNER", "e_not_owner", "e-not-owner"])
def test_one_code(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "codes", typed]) == 0
    said = capsys.readouterr().out
    assert said.startswith("E_NOT_OWNER (")
    assert len(said.splitlines()) == 1
    assert main(["help", "codes", typed, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["codes"]
    assert entry["code"] == "E_NOT_OWNER"
    assert entry["means"] in said


def test_an_unknown_code_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "codes", "E_NOT_OWNR"]) == 2
    assert "Did you mean E_NOT_OWNER" in capsys.readouterr().err
    assert main(["help", "codes", "E_NOT_OWNR", "--json"]) == 2
    assert "E_NOT_OWNER" in json.loads(capsys.readouterr().out)["error"]["detail"]


def test_exit_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "exit", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["exit"]
    assert {int(status) for status in told} == {0, 1, 2, 3, 4, 70, 75}


def test_the_help_of_a_command_is_that_command_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "doctor"]) == 0
    here = capsys.readouterr().out
    assert main(["doctor", "--help"]) == 0
    assert here.split() == capsys.readouterr().out.split()
    assert main(["help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: troth [OPTIONS] COMMAND")
    assert cli.name == "cli"


def test_completion_names_the_variable_of_this_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "completion"]) == 0
    said = capsys.readouterr().out
    for shell in ("bash", "zsh", "fish"):
        assert f"_TROTH_COMPLETE={shell}_source" in said


@pytest.mark.parametrize(
    "words", [["nonsuch"], ["doctor", "deeper"], ["exit", "more"], ["codes", "A", "B"], ["doctor", "--json"]]
)
def test_an_unknown_topic_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", *words]) == 2
    told = capsys.readouterr()
    assert "E_USAGE" in told.out + told.err
