"""Which runner a vector starts, and what is read from what it leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.observer.reports import UNKNOWN, Counts, parse_report, parse_summary, parse_totals
from troth.observer.runners import count_tests, executed_nothing, has_own_report, recognise, report_arguments

VECTORS = {
    "pytest": [
        "pytest", "py.test -q", "pytest-3 tests", "/usr/bin/pytest tests", "python -m pytest", "python3 -m pytest -q",
        "python3.12 -X dev -W error -m pytest", "python -Im pytest", "python -mpytest", "env A=1 B=2 pytest",
        "env -u HOME python -m pytest", "uv run pytest -q", "uv run --with x python -m pytest", "poetry run pytest",
        "coverage run -m pytest tests", "coverage run --source src -m pytest", "timeout -k 5 60 pytest",
        "nice -n 5 python -Bm pytest", "python --check-hash-based-pycs always -m pytest",
    ],
    "unittest": ["python -m unittest", "python3 -W error -m unittest tests.test_a", "coverage run -m unittest"],
    "node": ["node --test", "node --enable-source-maps --test a.js", "env A=1 /usr/bin/node --test tests"],
    "npm": ["npm test", "npm run unit", "pnpm -s test", "yarn run test"],
    "go": ["go test ./...", "go test -json ./..."],
    "cargo": ["cargo test", "cargo +stable -q test -- --format json"],
    "other": [
        "node a.js --test", "node", "npm ci", "npm", "go build", "cargo build test.rs", "yarn",
        "make test", "python tests/run.py", "python -c 'import pytest' -m pytest", "python script.py -m pytest",
        "echo pytest", "pytester", "sh -c pytest", "python -m pytester", "python -", "env", "coverage run suite.py",
        "python", "python -m", "uv run", "tox -e py -- pytest", "pythonic -m pytest", "/opt/pytest/run",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("runner", "vector"), [(runner, text) for runner in VECTORS for text in VECTORS[runner]])
def test_runners_are_recognised(runner: str, vector: str) -> None:
    assert recognise(vector.split()) == runner


RUNNERS = ("pytest", "unittest", "node", "npm", "go", "cargo", "other")


@given(
    st.lists(
        st.sampled_from(
            [
                "env",
                "python",
                "-m",
                "pytest",
                "-c",
                "A=1",
                "uv",
                "run",
                "-W",
                "timeout",
                "-",
                "node",
                "--test",
                "npm",
                "go",
            ]
        ),
        min_size=1,
    )
)
def test_any_vector_is_answered(argv: list[str]) -> None:
    assert recognise(argv) in RUNNERS


REPORT = b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="9">
<testcase classname="tests.test_a" name="test_one" time="0.1"/>
<testcase classname="tests.test_a" name="test_two"><failure message="x">no</failure></testcase>
<testcase classname="tests.test_a" name="test_three"><skipped type="pytest.skip" message="m"/></testcase>
<testcase classname="tests.test_a" name="test_four"><skipped type="pytest.xfail" message="m"/></testcase>
<testcase classname="tests.test_a" name="test_five"><error message="failed on setup"/></testcase>
<testcase classname="tests.test_a" name="test_six"/>
<testcase classname="tests.test_a" name="test_six"><error message="failed on teardown"/></testcase>
<testcase classname="" name="tests.test_b"><error message="collection failure"/></testcase>
</testsuite></testsuites>"""


def test_a_report_is_counted_test_by_test() -> None:
    found = parse_report(REPORT)
    assert (found.passed, found.failed, found.errors, found.skipped, found.expected_failures) == (1, 1, 3, 1, 1)
    assert found.executed == 2
    assert found.outcomes["tests.test_a::test_six"] == "error"
    assert found.as_json()["executed"] == 2


@pytest.mark.parametrize(
    "data",
    [
        None, b"", b"<", b"<html/>", b"\xff", REPORT[:-20], b"<!DOCTYPE x><testsuites/>",
        b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "b">]><testsuites>&a;</testsuites>',
        b'<?xml version="1.0" encoding="nonsense"?><testsuites/>',
    ],
)  # fmt: skip
def test_what_is_no_report_is_unknown(data: bytes | None) -> None:
    assert parse_report(data) == UNKNOWN


@given(st.binary(max_size=60), st.integers(0, len(REPORT)))
def test_damaged_reports_are_answered(noise: bytes, at: int) -> None:
    assert parse_report(REPORT[:at] + noise + REPORT[at:]).source in ("report", "unknown")


TOTALS = {
    b"....\nRan 4 tests in 0.001s\n\nOK\n": (4, 0, 0, 0),
    b"Ran 1 test in 0.001s\n\nOK\n": (1, 0, 0, 0),
    b"Ran 6 tests in 0.0s\n\nOK (skipped=6)\n": (0, 0, 6, 0),
    b"Ran 9 tests in 0.0s\n\nFAILED (failures=2, errors=1, skipped=1, expected failures=1)\n": (4, 2, 1, 1),
    b"Ran 0 tests in 0.000s\n\nNO TESTS RAN\n": (0, 0, 0, 0),
    b"Ran 99 tests in 1s\n\nOK\nRan 2 tests in 0.1s\n\nFAILED (unexpected successes=1)\n": (1, 1, 0, 0),
    b"Ran 3 tests in 0.1s\r\n\r\nOK (skipped=1)\r\n": (2, 0, 1, 0),
}


@pytest.mark.parametrize("output", TOTALS)
def test_the_last_totals_of_unittest_count(output: bytes) -> None:
    found = parse_totals(output)
    assert (found.passed, found.failed, found.skipped, found.expected_failures) == TOTALS[output]


def test_output_without_totals_is_unknown() -> None:
    assert parse_totals(b"all fine\nI ran 5 tests in 3s") == UNKNOWN
    assert parse_summary(b"5 passed today") == UNKNOWN


def test_the_line_pytest_ends_with() -> None:
    assert parse_summary(b"=== 2 failed, 3 passed, 1 skipped, 1 xfailed, 4 warnings in 0.12s ===\n").executed == 5
    assert parse_summary(b"5 passed, 1 xpassed in 1.00s\n").passed == 6
    assert parse_summary(b"no tests ran in 0.00s\n").executed == 0
    assert parse_summary(b"1 skipped in 0.01s\n").executed == 0


def test_a_vector_that_names_its_own_report_is_judged_by_its_last_line() -> None:
    argv = ["pytest", "--junitxml=mine.xml"]
    assert has_own_report(argv)
    assert not has_own_report(["pytest", "-q"])
    assert has_own_report(["pytest", "-p", "no:junitxml"])
    assert report_arguments(["pytest", "-p", "no:junitxml"], "/r") == ""
    assert count_tests(argv, None, b"1 passed in 0.1s\n").passed == 1
    assert count_tests(["pytest"], None, b"1 passed in 0.1s\n") == UNKNOWN
    assert count_tests(["make", "test"], REPORT, b"Ran 4 tests in 0.001s\n") == UNKNOWN


PASSED, NONE = Counts("report", passed=2), Counts("report", skipped=3)
NOTHING = [
    # runner, exit, counts, own report, executed nothing
    ("pytest", 0, PASSED, False, False),
    ("pytest", 0, NONE, False, True),
    ("pytest", 5, NONE, False, True),
    ("pytest", 5, UNKNOWN, False, True),
    ("pytest", 0, UNKNOWN, False, True),  # gone before its runner had finished
    ("pytest", 0, UNKNOWN, True, False),
    ("pytest", 1, NONE, False, False),  # a failure is a result, whatever was counted
    ("pytest", 2, UNKNOWN, False, False),
    ("pytest", -11, UNKNOWN, False, False),
    ("unittest", 0, Counts("totals"), False, True),
    ("unittest", 0, Counts("totals", passed=1), False, False),
    ("unittest", 0, UNKNOWN, False, True),
    ("unittest", 1, UNKNOWN, False, False),
    ("node", 0, NONE, False, True),
    ("node", 0, UNKNOWN, False, False),
    ("node", 1, NONE, False, False),
    ("cargo", 0, PASSED, False, False),
    ("cargo", 0, Counts("totals"), False, True),
    ("cargo", 101, Counts("totals"), False, False),
    ("cargo", 0, UNKNOWN, False, False),
    ("other", 0, UNKNOWN, False, False),
    ("other", 5, UNKNOWN, False, False),
]


@pytest.mark.parametrize(("runner", "code", "counts", "own", "nothing"), NOTHING)
def test_when_a_run_executed_nothing(runner: str, code: int, counts: Counts, own: bool, nothing: bool) -> None:
    assert executed_nothing(runner, code, counts, own_report=own) is nothing  # type: ignore[arg-type]  # a word of the table
