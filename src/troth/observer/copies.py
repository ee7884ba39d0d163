"""Copies of a workspace on which commands are run, and putting back what a contract protects.

A copy never holds caches that decide what code is run: stale bytecode has the time and size of a source that is no
more, and a planted one has whatever it likes. Bytecode that stands where a source would (``unittest.pyc``) is imported
like one; the copy that is graded holds what was there when the contract was sealed, and no other.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from troth.observer.folders import fits, remove_tree, walk
from troth.observer.protected import Entry
from troth.observer.tree import OUTSIDE, Snapshot, copy_tree

CACHES: Final = frozenset({"__pycache__", ".pytest_cache"})
"""Segments that no copy holds."""

BYTECODE_END: Final = ".pyc"
"""How the name of a file ends that Python imports as bytecode, wherever it stands."""


def is_cache(path: str) -> bool:
    """Tell whether a segment of the path is a cache's name."""
    return not CACHES.isdisjoint(path.split("/"))


def is_bytecode(path: str) -> bool:
    """Tell whether a path is that of bytecode which is imported without a source: beside it, or in its place."""
    return path.endswith(BYTECODE_END) and not is_cache(path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unprotected_bytecode(tree: Snapshot, entries: Sequence[Entry]) -> list[str]:
    """Return what in a tree is named as bytecode in the place of a source, and protected by no entry."""
    names = [name for name in (*tree.files, *tree.symlinks) if is_bytecode(name)]
    return sorted(name for name in names if not any(entry.protects(name) for entry in entries))


def drop_bytecode(copy: Path, paths: Iterable[str], sealed: Mapping[str, Any]) -> list[str]:
    """Take bytecode out of a copy unless it is what was sealed, and return what was taken.

    Args:
        copy: the copy.
        paths: where some may stand.
        sealed: path -> SHA-256 of what stood there when the contract was sealed.
    """
    dropped = []
    for path in paths:
        target = copy / path
        if _has_linked_parent(copy, path) or not (target.is_symlink() or target.is_file()):
            continue
        if target.is_symlink() or _digest(target) != sealed.get(path):
            target.unlink()
            dropped.append(path)
    return dropped


def _folders(root: Path) -> Iterable[str]:
    for folder, names, _ in walk(str(root)):
        relative = os.path.relpath(folder, root)
        if relative == ".":
            names[:] = [name for name in names if name not in OUTSIDE]
            relative = ""
        inner = [f"{relative}/{name}" if relative else name for name in names if name not in CACHES]
        inner = [path for path in inner if fits(os.fsencode(path))]
        names[:] = [path.rpartition("/")[2] for path in inner]
        yield from inner


def copy_workspace(root: Path, tree: Snapshot, target: Path) -> None:
    """Copy a tree, its empty folders too, without caches; hard links become files of their own.

    Args:
        root: the workspace.
        tree: what was read there.
        target: must not exist.
    """
    copy_tree(root, tree, target, only=lambda path: not is_cache(path))
    for path in _folders(root):
        try:
            path.encode()
        except UnicodeEncodeError:
            continue
        (target / path).mkdir(parents=True, exist_ok=True)


def _clear_way(root: Path, path: str) -> None:
    """Make every parent of a path a real folder: a link or file in its place is taken away."""
    current = root
    for segment in path.split("/")[:-1]:
        current = current / segment
        if current.is_symlink() or (current.exists() and not current.is_dir()):
            current.unlink()
        current.mkdir(exist_ok=True)


def _has_linked_parent(root: Path, path: str) -> bool:
    current = root
    for segment in path.split("/")[:-1]:
        current = current / segment
        if current.is_symlink():
            return True
    return False


def put_back(copy: Path, start: Path, path: str, *, without: Collection[str] = ()) -> None:
    """Make ``path`` in the copy what it is in the start, with everything beneath it, caches left out.

    ``without`` names segments beneath it at and below which nothing but folders is put back.

    What the start does not have is removed. Links are put back as links, and nothing is reached through one: a link
    of the copy that stands in the way is replaced by a real folder.
    """
    source, target = start / path, copy / path
    there = not is_cache(path) and not _has_linked_parent(start, path) and os.path.lexists(source)
    if not there and not os.path.lexists(target):
        return
    if there or _has_linked_parent(copy, path):
        _clear_way(copy, path)
    remove_tree(target)
    if not there:
        return
    if source.is_symlink():
        target.symlink_to(os.readlink(source))
    elif source.is_dir():
        segments = frozenset(without)

        def left_out(folder: str, names: list[str]) -> list[str]:
            within = Path(folder).relative_to(source).parts
            return [name for name in names if name in CACHES or unwanted(within, os.path.join(folder, name))]

        def unwanted(within: Collection[str], path: str) -> bool:
            named = not segments.isdisjoint((*within, os.path.basename(path)))
            return named and (os.path.islink(path) or not os.path.isdir(path))

        shutil.copytree(source, target, symlinks=True, ignore=left_out, copy_function=shutil.copy)
    elif source.is_file():
        shutil.copy(source, target)


Marks = tuple[int, int, int, int, int, str]


def _marks(path: str) -> Marks:
    info = os.lstat(path)
    link = os.readlink(path) if stat.S_ISLNK(info.st_mode) else ""
    if stat.S_ISDIR(info.st_mode):
        return (info.st_ino, info.st_mode, 0, 0, 0, link)  # what is in it is looked at by itself
    return (info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, link)


def marks_of_protected(copy: Path, entries: Iterable[Entry]) -> dict[str, Marks]:
    """Return what tells whether a protected file of a copy was written: its identity, mode, size and times.

    The change time moves even when the old bytes and times are put back.
    """
    found: dict[str, Marks] = {}
    for entry in entries:
        top = copy / entry.path
        if not os.path.lexists(top):
            continue
        found[entry.path] = _marks(str(top))
        for folder, names, files in walk(str(top)):
            for name in (*names, *files):
                full = os.path.join(folder, name)
                path = os.path.relpath(full, copy)
                if entry.protects(path):
                    found[path] = _marks(full)
    return found


def folders_of_protected(copy: Path, entries: Iterable[Entry]) -> list[str]:
    """Return the folders of a copy in which a name could come to be that an entry protects."""
    found: dict[str, None] = {}
    for entry in entries:
        parent, top = entry.path.rpartition("/")[0], copy / entry.path
        if not _has_linked_parent(copy, entry.path):
            found[parent] = None
        if entry.kind == "directory" and top.is_dir() and not top.is_symlink():
            for folder, names, _ in walk(str(top)):
                found[os.path.relpath(folder, copy)] = None
                names[:] = [name for name in names if name not in entry.exclude]
    return list(found)


def change_times_above(copy: Path, names: Iterable[str]) -> dict[str, int]:
    """Return the change times, in nanoseconds, of the folders of a copy in which the named files stand."""
    folders = {parent for name in names for parent in map(str, PurePosixPath(name).parents)} - {"."}
    found: dict[str, int] = {}
    for name in sorted(folders):
        try:
            found[name] = os.lstat(copy / name).st_ctime_ns
        except OSError:
            continue  # gone, and what stood in it with it
    return found


def only_times_moved(one: Marks | None, other: Marks | None) -> bool:
    """Tell whether between two looks at a file nothing but its times came to differ."""
    return one is not None and other is not None and (*one[:3], one[5]) == (*other[:3], other[5])


@dataclass(slots=True)
class WorkCopy:
    """A copy that is used again and again and made pristine in between.

    After a run everything whose identity, mode, size or times changed is copied anew and what is new is removed. The
    change time cannot be set back from within a sandbox, so an unchanged one means unchanged bytes.
    """

    pristine: Path
    place: Path
    _known: dict[str, Marks] = field(default_factory=dict)

    @classmethod
    def of(cls, pristine: Path, place: Path) -> WorkCopy:
        """Make the copy; ``place`` must not exist."""
        shutil.copytree(pristine, place, symlinks=True, copy_function=shutil.copy)
        copy = cls(pristine, place)
        copy._known = copy._look()
        return copy

    def _look(self) -> dict[str, Marks]:
        found: dict[str, Marks] = {}
        for folder, names, files in walk(str(self.place)):
            for name in (*names, *files):
                full = os.path.join(folder, name)
                found[os.path.relpath(full, self.place)] = _marks(full)
        return found

    def restore(self) -> None:
        """Make the copy what it was."""
        now = self._look()
        odd = {path for path, marks in now.items() if self._known.get(path) != marks}
        for path in sorted((odd | (self._known.keys() - now.keys())), key=lambda item: item.count("/")):
            put_back(self.place, self.pristine, path)
            self._known.pop(path, None)
            full = self.place / path
            if full.is_symlink() or full.exists():
                self._known[path] = _marks(str(full))
                if full.is_dir() and not full.is_symlink():
                    for folder, names, files in walk(str(full)):
                        for name in (*names, *files):
                            below = os.path.join(folder, name)
                            self._known[os.path.relpath(below, self.place)] = _marks(below)
            else:
                gone = path + "/"
                for known in [name for name in self._known if name.startswith(gone)]:
                    del self._known[known]


def write_over(copy: Path, path: str, data: bytes) -> None:
    """Give a file of the copy other bytes, as a new file with the same mode."""
    target = copy / path
    mode = stat.S_IMODE(target.stat().st_mode)
    target.unlink()
    target.write_bytes(data)
    target.chmod(mode)


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> set[str]:
    """Return the names on which two maps of a tree differ, those that stand in only one of them too."""
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
