"""The words check: the tree is clean, each rule catches its cheat, and each has an honest twin."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_text", ROOT / "scripts" / "check_text.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_text"] = module
    spec.loader.exec_module(module)
    return module


check_text = _load()

# Every bad line is put together here, so that this file is clean itself.
CASES = [
    ("a.md", "see https://" + "py" + "pi.org/simple", "registry", "see https://example.org/simple"),
    ("a.toml", 'url = "files.python' + 'hosted.org"', "registry", 'url = "files.example.org"'),
    ("src/a.py", 'ROOT = "/wo' + 'rk/main/src"', "path", 'ROOT = "/work/mainline"'),
    ("a.sh", "/tmp/ve" + "nv/bin/python", "path", ".venv/bin/python"),
    ("locks/core.txt", "--index" + "-url somewhere", "lock", "click==8.1.0 --hash=sha256:00"),
    ("src/a.py", "x = y  # type: ig" + "nore", "type exemption", "x = y  # type: ig" + "nore[arg-type]  # C: untyped"),
    ("src/a.py", "x = y  # type: ig" + "nore[arg-type]", "type exemption", "type ignored"),
    ("src/a.py", "x = y  # no" + "qa", "lint exemption", "x = y  # no" + "qa: S101 - narrows a type"),
    ("src/a.py", "x = y  # no" + "qa: S101", "lint exemption", "x = y  # no" + "qa: S101, S102 - narrows a type"),
    ("src/a.py", "# TO" + "DO: later", "undone", "# what is to do next is asked"),
    ("Makefile", "# FIX" + "ME", "undone", "# fixed"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "bad", "what", "good"), CASES)
def test_a_rule_catches_its_cheat_and_lets_its_twin_pass(name: str, bad: str, what: str, good: str) -> None:
    found = list(check_text.findings(name, f"first line\n{bad}\n"))
    assert len(found) == 1
    assert found[0].startswith(f"{name}:2: ")
    assert what in found[0]
    assert list(check_text.findings(name, f"first line\n{good}\n")) == []


def test_every_rule_has_a_case() -> None:
    for what, _, _ in check_text.RULES:
        assert any(word in what for _, _, word, _ in CASES), what


def test_the_tree_is_clean() -> None:
    names = check_text.tracked_files(ROOT)
    assert {"pyproject.toml", "src/troth/cli/main.py", "tests/project/test_text_rules.py"} <= set(names)
    found = [
        finding
        for name in names
        for finding in check_text.findings(name, (ROOT / name).read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []


def test_without_git_the_same_files_are_found(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text(".venv/\n*.pyc\n")
    for name in (".venv/a.py", ".git/config", "src/a.py", "src/a.pyc", "Makefile"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert check_text.tracked_files(tmp_path) == [".gitignore", "Makefile", "src/a.py"]
