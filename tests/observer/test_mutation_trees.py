"""Mutations of the languages that have a grammar: one rule at a time, and what is left alone."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.observing import needs_observer
from troth.observer import mutation_trees
from troth.observer.commands import Bench, run_command
from troth.observer.contract_source import Acceptance
from troth.observer.copies import copy_workspace
from troth.observer.mutants import Adequacy, Baseline, measure, mutable_files
from troth.observer.mutation_trees import LANGUAGES, holds_tests, is_real, missing, mutations
from troth.observer.tree import snapshot

RULES: dict[str, list[tuple[str, list[str]]]] = {
    "a.js": [
        ("q = a < b", ["q = a <= b"]),
        ("q = a === b && c", ["q = a !== b && c", "q = a === b || c"]),
        ("if (a) b", ["if (!(a)) b"]),
        ("if (!a) b", ["if (!(!a)) b"]),
        ("q = a ? b : c", ["q = !(a) ? b : c"]),
        ("q = 3", ["q = 4", "q = 2"]),
        ("q = 1.5", ["q = 2.5"]),
        ("q = 'é'", ['q = ""']),
        ("q = ''", ['q = "x"']),
        ("q = true", ["q = false"]),
        ("f();", [";"]),
        ("a.b = c;", [";"]),
        ("throw e;", [";"]),
        ("function f() { return a; }", ["function f() { return undefined; }"]),
        ("for (;;) { break; }", ["for (;;) { continue; }"]),
        ("switch (a) { case b: break; }", []),
        ("'use strict'", []),
        ("import a from 'm'", []),
        ("export * from 'm'", []),
        ("const q = require('m')", []),
        ("const q = { 'k': v }", []),
        ("q = `a`", []),
        ("const q = a", []),
        ("/* a < b */", []),
    ],
    "a.ts": [
        ("const q: 1 = a + b", []),
        ("const q = a + 2", ["const q = a - 2", "const q = a + 3", "const q = a + 1"]),
        ("f();", []),
        ("type T = 'x' | 'y'", []),
        ("const q = a <= b", ["const q = a < b"]),
    ],
    "a.go": [
        ("func f() bool { return a == b }", ["func f() bool { return a != b }"]),
        ("func f() { if a { g() } }", ["func f() { if !(a) { g() } }"]),
        ("func f() { switch a { case 1: g() } }", []),
        ("var q [3]int", []),
        ('import "fmt"', []),
        ('var q = "x" + y', ['var q = "" + y']),
        ("func f() { for i := a; i < b; i++ { } }", ["func f() { for i := a; i <= b; i++ { } }"]),
    ],
    "a.rs": [
        ("fn f() -> bool { a >= b }", ["fn f() -> bool { a > b }"]),
        ("fn f() { if a { g() } }", ["fn f() { if !(a) { g() } }"]),
        ("fn f() { if let Some(x) = a { g() } }", []),
        ("fn f() { match a { 1 => g(), _ => h() } }", []),
        ("#[cfg(test)] mod tests { fn f() -> bool { a == b } }", []),
        ("#[test] fn f() { let q = 1; }", []),
        ("#[inline] fn f() -> bool { true }", ["#[inline] fn f() -> bool { false }"]),
        ("#[test] fn f() { h(1); } fn g() -> bool { a == b }", ["#[test] fn f() { h(1); } fn g() -> bool { a != b }"]),
        ('fn f() { println!("x"); }', []),
    ],
    "a.c": [
        ("int f(void) { return a == b; }", ["int f(void) { return a != b; }"]),
        ("int f(void) { while (a) g(); }", ["int f(void) { while (!(a)) g(); }"]),
        ("char q[3];", []),
        ('#include "x.h"', []),
        ("int f(void) { switch (a) { case 1: g(); } }", []),
        ("int f(void) { return a * b; }", ["int f(void) { return a / b; }"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "source", "wanted"), [(path, *case) for path, cases in RULES.items() for case in cases]
)
def test_a_source_becomes(path: str, source: str, wanted: list[str]) -> None:
    data = (source + "\n").encode()
    found = mutations(path, data)
    assert sorted(made.applied(data).decode().rstrip("\n") for made in found) == sorted(wanted)
    assert all(is_real(made, data) for made in found)


def test_places_are_those_of_the_edited_span() -> None:
    (made,) = mutations("a.js", "é = 1\nä = b < c\n".encode())[2:]
    assert (made.line, made.column, made.before, made.after) == (2, 7, "<", "<=")


def test_what_is_malformed_or_unknown_has_none() -> None:
    for data in (b"a = = b < c", b"a < b \xff", b"'" + b"x" * (3 << 20) + b"'", b"\x00\x01"):
        assert mutations("a.js", data) == []
    assert mutations("a.txt", b"a < b") == []
    assert mutations(".js", b"a < b") == []
    deep = b"(\n" * 20_000 + b"a < b" + b")\n" * 20_000
    assert len(mutations("a.js", b"q = " + deep)) == 1
    assert mutations("a.js", b"a < b;" * 2000) == []  # one line, as a program writes it
    assert len(mutations("a.js", b"a < b;\n" * 2000)) == 2000


@given(st.binary(max_size=200), st.sampled_from(sorted(LANGUAGES)))
def test_any_bytes_are_taken(data: bytes, ending: str) -> None:
    for made in mutations("a" + ending, data):
        assert made.applied(data) != data


def test_what_macros_hide_in_c_says_nothing_of_the_rest() -> None:
    source = b"int ZEXPORT f(a, b)\n    int a;\n    int b;\n{\n    return b == 0 ? 2L : a;\n}\n\n"
    source += b"int g(int a) { return a > 1; }\n"
    found = mutations("a.c", source)
    assert {(one.line, one.before) for one in found} >= {(8, ">"), (8, "1")}
    assert all(is_real(one, source) for one in found)
    cut = next(one for one in found if one.before == ">")
    assert not is_real(dataclasses.replace(cut, after="> ("), source)
    assert mutations("a.js", b"function f( { return a > 1; }") == []


def test_files_of_tests_and_settings_are_nobodys_mutants() -> None:
    files = ["src/a.ts", "src/a.test.ts", "a.d.ts", "b_test.go", "b.go", "vite.config.mjs", "lib.rs", "build.rs",
             "__tests__/x.js", "x.min.js", "dist/x.js", "c.c", "node_modules/a/b.js"]  # fmt: skip
    assert mutable_files(files, protected=lambda _: False, inside=None) == ["b.go", "c.c", "lib.rs", "src/a.ts"]
    assert holds_tests("x.spec.tsx")
    assert not holds_tests("spec.rs")


def test_a_language_without_its_grammar_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(["a.js", "a.go"]) == []
    monkeypatch.setattr(mutation_trees, "_parser", lambda module, _: None if module.endswith("go") else object())
    assert missing(["a.js", "a.go", "b.go", "a.py"]) == ["Go"]


# --- real runs ---

PROJECTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "npm": (
        {
            "package.json": '{"name": "a", "scripts": {"test": "node --test"}}',
            "add.js": "exports.add = (a, b) => a + b;\nexports.big = (a) => a > 10;\n",
            "add.test.js": "const {add} = require('./add.js');\nrequire('node:test')('adds', () => "
            "require('node:assert').equal(add(1, 2), 3));\n",
        },
        ("npm", "test"),
    ),
    "make": (
        {
            "Makefile": "test: check\n\t./check\ncheck: main.c add.c\n\tcc -o check main.c add.c\n",
            "add.c": "int add(int a, int b) { return b == 0 ? a : add(a + 1, b - 1); }\n"
            "int big(int a) { return a > 10; }\n",
            "main.c": "int add(int, int);\nint main(void) { return add(1, 2) == 3 ? 0 : 1; }\n",
        },
        ("make", "test"),
    ),
}


def measured(root: Path, argv: tuple[str, ...], inside: str) -> Adequacy:
    bench = Bench(str(root))
    tree = snapshot(root)
    copy_workspace(root, tree, root.parent / "work")
    base = Baseline(Acceptance("suite", argv), tuple(run_command(bench, root.parent / "work", argv) for _ in range(2)))
    assert base.passes, base.runs[0].output
    return measure(bench, root, tree, [base], [inside], limit=20, budget=200)


@needs_observer
@pytest.mark.observer
@pytest.mark.slow
@pytest.mark.parametrize("name", PROJECTS)
def test_a_weak_suite_lets_the_untested_survive(name: str, tmp_path: Path) -> None:
    files, argv = PROJECTS[name]
    root = tmp_path / "project"
    root.mkdir()
    for path, text in files.items():
        (root / path).write_text(text)
    inside = "add.js" if name == "npm" else "add.c"
    found = measured(root, argv, inside)
    assert found.killed > 0
    survived = found.as_json()["survived"]
    assert any(line.startswith(f"{inside}:2: comparison: '>' became '>='") for line in survived)
    assert not any(line.startswith(f"{inside}:1: arithmetic") for line in survived)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["a.c"])
def test_mutants_of_a_typed_language_compile(path: str, tmp_path: Path) -> None:
    source = PROJECTS["make"][0]["add.c"].encode()
    for made in mutations(path, source):
        (tmp_path / path).write_bytes(made.applied(source))
        done = subprocess.run(["cc", "-c", "-o", "/dev/null", path], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, (made, done.stderr)
