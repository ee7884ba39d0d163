"""A contract's entries as the observer seals, copies and compares them; what they protect is the receipt's own rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from troth.core.digests import EMPTY
from troth.core.errors import Place, Refused
from troth.receipts.protection import directory_digest, reaches

if TYPE_CHECKING:
    from troth.observer.tree import Snapshot


@dataclass(frozen=True, slots=True)
class Entry:
    """One protected path of a contract record."""

    path: str
    kind: Literal["file", "directory"]
    sha256: str
    exclude: tuple[str, ...] = ()

    def covers(self, name: str) -> bool:
        """Tell whether the name is the entry's path or lies beneath it, excluded or not."""
        return name == self.path or name.startswith(self.path + "/")

    def protects(self, name: str) -> bool:
        """Tell whether the entry protects the name: its own path, or one beneath it without an excluded segment."""
        return name == self.path or (self.covers(name) and reaches(self.path, self.exclude, name))

    @property
    def seals_absence(self) -> bool:
        """Tell whether the entry says that nothing stands at its path (done records §13.4)."""
        return self.kind == "directory" and self.sha256 == EMPTY

    def as_json(self) -> dict[str, Any]:
        """Return the entry as a contract record carries it."""
        value: dict[str, Any] = {"path": self.path, "kind": self.kind, "sha256": self.sha256}
        if self.exclude:
            value["exclude"] = list(self.exclude)
        return value


def changed(entry: Entry, files: Mapping[str, str]) -> bool:
    """Tell whether the tree differs from what the entry sealed."""
    if entry.kind == "file":
        return files.get(entry.path) != entry.sha256
    return directory_digest(entry.path, entry.exclude, files) != entry.sha256


def changed_entries(entries: Iterable[Entry], files: Mapping[str, str]) -> list[Entry]:
    """Return the entries whose protected bytes the tree does not have, in their order."""
    return [entry for entry in entries if changed(entry, files)]


def unmet_entries(entries: Iterable[Entry], files: Mapping[str, str], links: Collection[str] = ()) -> list[Entry]:
    """Return the entries that a start does not meet, in their order.

    Stricter than ``changed_entries``: a file or link at the very path of a folder entry lies not beneath it, so no tree
    digest shows it; at a path that was sealed as absent it is just what must not be there.
    """
    return [
        entry
        for entry in entries
        if changed(entry, files) or (entry.kind == "directory" and (entry.path in files or entry.path in links))
    ]


def require_start(entries: Sequence[Entry], start: Snapshot, place: Path) -> None:
    """Refuse a tree that does not have what the contract sealed.

    Raises:
        Refused: ``E_START_DIFFERS`` naming the entries.
    """
    broken = unmet_entries(entries, start.files, start.symlinks)
    if broken:
        raise Refused(
            "E_START_DIFFERS",
            f"the sealed start does not have what the contract protects: {', '.join(entry.path for entry in broken)}",
            remedy="Seal the contract anew, or put the sealed files back.",
            place=Place(str(place)),
            detail=[entry.path for entry in broken],
        )


def entries_of(contract: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Return the protected paths of a contract record that has already been parsed (done records §4.1)."""
    return tuple(
        Entry(item["path"], item["kind"], item["sha256"], tuple(item.get("exclude", ())))
        for item in contract["protected_paths"]
    )
