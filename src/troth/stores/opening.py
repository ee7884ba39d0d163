"""One way to open a ledger, whatever kind of store is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from troth.core.errors import Refused
from troth.core.ids import RandomHex, system_random
from troth.core.instants import Clock, system_clock
from troth.stores.lock import WAIT_SECONDS
from troth.stores.postgres.address import is_address
from troth.stores.protocol import Notify, quiet

if TYPE_CHECKING:
    from troth.stores.protocol import LedgerStore


def open_store(
    where: Path | str | None = None,
    *,
    clock: Clock = system_clock,
    random_hex: RandomHex = system_random,
    wait_seconds: float = WAIT_SECONDS,
    notify: Notify = quiet,
) -> LedgerStore:
    """Open the ledger that is named: a file, a folder that holds ``.mentu``, a database, or ``None`` to search upward.

    Args:
        where: a path, or ``postgresql://HOST/DATABASE?workspace=NAME``.
        clock, random_hex: where time and randomness come from.
        wait_seconds: how long a writer waits for others.
        notify: takes sentences for a person, each a :class:`troth.stores.protocol.Note`.

    Raises:
        Refused: ``E_NO_WORKSPACE``, ``E_CONFIG``, ``E_UNSUPPORTED`` for a kind of store this version lacks.
    """
    if isinstance(where, str):
        scheme, colon, _ = where.partition("://")
        if is_address(where):
            from troth.stores.postgres.store import PostgresStore

            return PostgresStore.open(
                where, clock=clock, random_hex=random_hex, wait_seconds=wait_seconds, notify=notify
            )
        if colon:
            raise Refused(
                "E_UNSUPPORTED",
                f"this version has no store of the kind {scheme}://",
                remedy="Name a file, a folder, or postgresql://HOST/DATABASE?workspace=NAME.",
            )
    from troth.stores.jsonl import JsonlStore

    return JsonlStore.open(where, clock=clock, random_hex=random_hex, wait_seconds=wait_seconds, notify=notify)
