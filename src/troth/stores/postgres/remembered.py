"""What a large, sound ledger in a database came to, kept in the user's cache folder for the next process.

The same table and the same index as of a ledger file (:mod:`troth.stores.keptstate`, :mod:`troth.stores.index`); what
they cover is told by the head digest. It is folded row by row, so when the rows behind those covered lead from the
head kept to the one in the workspace's entry, the rows covered are the ones that were verified, whatever the database
is called and wherever it lies. Rows without a hash, and blank lines, are in no head: a ledger that holds some is read
as ever. ``troth verify`` uses nothing of this.
"""

from __future__ import annotations

import contextlib

from troth.ledger.chain import Verification
from troth.stores import index, keptstate
from troth.stores.index import Covered
from troth.stores.postgres.memory import Held, Memory


def recall(location: str, held: Held) -> Memory | None:
    """Return what is remembered of rows that may be the ledger's first ones, ``None`` when there is nothing.

    Args:
        location: the address without its password.
        held: the workspace's entry. The caller takes the rows behind those remembered, and looks whether the memory
            agrees with the entry then.
    """
    name = _name(location, held)
    path = keptstate.place_of(name)
    if path is None or held.lines < keptstate.FEW_ROWS:
        return None
    kept = keptstate.opened(path, _key(name, held))
    if kept is None:
        return None
    with contextlib.suppress(*keptstate.EXPECTED):
        if _is_folded(kept.verification, kept.line) and kept.line <= held.lines:
            memory = Memory.behind(kept, held.unhashed_prefix)
            if kept.line < held.lines or memory.agrees(held):
                return memory
    kept.database.close()
    return None


def keep(location: str, memory: Memory, held: Held, found: Verification) -> None:
    """Keep what a memory of the whole ledger knows, when what was kept covers too little.

    Args:
        location: the address without its password.
        memory: every row of the ledger, as the entry has it.
        held: that entry.
        found: what was found in the rows.
    """
    name = _name(location, held)
    path = keptstate.place_of(name)
    if path is None or memory.count < memory.due or memory.edges is not None or not _is_folded(found, memory.line):
        return
    memory.due = keptstate.next_due(memory.count)
    with contextlib.suppress(*keptstate.EXPECTED):
        state = memory.replay.state
        about = keptstate.about_of(_key(name, held), state, found, line=memory.line, count=memory.count)
        keptstate.write(path, state, about)


def covered(location: str, held: Held) -> Covered | None:
    """Return what a summary of the ledger is about, ``None`` for one too small to be worth it."""
    if held.lines < keptstate.FEW_ROWS:
        return None
    return Covered(_name(location, held), (held.lines, held.head), held.unhashed_prefix, None)


def save(location: str, memory: Memory, held: Held, summary: index.Summary) -> None:
    """Keep the summary of a memory of the whole ledger."""
    about = covered(location, held)
    if about is not None and memory.agrees(held) and _is_folded(summary.verification, memory.line):
        index.save(about, summary)


def _is_folded(found: Verification, lines: int) -> bool:
    """Tell whether the head speaks of all of the lines."""
    return found.ok and found.hashed == lines


def _name(location: str, held: Held) -> bytes:
    return repr((location, held.name)).encode()


def _key(name: bytes, held: Held) -> str:
    return repr((name, held.unhashed_prefix))
