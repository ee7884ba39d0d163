"""A member's receipt in its envelope: signed only when it is valid, judged only as it was signed."""

from __future__ import annotations

from collections.abc import Sequence

from troth.core.errors import DoesNotHold, Place, Refused
from troth.core.notes import Signer
from troth.receipts.envelopes import ENVELOPE_FILE, Demand, Envelope, Signers, opened, parse_envelope, signed
from troth.receipts.member import RECEIPT_FILE, MappingMember, Member, OverlaidMember, ReadFault
from troth.receipts.reasons import sentence
from troth.receipts.verify import Examination, examine


def read_envelope(member: Member, data: bytes | None = None) -> Envelope | None:
    """Return a member's envelope, or the one that the bytes are; ``None`` when there is none.

    Raises:
        Refused: ``E_ENVELOPE_MALFORMED``; ``read_fault`` for what must not be read.
    """
    if data is None:
        data = member.read(ENVELOPE_FILE)
    if data is None:
        return None
    try:
        return parse_envelope(data)
    except Refused as fault:
        place = Place(file=ENVELOPE_FILE)
        raise Refused(fault.code, fault.message, remedy=fault.remedy, place=place) from None


def as_signed(member: Member, asked: Demand, data: bytes | None = None) -> tuple[Member, Signers]:
    """Return the member with the signed payload as its receipt, once the signatures hold, and who signed.

    The records are bound by the receipt's digests. Cases and policies are not: whoever could swap them could at most
    make the checks come to something else than the signed receipt states, which makes it invalid.

    Args:
        member: the run's files.
        asked: whom the reader believes and how many of them must have signed.
        data: the bytes of an envelope that lies elsewhere; by default ``receipt.dsse.json`` of the member.

    Raises:
        Refused: ``E_ENVELOPE_MISSING``, ``E_ENVELOPE_MALFORMED``, ``E_ENVELOPE_ROLE``.
        DoesNotHold: ``E_ENVELOPE_TYPE``, ``E_ENVELOPE_SIGNATURE``; ``E_ENVELOPE_OTHER`` when another receipt lies in
            the member.
        NotEstablished: ``E_ENVELOPE_UNVERIFIED``, ``E_ENVELOPE_THRESHOLD``.
    """
    envelope = read_envelope(member, data)
    if envelope is None:
        raise Refused(
            "E_ENVELOPE_MISSING",
            f"the folder holds no {ENVELOPE_FILE}",
            remedy="Nobody signed the receipt, or the envelope lies elsewhere: --envelope FILE.",
            place=Place(file=ENVELOPE_FILE),
        )
    payload, signers = opened(envelope, asked)
    try:
        beside = member.read(RECEIPT_FILE)
    except ReadFault as fault:
        raise _other(str(fault.message)) from None
    if beside is not None and beside != payload:
        raise _other(f"{RECEIPT_FILE} is not what was signed")
    return OverlaidMember(member, MappingMember({RECEIPT_FILE: payload}), frozenset({RECEIPT_FILE})), signers


def _other(message: str) -> DoesNotHold:
    return DoesNotHold(
        "E_ENVELOPE_OTHER",
        message,
        remedy=f"Sign the receipt anew, or put the signed one back: it is the payload of {ENVELOPE_FILE}.",
        place=Place(file=RECEIPT_FILE),
    )


def sign_receipt(member: Member, signers: Sequence[Signer]) -> tuple[Envelope, Examination]:
    """Return the member's receipt in an envelope, with the signatures present and new ones, and what it comes to.

    Only a valid receipt is signed: its checks and verdict are computed anew from the records. A contradicted or open
    verdict that is correctly stated is signed like any other. Signatures present are kept where they are over this very
    receipt, unchecked: whoever verifies checks them.

    Raises:
        Refused: ``E_RECEIPT_MISSING``; the code of a record that breaks a rule; ``E_ENVELOPE_MALFORMED`` for what lies
            in the place of an envelope.
        DoesNotHold: the receipt is invalid: its code; ``E_ENVELOPE_OTHER``: the envelope there holds another receipt.
    """
    payload = member.read(RECEIPT_FILE)
    if payload is None:
        raise Refused("E_RECEIPT_MISSING", f"the folder holds no {RECEIPT_FILE}", place=Place(file=RECEIPT_FILE))
    found = examine(member)
    if found.fault is not None:
        raise found.fault
    if found.code is not None:
        raise DoesNotHold(
            found.code,
            sentence(found.code),
            remedy="Only a valid receipt is signed; `troth receipt verify` tells more.",
            place=Place(file=RECEIPT_FILE),
        )
    present = read_envelope(member)
    if present is not None and present.payload != payload:
        raise _other(f"{ENVELOPE_FILE} holds another receipt than {RECEIPT_FILE}")
    return signed(payload, signers, present=present.signatures if present is not None else ()), found
