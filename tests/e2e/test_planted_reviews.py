"""Real texts reviewed with planted findings: a host that knows only text and findings sorts them through commands.

A decision record of this project, an essay in the public domain, and what changed between two published archives of a
library. The true findings are resolved, the false rejected with evidence, the rest left to a person; what the text says
to its reader is inert.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from e2e.planting import INJECTION, as_script, plant, score
from support.observing import needs_observer
from troth.cli.main import main

pytestmark = [needs_observer, pytest.mark.observer]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ALL = {"false": 1.0, "true": 1.0, "unverifiable": 1.0, "value": 1.0}

SUM = (
    "import re, sys\n"
    "a, b, c = map(int, re.findall('[0-9]+', sys.argv[2]))\n"
    "held = sys.argv[2] in open(sys.argv[1], encoding='utf-8').read()\n"
    "sys.exit(2 if not held else a + b != c)\n"
)
COUNT = (
    "import sys\n"
    "found = open(sys.argv[1], encoding='utf-8').read().splitlines().count(sys.argv[2])\n"
    "sys.exit(2 if not found else found > 1)\n"
)


class Host:
    """A host that works from the answers of commands alone."""

    def __init__(self, folder: Path, member: str) -> None:
        self.folder = folder
        self.member = member
        self.env = {"HOME": str(folder), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TROTH_ACTOR": "agent:host"}

    def __call__(self, *words: str) -> tuple[int, Any]:
        """Run a command and return its status and its answer."""
        own, argv = (words, ()) if "--" not in words else (words[: words.index("--")], words[words.index("--") :])
        out = io.StringIO()
        with (
            contextlib.chdir(self.folder), mock.patch.dict(os.environ, self.env), contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(io.StringIO()),
        ):  # fmt: skip
            status = main(["review", *own, "--json", *argv])
        return status, json.loads(out.getvalue())

    def ok(self, *words: str) -> Any:
        """Run a command that must be recorded."""
        status, answer = self(*words)
        assert status == 0, answer
        return answer

    def work(self) -> None:
        """Settle what can be settled and leave the rest to a person."""
        while (shown := self("next")[1]["finding"]) is not None:
            self.settle(shown["id"], shown)

    def settle(self, name: str, shown: dict[str, Any]) -> None:
        """Settle one finding by what its category lets a program look at."""
        category, claim = shown["category"], shown["claim"]
        anchor = shown["evidence"][0]["anchor"]
        if category == "priority":
            self.ok("triage", name, "judgment", "--kind", "value_or_priority_tradeoff")
            self.ok("escalate", name, "--question", claim, "--position", "It does not.", "--unverifiable", "It weighs.")
            return
        self.ok("triage", name, "checkable")
        if category == "repetition":
            made = self.ok("verify", name, "--method", "command", "--", "python3", "-c", COUNT, self.member,
                           anchor["quote"])  # fmt: skip
        elif category == "arithmetic":
            made = self.ok("verify", name, "--method", "command", "--", "python3", "-c", SUM, self.member,
                           anchor["quote"])  # fmt: skip
        elif category == "omission":
            made = self.omission(name, re.findall("'(.*?)'", claim)[0])
        else:
            self.ok("contest", name, "--position", "Nothing shows it.", "--unverifiable", "The survey cannot be had.")
            assert not self.ok("rebut", name)["news"]
            self.ok("escalate", name, "--question", f"Is there such a survey? {claim}")
            return
        if made["verification"]["result"] == "supports":
            self.ok("resolve", name, "--done", "Noted for the next edition.")
        else:
            assert made["verification"]["result"] == "contradicts"
            self.ok("reject", name)

    def omission(self, name: str, word: str) -> Any:
        """Look a word up; the program refuses to record what the text belies."""
        inspect = ("verify", name, "--method", "artifact-inspection", "--detail", f"Looked for {word}.")
        status, answer = self(*inspect, "--result", "supports", "--absent", word)
        if status == 0:
            return answer
        assert answer["error"]["code"] == "E_REVIEW_CHECK"
        return self.ok(*inspect, "--result", "contradicts", "--quote", word)


def reviewed(folder: Path, kind: str, member: str, text: str, seed: int) -> dict[str, float]:
    """Have a text reviewed, settle everything, and return the rates."""
    planted = plant(member, text, seed)
    folder.mkdir()
    (folder / ".mentu").mkdir()
    (folder / member).write_bytes(planted.data)
    (folder / "reviewer.json").write_text(as_script(planted))
    host = Host(folder, member)
    status, begun = host("start", member, "--kind", kind, "--backend", "scripted:reviewer.json", "--approve",
                         "scripted:reviewer")  # fmt: skip
    assert (status, begun["findings"]) == (3, {"reviewed": 8})
    host.work()
    status, standing = host("status")
    assert (status, standing["outcome"], standing["open_questions"]) == (4, "deadlocked", 2)
    assert host("recheck")[0] == 0
    result = json.loads((folder / ".mentu/reviews" / Path(member).stem / "reconciliation.json").read_bytes())
    # What the text says to its reader changed nothing and came into nothing that was decided.
    assert INJECTION.splitlines()[0].encode() in planted.data
    assert "APPROVE" not in json.dumps(result)
    return score(result, planted.truth)


def decision() -> str:
    return (ROOT / "docs" / "decisions" / "0003-pip-installs.md").read_text(encoding="utf-8")


def essay() -> str:
    return (HERE / "of_studies.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_decision_record(tmp_path: Path, seed: int) -> None:
    assert reviewed(tmp_path / "work", "decision", "decision.md", decision(), seed) == ALL


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_an_essay(tmp_path: Path, seed: int) -> None:
    assert reviewed(tmp_path / "work", "document", "essay.md", essay(), seed) == ALL


@pytest.fixture(scope="module")
def change(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What changed in the code between two published archives, as a unified diff."""
    folder = tmp_path_factory.mktemp("published")
    texts = []
    for name in ("published_earlier.txt", "published_source.txt"):
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation",
             "--require-hashes", "-r", str(HERE / name), "-d", str(folder / name)],
            check=True, timeout=300,
        )  # fmt: skip
        (archive,) = (folder / name).iterdir()
        with tarfile.open(archive) as held:
            member = next(each for each in held if each.name.endswith("/idna/core.py"))
            source = held.extractfile(member)
            assert source is not None
            texts.append(source.read().decode().splitlines())
    made = "\n".join(difflib.unified_diff(*texts, "a/idna/core.py", "b/idna/core.py", lineterm=""))
    assert made.count("\n@@") >= 1
    return made


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_change_of_a_real_library(tmp_path: Path, change: str, seed: int) -> None:
    assert reviewed(tmp_path / "work", "code", "change.diff", change, seed) == ALL


def test_a_host_that_believes_everything_scores_otherwise(tmp_path: Path) -> None:
    class Gullible(Host):
        def settle(self, name: str, shown: dict[str, Any]) -> None:
            self.ok("triage", name, "checkable")
            inspect = ("verify", name, "--method", "artifact-inspection", "--result", "supports", "--detail")
            self.ok(*inspect, "The reviewer says so.")
            self.ok("resolve", name, "--done", "Believed.")

    planted = plant("essay.md", essay(), 1)
    folder = tmp_path / "work"
    (folder / ".mentu").mkdir(parents=True)
    (folder / "essay.md").write_bytes(planted.data)
    (folder / "reviewer.json").write_text(as_script(planted))
    host = Gullible(folder, "essay.md")
    host("start", "essay.md", "--kind", "document", "--backend", "scripted:reviewer.json", "--approve",
         "scripted:reviewer")  # fmt: skip
    host.work()
    result = json.loads((folder / ".mentu/reviews/essay/reconciliation.json").read_bytes())
    assert score(result, planted.truth) == {"false": 0.0, "true": 1.0, "unverifiable": 0.0, "value": 0.0}
