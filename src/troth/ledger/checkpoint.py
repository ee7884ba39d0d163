"""Checkpoints and proofs: what a ledger was at one size, and that a row or an older size is part of it.

A checkpoint is a signed note (:mod:`troth.core.notes`) whose text is that of C2SP tlog-checkpoint::

    ORIGIN            which ledger
    SIZE              how many rows
    BASE64            the Merkle root over their leaves (RFC 6962; :mod:`troth.ledger.leaves`)

A proof is a text file that needs nothing beside it but the keys that are trusted. That a row is in a ledger is a C2SP
tlog-proof whose ``extra`` is the row; that a ledger grew is the same form, with the older checkpoint in that place::

    c2sp.org/tlog-proof@v1        troth/tlog-consistency@v1
    extra BASE64(row)             old BASE64(the older checkpoint)
    index NUMBER                  BASE64(node hash)
    BASE64(node hash)             ...
    ...
    (an empty line)               (an empty line)
    the checkpoint, verbatim      the newer checkpoint, verbatim
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from troth.core.canonical import row_bytes
from troth.core.errors import DoesNotHold, NotEstablished, Refused
from troth.core.notes import (
    COSIGNATURE,
    KINDS,
    MAX_NOTE_BYTES,
    Examined,
    VerifierKey,
    check_text,
    examine,
    parse_note,
    refuse_bad,
    strict_base64,
)
from troth.core.strictjson import JsonFault
from troth.ledger.chain import Fault
from troth.ledger.hashing import row_hash
from troth.ledger.leaves import leaf_of_row
from troth.ledger.merkle import HASH_BYTES, MAX_PROOF, extends, holds_leaf
from troth.ledger.rows import MAX_ROW_BYTES, Row, parse_row, row_of

CODES: Final[dict[str, str]] = {
    "E_CHECKPOINT_MALFORMED": "The signed note is no checkpoint: an origin, a number of rows and a root, a line each.",
    "E_CHECKPOINT_MISMATCH": "The ledger is not the one that the checkpoint was made of: rows were changed, dropped, "
    "put in, moved or cut off.",
    "E_CHECKPOINT_FORK": "Two checkpoints of one origin cannot both be of a ledger that only grew.",
    "E_CHECKPOINT_OLDER": "A larger checkpoint of the same origin was signed already.",
    "E_CHECKPOINT_UNPROVEN": "Nothing shows that the checkpoint continues the one that was signed before.",
    "E_CHECKPOINT_SHORT": "The row stands behind the rows that the checkpoint covers; a new checkpoint would cover it.",
    "E_CHECKPOINT_MISSING": "There is no checkpoint yet, or none at that place.",
    "E_CHECKPOINT_EXISTS": "Another file stands where the new one should go; nothing is overwritten.",
    "E_QUORUM": "Fewer of the trusted witnesses signed the checkpoint than were asked for.",
    "E_PROOF_MALFORMED": "The file is no proof; the message says which line is not as it should be.",
    "E_PROOF_INVALID": "The proof does not lead to the root of the checkpoint: something in it was changed.",
}
"""The refusals of checkpoints and proofs, each with one sentence for people."""

MAX_SIZE: Final = (1 << 63) - 1
"""Most rows a checkpoint may speak of."""

MAX_ORIGIN: Final = 256
"""Longest origin written, in characters; the readers of others take no longer one."""

INCLUSION: Final = "c2sp.org/tlog-proof@v1"
CONSISTENCY: Final = "troth/tlog-consistency@v1"

MAX_PROOF_BYTES: Final = 2 * (MAX_ROW_BYTES + MAX_NOTE_BYTES)
"""Longest proof read: a row in base64, a checkpoint and the node hashes leave room to spare."""

_NUMBER: Final = re.compile(r"(?:0|[1-9][0-9]{0,18})\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What was signed: which ledger (``origin``), how many rows (``size``), and the Merkle ``root`` over them.

    ``extensions`` are further lines, opaque; none are written here.
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the text of the note."""
        lines = (self.origin, str(self.size), base64.b64encode(self.root).decode("ascii"), *self.extensions)
        return "".join(f"{line}\n" for line in lines)

    def as_json(self) -> dict[str, Any]:
        """Return the members; the root in hexadecimal."""
        return {"origin": self.origin, "size": self.size, "root": self.root.hex()}


def _malformed(message: str) -> Refused:
    return Refused("E_CHECKPOINT_MALFORMED", message)


def is_origin(text: str) -> bool:
    """Tell whether a ledger may be called that here: what C2SP recommends, so no spaces and no plus."""
    return (
        0 < len(text) <= MAX_ORIGIN
        and "+" not in text
        and text.isprintable()
        and not any(char.isspace() for char in text)
    )


def parse_checkpoint(text: str) -> Checkpoint:
    """Return what the text of a note says.

    Raises:
        Refused: ``E_CHECKPOINT_MALFORMED``.
    """
    check_text(text)
    lines = text[:-1].split("\n")
    if len(lines) < 3 or "" in lines:
        raise _malformed("the text has three lines or more, none of them empty")
    origin, size, encoded, *extensions = lines
    root = strict_base64(encoded)
    if _NUMBER.match(size) is None or int(size) > MAX_SIZE:
        raise _malformed("the second line is a number of rows in plain decimal digits")
    if root is None or len(root) != HASH_BYTES:
        raise _malformed(f"the third line is {HASH_BYTES} bytes in base64")
    return Checkpoint(origin, int(size), root, tuple(extensions))


# Signatures ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint, the bytes of its note, and what its signatures amount to."""

    checkpoint: Checkpoint
    data: bytes
    examined: Examined

    @property
    def witnesses(self) -> int:
        """Return how many of the trusted witnesses signed, a key under two names counted once."""
        return len(self.examined.signers(COSIGNATURE))

    def lack(self, quorum: int = 0) -> NotEstablished | None:
        """Return what is missing before the checkpoint can be believed, ``None`` when nothing is.

        Args:
            quorum: how many trusted witnesses must have signed, besides anybody else who is trusted.
        """
        examined = self.examined
        if not examined.verified:
            return NotEstablished(
                "E_NOTE_UNVERIFIED",
                f"none of the {len(examined.unknown)} signature(s) of the checkpoint is by a key that is trusted",
                remedy="Name the signer's key with --key; `troth key show` tells one's own.",
            )
        if self.witnesses < quorum:
            return NotEstablished(
                "E_QUORUM",
                f"{self.witnesses} trusted witness(es) signed the checkpoint, {quorum} were asked for",
                remedy="Name the witnesses' keys with --key, or let more of them sign it.",
            )
        return None

    def as_json(self) -> dict[str, Any]:
        """Return the checkpoint and who signed it."""
        return self.checkpoint.as_json() | {
            "signed_by": [
                {"name": one.key.name, "kind": KINDS[one.key.kind], "key": str(one.key), "time": one.time}
                for one in self.examined.verified
            ],
            "unknown": len(self.examined.unknown),
        }


def read_checkpoint(data: bytes, keys: Sequence[VerifierKey]) -> SignedCheckpoint:
    """Return a checkpoint whose signatures by the keys, if there are any, all hold.

    Raises:
        Refused: ``E_NOTE_MALFORMED``, ``E_CHECKPOINT_MALFORMED``, ``E_KEY_AMBIGUOUS``.
        DoesNotHold: ``E_NOTE_SIGNATURE``.
    """
    note = parse_note(data)
    checkpoint = parse_checkpoint(note.text)
    examined = examine(note, keys)
    refuse_bad(examined)
    return SignedCheckpoint(checkpoint, data, examined)


def trusted_checkpoint(data: bytes, keys: Sequence[VerifierKey], quorum: int = 0) -> SignedCheckpoint:
    """Return a checkpoint that is signed as asked for.

    Raises:
        NotEstablished: ``E_NOTE_UNVERIFIED``, ``E_QUORUM``.
        Refused, DoesNotHold: as :func:`read_checkpoint`.
    """
    signed = read_checkpoint(data, keys)
    lack = signed.lack(quorum)
    if lack is not None:
        raise lack
    return signed


def fault_against(checkpoint: Checkpoint, size: int, roots: Mapping[int, bytes]) -> Fault | None:
    """Return the fault of a ledger that does not continue the checkpoint, ``None`` when it does.

    Args:
        checkpoint: what was signed.
        size: rows of the ledger now.
        roots: the roots over its first rows, the checkpoint's size among them where there are so many.
    """
    if size < checkpoint.size:
        message = f"cut: {size} rows where the checkpoint covers {checkpoint.size}"
        return Fault(None, None, "checkpoint_ahead", message)
    if roots[checkpoint.size] != checkpoint.root:
        message = f"the first {checkpoint.size} rows are not those of the checkpoint: their root is "
        return Fault(None, None, "checkpoint_mismatch", message + roots[checkpoint.size].hex())
    return None


# Proofs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """That a row is in a ledger: the row as one line, its place from 0, the node hashes, the checkpoint's bytes."""

    row: bytes
    index: int
    path: tuple[bytes, ...]
    checkpoint: bytes

    def encode(self) -> bytes:
        """Return the file."""
        head = (INCLUSION, f"extra {_base64(self.row)}", f"index {self.index}")
        return _document(head, self.path, self.checkpoint)


@dataclass(frozen=True, slots=True)
class ConsistencyProof:
    """That a ledger grew: the older checkpoint's bytes, the node hashes, the newer checkpoint's bytes."""

    old: bytes
    path: tuple[bytes, ...]
    checkpoint: bytes

    def encode(self) -> bytes:
        """Return the file."""
        return _document((CONSISTENCY, f"old {_base64(self.old)}"), self.path, self.checkpoint)


@dataclass(frozen=True, slots=True)
class ProvenRow:
    """A row that a proof put into a ledger, its place there, and the checkpoint that says so."""

    row: Row
    index: int
    signed: SignedCheckpoint


@dataclass(frozen=True, slots=True)
class ProvenGrowth:
    """Two checkpoints of one ledger, the newer of which begins with the older."""

    old: SignedCheckpoint
    new: SignedCheckpoint


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _document(head: Sequence[str], path: Sequence[bytes], checkpoint: bytes) -> bytes:
    lines = [*head, *(_base64(node) for node in path), ""]
    return "".join(f"{line}\n" for line in lines).encode("ascii") + checkpoint


def _no_proof(message: str) -> Refused:
    return Refused("E_PROOF_MALFORMED", message)


def proven_form(value: dict[str, Any]) -> bytes:
    """Return the one spelling in which a row stands in a proof: its line, without members that its leaf does not hold.

    A row without a hash has no link either, so neither is given.
    """
    stored = value.get("hash")
    if stored is None or stored == "":
        value = {name: item for name, item in value.items() if name not in ("hash", "prevHash")}
    return row_bytes(value)


def parse_proof(data: bytes) -> InclusionProof | ConsistencyProof:
    """Return the proof that a file is; nothing in it is checked against anything.

    Raises:
        Refused: ``E_PROOF_MALFORMED``.
    """
    if len(data) > MAX_PROOF_BYTES:
        raise _no_proof(f"more than {MAX_PROOF_BYTES} bytes")
    above, divided, checkpoint = data.partition(b"\n\n")
    if not divided:
        raise _no_proof("no empty line divides the proof from its checkpoint")
    try:
        first, *lines = above.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise _no_proof("the lines above the checkpoint are ASCII") from None
    if first == INCLUSION:
        return _inclusion(lines, checkpoint)
    if first == CONSISTENCY:
        return _consistency(lines, checkpoint)
    raise _no_proof(f"the first line is neither {INCLUSION} nor {CONSISTENCY}")


def _inclusion(lines: list[str], checkpoint: bytes) -> InclusionProof:
    if len(lines) < 2:
        raise _no_proof("the second line is `extra` with the row, the third `index` with its place")
    row = strict_base64(lines[0].removeprefix("extra ")) if lines[0].startswith("extra ") else None
    if not row:
        raise _no_proof("the second line is `extra` and the row in base64")
    index = lines[1].removeprefix("index ")
    if not lines[1].startswith("index ") or _NUMBER.match(index) is None or int(index) > MAX_SIZE:
        raise _no_proof("the third line is `index` and a number in plain decimal digits")
    return InclusionProof(row, int(index), _path(lines[2:]), checkpoint)


def _consistency(lines: list[str], checkpoint: bytes) -> ConsistencyProof:
    old = strict_base64(lines[0].removeprefix("old ")) if lines and lines[0].startswith("old ") else None
    if not old:
        raise _no_proof("the second line is `old` and the older checkpoint in base64")
    return ConsistencyProof(old, _path(lines[1:]), checkpoint)


def _path(lines: Sequence[str]) -> tuple[bytes, ...]:
    if len(lines) > MAX_PROOF + 1:
        raise _no_proof(f"more than {MAX_PROOF + 1} node hashes")
    nodes = [strict_base64(line) for line in lines]
    if any(node is None or len(node) != HASH_BYTES for node in nodes):
        raise _no_proof(f"each further line is {HASH_BYTES} bytes in base64")
    return tuple(node for node in nodes if node is not None)


def check_inclusion(proof: InclusionProof, keys: Sequence[VerifierKey], quorum: int = 0) -> ProvenRow:
    """Return the row that a proof puts into a ledger.

    The steps: (1) the checkpoint is signed as asked for; (2) the row is a row, in the one spelling; (3) its hash is
    that of its content; (4) its leaf and the node hashes give the root of the checkpoint. The index and the number of
    node hashes are held to the checkpoint's size in (4).

    Args:
        proof: what was handed over.
        keys: who is trusted.
        quorum: how many of the trusted witnesses must have signed.

    Raises:
        Refused: ``E_PROOF_MALFORMED``, and as :func:`trusted_checkpoint`.
        NotEstablished: as :func:`trusted_checkpoint`.
        DoesNotHold: ``E_PROOF_INVALID``, ``E_NOTE_SIGNATURE``.
    """
    signed = trusted_checkpoint(proof.checkpoint, keys, quorum)  # (1)
    try:
        value = parse_row(proof.row)  # (2)
    except JsonFault as fault:
        raise _no_proof(f"what it proves is no row: {fault.message}") from None
    if proven_form(value) != proof.row:
        raise _no_proof("the row is not spelled as a proof spells it")
    row = row_of(1, value)
    if row.hashed and row_hash(value) != value["hash"]:  # (3)
        raise DoesNotHold("E_PROOF_INVALID", "the hash of the row is not that of its content")
    found = signed.checkpoint
    if not holds_leaf(leaf_of_row(value), proof.index, found.size, proof.path, found.root):  # (4)
        raise DoesNotHold("E_PROOF_INVALID", "the row and the node hashes do not give the root of the checkpoint")
    return ProvenRow(row, proof.index, signed)


def check_consistency(proof: ConsistencyProof, keys: Sequence[VerifierKey], quorum: int = 0) -> ProvenGrowth:
    """Return the two checkpoints that a proof ties together.

    The steps: (1) both are signed as asked for; (2) they are of one origin; (3) the node hashes give both roots.

    Raises:
        Refused, NotEstablished: as :func:`trusted_checkpoint`.
        DoesNotHold: ``E_PROOF_INVALID``, ``E_NOTE_SIGNATURE``.
    """
    old = trusted_checkpoint(proof.old, keys, quorum)  # (1)
    new = trusted_checkpoint(proof.checkpoint, keys, quorum)
    refuse_growth(old.checkpoint, new.checkpoint, proof.path)  # (2), (3)
    return ProvenGrowth(old, new)


def refuse_growth(old: Checkpoint, new: Checkpoint, path: Sequence[bytes]) -> None:
    """Refuse node hashes that do not show one checkpoint to continue another.

    Raises:
        DoesNotHold: ``E_PROOF_INVALID``.
    """
    if old.origin != new.origin:
        raise DoesNotHold("E_PROOF_INVALID", "the two checkpoints are of different origins")
    if not extends(old.size, old.root, new.size, new.root, path):
        raise DoesNotHold(
            "E_PROOF_INVALID", f"{new.size} rows are not shown to begin with the {old.size} of the older checkpoint"
        )
