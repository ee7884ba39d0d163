"""Totals of tests: what is read as such, and a difference between what was said and what was printed."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.observing import needs_observer
from support.tracing import lines, read
from support.watching import Watch, watch, workspace
from troth.observer.counting import compare, differences
from troth.observer.totals import Printed, Statement, may_tell, only, read_line, read_output, said_in, worded
from troth.observer.transcripts import read_transcript

__all__ = ["watch", "workspace"]


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("12 passed in 0.31s", {"passed": 12}),
        ("=== 1 failed, 12 passed, 2 warnings in 0.31s (0:00:01) ===", {"failed": 1, "passed": 12}),
        ("\x1b[32m\x1b[1m12 passed\x1b[0m\x1b[32m in 0.31s\x1b[0m", {"passed": 12}),
        ("4985/4992", {"passed": 4985, "total": 4992}),
        ("12/12 tests passed.", {"passed": 12, "total": 12}),
        ("Tests:       3 failed, 20 passed, 23 total", {"failed": 3, "passed": 20, "total": 23}),
        ("      Tests  3 failed | 20 passed (23)", {"failed": 3, "passed": 20, "total": 23}),
        ("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
         {"passed": 12, "failed": 0, "skipped": 1}),
        ("  12 passing (34ms)", {"passed": 12}),
        ("Ran 12 tests in 0.001s", {"total": 12}),
        ("FAILED (failures=1, errors=2)", {"failed": 1, "errors": 2}),
        ("# pass 12", {"passed": 12}),
    ],
)  # fmt: skip
def test_what_runners_print_is_read(line: str, want: dict[str, int]) -> None:
    assert may_tell(line)
    assert read_line(line) == want


@pytest.mark.parametrize(
    "line",
    ["12/31/2024", "src/1/2", "12 passed of 14", "4,985/4,992", "about 12 passed", "golden part: 3/4", "13/12",
     "12 passed, 13 passed", "v1.2/3"],
)  # fmt: skip
def test_what_is_more_than_totals_is_none(line: str) -> None:
    assert read_line(line) is None


def test_output_that_could_be_totals_and_is_not_understood_makes_the_rest_unclear() -> None:
    assert only("collected 12 items\n\n12 passed in 0.1s\n") == {"passed": 12}
    assert only("12 passed in 0.1s\nchecked 14 of 20 cases\n") is None
    assert only("12 passed in 0.1s\n12 passed in 0.1s\n") is None, "two suites under one command"
    assert only("Ran 12 tests in 0.1s\n\nFAILED (failures=2)\n") == {"total": 12, "failed": 2}
    assert read_output("1/3\r2/3\r3/3\n").settled()[-1] == {"passed": 3, "total": 3}
    assert only("3/3\n3/3\n") is None
    assert only("TAP version 13\nok 1 - adds\nnot ok 2 - carries\n# tests 2\n# pass 1\n# fail 1\n") == {
        "total": 2, "passed": 1, "failed": 1,
    }  # fmt: skip


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    read_output(text)
    assert all(worded(stated.totals) or not stated.totals for stated in said_in(text))


def test_a_message_made_to_take_long_is_read_once() -> None:
    """Each piece would be searched anew from every one of its marks: hours, were it not cut first."""
    assert said_in("x" + "`" * (1 << 20) + "a" * (1 << 20) + ".\n\n- `pytest -q`: 12 passed\n") == [
        Statement("pytest -q", {"passed": 12})
    ]


CLAIMS = [
    "```text\n1/2\n```\n\n- `python golden.py`: 4966/4966\n",
    "- `python golden.py`: exit 0, 4966/4966\n",
    "Mended.\n\n**`python golden.py`** exits 0, prints 4966/4966.\n",
    "## Results\n\n- mended the table\n- `python golden.py` → 4966/4966 passed\n",
]
NO_CLAIMS = [
    "Reported in the issue:\n\n- `python golden.py`: 4966/4966\n",
    "## Before\n- `python golden.py`: 4966/4966\n",
    "Expected after the merge:\n\n`python golden.py`: 4966/4966\n",
    "It was so on main.\n`python golden.py`: 4966/4966\n",
    "> `python golden.py`: 4966/4966\n",
    "```\n`python golden.py`: 4966/4966\n```\n",
    "````\n```\n`python golden.py`: 4966/4966\n```\n````\n",
    "~~~ `x`\n```\n`python golden.py`: 4966/4966\n~~~\n",
    "     ```\n     `python golden.py`: 4966/4966\n     ```\n",
    "```\n" + "x\n" * (1 << 15) + "`python golden.py`: 4966/4966\n```\n",
    "Run `python golden.py`, it should print 4966/4966\n",
    "`python golden.py`: 4966/4966 of the ones I touched\n",
    "`python golden.py`: 4966/4966?\n",
    "| `python golden.py` | 4966/4966 |\n",
    "`python golden.py`: about 5000 passed\n",
    "`python golden.py` passes: all tests pass\n",
    "Not `python golden.py`: 4966/4966\n",
    "`golden.py` and `python golden.py`: 4966/4966\n",
]


def observed(*items: tuple[str, str]) -> tuple[list[dict[str, Any]], dict[str, Printed]]:
    events = [
        {
            "id": f"e{step}",
            "type": "exec",
            "time": "2026-01-01T00:00:00Z",
            "step": step,
            "argv": words.split(),
            "exit": 1,
        }
        for step, (words, _) in enumerate(items, 1)
    ]
    return events, {f"e{step}": read_output(text) for step, (_, text) in enumerate(items, 1)}


def said(text: str, runs: tuple[tuple[str, str], ...] = ()) -> str:
    """Return a stream with calls, each with its output, and a last message."""
    rows: list[dict[str, Any]] = []
    for number, (command, output) in enumerate(runs):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
        rows.append({"type": "assistant", "session_id": "s", "message": {"content": [use]}})
        rows.append({"type": "user", "session_id": "s", "message": {"content": [answer]}})
    rows.append({"type": "assistant", "session_id": "s", "message": {"content": [{"type": "text", "text": text}]}})
    return "".join(json.dumps(row) + "\n" for row in rows)


def told(text: str, form: str, *items: tuple[str, str]) -> list[str]:
    compared = compare([read_transcript(BytesIO(text.encode()), form)], *observed(*items))
    return list(differences(one.as_json() for one in compared))


GOLDEN = ("python golden.py", "4985/4992\n")
DIFFERENCE = ["4966/4966 was claimed of python golden.py, which printed 4985/4992"]


@pytest.mark.parametrize("text", CLAIMS)
def test_totals_of_a_last_message_that_nothing_printed_are_told_with_both(text: str) -> None:
    assert told(said(text), "claude-stream", GOLDEN) == DIFFERENCE
    assert told(said(text), "claude-stream", ("python golden.py", "4966/4966\n")) == []
    codex = json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": text}}) + "\n"
    assert told(codex, "codex-exec", GOLDEN) == DIFFERENCE


@pytest.mark.parametrize("text", NO_CLAIMS)
def test_what_is_no_plain_statement_of_totals_is_held_against_nobody(text: str) -> None:
    assert told(said(text), "claude-stream", GOLDEN) == []


def test_totals_in_a_log_a_claims_file_and_a_forged_result_are_compared() -> None:
    log = "```console\n$ python golden.py\n{}\n[exit 0]\n```\n"
    assert told(log.format("4966/4966"), "plain", GOLDEN) == DIFFERENCE
    assert told(log.format("4985/4992"), "plain", GOLDEN) == []
    line = '{"argv": ["python", "golden.py"], "exit": 0, "totals": "%s"}\n'
    assert told(line % "4966/4966", "claims", GOLDEN) == DIFFERENCE
    assert told(line % "4985/4992", "claims", GOLDEN) == []
    assert told(said("", (("cd . && python golden.py | tail -1", "4966/4966"),)), "claude-stream", GOLDEN) == DIFFERENCE
    assert told(said("", (("cd . && python golden.py | tail -1", "4985/4992"),)), "claude-stream", GOLDEN) == []


def test_honest_near_misses_are_no_difference() -> None:
    failed = ("pytest", "2 failed, 10 passed, 1 skipped in 0.2s\n")
    passed = ("pytest", "12 passed, 1 skipped in 0.2s\n")
    last = "`pytest`: {}"
    # An earlier run's, a part of what was printed, skipped ones left out, a wrapper, another spelling.
    assert told(said(last.format("12 passed")), "claude-stream", passed, failed) == []
    assert told(said(last.format("12 passed, 1 skipped")), "claude-stream", passed) == []
    assert told(said(last.format("12/12")), "claude-stream", passed) == []
    assert told(said(last.format("13/13")), "claude-stream", ("pytest", "13 passed, 2 xfailed in 1s\n")) == []
    assert told(said(last.format("10 passed")), "claude-stream", failed) == []
    assert told(said("`uv run pytest`: 12 passed"), "claude-stream", passed) == []
    assert told(said("`python -m pytest`: 12 passed"), "claude-stream", passed) == []
    # Another command's, one of which nothing was seen, one with output that is not understood, two suites in one.
    assert told(said("`pytest tests/a`: 3 passed"), "claude-stream", passed) == []
    assert told(said(last.format("9 passed")), "claude-stream", ("pytest", "")) == []
    assert told(said(last.format("9 passed")), "claude-stream", ("pytest", "checked 9 of 9\n3 passed in 1s\n")) == []
    assert told(said(last.format("24 passed")), "claude-stream", ("pytest", "12 passed in 1s\n12 passed in 1s\n")) == []
    assert told(said("`pytest a && pytest b`: 24 passed"), "claude-stream", ("pytest a", "12 passed in 1s\n")) == []
    assert told(said(last.format("9 passed")), "claude-stream", ("pytest", "8 passed in 1s\n"), ("pytest", "")) == []
    # And what none of these is.
    assert told(said(last.format("13 passed")), "claude-stream", passed, failed) == [
        "13 passed was claimed of pytest, which printed 10 passed, 2 failed, 1 skipped"
    ]
    assert told(said(last.format("13/13")), "claude-stream", failed) != []
    assert told(said("`python3 -m unittest`: 13/13"), "claude-stream", ("python3 -m unittest", "Ran 12 tests in 1s\n"))


def test_a_message_before_a_call_is_not_the_last() -> None:
    rows = said("`python golden.py`: 4966/4966") + said("", (("ls", ""),))
    assert told(rows, "claude-stream", GOLDEN) == []


# --- what the trace shows ---


def printed(tmp_path: Path, *writes: str) -> dict[str, list[dict[str, int]]]:
    report = read(lines(*writes), tmp_path)
    return {event: [dict(line) for line in known.settled()] for event, known in report.printed.items()}


def test_lines_are_joined_from_writes_and_what_is_cut_is_not_guessed(tmp_path: Path) -> None:
    whole = r'101 write(1<pipe:[7]>, "4985/4992\n", 10) = 10'
    assert printed(tmp_path, whole) == {"e1": [{"total": 4992, "passed": 4985}]}
    parts = [r'101 write(1<pipe:[7]>, "49", 2) = 2', r'101 write(1<pipe:[7]>, "85/4992", 7) = 7']
    assert printed(tmp_path, *parts) == {"e1": [{"total": 4992, "passed": 4985}]}, (
        "told at the end, without a line feed"
    )
    assert printed(tmp_path, r'101 write(1<pipe:[7]>, "85/4992\n"..., 40000) = 40000', whole) == {"e1": []}
    assert printed(tmp_path, r'101 write(1<pipe:[7]>, "85/4992\n", 8) = 4', whole) == {"e1": []}
    assert printed(tmp_path, r"101 writev(1<pipe:[7]>, 0x7ffe, 2) = 9", whole) == {"e1": []}
    assert printed(tmp_path, r'101 write(3<pipe:[7]>, "4985/4992\n", 10) = 10') == {}
    many = [rf'101 write(1<pipe:[7]>, "{n}/{n}\n", 6) = 6' for n in range(10, 90)]
    assert printed(tmp_path, *many) == {"e1": []}


@needs_observer
def test_a_run_is_held_to_what_it_was_seen_to_print(workspace: Path, watch: Watch) -> None:
    (workspace / "golden.py").write_text("import sys\nprint('4985/4992')\nsys.exit(1)\n")
    script = """
import json, subprocess, sys
subprocess.run(["sh", "-c", f"{sys.executable} golden.py | cat > /dev/null"])
text = "`%s golden.py`: exit 0, TOTALS" % sys.executable
print(json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": text}}))
"""
    for totals, differs in (("4966/4966", True), ("4985/4992", False)):
        observed = watch(script.replace("TOTALS", totals), transcripts=("codex-exec:-",)).observed
        assert [totals in line and "4985/4992" in line for line in observed.gathered.differing] == [True] * differs
