"""Which sealing of a contract holds: the latest that a ledger knows of.

A contract can be sealed more than once with the same bytes: with other tools, other limits. Each sealing has a report
(``seal.json``), which says when it was made and can be signed, and an older one stays as well signed as it was. So
who signs a contract's sealing, and each run that ends, puts its digest and its instant on the ledger; a run takes no
report that is older than one on record, nor none where one is on record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.airlock.evidence import WITNESS
from troth.core.digests import is_digest, sha256_hex
from troth.core.errors import Place, Refused
from troth.core.instants import format_instant, parse_instant
from troth.ledger.operations import Candidate

if TYPE_CHECKING:
    from troth.stores.protocol import LedgerStore
    from troth.stores.snapshot import Snapshot

KIND: Final = "sealing"
"""The kind of the row that says that a sealing was signed."""

_RUN: Final = "run:"


@dataclass(frozen=True, slots=True)
class Sealing:
    """One sealing of a contract: the digests of contract and report, when it was made, and the row that tells of it."""

    contract_sha256: str
    seal_sha256: str
    sealed: datetime
    row: str = ""

    def as_meta(self) -> dict[str, str]:
        """Return what a row of the ledger holds of it."""
        return {
            "contract_sha256": self.contract_sha256,
            "seal_sha256": self.seal_sha256,
            "sealed": format_instant(self.sealed),
        }

    @property
    def words(self) -> str:
        """Return it in words for a person."""
        return f"{format_instant(self.sealed)}, digest {self.seal_sha256}"


def sealing_of(contract: bytes, seal: bytes | None) -> Sealing | None:
    """Return the sealing that a report tells of; ``None`` without one of this contract that says when it was made."""
    try:
        report = json.loads(seal) if seal is not None else None
    except (ValueError, RecursionError):
        return None
    digest = sha256_hex(contract)
    if seal is None or not isinstance(report, dict) or report.get("contract_sha256") != digest:
        return None
    sealed = report.get("sealed")
    instant = parse_instant(sealed) if isinstance(sealed, str) else None
    return Sealing(digest, sha256_hex(seal), instant) if instant is not None else None


def latest_known(snapshot: Snapshot, contract_sha256: str) -> Sealing | None:
    """Return the latest sealing of a contract that a ledger knows of.

    A row speaks for one when somebody signed it, or a run ended with it. One that says of itself that it was made after
    its row was written is none: with such a date a forged report would outdate all others.
    """
    keys = snapshot.state.source_keys
    found: Sealing | None = None
    for prefix in (_key(contract_sha256), _RUN):
        for key in beginning(keys, prefix):
            one = None if prefix == _RUN and key.count(":") != 1 else _told(snapshot, keys[key], prefix)
            if one is not None and one.contract_sha256 == contract_sha256:
                found = one if found is None or one.sealed > found.sealed else found
    return found


def beginning(keys: Mapping[str, Any], prefix: str) -> list[str]:
    """Return the keys that begin with a text, without reading all of a kept table."""
    from troth.stores.kept import KeptMapping

    return keys.beginning(prefix) if isinstance(keys, KeptMapping) else [key for key in keys if key.startswith(prefix)]


def _key(contract_sha256: str) -> str:
    return f"{KIND}:{contract_sha256}:"


def _told(snapshot: Snapshot, identifier: str | None, prefix: str) -> Sealing | None:
    signal = snapshot.state.signals.get(identifier or "")
    if signal is None or signal.op != "capture" or (prefix == _RUN and signal.actor != WITNESS):
        return None
    row = snapshot.rows.at_line(signal.line)
    payload = row.value.get("payload")
    meta = payload.get("meta") if isinstance(payload, dict) else None
    meta = meta if isinstance(meta, dict) else {}
    contract, seal, sealed = (meta.get(name) for name in ("contract_sha256", "seal_sha256", "sealed"))
    instant = parse_instant(sealed) if isinstance(sealed, str) else None
    written = parse_instant(signal.ts) if isinstance(signal.ts, str) else None
    if not (is_digest(contract) and is_digest(seal)) or instant is None or written is None or instant > written:
        return None
    return Sealing(str(contract), str(seal), instant, str(identifier))


def outdated(snapshot: Snapshot, contract: bytes, seal: bytes | None) -> Sealing | None:
    """Return the sealing on record that outdates the report beside a contract; ``None`` when none does."""
    known = latest_known(snapshot, sha256_hex(contract))
    if known is None:
        return None
    own = sealing_of(contract, seal)
    return known if own is None or own.sealed < known.sealed else None


def require_latest(snapshot: Snapshot, contract: bytes, seal: bytes | None, beside: Path) -> None:
    """Refuse a report of sealing that the ledger knows to be outdated.

    Args:
        snapshot: the ledger.
        contract: the contract's bytes.
        seal: those of the report beside it, ``None`` where there is none.
        beside: the contract's file.

    Raises:
        Refused: ``E_SEAL_OLDER``.
    """
    known = outdated(snapshot, contract, seal)
    if known is not None:
        what = "is older than" if seal is not None else "is gone; there was"
        raise Refused(
            "E_SEAL_OLDER",
            f"the report of sealing {what} the one of {known.words}, which row {known.row} tells of",
            remedy="Put that seal.json back, or seal the contract anew: with another one other tools and limits hold.",
            place=Place(file=str(beside.with_name("seal.json"))),
            detail={**known.as_meta(), "row": known.row},
        )


def record_signed(store: LedgerStore, actor: str, sealing: Sealing) -> str:
    """Put on the ledger that a sealing was signed, once, and return the row's id.

    Raises:
        TrothError: a code of the ledger; then the ledger does not know of it.
    """
    key = _key(sealing.contract_sha256) + sealing.seal_sha256
    known = store.read().state.source_keys.get(key)
    if known is not None:
        return known
    body = f"Signed: contract {sealing.contract_sha256[:12]} as it was sealed at {format_instant(sealing.sealed)}"
    payload = {"kind": KIND, "body": body, "meta": sealing.as_meta()}
    return str(store.append(Candidate("capture", actor, payload, source_key=key))["id"])


def ledger_beside(contract: Path) -> LedgerStore | None:
    """Return the ledger of the workspace in which a contract lies; ``None`` where there is none.

    Raises:
        TrothError: a code of the settings, or of a ledger that cannot be read.
    """
    from troth.stores.opening import open_store
    from troth.stores.workspace import FOLDER

    folders = contract.resolve().parents
    root = next((folder for folder in folders if (folder / FOLDER).is_dir()), None)
    if root is None:
        return None
    store = open_store(root)
    try:
        store.read()
    except Refused as fault:
        if fault.code == "E_NO_LEDGER":
            return None
        raise
    return store
