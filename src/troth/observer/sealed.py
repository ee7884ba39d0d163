"""A sealed contract in its folder: the record, its Statement, and the side report beside them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused
from troth.observer.contract_source import ContractSource
from troth.receipts.member import FILES, STATEMENT_FILE

CONTRACT_FILE: Final = FILES["contract"]
SEAL_FILE: Final = "seal.json"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed contract: the record's bytes, its Statement's, the side report, and what a person should be told."""

    contract: bytes
    statement: bytes
    seal: Mapping[str, Any]
    warnings: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Return the contract's digest."""
        return sha256_hex(self.contract)


def _write_whole(path: Path, data: bytes) -> None:
    """Put bytes in the place of whatever file stood there: temporary file, sync, rename, sync of the folder."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def refuse_other(source: ContractSource, out: Path) -> None:
    """Refuse before any work when a contract from another source stands where this one would go.

    Raises:
        Refused: ``E_CONTRACT_EXISTS``.
    """
    try:
        known = json.loads((out / SEAL_FILE).read_bytes()) if (out / CONTRACT_FILE).exists() else None
    except (OSError, ValueError, RecursionError):
        known = {}
    if known is not None and not (isinstance(known, dict) and known.get("source_sha256") == source.sha256):
        raise _another(out / CONTRACT_FILE)


def _another(place: Path) -> Refused:
    return Refused(
        "E_CONTRACT_EXISTS",
        "another sealed contract stands there",
        remedy="Replace it with --yes, or name another folder with --out.",
        place=Place(str(place)),
    )


def write_sealed(sealed: Sealed, out: Path, *, replace_other: bool = False) -> Path:
    """Write the three files into a folder and return the contract's path; the contract itself is written last.

    Args:
        sealed: what to write.
        out: the folder; made when it is absent.
        replace_other: replace a different contract that stands there.

    Raises:
        Refused: ``E_CONTRACT_EXISTS`` for a different contract there; ``E_CONTRACT_WRITE`` when it cannot be written.
    """
    target = out / CONTRACT_FILE
    try:
        if target.exists() and not replace_other and target.read_bytes() != sealed.contract:
            raise _another(target)
        out.mkdir(parents=True, exist_ok=True)
        _write_whole(out / SEAL_FILE, record_bytes(dict(sealed.seal)))
        _write_whole(out / STATEMENT_FILE, sealed.statement)
        _write_whole(target, sealed.contract)
    except OSError as fault:
        raise Refused(
            "E_CONTRACT_WRITE", f"the contract cannot be written: {fault.strerror}", place=Place(str(out))
        ) from None
    return target
