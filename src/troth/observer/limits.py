"""What a sandboxed command may use, and by what that is enforced.

Memory, file size and core dumps are resource limits of the kernel, set by ``prlimit`` inside the sandbox before the
program. Processes are counted by a watch outside, which ends the sandbox above the limit: so it is known that the
verifier ended it, while a program that is refused a process fails as if by itself. Where the kernel counts by user
namespace it has a limit too, far higher, against a burst that is faster than the watch; that one does not hold for a
sandbox which root started. Time is a clock outside. The program cannot raise or leave any of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final

from troth.core.errors import Refused
from troth.observer.contract_source import RunLimits

WATCH_SECONDS: Final = 0.05
"""How often the watch counts."""

_NPROC_SINCE: Final = (5, 14)
"""Kernel from which RLIMIT_NPROC counts the processes of one user namespace and not all of the user's."""

_BURST: Final = 8
"""How many times the limit the kernel lets through; it counts threads as well, the watch does not."""

_EXEC_FAILED: Final = (126, 127)


def _at_most(limit: int, what: int) -> int:
    hard = resource.getrlimit(what)[1]
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def _kernel() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def counts_processes() -> bool:
    """Tell whether RLIMIT_NPROC can be used: a kernel that counts by user namespace."""
    return _kernel() >= _NPROC_SINCE


def limited(argv: Sequence[str], limits: RunLimits) -> list[str]:
    """Return the vector that sets the limits inside the sandbox and then becomes the program itself.

    Raises:
        Refused: ``E_OBSERVER_MISSING`` when ``prlimit`` is not installed.
    """
    program = shutil.which("prlimit", path="/usr/bin:/bin:/usr/sbin:/sbin")
    if program is None:
        raise Refused(
            "E_OBSERVER_MISSING",
            "prlimit, which sets the limits of acceptance runs, is not installed",
            remedy="Run: apt-get install util-linux",
        )
    options = [
        f"--data={_at_most(limits.memory_bytes, resource.RLIMIT_DATA)}",
        f"--fsize={_at_most(limits.file_bytes, resource.RLIMIT_FSIZE)}",
        "--core=0",
    ]
    if counts_processes():
        options.append(f"--nproc={_at_most(limits.processes * _BURST, resource.RLIMIT_NPROC)}")
    return [program, *options, "--", *argv]


def could_not_start(code: int, output: bytes) -> bool:
    """Tell whether the program never ran: the sandbox or the limiter could not start it.

    A program that prints the same words is told to have not started, which gives it no result and never a pass.
    """
    return (code in _EXEC_FAILED and output.startswith(b"prlimit: failed to execute")) or (
        code == 1 and output.startswith(b"bwrap: ")
    )


def described(limits: RunLimits) -> dict[str, Any]:
    """Return the limits and what enforces each (``limits`` of the isolation report, done records §13.10)."""
    kernel_counts = counts_processes() and os.geteuid() != 0
    return {
        "seconds": limits.seconds,
        "bytes": {"memory": limits.memory_bytes, "file": limits.file_bytes, "output": limits.output_bytes},
        "processes": limits.processes,
        "enforced_by": {
            "seconds": "clock outside the sandbox",
            "memory": "RLIMIT_DATA of each process",
            "file": "RLIMIT_FSIZE of each process",
            "output": "reader outside the sandbox; what is beyond is dropped",
            "processes": "count outside the sandbox" + (", RLIMIT_NPROC against bursts" if kernel_counts else ""),
        },
    }


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return found  # it ended while it was looked at
    return found


def _first_of_namespace(pid: int) -> bool:
    """Tell whether the process is the first one of a pid namespace below ours."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("NSpid:"):
                    numbers = line.split()[1:]
                    return len(numbers) > 1 and numbers[-1] == "1"
    except OSError:
        pass
    return False


class ProcessWatch:
    """Counts the processes of sandboxes that this process starts within the block, and ends one with too many."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.exceeded = False
        self.most = 0
        self._done = threading.Event()
        self._known = frozenset(_children(os.getpid()))
        self._thread = threading.Thread(target=self._watch, name="process-watch", daemon=True)

    def __enter__(self) -> ProcessWatch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(WATCH_SECONDS):
            for outer in _children(os.getpid()):
                if outer not in self._known:
                    self._count(outer)

    def _count(self, outer: int) -> None:
        inside = 0
        first: int | None = None
        stack = _children(outer)
        while stack:
            pid = stack.pop()
            if first is None and _first_of_namespace(pid):
                first = pid
            else:
                inside += 1
            stack += _children(pid)
        self.most = max(self.most, inside)
        if inside > self.limit and first is not None:
            self.exceeded = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
