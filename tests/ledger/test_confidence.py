"""Effective confidence: the published figures, and the laws that hold of every ledger (ledger spec §10, §12, §16)."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import Ledger
from ledger.trusting import STAMP, chain, effective, ledger_of, read, scored
from support.shared import conformance, needs_shared
from troth.core.instants import parse_instant
from troth.ledger.confidence import current, decay, trust_of
from troth.ledger.replay import replay
from troth.ledger.rows import row_of
from troth.ledger.trust_edges import DELTAS

WORKER, OTHER, THIRD, PERSON = "agent:worker", "agent:other", "agent:third", "human:reviewer"
CLOSE = 1e-9


def like_the_sample() -> Ledger:
    """A ledger with the trust of the published sample: observation, evidence of 0.85, approval by another."""
    ledger = Ledger()
    seen = ledger.add("capture", PERSON, id="mem_a1b2c3d4")
    work = ledger.add("commit", PERSON, id="cmt_e5f6g7h8", source=seen, **relation("cites", seen))
    ledger.add("claim", WORKER, commitment=work)
    parts = {"test_pass_rate": 0.95, "context_utilization": 0.72, "duration_reasonable": "0.80", "evidence_depth": 0.4}
    measured = {"confidence": 0.85, "verification": "machine_verified", "chain": chain(**parts)}
    proof = ledger.add("capture", WORKER, id="mem_m3n4o5p6", trust=measured, **relation("cites", seen))
    ledger.add("submit", WORKER, commitment=work, evidence=proof)
    ledger.add("approve", PERSON, id="op_u1v2w3x4", commitment=work, trust=STAMP)
    return ledger


def published() -> Ledger:
    """The published sample itself."""
    ledger = Ledger()
    ledger.rows = [json.loads(line) for line in conformance("sample-ledger.jsonl").read_bytes().splitlines()]
    return ledger


SAMPLES = [like_the_sample, pytest.param(published, marks=needs_shared)]


def relation(kind: str, target: str) -> dict[str, Any]:
    return {"relations": [{"type": kind, "targetId": target}]}


def own(ledger: Ledger, identifier: str) -> float:
    return read(ledger).standing(identifier).own


# --- the published figures


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_sample(sample: Callable[[], Ledger]) -> None:
    trust = read(sample())
    evidence, seen = trust.standing("mem_m3n4o5p6"), trust.standing("mem_a1b2c3d4")
    assert (evidence.asserted, evidence.scored) == (0.85, True)
    assert evidence.effective == pytest.approx(0.86425, abs=CLOSE)
    assert evidence.verification == "human_verified"
    assert (seen.asserted, seen.scored) == (0.5, False)
    assert seen.effective == pytest.approx(0.5432125, abs=CLOSE)
    assert trust.standing("cmt_e5f6g7h8").effective == 0.5
    assert trust.standing("op_u1v2w3x4").effective == 0.95
    (warning,) = trust.warnings
    assert (warning.line, warning.id, warning.warning) == (4, "mem_m3n4o5p6", "trust_mismatch")


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_sample_contradicted_by_a_third_actor(sample: Callable[[], Ledger]) -> None:
    ledger = sample()
    ledger.add("capture", THIRD, trust=scored(0.8), **relation("contradicts", "mem_m3n4o5p6"))
    trust = read(ledger)
    assert trust.standing("mem_m3n4o5p6").effective == pytest.approx(0.65683, abs=CLOSE)
    assert trust.ratio(trust.line_of("mem_m3n4o5p6")) == pytest.approx(0.772741, abs=1e-6)
    assert trust.standing("mem_a1b2c3d4").effective == pytest.approx(0.5328415, abs=CLOSE)
    assert trust.standing("op_u1v2w3x4").effective == pytest.approx(0.842052, abs=1e-6)


def test_the_factors_of_age() -> None:
    at = datetime(2027, 1, 1, tzinfo=UTC)
    for days, factor in ((0, 1.0), (30, 0.794), (90, 0.5), (180, 0.25), (365, 0.060)):
        ts = (at - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert current(1.0, ts, 90, at) == pytest.approx(factor, abs=5e-4)
    assert current(1.0, "2026-01-01T00:00:00Z", 90, at) == pytest.approx(0.06014, abs=5e-6)


# --- time


@pytest.mark.parametrize(
    ("ts", "warning"),
    [
        ("2026-01-01T00:00:00Z", None),
        ("2026-01-01T00:00:00.5+00:00", None),
        ("2028-01-01T00:00:00Z", "future_timestamp"),
        ("2026-02-30T00:00:00Z", "bad_timestamp"),
        (None, "bad_timestamp"),
    ],
)
def test_what_cannot_have_aged_is_warned_of(ts: str | None, warning: str | None) -> None:
    at = parse_instant("2027-01-01T00:00:00Z")
    assert at is not None
    worn = decay(ts, 90, at)
    assert worn.warning == warning
    assert (worn.factor == 1.0) == (worn.age_days == 0.0) == (warning is not None)


@given(st.integers(1, 10**400), st.floats(0, 1))
def test_any_half_life_and_confidence(days: int, confidence: float) -> None:
    at = datetime(9999, 1, 1, tzinfo=UTC)
    assert 0.0 <= current(confidence, "0001-01-01T00:00:00Z", days, at) <= confidence


def test_whose_half_life() -> None:
    ledger = Ledger()
    first = ledger.add("capture")
    own_days = ledger.add("capture", trust={"decayHalfLifeDays": 7})
    bad = ledger.add("capture", trust={"decayHalfLifeDays": 7.0})
    assert [read(ledger).standing(name).half_life_days for name in (first, own_days, bad)] == [90, 7, 90]
    meta = {"genesis": {"sha256": "0" * 64, "half_life_days": 30}}
    ledger.add("capture", "system:genesis", kind="event", meta=meta)
    trust = read(ledger)
    assert [trust.standing(name).half_life_days for name in (first, own_days, bad)] == [30, 7, 30]
    assert [(warning.warning, warning.line) for warning in trust.warnings] == [("half_life", 3)]


# --- edges


@pytest.mark.parametrize("kind", ["cites", "supports"])
def test_support(kind: str) -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    ledger.add("capture", OTHER, trust=scored(0.8), **relation(kind, seen))
    assert own(ledger, seen) == pytest.approx(1 - 0.5 * (1 - 0.08))


@pytest.mark.parametrize("kind", ["extends", "refines", "supersedes", "okf_link", "hugs"])
def test_other_relations_bear_on_nothing(kind: str) -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    ledger.add("capture", OTHER, **relation(kind, seen))
    assert own(ledger, seen) == 0.5


def test_the_own_actor_never_supports_and_may_doubt() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    ledger.add("capture", WORKER, **relation("cites", seen))
    assert own(ledger, seen) == 0.5
    ledger.add("capture", WORKER, **relation("contradicts", seen))
    assert own(ledger, seen) == pytest.approx(0.5 * 0.85)


def test_a_retraction_of_one_s_own_is_final() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    back = ledger.add("annotate", WORKER, kind="retraction", target=seen)
    ledger.add("annotate", OTHER, kind="retraction", target=back)
    ledger.add("annotate", WORKER, kind="retraction", target=back)
    ledger.add("capture", OTHER, **relation("cites", seen))
    assert own(ledger, seen) == 0.0
    assert own(ledger, back) == 0.0


def test_a_retraction_by_another_is_a_doubt() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    ledger.add("annotate", OTHER, kind="retraction", target=seen)
    assert own(ledger, seen) == pytest.approx(0.5 * 0.85)


def test_of_one_actor_only_the_strongest_counts() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    for confidence in (0.3, 0.9, 0.6):
        ledger.add("capture", OTHER, trust=scored(confidence), **relation("cites", seen))
    assert own(ledger, seen) == pytest.approx(1 - 0.5 * (1 - 0.09))
    ledger.add("capture", OTHER, trust=scored(0.4), **relation("contradicts", seen))
    assert own(ledger, seen) == pytest.approx((1 - 0.5 * (1 - 0.09)) * (1 - 0.12))


def test_what_operations_imply() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    first, second, third = (ledger.add("commit", PERSON, source=seen) for _ in range(3))
    proof, other = ledger.add("capture", WORKER), ledger.add("capture", WORKER)
    for work in (first, second, third):
        ledger.add("claim", PERSON, commitment=work)
    ledger.add("close", PERSON, commitment=first, evidence=proof)
    ledger.add("submit", PERSON, commitment=second, evidence=other)
    assert own(ledger, seen) == pytest.approx(1 - 0.5 * 0.95)
    assert own(ledger, proof) == pytest.approx(1 - 0.5 * 0.95)
    assert own(ledger, other) == 0.5
    ledger.add("approve", OTHER, commitment=second)
    assert own(ledger, other) == pytest.approx(1 - 0.5 * 0.95)
    ledger.add("close", PERSON, commitment=third, duplicate_of=first, evidence=other)
    assert own(ledger, other) == pytest.approx(1 - 0.5 * 0.95)


def test_an_approval_supports_what_was_submitted_then() -> None:
    ledger = Ledger()
    seen, first, second = (ledger.add("capture", WORKER) for _ in range(3))
    work = ledger.add("commit", WORKER, source=seen)
    ledger.add("claim", WORKER, commitment=work)
    ledger.add("submit", WORKER, commitment=work, evidence=first)
    ledger.add("reopen", OTHER, commitment=work)
    ledger.add("submit", WORKER, commitment=work, evidence=second)
    ledger.add("submit", WORKER, commitment=work, evidence=first)  # no effect: in review already
    ledger.add("approve", OTHER, commitment=work)
    assert (own(ledger, first), own(ledger, second)) == (0.5, pytest.approx(0.525))


def test_rows_without_effect_imply_nothing_and_their_relations_count() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    ledger.add("commit", OTHER, source=seen, envelope={"sourceIds": 5})
    ledger.add("annotate", OTHER, kind="retraction", target=seen, envelope={"sourceIds": 5})
    ledger.add("annotate", WORKER, kind="retraction", target=seen, envelope={"sourceIds": 5})
    assert own(ledger, seen) == 0.5
    ledger.add("commit", OTHER, source="mem_nobody00", **relation("cites", seen))
    assert own(ledger, seen) == pytest.approx(0.525)
    ledger.add("capture", THIRD, envelope={"id": seen}, **relation("cites", seen))
    assert own(ledger, seen) == pytest.approx(1 - 0.5 * 0.95**2)


def test_edges_to_later_rows_carry_nothing() -> None:
    ledger = Ledger()
    ledger.add(
        "capture", WORKER, relations=[{"type": kind, "targetId": "mem_00000002"} for kind in ("cites", "contradicts")]
    )
    ledger.add("capture", OTHER, **relation("contradicts", "mem_00000002"))
    assert list(effective(ledger).values()) == [0.5, 0.5]


# --- verdicts and selections


@pytest.mark.parametrize(("kind", "word"), [(kind, word) for kind, (_, words) in DELTAS.items() for word in words])
def test_each_word(kind: str, word: str) -> None:
    member, words = DELTAS[kind]
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    ledger.add("annotate", "system:arena", kind=kind, target=seen, meta={"run": "r", member: word, "delta": 5})
    assert own(ledger, seen) == pytest.approx(0.5 + words[word])


def verdict(ledger: Ledger, target: str, word: str, run: str = "r", actor: str = "system:arena") -> str:
    return ledger.add("annotate", actor, kind="verdict", target=target, meta={"run": run, "verdict": word})


def test_a_run_counts_once_for_a_target() -> None:
    ledger = Ledger()
    seen, other = ledger.add("capture", WORKER), ledger.add("capture", WORKER)
    verdict(ledger, seen, "SURVIVED")
    verdict(ledger, seen, "COMPROMISED")
    ledger.add("annotate", "system:arena", kind="selection", target=seen, meta={"run": "r", "result": "winner"})
    verdict(ledger, other, "COMPROMISED")
    assert [own(ledger, name) for name in (seen, other)] == [pytest.approx(0.6), pytest.approx(0.2)]
    verdict(ledger, seen, "SURVIVED", "s")
    assert own(ledger, seen) == pytest.approx(0.7)


def test_whose_verdicts_count() -> None:
    ledger = Ledger()
    seen, measured = ledger.add("capture", WORKER), ledger.add("capture", "system:arena")
    verdict(ledger, seen, "SURVIVED", actor="agent:rival")
    verdict(ledger, seen, "SURVIVED", actor=PERSON)
    verdict(ledger, measured, "SURVIVED")
    ledger.add("close", "system:arena", commitment=seen, evidence=seen, meta={"run": "r", "verdict": "SURVIVED"})
    assert (own(ledger, seen), own(ledger, measured)) == (0.5, 0.5)
    verdict(ledger, seen, "COMPROMISED")  # the ignored ones did not use the run up
    assert own(ledger, seen) == pytest.approx(0.2)


def test_deltas_are_summed_before_they_are_clamped() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER, trust=scored(0.95))
    for run, word in (("a", "SURVIVED"), ("b", "COMPROMISED"), ("c", "SURVIVED"), ("d", "SURVIVED")):
        verdict(ledger, seen, word, run)
    assert own(ledger, seen) == pytest.approx(0.95)


def test_a_run_s_own_doubts_are_left_out() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    attack = {"meta": {"run": "r"}, **relation("contradicts", seen)}
    ledger.add("capture", "agent:rival", **attack)
    ledger.add("annotate", OTHER, kind="retraction", target=seen, meta={"run": "r"})
    assert own(ledger, seen) == pytest.approx(0.5 * 0.85**2)
    verdict(ledger, seen, "COMPROMISED")
    assert own(ledger, seen) == pytest.approx(0.2)
    ledger.add("capture", "agent:rival", **relation("contradicts", seen))
    assert own(ledger, seen) == pytest.approx(0.2 * 0.85)


# --- cascade


def test_the_cascade_counts_everything_cited_one_s_own_too() -> None:
    ledger = Ledger()
    base = ledger.add("capture", WORKER)
    citing = ledger.add("capture", WORKER, **relation("cites", base))
    stronger = ledger.add("capture", WORKER, trust=scored(0.9), **relation("cites", base))
    ledger.add("capture", OTHER, **relation("contradicts", base))
    found = effective(ledger)
    assert found[base] == pytest.approx(0.425)
    assert found[citing] == pytest.approx(0.5 * 0.925)
    assert found[stronger] == pytest.approx(0.9 * 0.925)


def test_the_cascade_goes_on() -> None:
    ledger = Ledger()
    last = ledger.add("capture", WORKER)
    chain = [last]
    for _ in range(3):
        last = ledger.add("capture", WORKER, **relation("cites", last))
        chain.append(last)
    ledger.add("annotate", WORKER, kind="retraction", target=chain[0])
    found = effective(ledger)
    assert [found[name] for name in chain] == [0.0, pytest.approx(0.25), pytest.approx(0.375), pytest.approx(0.4375)]


def test_nothing_is_lost_by_what_was_worth_nothing() -> None:
    ledger = Ledger()
    nothing = ledger.add("capture", WORKER, trust=scored(0))
    citing = ledger.add("capture", WORKER, **relation("cites", nothing))
    ledger.add("annotate", WORKER, kind="retraction", target=nothing)
    assert effective(ledger)[citing] == 0.5


# --- levels


@pytest.mark.parametrize(
    ("approver", "author", "level"),
    [
        (PERSON, WORKER, "human_verified"),
        ("reviewer@example.org", WORKER, "human_verified"),
        (PERSON, PERSON, "unverified"),
        ("system:validator", WORKER, "machine_verified"),
        ("system:other", WORKER, "unverified"),
        (OTHER, WORKER, "unverified"),
    ],
)
@pytest.mark.parametrize("stamped", [True, False])
def test_what_an_approval_raises(approver: str, author: str, level: str, stamped: bool) -> None:
    ledger = Ledger()
    proof = ledger.add("capture", author)
    work = ledger.add("commit", WORKER, source=proof)
    ledger.add("claim", WORKER, commitment=work)
    ledger.add("submit", WORKER, commitment=work, evidence=proof)
    ledger.add("approve", approver, commitment=work, **({"trust": STAMP} if stamped else {}))
    assert read(ledger).standing(proof).verification == level
    ledger.add("reopen", OTHER, commitment=work)
    assert read(ledger).standing(proof).verification == level


# --- laws


SEEDS = st.integers(0, 2**32)
SIZES = st.integers(2, 40)
ODD = st.sampled_from([0.0, 0.1])


def citable(ledger: Ledger) -> list[str]:
    """The signals of a ledger that have an actor, in file order."""
    return [name for name, signal in replay(rows(ledger)).signals.items() if signal.actor]


def rows(ledger: Ledger) -> list[Any]:
    return [row_of(number, row) for number, row in enumerate(ledger.rows, start=1)]


@settings(max_examples=50, deadline=None)
@given(SEEDS, SIZES, ODD)
def test_every_value_lies_between_nothing_and_certainty(seed: int, size: int, oddity: float) -> None:
    for _, standing in read(ledger_of(seed, size, oddity)).standings():
        assert 0.0 <= standing.asserted <= 1.0
        assert 0.0 <= standing.own <= 1.0
        assert 0.0 <= standing.effective <= 1.0


@settings(max_examples=50, deadline=None)
@given(SEEDS, SIZES, ODD)
def test_levels_only_rise(seed: int, size: int, oddity: float) -> None:
    ledger = ledger_of(seed, size, oddity)
    order = {"unverified": 0, "machine_verified": 1, "human_verified": 2}
    before: dict[str, str] = {}
    for length in range(1, len(ledger.rows) + 1):
        now = {name: standing.verification for name, standing in trust_of(rows(ledger)[:length]).standings()}
        assert all(order[now[name]] >= order[level] for name, level in before.items())
        before = now


@settings(max_examples=50, deadline=None)
@given(SEEDS, SIZES, ODD, st.sampled_from(["cites", "supports", "contradicts"]), st.floats(0, 1))
def test_a_supporter_never_lowers_and_a_doubter_never_raises(
    seed: int, size: int, oddity: float, kind: str, confidence: float
) -> None:
    ledger = ledger_of(seed, size, oddity)
    targets = citable(ledger)
    if not targets:
        return
    target = random.Random(seed).choice(targets)
    before = own(ledger, target)
    ledger.add(
        "capture", "agent:newcomer", id="mem_newcomer0", trust=scored(round(confidence, 4)), **relation(kind, target)
    )
    after = own(ledger, target)
    assert after <= before + CLOSE if kind == "contradicts" else after >= before - CLOSE


@settings(max_examples=50, deadline=None)
@given(SEEDS, SIZES, st.floats(0.01, 1), st.floats(0, 0.99))
def test_a_second_supporter_adds_less_than_the_first(seed: int, size: int, weight: float, start: float) -> None:
    ledger = ledger_of(seed, size, 0.0)
    seen = ledger.add("capture", "agent:alone", trust=scored(round(start, 4)))
    worth = [own(ledger, seen)]
    for newcomer in ("agent:first", "agent:second"):
        ledger.add("capture", newcomer, trust=scored(round(weight, 4)), **relation("cites", seen))
        worth.append(own(ledger, seen))
    assert worth[2] - worth[1] < worth[1] - worth[0]


@settings(max_examples=50, deadline=None)
@given(SEEDS, SIZES, st.floats(0.01, 1), st.floats(0.01, 1))
def test_doubting_a_doubter_raises_again(seed: int, size: int, doubt: float, against: float) -> None:
    ledger = ledger_of(seed, size, 0.0)
    seen = ledger.add("capture", "agent:alone")
    doubter = ledger.add("capture", "agent:first", trust=scored(round(doubt, 4)), **relation("contradicts", seen))
    before = own(ledger, seen)
    ledger.add("capture", "agent:second", trust=scored(round(against, 4)), **relation("contradicts", doubter))
    assert own(ledger, seen) > before


@settings(max_examples=50, deadline=None)
@given(SEEDS, SIZES, ODD)
def test_doubting_what_cites_nothing_raises_nobody_that_cites_it(seed: int, size: int, oddity: float) -> None:
    ledger = ledger_of(seed, size, oddity)
    trust = read(ledger)
    outgoing = {edge.citer for edge in trust.edges()}
    leaves = [name for name in citable(ledger) if trust.line_of(name) not in outgoing]
    if not leaves:
        return
    leaf = random.Random(seed).choice(leaves)
    reached = {trust.line_of(leaf)}
    for edge in trust.edges():
        if edge.target in reached and edge.kind != 2:
            reached.add(edge.citer)
    before = {line: trust.at_line(line).effective for line in reached}
    ledger.add("capture", "agent:newcomer", id="mem_newcomer0", trust=scored(1), **relation("contradicts", leaf))
    after = read(ledger)
    assert all(after.at_line(line).effective <= value + CLOSE for line, value in before.items())


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(7)), st.lists(st.floats(0, 1), min_size=7, max_size=7))
def test_the_order_among_edges_and_deltas_does_not_matter(order: list[int], weights: list[float]) -> None:
    def build(sequence: list[int]) -> float:
        ledger = Ledger()
        seen = ledger.add("capture", WORKER, trust=scored(0.7))
        for number in sequence:
            if number < 3:
                verdict(ledger, seen, ("SURVIVED", "COMPROMISED", "SURVIVED")[number], f"run-{number}")
            else:
                kind = "cites" if number < 5 else "contradicts"
                block = scored(round(weights[number], 4))
                ledger.add("capture", f"agent:n{number}", trust=block, **relation(kind, seen))
        return effective(ledger)[seen]

    assert build(list(order)) == pytest.approx(build(list(range(7))), abs=CLOSE)


@settings(max_examples=25, deadline=None)
@given(SEEDS, SIZES)
def test_equal_rows_give_equal_numbers(seed: int, size: int) -> None:
    first, again = effective(ledger_of(seed, size, 0.1)), effective(ledger_of(seed, size, 0.1))
    assert first == again


def test_a_long_chain_and_a_large_hub_are_weighed() -> None:
    ledger = Ledger()
    last = hub = ledger.add("capture", WORKER)
    for number in itertools.count():
        if number == 1500:
            break
        relations = [{"type": "cites", "targetId": last}, {"type": "contradicts", "targetId": hub}]
        last = ledger.add("capture", f"agent:n{number}", relations=relations)
    found = effective(ledger)
    assert found[hub] == pytest.approx(0.0, abs=CLOSE)
    assert found[last] == pytest.approx(0.5)


# --- anything at all

ATOMS = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | st.text(max_size=3)
ANYTHING = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
MEMBERS = ("id", "op", "ts", "actor", "payload", "trust", "relations", "trace", "workspace", "source_key")
INNER = ("body", "kind", "source", "commitment", "evidence", "target", "duplicate_of", "meta", "confidence", "chain")


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.lists(st.tuples(st.integers(0, 39), st.sampled_from(MEMBERS + INNER), ANYTHING), max_size=12))
def test_a_reader_never_fails(seed: int, changes: list[tuple[int, str, Any]]) -> None:
    ledger = ledger_of(seed, 40, 0.05)
    for at, name, value in changes:
        row = dict(ledger.rows[at])
        for place in (row, row.get("payload"), row.get("trust")):
            if isinstance(place, dict) and (name in place or place is row):
                place[name] = value
                break
        ledger.rows[at] = row
    trust = trust_of(rows(ledger))
    assert all(0.0 <= standing.effective <= 1.0 for _, standing in trust.standings())
    assert len(trust) >= 20
