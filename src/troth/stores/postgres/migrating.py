"""The schema of the database: numbered SQL files, applied in order, each with its digest on record."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused
from troth.stores.postgres.address import Address

if TYPE_CHECKING:
    import psycopg

FOLDER: Final = Path(__file__).with_name("migrations")

_NAME: Final = re.compile(r"([0-9]{4})_([a-z0-9_]+)\.sql\Z")

ADVISORY_KEY: Final = 0x74726F7468  # "troth"
"""The advisory lock under which one machine at a time changes the schema."""

_RECORD: Final = """
CREATE SCHEMA IF NOT EXISTS troth;
REVOKE ALL ON SCHEMA troth FROM PUBLIC;
CREATE TABLE IF NOT EXISTS troth.migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    digest text NOT NULL,
    applied timestamptz NOT NULL DEFAULT now()
);
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema; ``digest`` is the SHA-256 of its text."""

    number: int
    name: str
    sql: str
    digest: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Return the steps this version knows, in order."""
    found = []
    for path in sorted(FOLDER.glob("*.sql")):
        match = _NAME.match(path.name)
        if match is not None:
            data = path.read_bytes()
            found.append(Migration(int(match[1]), match[2], data.decode(), sha256_hex(data)))
    return tuple(found)


def applied(conn: psycopg.Connection[Any]) -> list[tuple[int, str]]:
    """Return (number, digest) of the steps the database has; none when there is no schema yet."""
    if conn.execute("SELECT to_regclass('troth.migrations')").fetchone() == (None,):
        return []
    return conn.execute("SELECT number, digest FROM troth.migrations ORDER BY number").fetchall()


def check(address: Address, found: list[tuple[int, str]]) -> list[Migration]:
    """Return the steps the database lacks.

    Raises:
        Refused: ``E_STORE_SCHEMA`` when the database has been through steps that this version does not know.
    """
    known = migrations()
    place = Place(file=address.shown)
    if len(found) > len(known):
        raise Refused(
            "E_STORE_SCHEMA",
            f"the database is newer than this version: it is at step {found[-1][0]}, step {known[-1].number} is known",
            place=place,
            remedy="Update troth on this machine.",
            detail="newer",
        )
    for have, step in zip(found, known, strict=False):
        if have != (step.number, step.digest):
            raise Refused(
                "E_STORE_SCHEMA",
                f"step {have[0]} of the database's schema is not the one this version knows",
                place=place,
                remedy="Use the version of troth that set the database up.",
                detail="different",
            )
    return list(known[len(found) :])


def require_current(address: Address, conn: psycopg.Connection[Any]) -> None:
    """Refuse a database whose schema is not the one this version works with.

    Raises:
        Refused: ``E_STORE_SCHEMA``.
    """
    found = applied(conn)
    if check(address, found):
        raise Refused(
            "E_STORE_SCHEMA",
            "the database is older than this version" if found else "the database holds no ledger yet",
            place=Place(file=address.shown),
            remedy="As its owner, run: troth store migrate URL" if found else "Set it up with: troth init --store URL",
            detail="older" if found else "absent",
        )


def migrate(address: Address, conn: psycopg.Connection[Any]) -> list[Migration]:
    """Bring the schema up to this version in one transaction, and return the steps that were missing.

    Raises:
        Refused: as :func:`check`.
    """
    if not check(address, applied(conn)):
        return []  # so that whoever may not change the schema can still see that nothing is missing
    with conn.transaction():
        conn.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_KEY,))
        conn.execute(_RECORD)
        missing = check(address, applied(conn))
        for step in missing:
            conn.execute(step.sql.encode())
            conn.execute(
                "INSERT INTO troth.migrations (number, name, digest) VALUES (%s, %s, %s)",
                (step.number, step.name, step.digest),
            )
    return missing


def roles_sql(writer: str, reader: str) -> str:
    """Return the statements that let one role append and another only read; the owner runs them.

    A writer can add rows at the end and nothing else: it owns nothing, so it cannot switch the triggers off.
    """
    lines = ["-- Run as the owner of the schema. Give the roles to logins with: GRANT role TO login;"]
    for role in (writer, reader):
        # The literal stands inside a dollar-quoted block, whose tag no name may hold (see `is_role`).
        lines.append(
            f"DO $troth$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') "
            f'THEN CREATE ROLE "{role}" NOLOGIN; END IF; END $troth$;'
        )
        lines.append(f'GRANT USAGE ON SCHEMA troth TO "{role}";')
        lines.append(f'GRANT SELECT ON ALL TABLES IN SCHEMA troth TO "{role}";')
    lines.append(f'GRANT INSERT ON troth.rows TO "{writer}";')
    lines.append(f'GRANT EXECUTE ON FUNCTION troth.hold(integer) TO "{writer}";')
    return "\n".join(lines) + "\n"


def is_role(name: str) -> bool:
    """Tell whether the name can stand in those statements as it is."""
    return re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", name) is not None
