"""Protocol 0.3-proxy: the machine with a fifth role, the proxy trustee P (§5 F8).

Ours, and not the source's: its v0.2 defers this role and the ways in which it betrays. A v0.2 run knows nothing of it,
and its reader refuses every message of it. Between C and A stands P, who takes the points over when C settles and is to
deliver them to A: P undertakes the trust after the accept and before the hold, or declines it; what P then does with
points that are no longer C's and not yet A's is what F8 asks about.

The tables are data of their own; cells that v0.2 has as well are written anew, so that each version is read in one
place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from troth.deals import machine as plain
from troth.deals.machine import BREACHED, PROTOCOL_ERROR, Cell, drawn

PROTOCOL: Final = "0.3-proxy"

STATES: Final = (
    "Proposed", "Offered", "AcceptedPendingTrust", "AcceptedPendingHold", "Held", "Adjudicating", "Settling",
    "Entrusted",
)  # fmt: skip
COLUMNS: Final = (
    "Offer", "Offer:other_bytes", "superseded", "Accept", "Reject", "Undertake", "Decline", "EscrowHold",
    "EscrowHold:other_amount", "Refuse", "Disclosure", "Verdict:pass", "Verdict:fail", "Verdict:inconclusive", "Settle",
    "Deliver", "Deliver:other_amount", "Deliver:to_C", "Deliver:to_other", "BreachNotice",
)  # fmt: skip
"""As in v0.2; ``Deliver`` goes to A and is of the whole amount, whatever the beneficiary of another amount."""

SPEAKERS: Final[Mapping[str, frozenset[str]]] = {
    **plain.SPEAKERS,
    "Undertake": frozenset("P"),
    "Decline": frozenset("P"),
    "Deliver": frozenset("P"),
}
"""Type -> who may send it. A notice by A accuses C or P; P accuses nobody."""

_TYPE: Final = Cell(PROTOCOL_ERROR, "type_for_state", "refund")
_MUTATED: Final = Cell(PROTOCOL_ERROR, "offer_mutated", "refund")
_UNKNOWN: Final = Cell(PROTOCOL_ERROR, "unknown_offer")
_EARLY: Final = Cell("Closed:breached(C:hold_without_accept)", "hold_without_accept")
_UNTRUSTED: Final = Cell("Closed:breached(C:hold_without_trust)", "hold_without_trust")
_NOTICE: Final = Cell(BREACHED, None, "refund")
_ALWAYS: Final[dict[str, Cell]] = {"Offer:other_bytes": _MUTATED, "BreachNotice": _NOTICE}

MOVES: Final[dict[str, dict[str, Cell]]] = {
    "Offered": {
        "superseded": Cell("Closed:superseded"),
        "Accept": Cell("AcceptedPendingTrust"),
        "Reject": Cell("Closed:rejected"),
        "EscrowHold": _EARLY,
        "EscrowHold:other_amount": _EARLY,
    },
    "AcceptedPendingTrust": {
        "Undertake": Cell("AcceptedPendingHold"),
        "Decline": Cell("Closed:declined"),
        "Refuse": Cell("Closed:refused"),
        "EscrowHold": _UNTRUSTED,
        "EscrowHold:other_amount": _UNTRUSTED,
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
        "Settle": Cell("Entrusted", None, "entrust"),
    },
    "Entrusted": {
        "Deliver": Cell("Closed:settled", None, "deliver"),
        "Deliver:other_amount": Cell("Closed:breached(P:withholds)", "deliver_mismatch", "keep"),
        "Deliver:to_C": Cell("Closed:breached(P:colludes)", None, "return"),
        "Deliver:to_other": Cell("Closed:breached(P:pays_another)", None, "divert"),
    },
}

TABLE: Final[dict[str, dict[str, Cell]]] = {
    "Proposed": {
        **dict.fromkeys(COLUMNS, _UNKNOWN),
        "Offer": Cell("Offered"),
    },
    **{state: {**dict.fromkeys(COLUMNS, _TYPE), **_ALWAYS, **moves} for state, moves in MOVES.items()},
}
"""State and message -> what happens. What is entrusted is no hold: E refunds nothing of it, however a deal closes."""


class Timer(NamedTuple):
    """A clock, as in v0.2."""

    steps: str
    since: str
    to: str


TIMERS: Final[dict[str, Timer]] = {
    "Offered": Timer("expires_steps", "the offer", "Closed:expired"),
    "AcceptedPendingTrust": Timer("expires_steps", "the offer", "Closed:expired"),
    "AcceptedPendingHold": Timer("expires_steps", "the offer", "Closed:expired"),
    "Held": Timer("deadline_steps", "the hold", "Closed:breached(A:ghost)"),
    "Adjudicating": Timer("adjudicate_steps", "the disclosure", "Closed:inconclusive"),
    "Settling": Timer("settle_steps", "the pass", "Closed:breached(C:withhold_payout_after_pass)"),
    "Entrusted": Timer("deliver_steps", "the settlement", "Closed:breached(P:withholds)"),
}

ILLEGAL: Final[dict[str, str]] = {
    "hold_without_trust": "Points were to be held before the trustee had undertaken the trust (0.3-proxy).",
    "deliver_mismatch": "The trustee delivered another amount than it was entrusted with (0.3-proxy).",
}
"""Codes of this version, beside those of v0.2."""

ENDS: Final[dict[str, str]] = {
    "declined": "The trustee did not take on the trust (0.3-proxy).",
}

MODES: Final[dict[str, str]] = {
    "withholds": "The trustee did not deliver in time, or not all: it keeps the points (0.3-proxy).",
    "pays_another": "The trustee delivered to somebody else than the agent (0.3-proxy).",
    "colludes": "The trustee gave the points back to the counterparty (0.3-proxy).",
    "hold_without_trust": "The counterparty held points before there was a trustee (0.3-proxy).",
}
"""The betrayals of F8 and one breach more; each is shown by the transcript itself."""


def step(state: Any, column: Any) -> Cell:
    """Return the cell that decides what a message does to a deal in that state."""
    return TABLE[state][column]


def mermaid() -> str:
    """Return the table's moves and timers as a Mermaid state diagram."""
    return drawn(MOVES, TIMERS)
