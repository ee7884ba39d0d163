"""The ledger as a JSON Lines file: opened by its workspace, appended to durably under the write lock (ledger spec §4).

A row is acknowledged only after it and everything before it are on the disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from troth.core.digests import ZERO
from troth.core.errors import Place, Refused
from troth.core.ids import RandomHex, system_random
from troth.core.instants import Clock, system_clock
from troth.ledger.governance import Ruling, govern, told_of
from troth.ledger.importing import DEFAULT_WORKSPACE
from troth.ledger.operations import Candidate
from troth.ledger.rows import Row
from troth.stores import workspace as places
from troth.stores.constitution import KeyFile
from troth.stores.durable import (
    WriteFailed,
    append_durably,
    write_all,
)
from troth.stores.lock import WAIT_SECONDS
from troth.stores.memory import Memory, identity, identity_at
from troth.stores.protocol import Keep, Note, Notify, keep_all, moved_on, quiet
from troth.stores.replayedfile import ReplayedFile
from troth.stores.snapshot import Snapshot, well_formed
from troth.stores.waiting import MOST_TOGETHER, Asked, Queue, decided

if TYPE_CHECKING:
    from troth.ledger.genesis import Genesis
    from troth.stores.waiting import Build

_UNTERMINATED: Final = "unterminated: the last row had no line feed; one was added"


class JsonlStore(ReplayedFile):
    """One ledger file.

    Args:
        ledger_file: the file.
        workspace: name written into new rows; ``None`` continues with the newest row's.
        unhashed_prefix: exact number of unhashed rows permitted, ``None`` for any.
        lock_file: the write lock; ``.lock`` beside a ledger in ``.mentu``, else the file's name plus ``.lock``.
        genesis_file: where the constitution stands, if there can be one.
        clock, random_hex: where time and randomness come from.
        wait_seconds: how long a writer waits for the lock.
        notify: takes sentences for a person (a torn tail set aside, a stale ``seen``), each a :class:`Note`.

    ``space`` is the workspace the file lies in and ``config`` its settings; ``None`` and the defaults for a file on
    its own.
    """

    def __init__(
        self,
        ledger_file: Path,
        *,
        workspace: str | None = None,
        unhashed_prefix: int | None = None,
        lock_file: Path | None = None,
        genesis_file: Path | None = None,
        clock: Clock = system_clock,
        random_hex: RandomHex = system_random,
        wait_seconds: float = WAIT_SECONDS,
        notify: Notify = quiet,
    ) -> None:
        super().__init__(
            ledger_file,
            lock_file,
            unhashed_prefix=unhashed_prefix,
            clock=clock,
            wait_seconds=wait_seconds,
            notify=notify,
        )
        self.workspace = workspace
        self._key = KeyFile(genesis_file)
        self._held: Ruling | None = None
        self._random_hex = random_hex
        self.config = places.Config()
        self.space: places.Workspace | None = None
        self._queue = Queue()

    @classmethod
    def open(
        cls,
        where: Path | str | None = None,
        *,
        clock: Clock = system_clock,
        random_hex: RandomHex = system_random,
        wait_seconds: float = WAIT_SECONDS,
        notify: Notify = quiet,
    ) -> JsonlStore:
        """Open a ledger: a file, a workspace folder, or ``None`` to search upward from the current folder.

        A ledger file inside ``.mentu`` is governed by the settings beside it (ledger spec §16, Verify).

        Raises:
            Refused: ``E_NO_WORKSPACE``, ``E_CONFIG``.
        """
        if isinstance(where, str):
            where = Path(where)
        if where is None:
            space: places.Workspace | None = places.find_workspace(places.here())
        elif os.path.isdir(where):
            space = places.workspace_at(where)
        else:
            where = places.absolute(where)
            space = places.workspace_at(where.parent) if where.parent.name == places.FOLDER else None
        if space is None:
            assert where is not None
            return cls(where, clock=clock, random_hex=random_hex, wait_seconds=wait_seconds, notify=notify)
        config = space.config()
        store = cls(
            where if where is not None and where.parent == space.folder else space.ledger,
            workspace=config.workspace or places.name_for(space.root),
            unhashed_prefix=config.unhashed_prefix,
            lock_file=space.lock,
            genesis_file=space.genesis_file,
            clock=clock,
            random_hex=random_hex,
            wait_seconds=wait_seconds,
            notify=notify,
        )
        store.config = config
        store._key = KeyFile(space.genesis_file, config.genesis_signers)
        store.space = space
        return store

    # Governing -------------------------------------------------------------------------------------------------

    @property
    def key_file(self) -> Path | None:
        """Return where the genesis key lies or would lie, ``None`` where the ledger can have none."""
        return self._key.path

    def ruling(self) -> Ruling:
        """Return what governs the ledger now: no key, a valid one, or an invalid one and why.

        The key is read each time and parsed when its bytes are new; while a row is made it stays what it was.
        """
        return self._key.ruling() if self._held is None else self._held

    def genesis(self) -> Genesis | None:
        """Return the key in force, ``None`` where there is none.

        Raises:
            Refused: the key is invalid or cannot be read; all nine operations wait (ledger spec §11).
        """
        return self.ruling().in_force()

    # Writing ---------------------------------------------------------------------------------------------------

    def append(
        self,
        candidate: Candidate,
        *,
        engine_trust: dict[str, Any] | None = None,
        seen: str | None = None,
        okf_ingest: bool = False,
    ) -> dict[str, Any]:
        """Append one row and return it, complete, once it is on the disk.

        Args:
            candidate: what to record.
            engine_trust: measured by the engine, never supplied by a caller of the tool.
            seen: the head digest the caller last saw; another one gives the note ``blind_write`` (§7).
            okf_ingest: the caller is the ingest of knowledge bundles, with relation types of its own (§8, §13).

        Raises:
            Refused: with the codes of ledger spec §5; nothing was written.
            DoesNotHold: ``E_CHAIN_BROKEN``.
            Busy: the lock was held for ten seconds.
        """
        return self._answer(Asked((candidate, engine_trust), seen, okf_ingest))

    def append_with(self, build: Build, *, seen: str | None = None, okf_ingest: bool = False) -> dict[str, Any]:
        """Append the row that ``build`` decides on while the lock is held; see :meth:`append`.

        Threads that wait for one another are served together: the one that leads appends what the others ask
        for too, each row judged by the state that those before it leave, and one sync stands for all. So
        ``build`` may be called in another thread than the caller's.
        """
        return self._answer(Asked(build, seen, okf_ingest))

    def _answer(self, asked: Asked) -> dict[str, Any]:
        """Append what is asked, or wait until another thread has; return the row."""
        if self._queue.lead(asked):
            others: list[Asked] = []
            try:
                with self._threads, self._lock:
                    self._serve(asked, others)
            finally:
                self._queue.hand_on(others)
        if asked.fault is not None:
            raise asked.fault
        rows = asked.rows
        if len(rows) > 1:
            for event in rows[:-1]:
                self.notify(Note(*told_of(event)))
        return rows[-1]

    def append_many(
        self,
        builds: Sequence[Build],
        *,
        okf_ingest: bool = False,
        keep: Keep = keep_all,
        seen: str | None = None,
    ) -> list[dict[str, Any] | Refused]:
        """Append the rows that each of ``builds`` decides on, in order, with one sync for all of them.

        A crash leaves the first of them or none, the last perhaps torn. ``builds`` may ask the snapshot's state only.

        Args:
            builds: one call for each row, judged by the state that those before it leave.
            okf_ingest: as in :meth:`append`.
            keep: told the answers once all are judged; unless it says yes, nothing is written.
            seen: as in :meth:`append`.

        Returns:
            For each the row, or why it was refused.

        Raises:
            DoesNotHold: ``E_CHAIN_BROKEN``.
            Refused, Busy: what concerns them all, such as a full disk; nothing is acknowledged.
        """
        answers: list[dict[str, Any] | Refused] = []
        events: list[dict[str, Any]] = []
        data: list[bytes] = []
        with self._threads, self._lock:
            try:
                memory = self._refresh()
                size, lacking = memory.size, memory.open_end
                self._memory = None  # it runs ahead of the file until all is written
                workspace = None
                for build in builds:
                    try:
                        asked = Asked(build, seen, okf_ingest)
                        seen = None
                        rows = self._rows(memory, asked, workspace)
                    except Refused as fault:
                        answers.append(fault)
                        continue
                    data.append(_lines(rows))
                    memory.wrote(rows, data[-1])
                    answers.append(rows[-1])
                    events += rows[:-1]
                    workspace = _named(rows[-1])
                if not data:
                    self._memory = memory
                    return answers
                if not keep(answers):
                    return answers
                if lacking:
                    self.notify(Note("unterminated", _UNTERMINATED))
                append_durably(self._fd, b"\n" * lacking + b"".join(data), size, self.ledger_file)
                memory.identity = identity(self._fd)
                if memory.size == memory.identity[2]:  # not where a line feed was lacking: its offsets are of before
                    self._memory = memory
            except OSError as fault:
                raise self._unreadable(fault) from None
        for event in events:
            self.notify(Note(*told_of(event)))
        return answers

    def _serve(self, asked: Asked, others: list[Asked]) -> None:
        """Append what is asked, and behind it what ``others`` ask for, with one sync; both locks are held."""
        try:
            memory = self._refresh()
            asked.rows = self._rows(memory, asked)
            self._write(memory, asked.rows, others)
            if memory is self._memory:
                self._keep(memory, self._fd)
        except OSError as fault:
            self._memory = None
            raise self._unreadable(fault) from None

    def _rows(self, memory: Memory, asked: Asked, workspace: str | None = None) -> list[dict[str, Any]]:
        """Return the rows to append for what is asked; ``workspace`` is the name in the newest one, if not yet written.

        One key governs all that happens to a row: what measures it, what refuses it, and its event.
        """
        self._held = ruling = self._key.ruling()
        try:
            if asked.seen is not None:
                head = memory.verification(self._fd).head
                if asked.seen != head:
                    self.notify(moved_on(head))
            candidate, trust = decided(asked.build, self._snapshot(memory, lambda: memory.verification(self._fd)))
            return govern(
                candidate,
                memory.replay.state,
                ruling,
                chain_ok=memory.sound,
                head_hash=memory.last_hash,
                workspace=self.workspace or workspace or _named_in(self._file_rows(memory)),
                now=self._clock(),
                random_hex=self._random_hex,
                engine_trust=trust,
                okf_ingest=asked.okf_ingest,
                prefix=memory.cutover_due(self._fd) if memory.last_hash == ZERO else None,
            )
        finally:
            self._held = None

    def rehearse(self, build: Callable[[Snapshot], Candidate]) -> None:
        """Refuse what :meth:`append_with` would refuse now; nothing is locked or written, and nothing is promised.

        Raises:
            Refused, DoesNotHold: as :meth:`append`.
        """
        snapshot = self.read()
        found = snapshot.verification
        govern(
            build(snapshot),
            snapshot.state,
            self.ruling(),
            # A torn tail is no obstacle: the writer sets it aside.
            chain_ok=all(fault.fault == "torn_tail" for fault in found.faults),
            head_hash=found.last_hash,
            workspace=self.workspace or _named_in(snapshot.rows),
            now=self._clock(),
            random_hex=self._random_hex,
            prefix=found.cutover_due,
        )

    # Inside ----------------------------------------------------------------------------------------------------

    def _refresh(self) -> Memory:
        """Bring the memory up to the file's end, a torn tail set aside; the lock is held."""
        memory, self._memory = self._memory, None  # until the row is written
        if memory is not None and self._fd >= 0 and memory.identity == identity_at(self._name):
            self._memory = memory
            return memory
        fd = self._writable()
        self._memory = memory
        memory = self._recall(fd, identity(fd))
        self._memory = None
        tail = memory.scan(fd)
        if tail is not None:
            end = identity(fd)[2]
            if well_formed(tail, memory.chain.line + 1):
                memory.take_rest(tail, end)
            else:
                self._set_aside(memory.size)
        memory.verification(fd)
        if memory.kept is not None and not memory.sound:
            self._distrust = True
            return self._refresh()
        memory.identity = identity(fd)
        self._memory = memory
        return memory

    def _write(self, memory: Memory, rows: Sequence[dict[str, Any]], others: list[Asked]) -> None:
        """Write the rows in one call and return once all are on the disk; a crash leaves the first ones or none.

        Takes those who wait into ``others`` and writes theirs behind them, before the sync.
        """
        data = _lines(rows)
        if memory.open_end:
            self.notify(Note("unterminated", _UNTERMINATED))
            self._memory = None  # its offsets and digest speak of a line that ended elsewhere
            append_durably(self._fd, b"\n" + data, memory.size, self.ledger_file)
            return
        self._memory = None

        def also() -> None:
            memory.wrote(rows, data)
            self._write_waiting(memory, others)

        try:
            append_durably(self._fd, data, memory.size, self.ledger_file, also)
        except WriteFailed as fault:
            for other in others:
                other.fault = fault
            raise
        for other in others:
            if other.rows:
                other.fault = None
        memory.identity = identity(self._fd)
        if memory.size == memory.identity[2]:
            self._memory = memory

    def _write_waiting(self, memory: Memory, served: list[Asked]) -> None:
        """Write what other threads ask for, unsynced; each of them is answered for good by whoever syncs."""
        while len(served) < MOST_TOGETHER and (other := self._queue.next()) is not None:
            served.append(other)
            other.answered = True
            try:
                rows = self._rows(memory, other)
            except OSError as fault:
                other.fault = self._unreadable(fault)
                continue
            except Exception as fault:
                other.fault = fault
                continue
            # Until it is synced; it stays so when this thread is stopped before.
            other.fault = WriteFailed(
                "E_WRITE_FAILED",
                "the row could not be made durable: the thread that wrote it was stopped",
                place=Place(file=str(self.ledger_file)),
                remedy="Look whether it is there, and try again.",
            )
            other.rows = rows
            data = _lines(rows)
            write_all(self._fd, data)
            memory.wrote(rows, data)


def _lines(rows: Sequence[dict[str, Any]]) -> bytes:
    # A row that was admitted holds only what this serialiser takes; the bytes are those of `row_bytes`.
    return b"".join([orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows])


def _named_in(rows: Sequence[Row]) -> str:
    return _named(rows[-1].value) if rows else DEFAULT_WORKSPACE


def _named(row: dict[str, Any]) -> str:
    name = row.get("workspace")
    return str(name) if places.is_workspace_name(name) else DEFAULT_WORKSPACE
