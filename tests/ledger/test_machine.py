"""The state table, cell by cell, against the text of the ledger spec's §6."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ledger.building import Ledger
from troth.ledger.machine import COLUMNS, STATES, TABLE, mermaid, step, who
from troth.ledger.replay import Commitment

# OWNER! stands for E_NOT_OWNER and CLOSED! for E_ALREADY_CLOSED, so that the lines stay short.
SPEC = """
| open, anyone | claimed, owner := actor | OWNER! | OWNER! | bad_state | bad_state | OWNER!; duplicate: closed |
| claimed, owner | accepted, no change | open, owner := null | in_review | bad_state | bad_state | closed |
| claimed, other | E_ALREADY_CLAIMED | OWNER! | OWNER! | bad_state | bad_state | OWNER! |
| in_review, owner | bad_state | bad_state | bad_state | closed | claimed | bad_state |
| in_review, other | E_ALREADY_CLAIMED | OWNER! | OWNER! | closed | claimed | OWNER! |
| closed, anyone | CLOSED! | CLOSED! | CLOSED! | CLOSED! | claimed; open if no owner | CLOSED! |
"""
OPS = ("claim", "release", "submit", "approve", "reopen", "close")


def spec_cells() -> list[tuple[str, str, str, str]]:
    """Return (state, role, column, text); a close without another rule for duplicates holds for both columns."""
    cells = []
    text_of_spec = SPEC.replace("OWNER!", "E_NOT_OWNER").replace("CLOSED!", "E_ALREADY_CLOSED")
    for row in text_of_spec.strip().splitlines():
        head, *texts = [text.strip() for text in row.strip("|").split("|")]
        state, role = head.split(", ")
        for op, text in zip(OPS, texts, strict=True):
            plain, _, duplicate = text.partition("; duplicate: ")
            cells.append((state, role, op, plain))
            if op == "close":
                cells.append((state, role, "duplicate", duplicate or plain))
    return cells


CELLS = spec_cells()


def prepared(state: str, role: str) -> tuple[Ledger, str, str]:
    """Return a ledger with a commitment in that state, its id, and the actor of that role."""
    ledger = Ledger()
    seen = ledger.add("capture")
    work = ledger.add("commit", source=seen)
    if state != "open":
        ledger.add("claim", "agent:owner", commitment=work)
    if state == "in_review":
        ledger.add("submit", "agent:owner", commitment=work, evidence=seen)
    if state == "closed":
        ledger.add("close", "agent:owner", commitment=work, evidence=seen)
    return ledger, work, {"owner": "agent:owner", "other": "agent:other", "anyone": "agent:owner"}[role]


def attempt(ledger: Ledger, column: str, work: str, actor: str) -> Commitment:
    """Append one row of that column and return the commitment as replay leaves it."""
    members: dict[str, Any] = {"commitment": work}
    if column in ("submit", "close"):
        members["evidence"] = ledger.rows[0]["id"]
    if column == "duplicate":
        members["duplicate_of"] = work
    ledger.add("close" if column == "duplicate" else column, actor, **members)
    return ledger.state().commitments[work]


def test_the_table_is_complete() -> None:
    assert len(CELLS) == 6 * 7
    assert {(state, role) for state, role, _, _ in CELLS} == set(TABLE)
    for row in TABLE.values():
        assert set(row) == set(COLUMNS)


@pytest.mark.parametrize(("state", "role", "column", "text"), CELLS)
def test_every_cell(state: str, role: str, column: str, text: str) -> None:
    cell = TABLE[state, role][column]
    if text.startswith("E_"):
        assert (cell.code, cell.detail, cell.to) == (text, None, None)
    elif text == "bad_state":
        assert (cell.code, cell.detail, cell.to) == ("E_CONSTRAINT_VIOLATED", "bad_state", None)
    else:
        expected = {
            "claimed, owner := actor": ("claimed", "take"),
            "accepted, no change": ("claimed", "keep"),
            "open, owner := null": ("open", "drop"),
            "in_review": ("in_review", "submit"),
            "claimed": ("claimed", "reopen"),
            "claimed; open if no owner": ("claimed", "reopen"),
            "closed": ("closed", "approve" if column == "approve" else "close"),
        }[text]
        assert (cell.to, cell.effect) == expected
        assert cell.code is None


@pytest.mark.parametrize(("state", "role", "column", "text"), CELLS)
def test_replay_follows_every_cell(state: str, role: str, column: str, text: str) -> None:
    ledger, work, actor = prepared(state, role)
    before = ledger.state().commitments[work]
    after = attempt(ledger, column, work, actor)
    anomalies = ledger.state().anomalies
    if text.startswith("E_") or text == "bad_state":
        code, detail = (text, None) if text.startswith("E_") else ("E_CONSTRAINT_VIOLATED", "bad_state")
        assert [(a.line, a.code, a.detail) for a in anomalies] == [(len(ledger.rows), code, detail)]
        assert after == before
    else:
        assert anomalies == []
        assert after.state == text.split(",")[0].split(";")[0].replace("accepted", "claimed")
        assert after.owner == (None if column == "release" else actor if column == "claim" else before.owner)


@pytest.mark.parametrize("actor", ["agent:owner", "agent:other"])
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("state", ["open", "closed"])
def test_anyone_means_anyone(state: str, column: Any, actor: str) -> None:
    one = step(state, "agent:owner", actor, column)
    assert one == step(state, "agent:owner", "human:third", column)


def test_who() -> None:
    assert who("claimed", "agent:a", "agent:a") == "owner"
    assert who("claimed", "agent:a", "agent:A") == "other"
    assert who("in_review", "agent:a", "agent:a") == "owner"
    assert who("open", None, "agent:a") == who("closed", "agent:a", "agent:a") == "anyone"


def test_reopening_without_an_owner_leads_to_open() -> None:
    ledger = Ledger()
    seen = ledger.add("capture")
    work, other = ledger.add("commit", source=seen), ledger.add("commit", source=seen)
    ledger.add("close", commitment=work, duplicate_of=other)
    ledger.add("reopen", commitment=work)
    record = ledger.state().commitments[work]
    assert (record.state, record.owner, record.reopen_count) == ("open", None, 1)
    assert not record.reopened


def test_the_drawing_shows_exactly_the_moves() -> None:
    drawn = mermaid().splitlines()
    assert drawn[0] == "stateDiagram-v2"
    arrows = {tuple(line.strip().split(": ")[0].split(" --> ")) for line in drawn[1:] if "-->" in line}
    moves = {(state, cell.to) for (state, _), row in TABLE.items() for cell in row.values() if cell.to}
    assert arrows == moves | {("[*]", "open"), ("closed", "open")}
    assert "    claimed --> in_review: submit by owner" in drawn
    assert "    in_review --> closed: approve" in drawn


@pytest.mark.parametrize("length", [3])
def test_every_short_history_keeps_the_invariants(length: int) -> None:
    """All sequences of rows by two actors from a fresh commitment."""
    steps = list(itertools.product(COLUMNS, ("agent:owner", "agent:other")))
    for history in itertools.product(steps, repeat=length):
        state, owner = "open", None
        for column, actor in history:
            cell = step(state, owner, actor, column)
            if cell.to is None:
                assert cell.code is not None
                continue
            owner = {"take": actor, "drop": None}.get(cell.effect, owner)
            state = cell.to
            assert state in STATES
            assert (owner is None) <= (state in ("open", "closed"))
            assert state != "in_review" or owner is not None
