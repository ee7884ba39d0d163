"""The ledger in PostgreSQL: one serial chain of rows for each workspace, for as many machines as there are.

A row is acknowledged only after its COMMIT was answered. When the connection breaks before that answer, the store
connects again, waits for the old transaction to end, and looks whether the row is there.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from troth.core.canonical import row_bytes
from troth.core.errors import Refused
from troth.core.ids import RandomHex, system_random
from troth.core.instants import Clock, system_clock
from troth.ledger.chain import Verification
from troth.ledger.governance import Ruling, govern, told_of
from troth.ledger.importing import DEFAULT_WORKSPACE
from troth.ledger.leaves import Leaves
from troth.ledger.operations import Candidate
from troth.stores import index
from troth.stores import workspace as places
from troth.stores.lock import WAIT_SECONDS
from troth.stores.postgres import remembered
from troth.stores.postgres.address import Address, parse_address
from troth.stores.postgres.constitution import Constitution
from troth.stores.postgres.driver import load as load_driver
from troth.stores.postgres.memory import Held, Memory
from troth.stores.postgres.rows import DatabaseRows, lines_until
from troth.stores.postgres.session import INSERT, Session
from troth.stores.postgres.whole import load_whole
from troth.stores.protocol import Keep, Note, Notify, Progress, keep_all, moved_on, no_progress, quiet
from troth.stores.snapshot import Snapshot
from troth.stores.waiting import decided

if TYPE_CHECKING:
    from pathlib import Path

    from troth.ledger.genesis import Genesis
    from troth.stores.waiting import Build

MAX_ALONE: Final = 3
"""Rows that are sent one by one; more of them go together, without an answer awaited for each."""


class PostgresStore:
    """One workspace's ledger in a database.

    Args:
        address: where the database is.
        workspace: which ledger in it.
        clock, random_hex: where time and randomness come from.
        wait_seconds: how long a writer waits for others, and for a database that went away in mid-append.
        notify: takes sentences for a person, each a :class:`troth.stores.protocol.Note`.

    ``workspace`` is the name that new rows say, at first the ledger's own. ``space`` is the local workspace this
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
        self.workspace: str | None = workspace
        self.unhashed_prefix: int | None = None
        self.config = places.Config()
        self.space: places.Workspace | None = None
        self.notify = notify
        self._clock = clock
        self._random_hex = random_hex
        self._session = Session(address, workspace, wait_seconds)
        self._memory: Memory | None = None
        self._constitution = Constitution(self._session)

    @classmethod
    def open(
        cls,
        where: str,
        *,
        name: str | None = None,
        space: places.Workspace | None = None,
        clock: Clock = system_clock,
        random_hex: RandomHex = system_random,
        wait_seconds: float = WAIT_SECONDS,
        notify: Notify = quiet,
    ) -> PostgresStore:
        """Open the ledger at ``postgresql://…?workspace=NAME``.

        ``name`` stands for one that the address lacks. Without any it is that of the local workspace, ``space`` or the
        one found upward from the current folder, else ``default``. Nothing is connected yet.

        Raises:
            Refused: ``E_USAGE``, ``E_NO_DRIVER``, ``E_CONFIG``.
        """
        address = parse_address(where)
        load_driver()
        space = space or local_space()
        config = space.config() if space is not None else places.Config()
        store = cls(
            address,
            name or address.workspace or config.workspace or DEFAULT_WORKSPACE,
            clock=clock,
            random_hex=random_hex,
            wait_seconds=wait_seconds,
            notify=notify,
        )
        store.space = space
        store.config = config
        return store

    @property
    def address(self) -> Address:
        """Return where the database is."""
        return self._session.address

    @property
    def name(self) -> str:
        """Return the ledger's name in the database."""
        return self._session.name

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
        with self._session.reading() as held:
            self.unhashed_prefix = allowed = held.unhashed_prefix
            memory = Memory(allowed, expect_head=expect_head, expect_rows=expect_rows, leaves=leaves)
            for batch in self._session.stream(0):
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
        with self._session.threads:
            with self._session.reading() as held:
                memory = self._caught_up(held, trust)
            snapshot = self._snapshot(memory, held)
            if self._session.held is None:  # nobody waits for what is held
                remembered.keep(self.location, memory, held, snapshot.verification)
            return snapshot

    def summary(self) -> index.Summary:
        """Return what ``status`` tells, from the throw-away index where no row was added since.

        Raises:
            Refused, Busy: as :meth:`read`.
        """
        with self._session.threads, self._session.reading() as held:
            self.unhashed_prefix = held.unhashed_prefix
            covered = remembered.covered(self.location, held)
            known = index.load(covered, self._everything) if covered is not None else None
            if known is not None:
                return known
            memory = self._caught_up(held, True)
        summary = index.summary_of(self._snapshot(memory, held))
        remembered.save(self.location, memory, held, summary)
        return summary

    def _everything(self) -> index.Everything:
        return index.summary_of(self.read(trust=True)).everything()

    def lines(self) -> Iterator[bytes]:
        """Yield every line with its LF, as they stand in the file of exchange.

        Raises:
            Refused, Busy: as :meth:`read`.
        """
        with self._session.reading() as held:
            last = held.lines
        # One query after the other, so that nothing stays open with whoever takes the lines.
        for _, raw in lines_until(self._session.fetch, self._session.id, last):
            yield raw + b"\n"

    # Governing -------------------------------------------------------------------------------------------------

    def ruling(self) -> Ruling:
        """Return what governs the ledger now; the genesis key is the one in the database, the same for all machines.

        Raises:
            Refused, Busy: the database cannot be asked.
        """
        return self._constitution.ruling(self.config.genesis_signers)

    def genesis(self) -> Genesis | None:
        """Return the key in force, ``None`` where there is none.

        Raises:
            Refused: the key is invalid; all nine operations wait (ledger spec §11).
        """
        return self.ruling().in_force()

    def enact(self, key: bytes | None, signature: bytes | None = None) -> bool:
        """Put a genesis key in force, or with ``None`` remove it; the next row is preceded by its event.

        Only the owner of the schema may. Returns whether anything changed.

        Raises:
            Refused: ``E_CONSTRAINT_VIOLATED`` (``genesis_invalid``) for an invalid key, ``E_STORE_REFUSED``.
            NotEstablished: ``E_OUTCOME_UNKNOWN``; doing it again does no harm.
        """
        return self._constitution.enact(key, signature, self.config.genesis_signers)

    # Writing ---------------------------------------------------------------------------------------------------

    def append(
        self,
        candidate: Candidate,
        *,
        engine_trust: dict[str, Any] | None = None,
        seen: str | None = None,
        okf_ingest: bool = False,
    ) -> dict[str, Any]:
        """Append one row and return it, complete, once the database has committed it.

        Args:
            candidate: what to record.
            engine_trust: measured by the engine, never supplied by a caller of the tool.
            seen: the head digest the caller last saw; another one gives the note ``blind_write`` (§7).
            okf_ingest: the caller is the ingest of knowledge bundles, with relation types of its own (§8, §13).

        Raises:
            Refused: with the codes of ledger spec §5, or those of the database; nothing was written.
            DoesNotHold: ``E_CHAIN_BROKEN``.
            Busy: ``E_BUSY``, ``E_STORE_LOST``; nothing was written.
            NotEstablished: ``E_OUTCOME_UNKNOWN``.
        """
        return self.append_with(lambda _: (candidate, engine_trust), seen=seen, okf_ingest=okf_ingest)

    def append_with(
        self,
        build: Build,
        *,
        seen: str | None = None,
        okf_ingest: bool = False,
    ) -> dict[str, Any]:
        """Append the row that ``build`` decides on while this store holds the ledger; see :meth:`append`."""
        (answer,) = self.append_many((build,), seen=seen, okf_ingest=okf_ingest)
        if isinstance(answer, Refused):
            raise answer
        return answer

    def append_many(
        self,
        builds: Sequence[Build],
        *,
        okf_ingest: bool = False,
        keep: Keep = keep_all,
        seen: str | None = None,
    ) -> list[dict[str, Any] | Refused]:
        """Append the rows that each of ``builds`` decides on, in order, in one transaction.

        ``builds`` may ask the snapshot's state only.

        Args:
            builds: one call for each row, judged by the state that those before it leave.
            okf_ingest: as in :meth:`append`.
            keep: told the answers once all are judged; unless it says yes, nothing is written.
            seen: as in :meth:`append`.

        Returns:
            For each the row, or why it was refused.

        Raises:
            DoesNotHold, Busy, NotEstablished: as :meth:`append`.
            Refused: what concerns them all.
        """
        answers: list[dict[str, Any] | Refused] = []
        events: list[dict[str, Any]] = []
        with self._session.threads:
            if self._memory is None:
                self.read()  # so that the ledger is not held while all of it is read
            with self._session.writing() as held:
                memory = self._caught_up(held)
                snapshot = self._snapshot(memory, held)
                if seen is not None and builds and seen != snapshot.head:
                    self.notify(moved_on(snapshot.head))
                written: list[dict[str, Any]] = []
                lines: list[tuple[int, bytes]] = []
                for build in builds:
                    try:
                        rows = self._rows(build, snapshot, written, okf_ingest=okf_ingest)
                    except Refused as fault:
                        answers.append(fault)
                        continue
                    more = [(memory.line + number, row_bytes(row)) for number, row in enumerate(rows, 1)]
                    self._memory = None  # it runs ahead of the database until all is committed
                    memory.take(more)
                    lines += more
                    written += rows
                    answers.append(rows[-1])
                    events += rows[:-1]
                if not lines or not keep(answers):
                    return answers
                self._commit(written, lines)
                self._memory = memory
        for event in events:
            self.notify(Note(*told_of(event)))
        return answers

    def rehearse(self, build: Callable[[Snapshot], Candidate]) -> None:
        """Refuse what :meth:`append_with` would refuse now; nothing is held or written, and nothing is promised.

        Raises:
            Refused, DoesNotHold: as :meth:`append`.
        """
        self._rows(build, self.read())

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
        return load_whole(self._session, lines)

    def repair_tail(self) -> Path | None:
        """Refuse: a database holds whole rows only.

        Raises:
            Refused: ``E_UNSUPPORTED``.
        """
        raise Refused(
            "E_UNSUPPORTED", "a database holds whole rows only, so no tail can be torn", place=self._session.place()
        )

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._session.threads:
            self._session.close()
            self._memory = None

    # Inside ----------------------------------------------------------------------------------------------------

    def _rows(
        self, build: Build, snapshot: Snapshot, before: Sequence[dict[str, Any]] = (), *, okf_ingest: bool = False
    ) -> list[dict[str, Any]]:
        """Return the rows to append for what is asked, behind the snapshot's own and those of ``before``."""
        found = snapshot.verification
        candidate, trust = decided(build, snapshot)
        return govern(
            candidate,
            snapshot.state,
            self.ruling(),
            chain_ok=found.ok,
            head_hash=before[-1]["hash"] if before else found.last_hash,
            workspace=self.workspace or self.name,
            now=self._clock(),
            random_hex=self._random_hex,
            engine_trust=trust,
            okf_ingest=okf_ingest,
            prefix=None if before else found.cutover_due,
        )

    def _caught_up(self, held: Held, trust: bool = False) -> Memory:
        """Return the memory with every row of this transaction in it; from the start when it does not fit them."""
        self.unhashed_prefix = held.unhashed_prefix
        memory = self._memory
        if memory is not None and memory.agrees(held):
            return memory
        self._memory = None  # until it is whole again
        if memory is None and not trust:
            memory = remembered.recall(self.location, held)
        if memory is None or not self._follows(memory, held):
            memory = Memory(self.unhashed_prefix, edges=trust)
            self._take(memory)
        self._memory = memory
        return memory

    def _follows(self, memory: Memory, held: Held) -> bool:
        """Take the rows behind a memory, and tell whether those in it are still the ledger's first ones."""
        if memory.line > held.lines:
            return False
        if not memory.agrees(held):
            self._take(memory)
        # Behind what was kept, not every fault can be called by its name.
        return memory.agrees(held) and (memory.kept is None or memory.verification(held).ok)

    def _take(self, memory: Memory) -> None:
        for batch in self._session.stream(memory.line):
            memory.take(batch)

    def _commit(self, rows: Sequence[dict[str, Any]], lines: Sequence[tuple[int, bytes]]) -> None:
        """Add the rows and commit them."""
        conn, token = self._session.current(), uuid.uuid4()
        values = []
        for row, (line, raw) in zip(rows, lines, strict=True):
            key = row.get("source_key")
            beside = (row["id"].encode(), key.encode() if key is not None else None, row["hash"], token)
            values.append((self._session.id, line, raw, *beside))
        if len(values) <= MAX_ALONE:
            for one in values:
                conn.execute(INSERT, one)
        else:
            with conn.cursor() as cursor:
                cursor.executemany(INSERT, values)
        # The COMMIT may have to wait for a standby; given up half-way it would count here and not there.
        conn.execute("SET LOCAL statement_timeout = 0")
        self._session.commit(lines[-1][0], token)

    def _snapshot(self, memory: Memory, held: Held) -> Snapshot:
        found = memory.verification(held)
        rows = DatabaseRows(self._session.fetch, held.id, memory.line, memory.count)
        return Snapshot(rows, memory.replay.state, lambda: found, lambda: memory.trust(rows))


def local_space() -> places.Workspace | None:
    """Return the workspace that the current folder lies in, ``None`` when it lies in none."""
    try:
        return places.find_workspace(places.here())
    except Refused as fault:
        if fault.code == "E_NO_WORKSPACE":
            return None
        raise
