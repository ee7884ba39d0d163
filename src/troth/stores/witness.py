"""A witness: signs what continues the last checkpoint it signed of that origin, and nothing else.

For each of its keys a witness remembers, in this user's state folder, the last checkpoint it signed of every origin,
and by which keys that origin's own signer is known. What it is about to sign is on the disk before the signature is
given to anybody, so that no crash and no second process makes it sign a fork.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from troth.core.digests import sha256_hex
from troth.core.errors import DoesNotHold, NotEstablished, Place, Refused, TrothError
from troth.core.notes import COSIGNATURE, Note, Signer, VerifierKey, parse_verifier, sign_note
from troth.ledger.checkpoint import (
    Checkpoint,
    ConsistencyProof,
    SignedCheckpoint,
    fault_against,
    parse_proof,
    read_checkpoint,
    refuse_growth,
    trusted_checkpoint,
)
from troth.stores.checkpoints import load, measure, put, read_proof, refuse_faults
from troth.stores.durable import create_whole, os_fault, read_regular
from troth.stores.keys import PRIVATE_MODE, file_name, private_folder, state_folder
from troth.stores.lock import WriteLock
from troth.stores.protocol import LedgerStore, Progress, no_progress

STATE_LIMIT: Final = 1 << 22
"""Longest state file read, in bytes: two notes would fit."""

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Remembered:
    """The last checkpoint of an origin that a witness signed, as bytes and parsed, and the keys of its signer."""

    data: bytes
    checkpoint: Checkpoint
    keys: tuple[VerifierKey, ...]


@dataclass(frozen=True, slots=True)
class Cosigned:
    """A note with the witness's signature; ``before`` is the size of the checkpoint signed last, ``None`` for none."""

    note: Note
    checkpoint: Checkpoint
    time: int
    before: int | None


def witness_folder(key: VerifierKey) -> Path:
    """Return where a witness remembers what it signed.

    Raises:
        Refused: ``E_KEY_FOLDER``.
    """
    return state_folder() / "witness" / f"{file_name(key.name)[:120]}.{key.id.hex()}"


def cosign(
    file: Path,
    signer: Signer,
    *,
    keys: Sequence[VerifierKey],
    at: int,
    store: LedgerStore | None = None,
    proof: Path | None = None,
    progress: Progress = no_progress,
) -> Cosigned:
    """Sign a checkpoint as a witness.

    The steps: (1) the key is a witness's, and none of the others is; (2) the note is a checkpoint that one of the keys
    of its signer signed, those given now or those remembered; (3) a ledger that was given is sound and continues it;
    (4) it is no older than the last one signed of that origin, and no other of the same size; (5) a proof, or the
    ledger, shows that it continues that one; (6) it is remembered; (7) it is signed.

    Args:
        file: the checkpoint's file.
        signer: the witness's key.
        keys: of the ledger's signer; nothing asks for those remembered.
        at: seconds since 1970.
        store: the ledger, when the witness has it.
        proof: a consistency proof from the checkpoint signed last, otherwise.
        progress: told how far the verification has come.

    Raises:
        Refused: ``E_KEY_KIND``, ``E_CHECKPOINT_MALFORMED``, ``E_CHECKPOINT_OLDER``, ``E_PROOF_MALFORMED``.
        NotEstablished: ``E_NOTE_UNVERIFIED``, ``E_CHECKPOINT_UNPROVEN``.
        DoesNotHold: ``E_NOTE_SIGNATURE``, ``E_CHECKPOINT_FORK``, ``E_CHECKPOINT_MISMATCH``, ``E_PROOF_INVALID``.
        Busy: another process signs with that key.
    """
    if signer.kind != COSIGNATURE:  # (1)
        raise Refused("E_KEY_KIND", "this key is no witness's", remedy="Make one with `troth key new NAME --witness`.")
    if any(one.is_witness for one in keys):
        raise Refused("E_KEY_KIND", "a ledger's checkpoints are not made with a witness's key")
    key = signer.verifier
    folder = private_folder(witness_folder(key))
    with WriteLock(folder / ".lock"):
        unread = load(file)
        place = folder / f"{sha256_hex(unread.checkpoint.origin.encode('utf-8'))}.json"
        last = _remembered(place)
        trusted = tuple(keys) or (last.keys if last is not None else ())
        signed = _of_its_signer(unread, trusted, file)  # (2)
        wanted = signed.checkpoint
        roots: dict[int, bytes] = {}
        if store is not None:  # (3)
            measured = measure(store, [wanted.size, *([last.checkpoint.size] if last is not None else [])], progress)
            refuse_faults(measured.verification)
            roots = measured.roots
            fault = fault_against(wanted, measured.size, roots)
            if fault is not None:
                raise DoesNotHold(
                    "E_CHECKPOINT_MISMATCH",
                    f"the ledger does not continue the checkpoint: {fault.message}",
                    place=Place(file=str(file)),
                    detail=fault.fault,
                )
        if last is not None:
            try:
                _refuse_fork(last, wanted, roots, proof, trusted)  # (4), (5)
            except DoesNotHold as fork:
                if fork.code == "E_CHECKPOINT_FORK":
                    fork.remedy = f"Both checkpoints are kept: {_keep(folder, signed)} and {place}"
                raise
        note = sign_note(signed.examined.note.text, [signer], at=at, present=signed.examined.note.signatures)
        _remember(place, note, trusted)  # (6)
    return Cosigned(note, wanted, at, last.checkpoint.size if last is not None else None)  # (7)


def _of_its_signer(unread: SignedCheckpoint, keys: Sequence[VerifierKey], file: Path) -> SignedCheckpoint:
    if not keys:
        raise NotEstablished(
            "E_NOTE_UNVERIFIED",
            "this witness has signed nothing of that origin yet, so it must be told whose key makes its checkpoints",
            place=Place(file=str(file)),
            remedy="Name the key of the ledger's signer with --log-key.",
        )
    try:
        return trusted_checkpoint(unread.data, keys)
    except TrothError as fault:
        fault.place = fault.place or Place(file=str(file))
        raise


def _refuse_fork(
    last: Remembered,
    wanted: Checkpoint,
    roots: dict[int, bytes],
    proof: Path | None,
    keys: Sequence[VerifierKey],
) -> None:
    before = last.checkpoint
    if wanted.size < before.size:
        raise Refused(
            "E_CHECKPOINT_OLDER",
            f"it covers {wanted.size} rows, and this witness signed one of {before.size}",
            remedy="A witness vouches for the largest ledger it has seen; bring it a newer checkpoint.",
        )
    if wanted.size == before.size:
        if wanted.root != before.root:
            raise _fork(f"another checkpoint of {before.size} rows was signed before, with another root")
        return
    if roots:
        if roots[before.size] != before.root:
            raise _fork(f"the ledger does not continue the checkpoint of {before.size} rows that was signed before")
        return
    if before.size == 0:
        return  # every ledger continues an empty one
    if proof is None:
        raise NotEstablished(
            "E_CHECKPOINT_UNPROVEN",
            f"nothing shows that it continues the checkpoint of {before.size} rows that this witness signed",
            remedy="Give the ledger with --store, or with --proof what `troth checkpoint consistency` wrote.",
        )
    shown = parse_proof(read_proof(proof))
    if not isinstance(shown, ConsistencyProof):
        raise Refused("E_PROOF_MALFORMED", "the proof is of one row, not of growth", place=Place(file=str(proof)))
    # Only the node hashes are taken from it: from what, and to what, the witness knows itself.
    try:
        refuse_growth(before, wanted, shown.path)
    except DoesNotHold as fault:
        old = read_checkpoint(shown.old, keys).checkpoint
        if old.size == before.size and old.root != before.root:
            raise _fork(f"the proof begins with another checkpoint of {before.size} rows") from None
        fault.place = Place(file=str(proof))
        fault.remedy = f"The proof has to begin with the checkpoint of {before.size} rows."
        raise


def _fork(message: str) -> DoesNotHold:
    return DoesNotHold("E_CHECKPOINT_FORK", message)


def _keep(folder: Path, signed: SignedCheckpoint) -> Path:
    """Keep the checkpoint that does not fit: with the one that was signed, it shows anybody that its signer forked."""
    path = folder / f"fork-{sha256_hex(signed.data)[:16]}.checkpoint"
    try:
        create_whole(path, signed.data, PRIVATE_MODE)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, "the fork cannot be kept") from None
    return path


def last_signed(signer: VerifierKey, origin: str) -> Remembered | None:
    """Return the last checkpoint of an origin that a witness signed, ``None`` for none.

    Raises:
        Refused: its state cannot be read.
    """
    return _remembered(witness_folder(signer) / f"{sha256_hex(origin.encode('utf-8'))}.json")


def _remembered(path: Path) -> Remembered | None:
    try:
        path.lstat()
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, "the witness's state cannot be read") from None
    data = read_regular(path, STATE_LIMIT, "E_CHECKPOINT_MISSING", "the witness's state")
    try:
        return _parsed(data)
    except (ValueError, KeyError, TypeError, AttributeError, TrothError):
        # To take it for nothing would be to sign a fork.
        raise Refused(
            "E_UNREADABLE",
            "what this witness signed before cannot be made out",
            place=Place(file=str(path)),
            remedy="Restore the file; without it nothing more of that origin is signed.",
        ) from None


def _parsed(data: bytes) -> Remembered:
    stored: dict[str, Any] = orjson.loads(data)
    if stored["version"] != _VERSION:
        raise ValueError("another version")
    note = stored["checkpoint"].encode("utf-8")
    keys = tuple(parse_verifier(text) for text in stored["keys"])
    return Remembered(note, read_checkpoint(note, keys).checkpoint, keys)


def _remember(path: Path, note: Note, keys: Sequence[VerifierKey]) -> None:
    stored = {"version": _VERSION, "keys": [str(key) for key in keys], "checkpoint": note.encode().decode("utf-8")}
    put(path, orjson.dumps(stored, option=orjson.OPT_INDENT_2) + b"\n", PRIVATE_MODE)
