"""Real programs in a real sandbox under the real tracer: what they do is what the report says."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.tracing import PYTHON, STARTED, changes, events_of, program, python, record, traced
from troth.observer.events import TraceReport, read_trace

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


# --- hostile names ---


def test_hostile_names_are_kept_whole(workspace: Path) -> None:
    names = [
        "new\nline", 'quo"te', "back\\slash", "sp ace", "a<b>c", "= 3</ws/x>", "x) = 0", " <unfinished ...>",
        '", 0) = -1 EPERM (x)', "é", "tab\t", "\x07", "<... openat resumed>", "/".join(["deep"] * 5), "[1](2){3}",
        "+++ exited with 0 +++", "(deleted)", "end (deleted)", "a\\n", "\u202egnp.exe", "-rf", "*",
    ]  # fmt: skip
    source = f"""
import os
for name in {names!r}:
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as file: file.write(name)
    os.chmod(name, 0o600); os.rename(name, name + "~"); os.unlink(name + "~")
"""
    seen = python(workspace, source)
    clean(seen.report)
    by_name = {name: [event[0] for event in seen.changes() if name in event[1:]] for name in names}
    assert by_name == {name: ["create", "write", "chmod", "rename"] for name in names}


def test_names_that_are_not_utf8_cost_coverage(workspace: Path) -> None:
    seen = python(workspace, 'open(b"n\\xff\\n", "w").write("x"); open("good", "w")')
    assert seen.report.names_not_utf8 == ("n\\xff\n",)
    assert seen.changes() == [("create", "good")]
    seen = python(workspace, 'open("n\\u00ff", "w").write("x")')
    clean(seen.report)


def test_arguments_are_kept_whole_or_cost_coverage(workspace: Path) -> None:
    odd = 'a "b" \\ \n\t<c> \u00e9 = 0'
    source = f"import subprocess\nsubprocess.run(['/bin/echo', {odd!r}, '', 'x' * 16000])"
    seen = python(workspace, source)
    clean(seen.report)
    assert program(seen.report, "/bin/echo", odd, "", "x" * 16000).exit == 0
    seen = python(workspace, "import subprocess\nsubprocess.run(['/bin/echo', 'x' * 17000])")
    assert len(seen.report.unresolved) == 1
    seen = python(workspace, "import subprocess\nsubprocess.run([b'/bin/echo', b'\\xff'])")
    assert len(seen.report.unresolved) == 1


def test_an_agent_with_a_very_long_argument_is_known(workspace: Path) -> None:
    seen = record(workspace, ["/bin/sh", "-c", "echo > made; : " + "x" * 40000])
    clean(seen.report)
    assert seen.changes() == [("create", "made"), ("write", "made")]


# --- escapes, refusals ---


def test_io_uring_is_an_escape_unless_it_was_refused(workspace: Path) -> None:
    seen = python(workspace, LIBC + "print(libc.syscall(425, 8, ctypes.create_string_buffer(256)) >= 0)")
    if "True" in seen.out:
        assert seen.report.escapes == ("io_uring_setup: it succeeded",)
    else:
        assert seen.report.escapes == ()
        assert len(seen.report.refused) == 1


def test_tracing_oneself_is_refused_and_no_escape(workspace: Path) -> None:
    seen = python(workspace, LIBC + "assert libc.ptrace(0, 0, 0, 0) == -1")
    clean(seen.report)
    assert seen.report.refused == ("ptrace: EPERM",)


def test_a_child_hidden_from_the_tracer_is_an_escape(workspace: Path) -> None:
    number = 56
    seen = python(
        workspace,
        LIBC
        + f"""
if os.uname().machine == "x86_64":
    if libc.syscall({number}, 0x00800000 | 17, 0, 0, 0, 0) == 0: os._exit(0)
    os.wait()
""",
    )
    if "CLONE_UNTRACED" in seen.trace.read_text("latin-1"):
        assert seen.report.escapes == ("clone: its child is hidden from the tracer",)


def test_a_listener_that_waves_calls_through_is_an_escape(workspace: Path) -> None:
    """Found by trying: such a filter runs a call without the tracer being told."""
    filters = """
import struct
class Program(ctypes.Structure): _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
code = struct.pack("HBBI", 6, 0, 0, 0x7fff0000)
libc.prctl(38, 1, 0, 0, 0)
result = libc.syscall({number}, 1, {flags}, ctypes.byref(Program(1, code)))
print("result", result)
"""
    number = {"x86_64": 317, "aarch64": 277}.get(os.uname().machine)
    if number is None:
        pytest.skip("the call's number is not known here")
    seen = python(workspace, LIBC + filters.format(number=number, flags=8))
    if "result -1" not in seen.out:
        assert seen.report.escapes == ("seccomp: a listener can let calls pass unseen",)
    seen = python(workspace, LIBC + filters.format(number=number, flags=0))
    clean(seen.report)


def test_failed_attempts_are_told_and_count_for_nothing(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import os
for attempt in (lambda: open("/usr/lib/x", "w"), lambda: os.unlink("/usr/bin/env"), lambda: os.unlink("missing"),
                lambda: os.mkdir("sub"), lambda: os.rename("missing", "sub/f"), lambda: os.rmdir("sub")):
    try: attempt()
    except OSError: pass
    else: raise SystemExit("it should have failed")
""",
        files={"sub/f": ""},
    )
    clean(seen.report)
    assert seen.report.root_exit == 0
    assert seen.changes() == []
    assert seen.report.refused == ("openat /usr/lib/x: EROFS", "unlink /usr/bin/env: EROFS")


# --- outside of the workspace ---


def test_changes_elsewhere_are_effects(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import os, socket, subprocess, tempfile
for _ in range(3): open("/tmp/a", "w").write("x")
os.rename("/tmp/a", "/tmp/b"); os.mkdir("/tmp/quiet"); open("/tmp/claims", "a").write("x")
os.makedirs("/tmp/site-packages"); os.symlink("/tmp/b", "/tmp/site-packages/c.pth")
for name in ("/dev/null", "/proc/self/comm"): open(name, "w").write("x")
subprocess.run(["/bin/echo", "x"], stdout=subprocess.DEVNULL); print("x")
os.mkdir(".git"); open(".git/index", "w").write("x"); os.rename(".git/index", ".git/HEAD")
os.link("/tmp/b", "/tmp/c")
os.rename("inside", ".git/away"); os.rename(".git/away", "back")
r, w = os.pipe(); os.write(w, b"x"); a, b = socket.socketpair(); a.send(b"x")
""",
        files={"inside": "x"},
        quiet=("/tmp/claims",),
    )
    clean(seen.report)
    assert [(effect.type, *effect.paths) for effect in seen.report.effects] == [
        ("truncate", "/tmp/a"),
        ("write", "/tmp/a"),
        ("rename", "/tmp/a", "/tmp/b"),
        ("create", "/tmp/quiet"),
        ("create", "/tmp/site-packages"),
        ("link", "/tmp/site-packages/c.pth"),
        ("link", "/tmp/b", "/tmp/c"),
    ]
    assert seen.changes() == [("rename", "inside"), ("create", "back")]
    assert seen.report.git_mutations == 7


def test_connections_are_effects(workspace: Path) -> None:
    seen = python(
        workspace,
        """
import os, socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server = socket.socket(socket.AF_UNIX); server.bind("/tmp/s"); server.listen(1)
socket.socket(socket.AF_UNIX).connect("/tmp/s")
other = socket.socket(socket.AF_UNIX); other.bind("\\0name"); other.listen(1)
socket.socket(socket.AF_UNIX).connect("\\0name")
mail = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); mail.bind("/tmp/d")
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "/tmp/d")
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, "/tmp/d")
try: socket.socket(socket.AF_INET).connect(("127.0.0.1", 9))
except OSError: pass
listening = socket.socket(socket.AF_INET6) if socket.has_ipv6 else None
""",
    )
    clean(seen.report)
    assert [(effect.type, effect.address) for effect in seen.report.effects if effect.address] == [
        ("connect", "unix:/tmp/s"),
        ("connect", "unix:@name"),
        ("send", "unix:/tmp/d"),
    ]


# --- the end ---


def test_a_trace_cut_anywhere_is_lost(workspace: Path, tmp_path: Path) -> None:
    words = ["/bin/sh", "-c", "cp a b; (cp b c); rm a"]
    whole = record(workspace, words, files={"a": "x"})
    clean(whole.report)
    data = whole.trace.read_bytes()
    lines = data.splitlines(keepends=True)
    cut = tmp_path / "cut"

    def of(part: bytes) -> TraceReport:
        cut.write_bytes(part)
        return read_trace(cut, workspace=str(workspace), started=STARTED, agent_argv=words, known_paths=["a"])

    for count in range(len(lines)):
        report = of(b"".join(lines[:count]))
        assert report.tracer == "lost"
        assert changes(report) == whole.changes()[: len(changes(report))]
    for end in range(len(data) - 200, len(data)):
        assert of(data[:end]).tracer == "lost"
    assert of(data).tracer == "complete"


def test_an_agent_that_is_killed_has_ended(workspace: Path) -> None:
    seen = record(workspace, ["/bin/sh", "-c", "echo > x; kill -9 $$"])
    clean(seen.report)
    assert seen.report.root_exit == -9


def test_an_agent_that_does_not_exist_never_started(workspace: Path) -> None:
    seen = record(workspace, ["/nowhere/agent"])
    assert (seen.report.tracer, seen.report.root_exit, seen.report.events) == ("complete", None, ())
