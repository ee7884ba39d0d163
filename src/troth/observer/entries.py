"""The entries that a contract file asks for, over the tree as it stands (done records §13.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from troth.core.digests import EMPTY
from troth.core.errors import Place, Refused
from troth.observer.autoload import BYTECODE, folders_of
from troth.observer.contract_source import CODE, ContractSource, Protect
from troth.observer.copies import CACHES
from troth.observer.protected import Entry
from troth.observer.tree import Snapshot
from troth.receipts.protection import directory_digest


def _refused(source: ContractSource, index: int, found: str, remedy: str) -> Refused:
    path = f"protect[{index}].path"
    return Refused(CODE, f"{path} {found}", remedy=remedy, place=Place(source.file, path=path))


def _named_entry(source: ContractSource, index: int, item: Protect, tree: Snapshot, folders: set[str]) -> Entry:
    """Turn one protected path into an entry of the start tree."""
    path = item.path
    linked = [link for link in tree.symlinks if path == link or path.startswith(link + "/")]
    if linked:
        raise _refused(source, index, f"is or lies beneath a symbolic link: {linked[0]!r}", "Name what it points to.")
    if path in tree.files:
        if item.exclude:
            raise _refused(source, index, f"is a file, and exclude is for folders: {path!r}", "Take exclude away.")
        return Entry(path, "file", tree.files[path])
    if path not in folders:
        import difflib

        near = difflib.get_close_matches(path, [*tree.files, *sorted(folders)], n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "Name a file or folder of the workspace."
        raise _refused(source, index, f"does not exist in the workspace: {path!r}", hint)
    broken = [name for name in (*tree.unreadable, *tree.not_utf8) if name == path or name.startswith(path + "/")]
    if broken:
        raise _refused(source, index, f"holds what no digest can cover: {broken[0]!r}", "Rename or remove it.")
    return Entry(path, "directory", EMPTY, item.exclude)


def named_entries(source: ContractSource, workspace: Path, tree: Snapshot) -> list[Entry]:
    """Return the entries of the paths that a contract file protects, over the tree as it stands.

    Raises:
        Refused: ``E_CONTRACT_SOURCE`` for one that does not fit the tree.
    """
    folders = folders_of([*tree.files, *tree.symlinks])
    folders |= {item.path for item in source.protect if (workspace / item.path).is_dir()}  # also without any file
    return [_named_entry(source, index, item, tree, folders) for index, item in enumerate(source.protect)]


def forbidden_entries(source: ContractSource, tree: Snapshot, named: Sequence[Entry]) -> list[Entry]:
    """Return the entries that seal what must not appear as absent (done records §13.4).

    Raises:
        Refused: ``E_CONTRACT_SOURCE`` for one that stands there already.
    """
    folders = folders_of([*tree.files, *tree.symlinks])
    for index, path in enumerate(source.must_not_appear):
        if path in tree.files or path in tree.symlinks or path in folders:
            at = f"must_not_appear[{index}]"
            raise Refused(
                CODE, f"{at} stands there already: {path!r}", remedy="Take it away, or protect it as it is.",
                place=Place(source.file, path=at),
            )  # fmt: skip
    return [
        Entry(path, "directory", EMPTY)
        for path in source.must_not_appear
        if not any(entry.covers(path) for entry in named)
    ]


def settled(entry: Entry, files: Mapping[str, str]) -> Entry:
    """Return a folder's entry with its digest; bytecode, and every cache that stands there, is excluded.

    An honest run changes what is in them. Whoever runs the tests without our variables writes bytecode beside them,
    whatever the run that was learnt from happened to do.
    """
    if entry.kind == "file":
        return entry
    there = {segment for name in files if entry.covers(name) for segment in name.split("/") if segment in CACHES}
    new = sorted(({BYTECODE} | there) - set(entry.exclude))
    exclude = (*entry.exclude, *new)
    return replace(entry, exclude=exclude, sha256=directory_digest(entry.path, exclude, files))
