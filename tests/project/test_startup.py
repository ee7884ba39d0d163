"""Start-up stays light: what the first commands a person types may not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = [
    "asyncio", "concurrent", "email", "http", "hypothesis", "importlib.metadata", "logging", "multiprocessing",
    "pydoc", "pytest", "rich", "sqlite3", "ssl", "tomllib", "unittest", "urllib.request", "xml",
]  # fmt: skip
"""Modules that cost milliseconds and that no command needs before it does something that uses them."""

HEAVY_FOR_HELP = [*HEAVY, "difflib", "hashlib", "msgspec", "orjson", "pathlib", "ruamel", "subprocess", "tempfile"]
"""What is fine for a command at work (a workspace's config.yaml is read with ruamel), and not for telling its name."""

PROBE = """
import contextlib, io, json, sys
from troth.cli.main import main
with contextlib.redirect_stdout(io.StringIO()) as said:
    status = main(json.loads(sys.argv[1]))
print(json.dumps({"status": status, "said": said.getvalue(), "modules": sorted(sys.modules)}))
"""


def run_in_fresh_python(arguments: list[str], cwd: Path) -> tuple[int, str, set[str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "TROTH_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(arguments)],
        cwd=cwd, env=environment, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["status"], answer["said"], set(answer["modules"])


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_naming_the_commands_imports_none_of_them(arguments: list[str], tmp_path: Path) -> None:
    status, said, modules = run_in_fresh_python(arguments, tmp_path)
    assert status == 0
    assert "troth" in said
    assert "click" in modules  # the probe does see what is imported
    assert modules & set(HEAVY_FOR_HELP) == set()
    ours = {name for name in modules if name.startswith("troth.") and not name.startswith("troth.core")}
    assert ours == {"troth.cli", "troth.cli.main", "troth.cli.answer", "troth.cli.lazy"}


def test_status_of_a_small_ledger_imports_nothing_heavy(tmp_path: Path) -> None:
    status, said, _ = run_in_fresh_python(["init"], tmp_path)
    assert status == 0, said
    status, said, modules = run_in_fresh_python(["status"], tmp_path)
    assert status == 0, said
    assert "troth.ledger" in modules
    assert modules & set(HEAVY) == set()
