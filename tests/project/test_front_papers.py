"""What README, CONTRIBUTING and the Makefile promise is there."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from troth import __version__
from troth.cli.main import COMMANDS, DELETING

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAPERS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RULES = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))


def code_of(text: str) -> list[str]:
    """Return the lines of fenced blocks and the pieces between back quotes."""
    fenced = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for block in fenced for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", rest)


def paper_ids(paper: Path) -> str:
    return str(paper.relative_to(ROOT))


@pytest.mark.parametrize("paper", PAPERS, ids=paper_ids)
def test_every_command_in_a_paper_exists(paper: Path) -> None:
    named = {
        match[1]
        for line in code_of(paper.read_text(encoding="utf-8"))
        for match in re.finditer(r"(?:^|\$ |&& |\| )troth ([a-z]+)\b", line)
    }
    assert named - {*COMMANDS, *DELETING} == set()


@pytest.mark.parametrize("paper", PAPERS, ids=paper_ids)
def test_every_make_target_in_a_paper_exists(paper: Path) -> None:
    named = {
        match[1]
        for line in code_of(paper.read_text(encoding="utf-8"))
        for match in re.finditer(r"(?:^|\$ |&& |[A-Z]+=\S+ )make ([a-z][a-z-]*)", line)
    }
    assert named - RULES == set()


@pytest.mark.parametrize("paper", PAPERS, ids=paper_ids)
def test_every_link_inside_the_project_leads_somewhere(paper: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", paper.read_text(encoding="utf-8"))
    inside = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in inside if not (paper.parent / target).exists()] == []


def test_the_readme_tells_the_two_commands_first() -> None:
    code = code_of((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [line.split("#")[0].strip() for line in code[:2]] == ["make demo", "make test"]


def test_make_help_lists_every_target() -> None:
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = {line.split()[0] for line in told.splitlines() if line.startswith("  ")}
    assert listed == RULES
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == RULES


def test_the_version_is_one_number_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__


def test_the_licence_is_whole_and_ours() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Copyright 2026 The troth authors" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_decisions_are_numbered_without_gaps_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    records = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [name[:4] for name in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert [name for name in records if f"({name})" not in index] == []


def test_the_changelog_has_a_place_for_what_comes() -> None:
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
