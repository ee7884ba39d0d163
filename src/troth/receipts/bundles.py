"""Sigstore bundles around Statements: read strictly, their type checked, and only believed as somebody vouched.

A bundle is one JSON object: a DSSE envelope with one signature, the certificate by which it is checked, and what a
transparency log said about both::

    {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
     "dsseEnvelope": {...},
     "verificationMaterial": {"certificate": {...}, "tlogEntries": [{...}], "timestampVerificationData": {...}}}

The steps of a reader:

0. the bytes are a bounded bundle of strict JSON – ``E_BUNDLE_MALFORMED``; its log entry is of a kind that is read
   here – ``E_BUNDLE_KIND``;
1. the envelope's type is that of a Statement – ``E_ENVELOPE_TYPE``;
2. a trusted instance vouches for the certificate, the log and the signature: the caller's to find out
   (:class:`Vouched`); then the certificate's identity is one that the reader named, letter for letter;
3. only now is the payload handed out.

Nothing here reads a certificate or a clock: :mod:`troth.stores.keyless` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from troth.core.errors import Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.receipts.demands import Identity, Signers
from troth.receipts.envelopes import MAX_ENVELOPE_BYTES, Envelope, check_type, envelope_of

CODES: Final[dict[str, str]] = {
    "E_BUNDLE_MISSING": "An identity's signature was asked for and the folder holds no bundle (receipt.sigstore.json).",
    "E_BUNDLE_MALFORMED": "The file is no sigstore bundle around a Statement: strict JSON with one signature, one "
    "certificate and one log entry, each within the limits.",
    "E_BUNDLE_KIND": "The log entry of the bundle is of a kind that is not read here; dsse 0.0.1 and hashedrekord "
    "0.0.2 are.",
    "E_BUNDLE_EXISTS": "A bundle lies there already. It may be another signer's, so it is not written over.",
    "E_IDENTITY_MALFORMED": "An identity or its issuer is no visible ASCII text, or the list of them is not written "
    "as it has to be.",
}
"""The refusals of bundles, each with one sentence for people."""

BUNDLE_FILE: Final = "receipt.sigstore.json"
"""Where a receipt's bundle lies in a member folder."""

MAX_BUNDLE_BYTES: Final = MAX_ENVELOPE_BYTES
"""Longest bundle read, in bytes."""

MAX_REASON: Final = 500
"""Longest reason kept why a bundle was not taken, in characters: it may repeat what stands in the bundle."""

_MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle"
_KINDS: Final = frozenset({("dsse", "0.0.1"), ("hashedrekord", "0.0.2")})
_LIMITS: Final = Limits(max_bytes=MAX_BUNDLE_BYTES, max_depth=16, refuse_overflow=False)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A well-formed bundle: its very bytes and the envelope in it. Nothing is known yet about who signed."""

    data: bytes
    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Vouched:
    """What a trusted instance says about a bundle.

    ``name`` and ``issuer`` are those of the certificate once a trusted authority vouches for it, else ``None``;
    ``fits`` whether signature, log and times hold as well; ``reason`` why not. ``signed`` is the type and the payload
    that the signature was checked over.
    """

    name: str | None
    issuer: str | None
    fits: bool
    reason: str = ""
    signed: tuple[str, bytes] | None = None


def parse_bundle(data: bytes) -> Bundle:
    """Return the bundle that the bytes are (steps 0 and 1); its payload is decoded from base64 and not looked at.

    Raises:
        Refused: ``E_BUNDLE_MALFORMED`` with the first rule broken, ``E_BUNDLE_KIND``.
        DoesNotHold: ``E_ENVELOPE_TYPE``.
    """
    try:
        value = loads(data, _LIMITS)
    except JsonFault as fault:
        raise _malformed(fault.message) from None
    if type(value) is not dict:
        raise _malformed("a bundle is a JSON object")
    media = value.get("mediaType")
    if type(media) is not str or not media.startswith(_MEDIA_TYPE):
        raise _malformed(f"mediaType is not one of {_MEDIA_TYPE}")
    if "dsseEnvelope" not in value:
        raise _malformed("it holds no DSSE envelope: it may sign a file, but no Statement")
    try:
        envelope = envelope_of(value["dsseEnvelope"])
    except Refused as fault:
        raise _malformed(fault.message) from None
    check_type(envelope)
    if len(envelope.signatures) != 1:
        raise _malformed("a bundle's envelope holds exactly one signature")
    if _kind(value) not in _KINDS:
        raise Refused(
            "E_BUNDLE_KIND",
            "the log entry is of a kind that is not read here",
            remedy="dsse 0.0.1 and hashedrekord 0.0.2 are; `troth receipt sign --sigstore` makes one of them.",
        )
    return Bundle(data, envelope)


def _kind(value: dict[str, Any]) -> tuple[Any, Any]:
    material = value.get("verificationMaterial")
    entries = material.get("tlogEntries") if type(material) is dict else None
    if type(entries) is not list or len(entries) != 1 or type(entries[0]) is not dict:
        raise _malformed("a bundle holds one log entry")
    kind = entries[0].get("kindVersion")
    names = (kind.get("kind"), kind.get("version")) if type(kind) is dict else (None, None)
    if any(type(name) is not str for name in names):
        raise _malformed("the log entry has no kind")
    return names


def _malformed(message: str) -> Refused:
    return Refused("E_BUNDLE_MALFORMED", message)


def found_in(bundle: Bundle, said: Vouched, trusted: Sequence[Identity]) -> Signers:
    """Return what a bundle's signature amounts to for a reader (step 2).

    It is *bad* when an authority vouches that a trusted identity held the certificate, and the rest does not fit; it
    is *unknown* when nobody vouches, or for somebody else. Identities are compared letter for letter.

    Raises:
        Refused: ``E_BUNDLE_MALFORMED``: the signature was checked over something else than what stands here.
    """
    envelope = bundle.envelope
    if said.fits and said.signed != (envelope.payload_type, envelope.payload):
        raise _malformed("it can be read in two ways")
    who = next((one for one in trusted if (one.name, one.issuer) == (said.name, said.issuer)), None)
    if who is not None:
        if said.fits:
            return Signers((who,))
        return Signers((), (str(who),), 0, _reasons(said.reason))
    if said.name is None:
        return Signers((), (), 1, _reasons(said.reason))
    return Signers((), (), 1, _reasons(f"signed by {said.name}, for whom {said.issuer or 'nobody'} vouched"))


def _reasons(reason: str) -> tuple[str, ...]:
    return (reason[:MAX_REASON],) if reason else ()
