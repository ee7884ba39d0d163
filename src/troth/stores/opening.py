"""One way to open a ledger, whatever kind of store is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from troth.core.errors import Place, Refused
from troth.core.ids import RandomHex, system_random
from troth.core.instants import Clock, system_clock
from troth.stores.lock import WAIT_SECONDS
from troth.stores.postgres.address import is_address
from troth.stores.protocol import Notify, quiet

if TYPE_CHECKING:
    from troth.stores.protocol import LedgerStore


SETTING: Final = "store"
"""The member of config.yaml by which a workspace keeps its ledger in a database."""


def open_store(
    where: Path | str | None = None,
    *,
    clock: Clock = system_clock,
    random_hex: RandomHex = system_random,
    wait_seconds: float = WAIT_SECONDS,
    notify: Notify = quiet,
) -> LedgerStore:
    """Open the ledger that is named: a file, a folder that holds ``.mentu``, a database, or ``None`` to search upward.

    A workspace whose settings name a database (``store: postgresql://…``) has its ledger there.

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

    store = JsonlStore.open(where, clock=clock, random_hex=random_hex, wait_seconds=wait_seconds, notify=notify)
    elsewhere = store.config.other.get(SETTING)
    if elsewhere is None or store.space is None or (where is not None and not os.path.isdir(where)):
        return store
    if not is_address(elsewhere):
        raise Refused(
            "E_CONFIG",
            f"`{SETTING}` is postgresql://HOST/DATABASE?workspace=NAME",
            place=Place(file=str(store.space.config_file), path=f"$.{SETTING}"),
            remedy="Correct the file; without the setting, the ledger is the file in the workspace.",
        )
    from troth.stores.postgres.store import PostgresStore

    return PostgresStore.open(
        elsewhere, space=store.space, clock=clock, random_hex=random_hex, wait_seconds=wait_seconds, notify=notify
    )
