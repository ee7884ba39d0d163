"""`troth grade` through the real command line: what the commands printed is kept and can be read."""

from __future__ import annotations

import pytest

from support.observing import needs_observer
from support.project import Project, project, sealed_project

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
