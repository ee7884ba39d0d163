"""Where control groups are looked for, and what is written into them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from troth.observer import groups
from troth.observer.groups import Ceiling, Group, Parents, make_in, parents, scope_prefix

CEILING = Ceiling(memory=1 << 30, tasks=400)
UNIFIED = "35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = (
    "36 25 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "37 25 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "38 25 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "39 25 0:34 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
)
ROOT = Path("/sys/fs/cgroup")


def test_a_unified_hierarchy_is_searched_upward() -> None:
    (found,) = parents(UNIFIED, "0::/user.slice/user-1000.slice/a.scope\n")
    slices = ROOT / "user.slice"
    assert found.version == 2
    assert found.folders == (
        ("", (slices / "user-1000.slice" / "a.scope", slices / "user-1000.slice", slices, ROOT)),
    )  # fmt: skip


def test_a_hybrid_one_has_both_and_the_unified_comes_first() -> None:
    own = "9:memory:/box/one\n8:pids:/\n2:cpu,cpuacct:/x\n0::/\n"
    unified, split = parents(HYBRID, own)
    assert (unified.version, unified.folders) == (2, (("", (ROOT / "unified",)),))
    assert split.version == 1
    assert dict(split.folders) == {
        "memory": (ROOT / "memory/box/one", ROOT / "memory/box", ROOT / "memory"),
        "pids": (ROOT / "pids",),
    }


@pytest.mark.parametrize("own", ["", "0:", ":::", "0::/../../../etc\n", "junk\n"])
def test_odd_texts_lead_nowhere_else(own: str) -> None:
    for found in parents(UNIFIED + HYBRID + "\n - \nshort - cgroup2\n", own):
        for _, folders in found.folders:
            assert all(folder == ROOT or ROOT in folder.parents for folder in folders)
            assert all(".." not in folder.parts for folder in folders)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a new folder below one that has a group's files the same files, as the kernel would."""
    make = Path.mkdir

    def made(self: Path, *rest: object, **named: object) -> None:
        make(self, *rest, **named)  # type: ignore[arg-type]  # handed on as they came
        for file in self.parent.glob("*"):
            if file.is_file():
                (self / file.name).write_text("")

    monkeypatch.setattr(Path, "mkdir", made)


FILES = ("cgroup.procs", "cgroup.kill", "memory.max", "memory.swap.max", "memory.oom.group", "pids.max")


def _parent(folder: Path, handed_on: str) -> Path:
    for name in FILES:
        (folder / name).write_text("")
    (folder / "cgroup.subtree_control").write_text(handed_on)
    return folder


def test_a_group_of_version_two_gets_its_limits(tmp_path: Path, kernel: None) -> None:
    _parent(tmp_path, "cpu memory pids\n")
    group = make_in(Parents(2, (("", (tmp_path,)),)), "one", CEILING)
    assert group is not None
    made = tmp_path / "one"
    written = {name: (made / name).read_text() for name in FILES[2:]}
    assert written == {
        "memory.max": str(1 << 30), "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "400",
    }  # fmt: skip
    assert group.limits("memory")
    assert group.limits("pids")
    assert group.entering()[-2:] == [str(made / "cgroup.procs"), "--"]
    assert (group.killed_for_memory(), group.refused_a_task()) == (False, False)
    (made / "memory.events").write_text("low 0\noom 1\noom_kill 1\noom_group_kill 0\n")
    (made / "pids.events").write_text("max 3\n")
    assert (group.killed_for_memory(), group.refused_a_task()) == (True, True)
    group.kill()
    assert (made / "cgroup.kill").read_text() == "1"


def test_a_folder_that_hands_on_too_little_is_passed_over(tmp_path: Path, kernel: None) -> None:
    own = tmp_path / "own"
    own.mkdir()
    _parent(own, "cpu\n")
    _parent(tmp_path, "memory pids\n")
    where = Parents(2, (("", (own, tmp_path)),))
    group = make_in(where, "one", CEILING)
    assert group is not None
    assert not (own / "one").exists()
    (tmp_path / "cgroup.subtree_control").write_text("memory\n")
    assert make_in(where, "two", CEILING) is None
    assert not (tmp_path / "two").exists()


def test_groups_of_runs_that_were_killed_are_swept_up(tmp_path: Path, kernel: None) -> None:
    gone, young, alive = (
        tmp_path / f"troth-{pid}-00" for pid in (999_999_999, 999_999_998, os.getpid())
    )  # fmt: skip
    for folder in (gone, young, alive, tmp_path / "other"):
        folder.mkdir()
    for folder in (gone, alive, tmp_path / "other"):
        os.utime(folder, (1, 1))
    _parent(tmp_path, "memory pids\n")
    assert make_in(Parents(2, (("", (tmp_path,)),)), "troth-1-new", CEILING) is not None
    assert not gone.exists()
    assert all(folder.exists() for folder in (young, alive, tmp_path / "other", tmp_path / "troth-1-new"))


def test_where_no_limit_can_be_written_there_is_no_group(tmp_path: Path) -> None:
    """An ordinary folder takes any file and is no group: nothing can enter it."""
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    for where in (Parents(1, (("pids", (tmp_path,)),)), Parents(2, (("", (tmp_path, tmp_path / "gone")),))):
        assert make_in(where, f"one{where.version}", CEILING) is None


def test_a_scope_is_asked_for_the_same_limits() -> None:
    words = scope_prefix("troth-1-a", CEILING, user=True)
    assert words[:2] == ["systemd-run", "--quiet"]
    assert {
        "--scope",
        "--unit=troth-1-a.scope",
        "--user",
        "--property=TasksMax=400",
        f"--property=MemoryMax={1 << 30}",
    } <= set(words)
    assert words[-1] == "--"
    assert "--user" not in scope_prefix("troth-1-a", CEILING, user=False)


def test_a_process_of_no_scope_has_no_group_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "parents", lambda mounts, own: [Parents(2, (("", (ROOT / "a.service",)),))])
    assert groups.group_of(1, "a") is None
    monkeypatch.setattr(groups, "parents", lambda mounts, own: [Parents(2, (("", (ROOT / "a.scope",)),))])
    # Not moved yet: it is in the scope of our own session, whose members we are.
    assert groups.group_of(1, "troth-1-b") is None
    found = groups.group_of(1, "a")
    assert isinstance(found, Group)
    assert (found.named, found.entering()) == ("systemd scope", [])
