"""The table against everything a small world can do: each cell reached, or named with the reason why it cannot be."""

from __future__ import annotations

from collections import deque
from typing import Any

import orjson

from deals import moves
from deals.moves import ROLES, message
from troth.deals.machine import COLUMNS, SPEAKERS, STATES, TABLE, TIMERS, is_closed, mermaid, step
from troth.deals.run import Run
from troth.deals.transcript import Entry

Triple = tuple[str, str, str]

# What a small world can say: a message of each column, from whom the sender is asked for.
SAYINGS: dict[str, dict[str, Any]] = {
    "Offer": {"kind": "Offer"},
    "Offer:other_bytes": {"kind": "Offer", "expires_steps": 9},
    "superseded": {"kind": "OfferSupersede", "offer_id": "off_2", "supersedes": "off_1"},
    "Accept": {"kind": "Accept"},
    "Reject": {"kind": "Reject"},
    "EscrowHold": {"kind": "EscrowHold"},
    "EscrowHold:other_amount": {"kind": "EscrowHold", "amount": 9},
    "Refuse": {"kind": "Refuse"},
    "Disclosure": {"kind": "Disclosure"},
    "Verdict:pass": {"kind": "Verdict", "result": "pass"},
    "Verdict:fail": {"kind": "Verdict", "result": "fail"},
    "Verdict:inconclusive": {"kind": "Verdict", "result": "inconclusive"},
    "Settle": {"kind": "Settle"},
    "BreachNotice": {"kind": "BreachNotice", "party": "C", "mode": "alter_terms_silently"},
}

UNREACHED: dict[tuple[str, str], str] = {
    (
        "Proposed",
        "Offer:other_bytes",
    ): "there is no offer yet, so no bytes can differ: whatever comes first opens",
}
"""Cells that no message reaches, with the reason."""


def play(path: tuple[tuple[str, str] | int, ...]) -> Run:
    """The run in which these columns were said, each by a role; a number lets so many steps pass."""
    run = Run()
    now = 0
    for number, one in enumerate(path):
        if isinstance(one, int):
            now += one
            run.advance(now)
            continue
        column, sender = one
        said = dict(SAYINGS[column])
        run.take(Entry({"step": now, "msg": message(number, said.pop("kind"), sender, **said)}))
    return run


def state_of(run: Run) -> str:
    return run.deals["off_1"].state if "off_1" in run.deals else "Proposed"


def explored() -> tuple[dict[Triple, str], set[str], dict[str, tuple[Any, ...]]]:
    """Breadth first over all states: (state, column, sender) -> what came of it, the ends, a way to each state."""
    reached: dict[Triple, str] = {}
    ways: dict[str, tuple[Any, ...]] = {"Proposed": ()}
    ends: set[str] = set()
    waiting = deque(["Proposed"])
    while waiting:
        state = waiting.popleft()
        options: list[Any] = [(column, sender) for column in COLUMNS for sender in ROLES]
        if state in TIMERS:
            options.append(20)
        for option in options:
            way = (*ways[state], option)
            run = play(way)
            after = state_of(run)
            if isinstance(option, tuple):
                deal = run.deals.get("off_1")
                code = deal.illegal.code if deal is not None and deal.illegal is not None else ""
                reached[state, *option] = f"{after} {code}".strip()
            if is_closed(after):
                ends.add(after)
            elif after not in ways:
                ways[after] = way
                waiting.append(after)
    return reached, ends, ways


def expected(state: str, column: str, sender: str) -> str:
    """What the tables say of a triple."""
    kind = SAYINGS[column]["kind"]
    if sender not in SPEAKERS[kind]:
        # An OfferSupersede is judged under its own id first: the other deal takes the blame.
        return state if column == "superseded" else "Closed:protocol_error sender"
    cell = step(state, column)  # type: ignore[arg-type]  # words of the tables
    to = cell.to.replace("…", "C:alter_terms_silently")
    return f"{to} {cell.code or ''}".strip()


def test_every_triple_is_a_cell_of_the_tables():
    reached, _, ways = explored()
    assert set(ways) == set(STATES)
    cells = {(state, column, sender) for state in STATES for column in COLUMNS for sender in ROLES}
    assert set(reached) == cells, "every state meets every message from every role"
    differing = {triple for triple in cells if reached[triple] != expected(*triple)}
    assert {triple[:2] for triple in differing} == set(UNREACHED), differing
    for state, column in UNREACHED:
        # There the first offer opens, as the cell beside it says.
        assert reached[state, column, "C"] == "Offered"


def test_the_cells_reached_by_who_may_speak_are_all_there_are():
    reached, _, _ = explored()
    spoken = {(state, column) for state, column, sender in reached if sender in SPEAKERS[SAYINGS[column]["kind"]]}
    assert spoken == {(state, column) for state, cells in TABLE.items() for column in cells}


def test_no_dead_end_but_closed():
    reached, ends, _ = explored()
    for state in STATES:
        assert any(came.split()[0] != state for (at, _, _), came in reached.items() if at == state)
        assert state == "Proposed" or state in TIMERS, "silence ends every open state"
    assert all(is_closed(timer.to) for timer in TIMERS.values())
    assert ends == {
        *(cell.to for cells in TABLE.values() for cell in cells.values() if is_closed(cell.to) and "…" not in cell.to),
        *(timer.to for timer in TIMERS.values()),
        "Closed:breached(C:alter_terms_silently)",
    }


def test_closed_absorbs_every_message():
    _, _, ways = explored()
    closings = [
        ("Offered", ("Reject", "A")), ("Offered", ("EscrowHold", "C")), ("Offered", 20),
        ("Offered", ("superseded", "C")),
        ("Held", ("Refuse", "A")), ("Held", 20), ("Adjudicating", ("Verdict:fail", "K")), ("Adjudicating", 20),
        ("Adjudicating", ("Verdict:inconclusive", "K")), ("Settling", ("Settle", "C")), ("Settling", 20),
        ("AcceptedPendingHold", ("EscrowHold:other_amount", "C")), ("Held", ("BreachNotice", "A")),
        ("Proposed", ("Accept", "A")),
    ]  # fmt: skip
    for state, closing in closings:
        way = (*ways[state], closing)
        before = play(way)
        end, balances = state_of(before), before.escrow.balances()
        assert is_closed(end)
        for column in COLUMNS:
            for sender in ROLES:
                after = play((*way, (column, sender), 50))
                assert state_of(after) == end, (state, closing, column, sender)
                assert after.escrow.balances() == balances


def test_held_needs_accept_and_then_a_matching_hold():
    to_held = [(state, column) for state, cells in TABLE.items() for column, cell in cells.items() if cell.to == "Held"]
    assert to_held == [("AcceptedPendingHold", "EscrowHold")]
    to_pending = [
        (state, column) for state, cells in TABLE.items() for column, cell in cells.items()
        if cell.to == "AcceptedPendingHold"
    ]  # fmt: skip
    assert to_pending == [("Offered", "Accept")]


def test_the_drawing_shows_every_state_and_end_of_the_tables():
    drawn = mermaid()
    assert drawn.startswith("stateDiagram-v2\n")
    for cells in TABLE.values():
        for cell in cells.values():
            assert cell.to in drawn
    for state, timer in TIMERS.items():
        assert f"    {state} --> " in drawn
        assert timer.to in drawn
    assert moves.SPEAKER.keys() == SPEAKERS.keys()
    assert orjson.loads(orjson.dumps(drawn)) == drawn
