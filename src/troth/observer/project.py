"""A project as it is looked at before anything of it was run: names, and the beginnings of a few settings files.

Nothing here executes, imports or expands what the project holds: a Makefile is text, a settings file is data, a source
file is searched by patterns. Links are named and never followed; every read is bounded.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.observer.contract_source import workspace_path_fault
from troth.observer.folders import fits, walk
from troth.observer.tree import OUTSIDE

MAX_NAMES: Final = 200_000
"""Files that are listed; a project with more is looked at in part, which is told."""

MAX_TEXT: Final = 1 << 20
"""Bytes of a settings file that is read at all: a larger one was written by no hand."""

MAX_SOURCE_LOOK: Final = 1 << 16
"""Bytes of a test file that are searched."""

NOT_THEIRS: Final = frozenset(
    {
        ".hg", ".svn", ".tox", ".nox", ".venv", "venv", ".eggs", "node_modules", "site-packages", "dist-packages",
        "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "vendor", "third_party", "build", "dist",
        "target",
    }
)  # fmt: skip
"""Folders that hold what others wrote or what a run made."""

_JSON: Final = Limits(max_bytes=MAX_TEXT, max_depth=64, refuse_overflow=False, surrogates=True)


@dataclass(slots=True)
class Project:
    """The files of a project. Paths are relative, with slashes.

    ``files`` are regular files, ``links`` symbolic links; ``told`` collects what a person should know about the look.
    """

    root: Path
    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    told: list[str] = field(default_factory=list)
    _texts: dict[str, str | None] = field(default_factory=dict, repr=False)

    def text(self, path: str) -> str | None:
        """Return a settings file as text, bytes that are no UTF-8 replaced; ``None`` when it is absent or unfit."""
        if path not in self.files:
            return None
        if path not in self._texts:
            data = _bounded(self.root / path, MAX_TEXT)
            if data is None:
                self.told.append(f"{path!r} is too large or cannot be read, so nothing was taken from it")
            self._texts[path] = None if data is None else data.decode("utf-8", "replace")
        return self._texts[path]

    def beginning(self, path: str) -> str:
        """Return the beginning of a source file as text; empty when it cannot be read."""
        data = _bounded(self.root / path, MAX_SOURCE_LOOK, whole=False)
        return "" if data is None else data.decode("utf-8", "replace")

    def toml(self, path: str) -> dict[str, Any]:
        """Return a TOML file's tables; none when it is absent or malformed (which is told)."""
        import tomllib

        text = self.text(path)
        if text is None:
            return {}
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError):
            self.told.append(f"{path!r} is not readable as TOML, so nothing was taken from it")
            return {}

    def json(self, path: str) -> dict[str, Any]:
        """Return a JSON file's object; none when it is absent, malformed (which is told) or something else."""
        text = self.text(path)
        if text is None:
            return {}
        try:
            value = loads(text.encode("utf-8", "replace"), _JSON)
        except JsonFault:
            self.told.append(f"{path!r} is not readable as JSON, so nothing was taken from it")
            return {}
        return value if isinstance(value, dict) else {}

    def has(self, *names: str) -> list[str]:
        """Return those of the names that are files or folders here."""
        return [name for name in names if name in self.files or name in self.folders]


def table(value: object, *keys: str) -> dict[str, Any]:
    """Return the table at a way through tables; an empty one where the way ends."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _bounded(path: Path, most: int, *, whole: bool = True) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb", buffering=0) as file:
        info = os.fstat(descriptor)
        # A sparse file says its size without holding it.
        if not stat.S_ISREG(info.st_mode) or (whole and info.st_size > most):
            return None
        try:
            data = file.read(most + 1)
        except OSError:
            return None
    return (None if whole and len(data) > most else data[:most]) if data is not None else None


def expressible(path: str) -> str | None:
    """Return why a contract file cannot name a path, or ``None``."""
    if re.search(r"[*?]", path):
        return "its name reads as a pattern"
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    return workspace_path_fault(path)


def look(root: Path) -> Project:
    """List a project.

    Raises:
        Refused: ``E_TREE_UNREADABLE`` when the folder cannot be listed.
    """
    try:
        os.scandir(root).close()
    except OSError as fault:
        raise Refused(
            "E_TREE_UNREADABLE", f"the folder cannot be listed: {fault.strerror}", place=Place(str(root))
        ) from None
    files: set[str] = set()
    folders: set[str] = set()
    links: set[str] = set()
    project = Project(root)
    odd = 0
    top = str(root)
    for folder, names, others in walk(top):
        above = "" if folder == top else os.path.relpath(folder, top) + "/"
        names[:] = [
            name
            for name in names
            if name not in NOT_THEIRS and not (not above and name in OUTSIDE) and fits(os.fsencode(above + name))
        ]
        inner = [name for name in names if expressible(above + name) is None]
        odd += len(names) - len(inner)
        names[:] = inner
        folders.update(above + name for name in names)
        for name in others:
            path = above + name
            if expressible(path) is not None:
                odd += 1
            elif os.path.islink(os.path.join(folder, name)):
                links.add(path)
            elif os.path.isfile(os.path.join(folder, name)):
                files.add(path)
        if len(files) > MAX_NAMES:
            project.told.append(f"the project has more than {MAX_NAMES} files; only some of them were looked at")
            break
    if odd:
        project.told.append(f"{odd} names cannot stand in a contract (a pattern, or not UTF-8) and were passed over")
    project.files, project.folders, project.links = frozenset(files), frozenset(folders), frozenset(links)
    return project


def tops(paths: Iterable[str]) -> list[str]:
    """Return the paths that lie beneath none of the others, sorted."""
    found = set(paths)
    return sorted(path for path in found if not beneath(path, found))


def beneath(path: str, folders: Collection[str]) -> bool:
    """Tell whether a path lies beneath one of the folders (a set, when there are many)."""
    parts = path.split("/")
    return any("/".join(parts[:count]) in folders for count in range(1, len(parts)))
