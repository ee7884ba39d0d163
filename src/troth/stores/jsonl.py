"""The ledger as a JSON Lines file: verified reading, and durable appending under the write lock (ledger spec §4).

A row is acknowledged only after it and everything before it are on the disk. Readers take no lock.

An open store keeps what it verified. While the file's identity (device, inode, size, modification and change times)
is what the store left, nothing is read again. When the file grew, the bytes verified before are hashed and compared
with the digest remembered, and only the new ones are verified. Anything else is verified from the start.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from troth.core.canonical import row_bytes
from troth.core.errors import DoesNotHold, Place, Refused
from troth.core.ids import RandomHex, system_random
from troth.core.instants import Clock, system_clock
from troth.ledger.chain import ChainReader, Verification
from troth.ledger.cutover import Prefix
from troth.ledger.fastpath import stretch
from troth.ledger.governance import Ruling, govern, told_of
from troth.ledger.importing import DEFAULT_WORKSPACE
from troth.ledger.leaves import Leaves
from troth.ledger.operations import Candidate
from troth.stores import index, parallel
from troth.stores import memory as memories
from troth.stores import workspace as places
from troth.stores.constitution import KeyFile
from troth.stores.durable import (
    WriteFailed,
    append_durably,
    copy_range_durably,
    create_from,
    open_regular,
    os_fault,
    replace_from,
    sync_file,
    write_all,
)
from troth.stores.lines import KEPT, blocks
from troth.stores.lock import WAIT_SECONDS, WriteLock
from troth.stores.memory import Identity, Memory, identity, identity_at
from troth.stores.protocol import Keep, Note, Notify, Progress, keep_all, no_progress, quiet
from troth.stores.snapshot import FileRows, Snapshot, well_formed
from troth.stores.waiting import MOST_TOGETHER, Asked, Queue

if TYPE_CHECKING:
    from troth.ledger.genesis import Genesis
    from troth.stores.waiting import Build

RE_READ_SECONDS: Final = 0.05
"""A reader that meets half a row waits this long and looks once more: a writer may have been at work."""

TORN: Final = "torn-"

_UNTERMINATED: Final = "unterminated: the last row had no line feed; one was added"


class JsonlStore:
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
        self.ledger_file = ledger_file
        self.lock_file = lock_file if lock_file is not None else lock_beside(ledger_file)
        self.workspace = workspace
        self.unhashed_prefix = unhashed_prefix
        self.notify = notify
        self._key = KeyFile(genesis_file)
        self._held: Ruling | None = None
        self._clock = clock
        self._random_hex = random_hex
        self._lock = WriteLock(self.lock_file, wait_seconds)
        self._fd = -1
        self.config = places.Config()
        self.space: places.Workspace | None = None
        self._memory: Memory | None = None
        self._distrust = False
        self._queue = Queue()
        self._threads = threading.RLock()

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

    @property
    def location(self) -> str:
        """Return the file's path."""
        return str(self.ledger_file)

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
        """Verify the whole file from its first byte; nothing remembered is used (ledger spec §4, Verifier).

        Args:
            expect_head: the head digest the caller remembers.
            expect_rows: how many hashed rows it covered.
            workers: processes to share the work between; by default as many as there are cores, for a large file.
            progress: told bytes done and bytes in all, now and then.
            leaves: takes the leaf of every row, for a checkpoint or a proof.

        Raises:
            Refused: ``E_NO_LEDGER``, ``E_NOT_REGULAR``, ``E_UNREADABLE``.
        """
        chain = ChainReader(
            unhashed_prefix=self.unhashed_prefix, expect_head=expect_head, expect_rows=expect_rows, leaves=leaves
        )
        fd = self._open(os.O_RDONLY)
        try:
            size = os.fstat(fd).st_size
            covered = self._shared(chain, fd, workers, progress)
            for again in (True, False):
                for after, block, terminated in blocks(fd, covered):
                    if terminated:
                        chain.feed_block(block, stretch(block, False))
                    elif again and not well_formed(block, chain.line + 1):
                        time.sleep(RE_READ_SECONDS)
                        break
                    else:
                        chain.feed(block, False)
                    covered = after
                    progress(covered, size)
                else:
                    break
        except OSError as fault:
            raise self._unreadable(fault) from None
        finally:
            os.close(fd)
        return chain.finish()

    def _shared(self, chain: ChainReader, fd: int, workers: int | None, progress: Progress) -> int:
        """Let other processes help with a large file; return the offset that was reached."""
        size = os.fstat(fd).st_size
        if workers is None:
            workers = parallel.cores() if size >= parallel.WORTH_BYTES else 1
        if workers < 2:
            return 0
        return parallel.feed_shares(chain, fd, self.ledger_file, size, workers=workers, progress=progress)

    def read(self, *, trust: bool = False) -> Snapshot:
        """Return what the ledger says now: verified and replayed.

        Args:
            trust: the caller will ask for confidence, so what it is computed of is collected in the same pass.

        Raises:
            Refused: ``E_NO_LEDGER``, ``E_NOT_REGULAR``, ``E_UNREADABLE``. Faults of the chain are told in the
                snapshot's verification and raise nothing.
        """
        with self._threads:
            fd = self._open(os.O_RDONLY)
            try:
                before = identity(fd)
                memory = self._recall(fd, before, trust)
                tail = memory.scan(fd) if memory.identity != before else None
                if tail is not None and not well_formed(tail, memory.chain.line + 1):
                    time.sleep(RE_READ_SECONDS)
                    tail = memory.scan(fd)
                after = identity(fd)
                if tail is not None:
                    memory.take_rest(tail, after[2])
                # What changed while it was read is looked at again next time; so is an end without LF.
                memory.identity = after if before == after and memory.size == after[2] else None
                verification = memory.verification(fd)
                self._memory = memory if tail is None else None
                if memory.kept is not None and not verification.ok:
                    return self._from_the_start(trust)
                self._keep(memory, fd)
            except OSError as fault:
                self._memory = None
                raise self._unreadable(fault) from None
            finally:
                os.close(fd)
            return self._snapshot(memory, lambda: verification)

    def _from_the_start(self, trust: bool) -> Snapshot:
        # Behind what was kept, not every fault can be called by its name.
        self._memory, self._distrust = None, True
        return self.read(trust=trust)

    def lines(self) -> Iterator[bytes]:
        """Yield the file's bytes, a line with its LF at a time; of a line too long to be a row several pieces.

        Raises:
            Refused: as :meth:`read`.
        """
        with os.fdopen(self._open(os.O_RDONLY), "rb") as file:
            try:
                while piece := file.readline(KEPT):
                    yield piece
            except OSError as fault:
                raise self._unreadable(fault) from None

    def summary(self) -> index.Summary:
        """Return what ``status`` tells, from the throw-away index where the file is unchanged since.

        Raises:
            Refused: as :meth:`read`.
        """
        with self._threads:
            fd = self._open(os.O_RDONLY)
            found = identity(fd)
            os.close(fd)
            known = index.load(self.ledger_file, found, self.unhashed_prefix, self._everything)
            if known is not None:
                return known
            snapshot = self.read(trust=True)
            summary = index.summary_of(snapshot.state, snapshot.verification, snapshot.trust)
            if self._memory is not None and self._memory.identity is not None:
                index.save(self.ledger_file, self._memory.identity, self.unhashed_prefix, summary)
            return summary

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
        ruling = self.ruling()
        if ruling.error is not None:
            raise ruling.error
        return ruling.genesis

    def _everything(self) -> index.Everything:
        snapshot = self.read(trust=True)
        return index.summary_of(snapshot.state, snapshot.verification, snapshot.trust).everything()

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
        return self.append_with(lambda _: (candidate, engine_trust), seen=seen, okf_ingest=okf_ingest)

    def append_with(self, build: Build, *, seen: str | None = None, okf_ingest: bool = False) -> dict[str, Any]:
        """Append the row that ``build`` decides on while the lock is held; see :meth:`append`.

        Threads that wait for one another are served together: the one that leads appends what the others ask
        for too, each row judged by the state that those before it leave, and one sync stands for all. So
        ``build`` may be called in another thread than the caller's.
        """
        asked = Asked(build, seen, okf_ingest)
        if self._queue.lead(asked):
            others: list[Asked] = []
            try:
                with self._threads, self._lock:
                    self._serve(asked, others)
                    if self._memory is not None:
                        self._keep(self._memory, self._fd)
            finally:
                self._queue.hand_on(others)
        if asked.fault is not None:
            raise asked.fault
        for event in asked.rows[:-1]:
            self.notify(Note(*told_of(event)))
        return asked.rows[-1]

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
            rows = self._rows(memory, asked)
            self._write(memory, rows, others)
        except OSError as fault:
            self._memory = None
            raise self._unreadable(fault) from None
        asked.rows = rows

    def _rows(self, memory: Memory, asked: Asked, workspace: str | None = None) -> list[dict[str, Any]]:
        """Return the rows to append for what is asked; ``workspace`` is the name in the newest one, if not yet written.

        One key governs all that happens to a row: what measures it, what refuses it, and its event.
        """
        self._held = self._key.ruling()
        try:
            snapshot = self._snapshot(memory, lambda: memory.verification(self._fd))
            if asked.seen is not None and asked.seen != snapshot.head:
                self.notify(Note("blind_write", f"blind_write: the ledger moved on; its head is {snapshot.head}"))
            built = asked.build(snapshot)
            candidate, trust = built if isinstance(built, tuple) else (built, None)
            return self._govern(
                candidate,
                snapshot,
                trust,
                sound=memory.sound,
                last_hash=memory.last_hash,
                okf_ingest=asked.okf_ingest,
                prefix=memory.cutover_due(self._fd),
                newest=workspace,
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
        # A torn tail is no obstacle: the writer sets it aside.
        sound = all(fault.fault == "torn_tail" for fault in found.faults)
        self._govern(build(snapshot), snapshot, None, sound=sound, last_hash=found.last_hash, prefix=found.cutover_due)

    def repair_tail(self) -> Path | None:
        """Set a torn last line aside, alone and under the lock; return where it went, ``None`` if none was torn.

        Raises:
            Refused, Busy: as :meth:`append`.
        """
        with self._threads, self._lock:
            self._memory = None
            try:
                fd = self._writable()
                memory = Memory(self.unhashed_prefix, digest=False)
                tail = memory.scan(fd)
                return (
                    None if tail is None or well_formed(tail, memory.chain.line + 1) else self._set_aside(memory.size)
                )
            except OSError as fault:
                raise self._unreadable(fault) from None

    def fill(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write complete, chained rows into a ledger that is empty or absent, all of them or none.

        Raises:
            Refused: ``E_NOT_EMPTY`` when rows stand there already; as :meth:`append` otherwise.
        """
        self._put([b"".join(row_bytes(row) + b"\n" for row in rows)])

    def load(self, lines: Iterable[bytes]) -> Verification:
        """Write a whole ledger's lines, without their LF, into one that holds none: the same bytes, so the same head.

        Raises:
            DoesNotHold: ``E_CHAIN_BROKEN`` when the lines do not verify here; nothing was written.
            Refused: ``E_NOT_EMPTY``; as :meth:`append` otherwise.
        """
        chain = ChainReader(unhashed_prefix=self.unhashed_prefix)
        found: list[Verification] = []

        def verified() -> Iterator[bytes]:
            for raw in lines:
                chain.feed(raw)
                yield raw + b"\n"
            found.append(chain.finish())
            if not found[0].ok:
                first = found[0].faults[0]
                raise DoesNotHold(
                    "E_CHAIN_BROKEN",
                    f"the lines do not verify: {first.fault}: {first.message}",
                    place=Place(line=first.line),
                    remedy="Run `troth verify` on the file for all faults; nothing was recorded.",
                )

        self._put(verified())
        return found[0]

    def _put(self, pieces: Iterable[bytes]) -> None:
        """Write the whole content of a ledger that is empty or absent."""
        with self._threads, self._lock:
            self._memory = None
            self._close_file()
            try:
                if create_from(self.ledger_file, pieces):
                    return
                fd = self._open(os.O_RDWR)
                empty = os.fstat(fd).st_size == 0
                os.close(fd)
                if not empty:
                    raise Refused(
                        "E_NOT_EMPTY",
                        "the ledger holds rows already",
                        place=Place(file=str(self.ledger_file)),
                        remedy="Import into a new workspace, or name another ledger with --store.",
                    )
                # Whoever waits for the lock opens the file afterwards, so a new file in its place is safe.
                replace_from(self.ledger_file, pieces)
            except OSError as fault:
                raise self._unreadable(fault) from None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the write lock, so that nobody appends meanwhile; the file may be replaced in the body.

        Whoever waits for the lock opens the file afterwards, so a new file in its place is safe.

        Raises:
            Refused, Busy: the lock cannot be taken.
        """
        with self._threads, self._lock:
            self._memory = None
            self._close_file()
            try:
                yield
            finally:
                self._memory = None

    # Inside ----------------------------------------------------------------------------------------------------

    def _govern(
        self,
        candidate: Candidate,
        snapshot: Snapshot,
        trust: dict[str, Any] | None,
        *,
        sound: bool,
        last_hash: str,
        okf_ingest: bool = False,
        prefix: Prefix | None = None,
        newest: str | None = None,
    ) -> list[dict[str, Any]]:
        return govern(
            candidate,
            snapshot.state,
            self.ruling(),
            chain_ok=sound,
            head_hash=last_hash,
            workspace=self.workspace or newest or _last_workspace(snapshot) or DEFAULT_WORKSPACE,
            now=self._clock(),
            random_hex=self._random_hex,
            engine_trust=trust,
            okf_ingest=okf_ingest,
            prefix=prefix,
        )

    def _refresh(self) -> Memory:
        """Bring the memory up to the file's end, a torn tail set aside; the lock is held."""
        memory, self._memory = self._memory, None  # until the row is written
        if memory is not None and self._fd >= 0 and memory.identity == identity_at(self.ledger_file):
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

    def _recall(self, fd: int, identity: Identity, trust: bool = False) -> Memory:
        """Return the memory if its bytes are still the file's first ones, else an empty one."""
        memory = self._memory
        if memory is not None and (memory.identity == identity or memory.stands_in(fd, identity[2])):
            return memory
        if identity[2] >= memories.REMEMBERED_BYTES and not trust and not self._distrust:
            from troth.stores import remembered

            known = remembered.recall(self.ledger_file, fd, identity, self.unhashed_prefix)
            if known is not None:
                return known
        # If the file changed under an open store, it may do so again: a digest is kept from then on.
        return Memory(self.unhashed_prefix, digest=memory is not None, edges=trust)

    def _keep(self, memory: Memory, fd: int) -> None:
        """Keep what is known of a large ledger for the next process, now and then."""
        if memory.size >= memories.REMEMBERED_BYTES and memory.count >= memory.due and memory.edges is None:
            from troth.stores import remembered

            remembered.keep(self.ledger_file, fd, memory, self.unhashed_prefix)

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

    def _set_aside(self, start: int) -> Path:
        """Move the bytes from ``start`` on into a file of their own, durably, before they are cut off."""
        fd = self._fd
        end = os.fstat(fd).st_size
        stamp = self._clock().strftime("%Y%m%dT%H%M%SZ")
        in_workspace = self.ledger_file.parent.name == places.FOLDER
        stem = f"{TORN}{stamp}" if in_workspace else f"{self.ledger_file.name}.{TORN}{stamp}"
        number = 1
        while True:
            target = self.ledger_file.with_name(stem if number == 1 else f"{stem}-{number}")
            try:
                copy_range_durably(fd, start, end, target)
                break
            except FileExistsError:
                number += 1
        os.ftruncate(fd, start)
        sync_file(fd)
        self.notify(
            Note("torn_tail", f"torn_tail: {end - start} bytes of a row that was never acknowledged went to {target}")
        )
        return target

    def _snapshot(self, memory: Memory, verified: Callable[[], Verification]) -> Snapshot:
        rows = FileRows(self.ledger_file, memory.starts, memory.lines, memory.size, memory.count)
        return Snapshot(rows, memory.replay.state, verified, lambda: memory.trust(rows))

    def _open(self, flags: int) -> int:
        return open_regular(self.ledger_file, flags, "E_NO_LEDGER", "the ledger")

    def _writable(self) -> int:
        """Open the file for the writer anew; it stays open until another file stands in its place."""
        self._close_file()
        self._fd = self._open(os.O_RDWR | os.O_APPEND)
        return self._fd

    def _close_file(self, _close: Callable[[int], None] = os.close) -> None:
        # The function is held by the default value: when the interpreter ends, names of modules may be gone.
        fd, self._fd = self._fd, -1
        if fd >= 0:
            _close(fd)

    def close(self) -> None:
        """Close what is open; the next use opens it again."""
        with self._threads:
            self._close_file()
            self._lock.close()
            self._memory = None

    def __del__(self) -> None:
        """Close the file."""
        if getattr(self, "_fd", -1) >= 0:
            self._close_file()

    def _unreadable(self, fault: OSError) -> Exception:
        return os_fault("E_UNREADABLE", fault, self.ledger_file, "the ledger cannot be read or written")


def _lines(rows: Sequence[dict[str, Any]]) -> bytes:
    # A row that was admitted holds only what this serialiser takes; the bytes are those of `row_bytes`.
    return b"".join([orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows])


def lock_beside(ledger_file: Path) -> Path:
    """Return the write lock of a ledger file: ``.lock`` in ``.mentu``, else the file's name plus ``.lock``."""
    if ledger_file.parent.name == places.FOLDER:
        return ledger_file.with_name(places.LOCK)
    return ledger_file.with_name(f"{ledger_file.name}.lock")


def _last_workspace(snapshot: Snapshot) -> str | None:
    return _named(snapshot.rows[-1].value) if snapshot.rows else None


def _named(row: dict[str, Any]) -> str:
    name = row.get("workspace")
    return str(name) if places.is_workspace_name(name) else DEFAULT_WORKSPACE
