"""Deciding by a table: read one, judge a folder by it, write the decision into a receipt."""

from __future__ import annotations

from pathlib import Path

from troth.airlock.runs import STATE
from troth.core.errors import DoesNotHold, Place, Refused
from troth.receipts.deciding import EXAMPLE, MAX_TABLE_BYTES, StopDecision, StopTable, decide, read_table
from troth.receipts.member import RECEIPT_FILE
from troth.receipts.reasons import sentence
from troth.receipts.verify import Examination
from troth.receipts.writing import decided_receipt
from troth.stores.durable import os_fault, read_regular, replace_whole
from troth.stores.members import FolderMember

SHIPPED = "the table that is shipped"
"""What the default table is called."""


def table_bytes(path: Path | None) -> bytes:
    """Return a table's bytes, past its rules; those of the shipped one where none is named.

    Raises:
        Refused: ``E_STOP_TABLE_MISSING``, ``E_STOP_TABLE``.
    """
    if path is None:
        return EXAMPLE.encode()
    data = read_regular(path, MAX_TABLE_BYTES, "E_STOP_TABLE_MISSING", "the table of decisions")
    try:
        read_table(data)
    except Refused as fault:
        place = Place(file=str(path), path=fault.place.path if fault.place else None)
        raise Refused(fault.code, fault.message, remedy=fault.remedy, place=place) from None
    return data


def load_table(path: Path | None) -> StopTable:
    """Return the table in a file, or the shipped one.

    Raises:
        Refused: ``E_STOP_TABLE_MISSING``, ``E_STOP_TABLE``.
    """
    return read_table(table_bytes(path))


def decide_examined(found: Examination, table: StopTable, replans: int = 0) -> StopDecision:
    """Return what a table says about a member that was examined.

    Raises:
        Refused: a record breaks a rule: its code.
        DoesNotHold: ``E_STOP_NO_VERDICT``: the receipt is invalid, so that it states nothing to decide by.
    """
    if found.fault is not None:
        raise found.fault
    if found.code is not None or found.done is None:
        why = sentence(found.code) if found.code is not None else "the folder holds no records of a run"
        raise DoesNotHold(
            "E_STOP_NO_VERDICT",
            f"there is no verdict to decide by: {why}",
            remedy="Nothing that failed to be verified counts as done; `troth receipt verify` tells more.",
            detail=found.code,
        )
    return decide(table, found.done, found.answers, replans=replans)


def write_decision(folder: Path, decision: StopDecision) -> Path:
    """Write a decision and its table's digest into the receipt of a folder, and return the receipt's path.

    Raises:
        Refused: ``E_RECEIPT_CAPTURED``: the folder is a run's; ``E_RECEIPT_MISSING``, ``E_RECEIPT_SIGNED``,
            ``E_RECEIPT_DECIDED``; ``E_UNREADABLE`` when it cannot be written.
    """
    if (folder / STATE).exists():
        raise Refused(
            "E_RECEIPT_CAPTURED",
            "the ledger names the digest of this run's receipt",
            remedy="Decide when the run is made: troth run --table FILE",
            place=Place(file=str(folder)),
        )
    where = folder / RECEIPT_FILE
    data = decided_receipt(FolderMember(folder), decision)
    try:
        replace_whole(where, data)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, where, "the receipt cannot be written") from None
    return where
