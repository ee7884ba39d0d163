"""Test runners: which one an argument vector starts, and how it is asked for a report of its tests. Pure.

The argument vector stays the contract's own: a report is asked for through the environment, where the runner allows it.
Of a program that is no runner nothing but its exit is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal

from troth.observer.reports import (
    UNKNOWN,
    Counts,
    parse_cargo,
    parse_go,
    parse_libtest,
    parse_list,
    parse_report,
    parse_summary,
    parse_totals,
)

Runner = Literal["pytest", "unittest", "node", "npm", "go", "cargo", "other"]

HOOK: Final = "/run/troth/reporting"
"""Where the folder that makes unittest leave a report is shown inside."""

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

_PACKAGE_RUNNERS: Final = frozenset({"npm", "pnpm", "yarn"})
_PACKAGE_WORDS: Final = frozenset({"test", "t", "tst", "run", "run-script"})


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
    if not module_next:
        if _PYTEST.match(program):
            return "pytest"
        other = _other_language(program, rest[1:])
        if other != "other":
            return other
    module = module_of(rest if module_next else rest[1:]) if module_next or _PYTHON.match(program) else None
    if module in ("pytest", "py.test"):
        return "pytest"
    return "unittest" if module == "unittest" else "other"


def _other_language(program: str, words: Sequence[str]) -> Runner:
    if program in ("node", "nodejs"):
        options = list(words[: next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))])
        return "node" if "--test" in options else "other"
    first = next((word for word in words if not word.startswith(("-", "+"))), "")
    if program in _PACKAGE_RUNNERS and first in _PACKAGE_WORDS:
        return "npm"
    if program == "go" and first == "test":
        return "go"
    return "cargo" if program == "cargo" and first in ("test", "t") else "other"


def asked_of_node(argv: Sequence[str], report: str) -> str:
    """Return what asks ``node --test`` for a report, for ``NODE_OPTIONS``; empty when the vector names reporters."""
    if recognise(argv) not in ("node", "npm") or any(word.startswith("--test-reporter") for word in argv):
        return ""
    return (
        "--test-reporter=spec --test-reporter-destination=stdout "
        f"--test-reporter=junit --test-reporter-destination={report}"
    )


def report_arguments(argv: Sequence[str], report: str) -> str:
    """Return what asks pytest for a report at that path, for ``PYTEST_ADDOPTS``; empty when the vector forbids it."""
    # A run that has switched the report off would refuse the option and fail for our sake.
    return "" if "no:junitxml" in argv or "-pno:junitxml" in argv else f"--junitxml={report}"


def has_own_report(argv: Sequence[str]) -> bool:
    """Tell whether the vector names a report of its own, or switches reports off, so that ours does not come."""
    return any(word.startswith(("--junitxml", "--junit-xml")) for word in argv) or not report_arguments(argv, "r")


def _speaks_json(runner: Runner, argv: Sequence[str]) -> bool:
    """Tell whether a vector asks go or cargo for events; their output is the runner's own report then."""
    if runner == "go":
        return "-json" in argv or "--json" in argv
    return runner == "cargo" and ("--format=json" in argv or ("--format", "json") in pairwise(argv))


def count_tests(argv: Sequence[str], report: bytes | None, output: bytes, *, whole: bool = True) -> Counts:
    """Return what is known of a run's tests from the best source its runner has.

    Where pytest's vector takes the report for itself, or an interpreter was told to read nothing from outside, the line
    that is printed at the end has to do. Of cargo's test programs each prints its own line: nothing is added up unless
    the output is ``whole``.
    """
    runner = recognise(argv)
    if runner == "pytest":
        return parse_summary(output) if has_own_report(argv) else parse_report(report)
    if runner == "unittest":
        return parse_totals(output) if report is None else parse_list(report)
    if runner in ("node", "npm"):
        return parse_report(report)
    if _speaks_json(runner, argv):
        return parse_go(output) if runner == "go" else parse_libtest(output)
    return parse_cargo(output) if runner == "cargo" and whole else UNKNOWN


def belies_exit(code: int, tests: Counts) -> bool:
    """Tell whether a run ended with 0 although its own account has tests that failed: its exit is not the runner's."""
    return code == 0 and tests.failed + tests.errors > 0


def executed_nothing(runner: Runner, code: int, tests: Counts, *, own_report: bool) -> bool:
    """Tell whether a run is known to have executed no test (done records §13.5).

    Only an exit of 0, or the exit that says so, can mean that: any other exit is the program's own failure, and is a
    result. pytest or unittest that ends with 0 and leaves no account of its tests is taken to have run none, since a
    program which leaves before its runner has finished looks just so; a run whose vector takes the report for itself
    (``own_report``) is left unknown.
    """
    if runner not in ("pytest", "unittest"):
        # These say nothing by an exit of their own; what counts is an account that is there and has no test.
        return code == 0 and tests.source != "unknown" and not tests.executed
    if code not in (0, NO_TESTS_EXIT):
        return False
    if tests.source == "unknown":
        return code == NO_TESTS_EXIT or not own_report
    return not tests.executed
