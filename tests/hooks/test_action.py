"""The GitHub Action: its own steps are run as a runner runs them, with hostile inputs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cli.test_receipt import contradicted, laid, open_run
from receipts.faults import put
from receipts.test_receipt import sealed
from troth.hooks.github import code_span, log_line, options_of, summary

ROOT = Path(__file__).resolve().parents[2]
ACTION = YAML(typ="safe").load((ROOT / "action.yml").read_text())
HOSTILE = "$(touch pwned) `touch pwned`; touch pwned #\"' && ::set-output name=x::y"


def act(place: Path, **inputs: str) -> tuple[int, str, str, dict[str, str]]:
    """Run the step that decides in a folder; return its status, log, summary and outputs."""
    (step,) = (step for step in ACTION["runs"]["steps"] if step.get("id") == "decide")
    given = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()} | inputs
    runner = place.parent / "runner"
    python = runner / "troth" / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    if not python.exists():  # stands for the environment that the first step makes
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
    files = {name: runner / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for file in files.values():
        file.write_text("")
    own = {}
    for name, value in step["env"].items():
        expression = re.fullmatch(r"\$\{\{ (\w+)\.(\w+) \}\}", value)
        assert expression is not None
        own[name] = str(ROOT) if expression[2] == "action_path" else given[expression[2]]
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=place,
        env={**os.environ, **own, "RUNNER_TEMP": str(runner), **{name: str(file) for name, file in files.items()}},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = files["GITHUB_OUTPUT"].read_text().splitlines()
    outputs = dict(line.split("=", 1) for line in lines)
    return done.returncode, done.stdout + done.stderr, files["GITHUB_STEP_SUMMARY"].read_text(), outputs


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    return folder


def test_no_expression_stands_in_a_script() -> None:
    runs = [step["run"] for step in ACTION["runs"]["steps"]]
    assert len(runs) == 2
    assert not [run for run in runs if "${{" in run]
    assert [step for step in ACTION["runs"]["steps"] if "uses" in step] == []  # nobody else's code is fetched
    named = {
        match for step in ACTION["runs"]["steps"] for match in re.findall(r"inputs\.(\w+)", json.dumps(step["env"]))
    }
    assert named == set(ACTION["inputs"])


def test_supported_receipts_pass_and_are_told(place: Path) -> None:
    for name in ("run_a", "run_b"):
        laid(place / ".mentu" / "runs" / name, sealed())
    status, log, told, outputs = act(place)
    assert status == 0, log
    assert outputs["decision"] == "continue"
    assert [one["member"] for one in json.loads(outputs["results"])] == [".mentu/runs/run_a", ".mentu/runs/run_b"]
    assert told.count("| ✅ continue | supported | `done_checks_supported` |") == 2


@pytest.mark.parametrize(
    ("files", "decision"),
    [
        (lambda: sealed(contradicted()), "replan"),
        (lambda: sealed(open_run()), "escalate"),
        (lambda: sealed(edit=put("_type", "x")), "failed"),
        (dict, "failed"),
    ],
)
def test_anything_else_fails_the_job(files: Any, decision: str, place: Path) -> None:
    laid(place / ".mentu" / "runs" / "run_a", sealed())
    laid(place / ".mentu" / "runs" / "run_b", files())
    status, _, told, outputs = act(place)
    assert (status, outputs["decision"]) == (1, decision)
    assert "continue" in told


def test_no_receipt_is_no_success(place: Path) -> None:
    status, log, told, outputs = act(place)
    assert (status, outputs["decision"], json.loads(outputs["results"])) == (1, "failed", [])
    assert "nothing is known" in log
    assert "nothing is known" in told
    assert act(place, folders="missing")[0] == 1


@pytest.mark.parametrize("name", sorted({*ACTION["inputs"]} - {"python"}))
def test_a_hostile_input_is_one_value(name: str, place: Path) -> None:
    laid(place / ".mentu" / "runs" / "run_a", sealed())
    status, log, told, outputs = act(place, **{name: HOSTILE})
    assert (status, outputs["decision"]) == (1, "failed")
    assert not list(place.rglob("pwned*"))
    assert not re.search(r"^\s*::", log, re.MULTILINE)
    assert "Traceback" not in log
    assert set(outputs) == {"decision", "results"}
    assert "$(touch" not in told.replace("`", "") or name == "folders"


def test_a_hostile_folder_and_modules_beside_it(place: Path) -> None:
    folder = "run_`x`|<img src=x>\n::error::y"
    laid(place / folder, sealed())
    for module in ("json.py", "troth/__init__.py", "glob.py"):  # what lies in the checkout is not imported
        (place / module).parent.mkdir(exist_ok=True)
        (place / module).write_text("raise SystemExit(0)\n")
    status, log, told, outputs = act(place, folders="run_*")
    assert (status, outputs["decision"]) == (0, "continue"), log
    assert not re.search(r"::error", log)
    (row,) = [line for line in told.splitlines() if "run_" in line]
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert json.loads(outputs["results"])[0]["member"] == folder


def test_options_are_words_of_their_own() -> None:
    given = {"TROTH_TABLE": "a b", "TROTH_KEYS": "k1\n\n --json\n", "TROTH_QUORUM": "", "TROTH_THRESHOLD": "2"}
    assert options_of(given) == ["--key=k1", "--key=--json", "--table=a b", "--threshold=2"]
    given = {"TROTH_IDENTITIES": "a@b\nc@d", "TROTH_ISSUERS": "u", "TROTH_SIGNERS": "s", "TROTH_TRUSTED_ROOT": "r r"}
    assert options_of(given) == [
        "--certificate-identity=a@b",
        "--certificate-identity=c@d",
        "--certificate-oidc-issuer=u",
        "--signers=s",
        "--trusted-root=r r",
    ]


@pytest.mark.slow
def test_identities_are_asked_for(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("sigstore", reason="the extra `sigstore` is not installed")
    from support.sigstore_instance import LOGIN, WORKFLOW, Instance

    folder = laid(place / ".mentu" / "runs" / "run_a", sealed())
    instance = Instance(tmp_path / "instance")
    try:
        bundle = instance.bundle((folder / "receipt.json").read_bytes())
        stranger = instance.bundle((folder / "receipt.json").read_bytes(), "mallory@example.com")
    finally:
        instance.close()
    asked = {"identities": f"{WORKFLOW}\nsomebody@example.com", "issuers": LOGIN}
    asked |= {"trusted_root": str(instance.trusted_root)}
    for beside, reason in ((None, "E_BUNDLE_MISSING"), (stranger, "E_ENVELOPE_UNVERIFIED"), (bundle, "")):
        if beside is not None:
            (folder / "receipt.sigstore.json").write_text(json.dumps(beside))
        status, log, told, outputs = act(place, **asked)
        assert (status, outputs["decision"]) == ((1, "failed") if reason else (0, "continue")), log
        assert reason in told
    (place / "signers.toml").write_text(f'[[approver]]\nidentity = "{WORKFLOW}"\nissuer = "{LOGIN}"\n')
    listed = {"signers": "signers.toml", "trusted_root": str(instance.trusted_root)}
    assert act(place, **listed)[0] == 0
    assert act(place, **listed, threshold="2")[0] == 1


@pytest.mark.parametrize("asked", ["", "TROTH_SIGNERS", "TROTH_IDENTITIES"])
def test_the_client_library_is_installed_where_it_is_needed(asked: str, tmp_path: Path) -> None:
    step = ACTION["runs"]["steps"][0]
    python = tmp_path / "troth" / "bin" / "python"
    python.parent.mkdir(parents=True)
    for file in (python, tmp_path / "python"):  # says what it was asked for
        file.write_text('#!/bin/sh\necho "$@"\n')
        file.chmod(0o755)
    given = {"TROTH_ACTION": str(ROOT), "TROTH_PYTHON": str(tmp_path / "python"), "RUNNER_TEMP": str(tmp_path)}
    blank = {name: "" for name in step["env"] if name not in given}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={"PATH": os.environ["PATH"], **blank, **given, **({asked: "a"} if asked else {})},
        capture_output=True,
        text=True,
        check=True,
    )
    file = Path(done.stdout.split()[-1])
    assert (file, file.exists()) == (ROOT / "locks" / ("sigstore.txt" if asked else "core.txt"), True)


@pytest.mark.parametrize("text", ["a`b", "a|b", "a\\|b", "", " ", "x\ny", "\x1b[31m", "`" * 5])
def test_a_cell_is_one_code_span(text: str) -> None:
    cell = code_span(text)
    assert (cell[0], cell[-1], cell.count("`")) == ("`", "`", 2)
    assert "\n" not in cell
    assert not re.search(r"(?<!\\)\|", cell)
    assert len(summary([{"member": text, "decision": "none", "reason": text, "action": "failed"}]).splitlines()) == 7
    assert "::" not in log_line("::x ::: y")


@pytest.mark.slow
@pytest.mark.parametrize(("signers", "modules"), [("", "msgspec"), ("signers.toml", "msgspec, sigstore")])
def test_both_steps_in_an_environment_of_their_own(signers: str, modules: str, place: Path) -> None:
    runner = place.parent / "runner"
    runner.mkdir()
    (step,) = (step for step in ACTION["runs"]["steps"] if "TROTH_PYTHON" in step["env"])
    own = dict.fromkeys(step["env"], "") | {"TROTH_SIGNERS": signers}
    own |= {"TROTH_ACTION": str(ROOT), "TROTH_PYTHON": sys.executable, "RUNNER_TEMP": str(runner)}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=place,
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 and "HASHES" not in done.stderr.upper():
        pytest.skip(f"no package index can be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    assert subprocess.run([runner / "troth/bin/python", "-c", f"import {modules}"], check=False).returncode == 0
    laid(place / ".mentu" / "runs" / "run_a", sealed())
    status, log, told, outputs = act(place)
    assert (status, outputs["decision"]) == (0, "continue"), log
    assert "supported" in told
