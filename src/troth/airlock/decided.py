"""What was decided about submissions, by whom, and how long each took: told from the ledger, never written down.

The time from the submission to its decision is how long it waited. How long somebody looked is not known; the time
since the decision before, by the same actor, is the most that it can have been. A tired reviewer's decisions stand a
few seconds apart, and :class:`Pace` lets that be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from troth.core.instants import parse_instant
from troth.ledger.values import is_human

if TYPE_CHECKING:
    from datetime import datetime

    from troth.ledger.rows import Row
    from troth.stores.snapshot import Snapshot

HASTE_SECONDS: Final = 10
"""Decisions of one person closer together than this were hardly looked at singly."""


@dataclass(frozen=True, slots=True)
class Decision:
    """How a submission ended: ``approved``, ``reopened`` by another, or ``withdrawn`` by its own submitter.

    ``waited`` is the seconds from the submission, ``since_last`` those from the actor's decision before; ``None`` where
    an instant is missing or runs backwards, or there was no earlier one. ``group`` names the group it was approved in.
    """

    row: str
    commitment: str
    submission: str
    decision: str
    by: str
    ts: str
    waited: int | None
    since_last: int | None
    group: str | None
    reason: str | None

    @property
    def hasty(self) -> bool:
        """Tell whether a person decided it within :data:`HASTE_SECONDS` of the one before, not as one of a group."""
        close = self.since_last is not None and self.since_last < HASTE_SECONDS
        return close and self.group is None and is_human(self.by)

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names; times in seconds."""
        return {
            "id": self.row, "commitment": self.commitment, "submission": self.submission, "decision": self.decision,
            "by": self.by, "ts": self.ts, "waited": self.waited, "since_last": self.since_last, "hasty": self.hasty,
            "group": self.group, "reason": self.reason,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pace:
    """How one actor decided what others submitted: counts, the median wait in seconds, how many were hasty."""

    by: str
    approved: int
    reopened: int
    waited: float | None
    hasty: int

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {
            "by": self.by, "approved": self.approved, "reopened": self.reopened, "median_waited": self.waited,
            "hasty": self.hasty,
        }  # fmt: skip


def decisions(snapshot: Snapshot) -> Iterator[Decision]:
    """Yield what was decided about submissions, in the ledger's order. A row without effect decides nothing."""
    void = {anomaly.line for anomaly in snapshot.state.anomalies}
    under_review: dict[str, tuple[str, str, datetime | None]] = {}
    before: dict[str, datetime] = {}
    for identifier, signal in snapshot.state.signals.items():
        if signal.op not in _LOOKED_AT or signal.line in void:
            continue
        row = snapshot.rows.at_line(signal.line)
        commitment = _member(row, "commitment")
        if commitment is None:
            continue
        at, actor = parse_instant(signal.ts or ""), signal.actor or ""
        if signal.op == "submit":
            under_review[commitment] = identifier, actor, at
            continue
        found = under_review.pop(commitment, None)
        if found is None:  # a closed one that was disputed: no submission is decided by that
            continue
        submission, submitter, since = found
        rejected = "withdrawn" if actor == submitter else "reopened"
        yield Decision(
            row=identifier,
            commitment=commitment,
            submission=submission,
            decision="approved" if signal.op == "approve" else rejected,
            by=actor,
            ts=signal.ts or "",
            waited=_seconds(since, at),
            since_last=_seconds(before.get(actor), at),
            group=_group(row),
            reason=_member(row, "reason") or _member(row, "comment"),
        )
        if at is not None:
            before[actor] = at


_LOOKED_AT: Final = frozenset({"submit", "approve", "reopen"})


def paces(decided: Iterable[Decision]) -> list[Pace]:
    """Return how each actor decided, the busiest first."""
    by: dict[str, list[Decision]] = {}
    for one in decided:
        if one.decision != "withdrawn":
            by.setdefault(one.by, []).append(one)
    found = []
    for actor, those in by.items():
        waits = [one.waited for one in those if one.waited is not None]
        approved = sum(one.decision == "approved" for one in those)
        hasty = sum(one.hasty for one in those)
        found.append(Pace(actor, approved, len(those) - approved, median(waits) if waits else None, hasty))
    return sorted(found, key=lambda pace: (-pace.approved - pace.reopened, pace.by))


def _seconds(start: datetime | None, end: datetime | None) -> int | None:
    if start is None or end is None or end < start:
        return None
    return int((end - start).total_seconds())


def _member(row: Row, name: str) -> str | None:
    payload = row.value.get("payload")
    value = payload.get(name) if isinstance(payload, dict) else None
    return value if isinstance(value, str) and value else None


def _group(row: Row) -> str | None:
    payload = row.value.get("payload")
    meta = payload.get("meta") if isinstance(payload, dict) else None
    group = meta.get("group") if isinstance(meta, dict) else None
    return group if isinstance(group, str) else None
