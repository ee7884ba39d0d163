"""What a sandboxed command may use, and by what that is enforced.

Memory and tasks are limited for a command with all that it starts, by a control group, or a scope of systemd; where
there is neither, by resource limits of each process. The size of one file and core dumps are resource limits always,
set inside the sandbox before the program. Processes are counted from outside too: so it is known that the verifier
ended the command, while a program that is refused a process fails as if by itself. Time, output and what is written to
the disk in all are watched from outside. The program cannot raise or leave any of them.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from troth.observer.contract_source import RunLimits
from troth.observer.groups import Ceiling, Group

BURST: Final = 8
"""How many times the limit of processes the kernel lets through; it counts threads as well, the watch does not."""

OUTPUT_TIMES: Final = 16
"""How many times what is kept of its output a command may write before it is ended."""

WRITTEN_TIMES: Final = 4
"""How many times the limit of one file a command's files may take together before it is ended."""

_NPROC_SINCE: Final = (5, 14)
"""Kernel from which RLIMIT_NPROC counts the processes of one user namespace and not all of the user's."""


def _kernel() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def counts_processes() -> bool:
    """Tell whether RLIMIT_NPROC can be used: a kernel that counts by user namespace."""
    return _kernel() >= _NPROC_SINCE


def ceiling_of(limits: RunLimits) -> Ceiling:
    """Return what a group for these limits may use."""
    return Ceiling(limits.memory_bytes, limits.processes * BURST)


def resource_limits(limits: RunLimits, group: Group | None) -> dict[str, int]:
    """Return the resource limits that are set inside, by their names; what a group limits is left to it."""
    values = {"RLIMIT_FSIZE": limits.file_bytes, "RLIMIT_CORE": 0}
    if group is None or not group.limits("memory"):
        values["RLIMIT_DATA"] = limits.memory_bytes
    if (group is None or not group.limits("pids")) and counts_processes():
        values["RLIMIT_NPROC"] = limits.processes * BURST
    return values


def in_force(limits: RunLimits, group: Group | None) -> dict[str, str]:
    """Return by what each limit was enforced on a command that ran in ``group``."""
    set_inside = resource_limits(limits, group)
    memory = "RLIMIT_DATA of each process" if "RLIMIT_DATA" in set_inside else None
    processes = "count outside the sandbox"
    if group is not None and group.limits("pids"):
        processes += f", {group.named} against bursts"
    elif "RLIMIT_NPROC" in set_inside and os.geteuid() != 0:
        processes += ", RLIMIT_NPROC against bursts"
    return {
        "seconds": "clock outside the sandbox",
        "memory": memory or f"{group.named if group is not None else ''}, of all processes together",
        "file": "RLIMIT_FSIZE of each process",
        "written": "measured outside the sandbox",
        "output": f"reader outside the sandbox; what is beyond is dropped, {OUTPUT_TIMES} times as much ends it",
        "processes": processes,
    }


def described(limits: RunLimits, enforced: dict[str, str]) -> dict[str, Any]:
    """Return the limits and what enforces each (``limits`` of the isolation report, done records §13.10)."""
    return {
        "seconds": limits.seconds,
        "bytes": {
            "memory": limits.memory_bytes,
            "file": limits.file_bytes,
            "written": limits.file_bytes * WRITTEN_TIMES,
            "output": limits.output_bytes,
        },
        "processes": limits.processes,
        "enforced_by": enforced,
    }
