"""Control groups: a limit on what a command and all that it starts use together, and how to end them all.

Version 2 is used where a folder that we may write hands both controllers on to its children; else version 1, whose
hierarchies stand side by side; else a scope of systemd. A group is made below, or beside, the one this process is in,
so that limits which were set on us hold on.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

CONTROLLERS: Final = ("memory", "pids")

_SHELL: Final = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done; shift; exec "$@"'
"""Enters the groups whose files are named before ``--`` and becomes what stands behind it."""

_REMOVAL_SECONDS: Final = 5.0
_STALE_SECONDS: Final = 600.0
_PREFIX: Final = "troth-"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a group may use: bytes of memory together, and tasks (processes and threads) at once."""

    memory: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Parents:
    """Folders in which groups can be made: one for version 2, one for each controller of version 1."""

    version: int
    folders: tuple[tuple[str, tuple[Path, ...]], ...]
    """Controller (version 2: the empty word) and its candidates, the nearest first."""


def _unescaped(text: str) -> str:
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")


def _upward(mount: Path, root: str, own: str) -> tuple[Path, ...]:
    """Return the folder of a group and those above it, down from the mount, the group's own first."""
    if root != "/":
        if own != root and not own.startswith(root + "/"):
            return (mount,)
        own = own[len(root) :]
    parts = [part for part in own.split("/") if part and part != ".."]
    return tuple(mount.joinpath(*parts[:count]) for count in range(len(parts), -1, -1))


def parents(mountinfo: str, own: str) -> list[Parents]:
    """Return where groups could stand, best first.

    Args:
        mountinfo: the text of ``/proc/self/mountinfo``.
        own: the text of ``/proc/self/cgroup``.
    """
    mine: dict[str, str] = {}
    for line in own.splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        for name in names.split(",") if names else [""]:
            mine[name if number != "0" else ""] = path
    unified: list[Parents] = []
    split: list[tuple[str, tuple[Path, ...]]] = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        root, mount = _unescaped(fields[3]), Path(_unescaped(fields[4]))
        if kind[0] == "cgroup2" and "" in mine:
            unified.append(Parents(2, (("", _upward(mount, root, mine[""])),)))
        elif kind[0] == "cgroup":
            split += [
                (name, _upward(mount, root, mine[name]))
                for name in CONTROLLERS
                if name in kind[2].split(",") and name in mine
            ]
    return unified + ([Parents(1, tuple(split))] if split else [])


def _hands_on(folder: Path) -> bool:
    """Tell whether a folder of version 2 gives its children both controllers."""
    try:
        words = (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False
    return all(name in words for name in CONTROLLERS)


def _settings(controller: str, ceiling: Ceiling) -> list[tuple[str, str, bool]]:
    """Return file, value, and whether it has to be there, of the limits of a folder."""
    if controller == "memory":
        return [
            ("memory.limit_in_bytes", str(ceiling.memory), True),
            ("memory.memsw.limit_in_bytes", str(ceiling.memory), False),
        ]
    if controller == "pids":
        return [("pids.max", str(ceiling.tasks), True)]
    return [
        ("memory.max", str(ceiling.memory), True),
        ("memory.swap.max", "0", False),
        ("memory.oom.group", "1", False),
        ("pids.max", str(ceiling.tasks), True),
    ]


def _counter(path: Path, name: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            word, _, value = line.partition(" ")
            if word == name:
                return int(value)
    return 0


class Group:
    """A control group for one command."""

    def __init__(self, version: int, folders: Sequence[tuple[str, Path]], *, ours: bool = True) -> None:
        self.version = version
        self._folders = tuple(folders)
        self._ours = ours

    def limits(self, controller: str) -> bool:
        """Tell whether this group limits ``memory`` or ``pids``."""
        return any(name in ("", controller) for name, _ in self._folders)

    @property
    def named(self) -> str:
        """Return how its enforcement is named in a report."""
        return f"control group (version {self.version})" if self._ours else "systemd scope"

    def entering(self) -> list[str]:
        """Return what stands before a program's vector so that it starts within the group."""
        if not self._ours:
            return []
        return ["/bin/sh", "-c", _SHELL, "sh", *(str(folder / "cgroup.procs") for _, folder in self._folders), "--"]

    def _folder(self, controller: str) -> Path | None:
        return next((folder for name, folder in self._folders if name in ("", controller)), None)

    def killed_for_memory(self) -> bool:
        """Tell whether the kernel killed something in the group because its memory was used up."""
        folder = self._folder("memory")
        if folder is None:
            return False
        return _counter(folder / ("memory.events" if self.version == 2 else "memory.oom_control"), "oom_kill") > 0

    def refused_a_task(self) -> bool:
        """Tell whether the kernel refused the group a process or thread."""
        folder = self._folder("pids")
        return folder is not None and _counter(folder / "pids.events", "max") > 0

    def members(self) -> list[int]:
        """Return the processes in the group."""
        with contextlib.suppress(OSError, ValueError):
            return [int(line) for line in (self._folders[0][1] / "cgroup.procs").read_text().split()]
        return []

    def kill(self) -> None:
        """End every process in the group."""
        if self.version == 2:
            with contextlib.suppress(OSError):
                (self._folders[0][1] / "cgroup.kill").write_text("1")
                return
        for pid in self.members():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> None:
        """End what is left and remove the group; one that stays busy is left to the system."""
        if not self._ours:
            return
        until = time.monotonic() + _REMOVAL_SECONDS
        for _, folder in self._folders:
            while folder.exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                if time.monotonic() > until:
                    break
                self.kill()
                time.sleep(0.01)


def _sweep(parent: Path) -> None:
    """Remove groups of runs of ours that were killed before they could; a group with anything in it stays."""
    for folder in parent.glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            # The number may be somebody's of another namespace, between making a group and entering it: hence the age.
            if not Path(f"/proc/{pid}").exists() and time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                folder.rmdir()


def make_in(where: Parents, name: str, ceiling: Ceiling) -> Group | None:
    """Make a group in the first folder of each kind that allows it; ``None`` where none does.

    Version 1 may give less than both controllers: what is missing is not limited by the group.
    """
    made: list[tuple[str, Path]] = []
    for controller, candidates in where.folders:
        for parent in candidates:
            if where.version == 2 and not _hands_on(parent):
                continue
            folder = parent / name
            try:
                folder.mkdir()
            except OSError:
                continue
            _sweep(parent)
            try:
                for file, value, needed in _settings(controller, ceiling):
                    if needed or (folder / file).exists():
                        (folder / file).write_text(value)
                if not os.access(folder / "cgroup.procs", os.W_OK):
                    raise PermissionError
            except OSError:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                continue
            made.append((controller, folder))
            break
    return Group(where.version, made) if made else None


@lru_cache(maxsize=1)
def _candidates() -> tuple[Parents, ...]:
    try:
        return tuple(parents(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()))
    except OSError:
        return ()


def make_group(ceiling: Ceiling) -> Group | None:
    """Make a control group for one command, or return ``None`` where this process may make none."""
    name = new_name()
    for where in _candidates():
        group = make_in(where, name, ceiling)
        if group is not None:
            return group
    return None


def new_name() -> str:
    """Return the name of a group, or a scope, that nobody else has."""
    return f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"


def scope_prefix(name: str, ceiling: Ceiling, *, user: bool) -> list[str]:
    """Return what runs a program in a scope of systemd of that name with these limits."""
    return [
        "systemd-run", "--quiet", "--scope", f"--unit={name}.scope", "--collect", *(["--user"] if user else []),
        f"--property=MemoryMax={ceiling.memory}", "--property=MemorySwapMax=0",
        f"--property=TasksMax={ceiling.tasks}", "--",
    ]  # fmt: skip


@lru_cache(maxsize=1)
def scopes_work() -> bool:
    """Tell whether systemd runs here and makes scopes for this user; found out by making one."""
    if not Path("/run/systemd/system").is_dir() or shutil.which("systemd-run") is None:
        return False
    prefix = scope_prefix(new_name(), Ceiling(1 << 28, 64), user=os.geteuid() != 0)
    try:
        tried = subprocess.run(
            [*prefix, "true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=10, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def group_of(pid: int, name: str) -> Group | None:
    """Return the group of the scope of that name, once a process is in it; ``None`` before, or when it cannot be told.

    Until systemd has moved it, a process is where we are, and that may be a scope as well: a session's, a terminal's.
    """
    try:
        found = parents(Path("/proc/self/mountinfo").read_text(), Path(f"/proc/{pid}/cgroup").read_text())
    except OSError:
        return None
    for where in found:
        if where.version == 2 and where.folders[0][1][0].name == f"{name}.scope":
            return Group(2, [("", where.folders[0][1][0])], ours=False)
    return None
