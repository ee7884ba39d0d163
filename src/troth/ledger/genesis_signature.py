"""The signature beside a genesis key: a signed note over the key's digest (C2SP signed-note)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused, TrothError
from troth.core.notes import ED25519, VerifierKey, open_note, parse_note, parse_verifier
from troth.ledger.chain import Warning_
from troth.ledger.codes import WARNINGS

SUFFIX: Final = ".sig"
"""The signature's file is the key's name plus this."""

_TITLE: Final = "troth genesis key v1"


def signed_text(key: bytes) -> str:
    """Return the text that is signed: a title that no other note has, and the digest of the key's bytes."""
    return f"{_TITLE}\nsha256:{sha256_hex(key)}\n"


def check_signature(
    key: bytes | None, signature: bytes | None, signers: Sequence[str], file: str | None = None
) -> Warning_ | None:
    """Check the signature of a key against those who may sign it.

    Args:
        key: the key's bytes, ``None`` when there is no key.
        signature: the bytes of the note beside it, ``None`` when there is none.
        signers: public keys as ``NAME+ID+BASE64``; one of them must have signed, and none wrongly. With no signers
            nothing is asked.
        file: the key's file, for the place in a refusal.

    Returns:
        The warning ``genesis_unverified`` for a signature that nobody asked for.

    Raises:
        Refused: ``E_CONSTRAINT_VIOLATED`` with detail ``genesis_invalid``: with signers, a key or signature that is
            missing, or a signature that does not hold.
    """
    if not signers:
        if key is None or signature is None:
            return None
        return Warning_(None, None, "genesis_unverified", WARNINGS["genesis_unverified"])
    place = Place(file=f"{file}{SUFFIX}" if file is not None else None)
    if key is None:
        raise _invalid("there is no key, and the settings say who must have signed it", _RESTORE, place)
    if signature is None:
        raise _invalid("the key is not signed, and the settings say who must have signed it", _SIGN, place)
    try:
        note = parse_note(signature)
        if note.text != signed_text(key):
            raise _invalid("the signature is for another key", _SIGN, place)
        open_note(signature, _keys(signers))
    except TrothError as fault:
        if fault.detail == "genesis_invalid":
            raise
        raise _invalid(f"the key's signature does not hold: {fault.message}", _SIGN, place) from None
    return None


def _keys(signers: Sequence[str]) -> list[VerifierKey]:
    keys = [parse_verifier(text) for text in signers]
    for key in keys:
        if key.kind != ED25519:
            raise _invalid(f"{key.name} is a witness's key, which signs no genesis key", "Name a signer's key.", None)
    return keys


_SIGN: Final = "Have one of genesis_signers in config.yaml sign it: `troth genesis sign`."
_RESTORE: Final = "Put the key back, or take genesis_signers out of config.yaml."


def _invalid(message: str, remedy: str, place: Place | None) -> Refused:
    return Refused("E_CONSTRAINT_VIOLATED", message, remedy=remedy, place=place, detail="genesis_invalid")
