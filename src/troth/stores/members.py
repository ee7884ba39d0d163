"""A member folder on a disk, read safely: no link is followed, nothing but regular files, never beyond the folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from troth.core.errors import Place, Refused
from troth.receipts.kinds import is_path
from troth.receipts.member import MAX_BYTES, ReadFault

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
            mode = os.stat(self._root).st_mode
        except (OSError, ValueError) as fault:
            raise _missing(self._root, str(fault)) from None
        if not stat.S_ISDIR(mode):
            raise _missing(self._root, "not a folder")

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file below the folder, or ``None`` when it has no directory entry.

        Raises:
            ReadFault: a link, no regular file, more than 16 MiB, or unreadable; or a name that leaves the folder.
        """
        if not is_path(name):
            raise ReadFault(name, "not a plain relative path")
        try:
            if not _AT:
                return self._read_portably(name, name.split("/"))
            if "/" not in name:
                return _read_at(name, f"{self._root}/{name}", None)
            return self._read_beneath(name, name.split("/"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as fault:
            raise ReadFault(name, getattr(fault, "strerror", None) or str(fault)) from None

    def _read_beneath(self, name: str, parts: list[str]) -> bytes | None:
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

    def _read_portably(self, name: str, parts: list[str]) -> bytes | None:
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


def _read_at(name: str, where: str, folder: int | None) -> bytes:
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
            return data
        chunks = [data]
        total = len(data)
        while data and total <= MAX_BYTES:
            data = os.read(descriptor, MAX_BYTES + 1 - total)
            chunks.append(data)
            total += len(data)
        if total > MAX_BYTES:
            raise ReadFault(name, f"more than {MAX_BYTES} bytes")
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def _missing(path: str, why: str) -> Refused:
    return Refused(
        "E_MEMBER_MISSING",
        f"there is no member folder: {why}",
        remedy="Name a folder that holds the records of one run.",
        place=Place(file=path),
    )
