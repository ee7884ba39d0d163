"""Launching: the agent in its sandbox, the tracer around the sandbox, the terminal between the agent and the person.

The tracer stands outside: it is bubblewrap's parent, in the host's pid namespace, and its files lie in a folder
that the sandbox does not see. When the tracer dies the sandbox dies with it: bubblewrap dies with its parent.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troth.observer.callfilter import call_filter
from troth.observer.sandbox import SandboxSpec, bwrap_argv, child_pid, prepare
from troth.observer.syscalls import strace_argv

MAX_TRANSCRIPT: Final = 64 << 20
"""Bytes of the agent's output that are kept; what comes later is shown and not kept."""

_BLOCK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Launched:
    """How an observed launch ended.

    ``container_argv`` is bubblewrap's whole argument vector; ``exit`` is what the tracer passed on; ``seconds`` is
    monotonic; ``transcript_cut`` tells that of what the agent printed only the first whole lines were kept.
    """

    container_argv: tuple[str, ...]
    exit: int
    timed_out: bool
    interrupted: bool
    started_child: bool
    seconds: float
    transcript_cut: bool


@contextlib.contextmanager
def _raw_terminal(descriptor: int) -> Iterator[None]:
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _copy_window_size(source: int, target: int) -> None:
    import fcntl
    import termios

    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class _Session:
    """One running launch: where its output goes, and how it is ended."""

    def __init__(self, process: subprocess.Popen[bytes], transcript: Path) -> None:
        self.process = process
        self.status = bytearray()
        self.kept = 0
        self.cut = False
        self.transcript = os.open(transcript, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def keep(self, block: bytes) -> None:
        if self.cut:  # what is kept is a beginning, without a gap
            return
        room = MAX_TRANSCRIPT - self.kept
        self.cut = len(block) > room
        try:
            _write_all(self.transcript, block[:room])
        except OSError:
            self.cut = True
        self.kept += len(block)

    def end_transcript(self) -> None:
        """Close what was kept; if it was cut, behind its last whole line: half a line can say something else."""
        if self.cut:
            end = os.lseek(self.transcript, 0, os.SEEK_END)
            while end > 0:
                start = max(0, end - _BLOCK)
                at = os.pread(self.transcript, end - start, start).rfind(b"\n")
                end = start + at + 1 if at >= 0 else start
                if at >= 0:
                    break
            os.ftruncate(self.transcript, end)
        os.close(self.transcript)

    def end_sandbox(self) -> None:
        """Kill the first process of the sandbox's pid namespace; the kernel ends all others, the tracer sees it."""
        pid = child_pid(bytes(self.status))
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
            else:
                self.process.kill()


def _secret_arguments(spec: SandboxSpec) -> int:
    """Return a descriptor from which bubblewrap reads the variables that no argument vector may show."""
    pairs = [part for name, value in sorted(spec.secrets.items()) for part in ("--setenv", name, value)]
    return _in_memory("arguments", b"".join(os.fsencode(part) + b"\0" for part in pairs))


def _in_memory(name: str, data: bytes) -> int:
    descriptor = os.memfd_create(name)
    _write_all(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _die_with_us() -> Callable[[], None]:
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    set_parent_death_signal = 1

    def run() -> None:
        # If we die, the tracer is killed, and with it (bubblewrap dies with its parent) the whole sandbox.
        prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)

    return run


def _in_a_session_of_its_own(argv: Sequence[str], terminal: bool) -> tuple[tuple[str, ...], list[str]]:
    """Return bubblewrap's option and the program that give the agent a session apart from the tracer's.

    A signal to a process group crosses pid namespaces: in the tracer's group, an agent's ``kill 0`` would reach the
    tracer. And a terminal sends its interrupts to the group in its foreground, which has to be the agent's alone.
    """
    if not terminal:
        return ("--new-session",), list(argv)
    return (), ["/usr/bin/setsid", "--ctty", *argv]


def launch(
    spec: SandboxSpec,
    argv: Sequence[str],
    *,
    trace_file: Path,
    transcript: Path,
    timeout: float,
    terminal: bool | None = None,
    show: tuple[int, int] | None = (1, 2),
    on_start: Callable[[int], None] | None = None,
) -> Launched:
    """Run the agent to its end, observed.

    Args:
        spec: the sandbox; its private folders are made here.
        argv: the agent's program and arguments.
        trace_file: where the tracer writes; must not exist, its folder must be owner-only.
        transcript: where the agent's output is kept; must not exist.
        timeout: seconds before everything in the sandbox is killed.
        terminal: give the agent a terminal of its own (a pty bridged to ours); by default when ours is one.
        show: descriptors on which the agent's output and errors are shown as they come, or ``None``.
        on_start: called with the tracer's pid.
    """
    prepare(spec)
    use_terminal = (os.isatty(0) and os.isatty(1)) if terminal is None else terminal
    status_read, status_write = os.pipe()
    handed = [status_write]  # the child's ends, closed here once it runs
    feeder: subprocess.Popen[bytes] | None = None
    if use_terminal:
        master, slave = os.openpty()
        handed.append(slave)
        stdin = stdout = stderr = slave
        sources = {master: 0}
        if os.isatty(0):
            _copy_window_size(0, master)
    else:
        master = -1
        out_read, stdout = os.pipe()
        err_read, stderr = os.pipe()
        handed += [stdout, stderr]
        stdin, feeder = _fed_input()
        handed.append(stdin)
        sources = {out_read: 0, err_read: 1}
    secrets, call_rules = _secret_arguments(spec), _in_memory("filter", call_filter())
    handed += [secrets, call_rules]
    extra = ("--args", str(secrets), "--seccomp", str(call_rules), "--json-status-fd", str(status_write))
    # Made here, owner-only whatever the umask: the tracer would make it readable by all.
    os.close(os.open(trace_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    apart, program = _in_a_session_of_its_own(argv, use_terminal)
    container = bwrap_argv(spec, program, extra=(*apart, *extra))
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            [*strace_argv(trace_file), *container],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(status_write, secrets, call_rules),
            env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            start_new_session=True,
            preexec_fn=_die_with_us(),  # noqa: PLW1509 - no other thread runs here
        )
    finally:
        for descriptor in handed:
            os.close(descriptor)
    session = _Session(process, transcript)
    timed_out = interrupted = False
    try:
        if on_start is not None:
            on_start(process.pid)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_ended_by_signals())
            if use_terminal and os.isatty(0):
                stack.enter_context(_raw_terminal(0))
                stack.enter_context(_window_changes(0, master))
            timed_out, interrupted = _bridge(
                session, sources, status_read, master if use_terminal else None, show, started + timeout
            )
        process.wait()
    finally:
        if process.poll() is None:
            session.end_sandbox()
            process.wait()
        if feeder is not None:
            feeder.kill()
            feeder.wait()
        session.end_transcript()
        for descriptor in (status_read, *sources):
            os.close(descriptor)
    return Launched(
        container_argv=tuple(container),
        exit=process.returncode,
        timed_out=timed_out,
        interrupted=interrupted,
        started_child=child_pid(bytes(session.status)) is not None,
        seconds=time.monotonic() - started,
        transcript_cut=session.cut,
    )


def _fed_input() -> tuple[int, subprocess.Popen[bytes] | None]:
    """Return the agent's standard input: a pipe fed from ours, or nothing where ours is a terminal or closed.

    Ours is never handed in. Through ``/proc/self/fd/0`` whoever holds a descriptor can open it anew to write: into the
    file of a host, into the pipe from which a script reads its next lines, into a terminal's input.
    """
    if _is_terminal_or_closed(0):
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), None
    read_end, write_end = os.pipe()
    try:
        feeder = subprocess.Popen(["cat"], stdout=write_end, stderr=subprocess.DEVNULL)
    finally:
        os.close(write_end)
    return read_end, feeder


def _is_terminal_or_closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return os.isatty(descriptor)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Leave by the ordinary way when we are told to end, so that the terminal is put back and the sandbox is ended."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers, and only there are they called
        return
    before = [signal.signal(number, leave) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextlib.contextmanager
def _window_changes(source: int, master: int) -> Iterator[None]:
    """Pass changes of our window's size on to the agent's terminal."""
    before = signal.signal(signal.SIGWINCH, lambda *_: _copy_window_size(source, master))
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _BLOCK)
    except OSError:
        return b""  # a pty master answers EIO once the last slave is closed


def _bridge(  # noqa: PLR0917 - one caller
    session: _Session,
    sources: dict[int, int],
    status: int,
    master: int | None,
    show: tuple[int, int] | None,
    deadline: float,
) -> tuple[bool, bool]:
    """Carry bytes between the agent and us until the tracer and all writers are gone."""
    timed_out = interrupted = False
    shown = dict(sources) if show is not None else {}
    with selectors.DefaultSelector() as selector:
        for descriptor in (*sources, status):
            selector.register(descriptor, selectors.EVENT_READ)
        open_sources = {*sources, status}
        if master is not None and os.isatty(0):
            selector.register(0, selectors.EVENT_READ)
        while open_sources:
            try:
                ready = selector.select(min(0.5, max(0.0, deadline - time.monotonic())) if not timed_out else 0.5)
                for key, _ in ready:
                    block = _read(key.fd)
                    if key.fd == 0 and master is not None:
                        if block:
                            _write_all(master, block)
                        else:
                            selector.unregister(0)
                    elif not block:
                        selector.unregister(key.fd)
                        open_sources.discard(key.fd)
                    elif key.fd == status:
                        session.status += block
                    else:
                        session.keep(block)
                        if key.fd in shown and show is not None:
                            try:
                                _write_all(show[sources[key.fd]], block)
                            except OSError:
                                del shown[key.fd]  # nobody reads any more; the transcript goes on
                if not ready and session.process.poll() is not None:
                    break  # the tracer is gone and nothing is left to read
                if not timed_out and time.monotonic() >= deadline:
                    timed_out = True
                    session.end_sandbox()
            except KeyboardInterrupt:
                interrupted = True
                session.end_sandbox()
    return timed_out, interrupted
