"""Real programs in a real sandbox under the real tracer: what they do is what the report says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.tracing import PYTHON, events_of, program, python, record, traced
from troth.observer.events import TraceReport

pytestmark = traced

LIBC = "import ctypes, os, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def clean(report: TraceReport) -> None:
    """Nothing was lost, left unresolved, or done unseen."""
    assert report.tracer == "complete"
    assert report.escapes == ()
    assert report.unresolved == ()
    assert report.unparsed_lines == 0
    assert report.names_not_utf8 == ()
    assert report.truncated_after is None


# --- every way of changing a file ---


def test_every_call_that_changes_a_file_is_an_event(workspace: Path) -> None:
    seen = python(
        workspace,
        LIBC + """
os.close(os.open("new", os.O_CREAT | os.O_WRONLY))
with open("old", "w") as file: file.write("x")
libc.syscall(85, b"made", 0o644) if os.uname().machine == "x86_64" else open("made", "x")
os.truncate("old", 0)
with open("old", "r+b") as file:
    os.ftruncate(file.fileno(), 3); os.pwrite(file.fileno(), b"abc", 0); os.fchmod(file.fileno(), 0o600)
os.rename("old", "b")
os.link("b", "c")
os.symlink("b", "d")
os.chmod("c", 0o640)
os.mkdir("folder")
os.mkfifo("folder/pipe")
os.unlink("c")
os.unlink("folder/pipe")
os.rmdir("folder")
a, b = os.open("b", os.O_RDONLY), os.open("copied", os.O_CREAT | os.O_WRONLY)
os.sendfile(b, a, 0, 3)
os.lseek(a, 0, 0)
os.copy_file_range(a, b, 3)
os.writev(b, [b"1", b"2"])
os.posix_fallocate(b, 0, 100)
os.mkdir("again"); os.mknod("again/plain")
""",
        files={"old": "before"},
    )  # fmt: skip
    clean(seen.report)
    assert seen.changes() == [
        ("create", "new"),
        ("create", "made"),
        ("truncate", "old"),
        ("write", "old"),
        ("chmod", "old"),
        ("rename", "old", "b"),
        ("link", "b", "c"),
        ("link", "d"),
        ("chmod", "c"),
        ("create", "folder"),
        ("create", "folder/pipe"),
        ("unlink", "c"),
        ("unlink", "folder/pipe"),
        ("unlink", "folder"),
        ("create", "copied"),
        ("write", "copied"),
        ("create", "again"),
        ("create", "again/plain"),
    ]
    assert [event.step for event in seen.report.events] == list(range(1, len(seen.report.events) + 1))


def test_reading_everything_is_no_event(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import mmap, os
for folder, _, names in os.walk("."):
    for name in names: open(os.path.join(folder, name)).read(); os.stat(os.path.join(folder, name))
with open("a/b", "rb") as file: mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[:]
open("a/b", "r+").close()
open("a/b", "a").close()
os.access("a/b", os.W_OK); os.utime("a/b")
""",
        files={"a/b": "text", "c": "text"},
    )
    clean(seen.report)
    assert seen.changes() == []
    assert seen.report.effects == ()


def test_an_edit_that_is_taken_back_is_recorded(workspace: Path) -> None:
    seen = python(
        workspace,
        'old = open("t").read()\nopen("t", "w").write("cheat")\nopen("t", "w").write(old)',
        files={"t": "honest"},
    )
    clean(seen.report)
    assert (workspace / "t").read_text() == "honest"
    assert seen.changes() == [("truncate", "t"), ("write", "t")]


def test_a_shared_mapping_writes_without_a_call(workspace: Path) -> None:
    source = """
import mmap, os
with open("m", "r+b") as file:
    view = mmap.mmap(file.fileno(), 0)
open("between", "w").close()
view[0] = 120
view.close()
"""
    seen = python(workspace, source, files={"m": "abc"})
    clean(seen.report)
    assert (workspace / "m").read_text() == "xbc"
    # Put down where it could last be written: when it ended.
    assert seen.changes() == [("create", "between"), ("write", "m")]


@pytest.mark.parametrize(
    "mapping",
    [
        "mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE)",
        "mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)",
        "mmap.mmap(-1, 4096)",
    ],
)
def test_a_mapping_that_cannot_change_the_file_is_no_event(workspace: Path, mapping: str) -> None:
    seen = python(workspace, f'import mmap\nwith open("m", "rb") as file: {mapping}[0]\n', files={"m": "abc"})
    clean(seen.report)
    assert seen.changes() == []


def test_a_mapping_left_open_while_other_commands_run_costs_coverage(workspace: Path) -> None:
    source = """
import mmap, subprocess
with open("m", "r+b") as file:
    view = mmap.mmap(file.fileno(), 0)
subprocess.run(["/bin/true"])
view[0] = 120
"""
    seen = python(workspace, source, files={"m": "abc"})
    assert seen.report.unresolved == (
        "mmap: " + str(workspace / "m") + " could be written unseen while other programs ran",
    )
    # The twin that lets go of it first has nothing to hide.
    seen = python(workspace, source.replace("subprocess", "view.close(); subprocess", 2).replace("view[0]", "#", 1)
                  .replace("import mmap, view.close(); subprocess", "import mmap, subprocess"))  # fmt: skip
    clean(seen.report)


def test_a_mapping_made_writable_afterwards_costs_coverage(workspace: Path) -> None:
    seen = python(
        workspace,
        LIBC
        + """
import mmap
with open("m", "r+b") as file:
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(None, 4096, 1, 1, file.fileno(), 0)
assert libc.mprotect(ctypes.c_void_p(at), 4096, 3) == 0
ctypes.memset(at, 120, 1)
""",
        files={"m": "abc"},
    )
    assert (workspace / "m").read_text() == "xbc"
    assert len(seen.report.unresolved) == 1


def test_exchange_moves_both(workspace: Path) -> None:
    seen = python(
        workspace,
        LIBC + 'assert libc.renameat2(-100, b"one", -100, b"two", 2) == 0',
        files={"one": "1", "two": "2"},
    )
    clean(seen.report)
    assert seen.changes() == [("rename", "one", "two"), ("rename", "two", "one")]


def test_a_file_made_without_a_name_and_linked_in_is_created(workspace: Path) -> None:
    seen = python(
        workspace,
        LIBC
        + """
fd = os.open(".", os.O_TMPFILE | os.O_RDWR); os.write(fd, b"x")
assert libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, b"named", 0x400) == 0
""",
    )
    clean(seen.report)
    assert seen.changes() == [("create", "named")]


def test_a_socket_is_a_name(workspace: Path) -> None:
    seen = python(workspace, 'import socket\nsocket.socket(socket.AF_UNIX).bind("s")')
    clean(seen.report)
    assert seen.changes() == [("create", "s")]


def test_what_is_written_to_a_deleted_file_is_lost_with_it(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import os
file = open("gone", "w"); os.unlink("gone"); file.write("x"); file.flush()
kept = open("kept (deleted)", "w"); kept.write("x"); kept.flush()
""",
    )
    clean(seen.report)
    assert seen.changes() == [
        ("create", "gone"),
        ("unlink", "gone"),
        ("create", "kept (deleted)"),
        ("write", "kept (deleted)"),
    ]


# --- folders, links, working directories ---


def test_a_folder_moved_away_and_back_moves_what_is_beneath(workspace: Path) -> None:
    seen = record(
        workspace, ["/bin/sh", "-c", "mv tests aside; mv aside tests"], files={"tests/test_a.py": "", "tests/x/b": ""}
    )
    clean(seen.report)
    first, second = seen.changes()[:3], seen.changes()[3:]
    assert first[0] == ("rename", "tests", "aside")
    assert sorted(first[1:]) == [("rename", "tests/test_a.py", "aside/test_a.py"), ("rename", "tests/x/b", "aside/x/b")]
    assert second[0] == ("rename", "aside", "tests")
    assert sorted(second[1:]) == [
        ("rename", "aside/test_a.py", "tests/test_a.py"),
        ("rename", "aside/x/b", "tests/x/b"),
    ]


def test_a_parent_moved_and_a_new_folder_put_in_its_place(workspace: Path) -> None:
    seen = record(
        workspace,
        ["/bin/sh", "-c", "mkdir -p n/tests; echo > n/tests/new; mv pkg old; mv n pkg"],
        files={"pkg/tests/t": ""},
    )
    clean(seen.report)
    assert ("rename", "pkg/tests/t", "old/tests/t") in seen.changes()
    assert ("rename", "n/tests/new", "pkg/tests/new") in seen.changes()


def test_names_are_followed_through_links(workspace: Path) -> None:
    seen = record(
        workspace,
        ["/bin/sh", "-c", "mv short/a short/b; ln -s ../tests src/t; cd src/t; chmod 600 b; cd ..; rm t/b; rm t"],
        files={"tests/a": "", "src/x": ""},
        links={"short": "tests"},
    )
    clean(seen.report)
    assert seen.changes() == [
        ("rename", "tests/a", "tests/b"),
        ("link", "src/t"),
        ("chmod", "tests/b"),
        ("unlink", "tests/b"),
        ("unlink", "src/t"),
    ]


def test_names_are_followed_through_the_process_file_system(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import os
home = os.getcwd()
os.mkdir("/proc/self/cwd/one")
os.rename("/proc/self/root" + home + "/t", "two")
os.chdir("sub"); os.unlink("/proc/thread-self/cwd/f")
os.chdir("/"); os.chdir("/proc/self/root" + home); os.rmdir("./../ws/one/")
fd = os.open("two", os.O_PATH); os.chmod("/proc/self/fd/%d" % fd, 0o600)
""",
        files={"t": "", "sub/f": ""},
    )
    clean(seen.report)
    assert seen.changes() == [
        ("create", "one"),
        ("rename", "t", "two"),
        ("unlink", "sub/f"),
        ("unlink", "one"),
        ("chmod", "two"),
    ]


def test_threads_share_the_working_directory(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import os, threading
def work(name): os.mkdir(name)
def go(*a):
    thread = threading.Thread(target=work, args=a); thread.start(); thread.join()
go("a")
os.chdir("sub")
go("b")
threading.Thread(target=os.chdir, args=("..",)).start()
import time; time.sleep(0.05)
os.mkdir("c")
if os.fork() == 0: os.chdir("sub"); os._exit(0)
os.wait(); os.mkdir("d")
""",
        files={"sub/f": ""},
    )
    clean(seen.report)
    assert seen.changes() == [("create", "a"), ("create", "sub/b"), ("create", "c"), ("create", "d")]
    assert {event.origin for event in seen.report.events} == {None}


# --- programs, commands, origins ---


def test_a_descriptor_opened_before_a_run_and_written_after_it(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import os, subprocess
file = open("src", "r+")
subprocess.run(["/bin/true"])
file.write("late"); file.flush()
""",
        files={"src": "early"},
    )
    clean(seen.report)
    (late,) = events_of(seen.report, type="write")
    assert late.path == "src"
    assert late.step > program(seen.report, "/bin/true").step


def test_a_command_and_its_grandchildren_share_an_origin(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import subprocess
subprocess.run(["/bin/sh", "-c", "(echo x > one; /bin/sh -c 'echo x > two; /bin/true; exit 3'); echo x > three"])
open("own", "w")
""",
    )
    clean(seen.report)
    (outer,) = [event for event in events_of(seen.report, type="exec") if event.argv[-1].startswith("(echo")]
    assert outer.origin is None
    assert outer.exit == 0
    for name in ("one", "two", "three"):
        assert {event.origin for event in events_of(seen.report, path=name)} == {outer.id}
    (inner,) = [event for event in events_of(seen.report, type="exec") if event.argv[-1].startswith("echo x > two")]
    assert (inner.origin, inner.exit) == (outer.id, 3)
    assert program(seen.report, "/bin/true").origin == outer.id
    assert [event.origin for event in events_of(seen.report, path="own")] == [None]
    assert seen.report.commands == 1


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_two_commands_typed_into_one_shell_have_two_origins(workspace: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    typed = 'cp a one\n/bin/sh -c "cp a two; cp a three"\necho x > four\nexit\n'
    source = f"import subprocess\nsubprocess.run([{shell!r}], input={typed!r}, text=True)"
    seen = python(workspace, source, files={"a": "x"})
    clean(seen.report)
    session = program(seen.report, shell)
    first = program(seen.report, "cp", "a", "one")
    second = program(seen.report, "/bin/sh", "-c", "cp a two; cp a three")
    assert {session.origin, first.origin, second.origin} == {None}
    assert {event.origin for event in events_of(seen.report, path="one")} == {first.id}
    assert {event.origin for event in events_of(seen.report, path="two")} == {second.id}
    assert {event.origin for event in events_of(seen.report, path="three")} == {second.id}
    # What the shell itself does is the shell's.
    assert {event.origin for event in events_of(seen.report, path="four")} == {session.id}
    assert seen.report.commands == 3


def test_a_shell_that_is_given_its_commands_is_one_command(workspace: Path) -> None:
    seen = python(
        workspace,
        'import subprocess\nsubprocess.run(["sh", "-c", "cp a one; cp a two"]); subprocess.run(["sh", "script"])',
        files={"a": "x", "script": "cp a three; cp a four\n"},
    )
    clean(seen.report)
    given, script = program(seen.report, "sh", "-c", "cp a one; cp a two"), program(seen.report, "sh", "script")
    assert {event.origin for name in ("one", "two") for event in events_of(seen.report, path=name)} == {given.id}
    assert {event.origin for name in ("three", "four") for event in events_of(seen.report, path=name)} == {script.id}
    assert seen.report.commands == 2


def test_a_copy_of_the_agent_is_the_agent(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import os, subprocess
if os.fork() == 0:
    subprocess.run(["cp", "a", "one"])
    open("direct", "w").close()
    os._exit(0)
os.wait()
""",
        files={"a": "x"},
    )
    clean(seen.report)
    command = program(seen.report, "cp", "a", "one")
    assert command.origin is None
    assert {event.origin for event in events_of(seen.report, path="one")} == {command.id}
    assert {event.origin for event in events_of(seen.report, path="direct")} == {None}


def test_exit_statuses_belong_to_every_program_of_a_process(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import subprocess
subprocess.run(["env", "A=1", "sh", "-c", "exit 5"])
subprocess.run(["sh", "-c", "kill -9 $$"])
subprocess.run(["sh", "-c", "kill -TERM $$"])
subprocess.run(["/nowhere/x"]) if 0 else None
""",
    )
    clean(seen.report)
    outer, inner = program(seen.report, "env", "A=1", "sh", "-c", "exit 5"), program(seen.report, "sh", "-c", "exit 5")
    assert (outer.exit, inner.exit) == (5, 5)
    assert (outer.origin, inner.origin) == (None, outer.id)
    assert program(seen.report, "sh", "-c", "kill -9 $$").exit == -9
    assert program(seen.report, "sh", "-c", "kill -TERM $$").exit == -15


def test_only_programs_that_started_are_events(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import subprocess
for words in (["/nowhere/tool"], ["./plain"], ["tool-that-is-nowhere"]):
    try: subprocess.run(words)
    except OSError: pass
""",
        files={"plain": "not executable"},
    )
    clean(seen.report)
    assert [event.argv[0] for event in events_of(seen.report, type="exec")] == [PYTHON]


def test_a_thread_starts_another_program(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import os, threading, time
threading.Thread(target=time.sleep, args=(9,)).start()
os.chdir("sub")
threading.Thread(target=os.execv, args=("/bin/sh", ["sh", "-c", "echo > f; exit 4"])).start()
time.sleep(9)
""",
        files={"sub/x": ""},
    )
    clean(seen.report)
    assert seen.report.root_exit == 4
    assert [event.exit for event in events_of(seen.report, type="exec")] == [4, 4]
    assert seen.changes() == [("create", "sub/f"), ("write", "sub/f")]


@pytest.mark.parametrize("pidns", [True, False])
def test_many_processes_at_once_keep_their_own_names(workspace: Path, pidns: bool) -> None:
    source = """
import os, subprocess, threading
def work(n):
    for k in range(5):
        subprocess.run(["sh", "-c", f"cd d{n}; mkdir m{k}; (cp x y{k}); /bin/true; exit {n}"])
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    seen = python(workspace, source, files={f"d{n}/x": "x" for n in range(6)}, pidns=pidns)
    assert seen.report.tracer == "complete"
    assert seen.report.unresolved == ()
    assert seen.report.unparsed_lines == 0
    assert seen.report.commands == 30
    for n in range(6):
        for k in range(5):
            command = program(seen.report, "sh", "-c", f"cd d{n}; mkdir m{k}; (cp x y{k}); /bin/true; exit {n}")
            assert (command.exit, command.origin) == (n, None)
            (made,) = events_of(seen.report, path=f"d{n}/m{k}")
            assert made.origin == command.id
            (copied,) = events_of(seen.report, type="create", path=f"d{n}/y{k}")
            assert copied.origin == command.id


def test_many_forks_without_a_program(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import os
for n in range(60):
    if os.fork() == 0:
        os.chdir(f"d{n % 3}"); os.mkdir(str(n)); os._exit(n)
while True:
    try: os.wait()
    except ChildProcessError: break
""",
        files={f"d{n}/x": "" for n in range(3)},
    )
    clean(seen.report)
    assert sorted(seen.changes()) == sorted(("create", f"d{n % 3}/{n}") for n in range(60))


def test_a_burst_of_files_is_seen_whole(workspace: Path) -> None:
    seen = python(workspace, 'import os\nfor n in range(3000): os.close(os.open(f"f{n}", os.O_CREAT | os.O_WRONLY))')
    clean(seen.report)
    assert seen.changes() == [("create", f"f{n}") for n in range(3000)]
