"""The instructions for agents that `init` writes: every command in them is run as it stands there (spec §15)."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from support.frontdoor import troth
from troth.cli.ledger import agents_text

WORKER = "agent:worker"
BY_VERB = {
    "claim": "open",
    "release": "claimed",
    "submit": "claimed",
    "approve": "in_review",
    "reopen": "in_review",
}
"""The state of the commitment that a verb is for."""


def written_commands(text: str) -> list[str]:
    """Return every command of the page: in the text, in the table and in the indented blocks."""
    found = [line.strip() for line in text.splitlines() if line.startswith("    troth ")]
    found += re.findall(r"`(troth [^`]+)`", text)
    return list(dict.fromkeys(found))


def forms(command: str) -> list[str]:
    """Return a command with everything that it says may be left out, and without."""
    whole = re.sub(r"\[(--[^\]]*)\]", r"\1", command)
    bare = re.sub(r" *\[--[^\]]*\]", "", command)
    return list(dict.fromkeys([whole, bare]))


COMMANDS = [form for command in written_commands(agents_text()) for form in forms(command)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A workspace with a commitment in each state that work can be in, and the ids."""
    root = tmp_path_factory.mktemp("agents")

    def run(*words: str) -> str:
        answer = troth(*words, "--json", cwd=root)
        assert answer.exit == 0, answer
        return str(answer.json.get("id"))

    run("init")
    ids = {"mem": run("capture", "seen", "--as", WORKER)}
    for state in ("open", "claimed", "in_review"):
        ids[state] = run("commit", state, "--source", ids["mem"], "--as", "human:reviewer")
        if state != "open":
            run("claim", ids[state], "--as", WORKER)
    run("submit", ids["in_review"], "--evidence", ids["mem"], "--as", WORKER)
    return root, ids


def filled(command: str, ids: dict[str, str]) -> list[str]:
    """Return the words of a command with its place holders filled in."""
    words = shlex.split(command)
    commitment = ids[BY_VERB.get(words[1], "open")]
    fill = {
        "cmt_…": commitment,
        "mem_…": ids["mem"],
        "…": "what it disputes",
        "TEXT": "text of the entry",
        "K": "evidence",
        "agent:YOUR-NAME": WORKER,
    }
    named = [fill.get(word, word) for word in words[1:]]
    for at, word in enumerate(named):
        if word == "ID":
            takes_commitment = words[1] in BY_VERB and named[at - 1] != "--evidence"
            named[at] = commitment if takes_commitment else ids["mem"]
        elif word == "COMMAND…":
            named[at] = "true"
    if "pytest" in named:  # a suite that this workspace does not have
        named[named.index("python") :] = [sys.executable, "-c", "print('2 passed')"]
    return named


def test_the_page_names_many_commands() -> None:
    assert len(COMMANDS) >= 20
    assert {form.split()[1] for form in COMMANDS} >= {
        *BY_VERB,
        "status",
        "capture",
        "commit",
        "annotate",
        "verify",
        "show",
        "log",
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs(tmp_path: Path, prepared: tuple[Path, dict[str, str]], command: str) -> None:
    root, ids = prepared
    own = tmp_path / "workspace"
    shutil.copytree(root, own)
    words = filled(command, ids)
    unfilled = {"ID", "TEXT", "COMMAND", "YOUR-NAME"} | {word for word in words if "…" in word and " " not in word}
    assert not unfilled & set(words), "a place holder that nothing was put in for"
    answer = troth(*words, cwd=own, env={"TROTH_ACTOR": WORKER})
    assert answer.exit == 0, answer


def test_the_page_is_short_enough_to_be_read_whole() -> None:
    assert len(agents_text().split()) < 900
