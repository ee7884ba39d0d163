"""In-toto Statements (done records §5, §9 rule 1): the shape both kinds share, and the done contract's own."""

from __future__ import annotations

from typing import Any, Final

from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Defect
from troth.receipts.kinds import Broken, Record, is_digest, is_text, same_json, shape
from troth.receipts.member import FILES, STATEMENT_FILE, MappingMember, ReadFault
from troth.receipts.reader import MemberReader

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
DONE_CONTRACT: Final = "https://w3id.org/agent-evidence/predicate/v1/done-contract"
DONE_RECEIPT: Final = "https://w3id.org/agent-evidence/predicate/v1/done-receipt"

_STATEMENT: Final = shape("_type subject predicateType predicate")
_SUBJECT: Final = shape("name digest")
_DIGEST: Final = shape("sha256")


def is_sha256_entry(value: Any) -> bool:
    """Tell whether the value is an object of one member ``sha256``, a digest."""
    return _DIGEST.holds(value) and is_digest(value["sha256"])


def require_statement(value: Any, prefix: str, predicate_type: str) -> Record:
    """Apply §5 rules 1 (members) to 3 to a parsed Statement and return it.

    Raises:
        Broken: ``P_fields``, ``P_type_wrong``, ``P_predicate_type_wrong`` or ``P_subject_malformed``.
    """
    if not _STATEMENT.holds(value):
        raise Broken(f"{prefix}_fields")
    if value["_type"] != STATEMENT_TYPE:
        raise Broken(f"{prefix}_type_wrong", "$._type")
    if value["predicateType"] != predicate_type:
        raise Broken(f"{prefix}_predicate_type_wrong", "$.predicateType")
    subject = value["subject"]
    if (
        type(subject) is not list
        or len(subject) != 1
        or not _SUBJECT.holds(subject[0])
        or not is_text(subject[0]["name"])
        or not is_sha256_entry(subject[0]["digest"])
    ):
        raise Broken(f"{prefix}_subject_malformed", "$.subject")
    statement: Record = value
    return statement


def statement_bytes(predicate_type: str, subject: str, digest: str, predicate: Record) -> bytes:
    """Write a Statement about one subject, in the layout of this project's records."""
    return record_bytes(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": subject, "digest": {"sha256": digest}}],
            "predicateType": predicate_type,
            "predicate": predicate,
        }
    )


def read_contract_statement(reader: MemberReader) -> Record:
    """Verify ``statement.json`` over ``contract.json`` (§5) and return the Statement.

    Raises:
        Broken: the first rule broken. ``member_unreadable`` and ``member_incomplete`` refuse the member; with any
            other code the Statement is invalid.
    """
    contract_file = FILES["contract"]
    try:
        statement_data, contract_data = reader.read(STATEMENT_FILE), reader.read(contract_file)
    except ReadFault:
        raise Broken("member_unreadable") from None
    if statement_data is None or contract_data is None:
        raise Broken("member_incomplete")
    value = reader.parsed(STATEMENT_FILE, statement_data, "statement")
    statement = require_statement(value, "statement", DONE_CONTRACT)
    contract = reader.record("contract", contract_file)
    if statement["subject"][0]["digest"]["sha256"] != reader.digest(contract_file):
        raise Broken("statement_subject_unbound", "$.subject[0].digest.sha256")
    if not same_json(statement["predicate"], contract):
        raise Broken("statement_predicate_differs", "$.predicate")
    return statement


def write_contract_statement(contract: bytes, *, name: str = "contract.json") -> bytes:
    """Return the done-contract Statement (``statement.json``) over a contract's stored bytes.

    Args:
        contract: the very bytes of ``contract.json``; the subject names their digest.
        name: the subject's name.

    Raises:
        Broken: the contract breaks a rule of §4.1.
    """
    reader = MemberReader(MappingMember({FILES["contract"]: contract}))
    record = reader.record("contract", FILES["contract"])
    written = statement_bytes(DONE_CONTRACT, name, sha256_hex(contract), record)
    check = MappingMember({FILES["contract"]: contract, STATEMENT_FILE: written})
    try:
        read_contract_statement(MemberReader(check))
    except Broken as fault:
        raise Defect("E_DEFECT", f"a Statement just written is not valid: {fault}") from fault
    return written
