"""Writes what is generated in ``docs``: the tables clause -> tests, and the drawing of a commitment's states.

``make clauses`` rewrites the files; with ``--check`` nothing is written, and each file that is not up to date is named
(exit 1). The clauses stand as data in ``tests/clauses/*.toml``:

    spec = "the commitment ledger"

    [[clause]]                       # built here, and held by tests
    id = "§4 File [D11]"             # section and decision label; once in the file
    says = "what it demands, in our words"
    tests = ["tests/ledger/test_chain.py::test_malformed"]

    [[later]]                        # not built yet
    id = "§13 OKF"
    says = "what is not there"
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = "tests/clauses"
TABLES = "docs/clauses"
DRAWN_IN = "docs/ledger.md"
BEGIN = "<!-- the drawing: written by `make clauses` -->"
END = "<!-- end of the drawing -->"


def load(path: Path) -> dict[str, Any]:
    """Return the clauses of one specification."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def tests_in(path: Path) -> frozenset[str]:
    """Return the names of the tests that a file defines, those of a class as ``Class::test``; none for no file."""
    if not path.is_file():
        return frozenset()
    return frozenset(_tests(ast.parse(path.read_text(encoding="utf-8")).body, ""))


def _tests(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield prefix + node.name
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests(node.body, f"{prefix}{node.name}::")


def faults(data: dict[str, Any], root: Path = ROOT) -> Iterator[str]:
    """Yield a sentence for each row that is empty, named twice, or names a test that does not exist."""
    seen: set[str] = set()
    for kind in ("clause", "later"):
        for entry in data.get(kind, ()):
            name = entry.get("id", "")
            if not name or not entry.get("says"):
                yield f"{kind} {name!r} says nothing"
            if name in seen:
                yield f"{name} is listed twice"
            seen.add(name)
            if kind == "later":
                continue
            if not entry.get("tests"):
                yield f"{name} has no test"
            for test in entry.get("tests", ()):
                file, _, wanted = test.partition("::")
                if wanted not in tests_in(root / file):
                    yield f"{name} names {test}, which does not exist{_elsewhere(wanted, root)}"


def _elsewhere(wanted: str, root: Path) -> str:
    """Return where a test of that name is now: tests move to other files."""
    found = [path for path in sorted((root / "tests").rglob("test_*.py")) if wanted in tests_in(path)]
    return f" (but {found[0].relative_to(root).as_posix()} has it)" if found else ""


def table(data: dict[str, Any]) -> str:
    """Return the page of one specification."""
    clauses, later = data["clause"], data.get("later", [])
    lines = [
        f"# Clauses of {data['spec']}, and the tests that hold them",
        "",
        f"Made by `make clauses` from `{DATA}`; a test fails when a row is empty, names no test, or this page is old.",
        f"{len(clauses)} clauses are built and tested; {len(later)} points [are not built yet](#not-built-yet).",
        "",
        "| clause | demands | held by |",
        "| --- | --- | --- |",
    ]
    for entry in clauses:
        held = "<br>".join(_link(test) for test in entry["tests"])
        lines.append(f"| {_cell(entry['id'])} | {_cell(entry['says'])} | {held} |")
    lines += ["", "## Not built yet", ""]
    lines += [f"- {entry['id']}: {entry['says']}" for entry in later] or ["Nothing."]
    return "\n".join(lines) + "\n"


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    short = file.removeprefix("tests/").removesuffix(".py")
    return f"[{short}::{name}](../../{file})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def drawn(page: str) -> str:
    """Return the page with the drawing between its two marks made anew.

    Raises:
        ValueError: the marks are not there.
    """
    from troth.ledger.machine import mermaid

    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{DRAWN_IN} lacks the marks of the drawing")
    return f"{before}{BEGIN}\n\n```mermaid\n{mermaid()}```\n\n{END}{after}"


def generated(root: Path = ROOT) -> dict[Path, str]:
    """Return every generated file and what should stand in it."""
    pages = {root / TABLES / f"{path.stem}.md": table(load(path)) for path in sorted((root / DATA).glob("*.toml"))}
    page = root / DRAWN_IN
    return {**pages, page: drawn(page.read_text(encoding="utf-8"))}


def main() -> int:
    """Write the files, or only compare them."""
    check = "--check" in sys.argv[1:]
    found = [fault for path in sorted((ROOT / DATA).glob("*.toml")) for fault in faults(load(path))]
    for path, text in generated().items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if check:
            found.append(f"{path.relative_to(ROOT)} is not up to date: run `make clauses`")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
