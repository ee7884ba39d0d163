"""Real programs under the real tracer: hostile names, escapes, effects elsewhere, and how a trace ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.tracing import STARTED, changes, program, python, record, traced
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


def test_a_signal_to_what_is_shielded_is_named_and_costs_nothing(workspace: Path) -> None:
    """The tracer is not there, the sandbox's first process takes none; a child's end and a question are everyday."""
    seen = python(
        workspace,
        "import os, signal, subprocess\nchild = subprocess.Popen(['sleep', '60'])\nos.kill(child.pid, 0)\n"
        "child.kill()\nchild.wait()\nfor pid, sent in ((1, 9), (99999, 15), (99999, 0)):\n"
        "    try: os.kill(pid, sent)\n    except ProcessLookupError: pass\n",
    )
    clean(seen.report)
    assert seen.report.root_exit == 0
    assert seen.report.refused == ("kill SIGKILL: no effect on the first process", "kill SIGTERM: ESRCH")


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
