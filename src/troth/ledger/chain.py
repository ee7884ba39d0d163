"""The streaming verifier: framing, content, links and cutover of a ledger file (ledger spec §3, §4, §6, §16)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from troth.core.digests import ZERO, is_digest
from troth.core.strictjson import JsonFault
from troth.ledger.codes import FAULTS, WARNINGS
from troth.ledger.fields import READ_OPS
from troth.ledger.hashing import fold_head, row_hash, stored_form
from troth.ledger.rows import Row, parse_row, row_of
from troth.ledger.seen import SeenDigests, compact_id

BOM: Final = b"\xef\xbb\xbf"
_ZERO_FORM: Final = ZERO.encode("ascii")
_DIGEST: Final = re.compile(rb"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the physical line (``None``: the ledger as a whole), the row's id where known, the name of §4."""

    line: int | None
    id: str | None
    fault: str
    message: str

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {"line": self.line, "id": self.id, "fault": self.fault, "message": self.message}


@dataclass(frozen=True, slots=True)
class Warning_:  # noqa: N801 - the builtin has the name
    """One warning, with the same members as a fault."""

    line: int | None
    id: str | None
    warning: str
    message: str

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {"line": self.line, "id": self.id, "warning": self.warning, "message": self.message}


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found.

    ``total`` counts lines that are not blank, ``verified`` hashed rows without any fault, ``unhashed`` the rows
    without a hash before the first hashed row, ``hashed`` the rows folded into ``head``. ``last_hash`` is what
    the next row links to, 64 zeros when there is no hashed row. ``torn_tail`` tells that the last line is torn.
    """

    verified: int
    total: int
    unhashed: int
    hashed: int
    faults: tuple[Fault, ...]
    warnings: tuple[Warning_, ...]
    head: str
    last_hash: str
    torn_tail: bool

    @property
    def ok(self) -> bool:
        """Tell whether there is no fault."""
        return not self.faults

    def summary(self) -> str:
        """Return ``<verified>/<total> verified``, with the unhashed rows where there are any (§4, §6)."""
        text = f"{self.verified}/{self.total} verified"
        return f"{text}, {self.unhashed} unhashed" if self.unhashed else text

    def as_json(self) -> dict[str, Any]:
        """Return every member and ``ok``."""
        return {
            "ok": self.ok,
            "verified": self.verified,
            "total": self.total,
            "unhashed": self.unhashed,
            "hashed": self.hashed,
            "head": self.head,
            "last_hash": self.last_hash,
            "torn_tail": self.torn_tail,
            "faults": [fault.as_json() for fault in self.faults],
            "warnings": [warning.as_json() for warning in self.warnings],
        }


class ChainReader:
    """Verifies a ledger line by line, with constant work a row.

    Args:
        unhashed_prefix: the configured number of unhashed rows, ``None`` when the setting is absent.
        expect_head: the head digest the caller remembers.
        expect_rows: the number of hashed rows that head was taken over; with it, later rows are allowed and
            fewer rows are told apart from changed ones (§16).
    """

    def __init__(
        self,
        *,
        unhashed_prefix: int | None = None,
        expect_head: str | None = None,
        expect_rows: int | None = None,
    ) -> None:
        self._prefix_allowed = unhashed_prefix
        self._expect_head = expect_head
        self._expect_rows = expect_rows
        self._head_at_expected: str | None = ZERO if expect_rows == 0 else None
        self._faults: list[Fault] = []
        self._warnings: list[Warning_] = []
        self._ids: set[str | bytes] = set()
        self._digests = SeenDigests()
        self._odd: set[bytes] = set()
        self._last = _ZERO_FORM
        self._last_is_text = True
        self._torn = False
        self.line = 0
        self.total = 0
        self.verified = 0
        self.unhashed = 0
        self.hashed = 0
        self.head = ZERO

    def feed(self, raw: bytes, terminated: bool = True) -> Row | None:
        """Take the next physical line, without its line feed.

        Args:
            raw: the bytes of the line; a BOM, one trailing carriage return and emptiness are dealt with here.
            terminated: whether a line feed followed; only the last line may lack it.

        Returns:
            The row, or ``None`` for a blank, malformed or torn line.
        """
        if not raw and not terminated:
            return None
        self.line += 1
        if self.line == 1 and raw.startswith(BOM):
            self._warn(None, "bom")
            raw = raw[len(BOM) :]
        if raw.endswith(b"\r"):
            self._warn(None, "carriage_return")
            raw = raw[:-1]
        if not raw:
            if terminated:
                self._warn(None, "blank_line")
            return None
        self.total += 1
        try:
            value = parse_row(raw)
        except JsonFault as fault:
            if terminated:
                self._fault(None, "malformed", fault.message)
            else:
                self._torn = True
                self._fault(None, "torn_tail", fault.message)
            return None
        row = row_of(self.line, value)
        if not terminated:
            self._warn(row.id, "unterminated")
        self._take(row)
        return row

    def _take(self, row: Row) -> None:
        value = row.value
        before = len(self._faults)
        if row.id is None or row.op not in READ_OPS or not isinstance(value.get("payload"), dict):
            self._warn(row.id, "envelope")
        if row.id is not None:
            key = compact_id(row.id)
            if key in self._ids:
                self._fault(row.id, "duplicate_id")
            self._ids.add(key)
        if not row.hashed:
            if self.hashed:
                self._fault(row.id, "unhashed_after_cutover")
            else:
                self.unhashed += 1
            return
        stored = value["hash"]
        recomputed = row_hash(value)
        if recomputed != stored:
            self._fault(row.id, "content_mismatch", f"the content gives {recomputed}")
        self._check_link(row.id, stored_form(value["prevHash"]))
        form = stored_form(stored)
        self._remember(form, stored)
        if len(self._faults) == before:
            self.verified += 1

    def _check_link(self, identifier: str | None, link: bytes) -> None:
        if not self.hashed:
            if link != _ZERO_FORM:
                self._fault(identifier, "missing_ancestor", "the first hashed row does not link to 64 zeros")
        elif link == _ZERO_FORM:
            self._fault(identifier, "link_mismatch", "links to zeros although hashed rows precede it")
        elif link != self._last:
            name = "link_mismatch" if self._was_seen(link) else "missing_ancestor"
            self._fault(identifier, name)

    def _was_seen(self, link: bytes) -> bool:
        if _DIGEST.fullmatch(link) is None:
            return link in self._odd
        return bytes.fromhex(link.decode("ascii")) in self._digests

    def _remember(self, form: bytes, stored: Any) -> None:
        if is_digest(stored):
            self._digests.add(bytes.fromhex(stored))
        else:
            self._odd.add(form)
        self._last = form
        self._last_is_text = isinstance(stored, str)
        self.hashed += 1
        self.head = fold_head(self.head, form)
        if self.hashed == self._expect_rows:
            self._head_at_expected = self.head

    def _fault(self, identifier: str | None, name: str, message: str | None = None) -> None:
        self._faults.append(Fault(self.line, identifier, name, message or FAULTS[name]))

    def _warn(self, identifier: str | None, name: str, message: str | None = None) -> None:
        self._warnings.append(Warning_(self.line, identifier, name, message or WARNINGS[name]))

    def finish(self) -> Verification:
        """Return what was found so far; more lines may still be fed afterwards."""
        faults, warnings = list(self._faults), list(self._warnings)
        if self._prefix_allowed is None:
            if self.unhashed:
                warnings.append(Warning_(None, None, "unhashed_prefix", WARNINGS["unhashed_prefix"]))
        elif self._prefix_allowed != self.unhashed:
            message = f"{self.unhashed} unhashed rows at the start, {self._prefix_allowed} are configured"
            faults.append(Fault(None, None, "unhashed_count", message))
        complaint = self._head_complaint()
        if complaint is not None:
            faults.append(Fault(None, None, "head_mismatch", complaint))
        return Verification(
            verified=self.verified,
            total=self.total,
            unhashed=self.unhashed,
            hashed=self.hashed,
            faults=tuple(faults),
            warnings=tuple(warnings),
            head=self.head,
            last_hash=self._last.decode("utf-8") if self._last_is_text else "",
            torn_tail=self._torn,
        )

    def _head_complaint(self) -> str | None:
        if self._expect_head is None:
            return None
        if self._expect_rows is None:
            if self.head == self._expect_head:
                return None
            return f"the head digest is {self.head}, not {self._expect_head}"
        if self.hashed < self._expect_rows:
            return f"cut: {self.hashed} hashed rows where {self._expect_rows} were anchored"
        if self._head_at_expected != self._expect_head:
            return (
                f"changed: the head digest over {self._expect_rows} hashed rows is {self._head_at_expected}, "
                f"not {self._expect_head}"
            )
        return None


def split_lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Cut chunks of a file into physical lines without their line feed, and whether one followed."""
    rest = b""
    for chunk in chunks:
        pieces = (rest + chunk).split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            yield piece, True
    if rest:
        yield rest, False


def verify_lines(
    data: bytes | Iterable[bytes],
    *,
    unhashed_prefix: int | None = None,
    expect_head: str | None = None,
    expect_rows: int | None = None,
) -> Verification:
    """Verify a ledger given whole or in chunks of any size (ledger spec §4)."""
    reader = ChainReader(unhashed_prefix=unhashed_prefix, expect_head=expect_head, expect_rows=expect_rows)
    for raw, terminated in split_lines((data,) if isinstance(data, bytes) else data):
        reader.feed(raw, terminated)
    return reader.finish()
