"""What a contract's entries protect, and what a tree has of it (done records §7.1)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence

from troth.core.digests import tree_digest
from troth.receipts.kinds import Record


def reaches(path: str, excluded: Collection[str], name: str) -> bool:
    """Tell whether a name strictly beneath ``path`` is protected: no segment of the rest is excluded."""
    return not excluded or all(segment not in excluded for segment in name[len(path) + 1 :].split("/"))


def directory_digest(path: str, excluded: Collection[str], files: Mapping[str, str]) -> str:
    """Return the digest over all tree files strictly beneath ``path`` that it protects, under their full names."""
    start = path + "/"
    return tree_digest(
        {name: digest for name, digest in files.items() if name.startswith(start) and reaches(path, excluded, name)}
    )


class Guard:
    """A contract's protected entries, indexed by path."""

    def __init__(self, contract: Record) -> None:
        self.entries: list[Record] = contract["protected_paths"]
        self._by_path: dict[str, Record] = {entry["path"]: entry for entry in self.entries}
        # Only names cut at these lengths can be an entry's path, however deep a name goes.
        self._lengths = frozenset(len(path) for path in self._by_path)
        self._longest = max(self._lengths, default=0)
        self._excluded = {entry["path"]: frozenset(entry.get("exclude", ())) for entry in self.entries}

    def protecting(self, name: str) -> Record | None:
        """Return an entry that protects the name, or ``None``."""
        entry: Record | None = self._by_path.get(name)
        if entry is not None:
            return entry
        cut = name.find("/")
        while 0 < cut <= self._longest:
            if cut in self._lengths:
                entry = self._by_path.get(name[:cut])
                if entry is not None and reaches(entry["path"], self._excluded[entry["path"]], name):
                    return entry
            cut = name.find("/", cut + 1)
        return None

    def changed(self, files: Mapping[str, str]) -> list[Record]:
        """Return the entries whose digest is not that of the tree's files."""
        names = sorted(files) if any(entry["kind"] == "directory" for entry in self.entries) else []
        return [entry for entry in self.entries if self._digest(entry, files, names) != entry["sha256"]]

    def _digest(self, entry: Record, files: Mapping[str, str], names: Sequence[str]) -> str | None:
        path = entry["path"]
        if entry["kind"] == "file":
            return files.get(path)
        # Sorted names beneath a folder stand together: from "path/" up to the next character after the slash.
        beneath = names[bisect_left(names, f"{path}/") : bisect_left(names, f"{path}0")]
        return tree_digest({name: files[name] for name in beneath if reaches(path, self._excluded[path], name)})
