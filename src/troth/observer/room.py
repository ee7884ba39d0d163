"""What observing has room for on this machine: limits of the kernel that cost a run its coverage, and memory.

None of it keeps a run from starting. What a limit lets go unseen is told by the run's own records; here it is told
before, with the command that mends it. A pure function over values that are read at the edge.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from troth.observer.contract_source import RunLimits
from troth.observer.folders import walk
from troth.observer.ready import Missing
from troth.observer.tree import OUTSIDE

WATCHES: Final = "fs/inotify/max_user_watches"
INSTANCES: Final = "fs/inotify/max_user_instances"
QUEUED: Final = "fs/inotify/max_queued_events"

LEAST_INSTANCES: Final = 16
"""Queues that a user needs beside those of editors and file managers; a run takes one."""

LEAST_QUEUED: Final = 16_384
"""Events that a queue should hold; it is what kernels come with."""

BESIDE: Final = 1_024
"""Watches beyond a workspace's folders: for those that a run makes, and for other programs of the user's."""

MAX_COUNTED: Final = 1_000_000
"""Folders counted of a workspace."""

MAX_VALUE: Final = 64
"""Bytes read of one setting."""


@dataclass(frozen=True, slots=True)
class Room:
    """What was found.

    Args:
        settings: kernel setting below ``/proc/sys`` -> value, for those that exist and are numbers.
        folders: folders of the workspace; None where there is none.
        memory: bytes of memory that are available, also within a container's limit; None: not known.
        is_root: whether commands need no ``sudo`` here.
    """

    settings: Mapping[str, int] = field(default_factory=dict)
    folders: int | None = None
    memory: int | None = None
    is_root: bool = False

    def set_to(self, name: str, value: int) -> str:
        """Return the command that sets a kernel setting."""
        command = f"sysctl -w {name.replace('/', '.')}={value}"
        return command if self.is_root else f"sudo {command}"


def tight(room: Room) -> list[Missing]:
    """Return what is too small, each with what mends it; empty where there is room."""
    found = []
    watches, needed = room.settings.get(WATCHES), (room.folders or 0) + BESIDE
    if watches is not None and watches < needed:
        found.append(
            Missing(
                "inotify-watches",
                f"The kernel lets a user watch {watches:,} folders; the workspace has {room.folders or 0:,}. "
                "Folders beyond cost a run its coverage.",
                room.set_to(WATCHES, max(65_536, 2 * needed)),
            )
        )
    instances = room.settings.get(INSTANCES)
    if instances is not None and instances < LEAST_INSTANCES:
        found.append(
            Missing(
                "inotify-instances",
                f"The kernel lets a user have {instances} queues of changes, and other programs take some. "
                "A run that gets none is not seen whole.",
                room.set_to(INSTANCES, 512),
            )
        )
    queued = room.settings.get(QUEUED)
    if queued is not None and queued < LEAST_QUEUED:
        found.append(
            Missing(
                "inotify-queue",
                f"A queue of changes holds {queued:,} events. A burst of more costs a run its coverage.",
                room.set_to(QUEUED, 4 * LEAST_QUEUED),
            )
        )
    limit = RunLimits().memory_bytes
    if room.memory is not None and room.memory < limit // 4:
        found.append(
            Missing(
                "memory",
                f"{room.memory >> 20:,} MiB of memory are free; one process of an acceptance command may use "
                f"{limit >> 20:,} MiB. The kernel could end a grading.",
                "Free memory, raise the container's limit, or lower memory_mb under [limits] in the contract.",
            )
        )
    return found


def gather(workspace: Path | None) -> Room:
    """Look at this machine, and count the folders of a workspace."""
    settings = {name: value for name in (WATCHES, INSTANCES, QUEUED) if (value := _number(f"/proc/sys/{name}"))}
    known = [value for value in (_available(), _left_in_group()) if value is not None]
    return Room(
        settings=settings,
        folders=_folders(workspace) if workspace is not None else None,
        memory=min(known) if known else None,
        is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
    )


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_VALUE * 64).decode("ascii", "replace")
    except OSError:
        return ""


def _number(path: str) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdecimal() and len(text) < MAX_VALUE else None


def _available() -> int | None:
    for line in _read("/proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if name == "MemAvailable" and words and words[0].isdecimal():
            return int(words[0]) << 10
    return None


def _left_in_group() -> int | None:
    """Return what the limit of the control group at the top leaves, as a container sees its own."""
    limit, used = _number("/sys/fs/cgroup/memory.max"), _number("/sys/fs/cgroup/memory.current")
    return max(0, limit - used) if limit is not None and used is not None else None


def _folders(workspace: Path) -> int:
    count = 0
    for folder, names, _ in walk(str(workspace)):
        count += 1
        if folder == str(workspace):
            names[:] = [name for name in names if name not in OUTSIDE]
        if count >= MAX_COUNTED:
            break
    return count
