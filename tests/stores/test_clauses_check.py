"""Measured checks: the time limit, and which test reports are believed (ledger spec §9, §16 Running ledgers)."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from troth.stores.check import TIME_LIMIT_SECONDS, read_junit, run_check
from troth.stores.lock import WAIT_SECONDS

PARENT = "import os, subprocess, sys, time\nchild = subprocess.Popen(['sleep', '600'])\n"
PARENT += "open(sys.argv[1], 'w').write(str(child.pid))\ntime.sleep(600)\n"


def test_the_limits_are_the_specification_s() -> None:
    assert TIME_LIMIT_SECONDS == 3600
    assert WAIT_SECONDS == 10


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the child in /proc")
def test_a_check_that_does_not_end_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    found = run_check([sys.executable, "-c", PARENT, str(told)], time_limit=2.0)
    assert (found.exit, found.passed, found.run) == (None, 0, 1)
    trust = found.trust(0)
    assert trust["verification"] == "unverified"
    assert {"exit_code:0.0", "loop_complete:0.0", "no_errors:0.0"} <= set(trust["chain"])
    child = int(told.read_text())
    for _ in range(100):  # whoever adopts it has to reap it first
        try:
            state = Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2][:1]
            os.kill(child, 0)
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("the check's child went on")


def test_a_check_ended_by_a_signal_has_minus_its_number() -> None:
    found = run_check([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"])
    assert found.exit == -signal.SIGTERM
    assert "exit_code:0.0" in found.trust(0)["chain"]


@pytest.mark.parametrize(
    ("report", "counts"),
    [
        ("<testsuite/>", (0, 0)),
        ("<testsuite><testcase/></testsuite>", (1, 1)),
        ("<testsuites><testsuite><testcase><error/></testcase><testcase/></testsuite></testsuites>", (1, 2)),
        ("<testsuite><testcase><skipped/></testcase><testcase><failure/></testcase></testsuite>", (0, 1)),
        ("<testsuite><testcase><skipped/><error/></testcase><testcase/></testsuite>", (1, 2)),
    ],
)
def test_reports_are_counted_without_what_was_skipped(report: str, counts: tuple[int, int]) -> None:
    assert read_junit(report.encode()) == counts


@pytest.mark.parametrize(
    "report",
    [
        "",
        "passed",
        "<html/>",
        "<testsuite>",
        '<?xml version="1.0" encoding="x"?><testsuite/>',
        '<!DOCTYPE t [<!ENTITY a "b">]><testsuite>&a;</testsuite>',
    ],
)
def test_what_is_no_report_is_not_counted(report: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_junit(report.encode())


def test_a_report_from_before_the_run_says_nothing_about_it(tmp_path: Path) -> None:
    report = tmp_path / "old.xml"
    report.write_text("<testsuite><testcase/><testcase/></testsuite>")
    os.utime(report, (1, 1))
    found = run_check([sys.executable, "-c", "pass", f"--junitxml={report}"])
    assert (found.source, found.passed, found.run) == ("exit", 1, 1)
    os.utime(report)
    found = run_check([sys.executable, "-c", "pass", "--junitxml", str(report)])
    assert (found.source, found.passed, found.run) == ("junit", 2, 2)
