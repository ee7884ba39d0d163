"""`troth contract` through the real front door."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.frontdoor import troth
from support.observing import needs_observer

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
