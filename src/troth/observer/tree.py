"""The workspace as it stands: every regular file by digest; links, special files and odd names by report.

``.git`` and ``.mentu`` at the top are no part of the tree (done records §13.9). Symbolic links are never followed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, NamedTuple

from troth.core.canonical import string_size
from troth.core.digests import tree_digest
from troth.core.errors import Place, Refused
from troth.observer.folders import fits, walk

OUTSIDE: Final = frozenset({".git", ".mentu"})
"""Top-level names that are no part of the tree."""

MAX_FILES: Final = 120_000
"""Files a tree record can hold within the readers' 16 MiB (done records §13.2), with room for long names."""

MAX_BYTES: Final = 15 << 20
"""Bytes of a tree record's files: within the readers' 16 MiB when names are long."""

MAX_BYTES_BESIDE: Final = 3 << 20
"""Bytes of the links and special files that the sensors' report lists."""

_DIGEST_BYTES: Final = 68
_LINK_BYTES: Final = 20
"""What entries take beside their names."""

_BLOCK: Final = 1 << 20


class Identity(NamedTuple):
    """What tells whether a file was touched: device, inode, size in bytes, both times in nanoseconds."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tree at one moment. Paths are relative, with slashes.

    ``files`` maps each regular file to its SHA-256; ``symlinks`` each link to its text; ``special`` lists sockets,
    pipes and devices; ``not_utf8`` lists names that are not UTF-8, escaped; ``unreadable`` lists what could not be
    read.
    """

    files: dict[str, str]
    symlinks: dict[str, str] = field(default_factory=dict)
    special: tuple[str, ...] = ()
    not_utf8: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    identities: dict[str, Identity] = field(default_factory=dict, repr=False)

    @property
    def digest(self) -> str:
        """Return the tree digest of the files."""
        return tree_digest(self.files)


def _hash_file(path: bytes) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def snapshot(
    root: Path,
    *,
    before: Snapshot | None = None,
    outside: frozenset[str] = OUTSIDE,
    max_files: int = MAX_FILES,
    max_bytes: int | None = MAX_BYTES,
    progress: Callable[[int], None] | None = None,
) -> Snapshot:
    """Read the tree below ``root``.

    Args:
        root: folder to read; must be a directory.
        before: an earlier snapshot of the same folder; a file whose identity (device, inode, size, both times) is
            unchanged keeps its digest without being read again.
        outside: top-level names to leave out.
        max_files: most regular files allowed.
        max_bytes: most bytes their names and digests may take in a record; ``None`` where no record lists them.
        progress: called now and then with the number of files read.

    Raises:
        Refused: ``E_TREE_TOO_LARGE`` naming the folders that hold most files; ``E_TREE_UNREADABLE`` when ``root``
            cannot be listed.
    """
    files: dict[str, str] = {}
    identities: dict[str, Identity] = {}
    symlinks: dict[str, str] = {}
    special: list[str] = []
    odd: list[str] = []
    unreadable: list[str] = []
    size = beside = 0
    base = os.fsencode(root)
    stack: list[bytes] = [b""]
    while stack:
        relative = stack.pop()
        try:
            entries = list(os.scandir(os.path.join(base, relative) if relative else base))
        except OSError as fault:
            if not relative:
                raise Refused(
                    "E_TREE_UNREADABLE",
                    f"the folder cannot be listed: {fault.strerror}",
                    place=Place(str(root)),
                ) from None
            unreadable.append(os.fsdecode(relative).encode("utf-8", "backslashreplace").decode())
            continue
        for entry in entries:
            name = entry.name
            if not relative and os.fsdecode(name) in outside:
                continue
            path = relative + b"/" + name if relative else name
            try:
                text = path.decode("utf-8")
            except UnicodeDecodeError:
                odd.append(path.decode("utf-8", "backslashreplace"))
                continue
            if not fits(path):
                unreadable.append(f"{text[:200]}… ({len(path)} bytes, too long or too deep)")
                continue
            try:
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode):
                    stack.append(path)
                elif stat.S_ISLNK(info.st_mode):
                    target = os.readlink(os.path.join(base, path))
                    symlinks[text] = target.decode("utf-8", "backslashreplace")
                    beside += string_size(text) + string_size(symlinks[text]) + _LINK_BYTES
                    if beside > MAX_BYTES_BESIDE:
                        raise _too_large(root, symlinks)
                elif stat.S_ISREG(info.st_mode):
                    identity = Identity(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
                    known = before is not None and before.identities.get(text) == identity
                    files[text] = (
                        before.files[text] if before is not None and known else _hash_file(os.path.join(base, path))
                    )
                    identities[text] = identity
                    size += string_size(text) + _DIGEST_BYTES
                    if len(files) > max_files or (max_bytes is not None and size > max_bytes):
                        raise _too_large(root, files)
                    if progress is not None and len(files) % 500 == 0:
                        progress(len(files))
                else:
                    special.append(text)
                    beside += string_size(text)
                    if beside > MAX_BYTES_BESIDE:
                        raise _too_large(root, special)
            except OSError:
                unreadable.append(text)
    return Snapshot(
        files=dict(sorted(files.items())),
        symlinks=dict(sorted(symlinks.items())),
        special=tuple(sorted(special)),
        not_utf8=tuple(sorted(odd)),
        unreadable=tuple(sorted(unreadable)),
        identities=identities,
    )


def links_outside(root: Path) -> dict[str, str]:
    """Return the symbolic links beneath what is no part of the tree: name to target (as the file system has them)."""
    found: dict[str, str] = {}
    for top in OUTSIDE - {".mentu"}:
        for folder, names, files in walk(str(root / top)):
            for name in (*names, *files):
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    found[os.path.relpath(path, root)] = os.readlink(path)
    return found


def _too_large(root: Path, files: Collection[str]) -> Refused:
    counts: dict[str, int] = {}
    for path in files:
        top = path.split("/", 1)[0]
        counts[top] = counts.get(top, 0) + 1
    most = sorted(counts.items(), key=lambda item: -item[1])[:3]
    named = ", ".join(f"{name} ({count:,} files)" for name, count in most)
    return Refused(
        "E_TREE_TOO_LARGE",
        f"the workspace holds more files than a tree record can carry; most so far stand in {named}",
        remedy="Move such folders out of the workspace and let the agent read them with --allow-read.",
        place=Place(str(root)),
    )


class _Digester:
    """A write-only file that keeps nothing but the digest of what was written."""

    def __init__(self) -> None:
        self.total = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.total.update(data)
        return len(data)


def tarball_digest(root: Path, tree: Snapshot) -> str:
    """Return the SHA-256 of a deterministic tar of the tree: sorted, no owners, no times; nothing is stored."""
    sink = _Digester()
    target: IO[bytes] = sink  # type: ignore[assignment]  # tarfile's stream mode only ever calls write()
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted({*tree.files, *tree.symlinks}):
            member = tarfile.TarInfo(path)
            full = root / path
            if path in tree.symlinks:
                member.type = tarfile.SYMTYPE
                member.linkname = tree.symlinks[path]
                tar.addfile(member)
                continue
            descriptor = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                info = os.fstat(descriptor)
                member.size = info.st_size
                member.mode = stat.S_IMODE(info.st_mode)
                tar.addfile(member, file)
    return sink.total.hexdigest()


def copy_tree(root: Path, tree: Snapshot, target: Path, *, only: Callable[[str], bool] | None = None) -> None:
    """Copy the tree's files and links (not what lies outside it) into ``target``, which must not exist yet.

    Links are copied as links. Modes are kept, owners and times are not. ``only`` chooses paths.
    """
    target.mkdir(mode=0o700, parents=True)
    made: set[str] = {""}

    def make_parent(path: str) -> None:
        folder = path.rpartition("/")[0]
        if folder not in made:
            make_parent(folder)
            (target / folder).mkdir(exist_ok=True)
            made.add(folder)

    for path in tree.files:
        if only is not None and not only(path):
            continue
        make_parent(path)
        source = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            mode = stat.S_IMODE(os.fstat(source).st_mode) & 0o777
            sink = os.open(target / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode | 0o600)
            try:
                while block := os.read(source, _BLOCK):
                    view = memoryview(block)
                    while view:
                        view = view[os.write(sink, view) :]
            finally:
                os.close(sink)
        finally:
            os.close(source)
    for path, text in tree.symlinks.items():
        if only is not None and not only(path):
            continue
        make_parent(path)
        (target / path).symlink_to(text)
