"""DSSE envelopes around Statements: read strictly, signed and verified, and only then opened (DSSE 1.0, in-toto).

An envelope is one JSON object::

    {"payload": BASE64(Statement), "payloadType": "application/vnd.in-toto+json",
     "signatures": [{"keyid": "NAME+ID", "sig": BASE64(signature)}, ...]}

A signature covers the payload's bytes *and* their type (``DSSEv1 LEN TYPE LEN PAYLOAD``). The steps of a reader:

0. the bytes are a bounded envelope of strict JSON – ``E_ENVELOPE_MALFORMED``;
1. its type is the one asked for – ``E_ENVELOPE_TYPE``;
2. enough distinct trusted keys signed it, each in its role (:mod:`troth.receipts.demands`) –
   ``E_ENVELOPE_SIGNATURE``, ``E_ENVELOPE_UNVERIFIED``, ``E_ENVELOPE_THRESHOLD``;
3. only now is the payload handed out, to be read by the rules of what it is.

Keys, certificates and anything else that an envelope carries are passed over, as the specification asks of unknown
members: whom to believe is the reader's to say. A key id is a hint and decides nothing.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from troth.core.canonical import record_bytes
from troth.core.errors import DoesNotHold, Refused
from troth.core.notes import Signer, VerifierKey, strict_base64
from troth.core.strictjson import JsonFault, Limits, loads
from troth.receipts.demands import Demand, Signers, by_keyid, keyid_of, settled
from troth.receipts.member import MAX_BYTES

CODES: Final[dict[str, str]] = {
    "E_ENVELOPE_MISSING": "A signature was asked for and the folder holds no envelope (receipt.dsse.json).",
    "E_ENVELOPE_MALFORMED": "The file is no DSSE envelope: strict JSON with payload, payloadType and signatures, each "
    "in its one spelling and within the limits.",
    "E_ENVELOPE_TYPE": "The envelope's payload type is not that of an in-toto Statement; the type is signed as well, "
    "so one that was changed is no receipt any more. Its payload was not read.",
    "E_ENVELOPE_SIGNATURE": "A signature that names a trusted key or identity does not fit the payload and its type, "
    "or what a log says about it: one of them was changed. The payload was not read.",
    "E_ENVELOPE_UNVERIFIED": "No signature is by a key or an identity that is trusted, so nothing is known about who "
    "signed. A key or certificate that comes with the signature is not trusted. The payload was not read.",
    "E_ENVELOPE_THRESHOLD": "Fewer distinct trusted signers signed, in their role, than were asked for. The payload "
    "was not read.",
    "E_ENVELOPE_ROLE": "One public key, or one identity, is named both as a witness's and as an approver's, so its "
    "signature could count twice.",
    "E_ENVELOPE_OTHER": "What was signed is not the receipt that lies in the folder, or trusted signers signed "
    "different ones.",
}
"""The refusals of envelopes, each with one sentence for people."""

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
"""What a Statement's payload type is (in-toto Attestation Framework v1)."""

ENVELOPE_FILE: Final = "receipt.dsse.json"
"""Where a receipt's envelope lies in a member folder."""

MAX_ENVELOPE_BYTES: Final = MAX_BYTES
"""Longest envelope read, in bytes: a reader's limit for any file; its payload is at most three quarters of that."""

MAX_SIGNATURES: Final = 64
"""Most signatures read; each costs a verification for every key that might have made it."""

MAX_KEYID: Final = 512
"""Longest key id kept, in characters."""

MAX_TYPE: Final = 256
"""Longest payload type, in characters."""

SIGNATURE_BYTES: Final = 2048
"""Longest signature kept, in bytes: signatures of other algorithms are read, though not verified here."""

MAX_WORK: Final = 1 << 30
"""Most bytes hashed over all tries of a signature with a key: some seconds, whoever wrote the envelope."""

_LIMITS: Final = Limits(max_bytes=MAX_ENVELOPE_BYTES, max_depth=16, refuse_overflow=False)
_ED25519_BYTES: Final = 64
_TYPE: Final = re.compile(r"[!-~]+\Z")

# Reading -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EnvelopeSignature:
    """One signature: the hint which key made it (empty when none is given), and its bytes."""

    keyid: str
    sig: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A well-formed envelope. Nothing is known about its payload, which no caller reads before :func:`opened`."""

    payload: bytes
    payload_type: str
    signatures: tuple[EnvelopeSignature, ...]

    def encode(self) -> bytes:
        """Return the bytes of the envelope, in standard base64."""
        return record_bytes(
            {
                "payload": _base64(self.payload),
                "payloadType": self.payload_type,
                "signatures": [{"keyid": one.keyid, "sig": _base64(one.sig)} for one in self.signatures],
            }
        )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _malformed(message: str) -> Refused:
    return Refused("E_ENVELOPE_MALFORMED", message)


def envelope_base64(text: object) -> bytes | None:
    """Return the bytes of base64 in the standard or the URL-safe alphabet, padded and in its one spelling.

    DSSE asks readers to take either alphabet; a mixture of both, white space, missing padding and stray bits at the
    end are second spellings of the same bytes and are ``None``.
    """
    if type(text) is not str:
        return None
    if "-" in text or "_" in text:
        if "+" in text or "/" in text:
            return None
        text = text.replace("-", "+").replace("_", "/")
    return strict_base64(text)


def parse_envelope(data: bytes) -> Envelope:
    """Return the envelope that the bytes are (step 0); the payload is decoded from base64 and not looked at.

    Members that are not known are passed over, as DSSE asks; a repeated one, at any depth, is refused.

    Raises:
        Refused: ``E_ENVELOPE_MALFORMED`` with the first rule broken.
    """
    try:
        return envelope_of(loads(data, _LIMITS))
    except JsonFault as fault:
        raise _malformed(fault.message) from None


def envelope_of(value: Any) -> Envelope:
    """Return the envelope that a JSON value is, as :func:`parse_envelope` does with its bytes.

    Raises:
        Refused: ``E_ENVELOPE_MALFORMED`` with the first rule broken.
    """
    if type(value) is not dict:
        raise _malformed("an envelope is a JSON object")
    missing = [name for name in ("payload", "payloadType", "signatures") if name not in value]
    if missing:
        raise _malformed(f"the member {missing[0]} is missing")
    kind = value["payloadType"]
    if type(kind) is not str or len(kind) > MAX_TYPE or _TYPE.match(kind) is None:
        raise _malformed(f"payloadType is 1 to {MAX_TYPE} visible ASCII characters")
    payload = envelope_base64(value["payload"])
    if payload is None:
        raise _malformed("payload is not base64 in its one spelling")
    entries = value["signatures"]
    if type(entries) is not list or not 0 < len(entries) <= MAX_SIGNATURES:
        raise _malformed(f"signatures is an array of 1 to {MAX_SIGNATURES}")
    return Envelope(payload, kind, tuple(_signature(entry) for entry in entries))


def _signature(entry: Any) -> EnvelopeSignature:
    if type(entry) is not dict or "sig" not in entry:
        raise _malformed("a signature is an object with the member sig")
    # An unset key id is the same as an empty one (DSSE, envelope).
    keyid = entry.get("keyid", "")
    if type(keyid) is not str or len(keyid) > MAX_KEYID:
        raise _malformed(f"keyid is text of at most {MAX_KEYID} characters")
    sig = envelope_base64(entry["sig"])
    if not sig or len(sig) > SIGNATURE_BYTES:
        raise _malformed(f"sig is base64, in its one spelling, of 1 to {SIGNATURE_BYTES} bytes")
    return EnvelopeSignature(keyid, sig)


# Verifying -----------------------------------------------------------------------------------------------------------


def signing_bytes(envelope: Envelope) -> bytes:
    """Return what the signatures cover: the payload under its type, in DSSE's pre-authentication encoding."""
    from securesystemslib.dsse import Envelope as Dsse

    encoded: bytes = Dsse(envelope.payload, envelope.payload_type, {}).pae()
    return encoded


def examine_signatures(envelope: Envelope, keys: Iterable[VerifierKey]) -> Signers:
    """Try every signature with every trusted key that could have made it.

    A signature whose key id is that of a trusted key is tried with that key alone; one without a known key id with all
    of them, since a key id is a hint.

    Raises:
        Refused: ``E_ENVELOPE_ROLE``; ``E_USAGE`` for more than 256 keys; ``E_ENVELOPE_MALFORMED`` for more signatures
            that name no trusted key than can be tried over a payload of this size.
    """
    from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError
    from securesystemslib.signer import Signature, SSlibKey  # type: ignore[attr-defined]  # its stubs name no exports

    trusted = by_keyid(keys)
    message = signing_bytes(envelope)
    signatures = dict.fromkeys(envelope.signatures)
    tries = sum(1 if signature.keyid in trusted else len(trusted) for signature in signatures)
    if tries * len(message) > MAX_WORK:
        raise _malformed("too many signatures by unknown keys for a payload of this size")
    made = {
        keyid: SSlibKey(keyid, "ed25519", "ed25519", {"public": key.public.hex()}) for keyid, key in trusted.items()
    }

    def fits(keyid: str, sig: bytes) -> bool:
        if len(sig) != _ED25519_BYTES:
            return False
        try:
            made[keyid].verify_signature(Signature(keyid, sig.hex()), message)
        except (UnverifiedSignatureError, VerificationError):
            return False
        return True

    verified: dict[bytes, VerifierKey] = {}
    bad: list[str] = []
    unknown = 0
    for signature in signatures:
        named = [signature.keyid] if signature.keyid in trusted else list(trusted)
        hit = next((keyid for keyid in named if fits(keyid, signature.sig)), None)
        if hit is not None:
            verified.setdefault(trusted[hit].public, trusted[hit])
        elif signature.keyid in trusted:
            bad.append(signature.keyid)
        else:
            unknown += 1
    return Signers(tuple(verified.values()), tuple(bad), unknown)


def check_type(envelope: Envelope, payload_type: str = PAYLOAD_TYPE) -> None:
    """Refuse an envelope of another type (step 1), before anything else: what a payload means depends on it.

    Raises:
        DoesNotHold: ``E_ENVELOPE_TYPE``.
    """
    if envelope.payload_type != payload_type:
        raise DoesNotHold(
            "E_ENVELOPE_TYPE",
            f"the envelope says that its payload is {envelope.payload_type}, not {payload_type}",
            remedy="It is not what was asked for, or somebody changed the type.",
        )


def opened(envelope: Envelope, asked: Demand, payload_type: str = PAYLOAD_TYPE) -> tuple[bytes, Signers]:
    """Return the payload, once its type and enough signatures of keys hold (steps 1 and 2), and who signed.

    Raises:
        DoesNotHold: ``E_ENVELOPE_TYPE``, ``E_ENVELOPE_SIGNATURE``.
        NotEstablished: ``E_ENVELOPE_UNVERIFIED``, ``E_ENVELOPE_THRESHOLD``.
        Refused: ``E_ENVELOPE_ROLE``.
    """
    check_type(envelope, payload_type)  # (1)
    return settled([(envelope.payload, examine_signatures(envelope, asked.keys))], asked)  # (2), (3)


# Signing -------------------------------------------------------------------------------------------------------------


def signed(
    payload: bytes,
    signers: Sequence[Signer],
    *,
    payload_type: str = PAYLOAD_TYPE,
    present: Sequence[EnvelopeSignature] = (),
) -> Envelope:
    """Return a payload in an envelope, signed by each of the keys.

    Args:
        payload: the very bytes that are signed.
        signers: who signs now, in this order.
        payload_type: what the payload is.
        present: signatures the envelope has already; one of the same key is replaced.

    Raises:
        Refused: ``E_ENVELOPE_MALFORMED``: too many signatures, or too large a payload, for any reader to take.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]  # as above

    message = signing_bytes(Envelope(payload, payload_type, ()))
    made: dict[str, EnvelopeSignature] = {}
    for signer in signers:
        public = signer.verifier
        key = SSlibKey(keyid_of(public), "ed25519", "ed25519", {"public": public.public.hex()})
        signature = CryptoSigner(Ed25519PrivateKey.from_private_bytes(signer.seed), key).sign(message)
        made[key.keyid] = EnvelopeSignature(key.keyid, bytes.fromhex(signature.signature))
    kept: Mapping[EnvelopeSignature, None] = dict.fromkeys(one for one in present if one.keyid not in made)
    envelope = Envelope(payload, payload_type, (*kept, *made.values()))
    parse_envelope(envelope.encode())  # what is written here is read everywhere
    return envelope
