"""Making checkpoints and proofs of a ledger, and holding a ledger to checkpoints that were made before.

Everything is read from the rows themselves, verified from the first one on, while their leaves pass by; nothing about
a tree is ever stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from troth.core.errors import DoesNotHold, Place, Refused, TrothError
from troth.core.notes import (
    ED25519,
    MAX_NOTE_BYTES,
    Signer,
    VerifierKey,
    parse_note,
    parse_verifier,
    sign_note,
)
from troth.ledger.chain import Verification
from troth.ledger.checkpoint import (
    MAX_PROOF_BYTES,
    Checkpoint,
    ConsistencyProof,
    InclusionProof,
    SignedCheckpoint,
    fault_against,
    is_origin,
    proven_form,
    read_checkpoint,
    refuse_growth,
)
from troth.ledger.leaves import leaf_of_row
from troth.ledger.merkle import Frontier, RangeRoots, consistency_ranges, holds_leaf, inclusion_ranges
from troth.stores.durable import FILE_MODE, create_whole, os_fault, read_regular, replace_whole, sync_folder
from troth.stores.protocol import LedgerStore, Progress, no_progress
from troth.stores.requests import resolve

FOLDER: Final = "checkpoints"
"""Folder in ``.mentu`` for the checkpoints of that ledger."""

SUFFIX: Final = ".checkpoint"
PROOF_SUFFIX: Final = ".tlog-proof"

KEYS_SETTING: Final = "checkpoint_keys"
ORIGIN_SETTING: Final = "checkpoint_origin"


def read_note(path: Path) -> bytes:
    """Return the bytes of a checkpoint's file.

    Raises:
        Refused: ``E_CHECKPOINT_MISSING``, ``E_NOT_REGULAR``, ``E_TOO_LARGE``, ``E_UNREADABLE``.
    """
    return read_regular(path, MAX_NOTE_BYTES, "E_CHECKPOINT_MISSING", "the checkpoint")


def read_proof(path: Path) -> bytes:
    """Return the bytes of a proof's file.

    Raises:
        Refused: ``E_CHECKPOINT_MISSING``, ``E_NOT_REGULAR``, ``E_TOO_LARGE``, ``E_UNREADABLE``.
    """
    return read_regular(path, MAX_PROOF_BYTES, "E_CHECKPOINT_MISSING", "the proof")


def load(path: Path, keys: Sequence[VerifierKey] = ()) -> SignedCheckpoint:
    """Return the checkpoint in a file, its signatures by the keys checked.

    Raises:
        Refused, DoesNotHold: as :func:`troth.ledger.checkpoint.read_checkpoint`, with the file's name.
    """
    data = read_note(path)
    try:
        return read_checkpoint(data, keys)
    except TrothError as fault:
        fault.place = fault.place or Place(file=str(path))
        raise


def trusted_keys(written: Sequence[str], store: LedgerStore | None = None) -> list[VerifierKey]:
    """Return the keys named on the command line, else those of the setting ``checkpoint_keys``, each once.

    The settings belong to whoever owns the ledger, so they count only where nobody was named.

    Raises:
        Refused: ``E_KEY_MALFORMED``, ``E_KEY_UNKNOWN``, ``E_CONFIG``.
    """
    from troth.stores.keys import verifier_keys

    configured = store.config.other.get(KEYS_SETTING) if store is not None and not written else None
    if configured is None:
        return list(dict.fromkeys(key for word in written for key in verifier_keys(word)))
    if not isinstance(configured, list) or not all(isinstance(word, str) for word in configured):
        raise _setting_fault(store, KEYS_SETTING, "is a list of keys, each NAME+ID+BASE64")
    return list(dict.fromkeys(parse_verifier(word) for word in configured))


def _setting_fault(store: LedgerStore | None, name: str, says: str) -> Refused:
    file = str(store.space.config_file) if store is not None and store.space is not None else None
    return Refused("E_CONFIG", f"`{name}` {says}", place=Place(file=file, path=f"$.{name}"))


def origin_of(store: LedgerStore, named: str | None = None) -> str:
    """Return what the ledger is called in its checkpoints.

    That is what was named, else the setting ``checkpoint_origin``, else the name of the workspace.

    Raises:
        Refused: ``E_CONFIG``, ``E_USAGE``.
    """
    if named is None:
        configured = store.config.other.get(ORIGIN_SETTING)
        if configured is not None:
            if not isinstance(configured, str) or not is_origin(configured):
                raise _setting_fault(store, ORIGIN_SETTING, "is text of at most 256 characters, no space, no plus")
            return configured
        named = store.workspace
    if named is None:
        raise Refused(
            "E_USAGE",
            "nothing says what this ledger is called: it lies in no workspace",
            remedy="Name it with --origin; a name such as example.com/ledger is best.",
        )
    if not is_origin(named):
        raise Refused(
            "E_USAGE",
            "an origin is text of at most 256 printable characters without spaces and plus signs",
            remedy="Name the ledger's origin with --origin; a name such as example.com/ledger is best.",
        )
    return named


# Measuring -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """A verified pass over a ledger: how many rows, the root over them all, and over the first so and so many."""

    verification: Verification
    size: int
    root: bytes
    roots: dict[int, bytes]


def measure(store: LedgerStore, sizes: Iterable[int] = (), progress: Progress = no_progress) -> Measured:
    """Verify the ledger and return its roots.

    Args:
        store: the ledger.
        sizes: at which the root is wanted too.
        progress: told how far the verification has come.

    Raises:
        Refused: the ledger cannot be read.
    """
    frontier = Frontier(sizes)
    found = store.verify(progress=progress, leaves=frontier.extend)
    return Measured(found, frontier.size, frontier.root(), frontier.roots)


def refuse_faults(found: Verification) -> None:
    """Refuse a ledger that does not verify.

    Raises:
        DoesNotHold: ``E_CHAIN_BROKEN``.
    """
    if not found.ok:
        first = found.faults[0]
        raise DoesNotHold(
            "E_CHAIN_BROKEN",
            f"the ledger does not verify: {len(found.faults)} fault(s), the first is {first.fault}",
            place=Place(line=first.line),
            remedy="`troth verify` lists them all.",
        )


class Anchors:
    """Checkpoints that a ledger is held to while it is verified.

    ``take`` is given to :meth:`LedgerStore.verify`; :meth:`judge` then adds the faults.
    """

    def __init__(self, checkpoints: Sequence[tuple[Path, SignedCheckpoint]], quorum: int = 0) -> None:
        self.checkpoints = tuple(checkpoints)
        self.quorum = quorum
        self._frontier = Frontier(signed.checkpoint.size for _, signed in checkpoints)
        self.take: Callable[[list[bytes]], None] = self._frontier.extend

    @classmethod
    def read(cls, files: Iterable[Path], keys: Sequence[VerifierKey], quorum: int = 0) -> Anchors:
        """Read the files.

        Raises:
            Refused, DoesNotHold: as :func:`load`.
        """
        return cls([(path, load(path, keys)) for path in files], quorum)

    def judge(self, found: Verification) -> Verification:
        """Return what was found with a fault for each checkpoint that the ledger does not continue."""
        frontier = self._frontier
        faults = [
            fault
            for _, signed in self.checkpoints
            if (fault := fault_against(signed.checkpoint, frontier.size, frontier.roots)) is not None
        ]
        return replace(found, faults=(*found.faults, *faults)) if faults else found

    @property
    def established(self) -> bool:
        """Tell whether every checkpoint is signed as asked for."""
        return all(signed.lack(self.quorum) is None for _, signed in self.checkpoints)

    @property
    def anchored(self) -> bool:
        """Tell whether some of the rows are covered by a checkpoint that is signed as asked for."""
        return self.established and any(signed.checkpoint.size for _, signed in self.checkpoints)

    def as_json(self) -> list[dict[str, Any]]:
        """Return for each checkpoint what it says, who signed it, and whether the ledger continues it."""
        answers = []
        for path, signed in self.checkpoints:
            lack = signed.lack(self.quorum)
            answers.append(
                {
                    "file": str(path),
                    **signed.as_json(),
                    "extends": fault_against(signed.checkpoint, self._frontier.size, self._frontier.roots) is None,
                    "established": lack is None,
                    "lacks": None if lack is None else lack.message,
                }
            )
        return answers

    @property
    def size(self) -> int:
        """Return how many rows passed by."""
        return self._frontier.size


# Making --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Made:
    """A checkpoint, where it lies, and whether its file was written now."""

    signed: SignedCheckpoint
    path: Path
    created: bool


def folder_of(store: LedgerStore) -> Path | None:
    """Return the folder of the ledger's own checkpoints, ``None`` for a ledger without a workspace."""
    return store.space.folder / FOLDER if store.space is not None else None


def own_checkpoints(store: LedgerStore) -> list[tuple[Path, Checkpoint]]:
    """Return the checkpoints in the workspace, the smallest first; their signatures are not looked at.

    Raises:
        Refused: a file there is no checkpoint.
    """
    folder = folder_of(store)
    if folder is None or not folder.is_dir():
        return []
    found = [(path, load(path).checkpoint) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    return sorted(found, key=lambda one: one[1].size)


def create(
    store: LedgerStore,
    signer: Signer,
    *,
    origin: str | None = None,
    out: Path | None = None,
    progress: Progress = no_progress,
) -> Made:
    """Sign what the ledger is now, unless it does not continue every checkpoint in the workspace.

    Args:
        store: the ledger.
        signer: whose key signs.
        origin: what the ledger is called; see :func:`origin_of`.
        out: the file to write instead of one in the workspace.
        progress: told how far the verification has come.

    Raises:
        Refused: ``E_KEY_KIND`` for a witness's key, ``E_CHECKPOINT_EXISTS``, ``E_USAGE``.
        DoesNotHold: ``E_CHAIN_BROKEN``, ``E_CHECKPOINT_FORK``.
    """
    if signer.kind != ED25519:
        raise Refused("E_KEY_KIND", "a witness's key makes no checkpoint", remedy="Make a key with `troth key new`.")
    name = origin_of(store, origin)
    folder = folder_of(store)
    if out is None and folder is None:
        raise Refused("E_USAGE", "this ledger lies in no workspace", remedy="Name the file to write with -o.")
    before = [(path, one) for path, one in own_checkpoints(store) if one.origin == name]
    measured = measure(store, (one.size for _, one in before), progress)
    refuse_faults(measured.verification)
    for path, one in before:
        fault = fault_against(one, measured.size, measured.roots)
        if fault is not None:
            raise DoesNotHold(
                "E_CHECKPOINT_FORK",
                f"the ledger does not continue a checkpoint made before: {fault.message}",
                place=Place(file=str(path)),
                remedy="Whoever has that checkpoint would see a fork; find out what happened to the ledger.",
            )
    text = Checkpoint(name, measured.size, measured.root).text()
    if out is not None:
        path = out
    else:
        assert folder is not None
        _folder(folder)
        path = folder / f"{measured.size}{SUFFIX}"
    return _written(path, text, signer)


def _folder(folder: Path) -> None:
    try:
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, folder, "the folder of checkpoints cannot be made") from None


def _written(path: Path, text: str, signer: Signer) -> Made:
    """Write the note, or add the signature to one of the same text that lies there."""
    key = signer.verifier
    note = sign_note(text, [signer])
    try:
        if create_whole(path, note.encode()):
            return Made(read_checkpoint(note.encode(), [key]), path, True)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, "the checkpoint cannot be written") from None
    there = parse_note(read_note(path))
    if there.text != text:
        raise Refused(
            "E_CHECKPOINT_EXISTS",
            "another checkpoint stands there",
            place=Place(file=str(path)),
            remedy="Name another file with -o.",
        )
    signed = load(path, [key])
    if signed.examined.verified:
        return Made(signed, path, False)
    data = sign_note(text, [signer], present=there.signatures).encode()
    put(path, data)
    return Made(read_checkpoint(data, [key]), path, True)


def put(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Put the bytes in the place of the file.

    Raises:
        Refused: ``E_UNREADABLE``.
    """
    try:
        replace_whole(path, data, mode)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, "the file cannot be written") from None


def write_new(path: Path, data: bytes) -> None:
    """Write a file that is not there yet, or holds these bytes already.

    Raises:
        Refused: ``E_CHECKPOINT_EXISTS``, ``E_UNREADABLE``.
    """
    try:
        if create_whole(path, data):
            return
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, "the file cannot be written") from None
    if read_regular(path, max(MAX_PROOF_BYTES, len(data)), "E_CHECKPOINT_EXISTS", "what stands there") != data:
        raise Refused(
            "E_CHECKPOINT_EXISTS",
            "another file stands there",
            place=Place(file=str(path)),
            remedy="Name another file with -o.",
        )


class _Find:
    """Finds the place of one leaf among those that pass by, and the root over the first ``size``."""

    def __init__(self, leaf: bytes, size: int) -> None:
        self._leaf = leaf
        self.frontier = Frontier([size])
        self.index: int | None = None

    def take(self, leaves: list[bytes]) -> None:
        if self.index is None and self._leaf in leaves:
            self.index = self.frontier.size + leaves.index(self._leaf)
        self.frontier.extend(leaves)


def prove(
    store: LedgerStore, written: str, checkpoint: Path | None = None, *, progress: Progress = no_progress
) -> InclusionProof:
    """Return the proof that one row of the ledger is covered by a checkpoint.

    Args:
        store: the ledger.
        written: the row's id, the beginning of one, or ``@last``.
        checkpoint: by default the largest one in the workspace.
        progress: told how far each verification has come.

    Raises:
        Refused: ``E_REF_NOT_FOUND``, ``E_AMBIGUOUS_ID``, ``E_CHECKPOINT_MISSING``, ``E_CHECKPOINT_SHORT``.
        DoesNotHold: ``E_CHAIN_BROKEN``, ``E_CHECKPOINT_MISMATCH``.
    """
    if checkpoint is None:
        own = own_checkpoints(store)
        if not own:
            raise Refused(
                "E_CHECKPOINT_MISSING", "there is no checkpoint yet", remedy="Make one with `troth checkpoint create`."
            )
        checkpoint = own[-1][0]
    signed = load(checkpoint)
    wanted, data = signed.checkpoint, signed.data
    snapshot = store.read()
    refuse_faults(snapshot.verification)
    identifier = resolve(written, snapshot.state)
    signal = snapshot.state.signals.get(identifier)
    if signal is None:
        raise Refused("E_REF_NOT_FOUND", f"no row is {identifier}", remedy="`troth log` shows rows.", detail="absent")
    value = snapshot.rows.at_line(signal.line).value
    leaf = leaf_of_row(value)
    find = _Find(leaf, wanted.size)
    refuse_faults(store.verify(progress=progress, leaves=find.take))
    _refuse_other(wanted, find.frontier, checkpoint)
    if find.index is None:
        raise Refused("E_UNREADABLE", "the ledger changed while it was read", remedy="Try again.")
    if find.index >= wanted.size:
        raise Refused(
            "E_CHECKPOINT_SHORT",
            f"the row is number {find.index + 1}, and the checkpoint covers {wanted.size}",
            place=Place(file=str(checkpoint)),
            remedy="Make a new one with `troth checkpoint create`.",
        )
    ranges = inclusion_ranges(find.index, wanted.size)
    nodes = _nodes(store, ranges, progress)
    if not holds_leaf(leaf, find.index, wanted.size, nodes, wanted.root):
        raise Refused("E_UNREADABLE", "the ledger changed while it was read", remedy="Try again.")
    return InclusionProof(proven_form(value), find.index, nodes, data)


def _nodes(store: LedgerStore, ranges: Sequence[tuple[int, int]], progress: Progress) -> tuple[bytes, ...]:
    if not ranges:
        return ()
    roots = RangeRoots(ranges)
    store.verify(progress=progress, leaves=roots.extend)
    try:
        found = roots.roots()
    except ValueError:
        raise Refused("E_UNREADABLE", "the ledger changed while it was read", remedy="Try again.") from None
    return tuple(found[one] for one in ranges)


def _refuse_other(wanted: Checkpoint, frontier: Frontier, path: Path) -> None:
    fault = fault_against(wanted, frontier.size, frontier.roots)
    if fault is not None:
        raise DoesNotHold(
            "E_CHECKPOINT_MISMATCH",
            f"the ledger does not continue the checkpoint: {fault.message}",
            place=Place(file=str(path)),
            detail=fault.fault,
        )


def consistency(store: LedgerStore, old: Path, new: Path, *, progress: Progress = no_progress) -> ConsistencyProof:
    """Return the proof that the newer checkpoint continues the older one.

    Raises:
        Refused: ``E_CHECKPOINT_MISSING``, ``E_CHECKPOINT_MALFORMED``, ``E_USAGE`` for two origins.
        DoesNotHold: ``E_CHAIN_BROKEN``, ``E_CHECKPOINT_MISMATCH``.
    """
    first, second = load(old), load(new)
    if first.checkpoint.size > second.checkpoint.size:
        (old, first), (new, second) = (new, second), (old, first)
    before, after = first.checkpoint, second.checkpoint
    if before.origin != after.origin:
        raise Refused("E_USAGE", "the two checkpoints are of different origins")
    frontier = Frontier([before.size, after.size])
    refuse_faults(store.verify(progress=progress, leaves=frontier.extend))
    _refuse_other(before, frontier, old)
    _refuse_other(after, frontier, new)
    path = _nodes(store, consistency_ranges(before.size, after.size), progress)
    refuse_growth(before, after, path)
    return ConsistencyProof(first.data, path, second.data)


def beside(path: Path, suffix: str) -> Path:
    """Return the file that lies beside a checkpoint and belongs to it."""
    return path.with_name(f"{os.fspath(path.name)}{suffix}")
