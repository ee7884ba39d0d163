"""Signed notes: text with signatures under it, and the keys that make and check them (C2SP signed-note).

A note is::

    text, one or more lines, each ended by a line feed
    (one empty line)
    — NAME BASE64(key id (4 bytes) || signature)
    ...

The text MAY hold empty lines: the last one in the note is what divides. A signature covers the text with its final
line feed. Two kinds of key are known here, each bound into the key id by its number:

======== ======================================================= =============================================
number   the key                                                 what it signs
======== ======================================================= =============================================
``0x01`` Ed25519, the writer of the text                         the text
``0x04`` Ed25519, a witness (C2SP tlog-cosignature v1)           ``cosignature/v1\\ntime SECONDS\\n`` + the text
======== ======================================================= =============================================

Signatures by unknown keys are counted and prove nothing; one bad signature by a known key spoils the whole note.
Where the specification leaves room the reader is the strict one: base64 in its one spelling, no second spelling of a
key. Only signing and checking load ``cryptography``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from troth.core.errors import DoesNotHold, NotEstablished, Refused

CODES: Final[dict[str, str]] = {
    "E_NOTE_MALFORMED": "The file is no signed note: text, an empty line, and signature lines.",
    "E_NOTE_SIGNATURE": "A signature by a key that is trusted does not fit the text: one of the two was changed.",
    "E_NOTE_UNVERIFIED": "No signature is by a key that is trusted, so nothing is known about who signed.",
    "E_KEY_MALFORMED": "The text is no key of the form NAME+ID+BASE64, or its id is not that of the key.",
    "E_KEY_AMBIGUOUS": "Two different trusted keys have the same name and id, so no signature could be told apart.",
    "E_KEY_KIND": "The key is of the other kind: a witness's key signs as a witness, any other only its own texts.",
}
"""The refusals of notes and keys, each with one sentence for people."""

ED25519: Final = 0x01
"""Kind of a key that signs the text as it stands."""

COSIGNATURE: Final = 0x04
"""Kind of a witness's key: its signature carries the time it was made."""

KINDS: Final[dict[int, str]] = {ED25519: "signer", COSIGNATURE: "witness"}

MAX_NOTE_BYTES: Final = 1 << 20
"""Longest note read. Notes here hold a few lines; one mebibyte is about what other implementations take."""

MAX_SIGNATURES: Final = 100
"""Most signature lines read; the specification asks for 16 at least."""

MAX_NAME: Final = 256
"""Longest name of a key, in characters."""

MAX_TIME: Final = (1 << 63) - 1
"""Latest time a cosignature may carry, in seconds since 1970."""

_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_TIME_BYTES: Final = 8
_ID_BYTES: Final = 4
_DASH: Final = "\u2014 "
_PRIVATE: Final = "PRIVATE+KEY+"
_CONTROL: Final = re.compile("[\x00-\x09\x0b-\x1f]")
_ID: Final = re.compile(r"[0-9a-f]{8}\Z")


class NoteMalformed(Refused):
    """The bytes are no signed note."""

    def __init__(self, message: str) -> None:
        super().__init__("E_NOTE_MALFORMED", message)


def _bad_key(message: str, remedy: str | None = None) -> Refused:
    return Refused("E_KEY_MALFORMED", message, remedy=remedy)


def is_key_name(name: str) -> bool:
    """Tell whether the text may name a key: not empty, no space of any kind, no plus, nothing a note cannot hold."""
    return (
        0 < len(name) <= MAX_NAME
        and "+" not in name
        and not any(char.isspace() or char < " " or "\ud800" <= char <= "\udfff" for char in name)
    )


def strict_base64(text: str) -> bytes | None:
    """Return the bytes of standard base64 in its one canonical spelling, ``None`` for anything else."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def key_id(name: str, kind: int, public: bytes) -> bytes:
    """Return the four bytes that name a key beside its name: SHA-256(name, LF, kind, public key), cut."""
    return hashlib.sha256(name.encode("utf-8") + b"\n" + bytes((kind,)) + public).digest()[:_ID_BYTES]


# Keys ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key under its name; ``kind`` is :data:`ED25519` or :data:`COSIGNATURE`, ``public`` has 32 bytes."""

    name: str
    kind: int
    public: bytes

    def __post_init__(self) -> None:
        if not is_key_name(self.name):
            raise _bad_key("the name of a key is text without spaces and plus signs")
        if self.kind not in KINDS or len(self.public) != _KEY_BYTES:
            raise _bad_key("the key is of no kind that is known here")

    @property
    def id(self) -> bytes:
        """Return the key id."""
        return key_id(self.name, self.kind, self.public)

    @property
    def is_witness(self) -> bool:
        """Tell whether the key makes cosignatures."""
        return self.kind == COSIGNATURE

    def __str__(self) -> str:
        """Return the form in which keys are handed on: ``NAME+ID+BASE64(kind || public key)``."""
        return f"{self.name}+{self.id.hex()}+{_base64(bytes((self.kind,)) + self.public)}"


def parse_verifier(text: str) -> VerifierKey:
    """Return the public key that ``NAME+ID+BASE64`` stands for.

    Raises:
        Refused: ``E_KEY_MALFORMED``.
    """
    if text.startswith(_PRIVATE):
        # Its content must not be repeated anywhere.
        raise _bad_key("this is a private key where a public one is asked for", "Never hand it on.")
    kind, material = _key_parts(text)
    name, written, _ = text.split("+", 2)
    key = VerifierKey(name, kind, material)
    if key.id.hex() != written:
        raise _bad_key(f"the key's id is {key.id.hex()}, not {written}", "Part of the key was changed or left out.")
    return key


def _key_parts(text: str) -> tuple[int, bytes]:
    name, _, rest = text.partition("+")
    written, _, encoded = rest.partition("+")
    data = strict_base64(encoded)
    if not is_key_name(name) or _ID.match(written) is None or not data:
        raise _bad_key("a key is NAME+ID+BASE64, the id being 8 lowercase hexadecimal digits")
    return data[0], data[1:]


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key under its name; ``seed`` is the 32 bytes of RFC 8032 and is never shown."""

    name: str
    kind: int
    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not is_key_name(self.name):
            raise _bad_key("the name of a key is text without spaces and plus signs")
        if self.kind not in KINDS or len(self.seed) != _KEY_BYTES:
            raise _bad_key("the private key is of no kind that is known here")

    @property
    def verifier(self) -> VerifierKey:
        """Return the public half."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return VerifierKey(
            self.name, self.kind, Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw()
        )

    def secret_text(self) -> str:
        """Return the form in which the private key is kept: ``PRIVATE+KEY+NAME+ID+BASE64(kind || seed)``."""
        secret = _base64(bytes((self.kind,)) + self.seed)
        return f"{_PRIVATE}{self.name}+{self.verifier.id.hex()}+{secret}"

    def sign(self, text: str, at: int = 0) -> Signature:
        """Return the signature of a text.

        Args:
            text: what a note may hold, its final line feed included.
            at: seconds since 1970, carried by a witness's signature and by no other.

        Raises:
            NoteMalformed: the text cannot stand in a note.
            ValueError: a time that no cosignature can carry.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        check_text(text)
        if not 0 <= at <= MAX_TIME:
            raise ValueError("a time is a number of seconds from 0 to 2^63 - 1")
        head = at.to_bytes(_TIME_BYTES, "big") if self.kind == COSIGNATURE else b""
        made = Ed25519PrivateKey.from_private_bytes(self.seed).sign(_message(self.kind, text, at))
        return Signature(self.name, self.verifier.id, head + made)


def parse_signer(text: str) -> Signer:
    """Return the private key that ``PRIVATE+KEY+NAME+ID+BASE64`` stands for.

    Raises:
        Refused: ``E_KEY_MALFORMED``; the message repeats nothing of the key.
    """
    if not text.startswith(_PRIVATE):
        raise _bad_key("a private key begins with PRIVATE+KEY+")
    rest = text.removeprefix(_PRIVATE)
    kind, seed = _key_parts(rest)
    name, written, _ = rest.split("+", 2)
    signer = Signer(name, kind, seed)
    if signer.verifier.id.hex() != written:
        raise _bad_key("the id of the private key is not that of its public half")
    return signer


# Notes ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line: who is said to have signed, with which key, and the bytes behind the key id."""

    name: str
    key_id: bytes
    data: bytes

    def line(self) -> str:
        """Return the line, with its line feed."""
        return f"{_DASH}{self.name} {_base64(self.key_id + self.data)}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """A well-formed note; that it is well formed says nothing about its signatures."""

    text: str
    signatures: tuple[Signature, ...]

    def encode(self) -> bytes:
        """Return the bytes of the note; for a parsed note without repeated lines these are the ones parsed."""
        return (self.text + "\n" + "".join(signature.line() for signature in self.signatures)).encode("utf-8")


@dataclass(frozen=True, slots=True)
class Verified:
    """A signature that holds: by which key, and for a witness when (seconds since 1970)."""

    key: VerifierKey
    time: int | None


@dataclass(frozen=True, slots=True)
class Examined:
    """What the signatures of a note amount to.

    ``verified`` hold, ``bad`` are by a known key and do not, ``unknown`` are by keys nobody named.
    """

    note: Note
    verified: tuple[Verified, ...]
    bad: tuple[Signature, ...]
    unknown: tuple[Signature, ...]

    def signers(self, kind: int | None = None) -> set[bytes]:
        """Return the public keys that signed, those of one kind or all: a key under two names is one signer."""
        return {one.key.public for one in self.verified if kind is None or one.key.kind == kind}


def check_text(text: str) -> None:
    """Refuse a text that cannot stand in a note.

    Raises:
        NoteMalformed: it does not end in a line feed, or holds a control character or half of a surrogate pair.
    """
    if not text.endswith("\n"):
        raise NoteMalformed("the text of a note ends with a line feed")
    found = _CONTROL.search(text)
    if found is not None:
        raise NoteMalformed(f"the text holds the control character U+{ord(found[0]):04X}")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise NoteMalformed("the text holds half of a surrogate pair") from None
    if size > MAX_NOTE_BYTES:
        raise NoteMalformed(f"more than {MAX_NOTE_BYTES} bytes")


def parse_note(data: bytes) -> Note:
    """Return the note that the bytes are; nothing is checked against a key.

    Raises:
        NoteMalformed: with the first rule broken.
    """
    if len(data) > MAX_NOTE_BYTES:
        raise NoteMalformed(f"more than {MAX_NOTE_BYTES} bytes")
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise NoteMalformed(f"byte {fault.start} is not UTF-8") from None
    cut = whole.rfind("\n\n")
    if cut < 0:
        raise NoteMalformed("no empty line divides the text from its signatures")
    text, below = whole[: cut + 1], whole[cut + 2 :]
    check_text(text)
    if not below:
        raise NoteMalformed("no signature stands below the text")
    if not below.endswith("\n"):
        raise NoteMalformed("the last signature line has no line feed")
    lines = below[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise NoteMalformed(f"more than {MAX_SIGNATURES} signatures")
    # A line that stands twice says nothing twice.
    return Note(text, tuple(dict.fromkeys(_signature(line) for line in lines)))


def _signature(line: str) -> Signature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    data = strict_base64(encoded)
    if not line.startswith(_DASH) or not space or not is_key_name(name) or data is None or len(data) <= _ID_BYTES:
        raise NoteMalformed("a signature line is an em dash, a name and base64, with one space between each")
    return Signature(name, data[:_ID_BYTES], data[_ID_BYTES:])


def examine(note: Note, keys: Iterable[VerifierKey]) -> Examined:
    """Check every signature for which a key is at hand.

    Raises:
        Refused: ``E_KEY_AMBIGUOUS``.
    """
    known: dict[tuple[str, bytes], VerifierKey] = {}
    for key in keys:
        if known.setdefault((key.name, key.id), key) != key:
            raise Refused("E_KEY_AMBIGUOUS", f"two keys are {key.name}+{key.id.hex()}", remedy="Name one of them.")
    verified: list[Verified] = []
    bad: list[Signature] = []
    unknown: list[Signature] = []
    for signature in note.signatures:
        found = known.get((signature.name, signature.key_id))
        if found is None:
            unknown.append(signature)
        elif (time := _time_if_holds(found, note.text, signature.data)) is None:
            bad.append(signature)
        else:
            verified.append(Verified(found, time if found.is_witness else None))
    return Examined(note, tuple(verified), tuple(bad), tuple(unknown))


def open_note(data: bytes, keys: Sequence[VerifierKey]) -> Examined:
    """Return a note that at least one of the keys signed and none of them failed for.

    Raises:
        NoteMalformed: it is no note.
        DoesNotHold: ``E_NOTE_SIGNATURE``, a signature by one of the keys is bad.
        NotEstablished: ``E_NOTE_UNVERIFIED``, none of the keys signed it.
    """
    examined = examine(parse_note(data), keys)
    refuse_bad(examined)
    if not examined.verified:
        raise NotEstablished(
            "E_NOTE_UNVERIFIED",
            f"none of its {len(examined.unknown)} signature(s) is by a key that is trusted",
            remedy="Name the key of whoever should have signed.",
        )
    return examined


def refuse_bad(examined: Examined) -> None:
    """Refuse a note that carries a bad signature by a known key.

    Raises:
        DoesNotHold: ``E_NOTE_SIGNATURE``.
    """
    if examined.bad:
        one = examined.bad[0]
        raise DoesNotHold(
            "E_NOTE_SIGNATURE",
            f"the signature by {one.name}+{one.key_id.hex()} does not fit the text",
            remedy="The text or the signature was changed after it was signed.",
        )


def sign_note(text: str, signers: Sequence[Signer], *, at: int = 0, present: Sequence[Signature] = ()) -> Note:
    """Return the text as a note: the signatures present, then new ones, each in the place of an older one by its key.

    Args:
        text: ends with a line feed.
        signers: who signs now, in this order.
        at: seconds since 1970, for witnesses.
        present: signatures the note has already.

    Raises:
        NoteMalformed: the text cannot stand in a note, or there would be too many signatures.
    """
    made = [signer.sign(text, at) for signer in signers]
    replaced = {(one.name, one.key_id) for one in made}
    kept = [one for one in present if (one.name, one.key_id) not in replaced]
    note = Note(text, tuple(dict.fromkeys((*kept, *made))))
    if not note.signatures or len(note.signatures) > MAX_SIGNATURES:
        raise NoteMalformed(f"a note has 1 to {MAX_SIGNATURES} signatures")
    parse_note(note.encode())  # what is written here is read everywhere
    return note


def _message(kind: int, text: str, at: int) -> bytes:
    head = f"cosignature/v1\ntime {at}\n" if kind == COSIGNATURE else ""
    return (head + text).encode("utf-8")


def _time_if_holds(key: VerifierKey, text: str, data: bytes) -> int | None:
    """Return the time of a signature that holds, 0 where its kind carries none; ``None`` when it does not hold."""
    at = 0
    if key.is_witness:
        at, data = int.from_bytes(data[:_TIME_BYTES], "big"), data[_TIME_BYTES:]
    if at > MAX_TIME or len(data) != _SIGNATURE_BYTES:
        return None
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(data, _message(key.kind, text, at))
    except (InvalidSignature, ValueError):
        return None
    return at
