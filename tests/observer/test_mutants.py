"""Mutations of source (pure laws), and what counts as killed (real runs)."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import troth
from support.observing import needs_observer
from troth.observer.commands import Bench, run_command
from troth.observer.contract_source import Acceptance, RunLimits
from troth.observer.copies import WorkCopy, copy_workspace
from troth.observer.mutants import Adequacy, Baseline, measure, mutable_files
from troth.observer.mutation import Mutation, is_real, mutations, spread
from troth.observer.tree import snapshot

# --- one rule at a time ---

RULES = {
    "a < b": ["a <= b"],
    "(a) >= (b)": ["(a) > (b)"],
    "a == b != c": ["a != b != c", "a == b == c"],
    "a is not b": ["a is b"],
    "a   in\tb": ["a   not in\tb"],
    "a + b * c": ["a - b * c", "a + b / c"],
    "a ** b": ["a * b"],
    "a and b or c": ["a or b or c", "a and b and c"],
    "not(a)": ["(a)"],
    "not a": ["a"],
    "f(0)": ["f(1)", "f((-1))"],
    "f(3)": ["f(4)", "f(2)"],
    "f(True)": ["f(False)"],
    "f(1.5)": ["f(2.5)"],
    "f('é')": ['f("")'],
    "f('')": ['f("x")'],
    "f(None)": [],
    "x if a else y": ["x if not (a) else y"],
    "f'{a + 1}'": [],
    "(a  # < no\n < b)": ["(a  # < no\n <= b)"],
}


@pytest.mark.parametrize("source", RULES)
def test_expressions_become(source: str) -> None:
    data = f"z = {source}\n".encode()
    found = [made.applied(data).decode()[4:-1] for made in mutations("a.py", data)]
    assert sorted(found) == sorted(RULES[source])


STATEMENTS = {
    "def f():\n    return 1\n": {"return None", "return 2", "return 0"},
    "if a:\n    b()\n": {"if not (a):", "    pass"},
    "while (a or\n       b): c()\n": {"while (not (a or", "while (a and", "pass"},
    "for x in y:\n    break\n": {"    continue"},
    "x += 1\n": {"x -= 1", "x += 2", "x += 0", "pass"},
    "a.b = c\n": {"pass"},
    "a = b\n": set(),
    "raise E\n": {"pass"},
    "def f():\n    '''doc'''\n    return None\n": set(),
    "__version__ = '1.0'\n": set(),
    "def f(a: 'int') -> 'str': pass\n": set(),
    "@d(1)\ndef f(): pass\n": set(),
    "if __name__ == '__main__':\n    main(1)\n": set(),
}


@pytest.mark.parametrize("source", STATEMENTS)
def test_statements_become(source: str) -> None:
    lines = set()
    for made in mutations("a.py", source.encode()):
        after = made.applied(source.encode()).decode().splitlines()
        lines |= set(after) - set(source.splitlines())
    for wanted in STATEMENTS[source]:
        assert any(wanted.strip() in line for line in lines), (wanted, lines)
    if not STATEMENTS[source]:
        assert lines == set()


def test_everything_outside_the_span_stays_byte_for_byte() -> None:
    data = "# ü\r\nx = 'é' if a<b else 2\r\nif (a or\r\n    b): z += 1\r\n".encode()
    made = mutations("a.py", data)
    assert len(made) > 5
    for mutation in made:
        after = mutation.applied(data)
        assert after.startswith(data[: mutation.start])
        assert after.endswith(data[mutation.end :])
        assert data[mutation.start : mutation.end].decode() == mutation.before
        assert mutation.line == data[: mutation.start].count(b"\n") + 1
        assert is_real(mutation, data)


def test_every_mutation_of_our_own_sources_compiles_and_differs() -> None:
    chosen = random.Random(7)
    files = sorted(Path(troth.__file__).parent.rglob("*.py"))
    checked = 0
    for path in chosen.sample(files, 12):
        data = path.read_bytes()
        found = mutations("m.py", data)
        for mutation in chosen.sample(found, min(8, len(found))):
            assert is_real(mutation, data), mutation
            checked += 1
    assert checked > 20


@pytest.mark.parametrize(
    "data", [b"", b"def", b"\xff", b"\xef\xbb\xbfx = 1\n", b"# coding: latin-1\nx = '\xe9'\n", b"x = 1\0\n", b"\t x\n"]
)
def test_files_that_cannot_be_read_have_none(data: bytes) -> None:
    assert mutations("a.py", data) == []


@given(st.text(alphabet="abc01'\"()[]{}:=<>+-*/%#\n\t \\é", max_size=60))
def test_any_text_is_answered(text: str) -> None:
    data = text.encode()
    for mutation in mutations("a.py", data):
        assert ast.parse(data) is not None
        assert mutation.applied(data) != data


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d"]),
        st.lists(st.integers(0, 50), max_size=6, unique=True),
        max_size=4,
    ),
    st.sets(st.sampled_from(["a", "c"])),
)
def test_spreading_takes_each_once_file_by_file(sites: dict[str, list[int]], first: set[str]) -> None:
    by_file = {path: [Mutation(path, 1, 1, "r", "", "x", at, at) for at in offsets] for path, offsets in sites.items()}
    order = list(spread(by_file, first))
    assert sorted(order, key=lambda m: (m.path, m.start)) == sorted(
        (m for made in by_file.values() for m in made), key=lambda m: (m.path, m.start)
    )
    assert order == list(spread(dict(reversed(by_file.items())), first))
    wanted = [path for path in by_file if path in first and by_file[path]]
    assert {mutation.path for mutation in order[: len(wanted)]} == set(wanted)


def test_which_files_may_be_mutated() -> None:
    files = [
        "src/a.py", "src/test_a.py", "src/a_test.py", "tests/helper.py", "src/tests/x.py", "setup.py", "conftest.py",
        "src/data.txt", ".venv/lib/x.py", "docs/conf.py", "acceptance/t.py", "a/_example/m.go", "a/testdata/m.go",
        "a/_off.go", "a/_a.py",
    ]  # fmt: skip
    covered = lambda name: name.startswith("acceptance/")  # noqa: E731 - one line says it
    assert mutable_files(files, protected=covered, inside=None) == ["a/_a.py", "src/a.py"]
    assert mutable_files(files, protected=covered, inside=("tests", "src/test_a.py", "acceptance")) == [
        "src/test_a.py",
        "tests/helper.py",
    ]


# --- real runs ---

observed = [needs_observer, pytest.mark.observer]

PROGRAM = '''\
def clamp(value, low, high):
    """Keep a value within its bounds."""
    if value < low:
        return low
    if value > high:
        return high
    return value


def unused(a, b):
    return a + b
'''
GOOD_TEST = """\
import unittest
from app import clamp

class T(unittest.TestCase):
    def test_clamp(self):
        self.assertEqual([clamp(x, 2, 5) for x in (1, 2, 3, 5, 6)], [2, 2, 3, 5, 5])
"""
EMPTY_TEST = "import unittest\nclass T(unittest.TestCase):\n    def test_nothing(self): pass\n"
SUITE = Acceptance("suite", ("python3", "-m", "unittest", "-q", "test_app"))


def _measure(folder: Path, tests: str, *commands: Acceptance, program: str = PROGRAM, limit: int = 40) -> Adequacy:
    source = folder / "source"
    source.mkdir()
    (source / "app.py").write_text(program)
    (source / "test_app.py").write_text(tests)
    copy_workspace(source, snapshot(source), folder / "base")
    bench = Bench(inside="/work", limits=RunLimits(seconds=30), scratch=folder)
    copy = WorkCopy.of(folder / "base", folder / "again")
    baselines = []
    for command in commands or (SUITE,):
        runs = []
        for _ in range(2):
            runs.append(run_command(bench, copy.place, command.argv))
            copy.restore()
        baselines.append(Baseline(command, tuple(runs)))
    pristine = snapshot(folder / "base")
    found = measure(bench, folder / "base", pristine, baselines, ["app.py"], limit=limit, budget=60)
    assert snapshot(folder / "base").files == pristine.files
    return found


class TestMeasuring:
    """Mutants that are really run."""

    pytestmark = observed

    def test_a_test_that_looks_kills_and_one_that_does_not_does_not(self, tmp_path: Path) -> None:
        (tmp_path / "good").mkdir()
        (tmp_path / "empty").mkdir()
        good = _measure(tmp_path / "good", GOOD_TEST)
        assert good.killed >= 3
        survived = {item.mutation.line for item in good.mutants if item.fate == "survived"}
        assert 11 in survived  # nobody tests `unused`
        assert {item.killed_by for item in good.mutants if item.fate == "killed"} == {"suite"}
        assert any(line.startswith("app.py:11: ") for line in good.as_json()["survived"])
        empty = _measure(tmp_path / "empty", EMPTY_TEST, limit=5)
        assert (len(empty.mutants), empty.killed) == (5, 0)

    def test_nothing_that_passes_means_no_mutants_and_a_reason(self, tmp_path: Path) -> None:
        found = _measure(tmp_path, GOOD_TEST, program=PROGRAM.replace("value > high", "value > low"))
        assert (found.mutants, found.killed) == ((), 0)
        assert "nothing passes" in str(found.reason)

    def test_nothing_executed_means_no_mutants_either(self, tmp_path: Path) -> None:
        skipped = GOOD_TEST.replace("    def test", "    @unittest.skip('later')\n    def test")
        found = _measure(tmp_path, skipped)
        assert found.killed == 0
        assert "executes a test" in str(found.reason)

    def test_where_tests_are_reported_one_by_one_a_passing_one_kills_under_a_failing_command(
        self, tmp_path: Path
    ) -> None:
        tests = (
            "from app import clamp, unused\n"
            "def test_low(): assert clamp(1, 2, 5) == 2\n"
            "def test_todo(): assert unused(1, 2) == 4\n"
        )
        command = Acceptance("suite", ("python3", "-m", "pytest", "-q", "test_app.py"))
        found = _measure(tmp_path, tests, command, limit=6)
        assert found.mutants
        for item in found.mutants:
            # Only the test that passed can kill: what `unused` does is never a kill.
            assert not (item.mutation.line == 11 and item.fate == "killed")
        assert found.killed >= 1

    def test_a_mutant_that_never_ends_is_killed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("troth.observer.mutants._SHORTEST_ALLOWED", 1.0)
        monkeypatch.setattr("troth.observer.mutants._allowed", lambda bench, base: 1.0)
        program = "def clamp(v, a, b):\n    while v > 0:\n        v -= 1\n    return v\n"
        tests = (
            "import unittest\nfrom app import clamp\n"
            "class T(unittest.TestCase):\n    def test_it(self): self.assertEqual(clamp(2, 0, 0), 0)\n"
        )
        found = _measure(tmp_path, tests, program=program)
        timed_out = [item.mutation.after for item in found.mutants if item.fate == "timed_out"]
        assert "+=" in timed_out
        assert found.killed >= len(timed_out)

    def test_what_one_mutant_leaves_does_not_decide_for_the_next(self, tmp_path: Path) -> None:
        """The suite leaves a file that would make every later run fail; and it fails only for real mutants."""
        tests = (
            "import os, unittest\nfrom app import clamp\n"
            "class T(unittest.TestCase):\n"
            "    def test_it(self):\n"
            "        self.assertFalse(os.path.exists('left'))\n"
            "        open('left', 'w').close()\n"
            "        os.chmod('app.py', 0o400)\n"
        )
        found = _measure(tmp_path, tests, limit=5)
        assert len(found.mutants) == 5
        assert found.killed == 0

    def test_the_budget_stops_and_says_so(self, tmp_path: Path) -> None:
        source = tmp_path / "s"
        source.mkdir()
        (source / "app.py").write_text(PROGRAM)
        (source / "test_app.py").write_text(GOOD_TEST)
        bench = Bench(inside="/work", scratch=tmp_path)
        base = Baseline(SUITE, (run_command(bench, source, SUITE.argv),))
        ticks = iter([0.0, 1.0, 2.0, 99.0])
        seen: list[tuple[int, int]] = []
        found = measure(
            bench, source, snapshot(source), [base], ["app.py"], limit=9, budget=5.0,
            clock=lambda: next(ticks), progress=lambda done, total: seen.append((done, total)),
        )  # fmt: skip
        assert len(found.mutants) == 2
        assert "budget" in str(found.stopped)
        assert seen[0] == (0, 9)


def test_a_copy_becomes_pristine_again(tmp_path: Path) -> None:
    pristine = tmp_path / "pristine"
    (pristine / "a" / "b").mkdir(parents=True)
    (pristine / "a" / "f").write_text("1")
    (pristine / "a" / "b" / "g").write_text("2")
    (pristine / "link").symlink_to("a/f")
    (pristine / "empty").mkdir()
    copy = WorkCopy.of(pristine, tmp_path / "copy")

    def look(root: Path) -> dict[str, object]:
        return {
            str(path.relative_to(root)): path.readlink()
            if path.is_symlink()
            else path.read_text()
            if path.is_file()
            else None
            for path in root.rglob("*")
        }

    place = copy.place
    for change in (
        lambda: (place / "a" / "f").write_text("other"),
        (place / "a" / "f").unlink,
        (place / "a" / "new").mkdir,
        lambda: (place / "link").unlink() or (place / "link").write_text("x"),
        lambda: [(place / "a" / "b" / "g").unlink(), (place / "a" / "b").rmdir(), (place / "a" / "b").symlink_to("/")],
        (place / "empty").rmdir,
        lambda: [(place / "empty" / "x").write_text("x"), (place / "empty").chmod(0o500)],
        lambda: (place / "a" / "f").chmod(0o400),
    ):
        change()
        assert look(place) != look(pristine) or oct((place / "a" / "f").stat().st_mode)[-3:] == "400"
        copy.restore()
        assert look(place) == look(pristine)
        assert (place / "a" / "f").stat().st_mode == (pristine / "a" / "f").stat().st_mode
