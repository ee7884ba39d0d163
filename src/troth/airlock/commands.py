"""A validator that is a command of the workspace's settings: exit 0 passes (ledger spec §11 [D42]).

The command is the operator's own and runs with the operator's rights, in the workspace's folder: no shell, a session of
its own, nothing on its standard input, no inherited descriptor, a small environment, limited time. What it writes is
read to the end and forgotten but for its tail.

Where the settings say so it runs in the observer's sandbox instead, on a copy of the tree: so may a command that
executes what an agent left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from troth.core.leaving import leaving_in_order

TIME_LIMIT_SECONDS: Final = 600.0
"""Longest a validator's command may run."""

TAIL_BYTES: Final = 4096
"""How much of the end of its output is kept."""

OUTPUT_LIMIT: Final = 1 << 26
"""Output after which a command is ended, in bytes: what writes more than that is not answering a question."""

_GRACE_SECONDS: Final = 2.0
"""How long what a command left running may hold its output open after it ended."""

_POLL_SECONDS: Final = 0.02

_KEPT: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    "SYSTEMROOT", "PATHEXT", "COMSPEC", "TEMP", "TMP", "USERPROFILE",
)  # fmt: skip
"""Variables that a command inherits; keys and tokens are not among them."""


_WHY_ENDED: Final[Mapping[str, str]] = {
    "not_started": "could not be started in the sandbox",
    "timed_out": "was ended after {seconds:g} seconds",
    "too_many_processes": "was ended with more than {limits.processes} processes",
    "out_of_memory": "was ended with more than {limits.memory_bytes} bytes of memory",
    "too_much_output": "was ended for the size of its output",
    "too_much_written": "was ended for the size of what it wrote",
}
"""What is said of a command in the sandbox that has no exit of its own."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    ``exit`` is its status (negative: ended by that signal), ``None`` when it was not started or when we ended it;
    ``why`` then says so. ``tail`` is the end of stdout and stderr together, ``written`` their size in bytes.
    """

    exit: int | None
    why: str | None
    tail: bytes
    written: int
    seconds: float

    @property
    def last_line(self) -> str:
        """Return the last line that says something, as text."""
        lines = [line.strip() for line in self.tail.decode("utf-8", "replace").splitlines()]
        return next((line for line in reversed(lines) if line), "")


def run_validator(
    argv: Sequence[str],
    root: Path,
    told: Mapping[str, str],
    *,
    time_limit: float = TIME_LIMIT_SECONDS,
    output_limit: int = OUTPUT_LIMIT,
) -> Ended:
    """Run a command to its end in the workspace's folder.

    Its process group is killed when the time is over, when it writes too much, when this program is told to end, and
    after it ended. What left the group on purpose is not found; nobody waits for it.

    Args:
        argv: program and arguments.
        root: the folder it runs in.
        told: variables that tell it what it is asked about.
        time_limit: in seconds.
        output_limit: in bytes.
    """
    started = time.monotonic()
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | dict(told)
    try:
        process = subprocess.Popen(
            list(argv), cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, close_fds=True, start_new_session=os.name != "nt",
        )  # fmt: skip
    except (OSError, ValueError) as fault:
        reason = (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
        return Ended(None, f"could not be started: {reason}", b"", 0, 0.0)
    assert process.stdout is not None
    output = _Output(process.stdout, output_limit)
    why = None
    with leaving_in_order():
        try:
            while not _has_ended(process):
                if time.monotonic() - started >= time_limit:
                    why = f"was ended after {time_limit:g} seconds"
                    break
                if output.too_much:
                    why = f"was ended after it wrote {output_limit} bytes"
                    break
                # The pipe's end is no sign: a command may close its output and work on.
                output.wait(_POLL_SECONDS)
        finally:
            _kill_group(process)
    seconds = time.monotonic() - started
    output.finish(_GRACE_SECONDS)
    return Ended(process.returncode if why is None else None, why, bytes(output.tail), output.written, seconds)


def run_in_sandbox(
    argv: Sequence[str], root: Path, told: Mapping[str, str], *, time_limit: float = TIME_LIMIT_SECONDS
) -> Ended:
    """Run a command to its end in a sandbox, on a copy of the workspace's tree that stands at the workspace's own path.

    It sees neither ``.git`` nor ``.mentu``, no home and no network; the limits are those of acceptance commands. A
    program that is named without its folder is looked up in no folder of the workspace, which an agent could fill.

    Raises:
        Refused: ``E_OBSERVER_MISSING``, ``E_SANDBOX_UNREACHABLE``, or why the tree cannot be copied.
    """
    from troth.observer.ready import require_observer

    require_observer()
    from troth.observer.commands import Bench, nothing
    from troth.observer.confine import run_confined
    from troth.observer.contract_source import RunLimits
    from troth.observer.copies import copy_workspace
    from troth.observer.sandbox import SandboxSpec
    from troth.observer.tree import snapshot

    limits = RunLimits()
    bench = Bench(inside=str(root), trusted=nothing)
    with bench.folder() as scratch:
        copy = scratch / "tree"
        copy_workspace(root, snapshot(root), copy)
        spec = SandboxSpec(
            workspace=copy,
            inside=bench.inside,
            private=scratch / "private",
            environment={**bench.plain_environment(), **told},
            read_only=bench.read_only,
        )
        spec.private.mkdir(mode=0o700)
        done = run_confined(spec, argv, limits, seconds=time_limit)
    why = _WHY_ENDED[done.ended].format(seconds=time_limit, limits=limits) if done.ended is not None else None
    return Ended(done.exit if why is None else None, why, done.output[-TAIL_BYTES:], done.written, done.seconds)


class _Output:
    """Reads a pipe to its end in a thread, so that no command waits for us."""

    def __init__(self, pipe: IO[bytes], limit: int) -> None:
        self._pipe = pipe
        self._limit = limit
        self.tail = bytearray()
        self.written = 0
        self.too_much = False
        self._thread = threading.Thread(target=self._read, name="validator-output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while block := os.read(self._pipe.fileno(), 1 << 16):
            self.written += len(block)
            self.tail += block
            del self.tail[:-TAIL_BYTES]
            self.too_much = self.written > self._limit

    def wait(self, seconds: float) -> None:
        if self._thread.is_alive():
            self._thread.join(seconds)
        else:
            time.sleep(seconds)

    def finish(self, seconds: float) -> None:
        self._thread.join(seconds)
        # What left the process group may hold the pipe for ever; then the thread keeps it, and nobody waits.
        if not self._thread.is_alive():
            self._pipe.close()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether the command ended, and leave it to be reaped: until then nobody else can get its number."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def told_of(ended: Ended) -> tuple[bool, str, dict[str, Any]]:
    """Return whether a command passed, why in one sentence, and the facts that are recorded."""
    facts: dict[str, Any] = {"exit": ended.exit, "seconds": round(ended.seconds, 3), "output_bytes": ended.written}
    if ended.why is not None:
        return False, f"the command {ended.why}", facts
    if ended.exit == 0:
        return True, "the command ended with exit 0", facts
    assert ended.exit is not None
    how = f"was ended by signal {-ended.exit}" if ended.exit < 0 else f"ended with exit {ended.exit}"
    said = ended.last_line[:200]
    return False, f"the command {how}" + (f": {said}" if said else ""), facts
