"""What an agent bends, plants or takes away does not decide a grade: each cheat beside its honest twin."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from observer.grading import APP, BROKEN, CASE, PYTEST, TESTS, UNITTEST, Ground, ground, output, results, why
from support.observing import needs_observer
from troth.core.digests import EMPTY, sha256_hex
from troth.core.errors import Refused
from troth.observer.protected import Entry

__all__ = ["ground"]
pytestmark = [needs_observer, pytest.mark.observer]

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
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    assert subprocess.run([sys.executable, "suite.py"], cwd=ground.final, env=clean, check=False).returncode == 0
    times = tool.stat()
    tool.write_text("WORD = 'BBBB'\n")
    os.utime(tool, ns=(times.st_atime_ns, times.st_mtime_ns))
    # The trap is real: in place, the old bytecode still answers.
    assert list((ground.final / "__pycache__").glob("tool.*.pyc"))
    assert subprocess.run([sys.executable, "suite.py"], cwd=ground.final, env=clean, check=False).returncode == 0
    assert results(ground.grade()) == {"c0": 1, "c1": 1, "c2": 1}


def test_bytecode_without_a_source_counts_as_it_was_sealed(ground: Ground, tmp_path: Path) -> None:
    """A module may be delivered so; one that came since then would be imported before anybody could read it."""

    def compiled(name: str, text: str) -> None:
        (tmp_path / "module.py").write_text(text)
        (ground.final / name).unlink(missing_ok=True)
        py_compile.compile(str(tmp_path / "module.py"), cfile=str(ground.final / name), doraise=True)

    compiled("vendored.pyc", "WORD = 'as sealed'\n")
    ground.write("suite.py", "import vendored, sys; sys.exit(vendored.WORD != 'as sealed')\n")
    (ground.final / "late.py").write_text("WORD = 1\n")
    ground.seal(("python3", "suite.py"), ("python3", "-c", "import late"), ("python3", "-I", "suite.py"))
    seal = {"bytecode": {"vendored.pyc": sha256_hex((ground.final / "vendored.pyc").read_bytes())}}
    made = ground.grade(seal=seal)
    assert results(made) == {"c0": 0, "c1": 0, "c2": 1}  # with -I Python does not look beside the script
    assert made.report["bytecode_dropped"] == []
    # The source of one is gone, another was exchanged, a third is a link.
    (ground.final / "late.py").unlink()
    compiled("late.pyc", "WORD = 1\n")
    compiled("vendored.pyc", "WORD = 'as sealed' or 1\n")
    (ground.final / "linked.pyc").symlink_to("late.pyc")
    made = ground.grade(seal=seal)
    assert results(made) == {"c0": 1, "c1": 1, "c2": 1}
    assert made.report["bytecode_dropped"] == ["late.pyc", "linked.pyc", "vendored.pyc"]


# --- a report in another's place ---


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


# --- names that come and go ---

FOR_A_MOMENT = "import os\nPLACE = {!r}\nopen(PLACE, 'w').close()\nos.remove(PLACE)\n"


@pytest.mark.parametrize("name", ["conftest.py", "tests/conftest.py", "tests/sub/x.py", "setup.cfg"])
def test_a_protected_name_that_stands_there_for_a_moment_is_seen(ground: Ground, name: str) -> None:
    """What a runner would load by itself is loaded once it is there; afterwards there is no trace of it."""
    ground.write("tests/sub/test_more.py", "def test_nothing(): pass\n")
    ground.seal(PYTEST, more=(Entry("setup.cfg", "directory", EMPTY),))
    ground.write("app.py", FOR_A_MOMENT.format(name) + APP)
    made = ground.grade()
    assert (results(made), why(made)) == ({}, "protected_written")
    assert made.report["commands"][0]["runs"][0]["protected_written"] == [name]
    # What the commands did so when the contract was sealed is their way.
    assert results(ground.grade(seal={"made": [name]})) == {"c0": 0}


def test_a_moment_does_not_hide_behind_more_names_than_the_kernel_keeps(ground: Ground) -> None:
    kept = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    flood = (
        "import os\nopen('one', 'w').close()\n"
        f"for _ in range({kept // 2 + 10}):\n    os.rename('one', 'two')\n    os.rename('two', 'one')\n"
    )
    ground.seal(PYTEST)
    ground.write("app.py", flood + FOR_A_MOMENT.format("conftest.py") + APP)
    made = ground.grade()
    assert (results(made), why(made)) == ({}, "protected_written")
    ground.write("app.py", flood.replace(str(kept // 2 + 10), "10") + APP)
    assert results(ground.grade()) == {"c0": 0}


def test_other_names_come_and_go_as_they_like(ground: Ground) -> None:
    """The twin: names beside and beneath the protected ones that are not protected, and a failure needs no doubt."""
    ground.entries[0] = Entry("tests", "directory", EMPTY, ("__pycache__", "out"))
    ground.write("tests/out/kept", "")
    ground.seal(PYTEST)
    places = ("x.py", "conftest.py.bak", "tests/out/conftest.py", "docs")
    ground.write("app.py", "".join(FOR_A_MOMENT.format(place) for place in places) + APP)
    assert results(ground.grade()) == {"c0": 0}
    ground.write("app.py", FOR_A_MOMENT.format("conftest.py") + BROKEN)
    assert results(ground.grade()) == {"c0": 1}
