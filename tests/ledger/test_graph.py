"""The graph: who names whom, what stands under a row and on it, derivations and contradictions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import Ledger
from reference import graph_model as model
from troth.ledger.graph import Graph, Walk, graph_of
from troth.ledger.replay import Replay, State
from troth.ledger.rows import Row, row_of

FAR = 10_000


def built(values: list[dict[str, Any]]) -> tuple[Graph, State]:
    """Return the graph of rows and their replayed state."""
    replay = Replay()
    rows: list[Row] = [row_of(number, value) for number, value in enumerate(values, start=1)]
    for row in rows:
        replay.apply(row)
    anomalies = frozenset(one.line for one in replay.state.anomalies)
    return graph_of(rows, replay.state.signals, anomalies), replay.state


def lines(walk: Walk) -> set[int]:
    """Return the lines a walk came to."""
    return {place.line for place in walk.places}


def reviewed() -> Ledger:
    """Return a ledger with one commitment that was reviewed, disputed and judged."""
    ledger = Ledger()
    seen = ledger.add("capture")  # 1
    work = ledger.add("commit", source=seen)  # 2
    ledger.add("claim", commitment=work)  # 3
    done = ledger.add("capture", kind="evidence", envelope={"trace": {"parent": [seen], "children": ["mem_nobody00"]}})
    sent = ledger.add("submit", commitment=work, evidence=done)  # 5
    ledger.add("annotate", "system:validator", target=sent, kind="validation")  # 6
    ledger.add("approve", "human:reviewer", commitment=work)  # 7
    ledger.add("capture", "agent:rival", relations=[{"type": "contradicts", "targetId": done}])  # 8
    ledger.add("capture", sourceIds=[done])  # 9
    ledger.add("annotate", "agent:rival", target="mem_00000008", kind="retraction")  # 10
    return ledger


def test_why_of_a_commitment_is_its_source_steps_evidence_and_judgements() -> None:
    graph, _ = built(reviewed().rows)
    walk = graph.why(2, depth=FAR, rows=FAR)
    assert lines(walk) == {1, 2, 3, 4, 5, 6, 7}
    assert [(link.origin, link.to, link.edge.via) for link in walk.links] == [
        (2, 1, "source"), (2, 3, "step"), (2, 5, "step"), (2, 7, "step"),
        (5, 4, "evidence"), (5, 6, "judgement"), (4, 1, "parent"),
    ]  # fmt: skip
    assert [link.first for link in walk.links] == [True] * 6 + [False]
    assert not walk.deeper
    assert not walk.more


def test_impact_of_evidence_is_who_closes_with_it_derives_from_it_and_disputes_it() -> None:
    graph, _ = built(reviewed().rows)
    assert lines(graph.impact(4, depth=FAR, rows=FAR)) == {4, 5, 2, 8, 9, 10}
    assert lines(graph.impact(1, depth=FAR, rows=FAR)) == {1, 2, 4, 5, 8, 9, 10}
    assert lines(graph.impact(10, depth=FAR, rows=FAR)) == {10}
    assert lines(graph.why(1, depth=FAR, rows=FAR)) == {1}


def test_children_are_parents_turned_around_and_stored_ones_are_not_looked_at() -> None:
    graph, _ = built(reviewed().rows)
    assert graph.children(1) == [4]
    assert graph.children(4) == []
    assert "mem_nobody00" not in {edge.name for edge in graph.named_by(4)}


def test_all_derived_from_a_row() -> None:
    graph, _ = built(reviewed().rows)
    assert graph.derived_from(1) == [4, 9]
    assert graph.derived_from(4) == [9]
    assert graph.derived_from(9) == []


def test_all_contradictions_and_what_became_of_them() -> None:
    ledger = reviewed()
    ledger.add("capture", envelope={"observationLevel": "contradiction"})  # 11
    ledger.add("capture", relations=[{"type": "contradicts", "targetId": "mem_0000000b"}])  # 12
    ledger.add("capture", relations=[{"type": "contradicts", "targetId": "mem_nobody00"}])  # 13
    ledger.add("annotate", target="mem_0000000d", kind="retraction", id="ann_00000001", source_key="k")
    ledger.add("annotate", target="mem_0000000c", kind="retraction", source_key="k")  # an anomaly: retracts nothing
    graph, _ = built(ledger.rows)
    assert [(one.line, one.name, one.target, one.level, one.withdrawn, one.by) for one in graph.contradictions()] == [
        (8, "mem_00000004", 4, False, "retracted", 10),
        (11, None, None, True, "contradicted", 12),
        (12, "mem_0000000b", 11, False, None, None),
        (13, "mem_nobody00", None, False, "retracted", 14),
    ]


def test_what_no_writer_makes_is_flagged_and_ends() -> None:
    ledger = Ledger()
    ledger.add("capture", envelope={"trace": {"parent": ["mem_00000001", "mem_00000002", "mem_nobody00"]}})
    ledger.add("capture", envelope={"trace": {"parent": ["mem_00000001"]}})
    graph, _ = built(ledger.rows)
    assert [edge.standing for edge in graph.named_by(1)] == ["self", "later", "absent"]
    assert [edge.standing for edge in graph.named_by(2)] == ["earlier"]
    assert graph.derived_from(1) == [2]
    assert graph.derived_from(2) == [1]
    walk = graph.why(1, depth=FAR, rows=FAR)
    assert lines(walk) == {1, 2}
    assert [link.first for link in walk.links] == [False, True, False, False]


def test_limits_are_told_and_deep_chains_need_no_recursion() -> None:
    ledger = Ledger()
    last = ledger.add("capture")
    for _ in range(3000):
        last = ledger.add("capture", hashed=False, envelope={"trace": {"parent": [last]}})
    graph, _ = built(ledger.rows)
    assert len(graph.why(3001, depth=FAR, rows=FAR).places) == 3001
    assert len(graph.derived_from(1)) == 3000
    shallow = graph.impact(1, depth=5, rows=FAR)
    assert (len(shallow.places), shallow.deeper, shallow.more) == (6, True, False)
    exact = graph.impact(1, depth=3000, rows=FAR)
    assert (exact.deeper, exact.more) == (False, False)
    few = graph.impact(1, depth=FAR, rows=7)
    assert (len(few.places), few.deeper, few.more) == (7, False, True)


def test_links_are_limited_too() -> None:
    ledger = Ledger()
    first = ledger.add("capture")
    ledger.add("capture", refs=[first] * 100)
    graph, _ = built(ledger.rows)
    walk = graph.why(2, depth=1, rows=10)
    assert (len(walk.links), walk.more) == (40, True)


def test_more_rows_may_come_between_questions() -> None:
    values = reviewed().rows
    replay, graph = Replay(), None
    for number, value in enumerate(values, start=1):
        row = row_of(number, value)
        replay.apply(row)
        graph = graph or Graph(replay.state.signals)
        graph.apply(row)
        asked = {1: graph.derived_from(1)}
    assert asked == {1: [4, 9]}


# --- against the model

IDS = [f"{prefix}{number:08x}" for number in range(1, 4) for prefix in ("mem_", "cmt_", "op_", "ann_")]
NAMES = st.sampled_from([*IDS, "", "mem_nobody00"])
ODD = st.one_of(NAMES, NAMES, NAMES, st.none(), st.just(3), st.lists(NAMES, max_size=1))
LISTS = st.one_of(st.lists(st.one_of(NAMES, NAMES, st.just(7)), max_size=3), st.none(), st.just("mem_00000001"))
OPS = [*sorted(model.STEPS), "capture", "commit", "annotate", "link", "dismiss", "triage", "odd"]


@st.composite
def hostile_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw rows that name whatever they like, themselves and later ones too."""
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        payload: dict[str, Any] = {"body": "x"}
        for name in draw(
            st.lists(
                st.sampled_from(["commitment", "source", "evidence", "duplicate_of", "target", "memory"]), max_size=3
            )
        ):
            payload[name] = draw(ODD)
        if draw(st.booleans()):
            payload["kind"] = draw(
                st.sampled_from(["validation", "verdict", "selection", "retraction", "note", "finding"])
            )
        if draw(st.booleans()):
            payload["refs"] = draw(LISTS)
        row: dict[str, Any] = {
            "id": draw(st.sampled_from([*IDS, *IDS, "", None])),
            "op": draw(st.sampled_from(OPS)),
            "ts": "2026-01-01T00:00:00Z",
            "actor": "agent:worker",
            "workspace": "w",
            "payload": payload,
        }
        if draw(st.booleans()):
            row["trace"] = {"parent": draw(LISTS), "children": IDS}
        if draw(st.booleans()):
            row["sourceIds"] = draw(LISTS)
        if draw(st.booleans()):
            row["relations"] = draw(
                st.lists(
                    st.one_of(
                        st.fixed_dictionaries(
                            {"type": st.sampled_from(["cites", "contradicts", "parent"]), "targetId": NAMES}
                        ),
                        st.just({"type": 1, "targetId": "mem_00000001"}),
                        st.just("cites"),
                    ),
                    max_size=3,
                )
            )
        if draw(st.integers(0, 3)) == 0:
            row["observationLevel"] = draw(st.sampled_from(["contradiction", "deductive", None]))
        rows.append(row)
    return rows


@settings(max_examples=150, deadline=None)
@given(hostile_rows())
def test_the_graph_and_the_model_agree(values: list[dict[str, Any]]) -> None:
    graph, state = built(values)
    pairs, derived = model.supports(values), model.derivations(values)
    for place in range(len(values)):
        line = place + 1
        assert lines(graph.why(line, depth=FAR, rows=FAR)) == {p + 1 for p in model.reached(pairs, place)} | {line}
        up = model.reached(model.turned(pairs), place)
        assert lines(graph.impact(line, depth=FAR, rows=FAR)) == {p + 1 for p in up} | {line}
        down = model.reached(model.turned(derived), place)
        assert graph.derived_from(line) == sorted(p + 1 for p in down)
    anomalies = {one.line - 1 for one in state.anomalies}
    assert {(one.line - 1, one.name, one.withdrawn) for one in graph.contradictions()} == model.contradictions(
        values, anomalies
    )


@settings(max_examples=50, deadline=None)
@given(hostile_rows(), st.integers(0, 4))
def test_depth_is_the_shortest_way_and_why_is_impact_turned_around(values: list[dict[str, Any]], depth: int) -> None:
    graph, _ = built(values)
    every = range(1, len(values) + 1)
    under = {line: lines(graph.why(line, depth=depth, rows=FAR)) for line in every}
    on = {line: lines(graph.impact(line, depth=depth, rows=FAR)) for line in every}
    assert all((b in under[a]) == (a in on[b]) for a in every for b in every)
    whole = graph.why(1, depth=FAR, rows=FAR)
    assert {place.line for place in whole.places if place.depth <= depth} == under[1]


@pytest.mark.parametrize("direction", ["why", "impact"])
def test_a_row_that_cannot_be_named_can_name(direction: str) -> None:
    ledger = Ledger()
    first = ledger.add("capture")
    ledger.add("capture", id=first, refs=[first])
    graph, _ = built(ledger.rows)
    found = getattr(graph, direction)(1, depth=FAR, rows=FAR)
    assert lines(found) == ({1, 2} if direction == "impact" else {1})
