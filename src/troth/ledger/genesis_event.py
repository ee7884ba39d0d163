"""The genesis event: the row that says which key was in force from here on (ledger spec §11 [D39], §16)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from troth.ledger.trust import HALF_LIFE_DAYS, WEIGHTS

AUTHOR: Final = "system:genesis"
"""Who writes the event; exempt from permissions for it."""

KIND: Final = "event"

SUM_TOLERANCE: Final = 1e-6
"""How far a sum of weights may be from 1."""


class GenesisEvent(NamedTuple):
    """What an event says: the key's digest (``None``: the key was removed), weights and half-life in days.

    ``weights`` and ``half_life_days`` are ``None`` where the row does not hold good ones.
    """

    sha256: str | None
    weights: Mapping[str, float] | None
    half_life_days: int | None


def event_of(value: Mapping[str, Any]) -> GenesisEvent | None:
    """Return what a row says as a genesis event, ``None`` when it is none: the actor must be ``system:genesis``, the
    operation a capture of kind ``event`` with an object ``meta.genesis`` that has a ``sha256``.
    """
    payload = value.get("payload")
    if value.get("actor") != AUTHOR or value.get("op") != "capture" or not isinstance(payload, dict):
        return None
    meta = payload.get("meta")
    told = meta.get("genesis") if isinstance(meta, dict) else None
    if payload.get("kind") != KIND or not isinstance(told, dict) or "sha256" not in told:
        return None
    sha256, weights, half_life = told["sha256"], told.get("weights"), told.get("half_life_days")
    return GenesisEvent(
        sha256 if isinstance(sha256, str) else None,
        _weights(weights),
        half_life if type(half_life) is int and half_life >= 1 else None,
    )


def event_meta(sha256: str | None, weights: Mapping[str, float] = WEIGHTS, half_life_days: int | None = None) -> Any:
    """Return ``meta`` of the event row for a key, or without arguments but ``None`` for its removal."""
    return {
        "genesis": {
            "sha256": sha256,
            "weights": {name: float(weights[name]) for name in WEIGHTS},
            "half_life_days": HALF_LIFE_DAYS if half_life_days is None else half_life_days,
        }
    }


def _weights(value: Any) -> Mapping[str, float] | None:
    if not isinstance(value, dict) or set(value) != set(WEIGHTS):
        return None
    if not all(type(one) in (int, float) and 0 <= one <= 1 for one in value.values()):
        return None
    if abs(math.fsum(value.values()) - 1.0) > SUM_TOLERANCE:
        return None
    return {name: float(value[name]) for name in WEIGHTS}
