"""From what was said to the claims record: what is matched to what, and what is never made of nothing."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.observer.checkers import check_kind
from troth.observer.matching import LEFT_OUT, RULES, Matched, entries_of, match
from troth.observer.transcripts import Said, read_transcript
from troth.receipts.checks import CONTRADICTING, judge_claims

HERE = Path(__file__).parent / "transcripts"
SAMPLES = sorted(path.parent for path in HERE.glob("*/sample.json"))


def seen(*items: Any) -> list[dict[str, Any]]:
    """Events: ``(argv, exit)`` for a program (and its origin's place), a text for a write by the agent."""
    events = []
    for step, item in enumerate(items, 1):
        event: dict[str, Any] = {"id": f"e{step}", "time": "2026-01-01T00:00:00Z", "step": step}
        if isinstance(item, str):
            event |= {"type": "write", "path": item}
        else:
            event |= {"type": "exec", "argv": list(item[0]), "exit": item[1]}
            if len(item) > 2:
                event["origin"] = f"e{item[2]}"
        events.append(event)
    return events


def ran(text: str, code: int | None = 0) -> Said:
    return Said(1, text=text, exit=code)


def stated(*argv: str, code: int | None = 0) -> Said:
    return Said(1, argv=argv, exit=code, call=False)


def outcomes(said: list[Said], events: list[dict[str, Any]]) -> list[str]:
    """What the receipt's check makes of each entry of the record."""
    entries = entries_of(match([said], events))
    return [judged.outcome for judged in judge_claims({"claims": entries}, {"events": events})]


def one(said: Said, events: list[dict[str, Any]]) -> Matched:
    (found,) = match([[said]], events)
    return found


PYTEST = ["pytest", "-q"]
SHELL = ["/bin/bash", "-c"]

NEAR_MISSES = [
    # what was said, what was observed, the rule that joins them
    ("pytest -q", [(PYTEST, 0)], "exact"),
    ("cd x && pytest -q", [([*SHELL, "cd x && pytest -q"], 0), (PYTEST, 0, 1)], "exact"),
    ("pytest -q | tail -5", [(PYTEST, 0), (["tail", "-5"], 0)], "exact"),
    ("pytest -q 2>&1 | tee log", [(PYTEST, 0), (["tee", "log"], 0)], "exact"),
    ("A=1 B=2 pytest -q", [(PYTEST, 0)], "exact"),
    ("env A=1 pytest -q", [(["env", "A=1", "pytest", "-q"], 0), (PYTEST, 0, 1)], "exact"),
    ("env A=1 pytest -q", [(PYTEST, 0)], "wrapped"),
    ("uv run pytest -q", [(["uv", "run", "pytest", "-q"], 0), (["/w/.venv/bin/pytest", "-q"], 0, 1)], "exact"),
    ("uv run pytest -q", [(["/w/.venv/bin/pytest", "-q"], 0)], "wrapped"),
    ("timeout 60 pytest -q", [(PYTEST, 0)], "wrapped"),
    ("python -m pytest -q", [(["python", "-m", "pytest", "-q"], 0)], "exact"),
    ("python -m pytest -q", [(["/usr/bin/python3", "-m", "pytest", "-q"], 0)], "python"),
    ("python -m pytest -q", [(["/w/.venv/bin/pytest", "-q"], 0)], "module"),
    ("pytest -q", [(["python3", "-m", "pytest", "-q"], 0)], "module"),
    ("pytest -q", [(["/w/.venv/bin/pytest", "-q"], 0)], "path"),
    (".venv/bin/pytest -q", [(["/w/.venv/bin/pytest", "-q"], 0)], "path"),
    ("./run.sh all", [(["./run.sh", "all"], 0), (PYTEST, 0, 1)], "exact"),
    ("bash -lc 'pytest -q'", [(["bash", "-lc", "pytest -q"], 0), (PYTEST, 0, 1)], "exact"),
    ("pytest tests/*.py", [(["pytest", "tests/a.py", "tests/b.py"], 0)], "expanded"),
    ('pytest "$HERE/tests"', [(["pytest", "/w/tests"], 0)], "expanded"),
    ("'pytest' \"-q\"", [(PYTEST, 0)], "exact"),
    ("time pytest -q", [(PYTEST, 0)], "exact"),
    ("grep -q x f", [([*SHELL, "source s && eval 'grep -q x f' </dev/null"], 0), (["ugrep", "x"], 0, 1)], "shell"),
    ("for f in a b; do pytest $f; done", [([*SHELL, "for f in a b; do pytest $f; done"], 0)], "shell"),
    ("for f in a b; do pytest $f; done", [(["pytest", "a"], 0), (["pytest", "b"], 0)], "one_of"),
    ("if pytest -q; then echo ok; fi", [(PYTEST, 0)], "one_of"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "items", "rule"), NEAR_MISSES)
def test_an_honest_near_miss_is_matched_and_its_reason_kept(text: str, items: list[Any], rule: str) -> None:
    found = one(ran(text), seen("src/app.py", *items))
    assert (found.rule, found.left_out) == (rule, None)
    assert RULES[rule] == found.as_json()["because"]
    assert outcomes([ran(text)], seen("src/app.py", *items)) == ["matched"]


@pytest.mark.parametrize("text", sorted({text for text, _, _ in NEAR_MISSES}))
def test_its_twin_that_ran_nothing_stays_as_said_and_is_contradicted(text: str) -> None:
    nothing = seen("src/app.py", (["ls"], 0), (["git", "status"], 0))
    assert outcomes([ran(text)], nothing) == ["unmatched"]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("pytest -q", [(["pytest"], 0)]),
        ("pytest -q", [(["pytest", "-q", "-x"], 0)]),
        ("pytest -q", [(["./pytest", "-q"], 0)]),
        ("pytest -q", [(["/w/tools/pytest", "-q"], 0)]),
        ("pytest -q", [(["echo", "pytest", "-q"], 0)]),
        ("pytest -q", [([*SHELL, "true || pytest -q"], 0)]),
        ("pytest -q", [(["python3", "-c", "pytest -q"], 0)]),
        ("pytest -q", [(["python3", "-m", "pytests", "-q"], 0)]),
        ("pytest tests/*.py", [(["pytest", "other/a.py"], 0)]),
        ("cargo test", [(["cargo", "build"], 0)]),
        ("gh issue list --state open", [(["gh", "issue", "list"], 0)]),
        ("pytest() { true; }; pytest -q", [([*SHELL, "x"], 0)]),
    ],
)
def test_another_command_is_no_match(text: str, items: list[Any]) -> None:
    assert outcomes([ran(text)], seen(*items)) == ["unmatched"]


def test_a_check_must_itself_have_been_seen_not_only_the_shell_with_its_text() -> None:
    """A function of that name, made beforehand, would run nothing; the honest twin is a program behind an alias."""
    shell = ([*SHELL, "eval 'pytest -q'"], 0)
    assert outcomes([ran("pytest -q")], seen(shell)) == ["unmatched"]
    assert outcomes([ran("pytest -q")], seen(shell, (["python3", "-m", "pytest", "-q"], 0, 1))) == ["matched"]


# --- exits ---


def test_a_claimed_exit_is_the_programs_where_the_shells_tells_it() -> None:
    events = seen((PYTEST, 1))
    assert outcomes([ran("pytest -q", 0)], events) == ["mismatch"]
    assert outcomes([ran("pytest -q", 1)], events) == ["matched"]
    assert outcomes([ran("cd x && pytest -q", 0)], events) == ["mismatch"]
    # Through a pipe the agent was told tail's exit, and said nothing of pytest's.
    assert outcomes([ran("pytest -q | tail", 0)], events) == ["matched"]
    assert outcomes([ran("set -o pipefail; pytest -q | tail", 0)], events) == ["mismatch"]
    assert outcomes([ran("pytest -q; echo done", 0)], events) == ["matched"]


def test_a_program_ended_by_a_signal_has_two_numbers_and_one_end() -> None:
    assert entries_of(match([[ran("sleep 9", 139)]], seen((["sleep", "9"], -11)))) == (
        {"id": "c1", "argv": ["sleep", "9"], "exit": -11},
    )
    assert outcomes([ran("sleep 9", 139)], seen((["sleep", "9"], 0))) == ["mismatch"]


def test_what_could_not_be_started_claims_nothing() -> None:
    found = one(ran("no-such --version", 127), seen((["ls"], 0)))
    assert (found.left_out, entries_of([found])) == ("not_started", ())
    assert outcomes([ran("no-such --version", 0)], seen((["ls"], 0))) == ["unmatched"]


def test_builtins_start_no_program() -> None:
    assert one(ran("cd src && export A=1; echo hi"), seen()).left_out == "builtin"


# --- time ---


def test_what_ran_as_said_before_an_edit_is_of_its_time() -> None:
    events = seen((["ls"], 0), (PYTEST, 1), "src/app.py", (PYTEST, 0))
    said = [ran("ls"), ran("pytest -q", 1), ran("pytest -q", 0)]
    found = match([said], events)
    assert [entry.left_out for entry in found] == ["of_its_time", "of_its_time", None]
    assert entries_of(found) == ({"id": "c1", "argv": PYTEST, "exit": 0},)
    assert set(LEFT_OUT) >= {entry.left_out for entry in found if entry.left_out}


def test_a_check_that_passed_and_was_not_made_again_is_held_to_the_end() -> None:
    """Ran, then a file was written: stale, which is told as such; made again, it holds."""
    tests, lint = (PYTEST, 0), (["ruff", "check", "."], 0)
    said = [ran("pytest -q"), ran("ruff check .")]
    before = seen("src/app.py", tests, lint, ".changeset/x.md")
    assert outcomes(said, before) == ["stale", "stale"]
    after = seen("src/app.py", tests, lint, ".changeset/x.md", tests, lint)
    assert outcomes([*said, *said], after) == ["matched", "matched"]
    narrower = seen("src/app.py", (["pytest", "tests/a.py"], 0), "src/app.py", tests)
    assert outcomes([ran("pytest tests/a.py"), ran("pytest -q")], narrower) == ["matched"]


def test_a_script_that_runs_a_check_is_a_check() -> None:
    script, inner = (["./all.sh"], 0), (PYTEST, 0, 2)
    assert outcomes([ran("./all.sh")], seen("src/app.py", script, inner, "src/app.py")) == ["stale"]
    assert outcomes([ran("./all.sh")], seen("src/app.py", script, (["ls"], 0, 2), "src/app.py")) == []
    again = seen("src/app.py", script, inner, "src/app.py", (PYTEST, 0))
    assert outcomes([ran("./all.sh"), ran("pytest -q")], again) == ["matched"]


def test_a_statement_is_held_as_it_was_made() -> None:
    events = seen((["ls", "-l"], 0), "src/app.py")
    assert outcomes([stated("ls", "-l")], events) == ["stale"]
    assert outcomes([ran("ls -l")], events) == []


def test_a_lie_about_the_past_is_no_matter_of_time() -> None:
    events = seen((PYTEST, 1), "src/app.py")
    assert outcomes([ran("pytest -q", 0)], events) == ["stale"]
    assert outcomes([ran("ls", 0)], events) == ["unmatched"]
    assert outcomes([ran("false-friend x", 0)], seen((["false-friend", "x"], 3), "src/app.py")) == ["stale"]


def test_the_last_claim_of_each_vector_counts() -> None:
    found = match([[ran("make", 2), ran("make", 0)]], seen((["make"], 2), (["make"], 0)))
    assert [entry.left_out for entry in found] == ["superseded", None]
    assert entries_of(found) == ({"id": "c1", "argv": ["make"], "exit": 0},)


def test_transcripts_of_several_agents_are_put_in_the_order_of_their_times() -> None:
    inner = [Said(1, text="make", exit=0, by="a", time="2026-01-01T00:00:09Z")]
    outer = [Said(1, text="make", exit=2, time="2026-01-01T00:00:01Z")]
    found = match([inner, outer], seen((["make"], 2), (["make"], 0)))
    assert [(entry.source, entry.left_out) for entry in found] == [(1, "superseded"), (0, None)]


# --- the law ---

WORDS = ["pytest", "-q", "cd", "x", "&&", "||", ";", "|", "tail", "make", "$X", "*.py", "'a b'", "uv", "run", "env",
         "A=1", "python3", "-m", "bash", "-c", "if", "then", "fi", "(", ")", ">", "f", "time", "ls"]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.sampled_from([0, 1, None])), max_size=5
    ),
    st.sampled_from([0, 1, None]),
)
def test_a_run_that_did_not_happen_is_never_made_one_that_did(
    texts: list[str], programs: list[tuple[list[str], int | None]], code: int | None
) -> None:
    events = seen(*programs)
    vectors = {tuple(argv) for argv, _ in programs}
    found = match([[ran(text, code) for text in texts]], events)
    for entry in found:
        if entry.rule is not None:
            assert entry.argv in vectors
            assert entry.event in {event["id"] for event in events}
        elif entry.left_out is None:
            assert entry.argv not in vectors
    # What is left out without having been seen is a builtin or said not to have started.
    assert {entry.left_out for entry in found if entry.rule is None} <= {None, "builtin", "not_started", "superseded"}
    nothing = match([[ran(text, code) for text in texts]], [])
    judged = judge_claims({"claims": entries_of(nothing)}, {"events": []})
    assert all(one.outcome == "unmatched" for one in judged)
    starting = [entry for entry in nothing if entry.left_out is None]
    assert bool(judged) is bool(starting)


# --- real tools ---


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda folder: folder.name)
def test_real_runs_of_real_tools_are_accused_of_nothing(folder: Path) -> None:
    about = json.loads((folder / "sample.json").read_text())
    events = json.loads((folder / "observation.json").read_text())["events"]
    found = read_transcript(BytesIO((folder / about["file"]).read_bytes()), about["format"])
    assert [outcome for outcome in outcomes(list(found.said), events) if outcome in CONTRADICTING] == []
    # The same transcript beside an observation of nothing is contradicted in its first claim.
    assert set(outcomes(list(found.said), [])) == {"unmatched"}


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (["pytest", "-q"], "pytest"), (["uv", "run", "pytest"], "pytest"), (["python3", "-m", "pytest"], "pytest"),
        (["python3", "-m", "unittest"], "unittest"), (["python", "-m", "mypy", "src"], "mypy"),
        (["npx", "-y", "tsc"], "tsc"),
        (["npm", "test"], "npm test"), (["npm", "install"], None), (["cargo", "clippy"], "cargo clippy"),
        (["ruff", "format"], None), (["ruff", "check"], "ruff check"), (["black", "."], None), (["make"], "make"),
        (["./gradlew", "check"], "gradlew check"), (["./test.sh"], "test"), (["ls"], None), (["git", "status"], None),
        (["python3", "x.py"], None), (["test", "-f", "x"], "test"),
    ],
)  # fmt: skip
def test_what_is_a_check(argv: list[str], kind: str | None) -> None:
    assert check_kind(argv) == kind
