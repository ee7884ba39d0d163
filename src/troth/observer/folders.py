"""Folders that somebody else has filled: walked and removed however deep they are and whatever their modes forbid.

What stands in them was made by a program that may mean harm: the ways of the standard library end at a thousand
levels, at a name longer than the kernel takes, or at a folder without permissions.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_PATH: Final = 2048
"""Bytes of a relative path that is read: a copy elsewhere must be able to hold it."""
MAX_DEPTH: Final = 200
"""Levels of folders that are read."""

_KERNEL_PATH: Final = 4095


def fits(path: bytes) -> bool:
    """Tell whether a relative path is short and shallow enough to be read and copied."""
    return len(path) <= MAX_PATH and path.count(b"/") < MAX_DEPTH


def walk(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder's path, its folders and its other entries, from the top; links are not followed.

    Names may be taken out of the first list. What cannot be listed or named is passed over.
    """
    pending = [top]
    while pending:
        folder = pending.pop()
        names: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if len(os.fsencode(entry.path)) <= _KERNEL_PATH:
                        (names if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
        except OSError:
            continue
        yield folder, names, others
        pending.extend(os.path.join(folder, name) for name in names)


def remove_tree(path: Path) -> None:
    """Remove a folder and everything in it, or what else stands there; nothing happens when it is absent.

    A folder within a folder is moved up to the top and removed there, so that no name grows long and no level deep.
    Nobody else may be at work in it.

    Raises:
        OSError: something cannot be removed even by its owner.
    """
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    path.chmod(stat.S_IRWXU)
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        pending = _emptied(top, top, [])
        while pending:
            name = pending.pop()
            folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
            try:
                pending = _emptied(folder, top, pending)
            finally:
                os.close(folder)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    path.rmdir()


def _emptied(folder: int, top: int, pending: list[str]) -> list[str]:
    """Remove a folder's files and move its folders to the top; return the names of all that wait there."""
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name, dir_fd=folder)
            continue
        # To be moved, listed and emptied, it must let its owner do so.
        os.chmod(entry.name, stat.S_IRWXU, dir_fd=folder)
        name = entry.name
        if folder != top:
            name = f".{entry.inode()}-{os.urandom(8).hex()}"
            os.rename(entry.name, name, src_dir_fd=folder, dst_dir_fd=top)
        pending.append(name)
    return pending
