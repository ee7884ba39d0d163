"""The messages of 0.3-proxy and their strict reader: those of v0.2, an offer that names a trustee, and P's own three.

An offer has three members more: ``protocol``, always ``0.3-proxy``; ``trust`` with ``trustee``, P's name, and
``deliver_steps``, how long P may take; and ``breach_P``. ``from`` and ``to`` may be ``P``.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

from troth.deals import messages as plain
from troth.deals.messages import (
    BreachNotice,
    Count,
    Message,
    Name,
    Offer,
    OfferSupersede,
    flaw_of,
    told,
)

Role: TypeAlias = Literal["C", "A", "K", "E", "P"]
ROLES: Final = ("C", "A", "K", "E", "P")

_RENAMED: Final = {
    "sender": "from",
    "c_evidence": "C_evidence",
    "breach_c": "breach_C",
    "breach_a": "breach_A",
    "breach_p": "breach_P",
}


class Trust(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who stands between C and A, and how many steps it may take to deliver."""

    trustee: str
    deliver_steps: Count


class ProxyOffer(Offer, frozen=True, kw_only=True, tag="Offer", rename=_RENAMED):
    """An offer that names a trustee."""

    sender: Role  # type: ignore[assignment]  # wider than v0.2's, whose readers never meet it
    to: Role | tuple[Role, ...]  # type: ignore[assignment]  # as above
    protocol: Literal["0.3-proxy"]
    trust: Trust
    breach_p: tuple[str, ...]


class ProxyOfferSupersede(OfferSupersede, frozen=True, kw_only=True, tag="OfferSupersede", rename=_RENAMED):
    """A whole new offer that names a trustee."""

    sender: Role  # type: ignore[assignment]  # wider than v0.2's, whose readers never meet it
    to: Role | tuple[Role, ...]  # type: ignore[assignment]  # as above
    protocol: Literal["0.3-proxy"]
    trust: Trust
    breach_p: tuple[str, ...]


class ProxyNotice(BreachNotice, frozen=True, kw_only=True, tag="BreachNotice", rename=_RENAMED):
    """An accusation, also of P."""

    sender: Role  # type: ignore[assignment]  # wider than v0.2's, whose readers never meet it
    to: Role | tuple[Role, ...]  # type: ignore[assignment]  # as above
    party: Literal["C", "A", "P"]  # type: ignore[assignment]  # as above


class _Own(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", kw_only=True, rename=_RENAMED):
    """The envelope of P's own messages."""

    msg_id: Name
    ts: str
    sender: Role
    to: Role | tuple[Role, ...]
    offer_id: Name


class Undertake(_Own, frozen=True, kw_only=True, tag="Undertake"):
    """P takes on the trust."""


class Decline(_Own, frozen=True, kw_only=True, tag="Decline"):
    """P does not."""

    reason: str


class Deliver(_Own, frozen=True, kw_only=True, tag="Deliver"):
    """P hands on what it was entrusted with: to ``A``, to ``C``, or to anybody else by name."""

    beneficiary: Name
    amount: Count
    asset: Literal["sim_points"]


ProxyMessage: TypeAlias = Message | Undertake | Decline | Deliver

_WHOLE: Final[dict[str, type[Any]]] = {
    "Offer": ProxyOffer,
    "OfferSupersede": ProxyOfferSupersede,
    "BreachNotice": ProxyNotice,
    "Undertake": Undertake,
    "Decline": Decline,
    "Deliver": Deliver,
}
"""The types that this version has for itself."""

TYPES: Final[tuple[str, ...]] = tuple(dict.fromkeys((*plain.TYPES, *_WHOLE)))


def read_message(value: Any) -> Any:
    """Return the message that a JSON value is.

    Raises:
        Malformed: with the path of the first member that is not as it must be.
    """
    kind = value.get("type") if isinstance(value, dict) else None
    made = _WHOLE.get(kind) if isinstance(kind, str) else None
    if made is None:
        return _as_before(value)
    try:
        message = msgspec.convert(value, made)
    except (msgspec.ValidationError, UnicodeEncodeError) as fault:
        raise told(fault) from None
    flaw = flaw_of(message)
    if flaw is not None:
        raise flaw
    return message


def _as_before(value: Any) -> Message:
    """Read a type that v0.2 has too, whose envelope alone may name P."""
    if not isinstance(value, dict):
        return plain.read_message(value)
    sender, to = value.get("from"), value.get("to")
    changed = dict(value)
    if sender == "P":
        changed["from"] = "K"  # any role that v0.2 knows; put back below
    if to == "P":
        changed["to"] = "A"
    elif isinstance(to, list):
        changed["to"] = ["A" if one == "P" else one for one in to]
    message = plain.read_message(changed)
    return message if sender != "P" else msgspec.structs.replace(message, sender="P")
