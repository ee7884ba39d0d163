"""The airlock's effects: a submission's validators run, their answers recorded, and its closing where all passed.

The answers that count are those just given. What stands in the ledger about earlier ones is for people and for the
history; it never closes anything, so a row that somebody forged or that a crash left behind decides nothing.

Writing is idempotent: an answer that says the same as the newest one on record is not written again, and a commitment
closes once, whoever comes first. A process that dies anywhere leaves the submission in review, where
``troth queue run`` takes it up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from troth.airlock.reviews import RunFolders
from troth.airlock.tiers import Close, Failed, Result, outcome
from troth.airlock.validators import ReviewFinder, Submitted, answer
from troth.core.digests import sha256_hex
from troth.core.errors import DoesNotHold, Refused, TrothError
from troth.core.instants import format_instant, parse_instant
from troth.core.words import printable
from troth.ledger.genesis import VALIDATOR
from troth.ledger.operations import Candidate
from troth.ledger.trust_edges import run_of

if TYPE_CHECKING:
    from troth.ledger.genesis import Tier
    from troth.ledger.replay import Commitment, State
    from troth.ledger.rows import Row
    from troth.stores.protocol import LedgerStore
    from troth.stores.snapshot import Snapshot

KIND: Final = "validation"
"""Kind of the annotation that holds an answer ([D42])."""

MAX_BODY: Final = 600

WITHIN: Final = "TROTH_VALIDATOR"
"""Set for a validator's command: what it submits itself is left for later, so that no command starts itself."""

Came = Literal["closed", "waiting", "failed", "superseded", "stopped"]
"""``superseded``: it was closed, reopened or submitted anew meanwhile. ``stopped``: the validators could not be asked
or their answers not be recorded; `troth queue run` takes it up."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A validator's answer and the id of the row that holds it; ``None`` when it could not be written."""

    result: Result
    row: str | None

    def as_json(self) -> dict[str, Any]:
        """Return ``{validator, result, reason, row}``."""
        answered = self.result
        return {
            "validator": answered.validator, "result": answered.result, "reason": answered.reason, "row": self.row
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """What the airlock made of one submission.

    ``tier`` is ``None`` where the key defines none. ``because`` is one sentence. ``approval`` is the row that closed
    it, ``disputable_until`` the instant up to which it can be reopened.
    """

    commitment: str
    submission: str
    tier: int | None
    results: tuple[Recorded, ...]
    outcome: Came
    because: str
    approval: str | None = None
    disputable_until: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {
            "commitment": self.commitment,
            "submission": self.submission,
            "tier": self.tier,
            "results": [one.as_json() for one in self.results],
            "outcome": self.outcome,
            "because": self.because,
            "approval": self.approval,
            "disputable_until": self.disputable_until,
        }


Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Airlock:
    """Takes submissions of one ledger through their tier.

    Args:
        store: the ledger, with its settings and its workspace.
        finder: where reviews are found; by default in the run folders of the submission's workspace.
        tell: told in words which validator is asked.
        environment: the process's own.
    """

    store: LedgerStore
    finder: ReviewFinder = field(default_factory=RunFolders)
    tell: Tell = lambda _: None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def take(self, submission: str) -> Report:
        """Ask the validators of a submission that was just made, or that waits, and do what its tier says.

        Raises nothing that concerns the ledger: the submission stands whatever comes after it, and the report says why
        it went no further.

        Args:
            submission: id of the submit row.
        """
        commitment = ""
        recorded: list[Recorded] = []
        tier: Tier | None = None
        try:
            snapshot = self.store.read()
            commitment, record = _reviewed(snapshot, submission)
            if record is None:
                return _superseded(commitment, submission, None, (), "it is not in review any more")
            if not writable(snapshot):
                # Asking would be vain, and a validator's command is not started for nothing.
                raise DoesNotHold("E_CHAIN_BROKEN", "the ledger does not verify, so no answer can be recorded")
            genesis = self.store.genesis()
            tier = None if genesis is None else genesis.tier_of(snapshot.state.tags_of(record))
            if tier is None:
                return Report(commitment, submission, None, (), "waiting", "an approval is needed")
            if WITHIN in self.environment:
                because = "a validator made this submission; its own validators were not started from within"
                return Report(commitment, submission, tier.number, (), "stopped", because)
            submitted = submitted_of(snapshot, record, tier, self.store)
            for name in dict.fromkeys(tier.validators):
                self.tell(f"asking the validator {printable(name, 80)}")
                result = answer(name, submitted, self.store.config, self.finder)
                recorded.append(Recorded(result, self._record(submitted, result)))
            return self._conclude(submitted, tuple(recorded))
        except TrothError as fault:
            number = None if tier is None else tier.number
            because = f"{fault.code}: {fault.message}"
            return Report(commitment, submission, number, tuple(recorded), "stopped", because)

    # Recording ---------------------------------------------------------------------------------------------------

    def _record(self, submitted: Submitted, result: Result) -> str:
        """Append an answer, unless the newest one on record says the same; return the row's id."""
        same: list[str] = []

        def build(snapshot: Snapshot) -> Candidate:
            newest, key = latest(snapshot, submitted.submission, result.validator)
            if newest is not None and _says(newest, result):
                same.append(newest.id or "")
                raise _AlreadyThere
            return _row(submitted, result, key, supersedes=newest.id if newest is not None else None)

        try:
            return str(self.store.append_with(build)["id"])
        except _AlreadyThere:
            return same[0]

    # Closing -----------------------------------------------------------------------------------------------------

    def _conclude(self, submitted: Submitted, recorded: tuple[Recorded, ...]) -> Report:
        tier = submitted.tier
        came = outcome(tier, [one.result for one in recorded])
        told = {one.result.validator: one.result.reason for one in recorded}
        if isinstance(came, Failed):
            return self._report(submitted, recorded, "failed", f"{' and '.join(came.validators)} did not pass")
        if not isinstance(came, Close):
            waits = [f"{name}: {told[name]}" for name in came.validators if name in told]
            whose = "a person's approval" if tier.require_human else "an approval"
            return self._report(submitted, recorded, "waiting", "; ".join([*waits, f"{tier.name} closes on {whose}"]))
        return self._close(submitted, recorded)

    def _close(self, submitted: Submitted, recorded: tuple[Recorded, ...]) -> Report:
        tier = submitted.tier

        def build(snapshot: Snapshot) -> Candidate:
            # Under the lock: what was judged must still be what waits, and the tier what it was judged by.
            record = snapshot.state.commitments[submitted.commitment]
            if record.submission is None or record.submission.id != submitted.submission:
                raise _MovedOn(_now(record))
            genesis = self.store.genesis()
            if genesis is None or genesis.tier_of(snapshot.state.tags_of(record)) != tier:
                raise _KeyChanged
            return _approval(submitted, recorded)

        try:
            row = self.store.append_with(build)
        except _MovedOn as moved:
            return _superseded(submitted.commitment, submitted.submission, tier.number, recorded, str(moved))
        except _KeyChanged:
            because = "the genesis key changed while the validators worked; they have to be asked anew"
            return self._report(submitted, recorded, "stopped", because)
        except Refused as fault:
            if fault.code not in _DECIDED_BY_KEY:
                raise
            rule = f" ({fault.detail})" if isinstance(fault.detail, str) else ""
            because = f"every validator passed, and the genesis key leaves the approval to others: {fault.code}{rule}"
            return self._report(submitted, recorded, "waiting", because)
        return Report(
            submitted.commitment, submitted.submission, tier.number, recorded, "closed",
            f"every validator of {tier.name} passed", str(row["id"]), disputable_until(tier, row["ts"]),
        )  # fmt: skip

    def _report(self, submitted: Submitted, recorded: tuple[Recorded, ...], came: Came, because: str) -> Report:
        return Report(submitted.commitment, submitted.submission, submitted.tier.number, recorded, came, because)


_DECIDED_BY_KEY: Final = frozenset({"E_PERMISSION_DENIED", "E_CONSTRAINT_VIOLATED"})
"""Refusals of an automatic approval that say: the key wants somebody else's."""


class _AlreadyThere(Exception):
    """The same answer is on record."""


class _MovedOn(Exception):
    """The submission is not the one in review any more."""


class _KeyChanged(Exception):
    """The tier is not the one that was judged by any more."""


def writable(snapshot: Snapshot) -> bool:
    """Tell whether a writer would append to this ledger: a torn last line is no obstacle, it is set aside."""
    return all(fault.fault == "torn_tail" for fault in snapshot.verification.faults)


def _superseded(commitment: str, submission: str, tier: int | None, recorded: tuple[Recorded, ...], how: str) -> Report:
    return Report(commitment, submission, tier, recorded, "superseded", f"nothing was approved: {how}")


def _now(record: Commitment) -> str:
    if record.submission is not None:
        return f"{record.id} was submitted anew meanwhile ({record.submission.id})"
    holder = f" by {record.closed_by}" if record.closed_by is not None else ""
    return f"{record.id} is {record.state.replace('_', ' ')} now{holder} ({record.last_row})"


def _reviewed(snapshot: Snapshot, submission: str) -> tuple[str, Commitment | None]:
    """Return the commitment that a submit row is about, and its record while that very row is in review."""
    signal = snapshot.state.signals.get(submission)
    if signal is None or signal.op != "submit":
        raise Refused("E_REF_NOT_FOUND", f"{submission} is no submission", detail="wrong_kind")
    commitment = str(snapshot.rows.at_line(signal.line).value["payload"]["commitment"])
    record = snapshot.state.commitments.get(commitment)
    waits = record is not None and record.submission is not None and record.submission.id == submission
    return commitment, record if waits else None


def submitted_of(snapshot: Snapshot, record: Commitment, tier: Tier, store: LedgerStore) -> Submitted:
    """Return what validators are asked about a commitment in review."""
    submission = record.submission
    assert submission is not None
    signals, rows = snapshot.state.signals, snapshot.rows
    return Submitted(
        commitment=record.id,
        submission=submission.id,
        evidence=submission.evidence,
        actor=submission.actor,
        tier=tier,
        row=rows.at_line(signals[submission.id].line).value,
        evidence_row=rows.at_line(signals[submission.evidence].line).value,
        workspace=store.space,
        rejected_by=_rejection(snapshot, record) if record.reopen_count else None,
    )


def _rejection(snapshot: Snapshot, record: Commitment) -> str | None:
    """Return the latest reopening by another than the submitter that stands behind the evidence; it takes a while.

    Evidence of a run is as old as the first row that names the run, so that capturing a rejected receipt once more
    does not make it new.
    """
    assert record.submission is not None
    evidence = snapshot.state.signals[record.submission.evidence]
    run = run_of(snapshot.rows.at_line(evidence.line).value)
    without_effect = {anomaly.line for anomaly in snapshot.state.anomalies}
    behind, found = False, None
    for row in snapshot.rows:
        value = row.value
        behind = behind or row.line >= evidence.line or (run is not None and run_of(value) == run)
        if (
            behind
            and row.line not in without_effect
            and value.get("op") == "reopen"
            and value["payload"].get("commitment") == record.id
            and value.get("actor") != record.submission.actor
        ):
            found = row.id
    return found


# Rows ----------------------------------------------------------------------------------------------------------


def latest(snapshot: Snapshot, submission: str, validator: str) -> tuple[Row | None, str]:
    """Return the newest answer of a validator to a submission on record, and the key that the next one gets.

    Answers are found by their ``source_key``. A key that somebody else's row took is passed over.
    """
    state: State = snapshot.state
    name = validator if len(validator) <= 64 else sha256_hex(validator.encode())
    newest: Row | None = None
    number = 1
    while (key := f"{KIND}:{submission}:{name}:{number}") in state.source_keys:
        signal = state.signals.get(state.source_keys[key] or "")
        if signal is not None and (signal.op, signal.kind, signal.actor) == ("annotate", KIND, VALIDATOR):
            row = snapshot.rows.at_line(signal.line)
            meta = row.value["payload"].get("meta")
            if isinstance(meta, dict) and (meta.get("submission"), meta.get("validator")) == (submission, validator):
                newest = row
        number += 1
    return newest, key


def _says(row: Row, result: Result) -> bool:
    meta = row.value["payload"]["meta"]
    return (meta.get("result"), meta.get("reason")) == (result.result, result.reason)


def _row(submitted: Submitted, result: Result, key: str, *, supersedes: str | None) -> Candidate:
    meta = {
        "validator": result.validator,
        "result": result.result,
        "reason": result.reason,
        "submission": submitted.submission,
        "commitment": submitted.commitment,
        "evidence": submitted.evidence,
        "tier": submitted.tier.number,
        **({"supersedes": supersedes} if supersedes is not None else {}),
        **({"facts": dict(result.facts)} if result.facts else {}),
    }
    body = f"{result.validator} {result.result}: {result.reason}"
    return Candidate(
        "annotate",
        VALIDATOR,
        {
            "kind": KIND,
            "body": body if len(body) <= MAX_BODY else body[: MAX_BODY - 1] + "…",
            "target": submitted.submission,
            "meta": meta,
        },
        source_key=key,
    )


def _approval(submitted: Submitted, recorded: tuple[Recorded, ...]) -> Candidate:
    passed = ", ".join(one.result.validator for one in recorded)
    comment = f"{submitted.tier.name}: {passed} passed"[:MAX_BODY]
    return Candidate(
        "approve",
        VALIDATOR,
        {
            "body": comment,
            "commitment": submitted.commitment,
            "evidence": submitted.evidence,
            "meta": {
                # A stale pass cannot approve a later submission ([D42]): the machine compares this one.
                "submission": submitted.submission,
                "tier": submitted.tier.number,
                "validations": [one.row for one in recorded],
            },
        },
    )


def disputable_until(tier: Tier | None, closed: str | None) -> str | None:
    """Return the instant up to which an automatic closing can be disputed; ``None`` without a window (§11, tier 2)."""
    at = parse_instant(closed or "")
    if tier is None or tier.review_window is None or at is None:
        return None
    try:
        return format_instant(at + timedelta(seconds=tier.review_window))
    except OverflowError:
        return None
