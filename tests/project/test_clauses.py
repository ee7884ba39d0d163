"""The tables clause -> tests: no empty row, no missing test, no clause twice, and pages that are up to date."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("clauses", ROOT / "scripts" / "clauses.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["clauses"] = module
    spec.loader.exec_module(module)
    return module


clauses = _load()
SPECS = sorted((ROOT / clauses.DATA).glob("*.toml"))


def test_both_specifications_have_a_table() -> None:
    assert {"ledger", "done-records"} <= {path.stem for path in SPECS}


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_clause_is_held_by_tests_that_exist(path: Path) -> None:
    data = clauses.load(path)
    assert len(data["clause"]) >= 20
    assert list(clauses.faults(data)) == []


def test_the_generated_pages_are_up_to_date() -> None:
    old = [
        str(path.relative_to(ROOT))
        for path, text in clauses.generated().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert old == [], "run `make clauses`"


HERE = "tests/project/test_clauses.py::test_both_specifications_have_a_table"
GOOD: dict[str, Any] = {"id": "§1", "says": "something", "tests": [HERE]}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"clause": [{**GOOD, "tests": []}]}, "§1 has no test"),
        ({"clause": [{"id": "§1", "says": "x"}]}, "§1 has no test"),
        ({"clause": [{**GOOD, "says": ""}]}, "clause '§1' says nothing"),
        ({"clause": [GOOD, GOOD]}, "§1 is listed twice"),
        ({"clause": [GOOD], "later": [{"id": "§1", "says": "x"}]}, "§1 is listed twice"),
        ({"clause": [{**GOOD, "tests": [f"{HERE}_not"]}]}, "which does not exist"),
        (
            {"clause": [{**GOOD, "tests": [HERE.replace("project", "nowhere")]}]},
            "(but tests/project/test_clauses.py has",
        ),
        ({"clause": [{**GOOD, "tests": ["tests/project/test_clauses.py"]}]}, "which does not exist"),
        ({"later": [{"id": "§2", "says": ""}]}, "later '§2' says nothing"),
    ],
)
def test_what_is_wrong_with_a_table_is_told(data: dict[str, Any], complaint: str) -> None:
    (told,) = clauses.faults(data)
    assert complaint in told


def test_a_good_table_is_passed_and_shows_everything() -> None:
    data = {"spec": "a thing", "clause": [GOOD], "later": [{"id": "§2", "says": "another"}]}
    assert list(clauses.faults(data)) == []
    page = clauses.table(data)
    assert "| §1 | something | [project/test_clauses::test_both_specifications_have_a_table]" in page
    assert page.endswith("## Not built yet\n\n- §2: another\n")


def test_tests_of_a_class_are_found_by_their_class() -> None:
    found = clauses.tests_in(ROOT / "tests" / "stores" / "test_members.py")
    assert "TestReading::test_links_are_faults" in found
    assert "test_links_are_faults" not in found


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="marks"):
        clauses.drawn("# A page\n")
