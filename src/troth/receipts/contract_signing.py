"""The done-contract Statement in its envelope: signed only when it is valid, and held to the very contract.

What is signed are the bytes of ``statement.json`` (done records §5), in the same envelope as a receipt's (DSSE 1.0).
It lies beside it and holds it whole. A signature under a Statement says: this contract, by its digest, is what I
ask for. Whoever demands it gets a contract that nobody has exchanged since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from troth.core.errors import DoesNotHold, Place, Refused
from troth.core.notes import Signer
from troth.receipts.demands import Demand, Signers
from troth.receipts.envelopes import Envelope, opened, parse_envelope, signed
from troth.receipts.kinds import Broken
from troth.receipts.member import FILES, STATEMENT_FILE, MappingMember, Member
from troth.receipts.reader import MemberReader
from troth.receipts.reasons import sentence
from troth.receipts.statements import read_contract_statement

CONTRACT_ENVELOPE: Final = "statement.dsse.json"
"""Where the envelope of a contract's Statement lies, beside the contract."""


def _parsed(data: bytes) -> Envelope:
    try:
        return parse_envelope(data)
    except Refused as fault:
        place = Place(file=CONTRACT_ENVELOPE)
        raise Refused(fault.code, fault.message, remedy=fault.remedy, place=place) from None


def _require_valid(member: Member) -> None:
    try:
        read_contract_statement(MemberReader(member))
    except Broken as fault:
        raise DoesNotHold(
            fault.code,
            f"the Statement is not one of this contract: {sentence(fault.code)}",
            remedy="Seal the contract anew, or put the one back that was signed.",
            place=Place(file=STATEMENT_FILE),
        ) from None


def sign_contract(contract: bytes, statement: bytes, signers: Sequence[Signer], present: bytes | None) -> Envelope:
    """Return a contract's Statement in an envelope, with the signatures present and new ones.

    Args:
        contract: the bytes of ``contract.json``.
        statement: the bytes of ``statement.json``, which are signed.
        signers: who signs now.
        present: the envelope that lies there, if one does; its signatures are kept, unchecked.

    Raises:
        Refused: ``E_ENVELOPE_MALFORMED`` for what lies in the place of an envelope.
        DoesNotHold: the Statement is invalid: its code; ``E_ENVELOPE_OTHER``: the envelope there holds another one.
    """
    _require_valid(MappingMember({FILES["contract"]: contract, STATEMENT_FILE: statement}))
    before = _parsed(present) if present is not None else None
    if before is not None and before.payload != statement:
        raise DoesNotHold(
            "E_ENVELOPE_OTHER",
            f"{CONTRACT_ENVELOPE} holds another Statement than {STATEMENT_FILE}",
            remedy="Remove it, if it is of an earlier sealing, and sign anew.",
            place=Place(file=CONTRACT_ENVELOPE),
        )
    return signed(statement, signers, present=before.signatures if before is not None else ())


def require_signed(contract: bytes, envelope: bytes | None, asked: Demand) -> Signers:
    """Return who signed a contract, once enough of those whom the reader believes did.

    Args:
        contract: the bytes of ``contract.json``, as they are going to be used.
        envelope: the bytes of the envelope, None where there is none.
        asked: whom the reader believes and how many of them must have signed.

    Raises:
        Refused: ``E_ENVELOPE_MISSING``, ``E_ENVELOPE_MALFORMED``, ``E_ENVELOPE_ROLE``.
        DoesNotHold: ``E_ENVELOPE_TYPE``, ``E_ENVELOPE_SIGNATURE``; what was signed is no Statement of this contract: a
            code of §5.
        NotEstablished: ``E_ENVELOPE_UNVERIFIED``, ``E_ENVELOPE_THRESHOLD``.
    """
    if envelope is None:
        raise Refused(
            "E_ENVELOPE_MISSING",
            f"there is no {CONTRACT_ENVELOPE} beside the contract",
            remedy="Nobody signed it: troth contract sign DIR --key NAME",
            place=Place(file=CONTRACT_ENVELOPE),
        )
    payload, signers = opened(_parsed(envelope), asked)
    _require_valid(MappingMember({FILES["contract"]: contract, STATEMENT_FILE: payload}))
    return signers
