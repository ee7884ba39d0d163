"""The ledger in PostgreSQL: one serial chain of rows for each workspace, for as many machines as there are.

A row is acknowledged only after its COMMIT was answered. When the connection breaks before that answer, the store
connects again, waits for the old transaction to end, and looks whether the row is there.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

from troth.core.canonical import row_bytes
from troth.core.digests import is_digest
from troth.core.errors import Busy, DoesNotHold, NotEstablished, Place, Refused, TrothError
from troth.core.ids import RandomHex, system_random
from troth.core.instants import Clock, system_clock
from troth.ledger.chain import ChainReader, Verification
from troth.ledger.governance import NO_KEY, Ruling, govern, ruling_of
from troth.ledger.leaves import Leaves
from troth.ledger.operations import Candidate
from troth.stores import index
from troth.stores import workspace as places
from troth.stores.lock import WAIT_SECONDS
from troth.stores.postgres import migrating
from troth.stores.postgres.address import Address, parse_address
from troth.stores.postgres.driver import connect, speaking
from troth.stores.postgres.driver import load as load_driver
from troth.stores.postgres.memory import Held, Memory
from troth.stores.postgres.rows import FIRST, DatabaseRows, next_batch
from troth.stores.protocol import Note, Notify, Progress, no_progress, quiet
from troth.stores.snapshot import Snapshot

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg

    from troth.ledger.genesis import Genesis

DEFAULT_WORKSPACE: Final = "default"
"""The workspace meant where neither the address nor a local workspace names one."""

STATEMENT_SECONDS: Final = 300
"""Longest one statement may take."""

IDLE_SECONDS: Final = 60
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
_ROWS: Final = "SELECT line, raw FROM troth.rows WHERE workspace = %s AND line > %s ORDER BY line"
_INSERT: Final = (
    "INSERT INTO troth.rows (workspace, line, raw, id, source_key, hash, token) VALUES (%s, %s, %s, %s, %s, %s, %s)"
)
_COPY: Final = "COPY troth.rows (workspace, line, raw, id, source_key, hash, token) FROM STDIN (FORMAT BINARY)"
_COPY_TYPES: Final = ("int4", "int8", "bytea", "bytea", "bytea", "text", "uuid")
_COPY_ROWS: Final = 10_000


class _Unanswered(Exception):
    """The connection broke between the COMMIT and its answer."""


class PostgresStore:
    """One workspace's ledger in a database.

    Args:
        address: where the database is.
        workspace: which ledger in it.
        clock, random_hex: where time and randomness come from.
        wait_seconds: how long a writer waits for others, and for a database that went away in mid-append.
        notify: takes sentences for a person, each a :class:`troth.stores.protocol.Note`.

    ``name`` is the ledger's in the database, ``workspace`` what new rows say. ``space`` is the local workspace this
    program was started in, if any, and ``config`` its settings; how many unhashed rows are permitted is the
    database's to say.
    """

    def __init__(
        self,
        address: Address,
        workspace: str,
        *,
        clock: Clock = system_clock,
        random_hex: RandomHex = system_random,
        wait_seconds: float = WAIT_SECONDS,
        notify: Notify = quiet,
    ) -> None:
        self.address = address
        self.name = workspace
        self.workspace: str | None = workspace
        self.unhashed_prefix: int | None = None
        self.config = places.Config()
        self.space: places.Workspace | None = None
        self.notify = notify
        self._clock = clock
        self._random_hex = random_hex
        self._wait = wait_seconds
        self._conn: psycopg.Connection[Any] | None = None
        self._id = 0
        self._held: Held | None = None  # while this store holds the ledger against other writers
        self._memory: Memory | None = None
        self._key: tuple[bytes | None, bytes | None] | None = None
        self._ruling = NO_KEY
        self._threads = threading.RLock()

    @classmethod
    def open(
        cls,
        where: str,
        *,
        space: places.Workspace | None = None,
        clock: Clock = system_clock,
        random_hex: RandomHex = system_random,
        wait_seconds: float = WAIT_SECONDS,
        notify: Notify = quiet,
    ) -> PostgresStore:
        """Open the ledger at ``postgresql://…?workspace=NAME``.

        Without a name it is that of the local workspace, ``space`` or the one found upward from the current folder,
        else ``default``. Nothing is connected yet.

        Raises:
            Refused: ``E_USAGE``, ``E_NO_DRIVER``, ``E_CONFIG``.
        """
        address = parse_address(where)
        load_driver()
        space = space or local_space()
        config = space.config() if space is not None else places.Config()
        store = cls(
            address,
            address.workspace or config.workspace or DEFAULT_WORKSPACE,
            clock=clock,
            random_hex=random_hex,
            wait_seconds=wait_seconds,
            notify=notify,
        )
        store.space = space
        store.config = config
        return store

    @property
    def location(self) -> str:
        """Return the address without its password."""
        return self.address.shown

    # Reading ---------------------------------------------------------------------------------------------------

    def verify(
        self,
        *,
        expect_head: str | None = None,
        expect_rows: int | None = None,
        workers: int | None = None,
        progress: Progress = no_progress,
        leaves: Leaves | None = None,
    ) -> Verification:
        """Verify every row from the first on; nothing remembered is used (ledger spec §4, Verifier).

        Rows that the database's own record of the ledger speaks of and that are not there, or differ, are the
        fault ``head_mismatch``.

        Args:
            expect_head: the head digest the caller remembers.
            expect_rows: how many hashed rows it covered.
            workers: of no use here.
            progress: told lines done and lines in all, now and then.
            leaves: takes the leaf of every row, for a checkpoint or a proof.

        Raises:
            Refused, Busy: the database cannot be asked.
        """
        with self._reading() as held:
            memory = Memory(self.unhashed_prefix, expect_head=expect_head, expect_rows=expect_rows, leaves=leaves)
            for batch in self._stream(0):
                memory.take(batch, keep=False)
                progress(memory.line, held.lines)
            return memory.verification(held)

    def read(self, *, trust: bool = False) -> Snapshot:
        """Return what the ledger says now: verified and replayed; faults are told in its verification.

        Args:
            trust: the caller will ask for confidence, so what it is computed of is collected in the same pass.

        Raises:
            Refused, Busy: the database cannot be asked.
        """
        with self._threads:
            with self._reading() as held:
                memory = self._caught_up(held, trust)
            return self._snapshot(memory, held)

    def summary(self) -> index.Summary:
        """Return what ``status`` tells.

        Raises:
            Refused, Busy: as :meth:`read`.
        """
        snapshot = self.read(trust=True)
        return index.summary_of(snapshot.state, snapshot.verification, snapshot.trust)

    def lines(self) -> Iterator[bytes]:
        """Yield every line with its LF, as they stand in the file of exchange.

        Raises:
            Refused, Busy: as :meth:`read`.
        """
        edge, limit = 0, FIRST
        with self._reading() as held:
            last = held.lines
        while True:
            # One query after the other, so that nothing stays open with whoever takes the lines.
            batch = self._fetch(f"{_ROWS} LIMIT %s", (self._id, edge, limit))
            for line, raw in batch:
                if line > last:
                    return
                yield raw + b"\n"
            if len(batch) < limit:
                return
            edge = batch[-1][0]
            limit = next_batch(len(batch), sum(len(raw) for _, raw in batch))

    def ruling(self) -> Ruling:
        """Return what governs the ledger now; the genesis key is the one in the database, the same for all machines.

        Raises:
            Refused, Busy: the database cannot be asked.
        """
        with self._threads, speaking(self.address):
            conn = self._connected()
            query = "SELECT data, signature FROM troth.constitutions WHERE workspace = %s ORDER BY number DESC LIMIT 1"
            key = conn.execute(query, (self._id,)).fetchone() or (None, None)
            if key != self._key:
                signers = self.config.genesis_signers
                self._ruling = ruling_of(key[0], file=self.location, signature=key[1], signers=signers)
                self._key = key
            return self._ruling

    def genesis(self) -> Genesis | None:
        """Return the key in force, ``None`` where there is none.

        Raises:
            Refused: the key is invalid; all nine operations wait (ledger spec §11).
        """
        ruling = self.ruling()
        if ruling.error is not None:
            raise ruling.error
        return ruling.genesis

    def enact(self, key: bytes | None, signature: bytes | None = None) -> bool:
        """Put a genesis key in force, or with ``None`` remove it; the next row is preceded by its event.

        Only the owner of the schema may. Returns whether anything changed.

        Raises:
            Refused: ``E_CONSTRAINT_VIOLATED`` (``genesis_invalid``) for an invalid key, ``E_STORE_REFUSED``.
        """
        ruling = ruling_of(key, signature=signature, signers=self.config.genesis_signers)
        if ruling.error is not None:
            raise ruling.error
        with self._threads, self._writing() as held:
            conn = self._current()
            query = "SELECT number, data, signature FROM troth.constitutions WHERE workspace = %s ORDER BY number DESC"
            last = conn.execute(query, (held.id,)).fetchone() or (0, None, None)
            if last[1:] == (key, signature):
                return False
            conn.execute(
                "INSERT INTO troth.constitutions (workspace, number, data, signature) VALUES (%s, %s, %s, %s)",
                (held.id, last[0] + 1, key, signature),
            )
            conn.execute("COMMIT")
            return True

    # Writing ---------------------------------------------------------------------------------------------------

    def append(
        self, candidate: Candidate, *, engine_trust: dict[str, Any] | None = None, seen: str | None = None
    ) -> dict[str, Any]:
        """Append one row and return it, complete, once the database has committed it.

        Args:
            candidate: what to record.
            engine_trust: measured by the engine, never supplied by a caller of the tool.
            seen: the head digest the caller last saw; another one gives the note ``blind_write`` (§7).

        Raises:
            Refused: with the codes of ledger spec §5, or those of the database; nothing was written.
            DoesNotHold: ``E_CHAIN_BROKEN``.
            Busy: ``E_BUSY``, ``E_STORE_LOST``; nothing was written.
            NotEstablished: ``E_OUTCOME_UNKNOWN``.
        """
        return self.append_with(lambda _: (candidate, engine_trust), seen=seen)

    def append_with(
        self,
        build: Callable[[Snapshot], Candidate | tuple[Candidate, dict[str, Any] | None]],
        *,
        seen: str | None = None,
    ) -> dict[str, Any]:
        """Append the row that ``build`` decides on while this store holds the ledger; see :meth:`append`."""
        with self._threads:
            if self._memory is None:
                self.read()  # so that the ledger is not held while all of it is read
            with self._writing() as held:
                memory = self._caught_up(held)
                snapshot = self._snapshot(memory, held)
                if seen is not None and seen != snapshot.head:
                    self.notify(Note("blind_write", f"blind_write: the ledger moved on; its head is {snapshot.head}"))
                built = build(snapshot)
                candidate, trust = built if isinstance(built, tuple) else (built, None)
                found = snapshot.verification
                rows = self._govern(candidate, snapshot, trust, sound=found.ok, last_hash=found.last_hash)
                lines = [(held.lines + number, row_bytes(row)) for number, row in enumerate(rows, 1)]
                token = uuid.uuid4()
                self._insert(rows, lines, token)
                try:
                    self._commit()
                except _Unanswered as broken:
                    self._find_out(lines[-1][0], token, str(broken))
                else:
                    memory.take(lines)
        for event in rows[:-1]:
            self.notify(Note("genesis_event", f"genesis_event: {event['payload']['body']}; {event['id']} records it"))
        return rows[-1]

    def rehearse(self, build: Callable[[Snapshot], Candidate]) -> None:
        """Refuse what :meth:`append_with` would refuse now; nothing is held or written, and nothing is promised.

        Raises:
            Refused, DoesNotHold: as :meth:`append`.
        """
        snapshot = self.read()
        found = snapshot.verification
        self._govern(build(snapshot), snapshot, None, sound=found.ok, last_hash=found.last_hash)

    def fill(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write complete, chained rows into a ledger that holds none, all of them or nothing.

        Raises:
            Refused: ``E_NOT_EMPTY`` when rows stand there already; as :meth:`append` otherwise.
        """
        self.load(row_bytes(row) for row in rows)

    def load(self, lines: Iterable[bytes]) -> Verification:
        """Write a whole ledger's lines, without their LF, into one that holds none: the same bytes, so the same head.

        Raises:
            DoesNotHold: ``E_CHAIN_BROKEN`` when the lines do not verify; nothing was written.
            Refused: ``E_NOT_EMPTY``; as :meth:`append` otherwise.
        """
        token = uuid.uuid4()
        with self._threads, self._writing() as held:
            if held.lines:
                raise Refused(
                    "E_NOT_EMPTY",
                    "the ledger holds rows already",
                    place=self._place(),
                    remedy="Name another workspace of the database.",
                )
            self._memory = None
            chain = ChainReader()
            taken: set[tuple[str, str]] = set()
            batch: list[tuple[Any, ...]] = []
            begun = False
            for raw in lines:
                batch.append((held.id, chain.line + 1, raw, *_columns(chain, raw, taken), token))
                # How many rows without a hash there are must be known before the first row goes in.
                if len(batch) >= _COPY_ROWS and chain.hashed:
                    self._copy(held, batch, chain.unhashed if not begun else None)
                    batch, begun = [], True
            self._copy(held, batch, chain.unhashed if not begun else None)
            found = chain.finish()
            if not found.ok:
                first = found.faults[0]
                raise DoesNotHold(
                    "E_CHAIN_BROKEN",
                    f"the lines do not verify: {first.fault}: {first.message}",
                    place=Place(line=first.line),
                    remedy="Run `troth verify` on the file for all faults; nothing was recorded.",
                )
            try:
                self._commit()
            except _Unanswered as broken:
                self._find_out(chain.line, token, str(broken))
            return found

    def repair_tail(self) -> Path | None:
        """Refuse: a database holds whole rows only.

        Raises:
            Refused: ``E_UNSUPPORTED``.
        """
        raise Refused("E_UNSUPPORTED", "a database holds whole rows only, so no tail can be torn", place=self._place())

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._threads:
            conn, self._conn = self._conn, None
            self._memory = None
            if conn is not None:
                conn.close()

    def __del__(self) -> None:
        """Close the connection."""
        conn = getattr(self, "_conn", None)
        if conn is not None:
            with suppress(Exception):  # the interpreter may be ending
                conn.close()

    # Inside ----------------------------------------------------------------------------------------------------

    def _govern(
        self, candidate: Candidate, snapshot: Snapshot, trust: dict[str, Any] | None, *, sound: bool, last_hash: str
    ) -> list[dict[str, Any]]:
        return govern(
            candidate,
            snapshot.state,
            self.ruling(),
            chain_ok=sound,
            head_hash=last_hash,
            workspace=self.workspace or self.name,
            now=self._clock(),
            random_hex=self._random_hex,
            engine_trust=trust,
        )

    def _connected(self, deadline: float | None = None) -> psycopg.Connection[Any]:
        """Return the connection, a new one where there is none or the old one broke."""
        if self._conn is not None and not self._conn.closed:
            return self._conn
        self._conn = None
        conn = connect(self.address, deadline)
        try:
            number = self._number(conn)
        except BaseException:
            conn.close()
            raise
        if number != self._id:
            self._id, self._memory = number, None
        self._conn = conn
        return conn

    def _current(self) -> psycopg.Connection[Any]:
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
                place=self._place(),
                remedy="Make it with: troth init --store URL",
            )
        return int(found[0])

    def _begin(self, statement: str, source: str, parameters: Sequence[Any] = ()) -> Held:
        """Begin a transaction and return the workspace's entry.

        A connection that broke while nobody used it is replaced: nothing was asked of it yet.
        """
        for fresh in (False, True):
            fresh = fresh or self._conn is None  # noqa: PLW2901 - a new connection is not tried twice
            conn = self._connected()
            try:
                with speaking(self.address):
                    conn.execute(statement.encode())
                    found = conn.execute(f"{_HELD}{source}".encode(), (*parameters, self._id)).fetchone()
                break
            except Busy as fault:
                if fault.code != "E_STORE_LOST" or fresh:
                    raise
                conn.close()
        if found is None:
            raise Refused("E_NO_LEDGER", "the workspace is gone from the database", place=self._place())
        held = Held(*found)
        self.unhashed_prefix = held.unhashed_prefix
        return held

    @contextmanager
    def _reading(self) -> Iterator[Held]:
        """Hold one state of the database still."""
        with self._threads:
            if self._held is not None:
                yield self._held  # whoever decides on a row while the ledger is held may read it
                return
            with self._rolled_back():
                yield self._begin(_READING, "troth.workspaces WHERE id = %s")

    @contextmanager
    def _writing(self) -> Iterator[Held]:
        """Hold the ledger against all other writers; what was not committed inside is undone."""
        with self._rolled_back():
            milliseconds = max(1, int(self._wait * 1000))
            held = self._begin(f"{_WRITING}; SET LOCAL lock_timeout = {milliseconds}", "troth.hold(%s)")
            self._held = held
            try:
                yield held
            finally:
                self._held = None

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

    def _caught_up(self, held: Held, trust: bool = False) -> Memory:
        """Return the memory with every row of this transaction in it; from the start when it does not fit them."""
        memory = self._memory
        if memory is not None and memory.agrees(held):
            return memory
        self._memory = None  # until it is whole again
        if memory is not None and memory.line <= held.lines:
            self._take(memory)
            if memory.agrees(held):
                self._memory = memory
                return memory
        memory = Memory(self.unhashed_prefix, edges=trust)
        self._take(memory)
        self._memory = memory
        return memory

    def _take(self, memory: Memory) -> None:
        for batch in self._stream(memory.line):
            memory.take(batch)

    def _stream(self, after: int) -> Iterator[list[tuple[int, bytes]]]:
        """Yield (line, bytes) behind a line in batches, in the transaction that is open."""
        with self._current().cursor(name="troth_rows", binary=True) as cursor:
            cursor.execute(_ROWS.encode(), (self._id, after))
            limit = FIRST
            while batch := cursor.fetchmany(limit):
                yield batch
                limit = next_batch(len(batch), sum(len(raw) for _, raw in batch))

    def _fetch(self, query: str, parameters: Sequence[Any]) -> list[tuple[int, bytes]]:
        """Run one query for rows, inside the transaction of this thread or on its own."""
        with self._threads, speaking(self.address):
            conn = self._connected()
            with conn.cursor(binary=True) as cursor:
                return cursor.execute(query.encode(), parameters).fetchall()

    def _snapshot(self, memory: Memory, held: Held) -> Snapshot:
        found = memory.verification(held)
        return Snapshot(
            DatabaseRows(self._fetch, held.id, memory.line, memory.count), memory.replay.state, lambda: found
        )

    def _insert(self, rows: Sequence[dict[str, Any]], lines: Sequence[tuple[int, bytes]], token: uuid.UUID) -> None:
        conn = self._current()
        for row, (line, raw) in zip(rows, lines, strict=True):
            key = row.get("source_key")
            beside = (row["id"].encode(), key.encode() if key is not None else None, row["hash"], token)
            conn.execute(_INSERT, (self._id, line, raw, *beside))
        # The COMMIT may have to wait for a standby; given up half-way it would count here and not there.
        conn.execute("SET LOCAL statement_timeout = 0")

    def _copy(self, held: Held, batch: list[tuple[Any, ...]], unhashed: int | None) -> None:
        """Send rows of a whole ledger; ``unhashed`` is given before the first ones."""
        conn = self._current()
        if unhashed is not None and unhashed != held.unhashed_prefix:
            conn.execute("UPDATE troth.workspaces SET unhashed_prefix = %s WHERE id = %s", (unhashed, held.id))
        if not batch:
            return
        with conn.cursor() as cursor, cursor.copy(_COPY.encode()) as copy:
            copy.set_types(_COPY_TYPES)
            for values in batch:
                copy.write_row(values)

    def _commit(self) -> None:
        """Commit, and know it.

        Raises:
            _Unanswered: the connection broke, so nobody here knows.
        """
        psycopg = load_driver()
        conn = self._current()
        try:
            done = conn.execute("COMMIT")
        except psycopg.Error as fault:
            lost = fault.sqlstate is None or fault.sqlstate.startswith(("08", "57P"))
            if not conn.closed and not lost:
                raise
            raise _Unanswered(self.address.scrubbed(str(fault))) from None
        if done.statusmessage != "COMMIT":
            raise Refused("E_WRITE_FAILED", "the database took the row back", place=self._place())

    def _find_out(self, line: int, token: uuid.UUID, why: str) -> None:
        """Return when the row turns out to be recorded.

        Raises:
            Busy: ``E_STORE_LOST``; it is not.
            NotEstablished: ``E_OUTCOME_UNKNOWN``; the database could not be asked in time.
        """
        self._memory = None
        deadline = time.monotonic() + self._wait
        while True:
            try:
                self._conn = None
                self._connected(deadline)
                # The old transaction, while it lasts, holds the ledger: whoever gets it sees what became of it.
                with self._writing():
                    found = (
                        self._current()
                        .execute(
                            "SELECT 1 FROM troth.rows WHERE workspace = %s AND line = %s AND token = %s",
                            (self._id, line, token),
                        )
                        .fetchone()
                    )
                break
            except TrothError as fault:
                if time.monotonic() > deadline:
                    self._unknown(why, fault)
                time.sleep(0.05)
        if found is None:
            raise Busy(
                "E_STORE_LOST",
                f"the connection to the database broke: {why}",
                place=self._place(),
                remedy="Nothing was recorded; try again.",
                detail="not_recorded",
            )

    def _unknown(self, why: str, fault: TrothError) -> NoReturn:
        raise NotEstablished(
            "E_OUTCOME_UNKNOWN",
            f"the connection broke while the row was committed ({why}), and the database cannot be asked what became "
            f"of it: {fault.message}",
            place=self._place(),
            remedy="Look with `troth log` before you try again.",
        ) from None

    def _place(self) -> Place:
        return Place(file=self.location)


def local_space() -> places.Workspace | None:
    """Return the workspace that the current folder lies in, ``None`` when it lies in none."""
    try:
        return places.find_workspace(places.here())
    except Refused as fault:
        if fault.code == "E_NO_WORKSPACE":
            return None
        raise


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
    store = PostgresStore.open(where)
    if name is not None:
        if not (places.is_workspace_name(name) and name.isprintable()):
            raise Refused("E_USAGE", "a workspace name has 1 to 128 printable characters and no white space")
        store.name = store.workspace = name
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
