"""The genesis key where it lies: read safely, parsed once for the same bytes (ledger spec §1, §11)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from troth.core.errors import TrothError
from troth.ledger.governance import NO_KEY, Ruling, ruling_of
from troth.stores.durable import os_fault, read_regular, replace_whole
from troth.stores.workspace import GENESIS

if TYPE_CHECKING:
    from troth.core.notes import Signature, Signer

KEY_LIMIT: Final = 1 << 17
"""Longest key read, in bytes; what the rules of a key themselves allow is less."""


NOTE_LIMIT: Final = 1 << 16
"""Longest signature file read, in bytes: a few lines."""


class KeyFile:
    """The place of a key.

    Args:
        path: the file; ``None`` where a ledger can have no key.
        signers: the public keys of which one must have signed it, from the settings.
    """

    def __init__(self, path: Path | None, signers: Sequence[str] = ()) -> None:
        self.path = path
        self._name = None if path is None else os.fspath(path)
        self.signers = tuple(signers)
        self._known: tuple[bytes | None, bytes | None] | None = None
        self._ruling = NO_KEY

    def ruling(self) -> Ruling:
        """Return what governs now; what stands there and cannot be read is an invalid key, never none."""
        if self.path is None or self._name is None:
            return NO_KEY
        try:
            key = read_key(self.path) if _stands(self._name) else None
            if key is None and not self.signers:
                return NO_KEY
            found = key, _signature(self.path)
        except TrothError as fault:
            return Ruling(error=fault)
        if found != self._known:
            self._ruling = ruling_of(found[0], file=str(self.path), signature=found[1], signers=self.signers)
            self._known = found
        return self._ruling


def _stands(path: Path | str) -> bool:
    """Tell whether something stands there; what cannot be looked at is not taken for nothing."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, Path(path), "the genesis key cannot be looked at") from None
    return True


def _signature(key: Path) -> bytes | None:
    """Return the bytes of the signature beside a key, ``None`` when there is none."""
    path = signature_beside(key)
    if not _stands(path):
        return None
    return read_regular(path, NOTE_LIMIT, "E_NO_GENESIS", "the signature of the genesis key")


def signature_beside(key: Path) -> Path:
    """Return where the signature of a key lies."""
    return key.with_name(f"{key.name}.sig")


def key_to_install(path: Path) -> dict[str, bytes]:
    """Return what a new workspace gets for the key of a file: file name -> bytes, its signature included.

    Raises:
        Refused: as :func:`read_key`, and ``E_CONSTRAINT_VIOLATED`` (``genesis_invalid``) for an invalid key.
    """
    # Imported here: a ledger without a key should not pay for it.
    from troth.ledger.genesis import parse_genesis

    data = read_key(path)
    parse_genesis(data, str(path))
    signature = _signature(path)
    return ({signature_beside(Path(GENESIS)).name: signature} if signature is not None else {}) | {GENESIS: data}


def write_signature(path: Path, data: bytes, signer: Signer) -> tuple[Path, int]:
    """Sign a key and put the note beside it; signatures that stand there for the same bytes are kept.

    Args:
        path: the key's file.
        data: its bytes.
        signer: who signs.

    Returns:
        The note's file, and how many signatures it holds.

    Raises:
        Refused: ``E_NOTE_MALFORMED`` when what stands there is no note, ``E_UNREADABLE``.
    """
    from troth.core.notes import parse_note, sign_note
    from troth.ledger.genesis_signature import signed_text

    beside, text = signature_beside(path), signed_text(data)
    present: Sequence[Signature] = ()
    standing = _signature(path)
    if standing is not None:
        before = parse_note(standing)
        present = before.signatures if before.text == text else ()
    note = sign_note(text, [signer], present=present)
    try:
        replace_whole(beside, note.encode())
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, beside, "the signature cannot be written") from None
    return beside, len(note.signatures)


def read_key(path: Path) -> bytes:
    """Return the bytes of a key.

    Raises:
        Refused: ``E_NO_GENESIS`` when it is absent, ``E_NOT_REGULAR``, ``E_TOO_LARGE``, ``E_UNREADABLE``.
    """
    return read_regular(path, KEY_LIMIT, "E_NO_GENESIS", "the genesis key")
