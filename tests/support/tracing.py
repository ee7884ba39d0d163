"""Traces for tests: recorded from real programs in a sandbox, and written by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.observing import needs_observer
from troth.observer.events import TraceReport, read_trace
from troth.observer.syscalls import strace_argv

STARTED = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
PYTHON = os.path.realpath(sys.executable)


traced = [pytest.mark.observer, needs_observer]
"""Marks of a test that traces a real program."""


def sandbox(workspace: Path) -> list[str]:
    """Return a small sandbox around a workspace, for bubblewrap; the program follows after `--`."""
    system = [name for name in ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc/alternatives") if Path(name).exists()]
    prefix = Path(PYTHON).parent.parent
    if not str(prefix).startswith("/usr"):
        system.append(str(prefix))
    return [
        "bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--die-with-parent", "--new-session",
        *(word for name in system for word in ("--ro-bind", name, name)),
        "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", str(workspace), str(workspace),
        "--chdir", str(workspace),
    ]  # fmt: skip


@dataclass(frozen=True)
class Traced:
    """A recorded run: the report, the trace's own lines, and what the program printed."""

    report: TraceReport
    trace: Path
    out: str

    def changes(self, *kinds: str) -> list[tuple[str, ...]]:
        """The changes as ``(type, path)`` or ``(type, path, target)``."""
        return changes(self.report, *kinds)


def changes(report: TraceReport, *kinds: str) -> list[tuple[str, ...]]:
    """The changes of a report as ``(type, path)`` or ``(type, path, target)``, in order."""
    return [
        tuple(word for word in (event.type, event.path, event.target) if word is not None)
        for event in report.events
        if event.type != "exec" and (not kinds or event.type in kinds)
    ]


def events_of(report: TraceReport, **members: Any) -> list[Any]:
    """The events that have these members."""
    return [event for event in report.events if all(getattr(event, name) == want for name, want in members.items())]


def program(report: TraceReport, *argv: str) -> Any:
    """The only ``exec`` event with this argv."""
    (found,) = events_of(report, type="exec", argv=argv)
    return found


def record(
    workspace: Path,
    argv: Sequence[str],
    *,
    files: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    stdin: str = "",
    quiet: Sequence[str] = (),
    pidns: bool = True,
) -> Traced:
    """Trace a program in a sandbox whose workspace holds some files, and read the trace."""
    workspace.mkdir(exist_ok=True)
    for name, content in (files or {}).items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for name, target in (links or {}).items():
        (workspace / name).symlink_to(target)
    known = [str(path.relative_to(workspace)) for path in workspace.rglob("*") if not path.is_dir()]
    trace = workspace.parent / "trace"
    inside = [word for word in sandbox(workspace) if pidns or word != "--unshare-pid"]
    done = subprocess.run(
        [*strace_argv(trace), *inside, "--", *argv],
        input=stdin, capture_output=True, text=True, errors="replace", check=False, timeout=120,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    report = read_trace(
        trace,
        workspace=str(workspace),
        started=STARTED,
        agent_argv=argv,
        known_paths=known,
        known_links=links,
        quiet_paths=quiet,
    )
    return Traced(report, trace, done.stdout + done.stderr)


def python(workspace: Path, source: str, **options: Any) -> Traced:
    """Trace a Python program given as text."""
    return record(workspace, [PYTHON, "-S", "-E", "-c", source], **options)


# --- traces written by hand ---

HEAD = (
    '100 execve("/usr/bin/bwrap", ["bwrap", "--", "agent"], 0x7ffe /* 2 vars */) = 0',
    "100 clone(child_stack=NULL, flags=CLONE_NEWNS|CLONE_NEWPID|SIGCHLD) = 101",
    '101 chdir("/ws")     = 0',
    '101 execve("/usr/bin/agent", ["agent"], 0x7ffe /* 2 vars */) = 0',
)
TAIL = ("101 +++ exited with 0 +++", "100 +++ exited with 0 +++")


def lines(*texts: str, head: Sequence[str] = HEAD, tail: Sequence[str] = TAIL, passed: str = "0.000100000") -> bytes:
    """A trace: each text is a process number and what it did; process 101 is the agent, in /ws."""
    whole = []
    for text in (*head, *texts, *tail):
        pid, rest = text.split(" ", 1)
        whole.append(f"{pid:<5}{passed:>17} {rest}\n")
    return "".join(whole).encode("latin-1")


def read(data: bytes, folder: Path, *, known: Sequence[str] = (), **options: Any) -> TraceReport:
    """Read a trace given as bytes."""
    trace = folder / "literal-trace"
    trace.write_bytes(data)
    settings: dict[str, Any] = {"workspace": "/ws", "started": STARTED, "agent_argv": ["agent"], **options}
    return read_trace(trace, known_paths=known, **settings)


Reader = Callable[..., TraceReport]
