"""What one genesis key decides otherwise than another: by actor, rule, tier, weight, never by the bytes (§11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from troth.ledger.fields import OPS
from troth.ledger.genesis import Genesis, effective_half_life

_NOBODY: Final = "\0"
"""Stands for the rest of an id behind a pattern's beginning: no actor that anybody names has it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing decided otherwise: where (``actors``, ``constraints``, ``tiers`` …), what, before and after."""

    section: str
    what: str
    before: Any
    after: Any

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {"section": self.section, "what": self.what, "before": self.before, "after": self.after}


def changes(old: Genesis | None, new: Genesis | None) -> list[Change]:
    """Return what ``new`` decides otherwise than ``old``; ``None`` is no key at all.

    Of actors, each id and pattern that either key names is compared, and everyone else (``*``): with the operations
    permitted to those whom nothing more specific matches.
    """
    return [*_permissions(old, new), *_flat_changes(_flat(old), _flat(new))]


def _permissions(old: Genesis | None, new: Genesis | None) -> Iterator[Change]:
    named = [entry.id for genesis in (old, new) if genesis is not None for entry in genesis.actors or ()]
    for pattern in dict.fromkeys((*named, "*")):
        before, after = _ops(old, pattern), _ops(new, pattern)
        if before != after:
            yield Change("actors", pattern, before, after)


def _ops(genesis: Genesis | None, pattern: str) -> list[str]:
    actor = pattern[:-1] + _NOBODY if pattern.endswith("*") else pattern
    return [op for op in OPS if genesis is None or genesis.permits(actor, op)]


def _flat(genesis: Genesis | None) -> dict[tuple[str, str], Any]:
    """Return every decision but permissions under (section, what); the absence of a key has none."""
    if genesis is None:
        return {}
    constraints, federation = genesis.constraints, genesis.federation
    found: dict[tuple[str, str], Any] = {
        ("identity", "name"): genesis.identity.name,
        ("identity", "owner"): genesis.identity.owner,
        ("constraints", "commit.require_tags"): constraints.require_tags,
        ("constraints", "approve.allow_self"): constraints.allow_self,
        ("trust", "half_life_days"): effective_half_life(genesis),
        ("federation", "enabled"): federation.enabled,
        ("federation", "sync_target"): federation.sync_target,
        ("federation", "workspaces"): list(federation.workspaces),
    }
    for tag, rule in constraints.tags.items():
        found["constraints", f"tag {tag}: require_approval"] = rule.require_approval
        found["constraints", f"tag {tag}: approvers"] = list(rule.approvers) if rule.approvers is not None else None
    found |= {("trust", f"weight {name}"): weight for name, weight in genesis.weights.items()}
    for tier in genesis.tiers.values():
        for name in ("auto_close", "review_window", "require_human"):
            found["tiers", f"{tier.name}: {name}"] = getattr(tier, name)
        found["tiers", f"{tier.name}: validators"] = list(tier.validators)
    tags = {tag for wanted, _ in genesis.classes for tag in wanted}
    found |= {("classification", f"tag {tag}"): _tier(genesis, [tag]) for tag in tags}
    found["classification", "no match"] = _tier(genesis, [])
    return found


def _tier(genesis: Genesis, tags: Iterable[str]) -> str | None:
    tier = genesis.tier_of(list(tags))
    return tier.name if tier is not None else None


def _flat_changes(old: Mapping[tuple[str, str], Any], new: Mapping[tuple[str, str], Any]) -> Iterator[Change]:
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if before != after:
            yield Change(*key, before, after)
