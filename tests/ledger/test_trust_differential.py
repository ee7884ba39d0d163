"""Confidence against the independent model, over random ledgers with all that bears on it (ledger spec §9-§12)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import Ledger
from ledger.trusting import ledger_of, read
from reference import trust_model
from troth.ledger import chains, confidence, trust_edges
from troth.ledger.confidence import Trust, current
from troth.ledger.trust_edges import DOUBT, OWN, SUPPORT
from troth.ledger.trust_events import events_of

AT = datetime(2026, 2, 1, 12, tzinfo=UTC)
REACHED: Counter[str] = Counter()


def compare(ledger: Ledger) -> Trust:
    ours, model = read(ledger), trust_model.trust(ledger.data)
    signals = model["signals"]
    assert list(ours) == list(signals)
    for name, standing in ours.standings():
        told = signals[name]
        where = (name, told["line"])
        assert (standing.asserted, standing.scored) == (told["asserted"], told["scored"]), where
        assert standing.own == pytest.approx(told["own"], abs=1e-9), where
        assert standing.effective == pytest.approx(told["effective"], abs=1e-9), where
        assert standing.verification == told["verification"], where
        assert standing.half_life_days == told["half_life"], where
        for at in (AT, AT - timedelta(days=40), AT + timedelta(days=1000)):
            now = current(standing.effective, standing.ts, standing.half_life_days, at)
            ts = told["ts"] if isinstance(told["ts"], str) else None
            assert now == pytest.approx(trust_model.current(told["effective"], ts, told["half_life"], at), abs=1e-9)
    warned: dict[str, list[int | None]] = {"trust_mismatch": [], "half_life": []}
    for warning in ours.warnings:
        warned[warning.warning].append(warning.line)
    assert warned == model["warned"]
    return ours


def explains(trust: Trust) -> None:
    """Each signal's events are a chain from asserted to effective, and to current where time is asked for."""
    for name, standing in trust.standings():
        events = events_of(trust, name)
        assert [event.signal for event in events] == [name] * len(events)
        values = [standing.asserted, *(event.new for event in events)]
        assert [event.old for event in events] == values[:-1]
        assert values[-1] == standing.effective
        for event in events:
            if event.type == "contradiction_detected":
                assert event.new <= event.old
            else:
                assert event.new >= event.old
        timed = events_of(trust, name, AT)
        assert timed[: len(events)] == events
        assert [event.type for event in timed[len(events) :]] in ([], ["decay_applied"])
        last = timed[-1].new if timed else standing.asserted
        assert last == pytest.approx(current(standing.effective, standing.ts, standing.half_life_days, AT), abs=1e-15)


def count(trust: Trust) -> None:
    edges = trust._edges
    kinds = {SUPPORT: "support", OWN: "own support", DOUBT: "doubt"}
    REACHED.update(kinds[kind] for kind in edges.kind)
    REACHED.update(f"via {trust_edges.VIA[via]}" for via in edges.via)
    REACHED.update(event.type for name in trust for event in events_of(trust, name, AT))
    REACHED.update(standing.verification for _, standing in trust.standings())
    REACHED.update("scored" for _ in edges.asserted)
    REACHED.update(delta.word for deltas in edges.deltas.values() for delta in deltas)
    REACHED.update(f"warned {warning.warning}" for warning in trust.warnings)
    REACHED["zeroed"] += len(edges.zeroed)
    REACHED["strays"] += len(edges.strays)
    REACHED["terms"] += len(edges.changes) - 1
    for line in range(1, edges.lines + 1):
        every = [edge for edge in trust.onto(line) if edge.kind == DOUBT]
        actors = {edge.actor for edge in every}
        REACHED["doubts of one actor"] += len(every) > len(actors)
        REACHED["silenced doubts"] += len(actors) > len(trust.factors(line).doubts)
        REACHED["own and cascade"] += trust.weakest(line) is not None and bool(trust.factors(line).doubts)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([0.0, 0.03, 0.2]))
def test_ledgers(seed: int, rows: int, oddity: float) -> None:
    trust = compare(ledger_of(seed, rows, oddity))
    explains(trust)


def test_many_ledgers_reach_everything() -> None:
    REACHED.clear()
    for seed in range(60):
        ledger = ledger_of(seed, 80, (0.0, 0.02, 0.25)[seed % 3])
        trust = compare(ledger)
        explains(trust)
        count(trust)
    wanted = {f"via {via}" for via in trust_edges.VIA}
    wanted |= {"support", "own support", "doubt", *chains.LEVELS, "scored", "zeroed", "strays", "terms"}
    wanted |= {"SURVIVED", "COMPROMISED", "INCONCLUSIVE", "winner", "loser"}
    wanted |= {"citation_added", "reinforcement_update", "contradiction_detected", "decay_applied"}
    wanted |= {"warned trust_mismatch", "warned half_life"}
    wanted |= {"doubts of one actor", "silenced doubts", "own and cascade"}
    assert not {name for name in wanted if REACHED[name] < 5}, REACHED


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_thousands_of_ledgers(block: int) -> None:
    for seed in range(block * 250, block * 250 + 250):
        trust = compare(ledger_of(seed + 1000, 20 + seed % 130, (0.0, 0.01, 0.05, 0.3)[seed % 4]))
        explains(trust)


def compare_many(seeds: int) -> None:
    for seed in range(seeds):
        compare(ledger_of(seed, 80, (0.0, 0.02, 0.25)[seed % 3]))


@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [
        (confidence, "SUPPORT_WEIGHT", 0.11),
        (confidence, "DOUBT_WEIGHT", 0.31),
        (confidence, "CASCADE", 0.4),
        (chains, "TOLERATED", 0.5),
        (trust_edges, "VALIDATOR", "system:other"),
        (trust_edges, "is_human", lambda _: True),
        (trust_edges, "is_blank", lambda _: True),
        (trust_edges, "run_of", lambda _: "run-1"),
    ],
)
def test_a_wrong_figure_is_noticed(module: object, name: str, wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(AssertionError):
        compare_many(60)
