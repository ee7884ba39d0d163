"""The genesis key: a workspace's constitution, read strictly and asked for its rules (ledger spec §11).

:func:`parse_genesis` is the only door: what comes out needs no second look. A key answers two questions at the places
that §5 gives them: who may do what (step 7), and which constraint or tier rule a row breaks (step 11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused
from troth.core.instants import parse_instant
from troth.ledger.replay import Commitment, State
from troth.ledger.trust import HALF_LIFE_DAYS, WEIGHTS
from troth.ledger.values import is_human
from troth.ledger.yamltree import Finding

VALIDATOR: Final = "system:validator"
"""Who approves after a tier's validators passed; it implicitly holds approve and annotate ([D42])."""

IMPLICIT_OPS: Final = frozenset({"approve", "annotate"})
"""What :data:`VALIDATOR` may do without an entry."""

DEFAULT_VALIDATORS: Final = ("technical",)
"""The validators of a tier that names none ([D42])."""


class GenesisInvalid(Refused):
    """The key cannot be used; ``findings`` names everything wrong with it, by line and path."""

    def __init__(self, findings: Sequence[Finding], file: str | None = None) -> None:
        first = findings[0]
        more = f" {len(findings) - 1} more: `troth genesis validate` names them all." if len(findings) > 1 else ""
        super().__init__(
            "E_CONSTRAINT_VIOLATED",
            first.message,
            remedy=first.remedy + more,
            place=Place(file=file, line=first.line or None, path=first.path),
            detail="genesis_invalid",
        )
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose workspace it is; ownership grants no rights by itself."""

    name: str
    owner: str
    created: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of ``actors``: an exact id or one that ends in ``*``, its role, and the line it stands on."""

    id: str
    role: str
    line: int = 0


class Matched(NamedTuple):
    """The id of ``actors`` that decides about an actor, and the roles it combines, in file order ([D37])."""

    id: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TagRule:
    """What commitments with a tag need: no direct close, an approver that one of the patterns matches ([D38])."""

    require_approval: bool = False
    approvers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints by operation, and by tag of the commitment."""

    require_tags: bool = False
    allow_self: bool = False
    tags: Mapping[str, TagRule] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tier:
    """What happens after a submission (§11 [D41]).

    ``review_window`` is in seconds. ``validators`` are names in file order, ``technical`` alone when none are named.
    """

    number: int
    auto_close: bool = False
    review_window: int | None = None
    require_human: bool = False
    validators: tuple[str, ...] = DEFAULT_VALIDATORS

    @property
    def name(self) -> str:
        """Return its name in the key."""
        return f"tier_{self.number}"


@dataclass(frozen=True, slots=True)
class Federation:
    """What may leave the machine (§8 [D28])."""

    enabled: bool = False
    sync_target: str | None = None
    workspaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Genesis:
    """A valid key.

    ``sha256`` is that of its bytes. ``actors`` and ``permissions`` are ``None`` when the key has neither, so that
    everyone is permitted. ``weights`` are those of the key or the usual ones; ``half_life_days`` is ``None`` where
    the key does not say. ``classes`` pairs tags with a tier's number; ``default_tier`` is the one of no match.
    ``remarks`` are findings that do not make it invalid.
    """

    sha256: str
    identity: Identity
    actors: tuple[Entry, ...] | None = None
    permissions: Mapping[str, frozenset[str]] | None = None
    constraints: Constraints = Constraints()
    weights: Mapping[str, float] = field(default_factory=lambda: MappingProxyType(WEIGHTS))
    half_life_days: int | None = None
    tiers: Mapping[int, Tier] = field(default_factory=dict)
    classes: tuple[tuple[frozenset[str], int], ...] = ()
    default_tier: int | None = None
    federation: Federation = Federation()
    remarks: tuple[Finding, ...] = ()
    _matched: dict[str, Matched | None] = field(default_factory=dict, compare=False, repr=False)

    # Who may do what ---------------------------------------------------------------------------------------------

    def matched(self, actor: str) -> Matched | None:
        """Return the entry that decides about an actor: an exact one, else the longest literal match ([D37])."""
        if actor not in self._matched:
            if len(self._matched) >= _REMEMBERED:
                self._matched.clear()
            self._matched[actor] = _match(self.actors or (), actor)
        return self._matched[actor]

    def granted(self, actor: str, op: str) -> bool:
        """Tell whether the entries let the actor do this; what a validator holds implicitly is left out."""
        if self.actors is None or self.permissions is None:
            return True
        found = self.matched(actor)
        return found is not None and any(op in self.permissions[role] for role in found.roles)

    def permits(self, actor: str, op: str) -> bool:
        """Tell whether the actor may do this operation (§5 step 7)."""
        return (actor == VALIDATOR and op in IMPLICIT_OPS) or self.granted(actor, op)

    # Constraints and tiers ---------------------------------------------------------------------------------------

    def tier_of(self, tags: Sequence[str] | frozenset[str]) -> Tier | None:
        """Return the tier of a commitment with these tags: its own and its direct source's (§16).

        The strictest match wins; no match gives the default; without one the strictest tier that the key defines;
        ``None`` when it defines none ([D40]).
        """
        if not self.tiers:
            return None
        held = frozenset(tags)
        numbers = [number for wanted, number in self.classes if wanted & held]
        if numbers:
            return self.tiers[max(numbers)]
        return self.tiers[self.default_tier if self.default_tier is not None else max(self.tiers)]

    def broken_rule(self, row: Mapping[str, Any], state: State, now: datetime) -> str | None:
        """Return the name of the first constraint, then tier rule, that a row breaks (§5 step 11).

        Args:
            row: the candidate, which passed every earlier step.
            state: the state before it.
            now: the writer's instant; a row's own ``ts`` moves no window.
        """
        op, payload = row["op"], row["payload"]
        if op == "commit":
            return "require_tags" if self.constraints.require_tags and not payload.get("tags") else None
        if op not in ("approve", "close", "reopen"):
            return None
        record = state.commitments[payload["commitment"]]
        return self.broken_on(record, op=op, actor=row["actor"], tags=state.tags_of(record), state=state, now=now)

    def broken_on(
        self, record: Commitment, *, op: str, actor: str, tags: Sequence[str], state: State, now: datetime
    ) -> str | None:
        """Return what :meth:`broken_rule` does for approve, close and reopen of a commitment with these tags."""
        rules = [self.constraints.tags[tag] for tag in tags if tag in self.constraints.tags]
        tier = self.tier_of(tags)
        if op == "approve":
            return self._approval(actor, record, rules, tier)
        if op == "reopen":
            return "review_window_passed" if _window_passed(record, tier, state, now) else None
        if any(rule.require_approval for rule in rules):
            return "require_approval"
        return "require_human" if tier is not None and tier.require_human else None

    def _approval(self, actor: str, record: Commitment, rules: Sequence[TagRule], tier: Tier | None) -> str | None:
        submission = record.submission
        if submission is not None and submission.actor == actor and not self.constraints.allow_self:
            return "allow_self"
        for rule in rules:
            if rule.approvers is not None and not any(matches(pattern, actor) for pattern in rule.approvers):
                return "approvers"
        if tier is not None and tier.require_human and not is_human(actor):
            return "require_human"
        # What the validator holds implicitly it holds for automatic closing alone.
        if actor == VALIDATOR and not (tier is not None and tier.auto_close) and not self.granted(actor, "approve"):
            return "auto_close"
        return None


_REMEMBERED: Final = 1024
"""Actors whose entry is remembered."""


def matches(pattern: str, actor: str) -> bool:
    """Tell whether a pattern (an exact id, or a beginning followed by ``*``) matches an actor; case matters."""
    return actor.startswith(pattern[:-1]) if pattern.endswith("*") else actor == pattern


def _match(entries: Sequence[Entry], actor: str) -> Matched | None:
    best: str | None = None
    for entry in entries:
        # An exact id is longer than any beginning that ends in `*`, also where both have as many literal characters.
        if matches(entry.id, actor) and (best is None or _rank(entry.id) > _rank(best)):
            best = entry.id
    if best is None:
        return None
    return Matched(best, tuple(dict.fromkeys(entry.role for entry in entries if entry.id == best)))


def _rank(pattern: str) -> tuple[bool, int]:
    return (not pattern.endswith("*"), len(pattern))


def _window_passed(record: Commitment, tier: Tier | None, state: State, now: datetime) -> bool:
    """Tell whether a commitment that closed automatically can no longer be disputed (§11, tier 2; §16)."""
    if record.state != "closed" or record.closed_by != VALIDATOR or tier is None or tier.review_window is None:
        return False
    closing = state.signals.get(record.closed_row or "")
    closed = parse_instant(record.closed_ts or "")
    if closing is None or closing.op != "approve" or closed is None:
        return False
    return now - closed > timedelta(seconds=tier.review_window)


def effective_half_life(genesis: Genesis | None) -> int:
    """Return the half-life in days that holds for rows without one of their own (§10)."""
    return HALF_LIFE_DAYS if genesis is None or genesis.half_life_days is None else genesis.half_life_days


def parse_genesis(data: bytes, file: str | None = None) -> Genesis:
    """Return the key that these bytes are.

    Args:
        data: the whole file.
        file: its name, for the place in a refusal.

    Raises:
        GenesisInvalid: ``E_CONSTRAINT_VIOLATED`` with detail ``genesis_invalid``, line, path and what to do.
    """
    genesis, findings = check_genesis(data)
    if genesis is None:
        raise GenesisInvalid(findings, file)
    return genesis


def check_genesis(data: bytes) -> tuple[Genesis | None, list[Finding]]:
    """Return the key, or ``None`` with everything that makes it invalid, in the order of the lines."""
    from troth.ledger.genesis_sections import read_genesis

    return read_genesis(data, sha256_hex(data))
