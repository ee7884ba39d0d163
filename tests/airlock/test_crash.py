"""A run that dies anywhere: `status` shows what it left, `--resume` finishes it once, `release` clears it.

The run really dies: a child process drives the command line and ends itself, without any clean-up, right after one of
the effects that a run has on the ledger or on its own state.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import environment
from support.observing import needs_observer
from support.project import CLAIM, HEAD, HONEST, MEND, RUN, Project, agent, project, sealed_project
from support.shell import Shell, make_shell

__all__ = ["project", "sealed_project"]
pytestmark = [needs_observer, pytest.mark.observer]

DRIVER = """
import os, sys
from troth.airlock.runs import Runs
from troth.cli.main import main
from troth.stores.jsonl import JsonlStore

last = sys.argv[1]

def dying(owner, name, label):
    original = getattr(owner, name)
    def wrapped(*words, **options):
        result = original(*words, **options)
        if label(words) == last:
            os._exit(9)
        return result
    setattr(owner, name, wrapped)

dying(JsonlStore, "_write", lambda words: f"{words[2][-1]['op']}:{words[2][-1]['payload'].get('kind', '')}")
dying(Runs, "save", lambda words: words[1].stage)
sys.exit(main(sys.argv[2:]))
"""

OPEN_AFTER = {
    # effect after which the run dies -> the stage that it is left at; None: no run was begun
    "capture:observation": None,
    "commit:commitment": None,
    "claim:claim": None,
    "started": "started",
    "observed": "observed",
    "graded": "graded",
    "receipted": "receipted",
    "capture:evidence": "receipted",
    "captured": "captured",
    "submit:submission": "captured",
    "finished": None,
}
QUICK = {"claim:claim", "started", "observed", "capture:evidence", "submit:submission"}


@pytest.fixture
def shell(project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The command line in this process, in the project."""
    monkeypatch.chdir(project.root)
    monkeypatch.delenv("TROTH_ACTOR", raising=False)
    return make_shell(capfd)


def die_after(project: Project, effect: str, script: str = HONEST, *words: str) -> None:
    """Run an agent in a process that ends itself right after this effect."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, effect, "run", "--new", "it fails", "--contract", str(project.contract),
         "--as", "agent:worker", "--json", *words, "--", *agent(script)],
        cwd=project.root, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 9, (done.stdout, done.stderr)


def runs_of(shell: Shell) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = shell("status", "--json").json.get("runs", [])
    return runs


def evidence_of(project: Project) -> list[dict[str, Any]]:
    return [row for row in project.rows_of("capture") if row["payload"]["kind"] == "evidence"]


@pytest.mark.parametrize(
    "effect", [effect if effect in QUICK else pytest.param(effect, marks=pytest.mark.slow) for effect in OPEN_AFTER]
)
def test_whatever_a_crash_leaves_is_shown_and_finished_exactly_once(
    project: Project, shell: Shell, effect: str
) -> None:
    die_after(project, effect)
    left = runs_of(shell)
    stage = OPEN_AFTER[effect]
    if stage is None:
        assert left == []
        if effect == "finished":
            assert [row["op"] for row in project.rows][-2:] == ["capture", "submit"]
            return
        assert evidence_of(project) == []
        made = project.rows_of("commit")
        commitment = made[0]["id"] if made else None
        assert project.run(commitment, HONEST).exit == 0  # nothing stands in the way of starting again
    else:
        assert [(run["stage"], run["under_way"]) for run in left] == [(stage, False)]
        assert f"troth run --resume {left[0]['id']}" in shell("status").out
        if stage == "started":
            # What the agent had done stands in the workspace; this one's work is taken back before it works again.
            app = project.root / "src" / "app.py"
            app.write_text(app.read_text().replace("2 * value", "value"))
        answer = shell("run", "--resume", left[0]["id"], "--json")
        assert answer.exit == 0, answer
        assert answer.json["done"]["decision"] == "supported"
        assert shell("run", "--resume", answer.json["run"], "--json").json["error"]["code"] == "E_RUN_FINISHED"
    assert runs_of(shell) == []
    (evidence,) = evidence_of(project)
    (submitted,) = project.rows_of("submit")
    assert submitted["payload"]["evidence"] == evidence["id"]
    assert len(project.rows_of("claim")) == 1
    assert shell("verify").exit == 0
    folder = project.root / ".mentu" / "runs" / evidence["payload"]["meta"]["run"]
    assert shell("receipt", "check", folder, "--json").json["receipt"] == {"verdict": "valid"}
    assert not (folder / "private").exists()


def test_a_contradicted_run_is_noted_once_however_often_it_is_taken_up(project: Project, shell: Shell) -> None:
    die_after(project, "annotate:note", HEAD + RUN + CLAIM)
    (left,) = runs_of(shell)
    assert left["stage"] == "captured"
    assert shell("run", "--resume", "@last", "--json").exit == 1
    assert len(project.rows_of("annotate")) == len(evidence_of(project)) == 1
    assert project.rows_of("submit") == []


def test_a_tree_that_changed_since_is_not_graded_and_the_run_can_be_cleared(project: Project, shell: Shell) -> None:
    die_after(project, "observed")
    (left,) = runs_of(shell)
    (project.root / "src" / "app.py").write_text(
        "def double(value):\n    return 2 * value\n\ndef name(): return 'app'\n"
    )
    answer = shell("run", "--resume", left["id"], "--json")
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_RUN_TREE_CHANGED")
    assert f"troth release {left['commitment']}" in answer.json["error"]["remedy"]
    other = shell("release", left["commitment"], "--as", "agent:other", "--json")
    assert other.json["error"]["code"] == "E_NOT_OWNER"
    assert len(runs_of(shell)) == 1  # who may not release clears nothing
    assert shell("release", left["commitment"], "--as", "agent:worker").exit == 0
    assert runs_of(shell) == []
    assert not (project.root / ".mentu" / "runs" / left["id"] / "private").exists()


def test_a_start_that_the_dead_agent_spoilt_is_refused_when_it_is_made_anew(project: Project, shell: Shell) -> None:
    die_after(project, "started")
    (left,) = runs_of(shell)
    (project.root / "tests" / "test_app.py").write_text("")
    answer = shell("run", "--resume", left["id"], "--json")
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_START_DIFFERS")
    assert [run["stage"] for run in runs_of(shell)] == ["started"]


def test_a_run_made_anew_is_a_new_run_and_the_old_one_says_so(project: Project, shell: Shell) -> None:
    die_after(project, "started")
    (left,) = runs_of(shell)
    answer = shell("run", "--resume", left["id"], "--json")
    assert answer.exit == 0
    assert answer.json["run"] != left["id"]
    states = {run["id"]: run for run in shell("runs", "--json").json["runs"]}
    assert states[left["id"]]["stage"] == "abandoned"
    assert answer.json["run"] in states[left["id"]]["note"]


def test_a_run_that_cuts_credentials_is_made_anew_with_the_words_it_had(project: Project, shell: Shell) -> None:
    """What `run.json` shows is cut; what the agent is started with again is not."""
    script = HONEST + "\nsubprocess.run(['true', '--password', 'v8Kq2Zt5Lw'])\n"
    die_after(project, "started", script, "--redact")
    (left,) = runs_of(shell)
    folder = project.root / ".mentu" / "runs" / left["id"]
    assert "v8Kq2Zt5Lw" not in (folder / "run.json").read_text()
    answer = shell("run", "--resume", left["id"], "--json")
    assert (answer.exit, answer.json["done"]["reason"]) == (3, "observation_coverage_unestablished")
    made = Path(answer.json["folder"])
    assert not [path.name for path in made.iterdir() if path.is_file() and b"v8Kq2Zt5Lw" in path.read_bytes()]
    assert not (folder / "private").exists()
    assert not (made / "private").exists()


@pytest.mark.parametrize("effect", ["started", "graded"])
def test_a_commitment_that_went_another_way_meanwhile(project: Project, shell: Shell, effect: str) -> None:
    die_after(project, effect)
    (left,) = runs_of(shell)
    own = shell("capture", "done by hand", "--kind", "evidence", "--as", "agent:worker").id
    assert shell("close", left["commitment"], "--evidence", own, "--as", "agent:worker").exit == 0
    answer = shell("run", "--resume", left["id"], "--json")
    assert answer.exit == 2
    assert runs_of(shell) == []  # nothing that only a release could clear, and no release is possible any more
    assert project.rows_of("submit") == []
    if effect == "graded":
        assert (answer.json["done"]["decision"], answer.json["submission_refused"]) == ("supported", "E_ALREADY_CLOSED")
        assert "E_ALREADY_CLOSED" in project.rows[-1]["payload"]["body"]
    else:
        assert answer.json["error"]["code"] == "E_ALREADY_CLOSED"


def test_a_key_that_somebody_else_took_is_not_taken_for_the_evidence(project: Project, shell: Shell) -> None:
    die_after(project, "receipted")
    (left,) = runs_of(shell)
    key = f"run:{left['id']}"
    assert shell("capture", "trust me", "--source-key", key, "--as", "agent:worker").exit == 0
    answer = shell("run", "--resume", left["id"], "--json")
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_DUPLICATE_ID")


def test_a_broken_state_file_does_not_hide_the_other_runs(project: Project, shell: Shell) -> None:
    die_after(project, "captured", HEAD + MEND)
    (left,) = runs_of(shell)
    folder = project.root / ".mentu" / "runs"
    (folder / "run_00000000").mkdir()
    (folder / "run_00000000" / "run.json").write_text("{")
    (folder / "run_11111111").symlink_to(folder / left["id"])
    assert [run["id"] for run in runs_of(shell)] == [left["id"]]
    answer = shell("run", "--resume", "run_00000000", "--json")
    assert answer.exit == 2
    assert shell("run", "--resume", left["id"], "--json").exit == 0


def test_states_are_replaced_whole(project: Project, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails while a state is written leaves the one before."""
    die_after(project, "graded")
    (left,) = runs_of(shell)
    file = project.root / ".mentu" / "runs" / left["id"] / "run.json"
    before = file.read_bytes()
    replace = Path.replace

    def failing(path: Path, target: Path) -> Path:
        if Path(target).name == "run.json":
            raise OSError(28, os.strerror(28))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", failing)
    answer = shell("run", "--resume", left["id"], "--json")
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_WRITE_FAILED")
    monkeypatch.undo()
    assert file.read_bytes() == before
    assert json.loads(before)["stage"] == "graded"
