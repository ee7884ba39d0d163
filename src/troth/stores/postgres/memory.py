"""What an open store remembers of a ledger in the database, and the faults only a database can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from troth.ledger.chain import ChainReader, Fault, Verification
from troth.ledger.fastpath import stretch
from troth.ledger.leaves import Leaves
from troth.stores import keptstate
from troth.stores.keptstate import Kept
from troth.stores.memory import Replayed


class Held(NamedTuple):
    """The workspace's own entry: what the trigger wrote down of the rows.

    ``lines`` counts them, ``last_hash`` and ``head`` are the newest hash and the head digest over all of them.
    """

    id: int
    name: str
    unhashed_prefix: int
    lines: int
    last_hash: str
    head: str


class Memory(Replayed):
    """What was verified and replayed so far; rows come in the order of their lines."""

    def __init__(
        self,
        unhashed_prefix: int | None,
        *,
        expect_head: str | None = None,
        expect_rows: int | None = None,
        leaves: Leaves | None = None,
        edges: bool = False,
    ) -> None:
        chain = ChainReader(
            unhashed_prefix=unhashed_prefix, expect_head=expect_head, expect_rows=expect_rows, leaves=leaves
        )
        super().__init__(chain, edges=edges)
        self.line = 0  # the last line taken
        self.due = keptstate.FEW_ROWS  # rows from which on it is worth keeping what is known
        self._gap: Fault | None = None

    @classmethod
    def behind(cls, kept: Kept, unhashed_prefix: int | None) -> Memory:
        """Return a memory that begins behind the rows of a table."""
        memory = cls(unhashed_prefix)
        memory._begin_with(kept, unhashed_prefix)
        memory.line, memory.due = kept.line, keptstate.next_due(kept.count)
        return memory

    def take(self, lines: Sequence[tuple[int, bytes]], *, keep: bool = True) -> None:
        """Take the next (line, bytes), ``keep`` replaying them as well."""
        start = 0
        expected = self.line + 1
        for at, (line, _) in enumerate(lines):
            if line != expected:
                # Lines that are not there cannot be exported; what stands behind them is told by its own number.
                self._feed(lines[start:at], keep)
                start = at
                self._gap = self._gap or Fault(
                    expected, None, "head_mismatch", f"line {expected} is missing from the database"
                )
                self.chain.line = line - 1
            expected = line + 1
        self._feed(lines[start:], keep)
        self.line = expected - 1

    def _feed(self, lines: Sequence[tuple[int, bytes]], keep: bool) -> None:
        if lines:
            block = b"\n".join([raw for _, raw in lines])
            self.chain.feed_block(block, stretch(block, keep), self._replayed if keep else None)

    def agrees(self, held: Held) -> bool:
        """Tell whether the rows taken are the ones the workspace's entry speaks of."""
        return self.line == held.lines and self.chain.head == held.head and self._gap is None

    def verification(self, held: Held) -> Verification:
        """Return what was found in the rows, and whether they are all that were ever added."""
        found = self.chain.finish()
        more = [self._gap] if self._gap is not None else []
        if self.chain.head != held.head or self.line != held.lines:
            message = (
                f"the database's own record is {held.lines} lines with the head {held.head}; "
                f"{self.line} lines with the head {self.chain.head} are there"
            )
            more.append(Fault(None, None, "head_mismatch", message))
        return replace(found, faults=(*found.faults, *more)) if more else found
