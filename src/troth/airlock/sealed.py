"""A sealed contract as it lies on the disk: the record, and the side report of sealing beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.core.errors import Place, Refused
from troth.stores.durable import read_regular

if TYPE_CHECKING:
    from troth.receipts.demands import Signers

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


def read_signed(
    beside: Path, contract: bytes, seal: bytes | None, keys: Sequence[str], threshold: int | None
) -> tuple[dict[str, bytes], Signers]:
    """Return the envelopes beside a contract by their names, and who signed, once enough of the keys did.

    Args:
        beside: the contract's file.
        contract: its bytes, as they are going to be used.
        seal: the bytes of the report of sealing, as they are going to be used.
        keys: public keys that are believed, as ``NAME+ID+BASE64``.
        threshold: how many distinct approvers must have signed; by default one.

    Raises:
        TrothError: a code of the keys, of envelopes, or of done records §5.
    """
    from troth.core.notes import parse_verifier
    from troth.receipts.contract_signing import CONTRACT_ENVELOPE, SEAL_ENVELOPE, require_signed
    from troth.receipts.demands import demand

    held: dict[str, bytes] = {}
    for name in (CONTRACT_ENVELOPE, *([SEAL_ENVELOPE] if seal is not None else [])):
        path = beside.with_name(name)
        if path.is_symlink() or path.exists():
            held[name] = read_regular(path, _CONTRACT_LIMIT, "E_ENVELOPE_MISSING", "the contract's envelope")
    asked = demand([parse_verifier(key) for key in keys], threshold)
    return held, require_signed(contract, held.get(CONTRACT_ENVELOPE), asked, seal, held.get(SEAL_ENVELOPE))


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
