"""The skill for agent hosts: its form, and every command of it run in order against scripted reviewers."""

from __future__ import annotations

import json
import re
import shlex
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from support.inside import troth_inside
from support.observing import needs_observer
from support.reviewing import MEMO, finding, reply, response

SKILL = Path(__file__).resolve().parents[2] / "skills" / "impasse" / "SKILL.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STATED = re.compile(r"#\s*exit (\d+)\s*$")
WORDS = {
    "REVIEWER": "scripted:reviewer.json", "ENDPOINT": "scripted:reviewer",
    "OTHER": "scripted:other.json", "OTHER_ENDPOINT": "scripted:other",
}  # fmt: skip


def parts() -> tuple[dict[str, str], str]:
    """Return the front matter and the body."""
    _, front, body = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    return YAML(typ="safe", pure=True).load(front), body


def commands() -> Iterator[tuple[list[str], int]]:
    """Yield the words of each command and the exit status that it states."""
    for block in BLOCK.findall(parts()[1]):
        for line in block.splitlines():
            program, *words = shlex.split(string.Template(line).substitute(WORDS), comments=True)
            assert program == "troth", line
            stated = STATED.search(line)
            yield words, int(stated[1]) if stated else 0


def test_the_form_is_that_of_agent_skills() -> None:
    front, body = parts()
    assert set(front) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert front["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", front["name"])
    assert 1 <= len(front["description"]) <= 1024
    assert "Use " in front["description"]
    assert len(front["compatibility"]) <= 500
    assert len(body.splitlines()) <= 500


def test_every_command_of_ours_stands_in_a_block_that_is_run() -> None:
    body = parts()[1]
    shown = len(re.findall(r"^troth ", body, re.MULTILINE))
    assert shown == len(list(commands())) > 20
    assert all("--json" in words for words, _ in commands())
    used = {words[1] for words, _ in commands()}
    assert {"start", "next", "triage", "verify", "resolve", "reject", "contest", "rebut", "escalate", "decide"} <= used


@needs_observer
@pytest.mark.observer
def test_the_skill_runs_as_it_says(tmp_path: Path) -> None:
    (tmp_path / "memo.md").write_bytes(MEMO)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "queue.py").write_text("SAVES = 200\n")
    said = [finding(number, f"Claim {number}.", category="cost") for number in range(1, 5)]
    answers = [{"to": "review", "json": response(*said)}, {"to": "rebuttal", "json": reply("F003")}]
    for name in ("reviewer", "other"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"name": name, "answers": answers}))
    env = {"TROTH_ACTOR": "agent:host"}
    assert troth_inside("init", cwd=tmp_path, env=env).exit == 0
    for words, stated in commands():
        answer = troth_inside(*words, cwd=tmp_path, env=env)
        assert answer.exit == stated, f"troth {shlex.join(words)}\n{answer.out}{answer.err}"
        assert isinstance(answer.json, dict)
