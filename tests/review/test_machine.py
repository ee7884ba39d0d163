"""The machine of a finding: cell by cell, each thing a move rests on, replay, ends, and random runs against a model."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reference import review_machine as model
from review.documents import artifact, document, edited
from troth.core.errors import Refused
from troth.review.artifact import Artifact
from troth.review.machine import (
    MOVES,
    NEEDS,
    PERSISTED,
    STATES,
    TABLE,
    Bounds,
    Case,
    Spent,
    evidence_key,
    labelled,
    mermaid,
    moved,
    replied,
    verification_key,
    verified,
)
from troth.review.run import (
    ENDS,
    Run,
    applied,
    begun,
    event,
    outcome,
    read_records,
    record_line,
    replay,
    result,
    stopped,
)
from troth.review.shapes import DISPUTE_KINDS, OPERATOR_KINDS, STOP_REASONS
from troth.review.validate import validate

TIME = "2026-03-01T10:00:00Z"
SUPPORTS = {"method": "command", "result": "supports", "detail": "ran"}
CONTRADICTS = {"method": "artifact_inspection", "result": "contradicts"}
OPINION = {"method": "model_inference", "result": "contradicts"}
ESCALATION = {
    "dispute_kind": "evidence_gap", "stop_reason": "no_new_information", "operator_question": "Which?",
    "host_position": "This.", "reviewer_position": "That.",
}  # fmt: skip
SPENT = {"seconds": 1, "bytes": 1, "tokens": 1}
FULL = {
    "consent": "https://example.org", "revision": {"algorithm": "sha256", "value": "0" * 64}, "levels": ["L1", "L2"],
    "label": "checkable", "resolution": "Done.", "host_position": "Because.", "escalation": ESCALATION,
    "spent": SPENT, "question": "Which?", "ruling": "This.",
}  # fmt: skip


def at(state: str, target: str = "") -> tuple[Case, Bounds]:
    """Return a finding in a state from which everything that a move needs is there."""
    case = Case(
        "F001", state=state, label="checkable", verification=(SUPPORTS, CONTRADICTS), news=True, reply="withdraw",
        host_position="Because.", reviewer_position="That.",
    )  # fmt: skip
    if (state, target) == ("host_response", "deadlocked"):
        case = replace(case, label="judgment", kind="evidence_gap")
    return case, Bounds(rounds=2)


@pytest.mark.parametrize("target", STATES)
@pytest.mark.parametrize("source", STATES)
def test_each_cell_of_the_table(source: str, target: str) -> None:
    case, bounds = at(source, target)
    move = TABLE.get((source, target))
    if move is None:
        for role in ("runner", "host", "reviewer", "operator"):
            with pytest.raises(Refused) as refused:
                moved(case, target, role, FULL, bounds)
            assert refused.value.code == "E_REVIEW_TRANSITION"
        return
    for role in ("runner", "host", "reviewer", "operator"):
        if role in move.by:
            assert moved(case, target, role, FULL, bounds).state == target
        else:
            with pytest.raises(Refused) as refused:
                moved(case, target, role, FULL, bounds)
            assert refused.value.code == "E_REVIEW_ROLE"


def test_the_table_is_that_of_the_specification() -> None:
    assert {(move.source, move.target) for move in MOVES} == model.LEGAL
    assert [move.number for move in MOVES] == [*range(1, 14), *range(13, 18)]
    assert len(TABLE) == len(MOVES)
    assert {need for move in MOVES for need in move.needs} == set(NEEDS)
    assert not any(move.source in ("accepted", "rejected", "resolved", "withdrawn") for move in MOVES)


LACKING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # need: (what the finding has otherwise, what the basis has otherwise)
    "consent": ({}, {"consent": " "}),
    "revision": ({}, {"revision": {"algorithm": "git", "value": "x"}}),
    "levels": ({}, {"levels": ["L1"]}),
    "label": ({}, {"label": "judgment", "dispute_kind": "evidence_gap"}),
    "verified": ({"verification": ()}, {}),
    "checkable": ({"label": "judgment", "kind": OPERATOR_KINDS[0]}, {}),
    "judgment": ({"label": "checkable"}, {}),
    "supported": ({"verification": (OPINION, {**SUPPORTS, "method": "model_inference"})}, {}),
    "contradicted": ({"verification": (OPINION,)}, {}),
    "resolution": ({}, {"resolution": "\u0007"}),
    "disagreement": ({"verification": (CONTRADICTS,)}, {}),
    "escalation": ({}, {"escalation": {**ESCALATION, "operator_question": ""}}),
    "round": ({"rounds": 2}, {}),
    "means": ({}, {"spent": {**SPENT, "bytes": Bounds().bytes}}),
    "retracted": ({"reply": "substantiate"}, {}),
    "checked": ({"fresh": frozenset({"x"})}, {}),
    "news": ({"news": False}, {}),
    "ruling": ({}, {"ruling": ""}),
}


@pytest.mark.parametrize(("move", "need"), [(move, need) for move in MOVES for need in move.needs])
def test_each_thing_that_a_move_rests_on(move: Any, need: str) -> None:
    case, bounds = at(move.source, move.target)
    assert moved(case, move.target, move.by[0], FULL, bounds).state == move.target
    if need == "several":
        bounds, case = Bounds(rounds=1), replace(case, rounds=0)
    else:
        of_case, of_basis = LACKING[need]
        case = replace(case, **of_case)
        with pytest.raises(Refused) as refused:
            moved(case, move.target, move.by[0], {**FULL, **of_basis}, bounds)
        assert (refused.value.code, refused.value.detail) == ("E_REVIEW_BASIS", need)
        return
    with pytest.raises(Refused) as refused:
        moved(case, move.target, move.by[0], FULL, bounds)
    assert refused.value.detail == need


def test_a_conflict_is_settled_only_with_a_reason() -> None:
    case, bounds = at("host_response")
    silent = {**FULL, "host_position": ""}
    for target in ("accepted", "rejected"):
        with pytest.raises(Refused):
            moved(case, target, "host", silent, bounds)
        assert moved(case, target, "host", FULL, bounds).host_position == "Because."
    assert moved(replace(case, verification=(SUPPORTS,)), "accepted", "host", silent, bounds).state == "accepted"


@pytest.mark.parametrize("stop", STOP_REASONS)
@pytest.mark.parametrize("kind", DISPUTE_KINDS)
def test_all_pairs_of_dispute_and_stop_are_legal(kind: str, stop: str) -> None:
    held = {"escalation": {**ESCALATION, "dispute_kind": kind, "stop_reason": stop}}
    case = Case("F001", state="reviewer_rebuttal", label="checkable", rounds=1, verification=(OPINION,))
    assert moved(case, "deadlocked", "host", held, Bounds()).escalation == held["escalation"]
    if kind == "unverified_refutation":
        with pytest.raises(Refused):
            moved(replace(case, verification=(CONTRADICTS,)), "deadlocked", "host", held, Bounds())
    if stop == "round_limit":
        with pytest.raises(Refused):
            moved(replace(case, rounds=0), "deadlocked", "host", held, Bounds())


@pytest.mark.parametrize("kind", OPERATOR_KINDS)
def test_a_judgment_ends_withdrawn_or_with_the_operator(kind: str) -> None:
    own = {**FULL, "escalation": {**ESCALATION, "dispute_kind": kind}}
    for state in ("host_response", "contested", "reviewer_rebuttal"):
        case = replace(at(state)[0], label="judgment", kind=kind)
        reached = set()
        for target in PERSISTED:
            try:
                reached.add(moved(case, target, "host", own, Bounds(rounds=2)).state)
            except Refused:
                continue
        assert reached <= {"deadlocked", "withdrawn"}
        assert "deadlocked" in reached
        with pytest.raises(Refused):
            moved(case, "deadlocked", "host", FULL, Bounds(rounds=2))
    stuck = moved(replace(at("contested")[0], label="judgment", kind=kind), "deadlocked", "host", own, Bounds())
    done = moved(stuck, "resolved", "operator", {"question": "Really?", "ruling": "Yes."}, Bounds())
    assert done.resolution == "Yes."
    assert done.escalation == {**own["escalation"], "operator_question": "Really?"}


# --- what is new ---


def evidence(path: str = "memo.md", observation: str = "See.", **more: Any) -> dict[str, Any]:
    anchor = {"type": "file_range", "path": path}
    return {"anchor": anchor, "observation": observation, "grounding": "artifact_observed", **more}


def test_rewording_is_not_new() -> None:
    old, reworded = evidence(), evidence(observation="Look again.", grounding="inferred")
    assert evidence_key(old) == evidence_key(reworded)
    source = {"type": "external_source", "title": "A book"}
    assert len({evidence_key(e) for e in (old, evidence("plan.txt"), evidence(external_source=source))}) == 3
    case = Case("F001", state="reviewer_rebuttal", rounds=1, seen=frozenset({evidence_key(old)}))
    reply = {"finding_id": "F001", "decision": "substantiate", "position": "It stands.", "evidence": [reworded]}
    same = replied(case, "reviewer", {"reply": reply})
    assert not same.news
    assert not same.fresh
    more = replied(case, "reviewer", {"reply": {**reply, "evidence": [reworded, evidence("plan.txt")]}})
    assert more.news
    assert more.fresh == {evidence_key(evidence("plan.txt"))}
    with pytest.raises(Refused):
        replied(more, "reviewer", {"reply": reply})
    with pytest.raises(Refused):
        replied(case, "reviewer", {"reply": {**reply, "finding_id": "F002"}})
    with pytest.raises(Refused):
        replied(case, "host", {"reply": reply})
    key = next(iter(more.fresh))
    guessed = verified(more, "host", {"verification": OPINION, "of": [key]})
    assert guessed.fresh == {key}
    assert verified(more, "host", {"verification": SUPPORTS, "of": [key]}).fresh == frozenset()


def test_a_verification_is_new_by_method_and_detail() -> None:
    assert verification_key(SUPPORTS) == verification_key({**SUPPORTS, "result": "contradicts"})
    assert verification_key(SUPPORTS) != verification_key({**SUPPORTS, "detail": "ran again"})
    case = verified(Case("F001", state="host_response"), "host", {"verification": SUPPORTS})
    assert not case.news
    rebuttal = replace(case, state="reviewer_rebuttal")
    assert not verified(rebuttal, "host", {"verification": SUPPORTS}).news
    assert verified(rebuttal, "host", {"verification": CONTRADICTS}).news


@pytest.mark.parametrize(
    "basis",
    [{}, {"verification": {}}, {"verification": {**SUPPORTS, "by": "x"}}, {"verification": {**SUPPORTS, "detail": ""}},
     {"verification": {**SUPPORTS, "method": "guess"}}, {"verification": SUPPORTS, "of": "x"}],
)  # fmt: skip
def test_what_is_no_verification(basis: dict[str, Any]) -> None:
    case = Case("F001", state="evidence_verification")
    assert verified(case, "host", {"verification": SUPPORTS}).verification == (SUPPORTS,)
    with pytest.raises(Refused):
        verified(case, "host", basis)
    with pytest.raises(Refused):
        verified(replace(case, state="accepted"), "host", {"verification": SUPPORTS})


def test_labels_change_and_are_checked() -> None:
    case = Case("F001", state="host_response", label="checkable")
    again = labelled(case, "host", {"label": "judgment", "dispute_kind": OPERATOR_KINDS[1]})
    assert (again.label, again.kind, again.state) == ("judgment", OPERATOR_KINDS[1], "host_response")
    for role, state, basis in (
        ("reviewer", "host_response", {"label": "checkable"}),
        ("host", "contested", {"label": "checkable"}),
        ("host", "host_response", {"label": "judgment"}),
    ):
        with pytest.raises(Refused):
            labelled(replace(case, state=state), role, basis)


# --- runs ---


def started(bounds: Bounds | None = None) -> Run:
    return begun(document("response"), artifact(), bounds)


def go(run: Run, name: str, to: str, basis: dict[str, Any], role: str = "host", kind: str = "move") -> Run:
    case = run.cases[name]
    return applied(run, event(case, to or case.state, basis, time=TIME, actor=f"{role}:x", role=role, kind=kind))


def reviewed(run: Run, name: str) -> Run:
    basis = {"consent": "scripted", "revision": dict(run.review["artifact"]["revision"]), "levels": ["L1", "L2"]}
    return go(run, name, "reviewed", basis, "runner")


def answered(run: Run, name: str, *verifications: dict[str, Any], label: dict[str, Any] | None = None) -> Run:
    run = go(reviewed(run, name), name, "finding_triage", label or {"label": "checkable"})
    run = go(run, name, "evidence_verification", {})
    for entry in verifications:
        run = go(run, name, "", {"verification": entry}, kind="verify")
    return go(run, name, "host_response", {} if verifications else {"unverifiable": "No source."})


def settled() -> Run:
    run = started()
    run = go(answered(run, "F001", SUPPORTS), "F001", "resolved", {"resolution": "Added."})
    run = go(answered(run, "F002", SUPPORTS), "F002", "accepted", {})
    run = go(answered(run, "F003", CONTRADICTS), "F003", "rejected", {})
    run = go(answered(run, "F004"), "F004", "contested", {"host_position": "I disagree."})
    run = go(run, "F004", "reviewer_rebuttal", {"spent": SPENT})
    reply = {"finding_id": "F004", "decision": "withdraw", "position": "Right.", "evidence": []}
    run = go(run, "F004", "", {"reply": reply}, "reviewer", "reply")
    run = go(run, "F004", "withdrawn", {})
    return answered(run, "F005", label={"label": "judgment", "dispute_kind": OPERATOR_KINDS[0]})


def held(run: Run, **more: Any) -> dict[str, Any]:
    """Return the run's document, which every rule holds valid."""
    value = result(run, "rec-1", **more)
    report = validate(json.dumps(value).encode(), artifact=artifact(), review=run.review, decided=frozenset({"F005"}))
    assert report.violations == ()
    assert ENDS[value["outcome"]].exit == {"converged": 0, "deadlocked": 4}.get(value["outcome"], 3)
    return value


def test_a_whole_run_ends_as_it_should_and_replays() -> None:
    run = settled()
    open_end = held(run)
    assert open_end["outcome"] == "incomplete"
    assert "F005" in open_end["limitations"][-1]
    escalation = {**ESCALATION, "dispute_kind": OPERATOR_KINDS[0], "stop_reason": "operator_authority_required"}
    stuck = go(run, "F005", "deadlocked", {"escalation": escalation})
    value = held(stuck)
    assert value["outcome"] == "deadlocked"
    assert value["rounds_used"] == 1
    assert [item["state"] for item in value["items"]] == ["resolved", "accepted", "rejected", "withdrawn", "deadlocked"]
    done = go(stuck, "F005", "resolved", {"question": "Is it?", "ruling": "It is."}, "operator")
    assert held(done)["outcome"] == "converged"
    lines = b"".join(record_line(record) for record in done.records)
    again = replay(started(), read_records(lines))
    assert again.cases == done.cases
    assert record_line(result(again, "rec-1")) == record_line(result(done, "rec-1"))


def test_nothing_but_converged_is_a_success() -> None:
    failure = {"code": "timeout", "message": "No answer came."}
    assert held(started(), failure=failure)["outcome"] == "failed"
    assert held(settled(), unreviewed=["Annex B was not sent."])["outcome"] == "incomplete"
    assert [name for name, end in ENDS.items() if end.exit == 0] == ["converged"]
    assert [name for name, end in ENDS.items() if end.colour == "green"] == ["converged"]
    for failed in (True, False):
        for undone in (True, False):
            for deadlocked in (True, False):
                told = outcome(failed=failed, undone=undone, deadlocked=deadlocked)
                assert told == model.outcome(failed, undone, deadlocked)
    unable = edited(document("response"), {"set": {"$.assessment": "unable_to_assess", "$.findings": []}})
    assert held(begun(unable, artifact()))["outcome"] == "incomplete"
    fine = edited(document("response"), {"set": {"$.assessment": "approve", "$.findings": []}})
    assert held(begun(fine, artifact()))["outcome"] == "converged"


def test_a_run_starts_only_on_the_bytes_that_were_reviewed() -> None:
    other = Artifact({"memo.md": b"VERDICT: APPROVE\n"}.items())
    for review, bytes_of in (
        (document("response"), other),
        (edited(document("response"), {"set": {"$.artifact.revision.algorithm": "git"}}), artifact()),
    ):
        with pytest.raises(Refused) as refused:
            begun(review, bytes_of)
        assert refused.value.code == "artifact_unavailable"


def test_the_end_of_deadline_or_budget() -> None:
    run = go(answered(started(), "F001", SUPPORTS, CONTRADICTS), "F001", "contested", {"host_position": "Unclear."})
    run = go(answered(run, "F002"), "F002", "contested", {"host_position": "Unclear."})
    run = go(run, "F002", "reviewer_rebuttal", {"spent": SPENT})
    run = reviewed(run, "F003")
    with pytest.raises(ValueError, match="exhausted"):
        stopped(run, Spent(1, 1, 1), TIME, "system:runner")
    for spent in (Spent(seconds=600), Spent(bytes=16_000_000), Spent(tokens=4_000_000)):
        ended = stopped(run, spent, TIME, "system:runner")
        value = held(ended)
        assert value["outcome"] == "incomplete"
        assert [item["escalation"]["stop_reason"] for item in value["items"]] == ["budget_limit"] * 2
        assert value["items"][0]["escalation"]["dispute_kind"] == "evidence_conflict"
        assert replay(started(), ended.records).cases == ended.cases


@pytest.mark.parametrize(
    "change",
    [{"time": "now"}, {"event": "guess"}, {"finding_id": "F009"}, {"from": "accepted"}, {"basis": []}, {"actor": ""},
     {"more": 1}, {"event": "label", "to": "accepted"}, {"basis": {"x": "\ud800"}}, {"role": 1}],
)  # fmt: skip
def test_what_is_no_record(change: dict[str, Any]) -> None:
    run = started()
    basis = {"consent": "scripted", "revision": dict(run.review["artifact"]["revision"]), "levels": ["L1", "L2"]}
    record = event(run.cases["F001"], "reviewed", basis, time=TIME, actor="system:runner", role="runner")
    assert applied(run, record).cases["F001"].state == "reviewed"
    with pytest.raises(Refused) as refused:
        replay(run, [{**record, **change}])
    assert refused.value.code == "E_REVIEW_RECORD"
    assert refused.value.place is not None
    assert refused.value.place.line == 1


def test_records_are_strict_lines() -> None:
    assert read_records(b"") == []
    for bad in (b"{", b"\n", b'{"a": 1, "a": 2}', b"{}\n{\n"):
        with pytest.raises(Refused) as refused:
            read_records(bad)
        assert refused.value.code == "E_REVIEW_RECORD"


def test_the_drawing_shows_every_move() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+): (\d+) ", mermaid(), re.MULTILINE)
    assert {(source, target) for source, target, _ in drawn} == set(TABLE)
    assert mermaid().startswith("stateDiagram-v2\n")


# --- random runs against the model ---

TEXTS = st.sampled_from(["Because.", "", "\u0007"])
ENTRIES = st.builds(
    lambda method, res, detail: {"method": method, "result": res, "detail": detail},
    st.sampled_from(["command", "model_inference", "artifact_inspection"]),
    st.sampled_from(["supports", "contradicts", "inconclusive"]),
    st.sampled_from(["a", "b"]),
)
ESCALATIONS = st.builds(
    lambda kind, stop, question: {
        **ESCALATION,
        "dispute_kind": kind,
        "stop_reason": stop,
        "operator_question": question,
    },
    st.sampled_from(DISPUTE_KINDS),
    st.sampled_from(STOP_REASONS),
    TEXTS,
)
NAMES = st.sampled_from(["F001", "F002"])
ACCEPTED = {"moves": 0, "tried": 0}


class Reconciling(RuleBasedStateMachine):
    """Random events of two findings: the model and the machine accept the same, and every document is valid."""

    @initialize(rounds=st.sampled_from([1, 2]))
    def begin(self, rounds: int) -> None:
        value = edited(document("response"), {"delete": ["$.findings[4]", "$.findings[3]", "$.findings[2]"]})
        self.run = begun(value, artifact(), Bounds(rounds=rounds))
        self.model = {name: model.Finding(rounds, next(f["evidence"] for f in value["findings"] if f["id"] == name))
                      for name in ("F001", "F002")}  # fmt: skip
        for name in ("F001", "F002"):
            self.run = reviewed(self.run, name)
            self.model[name].state = "reviewed"

    def attempt(self, name: str, to: str, basis: dict[str, Any], role: str, kind: str) -> None:
        ACCEPTED["tried"] += 1
        expected = self.model[name].take(kind, to, role, basis)
        try:
            self.run = go(self.run, name, to, basis, role, kind)
        except Refused:
            assert not expected, (name, kind, to, role, basis, self.run.cases[name])
        else:
            assert expected, (name, kind, to, role, basis)
            ACCEPTED["moves"] += 1
        assert self.run.cases[name].state == self.model[name].state

    @rule(name=NAMES, judgment=st.sampled_from([None, None, *OPERATOR_KINDS, "evidence_gap"]), again=st.booleans())
    def label(self, name: str, judgment: str | None, again: bool) -> None:
        basis = {"label": "checkable"} if judgment is None else {"label": "judgment", "dispute_kind": judgment}
        self.attempt(name, "" if again else "finding_triage", basis, "host", "label" if again else "move")

    @rule(name=NAMES, entry=ENTRIES, all_new=st.booleans())
    def verify(self, name: str, entry: dict[str, Any], all_new: bool) -> None:
        about = sorted(self.run.cases[name].fresh) if all_new else []
        self.attempt(name, "", {"verification": entry, "of": about}, "host", "verify")

    @rule(name=NAMES, decision=st.sampled_from(["substantiate", "withdraw"]),
          path=st.sampled_from(["memo.md", "plan.txt"]), observation=st.sampled_from(["a", "b"]))  # fmt: skip
    def reply(self, name: str, decision: str, path: str, observation: str) -> None:
        brought = [] if decision == "withdraw" else [evidence(path, observation)]
        reply = {"finding_id": name, "decision": decision, "position": "So it is.", "evidence": brought}
        self.attempt(name, "", {"reply": reply}, "reviewer", "reply")

    @rule(name=NAMES, to=st.sampled_from(STATES[2:]), role=st.sampled_from(["host", "host", "host", "operator"]),
          position=TEXTS, resolution=TEXTS, escalation=ESCALATIONS, why=TEXTS,
          spent=st.sampled_from([1, 1, 1, 16_000_000]))  # fmt: skip
    def move(
        self, name: str, to: str, role: str, position: str, resolution: str, escalation: Any, why: str, spent: int
    ) -> None:
        basis = {"host_position": position, "resolution": resolution, "escalation": escalation, "unverifiable": why,
                 "spent": {**SPENT, "bytes": spent}, "question": "Which?", "ruling": resolution,
                 "label": "checkable"}  # fmt: skip
        self.attempt(name, to, basis, role, "move")

    @rule(name=NAMES, entry=ENTRIES)
    def forward(self, name: str, entry: dict[str, Any]) -> None:
        """Take the next step that leads on, so that runs get far."""
        state = self.run.cases[name].state
        if state == "evidence_verification":
            self.attempt(name, "", {"verification": entry}, "host", "verify")
        nxt = {"reviewed": "finding_triage", "finding_triage": "evidence_verification",
               "evidence_verification": "host_response", "host_response": "contested",
               "contested": "reviewer_rebuttal"}.get(state)  # fmt: skip
        if nxt is not None:
            basis = {"label": "checkable", "unverifiable": "x", "host_position": "x", "spent": SPENT}
            self.attempt(name, nxt, basis, "host", "move")

    @invariant()
    def its_document_is_valid_and_its_record_replays(self) -> None:
        if not hasattr(self, "run"):
            return
        value = result(self.run, "rec-1")
        report = validate(
            json.dumps(value).encode(), artifact=artifact(), review=self.run.review, decided=frozenset(self.run.cases)
        )
        assert report.violations == ()
        assert value["outcome"] == model.outcome(
            False, any(f.state not in PERSISTED for f in self.model.values()),
            any(f.state == "deadlocked" for f in self.model.values()),
        )  # fmt: skip
        fresh = begun(self.run.review, artifact(), self.run.bounds)
        assert replay(fresh, self.run.records).cases == self.run.cases


TestReconciling = Reconciling.TestCase
TestReconciling.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def test_moves_were_accepted() -> None:
    print(f"machine: accepted {ACCEPTED['moves']} of {ACCEPTED['tried']}")
    assert ACCEPTED["moves"] > 0
