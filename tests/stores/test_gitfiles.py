"""What ``init`` adds to the files of git, and two clones whose ledgers git merges."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.frontdoor import Answer
from support.frontdoor import troth as front_door
from support.ledgers import environment, fingerprint
from troth.core.errors import Refused
from troth.stores import gitfiles

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


class Git:
    """Git and troth in a folder of its own, with no settings but their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bin").mkdir()
        program = root / "bin" / "troth"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m troth "$@"\n')
        program.chmod(0o755)
        (root / "home").mkdir()
        self.env = environment(
            PATH=f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
            HOME=str(root / "home"),
            GIT_CONFIG_NOSYSTEM="1",
            GIT_CONFIG_GLOBAL=os.devnull,
            GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@example.com",
            GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@example.com",
        )  # fmt: skip

    def git(self, folder: Path, *words: str, status: int | None = 0) -> str:
        """Run git and return what it says."""
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, env=self.env, check=False, timeout=120
        )
        assert status is None or done.returncode == status, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def troth(self, folder: Path, *words: str) -> Answer:
        """Run troth."""
        return front_door(*words, cwd=folder, env=self.env)

    def id_of(self, folder: Path, *words: str) -> str:
        """Append a row and return its id."""
        said = self.troth(folder, *words, "--json")
        assert said.exit == 0, said
        return str(said.json["id"])


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Git, kept apart from the user's own."""
    return Git(tmp_path)


def two_clones(git: Git, *, configure: bool) -> tuple[Path, Path, str]:
    """Return two clones of a workspace with one observation and a commitment; the observation's id."""
    one, two = git.root / "one", git.root / "two"
    one.mkdir()
    git.git(one, "init", "-q", "-b", "main")
    assert git.troth(one, "init").exit == 0
    parent = git.id_of(one, "capture", "the shop closes early", "--as", "human:reviewer")
    git.git(one, "add", "-A")
    git.git(one, "commit", "-qm", "start")
    git.git(git.root, "clone", "-q", str(one), str(two))
    if configure:
        for clone in (one, two):
            assert git.troth(clone, "init", "--git").exit == 0
    for clone, name in ((one, "worker"), (two, "rival")):
        child = git.id_of(clone, "commit", f"child of {name}", "--source", parent, "--as", f"agent:{name}")
        git.id_of(clone, "annotate", child, f"note of {name}", "--as", f"agent:{name}")
        git.git(clone, "commit", "-qam", name)
    git.git(one, "fetch", "-q", str(two), "main")
    return one, two, parent


@needs_git
def test_two_clones_each_add_a_child_and_a_note_and_all_of_them_survive(git: Git) -> None:
    one, _, _ = two_clones(git, configure=True)
    before = (one / ".mentu" / "ledger.jsonl").read_bytes()
    said = git.git(one, "merge", "-q", "--no-edit", "FETCH_HEAD")
    assert "CONFLICT" not in said
    after = (one / ".mentu" / "ledger.jsonl").read_bytes()
    assert after.startswith(before)
    found = git.troth(one, "verify")
    assert (found.exit, found.out.splitlines()[0]) == (0, "6/6 verified")
    status = git.troth(one, "status", "--json").json
    assert {entry["body"] for entry in status["commitments"]} == {"child of worker", "child of rival"}
    assert status["anomalies"] == []
    log = git.troth(one, "log", "--json").out
    assert "note of worker" in log
    assert "note of rival" in log
    assert git.git(one, "status", "--porcelain") == ""


@needs_git
def test_without_the_driver_git_stops_with_a_conflict_of_text(git: Git) -> None:
    one, _, _ = two_clones(git, configure=False)
    assert "CONFLICT" in git.git(one, "merge", "-q", "--no-edit", "FETCH_HEAD", status=1)
    assert git.troth(one, "verify").exit == 1


@needs_git
def test_the_other_side_takes_the_merge_as_it_is(git: Git) -> None:
    one, two, _ = two_clones(git, configure=True)
    git.git(one, "merge", "-q", "--no-edit", "FETCH_HEAD")
    git.git(two, "fetch", "-q", str(one), "main")
    git.git(two, "merge", "-q", "FETCH_HEAD")
    ledger = ".mentu/ledger.jsonl"
    assert (one / ledger).read_bytes() == (two / ledger).read_bytes()


@needs_git
def test_a_side_that_changed_history_is_a_conflict(git: Git) -> None:
    one, two, _ = two_clones(git, configure=True)
    ledger = two / ".mentu" / "ledger.jsonl"
    rows = ledger.read_bytes().splitlines(keepends=True)
    shutil.rmtree(two / ".mentu")
    assert git.troth(two, "init").exit == 0
    git.id_of(two, "capture", "something else", "--as", "agent:rival")
    assert len(rows) == 3
    git.git(two, "commit", "-qam", "history made anew")
    git.git(one, "fetch", "-q", str(two), "main")
    before = (one / ".mentu" / "ledger.jsonl").read_bytes()
    said = git.git(one, "merge", "-q", "--no-edit", "FETCH_HEAD", status=1)
    assert "E_UNRELATED" in said or "E_REWRITTEN" in said
    assert (one / ".mentu" / "ledger.jsonl").read_bytes() == before
    assert git.troth(one, "verify").exit == 0


@needs_git
def test_a_broken_side_is_a_conflict(git: Git) -> None:
    one, two, _ = two_clones(git, configure=True)
    ledger = two / ".mentu" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"note of rival", b"note of RIVAL"))
    git.git(two, "commit", "-qam", "changed")
    git.git(one, "fetch", "-q", str(two), "main")
    said = git.git(one, "merge", "-q", "--no-edit", "FETCH_HEAD", status=1)
    assert "E_CHAIN_BROKEN" in said
    assert git.troth(one, "verify").exit == 0


@needs_git
def test_init_tells_the_command_and_the_doctor_does_until_it_was_run(git: Git) -> None:
    root = git.root / "one"
    root.mkdir()
    git.git(root, "init", "-q")
    command = "git config merge.troth.driver 'troth merge --driver %O %A %B %P'"
    assert command in git.troth(root, "init").out
    assert git.troth(root, "doctor", "--json").json["merge_driver"] == {"configured": False, "remedy": command}
    assert command in git.troth(root, "doctor").out
    done = subprocess.run(["sh", "-c", command], cwd=root, env=git.env, check=False)  # what was told is what works
    assert done.returncode == 0
    assert git.troth(root, "doctor", "--json").json["merge_driver"]["configured"] is True
    assert command not in git.troth(root, "doctor").out
    assert git.troth(root, "init", "--json").json["git"] == {
        "changed": [],
        "notes": [],
        "configured": True,
        "remedy": None,
    }


@needs_git
def test_git_leaves_the_lock_alone(git: Git) -> None:
    root = git.root / "one"
    root.mkdir()
    git.git(root, "init", "-q")
    assert git.troth(root, "init").exit == 0
    git.id_of(root, "capture", "seen", "--as", "agent:worker")
    seen = git.git(root, "status", "--porcelain", "-uall").split()
    assert ".mentu/ledger.jsonl" in seen
    assert ".mentu/.lock" not in seen


def work_tree(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_lines_are_added_once_and_nothing_is_changed(tmp_path: Path) -> None:
    root = work_tree(tmp_path)
    (root / ".gitattributes").write_bytes(b"*.png binary")
    (root / ".gitignore").write_bytes(b"build/\r\n")
    first = gitfiles.prepare(root, configure=False)
    assert first is not None
    assert first.changed == (".gitattributes", ".gitignore")
    assert (root / ".gitattributes").read_bytes() == b"*.png binary\n.mentu/ledger.jsonl merge=troth\n"
    assert (root / ".gitignore").read_bytes().startswith(b"build/\r\n.mentu/.lock\r\n")
    stands = fingerprint(root)
    again = gitfiles.prepare(root, configure=False)
    assert again is not None
    assert again.changed == ()
    assert fingerprint(root) == stands


@pytest.mark.parametrize(
    "line", [".mentu/ledger.jsonl merge=union", "/.mentu/ledger.jsonl -merge", ".mentu/ledger.jsonl binary"]
)
def test_what_somebody_decided_about_the_ledger_stays(tmp_path: Path, line: str) -> None:
    root = work_tree(tmp_path)
    (root / ".gitattributes").write_text(f"{line}\n")
    done = gitfiles.prepare(root, configure=False)
    assert done is not None
    assert (root / ".gitattributes").read_text() == f"{line}\n"
    assert "was left as it is" in done.notes[0]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    root = work_tree(tmp_path)
    (root / "elsewhere").write_text("x\n")
    (root / ".gitattributes").symlink_to("elsewhere")
    done = gitfiles.prepare(root, configure=False)
    assert done is not None
    assert done.changed == (".gitignore",)
    assert (root / "elsewhere").read_text() == "x\n"


def test_outside_of_a_work_tree_nothing_is_added(tmp_path: Path) -> None:
    assert gitfiles.prepare(tmp_path, configure=False) is None
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Refused) as caught:
        gitfiles.need_git(tmp_path)
    assert caught.value.code == "E_USAGE"
    said = front_door("init", "--git", cwd=tmp_path)
    assert said.exit == 2
    assert list(tmp_path.iterdir()) == []
