"""Running one program in a sandbox to its end, unobserved, within limits that it cannot leave."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

from troth.observer.contract_source import RunLimits
from troth.observer.folders import walk
from troth.observer.groups import group_of, make_group, new_name, scope_prefix, scopes_work
from troth.observer.limits import OUTPUT_TIMES, WRITTEN_TIMES, ceiling_of, in_force, resource_limits
from troth.observer.sandbox import SandboxSpec, bwrap_argv, bwrap_version, child_pid, prepare

Ended = Literal[
    "not_started", "timed_out", "too_many_processes", "out_of_memory", "too_much_output", "too_much_written"
]
"""Why a program has no exit of its own."""

_TICK_SECONDS: Final = 0.05
_DISK_SECONDS: Final = 0.25
_MEASURED_SECONDS: Final = 1.0
"""How often what the files take is added up, while the disk has less room than it had."""


@dataclass(frozen=True, slots=True)
class Confined:
    """How a confined program ended.

    ``exit`` is the program's own, minus the signal's number when one ended it; it means nothing where ``ended`` says
    that we ended it or that it never ran. ``output`` is what is kept of its output, the beginning and the end when it
    was more; ``written`` and ``output_sha256`` are of the whole. ``left`` names processes that it left running, which
    were ended with the sandbox, ``strayed`` counts those that had left its session. ``enforced`` says by what each
    limit was enforced.
    """

    exit: int
    output: bytes = field(repr=False)
    output_cut: bool
    written: int
    output_sha256: str
    seconds: float
    ended: Ended | None
    left: tuple[str, ...]
    strayed: int
    enforced: Mapping[str, str]


def _first_text() -> str:
    return resources.files("troth.observer").joinpath("first.py").read_text("utf-8")


class _Kept:
    """The beginning and the end of an output, and what the whole came to."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._most = most
        self._head = bytearray()
        self._tail = bytearray()
        self.written = 0
        self._digest = hashlib.sha256()

    def take(self, block: bytes) -> None:
        self.written += len(block)
        self._digest.update(block)
        room = max(0, self._most - self._half - len(self._head))
        self._head += block[:room]
        self._tail += block[room:]
        if len(self._tail) > 2 * self._half + (1 << 16):
            del self._tail[: len(self._tail) - self._half]

    @property
    def cut(self) -> bool:
        return self.written > self._most

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def whole(self) -> bytes:
        if not self.cut:
            return bytes(self._head + self._tail)
        return bytes(self._head) + b"\n...\n" + bytes(self._tail[len(self._tail) - self._half :])


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return found  # it ended while it was looked at
    return found


def _beneath(pid: int) -> list[int]:
    """Return the processes that descend from one."""
    found: list[int] = []
    stack = _children(pid)
    while stack:
        found.append(stack.pop())
        stack += _children(found[-1])
    return found


def _free(path: Path) -> int:
    told = os.statvfs(path)
    return told.f_bavail * told.f_frsize


class _Disk:
    """What a command's files take: those that stand in its folders, and those that only its descriptors hold."""

    def __init__(self, folders: Sequence[Path], most: int) -> None:
        self._folders = folders
        self._most = most
        self._began = time.time()
        self._free = {folder: _free(folder) for folder in folders}
        self._next = self._measured = 0.0

    def full(self, pids: Sequence[int], now: float) -> bool:
        """Tell whether it is more than the limit; asked often, it looks now and then."""
        if now < self._next:
            return False
        self._next = now + _DISK_SECONDS
        if pids and self._memory_files(pids[-1]) > self._most:
            return True
        # Whoever else writes to the disk takes room too; so the room only says when to add up.
        if now < self._measured or all(_free(folder) > self._free[folder] - self._most for folder in self._folders):
            return False
        self._measured = now + _MEASURED_SECONDS
        return self._sum(pids) > self._most

    def _memory_files(self, pid: int) -> int:
        with contextlib.suppress(OSError):
            told = os.statvfs(f"/proc/{pid}/root/dev/shm")
            return (told.f_blocks - told.f_bfree) * told.f_frsize
        return 0

    def _sum(self, pids: Sequence[int]) -> int:
        blocks: dict[tuple[int, int], int] = {}

        def add(info: os.stat_result) -> None:
            if stat.S_ISREG(info.st_mode) and info.st_ctime >= self._began:
                blocks[info.st_dev, info.st_ino] = info.st_blocks * 512

        for top in self._folders:
            for folder, _, names in walk(str(top)):
                for name in names:
                    with contextlib.suppress(OSError):
                        add(os.lstat(os.path.join(folder, name)))
        for pid in pids:
            with contextlib.suppress(OSError):
                for name in os.listdir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(OSError):
                        add(os.stat(f"/proc/{pid}/fd/{name}"))
        return sum(blocks.values())


class _Running:
    """One confined program while it runs."""

    def __init__(self, spec: SandboxSpec, argv: Sequence[str], limits: RunLimits, seconds: float) -> None:
        self.limits = limits
        self.seconds = seconds
        self.group = make_group(ceiling_of(limits))
        self.kept = _Kept(limits.output_bytes)
        self.ended: Ended | None = None
        self.status = bytearray()
        self.said = bytearray()
        self.disk = _Disk((spec.workspace, spec.private), limits.file_bytes * WRITTEN_TIMES)
        try:
            self._start(spec, argv)
        except BaseException:
            if self.group is not None:
                self.group.remove()
            raise

    def _start(self, spec: SandboxSpec, argv: Sequence[str]) -> None:
        scope = self.group is None and scopes_work()
        self._name = new_name()
        self._status_end, status_end = os.pipe()
        self._said_end, said_end = os.pipe()
        interpreter = os.path.realpath(sys.executable)
        prefix = self.group.entering() if self.group is not None else []
        environment = {"PATH": "/usr/bin:/bin"}
        if scope:
            prefix = scope_prefix(self._name, ceiling_of(self.limits), user=os.geteuid() != 0)
            bus = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
            environment |= {name: os.environ[name] for name in bus if name in os.environ}
        # Within a scope nothing is known of the group before it runs: the resource limits are set as well.
        words = json.dumps(resource_limits(self.limits, self.group))
        first = [interpreter, "-I", "-S", "-c", _first_text(), str(said_end), words, *argv]
        extra = ("--new-session", "--as-pid-1", "--json-status-fd", str(status_end))
        self.began = time.monotonic()
        try:
            self.process = subprocess.Popen(
                [*prefix, *bwrap_argv(spec, first, extra=extra)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                pass_fds=(status_end, said_end), start_new_session=True, env=environment,
            )  # fmt: skip
        except BaseException:
            os.close(self._status_end)
            os.close(self._said_end)
            raise
        finally:
            os.close(status_end)
            os.close(said_end)
        self._scope = scope
        self._tick = 0.0

    def to_the_end(self) -> None:
        """Read until everything in the sandbox is gone."""
        assert self.process.stdout is not None
        with (
            selectors.DefaultSelector() as selector,
            self.process.stdout,
            open(self._status_end, "rb", buffering=0) as status,
            open(self._said_end, "rb", buffering=0) as said,
        ):
            selector.register(self.process.stdout, selectors.EVENT_READ, self.kept.take)
            selector.register(status, selectors.EVENT_READ, self.status.extend)
            selector.register(said, selectors.EVENT_READ, self.said.extend)
            while selector.get_map():
                for key, _ in selector.select(_TICK_SECONDS):
                    block = os.read(key.fd, 1 << 16)
                    if block:
                        key.data(block)
                    else:
                        selector.unregister(key.fileobj)
                self._look()
            self.process.wait()
        # What the kernel counted last: an end that came between two looks.
        if self.ended is None and self.group is not None and self.group.killed_for_memory():
            self.ended = "out_of_memory"

    def _look(self) -> None:
        now = time.monotonic()
        if now < self._tick:
            return
        self._tick = now + _TICK_SECONDS
        if self.ended is None:
            self.ended = self._beyond(now)
        if self.ended is not None:
            self._kill()

    def _beyond(self, now: float) -> Ended | None:
        """Return the limit that is passed."""
        if now - self.began >= self.seconds:
            return "timed_out"
        if self.kept.written > self.limits.output_bytes * OUTPUT_TIMES:
            return "too_much_output"
        if self._scope and self.group is None:
            self.group = group_of(self.process.pid, self._name)
        if self.group is not None:
            if self.group.killed_for_memory():
                return "out_of_memory"
            if self.group.refused_a_task():
                return "too_many_processes"
        first = child_pid(bytes(self.status))
        pids = _beneath(first) if first is not None else []
        if len(pids) > self.limits.processes:
            return "too_many_processes"
        return "too_much_written" if self.disk.full(pids, now) else None

    def _kill(self) -> None:
        pid = child_pid(bytes(self.status))
        # The first process of the pid namespace takes everything in the namespace with it.
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
            else:
                self.process.kill()
        if self.group is not None:
            self.group.kill()

    def close(self) -> None:
        if self.process.poll() is None:
            self._kill()
            self.process.kill()
            self.process.wait()
        if self.group is not None:
            self.group.remove()


_SAYS: Final[Mapping[str, type]] = {"started": bool, "errno": int, "exit": int, "left": list, "strayed": int}
"""What the first process says, and of which type each is; anything else is left out."""


def _told(said: bytes) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for line in said.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(line)
            if isinstance(value, dict):
                told |= {name: value[name] for name, kind in _SAYS.items() if type(value.get(name)) is kind}
    return told


def run_confined(
    spec: SandboxSpec, argv: Sequence[str], limits: RunLimits, *, seconds: float | None = None
) -> Confined:
    """Run a program in the sandbox to its end, unobserved, with stdout and stderr captured together.

    Args:
        spec: the sandbox; ``prepare`` is called here, and the Python that this program runs on is shown inside.
        argv: program and arguments.
        limits: what it may use.
        seconds: time allowed, when it is not the limits' own.

    Raises:
        Refused: ``E_OBSERVER_MISSING`` when bubblewrap is not installed; as ``prepare``.
    """
    if shutil.which("bwrap") is None:
        bwrap_version()
    prepare(spec)
    running = _Running(spec, argv, limits, limits.seconds if seconds is None else seconds)
    try:
        running.to_the_end()
    finally:
        running.close()
    told = _told(bytes(running.said))
    ended = running.ended
    if ended is None and "started" not in told:
        ended = "not_started"
    return Confined(
        exit=told["exit"] if "exit" in told else _exit_of(running.process.returncode),
        output=running.kept.whole(),
        output_cut=running.kept.cut,
        written=running.kept.written,
        output_sha256=running.kept.sha256,
        seconds=time.monotonic() - running.began,
        ended=ended,
        left=tuple(told.get("left", ())),
        strayed=told.get("strayed", 0),
        enforced=in_force(limits, running.group),
    )


def _exit_of(code: int) -> int:
    # Only of what we ended: bubblewrap reports a program ended by signal N as 128 + N.
    return 128 - code if 128 < code <= 128 + 64 else code
