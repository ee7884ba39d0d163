"""Asserted confidence: measured by the runner that did the work, fixed at creation (ledger spec §9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

WEIGHTS: Final[dict[str, float]] = {
    "exit_code": 0.20,
    "test_pass_rate": 0.20,
    "context_utilization": 0.20,
    "loop_complete": 0.15,
    "duration_reasonable": 0.10,
    "no_errors": 0.10,
    "evidence_depth": 0.05,
}
"""The seven components in table order; only these exist ([D31])."""

HALF_LIFE_DAYS: Final = 90
"""Half-life of confidence in days where neither the row nor a genesis key says (§10)."""

HUMAN_STAMP: Final[dict[str, Any]] = {
    "confidence": 0.95,
    "verification": "human_verified",
    "chain": ["manual_review:1.0"],
    "decayHalfLifeDays": 180,
}
"""What an approval by a human carries ([D32])."""


def human_stamp() -> dict[str, Any]:
    """Return a fresh copy of the human's stamp."""
    return {**HUMAN_STAMP, "chain": list(HUMAN_STAMP["chain"])}


def test_pass_rate(passed: int, run: int) -> float:
    """Return passed/run; nothing run gives 0 ([D29])."""
    return passed / run if run > 0 else 0.0


def context_utilization(used: int | None, window: int | None) -> float:
    """Return the headroom 1 - used/window in tokens; unknown gives 0 ([D29])."""
    if used is None or window is None or window <= 0:
        return 0.0
    return _clamp(1.0 - used / window)


def loop_complete(keyword_seen: bool | None, ended_by_itself: bool) -> float:
    """Return 1 when the completion keyword was seen, or, with none configured, the process ended by itself."""
    return 1.0 if (ended_by_itself if keyword_seen is None else keyword_seen) else 0.0


def duration_reasonable(seconds: float, timeout: float) -> float:
    """Return clamp(min(t / 1 s, (timeout - t) / (0.2 timeout))) ([D29])."""
    if timeout <= 0:
        return 0.0
    return _clamp(min(seconds, (timeout - seconds) / (0.2 * timeout)))


def evidence_depth(causal_depth: int) -> float:
    """Return 1 - 0.6^depth: 0 without parents, 0.4 at depth 1 ([D29])."""
    return 1.0 - 0.6**causal_depth


def components(
    *,
    exit_status: int | None,
    passed: int,
    run: int,
    tokens_used: int | None = None,
    tokens_window: int | None = None,
    keyword_seen: bool | None = None,
    ended_by_itself: bool = True,
    seconds: float,
    timeout: float,
    causal_depth: int,
) -> dict[str, float]:
    """Return the seven components of one measured run, in table order.

    Args:
        exit_status: ``None`` when the process left none.
        passed: tests that passed, of ``run``.
        tokens_used: with ``tokens_window`` the context taken up, ``None`` when unknown.
        keyword_seen: ``None`` when no completion keyword is configured.
        seconds: duration, of at most ``timeout``.
        causal_depth: of the row that will carry the trust.
    """
    exit_code = 1.0 if exit_status == 0 else 0.0
    complete = loop_complete(keyword_seen, ended_by_itself)
    return {
        "exit_code": exit_code,
        "test_pass_rate": test_pass_rate(passed, run),
        "context_utilization": context_utilization(tokens_used, tokens_window),
        "loop_complete": complete,
        "duration_reasonable": duration_reasonable(seconds, timeout),
        "no_errors": 1.0 if exit_code == 1.0 and complete == 1.0 else 0.0,
        "evidence_depth": evidence_depth(causal_depth),
    }


def asserted(measured: Mapping[str, float], weights: Mapping[str, float] = WEIGHTS) -> tuple[float, list[str]]:
    """Return the asserted confidence and its chain.

    The confidence is the weighted sum clamped to [0, 1] and rounded half to even to 4 decimals; the chain lists
    ``name:value`` for all seven components in table order.

    Raises:
        ValueError: unless exactly the seven components are given, each in [0, 1].
    """
    if set(measured) != set(WEIGHTS):
        raise ValueError("the seven components and no others")
    total = 0.0
    chain = []
    for name in WEIGHTS:
        value = float(measured[name])
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} is {value}, not in [0, 1]")
        total += weights[name] * value
        chain.append(f"{name}:{value!r}")
    return round(_clamp(total), 4), chain


def creation_trust(
    measured: Mapping[str, float],
    *,
    weights: Mapping[str, float] = WEIGHTS,
    half_life_days: int | None = None,
) -> dict[str, Any]:
    """Return the ``trust`` block of a measured row; ``machine_verified`` when the check exited 0 (§9 [D32])."""
    confidence, chain = asserted(measured, weights)
    block: dict[str, Any] = {
        "confidence": confidence,
        "verification": "machine_verified" if measured["exit_code"] == 1.0 else "unverified",
        "chain": chain,
    }
    if half_life_days is not None:
        block["decayHalfLifeDays"] = half_life_days
    return block


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, value))
