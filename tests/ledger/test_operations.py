"""Admission: every code and detail of the ledger spec's §5, and the order in which they are looked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.admitting import (
    ABSENT,
    BAD_STATE,
    BAD_VALUE,
    STATE,
    WORLD,
    WRONG,
    ask,
    candidate,
    outcome,
)
from ledger.building import ZERO, Ledger, plain_hash, verify_and_replay
from troth.core.canonical import row_bytes
from troth.core.errors import Refused
from troth.ledger.chain import verify_lines
from troth.ledger.codes import CODES, DETAILS
from troth.ledger.fields import OPS, REQUIRED_PAYLOAD
from troth.ledger.operations import Candidate
from troth.ledger.replay import Replay, State
from troth.ledger.rows import parse_row, row_of
from troth.ledger.trust import human_stamp


def test_a_capture_is_completed() -> None:
    row = ask(Candidate("capture", "human:reviewer", {"body": "x/é"}), STATE, head_hash="f" * 64)
    assert list(row) == ["id", "op", "ts", "actor", "workspace", "prevHash", "payload", "hash"]
    assert row["id"] == "mem_abababab"
    assert row["ts"] == "2026-05-04T03:02:01Z"
    assert row["workspace"] == "w"
    assert row["prevHash"] == "f" * 64
    assert row["payload"] == {"body": "x/é", "kind": "observation"}
    assert row["hash"] == plain_hash(row)


@pytest.mark.parametrize(
    ("op", "prefix", "kind"),
    [
        ("capture", "mem_", "observation"),
        ("commit", "cmt_", "commitment"),
        ("claim", "op_", "claim"),
        ("release", "op_", "release"),
        ("close", "op_", "verdict"),
        ("submit", "op_", "submission"),
        ("approve", "op_", "approval"),
        ("reopen", "op_", "reopen"),
        ("annotate", "ann_", "note"),
    ],
)
def test_prefixes_and_default_kinds(op: str, prefix: str, kind: str) -> None:
    work = {"claim": WORLD.open, "approve": WORLD.in_review, "reopen": WORLD.in_review}.get(op, WORLD.claimed)
    asked = candidate(op, commitment=work, source=WORLD.seen, evidence=WORLD.seen, target=WORLD.seen)
    row = ask(asked, STATE)
    assert row["id"].startswith(prefix)
    assert row["payload"]["kind"] == kind
    stated = replace(asked, payload={**asked.payload, "kind": kind})
    assert ask(stated, STATE) == row
    other = replace(asked, payload={**asked.payload, "kind": "event"})
    assert outcome(other, STATE) == (None if op in ("capture", "annotate") else BAD_VALUE)


def test_ids_are_drawn_again_on_collision() -> None:
    drawn = iter(["00000001", "00000001", "0000beef"])
    row = ask(candidate("capture"), STATE, random_hex=lambda count: next(drawn) if count == 4 else "")
    assert row["id"] == "mem_0000beef"


def test_members_are_kept_and_unused_ones_left_out() -> None:
    members = {
        "id": "mem_0123456789abcdef",
        "ts": "2026-01-02T03:04:05.123456789Z",
        "workspace": "other",
        "semantic": {"entities": ["a"], "intent": "b", "domain": ["c"]},
        "trace": {"parent": [WORLD.seen], "children": ["ignored"], "causalDepth": 77, "x_own": 1},
        "relations": [{"type": "cites", "targetId": WORLD.seen}],
        "observationLevel": "deductive",
        "sourceIds": [WORLD.seen],
        "source_key": "fresh",
        "syncScope": "local",
        "extra": {"x_own": [1]},
    }
    row = ask(candidate("capture", members=members, tags=["t"], refs=[WORLD.open], meta={"a": 1}), STATE)
    for name in ("id", "ts", "workspace", "semantic", "relations", "observationLevel", "sourceIds", "source_key"):
        assert row[name] == members[name]
    assert row["trace"] == {"parent": [WORLD.seen], "x_own": 1, "causalDepth": 1}
    assert row["x_own"] == [1]
    assert "trust" not in row
    empty = {"semantic": {}, "trace": {}, "relations": [], "sourceIds": [], "trust": None, "id": None, "ts": None}
    bare = ask(candidate("capture", members=empty, comment=None), STATE)
    assert list(bare) == ["id", "op", "ts", "actor", "workspace", "prevHash", "payload", "hash"]
    assert bare["payload"] == {"body": "b", "kind": "observation"}


def test_causal_depth_is_one_more_than_the_deepest_parent() -> None:
    ledger = Ledger()
    one = ledger.add("capture")
    two = ledger.add("capture", trace={"parent": [one]})
    three = ledger.add("capture", trace={"parent": [one, two], "causalDepth": 9})
    _, state = ledger.run()
    for parents, depth in (([one], 1), ([two], 2), ([one, three], 3)):
        row = ask(candidate("capture", members={"trace": {"parent": parents}}), state)
        assert row["trace"]["causalDepth"] == depth


# --- steps 1 and 2


@pytest.mark.parametrize(
    "op", ["destroy", "CLAIM", " claim", "link", "dismiss", "triage", 5, ["claim"], True, None, ""]
)
def test_unknown_operations(op: Any) -> None:
    assert outcome(candidate(op), STATE) == ("E_INVALID_OP", None)


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        (Candidate("capture", None, {"body": "b"}), "$.actor"),
        (Candidate("capture", "", {"body": "b"}), "$.actor"),
        (Candidate("capture", None, None), "$.actor"),
        (Candidate("capture", "agent:a", None), "$.payload"),
        (Candidate("capture", "agent:a", ["body"]), "$.payload"),
        (Candidate("capture", "agent:a", "body"), "$.payload"),
        (Candidate("capture", "agent:a", {}), "$.payload.body"),
        (Candidate("capture", "agent:a", {"body": None}), "$.payload.body"),
        (Candidate("commit", "agent:a", {}), "$.payload.body"),
        (candidate("commit"), "$.payload.source"),
        (candidate("commit", source=""), "$.payload.source"),
        (candidate("claim"), "$.payload.commitment"),
        (candidate("release"), "$.payload.commitment"),
        (candidate("approve"), "$.payload.commitment"),
        (candidate("reopen"), "$.payload.commitment"),
        (candidate("submit", evidence="x"), "$.payload.commitment"),
        (candidate("submit", commitment="x"), "$.payload.evidence"),
        (candidate("submit", commitment="x", duplicate_of="y"), "$.payload.evidence"),
        (candidate("close", commitment="x"), "$.payload.evidence"),
        (candidate("annotate"), "$.payload.target"),
        (candidate("annotate", source="x"), "$.payload.target"),
    ],
)
def test_missing_fields_in_table_order(asked: Candidate, path: str) -> None:
    with pytest.raises(Refused) as refusal:
        ask(asked, STATE)
    assert refusal.value.code == "E_MISSING_FIELD"
    assert refusal.value.detail == path.rpartition(".")[2]
    assert refusal.value.place is not None
    assert refusal.value.place.path == path


# --- steps 4 to 8


class Key:
    """A constitution as small as the interface."""

    def __init__(self, permitted: bool = True, rule: str | None = None) -> None:
        self.permitted = permitted
        self.rule = rule

    def permits(self, actor: str, op: str) -> bool:
        assert actor
        assert op
        return self.permitted

    def broken_rule(self, row: Any, state: State, now: Any) -> str | None:
        assert row["payload"]["body"]
        assert state is STATE
        return self.rule


def test_a_broken_chain() -> None:
    broken = verify_lines(b"{\n")
    assert outcome(candidate("capture"), STATE, chain_ok=broken) == ("E_CHAIN_BROKEN", None)
    assert outcome(candidate("capture"), STATE, chain_ok=False) == ("E_CHAIN_BROKEN", None)
    assert outcome(candidate("capture"), STATE, chain_ok=verify_lines(b"")) is None


def test_an_invalid_genesis_key() -> None:
    why = Refused("E_GENESIS", "line 3 is no mapping", remedy="Mend it.")
    with pytest.raises(Refused, match="line 3 is no mapping") as refusal:
        ask(candidate("capture"), STATE, genesis_error=why)
    assert (refusal.value.code, refusal.value.detail) == ("E_CONSTRAINT_VIOLATED", "genesis_invalid")
    assert refusal.value.remedy == "Mend it."


def test_used_ids_and_keys() -> None:
    used = candidate("capture", members={"id": WORLD.seen, "source_key": "key-1"})
    assert outcome(used, STATE) == ("E_DUPLICATE_ID", None)
    other_op = candidate("annotate", members={"source_key": "key-1"}, target=WORLD.seen)
    assert outcome(other_op, STATE) == ("E_DUPLICATE_ID", WORLD.seen)
    bad = candidate("commit", members={"id": WORLD.bad_commit}, source=WORLD.seen)
    assert outcome(bad, STATE) == ("E_DUPLICATE_ID", None)


def test_permissions_and_rules_of_a_key() -> None:
    assert outcome(candidate("capture"), STATE, constitution=Key()) is None
    assert outcome(candidate("capture"), STATE, constitution=Key(permitted=False)) == ("E_PERMISSION_DENIED", None)
    assert outcome(candidate("capture"), STATE, constitution=Key(rule="require_tags")) == (
        "E_CONSTRAINT_VIOLATED",
        "require_tags",
    )


@pytest.mark.parametrize("kind", ["finding", "step_result", "learning"])
@pytest.mark.parametrize("op", ["capture", "annotate"])
def test_the_citation_gate(op: str, kind: str) -> None:
    cited = {"relations": [{"type": "cites", "targetId": WORLD.seen}], "sourceIds": [WORLD.seen]}
    bare = candidate(op, members=cited, kind=kind, target=WORLD.seen, refs=[WORLD.seen])
    assert outcome(bare, STATE) == ("E_CITATION_REQUIRED", None)
    assert outcome(replace(bare, trace={"parent": []}), STATE) == ("E_CITATION_REQUIRED", None)
    assert outcome(replace(bare, trace={"children": [WORLD.seen], "causalDepth": 1}), STATE) == (
        "E_CITATION_REQUIRED",
        None,
    )
    assert outcome(replace(bare, trace={"parent": [WORLD.seen]}), STATE) is None


@pytest.mark.parametrize("kind", ["finding", "step_result", "learning"])
@pytest.mark.parametrize("op", sorted(set(OPS) - {"capture", "annotate"}))
def test_other_operations_have_no_kind_that_could_pass_the_gate(op: str, kind: str) -> None:
    named = {"commitment": WORLD.claimed, "source": WORLD.seen, "evidence": WORLD.seen}
    asked = candidate(op, kind=kind, **{name: named[name] for name in REQUIRED_PAYLOAD[op] if name in named})
    for trace in (None, {"parent": [WORLD.seen]}):
        assert outcome(replace(asked, trace=trace), STATE) == ("E_CONSTRAINT_VIOLATED", "bad_value")


# --- step 9


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (candidate("claim", commitment="cmt_nobody00"), ABSENT),
        (candidate("claim", commitment=WORLD.seen), WRONG),
        (candidate("claim", commitment=WORLD.bad_commit), ABSENT),
        (candidate("commit", source="mem_nobody00"), ABSENT),
        (candidate("commit", source=WORLD.open), WRONG),
        (candidate("commit", source=WORLD.note), WRONG),
        (candidate("submit", commitment=WORLD.claimed, evidence="mem_nobody00"), ABSENT),
        (candidate("submit", commitment=WORLD.claimed, evidence=WORLD.claim), WRONG),
        (candidate("submit", commitment=WORLD.claimed, evidence=WORLD.note), None),
        (candidate("close", commitment=WORLD.claimed, evidence=WORLD.open), WRONG),
        (candidate("close", commitment=WORLD.claimed, evidence=WORLD.closed, duplicate_of=WORLD.open), WRONG),
        (candidate("close", commitment=WORLD.claimed, evidence=WORLD.open, duplicate_of=WORLD.open), None),
        (candidate("close", commitment=WORLD.claimed, duplicate_of=WORLD.open), None),
        (candidate("close", commitment=WORLD.claimed, evidence=WORLD.seen, duplicate_of=WORLD.open), None),
        (candidate("close", commitment=WORLD.claimed, evidence=WORLD.seen, duplicate_of="cmt_nobody00"), ABSENT),
        (candidate("close", commitment=WORLD.claimed, duplicate_of="cmt_nobody00"), ABSENT),
        (candidate("close", commitment=WORLD.claimed, duplicate_of=WORLD.seen), WRONG),
        (candidate("close", commitment=WORLD.claimed, evidence=WORLD.seen, duplicate_of=WORLD.note), WRONG),
        (candidate("close", commitment=WORLD.claimed, duplicate_of=WORLD.bad_commit), None),
        (candidate("annotate", target="mem_nobody00"), ABSENT),
        (candidate("annotate", target=WORLD.bad_commit), None),
        (candidate("annotate", target=WORLD.claim), None),
        (candidate("approve", commitment=WORLD.in_review, evidence="mem_nobody00"), ABSENT),
        (candidate("approve", commitment=WORLD.in_review, evidence=WORLD.claim), BAD_STATE),
        (candidate("approve", commitment=WORLD.in_review, evidence=WORLD.note), BAD_STATE),
        (candidate("approve", commitment=WORLD.in_review, evidence=WORLD.seen), None),
        (candidate("capture", members={"trace": {"parent": ["mem_nobody00"]}}), ABSENT),
        (candidate("capture", members={"relations": [{"type": "cites", "targetId": "mem_nobody00"}]}), ABSENT),
        (candidate("capture", members={"sourceIds": [WORLD.seen, "mem_nobody00"]}), ABSENT),
        (candidate("capture", refs=[WORLD.open, "mem_nobody00"]), ABSENT),
        (candidate("capture", commitment="cmt_nobody00"), ABSENT),
    ],
)
def test_references(asked: Candidate, expected: tuple[str, str] | None) -> None:
    assert outcome(asked, STATE) == expected


def test_references_are_looked_at_in_their_order() -> None:
    good = {
        "commitment": WORLD.open,
        "source": WORLD.seen,
        "evidence": WORLD.seen,
        "duplicate_of": WORLD.open,
        "target": WORLD.seen,
        "trace": WORLD.seen,
        "relations": WORLD.seen,
        "sourceIds": WORLD.seen,
        "refs": WORLD.seen,
    }
    places = {
        "trace": "$.trace.parent",
        "relations": "$.relations",
        "sourceIds": "$.sourceIds",
    }
    for first, second in itertools.combinations(good, 2):
        names = {**good, first: "mem_nobody00", second: "mem_nobody00"}
        asked = candidate(
            "capture",
            members={
                "trace": {"parent": [names["trace"]]},
                "relations": [{"type": "cites", "targetId": names["relations"]}],
                "sourceIds": [names["sourceIds"]],
            },
            refs=[names["refs"]],
            **{name: names[name] for name in ("commitment", "source", "evidence", "duplicate_of", "target")},
        )
        with pytest.raises(Refused) as refusal:
            ask(asked, STATE)
        assert refusal.value.place is not None
        assert refusal.value.place.path == places.get(first, f"$.payload.{first}")


def test_okf_ingest_alone_may_aim_anywhere() -> None:
    for kind in ("supports", "supersedes", "okf_link", "cites"):
        asked = candidate("capture", members={"relations": [{"type": kind, "targetId": "mem_not_yet_there"}]})
        assert outcome(asked, STATE, okf_ingest=True) is None
        assert outcome(asked, STATE) == (ABSENT if kind == "cites" else BAD_VALUE)


# --- step 10


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (candidate("claim", commitment=WORLD.open), None),
        (candidate("claim", commitment=WORLD.claimed), None),
        (candidate("claim", "agent:other", commitment=WORLD.claimed), ("E_ALREADY_CLAIMED", None)),
        (candidate("claim", commitment=WORLD.in_review), BAD_STATE),
        (candidate("claim", commitment=WORLD.closed), ("E_ALREADY_CLOSED", None)),
        (candidate("release", commitment=WORLD.open), ("E_NOT_OWNER", None)),
        (candidate("release", "agent:other", commitment=WORLD.claimed), ("E_NOT_OWNER", None)),
        (candidate("submit", commitment=WORLD.open, evidence=WORLD.seen), ("E_NOT_OWNER", None)),
        (candidate("close", commitment=WORLD.open, evidence=WORLD.seen), ("E_NOT_OWNER", None)),
        (candidate("close", "agent:other", commitment=WORLD.open, duplicate_of=WORLD.closed), None),
        (candidate("close", "agent:other", commitment=WORLD.claimed, duplicate_of=WORLD.open), ("E_NOT_OWNER", None)),
        (candidate("approve", commitment=WORLD.open), BAD_STATE),
        (candidate("approve", commitment=WORLD.closed), ("E_ALREADY_CLOSED", None)),
        (candidate("approve", commitment=WORLD.in_review), None),
        (candidate("approve", commitment=WORLD.in_review, meta={"submission": WORLD.submit}), None),
        (candidate("approve", commitment=WORLD.in_review, meta={"submission": WORLD.claim}), BAD_STATE),
        (candidate("approve", commitment=WORLD.closed, meta={"submission": WORLD.claim}), ("E_ALREADY_CLOSED", None)),
        (candidate("reopen", "agent:other", commitment=WORLD.closed), None),
        (candidate("reopen", commitment=WORLD.claimed), BAD_STATE),
        (candidate("close", commitment=WORLD.claimed, duplicate_of=WORLD.claimed), BAD_VALUE),
        (candidate("close", commitment=WORLD.closed, duplicate_of=WORLD.closed), BAD_VALUE),
    ],
)
def test_the_table_at_the_door(asked: Candidate, expected: tuple[str, str] | None) -> None:
    assert outcome(asked, STATE) == expected


def test_the_holder_is_named() -> None:
    with pytest.raises(Refused, match="held by agent:worker"):
        ask(candidate("claim", "agent:other", commitment=WORLD.claimed), STATE)


def test_duplicates_must_not_close_a_circle() -> None:
    ledger = Ledger()
    seen = ledger.add("capture")
    one, two, three, four = (ledger.add("commit", source=seen) for _ in range(4))
    ledger.add("close", commitment=two, duplicate_of=one)
    ledger.add("close", commitment=three, duplicate_of=two)
    state = ledger.state()
    assert outcome(candidate("close", commitment=one, duplicate_of=three), state) == BAD_STATE
    assert outcome(candidate("close", commitment=one, duplicate_of=two), state) == BAD_STATE
    assert outcome(candidate("close", commitment=one, duplicate_of=four), state) is None
    assert outcome(candidate("close", commitment=four, duplicate_of=three), state) is None
    # A circle that a raw append made does not hang the writer, and joining it is refused.
    ledger.add("close", commitment=one, duplicate_of=three)
    assert outcome(candidate("close", commitment=four, duplicate_of=three), ledger.state()) == BAD_STATE
    # A reopening drops the pointer.
    ledger.add("reopen", commitment=two)
    assert outcome(candidate("close", commitment=two, duplicate_of=four), ledger.state()) is None


def test_a_duplicate_close_names_the_other_as_its_evidence() -> None:
    row = ask(candidate("close", commitment=WORLD.claimed, duplicate_of=WORLD.open), STATE)
    assert row["payload"]["evidence"] == WORLD.open
    ledger = Ledger()
    ledger.rows, ledger.last = [*WORLD.ledger.rows], WORLD.ledger.last
    ledger.put({name: value for name, value in row.items() if name not in ("hash", "prevHash")})
    record = ledger.state().commitments[WORLD.claimed]
    assert (record.state, record.evidence, record.duplicate_of) == ("closed", WORLD.open, WORLD.open)


# --- trust


@pytest.mark.parametrize("actor", ["human:reviewer", "someone@example.org", "agent:other", "system:validator"])
def test_who_approves_decides_the_stamp(actor: str) -> None:
    row = ask(candidate("approve", actor, commitment=WORLD.in_review), STATE)
    if actor.startswith(("agent", "system")):
        assert "trust" not in row
    else:
        assert row["trust"] == human_stamp()
        assert row["trust"] == {
            "confidence": 0.95,
            "verification": "human_verified",
            "chain": ["manual_review:1.0"],
            "decayHalfLifeDays": 180,
        }
    assert "trust" not in ask(candidate("reopen", actor, commitment=WORLD.in_review), STATE)


def test_trust_of_the_engine() -> None:
    block = {"confidence": 0.5, "chain": ["exit_code:1.0"]}
    assert ask(candidate("capture"), STATE, engine_trust=block)["trust"] == block
    approved = ask(candidate("approve", "human:reviewer", commitment=WORLD.in_review), STATE, engine_trust=block)
    assert approved["trust"] == human_stamp()


def test_self_approval_is_admitted_and_flagged() -> None:
    row = ask(candidate("approve", commitment=WORLD.in_review), STATE)
    ledger = Ledger()
    ledger.rows, ledger.last = [*WORLD.ledger.rows], WORLD.ledger.last
    ledger.put({name: value for name, value in row.items() if name not in ("hash", "prevHash")})
    assert ledger.state().commitments[WORLD.in_review].self_approved


# --- the order of all steps

Breaker = Callable[[Candidate, dict[str, Any]], tuple[Candidate, dict[str, Any]]]


def _with(**members: Any) -> Breaker:
    return lambda asked, settings_: (replace(asked, **members), settings_)


def _payload(**members: Any) -> Breaker:
    return lambda asked, settings_: (
        replace(asked, payload={k: v for k, v in {**asked.payload, **members}.items() if v is not ...}),
        settings_,
    )


def _setting(**given_: Any) -> Breaker:
    return lambda asked, settings_: (asked, {**settings_, **given_})


# A close of a commitment that somebody else holds: the base of every combination breaks nothing.
BASE = candidate("close", members={"trace": {"parent": [WORLD.seen]}}, commitment=WORLD.claimed, evidence=WORLD.seen)
NO_KEY = Key()
BREAKERS: list[tuple[str, Any, Breaker]] = [
    ("E_INVALID_OP", None, _with(op="destroy")),
    ("E_MISSING_FIELD", "commitment", _payload(commitment=...)),
    ("E_CONSTRAINT_VIOLATED", "bad_value", _with(ts="yesterday")),
    ("E_CONSTRAINT_VIOLATED", "trust_self_reported", _with(trust={"confidence": 1})),
    ("E_CHAIN_BROKEN", None, _setting(chain_ok=False)),
    ("E_CONSTRAINT_VIOLATED", "genesis_invalid", _setting(genesis_error=Refused("E_GENESIS", "x"))),
    ("E_DUPLICATE_ID", None, _with(id=WORLD.submit)),
    ("E_DUPLICATE_ID", WORLD.seen, _with(source_key="key-1")),
    ("E_PERMISSION_DENIED", None, lambda c, s: (c, {**s, "permitted": False})),
    ("E_REF_NOT_FOUND", "absent", _payload(evidence="mem_nobody00")),
    ("E_NOT_OWNER", None, _with(actor="agent:other")),
    ("E_CONSTRAINT_VIOLATED", "require_approval", lambda c, s: (c, {**s, "rule": "require_approval"})),
]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_earliest_broken_rule_is_reported(count: int) -> None:
    assert outcome(BASE, STATE, constitution=NO_KEY) is None
    for chosen in itertools.combinations(range(len(BREAKERS)), count):
        asked, given_ = BASE, {}
        for index in reversed(chosen):
            asked, given_ = BREAKERS[index][2](asked, given_)
        given_ = dict(given_)
        key = Key(given_.pop("permitted", True), given_.pop("rule", None))
        code, detail, _ = BREAKERS[chosen[0]]
        assert outcome(asked, STATE, constitution=key, **given_) == (code, detail), chosen


def test_the_citation_gate_stands_between_permission_and_references() -> None:
    gated = candidate("capture", kind="finding", refs=["mem_nobody00"])
    assert outcome(gated, STATE) == ("E_CITATION_REQUIRED", None)
    assert outcome(gated, STATE, constitution=Key(permitted=False)) == ("E_PERMISSION_DENIED", None)
    assert outcome(replace(gated, id=WORLD.seen), STATE) == ("E_DUPLICATE_ID", None)
    assert outcome(replace(gated, trace={"parent": [WORLD.seen]}), STATE) == ABSENT


def test_every_code_and_detail_has_been_seen() -> None:
    seen = {code for code, _, _ in BREAKERS} | {"E_CITATION_REQUIRED", "E_ALREADY_CLAIMED", "E_ALREADY_CLOSED"}
    assert seen == set(CODES)
    assert set(DETAILS) == {
        "bad_value",
        "trust_self_reported",
        "genesis_invalid",
        "bad_state",
        "absent",
        "wrong_kind",
    }


# --- laws


def drawn_candidate(data: st.DataObject, names: list[str]) -> Candidate:
    pick = st.sampled_from([*names[-8:], "mem_nobody00"])
    maybe = st.none() | pick
    payload = {name: data.draw(maybe) for name in ("commitment", "source", "evidence", "target", "duplicate_of")}
    payload["kind"] = data.draw(st.sampled_from([None, None, None, "finding", "evidence"]))
    parents = data.draw(st.lists(pick, max_size=2))
    return Candidate(
        op=data.draw(
            st.sampled_from(
                ["capture", "commit", "claim", "claim", "submit", "approve", "reopen", "close", "annotate", "release"]
            )
        ),
        actor=data.draw(st.sampled_from(["agent:worker", "human:reviewer"])),
        payload={"body": data.draw(st.text(min_size=1, max_size=4)), **payload},
        trace={"parent": parents} if parents else None,
    )


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_what_is_admitted_verifies_and_has_its_effect(data: st.DataObject) -> None:
    """What is admitted chains, verifies and replays without an anomaly; asking changes no state."""
    run, rows, last, counter = Replay(), [], ZERO, itertools.count(1)
    for asked in (candidate("capture"), candidate("commit", source="mem_00000001")):
        rows.append(ask(asked, run.state, head_hash=last, random_hex=lambda _: f"{next(counter):08x}"))
        last = rows[-1]["hash"]
        run.apply(row_of(len(rows), rows[-1]))
    for _ in range(data.draw(st.integers(1, 12))):
        asked = drawn_candidate(data, [row["id"] for row in rows])
        before = run.state.digest()
        refused = outcome(asked, run.state, head_hash=last, random_hex=lambda _: "0000aaaa")
        assert run.state.digest() == before
        if refused is not None:
            continue
        row = ask(asked, run.state, head_hash=last, random_hex=lambda _: f"{next(counter):08x}")
        rows.append(row)
        last = row["hash"]
        run.apply(row_of(len(rows), parse_row(row_bytes(row))))
    found, state = verify_and_replay(b"".join(row_bytes(row) + b"\n" for row in rows), unhashed_prefix=0)
    assert found.ok
    assert found.warnings == ()
    assert found.verified == len(rows)
    assert state.anomalies == []
    assert state == run.state


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


ENVELOPE = (
    "op actor payload id ts workspace semantic trace relations observationLevel sourceIds source_key syncScope trust"
)
PAYLOAD = "body kind commitment source evidence target duplicate_of tags refs meta comment"


@settings(max_examples=120, deadline=None)
@given(
    st.dictionaries(st.sampled_from([*ENVELOPE.split(), "x_a", "b"]), json_like),
    st.dictionaries(st.sampled_from(PAYLOAD.split()), json_like),
    st.sampled_from(["capture", "commit", "claim", "close", "approve", "annotate"]),
)
def test_only_refusals_escape(members: dict[str, Any], payload: dict[str, Any], op: str) -> None:
    base = {"op": op, "actor": "agent:worker"}
    named = {"commitment": WORLD.claimed, "evidence": WORLD.seen, "source": WORLD.seen, "target": WORLD.seen}
    outcome(Candidate.of({**base, "payload": {"body": "b", **payload}}), STATE)
    outcome(Candidate.of({**base, "payload": payload, **members}), STATE)
    outcome(Candidate.of({**base, **members, "payload": {"body": "b", **named}}), STATE)
