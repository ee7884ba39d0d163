"""The machine of a deal as tables, one function that steps it and one that draws it (source §4, §3).

Each cell says what a message does that its sender may send. ``Proposed`` is the state of an id under which there is no
offer yet; a closed deal absorbs everything and has no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal["Proposed", "Offered", "AcceptedPendingHold", "Held", "Adjudicating", "Settling"]
Column: TypeAlias = Literal[
    "Offer", "Offer:other_bytes", "superseded", "Accept", "Reject", "EscrowHold", "EscrowHold:other_amount", "Refuse",
    "Disclosure", "Verdict:pass", "Verdict:fail", "Verdict:inconclusive", "Settle", "BreachNotice",
]  # fmt: skip
Points: TypeAlias = Literal["", "lock", "pay", "refund", "entrust", "deliver", "keep", "return", "divert"]

STATES: Final[tuple[State, ...]] = ("Proposed", "Offered", "AcceptedPendingHold", "Held", "Adjudicating", "Settling")
COLUMNS: Final[tuple[Column, ...]] = (
    "Offer", "Offer:other_bytes", "superseded", "Accept", "Reject", "EscrowHold", "EscrowHold:other_amount", "Refuse",
    "Disclosure", "Verdict:pass", "Verdict:fail", "Verdict:inconclusive", "Settle", "BreachNotice",
)  # fmt: skip
"""``Offer`` is an Offer or OfferSupersede under its own id (the same bytes, once there is one),
``superseded`` an OfferSupersede for the offer that it replaces."""

SPEAKERS: Final[dict[str, frozenset[str]]] = {
    "Offer": frozenset("C"),
    "OfferSupersede": frozenset("C"),
    "Accept": frozenset("A"),
    "Reject": frozenset("A"),
    "EscrowHold": frozenset("C"),
    "Refuse": frozenset("A"),
    "Disclosure": frozenset("A"),
    "Verdict": frozenset("K"),
    "Settle": frozenset("C"),
    "BreachNotice": frozenset("CA"),
}
"""Type -> who may send it (§1). A notice by A accuses C only."""

CLOSED: Final = "Closed:"
PROTOCOL_ERROR: Final = "Closed:protocol_error"
BREACHED: Final = "Closed:breached(…)"
"""A notice closes as ``breached(party:mode)``, in its own words."""


class Cell(NamedTuple):
    """One cell: the state reached, why the message was illegal (if it was), and what becomes of the points.

    A hold that stood when a deal closes without ``pay`` goes back to C.
    """

    to: str
    code: str | None = None
    points: Points = ""


_TYPE = Cell(PROTOCOL_ERROR, "type_for_state", "refund")
_MUTATED = Cell(PROTOCOL_ERROR, "offer_mutated", "refund")
_UNKNOWN = Cell(PROTOCOL_ERROR, "unknown_offer")
_EARLY = Cell("Closed:breached(C:hold_without_accept)", "hold_without_accept")
_NOTICE = Cell(BREACHED, None, "refund")
_ALWAYS: Final[dict[Column, Cell]] = {"Offer:other_bytes": _MUTATED, "BreachNotice": _NOTICE}

_MOVES: Final[dict[State, dict[Column, Cell]]] = {
    "Offered": {
        "superseded": Cell("Closed:superseded"),
        "Accept": Cell("AcceptedPendingHold"),
        "Reject": Cell("Closed:rejected"),
        "EscrowHold": _EARLY,
        "EscrowHold:other_amount": _EARLY,
    },
    "AcceptedPendingHold": {
        "EscrowHold": Cell("Held", None, "lock"),
        "EscrowHold:other_amount": Cell("Closed:breached(C:hold_mismatch)", "hold_mismatch"),
        "Refuse": Cell("Closed:refused"),
    },
    "Held": {
        "Disclosure": Cell("Adjudicating"),
        "Refuse": Cell("Closed:refused", None, "refund"),
    },
    "Adjudicating": {
        "Verdict:pass": Cell("Settling"),
        "Verdict:fail": Cell("Closed:breached(A:fail)", None, "refund"),
        "Verdict:inconclusive": Cell("Closed:inconclusive", None, "refund"),
    },
    "Settling": {
        "Settle": Cell("Closed:settled", None, "pay"),
    },
}

TABLE: Final[dict[State, dict[Column, Cell]]] = {
    "Proposed": {
        **dict.fromkeys(COLUMNS, _UNKNOWN),
        "Offer": Cell("Offered"),
    },
    **{state: {**dict.fromkeys(COLUMNS, _TYPE), **_ALWAYS, **moves} for state, moves in _MOVES.items()},
}
"""State and message -> what happens. ``Offer:other_bytes`` under ``Proposed`` cannot be: there is no other."""


class Timer(NamedTuple):
    """A clock: how many steps (a member of the offer or a setting), counted from what, and how the deal ends."""

    steps: Literal["expires_steps", "deadline_steps", "adjudicate_steps", "settle_steps"]
    since: str
    to: str


TIMERS: Final[dict[State, Timer]] = {
    "Offered": Timer("expires_steps", "the offer", "Closed:expired"),
    "AcceptedPendingHold": Timer("expires_steps", "the offer", "Closed:expired"),
    "Held": Timer("deadline_steps", "the hold", "Closed:breached(A:ghost)"),
    "Adjudicating": Timer("adjudicate_steps", "the disclosure", "Closed:inconclusive"),
    "Settling": Timer("settle_steps", "the pass", "Closed:breached(C:withhold_payout_after_pass)"),
}
"""State -> its clock; a timer fires before a message of the same step (§3)."""

PLAIN_WORDS: Final[dict[str, frozenset[tuple[str, str]]]] = {
    "Closed:breached(A:ghost)": frozenset({("A", "no_disclosure"), ("A", "accept_then_ghost")}),
    "Closed:breached(A:fail)": frozenset({("A", "fake_disclosure")}),
}
"""An end that a timer or a verdict made -> what a notice may call it (§7 Machine)."""


def step(state: State, column: Column) -> Cell:
    """Return the cell that decides what a message does to a deal in that state."""
    return TABLE[state][column]


def breached(party: str, mode: str) -> str:
    """Return the end that a notice makes."""
    return f"Closed:breached({party}:{mode})"


def confirms(end: str, party: str, mode: str) -> bool:
    """Tell whether a notice names the breach in which a deal ended."""
    return end == breached(party, mode) or (party, mode) in PLAIN_WORDS.get(end, ())


def is_closed(state: str) -> bool:
    """Tell whether a state is terminal."""
    return state.startswith(CLOSED)


_DRAWN: Final = {
    "offer_mutated": "other bytes under the same id",
    "type_for_state": "a message that has no place here",
}


def mermaid() -> str:
    """Return the table's moves and timers as a Mermaid state diagram; what leads to an error is drawn once."""
    return drawn(_MOVES, TIMERS)


def drawn(table: Mapping[Any, Mapping[Any, Cell]], timers: Mapping[Any, Any]) -> str:
    """Return moves and timers as a Mermaid state diagram.

    Args:
        table: state -> column -> cell, without what is the same in every state.
        timers: state -> its clock.
    """
    lines = ["stateDiagram-v2", "    [*] --> Offered: Offer"]
    names: dict[str, str] = {}
    for state, moves in table.items():
        arrows: dict[str, list[str]] = {}
        for column, cell in moves.items():
            arrows.setdefault(cell.to, []).append(column.replace(":", " "))
        timer = timers[state]
        arrows.setdefault(timer.to, []).append(f"{timer.steps} after {timer.since}")
        for to, labels in arrows.items():
            lines.append(f"    {state} --> {_node(to, names)}: {' or '.join(labels)}")
    lines.append(f"    AnyOpen --> {_node(BREACHED, names)}: BreachNotice")
    lines.extend(f"    AnyOpen --> {_node(PROTOCOL_ERROR, names)}: {text}" for text in _DRAWN.values())
    lines.extend(f"    {name} --> [*]" for name in names.values())
    heads = [f'    state "{to}" as {name}' for to, name in names.items()]
    heads.append('    state "any open state" as AnyOpen')
    return "\n".join([lines[0], *heads, *lines[1:]]) + "\n"


def _node(state: str, names: dict[str, str]) -> str:
    if not is_closed(state):
        return state
    return names.setdefault(state, f"closed{len(names) + 1}")
