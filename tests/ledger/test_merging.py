"""The laws of a merge, over generated pairs of ledgers and against an independent model."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from ledger.building import Ledger, lines, verify_and_replay
from reference import ledger_replay, merge_model
from reference.ledger_bytes import row_hash as plain_row_hash
from troth.core.errors import Refused
from troth.ledger.merging import MARK, Plan, is_event, merged_rows, plan_merge, rewritten
from troth.ledger.rows import Row, row_of

NOW = datetime(2026, 5, 1, tzinfo=UTC)
HEADS = ("1" * 64, "2" * 64)
ACTORS = ("agent:worker", "agent:rival", "human:reviewer")

Step = tuple[str, int, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("capture", "capture", "commit", "claim", "close", "submit", "approve", "annotate", "release")),
        st.integers(0, 2),  # actor
        st.integers(0, 30),  # which earlier rows it names
        st.integers(0, 5),  # a key or an id that others may have
    ),
    max_size=8,
)


def grow(ledger: Ledger, steps: list[Step], side: str) -> None:
    """Append a row for each step; ids and source keys of two sides are sometimes the same."""
    for wanted, actor, pick, chance in steps:
        op = wanted
        names = [row["id"] for row in ledger.rows]
        commits = [row["id"] for row in ledger.rows if row["op"] == "commit"]
        captures = [row["id"] for row in ledger.rows if row["op"] == "capture"]
        members: dict[str, Any] = {"ts": f"2026-01-01T00:00:{pick:02d}Z", "body": f"{side} {pick}"}
        if op == "commit" and captures:
            members["source"] = captures[pick % len(captures)]
        elif op == "annotate" and names:
            members |= {"target": names[pick % len(names)], "meta": {"submission": names[-1], "n": [names[0]]}}
            members["relations"] = [{"type": "contradicts", "targetId": names[-1]}]
        elif op in ("claim", "close", "submit", "approve", "release") and commits:
            members["commitment"] = commits[pick % len(commits)]
            if op in ("close", "submit"):
                members["evidence"] = captures[-1]
        else:
            op = "capture"
            if names:
                members |= {"trace": {"parent": [names[pick % len(names)]]}, "refs": [names[-1]]}
        # A number of its own or one that the other side has for its row.
        prefix = {"capture": "mem_", "commit": "cmt_", "annotate": "ann_"}.get(op, "op_")
        number = len(ledger.rows) + 1
        members["id"] = f"{prefix}{number:08x}" if chance < 3 else f"{prefix}{side * 3}{number:08x}"
        if chance == 5 and all(row.get("source_key") != f"key {pick % 3}" for row in ledger.rows):
            members["source_key"] = f"key {pick % 3}"
        ledger.add(op, ACTORS[actor], **members)


def pair(begun: list[Step], one: list[Step], two: list[Step]) -> tuple[Ledger, Ledger]:
    """Return two ledgers with a common beginning of at least one row."""
    ours, theirs = Ledger(), Ledger()
    for ledger, steps, side in ((ours, one, "a"), (theirs, two, "b")):
        ledger.add("capture")
        grow(ledger, begun, "o")
        grow(ledger, steps, side)
    return ours, theirs


PAIRS = st.builds(pair, STEPS, STEPS, STEPS)


def rows_of(values: list[dict[str, Any]]) -> list[Row]:
    return [row_of(line, value) for line, value in enumerate(values, 1)]


def merge(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]], **options: bool
) -> tuple[Plan, list[dict[str, Any]]]:
    """Return the plan and all rows of the result."""
    plan = plan_merge(rows_of(ours), rows_of(theirs), **options)
    if plan.outcome == "nothing_to_add":
        return plan, ours
    if plan.outcome == "fast_forward":
        return plan, theirs
    last = ours[-1].get("hash") or "0" * 64 if ours else "0" * 64
    more = merged_rows(plan, rows_of(theirs), last_hash=last, heads=HEADS, workspace="w", now=NOW)
    return plan, [*ours, *more]


def undone(row: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in row.items() if name != "prevHash"}


@given(PAIRS)
def test_a_merge_verifies_begins_with_ours_and_holds_every_content(sides: tuple[Ledger, Ledger]) -> None:
    ours, theirs = sides[0].rows, sides[1].rows
    plan, result = merge(ours, theirs)
    data = lines(result)
    assert data.startswith(lines(ours))
    found, _ = verify_and_replay(data)
    assert found.ok, found.faults
    expected = merge_model.added(ours, theirs)
    more = result[len(ours) :]
    if plan.outcome == "merged":
        event = more.pop()
        assert is_event(event)
        assert event["payload"]["meta"]["merge"]["heads"] == list(HEADS)
        assert event["trace"]["parent"][0] == ours[-1]["id"]
        assert event["trace"]["parent"][-1] == more[-1]["id"] or plan.shared
    assert [merge_model.without_mark(row) for row in more] == expected
    # What is marked says what it was; what is not marked has its hash still.
    hashes = {row["hash"] for row in theirs}
    for row in more:
        was = row[MARK]["hash"] if MARK in row else row["hash"]
        assert was in hashes
        assert row["hash"] == plain_row_hash(row)
    kept = Counter(row[MARK]["hash"] if MARK in row else row["hash"] for row in more)
    assert set(kept.values()) <= {1}
    assert hashes <= set(kept) | {row["hash"] for row in ours}
    # source_key and id stay unique where they were.
    keys = [row["source_key"] for row in result if "source_key" in row]
    assert len(keys) == len(set(keys))


def test_the_pairs_hold_what_the_laws_are_about() -> None:
    def collides(sides: tuple[Ledger, Ledger]) -> bool:
        plan = plan_merge(rows_of(sides[0].rows), rows_of(sides[1].rows))
        return bool(plan.renamed and plan.rekeyed and plan.common > 1)

    ours, theirs = find(PAIRS, collides)
    _, result = merge(ours.rows, theirs.rows)
    assert any(MARK in row for row in result)


@given(PAIRS)
def test_merging_again_or_with_itself_adds_nothing(sides: tuple[Ledger, Ledger]) -> None:
    ours, theirs = sides[0].rows, sides[1].rows
    assert merge(ours, ours)[0].outcome == "nothing_to_add"
    _, result = merge(ours, theirs)
    for again in (ours, theirs, result):
        plan, same = merge(result, again)
        assert plan.outcome == "nothing_to_add"
        assert same == result
    assert merge(ours, ours[: len(ours) // 2])[0].outcome == "nothing_to_add"
    plan, ahead = merge(ours[:1], ours)
    assert (plan.outcome, ahead) == ("fast_forward" if len(ours) > 1 else "nothing_to_add", ours)


@given(PAIRS, STEPS)
def test_what_is_written_after_a_merge_comes_alone_the_next_time(
    sides: tuple[Ledger, Ledger], later: list[Step]
) -> None:
    ours, theirs = sides
    _, result = merge(ours.rows, theirs.rows)
    before = len(theirs.rows)
    grow(theirs, later, "b")
    plan, again = merge(result, theirs.rows)
    assert again[: len(result)] == result
    found, _ = verify_and_replay(lines(again))
    assert found.ok
    if plan.outcome == "merged":
        assert plan.added == len(theirs.rows) - before
    # References that the later rows make lead to the rows they were made to.
    was = {row["id"]: row["hash"] for row in theirs.rows}
    origin = {row["id"]: row[MARK]["hash"] if MARK in row else row["hash"] for row in again}
    for row in again[len(result) :]:
        if is_event(row):
            continue
        first = next(one for one in theirs.rows if one["hash"] == origin[row["id"]])
        for name in ("source", "commitment", "evidence", "target"):
            if name in row["payload"]:
                assert origin[row["payload"][name]] == was[first["payload"][name]]


@given(PAIRS)
def test_the_same_ledgers_and_the_same_instant_give_the_same_bytes(sides: tuple[Ledger, Ledger]) -> None:
    ours, theirs = sides[0].rows, sides[1].rows
    kept = json.dumps([ours, theirs])
    assert lines(merge(ours, theirs)[1]) == lines(merge(ours, theirs)[1])
    assert json.dumps([ours, theirs]) == kept  # the arguments are not changed


@given(PAIRS)
def test_states_are_those_of_the_model_and_ours_keep_their_effect(sides: tuple[Ledger, Ledger]) -> None:
    ours, theirs = sides[0].rows, sides[1].rows
    _, result = merge(ours, theirs)
    _, state = verify_and_replay(lines(result))
    told = ledger_replay.replay(lines(result))
    assert {name: record.state for name, record in state.commitments.items()} == {
        name: record["state"] for name, record in told["commitments"].items()
    }
    assert len(state.anomalies) == len(told["anomalies"])
    _, before = verify_and_replay(lines(ours))
    assert [one for one in state.anomalies if one.line <= len(ours)] == before.anomalies
    assert set(before.commitments) <= set(state.commitments)
    # A row of B never takes a commitment from whom A gave it to while A's row stands first.
    assert not [one for one in state.anomalies if one.code == "E_DUPLICATE_ID"]


@given(PAIRS)
def test_either_order_holds_the_same_contents_where_nothing_collides(sides: tuple[Ledger, Ledger]) -> None:
    ours, theirs = sides[0].rows, sides[1].rows
    plan, one = merge(ours, theirs)
    _, two = merge(theirs, ours)
    if not plan.renamed and not plan.rekeyed:
        kept = [sorted(row["hash"] for row in rows if not is_event(row)) for rows in (one, two)]
        assert kept[0] == kept[1]


def test_a_second_claim_and_a_second_close_lose_their_effect_and_stay() -> None:
    ours, theirs = Ledger(), Ledger()
    for ledger, actor in ((ours, "agent:worker"), (theirs, "agent:rival")):
        source = ledger.add("capture")
        commit = ledger.add("commit", source=source)
        ledger.add("claim", actor, commitment=commit, id=f"op_claim{actor[-3:]}0")
        seen = ledger.add("capture", actor, id=f"mem_seen{actor[-3:]}00")
        ledger.add("close", actor, commitment=commit, evidence=seen, id=f"op_close{actor[-3:]}0")
    _, result = merge(ours.rows, theirs.rows)
    _, state = verify_and_replay(lines(result))
    assert [(one.id, one.code) for one in state.anomalies] == [
        ("op_claimval0", "E_ALREADY_CLOSED"),
        ("op_closeval0", "E_ALREADY_CLOSED"),
    ]
    assert state.commitments["cmt_00000002"].owner == "agent:worker"


def test_a_colliding_id_and_all_that_names_it_move_together() -> None:
    ours, theirs = Ledger(), Ledger()
    for ledger, side in ((ours, "a"), (theirs, "b")):
        ledger.add("capture")
        ledger.add("capture", body=side)
    theirs.add("commit", source="mem_00000002")
    theirs.add("annotate", target="cmt_00000003", meta={"about": ["mem_00000002", "mem_000000022"]})
    plan, result = merge(ours.rows, theirs.rows)
    new = plan.renamed[0].new
    assert plan.renamed[0].as_json() == {"line": 2, "id": "mem_00000002", "new": f"mem_{theirs.rows[1]['hash'][:16]}"}
    assert [row["payload"]["body"] for row in result[:3]] == ["row 1", "a", "b"]
    assert result[3]["payload"]["source"] == new
    assert result[4]["payload"]["meta"]["about"] == [new, "mem_000000022"]
    assert result[2][MARK] == {"hash": theirs.rows[1]["hash"], "id": "mem_00000002"}
    assert result[-1]["payload"]["meta"]["merge"]["new_ids"] == {"mem_00000002": new}


def test_a_false_mark_hides_nothing() -> None:
    ours, theirs = Ledger(), Ledger()
    ours.add("capture")
    theirs.add("capture")
    theirs.add("capture", id="mem_precious", body="precious")
    ours.add("capture", id="mem_liar0000", envelope={MARK: {"hash": theirs.rows[1]["hash"], "id": "mem_precious"}})
    _, result = merge(ours.rows, theirs.rows)
    assert "precious" in [row["payload"]["body"] for row in result]


def test_unrelated_ledgers_are_refused_unless_it_is_meant() -> None:
    ours, theirs = Ledger(), Ledger()
    ours.add("capture", body="one")
    theirs.add("capture", body="two")
    with pytest.raises(Refused) as caught:
        merge(ours.rows, theirs.rows)
    assert caught.value.code == "E_UNRELATED"
    _, result = merge(ours.rows, theirs.rows, unrelated=True)
    assert [row["payload"]["body"] for row in result[:2]] == ["one", "two"]
    assert verify_and_replay(lines(result))[0].ok


@pytest.mark.parametrize(("mine", "others"), [(1, 2), (2, 1), (1, 0)])
def test_beginnings_without_a_hash_must_be_the_same(mine: int, others: int) -> None:
    sides = []
    for count, side in ((mine, "a"), (others, "b")):
        ledger = Ledger()
        for _ in range(count):
            ledger.add("capture", hashed=False)
        ledger.add("capture", body=side)
        ledger.add("capture")
        sides.append(ledger.rows)
    with pytest.raises(Refused) as caught:
        merge(*sides)
    assert caught.value.code in ("E_UNHASHED", "E_UNRELATED")


def test_the_same_beginning_without_a_hash_is_merged() -> None:
    sides = []
    for side in "ab":
        ledger = Ledger()
        ledger.add("capture", hashed=False)
        ledger.add("capture", body=side)
        sides.append(ledger.rows)
    plan, result = merge(*sides)
    found, _ = verify_and_replay(lines(result))
    assert (plan.common, found.ok, found.unhashed, found.total) == (1, True, 1, 4)


def test_a_row_that_would_become_too_long_stops_the_merge() -> None:
    sides = []
    for side in "ab":
        ledger = Ledger()
        ledger.add("capture")
        ledger.add("capture", body=side * ((1 << 20) - 320))
        sides.append(ledger.rows)
    with pytest.raises(Refused) as caught:
        merge(*sides)
    assert caught.value.code == "E_MERGED_TOO_LARGE"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(("mem_00000002", "x", "", "1")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
ODD = st.dictionaries(
    st.sampled_from(("trace", "relations", "sourceIds", "source_key", MARK, "payload", "actor", "op", "other")), JSON
)


@given(st.lists(ODD, min_size=1, max_size=4), st.lists(ODD, min_size=1, max_size=4))
def test_odd_rows_of_ledgers_that_verify_are_merged(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> None:
    sides = []
    for odd in (one, two):
        ledger = Ledger()
        ledger.add("capture")
        for number, members in enumerate(odd, 2):
            ledger.put({"id": f"mem_{number:08x}", "op": "capture", "payload": {"body": "x"}, **members})
        sides.append(ledger.rows)
    assert verify_and_replay(lines(sides[1]))[0].ok
    _, result = merge(*sides)
    assert verify_and_replay(lines(result))[0].ok
    assert merge(result, sides[1])[1] == result


def test_nothing_named_means_the_very_row() -> None:
    value = {"id": "mem_00000001", "payload": {"body": "x", "refs": ["mem_00000002"]}, "relations": ["odd"], "trace": 3}
    assert rewritten(value, {"mem_00000003": "mem_00000004"}, lose_key=False) is value
    assert undone(rewritten(value, {"mem_00000002": "mem_00000004"}, lose_key=False))["payload"]["refs"] == [
        "mem_00000004"
    ]
