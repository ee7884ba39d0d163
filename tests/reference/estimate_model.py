"""The wall estimate of §11 a second time, in decimals and one straight line, apart from what is tested."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, getcontext
from typing import Any

getcontext().prec = 60
D = Decimal


def p90(values: list[Decimal]) -> Decimal:
    """Return the nearest-rank ninetieth percentile."""
    ordered = sorted(values)
    rank = -(-9 * len(ordered) // 10)
    return ordered[rank - 1]


def unrounded(run: dict[str, Any], size: int, rows: list[dict[str, Any]]) -> tuple[Decimal, str]:
    """Return (seconds, basis). A row has the run's members and ``size``, ``seconds``, ``wall``, ``end``."""
    same = [row for row in rows if all(row[name] == run[name] for name in run)]
    k = D(size) / 4 / 1000
    base, rate = (D(180), D(40)) if run["backend"] == "codex" else (D(300), D(70))
    effort = {"none": "0.6", "low": "0.75", "medium": "1", "high": "1.6", "xhigh": "2.2"}.get(run["effort"], "1")
    guess = base + rate * D(effort) * (D("0.8") if run["speed"] == "fast" else 1) * k
    seconds, basis = guess, "heuristic"
    done = [row for row in same if row["end"] == "completed"]
    if len(done) >= 5:
        rates = [max(D(0), D(r["seconds"]) - base) / max(D(r["size"]) / 4000, D("0.1")) for r in done]
        empirical = max(base + p90(rates) * k, p90([D(r["seconds"]) for r in done]))
        tokens = sorted(D(r["size"]) / 4 for r in done)
        half = len(tokens) // 2
        median = tokens[half] if len(tokens) % 2 == 1 else (tokens[half - 1] + tokens[half]) / 2
        if not (D(size) / 4 > 2 * median and guess > empirical):
            seconds, basis = empirical, "empirical"
    seconds = seconds * D("1.25")
    exceeded = [
        D(r["wall"]) for r in same if r["end"] == "wall_timeout" and D(r["size"]) * D("0.5") <= size <= D(r["size"]) * 2
    ]
    if exceeded and seconds <= D("1.2") * max(exceeded):
        seconds = D("1.5") * max(exceeded)
    return seconds, basis


def wall(run: dict[str, Any], size: int, rows: list[dict[str, Any]]) -> tuple[int, str]:
    """Return (wall in seconds, basis)."""
    seconds, basis = unrounded(run, size, rows)
    seconds = min(max(seconds, D(300)), D(5400))
    return int((seconds / 60).to_integral_value(ROUND_CEILING)) * 60, basis
