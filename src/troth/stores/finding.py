"""Searching a ledger: through the throw-away index where that helps, else row by row, with one answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from troth.ledger.chain import Verification
from troth.stores import index
from troth.stores.jsonl import JsonlStore
from troth.stores.memory import identity_at

if TYPE_CHECKING:
    from troth.ledger.replay import Commitment
    from troth.ledger.rows import Row
    from troth.ledger.search import Query
    from troth.stores.protocol import LedgerStore
    from troth.stores.snapshot import Snapshot


class Found(NamedTuple):
    """Rows in the order asked for; ``more`` tells that the limit kept some out, ``indexed`` that the index helped."""

    rows: list[Row]
    more: bool
    verification: Verification
    indexed: bool


def find(
    store: LedgerStore,
    query: Query,
    *,
    newest: bool = False,
    limit: int = 50,
    within: Callable[[Snapshot], frozenset[int]] | None = None,
) -> Found:
    """Return the rows that a query means.

    Args:
        store: the ledger.
        query: what is looked for.
        newest: the newest rows first, so that a limit keeps out the oldest.
        limit: how many rows at most.
        within: names the lines to look at, from a snapshot; every row of the ledger is read then.

    Raises:
        Refused: as reading the store. A broken chain is told in the verification and raises nothing.
    """
    if within is None and isinstance(store, JsonlStore):
        found = _through_index(store, query, newest, limit)
        if found is not None:
            return found
    snapshot = store.read()
    if within is not None:
        query = replace(query, lines=within(snapshot))
    rows, more = _chosen(snapshot.rows, query, snapshot.state.commitments, limit, last=newest)
    return Found(rows, more, snapshot.verification, False)


def _through_index(store: JsonlStore, query: Query, newest: bool, limit: int) -> Found | None:
    before = identity_at(store.ledger_file)
    if before is None or before[2] < index.WORTH_BYTES:
        return None
    from troth.stores import textindex

    if not textindex.can_narrow(query):
        return None
    summary = store.summary()
    if not summary.verification.ok:
        return None
    commitments = summary.everything().commitments if query.state is not None else {}
    try:
        proposed = textindex.candidates(store.ledger_file, query, newest=newest)
        rows, more = _chosen(proposed, query, commitments, limit, last=False)
    except textindex.Unusable:
        return None
    if identity_at(store.ledger_file) != before:
        return None
    return Found(rows, more, summary.verification, True)


def _chosen(
    rows: Iterable[Row], query: Query, commitments: Mapping[str, Commitment], limit: int, *, last: bool
) -> tuple[list[Row], bool]:
    """Return the first rows that are meant, or the last ones, the newest first; and whether there are more."""
    meant = (row for row in rows if query.matches(row, commitments))
    kept = list(deque(meant, limit + 1)) if last else list(islice(meant, limit + 1))
    if last:
        kept.reverse()
    return kept[:limit], len(kept) > limit
