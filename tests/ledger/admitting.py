"""Asking for admission in tests: one world of commitments in every state, and the answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ledger.building import ZERO, Ledger
from troth.core.errors import DoesNotHold, TrothError
from troth.ledger.codes import CODES
from troth.ledger.operations import Candidate, admit
from troth.ledger.replay import State

NOW = datetime(2026, 5, 4, 3, 2, 1, 999_999, UTC)
ASKED = ("agent:worker", "human:reviewer")


def digits(count: int) -> str:
    return "ab" * count


def ask(candidate: Candidate, state: State, **settings_: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "chain_ok": True,
        "head_hash": ZERO,
        "workspace": "w",
        "now": NOW,
        "random_hex": digits,
    }
    return admit(candidate, state, **{**defaults, **settings_})


def outcome(candidate: Candidate, state: State, **settings_: Any) -> tuple[str, Any] | None:
    """Return code and detail of the refusal, ``None`` when it is admitted."""
    try:
        ask(candidate, state, **settings_)
    except TrothError as raised:
        refusal = raised
    else:
        return None
    assert refusal.code in CODES
    assert isinstance(refusal, DoesNotHold) == (refusal.code == "E_CHAIN_BROKEN")
    assert refusal.exit_code == (1 if refusal.code == "E_CHAIN_BROKEN" else 2)
    return refusal.code, refusal.detail


def candidate(op: Any, actor: Any = "agent:worker", members: dict[str, Any] | None = None, **payload: Any) -> Candidate:
    return Candidate(op=op, actor=actor, payload={"body": "b", **payload}, **(members or {}))


class World:
    """One commitment in each state, and what can be named beside it."""

    def __init__(self) -> None:
        ledger = self.ledger = Ledger()
        self.seen = ledger.add("capture", "human:reviewer", source_key="key-1")
        self.note = ledger.add("annotate", target=self.seen)
        self.open, self.claimed, self.in_review, self.closed = (
            ledger.add("commit", "human:reviewer", source=self.seen) for _ in range(4)
        )
        for work in (self.claimed, self.in_review, self.closed):
            self.claim = ledger.add("claim", commitment=work)
        self.submit = ledger.add("submit", commitment=self.in_review, evidence=self.seen)
        ledger.add("close", commitment=self.closed, evidence=self.seen)
        self.bad_commit = ledger.add("commit", source="nobody")
        _, self.state = ledger.run()


WORLD = World()
STATE = WORLD.state
BAD_VALUE = ("E_CONSTRAINT_VIOLATED", "bad_value")
BAD_STATE = ("E_CONSTRAINT_VIOLATED", "bad_state")
ABSENT = ("E_REF_NOT_FOUND", "absent")
WRONG = ("E_REF_NOT_FOUND", "wrong_kind")
