"""The tracer's text, line by line: strings, descriptors, calls cut in two, endings, and damaged lines."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tracing import HEAD, TAIL, changes, events_of, lines, program, read
from troth.observer import trace
from troth.observer.events import TraceReport
from troth.observer.reading import read_steps
from troth.receipts.records import observation

OPENED = '101 openat(AT_FDCWD</ws>, "a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</ws/a>'


def escaped(data: bytes) -> bytes:
    """Write a string as the tracer does."""
    out = b""
    short = {10: b"\\n", 9: b"\\t", 13: b"\\r", 11: b"\\v", 12: b"\\f", 34: b'\\"', 92: b"\\\\"}
    for position, byte in enumerate(data):
        following = data[position + 1 : position + 2]
        if byte in short:
            out += short[byte]
        elif 32 <= byte < 127 and byte not in b"<>":
            out += bytes([byte])
        else:
            out += b"\\%03o" % byte if following.isdigit() else b"\\%o" % byte
    return out


# --- the grammar ---


@given(st.binary(max_size=40))
def test_strings_come_back(data: bytes) -> None:
    assert trace.unescape(escaped(data)) == data
    assert trace.string(b'"' + escaped(data) + b'"') == data
    assert trace.string(b'"' + escaped(data) + b'"...') is None


@given(st.lists(st.binary(max_size=20), max_size=5), st.binary(max_size=20))
def test_no_string_or_path_ends_a_call(words: list[bytes], path: bytes) -> None:
    quoted = [b'"' + escaped(word) + b'"' for word in words]
    shown = b"3</" + escaped(path) + b">"
    call = trace.split_call(
        b"execve(" + b", ".join([b'"x"', b"[" + b", ".join(quoted) + b"]", shown]) + b") = " + shown
    )
    assert call is not None
    assert call.name == b"execve"
    assert call.result == shown
    elements = trace.split_list(call.arguments[1])
    assert elements is not None
    assert [trace.string(element) for element in elements] == words
    found = trace.descriptor(call.arguments[2])
    assert found is not None
    assert (found.number, found.path, found.deleted) == (3, b"/" + path, False)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (b"AT_FDCWD</a>", (None, b"/a", False)),
        (b"12</a b>(deleted)", (12, b"/a b", True)),
        (b"5<pipe:[17]>", (5, b"pipe:[17]", False)),
        (b"-1", (-1, None, False)),
    ],
)
def test_descriptors(text: bytes, want: tuple[object, ...]) -> None:
    found = trace.descriptor(text)
    assert found is not None
    assert (found.number, found.path, found.deleted) == want


@pytest.mark.parametrize("text", [b"", b"3<", b"3</a", b"</a>", b"0x3", b"3</a>x", b"three", b"3</\\999>"])
def test_what_is_no_descriptor(text: bytes) -> None:
    assert trace.descriptor(text) is None


@pytest.mark.parametrize(
    "text", [b"", b"f", b"f(", b'f("a) = 0', b"f(1, 2", b"(1) = 0", b"f(1)", b"f(1) 0", b"f([1) = 0"]
)
def test_what_is_no_call(text: bytes) -> None:
    assert trace.split_call(text) is None


def test_comments_and_nested_structures_stay_whole() -> None:
    call = trace.split_call(b"clone3({flags=0, x=[1, {y=2}]} => {parent_tid=[6]}, 88 /* a, (b */) = 6")
    assert call is not None
    assert call.arguments == [b"{flags=0, x=[1, {y=2}]} => {parent_tid=[6]}", b"88 /* a, (b */"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (b"+++ exited with 0 +++", 0),
        (b"+++ exited with 255 +++", 255),
        (b"+++ killed by SIGKILL +++", -9),
        (b"+++ killed by SIGSEGV (core dumped) +++", -11),
        (b"+++ killed by SIGRT_3 +++", -(int(signal.SIGRTMIN) + 1)),
        (b"+++ killed by SIGNONE +++", None),
        (b"+++ exited +++", None),
    ],
)
def test_endings(text: bytes, want: int | None) -> None:
    assert trace.ending(text) == want


def test_a_failure_is_read_at_the_end_and_nowhere_else() -> None:
    assert trace.failure(b'unlink("a") = -1 EPERM (Operation not permitted)') == b"EPERM"
    assert trace.failure(b'openat(AT_FDCWD</>, "x") = 3</x) = -1 EPERM (y)>') is None
    assert trace.failure(b'openat(AT_FDCWD</>, "x") = 3</x) = -1 EPERM (y>(deleted)') is None


# --- interrupted calls ---


def test_halves_of_calls_are_joined_across_other_lines(tmp_path: Path) -> None:
    report = read(
        lines(
            "101 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
            '102 mkdir("early", 0777 <unfinished ...>',
            "101 <... clone resumed>, child_tidptr=0x7f) = 2",
            '101 openat(AT_FDCWD</ws>, "a <unfinished ...>", O_WRONLY|O_CREAT <unfinished ...>',
            "102 <... mkdir resumed>) = 0",
            '102 execve("/bin/x", ["x"], 0x7f /* 1 var */ <unfinished ...>',
            "101 <... openat resumed>, 0666) = 3</ws/a \\74unfinished ...\\76>",
            "102 <... execve resumed>) = 0",
            '102 rename("early", "late <... rename resumed>") = 0',
            "102 +++ exited with 7 +++",
        ),
        tmp_path,
    )
    assert report.unparsed_lines == 0
    assert report.tracer == "complete"
    assert changes(report) == [
        ("create", "early"),
        ("create", "a <unfinished ...>"),
        ("rename", "early", "late <... rename resumed>"),
    ]
    command = program(report, "x")
    assert command.exit == 7
    assert [event.origin for event in events_of(report, type="rename")] == [command.id]


def test_a_half_without_its_other_half_is_counted(tmp_path: Path) -> None:
    for text in ("101 <... openat resumed>) = 3</ws/a>", "101 <... nothing", "101 <... futex resumed>) = 0"):
        assert read(lines(text), tmp_path).unparsed_lines == 1
    report = read(lines('101 mkdir("a", 0777 <unfinished ...>', "101 <... rmdir resumed>) = 0"), tmp_path)
    assert report.unparsed_lines == 1


def test_a_call_its_process_died_in_is_not_guessed(tmp_path: Path) -> None:
    killed = ("101 +++ killed by SIGKILL +++", "100 +++ exited with 1 +++")
    for text in ('101 unlink("a") = ?', '101 write(3</ws/a>, "x", 1) = ?', '101 unlink("a" <unfinished ...>'):
        report = read(lines(text, tail=killed), tmp_path)
        assert changes(report) == []
        assert len(report.unresolved) == 1
    for text in (
        '101 write(1<pipe:[3]>, "x", 1) = ?',
        "101 exit_group(1) = ?",
        '101 write(1<pipe:[3]>, "x", 1 <unfinished ...>',
        "101 futex(0x7f, FUTEX_WAIT <unfinished ...>",
        '101 openat(AT_FDCWD</ws>, "a", O_RDONLY <unfinished ...>',
    ):
        report = read(lines(text, tail=killed), tmp_path)
        assert report.unresolved == ()
        assert report.root_exit == -9


def test_a_call_that_will_be_restarted_had_no_effect(tmp_path: Path) -> None:
    report = read(
        lines(
            '101 openat(AT_FDCWD</ws>, "p", O_WRONLY|O_CREAT) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)',
            "101 clone(child_stack=NULL, flags=SIGCHLD) = ? ERESTARTNOINTR (To be restarted)",
            '101 write(3</ws/a>, "x", 1) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)',
        ),
        tmp_path,
    )
    assert changes(report) == []
    assert (report.unresolved, report.unparsed_lines, report.tracer) == ((), 0, "complete")


# --- which process is which ---


def test_waiting_children_are_told_apart_by_the_order_of_their_numbers(tmp_path: Path) -> None:
    report = read(
        lines(
            "101 clone(child_stack=NULL, flags=SIGCHLD) = 2",
            '102 execve("/bin/a", ["a"], 0x7f /* 1 var */) = 0',
            "102 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
            "101 vfork( <unfinished ...>",
            '104 mkdir("of-the-agent", 0777) = 0',
            '103 mkdir("of-a", 0777) = 0',
            "102 <... clone resumed>) = 3",
            "101 <... vfork resumed>) = 4",
            "104 +++ exited with 0 +++",
            "103 +++ exited with 9 +++",
            "102 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=3, si_uid=0, si_status=9, si_utime=0} ---",
            "102 +++ exited with 0 +++",
        ),
        tmp_path,
    )
    assert report.unresolved == ()
    (theirs,) = events_of(report, path="of-a")
    (ours,) = events_of(report, path="of-the-agent")
    assert theirs.origin == program(report, "a").id
    assert ours.origin is None


def test_numbers_that_wrapped_around_are_still_in_order(tmp_path: Path) -> None:
    report = read(
        lines(
            "101 clone(child_stack=NULL, flags=SIGCHLD) = 2",
            '102 execve("/bin/a", ["a"], 0x7f /* 1 var */) = 0',
            "102 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
            "101 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
            '305 mkdir("of-the-agent", 0777) = 0',
            '32767 mkdir("of-a", 0777) = 0',
            "102 <... clone resumed>) = 3",
            "101 <... clone resumed>) = 4",
            "305 +++ exited with 0 +++",
            "32767 +++ exited with 9 +++",
            "102 +++ exited with 0 +++",
        ),
        tmp_path,
    )
    assert events_of(report, path="of-a")[0].origin == program(report, "a").id


def test_a_contradicted_pairing_costs_coverage(tmp_path: Path) -> None:
    texts = (
        "101 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
        "101 clone(child_stack=NULL, flags=SIGCHLD) = 2",
        '102 execve("/bin/a", ["a"], 0x7f /* 1 var */) = 0',
    )
    report = read(
        lines(
            texts[1],
            texts[2],
            "102 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
            "101 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
            '103 mkdir("x", 0777) = 0',
            '104 mkdir("y", 0777) = 0',
            "102 <... clone resumed>) = 3",
            "101 <... clone resumed>) = 4",
            "104 +++ exited with 9 +++",
            "102 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=3, si_uid=0, si_status=9, si_utime=0} ---",
            "103 +++ exited with 0 +++",
            "102 +++ exited with 0 +++",
        ),
        tmp_path,
    )
    assert len(report.unresolved) == 1


def test_translated_numbers_are_taken_at_their_word(tmp_path: Path) -> None:
    report = read(
        lines(
            "101 clone(child_stack=NULL, flags=SIGCHLD) = 2 /* 150 in strace's PID NS */",
            '150 execve("/bin/a", ["a"], 0x7f /* 1 var */) = 0',
            "150 clone(child_stack=NULL, flags=SIGCHLD) = 3 /* 149 in strace's PID NS */",
            "101 clone(child_stack=NULL, flags=SIGCHLD) = 4 /* 148 in strace's PID NS */",
            '148 mkdir("ours", 0777) = 0',
            '149 mkdir("theirs", 0777) = 0',
            "148 +++ exited with 0 +++",
            "149 +++ exited with 0 +++",
            "150 +++ exited with 0 +++",
        ),
        tmp_path,
    )
    assert events_of(report, path="ours")[0].origin is None
    assert events_of(report, path="theirs")[0].origin == program(report, "a").id


def test_a_number_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    once = (
        "101 clone(child_stack=NULL, flags=SIGCHLD) = 2",
        '102 execve("/bin/a", ["a", "{}"], 0x7f /* 1 var */) = 0',
        '102 mkdir("m{}", 0777) = 0',
        "102 +++ exited with {} +++",
    )
    report = read(lines(*(text.format(n) for n in (1, 2) for text in once)), tmp_path)
    for n in (1, 2):
        command = program(report, "a", str(n))
        assert (command.exit, command.origin) == (n, None)
        assert events_of(report, path=f"m{n}")[0].origin == command.id
    assert report.commands == 2


def test_a_process_from_nowhere_costs_coverage(tmp_path: Path) -> None:
    report = read(lines('999 mkdir("/ws/x", 0777) = 0', "999 +++ exited with 0 +++"), tmp_path)
    assert report.unresolved == ("process 999: who started it is not known",)
    assert changes(report) == [("create", "x")]


def test_the_sandbox_sets_up_in_silence(tmp_path: Path) -> None:
    head = (
        HEAD[0],
        '100 mkdir("/ws/by-the-sandbox", 0777) = 0',
        '100 mount(NULL, "/", NULL, MS_REC, NULL) = 0',
        HEAD[1],
        '101 openat(AT_FDCWD</>, "/ws/x", O_RDWR|O_CREAT, 0666) = 3</ws/x>',
        '101 pivot_root(".", ".") = 0',
        *HEAD[2:],
    )
    report = read(lines('101 mkdir("mine", 0777) = 0', head=head), tmp_path)
    assert changes(report) == [("create", "mine")]
    assert (report.escapes, report.unresolved, report.effects) == ((), (), ())


def test_the_agents_own_imitation_comes_too_late(tmp_path: Path) -> None:
    """The first program with the agent's arguments is the agent; nothing of its own runs before it."""
    report = read(
        lines(
            "101 clone(child_stack=NULL, flags=SIGCHLD) = 2",
            '102 execve("/ws/agent", ["agent"], 0x7f /* 1 var */) = 0',
            "102 +++ exited with 0 +++",
            '101 mkdir("x", 0777) = 0',
        ),
        tmp_path,
    )
    first, second = events_of(report, type="exec", argv=("agent",))
    assert first.step < second.step
    assert (report.root_exit, report.commands) == (0, 1)
    assert changes(report) == [("create", "x")]


# --- calls that are not known ---


@pytest.mark.parametrize(
    ("text", "escapes", "unresolved", "refused"),
    [
        ("syscall_0x1e7(0x1, 0x2) = 0", 0, 1, 0),
        ("kill(33, SIGTERM) = 0", 0, 0, 0),
        ("kill(33, SIGTERM) = -1 ESRCH (No such process)", 0, 0, 1),
        ("kill(33, 0) = -1 ESRCH (No such process)", 0, 0, 0),
        ("kill(33, 99) = -1 EINVAL (Invalid argument)", 0, 0, 0),
        ("kill(1, SIGKILL) = 0", 0, 0, 1),
        ("kill(1, 0) = 0", 0, 0, 0),
        ("kill(102, SIGKILL) = ?", 0, 0, 0),
        ("kill(1) = 0", 0, 0, 0),
        ("tgkill(101, 101, SIGABRT) = 0", 0, 0, 0),
        ("tgkill(33, 34, SIGKILL) = -1 EPERM (Operation not permitted)", 0, 0, 1),
        ("rt_sigqueueinfo(33, SIGKILL, {si_signo=SIGKILL}) = -1 ESRCH (No such process)", 0, 0, 1),
        ("pidfd_send_signal(3<anon_inode:[pidfd]>, SIGKILL, NULL, 0) = -1 ESRCH (No such process)", 0, 0, 1),
        ("syscall_0x1e7(0x1, 0x2) = ?", 0, 1, 0),
        ("syscall_0x1e7(0x1, 0x2) = -1 ENOSYS (Function not implemented)", 0, 0, 1),
        ("syscall_0x1e7(0x1, 0x2) = -1 EINVAL (Invalid argument)", 0, 0, 0),
        ("syscall_0x1c3(0x1) = 0", 0, 0, 0),
        ("brand_new_call(7) = 0", 0, 1, 0),
        ('mount("a", "/ws/b", NULL, MS_BIND, NULL) = 0', 1, 0, 0),
        ('mount("a", "/ws/b", NULL, MS_BIND, NULL) = -1 EPERM (Operation not permitted)', 0, 0, 1),
        ("process_vm_writev(12, [], 1, [], 1, 0) = 5", 1, 0, 0),
        ("io_uring_enter(3<anon_inode:[io_uring]>, 1, 1, 0, NULL, 8) = 1", 1, 0, 0),
        ("setns(3<net:[4026531840]>, CLONE_NEWNET) = 0", 1, 0, 0),
        ("unshare(CLONE_FS) = 0", 0, 0, 0),
        ("landlock_create_ruleset(NULL, 0, 0) = 4", 0, 0, 0),
        ('write(5</proc/33/mem>, "x", 1) = 1', 1, 0, 0),
        ('write(5</proc/self/oom_score_adj>, "0", 1) = 1', 0, 0, 0),
        ('write(5, "x", 1) = 1', 0, 1, 0),
        ('write(5, "<x>", 3) = -1 EBADF (Bad file descriptor)', 0, 0, 0),
        ('openat(AT_FDCWD, "x", O_RDWR|O_CREAT, 0666) = 3', 0, 1, 0),
        ('mkdir(0x7ffc, 0777) = 0', 0, 1, 0),
        ('rename("/proc/12/cwd/a", "b") = 0', 0, 1, 0),
        ('memfd_create("x", 0) = 3</memfd:x>(deleted)', 0, 0, 0),
        ('setxattr("a", "user.note", "x", 1, 0) = 0', 0, 0, 0),
        ('io_submit(0x7f, 1, [{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=?}]) = 1', 0, 1, 0),
        ('io_submit(0x7f, 1, [{aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3</ws/a>}]) = 1', 0, 0, 0),
    ],
)  # fmt: skip
def test_what_cannot_be_known_costs_coverage(
    tmp_path: Path, text: str, escapes: int, unresolved: int, refused: int
) -> None:
    report = read(lines(f"101 {text}"), tmp_path)
    assert (len(report.escapes), len(report.unresolved), len(report.refused)) == (escapes, unresolved, refused)
    assert report.unparsed_lines == 0
    assert changes(report) == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('creat("a", 0666) = 3</ws/a>', ("create", "a")),
        ('openat2(AT_FDCWD</ws>, "a", {flags=O_WRONLY|O_CREAT, mode=0666, resolve=0}, 24) = 3</ws/a>', ("create", "a")),
        ('open("known", O_RDWR|O_TRUNC) = 3</ws/known>', ("truncate", "known")),
        ('pwritev2(3</ws/a>, 0x7f, 1, 0, 0) = 4', ("write", "a")),
        ("splice(4<pipe:[1]>, NULL, 3</ws/a>, NULL, 10, 0) = 10", ("write", "a")),
        ("copy_file_range(4</ws/b>, NULL, 3</ws/a>, NULL, 10, 0) = 10", ("write", "a")),
        ("sendfile(3</ws/a>, 4</ws/b>, NULL, 10) = 10", ("write", "a")),
        ("fallocate(3</ws/a>, FALLOC_FL_PUNCH_HOLE|FALLOC_FL_KEEP_SIZE, 0, 5) = 0", ("write", "a")),
        ("ioctl(3</ws/a>, FICLONE, 4</ws/b>) = 0", ("write", "a")),
        ("io_submit(0x7f, 1, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3</ws/a>}]) = 1", ("write", "a")),
        ("mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED_VALIDATE, 3</ws/a>, 0) = 0x7f0", ("write", "a")),
        ('fchmodat2(AT_FDCWD</ws>, "a", 0600, AT_SYMLINK_NOFOLLOW) = 0', ("chmod", "a")),
        ('fchmodat2(3</ws/a>, "", 0600, AT_EMPTY_PATH) = 0', ("chmod", "a")),
        ('setxattr("a", "system.posix_acl_access", "x", 1, 0) = 0', ("chmod", "a")),
        ('renameat2(5</ws/d>, "../a", AT_FDCWD</ws>, "./d//b", 0) = 0', ("rename", "a", "d/b")),
        ('linkat(AT_FDCWD</ws>, "a", 5</ws/d>, "b", 0) = 0', ("link", "a", "d/b")),
        ('symlinkat("a", 5</ws/d>, "b") = 0', ("link", "d/b")),
        ('unlinkat(5</ws/d>, "b", AT_REMOVEDIR) = 0', ("unlink", "d/b")),
        ('mknodat(5</ws/d>, "b", S_IFREG|0644) = 0', ("create", "d/b")),
        ('bind(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="d/s"}, 8) = 0', ("create", "d/s")),
        ('rename("/tmp/x", "/ws/a") = 0', ("create", "a")),
        ('rename("/ws/a", "/tmp/x") = 0', ("rename", "a")),
        ('link("/ws/a", "/tmp/x") = 0', ("link", "a")),
        ('rename("a", ".mentu/x") = 0', ("rename", "a")),
    ],
)  # fmt: skip
def test_what_each_call_comes_to(tmp_path: Path, text: str, want: tuple[str, ...]) -> None:
    report = read(lines(f"101 {text}"), tmp_path, known=["known"])
    assert changes(report) == [want]
    assert (report.unresolved, report.escapes, report.unparsed_lines) == ((), (), 0)


def test_links_known_at_the_start_are_followed_and_loops_are_not(tmp_path: Path) -> None:
    links = {"short": "tests", "loop": "loop", "up": "../ws/tests/", "abs": "/ws/tests"}
    for name in ("short", "up", "abs", "short/../up", "./short/."):
        report = read(lines(f'101 unlink("{name}/a") = 0'), tmp_path, known=["tests/a", *links], known_links=links)
        assert changes(report) == [("unlink", "tests/a")]
    report = read(lines('101 unlink("loop/a") = 0'), tmp_path, known_links=links)
    assert changes(report) == []
    assert len(report.unresolved) == 1
    # A link itself is renamed, not what it leads to.
    report = read(lines('101 rename("short", "other") = 0', '101 unlink("other/a") = 0'), tmp_path, known_links=links)
    assert changes(report) == [("rename", "short", "other"), ("unlink", "tests/a")]


def test_a_working_directory_that_is_shown_is_believed(tmp_path: Path) -> None:
    report = read(
        lines(
            '101 chdir("/proc/77/cwd") = 0',
            '101 openat(AT_FDCWD</ws/deep>, "r", O_RDONLY) = 3</ws/deep/r>',
            '101 mkdir("m", 0777) = 0',
        ),
        tmp_path,
    )
    assert changes(report) == [("create", "deep/m")]
    report = read(lines('101 chdir("/proc/77/cwd") = 0', '101 mkdir("m", 0777) = 0'), tmp_path)
    assert len(report.unresolved) == 1


# --- time, size, joining ---


def test_times_are_the_start_plus_monotonic_time(tmp_path: Path) -> None:
    report = read(lines('101 mkdir("a", 0777) = 0', passed="90.500000000"), tmp_path)
    assert [event.time for event in report.events] == ["2026-03-01T12:06:02Z", "2026-03-01T12:07:32Z"]


def test_repeated_writes_become_the_last_one(tmp_path: Path) -> None:
    write = '101 write(3</ws/{}>, "x", 1) = 1'
    report = read(
        lines(
            write.format("a"),
            write.format("b"),
            write.format("a"),
            '101 mkdir("d", 0777) = 0',
            write.format("a"),
            "101 clone(child_stack=NULL, flags=SIGCHLD) = 2",
            '102 execve("/bin/x", ["x"], 0x7f /* 1 var */) = 0',
            write.format("a"),
            '102 write(3</ws/a>, "x", 1) = 1',
            write.format("a"),
            "102 +++ exited with 0 +++",
        ),
        tmp_path,
    )
    run = program(report, "x")
    assert [(event.type, event.path, event.origin) for event in report.events] == [
        ("exec", None, None),
        ("write", "b", None),
        ("create", "d", None),
        ("write", "a", None),
        ("exec", None, None),
        ("write", "a", run.id),
        ("write", "a", None),
    ]


def test_what_does_not_fit_is_cut_and_said(tmp_path: Path) -> None:
    data = lines(*(f'101 mkdir("m{n}", 0777) = 0' for n in range(100)), passed="1.000000000")
    whole = read(data, tmp_path)
    assert whole.truncated_after is None
    size = sum(len(str(event.as_json()).replace(" ", "")) + 1 for event in whole.events)
    part = read(data, tmp_path, max_bytes=size // 2)
    assert 30 < len(part.events) < 70
    assert part.events == whole.events[: len(part.events)]
    assert part.truncated_after == part.events[-1].time
    assert read(data, tmp_path, max_bytes=10).events == ()


def test_many_effects_are_bounded_but_none_that_reaches_a_grader(tmp_path: Path) -> None:
    texts = [f'101 mkdir("/tmp/m{n}", 0777) = 0' for n in range(20_050)]
    report = read(lines(*texts, '101 mkdir("/opt/site-packages", 0777) = 0'), tmp_path)
    assert len(report.effects) == 20_001
    assert report.effects[-1].paths == ("/opt/site-packages",)
    assert report.effects_omitted == 50


# --- damage ---


def test_lines_that_are_no_lines_are_counted(tmp_path: Path) -> None:
    good = lines(OPENED)
    for bad in (b"\n", b"x\n", b"101\n", b"101 0.5 x\n", b"101 0.000000001 ???(\n", b"101 0.000000001 +++ gone +++\n",
                b"101 0.000000001 --- x\n", b'101 0.000000001 mkdir("a\n', b"\xff\xfe\n"):  # fmt: skip
        report = read(good + bad, tmp_path)
        assert report.unparsed_lines == 1, bad
        assert changes(report) == [("create", "a")]


def test_what_the_tracer_says_of_itself_means_loss(tmp_path: Path) -> None:
    for line in (b"strace: out of memory\n", b"101   0.000000001 read(0,  <detached ...>\n"):
        assert read(lines(OPENED) + line, tmp_path).tracer == "lost"
    assert read(lines(OPENED), tmp_path).tracer == "complete"
    assert read(b"", tmp_path).tracer == "lost"


def test_every_prefix_is_lost_and_tells_no_other_story(tmp_path: Path) -> None:
    data = lines(
        OPENED,
        "101 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
        '102 execve("/bin/x", ["x"], 0x7f /* 1 var */) = 0',
        "101 <... clone resumed>) = 2",
        '102 write(3</ws/a>, "x", 1) = 1',
        "102 +++ exited with 0 +++",
        '101 unlink("a") = 0',
    )
    whole = read(data, tmp_path)
    assert whole.tracer == "complete"
    for end in range(len(data)):
        report = read(data[:end], tmp_path)
        assert report.tracer == "lost"
        assert changes(report) == changes(whole)[: len(changes(report))]


@pytest.mark.parametrize("result", ["0", "-1 ENOSYS (Function not implemented)", "-1 (errno 18446744073709551359)"])
def test_a_thread_that_takes_its_leaders_place_has_started_a_program(tmp_path: Path, result: str) -> None:
    """Versions of the tracer print different results for the start that took the place of the thread's leader."""
    report = read(
        lines(
            "101 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, exit_signal=0}, 88) = 2",
            '102 execve("/bin/sh", ["sh", "-c", "exit 4"], 0x7f /* 1 var */ <unfinished ...>',
            "101 +++ superseded by execve in pid 102 +++",
            f"101 <... execve resumed>) = {result}",
            OPENED,
            "101 +++ exited with 4 +++",
        ),
        tmp_path,
    )
    assert [(event.argv, event.exit) for event in report.events if event.type == "exec"][-1] == (
        ("sh", "-c", "exit 4"),
        4,
    )
    assert changes(report) == [("create", "a")]
    assert report.unparsed_lines == 0


MATERIAL = (
    OPENED,
    '101 write(3</ws/a>, "x) = \\"0", 1) = 1',
    "101 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
    '102 execve("/bin/sh", ["sh", "-c", "a; b"], 0x7f /* 1 var */) = 0',
    "101 <... clone resumed>) = 2",
    '102 renameat2(AT_FDCWD</ws>, "a", 5</ws/d>(deleted), "b", RENAME_EXCHANGE) = 0',
    '102 connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("127.0.0.1")}, 16) = 0',
    "102 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 3</ws/a>, 0) = 0x7f0",
    "102 clone3({flags=CLONE_VM|CLONE_FS|CLONE_THREAD, exit_signal=0} => {parent_tid=[6]}, 88) = 6",
    '103 linkat(AT_FDCWD</ws>, "/proc/self/fd/3", AT_FDCWD</ws>, "l", AT_SYMLINK_FOLLOW) = 0',
    "102 +++ superseded by execve in pid 103 +++",
    "102 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=3, si_uid=0, si_status=9, si_utime=0} ---",
    "102 +++ killed by SIGKILL +++",
    "101 unshare(CLONE_FS) = 0",
    '101 openat(AT_FDCWD</ws>, ".", O_RDWR|O_TMPFILE, 0600) = 6</ws/#1>(deleted)',
    "101 io_submit(0x7f, 1, [{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3</ws/a>}]) = 1",
)
INSERTS = (
    b'"', b"\\", b"<", b">", b"(", b")", b"[", b"{", b"=", b" = ", b"?", b"/*", b"\xff", b"\0", b"9" * 20,
    b" <unfinished ...>", b"<... write resumed>", b"-1 EPERM (x)", b"\n", b"AT_FDCWD", b", ", b"+++", b"(deleted)",
)  # fmt: skip


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Change a trace in one to three places."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        match chance.randrange(5):
            case 0:
                data = data[:at] + data[at + chance.randint(1, 12) :]
            case 1:
                data = data[:at] + chance.choice(INSERTS) + data[at:]
            case 2:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 3:
                rows = data.splitlines(keepends=True)
                one, two = chance.randrange(len(rows)), chance.randrange(len(rows))
                rows[one], rows[two] = rows[two], rows[one]
                data = b"".join(rows)
            case _:
                rows = data.splitlines(keepends=True)
                rows.insert(chance.randrange(len(rows)), chance.choice(rows))
                data = b"".join(rows)
    return data


def readable(report: TraceReport) -> None:
    """The events make a record that the published rules accept."""
    origin = {"claim_id": "c", "invocation_id": "r", "producer": "p", "vantage": "independent", "witness_scope": "PEER"}
    scope = {"id": "r", "start": "2026-03-01T12:00:00Z", "end": "9999-12-31T23:59:59Z"}
    events = [event.as_json() for event in report.events]
    record = {"schema_version": "probity-observation/v2", "scope": scope, "coverage": "complete", "events": events}
    observation({**record, **origin})


def test_damaged_traces_never_crash_the_reader(tmp_path: Path) -> None:
    chance = random.Random(7)
    data = lines(*MATERIAL)
    rounds, whole, untouched = 1_200, 0, read(data, tmp_path)
    for _ in range(rounds):
        report = read(mutated(data, chance), tmp_path)
        whole += report.unparsed_lines == 0
        readable(report)
    print(f"accepted whole: {whole} of {rounds}")
    # Most damage falls into strings and numbers, which the grammar cannot tell from others.
    assert 0.2 * rounds < whole < 0.95 * rounds
    assert len(untouched.events) >= 8


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_are_read(parts: list[bytes]) -> None:
    recording = read_steps(part + b"\n" for part in parts)
    assert recording.unparsed <= recording.lines == len(parts)


@pytest.mark.slow
def test_three_hundred_thousand_events(tmp_path: Path) -> None:
    texts: list[str] = []
    for n in range(10_000):
        texts.append(f"101 clone(child_stack=NULL, flags=SIGCHLD) = {n + 2}")
        texts.append(f'{n + 200} execve("/usr/bin/cc", ["cc", "{n}.c"], 0x7ffe /* 2 vars */) = 0')
        for k in range(15):
            name = f"out/{n % 50}/{n}-{k}.o"
            texts.append(f'{n + 200} openat(AT_FDCWD</ws>, "{name}", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3</ws/{name}>')
            texts += [f'{n + 200} write(3</ws/{name}>, "{"x" * 200}", 200) = 200'] * 3
        texts.append(f"{n + 200} +++ exited with 0 +++")
    report = read(lines(*texts), tmp_path)
    assert report.tracer == "complete"
    assert report.truncated_after is not None
    size = sum(len(str(event.as_json()).replace(" ", "")) + 1 for event in report.events)
    assert 15 * 2**20 < size < 16 * 2**20
    assert report.commands == 10_000


def test_head_and_tail_of_the_examples_are_whole(tmp_path: Path) -> None:
    report = read(lines(), tmp_path)
    assert (report.tracer, report.root_exit, report.lines) == ("complete", 0, len(HEAD) + len(TAIL))
