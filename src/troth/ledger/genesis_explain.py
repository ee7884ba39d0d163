"""Why a genesis key answers as it does: the entry that matched, the roles, the rules and the tier that decide (§11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troth.ledger.codes import RULES
from troth.ledger.fields import ON_COMMITMENT
from troth.ledger.genesis import IMPLICIT_OPS, VALIDATOR, Genesis, Matched, TagRule, Tier
from troth.ledger.machine import step
from troth.ledger.replay import Commitment, State, column_of


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the key and the state table answer to an operation, and why.

    ``permission`` says what grants or denies it. ``tag_rules`` are the sections of the tags that the key knows.
    ``tier`` is the one of the tags, chosen ``by`` a match, the default, or because it is the strictest. ``code`` and
    ``detail`` are what would be answered (``None``: nothing refuses it), ``reason`` says why. ``conditions`` are
    rules that depend on what was not said.
    """

    actor: str
    op: str
    permitted: bool
    permission: str
    matched: Matched | None
    tags: tuple[str, ...]
    tag_rules: tuple[tuple[str, TagRule], ...]
    tier: Tier | None
    by: str | None
    code: str | None
    detail: str | None
    reason: str
    conditions: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the answer with the wire's names."""
        return {
            "actor": self.actor,
            "op": self.op,
            "permitted": self.permitted,
            "permission": self.permission,
            "entry": self.matched.id if self.matched is not None else None,
            "roles": list(self.matched.roles) if self.matched is not None else [],
            "tags": list(self.tags),
            "tag_rules": {
                tag: {
                    "require_approval": rule.require_approval,
                    "approvers": list(rule.approvers) if rule.approvers is not None else None,
                }
                for tag, rule in self.tag_rules
            },
            "tier": self.tier.name if self.tier is not None else None,
            "tier_by": self.by,
            "code": self.code,
            "detail": self.detail,
            "reason": self.reason,
            "conditions": list(self.conditions),
        }


def explain(
    genesis: Genesis,
    actor: str,
    op: str,
    *,
    state: State,
    now: datetime,
    record: Commitment | None = None,
    tags: Sequence[str] = (),
) -> Explanation:
    """Return what decides about an operation.

    Args:
        genesis: the key.
        actor: who acts.
        op: one of the nine operations.
        state: the ledger's state.
        now: the instant that a review window is measured at.
        record: the commitment it is about; without one the answer is for any with these tags.
        tags: further tags, for a commitment that has none yet.
    """
    held = tuple(dict.fromkeys((*(state.tags_of(record) if record is not None else ()), *tags)))
    permitted = genesis.permits(actor, op)
    tier, by = _tier(genesis, held)
    concerns = op in ON_COMMITMENT
    code = detail = None
    reason = "nothing refuses it"
    if not permitted:
        code, reason = "E_PERMISSION_DENIED", f"no role of {actor} may {op}"
    elif record is not None and concerns:
        cell = step(record.state, record.owner, actor, column_of(op, {}))
        code, detail = cell.code, cell.detail
        if code is not None:
            holder = f", held by {record.owner}" if record.owner is not None else ""
            reason = f"{record.id} is {record.state}{holder}"
    if code is None:
        rule = _rule(genesis, actor, op, state=state, now=now, record=record, tags=held)
        if rule is not None:
            code, detail, reason = "E_CONSTRAINT_VIOLATED", rule, RULES[rule]
    return Explanation(
        actor=actor,
        op=op,
        permitted=permitted,
        permission=_permission(genesis, actor, op),
        matched=genesis.matched(actor) if genesis.actors is not None else None,
        tags=held,
        tag_rules=tuple((tag, genesis.constraints.tags[tag]) for tag in held if tag in genesis.constraints.tags)
        if concerns
        else (),
        tier=tier if concerns else None,
        by=by if concerns else None,
        code=code,
        detail=detail,
        reason=reason,
        conditions=_conditions(genesis, op, record, tier) if code is None else (),
    )


def _permission(genesis: Genesis, actor: str, op: str) -> str:
    if genesis.actors is None or genesis.permissions is None:
        return "the key names no actors, so everyone may do everything"
    found = genesis.matched(actor)
    if found is None:
        told = "no entry of actors matches, so nothing is granted"
    else:
        roles = [role for role in found.roles if op in genesis.permissions[role]]
        named = ", ".join(found.roles)
        told = f"the entry {found.id} gives {named}" + (
            f"; {', '.join(roles)} may {op}" if roles else f"; none of these may {op}"
        )
    if actor == VALIDATOR and op in IMPLICIT_OPS:
        told += f"; {VALIDATOR} holds {op} implicitly"
    return told


def _tier(genesis: Genesis, tags: Sequence[str]) -> tuple[Tier | None, str | None]:
    tier = genesis.tier_of(tags)
    if tier is None:
        return None, None
    hits = sorted({tag for wanted, number in genesis.classes if number == tier.number for tag in wanted & {*tags}})
    if hits:
        return tier, f"match: {', '.join(hits)}"
    return tier, "default" if genesis.default_tier is not None else "strictest tier of the key"


def _rule(
    genesis: Genesis,
    actor: str,
    op: str,
    *,
    state: State,
    now: datetime,
    record: Commitment | None,
    tags: Sequence[str],
) -> str | None:
    if op == "commit":
        return "require_tags" if genesis.constraints.require_tags and not tags else None
    if op not in ("approve", "close", "reopen"):
        return None
    anyone = Commitment(id="", source="", body="", tags=tuple(tags), actor="", line=0, ts="")
    return genesis.broken_on(record or anyone, op=op, actor=actor, tags=tags, state=state, now=now)


def _conditions(genesis: Genesis, op: str, record: Commitment | None, tier: Tier | None) -> tuple[str, ...]:
    """Return what else could decide, where no commitment was named."""
    if record is not None:
        return ()
    told = []
    if op in ON_COMMITMENT:
        told.append("the state and the owner of the commitment decide first")
    if op == "approve" and not genesis.constraints.allow_self:
        told.append("refused (allow_self) for whoever submitted")
    if op == "reopen" and tier is not None and tier.review_window is not None:
        told.append("refused (review_window_passed) after the window, where it closed automatically")
    return tuple(told)
