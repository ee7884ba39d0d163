"""The streaming verifier: framing, content, links and cutover of a ledger file (ledger spec §3, §4, §6, §16)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, MutableSet
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from troth.core.digests import ZERO, is_digest
from troth.core.strictjson import JsonFault
from troth.ledger.codes import FAULTS, WARNINGS
from troth.ledger.cutover import MARK, Prefix, cutover_of
from troth.ledger.fastpath import Stretch, quick, stretch
from troth.ledger.fields import READ_OPS, is_blank
from troth.ledger.hashing import fold_head, row_hash, stored_form
from troth.ledger.leaves import Leaves, leaf_of, leaves_of
from troth.ledger.rows import MAX_ROW_BYTES, Row, parse_row, row_of
from troth.ledger.seen import LONGEST_PLAIN_ID, SeenDigests, compact_id

BLOCK_BYTES: Final = 1 << 16
"""Lines looked at together; small enough for the caches of a processor."""

_TOO_LONG: Final = MAX_ROW_BYTES + 16  # a BOM and a carriage return do not make a row of what is left
_CR: Final = 0x0D
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
    ``prefix_sha256`` is the digest of the bytes before the first hashed row, ``None`` without unhashed rows.
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
    prefix_sha256: str | None = None

    @property
    def cutover_due(self) -> Prefix | None:
        """Return the prefix that the next row is to be preceded by an event about, ``None`` where none is due (§6)."""
        return None if self.hashed or self.prefix_sha256 is None else Prefix(self.unhashed, self.prefix_sha256)

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
            "prefix_sha256": self.prefix_sha256,
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
        leaves: takes the leaf of every well-formed row, as :mod:`troth.ledger.leaves` makes it.
    """

    def __init__(
        self,
        *,
        unhashed_prefix: int | None = None,
        expect_head: str | None = None,
        expect_rows: int | None = None,
        leaves: Leaves | None = None,
    ) -> None:
        self._leaves = leaves
        self._prefix_allowed = unhashed_prefix
        self._expect_head = expect_head
        self._expect_rows = expect_rows
        self._head_at_expected: str | None = ZERO if expect_rows == 0 else None
        self._faults: list[Fault] = []
        self._warnings: list[Warning_] = []
        self._ids: MutableSet[str | bytes] = set()
        self._digests = SeenDigests()
        self._odd: set[bytes] = set()
        self._last_hash: Any = ZERO
        self._value: dict[str, Any] = {}
        self._torn = False
        self._prefix = sha256()  # the bytes before the first hashed row
        self._prefix_told: str | None = None
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
        if terminated and self._regular(raw):
            value = self._value
            return Row(self.line, value, value["id"], value["op"], value["hash"])
        return self._careful(raw, terminated)

    def feed_all(self, chunks: Iterable[bytes], apply: Callable[[Row], None] | None = None) -> None:
        """Take the rest of a file in chunks of any size, handing every row to ``apply``."""
        keep = apply is not None
        for block, terminated in whole_lines(chunks):
            if terminated:
                self.feed_block(block, stretch(block, keep), apply)
            else:
                row = self._careful(block, False)
                if apply is not None and row is not None:
                    apply(row)

    def feed_block(self, block: bytes, found: Stretch | None, apply: Callable[[Row], None] | None = None) -> None:
        """Take whole lines and what ``stretch`` found in them, perhaps in another process.

        Args:
            block: terminated lines, without the last line feed.
            found: ``stretch(block, keep)`` of :mod:`troth.ledger.fastpath`, with the values when ``apply`` is given.
            apply: takes every row.
        """
        # The first hashed row may speak of what stands before it, which takes more than its hash.
        speaks = not self.hashed and MARK in block[: block.find(b"\n") + 1 or len(block)]
        if found is None or speaks or not self.join(found):
            for raw in block.split(b"\n"):
                row = self.feed(raw)
                if apply is not None and row is not None:
                    apply(row)
        elif apply is not None:
            line = self.line - len(found.hashes)
            for value in found.values:
                line += 1
                apply(Row(line, value, value["id"], value["op"], value["hash"]))

    def join(self, found: Stretch) -> bool:
        """Take a stretch that continues the chain with ids nobody used; otherwise change nothing and answer no.

        Behind the first hashed row the bytes of the stretch are not needed; after a no its lines must be fed.
        """
        names = set(found.ids)
        if (
            found.first_link != self._last_hash
            or (self.hashed and found.first_link == ZERO)
            or len(names) != len(found.ids)
            or not self._ids.isdisjoint(names)
        ):
            return False
        self._ids |= names
        self._digests.extend(bytes.fromhex("".join(found.hashes)))
        count = len(found.hashes)
        head, expected = self.head, self._expect_rows
        folded = self.hashed
        for recomputed in found.hashes:
            head = sha256((head + recomputed).encode()).hexdigest()
            folded += 1
            if folded == expected:
                self._head_at_expected = head
        self.head = head
        self._last_hash = found.hashes[-1]
        if self._leaves is not None:
            self._leaves(leaves_of(found.first_link, found.hashes))
        self.line += count
        self.total += count
        self.verified += count
        self.hashed = folded
        return True

    def _regular(self, raw: bytes) -> bool:
        """Take a line that has nothing to report, the usual case; otherwise change nothing and answer no."""
        if not raw or raw[-1] == _CR:
            return False
        pair = quick(raw)
        if pair is None:
            return False
        value, recomputed = pair
        identifier, op, link = value.get("id"), value.get("op"), value["prevHash"]
        if (
            value["hash"] != recomputed
            or type(link) is not str
            or link != self._last_hash
            or (self.hashed and link == ZERO)
            or type(identifier) is not str
            or not 0 < len(identifier) <= LONGEST_PLAIN_ID
            or identifier in self._ids
            or type(op) is not str
            or op not in READ_OPS
            or type(value.get("payload")) is not dict
            or recomputed == ZERO
            or (not self.hashed and MARK in raw)
        ):
            return False
        self._ids.add(identifier)
        self._digests.add(bytes.fromhex(recomputed))
        self._last_hash = recomputed
        self.head = head = sha256((self.head + recomputed).encode()).hexdigest()
        self.line += 1
        self.total += 1
        self.verified += 1
        self.hashed += 1
        if self.hashed == self._expect_rows:
            self._head_at_expected = head
        if self._leaves is not None:
            self._leaves([leaf_of(recomputed, link.encode("utf-8"))])
        self._value = value
        return True

    def _careful(self, raw: bytes, terminated: bool) -> Row | None:
        """Take a line by every rule, and keep the digest of what stands before the first hashed row."""
        if not raw and not terminated:
            return None
        row = self._by_every_rule(raw, terminated)
        if not self.hashed and not self._torn:
            self._prefix.update(raw)
            self._prefix.update(b"\n")
        return row

    def _by_every_rule(self, raw: bytes, terminated: bool) -> Row | None:
        """Take a line, in the order in which the rules are written down."""
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
            self._torn = not terminated
            self._fault(None, "malformed" if terminated else "torn_tail", fault.message)
            return None
        row = row_of(self.line, value)
        if not terminated:
            self._warn(row.id, "unterminated")
        self._take(row)
        return row

    def _take(self, row: Row) -> None:
        value = row.value
        before = len(self._faults)
        if is_blank(value.get("id")) or row.op not in READ_OPS or not isinstance(value.get("payload"), dict):
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
            if self._leaves is not None:
                self._leaves([leaf_of(row_hash(value), b"")])
            return
        if not self.hashed:
            self._check_cutover(row)
        stored = value["hash"]
        recomputed = row_hash(value)
        if recomputed != stored:
            self._fault(row.id, "content_mismatch", f"the content gives {recomputed}")
        link = stored_form(value["prevHash"])
        if self._leaves is not None:
            self._leaves([leaf_of(recomputed, link)])
        self._check_link(row.id, link)
        form = stored_form(stored)
        self._remember(form, stored)
        if len(self._faults) == before:
            self.verified += 1

    def _check_cutover(self, row: Row) -> None:
        """Compare what the first hashed row says of the rows before it with what was found there."""
        told = cutover_of(row.value)
        found = Prefix(self.unhashed, self._prefix.hexdigest())
        if told is not None and told != found:
            which = (
                f"{told.rows} unhashed rows are told and {found.rows} found"
                if told.rows != found.rows
                else f"their bytes have the digest {found.sha256}, not {told.sha256}"
            )
            self._warn(row.id, "cutover_mismatch", f"{WARNINGS['cutover_mismatch']} {which}")

    def _check_link(self, identifier: str | None, link: bytes) -> None:
        if not self.hashed:
            if link != _ZERO_FORM:
                self._fault(identifier, "missing_ancestor", "the first hashed row does not link to 64 zeros")
        elif link == _ZERO_FORM:
            self._fault(identifier, "link_mismatch", "links to zeros although hashed rows precede it")
        elif link != stored_form(self._last_hash):
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
        self._last_hash = stored
        self.hashed += 1
        self.head = fold_head(self.head, stored)
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
            last_hash=self._last_hash if isinstance(self._last_hash, str) else "",
            torn_tail=self._torn,
            prefix_sha256=(self._prefix_told or self._prefix.hexdigest()) if self.unhashed else None,
        )

    @classmethod
    def resumed(
        cls, found: Verification, line: int, ids: MutableSet[str | bytes], *, unhashed_prefix: int | None = None
    ) -> ChainReader:
        """Return a reader that goes on behind rows which were verified before, without a fault.

        Of a broken link behind them it cannot tell whether the row named was ever there: where it finds a fault, the
        ledger is to be read from the start.

        Args:
            found: what was found in those rows; at least one has a hash.
            line: physical lines that they take.
            ids: their ids, as :func:`troth.ledger.seen.compact_id` gives them.
            unhashed_prefix: as for a new reader.
        """
        reader = cls(unhashed_prefix=unhashed_prefix)
        reader.line, reader.total, reader.verified = line, found.total, found.verified
        reader.unhashed, reader.hashed, reader.head = found.unhashed, found.hashed, found.head
        reader._last_hash, reader._ids, reader._prefix_told = found.last_hash, ids, found.prefix_sha256
        return reader

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


def whole_lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Cut chunks into blocks of terminated lines, the last line feed of each taken off, and an unterminated rest.

    Yields:
        A block and ``True``, or at the end the rest of the file and ``False``. A block is at most ``BLOCK_BYTES``
        long unless one line is longer; of a line too long to be a row only the beginning is kept.
    """
    pending: list[bytes] = []
    size = 0
    for chunk in chunks:
        start, end = 0, len(chunk)
        while start < end:
            cut = chunk.rfind(b"\n", start, start + BLOCK_BYTES)
            if cut < 0:
                cut = chunk.find(b"\n", start)
            if cut < 0:
                if size <= _TOO_LONG:
                    pending.append(chunk[start : start + _TOO_LONG])
                    size += len(pending[-1])
                break
            if pending:
                # Joined once a line, so that one endless line costs no more than its length.
                first = chunk.find(b"\n", start, cut + 1)
                yield b"".join((*pending, chunk[start:first])), True
                pending, size, start = [], 0, first + 1
                if first == cut:
                    continue
            yield chunk[start:cut], True
            start = cut + 1
    if pending:
        yield b"".join(pending), False


def split_lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Cut chunks of a file into physical lines without their line feed, and whether one followed."""
    for block, terminated in whole_lines(chunks):
        if terminated:
            for line in block.split(b"\n"):
                yield line, True
        else:
            yield block, False


def verify_lines(
    data: bytes | Iterable[bytes],
    *,
    unhashed_prefix: int | None = None,
    expect_head: str | None = None,
    expect_rows: int | None = None,
) -> Verification:
    """Verify a ledger given whole or in chunks of any size (ledger spec §4)."""
    reader = ChainReader(unhashed_prefix=unhashed_prefix, expect_head=expect_head, expect_rows=expect_rows)
    reader.feed_all((data,) if isinstance(data, bytes) else data)
    return reader.finish()
