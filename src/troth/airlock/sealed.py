"""A sealed contract as it lies on the disk: the record, and the side report of sealing beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from troth.core.errors import Place, Refused
from troth.stores.durable import read_regular

CONTRACT: Final = "contract.json"
SEAL: Final = "seal.json"
_CONTRACT_LIMIT: Final = 1 << 24


def read_contract(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Read and parse a sealed contract.

    Raises:
        Refused: ``E_CONTRACT_MISSING``, ``E_NOT_REGULAR``, ``E_TOO_LARGE``, or the record's own code (done records
            §4.1).
    """
    from troth.receipts import records
    from troth.receipts.strict import parse

    data = read_regular(path, _CONTRACT_LIMIT, "E_CONTRACT_MISSING", "the contract")
    try:
        return data, records.contract(parse(data, "contract"))
    except Refused as fault:
        raise Refused(
            fault.code, f"the contract is malformed: {fault.message}", place=Place(file=str(path)),
            remedy="Seal it anew with: troth contract seal FILE.toml",
        ) from None  # fmt: skip


def read_seal(beside: Path) -> bytes | None:
    """Return the side report of sealing that lies beside a contract, if one does.

    Raises:
        Refused: ``E_SEAL_MALFORMED``: it is no JSON object; as ``read_contract`` otherwise.
    """
    path = beside.parent / SEAL
    if not path.exists():
        return None
    data = read_regular(path, _CONTRACT_LIMIT, "E_CONTRACT_MISSING", "the seal's report")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refused(
            "E_SEAL_MALFORMED", "the report beside the contract is no JSON object", place=Place(file=str(path)),
            remedy="Seal it anew with: troth contract seal FILE.toml",
        )  # fmt: skip
    return data
