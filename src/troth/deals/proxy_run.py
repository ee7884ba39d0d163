"""A run of 0.3-proxy: as one of v0.2, with P's messages, the points that are in P's hands, and those that got away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from troth.core.errors import Defect
from troth.deals import proxy
from troth.deals.escrow import Escrow
from troth.deals.messages import BreachNotice, Offer, OfferSupersede
from troth.deals.proxy_messages import Decline, Deliver, ProxyNotice, ProxyOffer, ProxyOfferSupersede, Undertake
from troth.deals.proxy_messages import read_message as read_proxy_message
from troth.deals.run import DEFAULT_CLOCKS, Clocks, Deal, Move, Run, column_of, is_listed
from troth.deals.snapshots import snapshot


class ProxyEscrow(Escrow):
    """E's books with two accounts more: P, and everybody else (``X``). The five sum to 0."""

    __slots__ = ("_entrusted", "p", "x")

    def __init__(self) -> None:
        super().__init__()
        self.p = self.x = 0
        self._entrusted: dict[str, int] = {}

    def entrust(self, offer_id: str) -> int:
        """Release the deal's hold to P and return how much that was.

        Raises:
            Defect: ``E_DEFECT``, there is no hold.
        """
        amount = self._take(offer_id)
        self._entrusted[offer_id] = amount
        self.p += amount
        return amount

    def entrusted(self, offer_id: str) -> int | None:
        """Return what P has for the deal and has not passed on; ``None`` when there is nothing."""
        return self._entrusted.get(offer_id)

    def pass_on(self, offer_id: str, to: str) -> int:
        """Let P give what it has for the deal to ``A``, ``C`` or ``X``, and return how much that was.

        Raises:
            Defect: ``E_DEFECT``, P has nothing for the deal.
        """
        amount = self._entrusted.pop(offer_id, None)
        if amount is None:
            raise Defect("E_DEFECT", f"nothing is entrusted for {offer_id!r}")
        self.p -= amount
        name = to.lower()
        setattr(self, name, getattr(self, name) + amount)
        return amount

    def balances(self) -> dict[str, int]:
        """Return each party's change since the start."""
        return {"C": self.c, "A": self.a, "E": self.e, "P": self.p, "X": self.x}


_PASSED_ON: dict[str, str] = {"deliver": "A", "return": "C", "divert": "X"}
_OWN: dict[type[Any], str] = {Undertake: "Undertake", Decline: "Decline", ProxyNotice: "BreachNotice"}


def may_send(message: Any) -> bool:
    """Tell whether the message's sender may send it."""
    if isinstance(message, BreachNotice) and message.sender == "A" and message.party == "A":
        return False
    return message.sender in proxy.SPEAKERS[type(message).__struct_config__.tag]


def _is_listed(notice: BreachNotice, deal: Deal) -> bool:
    if isinstance(notice, ProxyNotice) and notice.party == "P":
        assert isinstance(deal.offer, ProxyOffer | ProxyOfferSupersede)
        return notice.mode in deal.offer.breach_p
    return is_listed(notice, deal)


class ProxyRun(Run):
    """What a transcript of 0.3-proxy comes to, line by line."""

    protocol: ClassVar[str] = proxy.PROTOCOL
    timers: ClassVar[Mapping[Any, Any]] = proxy.TIMERS
    _read = staticmethod(read_proxy_message)
    _step = staticmethod(proxy.step)
    escrow: ProxyEscrow

    def __init__(self, clocks: Clocks = DEFAULT_CLOCKS, trace: list[Move] | None = None) -> None:
        super().__init__(clocks, trace)
        self.escrow = ProxyEscrow()

    def hear(self, at: int, value: dict[str, Any], form: bytes) -> bool:
        """Leave every message to :meth:`take`, whose reader is this version's."""
        return False

    def _understood(self, message: Any, deal: Deal | None, value: dict[str, Any]) -> None:
        named = message.offer_id
        if isinstance(message, BreachNotice) and deal is not None and not _is_listed(message, deal):
            self._illegal(named, "malformed", "$.mode: not in the offer's list for that party")
        elif not may_send(message):
            self._illegal(named, "sender", f"{message.sender} sends no such {value['type']}")
        elif isinstance(message, Offer | OfferSupersede):
            self._offer(message, snapshot(value), deal)
        elif deal is None:
            self._illegal(named, "unknown_offer", None)
        else:
            self._move(deal, message, self._column_of(message, deal))

    def _column_of(self, message: Any, deal: Deal) -> Any:
        if type(message) is Deliver:
            # Before anything is entrusted no amount is another: the message has no place there at all.
            entrusted = self.escrow.entrusted(deal.offer_id)
            if entrusted is not None and message.amount != entrusted:
                return "Deliver:other_amount"
            return {"A": "Deliver", "C": "Deliver:to_C"}.get(message.beneficiary, "Deliver:to_other")
        own = _OWN.get(type(message))
        return own if own is not None else column_of(message, deal)

    def _move(self, deal: Deal, message: Any, column: Any) -> None:
        if column == "Settle" and deal.state == "Settling":
            self.escrow.entrust(deal.offer_id)
        super()._move(deal, message, column)

    def _steps_of(self, clock: str, offer: Any) -> int:
        return offer.trust.deliver_steps if clock == "deliver_steps" else super()._steps_of(clock, offer)

    def _close(self, deal: Deal, to: str, points: str, at: int, *, by_timer: bool = False) -> None:
        if points in _PASSED_ON:
            amount = self.escrow.pass_on(deal.offer_id, _PASSED_ON[points])
            if points == "deliver":
                deal.paid = amount
        super()._close(deal, to, points, at, by_timer=by_timer)
