"""A run: the lines of a transcript in their order, one machine for each offer, the log and the books (§3, §7).

For each line, in this order (§7 Order for a line): (1) timers; (2) a repeated message; (3) an offer outside the
honesty channel; (4) a message to a closed deal; (5) the codes of an illegal message, the first that applies; (6) the
move.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Any, ClassVar, Final, NamedTuple

from troth.deals.escrow import Escrow
from troth.deals.machine import (
    PROTOCOL_ERROR,
    SPEAKERS,
    TIMERS,
    Cell,
    Column,
    breached,
    confirms,
    step,
)
from troth.deals.messages import (
    DEAL_SHAPED,
    MAX_COUNT,
    TYPES,
    Accept,
    BreachNotice,
    Disclosure,
    EscrowHold,
    Malformed,
    Message,
    Offer,
    OfferSupersede,
    Refuse,
    Reject,
    Settle,
    Verdict,
    is_in_channel,
    read_canonical,
    read_message,
)
from troth.deals.snapshots import Snapshot, canonical, snapshot, trimmed
from troth.deals.transcript import Entry

SHORT: Final = 320
"""Longest form of a message that is kept whole, in bytes; of longer ones the SHA-256 is."""

BUDGET_EXHAUSTED: Final = "budget_exhausted"

_USED: Final = "$.msg_id: used before, with other bytes"


class Clocks(NamedTuple):
    """The clocks that no offer sets, in steps; ``settle_steps`` is the offer's ``deadline_steps`` unless set."""

    adjudicate_steps: int = 2
    settle_steps: int | None = None


DEFAULT_CLOCKS: Final = Clocks()


class Illegal(NamedTuple):
    """The message that closed a deal as illegal: its line, its code, and for people what was found."""

    line: int
    code: str
    told: str | None = None


class Deal:
    """One offer's machine; ``state`` is as the answer writes it, ``due`` the step at which its timer fires."""

    __slots__ = (
        "closed",
        "disclosure",
        "due",
        "granted",
        "history",
        "illegal",
        "note",
        "offer",
        "offer_id",
        "offered_at",
        "paid",
        "refunded",
        "snapshots",
        "state",
        "steps",
        "verdict",
    )

    def __init__(self, offer_id: str) -> None:
        self.offer_id = offer_id
        self.state: str = "Proposed"
        self.history: list[str] = []
        self.steps: list[int] = []
        self.illegal: Illegal | None = None
        self.offer: Offer | OfferSupersede | None = None
        self.offered_at = 0
        self.due: int | None = None
        self.snapshots: list[Snapshot] = []
        self.disclosure: Disclosure | None = None
        self.verdict: Verdict | None = None
        self.granted: tuple[str, ...] = ()
        self.paid = 0
        self.refunded = 0
        self.note: str | None = None
        self.closed = False


class Event(NamedTuple):
    """One entry of the log."""

    line: int
    event: str


class Move(NamedTuple):
    """A state reached: by whose deal, at which step, and by which line; ``None`` for a timer."""

    offer_id: str
    state: str
    step: int
    line: int | None


class Run:
    """What a transcript comes to, line by line.

    What reads, judges and times messages are attributes of the class, which another version of the protocol replaces.

    Args:
        clocks: how long K and C may take.
        trace: takes every move, for whoever draws them.
    """

    protocol: ClassVar[str] = "0.2"
    timers: ClassVar[Mapping[Any, Any]] = TIMERS
    _read: staticmethod[[Any], Message] = staticmethod(read_message)
    _step: staticmethod[[Any, Any], Cell] = staticmethod(step)

    def __init__(self, clocks: Clocks = DEFAULT_CLOCKS, trace: list[Move] | None = None) -> None:
        self.clocks = clocks
        self.trace = trace
        self.deals: dict[str, Deal] = {}
        self.log: list[Event] = []
        self.escrow = Escrow()
        self.now = 0
        self.line = 0
        self.ended = False
        self._seen: dict[str, bytes | set[bytes]] = {}
        self._timers: list[tuple[int, int, Deal]] = []
        self._armed = 0

    # Lines ---------------------------------------------------------------------------------------------------------

    def take(self, entry: Entry) -> None:
        """Handle the next line."""
        self.line += 1
        value, flaw = entry.value, entry.flaw
        if type(value) is not dict:
            self._log("malformed")
            return
        at = value.get("step")
        if type(at) is not int or not self.now <= at <= MAX_COUNT:
            flaw = flaw or "$.step: goes back, or is no integer from 0"
        else:
            self.advance(at)
        if self.ended:
            flaw = flaw or "$: a line after the end"
        if len(value) != 2:
            flaw = flaw or "$: not the two members of a line"
        if "msg" in value:
            self._message(value["msg"], flaw, entry.form)
        elif flaw is None and value.get("end") is True:
            self.ended = True
        else:
            self._log("malformed")

    def advance(self, to: int) -> None:
        """Let time pass to a step, firing every timer due at or before it, the earliest first."""
        self.now = to
        while self._timers and self._timers[0][0] <= to:
            due, _, deal = heappop(self._timers)
            if deal.due == due:  # else an older timer of that deal
                self._close(deal, self.timers[deal.state].to, "refund", due, by_timer=True)

    def is_used(self, msg_id: str) -> bool:
        """Tell whether a message used up this id."""
        return msg_id in self._seen

    def exhaust(self) -> None:
        """Close every open deal because the run's budget of steps ran out (§3 invariant 4)."""
        for deal in self.deals.values():
            if not deal.closed:
                deal.note = BUDGET_EXHAUSTED
                self._close(deal, PROTOCOL_ERROR, "refund", self.now)

    def _log(self, event: str) -> None:
        self.log.append(Event(self.line, event))

    # Messages ------------------------------------------------------------------------------------------------------

    def _message(self, value: Any, flaw: str | None, form: bytes | None) -> None:
        if type(value) is not dict:
            self._log("malformed")
            return
        # (2)
        name = value.get("msg_id")
        if type(name) is str and name:
            known = self._repeated(name, trimmed(canonical(value)) if form is None else form)
            if known is None:
                self._log("duplicate_message")
                return
            if known:
                flaw = flaw or _USED
        # (3)
        if value.get("type") in DEAL_SHAPED and not is_in_channel(value):
            self._log("out_of_honesty_channel")
            return
        named = value.get("offer_id")
        if type(named) is not str or not named:
            self._log("malformed")
            return
        deal = self.deals.get(named)
        # (4)
        if deal is not None and deal.closed:
            confirmed = flaw is None and self._confirms(value, deal.state)
            self._log("breach_confirmed" if confirmed else "late_message")
            return
        # (5) malformed
        if flaw is not None:
            self._illegal(named, "malformed", flaw)
            return
        try:
            message = self._read(value)
        except Malformed as fault:
            self._illegal(named, "malformed", str(fault))
            return
        self._understood(message, deal, value)

    def hear(self, at: int, value: dict[str, Any], form: bytes) -> bool:
        """Handle a message just written, in one reading of its bytes; ``False``, and nothing done, where it takes more.

        What comes of it is what :meth:`take` makes of its line: the rules are the same, in the same order, and a
        message in which anything is amiss is left to it.

        Args:
            at: the line's step.
            value: the message that was written.
            form: its canonical JSON, as :mod:`orjson` wrote it.
        """
        if self.ended or type(at) is not int or not self.now <= at <= MAX_COUNT:
            return False
        message = read_canonical(value["type"], form)
        if message is None:
            return False
        self.line += 1
        self.now = at
        timers = self._timers
        if timers and timers[0][0] <= at:
            self.advance(at)
        # (2)
        known: bool | None = False
        name, seen = message.msg_id, self._seen
        if name in seen:
            known = self._repeated(name, form)
            if known is None:
                self._log("duplicate_message")
                return True
        else:
            seen[name] = form if len(form) <= SHORT else hashlib.sha256(form).digest()
        named = message.offer_id
        deal = self.deals.get(named)
        # (4); what was read as an offer is in the channel, (3)
        if deal is not None and deal.closed:
            self._log("late_message" if known or not _is_confirming(message, deal.state) else "breach_confirmed")
        elif known:
            self._illegal(named, "malformed", _USED)
        else:
            self._understood(message, deal, value)
        return True

    def finish(self, at: int) -> bool:
        """Handle the end of a transcript just written; ``False``, and nothing done, where it takes more."""
        if self.ended or type(at) is not int or not self.now <= at <= MAX_COUNT:
            return False
        self.line += 1
        self.advance(at)
        self.ended = True
        return True

    def _understood(self, message: Message, deal: Deal | None, value: dict[str, Any]) -> None:
        named = message.offer_id
        # (5) malformed, by what the offer lists
        if type(message) is BreachNotice and deal is not None and not is_listed(message, deal):
            self._illegal(named, "malformed", "$.mode: not in the offer's list for that party")
        # (5) sender
        elif not may_send(message):
            self._illegal(named, "sender", f"{message.sender} sends no such {value['type']}")
        elif type(message) is Offer or type(message) is OfferSupersede:
            self._offer(message, snapshot(value), deal)
        elif deal is None:
            self._illegal(named, "unknown_offer", None)
        else:
            self._move(deal, message, _COLUMNS.get(type(message)) or column_of(message, deal))

    def _repeated(self, name: str, form: bytes) -> bool | None:
        """Tell whether the message's id is used up by another; ``None`` when the message itself came before."""
        # Short forms are kept as they are: a digest would take as much room, and time besides.
        mark = form if len(form) <= SHORT else hashlib.sha256(form).digest()
        seen = self._seen.get(name)
        if seen is None:
            self._seen[name] = mark
            return False
        if type(seen) is set:
            if mark in seen:
                return None
            seen.add(mark)
            return True
        if seen == mark:
            return None
        self._seen[name] = {seen, mark}  # type: ignore[arg-type]  # not a set, so bytes
        return True

    def _offer(self, message: Offer | OfferSupersede, body: Snapshot, deal: Deal | None) -> None:
        if deal is not None:
            same = body.body == deal.snapshots[0].body
            if not same:
                deal.snapshots.append(body)
            self._move(deal, message, "Offer" if same else "Offer:other_bytes")
            return
        if isinstance(message, OfferSupersede):
            old = self.deals.get(message.supersedes)
            if old is None:
                self._illegal(message.supersedes, "unknown_offer", None)
                return
            if old.closed:
                self._log("late_message")
                return
            self._move(old, message, "superseded")
            if old.state != "Closed:superseded":
                return
        deal = Deal(message.offer_id)
        deal.offer = message
        deal.offered_at = self.now
        deal.snapshots.append(body)
        self.deals[message.offer_id] = deal
        self._move(deal, message, "Offer")

    def _move(self, deal: Deal, message: Message, column: Column) -> None:
        # (6)
        state = deal.state  # open: a closed deal absorbed the message before
        to, code, points = self._step(state, column)
        if code is not None:
            deal.illegal = Illegal(self.line, code, f"{column} in {state}")
        elif isinstance(message, BreachNotice):
            self._log("unsupported_breach_notice")
            to = breached(message.party, message.mode)
        elif type(message) is EscrowHold and points == "lock":
            self.escrow.lock(deal.offer_id, message.amount)
        elif type(message) is Disclosure:
            deal.disclosure = message
        elif type(message) is Verdict:
            deal.verdict = message
        elif type(message) is Settle and type(message.object_options) is tuple:
            deal.granted = message.object_options
        if to in self.timers:
            self._enter(deal, to)
        else:
            self._close(deal, to, points, self.now)

    def _enter(self, deal: Deal, to: str) -> None:
        offer = deal.offer
        assert offer is not None
        deal.state = to
        deal.history.append(to)
        deal.steps.append(self.now)
        if self.trace is not None:
            self.trace.append(Move(deal.offer_id, to, self.now, self.line))
        timer = self.timers[to]
        if timer.steps == "expires_steps":
            due = deal.offered_at + offer.expires_steps
        elif timer.steps == "adjudicate_steps":
            due = self.now + self.clocks.adjudicate_steps
        elif timer.steps == "settle_steps" and self.clocks.settle_steps is not None:
            due = self.now + self.clocks.settle_steps
        else:
            due = self.now + self._steps_of(timer.steps, offer)
        if due != deal.due:
            deal.due = due
            self._armed += 1
            heappush(self._timers, (due, self._armed, deal))

    def _steps_of(self, clock: str, offer: Offer | OfferSupersede) -> int:
        return offer.obligation.deadline_steps

    def _confirms(self, value: dict[str, Any], end: str) -> bool:
        if value.get("type") != "BreachNotice":
            return False
        try:
            return _is_confirming(self._read(value), end)
        except Malformed:
            return False

    def _close(self, deal: Deal, to: str, points: str, at: int, *, by_timer: bool = False) -> None:
        if self.trace is not None:
            self.trace.append(Move(deal.offer_id, to, at, None if by_timer else self.line))
        deal.state = to
        deal.closed = True
        deal.history.append(to)
        deal.steps.append(at)
        deal.due = None
        if points == "pay":
            deal.paid = self.escrow.pay(deal.offer_id)
        else:
            deal.refunded = self.escrow.refund(deal.offer_id)

    def _illegal(self, named: str, code: str, told: str | None) -> None:
        deal = self.deals.get(named)
        if deal is None:
            deal = self.deals[named] = Deal(named)
        deal.illegal = Illegal(self.line, code, told)
        self._close(deal, PROTOCOL_ERROR, "refund", self.now)


_SPEAKERS: Final = {made: SPEAKERS[word] for word, made in TYPES.items()}
_COLUMNS: Final[dict[type[Message], Column]] = {
    Accept: "Accept",
    Reject: "Reject",
    Refuse: "Refuse",
    Disclosure: "Disclosure",
    Settle: "Settle",
    BreachNotice: "BreachNotice",
}
_VERDICTS: Final[dict[str, Column]] = {
    "pass": "Verdict:pass",
    "fail": "Verdict:fail",
    "inconclusive": "Verdict:inconclusive",
}


def may_send(message: Message) -> bool:
    """Tell whether the message's sender may send it (§1, §7 Machine)."""
    if message.sender not in _SPEAKERS[type(message)]:
        return False
    return not (message.sender == "A" and type(message) is BreachNotice and message.party == "A")


def column_of(message: Message, deal: Deal) -> Column:
    """Return the column of the table that a message to a deal with an offer stands in; it is no offer itself."""
    if type(message) in _COLUMNS:
        return _COLUMNS[type(message)]
    if type(message) is Verdict:
        return _VERDICTS[message.result]
    assert type(message) is EscrowHold
    assert deal.offer is not None
    same = message.amount == deal.offer.consideration.cash_sim.amount
    return "EscrowHold" if same else "EscrowHold:other_amount"


def is_listed(notice: BreachNotice, deal: Deal) -> bool:
    """Tell whether the offer lists the breach that a notice names."""
    assert deal.offer is not None
    return notice.mode in (deal.offer.breach_c if notice.party == "C" else deal.offer.breach_a)


def _is_confirming(message: Message, end: str) -> bool:
    return isinstance(message, BreachNotice) and confirms(end, message.party, message.mode)


def replay(lines: Iterable[Entry], clocks: Clocks = DEFAULT_CLOCKS, run: Run | None = None) -> Run:
    """Return what the lines come to.

    Args:
        lines: what each line holds.
        clocks: how long K and C may take.
        run: one that has not begun, of another version of the protocol than v0.2.

    Raises:
        Refused: ``E_TRANSCRIPT_UNREADABLE``, from whoever reads the lines.
    """
    run = Run(clocks) if run is None else run
    for entry in lines:
        run.take(entry)
    return run
