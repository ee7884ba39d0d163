"""One deal's outcome: a row of plain scalars, and nothing that the final record or the oracle does not show."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """What one played deal came to, as the oracle sees it: no party's view holds any of this.

    ``satisfied`` is the world's truth about the obligation (the thing itself was disclosed), whatever the checklist
    said; ``real`` is false when the offer or its hold was forged. Points are whole; ``loss_a`` is what A gave up that a
    real deal would have paid: the cash of a disclosure made and not paid for, 0 otherwise.
    """

    suite: str
    """The suite's name (``F1``, ``F-D′``, ``B3``), empty outside one."""
    arm: str
    """The arm of the suite (``dishonest``, ``twin``, ``cash``)."""
    seed: int
    """The run's seed, from 0; all randomness derives from it, ``suite``, ``arm`` and ``index``."""
    index: int  # type: ignore[assignment]  # hides the search of a tuple, which nobody wants of a row
    """Which deal of the arm, from 0; paired arms share it."""
    c_policy: str
    a_policy: str
    k_policy: str
    offer_kind: str
    """What was offered: ``cash``, ``object`` or ``both``."""
    real: bool
    state: str
    """How the deal ended, the word behind ``Closed:``, such as ``settled`` or ``breached(A:ghost)``."""
    accepted: bool
    disclosed: bool
    result: str
    """The verdict, ``pass``, ``fail`` or ``inconclusive``; empty when there was none."""
    satisfied: bool
    paid: int
    """Points released to A."""
    refunded: int
    """Points given back to C."""
    loss_a: int
    steps: int
    """The step of the deal's end, counted from its offer's."""
    note: str
    """What the state does not tell, joined by commas: events of the log (``late_message``,
    ``out_of_honesty_channel*3``), the code of an illegal message, ``forged_hold_shown``, ``budget_exhausted``."""
