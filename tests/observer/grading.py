"""A small tree, its contract, and its grades: what the tests of grading share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from troth.core.canonical import record_bytes
from troth.core.digests import EMPTY
from troth.observer.contract_source import RunLimits
from troth.observer.grade import Grade, grade
from troth.observer.protected import Entry, directory_digest
from troth.observer.tree import copy_tree, snapshot
from troth.receipts import records
from troth.receipts.strict import parse

UNITTEST = ("python3", "-m", "unittest", "-q", "tests.test_app")
PYTEST = ("python3", "-m", "pytest", "-q", "tests")
CASE = "import unittest\nimport app\nclass T(unittest.TestCase):\n"
TESTS = (
    CASE
    + "    def test_one(self): self.assertEqual(app.one(), 1)\n    def test_two(self): self.assertEqual(app.two(), 2)\n"
)
APP = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
BROKEN = APP.replace("return 2", "return 3")


class Ground:
    """A start tree, its contract, and a final tree that a test may spoil."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.final = folder / "work"
        self.write("app.py", APP)
        self.write("tests/__init__.py", "")
        self.write("tests/test_app.py", TESTS)
        self.entries = [Entry("tests", "directory", EMPTY, ("__pycache__",)), Entry("conftest.py", "directory", EMPTY)]

    def write(self, path: str, text: str) -> Path:
        target = self.final / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def seal(self, *argvs: tuple[str, ...], more: tuple[Entry, ...] = ()) -> None:
        """Seal the tree as it stands, and keep its protected paths as the observer does."""
        tree = snapshot(self.final)
        self.entries = [
            Entry(it.path, it.kind, directory_digest(it.path, it.exclude, tree.files), it.exclude)
            if it.kind == "directory"
            else Entry(it.path, "file", tree.files[it.path])
            for it in (*self.entries, *more)
        ]
        self.contract = record_bytes(
            {
                "schema_version": "probity-done-contract/v1",
                "contract_id": "c",
                "protected_paths": [entry.as_json() for entry in self.entries],
                "acceptance": [{"id": f"c{at}", "argv": list(argv)} for at, argv in enumerate(argvs)],
                "adequacy": {"mutants": 2, "killed": 1},
            }
        )
        self.start = self.folder / "start"
        copy_tree(self.final, tree, self.start, only=lambda path: any(it.covers(path) for it in self.entries))

    def grade(self, **options: Any) -> Grade:
        """Grade the final tree as it stands now."""
        before = snapshot(self.final)
        options.setdefault("limits", RunLimits(seconds=20))
        options.setdefault("tree_sha256", before.digest)
        made = grade(self.contract, self.final, self.start, claim_id="com_1", invocation_id="run_1", **options)
        after = snapshot(self.final)
        assert (after.files, after.symlinks) == (before.files, before.symlinks)
        records.grade(parse(made.record, "grade"))
        return made


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def results(made: Grade) -> dict[str, int]:
    """The results of the record: id -> exit."""
    return {item["id"]: item["exit"] for item in json.loads(made.record)["results"]}


def why(made: Grade, at: int = 0) -> str | None:
    """Why a command has no result."""
    return made.report["commands"][at]["why"]


def output(made: Grade, at: int = 0) -> str:
    """What a command printed in its first run."""
    return made.report["commands"][at]["runs"][0]["output"]
