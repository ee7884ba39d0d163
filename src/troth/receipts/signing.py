"""A member's receipt in its envelope: signed only when it is valid, judged only as it was signed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from troth.core.errors import DoesNotHold, Place, Refused
from troth.core.notes import Signer
from troth.receipts.bundles import BUNDLE_FILE, Bundle, Vouched, found_in, parse_bundle
from troth.receipts.demands import Demand, Signers, settled
from troth.receipts.envelopes import ENVELOPE_FILE, Envelope, check_type, examine_signatures, parse_envelope, signed
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


def as_signed(
    member: Member,
    asked: Demand,
    data: bytes | None = None,
    bundles: Sequence[bytes] = (),
    vouch: Callable[[bytes], Vouched] | None = None,
) -> tuple[Member, Signers]:
    """Return the member with the signed payload as its receipt, once the signatures hold, and who signed.

    Keys are looked for in the envelope, identities in bundles; where both are asked for, either file may be missing,
    and all that trusted signatories signed must be the same. The records are bound by the receipt's digests. Cases and
    policies are not: whoever could swap them could at most make the checks come to something else than the signed
    receipt states, which makes it invalid.

    Args:
        member: the run's files.
        asked: whom the reader believes and how many of them must have signed.
        data: the bytes of an envelope that lies elsewhere; by default ``receipt.dsse.json`` of the member.
        bundles: the bytes of bundles that lie elsewhere; by default ``receipt.sigstore.json`` of the member.
        vouch: asks a trusted instance about the bytes of a bundle; needed where identities are asked for.

    Raises:
        Refused: ``E_ENVELOPE_MISSING``, ``E_ENVELOPE_MALFORMED``, ``E_ENVELOPE_ROLE``; ``E_BUNDLE_MISSING``,
            ``E_BUNDLE_MALFORMED``, ``E_BUNDLE_KIND``; what ``vouch`` raises.
        DoesNotHold: ``E_ENVELOPE_TYPE``, ``E_ENVELOPE_SIGNATURE``; ``E_ENVELOPE_OTHER`` when another receipt lies in
            the member, or trusted signatories signed different ones.
        NotEstablished: ``E_ENVELOPE_UNVERIFIED``, ``E_ENVELOPE_THRESHOLD``.
    """
    # Every type is settled before any signature is, and both before anything that was signed is read.
    envelope = read_envelope(member, data) if asked.keys else None
    if envelope is not None:
        check_type(envelope)
    held = read_bundles(member, bundles) if asked.identities else []
    if envelope is None and not held:
        raise _missing(asked)
    sources = [(envelope.payload, examine_signatures(envelope, asked.keys))] if envelope is not None else []
    if held:
        assert vouch is not None
        sources += [(one.envelope.payload, found_in(one, vouch(one.data), asked.identities)) for one in held]
    payload, signers = settled(sources, asked)
    try:
        beside = member.read(RECEIPT_FILE)
    except ReadFault as fault:
        raise _other(str(fault.message)) from None
    if beside is not None and beside != payload:
        raise _other(f"{RECEIPT_FILE} is not what was signed")
    return OverlaidMember(member, MappingMember({RECEIPT_FILE: payload}), frozenset({RECEIPT_FILE})), signers


def read_bundles(member: Member, given: Sequence[bytes] = ()) -> list[Bundle]:
    """Return a member's bundle, or those that the bytes are; none when there is none.

    Raises:
        Refused: ``E_BUNDLE_MALFORMED``, ``E_BUNDLE_KIND``; ``read_fault`` for what must not be read.
        DoesNotHold: ``E_ENVELOPE_TYPE``.
    """
    if not given:
        data = member.read(BUNDLE_FILE)
        given = () if data is None else (data,)
    return [parse_bundle(data) for data in given]


def _missing(asked: Demand) -> Refused:
    if asked.keys:
        code, file, option = "E_ENVELOPE_MISSING", ENVELOPE_FILE, "--envelope"
    else:
        code, file, option = "E_BUNDLE_MISSING", BUNDLE_FILE, "--bundle"
    return Refused(
        code,
        f"the folder holds no {file}",
        remedy=f"Nobody signed the receipt so, or the signature lies elsewhere: {option} FILE.",
        place=Place(file=file),
    )


def _other(message: str) -> DoesNotHold:
    return DoesNotHold(
        "E_ENVELOPE_OTHER",
        message,
        remedy="Sign the receipt anew, or put the signed one back: it is the payload of what was signed.",
        place=Place(file=RECEIPT_FILE),
    )


def valid_receipt(member: Member) -> tuple[bytes, Examination]:
    """Return the bytes of the member's receipt, which is to be signed, and what it comes to.

    Only a valid receipt is signed: its checks and verdict are computed anew from the records. A contradicted or open
    verdict that is correctly stated is signed like any other.

    Raises:
        Refused: ``E_RECEIPT_MISSING``; the code of a record that breaks a rule.
        DoesNotHold: the receipt is invalid: its code.
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
    return payload, found


def sign_receipt(member: Member, signers: Sequence[Signer]) -> tuple[Envelope, Examination]:
    """Return the member's receipt in an envelope, with the signatures present and new ones, and what it comes to.

    Signatures present are kept where they are over this very receipt, unchecked: whoever verifies checks them.

    Raises:
        Refused: as :func:`valid_receipt`; ``E_ENVELOPE_MALFORMED`` for what lies in the place of an envelope.
        DoesNotHold: as :func:`valid_receipt`; ``E_ENVELOPE_OTHER``: the envelope there holds another receipt.
    """
    payload, found = valid_receipt(member)
    present = read_envelope(member)
    if present is not None and present.payload != payload:
        raise _other(f"{ENVELOPE_FILE} holds another receipt than {RECEIPT_FILE}")
    return signed(payload, signers, present=present.signatures if present is not None else ()), found
