"""A whole ledger put into a database in one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any, Final

from troth.core.digests import is_digest
from troth.core.errors import DoesNotHold, Place, Refused
from troth.ledger.chain import ChainReader, Verification
from troth.stores.postgres.memory import Held
from troth.stores.postgres.session import Session

COPY_ROWS: Final = 10_000
"""Rows sent with one statement."""

_COPY: Final = "COPY troth.rows (workspace, line, raw, id, source_key, hash, token) FROM STDIN (FORMAT BINARY)"
_TYPES: Final = ("int4", "int8", "bytea", "bytea", "bytea", "text", "uuid")


def load_whole(session: Session, lines: Iterable[bytes]) -> Verification:
    """Write a whole ledger's lines, without their LF, into a workspace that holds none.

    Raises:
        DoesNotHold: ``E_CHAIN_BROKEN`` when the lines do not verify; nothing was written.
        Refused: ``E_NOT_EMPTY``, or the database refuses.
        Busy, NotEstablished: as :meth:`troth.stores.postgres.session.Session.commit`.
    """
    token = uuid.uuid4()
    with session.threads, session.writing() as held:
        if held.lines:
            raise Refused(
                "E_NOT_EMPTY",
                "the ledger holds rows already",
                place=session.place(),
                remedy="Name another workspace of the database.",
            )
        chain = ChainReader()
        taken: set[tuple[str, str]] = set()
        batch: list[tuple[Any, ...]] = []
        begun = False
        for raw in lines:
            batch.append((held.id, chain.line + 1, raw, *_columns(chain, raw, taken), token))
            # How many rows without a hash there are must be known before the first row goes in.
            if len(batch) >= COPY_ROWS and chain.hashed:
                _copy(session, held, batch, chain.unhashed if not begun else None)
                batch, begun = [], True
        _copy(session, held, batch, chain.unhashed if not begun else None)
        found = chain.finish()
        if not found.ok:
            first = found.faults[0]
            raise DoesNotHold(
                "E_CHAIN_BROKEN",
                f"the lines do not verify: {first.fault}: {first.message}",
                place=Place(line=first.line),
                remedy="Run `troth verify` on the file for all faults; nothing was recorded.",
            )
        if chain.line:
            session.commit(chain.line, token)
        return found


def _copy(session: Session, held: Held, batch: list[tuple[Any, ...]], unhashed: int | None) -> None:
    """Send rows of a whole ledger; ``unhashed`` is given before the first ones."""
    conn = session.current()
    if unhashed is not None and unhashed != held.unhashed_prefix:
        conn.execute("UPDATE troth.workspaces SET unhashed_prefix = %s WHERE id = %s", (unhashed, held.id))
    if not batch:
        return
    with conn.cursor() as cursor, cursor.copy(_COPY.encode()) as copy:
        copy.set_types(_TYPES)
        for values in batch:
            copy.write_row(values)


def _columns(
    chain: ChainReader, raw: bytes, taken: set[tuple[str, str]]
) -> tuple[bytes | None, bytes | None, str | None]:
    """Return what stands beside the bytes of a line: id, source_key and hash, as far as it has them.

    Of several rows with one source_key, which a file may hold, the first one has it.
    """
    row = chain.feed(raw)
    if row is None:
        return None, None, None
    found: list[bytes | None] = []
    for name in ("id", "source_key"):
        value = row.value.get(name)
        if isinstance(value, str) and value and (name, value) not in taken:
            taken.add((name, value))
            found.append(value.encode())
        else:
            found.append(None)
    return found[0], found[1], row.hash if is_digest(row.hash) else None
