"""The writer's side (done records §9, §13.7): a receipt computed by the reader from the very bytes it will name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Defect, DoesNotHold, Place, Refused
from troth.receipts.bundles import BUNDLE_FILE
from troth.receipts.deciding import StopDecision, StopTable, decide
from troth.receipts.envelopes import ENVELOPE_FILE
from troth.receipts.kinds import Record
from troth.receipts.member import (
    CORE_RECORDS,
    FILES,
    LAUNCH_RECORDS,
    RECEIPT_FILE,
    STATEMENT_FILE,
    MappingMember,
    Member,
)
from troth.receipts.pinning import self_pin
from troth.receipts.policy import ALL_CHECKS
from troth.receipts.reasons import sentence
from troth.receipts.statements import DONE_RECEIPT, statement_bytes, write_contract_statement
from troth.receipts.verify import RECEIPT_VERSION, Examination, checks_member, examine, read_receipt

__all__ = ["build_receipt", "decided_receipt", "self_pin", "write_contract_statement"]

SUBJECT: str = "workspace-tree"
"""What a receipt's subject is called."""


def build_receipt(
    files: Mapping[str, bytes],
    *,
    verifier_id: str,
    with_launch: bool = False,
    isolation: Mapping[str, Any] | None = None,
    stop_decision: Mapping[str, str] | None = None,
    policy_table_sha256: str | None = None,
    table: StopTable | None = None,
    replans: int = 0,
) -> bytes:
    """Return ``receipt.json`` for a run.

    The checks, the verdict and the external effects are what the reader finds in these bytes; the receipt is then
    read back by the same reader and handed out only if it is valid. A contradicted or open verdict is a receipt
    like any other.

    Args:
        files: file name -> bytes: the six core records, the six case and policy files, and the launch records where
            there are some (a launch receipt's effects count whether or not the receipt names it).
        verifier_id: URI naming the verifier.
        with_launch: also name ``launch.json`` and ``launch-receipt.json``.
        isolation: the grading verifier's account of its own isolation; ``contract_sha256`` is added when absent.
        stop_decision: {action, reason} of a policy table.
        policy_table_sha256: digest of that table.
        table: decide by this table instead, once the verdict is derived.
        replans: how often the same work was sent back already.

    Raises:
        Refused: a record is missing (``receipt_record_missing``) or a file breaks a rule: its code.
        DoesNotHold: the records do not allow a valid receipt, for example because the launch receipt reports a lost
            event and the observation says it is complete: the receipt rule's code.
    """
    held = {name: data for name, data in files.items() if name not in (RECEIPT_FILE, STATEMENT_FILE)}
    kinds = CORE_RECORDS + LAUNCH_RECORDS if with_launch else CORE_RECORDS
    for kind in kinds:
        if FILES[kind] not in held:
            raise _refused("receipt_record_missing", FILES[kind])
    found = examine(MappingMember(held), ALL_CHECKS)
    if found.fault is not None:
        raise found.fault
    if found.done is None:
        raise Defect("E_DEFECT", "three checks were asked for and no verdict was derived")
    tree = found.reader.record("tree", FILES["tree"])
    records = {kind: {"sha256": sha256_hex(held[FILES[kind]])} for kind in kinds}
    predicate: Record = {
        "schema_version": RECEIPT_VERSION,
        "claim_id": tree["claim_id"],
        "invocation_id": tree["invocation_id"],
        "records": records,
        "checks": checks_member(found.answers),
        "verdict": found.done.as_json(),
        "external_effects": found.effects,
        "verifier": {"id": verifier_id},
    }
    if table is not None:
        decided = decide(table, found.done, found.answers, replans=replans)
        stop_decision, policy_table_sha256 = decided.member(), decided.table_sha256
    if policy_table_sha256 is not None:
        predicate["policy"] = {"table_sha256": policy_table_sha256}
    if stop_decision is not None:
        predicate["stop_decision"] = dict(stop_decision)
    if isolation is not None:
        predicate["verifier_isolation"] = {"contract_sha256": records["contract"]["sha256"], **isolation}
    receipt = statement_bytes(DONE_RECEIPT, SUBJECT, tree["tree_sha256"], predicate)
    _read_back({**held, RECEIPT_FILE: receipt}, found)
    return receipt


def decided_receipt(files: Member, decision: StopDecision) -> bytes:
    """Return a member's receipt with a decision written into it, valid as it was before.

    Raises:
        Refused: ``E_RECEIPT_MISSING``; ``E_RECEIPT_SIGNED``: an envelope or a bundle lies beside it;
            ``E_RECEIPT_DECIDED``: it carries another decision; the code of a receipt that breaks a rule of its shape.
    """
    data = files.read(RECEIPT_FILE)
    if data is None:
        raise Refused("E_RECEIPT_MISSING", f"the folder holds no {RECEIPT_FILE}", place=Place(file=RECEIPT_FILE))
    for file in (ENVELOPE_FILE, BUNDLE_FILE):
        if files.read(file) is not None:
            raise Refused(
                "E_RECEIPT_SIGNED",
                f"{file} holds the receipt as it was signed",
                remedy="Decide first, then sign.",
                place=Place(file=file),
            )
    statement = read_receipt(data)
    written = {"stop_decision": decision.member(), "policy": {"table_sha256": decision.table_sha256}}
    carried = {name: statement["predicate"][name] for name in written if name in statement["predicate"]}
    if carried and carried != written:
        raise Refused(
            "E_RECEIPT_DECIDED",
            "the receipt carries another decision, or another table's",
            place=Place(file=RECEIPT_FILE),
        )
    return record_bytes({**statement, "predicate": {**statement["predicate"], **written}})


def _read_back(files: Mapping[str, bytes], computed: Examination) -> None:
    """Require that the receipt just written is valid and shows what was computed."""
    found = examine(MappingMember(files))
    if found.code is not None:
        if found.fault is not None:
            raise found.fault
        raise DoesNotHold(found.code, sentence(found.code), place=Place(file=RECEIPT_FILE))
    if found.done != computed.done or found.answers != computed.answers:
        raise Defect("E_DEFECT", "a receipt just written does not show what was computed")


def _refused(code: str, name: str) -> Refused:
    return Refused(code, sentence(code), place=Place(file=name))
