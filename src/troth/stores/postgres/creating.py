"""A ledger's place in a database made: the schema and the workspace, where they are missing."""

from __future__ import annotations

from troth.core.errors import Refused
from troth.ledger.governance import ruling_of
from troth.stores import workspace as places
from troth.stores.postgres import migrating
from troth.stores.postgres.address import parse_address
from troth.stores.postgres.driver import connect, speaking
from troth.stores.postgres.store import PostgresStore


def create_ledger(
    where: str, name: str | None = None, *, key: bytes | None = None, signature: bytes | None = None
) -> tuple[PostgresStore, list[str]]:
    """Set up the schema and the workspace where they are missing; what is there stays as it is.

    Args:
        where: the address of the database.
        name: the workspace, where the address names none.
        key: a genesis key for a new workspace, with the ``signature`` beside it.

    Returns:
        The store, and what was made: ``schema``, ``workspace``, ``genesis.key``.

    Raises:
        Refused: ``E_USAGE``, ``E_NO_DRIVER``, ``E_STORE_SCHEMA``, ``E_STORE_REFUSED`` without the right to do so.
        Busy: ``E_STORE_LOST``.
    """
    address = parse_address(where)
    if key is not None and (fault := ruling_of(key, signature=signature).error) is not None:
        raise fault
    if name is not None and address.workspace not in (None, name):
        raise Refused("E_USAGE", "the address names another workspace than --workspace")
    if name is not None and not (places.is_workspace_name(name) and name.isprintable()):
        raise Refused("E_USAGE", "a workspace name has 1 to 128 printable characters and no white space")
    store = PostgresStore.open(where, name=name)
    made = []
    conn = connect(address)
    try:
        with speaking(address):
            if migrating.migrate(address, conn):
                made.append("schema")
            done = conn.execute(
                "INSERT INTO troth.workspaces (name) SELECT %(name)s"
                " WHERE NOT EXISTS (SELECT FROM troth.workspaces WHERE name = %(name)s)"
                " ON CONFLICT (name) DO NOTHING",
                {"name": store.name},
            )
            if done.rowcount:
                made.append("workspace")
    finally:
        conn.close()
    if key is not None and "workspace" in made and store.enact(key, signature):
        made.append("genesis.key")
    return store, made
