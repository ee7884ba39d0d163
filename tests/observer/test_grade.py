"""Grading real trees in a real sandbox: each cheat beside its honest twin."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.observing import needs_observer
from troth.core.canonical import record_bytes
from troth.core.digests import EMPTY, sha256_hex
from troth.core.errors import Refused
from troth.observer.contract_source import RunLimits
from troth.observer.grade import Grade, grade
from troth.observer.protected import Entry, directory_digest
from troth.observer.tree import copy_tree, snapshot
from troth.receipts import records
from troth.receipts.strict import parse

pytestmark = [needs_observer, pytest.mark.observer]

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


def test_an_honest_tree_gets_a_whole_record(ground: Ground) -> None:
    ground.seal(UNITTEST, PYTEST)
    made = ground.grade(producer="a-verifier")
    assert json.loads(made.record) == {
        "schema_version": "probity-acceptance-grade/v1",
        "claim_id": "com_1",
        "invocation_id": "run_1",
        "producer": "a-verifier",
        "vantage": "independent",
        "witness_scope": "PEER",
        "contract_sha256": sha256_hex(ground.contract),
        "tree_sha256": snapshot(ground.final).digest,
        "results": [
            {"id": "c0", "argv": list(UNITTEST), "exit": 0},
            {"id": "c1", "argv": list(PYTEST), "exit": 0},
        ],
    }
    assert [command["tests"]["passed"] for command in made.report["commands"]] == [2, 2]
    assert [command["tests"]["source"] for command in made.report["commands"]] == ["report", "report"]
    assert made.report["put_back"] == []


def test_a_failing_test_is_a_result(ground: Ground) -> None:
    ground.seal(UNITTEST, PYTEST)
    ground.write("app.py", BROKEN)
    made = ground.grade()
    assert results(made) == {"c0": 1, "c1": 1}
    assert made.report["commands"][1]["runs"][0]["failing"] == ["tests.test_app.T::test_two"]


def test_the_isolation_report_has_exactly_its_members(ground: Ground) -> None:
    ground.seal(UNITTEST)
    found = ground.grade(limits=RunLimits(seconds=7, processes=33), repeats=1).isolation
    assert set(found) == {
        "contract_sha256", "network", "root", "uid", "capabilities", "reset_paths", "environment", "limits",
        "interpreter", "repeats",
    }  # fmt: skip
    assert (found["network"], found["root"], found["capabilities"]) == ("none", "read_only", "none")
    assert found["contract_sha256"] == sha256_hex(ground.contract)
    assert found["reset_paths"] == ["conftest.py", "tests"]
    assert (found["limits"]["seconds"], found["limits"]["processes"]) == (7, 33)
    assert set(found["limits"]["enforced_by"]) == {
        "seconds", "memory", "file", "written", "output", "processes",
    }  # fmt: skip
    interpreter = found["interpreter"]
    assert sha256_hex(Path(interpreter["path"]).read_bytes()) == interpreter["sha256"]
    assert "PATH" in found["environment"]


def test_what_the_isolation_report_says_is_so(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hush")
    probe = (
        "import os, socket\n"
        "facts = [os.getuid(), sorted(os.environ), open('/proc/self/status').read().split('CapEff:')[1].split()[0]]\n"
        "for path in ('/usr/x', '/x', '/etc/x'):\n"
        "    try: open(path, 'w'); facts.append('WROTE ' + path)\n"
        "    except OSError: pass\n"
        "try: socket.create_connection(('192.0.2.1', 80), 1); facts.append('CONNECTED')\n"
        "except OSError: pass\n"
        f"print(facts, os.listdir('/home/agent'), os.path.exists({str(tmp_path / 'near')!r}))\n"
    )
    (tmp_path / "near").write_text("beside the workspace, in the host's own temporary folder\n")
    ground.seal(("python3", "-c", probe))
    made = ground.grade()
    said = output(made)
    assert results(made) == {"c0": 0}
    assert said.startswith("[1000, ")
    assert "'0000000000000000'" in said
    assert "WROTE" not in said
    assert "CONNECTED" not in said
    assert "A_SECRET" not in said
    for name in made.isolation["environment"]:
        assert f"'{name}'" in said
    assert said.rstrip().endswith("[] False")


def test_a_server_on_the_loopback_interface_is_found_by_its_names(ground: Ground) -> None:
    probe = (
        "import socket\n"
        "for name in ('localhost', '127.0.0.1', socket.gethostname()):\n"
        "    with socket.create_server((name, 0)) as server:\n"
        "        socket.create_connection((name, server.getsockname()[1]), 5).close()\n"
        "try: socket.getaddrinfo('host.example', 80); raise SystemExit(1)\n"
        "except OSError: pass\n"
    )
    ground.seal(("python3", "-c", probe))
    made = ground.grade()
    assert results(made) == {"c0": 0}, output(made)


# --- protected paths and planted files ---


@pytest.mark.parametrize("argv", [UNITTEST, PYTEST], ids=["unittest", "pytest"])
def test_a_bent_test_is_put_back(ground: Ground, argv: tuple[str, ...]) -> None:
    ground.seal(argv)
    ground.write("app.py", BROKEN)
    ground.write("tests/test_app.py", TESTS.replace("app.two(), 2", "app.two(), 3"))
    made = ground.grade()
    assert results(made) == {"c0": 1}
    assert made.report["put_back"] == ["tests/test_app.py"]


def test_skip_markers_do_not_reach_the_run_and_the_count_is_compared(ground: Ground) -> None:
    ground.seal(UNITTEST)
    sealing = {"commands": [{"id": "c0", "tests": {"executed": 2}, "passed": []}]}
    ground.write("app.py", BROKEN)
    ground.write("tests/test_app.py", TESTS.replace("    def test_two", "    @unittest.skip('x')\n    def test_two"))
    made = ground.grade(seal=sealing)
    assert results(made) == {"c0": 1}
    assert made.report["commands"][0]["against_sealed"]["fewer"] == 0


def test_a_suite_that_has_shrunk_is_told(ground: Ground) -> None:
    """Tests that nobody protects can be taken away; the report says how many fewer ran, and which."""
    ground.write("more/test_more.py", "def test_three(): pass\n\n\ndef test_four(): pass\n")
    ground.seal(("python3", "-m", "pytest", "-q", "more", "tests"))
    sealing = {
        "commands": [
            {
                "id": "c0",
                "tests": {"executed": 4},
                "passed": ["more.test_more::test_three", "more.test_more::test_four"],
            }
        ]
    }
    whole = ground.grade(seal=sealing).report["commands"][0]["against_sealed"]
    assert (whole["fewer"], whole["not_executed_now"]) == (0, [])
    ground.write("more/test_more.py", "def test_three(): pass\n")
    made = ground.grade(seal=sealing)
    assert results(made) == {"c0": 0}
    told = made.report["commands"][0]["against_sealed"]
    assert (told["fewer"], told["not_executed_now"]) == (1, ["more.test_more::test_four"])


HOOK = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


def test_a_new_conftest_beside_the_tests_is_not_loaded(ground: Ground) -> None:
    ground.seal(PYTEST)
    ground.write("app.py", BROKEN)
    ground.write("conftest.py", HOOK)
    ground.write("tests/conftest.py", HOOK)
    made = ground.grade()
    assert results(made) == {"c0": 1}
    assert made.report["put_back"] == ["conftest.py", "tests/conftest.py"]


def test_the_same_conftest_sealed_with_the_start_is_loaded(ground: Ground) -> None:
    """The twin: a hook that stood there when the contract was sealed is the contract's own."""
    ground.entries = [ground.entries[0], Entry("conftest.py", "file", EMPTY)]
    ground.write("conftest.py", HOOK)
    ground.seal(PYTEST)
    ground.write("app.py", BROKEN)
    assert results(ground.grade()) == {"c0": 0}


def test_a_conftest_that_the_sealed_start_has_against_the_contract_refuses(ground: Ground) -> None:
    ground.seal(PYTEST)
    (ground.start / "conftest.py").write_text(HOOK)
    with pytest.raises(Refused) as caught:
        ground.grade()
    assert caught.value.code == "E_START_DIFFERS"
    assert caught.value.detail == ["conftest.py"]


def test_planted_startup_files_do_nothing(ground: Ground) -> None:
    ground.seal(UNITTEST, more=(Entry("sitecustomize.py", "directory", EMPTY),))
    ground.write("app.py", BROKEN)
    exits = "import os\nos._exit(0)\n"
    for path in ("sitecustomize.py", "usercustomize.py", "site-packages/usercustomize.py"):
        ground.write(path, exits)
    for path in ("x.pth", "site-packages/x.pth", "lib/python3.11/site-packages/x.pth"):
        ground.write(path, "import os; os._exit(0)\n")
    assert results(ground.grade()) == {"c0": 1}


def test_planted_files_in_excluded_names_are_gone(ground: Ground) -> None:
    """A module planted below a name that the contract excludes is found by an import, unless it is reset."""
    ground.write("tests/test_app.py", "import sys; sys.path.insert(0, 'tests/__pycache__')\n" + TESTS)
    ground.seal(UNITTEST)
    ground.write("app.py", BROKEN)
    ground.write("tests/__pycache__/app.py", APP)
    made = ground.grade()
    assert results(made) == {"c0": 1}
    assert made.report["caches_dropped"] == ["tests/__pycache__"]


def test_what_an_earlier_run_left_where_nothing_stood_is_gone(ground: Ground) -> None:
    """A cache that the commands fill is excluded: what one run plants there would be the start of the next."""
    ground.entries[0] = Entry("tests", "directory", EMPTY, (".cache",))
    ground.write("tests/test_app.py", "import sys; sys.path.insert(0, 'tests/.cache')\n" + TESTS)
    ground.write("tests/.cache/app.py", APP)
    ground.seal(UNITTEST)
    ground.write("app.py", BROKEN)
    assert results(ground.grade()) == {"c0": 0}  # it stood there at sealing: what the start has is put back
    assert results(ground.grade(seal={"excludes_empty": {"tests": [".cache"]}})) == {"c0": 1}
    ground.write("app.py", APP + "open('tests/.cache/output', 'w').close()\n")  # the folder itself may be needed
    assert results(ground.grade(seal={"excludes_empty": {"tests": [".cache"]}})) == {"c0": 0}


def test_an_excluded_name_that_the_start_had_is_put_back(ground: Ground) -> None:
    """The twin: what an excluded folder held at the start is there, and not what the agent made of it."""
    ground.entries[0] = Entry("tests", "directory", EMPTY, ("golden",))
    ground.write("tests/golden/value", "2")
    ground.write(
        "tests/test_app.py", TESTS.replace("app.two(), 2", "app.two(), int(open('tests/golden/value').read())")
    )
    ground.seal(UNITTEST)
    assert results(ground.grade()) == {"c0": 0}
    ground.write("tests/golden/value", "3")
    assert results(ground.grade()) == {"c0": 0}
    ground.write("app.py", BROKEN)
    assert results(ground.grade()) == {"c0": 1}


def test_a_hard_link_alias_reaches_nothing(ground: Ground) -> None:
    ground.seal(UNITTEST)
    ground.write("app.py", BROKEN)
    os.link(ground.final / "tests" / "test_app.py", ground.final / "alias.py")
    (ground.final / "alias.py").write_text("pass\n")
    made = ground.grade()
    assert results(made) == {"c0": 1}
    assert made.report["put_back"] == ["tests/test_app.py"]


def _linked_folder(ground: Ground) -> None:
    shutil.move(ground.final / "tests", ground.final / "elsewhere")
    (ground.final / "elsewhere" / "test_app.py").write_text(CASE + "    def test_one(self): pass\n")
    (ground.final / "tests").symlink_to("elsewhere")


def _linked_file(ground: Ground) -> None:
    ground.write("easy.py", CASE + "    def test_one(self): pass\n")
    (ground.final / "tests" / "test_app.py").unlink()
    (ground.final / "tests" / "test_app.py").symlink_to("../easy.py")


def _no_folder(ground: Ground) -> None:
    shutil.rmtree(ground.final / "tests")
    ground.write("tests", "a file\n")


@pytest.mark.parametrize("spoil", [_linked_folder, _linked_file, _no_folder])
def test_links_and_files_in_the_place_of_tests_are_replaced(ground: Ground, spoil: Callable[[Ground], None]) -> None:
    ground.seal(UNITTEST)
    ground.write("app.py", BROKEN)
    spoil(ground)
    assert results(ground.grade()) == {"c0": 1}


def test_a_link_below_what_is_protected_that_is_as_it_was_is_not_told_as_put_back(ground: Ground) -> None:
    (ground.final / "tests" / "alias").symlink_to("test_app.py")
    ground.seal(UNITTEST)
    assert ground.grade().report["put_back"] == []
    (ground.final / "tests" / "alias").unlink()
    assert ground.grade().report["put_back"] == ["tests/alias"]
    (ground.final / "tests" / "alias").symlink_to("../app.py")
    assert ground.grade().report["put_back"] == ["tests/alias"]


def test_links_never_lead_a_reset_out_of_the_copy(ground: Ground, tmp_path: Path) -> None:
    """A protected name beneath a link of the agent's must not be put back, or removed, at the link's end."""
    outside = tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "conftest.py").write_text("keep me\n")
    ground.write("pkg/tests/t.py", "x = 1\n")
    ground.entries += [Entry("pkg/tests", "directory", EMPTY), Entry("pkg/conftest.py", "directory", EMPTY)]
    ground.seal(("python3", "-c", "import os; print(sorted(os.listdir('pkg')), os.path.islink('pkg'))"))
    shutil.rmtree(ground.final / "pkg")
    (ground.final / "pkg").symlink_to(outside)
    made = ground.grade()
    assert output(made) == "['tests'] False\n"
    assert sorted(os.listdir(outside)) == ["conftest.py", "sub"]


def test_tests_that_the_code_under_test_rewrites_while_it_runs(ground: Ground) -> None:
    """Code that mends the tests as they are collected passes its own tests; also when it puts them back afterwards."""
    ground.write(
        "tests/test_zz.py", "import unittest\nclass Z(unittest.TestCase):\n    def test_z(self): self.fail()\n"
    )
    argv = ("python3", "-m", "unittest", "-q", "tests.test_app", "tests.test_zz")
    ground.seal(argv)
    assert results(ground.grade()) == {"c0": 1}
    rewriting = (
        "import atexit, os\npath = 'tests/test_zz.py'\nold = open(path).read()\nkept = os.stat(path)\n"
        "open(path, 'w').write(old.replace('self.fail()', 'pass'))\n"
        "def back():\n    open(path, 'w').write(old)\n    os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))\n"
        "atexit.register(back)\n"
    )
    ground.write("app.py", APP + rewriting)
    made = ground.grade()
    assert (results(made), why(made)) == ({}, "protected_written")
    assert made.report["commands"][0]["runs"][0]["protected_written"] == ["tests/test_zz.py"]


def swapping(folder: str) -> str:
    """Code that works with a changed copy of a folder and then moves the untouched one back."""
    return (
        f"import atexit, os, shutil\nos.rename({folder!r}, 'away'); shutil.copytree('away', {folder!r})\n"
        "path = 'sub/tests/test_zz.py'\ntext = open(path).read().replace('self.fail()', 'pass')\n"
        "open(path, 'w').write(text)\n"
        f"def back():\n    shutil.rmtree({folder!r}); os.rename('away', {folder!r})\natexit.register(back)\n"
    )


@pytest.mark.parametrize("folder", ["sub", "sub/tests"])
def test_tests_before_whose_folder_another_stands_while_they_run(ground: Ground, folder: str) -> None:
    """Moving a folder touches no file in it, so that only the folder's own move can tell."""
    ground.write("sub/__init__.py", "")
    ground.write(
        "sub/tests/test_zz.py", "import unittest\nclass Z(unittest.TestCase):\n    def test_z(self): self.fail()\n"
    )
    argv = ("python3", "-m", "unittest", "-q", "tests.test_app", "sub.tests.test_zz")
    ground.seal(argv, more=(Entry("sub/tests", "directory", EMPTY),))
    # Making and removing a file beside the tests moves the folder's times, and is no move of it.
    ground.write("app.py", APP + "import os\nopen('sub/tests/new', 'w').close()\nos.unlink('sub/tests/new')\n")
    assert results(ground.grade()) == {"c0": 1}
    ground.write("app.py", APP + swapping(folder))
    made = ground.grade()
    assert (results(made), why(made)) == ({}, "protected_written")
    assert made.report["commands"][0]["runs"][0]["protected_written"] == [folder]


TOUCHES = (
    "import os, unittest\nclass Z(unittest.TestCase):\n    def test_z(self): os.utime('tests/page.html', (1, 1))\n"
)


def test_a_suite_that_sets_the_times_of_a_file_of_its_own(ground: Ground) -> None:
    """Sealing learns which; a grade then tells setting times from writing and putting back."""
    ground.write("tests/page.html", "page\n")
    ground.write("tests/test_zz.py", TOUCHES)
    ground.seal(("python3", "-m", "unittest", "-q", "tests.test_app", "tests.test_zz"))
    assert why(ground.grade()) == "protected_written"
    learnt = {"times_set": ["tests/page.html"]}
    assert results(ground.grade(seal=learnt)) == {"c0": 0}
    for body in (
        "open('tests/page.html', 'w').write('PAGE\\n'); open('tests/page.html', 'w').write('page\\n')",
        "os.rename('tests/page.html', 'x'); os.rename('x', 'tests/page.html')",
        "os.link('tests/page.html', 'x'); open('x', 'r+').write('PAGE\\n'); open('x', 'r+').write('page\\n')\n"
        "os.unlink('x')",
        "import mmap\nfile = open('tests/page.html', 'r+b'); there = mmap.mmap(file.fileno(), 5)\n"
        "there[0:4] = b'PAGE'; there[0:4] = b'page'",
        "os.utime('tests/test_zz.py', (1, 1))",
    ):
        ground.write("app.py", APP + "import os\n" + body + "\n")
        made = ground.grade(seal=learnt)
        assert (results(made), why(made)) == ({}, "protected_written"), body


FAKE = "#!/bin/sh\nexit 0\n"


@pytest.mark.parametrize("folder", ["bin", "."])
def test_a_program_in_the_workspace_does_not_take_the_runners_name(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """A search path that leads into the workspace, as an activated environment makes it, finds nothing unprotected."""
    place = str(ground.final / folder) if folder != "." else "."
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    ground.seal(UNITTEST)
    ground.write("app.py", BROKEN)
    for name in ("bin/python3", "python3"):
        ground.write(name, FAKE).chmod(0o755)
    assert results(ground.grade()) == {"c0": 1}


def test_a_program_that_the_contract_protects_is_found(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a tool that stood there when the contract was sealed is the contract's own."""
    monkeypatch.setenv("PATH", f"{ground.final / 'tools'}:{os.environ['PATH']}")
    ground.write("tools/own-check", FAKE).chmod(0o755)
    ground.seal(("own-check",), more=(Entry("tools", "directory", EMPTY),))
    assert results(ground.grade()) == {"c0": 0}


# --- stale bytecode ---


def test_stale_bytecode_does_not_decide(ground: Ground) -> None:
    ground.write("suite.py", "import tool, sys\nsys.exit(0 if tool.WORD == 'AAAA' else 1)\n")
    tool = ground.write("tool.py", "WORD = 'AAAA'\n")
    ground.seal(
        ("python3", "suite.py"),
        ("python3", "-B", "suite.py"),
        ("python3", "-I", "-c", "import sys; sys.path.insert(0, ''); import suite"),
    )
    assert results(ground.grade()) == {"c0": 0, "c1": 0, "c2": 0}
    import subprocess
    import sys

    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    assert subprocess.run([sys.executable, "suite.py"], cwd=ground.final, env=clean, check=False).returncode == 0
    times = tool.stat()
    tool.write_text("WORD = 'BBBB'\n")
    os.utime(tool, ns=(times.st_atime_ns, times.st_mtime_ns))
    # The trap is real: in place, the old bytecode still answers.
    assert list((ground.final / "__pycache__").glob("tool.*.pyc"))
    assert subprocess.run([sys.executable, "suite.py"], cwd=ground.final, env=clean, check=False).returncode == 0
    assert results(ground.grade()) == {"c0": 1, "c1": 1, "c2": 1}


# --- no result, and results ---


def test_a_syntax_error_is_a_failing_result(ground: Ground) -> None:
    ground.seal(PYTEST, UNITTEST)
    ground.write("app.py", "def one(:\n")
    made = ground.grade()
    assert results(made) == {"c0": 2, "c1": 1}
    assert made.report["commands"][0]["tests"]["executed"] == 0


SKIPPED = "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n"
NOTHING = {
    "none chosen": ((*PYTEST, "-k", "nosuch"), TESTS),
    "all skipped": (PYTEST, SKIPPED),
    "all expected to fail": (PYTEST, "import pytest\n@pytest.mark.xfail\ndef test_a(): assert 0\n"),
    "only collected": ((*PYTEST, "--collect-only"), TESTS),
    "own report, all skipped": ((*PYTEST, "--junitxml=/tmp/own.xml"), SKIPPED),
    "unittest, all skipped": (UNITTEST, CASE + "    @unittest.skip('x')\n    def test_a(self): pass\n"),
    "unittest, none there": (UNITTEST, "import unittest\n"),
    "gone at once": (PYTEST, "import os\nos._exit(0)\n"),
    "unittest, gone at once": (UNITTEST, "import os\nos._exit(0)\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING)
def test_where_no_test_ran_there_is_no_result(ground: Ground, name: str) -> None:
    argv, tests = NOTHING[name]
    ground.write("tests/test_app.py", tests)
    ground.seal(argv)
    made = ground.grade()
    assert results(made) == {}
    assert why(made) == "nothing_executed"
    assert made.report["commands"][0]["words"]
    assert made.report["commands"][0]["exit"] is None


def test_a_program_that_is_no_test_runner_is_judged_by_its_exit(ground: Ground) -> None:
    ground.seal(
        ("true",), ("sh", "-c", "exit 5"), ("sh", "-c", "kill -9 $$"), ("python3", "-c", "print('Ran 0 tests')")
    )
    made = ground.grade()
    assert results(made) == {"c0": 0, "c1": 5, "c2": -9, "c3": 0}
    assert made.report["commands"][0]["tests"] == {"executed": None, "passed": None, "source": "unknown"}


def test_runs_that_disagree_are_no_result_and_both_are_shown(ground: Ground) -> None:
    # A coin: the name of the report that is asked for differs at random from run to run.
    coin = "import os; raise SystemExit(int(os.environ['PYTEST_ADDOPTS'][-5], 16) % 2)"
    ground.seal(("python3", "-c", coin), ("true",))
    made = ground.grade(repeats=20)
    assert results(made) == {"c1": 0}
    assert why(made) == "runs_disagree"
    assert {run["exit"] for run in made.report["commands"][0]["runs"]} == {0, 1}
    assert len(made.report["commands"][1]["runs"]) == 20
    assert made.isolation["repeats"] == 20


def test_every_run_has_a_copy_of_its_own(ground: Ground) -> None:
    ground.seal(("sh", "-c", "test ! -e left && touch left tests/left"), ("sh", "-c", "test ! -e left"))
    made = ground.grade(repeats=2)
    assert [run["exit"] for command in made.report["commands"] for run in command["runs"]] == [0, 0, 0, 0]


def test_what_the_verifier_ends_is_no_result(ground: Ground) -> None:
    bomb = "import os, time\nfor _ in range(40):\n    os.fork() or (time.sleep(30), os._exit(0))\ntime.sleep(30)\n"
    ground.seal(("sleep", "30"), ("python3", "-c", bomb), ("no-such-program",))
    made = ground.grade(limits=RunLimits(seconds=1, processes=20))
    assert results(made) == {}
    assert why(made, 0) == "timed_out"
    assert why(made, 1) in ("too_many_processes", "timed_out")
    assert why(made, 2) == "not_started"


def test_limits_hold(ground: Ground) -> None:
    ground.seal(
        ("python3", "-c", "bytearray(600 << 20)"),
        ("python3", "-c", "open('big', 'wb').write(bytes(3 << 20))"),
        ("python3", "-c", "print('x' * 5_000_000)"),
    )
    small = RunLimits(seconds=20, memory_bytes=200 << 20, file_bytes=1 << 20, output_bytes=1 << 20)
    made = ground.grade(limits=small)
    found = results(made)
    if "control group" in made.isolation["limits"]["enforced_by"]["memory"]:
        assert (found.get("c0"), why(made, 0)) == (None, "out_of_memory")
    else:
        assert found["c0"] == 1
        assert "MemoryError" in output(made, 0)
    assert found["c1"] != 0
    assert found["c2"] == 0
    cut = made.report["commands"][2]["runs"][0]
    assert cut["output_cut"]
    assert cut["output_bytes"] == 5_000_001
    assert cut["output_sha256"] == sha256_hex(b"x" * 5_000_000 + b"\n")
    assert len(cut["output"]) < 100_000
    wide = ground.grade()
    assert results(wide) == {"c0": 0, "c1": 0, "c2": 0}


def test_what_a_command_leaves_running_is_ended_and_told(ground: Ground) -> None:
    ground.seal(("sh", "-c", "setsid sleep 60 & exit 0"), ("sh", "-c", "sleep 0.01 & wait"))
    made = ground.grade()
    assert results(made) == {"c0": 0, "c1": 0}
    runs = [command["runs"][0] for command in made.report["commands"]]
    assert [(run["left_running"], run["left_its_session"]) for run in runs] == [(["sleep"], 1), ([], 0)]
    assert max(run["seconds"] for run in runs) < 50


def test_a_script_that_names_no_interpreter_is_one_for_the_shell(ground: Ground) -> None:
    ground.write("check", "exit $1\n").chmod(0o755)
    ground.write("empty", "").chmod(0o644)
    ground.seal(("./check", "0"), ("./check", "4"), ("./empty",))
    made = ground.grade()
    assert results(made) == {"c0": 0, "c1": 4}
    assert why(made, 2) == "not_started"


def test_a_status_is_the_programs_own(ground: Ground) -> None:
    """What ends with 137 was not killed, and what prints the words of our own programs was started."""
    ground.seal(
        ("sh", "-c", "exit 137"), ("sh", "-c", "kill -9 $$"),
        ("sh", "-c", "echo 'bwrap: no'; exit 1"), ("sh", "-c", "false | true"),
    )  # fmt: skip
    assert results(ground.grade()) == {"c0": 137, "c1": -9, "c2": 1, "c3": 0}


def test_a_report_that_is_a_link_or_a_pipe_is_not_read(ground: Ground, tmp_path: Path) -> None:
    forged = tmp_path / "forged.xml"
    forged.write_text('<testsuite><testcase classname="a" name="b"/></testsuite>')
    kinds = {
        "link": f"os.symlink({str(forged)!r}, path)",
        "pipe": "os.mkfifo(path)",
        "folder": "os.mkdir(path)",
    }
    for kind, statement in kinds.items():
        folder = tmp_path / kind
        own = Ground(folder)
        own.write(
            "tests/test_app.py",
            "import os\npath = os.environ['PYTEST_ADDOPTS'].split('--junitxml=')[1].split()[0]\n"
            f"{statement}\nos._exit(0)\n",
        )
        own.seal(PYTEST)
        made = own.grade()
        assert (results(made), why(made)) == ({}, "nothing_executed"), kind


# --- what is graded ---


def test_another_tree_than_the_recorded_one_refuses(ground: Ground) -> None:
    ground.seal(("true",))
    digest = snapshot(ground.final).digest
    ground.write("late.py", "x = 1\n")
    with pytest.raises(Refused) as caught:
        ground.grade(tree_sha256=digest)
    assert caught.value.code == "E_GRADE_TREE_DIFFERS"


def test_a_start_that_is_not_the_sealed_one_refuses(ground: Ground) -> None:
    ground.seal(("true",))
    (ground.start / "tests" / "test_app.py").write_text("pass\n")
    with pytest.raises(Refused) as caught:
        ground.grade()
    assert caught.value.code == "E_START_DIFFERS"


def test_a_malformed_contract_refuses_by_its_own_code(ground: Ground) -> None:
    ground.seal(("true",))
    ground.contract = ground.contract.replace(b'"killed":1', b'"killed":9')
    with pytest.raises(Refused) as caught:
        ground.grade()
    assert caught.value.code == "contract_adequacy_overcount"


def test_the_copy_stands_at_the_path_it_is_told(ground: Ground) -> None:
    ground.seal(("pwd",))
    assert output(ground.grade()) == f"{ground.final}\n"
    assert output(ground.grade(inside="/somewhere/else")) == "/somewhere/else\n"


def test_git_and_the_ledger_are_not_in_the_copy_and_empty_folders_are(ground: Ground) -> None:
    ground.seal(("ls", "-A"))
    ground.write(".git/config", "x")
    ground.write(".mentu/ledger.jsonl", "x")
    (ground.final / "out").mkdir()
    assert output(ground.grade()).split() == ["app.py", "out", "tests"]
