"""What a line of shell text certainly ran, and whose exit the shell's tells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.observer.shelltext import MAX_PARSED, Shells, evaluated, literal_words, read_text
from troth.observer.shellwords import fit


def ran(text: str, code: int | None) -> list[tuple[str, int | None]]:
    """The programs that certainly ran, as (words, exit)."""
    read = read_text(text, code)
    assert read.understood, text
    return [(" ".join(run.argv or ("…",)), run.exit) for run in read.runs if run.certain]


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("pytest -q", 1, [("pytest -q", 1)]),
        ("cd x && pytest -q", 0, [("pytest -q", 0)]),
        ("cd x && pytest -q", 1, []),
        ("cd x; pytest -q", 1, [("pytest -q", 1)]),
        ("pytest -q | tail -3", 0, [("pytest -q", None)]),
        ("pytest -q 2>&1 | tee log", 0, [("pytest -q", None)]),
        ("set -o pipefail; pytest -q | tail", 0, [("pytest -q", 0)]),
        ("set -o pipefail; pytest -q | tail", 1, [("pytest -q", None)]),
        ("cat <<'END' | python3 -\nx\nEND", 3, [("python3 -", 3)]),
        ("A=1 B='x y' pytest", 2, [("pytest", 2)]),
        ("time -p pytest", 0, [("pytest", 0)]),
        ("command pytest", 0, [("pytest", 0)]),
        ("command -v pytest", 0, []),
        ("! pytest", 1, [("pytest", 0)]),
        ("! pytest", 0, [("pytest", None)]),
        ("! pytest | tail", 0, [("pytest", None)]),
        ("pytest || true", 0, [("pytest", None)]),
        ("pytest || ruff check", 1, [("pytest", None), ("ruff check", 1)]),
        ("pytest; ruff check", 0, [("pytest", None), ("ruff check", 0)]),
        ("pytest & wait", 0, [("pytest", None)]),
        ("pytest &", 0, [("pytest", None)]),
        ("(cd a; make test)", 2, [("make test", 2)]),
        ("{ make; } 2>/dev/null", 0, [("make", 0)]),
        ("X=$(pytest -q) && echo $X", 0, [("pytest -q", None)]),
        ('echo "$(pytest -q)"', 0, [("pytest -q", None)]),
        ("if true; then pytest; fi", 0, []),
        ("for f in a; do pytest; done", 0, []),
        ("false && pytest || ruff", 0, []),
        ("exit 0; pytest", 0, []),
        ("exec pytest -q", 4, [("pytest -q", 4)]),
        ("set -e; mypy; pytest", 1, [("mypy", None)]),
        ("set -e; mypy; pytest", 0, [("mypy", None), ("pytest", 0)]),
        ("eval 'pytest -q'", 5, [("pytest -q", 5)]),
        ("bash -lc 'pytest -q'", 1, [("bash -lc pytest -q", 1)]),
        ("python -m 'py''test' a\\ b \"c d\" $'e\\tf'", 0, [("python -m pytest a b c d e\tf", 0)]),
        ("pytest # not -x", 0, [("pytest", 0)]),
        ("python3 - <<< 'print(1)'", 0, [("python3 -", 0)]),
        ("echo hi; cd x; export A=1", 0, []),
        ("", 0, []),
    ],
)  # fmt: skip
def test_what_ran_and_how_it_ended(text: str, code: int | None, expected: list[tuple[str, int | None]]) -> None:
    assert ran(text, code) == expected


@pytest.mark.parametrize("text", ["pytest 'unclosed", "if true; then", "a && && b", "(" * 400 + "a" + ")" * 400,
                                  "a " * MAX_PARSED, "a | " * 3000 + "b", "a; " * 3000])  # fmt: skip
def test_what_is_no_shell_text_is_not_understood(text: str) -> None:
    assert not read_text(text, 0).understood


CASES = [
    "t a; t b", "t a && t b", "f a && t b", "t a || t b", "f a || t b", "t a | t b", "f a | t b", "t a | f b",
    "set -o pipefail; f a | t b", "set -o pipefail; t a | t b", "! f a", "! t a", "set -e; f a; t b", "(t a; f b)",
    "t a && (f b; t c)", "x=$(f a); t b", "if t a; then f b; fi", "t a & wait; f b", "exit 3; t a", "t a && exec f b",
    "{ t a; f b; }", "for i in 1 2; do t a; done", "eval 't a; f b'", "t a >/dev/null && f b", "f() { t a; }; f b",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("text", CASES)
def test_a_real_shell_agrees(text: str, tmp_path: Path) -> None:
    """What is called certain left its mark, with the exit that is told of it; nothing is said that bash did not do."""
    for name, status in (("t", 0), ("f", 7)):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $1 {status}" >> {tmp_path}/marks\nexit {status}\n')
        program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", text], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, cwd=tmp_path, check=False, capture_output=True
    )
    marks = (tmp_path / "marks").read_text().splitlines() if (tmp_path / "marks").exists() else []
    seen = {tuple(line.split()[:2]): int(line.split()[2]) for line in marks}
    for run in read_text(text, done.returncode).runs:
        if run.certain:
            assert run.argv in seen, (text, done.returncode, marks)
            assert run.exit in (None, seen[run.argv])


@pytest.mark.parametrize(
    ("text", "fits", "not_this"),
    [
        ("pytest tests/*.py", ["pytest", "tests/a.py", "tests/b.py"], ["pytest", "other/a.py"]),
        ("pytest $ARGS", ["pytest"], ["ruff"]),
        ("pytest $ARGS -x", ["pytest", "-q", "-v", "-x"], ["pytest", "-q"]),
        ('pytest "$DIR/a b"', ["pytest", "/w/a b"], ["pytest", "/w/a", "b"]),
        ("pytest ~/x", ["pytest", "/home/agent/x"], ["pytest", "x"]),
        ("pytest {a,b}.py", ["pytest", "a.py", "b.py"], ["pytest"]),
        ("pytest --x=$((1+2))", ["pytest", "--x=3"], ["pytest", "--y=3"]),
        ("cp a$X", ["cp", "ab"], ["cp", "b"]),
    ],
)
def test_words_with_expansions_are_patterns(text: str, fits: list[str], not_this: list[str]) -> None:
    (run,) = read_text(text, 0).runs
    assert run.argv is None
    assert fit(run.words, fits)
    assert not fit(run.words, not_this)


def test_the_text_of_a_shell_is_found_behind_its_options() -> None:
    assert Shells.text_of(["/bin/bash", "-lc", "x y"]) == "x y"
    assert Shells.text_of(["bash", "-c", "-l", "x"]) == "x"
    assert Shells.text_of(["bash", "-o", "pipefail", "-ec", "x"]) == "x"
    assert Shells.text_of(["bash", "script.sh", "-c"]) is None
    assert Shells.text_of(["bash", "-l"]) is None
    assert Shells.text_of(["python3", "-c", "x"]) is None


def test_what_a_wrapper_hands_to_eval_is_found() -> None:
    text = "source s 2>/dev/null || true && eval 'cd x && echo '\"'\"'a b'\"'\"'' < /dev/null && pwd -P >| f"
    assert evaluated(text) == ("cd x && echo 'a b'",)
    assert evaluated('eval "$X"') == ()


def test_plain_words_are_told_from_shell_text() -> None:
    assert literal_words("bash -lc \"a 'b c'\"") == ("bash", "-lc", "a 'b c'")
    assert literal_words("a | b") is None
    assert literal_words("a $X") is None


PIECES = [
    "pytest", "cd x", "&&", "||", ";", "|", "(", ")", "{", "}", "$(", "'", '"', "<<E\n", "E\n", ">", "f", "if", "then",
    "fi", "do", "done", "$X", "*", "\\", "\n", "é", "\x00", "eval", "set -e", "!", "&", "exit", "for i in",
]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=14), st.integers(0, 255) | st.none())
def test_any_text_is_answered(parts: list[str], code: int | None) -> None:
    read = read_text(" ".join(parts), code)
    for run in read.runs:
        assert run.words
        assert run.exit is None or run.certain


@pytest.mark.parametrize(
    "text",
    ["\U00084e7e{\U0007cdb6", "exit \xd0\U00085bd9 f ; \U000dbf67 {\U000d2436 z done", "echo '\U0001f680' && pytest"],
)
def test_text_beyond_the_first_plane_is_left_as_said(text: str) -> None:
    """The grammar's scanner does not survive it, so it is not asked; the twin has a letter in its place."""
    assert not read_text(text, 0).understood
    assert read_text("echo 'é' && pytest", 0).understood


@pytest.mark.slow
def test_text_of_every_kind_a_hundred_thousand_times() -> None:
    import random

    draw = random.Random(20)
    understood = 0
    for _ in range(100_000):
        text = " ".join(draw.choices(PIECES, k=draw.randint(0, 12)))
        understood += read_text(text, draw.choice([None, 0, 1])).understood
    print(f"\nshell text: {understood} of 100000 understood")
    assert 0 < understood < 100_000
