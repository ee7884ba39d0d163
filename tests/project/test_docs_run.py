"""What README and the pages of docs show is run: their command lines, in order, with the exit status they state.

A block marked ``sh`` in which a line starts with ``troth`` is run line by line through the real command line, all
blocks of a page in one fresh folder. ``# exit 1`` at the end of a line states another status than 0. Words with ``*``
are expanded as a shell does. A block whose mark names a file (```` ```toml contract.toml ````) is written to that file.
A page that begins with ``<!-- goes on from: PAGE -->`` is run in the folder which that page leaves. What cannot be run
is marked ``console``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.frontdoor import troth
from support.observing import needs_observer
from troth.observer import contract_source

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AFTER = re.compile(r"\A<!-- goes on from: (\S+) -->\n")
STATED = re.compile(r"#\s*exit (\d+)\s*$")
OBSERVING = (["run"], ["grade"], ["demo"], ["doctor"], ["contract", "seal"])


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield (mark, content) of each fenced block."""
    for match in BLOCK.finditer(text):
        yield match[1].strip(), match[2]


def command_lines(mark: str, content: str) -> list[tuple[list[str], int]]:
    """Return (words behind ``troth``, stated exit status) of a block that is to be run."""
    lines = [line for line in content.splitlines() if line.strip() and not line.startswith("#")]
    if mark != "sh" or not any(line.startswith("troth") for line in lines):
        return []
    found = []
    for line in lines:
        program, *words = shlex.split(line, comments=True)
        assert program == "troth", f"a block with commands of ours holds another line: {line!r}"
        stated = STATED.search(line)
        found.append((words, int(stated[1]) if stated else 0))
    return found


def before(page: Path) -> list[Path]:
    """Return the pages that this one goes on from, the first one first."""
    match = AFTER.match(page.read_text(encoding="utf-8"))
    if match is None:
        return []
    last = page.parent / match[1]
    return [*before(last), last]


def steps(page: Path) -> Iterator[tuple[list[str], int] | tuple[str, str]]:
    """Yield what a page asks for, in order: files as (name, content), command lines as (words, status)."""
    for part in (*before(page), page):
        for mark, content in blocks(part.read_text(encoding="utf-8")):
            _, _, name = mark.partition(" ")
            if name:
                yield name, content
            yield from command_lines(mark, content)


def expanded(words: list[str], folder: Path) -> list[str]:
    """Return the words with patterns replaced by what they match, as a shell does."""
    found: list[str] = []
    for word in words:
        matches = sorted(str(path.relative_to(folder)) for path in folder.glob(word)) if "*" in word else []
        found += matches or [word]
    return found


def run_page(page: Path, folder: Path) -> int:
    """Run a page and return how many command lines it had."""
    count = 0
    # The keys and memories of whoever runs the tests are no business of theirs.
    own = {name: str(folder.parent / "home" / name) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    for first, second in steps(page):
        if isinstance(first, str):
            file = folder / first
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(str(second), encoding="utf-8")
            continue
        answer = troth(*expanded(first, folder), cwd=folder, env=own)
        assert answer.exit == second, f"{page.name}: troth {shlex.join(first)}\n{answer.out}{answer.err}"
        count += 1
    return count


def observes(page: Path) -> bool:
    commands = [first for first, _ in steps(page) if not isinstance(first, str)]
    return any(words[: len(start)] == start for words in commands for start in OBSERVING)


def cases() -> list[object]:
    """Return the pages to run; one that another goes on from is run with that one."""
    marks = [needs_observer, pytest.mark.observer]
    inner = {part for page in PAGES for part in before(page)}
    return [
        pytest.param(
            page,
            id="+".join(part.relative_to(ROOT).as_posix() for part in (*before(page), page)),
            marks=marks if observes(page) else [],
        )
        for page in PAGES
        if page not in inner
    ]


@pytest.mark.parametrize("page", cases())
def test_a_page_runs_as_it_says(page: Path, tmp_path: Path) -> None:
    texts = [part.read_text(encoding="utf-8") for part in (*before(page), page)]
    shown = sum(len(re.findall(r"^troth ", text, re.MULTILINE)) for text in texts)
    folder = tmp_path / "page"
    folder.mkdir()
    assert run_page(page, folder) == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_ours_stand_in_blocks_that_are_run(page: Path) -> None:
    for mark, content in blocks(page.read_text(encoding="utf-8")):
        if re.search(r"^\s*(?:\$ )?troth ", content, re.MULTILINE):
            assert mark in ("sh", "console"), f"{page.name}: a block marked {mark!r} shows commands"


def test_pages_with_commands_are_there() -> None:
    assert {"README.md", "ledger.md", "contracts.md", "observing.md", "receipts.md"} <= {
        page.name for page in PAGES if any(not isinstance(first, str) for first, _ in steps(page))
    }


def test_every_key_of_a_contract_is_on_its_page() -> None:
    example = (contract_source.__doc__ or "").partition("::")[2]
    keys = set(re.findall(r"^ *\[*(\w+)(?:\]| =)", example, re.MULTILINE))
    assert {"task", "protect", "exclude", "mutants_in", "file_mb"} <= keys
    text = (ROOT / "docs" / "contracts.md").read_text(encoding="utf-8")
    assert {key for key in keys if key not in text} == set()


def test_a_wrong_status_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```json a/bad.jsonl\n{\n```\n\n```sh\ntroth verify a/*.jsonl  # exit 1\n```\n")
    assert run_page(page, tmp_path) == 1
    page.write_text(page.read_text().replace("  # exit 1", ""))
    with pytest.raises(AssertionError, match=r"troth verify"):
        run_page(page, tmp_path)
    page.write_text("```sh\ntroth verify\nrm -r x\n```\n")
    with pytest.raises(AssertionError, match="another line"):
        run_page(page, tmp_path)
    page.write_text("```console\ntroth nonsense\n```\n\n```sh\nmake demo\n```\n")
    assert run_page(page, tmp_path) == 0
