"""Test runners: which one an argument vector starts, and how many tests it says it ran. Pure.

Two runners are known. pytest writes a report of every test, asked for through its environment so that the argument
vector stays the contract's own. unittest only prints a total, which is a weaker source. Of any other program nothing
but its exit is known.

Both sources come from the process that runs the workspace's code, so that code which is bent on it can forge them; a
report can take a pass away, it never makes one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Runner = Literal["pytest", "unittest", "other"]
Outcome = Literal["passed", "failed", "error", "skipped", "expected_failure"]

MAX_REPORT: Final = 32 << 20
"""Bytes of a test report that are read."""

NO_TESTS_EXIT: Final = 5
"""Exit of pytest, and of unittest from Python 3.12, when no test ran."""

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?t?(\.exe)?\Z")
_PYTEST = re.compile(r"(py\.test|pytest)(-?\d+(\.\d+)*)?\Z")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")

_WRAPPERS: Final[Mapping[tuple[str, ...], frozenset[str]]] = {
    # what stands before the program -> its options that take a value
    ("env",): frozenset({"-u", "-C", "--unset", "--chdir"}),
    ("nice",): frozenset({"-n", "--adjustment"}),
    ("timeout",): frozenset({"-s", "-k", "--signal", "--kill-after"}),
    ("uv", "run"): frozenset({"--with", "--extra", "--group", "--python", "-p", "--project", "--package"}),
    ("poetry", "run"): frozenset(),
    ("pdm", "run"): frozenset({"-p", "--project"}),
    ("hatch", "run"): frozenset(),
    ("pipenv", "run"): frozenset(),
    ("coverage", "run"): frozenset({"--source", "--rcfile", "--omit", "--include", "--data-file", "--context"}),
}

_SEVERITY: Final[tuple[Outcome, ...]] = ("skipped", "expected_failure", "passed", "failed", "error")

_RAN = re.compile(rb"^Ran (\d+) tests? in [0-9.]+s\r?$", re.MULTILINE)
_SUMMARY = re.compile(rb"^=*\s*((?:\d+ [a-z]+(?:, )?)+|no tests ran) in [0-9.]+s\b", re.MULTILINE)
_VERDICT = re.compile(rb"^(?:OK|FAILED|NO TESTS RAN)(?: \(([^)\n]*)\))?\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Counts:
    """What is known of the tests of one run.

    ``source`` says from where: ``report`` (pytest's, test by test), ``totals`` (printed lines) or ``unknown``.
    ``outcomes`` maps test names to outcomes where there is a report.
    """

    source: Literal["report", "totals", "unknown"]
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    expected_failures: int = 0
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)

    @property
    def executed(self) -> int | None:
        """Return how many tests ran to a pass or a failure; ``None`` when that is not known."""
        return None if self.source == "unknown" else self.passed + self.failed

    def as_json(self) -> dict[str, Any]:
        """Return the totals as a report carries them."""
        if self.source == "unknown":
            return {"source": "unknown"}
        return {
            "source": self.source,
            "executed": self.executed,
            "passed": self.passed,
            "failed": self.failed,
            "errors": self.errors,
            "skipped": self.skipped,
            "expected_failures": self.expected_failures,
        }


UNKNOWN: Final = Counts("unknown")


def _base(program: str) -> str:
    return program.rsplit("/", 1)[-1]


def unwrapped(argv: Sequence[str]) -> tuple[list[str], bool]:
    """Return the program behind wrappers, and whether the last wrapper takes Python's ``-m`` itself."""
    rest = list(argv)
    while rest:
        for words, valued in _WRAPPERS.items():
            if (_base(rest[0]), *rest[1 : len(words)]) != words:
                continue
            left = rest[len(words) :]
            while left and (left[0].startswith("-") or (words == ("env",) and _ASSIGNMENT.match(left[0]))):
                if words == ("coverage", "run") and left[0] == "-m":
                    return left, True
                left = left[2:] if left[0] in valued else left[1:]
            rest = left[1:] if words == ("timeout",) else left
            break
        else:
            return rest, False
    return rest, False


def module_of(argv: Sequence[str]) -> str | None:
    """Return the module that a Python command line runs with ``-m``."""
    index = 0
    while index < len(argv):
        word = argv[index]
        if not word.startswith("-") or word in ("-", "--"):
            return None
        if word.startswith("--"):
            index += 2 if word == "--check-hash-based-pycs" else 1
            continue
        for at, letter in enumerate(word[1:], 1):
            if letter == "c":
                return None
            if letter == "m":
                return word[at + 1 :] or (argv[index + 1] if index + 1 < len(argv) else None)
            if letter in "WX":
                index += 0 if word[at + 1 :] else 1
                break
        index += 1
    return None


def recognise(argv: Sequence[str]) -> Runner:
    """Tell which runner the vector starts; wrappers such as ``env`` and ``uv run`` are looked through."""
    rest, module_next = unwrapped(argv)
    if not rest:
        return "other"
    program = _base(rest[0])
    if not module_next and _PYTEST.match(program):
        return "pytest"
    module = module_of(rest if module_next else rest[1:]) if module_next or _PYTHON.match(program) else None
    if module in ("pytest", "py.test"):
        return "pytest"
    return "unittest" if module == "unittest" else "other"


def report_arguments(argv: Sequence[str], report: str) -> str:
    """Return what asks pytest for a report at that path, for ``PYTEST_ADDOPTS``; empty when the vector forbids it."""
    # A run that has switched the report off would refuse the option and fail for our sake.
    return "" if "no:junitxml" in argv or "-pno:junitxml" in argv else f"--junitxml={report}"


def has_own_report(argv: Sequence[str]) -> bool:
    """Tell whether the vector names a report of its own, or switches reports off, so that ours does not come."""
    return any(word.startswith(("--junitxml", "--junit-xml")) for word in argv) or not report_arguments(argv, "r")


def parse_report(data: bytes | None) -> Counts:
    """Read a JUnit report as pytest writes it; anything that is none of that is ``unknown``."""
    from xml.etree import ElementTree

    # Entities are what makes XML dangerous to read; pytest never writes any declaration of them.
    if data is None or len(data) > MAX_REPORT or b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return UNKNOWN
    try:
        root = ElementTree.fromstring(data)  # noqa: S314 - no document type, bounded size
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError):
        return UNKNOWN
    if root.tag not in ("testsuites", "testsuite"):
        return UNKNOWN
    outcomes: dict[str, Outcome] = {}
    for case in root.iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        outcome = _outcome({child.tag: child.get("type") for child in case})
        known = outcomes.get(name)
        # A test that is reported twice (a failing teardown, two parameters of one name) is as bad as its worst part.
        if known is None or _SEVERITY.index(outcome) > _SEVERITY.index(known):
            outcomes[name] = outcome
    counts = dict.fromkeys(_SEVERITY, 0)
    for outcome in outcomes.values():
        counts[outcome] += 1
    return Counts(
        "report",
        passed=counts["passed"],
        failed=counts["failed"],
        errors=counts["error"],
        skipped=counts["skipped"],
        expected_failures=counts["expected_failure"],
        outcomes=outcomes,
    )


def _outcome(children: Mapping[str, str | None]) -> Outcome:
    if "error" in children:
        return "error"
    if "failure" in children:
        return "failed"
    if "skipped" in children:
        return "expected_failure" if children["skipped"] == "pytest.xfail" else "skipped"
    return "passed"


def _last(pattern: re.Pattern[bytes], output: bytes) -> re.Match[bytes] | None:
    found = None
    for match in pattern.finditer(output):
        found = match
    return found


def parse_totals(output: bytes) -> Counts:
    """Read the totals that unittest prints at its end; the last ones count."""
    ran = _last(_RAN, output)
    if ran is None:
        return UNKNOWN
    verdict = _VERDICT.search(output, ran.end())
    parts: dict[str, int] = {}
    for piece in (verdict[1] or b"").decode("ascii", "replace").split(",") if verdict else ():
        name, _, count = piece.strip().partition("=")
        if count.isdecimal() and len(count) < 10:
            parts[name] = int(count)
    failed = parts.get("failures", 0) + parts.get("unexpected successes", 0)
    errors, skipped, expected = (parts.get(name, 0) for name in ("errors", "skipped", "expected failures"))
    total = int(ran[1]) if len(ran[1]) < 10 else 0
    return Counts(
        "totals",
        passed=max(0, total - failed - errors - skipped - expected),
        failed=failed,
        errors=errors,
        skipped=skipped,
        expected_failures=expected,
    )


def parse_summary(output: bytes) -> Counts:
    """Read the line with which pytest ends; the last one counts."""
    found = _last(_SUMMARY, output)
    if found is None:
        return UNKNOWN
    counts: dict[str, int] = {}
    for piece in found[1].decode("ascii").split(", "):
        number, _, name = piece.partition(" ")
        if number.isdecimal() and len(number) < 10:
            counts[name] = int(number)
    return Counts(
        "totals",
        passed=counts.get("passed", 0) + counts.get("xpassed", 0),
        failed=counts.get("failed", 0),
        errors=counts.get("error", 0) + counts.get("errors", 0),
        skipped=counts.get("skipped", 0),
        expected_failures=counts.get("xfailed", 0),
    )


def count_tests(runner: Runner, report: bytes | None, output: bytes, *, own_report: bool = False) -> Counts:
    """Return what is known of a run's tests from the best source its runner has.

    ``own_report`` says that pytest's vector takes the report for itself: then the line it ends with has to do.
    """
    if runner == "pytest":
        return parse_summary(output) if own_report else parse_report(report)
    return parse_totals(output) if runner == "unittest" else UNKNOWN


def belies_exit(code: int, tests: Counts) -> bool:
    """Tell whether a run ended with 0 although its own account has tests that failed: its exit is not the runner's."""
    return code == 0 and tests.failed + tests.errors > 0


def executed_nothing(runner: Runner, code: int, tests: Counts, *, own_report: bool) -> bool:
    """Tell whether a run is known to have executed no test (done records §13.5).

    Only an exit of 0, or the exit that says so, can mean that: any other exit is the program's own failure, and is a
    result. A known runner that ends with 0 and leaves no account of its tests is taken to have run none, since a
    program which leaves before its runner has finished looks just so; a run whose vector takes the report for itself
    (``own_report``) is left unknown.
    """
    if runner == "other" or code not in (0, NO_TESTS_EXIT):
        return False
    if tests.source == "unknown":
        return code == NO_TESTS_EXIT or not own_report
    return not tests.executed
