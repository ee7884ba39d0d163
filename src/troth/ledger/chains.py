"""What a reader makes of the trust that a row stores: recomputed from its chain, never believed (ledger spec §9, §16).

A stored confidence counts when the row carries all seven measured components, or is the stamp of a person on an
approval. Of the stored value and the recomputed one the lower is taken. Everything else is *unscored*.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from troth.ledger.fields import is_blank
from troth.ledger.genesis_event import event_of
from troth.ledger.trust import HUMAN_STAMP, WEIGHTS
from troth.ledger.values import is_human

UNSCORED: Final = 0.5
"""Asserted confidence of a row that carries none that counts (§10)."""

TOLERATED: Final = 0.001
"""How far stored and recomputed confidence may differ before ``trust_mismatch`` is warned of (§9)."""

LEVELS: Final = ("unverified", "machine_verified", "human_verified")
"""Verification levels, ascending; elsewhere in this package a level is its index."""

UNVERIFIED: Final = 0
MACHINE: Final = 1
HUMAN: Final = 2

# Comparing doubles at a bound that no double is: what differs by the bound exactly is within it.
_SLACK: Final = 1e-9
# A number as JSON writes it.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")


class Asserted(NamedTuple):
    """The asserted side of one row.

    ``value`` is the confidence in [0, 1]; ``scored`` tells whether the row's own counts. ``level`` indexes
    :data:`LEVELS`. ``stored`` and ``recomputed`` are what the lower one was taken of; ``recomputed`` is ``None``
    for a person's stamp, both are ``None`` for an unscored row.
    """

    value: float
    scored: bool
    level: int
    stored: float | None = None
    recomputed: float | None = None

    @property
    def mismatch(self) -> bool:
        """Tell whether stored and recomputed confidence are further apart than :data:`TOLERATED`."""
        if self.stored is None or self.recomputed is None:
            return False
        return abs(self.stored - self.recomputed) > TOLERATED + _SLACK


NOTHING: Final = Asserted(UNSCORED, False, UNVERIFIED)
"""A row that carries no confidence that counts."""


class Terms(NamedTuple):
    """What genesis events lay down for the rows behind them: the seven weights, and a half-life in days or none."""

    weights: Mapping[str, float]
    half_life_days: int | None


DEFAULT_TERMS: Final = Terms(WEIGHTS, None)
"""In force before the first genesis event."""


def parse_chain(chain: Any) -> dict[str, float] | None:
    """Return the seven components in table order, ``None`` unless the chain is exactly them, each in [0, 1] (§16).

    A value is a number as JSON writes it, directly behind the first colon.
    """
    if type(chain) is not list or len(chain) != len(WEIGHTS):
        return None
    found: dict[str, float] = {}
    for entry in chain:
        if type(entry) is not str:
            return None
        part = _known_entry(entry) if len(entry) <= _USUAL_ENTRY else _entry(entry)
        if part is None or part[0] in found:
            return None
        found[part[0]] = part[1]
    return {name: found[name] for name in WEIGHTS}


def _entry(entry: str) -> tuple[str, float] | None:
    """Return name and value of an entry, ``None`` when it is none of the seven with a number in [0, 1]."""
    name, _, digits = entry.partition(":")
    if name not in WEIGHTS or _NUMBER.match(digits) is None:
        return None
    value = float(digits)
    return (name, value) if 0.0 <= value <= 1.0 else None


# The same few entries stand in most rows; longer ones are not kept, so that hostile rows cost no memory.
_USUAL_ENTRY: Final = 64
_known_entry = lru_cache(maxsize=4096)(_entry)


def weigh(components: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the weighted sum in table order, clamped to [0, 1], rounded half to even to 4 decimals (§9, §16)."""
    total = 0.0
    for name in WEIGHTS:
        total += weights[name] * components[name]
    return round(min(1.0, max(0.0, total)), 4)


def assess(value: Mapping[str, Any], weights: Mapping[str, float]) -> Asserted:
    """Return the asserted side of a row, with the weights in force where it stands (§9 [D30] [D32], §16).

    Args:
        value: the row as parsed; whatever stands in its ``trust`` is looked at here and nowhere else.
        weights: the seven, of the latest earlier genesis event.
    """
    trust = value.get("trust")
    if type(trust) is not dict:
        return NOTHING
    stored = trust.get("confidence")
    if not (type(stored) is int or type(stored) is float) or not 0 <= stored <= 1:
        return NOTHING
    stored = float(stored)
    if _is_stamp(value, trust):
        return Asserted(stored, True, HUMAN, stored)
    components = parse_chain(trust.get("chain"))
    if components is None:
        return NOTHING
    recomputed = weigh(components, weights)
    checked = trust.get("verification") == LEVELS[MACHINE] and components["exit_code"] == 1.0
    return Asserted(min(stored, recomputed), True, MACHINE if checked else UNVERIFIED, stored, recomputed)


def _is_stamp(value: Mapping[str, Any], trust: Mapping[str, Any]) -> bool:
    """Tell whether the trust is a valid human stamp: of an approval, by a human, with exactly these members (§16)."""
    actor = value.get("actor")
    return (
        value.get("op") == "approve"
        and type(actor) is str
        and is_human(actor)
        and all(trust.get(name) == HUMAN_STAMP[name] for name in ("confidence", "verification", "chain"))
    )


def stored_half_life(trust: Any) -> tuple[int | None, bool]:
    """Return a stored half-life in days, or ``None``; and whether one stands there that is no integer from 1 (§10)."""
    found = trust.get("decayHalfLifeDays") if type(trust) is dict else None
    if is_blank(found):
        return None, False
    if type(found) is not int or found < 1:
        return None, True
    return found, False


def genesis_terms(value: Mapping[str, Any], before: Terms) -> Terms:
    """Return the terms in force behind a row: changed by a genesis event, else those ``before`` (§16, Genesis event).

    A member of the event that no key could have (§11) changes nothing.
    """
    event = event_of(value)
    if event is None:
        return before
    return Terms(event.weights or before.weights, event.half_life_days or before.half_life_days)
