"""What a genesis key decides: who may do what, constraints, tiers and windows; and the event before the next row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.admitting import NOW, digits
from ledger.building import ZERO, Ledger
from ledger.genesis_keys import IDENTITY, WHOLE, key
from troth.core.errors import DoesNotHold, Refused, TrothError
from troth.ledger.codes import CODES, RULES
from troth.ledger.fields import OPS
from troth.ledger.genesis import Entry, Genesis, effective_half_life, matches, parse_genesis
from troth.ledger.genesis_event import AUTHOR, GenesisEvent, event_meta, event_of
from troth.ledger.genesis_explain import explain
from troth.ledger.governance import NO_KEY, Ruling, govern, ruling_of
from troth.ledger.operations import Candidate
from troth.ledger.replay import Replay, State
from troth.ledger.rows import row_of
from troth.ledger.trust import WEIGHTS

# --- who may do what


def entries(*pairs: tuple[str, str]) -> Genesis:
    roles = "permissions: {lead: '*', worker: [capture, claim], reader: [annotate], none: []}\n"
    return key("actors: [" + ", ".join(f"{{id: '{name}', role: {role}}}" for name, role in pairs) + "]\n" + roles)


@pytest.mark.parametrize(
    ("pairs", "actor", "matched", "allowed", "refused"),
    [
        ([("human:*", "lead"), ("human:guest", "reader")], "human:guest", "human:guest", "annotate", "approve"),
        ([("human:guest", "reader"), ("human:*", "lead")], "human:guest", "human:guest", "annotate", "approve"),
        ([("human:*", "lead"), ("human:guest", "reader")], "human:guests", "human:*", "approve", None),
        ([("*", "reader"), ("agent:*", "worker")], "agent:a", "agent:*", "claim", "annotate"),
        ([("*", "reader"), ("agent:*", "worker")], "human:a", "*", "annotate", "claim"),
        ([("agent:*", "worker"), ("agent:*", "reader")], "agent:a", "agent:*", "annotate", "approve"),
        ([("agent:a", "reader"), ("agent:a*", "lead")], "agent:a", "agent:a", "annotate", "approve"),
        ([("agent:a", "reader"), ("agent:a*", "lead")], "agent:ab", "agent:a*", "approve", None),
        ([("agent:*", "worker")], "Agent:a", None, None, "claim"),
        ([("agent:*", "worker")], "agent", None, None, "claim"),
        ([("agent:*", "worker")], "agent:", "agent:*", "claim", "close"),
        ([("reviewer@example.org", "lead")], "reviewer@example.org", "reviewer@example.org", "approve", None),
        ([("reviewer@*", "lead")], "reviewer@example.org", "reviewer@*", "approve", None),
        ([("human:*", "none")], "human:a", "human:*", None, "annotate"),
        ([("human:a", "lead")], "human:b", None, None, "capture"),
        ([], "human:a", None, None, "capture"),
    ],
)
def test_the_longest_literal_match_decides_and_an_exact_one_first(
    pairs: Any, actor: str, matched: str | None, allowed: str | None, refused: str | None
) -> None:
    genesis = entries(*pairs)
    found = genesis.matched(actor)
    assert (found.id if found is not None else None) == matched
    assert allowed is None or genesis.permits(actor, allowed)
    assert refused is None or not genesis.permits(actor, refused)


NAMES = st.text("ab:*", max_size=4)
PATTERN = st.builds(lambda literal, wild: literal.replace("*", "") + "*" * wild, NAMES, st.booleans()).filter(bool)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(PATTERN, st.sampled_from(["lead", "worker", "reader"])), max_size=6), NAMES, st.randoms())
def test_the_order_of_entries_decides_nothing(pairs: list[tuple[str, str]], actor: str, shuffling: Any) -> None:
    shuffled = list(pairs)
    shuffling.shuffle(shuffled)
    one, two = entries(*pairs), entries(*shuffled)
    assert [one.permits(actor, op) for op in OPS] == [two.permits(actor, op) for op in OPS]
    found = one.matched(actor)
    rivals = [name for name, _ in pairs if matches(name, actor)]
    assert (found is None) == (not rivals)
    if found is not None:
        assert {found.id} <= {*rivals}
        if actor in rivals:
            assert found.id == actor
        else:
            assert len(found.id) == max(map(len, rivals))
        assert set(found.roles) == {role for name, role in pairs if name == found.id}
        more = entries(*pairs, (found.id, "lead"))
        assert all(more.permits(actor, op) for op in OPS)  # roles of one id combine


def test_a_hostile_number_of_actors_is_not_remembered_without_end() -> None:
    genesis = entries(("agent:*", "worker"))
    for number in range(5000):
        assert genesis.permits(f"agent:{number}", "claim")
    assert len(genesis._matched) <= 1024


def test_the_validator_holds_approve_and_annotate_and_nothing_else() -> None:
    genesis = entries(("human:*", "lead"))
    assert [op for op in OPS if genesis.permits("system:validator", op)] == ["approve", "annotate"]
    assert not any(genesis.permits("system:genesis", op) for op in OPS)
    assert not any(genesis.permits("system:validator2", op) for op in OPS)


def test_without_actors_and_permissions_everyone_is_permitted() -> None:
    genesis = key("constraints: {commit: {require_tags: true}}\n")
    assert all(genesis.permits(actor, op) for actor in ("agent:a", "team:b", "") for op in OPS)


# --- tiers


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        (["routine"], "tier_1"),
        (["docs", "other"], "tier_1"),
        (["security"], "tier_3"),
        (["routine", "security"], "tier_3"),
        (["other"], "tier_2"),
        ([], "tier_2"),
    ],
)
def test_the_strictest_match_wins(tags: list[str], name: str) -> None:
    tier = parse_genesis(WHOLE.encode()).tier_of(tags)
    assert tier is not None
    assert tier.name == name


def test_without_a_default_the_strictest_defined_tier() -> None:
    tiers = "validation: {tiers: {tier_2: {}, tier_1: {}}, classification: [{match: {tags: [a]}, tier: tier_1}]}\n"
    genesis = key(tiers)
    assert [genesis.tier_of(tags).number for tags in (["a"], ["b"])] == [1, 2]  # type: ignore[union-attr]  # defined
    assert key("validation: {tiers: {}}\n").tier_of(["a"]) is None


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["routine", "docs", "security", "other"])), st.sampled_from(["security", "routine", "x"])
)
def test_a_further_tag_that_matches_never_gives_a_less_strict_tier(tags: list[str], more: str) -> None:
    genesis = key(
        "validation: {tiers: {tier_1: {}, tier_2: {}, tier_3: {}}, classification: [{match: {tags: [security]}, "
        "tier: tier_3}, {match: {tags: [routine, docs]}, tier: tier_2}, {default: tier_1}]}\n"
    )
    before, after = genesis.tier_of(tags), genesis.tier_of([*tags, more])
    assert before is not None
    assert after is not None
    assert after.number >= before.number
    assert genesis.tier_of(list(reversed(tags))) == before


# --- constraints and tier rules, each refusal with a twin that is admitted


class Desk:
    """A ledger with one commitment in the state wanted, and a key to ask."""

    def __init__(self, tags: list[str] | None = None, source_tags: list[str] | None = None) -> None:
        self.ledger = Ledger()
        seen = {"tags": source_tags} if source_tags else {}
        self.source = self.ledger.add("capture", "human:reviewer", **seen)
        self.evidence = self.ledger.add("capture")
        made = {"tags": tags} if tags else {}
        self.work = self.ledger.add("commit", "human:reviewer", source=self.source, **made)
        self.ledger.add("claim", commitment=self.work)

    def submit(self) -> Desk:
        self.ledger.add("submit", commitment=self.work, evidence=self.evidence)
        return self

    def approve(self, actor: str, ts: str = "2026-03-01T00:00:00Z") -> Desk:
        self.ledger.add("approve", actor, ts=ts, commitment=self.work)
        return self

    def close(self, actor: str = "agent:worker") -> Desk:
        self.ledger.add("close", actor, commitment=self.work, evidence=self.evidence)
        return self

    def ask(self, text: str, op: str, actor: str = "agent:worker", now: datetime = NOW, **payload: Any) -> Any:
        _, state = self.ledger.run()
        named = {"body": "b", "commitment": self.work}
        if op in ("close", "submit"):
            named["evidence"] = self.evidence
        if op == "commit":
            named = {"body": "b", "source": self.source}
        return answer(Candidate(op, actor, {**named, **payload}), state, Ruling(key(text)), now)


def answer(candidate: Candidate, state: State, ruling: Ruling, now: datetime = NOW) -> tuple[str, Any] | None:
    try:
        rows_of(candidate, state, ruling, now)
    except TrothError as raised:
        refusal = raised
    else:
        return None
    assert refusal.code in CODES
    return refusal.code, refusal.detail


def rows_of(
    candidate: Candidate, state: State, ruling: Ruling, now: datetime = NOW, **more: Any
) -> list[dict[str, Any]]:
    numbers = iter(range(1, 100))
    return govern(
        candidate,
        state,
        ruling,
        **{
            "chain_ok": True,
            "head_hash": ZERO,
            "workspace": "w",
            "now": now,
            "random_hex": lambda count: f"{next(numbers):0{2 * count}x}",
            **more,
        },
    )


def drawn(*ids: str) -> Callable[[int], str]:
    """Return a source of exactly these digits."""
    left = iter(ids)
    return lambda count: next(left)


def broken(rule: str) -> tuple[str, str]:
    assert rule in RULES
    return "E_CONSTRAINT_VIOLATED", rule


def test_require_tags() -> None:
    text = "constraints: {commit: {require_tags: true}}\n"
    assert Desk().ask(text, "commit") == broken("require_tags")
    assert Desk().ask(text, "commit", tags=[]) == broken("require_tags")
    assert Desk(source_tags=["a"]).ask(text, "commit") == broken("require_tags")
    assert Desk().ask(text, "commit", tags=["a"]) is None
    assert Desk().ask("", "commit") is None


def test_allow_self() -> None:
    desk = Desk().submit()
    assert desk.ask("", "approve") == broken("allow_self")
    assert desk.ask("constraints: {approve: {allow_self: false}}\n", "approve") == broken("allow_self")
    assert desk.ask("constraints: {approve: {allow_self: true}}\n", "approve") is None
    assert desk.ask("", "approve", "agent:other") is None


@pytest.mark.parametrize("tags", [{"tags": ["security"]}, {"source_tags": ["security"]}, {"tags": ["x", "security"]}])
def test_require_approval(tags: Any) -> None:
    text = "constraints: {security: {require_approval: true}}\n"
    assert Desk(**tags).ask(text, "close") == broken("require_approval")
    assert Desk(**tags).ask("constraints: {security: {require_approval: false}}\n", "close") is None
    assert Desk(tags=["other"]).ask(text, "close") is None
    assert Desk(**tags).submit().ask(text, "approve", "human:reviewer") is None


def test_tags_of_any_row_that_a_foreign_writer_named_as_the_source_count() -> None:
    desk = Desk()
    note = desk.ledger.add("annotate", target=desk.source, tags=["security"])
    desk.work = desk.ledger.add("commit", "human:reviewer", source=note)
    desk.ledger.add("claim", commitment=desk.work)
    assert desk.ask("constraints: {security: {require_approval: true}}\n", "close") == broken("require_approval")
    assert desk.ask("constraints: {other: {require_approval: true}}\n", "close") is None


def test_require_approval_refuses_a_close_as_a_duplicate_too() -> None:
    text = "constraints: {security: {require_approval: true}}\n"
    for tags, expected in ((["security"], broken("require_approval")), (["other"], None)):
        desk = Desk(tags=tags)
        other = desk.ledger.add("commit", source=desk.source)
        assert desk.ask(text, "close", duplicate_of=other) == expected


def test_approvers() -> None:
    text = "constraints: {security: {approvers: ['human:lead-*', 'reviewer@example.org']}}\n"
    desk = Desk(tags=["security"]).submit()
    for actor in ("human:lead-a", "human:lead-", "reviewer@example.org"):
        assert desk.ask(text, "approve", actor) is None
    for actor in ("human:lead", "Human:lead-a", "system:validator", "agent:other"):
        expected = broken("approvers") if actor != "Human:lead-a" else ("E_CONSTRAINT_VIOLATED", "bad_value")
        assert desk.ask(text, "approve", actor) == expected
    assert Desk(tags=["other"]).submit().ask(text, "approve", "human:a") is None
    both = text[:-2] + ", urgent: {approvers: ['human:*']}}\n"
    two = Desk(tags=["urgent", "security"]).submit()
    assert two.ask(both, "approve", "human:a") == broken("approvers")
    assert two.ask(both, "approve", "human:lead-a") is None


HUMAN = "validation: {tiers: {tier_3: {require_human: true}, tier_1: {}}, classification: [{default: tier_1}, " \
    "{match: {tags: [security]}, tier: tier_3}]}\n"  # fmt: skip


@pytest.mark.parametrize("tags", [{"tags": ["security"]}, {"source_tags": ["security"]}])
def test_require_human(tags: Any) -> None:
    assert Desk(**tags).ask(HUMAN, "close") == broken("require_human")
    assert Desk(tags=["other"]).ask(HUMAN, "close") is None
    desk = Desk(**tags).submit()
    assert desk.ask(HUMAN, "approve", "agent:other") == broken("require_human")
    assert desk.ask(HUMAN, "approve", "system:validator") == broken("require_human")
    assert desk.ask(HUMAN, "approve", "human:a") is None
    assert desk.ask(HUMAN, "approve", "a@example.org") is None
    assert Desk(tags=["other"]).submit().ask(HUMAN, "approve", "agent:other") is None


ROLES = "actors: [{id: 'human:*', role: lead}]\npermissions: {lead: '*'}\n"


def test_the_validator_approves_only_where_the_tier_closes_automatically() -> None:
    automatic = "validation: {tiers: {tier_1: {auto_close: true}}}\n"
    desk = Desk().submit()
    assert desk.ask(ROLES + automatic, "approve", "system:validator") is None
    assert desk.ask(ROLES + automatic.replace("true", "false"), "approve", "system:validator") == broken("auto_close")
    assert desk.ask(ROLES, "approve", "system:validator") == broken("auto_close")
    granted = ROLES.replace("actors: [", "actors: [{id: system:validator, role: lead}, ")
    assert desk.ask(granted, "approve", "system:validator") is None
    assert desk.ask("", "approve", "system:validator") is None
    assert desk.ask(ROLES + automatic, "capture", "system:validator") == ("E_PERMISSION_DENIED", None)


WINDOW = "validation: {tiers: {tier_2: {auto_close: true, review_window: 24h}}}\n"
PASSED = broken("review_window_passed")
CLOSED = datetime.fromisoformat("2026-03-01T00:00:00+00:00")


@pytest.mark.parametrize(
    ("after", "expected"),
    [(timedelta(hours=-5), None), (timedelta(hours=1), None), (timedelta(hours=24), None),
     (timedelta(hours=24, microseconds=1), PASSED), (timedelta(days=900), PASSED)],
)  # fmt: skip
def test_review_window_passed(after: timedelta, expected: Any) -> None:
    desk = Desk().submit().approve("system:validator")
    assert desk.ask(WINDOW, "reopen", "human:a", CLOSED + after) == expected


def test_a_window_bounds_only_what_the_validator_closed() -> None:
    late = CLOSED + timedelta(days=30)
    closed = Desk().submit().approve("system:validator")
    assert closed.ask(WINDOW, "reopen", "human:a", late) == broken("review_window_passed")
    assert closed.ask(WINDOW, "reopen", "agent:worker", late) == broken("review_window_passed")
    assert Desk().submit().approve("human:a").ask(WINDOW, "reopen", "human:a", late) is None
    assert Desk().close().ask(WINDOW, "reopen", "human:a", late) is None
    assert Desk().submit().ask(WINDOW, "reopen", "human:a", late) is None
    no_window = WINDOW.replace(", review_window: 24h", "")
    assert closed.ask(no_window, "reopen", "human:a", late) is None
    _, state = closed.ledger.run()
    assert answer(Candidate("reopen", "human:a", {"body": "b", "commitment": closed.work}), state, NO_KEY, late) is None


def test_a_row_s_own_time_opens_no_window_again() -> None:
    desk = Desk().submit().approve("system:validator")
    _, state = desk.ledger.run()
    asked = Candidate("reopen", "human:a", {"body": "b", "commitment": desk.work}, ts="2026-03-01T01:00:00Z")
    assert answer(asked, state, Ruling(key(WINDOW)), CLOSED + timedelta(days=9)) == broken("review_window_passed")
    assert answer(asked, state, Ruling(key(WINDOW)), CLOSED + timedelta(hours=9)) is None


def test_the_window_of_a_second_closing_counts_from_it() -> None:
    desk = Desk().submit().approve("system:validator")
    desk.ledger.add("reopen", "human:a", commitment=desk.work)
    desk.submit().approve("system:validator", "2026-03-09T00:00:00Z")
    assert desk.ask(WINDOW, "reopen", "human:a", CLOSED + timedelta(days=8, hours=3)) is None
    assert desk.ask(WINDOW, "reopen", "human:a", CLOSED + timedelta(days=9, hours=3)) == broken("review_window_passed")


def test_constraints_that_restate_the_protocol_change_nothing() -> None:
    text = "constraints: {claim: {require_claim: true}, close: {require_evidence: true}}\n"
    assert Desk().ask(text, "close") is None
    assert Desk().ask(text, "close", evidence="") == ("E_MISSING_FIELD", "evidence")


# --- the event


def state_of(*rows: dict[str, Any]) -> State:
    run = Replay()
    for number, row in enumerate(rows, 1):
        run.apply(row_of(number, row))
    return run.state


CAPTURE = Candidate("capture", "human:reviewer", {"body": "seen"})


def test_the_next_append_is_preceded_by_the_event() -> None:
    genesis = parse_genesis(WHOLE.encode())
    event, row = rows_of(CAPTURE, State(), Ruling(genesis), head_hash="f" * 64)
    assert (event["op"], event["actor"], event["payload"]["kind"]) == ("capture", AUTHOR, "event")
    assert event["payload"]["meta"] == {
        "genesis": {"sha256": genesis.sha256, "weights": dict(genesis.weights), "half_life_days": 30}
    }
    assert (event["prevHash"], row["prevHash"]) == ("f" * 64, event["hash"])
    assert event["id"] != row["id"]
    after = state_of(event, row)
    assert after.anomalies == []
    assert after.genesis == GenesisEvent(genesis.sha256, genesis.weights, 30)
    assert len(rows_of(CAPTURE, after, Ruling(genesis), random_hex=digits)) == 1


def test_a_changed_key_and_a_removed_one_leave_an_event_each() -> None:
    first, second = key(""), key("trust: {decay: {default_half_life_days: 7}}\n")
    rows = rows_of(CAPTURE, State(), Ruling(first))
    rows += rows_of(CAPTURE, state_of(*rows), Ruling(second), random_hex=drawn("0000000a", "0000000b"))
    assert len(rows) == 4
    assert event_of(rows[2]) == GenesisEvent(second.sha256, WEIGHTS, 7)
    removed = rows_of(CAPTURE, state_of(*rows), NO_KEY, random_hex=drawn("0000000c", "0000000d"))
    assert len(removed) == 2
    assert event_of(removed[0]) == GenesisEvent(None, WEIGHTS, 90)
    assert len(rows_of(CAPTURE, state_of(*rows, *removed), NO_KEY, random_hex=drawn("0000000e"))) == 1
    assert len(rows_of(CAPTURE, State(), NO_KEY)) == 1


@pytest.mark.parametrize(
    ("meta", "kind", "actor", "holds"),
    [
        (event_meta("@", WEIGHTS), "event", AUTHOR, True),
        (event_meta("@", {**WEIGHTS, "exit_code": 0.1, "no_errors": 0.2}), "event", AUTHOR, False),
        (event_meta("@", WEIGHTS, 5), "event", AUTHOR, False),
        (event_meta("@", WEIGHTS), "observation", AUTHOR, False),
        (event_meta("@", WEIGHTS), "event", "human:reviewer", False),
        ({"genesis": {"sha256": "@"}}, "event", AUTHOR, False),
        ({"genesis": "@"}, "event", AUTHOR, False),
        ({}, "event", AUTHOR, False),
    ],
)
def test_an_event_that_says_something_else_is_followed_by_a_right_one(
    meta: Any, kind: str, actor: str, holds: bool
) -> None:
    genesis = key("")
    if meta.get("genesis") and isinstance(meta["genesis"], dict):
        meta["genesis"]["sha256"] = genesis.sha256
    forged = rows_of(Candidate("capture", actor, {"body": "b", "kind": kind, "meta": meta}), State(), NO_KEY)
    following = rows_of(CAPTURE, state_of(*forged), Ruling(genesis), random_hex=drawn("0000000a", "0000000b"))
    assert len(following) == (1 if holds else 2)


def test_a_forged_event_without_a_key_does_not_stay_in_force() -> None:
    meta = event_meta(None, {**WEIGHTS, "exit_code": 0.0, "no_errors": 0.3})
    forged = rows_of(Candidate("capture", AUTHOR, {"body": "b", "kind": "event", "meta": meta}), State(), NO_KEY)
    following = rows_of(CAPTURE, state_of(*forged), NO_KEY, random_hex=drawn("0000000a", "0000000b"))
    assert event_of(following[0]) == GenesisEvent(None, WEIGHTS, 90)


def test_an_event_row_without_effect_is_no_event() -> None:
    event, row = rows_of(CAPTURE, State(), Ruling(key("")))
    again = {**event, "id": row["id"]}
    state = state_of(row, again)
    assert [anomaly.code for anomaly in state.anomalies] == ["E_DUPLICATE_ID"]
    assert state.genesis is None


def test_a_refused_operation_leaves_no_event() -> None:
    with pytest.raises(Refused) as caught:
        rows_of(Candidate("commit", "human:a", {"body": "b", "source": "mem_nobody00"}), State(), Ruling(key("")))
    assert caught.value.code == "E_REF_NOT_FOUND"
    with pytest.raises(DoesNotHold):
        rows_of(CAPTURE, State(), Ruling(key("")), chain_ok=False)


def test_the_event_needs_no_permission_and_takes_no_id_that_was_asked_for() -> None:
    nobody = key("actors: [{id: human:reviewer, role: r}]\npermissions: {r: [capture]}\n")
    asked = Candidate("capture", "human:reviewer", {"body": "seen"}, id="mem_00000001")
    event, row = rows_of(asked, State(), Ruling(nobody))
    assert (event["id"], row["id"]) == ("mem_00000002", "mem_00000001")


def test_an_invalid_key_blocks_all_nine_operations_and_says_where() -> None:
    ruling = ruling_of(b"identity: {name: n}\n", file="genesis.key")
    desk = Desk()
    _, state = desk.ledger.run()
    named = {"commitment": desk.work, "source": desk.source, "evidence": desk.evidence, "target": desk.source}
    for op in OPS:
        with pytest.raises(Refused) as caught:
            rows_of(Candidate(op, "agent:worker", {"body": "b", **named}), state, ruling)
        assert (caught.value.code, caught.value.detail) == ("E_CONSTRAINT_VIOLATED", "genesis_invalid")
        place = caught.value.place
        assert place is not None
        assert (place.file, place.line, place.path) == ("genesis.key", 1, "$.identity.owner")
    assert [warning.warning for warning in ruling.warnings()] == ["genesis_invalid"]
    assert ruling_of(IDENTITY.encode()).warnings() == []


def test_weights_and_half_life_in_force() -> None:
    assert (NO_KEY.weights, NO_KEY.half_life_days, effective_half_life(None)) == (WEIGHTS, None, 90)
    ruling = ruling_of(WHOLE.encode())
    assert ruling.weights["exit_code"] == 0.3
    assert ruling.half_life_days == 30
    assert effective_half_life(ruling.genesis) == 30
    assert effective_half_life(key("")) == 90


# --- why


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(OPS),
    st.sampled_from(["agent:worker", "human:lead-a", "human:guest", "system:validator", "x@y"]),
    st.sampled_from(["claimed", "in_review", "closed", "automatic"]),
    st.sampled_from([[], ["security"], ["routine"], ["x"]]),
)
def test_an_explanation_gives_the_answer_that_admission_gives(op: str, actor: str, how: str, tags: list[str]) -> None:
    genesis = parse_genesis(WHOLE.encode())
    desk = Desk(tags=tags)
    if how != "claimed":
        desk.submit()
    if how in ("closed", "automatic"):
        desk.approve("human:lead-a" if how == "closed" else "system:validator")
    _, state = desk.ledger.run()
    named = {"commitment": desk.work, "source": desk.source, "evidence": desk.evidence, "target": desk.source}
    if op == "approve":
        named.pop("evidence")
    given_tags = {"tags": tags} if tags else {}
    asked = Candidate(op, actor, {"body": "b", **named, **given_tags})
    record = state.commitments[desk.work]
    found = explain(genesis, actor, op, state=state, now=NOW, record=record)
    told = None if found.code is None else (found.code, found.detail)
    assert told == answer(asked, state, Ruling(genesis))
    assert found.as_json()["permitted"] == genesis.permits(actor, op)
    assert Entry("human:guest", "reader", 10) in (genesis.actors or ())
