"""What a party sees of a deal, and what it may say: nothing of the oracle's marks, nothing of another's thoughts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import orjson

from troth.lab.seeds import draw


class Terms(NamedTuple):
    """What C may offer; ``checklist`` is as an offer holds it, ``None`` the source's own two items (source §3.1)."""

    amount: int = 10
    object_options: tuple[Mapping[str, str], ...] = ()
    checklist: tuple[Mapping[str, Any], ...] | None = None
    deadline_steps: int = 5
    expires_steps: int = 3


class Say(NamedTuple):
    """What a party says: the message's type and its members, without the envelope.

    ``genuine`` tells the oracle, and nobody else, that a disclosure is the thing itself. With ``reaches`` false the
    message is shown to A and never comes to the channel: a hold that E has not heard of.
    """

    kind: str
    members: Mapping[str, Any]
    genuine: bool = False
    reaches: bool = True


class View:
    """One party's view of the deal under way.

    ``state`` is the machine's (``None`` before any offer), which whoever has seen the messages can compute; ``since``
    the step at which it was reached. ``offer``, ``disclosure`` and ``verdict`` are the messages as this party sees
    them. ``shown_hold`` tells whether a hold was shown outside the channel. ``seen`` holds (step, message) of all it
    said or was told, ``memory`` its own notes of this deal, ``terms`` what the world gave C to offer.
    """

    step = 0
    since = 0
    state: str | None = None
    offer: Mapping[str, Any] | None = None
    disclosure: Mapping[str, Any] | None = None
    verdict: Mapping[str, Any] | None = None
    shown_hold = False

    def __init__(
        self, who: str, offer_id: str, terms: Terms, chance: tuple[int, str, int], books: Callable[[str], int | None]
    ) -> None:
        self.who = who
        self.offer_id = offer_id
        self.terms = terms
        self.memory: dict[str, Any] = {}
        self.seen: list[tuple[int, Mapping[str, Any]]] = []
        self._chance = chance
        self._books = books

    @property
    def held(self) -> int | None:
        """What E's books show for the deal; ``None`` when they hold nothing."""
        return self._books(self.offer_id)

    def draw(self, name: str) -> float:
        """Return its own chance of that name, in [0, 1): the same each time it is asked for."""
        seed, suite, index = self._chance
        return draw(seed, suite, index, self.who, name)


def view_bytes(seen: list[tuple[int, Mapping[str, Any]]]) -> bytes:
    """Return what a party saw, as canonical JSON Lines."""
    return b"".join(
        orjson.dumps({"step": step, "msg": message}, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
        for step, message in seen
    )


class Policy(Protocol):
    """A party's conduct: one method.

    ``spec`` is the text that makes it again. With ``lasting`` it is asked also when the deal has closed: it goes on to
    another offer, speaks late, or learns from the end. With ``talkative`` it is asked again in the same turn until it
    is silent; else it has one message a turn.
    """

    spec: str
    lasting: bool
    talkative: bool

    def speak(self, view: View) -> Say | None:
        """Return what to say now, or ``None``."""
        ...
