"""What a run's own account says of its tests, test by test where there is a report. Pure.

Reports are those that the runners write themselves: JUnit XML of pytest and of ``node --test``, the list that
``reporting/sitecustomize.py`` has unittest leave, and the event streams of ``go test -json`` and of Rust's libtest
(``--format json``). Lines that are printed for people are read only where a vector keeps a report from coming, and
say no more than totals.

Every source comes from the process that runs the workspace's code, so that code which is bent on it can forge them; a
report can take a pass away, it never makes one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Outcome = Literal["passed", "failed", "error", "skipped", "expected_failure"]

MAX_REPORT: Final = 32 << 20
"""Bytes of a test report that are read."""

_SEVERITY: Final[tuple[Outcome, ...]] = ("skipped", "expected_failure", "passed", "failed", "error")

_RAN = re.compile(rb"^Ran (\d+) tests? in [0-9.]+s\r?$", re.MULTILINE)
_SUMMARY = re.compile(rb"^=*\s*((?:\d+ [a-z]+(?:, )?)+|no tests ran) in [0-9.]+s\b", re.MULTILINE)
_VERDICT = re.compile(rb"^(?:OK|FAILED|NO TESTS RAN)(?: \(([^)\n]*)\))?\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Counts:
    """What is known of the tests of one run.

    ``source`` says from where: ``report`` (the runner's own, test by test), ``totals`` (printed lines) or ``unknown``.
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
    return counted(_cases(root, ()))


def _cases(suite: Any, within: tuple[str, ...]) -> Iterator[tuple[str, Outcome]]:
    """Yield name and outcome of every case; suites that are nested in suites are part of the name."""
    stack = [(suite, within)]
    while stack:
        element, names = stack.pop()
        for child in element:
            if child.tag == "testcase":
                own = (child.get("classname", ""), *names, child.get("name", ""))
                yield "::".join(own), _outcome({part.tag: part.get("type") for part in child})
            elif child.tag == "testsuite":
                # The suites that a runner puts round a whole run stand at the top and name no test.
                inner = (
                    (*names, child.get("name", "")) if child.get("hostname") and not child.get("timestamp") else names
                )
                stack.append((child, inner))


def counted(cases: Iterable[tuple[str, Outcome]]) -> Counts:
    """Return the counts of a report; a test that is told twice is as bad as its worst part."""
    outcomes: dict[str, Outcome] = {}
    for name, outcome in cases:
        known = outcomes.get(name)
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


def parse_list(data: bytes) -> Counts:
    """Read the list of ``[name, outcome]`` that unittest is made to leave; one that is not whole is ``unknown``."""
    try:
        value = json.loads(data) if len(data) <= MAX_REPORT else None
    except (ValueError, RecursionError):
        return UNKNOWN
    if not isinstance(value, list):
        return UNKNOWN
    cases: list[tuple[str, Outcome]] = []
    for item in value:
        match item:
            case [str(name), str(word)] if word in _SEVERITY:
                cases.append((name, next(outcome for outcome in _SEVERITY if outcome == word)))
            case _:
                return UNKNOWN
    return counted(cases)


_GO: Final[Mapping[str, Outcome]] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_LIBTEST: Final[Mapping[str, Outcome]] = {
    "ok": "passed", "failed": "failed", "timeout": "failed", "ignored": "skipped",
}  # fmt: skip


def _events(output: bytes) -> Iterator[Mapping[str, Any]]:
    for line in output.splitlines():
        if line.startswith(b"{"):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value


def _outcome_of(word: Any, words: Mapping[str, Outcome]) -> Outcome | None:
    """Look a word up that may be no text at all: a program under test prints these lines."""
    return words.get(word) if isinstance(word, str) else None


def parse_go(output: bytes) -> Counts:
    """Read the events of ``go test -json``; without any it is ``unknown``."""
    cases: list[tuple[str, Outcome]] = []
    packages = 0
    for event in _events(output):
        package, test, outcome = event.get("Package"), event.get("Test"), _outcome_of(event.get("Action"), _GO)
        if not isinstance(package, str) or outcome is None:
            continue
        packages += 1
        if isinstance(test, str):
            cases.append((f"{package}.{test}", outcome))
        elif outcome == "failed":
            # A package that does not build, or whose test program ends early, fails without a test of its own.
            cases.append((package, "error"))
    return counted(cases) if packages else UNKNOWN


def parse_libtest(output: bytes) -> Counts:
    """Read the events of Rust's test programs, one suite after the other; without any it is ``unknown``."""
    cases: list[tuple[str, Outcome]] = []
    suites = 0
    for event in _events(output):
        kind, name, outcome = event.get("type"), event.get("name"), _outcome_of(event.get("event"), _LIBTEST)
        if kind == "suite" and event.get("event") == "started":
            suites += 1
        elif kind == "test" and isinstance(name, str) and outcome is not None:
            cases.append((f"{suites}::{name}", outcome))
    return counted(cases) if suites else UNKNOWN


_CARGO: Final = re.compile(
    rb"^test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored;", re.MULTILINE
)


def parse_cargo(output: bytes) -> Counts:
    """Add up the lines with which each of cargo's test programs ends; without any it is ``unknown``."""
    lines = [tuple(map(int, match.groups())) for match in _CARGO.finditer(output)]
    passed, failed, ignored = map(sum, zip(*lines, strict=True)) if lines else (0, 0, 0)
    return Counts("totals", passed=passed, failed=failed, skipped=ignored) if lines else UNKNOWN


def _outcome(children: Mapping[str, str | None]) -> Outcome:
    if "error" in children:
        return "error"
    if "failure" in children:
        return "failed"
    if "skipped" in children:
        return "expected_failure" if children["skipped"] in ("pytest.xfail", "todo") else "skipped"
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
