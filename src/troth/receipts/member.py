"""A member: the named files of one run, as bytes (done records §2). Where they come from is the caller's affair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from troth.core.errors import Place, Refused

MAX_BYTES: Final = 16_777_216
"""Largest file a reader takes, in bytes; exactly that many is allowed (§2)."""

RECEIPT_FILE: Final = "receipt.json"
STATEMENT_FILE: Final = "statement.json"

FILES: Final = {
    "contract": "contract.json",
    "tree": "tree.json",
    "observation": "observation.json",
    "capability": "capability.json",
    "grade": "grade.json",
    "claims": "claims.json",
    "launch": "launch.json",
    "launch_receipt": "launch-receipt.json",
}
"""Record kind (also the prefix of its codes) -> the file that holds it (§2)."""

CORE_RECORDS: Final = ("contract", "tree", "observation", "capability", "grade", "claims")
LAUNCH_RECORDS: Final = ("launch", "launch_receipt")


class ReadFault(Refused):
    """An entry that is there but must not be read: a symbolic link, no regular file, too large, unreadable."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            "read_fault",
            f"{name}: {why}",
            remedy="A member holds regular files of at most 16 MiB, reached without symbolic links.",
            place=Place(file=name),
        )


class Member(Protocol):
    """One run's files."""

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file, or ``None`` when it has no directory entry.

        Args:
            name: a relative path of segments divided by slashes, already known to be normalized (§3 *path*).

        Raises:
            ReadFault: the entry cannot be read safely.
        """
        ...


class MappingMember:
    """A member held in memory: file name -> bytes."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def read(self, name: str) -> bytes | None:
        """Return the bytes, or ``None``; more than 16 MiB is a read fault as it is on a disk."""
        data = self._files.get(name)
        if data is not None and len(data) > MAX_BYTES:
            raise ReadFault(name, f"{len(data)} bytes, more than {MAX_BYTES}")
        return data


class OverlaidMember:
    """A member some of whose files are taken from elsewhere: a consumer's own case and policy, say.

    The names in ``replaced`` are read from ``over`` alone, so that a file missing there is missing here too.
    """

    def __init__(self, base: Member, over: Member, replaced: frozenset[str]) -> None:
        self._base = base
        self._over = over
        self._replaced = replaced

    def read(self, name: str) -> bytes | None:
        """Return the bytes from the overlay for a replaced name, from the base otherwise."""
        return (self._over if name in self._replaced else self._base).read(name)
