"""A ledger file as a whole: verified, copied out, written at once, its torn tail set aside (ledger spec §4, §16)."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from troth.core.canonical import row_bytes
from troth.core.errors import DoesNotHold, Place, Refused
from troth.core.instants import Clock
from troth.ledger.chain import ChainReader, Verification
from troth.ledger.fastpath import stretch
from troth.ledger.leaves import Leaves
from troth.stores import parallel
from troth.stores import workspace as places
from troth.stores.durable import (
    copy_range_durably,
    create_from,
    open_regular,
    os_fault,
    replace_from,
    sync_file,
)
from troth.stores.lines import KEPT, blocks
from troth.stores.lock import WriteLock
from troth.stores.memory import Memory
from troth.stores.protocol import Note, Notify, Progress, no_progress
from troth.stores.snapshot import well_formed
from troth.stores.workers import cores

RE_READ_SECONDS: Final = 0.05
"""A reader that meets half a row waits this long and looks once more: a writer may have been at work."""

TORN: Final = "torn-"


class LedgerFile:
    """What can be done with the file without knowing what its rows come to.

    Args:
        ledger_file: the file.
        lock_file: the write lock; ``.lock`` beside a ledger in ``.mentu``, else the file's name plus ``.lock``.
        unhashed_prefix: exact number of unhashed rows permitted, ``None`` for any.
        clock: names what is set aside.
        wait_seconds: how long a writer waits for the lock.
        notify: takes sentences for a person, each a :class:`Note`.
    """

    def __init__(
        self,
        ledger_file: Path,
        lock_file: Path | None,
        *,
        unhashed_prefix: int | None,
        clock: Clock,
        wait_seconds: float,
        notify: Notify,
    ) -> None:
        self.ledger_file = ledger_file
        self._name = os.fspath(ledger_file)
        self.lock_file = lock_file if lock_file is not None else lock_beside(ledger_file)
        self.unhashed_prefix = unhashed_prefix
        self.notify = notify
        self._clock = clock
        self._lock = WriteLock(self.lock_file, wait_seconds)
        self._fd = -1
        self._threads = threading.RLock()

    def _forget(self) -> None:
        """Forget what was known of the file; whoever knows something has more to do here."""

    @property
    def location(self) -> str:
        """Return the file's path."""
        return str(self.ledger_file)

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
            workers = cores() if size >= parallel.WORTH_BYTES else 1
        if workers < 2:
            return 0
        return parallel.feed_shares(chain, fd, self.ledger_file, size, workers=workers, progress=progress)

    def lines(self) -> Iterator[bytes]:
        """Yield the file's bytes, a line with its LF at a time; of a line too long to be a row several pieces.

        Raises:
            Refused: ``E_NO_LEDGER``, ``E_NOT_REGULAR``, ``E_UNREADABLE``.
        """
        with os.fdopen(self._open(os.O_RDONLY), "rb") as file:
            try:
                while piece := file.readline(KEPT):
                    yield piece
            except OSError as fault:
                raise self._unreadable(fault) from None

    def repair_tail(self) -> Path | None:
        """Set a torn last line aside, alone and under the lock; return where it went, ``None`` if none was torn.

        Raises:
            Refused: ``E_UNREADABLE``.
            Busy: the lock was held.
        """
        with self._threads, self._lock:
            self._forget()
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
            Refused: ``E_NOT_EMPTY`` when rows stand there already; ``E_UNREADABLE``; ``Busy`` when the lock was held.
        """
        self._put([b"".join(row_bytes(row) + b"\n" for row in rows)])

    def load(self, lines: Iterable[bytes]) -> Verification:
        """Write a whole ledger's lines, without their LF, into one that holds none: the same bytes, so the same head.

        Raises:
            DoesNotHold: ``E_CHAIN_BROKEN`` when the lines do not verify here; nothing was written.
            Refused: ``E_NOT_EMPTY``; ``E_UNREADABLE``; ``Busy`` when the lock was held.
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
            self._forget()
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
            self._forget()
            self._close_file()
            try:
                yield
            finally:
                self._forget()

    # Inside ----------------------------------------------------------------------------------------------------

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
            self._forget()

    def __del__(self) -> None:
        """Close the file."""
        if getattr(self, "_fd", -1) >= 0:
            self._close_file()

    def _unreadable(self, fault: OSError) -> Exception:
        return os_fault("E_UNREADABLE", fault, self.ledger_file, "the ledger cannot be read or written")


def lock_beside(ledger_file: Path) -> Path:
    """Return the write lock of a ledger file: ``.lock`` in ``.mentu``, else the file's name plus ``.lock``."""
    if ledger_file.parent.name == places.FOLDER:
        return ledger_file.with_name(places.LOCK)
    return ledger_file.with_name(f"{ledger_file.name}.lock")
