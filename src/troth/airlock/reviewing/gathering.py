"""The files that are to be reviewed, as members of an artifact: each under a relative path, links not followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from troth.backends.protocol import MOST_INPUT
from troth.core.errors import Place, Refused
from troth.core.words import printable
from troth.stores.durable import read_regular
from troth.stores.workspace import absolute

MOST_MEMBERS: Final = 2000
"""Most files of one artifact."""

STDIN: Final = "-"
STDIN_NAME: Final = "stdin"
_LEFT_OUT: Final = frozenset({".git", ".mentu", "__pycache__", "node_modules", ".venv"})
"""Folders whose files are never members when a folder is named."""


def gather(words: Sequence[str], root: Path | None, stdin: bytes | None = None) -> list[tuple[str, bytes]]:
    """Return the members that were named.

    A word is a file, a folder (all regular files below it), ``NAME=FILE``, or ``-`` for what comes on standard input.
    A file within ``root`` is named by its way from there, another one by its own name.

    Args:
        words: as written.
        root: the workspace's folder, if there is one.
        stdin: the bytes of standard input.

    Raises:
        Refused: ``E_REVIEW_MISSING``, ``E_NOT_REGULAR``, ``E_UNREADABLE``, ``E_TOO_LARGE``, ``E_NOT_TEXT`` for a path
            that is not UTF-8.
    """
    members: list[tuple[str, bytes]] = []
    left = MOST_INPUT
    for name, path in _named(words, root):
        if path is None:
            data = stdin or b""
        else:
            data = read_regular(path, left, "E_REVIEW_MISSING", f"what is to be reviewed, {printable(name, 200)},")
        left -= len(data)
        if left < 0:
            raise Refused("E_TOO_LARGE", f"an artifact has at most {MOST_INPUT} bytes")
        members.append((name, data))
        if len(members) > MOST_MEMBERS:
            raise Refused("E_TOO_LARGE", f"an artifact has at most {MOST_MEMBERS} files")
    return members


def left_out(words: Sequence[str]) -> list[str]:
    """Return what lies in the named folders and is no member, though its name would let one think so: links, devices.

    Args:
        words: as :func:`gather` takes them.
    """
    found = []
    for word in words:
        folder = absolute(Path(word))
        if word == STDIN or not folder.is_dir() or folder.is_symlink():
            continue
        for here, names, files in os.walk(folder):
            names[:] = sorted(name for name in names if name not in _LEFT_OUT)
            others = [name for name in files if not stat.S_ISREG(Path(here, name).lstat().st_mode)]
            links = [name for name in names if Path(here, name).is_symlink()]
            found += [str(Path(word, Path(here, name).relative_to(folder))) for name in sorted([*others, *links])]
    return found


def _named(words: Sequence[str], root: Path | None) -> Iterable[tuple[str, Path | None]]:
    for word in words:
        if word == STDIN:
            yield STDIN_NAME, None
            continue
        name, sign, rest = word.partition("=")
        if sign and rest and not os.path.lexists(word):
            yield name, absolute(Path(rest))
            continue
        path = absolute(Path(word))
        if path.is_dir() and not path.is_symlink():
            found = list(_files(path))
            if not found:
                raise Refused("E_REVIEW_MISSING", "the folder holds no file", place=Place(file=str(path)))
            yield from ((_name_of(each, root, path), each) for each in found)
        else:
            yield _name_of(path, root, path.parent), path


def _files(folder: Path) -> Iterable[Path]:
    for here, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name not in _LEFT_OUT)
        for name in sorted(files):
            path = Path(here, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def _name_of(path: Path, root: Path | None, base: Path) -> str:
    for start in (root, base):
        if start is not None and path.is_relative_to(start):
            name = path.relative_to(start).as_posix()
            try:
                name.encode()
            except UnicodeEncodeError:
                raise Refused("E_NOT_TEXT", "a path is not UTF-8", remedy="Write NAME=FILE.") from None
            return name
    return path.name
