"""A small project with a sealed contract, and agents that work on it: what runs are tested with."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.frontdoor import Answer, troth

SUITE = ["python3", "-m", "unittest", "-q", "tests.test_app"]

FILES = {
    "src/app.py": "def double(value):\n    return value\n\n\ndef name():\n    return 'app'\n",
    "tests/__init__.py": "",
    "tests/test_app.py": (
        "import unittest\n\nfrom src import app\n\n\nclass AppTest(unittest.TestCase):\n"
        "    def test_double(self):\n        self.assertEqual(app.double(2), 4)\n\n"
        "    def test_name(self):\n        self.assertEqual(app.name(), 'app')\n"
    ),
    "docs/notes.txt": "notes\n",
}

CONTRACT = """
contract_id = "double"
task = "double() gives back what it was given; it should give twice as much."

[[protect]]
path = "tests"

[[acceptance]]
id = "suite"
argv = ["python3", "-m", "unittest", "-q", "tests.test_app"]

[adequacy]
max = 4
"""

MEND = "p = 'src/app.py'; t = open(p).read(); open(p, 'w').write(t.replace('return value', 'return 2 * value'))\n"
"""Agent: mend the code."""

HEAD = f"import json, os, subprocess\nSUITE = {SUITE!r}\n"
"""Agent: what the other pieces need."""

RUN = "status = subprocess.run(SUITE).returncode\n"
"""Agent: run the suite."""

CLAIM = "open(os.environ['TROTH_CLAIMS'], 'a').write(json.dumps({'argv': SUITE, 'exit': 0}) + '\\n')\n"
"""Agent: claim that the suite passed."""

HONEST = HEAD + MEND + RUN + CLAIM


def agent(script: str) -> list[str]:
    """The argument vector of an agent written in Python."""
    return ["python3", "-c", script]


@dataclass(frozen=True, slots=True)
class Project:
    """One workspace with its sealed contract."""

    root: Path
    contract: Path

    def troth(self, *words: str | Path, **options: Any) -> Answer:
        """Run a command line in the workspace."""
        return troth(*words, cwd=self.root, **options)

    def commit(self, text: str = "double() does not double") -> tuple[str, str]:
        """Record an observation and a commitment on it; return (source, commitment)."""
        seen = self.troth("capture", text, "--as", "human:reviewer", "--json").json["id"]
        made = self.troth("commit", text, "--source", seen, "--as", "human:reviewer", "--json").json["id"]
        return seen, made

    def run(self, commitment: str | None, script: str, *words: str | Path, **options: Any) -> Answer:
        """`troth run COMMITMENT --json`, or `--new` when there is none, with an agent written in Python."""
        named = [commitment] if commitment is not None else ["--new", "double() does not double"]
        return self.troth(
            "run", *named, "--contract", self.contract, "--as", "agent:worker", "--json", *words, "--", *agent(script),
            **options,
        )  # fmt: skip

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The ledger's rows."""
        text = (self.root / ".mentu" / "ledger.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def rows_of(self, op: str) -> list[dict[str, Any]]:
        """The rows of one operation."""
        return [row for row in self.rows if row["op"] == op]

    def state_of(self, commitment: str) -> dict[str, Any]:
        """A commitment as `status` shows it."""
        listed = self.troth("status", "--json").json["commitments"]
        return next(record for record in listed if record["id"] == commitment)


def lay_out(root: Path, contract: str = CONTRACT, files: dict[str, str] = FILES, *, seal: bool = True) -> Project:
    """Make a project, and seal its contract on a mended copy as reference."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert troth("init", "--workspace", "project", cwd=root).exit == 0
    folder = root / ".mentu" / "contracts" / "double"
    if seal:
        source = root.parent / f"{root.name}.toml"
        source.write_text(contract)
        mended = root.parent / f"{root.name}-mended"
        shutil.copytree(root, mended, ignore=shutil.ignore_patterns(".mentu"))
        app = mended / "src" / "app.py"
        app.write_text(app.read_text().replace("return value", "return 2 * value"))
        answer = troth(
            "contract", "seal", source, "--workspace", root, "--reference", mended, "--out", folder, cwd=root.parent
        )
        assert answer.exit == 0, answer
    return Project(root, folder)


@pytest.fixture(scope="session")
def sealed_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One project, sealed once; tests work on copies."""
    root = tmp_path_factory.mktemp("sealed") / "project"
    root.mkdir()
    lay_out(root)
    return root


@pytest.fixture
def project(sealed_project: Path, tmp_path: Path) -> Project:
    """A project of the test's own."""
    root = tmp_path / "project"
    shutil.copytree(sealed_project, root, symlinks=True)
    return Project(root, root / ".mentu" / "contracts" / "double")
