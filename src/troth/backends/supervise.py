"""A reviewer's program under supervision: its own session, limits of time and output, an end we can name (Impasse §9).

What it is fed is written, and what it says is drained, on threads of their own, so that neither waits for the other.
Nothing of it is left when this returns, but for a descendant that changed its process group: that one can escape, and
:attr:`Supervised.held` tells where it still holds our pipes.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NamedTuple

from troth.backends.protocol import IDLE_SECONDS, WALL_SECONDS, End
from troth.core.leaving import leaving_in_order

CAPTURE_BYTES: Final = 8_000_000
"""Most that is kept of each output; what is beyond is drained and forgotten."""
GRACE_SECONDS: Final = 5.0
"""How long the process group is polled between SIGTERM and SIGKILL."""
REAP_SECONDS: Final = 5.0
"""Longest wait for what was killed to be gone, and for each thread to end."""

_POLL_SECONDS: Final = 0.02
_BLOCK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Supervised:
    """How a program ended.

    Attributes:
        end: one of the five ends; ``completed`` says nothing of success.
        exit: its status (negative: ended by that signal); ``None`` where it did not start or we ended it.
        stdout: at most :data:`CAPTURE_BYTES` of it; ``stderr`` likewise.
        cut: whether an output was longer than what is kept.
        sent: bytes of its input that it took.
        received: bytes that came on both outputs, kept or not.
        seconds: time from start to end.
        held: something that left the process group still held an output open.
        why: why it could not be started.
    """

    end: End
    exit: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    cut: bool = False
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    held: bool = False
    why: str | None = None


def supervise(
    argv: Sequence[str],
    fed: bytes,
    *,
    cwd: Path,
    environment: Mapping[str, str],
    wall: float = WALL_SECONDS,
    idle: float = IDLE_SECONDS,
    capture: int = CAPTURE_BYTES,
    grace: float = GRACE_SECONDS,
) -> Supervised:
    """Run a program to its end, or end it; it ends with us when we are told to end.

    Args:
        argv: program and arguments; no shell.
        fed: its standard input, followed by the end of the file.
        cwd: its working directory.
        environment: its whole environment.
        wall: longest run in seconds.
        idle: longest silence in seconds: no byte taken of the input, none given on an output.
        capture: most that is kept of each output, in bytes.
        grace: time between SIGTERM and SIGKILL in seconds.
    """
    with leaving_in_order():
        return _supervised(argv, fed, cwd, environment, _Limits(wall, idle, capture, grace))


class _Limits(NamedTuple):
    wall: float
    idle: float
    capture: int
    grace: float


def _supervised(
    argv: Sequence[str], fed: bytes, cwd: Path, environment: Mapping[str, str], limits: _Limits
) -> Supervised:
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            list(argv), cwd=cwd, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, bufsize=0, close_fds=True, start_new_session=os.name != "nt",
        )  # fmt: skip
    except (OSError, ValueError) as fault:
        reason = (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
        return Supervised("spawn_error", why=reason, seconds=time.monotonic() - started)
    end: End = "completed"
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        pulse = _Pulse(started)
        feeding = _Feeding(process.stdin, fed, pulse)
        outputs = [_Draining(pipe, limits.capture, pulse) for pipe in (process.stdout, process.stderr)]
        for thread in (feeding, *outputs):
            thread.start()
        while not _has_ended(process):
            now = time.monotonic()
            if now - started >= limits.wall:
                end = "wall_timeout"
                break
            if now - pulse.at >= limits.idle:
                end = "idle_timeout"
                break
            time.sleep(_POLL_SECONDS)
        if end != "completed":
            _ask_to_end(process, limits.grace)
    finally:
        # Until the leader is reaped its number, and so the group's, is nobody else's.
        gone = _end_group(process)
    seconds = time.monotonic() - started
    if gone:
        # Everything of the group is gone, so the pipes are at their ends unless something escaped.
        _join((feeding, *outputs), REAP_SECONDS)
    held = any(output.is_alive() for output in outputs)
    for thread in (feeding, *outputs):
        thread.stop()
    _join((feeding, *outputs), REAP_SECONDS)
    if not gone:
        end = "termination_failed"
    out, err = outputs
    return Supervised(
        end=end,
        exit=process.returncode if end == "completed" else None,
        stdout=bytes(out.kept),
        stderr=bytes(err.kept),
        cut=out.total > len(out.kept) or err.total > len(err.kept),
        sent=feeding.total,
        received=out.total + err.total,
        seconds=seconds,
        held=held,
    )


class _Pulse:
    """When something last moved on a pipe."""

    def __init__(self, at: float) -> None:
        self.at = at

    def beat(self) -> None:
        self.at = time.monotonic()


class _Piping(threading.Thread):
    """Moves bytes on one pipe until its end, or until it is told to stop."""

    def __init__(self, pipe: IO[bytes], pulse: _Pulse, wanted: int) -> None:
        super().__init__(name="reviewer-pipe", daemon=True)
        self._pipe = pipe
        self._pulse = pulse
        self._wanted = wanted
        self._stopped = threading.Event()
        self.total = 0
        if os.name != "nt":
            os.set_blocking(pipe.fileno(), False)

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the other end is gone: nothing is left to move
            while self._ready() and self._move():
                self._pulse.beat()
        with contextlib.suppress(OSError):
            self._pipe.close()

    def _ready(self) -> bool:
        if os.name == "nt":
            return not self._stopped.is_set()
        waiting = select.poll()
        waiting.register(self._pipe, self._wanted)
        while not waiting.poll(100):
            if self._stopped.is_set():
                return False
        return not self._stopped.is_set()

    def _move(self) -> bool:
        raise NotImplementedError


class _Feeding(_Piping):
    """Writes the input and closes it."""

    def __init__(self, pipe: IO[bytes], data: bytes, pulse: _Pulse) -> None:
        super().__init__(pipe, pulse, 0 if os.name == "nt" else select.POLLOUT)
        self._left = memoryview(data)

    def _move(self) -> bool:
        if not self._left:
            return False
        with contextlib.suppress(BlockingIOError):
            moved = os.write(self._pipe.fileno(), self._left[:_BLOCK])
            self.total += moved
            self._left = self._left[moved:]
        return bool(self._left)


class _Draining(_Piping):
    """Reads an output to its end and keeps the first bytes of it."""

    def __init__(self, pipe: IO[bytes], limit: int, pulse: _Pulse) -> None:
        super().__init__(pipe, pulse, 0 if os.name == "nt" else select.POLLIN)
        self._limit = limit
        self.kept = bytearray()

    def _move(self) -> bool:
        block = os.read(self._pipe.fileno(), _BLOCK)
        self.total += len(block)
        self.kept += block[: self._limit - len(self.kept)]
        return bool(block)


def _join(threads: Sequence[_Piping], seconds: float) -> None:
    until = time.monotonic() + seconds
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, until - time.monotonic()))


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether the program ended, and leave it to be reaped: until then nobody else can get its number."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # this program ignores its children's ends, so the system has reaped it
        return True


def _ask_to_end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Send SIGTERM to the group and poll it, until nothing of it is alive or the time is over."""
    until = time.monotonic() + grace
    _signal_group(process, signal.SIGTERM)
    while time.monotonic() < until and (not _has_ended(process) or _others_alive(process.pid)):
        time.sleep(_POLL_SECONDS)


def _end_group(process: subprocess.Popen[bytes]) -> bool:
    """Kill what is left of the group, reap the leader, and tell whether all of it is gone."""
    _signal_group(process, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
    until = time.monotonic() + REAP_SECONDS
    while _others_alive(process.pid):
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL_SECONDS)
    try:
        process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(OSError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, number)


def _others_alive(group: int) -> bool:
    """Tell whether a process of the group other than its leader is alive; where there is no /proc nobody can tell."""
    for entry in Path("/proc").glob("[0-9]*"):
        if entry.name == str(group):
            continue
        try:
            stat = (entry / "stat").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        # After the name in brackets, which may hold anything: state, parent, group.
        state, _, its_group = stat.rpartition(b")")[2].split()[:3]
        if int(its_group) == group and state not in (b"Z", b"X"):
            return True
    return False
