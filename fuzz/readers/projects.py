"""Readers of what stands in a stranger's project before anything of it was run: its settings and its sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from fuzz.readers.common import asserted, written
from troth.observer.project import Project, expressible


class _Project(Project):
    """A project whose files lie in memory."""

    __slots__ = ("held",)

    def __init__(self, held: Mapping[str, bytes]) -> None:
        names = [name for name in held if expressible(name) is None]
        folders = {"/".join(name.split("/")[:count]) for name in names for count in range(1, name.count("/") + 1)}
        super().__init__(Path("/nowhere"), frozenset(names) - folders, frozenset(folders))
        self._texts.update((name, held[name].decode("utf-8", "replace")) for name in names)
        self.held = held

    def beginning(self, path: str) -> str:
        """Return what a source file begins with."""
        return self.held[path][:1000].decode("utf-8", "replace")


def _proposal(data: bytes) -> Answer:
    """What a project proposes is a contract that our own reader takes, and names nothing outside of the project."""
    from troth.core.errors import TrothError
    from troth.observer.contract_source import parse_source
    from troth.observer.detecting import as_json, detect
    from troth.observer.proposal import render

    found = detect(_Project(seeds.unpacked(data)))
    as_json(found)
    text = render(found, contract_id="c", task="x")
    if not found.of("command") or not found.of("protect"):
        return "nothing_to_propose"
    try:
        parse_source(text, "contract.toml")
    except TrothError as fault:
        asserted(False, f"a proposal that cannot be sealed: {fault.code} {fault.message}")
    return None


def _source(data: bytes) -> Answer:
    """Mutants of a source: each changes just the bytes it names. The name stands before the text."""
    from troth.observer import mutants

    answer: Answer = "no_mutants"
    for name, text in seeds.unpacked(data).items():
        made = mutants._mutations(name, text)
        for one in made[:: max(1, len(made) // 5)]:
            edited = one.applied(text)
            asserted(text[: one.start] == edited[: one.start], "bytes before a mutation were changed")
            asserted(edited.endswith(text[one.end :]), "bytes behind a mutation were changed")
            asserted(text[one.start : one.end].decode() == one.before, "a mutation names other bytes")
            mutants._is_real(one, text)
            answer = None
    return answer


def _login(data: bytes) -> Answer:
    from troth.observer import profiles

    found = [*profiles._texts(profiles._bounded(written("login.json", data)))]
    return None if found else "no_secrets"


def _status(data: bytes) -> Answer:
    """What the sandbox's first process and bubblewrap say of a program."""
    from troth.observer.confine import _told
    from troth.observer.sandbox import child_pid

    pid, told = child_pid(data), _told(data)
    _ = int(told.get("exit", 0)), tuple(told.get("left", ())), int(told.get("strayed", 0))
    return None if pid is not None else "no_pid"


_PYTHON: Final = {
    "pyproject.toml": b'[project]\nname = "x"\n[tool.pytest.ini_options]\ntestpaths = ["tests", "more"]\n',
    "tox.ini": b"[pytest]\ntestpaths = tests\n", "setup.cfg": b"[tool:pytest]\ntestpaths = tests\n  more\n",
    "tests/test_a.py": b"import pytest\ndef test_a():\n    pass\n", "tests/conftest.py": b"", "src/x.py": b"x = 1\n",
}  # fmt: skip
_OTHERS: Final = {
    "package.json": b'{"scripts": {"test": "jest --ci"}, "jest": {}}', "yarn.lock": b"", "jest.config.js": b"",
    "Makefile": b"check test: x\n\tpytest\n", "a.mk": b"", "test/a.test.js": b"test()", ".github/workflows/ci.yml": b"",
}  # fmt: skip
_PLAIN: Final = {"tests/test_b.py": b"import unittest\n", "GNUmakefile": b"test::\n\ttrue\n", "go.mod": b"module x\n"}
_INI: Final = {"pytest.ini": b"[pytest]\ntestpaths =\n    tests\n", "tests/b_test.py": b"def test_b(): ...\n"}
_SOURCES: Final = (
    {"a.py": b'"""x"""\nimport os\n\n\ndef f(a: int, *b, c=1) -> int:\n    if a > 1 and not b or c is None:\n'
             b"        return a + 1 - 2 * 3\n    x = [i for i in range(10) if i != 5]\n    while True:\n        break\n"
             b"    a += 1\n    raise ValueError(f'{a!r} \xc3\xa9')\n\n\nif __name__ == '__main__':\n    f(0x10)\n"},
    {"a.js": b"// x\nexport function f(a, b = 1) {\n  if (a >= b && !b) { return a + 'x'; }\n  "
             b"for (let i = 0; i < 3; i++) { continue; }\n  return a === 1 ? true : `${a}`;\n}\n"},
    {"b.ts": b"const f = (a: number): boolean => { if (a > 1) { return true; } throw new Error('x'); };\n"},
    {"c.go": b"package a\n\nfunc F(a int) int {\n\tif a > 1 || a == 0 {\n\t\treturn a * 2\n\t}\n\treturn -1\n}\n"},
    {"d.rs": b"#[cfg(test)]\nmod t { }\nfn f(a: u8) -> bool {\n    let mut b = a + 1;\n    b -= 1;\n    a >= b\n}\n"},
    {"e.c": b"#define X(a) (a)\nint f(int a) {\n  if (a < 2) return X(a) + 1;\n  while (a) a--;\n  return 0;\n}\n"},
)  # fmt: skip
_LOGINS: Final = (
    b'{"tokens": {"access_token": "0123456789abcdef.x", "refresh": "short"}, "keys": [["sk-0123456789abcdef"], 1]}',
    b'{"apiKey": "with a space in it"}',
)
_STATUS: Final = (
    b'{ "child-pid": 4242, "net-namespace": 4026531840 }\n{"started": true}\n{"exit": 3, "left": ["sh"], "strayed": 1}',
    b'{"errno": 2}\n{ "exit-code": 127 }\n',
)
_SETTINGS: Final = ("troth.observer.detecting", "troth.observer.project", "troth.observer.proposal")
_KEYS: Final = (b"[pytest]", b"testpaths", b"[tool.pytest]", b"test:", b"conftest.py", b"../", b"-x", b"'''", b"tests/")

READERS: Final[tuple[Any, ...]] = (
    Reader("project/settings", _proposal, lambda: [seeds.joined(one) for one in (_PYTHON, _OTHERS, _PLAIN, _INI)],
           _SETTINGS, _KEYS),
    Reader("project/sources", _source, lambda: [seeds.joined(one) for one in _SOURCES],
           ("troth.observer.mutation", "troth.observer.mutation_trees"),
           (b"\\\n", b"'''", b"# -*- coding: latin-1 -*-\n", b"\x0c", b"lambda: ", b" not in ", b" is not ", b"/*"),
           few=60),
    Reader("observer/login", _login, lambda: _LOGINS, ("troth.observer.profiles",)),
    Reader("observer/sandbox-status", _status, lambda: _STATUS, ("troth.observer.sandbox", "troth.observer.confine")),
)  # fmt: skip
