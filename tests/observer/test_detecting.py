"""What a project's files propose, and that looking at them does no harm, whatever they are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from troth.observer.contract_source import parse_source
from troth.observer.detecting import MOST_FILES, Detected, Proposed, detect
from troth.observer.project import MAX_TEXT, look
from troth.observer.proposal import parsed, proposed_id, render, toml_string

PYTEST = ("python", "-m", "pytest", "-q")
UNITTEST = ("python", "-m", "unittest", "discover", "-q")
CASE = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
PLAIN = "def test_a():\n    assert True\n"


def made(root: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def found(root: Path, files: Mapping[str, str]) -> Detected:
    return detect(look(made(root, files)))


def commands(detected: Detected) -> dict[str, tuple[str, ...]]:
    return {item.what: item.argv for item in detected.of("command")}


def paths(detected: Detected, kind: str = "protect") -> list[str]:
    return [item.what for item in detected.proposed if item.kind == kind]


RECOGNISED: dict[str, tuple[dict[str, str], dict[str, tuple[str, ...]]]] = {
    "pytest by its table": (
        {"pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n', "tests/test_a.py": CASE},
        {"pytest": (*PYTEST, "tests")},
    ),
    "pytest by its new table": (
        {"pyproject.toml": '[tool.pytest]\ntestpaths = ["checks"]\n', "checks/test_a.py": CASE},
        {"pytest": (*PYTEST, "checks")},
    ),
    "pytest by pytest.ini": (
        {"pytest.ini": "[pytest]\ntestpaths = ./one/ two gone\n", "one/test_a.py": CASE, "two/test_b.py": CASE},
        {"pytest": (*PYTEST, "one", "two")},
    ),
    "pytest by setup.cfg": ({"setup.cfg": "[tool:pytest]\n", "test/test_a.py": CASE}, {"pytest": (*PYTEST, "test")}),
    "pytest by tox.ini": ({"tox.ini": "[pytest]\n", "test_a.py": CASE}, {"pytest": PYTEST}),
    "pytest by conftest": ({"tests/conftest.py": "", "tests/test_a.py": CASE}, {"pytest": (*PYTEST, "tests")}),
    "pytest by its tests": ({"tests/test_a.py": PLAIN}, {"pytest": (*PYTEST, "tests")}),
    "setup.cfg of something else": ({"setup.cfg": "[flake8]\n", "test_a.py": CASE}, {"unittest": UNITTEST}),
    "unittest": ({"tests/test_a.py": CASE}, {"unittest": (*UNITTEST, "-s", "tests")}),
    "unittest in a package": (
        {"tests/__init__.py": "", "tests/test_a.py": CASE},
        {"unittest": (*UNITTEST, "-s", "tests", "-t", ".")},
    ),
    "npm": ({"package.json": '{"scripts": {"test": "node --test"}}'}, {"npm": ("npm", "test")}),
    "pnpm": ({"package.json": '{"scripts": {"test": "vitest"}}', "pnpm-lock.yaml": ""}, {"pnpm": ("pnpm", "test")}),
    "npm's own words": ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, {}),
    "npm without a script": ({"package.json": '{"scripts": {"test": 7}}'}, {}),
    "cargo": ({"Cargo.toml": "[package]\n"}, {"cargo": ("cargo", "test", "--quiet", "--offline")}),
    "cargo with a lock": (
        {"Cargo.toml": "[package]\n", "Cargo.lock": ""},
        {"cargo": ("cargo", "test", "--quiet", "--offline", "--locked")},
    ),
    "go": ({"go.mod": "module a\n", "a_test.go": ""}, {"go": ("go", "test", "-json", "./...")}),
    "make": ({"Makefile": "all:\n\ntest: all\n\t./run\n"}, {"make": ("make", "test")}),
    "make check": ({"GNUmakefile": "check::\n\t./run\n"}, {"make": ("make", "check")}),
    "a variable is no rule": ({"Makefile": "test := 1\ncheck:=2\ntests ::= 3\ntest :::= 4\n"}, {}),
    "make beside another": ({"Makefile": "test:\n\tpytest\n", "test_a.py": PLAIN}, {"pytest": PYTEST}),
    "two runners": (
        {"package.json": '{"scripts": {"test": "jest"}}', "test_a.py": PLAIN},
        {"pytest": PYTEST, "npm": ("npm", "test")},
    ),
    "nothing": ({"README": "run pytest\n"}, {}),
}


@pytest.mark.parametrize("name", RECOGNISED)
def test_runners_are_recognised_by_their_files(name: str, tmp_path: Path) -> None:
    files, wanted = RECOGNISED[name]
    detected = found(tmp_path, files)
    assert commands(detected) == wanted
    assert all(item.why for item in detected.proposed)
    assert wanted or any("no runner was recognised" in line for line in detected.told)


def test_what_decides_the_tests_is_protected(tmp_path: Path) -> None:
    detected = found(
        tmp_path,
        {
            "pyproject.toml": "[tool.pytest.ini_options]\n",
            "src/app/core.py": "",
            "src/app/tests/test_in.py": PLAIN,
            "tests/unit/test_a.py": PLAIN,
            "tests/conftest.py": "",
            "conftest.py": "",
            "tools/test_tool.py": PLAIN,
            ".github/workflows/ci.yml": "",
            "node_modules/x/test/test_x.py": PLAIN,
            ".git/tests/a": "",
            "Makefile": "test:\n",
        },
    )
    assert sorted(paths(detected)) == sorted(
        ["tests", "src/app/tests", "conftest.py", "tools/test_tool.py", "pyproject.toml", ".github"]
    )
    assert paths(detected, "absent") == ["src/sitecustomize.py", "src/usercustomize.py", "src/conftest.py"]
    assert any("Makefile has a rule for test" in line for line in detected.told)


def test_what_a_compiler_would_take_up_is_kept_absent_or_as_it_is(tmp_path: Path) -> None:
    bare = found(tmp_path / "a", {"go.mod": "module a\n", "Cargo.toml": "[package]\n"})
    loaded = [".cargo", "build.rs", "go.work", "rust-toolchain", "rust-toolchain.toml", "vendor"]
    assert sorted(paths(bare, "absent")) == loaded
    files = ("go.mod", "Cargo.toml", ".cargo/config.toml", "vendor/modules.txt", "vendor/a/a_test.go")
    full = found(tmp_path / "b", dict.fromkeys(files, ""))
    assert sorted(paths(full)) == [".cargo", "Cargo.toml", "go.mod", "vendor"]
    assert not {".cargo", "vendor"} & set(paths(full, "absent"))


def test_a_project_of_its_own_below_is_named(tmp_path: Path) -> None:
    detected = found(tmp_path, {"web/package.json": "{}", "lib/go.mod": ""})
    assert any("lib (go.mod), web (package.json)" in line for line in detected.told)


def test_an_environment_in_the_project_is_the_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to("/usr/bin/python3")
    (tmp_path / ".venv/pyvenv.cfg").write_text("")
    assert commands(found(tmp_path, {"test_a.py": PLAIN}))["pytest"][0] == ".venv/bin/python"


# --- files that mean harm ---

NAMES = [
    'tests"]\nargv = ["rm", "-rf", "/"]\n[x',
    "tests\\",
    "te\x1b[31mst_\x7f\u202e.py",
    "'''\"\"\"",
    "# comment\n[[acceptance]]",
    "\x9b2J\r\n",
    "-rf",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_bend_no_proposal(name: str, tmp_path: Path) -> None:
    detected = found(tmp_path, {f"{name}/tests/test_a.py": PLAIN, f"{name}/conftest.py": ""})
    data = render(detected, contract_id=name, task=name)
    source = parsed(data, "contract.toml")
    assert [item.path for item in source.protect] == [f"{name}/tests", f"{name}/conftest.py"]
    assert (source.contract_id, source.task) == (name, name)
    assert [command.argv for command in source.acceptance] == [PYTEST]
    assert all(line.isprintable() for line in data.decode().split("\n"))


@given(st.text(min_size=1))
@example("\ud800")
@example("\x00\x7f\x85\u2028\U000e0001\\\"'")
def test_any_text_is_one_string_of_toml(text: str) -> None:
    written = toml_string(text)
    assert written.isprintable()
    item = Proposed("command", "c", text, ("x", text.replace("\0", "")))
    absent = Proposed("absent", "a/b", text)
    source = parse_source(render(Detected((item, absent), (text,)), contract_id=text), "f")
    whole = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    assert source.contract_id == whole
    assert source.acceptance[0].argv == ("x", whole.replace("\0", ""))
    assert source.must_not_appear == ("a/b",)


def test_links_are_named_and_not_followed(tmp_path: Path) -> None:
    outside = made(tmp_path / "outside", {"tests/test_a.py": PLAIN, "package.json": '{"scripts": {"test": "x"}}'})
    root = tmp_path / "in"
    root.mkdir()
    (root / "tests").symlink_to(outside / "tests")
    (root / "package.json").symlink_to(outside / "package.json")
    (root / "loop").symlink_to(".")
    detected = found(root, {"a.py": ""})
    assert not detected.proposed
    assert any("'tests' is a symbolic link" in line for line in detected.told)


def test_a_huge_settings_file_is_not_read(tmp_path: Path) -> None:
    for name in ("package.json", "pyproject.toml", "Makefile", "setup.cfg"):
        (tmp_path / name).write_bytes(b"")
        os.truncate(tmp_path / name, 100 << 20)
    detected = detect(look(tmp_path))
    assert commands(detected) == {}
    assert sum("is too large" in line for line in detected.told) == 4
    # One that is as large as may be is read.
    text = '{"scripts": {"test": "x"}}'
    (tmp_path / "package.json").write_text(text + " " * (MAX_TEXT - len(text)))
    assert commands(detect(look(tmp_path))) == {"npm": ("npm", "test")}


MALFORMED = {
    "package.json": ["{", "[" * 100_000, '{"scripts": []}', '{"scripts": {"test": ["x"]}}', "7", "\ufeff{}"],
    "pyproject.toml": ["[", "a = " + "[" * 5000, "tool = 3", "[tool]\npytest = 5", "[tool.pytest]\nini_options = 2"],
    "setup.cfg": ["[tool:pytest\n", "x", "[a]\n[a]\nb\n b\n"],
    "Cargo.toml": ["["],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in MALFORMED.items() for text in texts])
def test_malformed_settings_end_in_words(name: str, text: str, tmp_path: Path) -> None:
    detected = found(tmp_path, {name: text, "test_a.py": PLAIN})
    assert commands(detected)["pytest"] == PYTEST
    assert "npm" not in commands(detected)


def test_pipes_and_names_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "package.json")
    os.mkdir(os.fsencode(tmp_path) + b"/tests\xff")
    made(tmp_path, {"tests*/test_a.py": PLAIN, "test_b.py": PLAIN})
    detected = detect(look(tmp_path))
    assert paths(detected) == ["test_b.py"]
    assert any("2 names cannot stand in a contract" in line for line in detected.told)


def test_reading_a_makefile_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    text = f"X := $(shell touch {mark})\n$(eval $(shell touch {mark}))\ninclude $(shell touch {mark})\ntest:\n\ttrue\n"
    assert commands(found(tmp_path, {"Makefile": text})) == {"make": ("make", "test")}
    assert not mark.exists()


def test_very_many_test_files_are_cut_and_told(tmp_path: Path) -> None:
    detected = found(tmp_path, {f"pkg/a{index}_test.go": "" for index in range(MOST_FILES + 5)} | {"go.mod": ""})
    assert len([path for path in paths(detected) if path.endswith("_test.go")]) == MOST_FILES
    assert any("305 test files" in line for line in detected.told)


def test_ids_are_harmless_names(tmp_path: Path) -> None:
    assert proposed_id(Path("/a/shop")) == "shop"
    assert "/" not in proposed_id(Path("/a/x y\n"))
    assert proposed_id(Path("/"))


def test_a_proposal_without_a_command_shows_where_one_goes(tmp_path: Path) -> None:
    text = render(found(tmp_path, {"tests/a": ""}), contract_id="a").decode()
    assert "# [[acceptance]]" in text
    assert "\n[[acceptance]]" not in text
