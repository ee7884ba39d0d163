"""What evidence and signals are worth, as ``status`` and ``show`` tell it (ledger spec §10, §14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from troth.cli.answer import note, printable, say
from troth.ledger.codes import WARNINGS
from troth.ledger.confidence import current, decay
from troth.stores.index import evidence_of

if TYPE_CHECKING:
    from datetime import datetime

    from troth.ledger.confidence import Standing
    from troth.ledger.replay import Commitment
    from troth.ledger.rows import Row
    from troth.stores.snapshot import Snapshot

EVENTS_SHOWN: Final = 8
"""Trust events that ``show`` prints for a person; --json has them all."""


def confidence_json(evidence: str, standing: Standing, at: datetime) -> dict[str, Any]:
    """Return what a piece of evidence is worth, as ``status --json`` and ``show --json`` tell it."""
    return {
        "evidence": evidence,
        "asserted": standing.asserted,
        "effective": standing.effective,
        "current": current(standing.effective, standing.ts, standing.half_life_days, at),
        "verification": standing.verification,
        "scored": standing.scored,
    }


def confidence_of(record: Commitment, evidence: Mapping[str, Standing], at: datetime) -> dict[str, Any] | None:
    """Return what the evidence of a commitment is worth, ``None`` while it has none."""
    named = evidence_of(record)
    return confidence_json(named, evidence[named], at) if named is not None and named in evidence else None


def ageless(records: Iterable[Commitment], evidence: Mapping[str, Standing], at: datetime) -> list[dict[str, Any]]:
    """Return a warning for each piece of evidence that cannot have aged (ledger spec §10)."""
    named = dict.fromkeys(name for record in records if (name := evidence_of(record)) is not None)
    found = ((name, decay(one.ts, one.half_life_days, at).warning) for name in named if (one := evidence.get(name)))
    return [
        {"line": None, "id": name, "warning": warning, "message": WARNINGS[warning]}
        for name, warning in found
        if warning is not None
    ]


def worth_of(record: Commitment, evidence: Mapping[str, Standing], at: datetime) -> str:
    """Return the end of a commitment's line in ``status``."""
    found = confidence_of(record, evidence, at)
    if found is None:
        return ""
    unscored = "" if found["scored"] else ", unscored"
    return f"  confidence {found['effective']:.4g}, now {found['current']:.4g}, {found['verification']}{unscored}"


def event_line(event: Mapping[str, Any]) -> str:
    """Return a trust event, as JSON has it, as one line."""
    cause = f" ({printable(event['causeId'], 80)})" if event["causeId"] is not None else ""
    return f"  {event['old']:.6g} -> {event['new']:.6g}  {event['type']}: {printable(event['reason'], 400)}{cause}"


def trust_json(snapshot: Snapshot, row: Row, at: datetime) -> dict[str, Any]:
    """Return what a signal is worth and its trust events, as ``show --json`` tells it."""
    from troth.ledger.trust_events import events_of

    name = row.id or ""
    found = confidence_json(name, snapshot.trust.standing(name), at)
    del found["evidence"]
    return found | {"events": [event.as_json() for event in events_of(snapshot.trust, name, at)]}


def tell_trust(snapshot: Snapshot, row: Row, at: datetime) -> None:
    """Print the same for a person, in short."""
    found = trust_json(snapshot, row, at)
    unscored = "" if found["scored"] else " (unscored)"
    say(
        f"confidence: asserted {found['asserted']:.6g}{unscored}, effective {found['effective']:.6g}, "
        f"current {found['current']:.6g}; {found['verification']}"
    )
    events = found["events"]
    for event in events[:EVENTS_SHOWN]:
        say(event_line(event))
    if len(events) > EVENTS_SHOWN:
        say(f"  and {len(events) - EVENTS_SHOWN} more; `troth trust show` lists them all")
    for warning in snapshot.trust.warnings:
        if warning.line == row.line:
            note(f"warning: {warning.warning}: {warning.message}")
