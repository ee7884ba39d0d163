"""``troth import`` of rows, whole ledgers and git's history, as a person meets it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.real_changelog import as_lines, entries
from support.frontdoor import troth as front_door
from support.ledgers import fingerprint
from support.shell import Shell, make_shell

AS = ("--as", "agent:importer")
MAP = ("--body-field", "subject", "--key-field", "key")
CHANGES = """CHANGES
=======

2.0.0
-----

* Read what is there
* Tell \\_private\\_ names apart
*  Grüße

1.0.0a1
-------

* Begin
"""


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in a new workspace, without an actor in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TROTH_ACTOR", raising=False)
    run = make_shell(capfd)
    assert run("init").exit == 0
    return run


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / ".mentu" / "ledger.jsonl").read_text().splitlines()]


def test_a_list_of_changes_comes_in_and_goes_out_whole(tmp_path: Path, troth: Shell) -> None:
    file = tmp_path / "changes.jsonl"
    file.write_text(as_lines(entries("sample", CHANGES.splitlines())))
    said = troth("import", file, *MAP, *AS)
    assert said.exit == 0, said.err
    assert said.out.startswith("4 imported into ")
    assert [row["source_key"] for row in rows_of(tmp_path)] == [
        "sample:2.0.0:1", "sample:2.0.0:2", "sample:2.0.0:3", "sample:1.0.0a1:4",
    ]  # fmt: skip
    payload = rows_of(tmp_path)[2]["payload"]
    assert (payload["body"], payload["meta"]) == ("Grüße", {"import": {"release": "2.0.0"}})
    before = fingerprint(tmp_path)
    again = troth("import", file, *MAP, *AS, "--json").json
    assert (again["imported"], again["present"], again["refused"], again["ok"]) == (0, 4, [], True)
    assert fingerprint(tmp_path) == before
    assert troth("store", "dump", tmp_path / "copy.jsonl").exit == 0
    (tmp_path / "other").mkdir()
    assert troth("init", tmp_path / "other").exit == 0
    whole = troth("import", tmp_path / "copy.jsonl", "--store", tmp_path / "other", "--json").json
    assert (whole["format"], whole["head"], whole["imported"]) == ("whole", again["head"], 4)
    assert rows_of(tmp_path / "other") == rows_of(tmp_path)


def test_what_is_refused_is_told_with_its_line(tmp_path: Path, troth: Shell) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"body":"a","source_key":"1"}\n{"body":"\\u001b[31m","source_key":""}\n')
    dry = troth("import", file, *AS, "--dry-run")
    assert (dry.exit, "1 would be imported, 0 already present, 1 refused" in dry.out) == (2, True)
    assert rows_of(tmp_path) == []
    assert troth("import", file, *AS, "--strict").exit == 2
    assert rows_of(tmp_path) == []
    said = troth("import", file, *AS, "--json")
    assert said.exit == 2
    assert (said.json["imported"], said.json["written"], said.json["refused_count"]) == (1, True, 1)
    (refused,) = said.json["refused"]
    assert (refused["line"], refused["code"], refused["detail"]) == (2, "E_MISSING_FIELD", "source_key")
    assert "line 2  E_MISSING_FIELD" in troth("import", file, *AS).err


def test_stdin_is_read(tmp_path: Path) -> None:
    assert front_door("init", cwd=tmp_path).exit == 0
    lines = '{"body":"a","source_key":"1"}\n'
    answer = front_door("import", "-", *AS, "--json", cwd=tmp_path, stdin=lines)
    assert answer.exit == 0
    assert [row["payload"]["body"] for row in rows_of(tmp_path)] == ["a"]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["x", "--git", "."],
        ["--git", ".", "--format", "rows"],
        ["--git", ".", "--key-prefix", "x"],
        ["x", "--format", "whole", "--body-field", "b"],
    ],
)
def test_words_that_do_not_go_together(tmp_path: Path, troth: Shell, words: list[str]) -> None:
    said = troth("import", *words)
    assert (said.exit, "E_USAGE" in said.err) == (2, True)


# git ------------------------------------------------------------------------------------------------------------


def git(repo: Path, *words: str, data: bytes = b"", **more: str) -> str:
    who = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_AUTHOR_DATE": "1600000000 +0200"}
    by = {"GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.org", "GIT_COMMITTER_DATE": "1600000000 +0200"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} | who | by | more
    done = subprocess.run(["git", "-C", str(repo), *words], input=data, capture_output=True, check=True, env=env)
    return done.stdout.decode().strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a fork, a merge, a message that drives a terminal, and one that is no UTF-8."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    folder = tmp_path / "-repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    tree = git(folder, "write-tree")
    first = git(folder, "commit-tree", tree, "-F", "-", data=b"first\n\nmore \x1b[31m\n")
    who = "A <a@example.org> 1600000000 +0200"
    head = f"tree {tree}\nparent {first}\nauthor {who}\ncommitter {who}\n\n".encode()
    second = git(folder, "hash-object", "-w", "-t", "commit", "--stdin", data=head + b"caf\xe9 $(touch pwned) \n")
    third = git(folder, "commit-tree", tree, "-p", first, "-F", "-", data=b"", GIT_AUTHOR_NAME="Ünal")
    merge = git(folder, "commit-tree", tree, "-p", second, "-p", third, "-F", "-", data=b"merge\n")
    git(folder, "update-ref", "refs/heads/main", merge)
    return folder


def test_commits_come_with_their_parents_and_only_once(
    tmp_path: Path, repo: Path, troth: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_PAGER", "false")
    git(repo, "config", "log.showSignature", "true")
    git(repo, "config", "core.pager", f"touch {tmp_path / 'pwned'}")
    git(repo, "config", "gpg.program", f"{tmp_path / 'pwned'}")
    (repo / ".git" / "info" / "grafts").write_text(f"{git(repo, 'rev-parse', 'HEAD')}\n")
    said = troth("import", "--git", repo, *AS, "--json")
    assert said.exit == 0, said.err
    assert said.json["imported"] == 4
    rows = rows_of(tmp_path)
    assert {row["op"] for row in rows} == {"capture"}
    assert {row["ts"] for row in rows} == {"2020-09-13T12:26:40Z"}
    by_key = {row["source_key"]: row for row in rows}
    for row in rows:
        parents = row["payload"]["meta"]["git"]["parents"]
        assert row.get("trace", {}).get("parent", []) == [by_key[f"git:{sha}"]["id"] for sha in parents]
    assert rows[0]["payload"]["body"] == "first\n\nmore \x1b[31m"
    assert rows[0]["payload"]["meta"]["git"]["email"] == "a@example.org"
    assert {"Ünal", "A"} == {row["payload"]["meta"]["git"]["author"] for row in rows}
    assert any("caf\ufffd $(touch pwned)" in row["payload"]["body"] for row in rows)
    assert not list(tmp_path.rglob("pwned"))
    git(repo, "commit", "-q", "--allow-empty", "-m", "one more")
    more = troth("import", "--git", repo, *AS, "--json").json
    assert (more["imported"], more["present"]) == (1, 4)
    assert rows_of(tmp_path)[4]["trace"]["parent"] == [rows[3]["id"]]
    assert troth("verify").out.startswith("5/5 verified")


def test_what_git_does_not_list_is_told(tmp_path: Path, troth: Shell) -> None:
    (tmp_path / "bare").mkdir()
    for where in (tmp_path / "gone", tmp_path / "bare"):
        said = troth("import", "--git", where, *AS)
        assert (said.exit, "E_GIT" in said.err) == (2, True)
    assert rows_of(tmp_path) == []
