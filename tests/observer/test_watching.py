"""The second sensor: what inotify sees that the trace does not, and that honest work is no such thing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import inotify_simple
import pytest

from support.observing import needs_observer
from support.watching import Watch, Watched, watch, workspace
from troth.observer import watching as module
from troth.observer.watching import TreeWatch, watching

__all__ = ["watch", "workspace"]
observed = [needs_observer, pytest.mark.observer]


def test_changes_are_named_in_old_new_and_moved_folders(tmp_path: Path) -> None:
    for name in ("old/deep", ".git", ".mentu"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "old" / "kept").write_text("x")
    with watching(tmp_path) as watched:
        (tmp_path / "old" / "deep" / "made").write_text("x")
        (tmp_path / "old" / "kept").read_text()
        (tmp_path / "new" / "er").mkdir(parents=True)
        watched.finish()  # the new folders are watched from now on
        (tmp_path / "new" / "er" / "late").write_text("x")
        (tmp_path / "new").rename(tmp_path / "moved")
        watched.finish()
        (tmp_path / "moved" / "er" / "later").write_text("x")
        (tmp_path / ".git" / "HEAD").write_text("x")
        (tmp_path / ".mentu" / "ledger").write_text("x")
        (tmp_path / "old" / "deep").rename(tmp_path / ".git" / "deep")
        watched.finish()
        (tmp_path / ".git" / "deep" / "hidden").write_text("x")
        seen = watched.finish()
    assert seen.changed == {
        "old/deep",
        "old/deep/made",
        "new",
        "new/er/late",
        "moved",
        "moved/er/later",
    }
    assert (seen.overflow, seen.failures) == (False, ())


def test_a_young_folder_is_watched_to_its_bottom_and_what_it_came_with_is_no_change(tmp_path: Path) -> None:
    with watching(tmp_path) as watched:
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "b" / "c").write_text("x")
        assert watched.finish().changed == {"a"}  # nobody read before this
        (tmp_path / "a" / "b" / "c").write_text("y")
        assert watched.finish().changed == {"a", "a/b/c"}


def test_an_overflow_is_kept_and_everything_is_watched_anew(tmp_path: Path) -> None:
    with watching(tmp_path) as watched:
        before = watched.finish().watches
        (tmp_path / "missed").mkdir()
        while watched._take_all():
            watched._folders.clear()  # as if the queue had not had room for it
        watched.take(-1, int(inotify_simple.flags.Q_OVERFLOW), 0, "")
        (tmp_path / "missed" / "file").write_text("x")
        seen = watched.finish()
    assert seen.overflow
    assert seen.watches > before
    assert "missed/file" in seen.changed


def test_a_folder_that_cannot_be_watched_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shut").mkdir()
    original = inotify_simple.INotify.add_watch

    def full(self: Any, path: str, mask: int) -> int:
        if path.endswith("shut"):
            raise OSError(28, os.strerror(28))
        return int(original(self, path, mask))

    monkeypatch.setattr(inotify_simple.INotify, "add_watch", full)
    with watching(tmp_path) as watched:
        assert watched.finish().failures == ("shut: the kernel has no watches left (fs.inotify.max_user_watches)",)


# --- beside the trace -------------------------------------------------------------------------------------------------

WAITS = (
    "import os, time\n"
    "open('ready', 'w').close()\n"
    "for _ in range(600):\n"
    "    if os.path.exists('go'): break\n"
    "    time.sleep(0.05)\n"
)
OUTSIDER = (
    "import os, sys, time\n"
    "os.chdir(sys.argv[1])\n"
    "while not os.path.exists('ready'): time.sleep(0.02)\n"
    "old = open('src/app.py').read()\n"
    "open('src/app.py', 'w').write('bent'); open('src/app.py', 'w').write(old)\n"
    "open('go', 'w').close()\n"
)


def by_one(seen: Watched) -> dict[str, list[str]]:
    join = seen.launch_receipt["sensors"]["join"]
    return {name: join[name] for name in ("only_inotify", "only_trace")}


@pytest.mark.observer
@needs_observer
def test_a_change_that_was_taken_back_by_somebody_untraced_is_seen(watch: Watch, workspace: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", OUTSIDER, str(workspace)])
    try:
        seen = watch(WAITS)
    finally:
        assert other.wait(timeout=60) == 0
    # The tree is the same at both ends, and the trace knows nothing of it.
    assert seen.observed.before.files["src/app.py"] == seen.observed.after.files["src/app.py"]
    assert by_one(seen)["only_inotify"] == ["go", "src/app.py"]
    assert set(seen.launch_receipt["sensors"]["join"]["unattributed"]) == {"go", "src/app.py"}
    assert not seen.complete
    assert "a change that the trace does not explain" in seen.observed.coverage_faults[0]


BUSY = r"""
import mmap, os, shutil, sqlite3, subprocess, tempfile
open('src/app.py', 'a').write('X = 2\n')
for i in range(30):
    os.makedirs(f'build/{i}/deep', exist_ok=True)
    open(f'build/{i}/deep/out', 'w').write('x')
os.rename('build/3', 'build/thirty'); open('build/thirty/deep/out', 'a').write('y')
os.rename('build', 'dist'); open('dist/4/deep/late', 'w').write('z')
shutil.rmtree('dist/5'); os.mkdir('dist/5'); open('dist/5/again', 'w').write('w')
os.symlink('dist', 'link'); open('link/5/through', 'w').write('v')
os.link('src/app.py', 'second'); open('second', 'a').write('#\n'); os.unlink('second')
file = open('gone', 'w+'); os.unlink('gone'); file.write('unseen by the tree'); file.flush(); file.close()
file = open('src/old', 'w'); os.rename('src/old', 'src/new'); file.write('late'); file.close()
nameless = os.open('src', os.O_TMPFILE | os.O_RDWR); os.write(nameless, b'x'); os.close(nameless)
os.mkfifo('pipe'); both = os.open('pipe', os.O_RDWR); os.write(both, b'x'); os.close(both)
with open('mapped', 'w+b') as file:
    file.truncate(4096)
    with mmap.mmap(file.fileno(), 4096) as view: view[:3] = b'abc'
db = sqlite3.connect('data.db'); db.execute('create table t (x)')
db.executemany('insert into t values (?)', [(i,) for i in range(50)]); db.commit(); db.close()
shell = 'mkdir -p a/b && echo 1 > a/b/c && cp -r a copy && mv copy a/moved && touch -d 2020-01-01 a/b/c'
subprocess.run(['sh', '-c', shell + '&& chmod 600 a/b/c && rm -r a/moved'], check=True)
os.truncate('src/new', 2); os.utime('src/app.py', (1, 1))
"""


@pytest.mark.observer
@needs_observer
def test_honest_work_of_every_kind_is_explained_by_the_trace(watch: Watch, workspace: Path) -> None:
    os.mkfifo(workspace / "earlier")
    seen = watch(BUSY + "both = os.open('earlier', os.O_RDWR); os.write(both, b'x')\n")
    assert seen.exit == 0
    assert by_one(seen)["only_inotify"] == []
    assert seen.complete, seen.observed.coverage_faults
    sensor = seen.launch_receipt["sensors"]["s1_inotify"]
    assert sensor["events"] > 20  # of what happens in a new folder, only what comes after it is watched
    assert (sensor["overflow"], sensor["watch_failures"]) == (False, [])
    assert "src/app.py" not in by_one(seen)["only_trace"]


@pytest.mark.observer
@needs_observer
@pytest.mark.parametrize("fault", ["overflow", "no queue"])
def test_a_sensor_that_failed_lowers_coverage_and_accuses_nobody(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    if fault == "overflow":
        monkeypatch.setattr(TreeWatch, "take", lambda self, *_: self._lost())
        word = "the kernel's queue of changes ran over"
    else:

        def none_left() -> None:
            raise OSError(24, os.strerror(24))

        monkeypatch.setattr(inotify_simple, "INotify", none_left)
        word = "a folder that could not be watched: .: the kernel has no queues left (fs.inotify.max_user_instances)"
    seen = watch("open('src/app.py', 'a').write('X = 2\\n')")
    assert seen.changes == [("write", "src/app.py")]
    assert [one for one in seen.observed.coverage_faults if not one.startswith(word)] == []
    assert not seen.complete
    assert seen.launch_receipt["sensors"]["join"]["unattributed"] == []


RING = r"""
import ctypes, mmap, os, struct, sys
libc = ctypes.CDLL(None)
params = ctypes.create_string_buffer(120)
ring_fd = libc.syscall(425, 4, params)
if ring_fd < 0: sys.exit(7)
(entries,) = struct.unpack_from('I', params.raw, 0)
_, tail, _, _, _, _, array = struct.unpack_from('7I', params.raw, 40)
ring = mmap.mmap(ring_fd, array + 4 * entries, flags=mmap.MAP_SHARED)
sqes = mmap.mmap(ring_fd, 64 * entries, flags=mmap.MAP_SHARED, offset=0x10000000)
target = os.open('src/app.py', os.O_RDWR)
before = os.pread(target, 8, 0)
for turn, text in enumerate([b'# ringed', before][:TURNS]):
    data = ctypes.create_string_buffer(text, 8)
    struct.pack_into('<BBHiQQII', sqes, 64 * turn, 23, 0, 0, target, 0, ctypes.addressof(data), 8, 0)
    struct.pack_into('<I', ring, array + 4 * turn, turn)
    struct.pack_into('<I', ring, tail, turn + 1)
    assert libc.syscall(426, ring_fd, 1, 1, 1, None, 0) == 1
"""
"""Writes `src/app.py` through io_uring, where no system call shows the write; with two turns, puts it back too."""


@pytest.mark.observer
@needs_observer
@pytest.mark.parametrize("turns", [1, 2])
def test_a_write_through_io_uring_is_seen_by_the_second_sensor_also_when_taken_back(watch: Watch, turns: int) -> None:
    seen = watch(RING.replace("TURNS", str(turns)))
    if seen.exit == 7:
        pytest.skip("the kernel has no io_uring")
    assert seen.exit == 0
    assert (seen.observed.before.digest == seen.observed.after.digest) is (turns == 2)
    assert seen.changes == []
    assert by_one(seen)["only_inotify"] == ["src/app.py"]
    assert seen.launch_receipt["sensors"]["join"]["unattributed"] == ["src/app.py"]
    assert not seen.complete


@pytest.mark.observer
@needs_observer
def test_a_write_through_a_mapping_is_the_traces_alone_and_costs_nothing(watch: Watch) -> None:
    seen = watch(
        "import mmap\nwith open('src/app.py', 'r+b') as file, mmap.mmap(file.fileno(), 0) as view: view[:1] = b'v'\n"
    )
    assert {change[:2] for change in seen.changes} == {("write", "src/app.py")}
    assert by_one(seen) == {"only_inotify": [], "only_trace": ["src/app.py"]}
    assert seen.complete, seen.observed.coverage_faults


@pytest.mark.slow
@pytest.mark.observer
@needs_observer
def test_twenty_thousand_files_in_a_burst_are_honest_or_told_as_an_overflow(watch: Watch) -> None:
    seen = watch(
        "import os\nos.mkdir('many')\nfor i in range(20_000): open(f'many/{i}', 'w').write('x')\n", timeout=240
    )
    assert seen.exit == 0
    assert len(seen.observed.after.files) == 20_002
    assert by_one(seen)["only_inotify"] == []
    overflow = seen.launch_receipt["sensors"]["s1_inotify"]["overflow"]
    assert seen.complete is not overflow
    assert overflow or "many/19999" not in by_one(seen)["only_trace"]


def test_names_without_end_are_an_overflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NAMES", 5)
    with watching(tmp_path) as watched:
        for number in range(5):
            (tmp_path / str(number)).touch()
        assert not watched.finish().overflow
        (tmp_path / "one more").touch()
        seen = watched.finish()
    assert seen.overflow
    assert len(seen.changed) == 5
