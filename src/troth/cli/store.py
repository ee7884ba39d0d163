"""``troth store``: a ledger in a database set up, protected, filled from a file and written to one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.options import Notes, json_option, open_ledger, store_option
from troth.core.errors import Refused
from troth.stores.workspace import GENESIS

if TYPE_CHECKING:
    from troth.ledger.chain import Verification
    from troth.stores.postgres.store import PostgresStore


@click.group("store", epilog="Example: troth store dump ledger.jsonl --store postgresql://host/troth?workspace=shop")
def store_cmd() -> None:
    """Set up a ledger in PostgreSQL, move one in and out, byte for byte."""


def init_database(where: str, name: str | None, key: Mapping[str, bytes], as_json: bool) -> int:
    """Answer ``troth init --store postgresql://…``: schema and workspace, where they are missing.

    ``key`` is what :func:`troth.stores.constitution.key_to_install` gave, for a new workspace.
    """
    from troth.stores.postgres.creating import create_ledger

    store, made = create_ledger(where, name, key=key.get(GENESIS), signature=key.get(f"{GENESIS}.sig"))
    if as_json:
        emit_json({"store": store.location, "workspace": store.name, "created": made})
        return 0
    about = f"workspace {printable(store.name)} of {printable(store.location)}"
    if not made:
        say(f"The {about} is there already; nothing was changed.")
    else:
        say(f"Created {', '.join(made)}: {about}.")
        say('Next: troth capture "what you saw" --store URL, or `store: URL` in .mentu/config.yaml')
    if key and GENESIS not in made:
        note("troth: the workspace keeps its genesis key; `troth store genesis FILE` puts another one in force")
    return 0


@store_cmd.command("migrate", epilog="Example: troth store migrate --store postgresql://owner@host/troth")
@store_option
@json_option
def migrate_cmd(store: str | None, as_json: bool) -> int:
    """Bring a database's schema up to this version, as the schema's owner; rows are not touched."""
    from troth.stores.postgres.driver import connect, speaking
    from troth.stores.postgres.migrating import migrate, migrations

    address = _database(store).address
    with connect(address) as conn, speaking(address):
        done = [step.number for step in migrate(address, conn)]
    last = migrations()[-1].number
    if as_json:
        emit_json({"store": address.shown, "applied": done, "at": last})
    elif done:
        say(f"Applied {len(done)} step(s); the schema is at step {last}.")
    else:
        say(f"The schema is at step {last}; nothing was missing.")
    return 0


@store_cmd.command("roles", epilog="Example: troth store roles | psql -d troth")
@click.option("--writer", default="troth_writer", show_default=True, help="The role that may append rows.")
@click.option("--reader", default="troth_reader", show_default=True, help="The role that may only read.")
@json_option
def roles_cmd(writer: str, reader: str, as_json: bool) -> int:
    """Print the SQL by which one role may append and another only read; the schema's owner runs it."""
    from troth.stores.postgres.migrating import is_role, roles_sql

    for name in (writer, reader):
        if not is_role(name):
            raise Refused("E_USAGE", "a role's name has 1 to 63 of a-z, 0-9 and _, and no digit first")
    sql = roles_sql(writer, reader)
    if as_json:
        emit_json({"sql": sql})
    else:
        say(sql.rstrip("\n"))
    return 0


@store_cmd.command("genesis", epilog="Example: troth store genesis genesis.key --store postgresql://owner@host/troth")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--remove", is_flag=True, help="No key is in force any more.")
@store_option
@json_option
def genesis_cmd(file: Path | None, remove: bool, store: str | None, as_json: bool) -> int:
    """Put the genesis key of FILE in force for a workspace in a database; its owner alone may."""
    from troth.stores.constitution import key_to_install

    if (file is None) != remove:
        raise Refused("E_USAGE", "name the key's file, or give --remove")
    key = key_to_install(file) if file is not None else {}
    ledger = _database(store)
    changed = ledger.enact(key.get(GENESIS), key.get(f"{GENESIS}.sig"))
    if as_json:
        emit_json({"store": ledger.location, "changed": changed, "removed": remove})
    elif changed:
        say("The genesis key is removed." if remove else "The genesis key is in force; the next row is preceded by it.")
    else:
        say("Nothing was changed.")
    return 0


@store_cmd.command("load", epilog="Example: troth store load .mentu/ledger.jsonl --store postgresql://host/troth")
@click.argument("file", type=click.Path(path_type=Path))
@store_option
@json_option
def load_cmd(file: Path, store: str | None, as_json: bool) -> int:
    """Put the ledger FILE into an empty workspace of a database: the same bytes, so the same head."""
    from troth.stores.durable import open_regular
    from troth.stores.lines import physical_lines

    ledger = _database(store)
    fd = open_regular(file, os.O_RDONLY, "E_NO_LEDGER", "the ledger")
    try:
        found = ledger.load(raw for raw, _ in physical_lines(fd, 0))
    finally:
        os.close(fd)
    return _told(found, f"{found.total} rows loaded into", ledger.location, as_json, {"loaded": found.total})


@store_cmd.command("dump", epilog="Example: troth store dump copy.jsonl --store postgresql://host/troth")
@click.argument("file", type=click.Path(path_type=Path))
@store_option
@json_option
def dump_cmd(file: Path, store: str | None, as_json: bool) -> int:
    """Write every row to a new FILE, byte for byte as in a ledger of JSON Lines, verified on the way."""
    return dump_to(file, store, as_json)


def dump_to(file: Path, store: str | None, as_json: bool, *, force: bool = False) -> int:
    """Answer ``store dump`` and ``export --whole``: a copy of every byte, verified on the way."""
    from troth.stores.exporting import copy_whole

    found = copy_whole(open_ledger(store, Notes()), file, force=force)
    return _told(found, f"{found.total} rows written to", str(file), as_json, {"written": found.total})


def _told(found: Verification, done: str, where: str, as_json: bool, more: dict[str, Any]) -> int:
    if as_json:
        emit_json(
            {**more, "to": where, "ok": found.ok, "head": found.head, "faults": [f.as_json() for f in found.faults]}
        )
    else:
        say(f"{done} {printable(where)}; {found.summary()}  head {found.head}")
        if not found.ok:
            note(f"troth: the ledger does not verify: {found.faults[0].fault}: {printable(found.faults[0].message)}")
    return 0 if found.ok else 1


def _database(where: str | None) -> PostgresStore:
    from troth.stores.postgres.store import PostgresStore

    ledger = open_ledger(where, Notes())
    if not isinstance(ledger, PostgresStore):
        raise Refused(
            "E_USAGE",
            "this needs a ledger in a database",
            remedy="Name it with --store postgresql://HOST/DATABASE?workspace=NAME",
        )
    return ledger
