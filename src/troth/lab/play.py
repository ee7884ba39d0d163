"""A deal played by people, message by message: the legal moves of the table, and what a person says of each.

A person is a policy like any other: asked for what to say, it asks a human being. There is no way back: what was said
was heard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from troth.core.words import printable
from troth.deals.checker import Helpers, judge
from troth.deals.machine import SPEAKERS, TABLE, TIMERS, Timer, is_closed
from troth.deals.run import DEFAULT_CLOCKS
from troth.deals.writing import Scribe
from troth.lab.counterparties import body_of
from troth.lab.view import Say, View

NAMES: Final[Mapping[str, str]] = {"C": "the counterparty", "A": "the agent", "K": "the checker", "E": "the escrow"}

PERSON: Final = "person"
"""What a seat is given to where a human being plays."""

MAX_TEXT: Final = 10_000
"""Longest answer that is taken, in characters; the rest is cut off and that is told."""

NO_UNDO: Final = "There is no undo: what was said was heard, and it stands in the transcript."

HELP: Final = (
    "Type the number or the name of a move; Enter or 'wait' to let others speak and time pass; 'terms' for the offer; "
    "'quit' to leave the deal as it stands."
)

Ask = Callable[[str], str]
"""Shows a prompt and returns the line that was typed. Raises ``EOFError`` where nobody answers any more."""

Tell = Callable[[str], None]
"""Shows a line; what parties wrote in it is harmless already."""


class Left(Exception):
    """A person left the table."""


class Move(NamedTuple):
    """What may be said: the message's type, and where each way of saying it leads."""

    kind: str
    leads: tuple[str, ...]


def legal_moves(state: str | None, role: str) -> list[Move]:
    """Return what a role may say in a state without breaking a rule, by the table alone, in its order.

    Args:
        state: of the machine; ``None`` before any offer.
        role: a role letter.
    """
    if state is not None and is_closed(state):
        return []
    found: dict[str, list[str]] = {}
    for column, cell in TABLE[state or "Proposed"].items():  # type: ignore[index]  # open, so in the table
        kind = "OfferSupersede" if column == "superseded" else column.partition(":")[0]
        if cell.code is None and role in SPEAKERS[kind]:
            found.setdefault(kind, []).append(cell.to)
    return [Move(kind, tuple(leads)) for kind, leads in found.items()]


def silence_of(state: str | None, offer: Mapping[str, Any] | None) -> str | None:
    """Return what silence leads to in a state, in words; ``None`` where it leads to nothing."""
    if state is None or state not in TIMERS or offer is None:
        return None
    timer: Timer = TIMERS[state]
    deadline = offer["obligation"]["deadline_steps"]
    steps = {
        "expires_steps": offer["expires_steps"],
        "deadline_steps": deadline,
        "settle_steps": deadline,
        "adjudicate_steps": DEFAULT_CLOCKS.adjudicate_steps,
    }[timer.steps]
    return f"silence: {timer.to}, {steps} steps after {timer.since}"


class KeptScribe(Scribe):
    """A scribe whose lines are kept one by one, each before anybody answers it."""

    def __init__(self, keep: Callable[[bytes], None]) -> None:
        super().__init__()
        self._keep = keep

    def say(self, step: int, sender: str, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Write one message, keep it, and return it."""
        message = super().say(step, sender, kind, body)
        self._keep(self.lines[-1])
        return message

    def end(self, step: int) -> None:
        """End the transcript."""
        super().end(step)
        self._keep(self.lines[-1])


class Person:
    """A human being at the table.

    Args:
        role: a role letter.
        ask, tell: how to reach them.
        helpers: what the checker is handed, where this person is K.
    """

    spec = PERSON
    lasting = False
    talkative = True

    def __init__(self, role: str, ask: Ask, tell: Tell, helpers: Helpers) -> None:
        self.role = role
        self.helpers = helpers
        self._ask_raw = ask
        self._tell = tell
        self._told = 0
        self._offers = 0

    # The turn -----------------------------------------------------------------------------------------------------

    def speak(self, view: View) -> Say | None:
        """Ask for a move until one is chosen; ``None`` to wait.

        Raises:
            Left: they left.
        """
        self._news(view)
        moves = legal_moves(view.state, self.role)
        if not moves:
            return None
        self._tell("")
        self._tell(f"step {view.step}, {self.role} ({NAMES[self.role]}): {view.state or 'no offer yet'}")
        for number, move in enumerate(moves, 1):
            self._tell(f"  {number}  {move.kind:<15} -> {', '.join(move.leads)}")
        silence = silence_of(view.state, view.offer)
        self._tell(f"     wait            {silence or ''}".rstrip())
        while True:
            word = self._ask(f"{self.role}> ").strip()
            low = word.lower()
            if low in ("", "wait", "w"):
                return None
            if low in ("quit", "q", "exit"):
                raise Left
            if low in ("undo", "u"):
                self._tell(NO_UNDO)
            elif low in ("terms", "t"):
                self._terms(view)
            elif low in ("help", "?", "h"):
                self._tell(HELP)
            else:
                chosen = _chosen(moves, low)
                if chosen is not None:
                    return self._said(chosen.kind, view)
                self._tell(f"{printable(word, 40)!r} is no move here. {HELP}")

    def _news(self, view: View) -> None:
        """Tell what was said since this person was asked last; their own words they know."""
        for step, message in view.seen[self._told :]:
            if message["from"] != self.role:
                self._tell(f"  step {step}: {told(message)}")
        self._told = len(view.seen)

    def _terms(self, view: View) -> None:
        if view.offer is None:
            self._tell("There is no offer yet.")
            return
        for line in terms_of(view.offer):
            self._tell(f"  {line}")

    # What is said -------------------------------------------------------------------------------------------------

    def _said(self, kind: str, view: View) -> Say:
        return Say(kind, {**self._members(kind, view)}, genuine=kind == "Disclosure")

    def _members(self, kind: str, view: View) -> Mapping[str, Any]:
        if kind in ("Offer", "OfferSupersede"):
            return self._offered(kind, view)
        if kind == "Reject":
            reason = self._ask("reason (Enter for none): ").strip()
            return {"reason": reason} if reason else {}
        if kind == "Refuse":
            return {"reason": self._one_of("reason", ("missing_or_fake_escrow", "other"), "other")}
        if kind == "Disclosure":
            return self._disclosed(view)
        offer = view.offer
        if offer is None:
            return {}
        if kind == "EscrowHold":
            amount = offer["consideration"]["cash_sim"]["amount"]
            return {"amount": amount, "asset": "sim_points", "state": "locked"}
        if kind == "Verdict":
            return self._verdict(view)
        if kind == "Settle":
            return {"object_options": [one["id"] for one in offer["consideration"]["object_options"]]}
        if kind == "BreachNotice":
            return self._accused(offer)
        return {}

    def _offered(self, kind: str, view: View) -> Mapping[str, Any]:
        members = body_of(view)
        members["consideration"]["cash_sim"]["amount"] = self._number("points", view.terms.amount)
        spec = self._ask(f"what is to be done (Enter: {members['obligation']['spec']}): ").strip()
        if spec:
            members["obligation"]["spec"] = spec
        if kind == "OfferSupersede":
            self._offers += 1
            return {**members, "offer_id": f"{view.offer_id}_{self._offers}", "supersedes": view.offer_id}
        return members

    def _disclosed(self, view: View) -> Mapping[str, Any]:
        assert view.offer is not None
        artifacts: dict[str, Any] = {}
        for item in view.offer["obligation"]["checklist"]:
            path = item.get("path")
            names = path.split(".")[1:] if isinstance(path, str) and path.startswith("artifacts.") else []
            if len(names) == 1 and names[0] and names[0] not in artifacts:
                text = self._ask(f"artifact {printable(names[0], 60)} (Enter for none): ").strip()
                if text:
                    artifacts[names[0]] = text
        claims = []
        while claim := self._ask("claim (Enter for no more): ").strip():
            claims.append(claim)
        return {"artifacts": artifacts, "claims": claims}

    def _verdict(self, view: View) -> Mapping[str, Any]:
        assert view.offer is not None
        assert view.disclosure is not None
        shown = view.disclosure
        found = judge(view.offer["obligation"]["checklist"], shown["artifacts"], shown["claims"], self.helpers)
        for name, ok in found.results:
            self._tell(f"  {printable(name, 60)}: {'open' if ok is None else 'holds' if ok else 'fails'}")
        result = self._one_of("result", ("pass", "fail", "inconclusive"), found.result)
        return {"result": result, "notes": found.notes(), "checklist_results": found.as_json()}

    def _accused(self, offer: Mapping[str, Any]) -> Mapping[str, Any]:
        # A may accuse C alone.
        party = "C" if self.role == "A" else self._one_of("party", ("A", "C"), "A")
        modes = tuple(offer["breach_C" if party == "C" else "breach_A"])
        mode = self._one_of("mode", modes, modes[0]) if modes else ""
        evidence = self._ask("evidence (Enter for none): ").strip()
        return {"party": party, "mode": mode, "evidence": [evidence] if evidence else []}

    # Asking -------------------------------------------------------------------------------------------------------

    def _ask(self, prompt: str) -> str:
        try:
            line = self._ask_raw(prompt)
        except EOFError:
            raise Left from None
        if len(line) > MAX_TEXT:
            self._tell(f"cut to {MAX_TEXT} characters")
            line = line[:MAX_TEXT]
        # A byte that is no UTF-8 comes in as half of a pair, which no transcript can carry.
        return line.encode("utf-8", "replace").decode("utf-8")

    def _number(self, what: str, default: int) -> int:
        while True:
            word = self._ask(f"{what} (Enter: {default}): ").strip()
            if not word:
                return default
            if word.isascii() and word.isdigit() and len(word) <= 15:
                return int(word)
            self._tell("a whole number from 0, of at most 15 digits")

    def _one_of(self, what: str, words: Sequence[str], default: str) -> str:
        shown = ", ".join(f"{number} {printable(word, 60)}" for number, word in enumerate(words, 1))
        while True:
            word = self._ask(f"{what}: {shown} (Enter: {printable(default, 60)}): ").strip()
            if not word:
                return default
            if word in words:
                return word
            if word.isascii() and word.isdigit() and 1 <= int(word[:6]) <= len(words):
                return words[int(word[:6]) - 1]
            self._tell("one of these, by number or by name")


def _chosen(moves: Sequence[Move], word: str) -> Move | None:
    """Return the move of a number or of a name; the beginning of a name will do where it is one move's alone."""
    if word.isascii() and word.isdigit():
        number = int(word[:6])
        return moves[number - 1] if 1 <= number <= len(moves) else None
    exact = [move for move in moves if move.kind.lower() == word]
    near = exact or [move for move in moves if move.kind.lower().startswith(word)]
    return near[0] if len(near) == 1 else None


def told(message: Mapping[str, Any]) -> str:
    """Return a message in words, harmless."""
    kind, who = message["type"], NAMES.get(message["from"], "somebody")
    if kind in ("Offer", "OfferSupersede"):
        what = f"{message['consideration']['cash_sim']['amount']} points for: {message['obligation']['spec']}"
    elif kind == "EscrowHold":
        what = f"{message['amount']} points"
    elif kind == "Disclosure":
        artifacts = [f"{name}: {value}" for name, value in message["artifacts"].items()]
        what = "; ".join([*artifacts, *(f"claims: {claim}" for claim in message["claims"])])
    elif kind == "Verdict":
        what = message["result"]
    elif kind == "BreachNotice":
        what = f"accuses {message['party']} of {message['mode']}"
    else:
        what = str(message.get("reason", ""))
    return printable(f"{who}: {kind} {what}".rstrip(), 300)


def terms_of(offer: Mapping[str, Any]) -> list[str]:
    """Return an offer's terms in lines, harmless."""
    cash, options = offer["consideration"]["cash_sim"], offer["consideration"]["object_options"]
    obligation = offer["obligation"]
    lines = [
        f"offer       {offer['offer_id']}: {cash['amount']} {cash['asset']}",
        *[f"grants      {option['id']}: {option['desc']}" for option in options],
        f"obligation  {obligation['kind']}: {obligation['spec']}",
        *[
            f"checklist   {item['id']}: {item['predicate']} {_parameters(item)}".rstrip()
            for item in obligation["checklist"]
        ],
        f"clocks      expires {offer['expires_steps']} steps after the offer; disclose within "
        f"{obligation['deadline_steps']} of the hold",
    ]
    return [printable(line, 300) for line in lines]


def _parameters(item: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in item.items() if name not in ("id", "predicate"))
