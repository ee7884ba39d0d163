"""The write lock: one exclusive advisory lock of the operating system on a file that is never removed.

POSIX uses ``flock``, which belongs to the open file: two stores in one process exclude each other, and the
system drops the lock when the process dies, however it dies. Windows uses ``msvcrt.locking`` on the first byte.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError as fault:
            if fault.errno in _BUSY:
                return False
            raise
        return True

    def _unlock(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined,unused-ignore]
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


@contextmanager
def exclusive(path: Path, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock for the body of the ``with`` statement.

    The lock file is opened anew each time, so a store that lives on in a forked child shares no lock with its
    parent.

    Args:
        path: the lock file; created when it is absent, never removed.
        wait_seconds: how long to wait for another holder.

    Raises:
        Busy: another writer held the lock all that time.
        Refused: ``E_NO_WORKSPACE`` when the folder is absent, ``E_NOT_REGULAR`` for a symbolic link,
            ``E_UNREADABLE`` for anything else the system refuses.
    """
    fd = _open(path)
    try:
        deadline = time.monotonic() + wait_seconds
        try:
            while not _try_lock(fd):
                if time.monotonic() >= deadline:
                    raise Busy(
                        "E_BUSY",
                        f"another writer has held the ledger for {wait_seconds:g} seconds",
                        place=Place(file=str(path)),
                        remedy="Try again.",
                    )
                # A short, constant pause: a writer that appends all the time leaves only small gaps, and a long
                # pause could miss every one of them.
                time.sleep(_POLL_SECONDS)
        except OSError as fault:
            raise os_fault("E_UNREADABLE", fault, path, "the write lock cannot be taken") from None
        try:
            yield
        finally:
            _unlock(fd)
    finally:
        os.close(fd)


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
