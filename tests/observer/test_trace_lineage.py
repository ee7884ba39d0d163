"""Laws: pairing clones with tasks, and following names, against a simulated kernel and the real one."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.observer.names import FILE, SPECIAL, Names
from troth.observer.processes import Clone, Lineage, Task

# --- who made whom ---


class Kernel:
    """Makes tasks one at a time, each with the next number of both namespaces; lines about them come in any order."""

    def __init__(self, first: int, limit: int, strangers: bool) -> None:
        self.lineage = Lineage()
        self.number, self.outer, self.limit, self.strangers = 1, first, limit, strangers
        self.running: list[Task] = [self.lineage.task(first)]
        self.begun: list[tuple[Task, Clone]] = []
        self.unseen: list[tuple[int, Clone]] = []
        self.returning: list[tuple[Task, Clone, int]] = []
        self.truth: list[tuple[Task, Clone]] = []

    def step(self, choice: int, pick: int) -> None:
        """Let one thing happen, if it can."""
        match choice:
            case 0 if self.running:
                caller = self.running.pop(pick % len(self.running))
                clone = Clone(caller, b"clone(flags=SIGCHLD")
                self.lineage.begun(clone)
                self.begun.append((caller, clone))
            case 1 if self.begun:
                caller, clone = self.begun.pop(pick % len(self.begun))
                self.number += 1
                self.outer += 1 + (pick % 3 if self.strangers else 0)
                if self.outer >= self.limit:
                    self.outer = 300
                self.unseen.append((self.outer, clone))
                self.returning.append((caller, clone, self.number))
            case 2 if self.unseen:
                pid, clone = self.unseen.pop(pick % len(self.unseen))
                task = self.lineage.task(pid)
                self.running.append(task)
                self.truth.append((task, clone))
            case 3 if self.returning:
                caller, clone, number = self.returning.pop(pick % len(self.returning))
                self.lineage.returned(clone, number, None)
                self.running.append(caller)
            case 4 if self.begun:
                caller, clone = self.begun.pop(pick % len(self.begun))
                self.lineage.returned(clone, None, None)
                self.running.append(caller)

    def drain(self) -> None:
        """Let everything that has begun come to its end."""
        for choice in (1, 2, 3):
            while {1: self.begun, 2: self.unseen, 3: self.returning}[choice]:
                self.step(choice, 0)


@pytest.mark.parametrize("numbers", [(1000, 4_194_304), (32_700, 32_768)], ids=["plain", "wrapping"])
@given(st.integers(0, 2**32), st.booleans())
def test_every_task_is_paired_with_its_own_clone(numbers: tuple[int, int], seed: int, strangers: bool) -> None:
    chance = random.Random(seed)
    kernel = Kernel(*numbers, strangers)
    for _ in range(150):
        # Failing clones are rare, so that there are mostly several tasks to tell apart.
        kernel.step(chance.choice((0, 0, 0, 1, 1, 1, 2, 3, 3) * 3 + (4,)), chance.randrange(1000))
    kernel.drain()
    for task, clone in kernel.truth:
        assert task.made_by is clone
        assert clone.child is task
    assert kernel.lineage.leftovers() == ([], [])
    assert kernel.lineage.contradictions == 0


def test_a_task_that_never_shows_is_left_over() -> None:
    lineage = Lineage()
    clone = Clone(lineage.task(100), b"")
    lineage.begun(clone)
    lineage.returned(clone, 2, None)
    assert lineage.leftovers() == ([], [clone])


# --- following names ---

NAMES = ("a", "b", "c")
PATHS = st.lists(st.sampled_from([*NAMES, "..", "."]), min_size=1, max_size=5).map("/".join)


@given(
    st.lists(
        st.tuples(st.sampled_from(["file", "folder", "link"]), PATHS, PATHS, st.booleans()), min_size=1, max_size=10
    ),
    st.lists(PATHS, min_size=1, max_size=8),
)
def test_names_are_followed_as_the_kernel_follows_them(
    made: list[tuple[str, str, str, bool]], asked: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder)) / "x" / "y" / "z"
        root.mkdir(parents=True)
        base = os.fsencode(root)
        names = Names()
        for kind, where, target, absolute in made:
            path = root / where
            try:
                real = os.path.realpath(path.parent, strict=True)
                if not real.startswith(str(root)) or path.name in {"", ".", ".."}:
                    continue
                if kind == "file":
                    path.touch(exist_ok=False)
                    names.add(os.fsencode(os.path.join(real, path.name)))
                elif kind == "folder":
                    path.mkdir()
                    names.add(os.fsencode(os.path.join(real, path.name)), {})
                else:
                    text = str(root / target) if absolute else target
                    path.symlink_to(text)
                    names.add(os.fsencode(os.path.join(real, path.name)), os.fsencode(text))
            except OSError:
                continue
        for name in asked:
            try:
                want = os.path.realpath(os.fsencode(root / ".." / "z") + b"/" + name.encode(), strict=True)
            except OSError:
                continue
            assert names.follow(base + b"/" + name.encode(), last=True, magic=lambda _: None) == want


def test_a_link_in_the_last_place_is_followed_only_when_asked() -> None:
    names = Names()
    names.add(b"/w/l", b"t")
    assert names.follow(b"/w/l", last=False, magic=lambda _: None) == b"/w/l"
    assert names.follow(b"/w/l", last=True, magic=lambda _: None) == b"/w/t"
    assert names.follow(b"/w/l/x", last=False, magic=lambda _: None) == b"/w/t/x"
    names.remove(b"/w/l")
    assert names.follow(b"/w/l/x", last=True, magic=lambda _: None) == b"/w/l/x"


@pytest.mark.parametrize(
    ("path", "want"),
    [
        (b"/proc/self/fd/3", b"/there"),
        (b"/proc/self/cwd/x", b"/there/x"),
        (b"/proc/12/task/13/root/x", b"/there/x"),
        (b"/dev/fd/3", b"/there"),
        (b"/dev/stdin", b"/there"),
        (b"/proc/self/status", b"/proc/self/status"),
        (b"/proc/cpuinfo", b"/proc/cpuinfo"),
        (b"/proc/self/fdinfo/3", b"/proc/self/fdinfo/3"),
    ],
)
def test_links_of_the_process_file_system(path: bytes, want: bytes) -> None:
    names = Names()
    assert names.follow(path, last=True, magic=lambda _: b"/there") == want
    expected = want if want == path else None
    assert names.follow(path, last=True, magic=lambda _: None) == expected


def test_what_moves_takes_along_what_is_beneath() -> None:
    names = Names()
    names.add_all([b"/w/a/1", b"/w/a/b/2"])
    names.add(b"/w/a/l", b"b")
    names.add(b"/w/p", SPECIAL)
    names.rename(b"/w/a", b"/w/z")
    assert sorted(names.beneath(b"/w")) == [b"p", b"z/1", b"z/b/2", b"z/l"]
    names.exchange(b"/w/z", b"/w/p")
    assert names.get(b"/w/z") is SPECIAL
    assert sorted(names.beneath(b"/w/p")) == [b"1", b"b/2", b"l"]
    assert names.follow(b"/w/p/l/2", last=True, magic=lambda _: None) == b"/w/p/b/2"
    names.rename(b"/w/unknown", b"/w/known")
    assert names.get(b"/w/known") is FILE
