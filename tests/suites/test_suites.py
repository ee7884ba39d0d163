"""Published projects, through the real command line: honest work is supported, twice in a row, and a cheat is caught.

``TROTH_SUITES_WRITE=1`` records what the runs came to, of which ``docs/suites.md`` is made.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from suites import page
from suites.agents import CHEATS, HONEST, script
from suites.laying import fetch, lay_out, put_back
from suites.suites import MANY, Suite
from suites.table import SUITES
from support.frontdoor import Answer, troth
from support.observing import needs_observer
from troth.observer.proposal import toml_string
from troth.observer.tools import prefix_of


@dataclass(frozen=True, slots=True)
class Ready:
    """A project with its sealed contract."""

    suite: Suite
    workspace: Path
    contract: Path
    seal: dict[str, Any]
    agents: Path

    def run(self, body: str) -> Answer:
        """Let an agent work on the spoilt project, as it was when the contract was sealed."""
        put_back(self.workspace)
        agent = self.agents / "agent.py"
        agent.write_text(script(self.suite, body), encoding="utf-8")
        return troth(
            "run", "--new", self.suite.task, "--contract", self.contract, "--as", "agent:worker",
            "--allow-read", self.agents, "--json", "--", "python3", agent, cwd=self.workspace, timeout=1800,
        )  # fmt: skip


def contract_of(suite: Suite, workspace: Path) -> str:
    """Return the contract file; a compiler that no sandbox shows is named where a proposal finds it."""
    array = ", ".join(map(toml_string, suite.argv))
    own = prefix_of(suite.argv[0], workspace)
    needed = suite.environment if suite.environment.startswith("..") else str(own or "")
    tools = f"tools = [{toml_string(needed)}]\n" if needed else ""
    protect = "".join(f"[[protect]]\npath = {toml_string(path)}\n\n" for path in suite.protect)
    return (
        f"contract_id = {toml_string(suite.name)}\ntask = {toml_string(suite.task)}\n{tools}\n{protect}"
        f'[[acceptance]]\nid = "suite"\nargv = [{array}]\n\n'
        f"[adequacy]\nmutants_in = [{toml_string(suite.edit.file)}]\nmax = {suite.mutants}\n\n[limits]\nseconds = 900\n"
    )


@pytest.fixture(scope="module", params=SUITES, ids=lambda suite: suite.name)
def ready(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ready:
    """Fetch, lay out and seal one project."""
    suite: Suite = request.param
    place = tmp_path_factory.mktemp(suite.name)
    (place / "archive").mkdir()
    (place / "agents").mkdir()
    workspace = place / "work"
    lay_out(suite, fetch(suite, place / "archive"), workspace)
    assert troth("init", cwd=workspace).exit == 0
    source = place / "contract.toml"
    source.write_text(contract_of(suite, workspace), encoding="utf-8")
    words = ["contract", "seal", source, "--workspace", workspace, "--reference", "published", "--json"]
    answer = troth(*words, cwd=workspace, timeout=3600)
    assert answer.exit == 0, answer
    folder = workspace / ".mentu" / "contracts" / suite.name
    return Ready(suite, workspace, folder, json.loads((folder / "seal.json").read_text()), place / "agents")


def _tests_of(answer: Answer) -> int | None:
    report = json.loads((Path(answer.json["folder"]) / "report.json").read_text())["grade"]
    (command,) = report["commands"]
    return command["tests"]["executed"]


@needs_observer
@pytest.mark.observer
@pytest.mark.slow
def test_honest_work_is_supported_twice_and_a_cheat_is_caught(ready: Ready) -> None:
    suite = ready.suite
    assert ready.seal["adequacy"]["killed"] > 0, ready.seal["adequacy"]
    assert ready.seal["commands"][0]["passes"], ready.seal["commands"]
    honest: list[Answer] = []
    for _ in range(2):
        answer = ready.run(HONEST)
        assert answer.exit == 0, answer.out + answer.err[-2000:]
        assert (answer.json["done"]["decision"], answer.json["missing"]) == ("supported", []), answer
        assert {check["decision"] for check in answer.json["checks"]} == {"supported"}
        assert troth("receipt", "check", answer.json["folder"], cwd=ready.workspace).exit == 0
        honest.append(answer)
    counts = {_tests_of(answer) for answer in honest}
    assert len(counts) == 1
    (count,) = counts
    assert count is None or count >= suite.tests
    caught = ready.run(CHEATS[suite.cheat.kind])
    assert caught.exit == 1, caught.out + caught.err[-2000:]
    assert caught.json["done"]["reason"] == suite.cheat.reason, caught
    assert troth("receipt", "check", caught.json["folder"], cwd=ready.workspace).exit == 1
    result = {
        "name": suite.name,
        "version": suite.version,
        "sha256": suite.sha256,
        "tests": count,
        "honest": [answer.json["done"]["decision"] for answer in honest],
        "cheat": {"kind": suite.cheat.kind, **{name: caught.json["done"][name] for name in ("decision", "reason")}},
    }
    if os.environ.get("TROTH_SUITES_WRITE") == "1":
        page.RESULTS.mkdir(exist_ok=True)
        text = json.dumps(result, indent=2) + "\n"
        (page.RESULTS / f"{suite.name}.json").write_text(text, encoding="utf-8")
        page.PAGE.write_text(page.page(), encoding="utf-8")
    assert result == page.result_of(suite), "the page says otherwise: record with TROTH_SUITES_WRITE=1"


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_row_says_what_its_runs_came_to(suite: Suite) -> None:
    found = page.result_of(suite)
    assert found is not None
    assert (found["name"], found["version"], found["sha256"]) == (suite.name, suite.version, suite.sha256)
    assert found["honest"] == ["supported", "supported"]
    assert found["cheat"] == {"kind": suite.cheat.kind, "decision": "contradicted", "reason": suite.cheat.reason}
    assert suite.cheat.kind in CHEATS
    assert MANY not in suite.traits or found["tests"] > 1000


def test_the_page_is_made_of_the_table_and_the_results() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page()
