"""The stores under one roof: new ledgers of every kind, and what a test may do to one, whatever holds it."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import counting, ticking
from support.postgres import needs_postgres, shared_server
from troth.core.canonical import row_bytes
from troth.ledger.operations import Candidate
from troth.stores.opening import open_store
from troth.stores.protocol import LedgerStore
from troth.stores.workspace import create_workspace


class House(ABC):
    """One new ledger of the workspace ``w``, empty. ``where`` names it for ``open_store`` and for ``--store``."""

    where: str

    def open(self, **options: Any) -> LedgerStore:
        """Open it with a predictable clock and ids, unless told otherwise."""
        return open_store(self.where, **{"clock": ticking(), "random_hex": counting(), **options})

    @abstractmethod
    def change(self, line: int, how: Callable[[bytes], bytes]) -> None:
        """Change the bytes of a line beneath the store."""

    @abstractmethod
    def remove(self, line: int) -> None:
        """Take a line out beneath the store, as if it had never been there."""


class FileHouse(House):
    """A workspace folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        space, _ = create_workspace(folder, name="w", agents_text="text\n")
        self.file = space.ledger
        self.where = str(folder)

    def change(self, line: int, how: Callable[[bytes], bytes]) -> None:
        lines = self.file.read_bytes().split(b"\n")
        lines[line - 1] = how(lines[line - 1])
        self.file.write_bytes(b"\n".join(lines))

    def remove(self, line: int) -> None:
        lines = self.file.read_bytes().split(b"\n")
        del lines[line - 1]
        self.file.write_bytes(b"\n".join(lines))


_DATABASES: list[str] = []
_NUMBERS = itertools.count(1)


def database() -> str:
    """Return the address of this process's database on the shared server, without a workspace."""
    server = shared_server()
    if not _DATABASES:
        _DATABASES.append(server.database())
    return server.address(_DATABASES[0])


class DatabaseHouse(House):
    """A workspace of this process's database."""

    def __init__(self) -> None:
        from troth.stores.postgres.creating import create_ledger

        self.base = database()
        self.name = f"w{os.getpid()}-{next(_NUMBERS)}"
        self.where = f"{self.base}&workspace={self.name}"
        create_ledger(self.where)[0].close()

    def run(self, statement: str, *parameters: Any, guarded: bool = False) -> None:
        """Run one statement as the superuser, by default with the ledger's own guards switched off."""
        import psycopg

        with psycopg.connect(self.base) as conn:
            if not guarded:
                for table in ("rows", "workspaces"):
                    conn.execute(f"ALTER TABLE troth.{table} DISABLE TRIGGER USER".encode())
            conn.execute(statement.encode(), parameters)
            if not guarded:
                for table in ("rows", "workspaces"):
                    conn.execute(f"ALTER TABLE troth.{table} ENABLE ALWAYS TRIGGER only_added".encode())
                conn.execute(b"ALTER TABLE troth.rows ENABLE TRIGGER extend")
                conn.execute(b"ALTER TABLE troth.workspaces ENABLE ALWAYS TRIGGER only_followed")

    def change(self, line: int, how: Callable[[bytes], bytes]) -> None:
        old = list(self.open().lines())[line - 1].removesuffix(b"\n")
        self.run(
            "UPDATE troth.rows SET raw = %s WHERE line = %s AND workspace ="
            " (SELECT id FROM troth.workspaces WHERE name = %s)",
            how(old),
            line,
            self.name,
        )

    def remove(self, line: int) -> None:
        one = "workspace = (SELECT id FROM troth.workspaces WHERE name = %s)"
        self.run(f"DELETE FROM troth.rows WHERE line = %s AND {one}", line, self.name)
        # In two steps, because one could meet a number that is still in use.
        self.run(f"UPDATE troth.rows SET line = line + 1000000 WHERE line > %s AND {one}", line, self.name)
        self.run(f"UPDATE troth.rows SET line = line - 1000001 WHERE line > 1000000 AND {one}", self.name)


def copy_into(house: House, lines: list[bytes]) -> None:
    """Put a whole ledger, lines without LF, into a new house."""
    if isinstance(house, FileHouse):
        house.file.write_bytes(b"".join(line + b"\n" for line in lines))
    else:
        from troth.stores.postgres.store import PostgresStore

        store = house.open()
        assert isinstance(store, PostgresStore)
        store.load(lines)
        store.close()


def row(store: LedgerStore, op: str, actor: str = "agent:worker", **payload: Any) -> str:
    """Append a row and return its id."""
    return str(store.append(Candidate(op, actor, {"body": "b", **payload}))["id"])


def bytes_of(value: dict[str, Any]) -> bytes:
    """Return the line of a row."""
    return row_bytes(value) + b"\n"


Make = Callable[[], House]


@pytest.fixture(params=["jsonl", pytest.param("postgres", marks=needs_postgres)])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make new houses of one kind."""
    numbers = itertools.count(1)
    return DatabaseHouse if request.param == "postgres" else lambda: FileHouse(tmp_path / f"house {next(numbers)}")


@pytest.fixture
def house(make: Make) -> House:
    """Make one."""
    return make()


def observation(body: str = "seen") -> Candidate:
    """Return an observation that a person makes."""
    return Candidate("capture", "human:reviewer", {"body": body})


def furnished(house: House) -> LedgerStore:
    """Return a store of six rows: an observation with a source key, a claimed commitment, a closed one."""
    store = house.open()
    store.append(Candidate("capture", "human:reviewer", {"body": "seen"}, id="mem_00000001", source_key="key-1"))
    for name in ("cmt_00000002", "cmt_00000003"):
        store.append(Candidate("commit", "human:reviewer", {"body": "b", "source": "mem_00000001"}, id=name))
        row(store, "claim", commitment=name)
    row(store, "close", commitment="cmt_00000003", evidence="mem_00000001")
    return store
