"""Recording a transcript of deals on a ledger: named, compared with what is there, brought in (deal rules §6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from troth.airlock.deal_signals import Planner, expected_state, identity_of, lines_of, prefix
from troth.core.errors import Refused
from troth.core.words import printable
from troth.deals.codes import LABELS, NON_CLAIMS_REF
from troth.deals.run import Run
from troth.deals.transcript import Entry
from troth.stores.importing import Report, bring

if TYPE_CHECKING:
    from troth.stores.protocol import LedgerStore

Read = Callable[[], Iterable[tuple[bytes, Entry]]]
"""Reads a transcript from its beginning: each line without its line feed, and what it holds."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a transcript: ``deals`` is (offer id, state, commitment, its state on the ledger) for each."""

    transcript: str
    report: Report
    deals: tuple[tuple[str, str, str | None, str | None], ...]
    agree: bool
    head: str
    ok: bool

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``troth deal record --json`` prints."""
        names = ("offer_id", "state", "commitment", "ledger_state")
        return {
            "labels": list(LABELS),
            "non_claims": NON_CLAIMS_REF,
            "transcript": self.transcript,
            "recorded": self.report.imported,
            "present": self.report.present,
            "refused": [one.as_json() for one in self.report.refused],
            "refused_count": self.report.refused_count,
            "written": self.report.written,
            "deals": [dict(zip(names, deal, strict=True)) for deal in self.deals],
            "agree": self.agree,
            "head": self.head,
            "ok": self.ok,
        }


def record(
    store: LedgerStore,
    read: Read,
    recorder: str,
    *,
    made: type[Run] = Run,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Recorded:
    """Record a transcript; what is on record already is counted and stays as it is.

    Args:
        store: the ledger.
        read: reads the transcript, each time it is called.
        recorder: who records it.
        made: the class of runs of its protocol.
        dry_run: write nothing.
        progress: told the number of the last line that was dealt with.

    Raises:
        Refused: ``E_TRANSCRIPT_UNREADABLE`` before anything is written; ``E_DEAL_FORKED``; what concerns the ledger.
    """
    keys = store.read().state.source_keys
    identity = identity_of((raw for raw, _ in read()), keys.__contains__)
    start = prefix(identity)
    known = {key for key in keys if key.startswith(start)}
    # Read to its end once before a row is written, so that a line that is none refuses the whole.
    wanted = Planner(identity, recorder, made)
    for row in wanted.rows(read()):
        known.discard(row.key)
    if known:
        raise Refused(
            "E_DEAL_FORKED",
            f"the ledger holds {len(known)} rows of another continuation of this transcript, such as {min(known)}",
            remedy="A transcript only grows; find out which of the two happened.",
        )
    planner = Planner(identity, recorder, made)
    report = bring(store, lines_of(planner.rows(read())), dry_run=dry_run, progress=progress)
    snapshot = store.read()
    state = snapshot.state
    deals = []
    agree = True
    for name, deal in wanted.run.deals.items():
        found = state.commitments.get(state.source_keys.get(wanted.anchors[name]) or "")
        there = None if found is None else found.state
        agree = agree and there == expected_state(deal)
        deals.append((printable(name, 200), deal.state, found.id if found is not None else None, there))
    verification = snapshot.verification
    return Recorded(identity, report, tuple(deals), agree, verification.head, verification.ok)
