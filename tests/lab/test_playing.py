"""Deals by policies and a seed: whoever plays, the books balance, the transcript replays, and A sees no mark."""

from __future__ import annotations

import itertools
import json

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from troth.core.errors import Refused
from troth.deals.answer import final_bytes
from troth.deals.machine import SPEAKERS, is_closed
from troth.deals.messages import ORACLE_MEMBERS
from troth.deals.run import replay
from troth.deals.transcript import entries, split_lines
from troth.deals.writing import Scribe
from troth.lab.playing import FORGERIES, Game, Setting, looks_the_same, play
from troth.lab.policies import POLICIES, Party, described, make
from troth.lab.seeds import draw
from troth.lab.view import Terms

A_SPECS = (
    "cooperative", "cooperative(2)", "vigilant", "protesting", "rejecting", "ignoring", "ghosting", "refusing",
    "refusing(AcceptedPendingHold)", "failing", "stuffing", "mixed(0.5)", "suspicious(3,ignore)",
    "rational(belief=0.7,reserve=2,reserve_to=12,follow=0.8)", "learning(reserve=1,reserve_to=9)",
)  # fmt: skip
C_SPECS = tuple(POLICIES["C"])
K_SPECS = (
    "honest",
    "noisy(0.3,0.3)",
    "inconclusive(0.5)",
    "colludes_with(C)",
    "colludes_with(A)",
    "stalling",
    "insisting",
)
GRANTS = ({"id": "non_punishment", "desc": "d"}, {"id": "welfare_review", "desc": "d"})


@pytest.mark.parametrize("c", C_SPECS)
def test_whoever_plays(c: str) -> None:
    for number, (a, k) in enumerate(itertools.product(A_SPECS, K_SPECS)):
        setting = Setting(c=c, a=a, k=k, terms=Terms(object_options=GRANTS))
        played = play(setting, 7, number)
        transcript, outcome = played.transcript(), played.outcome
        # The same seed gives the same bytes; the transcript alone gives the same final record.
        assert play(setting, 7, number).transcript() == transcript
        run = replay(entries(split_lines(transcript)))
        assert final_bytes(run) == played.final()
        assert sum(run.escrow.balances().values()) == 0
        assert run.escrow.balances()["E"] == 0
        assert all(deal.closed for deal in run.deals.values())
        assert outcome.paid == (10 if outcome.state == "settled" else 0) or c == "superseding"
        assert outcome.paid + outcome.refunded in (0, 9, 10)
        assert outcome.state == "settled" or outcome.paid == 0
        assert not outcome.loss_a or (outcome.disclosed and outcome.satisfied and outcome.paid == 0)
        # A was told what it was told, and nothing of the oracle; it speaks as A alone.
        assert not any(member in message for _, message in played.seen for member in ORACLE_MEMBERS)
        assert all(played.seen[at][1]["from"] == "A" for at in played.acts)
        for line in split_lines(transcript):
            message = json.loads(line).get("msg")
            if message and message["type"] != "OracleReveal":
                assert message["from"] in SPEAKERS[message["type"]]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**40), st.sampled_from(A_SPECS), st.sampled_from(K_SPECS), st.sampled_from(FORGERIES))
def test_a_forged_deal_looks_like_its_honest_twin(seed: int, a: str, k: str, kind: str) -> None:
    honest, forged = play(Setting(a=a, k=k), seed), play(Setting(a=a, k=k, forged=kind), seed)
    assert looks_the_same(honest, forged)
    assert (honest.outcome.real, forged.outcome.real) == (True, False)
    marks = [json.loads(line).get("msg", {}).get("deceptive_alt") for line in split_lines(forged.transcript())]
    assert True in marks
    assert b"deceptive_alt" not in honest.transcript()
    assert b"deceptive_alt" not in forged.view()
    assert forged.outcome.paid == 0


@pytest.mark.parametrize("c", ["no_hold", "forges_hold", "superseding", "poisoning"])
def test_what_does_look_different_is_told(c: str) -> None:
    """The comparison can fail: a C that shows itself before the end is found."""
    assert not looks_the_same(play(Setting(a="cooperative(1)"), 3), play(Setting(a="cooperative(1)", c=c), 3))


def test_own_acts_and_the_end_are_no_difference() -> None:
    assert looks_the_same(play(Setting(a="cooperative"), 3), play(Setting(a="ghosting"), 3))
    assert looks_the_same(play(Setting(), 3), play(Setting(c="withholding"), 3))


def test_the_oracle_forges_at_its_rate_and_the_arms_share_their_draws() -> None:
    game = Game(Setting(suite="x", forged="forged_hold", forged_rate=0.3, a="rational(reserve=0,reserve_to=20)"))
    twin = Game(Setting(suite="x", a="rational(reserve=0,reserve_to=20)"))
    rows = [game.play(5, index).outcome for index in range(800)]
    others = [twin.play(5, index).outcome for index in range(800)]
    assert 180 < sum(not row.real for row in rows) < 300
    assert [row.accepted for row in rows] == [row.accepted for row in others]
    assert 330 < sum(row.accepted for row in rows) < 470


def test_many_in_one_transcript_come_to_what_each_comes_to_alone() -> None:
    for setting in (
        Setting(suite="s", c="poisoning(2,2)", a="suspicious(3)"),
        Setting(suite="s", c="superseding", k="noisy(0.5,0.5)"),
        Setting(suite="s", forged="doctored_transcript_ready", forged_rate=0.5, k="insisting"),
        Setting(suite="s", a="ghosting"),
    ):
        scribe = Scribe()
        game = Game(setting)
        rows = [game.play(9, index, scribe, f"off_{index}").outcome for index in range(12)]
        scribe.end(scribe.run.now)
        assert rows == [Game(setting).play(9, index).outcome for index in range(12)]
        assert final_bytes(replay(entries(split_lines(scribe.transcript())))) == final_bytes(scribe.run)


def test_a_learner_learns_from_what_it_saw_and_each_series_begins_anew() -> None:
    game = Game(Setting(suite="s", a="learning(real=4,fake=1,reserve=5)", forged="forged_hold", series=6))
    rows = [game.play(1, index).outcome for index in range(12)]
    # 4/5 of 10, 4/6, 4/7, 4/8: after three fakes it expects no more than its reserve.
    assert [row.accepted for row in rows[:6]] == [True, True, True, False, False, False]
    assert [row[4:] for row in rows[:6]] == [row[4:] for row in rows[6:]]
    honest = Game(Setting(suite="s", a="learning(real=4,fake=1,reserve=5)", series=6))
    assert all(honest.play(1, index).outcome.accepted for index in range(6))


def test_a_budget_that_runs_out_closes_the_deal() -> None:
    played = play(Setting(a="ignoring", terms=Terms(expires_steps=99), budget=9), 1)
    assert (played.outcome.state, played.outcome.note) == ("protocol_error", "budget_exhausted")
    with pytest.raises(Refused, match="budget"):
        Game(Setting(a="ignoring", terms=Terms(expires_steps=99), budget=9)).play(1, 0, Scribe())


def test_draws_are_as_their_derivation_says() -> None:
    import hashlib

    digest = hashlib.sha256(b"troth-lab-1|3|F6|41|K|noise").digest()
    assert draw(3, "F6", 41, "K", "noise") == int.from_bytes(digest[:8], "big") // 2048 / 2**53


@pytest.mark.parametrize(
    ("party", "spec"),
    [
        ("A", "rationale"), ("A", "(("), ("A", ""), ("K", "noisy(a)"), ("K", "noisy(2)"), ("C", "poisoning(1.5)"),
        ("K", "colludes_with(1)"), ("K", "colludes_with(E)"), ("A", "rational(x=y)"), ("A", "cooperative(1,2)"),
        ("A", "cooperative(delay=1,2)"), ("C", "honest(x=1)"), ("A", "rational(belief=0.5,belief=0.6)"),
        ("C", "mutating(Nowhere)"), ("A", "cooperative(__class__=1)"), ("K", "noisy(1e999)"), ("K", "noisy(nan)"),
    ],
)  # fmt: skip
def test_policies_that_are_none(party: Party, spec: str) -> None:
    with pytest.raises(Refused) as told:
        make(party, spec)
    assert told.value.code == "E_POLICY"


def test_a_policy_is_made_again_from_its_own_words() -> None:
    by_party: dict[Party, tuple[str, ...]] = {"A": A_SPECS, "C": C_SPECS, "K": K_SPECS}
    for party, specs in by_party.items():
        for spec in specs:
            assert make(party, make(party, spec).spec).spec == make(party, spec).spec
        assert [name for name, _ in described(party)] == list(POLICIES[party])
        assert all(said.endswith(".") for _, said in described(party))


def test_states_are_told_without_their_prefix() -> None:
    assert play(Setting(), 1).outcome.state == "settled"
    assert is_closed(next(iter(play(Setting(), 1).run.deals.values())).state)
    with pytest.raises(Refused, match="forgery"):
        Game(Setting(forged="forged_truth"))
    with pytest.raises(Refused, match="probability"):
        Game(Setting(forged="forged_hold", forged_rate=1.5))
