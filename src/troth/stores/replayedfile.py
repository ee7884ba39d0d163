"""A ledger file with what its rows come to: read without a lock, verified, replayed, remembered (ledger spec §4, §16).

An open store keeps what it verified. While the file's identity (device, inode, size, modification and change times)
is what the store left, nothing is read again. When the file grew, the bytes verified before are hashed and compared
with the digest remembered, and only the new ones are verified. Anything else is verified from the start.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from troth.ledger.chain import Verification
from troth.stores import index
from troth.stores import memory as memories
from troth.stores.ledgerfile import RE_READ_SECONDS, LedgerFile
from troth.stores.memory import Identity, Memory, identity
from troth.stores.snapshot import FileRows, Snapshot, well_formed


class ReplayedFile(LedgerFile):
    """What can be read of the file; see :class:`troth.stores.ledgerfile.LedgerFile`."""

    _memory: Memory | None = None
    _distrust = False  # whether what was kept for a next process turned out to be of no use

    def _forget(self) -> None:
        self._memory = None

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

    def summary(self) -> index.Summary:
        """Return what ``status`` tells, from the throw-away index where the file is unchanged since.

        Raises:
            Refused: as :meth:`read`.
        """
        with self._threads:
            fd = self._open(os.O_RDONLY)
            found = identity(fd)
            os.close(fd)
            covered = index.file_covered(self.ledger_file, found, self.unhashed_prefix)
            known = index.load(covered, self._everything) if covered is not None else None
            if known is not None:
                return known
            snapshot = self.read(trust=True)
            summary = index.summary_of(snapshot)
            if self._memory is not None and self._memory.identity is not None:
                covered = index.file_covered(self.ledger_file, self._memory.identity, self.unhashed_prefix)
                if covered is not None:
                    index.save(covered, summary)
            return summary

    def _everything(self) -> index.Everything:
        return index.summary_of(self.read(trust=True)).everything()

    # Inside ----------------------------------------------------------------------------------------------------

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

    def _snapshot(self, memory: Memory, verified: Callable[[], Verification]) -> Snapshot:
        rows = self._file_rows(memory)
        return Snapshot(rows, memory.replay.state, verified, lambda: memory.trust(rows))

    def _file_rows(self, memory: Memory) -> FileRows:
        return FileRows(self.ledger_file, memory.starts, memory.lines, memory.size, memory.count)
