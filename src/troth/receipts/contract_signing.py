"""The done-contract Statement in its envelope: signed only when it is valid, and held to the very contract.

What is signed are the bytes of ``statement.json`` (done records §5), in the same envelope as a receipt's (DSSE 1.0).
It lies beside it and holds it whole. A signature under a Statement says: this contract, by its digest, is what I
ask for. Whoever demands it gets a contract that nobody has exchanged since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from troth.core.digests import sha256_hex
from troth.core.errors import DoesNotHold, Place, Refused
from troth.core.notes import Signer
from troth.core.strictjson import JsonFault, Limits, loads
from troth.receipts.demands import Demand, Signers
from troth.receipts.envelopes import Envelope, opened, parse_envelope, signed
from troth.receipts.kinds import Broken
from troth.receipts.member import FILES, STATEMENT_FILE, MappingMember, Member
from troth.receipts.reader import MemberReader
from troth.receipts.reasons import sentence
from troth.receipts.statements import read_contract_statement

CONTRACT_ENVELOPE: Final = "statement.dsse.json"
"""Where the envelope of a contract's Statement lies, beside the contract."""


SEAL_ENVELOPE: Final = "seal.dsse.json"
"""Where the envelope of the report of sealing lies: it names tools and limits, which decide how commands are run."""

_SEAL: Final = Limits(max_bytes=1 << 24, max_depth=64, refuse_overflow=False)

SEAL_TYPE: Final = "application/vnd.troth.seal+json"
"""What the payload of that envelope is; it is no Statement."""


def _parsed(data: bytes, file: str) -> Envelope:
    try:
        return parse_envelope(data)
    except Refused as fault:
        place = Place(file=file)
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


def _other(file: str, of: str) -> DoesNotHold:
    return DoesNotHold(
        "E_ENVELOPE_OTHER",
        f"{file} holds something else than {of}",
        remedy="If it is of an earlier sealing, remove it and sign anew; else put the signed one back.",
        place=Place(file=file),
    )


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
    before = _parsed(present, CONTRACT_ENVELOPE) if present is not None else None
    if before is not None and before.payload != statement:
        raise _other(CONTRACT_ENVELOPE, STATEMENT_FILE)
    return signed(statement, signers, present=before.signatures if before is not None else ())


def _is_about(seal: bytes, contract: bytes) -> bool:
    """Tell whether a report of sealing says that it is of this very contract."""
    try:
        report = loads(seal, _SEAL)
    except JsonFault:
        return False
    return isinstance(report, dict) and report.get("contract_sha256") == sha256_hex(contract)


def sign_seal(seal: bytes | None, contract: bytes, signers: Sequence[Signer], present: bytes | None) -> Envelope:
    """Return the report of sealing in an envelope, as :func:`sign_contract` does the Statement.

    Raises:
        Refused: ``E_SEAL``: there is none; ``E_ENVELOPE_MALFORMED``.
        DoesNotHold: ``E_SEAL_OTHER``: the report is of another contract, beside which its signature would count;
            ``E_ENVELOPE_OTHER``.
    """
    seal = _sealed(seal)
    if not _is_about(seal, contract):
        raise DoesNotHold(
            "E_SEAL_OTHER",
            "seal.json is not the report of sealing this contract",
            remedy="Put its own report back, or seal the contract anew; nothing was signed.",
            place=Place(file="seal.json"),
        )
    before = _parsed(present, SEAL_ENVELOPE) if present is not None else None
    if before is not None and before.payload != seal:
        raise _other(SEAL_ENVELOPE, "seal.json")
    kept = before.signatures if before is not None else ()
    return signed(seal, signers, payload_type=SEAL_TYPE, present=kept)


def require_signed(
    contract: bytes,
    envelope: bytes | None,
    asked: Demand,
    seal: bytes | None,
    seal_envelope: bytes | None,
) -> Signers:
    """Return who signed a contract, once enough of those whom the reader believes did.

    Args:
        contract: the bytes of ``contract.json``, as they are going to be used.
        envelope: the bytes of the envelope, None where there is none.
        seal: the bytes of the report of sealing, as they are going to be used. It must be there, be signed as well, and
            be about this contract: without it other tools and limits would hold than those that were signed.
        seal_envelope: the bytes of its envelope.
        asked: whom the reader believes and how many of them must have signed.

    Raises:
        Refused: ``E_ENVELOPE_MISSING``, ``E_ENVELOPE_MALFORMED``, ``E_ENVELOPE_ROLE``, ``E_SEAL``.
        DoesNotHold: ``E_ENVELOPE_TYPE``, ``E_ENVELOPE_SIGNATURE``; what was signed is no Statement of this contract: a
            code of §5.
        NotEstablished: ``E_ENVELOPE_UNVERIFIED``, ``E_ENVELOPE_THRESHOLD``.
    """
    payload, signers = opened(_there(envelope, CONTRACT_ENVELOPE), asked)
    _require_valid(MappingMember({FILES["contract"]: contract, STATEMENT_FILE: payload}))
    seal = _sealed(seal)
    payload, _ = opened(_there(seal_envelope, SEAL_ENVELOPE), asked, SEAL_TYPE)
    if payload != seal or not _is_about(seal, contract):
        raise _other(SEAL_ENVELOPE, "the seal.json of this contract")
    return signers


def _sealed(seal: bytes | None) -> bytes:
    if seal is None:
        raise Refused(
            "E_SEAL",
            "there is no seal.json beside the contract, and without it other tools and limits would hold",
            remedy="Put it back, or seal the contract anew and sign it.",
            place=Place(file="seal.json"),
        )
    return seal


def _there(data: bytes | None, file: str) -> Envelope:
    if data is None:
        raise Refused(
            "E_ENVELOPE_MISSING",
            f"there is no {file} beside the contract",
            remedy="Nobody signed it: troth contract sign DIR --key NAME",
            place=Place(file=file),
        )
    return _parsed(data, file)
