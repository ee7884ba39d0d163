"""The genesis key where it lies: read safely, parsed once for the same bytes (ledger spec §1, §11)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from troth.core.errors import Refused
from troth.ledger.governance import NO_KEY, Ruling, ruling_of
from troth.stores.durable import read_regular

KEY_LIMIT: Final = 1 << 17
"""Longest key read, in bytes; what the rules of a key themselves allow is less."""


class KeyFile:
    """The place of a key.

    Args:
        path: the file; ``None`` where a ledger can have no key.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._bytes: bytes | None = None
        self._ruling = NO_KEY

    def ruling(self) -> Ruling:
        """Return what governs now; what stands there and cannot be read is an invalid key, never none."""
        if self.path is None or not os.path.lexists(self.path):
            return NO_KEY
        try:
            data = read_key(self.path)
        except Refused as fault:
            return Ruling(error=fault)
        if data != self._bytes:
            self._ruling = ruling_of(data, file=str(self.path))
            self._bytes = data
        return self._ruling


def read_key(path: Path) -> bytes:
    """Return the bytes of a key.

    Raises:
        Refused: ``E_NO_GENESIS`` when it is absent, ``E_NOT_REGULAR``, ``E_TOO_LARGE``, ``E_UNREADABLE``.
    """
    return read_regular(path, KEY_LIMIT, "E_NO_GENESIS", "the genesis key")
