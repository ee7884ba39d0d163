"""A member folder on a disk, read safely: no link is followed, nothing but regular files, never beyond the folder."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Final

from troth.core.errors import Place, Refused
from troth.receipts.kinds import is_path
from troth.receipts.member import FILES, MAX_BYTES, RECEIPT_FILE, STATEMENT_FILE, ReadFault
from troth.receipts.policy import POLICY_FILES

# O_NONBLOCK: opening a pipe must not wait for its writer. Flags that a system lacks are 0 there.
_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)
_AT: Final = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether names can be opened relative to an open folder, without following links."""

_OWN: Final = frozenset((RECEIPT_FILE, STATEMENT_FILE, *FILES.values(), *POLICY_FILES))
"""Names of a member's own files, which need no test."""

_RESTED_NS: Final = 2_000_000_000
"""Age from which on a file's last change lies before the reading; file systems may round times up to a second."""

_Found = tuple[bytes, os.stat_result]
"""The bytes of a file, and what the system said of it when it was opened."""


class FolderMember:
    """The files of one folder (done records §2).

    A symbolic link is a read fault, as the last component and also among the parents of a name (§11 leaves that
    open): a record reached through a link is not a file of this folder. A name whose parent is no folder has no
    directory entry and is absent.

    Args:
        path: the folder. It may itself be reached through links: naming it is the caller's choice.

    Raises:
        Refused: ``E_MEMBER_MISSING`` when there is no such folder.
    """

    def __init__(self, path: Path | str) -> None:
        self._root = os.fspath(path)
        try:
            found = os.stat(self._root)
        except (OSError, ValueError) as fault:
            raise _missing(self._root, str(fault)) from None
        if not stat.S_ISDIR(found.st_mode):
            raise _missing(self._root, "not a folder")
        self._found = found
        self._began = time.time_ns()
        self._read: dict[str, os.stat_result | None] = {}

    def changed(self) -> bool:
        """Tell whether what was read may be of two minds: some of it written after another part had been read.

        Names that came, went or were exchanged show in the folder, an overwritten file in its own times. Files that
        rested well before the reading began are not looked at again.
        """
        try:
            if _identity(os.stat(self._root)) != _identity(self._found):
                return True
        except OSError:
            return True
        recent = self._began - _RESTED_NS
        beneath = any("/" in name for name in self._read)  # those folders were not looked at
        if not beneath and all(found is None or found.st_ctime_ns < recent for found in self._read.values()):
            return False
        for name, before in self._read.items():
            try:
                now = os.lstat(f"{self._root}/{name}")
            except (OSError, ValueError):
                if before is not None:
                    return True
                continue
            if before is None or _identity(now) != _identity(before):
                return True
        return False

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file below the folder, or ``None`` when it has no directory entry.

        Raises:
            ReadFault: a link, no regular file, more than 16 MiB, or unreadable; or a name that leaves the folder.
        """
        if name not in _OWN and not is_path(name):
            raise ReadFault(name, "not a plain relative path")
        try:
            if not _AT:
                data, self._read[name] = self._read_portably(name, name.split("/"))
            elif "/" not in name:
                data, self._read[name] = _read_at(name, f"{self._root}/{name}", None)
            else:
                data, self._read[name] = self._read_beneath(name, name.split("/"))
        except (FileNotFoundError, NotADirectoryError):
            self._read[name] = None
            return None
        except (OSError, ValueError) as fault:
            raise ReadFault(name, getattr(fault, "strerror", None) or str(fault)) from None
        return data

    def _read_beneath(self, name: str, parts: list[str]) -> _Found:
        """Open each parent in turn, relative to the one before, so that no link can be slipped in between."""
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
                    raise ReadFault(name, f"{part} is a symbolic link")
                inner = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
                os.close(folder)
                folder = inner
            return _read_at(name, parts[-1], folder)
        finally:
            os.close(folder)

    def _read_portably(self, name: str, parts: list[str]) -> _Found:
        """Where names cannot be opened relative to a folder: test each component, then what was opened."""
        if any(set(part) & {"\\", ":"} for part in parts):
            raise ReadFault(name, "holds a character that means something else to this system")
        where = Path(self._root)
        for part in parts[:-1]:
            where /= part
            if where.is_symlink():
                raise ReadFault(name, f"{part} is a symbolic link")
        where /= parts[-1]
        named = os.lstat(where)
        if not stat.S_ISREG(named.st_mode):
            raise ReadFault(name, "not a regular file")
        return _read_at(name, os.fspath(where), None)


def _identity(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _read_at(name: str, where: str, folder: int | None) -> _Found:
    descriptor = os.open(where, _FLAGS, dir_fd=folder)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ReadFault(name, "not a regular file")
        if found.st_size > MAX_BYTES:
            raise ReadFault(name, f"{found.st_size} bytes, more than {MAX_BYTES}")
        # One byte more than there should be, to see the end in the same call, or a file that grows meanwhile.
        data = os.read(descriptor, found.st_size + 1)
        if len(data) == found.st_size:
            return data, found
        chunks = [data]
        total = len(data)
        while data and total <= MAX_BYTES:
            data = os.read(descriptor, MAX_BYTES + 1 - total)
            chunks.append(data)
            total += len(data)
        if total > MAX_BYTES:
            raise ReadFault(name, f"more than {MAX_BYTES} bytes")
        return b"".join(chunks), found
    finally:
        os.close(descriptor)


def _missing(path: str, why: str) -> Refused:
    return Refused(
        "E_MEMBER_MISSING",
        f"there is no member folder: {why}",
        remedy="Name a folder that holds the records of one run.",
        place=Place(file=path),
    )
