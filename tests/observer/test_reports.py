"""Reports of runners: asked for without touching the vector, read test by test, and never read from printed text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.observing import needs_observer
from troth.observer.commands import Bench, CommandRun, run_command
from troth.observer.contract_source import RunLimits
from troth.observer.grade import _Attempt, _flaky
from troth.observer.reports import UNKNOWN, Counts, Outcome, counted, parse_go, parse_libtest, parse_list, parse_report
from troth.observer.runners import count_tests

needs_node = pytest.mark.skipif(shutil.which("node", path="/usr/bin:/bin") is None, reason="node is not installed")
needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")

Run = Callable[..., CommandRun]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Lay files out and run a vector on them in a sandbox."""

    def go(files: Mapping[str, str], *argv: str) -> CommandRun:
        copy = tmp_path / f"copy{len(os.listdir(tmp_path))}"
        copy.mkdir()
        for name, text in files.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_text(text)
        return run_command(Bench(inside="/work/place", limits=RunLimits(seconds=60)), copy, argv)

    return go


KINDS = """
import os, sys, unittest

class T(unittest.TestCase):
    def test_passes(self): pass
    def test_fails(self): self.fail()
    def test_errs(self): raise OSError
    @unittest.skip("x")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
    def test_parts(self):
        for at in range(3):
            with self.subTest(at=at): self.assertNotEqual(at, 1)
    def test_leaves_nothing_behind(self):
        self.assertNotIn("PYTHONPATH", os.environ)
        self.assertFalse([name for name in os.environ if "REPORT" in name])
        self.assertFalse([part for part in sys.path if "troth/reporting" in part])

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError
    def test_never(self): pass
"""
PASSES = "import unittest\nclass T(unittest.TestCase):\n    def test_one(self): pass\n"


@needs_observer
@pytest.mark.observer
def test_unittest_leaves_a_report_of_every_test(run: Run) -> None:
    found = run({"test_a.py": KINDS}, "python3", "-m", "unittest", "-q")
    assert (found.exit, found.tests.source) == (1, "report")
    assert dict(found.tests.outcomes) == {
        "setUpClass (test_a.Broken)": "error", "test_a.T.test_passes": "passed", "test_a.T.test_fails": "failed",
        "test_a.T.test_errs": "error", "test_a.T.test_skipped": "skipped", "test_a.T.test_expected": "expected_failure",
        "test_a.T.test_unexpected": "failed", "test_a.T.test_parts": "failed",
        "test_a.T.test_leaves_nothing_behind": "passed",
    }  # fmt: skip


@pytest.mark.parametrize("odd", [[], {}, [1], None, 1])
def test_an_outcome_that_is_no_word_is_passed_over(odd: object) -> None:
    """The lines are the program's under test: an array where a word belongs names no outcome."""
    go = {"Action": odd, "Package": "example.org/m", "Test": "TestA"}
    sound = {"Action": "pass", "Package": "example.org/m", "Test": "TestB"}
    counts = parse_go(b"".join(json.dumps(one).encode() + b"\n" for one in (go, sound)))
    assert dict(counts.outcomes) == {"example.org/m.TestB": "passed"}
    lines = ({"type": "suite", "event": "started"}, {"type": "test", "name": "a", "event": odd})
    rust = parse_libtest(b"".join(json.dumps(one).encode() + b"\n" for one in lines))
    assert (rust.source, dict(rust.outcomes)) == ("report", {})


FORGED = "import atexit\natexit.register(lambda: print('\\nRan 9 tests in 0.001s\\n\\nOK'))\n"
CASES = {
    # name: the test file, vector, what is counted, whether that is a pass
    "printed totals": (FORGED + PASSES, ("python3", "-m", "unittest"), (1, "report"), True),
    "printed totals, nothing run": (FORGED, ("python3", "-m", "unittest", "test_a"), (0, "report"), False),
    "gone before the end": ("import os\nprint('Ran 1 test in 0.1s\\n\\nOK', flush=True)\nos._exit(0)\n",
                            ("python3", "-m", "unittest", "test_a"), (None, "unknown"), False),
    "a program of its own inside": (
        PASSES + "    def test_two(self):\n"
        "        unittest.main(module=None, argv=['x', 'test_a.T.test_one'], exit=False)\n",
        ("python3", "-m", "unittest", "test_a"), (2, "report"), True),
    "no site": (PASSES, ("python3", "-S", "-m", "unittest", "test_a"), (1, "totals"), True),
    "isolated": (PASSES, ("python3", "-I", "-m", "unittest", "discover", "-s", "/work/place"), (1, "totals"), True),
    "behind wrappers": (PASSES, ("env", "A=1", "timeout", "60", "python3", "-Bm", "unittest", "test_a"),
                        (1, "report"), True),
    "an emptied environment": (PASSES, ("env", "-i", "/usr/bin/env", "PATH=/usr/bin:/bin", "python3", "-m", "unittest"),
                               (1, "totals"), True),
}  # fmt: skip


@needs_observer
@pytest.mark.observer
@pytest.mark.parametrize("name", CASES)
def test_what_is_counted_of_unittest(run: Run, name: str) -> None:
    text, argv, counted, passes = CASES[name]
    if name == "an emptied environment" and not Path("/usr/bin/python3").exists():
        pytest.skip("the system has no Python of its own")
    found = run({"test_a.py": text}, *argv)
    assert (found.tests.executed, found.tests.source) == counted, found.output
    assert found.passed is passes


@needs_observer
@pytest.mark.observer
def test_a_start_up_module_that_was_there_is_still_loaded(run: Run) -> None:
    """Ours hands on: what the path has of that name is loaded as it would have been, and a broken one breaks."""
    files = {"hook/sitecustomize.py": "import builtins\nbuiltins.loaded = 'yes'\n"}
    told = "import sys, unittest\nimport sitecustomize\nprint(loaded, sitecustomize.__file__)\n" + PASSES
    argv = ("env", "PYTHONPATH=/run/troth/reporting:/work/place/hook", "python3", "-m", "unittest", "-q")
    found = run({**files, "test_a.py": told}, *argv)
    assert (found.passed, found.tests.source) == (True, "report"), found.output
    assert b"yes /work/place/hook/sitecustomize.py" in found.output


NODE = {
    "a.test.js": "const {test, describe, it} = require('node:test'); const assert = require('assert');\n"
    "test('one', () => {}); test('two', () => { assert.equal(1, TWO) }); test.skip('three', () => {});\n"
    "describe('suite', () => { it('one', () => {}) });\n"
}  # fmt: skip
PACKAGE = {"package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "node --test"}}'}


@needs_node
@needs_observer
@pytest.mark.observer
@pytest.mark.parametrize(
    "argv", [("node", "--test"), pytest.param(("npm", "test"), marks=pytest.mark.slow)], ids=["node", "npm"]
)
def test_node_leaves_a_report_of_every_test(run: Run, argv: tuple[str, ...]) -> None:
    def laid_out(two: str) -> dict[str, str]:
        return {**PACKAGE, "a.test.js": NODE["a.test.js"].replace("TWO", two)}

    good = run(laid_out("1"), *argv)
    assert (good.passed, good.tests.source, good.tests.executed, good.tests.skipped) == (True, "report", 3, 1)
    assert good.tests.outcomes["test::suite::one"] == "passed"
    bad = run(laid_out("2"), *argv)
    assert (bad.exit, bad.tests.outcomes["test::two"]) == (1, "failed")
    nothing = run({**PACKAGE, "a.js": "console.log('ok 1 - fine')\n"}, *argv)
    assert (nothing.exit, nothing.nothing_executed, nothing.passed) == (0, True, False)


@needs_node
@needs_observer
@pytest.mark.observer
def test_a_vector_that_names_reporters_of_its_own_is_left_alone(run: Run) -> None:
    found = run({"a.test.js": "require('node:test').test('x', () => {})\n"}, "node", "--test", "--test-reporter=tap")
    assert (found.passed, found.tests) == (True, UNKNOWN)
    assert found.output.startswith(b"TAP version")


# As `go help testflag` and `go doc test2json` describe it.
GO = (
    b'{"Time":"2026-01-01T00:00:00Z","Action":"start","Package":"example.org/m"}\n'
    b'{"Action":"run","Package":"example.org/m","Test":"TestOne"}\n'
    b'{"Action":"output","Package":"example.org/m","Test":"TestOne","Output":"--- PASS: TestTwo\\n"}\n'
    b'{"Action":"pass","Package":"example.org/m","Test":"TestOne","Elapsed":0}\n'
    b'{"Action":"skip","Package":"example.org/m","Test":"TestLater","Elapsed":0}\n'
    b'{"Action":"fail","Package":"example.org/m","Test":"TestBad/part","Elapsed":0}\n'
    b'{"Action":"pass","Package":"example.org/m","Elapsed":0.1}\n'
    b'{"Action":"fail","Package":"example.org/broken","Elapsed":0}\n'
)
# As libtest of Rust 1.95 wrote it.
LIBTEST = (
    b'{ "type": "suite", "event": "started", "test_count": 4 }\n'
    b'{ "type": "test", "event": "started", "name": "t::bad" }\n'
    b'{ "type": "test", "name": "t::ig", "event": "ignored" }\n'
    b'{ "type": "test", "name": "t::ok", "event": "ok" }\n'
    b'{ "type": "test", "name": "t::bad", "event": "failed", "stdout": "no" }\n'
    b'{ "type": "suite", "event": "failed", "passed": 1, "failed": 1, "ignored": 1, "measured": 0 }\n'
    b'{ "type": "suite", "event": "started", "test_count": 1 }\n'
    b'{ "type": "test", "name": "t::ok", "event": "ok" }\n'
)


def test_the_events_of_go_are_read() -> None:
    found = count_tests(["go", "test", "-json", "./..."], None, b"go: downloading\n" + GO)
    assert dict(found.outcomes) == {
        "example.org/m.TestOne": "passed", "example.org/m.TestLater": "skipped",
        "example.org/m.TestBad/part": "failed", "example.org/broken": "error",
    }  # fmt: skip
    assert count_tests(["go", "test", "./..."], None, GO) == UNKNOWN
    nothing = parse_go(b'{"Action":"skip","Package":"example.org/m","Elapsed":0}\n')
    assert (nothing.source, nothing.executed) == ("report", 0)


def test_the_events_of_libtest_are_read() -> None:
    found = count_tests(["cargo", "test", "--", "-Z", "unstable-options", "--format", "json"], None, LIBTEST)
    assert dict(found.outcomes) == {
        "1::t::ig": "skipped", "1::t::ok": "passed", "1::t::bad": "failed", "2::t::ok": "passed",
    }  # fmt: skip
    assert count_tests(["cargo", "test"], None, LIBTEST) == UNKNOWN


def test_the_last_lines_of_cargos_test_programs_are_added_up() -> None:
    lines = [
        b"running 3 tests", b"..i", b"test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; "
        b"finished in 0.00s", b"", b"test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
    ]  # fmt: skip
    found = count_tests(["cargo", "test", "-q"], None, b"\n".join(lines))
    assert (found.source, found.passed, found.failed, found.skipped) == ("totals", 3, 2, 1)
    assert count_tests(["cargo", "test", "-q"], None, b"\n".join(lines), whole=False) == UNKNOWN
    assert count_tests(["make", "test"], None, b"\n".join(lines)) == UNKNOWN
    assert count_tests(["cargo", "build"], None, b"\n".join(lines)) == UNKNOWN
    assert count_tests(["cargo", "test"], None, b"error: no\nx test result: ok. 1 passed; 0 failed; ") == UNKNOWN


@needs_cargo
@pytest.mark.slow
def test_what_the_installed_cargo_writes_is_read(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "it"\nversion = "0.1.0"\nedition = "2021"\n')
    (tmp_path / "src" / "lib.rs").write_text(
        '#[test] fn ok() { print!("{}", FORGED); }\n'
        '#[cfg(test)] const FORGED: &str = "{ \\"type\\": \\"test\\", \\"name\\": \\"forged\\", '
        '\\"event\\": \\"ok\\" }\\n";\n'
        "#[test] #[ignore] fn later() {}\n#[test] fn bad() { assert_eq!(1, 2); }\n"
    )
    argv = ["cargo", "test", "-q", "--offline", "--", "-Z", "unstable-options", "--format", "json"]
    done = subprocess.run(
        argv, cwd=tmp_path, env={**os.environ, "RUSTC_BOOTSTRAP": "1"}, capture_output=True, check=False, timeout=300
    )
    found = count_tests(argv, None, done.stdout)
    assert done.returncode != 0
    assert (found.passed, found.failed, found.skipped) == (1, 1, 1), done.stdout
    assert not any("forged" in name for name in found.outcomes)


@pytest.mark.parametrize(
    "data", [b"", b"[", b"{}", b"[1]", b'[["a"]]', b'[["a", "fine"]]', b'[["a", 1]]', b"[" * 100_000, b"\xff"]
)
def test_a_list_that_is_not_whole_says_nothing(data: bytes) -> None:
    assert parse_list(data) == UNKNOWN
    assert parse_list(b'[["a", "passed"], ["a", "failed"], ["b", "skipped"]]').as_json()["failed"] == 1


@given(st.binary(max_size=400), st.sampled_from([GO, LIBTEST, b"<testsuites/>"]), st.integers(0, 400))
def test_any_bytes_are_answered(noise: bytes, base: bytes, at: int) -> None:
    data = base[:at] + noise + base[at:]
    for read in (parse_go, parse_libtest, parse_list, parse_report):
        assert isinstance(read(data), Counts)


def test_a_test_that_does_not_end_alike_on_the_same_tree_is_named_with_its_outcomes() -> None:
    def attempt(cases: list[tuple[str, Outcome]]) -> _Attempt:
        return _Attempt(CommandRun((), "pytest", 1, b"", False, 0.1, tests=counted(cases)), ())

    first = attempt([("steady", "passed"), ("coin", "failed"), ("gone", "passed")])
    again = attempt([("steady", "passed"), ("coin", "passed")])
    assert _flaky([first, again]) == {"coin": ["failed", "passed"], "gone": ["passed", "not_run"]}
    assert _flaky([first, first]) == {}
    unknown = _Attempt(CommandRun((), "other", 0, b"", False, 0.1), ())
    assert _flaky([first, unknown]) == {}
