"""`troth grade` through the real command line: what the commands printed is kept and can be read."""

from __future__ import annotations

import pytest

from support.observing import needs_observer
from support.project import HEAD, HONEST, RUN, Project, agent, project, sealed_project

__all__ = ["project", "sealed_project"]
pytestmark = [needs_observer, pytest.mark.observer]

NOISE = "print('\\x1b[31mred\\x1b[0m and told')\n"


def test_what_the_commands_printed_is_shown_run_by_run_when_asked(project: Project) -> None:
    app = project.root / "src" / "app.py"
    app.write_text(NOISE + app.read_text().replace("return value", "return 2 * value"))
    words = ("grade", "--contract", project.contract, "--repeats", "2")
    shown = project.troth(*words, "--show-output")
    assert shown.exit == 0, shown
    assert "--- suite, run 1 of 2: exit 0" in shown.out
    assert "--- suite, run 2 of 2: exit 0" in shown.out
    assert shown.out.count("and told") == 2
    assert "Ran 2 tests" in shown.out
    # What a graded program prints reaches the terminal as text, never as a command to it.
    assert "\x1b[31m" not in shown.out
    plain = project.troth(*words)
    assert "and told" not in plain.out
    assert plain.exit == 0


def test_what_a_failing_command_printed_is_shown_at_its_end_unasked(project: Project) -> None:
    app = project.root / "src" / "app.py"
    app.write_text(
        "import sys\nfor n in range(100):\n    print('line', n, file=sys.stderr)\n" + NOISE + app.read_text()
    )
    failed = project.troth("grade", "--contract", project.contract)
    assert failed.exit == 1, failed
    assert "the end of what suite printed:" in failed.out
    assert "FAILED (failures=1)" in failed.out
    assert "\nline 1\n" not in failed.out, "the end, not the whole"
    assert "\x1b[31m" not in failed.out
    whole = project.troth("grade", "--contract", project.contract, "--show-output")
    assert "\nline 1\n" in whole.out


def test_a_run_shows_the_same(project: Project) -> None:
    failed = project.run(None, HEAD + RUN)
    assert failed.exit == 1
    assert any("FAILED (failures=1)" in line for line in failed.json["ends_of_output"])
    commitment = failed.json["commitment"]
    words = ("run", commitment, "--contract", project.contract, "--as", "agent:worker", "--quiet")
    told = project.troth(*words, "--", *agent(HEAD + RUN))
    assert "  the end of what suite printed:" in told.out
    assert "--- suite, run 1 of 1" not in told.out
    mended = project.troth(*words, "--show-output", "--", *agent(HONEST))
    assert mended.exit == 0, mended
    assert "  --- suite, run 1 of 1: exit 0" in mended.out
    assert "the end of what" not in mended.out
