"""What waits for whom, and why: submissions in review, reopened work, and closings that can still be disputed.

Nothing is decided here. A submission is called risky by the table :data:`RISKS`; the others of one kind can be looked
at together, so that whoever reviews many sees first what is unlike the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from troth.airlock.tiers import Close, Failed, Result, WaitForPerson, outcome
from troth.airlock.validating import disputable_until, latest
from troth.core.digests import sha256_hex
from troth.core.instants import format_instant, parse_instant
from troth.ledger.genesis import VALIDATOR
from troth.ledger.values import is_human

if TYPE_CHECKING:
    from troth.ledger.genesis import Genesis, Tier
    from troth.ledger.replay import Commitment
    from troth.stores.snapshot import Snapshot

MAX_TEXT: Final = 1000


@dataclass(frozen=True, slots=True)
class Who:
    """Who may approve.

    ``patterns`` are the ids of the key that grant it (``None``: everyone may), ``without`` more particular ids among
    them that do not. ``approvers`` are patterns of which one of each list must match as well. ``human`` demands a
    person. ``submitter`` is who may not, having submitted it; ``None`` where that is allowed.
    """

    patterns: tuple[str, ...] | None
    without: tuple[str, ...] = ()
    approvers: tuple[tuple[str, ...], ...] = ()
    human: bool = False
    submitter: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {
            "anyone": self.patterns is None,
            "patterns": list(self.patterns) if self.patterns is not None else None,
            "without": list(self.without),
            "approvers": [list(patterns) for patterns in self.approvers],
            "human": self.human,
            "not": self.submitter,
        }

    def words(self) -> str:
        """Return it as a phrase."""
        if self.patterns is None:
            text = "any person" if self.human else "anyone"
        elif not self.patterns:
            text = "nobody: no role of the key may approve it"
        else:
            text = " or ".join(self.patterns) + (", a person" if self.human else "")
        without = [*self.without, *((self.submitter,) if self.submitter is not None else ())]
        if without and self.patterns != ():
            text += f" but not {' or '.join(dict.fromkeys(without))}"
        for patterns in self.approvers:
            text += f"; only {' or '.join(patterns)}"
        return text


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a submission rests on: the row, and the receipt that it names, if it names one."""

    id: str
    kind: str | None
    actor: str | None
    body: str
    run: str | None
    decision: str | None
    confidence: float | None
    verification: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {
            "id": self.id, "kind": self.kind, "actor": self.actor, "body": self.body, "run": self.run,
            "decision": self.decision, "confidence": self.confidence, "verification": self.verification,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Waiting:
    """A commitment in review.

    ``answers`` are those of the tier's validators that count, each ``{validator, result, reason, row, ts}``; ``result``
    is ``unasked`` for one that has not answered. ``waits_for`` is one sentence, ``risks`` are names of :data:`RISKS`.
    ``mine`` tells whether the actor asked about may approve it.
    """

    commitment: str
    body: str
    tags: tuple[str, ...]
    tier: int | None
    since: str
    submission: str
    submitter: str
    evidence: Evidence
    answers: tuple[Mapping[str, Any], ...]
    waits_for: str
    runnable: bool
    who: Who
    risks: tuple[str, ...]
    mine: bool

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names, and the commands that decide it."""
        return {
            "commitment": self.commitment,
            "body": self.body,
            "tags": list(self.tags),
            "tier": self.tier,
            "since": self.since,
            "submission": self.submission,
            "submitter": self.submitter,
            "evidence": self.evidence.as_json(),
            "validators": [dict(one) for one in self.answers],
            "waits_for": self.waits_for,
            "who": self.who.as_json(),
            "risks": list(self.risks),
            "commands": list(self.commands),
        }

    @property
    def commands(self) -> tuple[str, ...]:
        """Return what to type. An approval names what was looked at, so that it cannot approve something newer."""
        decide = (
            f"troth approve {self.commitment} --submission {self.submission}",
            f"troth reopen {self.commitment} --reason TEXT",
        )
        return (f"troth queue run {self.commitment}", *decide) if self.runnable else decide


@dataclass(frozen=True, slots=True)
class Group:
    """Submissions of one harmless kind: same tier, tags, kind of evidence, and the same thing waited for."""

    tier: int | None
    tags: tuple[str, ...]
    kind: str | None
    waits_for: str
    members: tuple[Waiting, ...]

    @property
    def id(self) -> str:
        """Return a name for exactly these submissions: it means nothing any more when one is added or decided."""
        return "grp_" + sha256_hex("\n".join(sorted(one.submission for one in self.members)).encode())[:12]

    @property
    def command(self) -> str:
        """Return what to type to approve them all."""
        return f"troth queue approve {self.id}"

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names, the commitments by id."""
        return {
            "id": self.id,
            "command": self.command,
            "tier": self.tier,
            "tags": list(self.tags),
            "evidence_kind": self.kind,
            "waits_for": self.waits_for,
            "commitments": [one.commitment for one in self.members],
        }


@dataclass(frozen=True, slots=True)
class Reopened:
    """A claim that came back to its owner, with the reason where it is the latest thing that happened to it."""

    commitment: str
    body: str
    owner: str
    since: str
    by: str | None
    reason: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {
            "commitment": self.commitment, "body": self.body, "owner": self.owner, "since": self.since,
            "by": self.by, "reason": self.reason,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Disputable:
    """A commitment that closed by itself and can be reopened up to an instant."""

    commitment: str
    body: str
    tier: int
    closed: str
    until: str
    evidence: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names, and the command that disputes it."""
        return {
            "commitment": self.commitment, "body": self.body, "tier": self.tier, "closed": self.closed,
            "until": self.until, "evidence": self.evidence,
            "command": f"troth reopen {self.commitment} --reason TEXT",
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Queue:
    """Everything that waits, as of one instant."""

    at: str
    waiting: tuple[Waiting, ...]
    reopened: tuple[Reopened, ...]
    disputable: tuple[Disputable, ...]

    def arranged(self) -> tuple[list[Waiting], list[Group]]:
        """Return what is to be looked at singly, riskiest first, and the groups of the rest, largest first."""
        kinds: dict[tuple[Any, ...], list[Waiting]] = {}
        single: list[Waiting] = []
        for one in self.waiting:
            if one.risks:
                single.append(one)
            else:
                kinds.setdefault((one.tier, one.tags, one.evidence.kind, one.waits_for), []).append(one)
        single.sort(key=lambda one: -len(one.risks))
        groups = []
        for (tier, tags, kind, waits_for), members in kinds.items():
            if len(members) == 1:
                single += members
            else:
                groups.append(Group(tier, tags, kind, waits_for, tuple(members)))
        return single, sorted(groups, key=lambda group: -len(group.members))

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names; what is to be looked at singly stands first."""
        single, groups = self.arranged()
        inside = [one for group in groups for one in group.members]
        return {
            "at": self.at,
            "waiting": [one.as_json() for one in [*single, *inside]],
            "groups": [group.as_json() for group in groups],
            "reopened": [one.as_json() for one in self.reopened],
            "disputable": [one.as_json() for one in self.disputable],
        }


@dataclass(frozen=True, slots=True)
class _Case:
    """What the table of risks looks at."""

    record: Commitment
    tier: Tier | None
    failed: bool
    evidence: Evidence


RISKS: Final[Mapping[str, Callable[[_Case], bool]]] = {
    "person_demanded": lambda case: case.tier is not None and (case.tier.require_human or case.tier.number >= 3),
    "validator_failed": lambda case: case.failed,
    "reopened_before": lambda case: case.record.reopen_count > 0,
    "receipt_not_supported": lambda case: case.evidence.decision not in (None, "supported"),
}
"""Name of a risk -> whether a submission has it. One is enough to be looked at singly."""

RISK_WORDS: Final[Mapping[str, str]] = {
    "person_demanded": "the tier demands a person",
    "validator_failed": "a validator did not pass",
    "reopened_before": "it was reopened before",
    "receipt_not_supported": "the receipt does not support it",
}


def queue_of(snapshot: Snapshot, genesis: Genesis | None, *, at: datetime, actor: str | None = None) -> Queue:
    """Return what waits.

    Args:
        snapshot: what the ledger says.
        genesis: the key in force.
        at: the present instant, or another one.
        actor: only what this actor may decide, or holds; ``None`` for everything.
    """
    records = snapshot.state.commitments.values()
    waiting = [_waiting(snapshot, genesis, record, at, actor) for record in records if record.state == "in_review"]
    reopened = [_reopened(snapshot, record) for record in records if record.reopened]
    disputable = [] if genesis is None else [*_disputable(snapshot, genesis, records, at, actor)]
    return Queue(
        format_instant(at),
        tuple(one for one in waiting if actor is None or one.mine),
        tuple(one for one in reopened if actor is None or one.owner == actor),
        tuple(sorted(disputable, key=lambda one: (parse_instant(one.until) or at, one.commitment))),
    )


# In review -----------------------------------------------------------------------------------------------------


def _waiting(
    snapshot: Snapshot, genesis: Genesis | None, record: Commitment, at: datetime, actor: str | None
) -> Waiting:
    state, submission = snapshot.state, record.submission
    assert submission is not None
    tags = state.tags_of(record)
    tier = None if genesis is None else genesis.tier_of(tags)
    answers = answers_of(snapshot, submission.id, tier)
    evidence = _evidence(snapshot, submission.evidence)
    waits_for, failed, runnable = _waits_for(tier, answers)
    case = _Case(record, tier, failed, evidence)
    return Waiting(
        commitment=record.id,
        body=record.body,
        tags=tuple(sorted(tags)),
        tier=None if tier is None else tier.number,
        since=state.signals[submission.id].ts or record.last_ts,
        submission=submission.id,
        submitter=submission.actor,
        evidence=evidence,
        answers=answers,
        waits_for=waits_for,
        runnable=runnable,
        who=who_may_approve(genesis, tags, tier, submission.actor),
        risks=tuple(name for name, has in RISKS.items() if has(case)),
        mine=actor is None or _may_approve(snapshot, genesis, record, actor, at),
    )


def answers_of(snapshot: Snapshot, submission: str, tier: Tier | None) -> tuple[Mapping[str, Any], ...]:
    """Return the newest answer on record of each of a tier's validators, in the tier's order."""
    found: list[Mapping[str, Any]] = []
    for name in dict.fromkeys(tier.validators if tier is not None else ()):
        row, _ = latest(snapshot, submission, name)
        if row is None:
            found.append(
                {"validator": name, "result": "unasked", "reason": "it was not asked", "row": None, "ts": None}
            )
            continue
        meta = row.value["payload"]["meta"]
        found.append(
            {
                "validator": name,
                "result": _text(meta.get("result")),
                "reason": _text(meta.get("reason")),
                "row": row.id,
                "ts": _text(row.value.get("ts")),
            }
        )
    return tuple(found)


_MARKS: Final = ("passed", "failed", "waiting")


def _waits_for(tier: Tier | None, answers: Sequence[Mapping[str, Any]]) -> tuple[str, bool, bool]:
    """Return what is waited for, whether a validator failed, and whether asking them again could move it."""
    if tier is None:
        return "an approval", False, False
    unasked = [one["validator"] for one in answers if one["result"] not in _MARKS]
    if unasked:
        return f"its validators, which were not asked to the end: {', '.join(unasked)}", False, True
    came = outcome(tier, [Result(one["validator"], one["result"], one["reason"]) for one in answers])
    if isinstance(came, Failed):
        return f"somebody to look at what did not pass: {', '.join(came.validators)}", True, True
    if isinstance(came, Close):
        return "its closing: every validator passed", False, True
    assert isinstance(came, WaitForPerson)
    whose = "a person's approval" if tier.require_human or came.validators else "an approval"
    return f"{whose} ({', '.join(came.validators)})" if came.validators else whose, False, False


def _evidence(snapshot: Snapshot, identifier: str) -> Evidence:
    signal = snapshot.state.signals[identifier]
    payload = snapshot.rows.at_line(signal.line).value.get("payload")
    payload = payload if isinstance(payload, dict) else {}
    meta = payload.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    standing = snapshot.trust.standing(identifier)
    return Evidence(
        id=identifier,
        kind=signal.kind,
        actor=signal.actor,
        body=_text(payload.get("body")),
        run=_text(meta["run"]) if "run" in meta else None,
        decision=_text(meta["decision"]) if "decision" in meta else None,
        confidence=round(standing.effective, 4),
        verification=standing.verification,
    )


def _text(value: Any) -> str:
    return value[:MAX_TEXT] if isinstance(value, str) else ""


# Who -----------------------------------------------------------------------------------------------------------


def who_may_approve(genesis: Genesis | None, tags: Sequence[str], tier: Tier | None, submitter: str) -> Who:
    """Return who may approve a submission to a commitment with these tags.

    Whether one actor may is for the key to say (`Genesis.permits` and its rules); this tells it in general.
    """
    if genesis is None:
        return Who(None)
    human = tier is not None and tier.require_human
    rules = [genesis.constraints.tags[tag] for tag in tags if tag in genesis.constraints.tags]
    patterns, without = _granting(genesis, "approve", human)
    return Who(
        patterns,
        without,
        tuple(rule.approvers for rule in rules if rule.approvers is not None),
        human,
        None if genesis.constraints.allow_self else submitter,
    )


def _granting(genesis: Genesis, op: str, human: bool) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the ids of ``actors`` that grant an operation, and those among their matches that do not."""
    if genesis.actors is None or genesis.permissions is None:
        return None, ()
    granted: dict[str, bool] = {}
    for entry in genesis.actors:
        granted[entry.id] = granted.get(entry.id, False) or op in genesis.permissions[entry.role]
    ids = [name for name, grants in granted.items() if grants and not (human and _no_person(name))]
    without = [
        name
        for name, grants in granted.items()
        if not grants
        and not (human and _no_person(name))
        and any(other.endswith("*") and name.startswith(other[:-1]) for other in ids)
    ]
    return tuple(ids), tuple(without)


def _no_person(pattern: str) -> bool:
    """Tell whether a pattern matches no person."""
    return pattern.startswith(("agent:", "system:")) or not (pattern.endswith("*") or is_human(pattern))


def _may_approve(snapshot: Snapshot, genesis: Genesis | None, record: Commitment, actor: str, at: datetime) -> bool:
    if genesis is None:
        # Allowed and flagged without a key, but nobody's queue is one's own submissions.
        return record.submission is not None and record.submission.actor != actor
    tags = snapshot.state.tags_of(record)
    rule = genesis.broken_on(record, op="approve", actor=actor, tags=tags, state=snapshot.state, now=at)
    return genesis.permits(actor, "approve") and rule is None


# The rest ------------------------------------------------------------------------------------------------------


def _reopened(snapshot: Snapshot, record: Commitment) -> Reopened:
    last = snapshot.state.signals.get(record.last_row)
    by = reason = None
    if last is not None and last.op == "reopen":
        payload = snapshot.rows.at_line(last.line).value["payload"]
        by, reason = record.last_actor, _text(payload.get("reason") or payload.get("body"))
    return Reopened(record.id, record.body, record.owner or "", record.last_ts, by, reason)


def _disputable(
    snapshot: Snapshot, genesis: Genesis, records: Iterable[Commitment], at: datetime, actor: str | None
) -> Iterable[Disputable]:
    for record in records:
        if record.state != "closed" or record.closed_by != VALIDATOR:
            continue
        tags = snapshot.state.tags_of(record)
        tier = genesis.tier_of(tags)
        until = disputable_until(tier, record.closed_ts)
        if tier is None or until is None:
            continue
        by = actor or "human:anyone"
        if genesis.broken_on(record, op="reopen", actor=by, tags=tags, state=snapshot.state, now=at) is not None:
            continue
        if actor is not None and not genesis.permits(actor, "reopen"):
            continue
        yield Disputable(record.id, record.body, tier.number, record.closed_ts or "", until, record.evidence)
