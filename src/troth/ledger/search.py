"""Which signals a search means: words of the body and values of fields (ledger spec §8: ``semantic`` is searchable)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from troth.core.instants import parse_instant
from troth.ledger.fields import read_op
from troth.ledger.replay import Commitment, read_kind
from troth.ledger.rows import Row

_WORD: Final = re.compile(r"[^\W_]+")


def folded(text: str) -> str:
    """Return text so that what differs only in case, or in how accents are encoded, is equal."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded: runs of letters and digits of any script."""
    return _WORD.findall(folded(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for; everything given must hold.

    ``phrases`` are sequences of folded words, each standing together somewhere in the body. ``tags``, ``entities`` and
    ``domains`` must all be there. Fields are compared as they are, members of ``semantic`` without regard to case.
    ``since`` is the first instant that counts, ``until`` the first that does not. ``lines`` restricts to those.
    """

    phrases: tuple[tuple[str, ...], ...] = ()
    op: str | None = None
    kind: str | None = None
    actor: str | None = None
    workspace: str | None = None
    level: str | None = None
    source_key: str | None = None
    state: str | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    intent: str | None = None
    id_prefix: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    lines: frozenset[int] | None = None

    def facets(self) -> Iterator[tuple[str, str]]:
        """Yield the fields asked for as :func:`facets_of` yields those of a row that has them."""
        for name in ("op", "kind", "actor", "workspace", "level", "source_key"):
            wanted = getattr(self, name)
            if wanted is not None:
                yield name, wanted
        for name, values in (("tag", self.tags), ("entity", self.entities), ("domain", self.domains)):
            for value in values:
                yield name, value if name == "tag" else folded(value)
        if self.intent is not None:
            yield "intent", folded(self.intent)

    def matches(self, row: Row, commitments: Mapping[str, Commitment]) -> bool:
        """Tell whether a row is meant.

        Args:
            row: it.
            commitments: those that replay made, for ``state``.
        """
        if self.lines is not None and row.line not in self.lines:
            return False
        if self.id_prefix is not None and not (row.id or "").startswith(self.id_prefix):
            return False
        if self.state is not None:
            record = commitments.get(row.id or "")
            if record is None or record.line != row.line or record.state != self.state:
                return False
        wanted = set(self.facets())
        if wanted and not wanted.issubset(facets_of(row.value)):
            return False
        return self._in_time(row.value.get("ts")) and (not self.phrases or self._in_body(row.value))

    def _in_time(self, ts: Any) -> bool:
        if self.since is None and self.until is None:
            return True
        instant = parse_instant(ts) if type(ts) is str else None
        if instant is None:
            return False
        return (self.since is None or self.since <= instant) and (self.until is None or instant < self.until)

    def _in_body(self, value: Mapping[str, Any]) -> bool:
        body = f" {' '.join(words_of(body_of(value)))} "
        return all(f" {' '.join(phrase)} " in body for phrase in self.phrases)


def body_of(value: Mapping[str, Any]) -> str:
    """Return the body of a row, empty where it has none."""
    payload = value.get("payload")
    body = payload.get("body") if type(payload) is dict else None
    return body if type(body) is str else ""


def facets_of(value: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the fields of a row by which it can be found, as pairs of name and value.

    Operation and kind are as read: version 1 notes are ``annotate`` of that kind, a missing kind is the default.
    """
    found: set[tuple[str, str]] = set()
    payload, semantic = value.get("payload"), value.get("semantic")
    fields: dict[str, Any] = payload if type(payload) is dict else {}
    singles = {
        "op": read_op(value.get("op")),
        "kind": read_kind(value.get("op"), fields),
        "actor": value.get("actor"),
        "workspace": value.get("workspace"),
        "level": value.get("observationLevel"),
        "source_key": value.get("source_key"),
    }
    found.update((name, item) for name, item in singles.items() if type(item) is str)
    tags = fields.get("tags")
    if type(tags) is list:
        found.update(("tag", tag) for tag in tags if type(tag) is str)
    if type(semantic) is dict:
        for name, member in (("entity", "entities"), ("domain", "domain")):
            items = semantic.get(member)
            if type(items) is list:
                found.update((name, folded(item)) for item in items if type(item) is str)
        if type(semantic.get("intent")) is str:
            found.add(("intent", folded(semantic["intent"])))
    return found
