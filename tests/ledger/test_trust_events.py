"""Trust events: which causes are told, in which order, with which words (ledger spec §10 [D34])."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import Ledger
from ledger.trusting import ledger_of, read, scored
from troth.ledger.confidence import trust_of
from troth.ledger.rows import row_of
from troth.ledger.trust_account import account
from troth.ledger.trust_edges import DOUBT
from troth.ledger.trust_events import PATH_SHOWN, Event, events_of
from troth.ledger.trust_graph import graph_of, mermaid, tree

WORKER, OTHER, THIRD = "agent:worker", "agent:other", "agent:third"
AT = datetime(2026, 3, 1, tzinfo=UTC)


def relation(kind: str, target: str) -> dict[str, Any]:
    return {"relations": [{"type": kind, "targetId": target}]}


def verdict(ledger: Ledger, target: str, run: str, word: str) -> str:
    meta = {"run": run, "verdict": word}
    return ledger.add("annotate", "system:arena", kind="verdict", target=target, meta=meta)


def told(ledger: Ledger, identifier: str) -> list[tuple[str, str | None]]:
    return [(event.type, event.cause) for event in events_of(read(ledger), identifier)]


def test_causes_come_in_file_order_and_the_first_support_is_a_citation() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    first = verdict(ledger, seen, "a", "SURVIVED")
    doubt = ledger.add("capture", OTHER, **relation("contradicts", seen))
    support = ledger.add("capture", OTHER, **relation("cites", seen))
    further = ledger.add("capture", THIRD, **relation("cites", seen))
    lost = verdict(ledger, seen, "b", "COMPROMISED")
    verdict(ledger, seen, "c", "INCONCLUSIVE")  # nothing changed: no event
    assert told(ledger, seen) == [
        ("reinforcement_update", first),
        ("contradiction_detected", doubt),
        ("citation_added", support),
        ("reinforcement_update", further),
        ("contradiction_detected", lost),
    ]


def test_of_one_actor_the_strongest_row_is_the_cause() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    ledger.add("capture", OTHER, trust=scored(0.2), **relation("cites", seen))
    strong = ledger.add("capture", OTHER, trust=scored(0.9), **relation("cites", seen))
    ledger.add("capture", OTHER, trust=scored(0.9), **relation("cites", seen))
    assert told(ledger, seen) == [("citation_added", strong)]


def test_one_s_own_support_is_no_event() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    ledger.add("capture", WORKER, **relation("cites", seen))
    assert told(ledger, seen) == []


def test_a_retraction_takes_everything_and_what_comes_behind_it_nothing_back() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    ledger.add("annotate", WORKER, kind="retraction", target=seen)
    ledger.add("capture", OTHER, **relation("cites", seen))
    events = events_of(read(ledger), seen)
    assert [(event.old, event.new) for event in events] == [(0.5, 0.0), (0.0, 0.0)]
    assert events[0].reason == "retracted by its own actor"


@pytest.mark.parametrize(
    ("kind", "words"),
    [("cites", "cited by agent:other"), ("supports", "supported by agent:other"),
     ("contradicts", "contradicted by agent:other")],
)  # fmt: skip
def test_reasons_name_who_and_how(kind: str, words: str) -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    cause = ledger.add("capture", OTHER, ts="2026-02-03T04:05:06Z", **relation(kind, seen))
    (event,) = events_of(read(ledger), seen)
    assert event.reason.startswith(words)
    assert (event.signal, event.cause, event.ts) == (seen, cause, "2026-02-03T04:05:06Z")


def test_the_json_has_the_specification_s_names() -> None:
    event = Event("mem_1", "citation_added", 0.5, 0.6, "mem_2", "because", "2026-01-01T00:00:00Z")
    assert event.as_json() == {
        "signalId": "mem_1",
        "type": "citation_added",
        "old": 0.5,
        "new": 0.6,
        "causeId": "mem_2",
        "reason": "because",
        "ts": "2026-01-01T00:00:00Z",
    }


def test_decay_is_told_when_it_is_asked_for() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER, ts="2026-02-01T00:00:00Z")
    assert told(ledger, seen) == []
    (event,) = events_of(read(ledger), seen, AT)
    assert (event.type, event.cause, event.ts) == ("decay_applied", seen, "2026-02-01T00:00:00Z")
    assert event.new == pytest.approx(0.5 * 2 ** (-28 / 90))
    assert events_of(read(ledger), seen, datetime(2026, 1, 1, tzinfo=UTC)) == []


def chain_of(ledger: Ledger, base: str, length: int) -> list[str]:
    names = [base]
    for _ in range(length):
        names.append(ledger.add("capture", WORKER, **relation("cites", names[-1])))
    return names


def test_a_cascade_names_its_path_and_its_root() -> None:
    ledger = Ledger()
    names = chain_of(ledger, ledger.add("capture", WORKER), 4)
    ledger.add("capture", OTHER, trust=scored(0.1), **relation("contradicts", names[0]))
    strongest = ledger.add("capture", THIRD, trust=scored(0.9), **relation("contradicts", names[0]))
    (event,) = events_of(read(ledger), names[-1])
    assert (event.type, event.cause) == ("contradiction_detected", strongest)
    assert event.reason.startswith("cascade " + " -> ".join(reversed(names)))


def test_the_path_ends_where_more_was_lost_by_itself() -> None:
    ledger = Ledger()
    names = chain_of(ledger, ledger.add("capture", WORKER), 2)
    ledger.add("capture", OTHER, trust=scored(0.1), **relation("contradicts", names[0]))
    doubt = ledger.add("capture", OTHER, trust=scored(1), **relation("contradicts", names[1]))
    events = events_of(read(ledger), names[2])
    assert [event.cause for event in events] == [doubt]
    assert events[0].reason.startswith(f"cascade {names[2]} -> {names[1]}:")


def test_a_compromised_or_retracted_root_is_named() -> None:
    for last in ("verdict", "retraction"):
        ledger = Ledger()
        names = chain_of(ledger, ledger.add("capture", WORKER), 1)
        if last == "verdict":
            cause = verdict(ledger, names[0], "r", "COMPROMISED")
        else:
            cause = ledger.add("annotate", WORKER, kind="retraction", target=names[0])
        assert told(ledger, names[1]) == [("contradiction_detected", cause)]


def test_a_very_long_path_is_shortened_in_words() -> None:
    ledger = Ledger()
    names = chain_of(ledger, ledger.add("capture", WORKER), 40)
    ledger.add("annotate", WORKER, kind="retraction", target=names[0])
    (event,) = events_of(read(ledger), names[20])
    assert event.reason.count(" -> ") == PATH_SHOWN
    assert "9 more" in event.reason
    assert names[0] in event.reason


def test_a_cause_without_id_or_with_a_used_one() -> None:
    ledger = Ledger()
    seen = ledger.add("capture", WORKER)
    ledger.add("capture", OTHER, envelope={"id": None}, **relation("contradicts", seen))
    ledger.add("capture", THIRD, envelope={"id": seen, "ts": "2026-02-03T04:05:06Z"}, **relation("contradicts", seen))
    events = events_of(read(ledger), seen)
    assert [(event.cause, event.ts is None) for event in events] == [(None, False), (seen, False)]
    assert events[1].ts == "2026-02-03T04:05:06Z"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([0.0, 0.2]))
def test_every_signal_has_an_account_and_a_drawing(seed: int, size: int, oddity: float) -> None:
    ledger = ledger_of(seed, size, oddity)
    rows = [row_of(number, row) for number, row in enumerate(ledger.rows, start=1)]
    trust = trust_of(rows)
    for name, standing in trust.standings():
        found = account(trust, rows[trust.line_of(name) - 1], AT)
        assert found.standing == standing
        assert found.asserted.value == standing.asserted
        assert found.current == pytest.approx(found.as_json()["events"][-1]["new"] if found.events else found.current)
        if found.parts:
            assert sum(part.product for part in found.parts) == pytest.approx(found.asserted.recomputed, abs=6e-5)
        around = graph_of(trust, name)
        assert {edge.citer for edge in around.edges} <= set(around.lines)
    whole = graph_of(trust)
    doubts = sum(edge.kind == DOUBT for edge in whole.edges)
    drawn = list(tree(whole))
    assert len([line for line in drawn if "─" in line]) == len(whole.edges)
    assert sum("contradicts" in line or "retraction" in line for line in drawn) == doubts
    assert len(list(mermaid(whole))) == 1 + len(whole.lines) + len(whole.edges)
