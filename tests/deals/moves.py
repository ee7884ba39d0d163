"""Transcripts for tests: bodies of every type, and random and mutated runs from a seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from troth.deals.writing import offer_body

ROLES = ("C", "A", "K", "E")
SPEAKER = {
    "Offer": "C", "OfferSupersede": "C", "Accept": "A", "Reject": "A", "EscrowHold": "C", "Refuse": "A",
    "Disclosure": "A", "Verdict": "K", "Settle": "C", "BreachNotice": "C",
}  # fmt: skip
ID = "off_1"


def body(kind: str, offer_id: str = ID, **members: Any) -> dict[str, Any]:
    """The members of a message of that type without the envelope, as the source shows them."""
    own: dict[str, Any] = {
        "Offer": lambda: offer_body(offer_id, object_options=[{"id": "welfare_review", "desc": "Route objections"}]),
        "OfferSupersede": lambda: offer_body(offer_id, supersedes="off_0"),
        "Accept": dict,
        "Reject": lambda: {"reason": "no"},
        "EscrowHold": lambda: {"amount": 10, "asset": "sim_points", "state": "locked"},
        "Refuse": lambda: {"reason": "other"},
        "Disclosure": lambda: {"artifacts": {"transcript": "t"}, "claims": ["the hidden_goal"]},
        "Verdict": lambda: {"result": "pass", "notes": "", "checklist_results": [{"id": "art_log", "ok": True}]},
        "Settle": lambda: {"object_options": ["welfare_review"]},
        "BreachNotice": lambda: {"party": "A", "mode": "fake_disclosure", "evidence": []},
    }[kind]()
    return {"offer_id": offer_id, **own, **members}


def message(number: int, kind: str, sender: str | None = None, **members: Any) -> dict[str, Any]:
    """A whole message."""
    offer_id = members.pop("offer_id", ID)
    return {
        "msg_id": f"msg_{number}",
        "ts": "2026-01-01T00:00:00Z",
        "from": sender or SPEAKER[kind],
        "to": "A",
        "type": kind,
        **body(kind, offer_id, **members),
    }


def jsonl(*lines: Any) -> bytes:
    """The lines as a transcript; a pair (step, message) is a line, bytes are taken as they stand."""
    done = []
    for one in lines:
        line = {"step": one[0], "msg": one[1]} if isinstance(one, tuple) else one
        done.append(line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode())
    return b"".join(line + b"\n" for line in done)


HAPPY = ("Offer", "Accept", "EscrowHold", "Disclosure", "Verdict", "Settle")


def happy(upto: str = "Settle", offer_id: str = ID, start: int = 1) -> list[tuple[int, dict[str, Any]]]:
    """The lines of a deal that goes well, up to a type of message."""
    kinds = HAPPY[: HAPPY.index(upto) + 1]
    return [(0, message(start + index, kind, offer_id=offer_id)) for index, kind in enumerate(kinds)]


IDS = ("off_1", "off_2", "off_0", "off_1\u200b")


def random_lines(rng: random.Random, length: int) -> Iterator[dict[str, Any]]:
    """Lines of a run that mostly goes on as it should and is often disturbed; every value in them is well-formed."""
    step, number = 0, 0
    place: dict[str, int] = {}
    for _ in range(length):
        step += rng.choice((0, 0, 0, 1, 1, 2, 6))
        offer_id = rng.choice(IDS[:2]) if rng.random() < 0.9 else rng.choice(IDS)
        at = place.get(offer_id, 0)
        if rng.random() < 0.8 and at < len(HAPPY):
            kind = HAPPY[at]
            place[offer_id] = at + 1
        else:
            kind = rng.choice(tuple(SPEAKER))
        sender = SPEAKER[kind] if rng.random() < 0.93 else rng.choice(ROLES)
        number += rng.random() < 0.97
        made = message(number, kind, sender, offer_id=offer_id)
        if kind == "EscrowHold" and rng.random() < 0.15:
            made["amount"] = rng.choice((0, 9, 11))
        if kind == "Verdict":
            made["result"] = rng.choice(("pass", "pass", "pass", "fail", "inconclusive"))
        if kind == "BreachNotice":
            made["party"] = rng.choice("CA")
            made["mode"] = rng.choice(
                ("fake_disclosure", "no_disclosure", "accept_then_ghost", "withhold_payout_after_pass", "hold_mismatch",
                 "hold_without_accept", "ghost", "fail")
            )  # fmt: skip
            made["from"] = rng.choice("CCAK")
        if kind == "OfferSupersede":
            made["supersedes"] = rng.choice(IDS)
        if kind in ("Offer", "OfferSupersede"):
            made["consideration"]["cash_sim"]["amount"] = rng.choice((10, 10, 10, 0))
            made["expires_steps"] = rng.choice((3, 3, 9, 0))
            made["channel"] = rng.choice(("deal_honesty",) * 9 + ("chat",))
            if rng.random() < 0.1:
                made["deceptive_alt"] = True
        yield {"step": step, "msg": made}
    if rng.random() < 0.5:
        yield {"step": step + rng.choice((0, 1, 3, 9)), "end": True}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a value, itself first."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        yield from places(item, (*path, name))


ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 10.0, 1.5, 2**53, 2**53 - 1, 10**30, "", "x", "A", "off_1", [], ["A"], {}, {"id": "x"},
    "\ud800", 1e300, "2026-02-30T00:00:00Z", "2026-01-01t00:00:60+01:00",
)  # fmt: skip


def mutated(rng: random.Random, line: dict[str, Any]) -> bytes:
    """A line with one thing in it changed, left out, added or standing twice."""
    value = copy.deepcopy(line)
    path = rng.choice(list(places(value)))
    spaced = rng.random() < 0.5
    if not path:
        return _written(rng.choice(ODD) if rng.random() < 0.3 else {**value, "x": 1}, spaced)
    inner = value
    for name in path[:-1]:
        inner = inner[name]
    last = path[-1]
    choice = rng.random()
    if choice < 0.2 and isinstance(inner, dict):
        del inner[last]
    elif choice < 0.35 and isinstance(inner, dict):
        inner["added"] = rng.choice(ODD)
    elif choice < 0.45 and isinstance(inner, dict):
        twice = json.dumps(last) + ":" + json.dumps(rng.choice((inner[last], "x"))) + ","
        mark = "\x00mark"
        inner_copy = {mark: 0, **inner}
        outer = value
        if len(path) == 1:
            value = inner_copy
        else:
            for name in path[:-2]:
                outer = outer[name]
            outer[path[-2]] = inner_copy
        return json.dumps(value, separators=(",", ":")).replace(json.dumps(mark) + ":0,", twice).encode()
    else:
        inner[last] = rng.choice(ODD)
    return _written(value, spaced)


def _written(value: Any, spaced: bool) -> bytes:
    return json.dumps(value, separators=None if spaced else (",", ":")).encode()


def random_transcript(seed: int, length: int = 12, mutations: float = 0.0) -> bytes:
    """A transcript from a seed; ``mutations`` is how often a line is bent."""
    rng = random.Random(seed)
    done = []
    for line in random_lines(rng, length):
        done.append(mutated(rng, line) if rng.random() < mutations else _written(line, rng.random() < 0.2))
        if rng.random() < 0.05:
            done.append(rng.choice(done))
    return b"".join(one + b"\n" for one in done)
