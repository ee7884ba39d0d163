"""Running a check for ``capture --check`` and measuring it: argument vector in, facts out (ledger spec §9).

The numbers come from the process itself and from the report its test runner wrote, never from what it printed.
What they amount to is decided by :mod:`troth.ledger.trust`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.core.errors import Refused
from troth.core.leaving import leaving_in_order
from troth.ledger.trust import WEIGHTS, components, creation_trust
from troth.stores.durable import open_regular

TIME_LIMIT_SECONDS: Final = 3600.0
"""Longest a check may run (ledger spec §16, Running ledgers)."""

REPORT_LIMIT: Final = 1 << 24
"""Longest JUnit XML report read, in bytes."""

_REPORT_OPTIONS: Final = ("--junitxml", "--junit-xml", "--junit-report", "--xunit-file")


@dataclass(frozen=True, slots=True)
class Measured:
    """What a check did.

    ``exit`` is its status (negative: ended by that signal; ``None``: stopped at the time limit), ``seconds`` its
    duration, ``passed`` of ``run`` tests from ``source`` (``junit`` or ``exit``).
    """

    argv: tuple[str, ...]
    exit: int | None
    seconds: float
    passed: int
    run: int
    source: str

    def trust(
        self, causal_depth: int, *, weights: Mapping[str, float] = WEIGHTS, half_life_days: int | None = None
    ) -> dict[str, Any]:
        """Return the ``trust`` block of a row of that depth; no model took part, so no context window is known.

        ``weights`` and ``half_life_days`` are those of the genesis key in force.
        """
        return creation_trust(
            components(
                exit_status=self.exit,
                passed=self.passed,
                run=self.run,
                ended_by_itself=self.exit is not None,
                seconds=self.seconds,
                timeout=TIME_LIMIT_SECONDS,
                causal_depth=causal_depth,
            ),
            weights=weights,
            half_life_days=half_life_days,
        )

    def as_meta(self) -> dict[str, Any]:
        """Return the facts recorded beside the evidence, in ``payload.meta.check``."""
        facts: dict[str, Any] = {"argv": list(self.argv), "exit": self.exit, "seconds": round(self.seconds, 3)}
        if self.source == "junit":
            facts["tests"] = {"passed": self.passed, "run": self.run}
        return facts


def run_check(argv: Sequence[str], *, time_limit: float = TIME_LIMIT_SECONDS) -> Measured:
    """Run the command without a shell, its output going to stderr, and measure it.

    The command gets its own process group, which is killed when the time is over and when this program is told to
    end (an interruption, SIGTERM, SIGHUP): nothing goes on that nobody measures.

    Raises:
        Refused: ``E_USAGE`` when the program cannot be started.
    """
    started_wall = time.time()
    started = time.monotonic()
    exit_status: int | None
    process: subprocess.Popen[bytes] | None = None
    # In force before the command is: whoever sees it run may end us.
    with leaving_in_order():
        try:
            try:
                # Output goes to stderr: stdout belongs to the answer.
                process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=2, start_new_session=os.name != "nt")
            except (OSError, ValueError) as fault:
                reason = fault.strerror if isinstance(fault, OSError) else str(fault)
                raise Refused("E_USAGE", f"the check {argv[0]!r} cannot be started: {reason}") from None
            try:
                exit_status = process.wait(time_limit)
            except subprocess.TimeoutExpired:
                _kill_group(process)
                exit_status = None
        except BaseException:
            if process is not None:
                _kill_group(process)
            raise
    seconds = time.monotonic() - started
    counts = _junit_counts(argv, started_wall)
    if counts is not None:
        return Measured(tuple(argv), exit_status, seconds, *counts, "junit")
    return Measured(tuple(argv), exit_status, seconds, 1 if exit_status == 0 else 0, 1, "exit")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _junit_counts(argv: Sequence[str], not_before: float) -> tuple[int, int] | None:
    """Return (passed, run) from the report this very run wrote, if its command line names one."""
    for index, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name not in _REPORT_OPTIONS:
            continue
        if not equals:
            value = argv[index + 1] if index + 1 < len(argv) else ""
        try:
            # What the command left there may be a pipe or a device: it is looked at after it was opened.
            fd = open_regular(Path(value), os.O_RDONLY, "E_UNREADABLE", "the report")
            with os.fdopen(fd, "rb") as file:
                found = os.fstat(fd)
                # A report left over from an earlier run says nothing about this one; clocks of file systems are coarse.
                if found.st_mtime < not_before - 1 or found.st_size > REPORT_LIMIT:
                    continue
                return read_junit(file.read(REPORT_LIMIT))
        except (Refused, OSError, ValueError):
            continue
    return None


def read_junit(data: bytes) -> tuple[int, int]:
    """Return (passed, run) of a JUnit XML report; skipped tests were not run.

    Raises:
        ValueError: it is no such report.
    """
    # Entities are what makes XML dangerous, and no test runner writes a document type.
    # In UTF-16, where these words could hide, every other byte is zero.
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data or b"\0" in data:
        raise ValueError("a document type in a test report")
    from xml.etree import ElementTree as Tree

    try:
        root = Tree.fromstring(data)  # noqa: S314 - document types are refused above
    except (Tree.ParseError, LookupError) as fault:  # no XML, or in an encoding that is not known
        raise ValueError(str(fault)) from None
    if root.tag not in ("testsuite", "testsuites"):
        raise ValueError(f"the root element is {root.tag!r}")
    passed = run = 0
    for case in root.iter("testcase"):
        children = {child.tag for child in case}
        failed = bool(children & {"failure", "error"})
        if failed or "skipped" not in children:  # one that was skipped and failed did not pass
            run += 1
            passed += not failed
    return passed, run
