"""Rows let out of a ledger, and a whole copy of it; whatever holds the rows (ledger spec §8 Sync)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from troth.core.canonical import row_bytes
from troth.core.errors import DoesNotHold, Place, Refused
from troth.ledger.chain import ChainReader, Verification
from troth.ledger.rows import parse_row
from troth.ledger.sync import ANONYMOUS, LOCAL, Audience, Scopes, Selection, anonymised, own_scope, select
from troth.stores.durable import create_from, os_fault, replace_from
from troth.stores.lines import KEPT
from troth.stores.snapshot import bare, well_formed
from troth.stores.workspace import FOLDER

if TYPE_CHECKING:
    from troth.stores.protocol import LedgerStore

_BROKEN: Final = "Run `troth verify` for the faults."


@dataclass(frozen=True, slots=True)
class Export:
    """What goes to an audience, and the digests of its lines, so that no other bytes go in their place."""

    store: LedgerStore
    selection: Selection
    digests: dict[int, bytes]

    def pieces(self) -> Iterator[bytes]:
        """Yield a line with its LF for every row let out, in file order.

        Raises:
            Refused: ``E_UNREADABLE`` when the ledger is no longer what was looked at.
        """
        left = iter(self.selection.out)
        wanted = next(left, None)
        for position, text in enumerate(_rows_of(self.store)):
            if wanted is None:
                return
            if position != wanted:
                continue
            if sha256(text).digest() != self.digests[position]:
                break
            if self.selection.audience.form == ANONYMOUS:
                yield row_bytes(anonymised(parse_row(text))) + b"\n"
            else:
                yield text + b"\n"
            wanted = next(left, None)
        if wanted is not None:
            raise Refused("E_UNREADABLE", "the ledger changed while it was read", place=Place(file=self.store.location))


def prepare(store: LedgerStore, audience: Audience) -> Export:
    """Return what of a ledger goes to an audience.

    Raises:
        DoesNotHold: ``E_CHAIN_BROKEN``: nothing is let out of a ledger that does not verify.
        Refused: the ledger cannot be read.
    """
    found = store.verify()
    chain = ChainReader(unhashed_prefix=store.unhashed_prefix)
    scopes = Scopes()
    digests: dict[int, bytes] = {}
    for raw in _lines(store) if found.ok else ():
        row = chain.feed(raw)
        if row is not None:
            if own_scope(row.value) != LOCAL:  # no other row can be let out
                digests[len(scopes.ids)] = sha256(bare(raw, row.line)).digest()
            scopes.add(row)
    # Looked at twice: a database has records of its own, and the rows just taken must be sound ones.
    if not found.ok or not chain.finish().ok:
        raise DoesNotHold("E_CHAIN_BROKEN", "the ledger does not verify, so nothing is let out of it", remedy=_BROKEN)
    return Export(store, select(scopes, audience), digests)


def _lines(store: LedgerStore) -> Iterator[bytes]:
    """Yield the lines without LF; what follows the last LF is a row that nobody acknowledged, or one like any other."""
    for line, piece in enumerate(store.lines(), 1):
        if piece.endswith(b"\n"):
            yield piece[:-1]
        elif well_formed(piece, line):
            yield piece


def _rows_of(store: LedgerStore) -> Iterator[bytes]:
    """Yield the bytes of each row, without what a reader passes over."""
    for line, raw in enumerate(_lines(store), 1):
        text = bare(raw, line)
        if text:
            yield text


# Whole ----------------------------------------------------------------------------------------------------------


def copy_whole(store: LedgerStore, file: Path, *, force: bool = False) -> Verification:
    """Copy every byte of a ledger into a file and verify them on the way; a broken ledger is copied as it is.

    Rows added meanwhile may be in the copy as well.

    Raises:
        Refused: as :func:`write`; the ledger cannot be read.
    """
    before = store.verify()
    chain = ChainReader(unhashed_prefix=store.unhashed_prefix, expect_head=before.head, expect_rows=before.hashed)
    write(store, file, _fed(store.lines(), chain), force=force)
    found = chain.finish()
    # What only the store itself knows, such as rows that are missing from a database.
    return replace(found, faults=before.faults) if found.ok and not before.ok else found


def _fed(pieces: Iterable[bytes], chain: ChainReader) -> Iterator[bytes]:
    pending = b""
    for piece in pieces:
        ended = piece.endswith(b"\n")
        pending += (piece[:-1] if ended else piece)[: max(0, KEPT - len(pending))]
        if ended:
            chain.feed(pending)
            pending = b""
        yield piece
    if pending:
        chain.feed(pending, False)


# Files ----------------------------------------------------------------------------------------------------------


def write(store: LedgerStore, file: Path, pieces: Iterable[bytes], *, force: bool = False) -> None:
    """Write the pieces into a file that appears whole or not at all.

    Raises:
        Refused: ``E_NOT_EMPTY`` when something stands there and ``force`` is not given; ``E_USAGE`` for the ledger
            itself or a place in a ``.mentu`` folder; ``E_UNREADABLE`` when it cannot be written.
    """
    place = Place(file=str(file))
    same = False
    with suppress(OSError):  # what cannot be looked at is not there, or refused below
        same = file.samefile(store.location)
    if same or os.path.basename(os.path.realpath(file.parent)) == FOLDER:
        raise Refused("E_USAGE", "nothing is written over a ledger or into a workspace's own folder", place=place)
    try:
        if force and not file.is_symlink() and (file.is_file() or not os.path.lexists(file)):
            replace_from(file, pieces)
        elif not create_from(file, pieces):
            raise Refused(
                "E_NOT_EMPTY",
                "something stands there already",
                place=place,
                remedy="Name another file" + ("; only a regular file is replaced." if force else ", or add --force."),
            )
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, file, "the file cannot be written") from None
