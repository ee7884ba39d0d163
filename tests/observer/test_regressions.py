"""Ways past the witness that were found by trying, each with an honest twin whose record stays complete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import troth
from support.observing import needs_observer
from support.tracing import TAIL, lines, read
from support.watching import Watch, watch, workspace
from troth.core.errors import Refused
from troth.observer.copies import copy_workspace
from troth.observer.events import TraceReport
from troth.observer.folders import remove_tree, walk
from troth.observer.mutation import mutations
from troth.observer.observe import check_workspace
from troth.observer.reading import read_steps
from troth.observer.records import unattributed
from troth.observer.reports import Counts
from troth.observer.runners import belies_exit
from troth.observer.tree import Snapshot, snapshot

__all__ = ["watch", "workspace"]
pytestmark = [needs_observer, pytest.mark.observer]

NOTHING = TraceReport((), (), (), (), (), 0, "complete", 0, (), 0, 0, None)

LIBC = """
import ctypes, mmap, os, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def name(descriptor, new):
    assert libc.linkat(-100, b"/proc/self/fd/%d" % descriptor, -100, new, 0x400) == 0, ctypes.get_errno()
def run():
    subprocess.run(["true"])
"""

HIDDEN = {
    "another name where changes are only counted": (
        "os.mkdir('.git'); os.link('src/app.py', '.git/x'); run(); open('.git/x', 'w').write('late')",
        "could be changed where changes are only counted",
    ),
    "another name, moved there": (
        "os.mkdir('.git'); os.link('src/app.py', 'src/b'); os.rename('src/b', '.git/x'); run()\n"
        "open('.git/x', 'w').write('late')",
        "could be changed where changes are only counted",
    ),
    "another name that a folder takes there": (
        "os.mkdir('.git'); os.mkdir('d'); os.link('src/app.py', 'd/b'); os.rename('d', '.git/d'); run()\n"
        "open('.git/d/b', 'w').write('late')",
        "could be changed where changes are only counted",
    ),
    "a mapping from there": (
        "os.mkdir('.git'); file = open('.git/x', 'w+b'); file.write(b'x' * 99); file.flush()\n"
        "there = mmap.mmap(file.fileno(), 99); os.rename('.git/x', 'src/new.py'); run(); there[0:4] = b'late'",
        "could be changed where changes are only counted",
    ),
    "a file that was named after it was opened": (
        "file = os.open('src', os.O_TMPFILE | os.O_RDWR); name(file, b'src/new.py'); run(); os.write(file, b'late')",
        "a file that lost this name may stand under another",
    ),
    "a file that was mapped before it was named": (
        "file = os.open('src', os.O_TMPFILE | os.O_RDWR); os.write(file, b'x' * 99); there = mmap.mmap(file, 99)\n"
        "name(file, b'src/new.py'); run(); there[0:4] = b'late'",
        "a file was mapped before it had a name",
    ),
    "a file that lost the name it was opened by": (
        "file = open('src/app.py', 'a'); os.link('src/app.py', 'src/b'); os.unlink('src/app.py')\n"
        "os.rename('src/b', 'src/app.py'); run(); file.write('late'); file.flush()",
        "a file that lost this name may stand under another",
    ),
    "a mapping made writable under another name": (
        "file = os.open('src/app.py', os.O_RDWR); os.write(file, b'x' * 99); os.rename('src/app.py', 'src/b.py')\n"
        "there = libc.mmap(None, 4096, 1, 1, file, 0); run(); assert libc.mprotect(there, 4096, 3) == 0\n"
        "ctypes.memmove(there, b'late', 4)",
        "a shared mapping could have been made writable unseen",
    ),
    "a mapping that was doubled": (
        "file = os.open('src/app.py', os.O_RDWR); os.write(file, b'x' * 99)\n"
        "there = libc.mmap(None, 4096, 3, 1, file, 0); other = libc.mremap(there, 0, 4096, 1)\n"
        "libc.munmap(there, 4096); run(); ctypes.memmove(other, b'late', 4)",
        "a part of a shared mapping was moved or doubled",
    ),
    "a part of a mapping that was kept": (
        "file = os.open('src/app.py', os.O_RDWR); os.write(file, b'x' * 9999)\n"
        "there = libc.mmap(None, 8192, 3, 1, file, 0); libc.munmap(there, 4096)\n"
        "run(); ctypes.memmove(there + 4096, b'late', 4)",
        "could be written unseen while other programs ran",
    ),
    "a mapping that another one replaced": (
        "file = os.open('src/app.py', os.O_RDWR); os.write(file, b'x' * 99); two = os.open('src/two', 66)\n"
        "os.write(two, b'x' * 99); there = libc.mmap(None, 4096, 3, 1, file, 0); run()\n"
        "ctypes.memmove(there, b'late', 4); libc.mmap(there, 4096, 3, 17, two, 0)",
        "could be written unseen while other programs ran",
    ),
    "a folder entered by a number that was used again": (
        "os.makedirs('.git/d'); file = os.open('.git/d', os.O_PATH); os.close(file)\n"
        "assert os.open('src', os.O_RDONLY) == file; run(); os.chdir(f'/proc/self/fd/{file}')\n"
        "libc.rename(b'app.py', b'b.py')",
        "relative to an unknown working directory",
    ),
    "a file cut by a number that was used again": (
        "os.mkdir('.git'); open('.git/x', 'w'); file = os.open('.git/x', os.O_PATH); os.close(file)\n"
        "assert os.open('src/app.py', os.O_RDONLY) == file; run(); libc.truncate(b'/proc/self/fd/%d' % file, 0)",
        "a name that leads somewhere unknown",
    ),
    "the folder of another thread": (
        "os.makedirs('.git/d')\n"
        "def work():\n"
        "    assert libc.unshare(0x200) == 0; os.chdir('.git/d')\n"
        "    libc.rename(b'/proc/self/task/%d/cwd/src/app.py' % os.getpid(), b'/proc/self/cwd/src/b.py')\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()\n"
        "assert os.path.exists('src/b.py')",
        "a name that leads somewhere unknown",
    ),
}
"""A change after a run that nothing would have put down, and what the record says instead."""


@pytest.mark.parametrize("way", HIDDEN)
def test_a_change_that_could_be_hidden_costs_coverage(watch: Watch, way: str) -> None:
    script, why = HIDDEN[way]
    seen = watch(LIBC + script)
    assert seen.exit == 0
    assert any(why in fault for fault in seen.observed.coverage_faults), seen.observed.coverage_faults


HONEST = {
    "git": (
        "whose = '-c user.name=a -c user.email=a@b'\n"
        "for words in ('init -q', 'add -A', whose + ' commit -qm x', 'gc -q', 'checkout -qb b'):\n"
        "    subprocess.run(['git', *words.split()], check=True)\nrun()\nopen('src/app.py', 'a').write('x')"
    ),
    "a file of the tree moved there and back": "os.mkdir('.git'); os.rename('src/app.py', '.git/x'); run()\n"
    "os.rename('.git/x', 'src/app.py')",
    "a file named when it is written": (
        "for new in (b'src/a', b'src/b'):\n"
        "    file = os.open('src', os.O_TMPFILE | os.O_RDWR); os.write(file, b'x'); name(file, new); os.close(file)\n"
        "    run()"
    ),
    "a lock by another name": "open('src/own', 'w').write('1'); os.link('src/own', 'src/lock'); run()\n"
    "os.unlink('src/lock'); os.unlink('src/own')",
    "a deleted file": "file = open('src/x', 'w'); os.unlink('src/x'); run(); file.write('x'); file.flush()",
    "a mapping that grows": (
        "file = open('src/app.py', 'r+b'); file.truncate(99999); there = mmap.mmap(file.fileno(), 4096)\n"
        "there.resize(90000); there[80000:80004] = b'late'; there.close(); run()"
    ),
    "a database": (
        "import sqlite3\nbase = sqlite3.connect('src/x.db'); base.execute('pragma journal_mode=wal')\n"
        "base.execute('create table t(a)'); base.commit(); base.close(); run()"
    ),
    "a mode by a handle": "file = os.open('src/app.py', os.O_PATH); os.chmod(f'/proc/self/fd/{file}', 0o600); run()",
    "times of a file that is not protected": "os.utime('src/app.py'); run()",
    "times of a protected file": "os.utime('tests/test_app.py', (1, 1)); run()",
    "times by a descriptor": "file = open('tests/test_app.py'); os.utime(file.fileno()); run()",
    "times in a folder": "os.utime('test_app.py', dir_fd=os.open('tests', 0)); run()",
    "times by a link": "os.symlink('../tests/test_app.py', 'src/b'); os.utime('src/b'); run(); os.unlink('src/b')",
    "an owner that stays": "os.chown('tests/test_app.py', -1, os.getgid()); run()",
}


@pytest.mark.parametrize("way", HONEST)
def test_its_honest_twin_does_not(watch: Watch, way: str) -> None:
    if way == "git" and shutil.which("git") is None:
        pytest.skip("git is not installed")
    seen = watch(LIBC + HONEST[way])
    assert seen.exit == 0
    assert seen.complete, seen.observed.coverage_faults


@pytest.mark.parametrize(
    "script",
    [
        # A number that stood for a file without a name stands for the tests now.
        "file = os.open('src', os.O_TMPFILE | os.O_RDWR); os.close(file)\n"
        "assert os.open('tests/test_app.py', os.O_RDONLY) == file; name(file, b'src/alias')\n"
        "old = open('src/alias').read(); open('src/alias', 'w').write('pass'); run()\n"
        "open('src/alias', 'w').write(old); os.unlink('src/alias')",
        "file = os.open('src/app.py', os.O_PATH); os.close(file)\n"
        "assert os.open('tests/test_app.py', os.O_RDONLY) == file\n"
        "os.chmod(f'/proc/self/fd/{file}', 0); run(); os.chmod(f'/proc/self/fd/{file}', 0o644)",
        # Where a number was taken for a name, setting the times does not explain why they moved.
        "file = os.open('src/app.py', os.O_PATH); os.close(file)\n"
        "assert os.open('tests/test_app.py', os.O_RDONLY) == file\n"
        "os.chmod(f'/proc/self/fd/{file}', 0); run(); os.chmod(f'/proc/self/fd/{file}', 0o644)\n"
        "os.utime('tests/test_app.py')",
        "file = os.open('src', os.O_TMPFILE | os.O_RDWR); os.close(file)\n"
        "assert os.open('tests/test_app.py', os.O_RDONLY) == file; name(file, b'src/alias')\n"
        "old = open('src/alias').read(); open('src/alias', 'w').write('pass'); run()\n"
        "open('src/alias', 'w').write(old); os.unlink('src/alias'); os.utime('tests/test_app.py')",
    ],
)
def test_a_protected_file_changed_and_put_back_under_another_files_name(watch: Watch, script: str) -> None:
    seen = watch(LIBC + script)
    assert seen.exit == 0
    protected = "tests/test_app.py"
    assert seen.observed.before.files[protected] == seen.observed.after.files[protected]
    assert seen.launch_receipt["sensors"]["join"]["unattributed"] == ["tests/test_app.py"]
    assert not seen.complete


def test_reading_protected_files_moves_no_time(watch: Watch) -> None:
    seen = watch("import shutil\nopen('tests/test_app.py', 'r+').read(); shutil.copytree('tests', '/tmp/copy')")
    assert (seen.changes, seen.complete) == ([], True)


@pytest.mark.parametrize(("script", "complete"), [("os.unlink('b')", True), ("open('b', 'a').write('x')", False)])
def test_another_name_that_stood_at_the_start(watch: Watch, workspace: Path, script: str, complete: bool) -> None:
    """Removing it moves the protected file's time as well, and is no change of it; writing through it is one."""
    os.link(workspace / "tests" / "test_app.py", workspace / "b")
    assert watch(LIBC + script).complete is complete


def test_links_that_stood_where_changes_are_only_counted_are_followed(watch: Watch, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git" / "way").symlink_to("../src")
    seen = watch(LIBC + "assert libc.rename(b'.git/way/app.py', b'.git/way/b.py') == 0")
    assert seen.changes == [("rename", "src/app.py", "src/b.py")]
    assert seen.complete


@pytest.mark.parametrize(
    ("path", "flags", "matters"),
    [
        ("/dev/null", "O_WRONLY|O_CREAT|O_TRUNC", False),
        ("/tmp/x", "O_WRONLY|O_CREAT|O_TRUNC", False),
        (".git/x", "O_WRONLY|O_CREAT|O_TRUNC", False),
        ("known", "O_RDWR", False),
        ("known", "O_WRONLY|O_CREAT", False),
        ("known", "O_WRONLY|O_TRUNC", True),
        ("new", "O_WRONLY|O_CREAT", True),
        ("/tmp/site-packages/x", "O_WRONLY|O_CREAT", True),
    ],
)
def test_a_process_that_dies_opening_costs_coverage_where_it_could_have_changed_something(
    tmp_path: Path, path: str, flags: str, matters: bool
) -> None:
    died = f'101 openat(AT_FDCWD</ws>, "{path}", {flags}, 0666) = ?'
    report = read(lines(died, tail=("101 +++ killed by SIGKILL +++", TAIL[1])), tmp_path, known=["known"])
    assert (report.tracer, report.unparsed_lines, report.events[1:]) == ("complete", 0, ())
    assert bool(report.unresolved) is matters


def test_a_thread_that_starts_a_program_while_the_first_one_waits(watch: Watch) -> None:
    seen = watch(
        LIBC + "import time\n"
        "if os.fork() == 0:\n"
        "    threading.Thread(target=os.execv, args=('/usr/bin/touch', ['touch', 'made'])).start()\n"
        "    time.sleep(9)\n"
        "os.wait()"
    )
    assert seen.complete, seen.observed.coverage_faults
    (started,) = [event for event in seen.observation["events"] if event.get("argv") == ["touch", "made"]]
    (made,) = [event for event in seen.observation["events"] if event.get("path") == "made"]
    assert (started["exit"], made["origin"]) == (0, started["id"])


def test_a_number_too_large_to_change_by_one_is_changed() -> None:
    made = {mutation.after for mutation in mutations("m.py", b"limit = 1e17\nhalf = 0.5\n")}
    assert made == {"5e+16", "1.5"}


@pytest.mark.parametrize(
    ("trace", "unparsed"),
    [
        (["???()            = ?", "+++ killed by SIGKILL +++"], 0),
        (["???( <unfinished ...>", "<... ??? resumed>) = ?", "+++ killed by SIGKILL +++"], 0),
        (["???( <unfinished ...>", "+++ killed by SIGKILL +++"], 0),
        (["???()            = 0", "+++ killed by SIGKILL +++"], 1),
        (["???()            = ?", "getpid() = 1", "+++ exited with 0 +++"], 1),
        (["???( <unfinished ...>", "<... openat resumed>) = ?", "+++ killed by SIGKILL +++"], 1),
    ],
)
def test_a_call_that_the_tracer_could_not_read_was_never_made_by_who_died_in_it(
    trace: list[str], unparsed: int
) -> None:
    assert read_steps(f"7 0.000000001 {line}\n".encode() for line in trace).unparsed == unparsed


# --- where the witness itself is loaded from ---


def test_an_environment_in_the_workspace_that_the_witness_runs_from_is_read_only(
    watch: Watch, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise an agent could bend a module that is loaded only when the agent has ended."""
    module = workspace / ".venv" / "lib" / "judge.py"
    module.parent.mkdir(parents=True)
    module.write_text("x")
    attempt = "open('src/app.py', 'a').write('x')\nopen('.venv/lib/judge.py', 'w').write('bent')"
    assert watch(attempt).exit == 0
    module.write_text("x")
    before = Path(sys.prefix)
    monkeypatch.setattr(sys, "prefix", str(workspace / ".venv"))
    seen = watch(attempt, allow_read=(before,))
    assert (seen.exit, seen.changes, module.read_text()) == (1, [("write", "src/app.py")], "x")
    assert seen.complete, seen.observed.coverage_faults


def test_a_workspace_that_holds_the_witness_is_refused(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_workspace(workspace)
    with pytest.raises(Refused, match="troth itself is loaded from the workspace"):
        check_workspace(Path(troth.__file__).resolve().parents[1])
    monkeypatch.setattr(sys, "prefix", str(workspace))
    with pytest.raises(Refused, match="troth itself is loaded from the workspace"):
        check_workspace(workspace)


def test_a_module_in_the_current_folder_is_not_loaded_by_the_command(tmp_path: Path) -> None:
    for name in ("click", "json", "datetime", "orjson"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('bent')\n")
    words = [sys.executable, "-m", "troth", "--version"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("troth "), done.stderr


# --- what an agent leaves behind ---


def _dig(folder: Path, levels: int, name: str = "d" * 10) -> None:
    """Make folders within folders, deeper than one name can say, with a file in the last."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def test_folders_of_any_depth_and_mode_are_removed_and_links_not_followed(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    for folder in (kept, gone, gone / "shut" / "in"):
        folder.mkdir(parents=True)
    (kept / "x").write_text("x")
    (gone / "link").symlink_to(kept)
    (gone / "shut" / "in" / "x").write_text("x")
    (gone / "shut" / "in").chmod(0)
    (gone / "shut").chmod(0)
    _dig(gone, 3000)
    assert 300 < sum(1 for _ in walk(str(gone))) < 500  # as deep as a name can be said
    remove_tree(gone)
    assert not gone.exists()
    assert (kept / "x").exists()
    remove_tree(gone)


def test_what_is_too_deep_to_be_copied_is_not_read_and_told(tmp_path: Path) -> None:
    _dig(tmp_path, 3000)
    (tmp_path / "x").write_text("x")
    tree = snapshot(tmp_path)
    assert list(tree.files) == ["x"]
    assert len(tree.unreadable) == 1
    assert "too long or too deep" in tree.unreadable[0]
    copy_workspace(tmp_path, tree, tmp_path / "copy")
    assert (tmp_path / "copy" / "x").read_text() == "x"
    remove_tree(tmp_path / ("d" * 10))
    remove_tree(tmp_path / "copy")


def test_an_agent_that_digs_ends_in_a_verdict_and_not_in_a_fault_of_ours(watch: Watch, tmp_path: Path) -> None:
    dig = (
        "import os\nfor place in (os.path.join(os.getcwd(), 'src'), '/tmp'):\n    os.chdir(place)\n"
        "    for _ in range(1500):\n        os.mkdir('d' * 20); os.chdir('d' * 20)\n"
    )
    seen = watch(dig)
    assert seen.exit == 0
    assert not seen.complete
    assert max(map(len, seen.observed.files.values())) <= 16 << 20
    for folder in tmp_path.iterdir():
        remove_tree(folder)


def test_a_folder_that_was_shut_is_not_told_as_changes_of_what_is_in_it() -> None:
    before = Snapshot({"docs/a": "0" * 64, "docsy": "1" * 64, "src/b": "2" * 64})
    after = Snapshot({}, unreadable=("docs",))
    assert unattributed(before, after, NOTHING) == ("docsy", "src/b")


def test_records_of_long_names_stay_within_their_bound(tmp_path: Path) -> None:
    calls = [f'101 mkdir("/tmp/{"m" * 4000}{n}", 0777) = 0' for n in range(3000)]
    report = read(lines(*calls, '101 mkdir("/opt/site-packages", 0777) = 0'), tmp_path)
    assert report.effects_omitted > 1900
    assert len(report.effects) > 900
    assert report.effects[-1].paths == ("/opt/site-packages",)


@pytest.mark.parametrize(
    ("code", "tests", "belied"),
    [
        (0, Counts("totals", failed=1), True),
        (0, Counts("report", passed=3, errors=1), True),
        (1, Counts("totals", failed=1), False),
        (0, Counts("totals", passed=1, skipped=1, expected_failures=1), False),
        (0, Counts("unknown"), False),
    ],
)
def test_an_exit_that_its_own_account_speaks_against(code: int, tests: Counts, belied: bool) -> None:
    """Code under test can end the runner with 0 when the tests have failed already."""
    assert belies_exit(code, tests) is belied


# --- how troth itself was started ---


def test_what_was_inherited_does_not_decide_how_programs_end(tmp_path: Path) -> None:
    """With the end of children ignored, a program that fails would seem to have ended with 0."""
    probe = (
        "import subprocess, sys\nfrom troth.cli import main\n"
        "def asked(): print(subprocess.run([sys.executable, '-c', 'raise SystemExit(3)']).returncode); open('x', 'w')\n"
        "main.main = asked\nmain.console()\n"
    )
    start = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.umask(0o777)\n"
    words = [sys.executable, "-c", start + "os.execv(sys.argv[1], sys.argv[1:])", sys.executable, "-c", probe]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "3\n", done.stderr
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600
