"""One workspace of a database, connected to when needed: its transactions, and what became of a broken COMMIT."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

from troth.core.errors import Busy, NotEstablished, Place, Refused, TrothError
from troth.stores.postgres import migrating
from troth.stores.postgres.address import Address
from troth.stores.postgres.driver import connect, load, speaking
from troth.stores.postgres.memory import Held
from troth.stores.postgres.rows import FIRST, ROWS, next_batch

if TYPE_CHECKING:
    import psycopg

STATEMENT_SECONDS: Final = 300
"""Longest one statement may take."""

IDLE_SECONDS: Final = 30
"""How long the database keeps a transaction, and with it the ledger, for a writer that says nothing any more."""

_READING: Final = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    f" SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s';"
    f" SET LOCAL idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'"
)
# Whatever the server's own setting, an answered COMMIT is on its disk.
_WRITING: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    f" SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s';"
    f" SET LOCAL idle_in_transaction_session_timeout = '{IDLE_SECONDS}s';"
    " SELECT set_config('synchronous_commit', 'on', true)"
    " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)
_HELD: Final = "SELECT id, name, unhashed_prefix, lines, last_hash, head FROM "

INSERT: Final = (
    "INSERT INTO troth.rows (workspace, line, raw, id, source_key, hash, token) VALUES (%s, %s, %s, %s, %s, %s, %s)"
)
"""Adds one row; the database checks that its line is the next one."""


class _Unanswered(Exception):
    """The connection broke between the COMMIT and its answer."""


class Session:
    """A connection to one workspace, replaced when it broke.

    Args:
        address: where the database is.
        name: the workspace in it.
        wait_seconds: how long a writer waits for others, and for a database that went away in mid-commit.

    ``id`` is the workspace's number, ``held`` its entry as the transaction that is open sees it, and ``threads`` keeps
    threads that share the session apart.
    """

    def __init__(self, address: Address, name: str, wait_seconds: float) -> None:
        self.address = address
        self.name = name
        self.id = 0
        self.held: Held | None = None
        self.threads = threading.RLock()
        self._wait = wait_seconds
        self._conn: psycopg.Connection[Any] | None = None
        self._cursors = itertools.count()

    def close(self) -> None:
        """Close the connection; the next use makes another one."""
        with self.threads:
            conn, self._conn = self._conn, None
            if conn is not None:
                conn.close()

    def __del__(self) -> None:
        """Close the connection."""
        conn = getattr(self, "_conn", None)
        if conn is not None:
            with suppress(Exception):  # the interpreter may be ending
                conn.close()

    def place(self) -> Place:
        """Return where a refusal points."""
        return Place(file=self.address.shown)

    def connected(self, deadline: float | None = None) -> psycopg.Connection[Any]:
        """Return the connection, a new one where there is none or the old one broke.

        Raises:
            Busy: ``E_STORE_LOST``; nobody answers, or the connection of an open transaction broke: another one
                would see something else, and hold nothing.
            Refused: the database does not let us in, or holds no such ledger.
        """
        if self._conn is not None and not self._conn.closed:
            return self._conn
        if self.held is not None:
            raise self._lost("it was closed")
        self._conn = None
        conn = connect(self.address, deadline)
        try:
            number = self._number(conn)
        except BaseException:
            conn.close()
            raise
        self.id = number
        self._conn = conn
        return conn

    def current(self) -> psycopg.Connection[Any]:
        """Return the connection of the transaction that is open."""
        assert self._conn is not None
        return self._conn

    def _number(self, conn: psycopg.Connection[Any]) -> int:
        """Return the workspace's number in a database whose schema is the one we know."""
        with speaking(self.address):
            migrating.require_current(self.address, conn)
            found = conn.execute("SELECT id FROM troth.workspaces WHERE name = %s", (self.name,)).fetchone()
        if found is None:
            raise Refused(
                "E_NO_LEDGER",
                f"the database holds no workspace {self.name}",
                place=self.place(),
                remedy="Make it with: troth init --store URL",
            )
        return int(found[0])

    def _begin(self, statement: str, source: str, parameters: Sequence[Any] = ()) -> Held:
        """Begin a transaction and return the workspace's entry.

        A connection that broke while nobody used it is replaced: nothing was asked of it yet.
        """
        for fresh in (False, True):
            fresh = fresh or self._conn is None  # noqa: PLW2901 - a new connection is not tried twice
            conn = self.connected()
            try:
                with speaking(self.address):
                    conn.execute(statement.encode())
                    found = conn.execute(f"{_HELD}{source}".encode(), (*parameters, self.id)).fetchone()
                break
            except Busy as fault:
                if fault.code != "E_STORE_LOST" or fresh:
                    raise
                conn.close()
        if found is None:
            raise Refused("E_NO_LEDGER", "the workspace is gone from the database", place=self.place())
        return Held(*found)

    @contextmanager
    def reading(self) -> Iterator[Held]:
        """Hold one state of the database still."""
        with self.threads:
            if self.held is not None:
                yield self.held  # whoever decides on a row while the ledger is held may read it
                return
            with self._rolled_back():
                self.held = self._begin(_READING, "troth.workspaces WHERE id = %s")
                try:
                    yield self.held
                finally:
                    self.held = None

    @contextmanager
    def writing(self) -> Iterator[Held]:
        """Hold the ledger against all other writers; what was not committed inside is undone.

        Whoever enters holds ``threads``.
        """
        with self._rolled_back():
            milliseconds = max(1, int(self._wait * 1000))
            self.held = self._begin(f"{_WRITING}; SET LOCAL lock_timeout = {milliseconds}", "troth.hold(%s)")
            try:
                yield self.held
            finally:
                self.held = None

    @contextmanager
    def _rolled_back(self) -> Iterator[None]:
        """End whatever transaction is left open, and let go of a connection that is of no more use."""
        try:
            with speaking(self.address):
                yield
        finally:
            conn = self._conn
            if conn is not None and not conn.closed and conn.info.transaction_status != 0:
                with suppress(Exception):  # the fault that brought us here is the one to tell
                    conn.execute("ROLLBACK")
            if conn is not None and (conn.closed or conn.info.transaction_status != 0):
                conn.close()
                self._conn = None

    def stream(self, after: int) -> Iterator[list[tuple[int, bytes]]]:
        """Yield (line, bytes) behind a line in batches, in the transaction that is open."""
        with self.current().cursor(name=f"troth_{next(self._cursors)}", binary=True) as cursor:
            cursor.execute(ROWS.encode(), (self.id, after))
            limit = FIRST
            while batch := cursor.fetchmany(limit):
                yield batch
                limit = next_batch(len(batch), sum(len(raw) for _, raw in batch))

    def fetch(self, query: str, parameters: Sequence[Any]) -> list[tuple[int, bytes]]:
        """Run one query for rows, inside the transaction of this thread or on its own."""
        with self.threads, speaking(self.address):
            conn = self.connected()
            with conn.cursor(binary=True) as cursor:
                return cursor.execute(query.encode(), parameters).fetchall()

    def commit_unmarked(self) -> None:
        """Commit what carries no token and may be written twice without harm.

        Raises:
            NotEstablished: ``E_OUTCOME_UNKNOWN`` when the answer does not come.
        """
        try:
            self._commit()
        except _Unanswered as broken:
            raise NotEstablished(
                "E_OUTCOME_UNKNOWN",
                f"the connection broke before the database answered: {broken}",
                place=self.place(),
                remedy="Do it again; what is done already is not done twice.",
            ) from None

    def commit(self, line: int, token: uuid.UUID) -> None:
        """Commit what was written, and know that it is: without the database's answer, the row is looked for.

        Args:
            line: a line that was written.
            token: the token it was written with.

        Raises:
            Busy: ``E_STORE_LOST``; nothing was recorded.
            NotEstablished: ``E_OUTCOME_UNKNOWN``; the database could not be asked in time.
        """
        try:
            self._commit()
        except _Unanswered as broken:
            self._find_out(line, token, str(broken))

    def _commit(self) -> None:
        psycopg = load()
        conn = self.current()
        try:
            done = conn.execute("COMMIT")
        except psycopg.Error as fault:
            lost = fault.sqlstate is None or fault.sqlstate.startswith(("08", "57P"))
            if not conn.closed and not lost:
                raise
            raise _Unanswered(self.address.scrubbed(str(fault))) from None
        if done.statusmessage != "COMMIT":
            raise Refused("E_WRITE_FAILED", "the database took the row back", place=self.place())

    def _find_out(self, line: int, token: uuid.UUID, why: str) -> None:
        """Return when the row turns out to be recorded.

        Raises:
            Busy: ``E_STORE_LOST``; it is not.
            NotEstablished: ``E_OUTCOME_UNKNOWN``; the database could not be asked in time.
        """
        self.held = None
        deadline = time.monotonic() + self._wait
        while True:
            try:
                self._conn = None
                self.connected(deadline)
                # The old transaction, while it lasts, holds the ledger: whoever gets it sees what became of it.
                with self.writing():
                    found = (
                        self.current()
                        .execute(
                            "SELECT 1 FROM troth.rows WHERE workspace = %s AND line = %s AND token = %s",
                            (self.id, line, token),
                        )
                        .fetchone()
                    )
                break
            except TrothError as fault:
                if time.monotonic() > deadline:
                    self._unknown(why, fault)
                time.sleep(0.05)
        if found is None:
            raise self._lost(why)

    def _lost(self, why: str) -> Busy:
        return Busy(
            "E_STORE_LOST",
            f"the connection to the database broke: {why}",
            place=self.place(),
            remedy="Nothing was recorded; try again.",
            detail="not_recorded",
        )

    def _unknown(self, why: str, fault: TrothError) -> NoReturn:
        raise NotEstablished(
            "E_OUTCOME_UNKNOWN",
            f"the connection broke while the row was committed ({why}), and the database cannot be asked what became "
            f"of it: {fault.message}",
            place=self.place(),
            remedy="Look with `troth log` before you try again.",
        ) from None
