"""Every mechanism of the table through `troth run`: the cheat comes to nothing, its honest twin is supported."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from redteam.mechanisms import FAILED, MECHANISMS, START, SUPPORTED, Mechanism
from support.observing import needs_observer
from support.project import CONTRACT, FILES, Project, lay_out

pytestmark = [needs_observer, pytest.mark.observer]

LIMITS = "\n[limits]\nseconds = 60\nprocesses = 64\nmemory_mb = 1024\noutput_mb = 1\nfile_mb = 64\n"
RUNNERS = {"unittest": '"-m", "unittest", "-q", "tests.test_app"', "pytest": '"-m", "pytest", "-q", "tests"'}


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One project for each runner, sealed once; every agent works on a copy."""
    found = {}
    for runner, words in RUNNERS.items():
        found[runner] = tmp_path_factory.mktemp(f"redteam-{runner}") / "project"
        found[runner].mkdir()
        lay_out(found[runner], CONTRACT.replace(RUNNERS["unittest"], words).replace("max = 4", "max = 1") + LIMITS)
    return found


def outcome(sealed: dict[str, Path], place: Path, mechanism: Mechanism, script: str) -> dict[str, Any]:
    """Let an agent work on a copy of the project and return the answer of `troth run`."""
    if mechanism.needs is not None and shutil.which(mechanism.needs) is None:
        pytest.skip(f"needs {mechanism.needs}")
    root = place / "project"
    subprocess.run(["cp", "-a", str(sealed[mechanism.suite]), str(root)], check=True)
    project = Project(root, root / ".mentu" / "contracts" / "double")
    words = RUNNERS[mechanism.suite].replace('"', "").split(", ")
    start = START + f"SUITE = {['python3', *words]!r}\n"
    answer = project.run(None, start + script)
    assert answer.exit in (0, 1, 3), answer
    result: dict[str, Any] = answer.json
    assert project.troth("receipt", "check", result["folder"], "--json").json["receipt"] == {"verdict": "valid"}
    return {**result, "printed": answer.err}


def verdict(result: dict[str, Any]) -> tuple[str, str]:
    return result["done"]["decision"], result["done"]["reason"]


def _cases() -> list[Any]:
    return [
        pytest.param(one, id=one.name.replace(" ", "-"), marks=() if one.fast else pytest.mark.slow)
        for one in MECHANISMS
    ]  # fmt: skip


@pytest.mark.parametrize("mechanism", _cases())
def test_the_cheat_comes_to_nothing(sealed: dict[str, Path], tmp_path: Path, mechanism: Mechanism) -> None:
    result = outcome(sealed, tmp_path, mechanism, mechanism.cheat)
    said = "\n".join([result["sentence"], *result["notes"]])
    assert verdict(result) == mechanism.verdict, said
    assert "GOT THERE" not in result["printed"]
    if mechanism.told is not None:
        assert mechanism.told in said
    if mechanism.sensed is not None:
        sensors = json.loads((Path(result["folder"]) / "launch-receipt.json").read_text())["sensors"]
        assert mechanism.sensed in json.dumps(sensors)


@pytest.mark.parametrize("mechanism", _cases())
def test_its_honest_twin_is_supported(sealed: dict[str, Path], tmp_path: Path, mechanism: Mechanism) -> None:
    result = outcome(sealed, tmp_path, mechanism, mechanism.twin)
    assert verdict(result) == SUPPORTED, "\n".join([result["sentence"], *result["notes"]])


OUTSIDE = (
    "import subprocess, sys\n"
    "words = [sys.executable, '-c', 'from src import app; print(app.double(2))']\n"
    "sys.exit(subprocess.run(words, capture_output=True, text=True).stdout != '4\\n')\n"
)
"""An acceptance that judges the program by what it prints, in a process that does not load it."""


@pytest.mark.slow
def test_what_judges_from_outside_is_not_replaced_from_within(tmp_path: Path) -> None:
    (mechanism,) = (one for one in MECHANISMS if one.name == "pytest from within")
    root = tmp_path / "sealed" / "project"
    root.mkdir(parents=True)
    second = '[[acceptance]]\nid = "outside"\nargv = ["python3", "tests/outside.py"]\n\n[adequacy]'
    contract = CONTRACT.replace(RUNNERS["unittest"], RUNNERS["pytest"]).replace("max = 4", "max = 1")
    lay_out(root, contract.replace("[adequacy]", second), {**FILES, "tests/outside.py": OUTSIDE})
    for script, expected in ((mechanism.cheat, FAILED), (mechanism.twin, SUPPORTED)):
        place = tmp_path / expected[0]
        place.mkdir()
        assert verdict(outcome({"pytest": root}, place, mechanism, script)) == expected


def test_every_mechanism_stands_once() -> None:
    names = [one.name for one in MECHANISMS]
    assert len(set(names)) == len(names) >= 40
    assert all(one.does and one.cheat != one.twin for one in MECHANISMS)
