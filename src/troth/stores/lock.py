"""The write lock: one exclusive advisory lock of the operating system on a file that is never removed.

POSIX uses ``flock``, which belongs to the open file: two stores in one process exclude each other, and the
system drops the lock when the process dies, however it dies. Windows uses ``msvcrt.locking`` on the first byte.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from troth.core.errors import Busy, Place, Refused
from troth.stores.durable import FILE_MODE, O_BINARY, O_CLOEXEC, O_NOFOLLOW, os_fault

WAIT_SECONDS: Final = 10.0
"""How long a writer waits before it gives up (ledger spec §4 [D12])."""

_POLL_SECONDS: Final = 0.001
_BUSY: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EDEADLK})

if os.name == "nt":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        os.lseek(fd, 0, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]  # Windows alone has it
        except OSError as fault:
            if fault.errno in _BUSY:
                return False
            raise
        return True

    def _unlock(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined,unused-ignore]  # Windows alone has it
else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            if fault.errno in _BUSY:
                return False
            raise
        return True

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


class WriteLock:
    """The lock as a context manager; the body of the ``with`` statement runs while it is held.

    The lock file stays open between uses. It is opened anew in a forked child, so that parent and child exclude
    each other, and when somebody replaced the file against the rules, so that all writers meet at the same one.

    Args:
        path: the lock file; created when it is absent, never removed.
        wait_seconds: how long to wait for another holder.
    """

    __slots__ = ("_fd", "_identity", "_name", "_pid", "path", "wait_seconds")

    def __init__(self, path: Path, wait_seconds: float = WAIT_SECONDS) -> None:
        self.path = path
        self._name = os.fspath(path)
        self.wait_seconds = wait_seconds
        self._fd = -1
        self._pid = 0
        self._identity = (0, 0)

    def __enter__(self) -> None:
        """Take the lock.

        Raises:
            Busy: another writer held the lock all that time.
            Refused: ``E_NO_WORKSPACE`` when the folder is absent, ``E_NOT_REGULAR`` for a symbolic link,
                ``E_UNREADABLE`` for anything else the system refuses.
        """
        deadline: float | None = None
        try:
            while True:
                if self._fd < 0 or self._pid != os.getpid():
                    self._open()
                if _try_lock(self._fd):
                    if self._still_there():
                        return
                    self.close()
                    continue
                now = time.monotonic()
                if deadline is None:
                    deadline = now + self.wait_seconds
                if now >= deadline:
                    raise Busy(
                        "E_BUSY",
                        f"another writer has held the ledger for {self.wait_seconds:g} seconds",
                        place=Place(file=str(self.path)),
                        remedy="Try again.",
                    )
                # A short, constant pause: a writer that appends all the time leaves only small gaps, and a long
                # pause could miss every one of them.
                time.sleep(_POLL_SECONDS)
        except OSError as fault:
            raise os_fault("E_UNREADABLE", fault, self.path, "the write lock cannot be taken") from None

    def __exit__(self, *_: object) -> None:
        """Let the lock go."""
        _unlock(self._fd)

    def close(self, _close: Callable[[int], None] = os.close) -> None:
        """Close the lock file; the next use opens it again."""
        # The function is held by the default value: when the interpreter ends, names of modules may be gone.
        fd, self._fd = self._fd, -1
        if fd >= 0:
            _close(fd)

    def __del__(self) -> None:
        """Close the lock file."""
        self.close()

    def _open(self) -> None:
        self.close()
        self._fd = _open(self.path)
        self._pid = os.getpid()
        found = os.fstat(self._fd)
        self._identity = (found.st_dev, found.st_ino)

    def _still_there(self) -> bool:
        try:
            found = os.lstat(self._name)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == self._identity


def exclusive(path: Path, wait_seconds: float = WAIT_SECONDS) -> WriteLock:
    """Return the lock on that file, for one use."""
    return WriteLock(path, wait_seconds)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_BINARY, FILE_MODE)
    except FileNotFoundError:
        raise Refused(
            "E_NO_WORKSPACE",
            "the folder of the ledger is not there",
            place=Place(file=str(path.parent)),
            remedy="Create a workspace with `troth init`.",
        ) from None
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            raise Refused("E_NOT_REGULAR", "the write lock is a symbolic link", place=Place(file=str(path))) from None
        raise os_fault("E_UNREADABLE", fault, path, "the write lock cannot be opened") from None
