"""A bundle's folder walked and read: no link followed, nothing outside it touched, bounded in number, size, depth."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from troth.core.errors import Place, Refused
from troth.knowledge.concept import Concept
from troth.knowledge.paths import is_concept, is_markdown

MAX_FILES: Final = 100_000
MAX_FILE_BYTES: Final = 1 << 20
"""A row of the ledger has at most 1 MiB, so a larger file cannot become a signal."""
MAX_DEPTH: Final = 40
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)
_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was not read, and why: a word of :data:`troth.knowledge.codes.FINDINGS`."""

    path: str
    why: str


@dataclass(slots=True)
class Bundle:
    """A folder read: its concepts and its indexes and logs by path, the paths of its other files, what was skipped."""

    root: Path
    concepts: dict[str, Concept] = field(default_factory=dict)
    reserved: dict[str, Concept] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    skipped: list[Skipped] = field(default_factory=list)

    def holds(self, path: str) -> bool:
        """Tell whether a file or folder of the bundle has this path."""
        return path in self.concepts or path in self.reserved or path in self.others or path in self.folders


def walk(root: Path, skipped: list[Skipped], folders: set[str] | None = None) -> Iterator[str]:
    """Yield the paths of the regular files below a folder, a folder's own before those of its folders, by name.

    Names that begin with a dot are left out.

    Raises:
        Refused: ``E_OKF_FOLDER``, ``E_OKF_LIMIT``, ``E_OKF_UNREADABLE``.
    """
    if root.is_symlink() or not root.is_dir():
        raise Refused("E_OKF_FOLDER", "there is no folder of that name", place=Place(file=str(root)))
    count = 0
    stack: list[tuple[str, int]] = [("", 0)]
    while stack:
        folder, depth = stack.pop()
        try:
            with os.scandir(root / folder if folder else root) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
            deeper: list[tuple[str, int]] = []
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.name.startswith("."):
                    continue
                count += 1
                if count > MAX_FILES:
                    raise Refused("E_OKF_LIMIT", f"more than {MAX_FILES} entries", place=Place(file=str(root)))
                if _odd(path):
                    skipped.append(Skipped(path.encode("utf-8", "replace").decode(), "odd_name"))
                elif entry.is_symlink():
                    skipped.append(Skipped(path, "symlink"))
                elif entry.is_dir(follow_symlinks=False):
                    if depth + 1 > MAX_DEPTH:
                        skipped.append(Skipped(path, "too_deep"))
                        continue
                    if folders is not None:
                        folders.add(path)
                    deeper.append((path, depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    yield path
                else:
                    skipped.append(Skipped(path, "not_regular"))
            stack.extend(reversed(deeper))
        except OSError as fault:
            raise _unreadable(fault, root / folder) from None


def _odd(path: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in path)


def _unreadable(fault: OSError, path: Path) -> Refused:
    return Refused("E_OKF_UNREADABLE", fault.strerror or str(fault), place=Place(file=str(path)), detail=fault.errno)


def read_file(path: Path, limit: int | None = MAX_FILE_BYTES) -> bytes | None:
    """Return the bytes of a regular file, a link not followed; ``None`` when it has more than ``limit``.

    Raises:
        Refused: ``E_OKF_UNREADABLE``.
    """
    try:
        fd = os.open(path, os.O_RDONLY | _NOFOLLOW | _NONBLOCK | _BINARY | _CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Refused("E_OKF_UNREADABLE", "no regular file", place=Place(file=str(path)))
            data = file.read() if limit is None else file.read(limit + 1)
    except OSError as fault:
        raise _unreadable(fault, path) from None
    return None if limit is not None and len(data) > limit else data


def read_bundle(root: Path) -> Bundle:
    """Read a folder.

    Raises:
        Refused: as :func:`walk` and :func:`read_file`.
    """
    bundle = Bundle(root)
    for path in walk(root, bundle.skipped, bundle.folders):
        if not is_markdown(path):
            bundle.others.add(path)
            continue
        data = read_file(root / path)
        if data is None:
            bundle.others.add(path)
            bundle.skipped.append(Skipped(path, "too_large"))
            continue
        (bundle.concepts if is_concept(path) else bundle.reserved)[path] = Concept(path, data)
    return bundle
