"""What an open store remembers of a ledger file, and when it may still believe it."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.core.digests import ZERO
from troth.core.errors import Refused
from troth.ledger.chain import ChainReader, Verification
from troth.ledger.confidence import Trust, collect
from troth.ledger.cutover import Prefix
from troth.ledger.fastpath import stretch
from troth.ledger.replay import Replay
from troth.ledger.rows import Row
from troth.ledger.trust_edges import TrustEdges
from troth.stores.lines import CHUNK, PrefixDigest, blocks

if TYPE_CHECKING:
    from troth.stores.keptstate import Kept

REMEMBERED_BYTES: Final = 8 << 20
"""A smaller ledger is replayed as quickly as what was kept of it is read (:mod:`troth.stores.remembered`)."""

LANDMARK_BYTES: Final = 1 << 16
"""Distance of the notes on where lines begin, so that a row can be found again without keeping every offset."""

Identity = tuple[int, int, int, int, int]
"""Device, inode, size, modification and change times in nanoseconds."""


def identity(fd: int) -> Identity:
    """Return the identity of an open file."""
    return _identity(os.fstat(fd))


def identity_at(path: Path | str) -> Identity | None:
    """Return the identity of what stands at a path, ``None`` when nothing can be seen there."""
    try:
        return _identity(os.lstat(path))
    except OSError:
        return None


def _identity(found: os.stat_result) -> Identity:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class Replayed:
    """What rows amount to, taken once in their order: the chain they form, the state they replay to, their trust.

    Args:
        chain: the verifier they pass through.
        edges: collect what confidence is computed of, in the same pass; without, it is collected when asked for.
    """

    def __init__(self, chain: ChainReader, *, edges: bool = False) -> None:
        self.chain = chain
        self.replay = Replay()
        self.edges = TrustEdges(self.replay.state.signals) if edges else None
        self.count = 0  # rows replayed
        self.kept: Kept | None = None  # the table that the beginning came from
        self._trust: tuple[int, Trust] | None = None  # rows it was computed of

    def trust(self, rows: Iterable[Row]) -> Trust:
        """Return the confidence of every signal; ``rows`` are those covered, for when nothing was collected yet."""
        if self.edges is None:
            self.edges = collect(rows, self.replay.state)
        if self._trust is None or self._trust[0] != self.count:
            self._trust = (self.count, Trust(self.edges, self.replay.state.signals))
        return self._trust[1]

    def _begin_with(self, kept: Kept, unhashed_prefix: int | None) -> None:
        """Begin behind rows that were verified and replayed before."""
        self.kept, self.count = kept, kept.count
        self.chain, self.replay = kept.chain(unhashed_prefix), Replay(kept.state())

    def _admitted(self, row: Row) -> None:
        """Take a row that was admitted in this very state."""
        self.replay.admitted(row)
        if self.edges is not None:
            self.edges.apply(row, True)
        self.count += 1

    def _replayed(self, row: Row) -> None:
        anomalies = self.replay.state.anomalies
        before = len(anomalies)
        self.replay.apply(row)
        if self.edges is not None:
            self.edges.apply(row, len(anomalies) == before)
        self.count += 1


class Memory(Replayed):
    """What an open store knows of the bytes it verified.

    The verifier may lag behind: a row that this store built and wrote itself is known to link and to hash, so it is
    looked at when somebody asks for the verification, from the file's own bytes.

    Args:
        unhashed_prefix: exact number of unhashed rows permitted, ``None`` for any.
        digest: keep a digest of the bytes covered.
        edges: collect what confidence is computed of, in the same pass; without, it is collected when asked for.
    """

    def __init__(self, unhashed_prefix: int | None, *, digest: bool, edges: bool = False) -> None:
        super().__init__(ChainReader(unhashed_prefix=unhashed_prefix), edges=edges)
        self.digest = PrefixDigest() if digest else None
        self.starts: array[int] = array("Q")  # landmarks: where some lines begin
        self.lines: array[int] = array("Q")  # and which lines those are
        self.size = 0  # bytes replayed
        self.line = 0  # physical lines replayed
        self.last_hash = ""
        self.sound = False  # whether the verifier found no fault when it last looked
        self.identity: Identity | None = None  # of the file, when it ended where the covered bytes end
        self.open_end = False  # the last row came without LF
        self.begun = 0  # rows known before the first was read
        self.due = 0  # rows from which on it is worth keeping what is known
        self._checked = 0  # bytes the verifier has taken
        self._verification: Verification | None = None

    def resume(self, kept: Kept, unhashed_prefix: int | None, size: int) -> None:
        """Begin behind the rows of a table, which take ``size`` bytes."""
        self._begin_with(kept, unhashed_prefix)
        self.size = self._checked = size
        self.line, self.begun = kept.line, kept.count
        found = kept.verification
        self._verification, self.last_hash, self.sound = found, found.last_hash, found.ok

    def scan(self, fd: int) -> bytes | None:
        """Take all terminated lines from where the last scan ended; return the unterminated rest, if any."""
        self._catch_up(fd)
        for after, block, terminated in blocks(fd, self.size, self.digest):
            if not terminated:
                if self.digest is not None:
                    self.digest.settle()
                return block
            self._landmark()
            self.chain.feed_block(block, stretch(block, True), self._replayed)
            self._covered(after)
        return None

    def take_rest(self, raw: bytes, after: int) -> None:
        """Take the unterminated rest of the file as its last line."""
        self._landmark()
        row = self.chain.feed(raw, False)
        if row is not None:
            self._replayed(row)
        self._covered(after)
        self.open_end = True

    def wrote(self, rows: Sequence[dict[str, Any]], data: bytes) -> None:
        """Take rows that were admitted and written as these bytes."""
        self._landmark()
        for row in rows:
            self.line += 1
            self._admitted(Row(self.line, row, row["id"], row["op"], row["hash"]))
        self.last_hash = rows[-1]["hash"]
        self.size += len(data)
        if self.digest is not None:
            self.digest.chunk(data)

    def verification(self, fd: int) -> Verification:
        """Return what the verifier found in the bytes covered."""
        self._catch_up(fd)
        if self._verification is None:
            self._verification = self.chain.finish()
            self.last_hash = self._verification.last_hash
            self.sound = self._verification.ok
        return self._verification

    def cutover_due(self, fd: int) -> Prefix | None:
        """Return the unhashed rows that the next row is preceded by an event about; what was written ended that."""
        return self.verification(fd).cutover_due if self.last_hash == ZERO else None

    def stands_in(self, fd: int, size: int) -> bool:
        """Tell whether the bytes replayed are still the first ones of the file, by their digest."""
        if self.digest is None or self.size > size:
            return False
        prefix = hashlib.sha256()
        os.lseek(fd, 0, os.SEEK_SET)
        left = self.size
        while left > 0:
            chunk = os.read(fd, min(left, CHUNK))
            if not chunk:
                return False
            prefix.update(chunk)
            left -= len(chunk)
        return prefix.digest() == self.digest.digest()

    def _landmark(self) -> None:
        """Note where the next line begins, unless that is near the last note."""
        if not self.starts or self.size - self.starts[-1] >= LANDMARK_BYTES:
            self.starts.append(self.size)
            self.lines.append(self.line + 1)

    def _covered(self, after: int) -> None:
        self.size = self._checked = after
        self.line = self.chain.line
        self._verification = None

    def _catch_up(self, fd: int) -> None:
        if self._checked == self.size:
            return
        self._verification = None
        for after, block, _ in blocks(fd, self._checked, end=self.size):
            self.chain.feed_block(block, stretch(block, False))
            self._checked = after
        if self._checked != self.size or self.chain.line != self.line:
            raise Refused("E_UNREADABLE", "the ledger changed while it was read")
