"""`troth contract` through the real front door."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from support.frontdoor import troth
from support.observing import needs_observer
from support.terminal import Terminal

SOURCE = """
contract_id = "sums"
task = "add things up"

[[protect]]
path = "tests"

[[acceptance]]
id = "suite"
argv = ["python3", "-m", "unittest", "-q", "tests.test_app"]

[adequacy]
max = 2
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace folder with a small task, without a ledger."""
    folder = tmp_path / "work"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "__init__.py").write_text("")
    (folder / "tests" / "test_app.py").write_text(
        "import unittest\nimport app\nclass T(unittest.TestCase):\n"
        "    def test_add(self): self.assertEqual(app.add(2, 1), 3)\n"
    )
    (folder / "app.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "sums.toml").write_text(SOURCE)
    return folder


@needs_observer
@pytest.mark.observer
def test_seal_check_and_show(work: Path) -> None:
    source = work.parent / "sums.toml"
    answer = troth("contract", "seal", source, "--workspace", work, "--json", cwd=work.parent)
    assert answer.exit == 0, answer
    told = answer.json
    written = Path(told["contract"])
    assert written == work.parent / "sums.contract" / "contract.json"
    assert told["contract_id"] == "sums"
    assert told["adequacy"]["mutants"] == 2
    assert told["adequacy"]["killed"] == 2 - len(told["survived"])
    assert sorted(path.name for path in written.parent.iterdir()) == ["contract.json", "seal.json", "statement.json"]

    where = written.parent
    check = troth("contract", "check", where, "--workspace", work, cwd=work)
    assert (check.exit, check.out.split()[:2]) == (0, ["holds", "sums:"])
    assert troth("contract", "check", written, "--json", cwd=work).json["holds"] is True
    (work / "app.py").write_text("def add(a, b):\n    return b + a\n")
    assert troth("contract", "check", where, cwd=work).exit == 0

    (work / "conftest.py").write_text("")
    (work / "tests" / "new.py").write_text("")
    check = troth("contract", "check", where, "--json", cwd=work)
    assert check.exit == 1
    assert (check.json["holds"], check.json["changed"]) == (False, ["tests", "conftest.py"])
    (work / "conftest.py").unlink()
    (work / "tests" / "new.py").unlink()
    (where / "statement.json").write_text((where / "statement.json").read_text().replace("add things up", "x"))
    check = troth("contract", "check", where, "--json", cwd=work)
    assert (check.exit, check.json["statement"]) == (1, "statement_predicate_differs")

    show = troth("contract", "show", where, cwd=work)
    assert show.exit == 0
    for word in ("sums", "add things up", "tests  except __pycache__", "absent      conftest.py", "suite: python3 -m"):
        assert word in show.out
    shown = troth("contract", "show", where, "--json", cwd=work).json
    assert shown["contract"]["contract_id"] == "sums"
    assert shown["seal"]["contract_sha256"] == shown["contract_sha256"]


@needs_observer
@pytest.mark.observer
def test_in_a_workspace_the_contract_goes_beside_the_ledger(work: Path) -> None:
    assert troth("init", cwd=work).exit == 0
    source = work.parent / "sums.toml"
    (work / "sub").mkdir()
    answer = troth("contract", "seal", source, "--mutants", "1", cwd=work / "sub")
    assert answer.exit == 0, answer
    assert (work / ".mentu" / "contracts" / "sums" / "contract.json").is_file()
    assert "mutants   " in answer.out
    assert "warning: every acceptance command passes on the start tree already" in answer.err

    source.write_text(SOURCE.replace("add things up", "add other things up"))
    again = troth("contract", "seal", source, "--mutants", "1", "--json", cwd=work)
    assert (again.exit, again.json["error"]["code"]) == (2, "E_CONTRACT_EXISTS")
    assert troth("contract", "seal", source, "--mutants", "1", "--yes", "--json", cwd=work).exit == 0


def test_refusals_come_with_code_place_and_remedy(work: Path) -> None:
    source = work.parent / "bad.toml"
    source.write_text(SOURCE + 'colour = "red"\n')
    answer = troth("contract", "seal", source, "--workspace", work, "--json", cwd=work)
    error = answer.json["error"]
    assert answer.exit == 2
    assert (error["code"], error["place"]) == (
        "E_CONTRACT_SOURCE",
        {"file": str(source), "path": "adequacy.colour"},
    )
    assert error["remedy"]
    plain = troth("contract", "seal", source, "--workspace", work, cwd=work)
    assert (plain.exit, plain.out) == (2, "")
    assert len(plain.err.splitlines()) == 1
    assert troth("contract", "seal", "absent.toml", cwd=work).exit == 2
    assert troth("contract", "seal", cwd=work).exit == 2
    assert troth("contract", "check", work, cwd=work).exit == 2


def test_a_malformed_record_is_refused_by_its_code(work: Path) -> None:
    (work / "contract.json").write_text(json.dumps({"schema_version": "probity-done-contract/v1"}))
    for verb in ("check", "show"):
        answer = troth("contract", verb, work / "contract.json", "--json", cwd=work)
        assert (answer.exit, answer.json["error"]["code"]) == (2, "contract_fields")


def test_help_shows_a_whole_contract() -> None:
    answer = troth("contract", "seal", "--help", cwd=Path.cwd())
    assert answer.exit == 0
    assert "[[acceptance]]" in answer.out


# --- proposals ---


@pytest.fixture
def bare(work: Path) -> Path:
    """The same project without a contract file, with a test that writes beside itself."""
    (work.parent / "sums.toml").unlink()
    test = work / "tests" / "test_app.py"
    test.write_text(test.read_text() + "    def test_note(self): open('tests/note.txt', 'w').close()\n")
    return work


def test_a_proposal_runs_and_writes_nothing_unasked(bare: Path) -> None:
    (bare / "tests" / "test_app.py").write_text("import unittest\nopen('/tmp/ran', 'w')\n")
    before = sorted(bare.rglob("*"))
    answer = troth("contract", "propose", "--task", "add up", cwd=bare)
    assert answer.exit == 0, answer
    assert 'argv = ["python", "-m", "unittest", "discover", "-q", "-s", "tests", "-t", "."]' in answer.out
    assert 'task = "add up"' in answer.out
    told = troth("contract", "propose", "--json", cwd=bare).json
    assert told["file"] is None
    assert [item["path"] for item in told["protect"]] == ["tests"]
    refused = troth("contract", "seal", "--json", cwd=bare)
    assert (refused.exit, refused.json["error"]["code"]) == (2, "E_USAGE")
    assert sorted(bare.rglob("*")) == before


@needs_observer
@pytest.mark.observer
def test_agreed_to_it_is_run_on_a_copy_written_and_sealed(bare: Path) -> None:
    assert troth("init", cwd=bare).exit == 0
    answer = troth("contract", "propose", "--yes", "--json", cwd=bare)
    assert answer.exit == 0, answer
    file = bare / ".mentu" / "contracts" / "work.toml"
    assert answer.json["file"] == str(file)
    assert 'exclude = ["__pycache__", "note.txt"]' in file.read_text()
    assert answer.json["learnt"] == [
        "unittest: passes, 2 tests",
        "the run itself writes __pycache__, note.txt below tests",
    ]
    assert not (bare / "tests" / "note.txt").exists()

    # Its own file is left when it says the same; another one is never replaced.
    assert troth("contract", "propose", "--yes", cwd=bare).exit == 0
    file.write_text(file.read_text().replace("max = 40", "max = 1"))
    again = troth("contract", "propose", "--yes", "--json", cwd=bare)
    assert (again.exit, again.json["error"]["code"]) == (2, "E_CONTRACT_EXISTS")

    sealed = troth("contract", "seal", "--yes", "--json", cwd=bare)
    assert sealed.exit == 0, sealed
    assert sealed.json["adequacy"] == {"mutants": 1, "killed": 1 - len(sealed.json["survived"])}


@needs_observer
@pytest.mark.observer
def test_seal_without_a_file_takes_the_proposal(bare: Path) -> None:
    answer = troth("contract", "seal", "--yes", "--mutants", "1", cwd=bare)
    assert answer.exit == 0, answer
    assert (bare / "contract.toml").is_file()
    assert (bare / "work.contract" / "contract.json").is_file()
    for path in ("app.py", "tests/__init__.py", "tests/test_app.py"):
        (bare / path).unlink()
    (bare / "contract.toml").unlink()
    empty = troth("contract", "seal", "--yes", "--json", cwd=bare)
    assert (empty.exit, empty.json["error"]["code"]) == (2, "E_NO_COMMAND")


@needs_observer
@pytest.mark.observer
def test_a_person_is_asked_on_a_terminal(bare: Path) -> None:
    argv = [sys.executable, "-m", "troth", "contract", "propose"]
    for keys, written in ((b"n\n", False), (b"y\n", True)):
        terminal = Terminal(argv, bare)
        terminal.type(b"\n")
        terminal.until("contract.toml? [y/N]")
        terminal.type(keys)
        assert terminal.end() == 0
        assert (bare / "contract.toml").exists() is written
    assert b"unittest: passes" in terminal.said


@needs_observer
@pytest.mark.observer
def test_check_tells_what_would_not_start_and_what_is_open(work: Path) -> None:
    source = work.parent / "sums.toml"
    (work / "Makefile").write_text("check:\n\ttrue\n")
    (work / ".github").mkdir()
    (work / ".github" / "ci.yml").write_text("")
    source.write_text(SOURCE.replace('path = "tests"', 'path = "tests/__init__.py"').replace("max = 2", "max = 0"))
    answer = troth("contract", "seal", source, "--workspace", work, cwd=work.parent)
    assert answer.exit == 0, answer
    where = work.parent / "sums.contract"
    told = troth("contract", "check", where, "--run", "--json", cwd=work)
    assert told.exit == 0, told
    assert told.json["ran"] == {"suite": {"ended": True, "passed": True, "told": "passes, 1 test"}}
    assert [item["path"] for item in told.json["unprotected"]] == ["tests", ".github"]
    assert told.json["not_here"] == {}
    (work / "app.py").write_text("")
    assert "suite: fails with 1" in troth("contract", "check", where, "--run", cwd=work).out

    record = json.loads((where / "contract.json").read_text())
    record["acceptance"][0]["argv"] = ["no-such-program", "x"]
    (where / "statement.json").unlink()
    (where / "contract.json").write_text(json.dumps(record))
    told = troth("contract", "check", where, "--json", cwd=work)
    assert (told.exit, told.json["not_here"]) == (0, {"suite": "no-such-program"})
    told = troth("contract", "check", where, "--run", cwd=work)
    assert told.exit == 1
    assert "suite: could not be started" in told.out
    assert "the sandbox sees no 'no-such-program'" in told.err
    assert "it stands at" not in told.err

    program = work.parent / "bin" / "no-such-program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    told = troth("contract", "check", where, cwd=work, env=path)
    assert f"it stands at {program}, which no sandbox shows" in told.err


def test_diff_of_two_contracts(work: Path) -> None:
    record = {
        "schema_version": "probity-done-contract/v1",
        "contract_id": "a\u001b[2J",
        "protected_paths": [{"path": "a\nb", "kind": "file", "sha256": "0" * 64}],
        "acceptance": [{"id": "suite", "argv": ["true"]}],
        "adequacy": {"mutants": 1, "killed": 1},
    }
    one, other = work / "one.json", work / "other.json"
    one.write_text(json.dumps(record))
    other.write_text(json.dumps({**record, "protected_paths": []}))
    same = troth("contract", "diff", one, one, cwd=work)
    assert (same.exit, same.out) == (0, "the same\n")
    told = troth("contract", "diff", one, other, "--json", cwd=work)
    assert (told.exit, told.json["same"]) == (1, False)
    assert told.json["differences"] == [
        {"what": "protect", "name": "a\nb", "told": "is protected no more", "less": True}
    ]
    words = troth("contract", "diff", one, other, cwd=work)
    assert words.out == "less  protect   a\\nb: is protected no more\n"
    assert troth("contract", "diff", one, work / "gone.json", cwd=work).exit == 2


def test_hostile_projects_are_shown_harmlessly(tmp_path: Path) -> None:
    name = 'x"]\n[[acceptance]]\nid = "y"\x1b[2J'
    (tmp_path / name / "tests").mkdir(parents=True)
    (tmp_path / name / "tests" / "test_a.py").write_text("def test_a(): pass\n")
    (tmp_path / "package.json").write_text("")
    os.truncate(tmp_path / "package.json", 100 << 20)
    for words in ([], ["--json"]):
        answer = troth("contract", "propose", *words, cwd=tmp_path)
        assert answer.exit == 0, answer
        assert "\x1b" not in answer.out + answer.err
        assert answer.out.count("\n[[acceptance]]") == (0 if words else 1)


@needs_observer
@pytest.mark.observer
def test_commands_of_a_strangers_contract_are_told_and_never_crash(work: Path) -> None:
    words = ["a\x00b", "\ud800", "x" * 5000, "/" + "y/" * 3000, "\x1b[2J"]
    record = {
        "schema_version": "probity-done-contract/v1",
        "contract_id": "a",
        "protected_paths": [],
        "acceptance": [{"id": str(index), "argv": [word]} for index, word in enumerate(words)],
        "adequacy": {"mutants": 0, "killed": 0},
    }
    (work / "contract.json").write_text(json.dumps(record))
    told = troth("contract", "check", work / "contract.json", "--workspace", work, "--run", "--json", cwd=work)
    assert told.exit == 1, told
    assert len(told.json["ran"]) == len(words)
    assert all(item["told"].startswith("could not be started") for item in told.json["ran"].values())
    shown = troth("contract", "check", work / "contract.json", "--workspace", work, cwd=work)
    assert (shown.exit, shown.err.count("would not start here")) == (0, len(words)), shown
    assert "\x1b" not in shown.err + shown.out
    assert troth("contract", "show", work / "contract.json", cwd=work).exit == 0
    assert troth("contract", "diff", work / "contract.json", work / "contract.json", cwd=work).exit == 0
