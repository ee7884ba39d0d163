"""The package against the independent reading, on random and on bent transcripts."""

from __future__ import annotations

from collections import Counter

import pytest

from deals import moves
from reference import deal_model
from troth.deals.answer import answer, exit_status
from troth.deals.run import Run, replay
from troth.deals.transcript import entries, split_lines


def ours(data: bytes) -> Run:
    return replay(entries(split_lines(data)))


def agree(seed: int, mutations: float, tally: Counter[str]) -> None:
    data = moves.random_transcript(seed, mutations=mutations)
    wanted, status = deal_model.check(data)
    run = ours(data)
    assert answer(run) == wanted, (seed, mutations)
    assert exit_status(run) == status, (seed, mutations)
    for deal in wanted["deals"].values():
        tally[deal["state"]] += 1
        tally[deal["illegal"]["code"] if deal["illegal"] else "legal"] += 1
    tally.update(one["event"] for one in wanted["log"])


WORDS = {
    "legal", "malformed", "sender", "offer_mutated", "unknown_offer", "hold_without_accept", "type_for_state",
    "hold_mismatch", "duplicate_message", "late_message", "out_of_honesty_channel", "unsupported_breach_notice",
    "breach_confirmed", "Offered", "AcceptedPendingHold", "Held", "Adjudicating", "Settling", "Closed:settled",
    "Closed:rejected", "Closed:expired", "Closed:refused", "Closed:inconclusive", "Closed:superseded",
    "Closed:protocol_error", "Closed:breached(A:ghost)", "Closed:breached(A:fail)",
    "Closed:breached(C:withhold_payout_after_pass)", "Closed:breached(C:hold_without_accept)",
    "Closed:breached(C:hold_mismatch)",
}  # fmt: skip


def test_random_transcripts():
    tally: Counter[str] = Counter()
    for seed in range(1200):
        agree(seed, 0.0, tally)
    assert set(tally) >= WORDS - {"malformed"}


def test_bent_transcripts():
    tally: Counter[str] = Counter()
    for seed in range(1200):
        agree(seed, 0.15, tally)
    assert set(tally) >= WORDS


@pytest.mark.slow
@pytest.mark.parametrize("mutations", [0.0, 0.1, 0.5])
def test_many_transcripts(mutations: float):
    tally: Counter[str] = Counter()
    for seed in range(10_000, 50_000):
        agree(seed, mutations, tally)
    assert tally["duplicate_message"] > 1000
