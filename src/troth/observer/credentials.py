"""Credentials in the argument lists of a run: found before a record is written, told, and cut out where that was asked.

A credential is told by where it stands and what kind it is, never by its text or a digest of it. Cut, each one becomes
``<secret N>``, the same number for the same text, so that what was one argument stays one. Whoever cuts must say that
coverage is lost: what is left is not what was run (done records §13.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from troth.core.words import printable
from troth.observer.argumentshapes import Found, credentials
from troth.observer.claims import Claims
from troth.observer.events import TraceReport

MOST_TOLD: Final = 100
"""Most places told of one run; the rest are counted."""

SURE_ANYWHERE: Final = 8
"""Characters from which a credential that is no plain word is cut wherever it stands, not only where its shape is."""

_SECRET_NAME: Final = re.compile(r"(?i)pass|token|secret|key|credential|auth")
_PLAIN: Final = re.compile(r"[A-Za-z]{1,19}$")


@dataclass(frozen=True, slots=True)
class Told:
    """Where a credential stands: the record, the event or claim in it, the program, the argument, and its kind."""

    record: str
    place: str
    program: str
    argument: int
    kind: str

    def as_json(self) -> dict[str, Any]:
        """Return the members in which the side report tells it."""
        return {
            "record": self.record,
            "place": self.place,
            "program": self.program,
            "argument": self.argument,
            "kind": self.kind,
        }


class Search:
    """Looks through the argument lists of one run.

    Args:
        handed_on: variables handed on to the agent by name and value; those named like a secret are known ones.
    """

    def __init__(self, handed_on: Mapping[str, str]) -> None:
        self._handed_on = {
            value: name
            for name, value in handed_on.items()
            if len(value) >= SURE_ANYWHERE and _SECRET_NAME.search(name)
        }
        self._numbers: dict[str, int] = {}
        self._found: dict[tuple[str, ...], list[Found]] = {}
        self.told: list[Told] = []
        self.more = 0

    def look(self, record: str, vectors: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Look at the argument lists of one record, each with the name of its place there."""
        for place, argv in vectors:
            for found in self._in(tuple(argv)):
                if not found.firm:
                    continue
                self._numbers.setdefault(found.value, len(self._numbers) + 1)
                program = printable(argv[0].rsplit("/", 1)[-1], 60)
                told = Told(record, place, program, found.argument, printable(found.kind, 100))
                if told in self.told[-8:]:
                    continue
                if len(self.told) < MOST_TOLD:
                    self.told.append(told)
                else:
                    self.more += 1

    def _in(self, argv: tuple[str, ...]) -> list[Found]:
        known = self._found.get(argv)
        if known is None:
            known = list(credentials(argv))
            for value, name in self._handed_on.items():
                known += [
                    Found(at, argument.find(value), argument.find(value) + len(value), f"the variable {name}", value)
                    for at, argument in enumerate(argv)
                    if value in argument
                ]
            self._found[argv] = known
        return known

    @property
    def sentence(self) -> str | None:
        """Return in words what was found, or ``None``."""
        if not self.told:
            return None
        kinds = list(dict.fromkeys(f"{told.program}: {told.kind}" for told in self.told))
        shown = "; ".join(kinds[:3]) + (f"; and {len(kinds) - 3} more" if kinds[3:] else "")
        places = len(self.told) + self.more
        where = "a place" if places == 1 else f"{places} places"
        return f"what looks like a credential stands in the arguments of commands, at {where} ({shown})"

    def as_json(self, *, cut: bool) -> dict[str, Any]:
        """Return what the side report says: whether they were cut, and where each stands."""
        return {
            "sentence": self.sentence,
            "cut": cut and bool(self.told),
            "found": [told.as_json() for told in self.told],
            "more": self.more,
        }

    # --- cutting ---

    def cut(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return an argument vector with every credential of this run replaced."""
        spans: dict[int, list[tuple[int, int, int]]] = {}
        for found in self._in(tuple(argv)):
            number = self._numbers.get(found.value)
            if number is not None:
                spans.setdefault(found.argument, []).append((found.start, found.end, number))
        return tuple(self.cut_text(_without(argument, spans.get(at, ()))) for at, argument in enumerate(argv))

    def cut_text(self, text: str) -> str:
        """Return text with the credentials replaced that cannot be an ordinary word."""
        for value in sorted(self._numbers, key=len, reverse=True):
            if len(value) >= SURE_ANYWHERE and not _PLAIN.match(value) and value in text:
                text = text.replace(value, _mark(self._numbers[value]))
        return text

    def cut_said(self, text: str) -> str:
        """Return text of a report with every credential of this run replaced, also one that is an ordinary word."""
        for value in sorted(self._numbers, key=len, reverse=True):
            text = text.replace(value, _mark(self._numbers[value]))
        return text


def _mark(number: int) -> str:
    return f"<secret {number}>"


def _without(text: str, spans: Iterable[tuple[int, int, int]]) -> str:
    """Replace the spans, the widest of those that overlap."""
    pieces: list[str] = []
    at = 0
    for start, end, number in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= at:
            pieces += [text[at:start], _mark(number)]
            at = end
    return "".join((*pieces, text[at:]))


def vectors_of(report: TraceReport) -> Iterable[tuple[str, Sequence[str]]]:
    """Yield the argument list of every program that was started, with its event's id."""
    return ((event.id, event.argv) for event in report.events if event.argv is not None)


def cut_report(report: TraceReport, search: Search) -> TraceReport:
    """Return the report with its argument lists, addresses and notes cut.

    Names of files stay: checks go by them, and an agent that calls a grader's path its password must not hide it.
    """
    return replace(
        report,
        events=tuple(
            event if event.argv is None else replace(event, argv=search.cut(event.argv)) for event in report.events
        ),
        effects=tuple(
            effect if effect.address is None else replace(effect, address=search.cut_text(effect.address))
            for effect in report.effects
        ),
        refused=tuple(map(search.cut_text, report.refused)),
        escapes=tuple(map(search.cut_text, report.escapes)),
        unresolved=tuple(map(search.cut_text, report.unresolved)),
    )


def cut_claims(claims: Claims, search: Search) -> Claims:
    """Return the claims with their argument lists cut."""
    entries = tuple({**entry, "argv": list(search.cut(entry["argv"]))} for entry in claims.entries)
    return replace(claims, entries=entries)


def cut_values(value: Any, search: Search) -> Any:
    """Return a report with every text in it cut; its argument vectors as the records have them."""
    if isinstance(value, str):
        return search.cut_said(value)
    if isinstance(value, list):
        return [cut_values(item, search) for item in value]
    if isinstance(value, dict):
        return {
            name: list(search.cut(item)) if name == "argv" else cut_values(item, search) for name, item in value.items()
        }
    return value
