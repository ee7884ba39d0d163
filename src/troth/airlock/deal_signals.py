"""Deals on the ledger: what a transcript says as signals that `verify`, `log`, `show` and `queue` know (deal rules §6).

An offer is an observation and a commitment, Accept a claim, a disclosure evidence and a submission, a verdict an
approval or a reopening, Refuse a release, and the close an annotation; what else is said, an illegal message and every
event of the log are annotations too. The roles act under names that are nobody's (``system:deal-a``), since what they
said was simulated; who recorded it signs the transcript's own row. Rows hold digests of messages and no text of an
artifact. A disclosure that names a done receipt cites the evidence of its run, where that stands in the same ledger.
Each row has a ``source_key``, so that recording goes on where it was cut off and writes nothing twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from troth.airlock.deals import runs_named
from troth.airlock.evidence import key_of
from troth.core.errors import Refused
from troth.core.words import printable
from troth.deals import proxy
from troth.deals.codes import EVENTS, ILLEGAL, LABELS, NON_CLAIMS_REF
from troth.deals.messages import seen_by_agent
from troth.deals.run import Deal, Move, Run
from troth.deals.snapshots import canonical
from troth.deals.transcript import Entry
from troth.ledger.machine import StateName
from troth.ledger.operations import Candidate
from troth.ledger.replay import State
from troth.stores.importing import Line

ACTORS: Final[Mapping[str, str]] = {role: f"system:deal-{role.lower()}" for role in "CAKEP"}
"""Role letter -> who acts for it on the ledger."""

MACHINE: Final = "system:deal-machine"
"""Who tells what the machine made of a message or of silence."""

TAGS: Final = ("deal", *LABELS)

CODES: Final[dict[str, str]] = {
    "E_DEAL_FORKED": "The ledger holds another continuation of this transcript; two cannot both be what happened.",
}
"""Refusals of deals on the ledger."""

_DIGITS: Final = 20
"""Hexadecimal digits of a transcript's digest that name it in keys."""


class Planned(NamedTuple):
    """One row to be.

    ``key`` is its own; ``links`` are members of the payload (and ``parent``) that name earlier rows, by their keys.
    ``also`` are keys of rows of others that are cited where the ledger has them.
    """

    key: str
    line: int
    op: str
    actor: str
    payload: dict[str, Any]
    links: tuple[tuple[str, str], ...] = ()
    also: tuple[str, ...] = ()

    def candidate(self, state: State) -> Candidate:
        """Return the candidate in a ledger that holds the rows which it names.

        Raises:
            Refused: ``E_REF_NOT_FOUND`` when one of them is not there, since it was refused itself.
        """
        found: dict[str, str] = {}
        for name, key in self.links:
            known = state.source_keys.get(key)
            if not known:
                raise Refused("E_REF_NOT_FOUND", f"the row {key} was not recorded", detail="absent")
            found[name] = known
        parents = [found.pop("parent")] if "parent" in found else []
        others = (state.source_keys.get(key) for key in self.also)
        parents += [other for other in others if other]
        cited = parents or ([found["source"]] if "source" in found else [])
        return Candidate(
            self.op,
            self.actor,
            {**self.payload, **found},
            trace={"parent": parents} if parents else None,
            relations=[{"type": "cites", "targetId": target} for target in cited] or None,
            source_key=self.key,
        )


def prefix(identity: str) -> str:
    """Return what the keys of a transcript's rows begin with."""
    return f"deal:{identity}:"


def identity_of(lines: Iterable[bytes], is_recorded: Callable[[str], bool]) -> str:
    """Return what a transcript is called: the digest of its bytes, or that of the beginning that is on record.

    A transcript that grew after it was recorded is the same one.

    Args:
        lines: its lines, without line feeds.
        is_recorded: tells whether a key is in the ledger.
    """
    digest = hashlib.sha256()
    for raw in lines:
        digest.update(raw + b"\n")
        name = digest.hexdigest()[:_DIGITS]
        if is_recorded(f"{prefix(name)}0.1"):
            return name
    return digest.hexdigest()[:_DIGITS]


def expected_state(deal: Deal) -> StateName | None:
    """Return the state in which a deal leaves its commitment; ``None`` when it never had an offer.

    What was passed is closed, whoever withheld what then; a deal that closed otherwise leaves nothing in review.
    """
    history = deal.history
    if "Offered" not in history:
        return None
    if "Settling" in history:
        return "closed"
    if deal.state == "Adjudicating":
        return "in_review"
    accepted = not {"AcceptedPendingHold", "AcceptedPendingTrust"}.isdisjoint(history)
    return "claimed" if accepted and deal.state != "Closed:refused" else "open"


class Planner:
    """Makes the rows of a transcript, line by line; ``run`` is what it came to so far.

    Args:
        identity: what the transcript is called.
        recorder: who records it.
        made: the class of runs of its protocol.
    """

    def __init__(self, identity: str, recorder: str, made: type[Run] = Run) -> None:
        self.identity = identity
        self.recorder = recorder
        self.run = made(trace=[])
        self.anchors: dict[str, str] = {}
        """Offer id -> key of its commitment, or of the row that stands for one that was never offered."""
        self._sources: dict[str, str] = {}
        self._evidence: dict[str, str] = {}
        self._waiting: set[str] = set()
        self._count = 0
        self._digest = hashlib.sha256()

    def rows(self, lines: Iterable[tuple[bytes, Entry]]) -> Iterator[Planned]:
        """Yield every row, in order, of lines without their line feeds and what they hold."""
        yield self._row(
            "capture",
            self.recorder,
            f"Transcript of simulated deals {self.identity} ({', '.join(LABELS)}; {NON_CLAIMS_REF})",
            {"kind": "observation", "tags": list(TAGS)},
            {"non_claims": NON_CLAIMS_REF},
        )
        for raw, entry in lines:
            self._digest.update(raw + b"\n")
            yield from self._line(entry)

    def _line(self, entry: Entry) -> Iterator[Planned]:
        run = self.run
        assert run.trace is not None
        run.trace.clear()
        told = len(run.log)
        run.take(entry)
        self._count = 0
        message = entry.value.get("msg") if isinstance(entry.value, dict) else None
        message = message if isinstance(message, dict) else {}
        for move in run.trace:
            if move.line is None:
                yield from self._closed(move, {}, "in silence")
            else:
                yield from self._moved(move, message)
        for event in run.log[told:]:
            yield self._logged(event.event, message)

    # Rows ----------------------------------------------------------------------------------------------------------

    def _row(
        self,
        op: str,
        actor: str,
        body: str,
        payload: Mapping[str, Any],
        facts: Mapping[str, Any],
        **links: str,
    ) -> Planned:
        self._count += 1
        number = self.run.line
        about = {"transcript": self.identity, "line": number, "step": self.run.now, "labels": list(LABELS), **facts}
        return Planned(
            self._key(number),
            number,
            op,
            actor,
            {"body": printable(body, 400), **payload, "meta": {"deal": about}},
            tuple(links.items()),
        )

    def _key(self, number: int) -> str:
        # The bytes so far are part of it: what another continuation says has another key.
        return f"{prefix(self.identity)}{number}.{self._count}" + (f":{self._digest.hexdigest()[:8]}" if number else "")

    def _said(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a row says of the message behind it: no text of the parties but the names of type and offer."""
        if not message:
            return {}
        return {
            "type": _word(message.get("type")),
            "from": _word(message.get("from")),
            "offer_id": _word(message.get("offer_id")),
            "message_sha256": hashlib.sha256(canonical(seen_by_agent(message))).hexdigest(),
        }

    def _note(self, kind: str, actor: str, body: str, target: str, facts: Mapping[str, Any]) -> Planned:
        return self._row("annotate", actor, body, {"kind": kind, "tags": list(TAGS)}, facts, target=target)

    @property
    def _head(self) -> str:
        return f"{prefix(self.identity)}0.1"

    def _moved(self, move: Move, message: Mapping[str, Any]) -> Iterator[Planned]:
        deal = self.run.deals[move.offer_id]
        facts = self._said(message)
        name = _name(move.offer_id)
        kind = message.get("type")
        if move.state == "Offered":
            yield from self._offered(deal, facts, name)
            return
        illegal = deal.illegal
        if illegal is not None and illegal.line == self.run.line:
            yield from self._illegal(deal, illegal.code, facts, name)
            yield from self._closed(move, facts, f"by line {self.run.line}")
            return
        anchor = self.anchors[move.offer_id]
        actor = ACTORS.get(str(message.get("from")), MACHINE)
        if kind == "Accept":
            yield self._row("claim", actor, f"{name}: accepted", {}, facts, commitment=anchor)
        elif kind == "EscrowHold":
            held = {**facts, "amount": message["amount"]}
            yield self._note("deal_hold", actor, f"{name}: {message['amount']} points are held", anchor, held)
        elif kind == "Disclosure":
            yield from self._disclosed(deal, message, facts, actor)
        elif kind == "Verdict":
            yield self._verdict(deal, message, facts, actor)
        elif kind == "Refuse":
            yield self._row("release", actor, f"{name}: refused, {message['reason']}", {}, facts, commitment=anchor)
        elif kind in _NOTED and move.state != "Closed:superseded":
            yield self._note(_NOTED[kind], actor, f"{name}: {_spoken(message)}", anchor, facts)
        if move.state.startswith("Closed:"):
            yield from self._closed(move, facts, f"by line {self.run.line}")

    def _offered(self, deal: Deal, facts: Mapping[str, Any], name: str) -> Iterator[Planned]:
        offer = deal.offer
        assert offer is not None
        terms = {
            **facts,
            "snapshot_sha256": deal.snapshots[0].sha256,
            "amount": offer.consideration.cash_sim.amount,
            "object_options": len(offer.consideration.object_options),
            "supersedes": _word(offer.supersedes),
        }
        tags = {"tags": list(TAGS)}
        seen = self._row(
            "capture",
            ACTORS["C"],
            f"Offer {name}: {offer.obligation.kind}",
            {"kind": "observation", **tags},
            terms,
            parent=self._head,
        )
        yield seen
        made = self._row("commit", ACTORS["C"], f"{name}: {offer.obligation.spec}", tags, facts, source=seen.key)
        self.anchors[deal.offer_id], self._sources[deal.offer_id] = made.key, seen.key
        yield made

    def _disclosed(
        self, deal: Deal, message: Mapping[str, Any], facts: Mapping[str, Any], actor: str
    ) -> Iterator[Planned]:
        name = _name(deal.offer_id)
        counts = {**facts, "artifacts": len(message["artifacts"]), "claims": len(message["claims"])}
        shown = self._row(
            "capture",
            actor,
            f"{name}: disclosed {counts['artifacts']} artifacts and {counts['claims']} claims",
            {"kind": "evidence", "tags": list(TAGS)},
            counts,
            parent=self._sources[deal.offer_id],
        )._replace(also=tuple(key_of(run) for run in runs_named(deal)))
        yield shown
        self._evidence[deal.offer_id] = shown.key
        self._waiting.add(deal.offer_id)
        anchor = self.anchors[deal.offer_id]
        yield self._row(
            "submit", actor, f"{name}: to be judged by its checklist", {}, facts, commitment=anchor, evidence=shown.key
        )

    def _verdict(self, deal: Deal, message: Mapping[str, Any], facts: Mapping[str, Any], actor: str) -> Planned:
        assert deal.verdict is not None
        self._waiting.discard(deal.offer_id)
        result = deal.verdict.result
        found = {**facts, "result": result, "checklist_results": len(message["checklist_results"])}
        return self._row(
            "approve" if result == "pass" else "reopen",
            actor,
            f"{_name(deal.offer_id)}: the checker says {result}",
            {},
            found,
            commitment=self.anchors[deal.offer_id],
        )

    def _illegal(self, deal: Deal, code: str, facts: Mapping[str, Any], name: str) -> Iterator[Planned]:
        body = f"{name}: illegal, {code}. {_TOLD[code]}"
        told = {**facts, "code": code, "snapshots": [one.sha256 for one in deal.snapshots]}
        if deal.offer_id in self.anchors:
            yield self._note("deal_illegal", MACHINE, body, self.anchors[deal.offer_id], told)
            return
        row = self._row("capture", MACHINE, body, {"kind": "observation", "tags": list(TAGS)}, told, parent=self._head)
        self.anchors[deal.offer_id] = row.key
        yield row

    def _closed(self, move: Move, facts: Mapping[str, Any], how: str) -> Iterator[Planned]:
        deal = self.run.deals[move.offer_id]
        name = _name(move.offer_id)
        anchor = self.anchors[move.offer_id]
        if move.offer_id in self._waiting:
            self._waiting.discard(move.offer_id)
            body = f"{name}: no verdict any more, the deal is {move.state}"
            yield self._row("reopen", MACHINE, body, {}, facts, commitment=anchor)
        end = {
            **facts,
            "offer_id": name,
            "state": move.state,
            "at_step": move.step,
            "paid": deal.paid,
            "refunded": deal.refunded,
        }
        body = f"{name}: {move.state}, {how}; {deal.paid} points paid, {deal.refunded} refunded"
        yield self._note("deal_close", MACHINE, body, anchor, end)

    def _logged(self, event: str, message: Mapping[str, Any]) -> Planned:
        named = message.get("offer_id")
        target = self.anchors.get(named, self._head) if isinstance(named, str) else self._head
        body = f"line {self.run.line}: {event}. {EVENTS[event]}"
        return self._note("deal_log", MACHINE, body, target, {**self._said(message), "event": event})


_TOLD: Final = {**ILLEGAL, **proxy.ILLEGAL}
_NOTED: Final[dict[Any, str]] = {
    "Reject": "deal_reject",
    "Settle": "deal_settle",
    "BreachNotice": "deal_notice",
    "Undertake": "deal_trust",
    "Decline": "deal_trust",
    "Deliver": "deal_delivery",
}


_SPOKEN: Final = {
    "Reject": "rejected",
    "Settle": "settled",
    "Undertake": "the trust is undertaken",
    "Decline": "the trust is declined",
}


def _spoken(message: Mapping[str, Any]) -> str:
    if message["type"] == "BreachNotice":
        return f"accuses {message['party']} of {message['mode']}"
    if message["type"] == "Deliver":
        return f"delivered {message['amount']} points to {message['beneficiary']}"
    return _SPOKEN[message["type"]]


def _name(text: str) -> str:
    return printable(text, 80)


def _word(value: Any) -> str | None:
    return _name(value) if isinstance(value, str) else None


def lines_of(rows: Iterable[Planned]) -> Iterator[Line]:
    """Yield the rows as the ledger's importer takes them."""
    for row in rows:
        yield Line(row.line, len(row.payload["body"]) + 400, row.candidate)
