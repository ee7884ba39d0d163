"""The first process of a graded sandbox: sets limits, starts the program, and says how it ended.

This text is handed to a bare interpreter (``-I -S -c``) inside the sandbox, so it imports nothing of this project. As
the first process of its namespace it is out of reach for signals from inside, and it makes itself unreadable to
``ptrace``: what it writes to its descriptor is not the program's to write. The program's own status goes out as the
kernel tells it, so that a program which ends with 137 is not taken for one that was killed.

Arguments: the descriptor, a JSON object of resource limits (name -> value), then the program and its arguments. It
writes JSON lines: ``{"started": true}`` or ``{"errno": n}``; then ``{"exit": n}`` (minus the signal's number when one
ended it) with ``left``, the names of the processes that were still there, and ``strayed``, how many of them had left
the program's session.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import sys
import time

_SETTLE_SECONDS = 0.1
"""How long what the program started may take to end by itself before it counts as left behind."""

_NOT_DUMPABLE = 4
"""``PR_SET_DUMPABLE`` of ``prctl(2)``."""


def _close_to_tracing() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(_NOT_DUMPABLE, 0, 0, 0, 0)


def _execute(argv: list[str]) -> None:
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is wanted: the vector is the contract's own
    except OSError as fault:
        if fault.errno != errno.ENOEXEC:
            raise
        # A script that names no interpreter is one for the shell, as execvp(3) has it.
        folders = [""] if "/" in argv[0] else os.environ.get("PATH", os.defpath).split(":")
        found = (os.path.join(folder, argv[0]) for folder in folders)
        script = next((path for path in found if os.access(path, os.X_OK)), argv[0])
        os.execv("/bin/sh", ["/bin/sh", script, *argv[1:]])  # noqa: S606 - as the comment above says


def _become(argv: list[str], limits: dict[str, int], report: int) -> None:
    """Turn the child into the program; what goes wrong is written as a number."""
    try:
        for name, value in limits.items():
            what = getattr(resource, name)
            hard = resource.getrlimit(what)[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(what, (most, most))
        # The interpreter ignores these; a program has to find them as they are for everybody.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        _execute(argv)
    except OSError as fault:
        os.write(report, str(fault.errno or 1).encode())
    except ValueError:
        os.write(report, b"22")
    os._exit(127)


def _others() -> list[tuple[str, bool]]:
    """Return name, and whether it left the session, of every other process that is still running here."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or name == "1":
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        program, _, rest = text.rpartition(")")
        fields = rest.split()
        if fields and fields[0] not in ("Z", "X"):
            found.append((program.partition("(")[2], fields[3] != "1"))
    return found


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main(words: list[str]) -> None:
    """Start the program, wait for it, and tell."""
    report, limits, argv = int(words[0]), json.loads(words[1]), words[2:]
    os.set_inheritable(report, False)
    _close_to_tracing()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        _become(argv, limits, write_end)
    os.close(write_end)
    failed = os.read(read_end, 16)
    started = {"errno": int(failed)} if failed else {"started": True}
    os.write(report, json.dumps(started).encode() + b"\n")
    status = None
    while status is None:
        pid, code = os.wait()
        if pid == child:
            status = os.waitstatus_to_exitcode(code)
    left = _others()
    until = time.monotonic() + _SETTLE_SECONDS
    while left and time.monotonic() < until:
        time.sleep(0.005)
        _reap()
        left = _others()
    told = {"exit": status, "left": sorted(name for name, _ in left)[:20], "strayed": sum(away for _, away in left)}
    os.write(report, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)
