"""The quick way to a row and its hash, taken only where its bytes provably equal the reference path's.

The argument (ledger spec §3):

1. The line equals ``orjson.dumps`` of what ``orjson.loads`` made of it. A serialiser writes no member twice, no
   white space, no integer it could not hold and each string in one spelling only, so a line with a repeated
   member, odd spacing, a long integer or an odd number cannot equal it; and what it writes is JSON whose reading
   by the reference path gives the same value.
2. The nesting is at most 100, because there are at most 100 opening brackets.
3. The sorted serialisation is ASCII without U+007F, and holds no number below 0.0001: the two places where this
   serialiser and the canonical form differ. Every ``/`` is then escaped.

Anything else goes the reference path. What is assumed about the installed orjson is tested once, on import
(``_holds``); when it does not hold, every row goes the reference path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from hashlib import sha256
from json.encoder import encode_basestring_ascii as _escape_all
from typing import Any, Final, NamedTuple

import orjson

from troth.core.canonical import hashed_form
from troth.core.digests import ZERO
from troth.core.strictjson import LEDGER_ROW, JsonFault, loads
from troth.ledger.fields import READ_OPS
from troth.ledger.rows import MAX_ROW_BYTES
from troth.ledger.seen import LONGEST_PLAIN_ID

_MAX_OPENINGS: Final = LEDGER_ROW.max_depth
_loads = orjson.loads
_dumps = orjson.dumps
_SORTED: Final = orjson.OPT_SORT_KEYS
_STRICT: Final = orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_DATACLASS

# A number below 0.0001 is written `0.0000…` or with a negative exponent. Both patterns begin with a rare
# character, which the search finds quickly; inside a string they only cost the reference path.
_tiny_fixed = re.compile(rb"\.0000").search
_tiny_scientific = re.compile(rb"-(?<=e-)[0-9]").search
_no_bytes = sha256()
_TEXT: Final = frozenset({str})

MAX_BLOCK_BYTES: Final = MAX_ROW_BYTES
"""A block is no longer than a row may be, so that no row in it is."""

_NOT_OPENINGS: Final = bytes(set(range(256)) - set(b"{[\n"))


def _escaped(canonical: bytes) -> bytes:
    """Return sorted JSON with every character outside U+0020-U+007E as ``\\u`` escapes.

    The whole text is escaped as if it were one string, which also puts a backslash before each quotation mark
    and each backslash; those are taken away again. Every quotation mark has exactly one such backslash directly
    before it, and of a run of backslashes all but a last one that begins a ``\\u`` come in pairs.
    """
    text = _escape_all(canonical.decode("utf-8"))[1:-1]
    return text.replace('\\"', '"').replace("\\\\", "\\").encode("ascii")


def _quick(raw: bytes) -> tuple[dict[str, Any], str] | None:
    if len(raw) > MAX_ROW_BYTES:
        return None
    try:
        value = _loads(raw)
        if _dumps(value) != raw:
            return None
    except (ValueError, TypeError):  # not JSON; nested too deep for the serialiser
        return None
    if (
        type(value) is not dict
        or raw.count(b"{") + raw.count(b"[") > _MAX_OPENINGS
        or _tiny_fixed(raw)
        or _tiny_scientific(raw)
    ):
        return None
    stored, link = value.get("hash"), value.get("prevHash")
    if not stored or not link:
        return None
    value["hash"] = value["prevHash"] = ""
    canonical = _dumps(value, option=_SORTED)
    if not canonical.isascii() or b"\x7f" in canonical:
        canonical = _escaped(canonical)
    value["hash"] = stored
    value["prevHash"] = link
    return value, sha256(canonical.replace(b"/", b"\\/")).hexdigest()


def _plain(raw: bytes) -> dict[str, Any] | None:
    if len(raw) > MAX_ROW_BYTES or raw.count(b"{") + raw.count(b"[") > _MAX_OPENINGS:
        return None
    try:
        value = _loads(raw)
        if type(value) is not dict or _dumps(value) != raw:
            return None
    except (ValueError, TypeError):
        return None
    return value if not value.get("hash") or value.get("prevHash") else None


def _sealed(row: dict[str, Any]) -> bytes | None:
    link = row["prevHash"]
    row["hash"] = row["prevHash"] = ""
    try:
        canonical = _dumps(row, option=_SORTED)
        if b".0000" in canonical or (b"e-" in canonical and _tiny_scientific(canonical)):
            return None
        if not canonical.isascii() or b"\x7f" in canonical:
            canonical = _escaped(canonical)
        # A copy costs a third of a new one, where the caches are cold.
        digest = _no_bytes.copy()
        digest.update(canonical.replace(b"/", b"\\/"))
        row["hash"] = digest.hexdigest()
        row["prevHash"] = link
        return _dumps(row)
    except (ValueError, TypeError):  # nothing that was admitted; the reference path says what
        return None
    finally:
        row["prevHash"] = link


def _texts_alone(value: Any) -> bool:
    """Tell whether an object holds strings, and objects of strings, alone; then what was written needs no reading."""
    if type(value) is not dict:
        return False
    for item in value.values():
        if type(item) is not str and not (type(item) is dict and _TEXT.issuperset(map(type, item.values()))):
            return False
    return True


def _portable(value: Any) -> bool:
    try:
        written = _dumps(value, option=_STRICT)
        if _texts_alone(value):
            return True
        return written.count(b"{") + written.count(b"[") <= _MAX_OPENINGS and bool(_loads(written) == value)
    except (ValueError, TypeError):  # a surrogate, a long integer, a name that is no string, an object of any type
        return False


class Stretch(NamedTuple):
    """Consecutive rows with nothing to report among themselves but a repeated id, which are still to be joined to
    what precedes them.

    ``first_link`` is the first row's ``prevHash``; ``hashes`` and ``ids`` have one entry a row; ``values`` holds
    the rows themselves when they were asked for.
    """

    first_link: str
    hashes: list[str]
    ids: list[str]
    values: list[dict[str, Any]]


def _stretch(block: bytes, keep: bool = False) -> Stretch | None:
    # What holds for the block holds for each of its lines, and costs less asked once.
    if (
        len(block) > MAX_BLOCK_BYTES
        or b"\r" in block
        or _tiny_fixed(block)
        or _tiny_scientific(block)
        or max(map(len, block.translate(None, _NOT_OPENINGS).split(b"\n"))) > _MAX_OPENINGS
    ):
        return None
    has_delete = b"\x7f" in block
    lines = block.split(b"\n")
    links: list[str] = []
    hashes: list[str] = []
    ids: list[str] = []
    try:
        values = list(map(_loads, lines))
        if list(map(_dumps, values)) != lines:
            return None
        for value in values:
            stored, link = value["hash"], value["prevHash"]
            if value["op"] not in READ_OPS or type(value["payload"]) is not dict:
                return None
            value["hash"] = value["prevHash"] = ""
            canonical = _dumps(value, option=_SORTED)
            if has_delete or not canonical.isascii():
                canonical = _escaped(canonical)
            recomputed = sha256(canonical.replace(b"/", b"\\/")).hexdigest()
            if stored != recomputed:
                return None
            hashes.append(recomputed)
            links.append(link)
            ids.append(value["id"])
            if keep:
                value["hash"] = stored
                value["prevHash"] = link
        joined = "".join(ids)  # a TypeError unless every id is a string
    except (ValueError, TypeError, KeyError):  # not JSON, too deep, a member absent or of a wrong type
        return None
    if not joined or "" in ids or len(max(ids, key=len)) > LONGEST_PLAIN_ID:
        return None
    # Equal to digests, the links behind the first are strings too.
    if type(links[0]) is not str or links[1:] != hashes[:-1] or ZERO in hashes:
        return None
    return Stretch(links[0], hashes, ids, values if keep else [])


def _never(_: bytes, __: bool = False) -> None:
    return None


def _never_plain(_: bytes) -> None:
    return None


def _never_sealed(_: dict[str, Any]) -> None:
    return None


def _never_portable(_: Any) -> bool:
    return False


def _holds() -> bool:
    """Tell whether the installed orjson does what ``_quick`` rests on."""
    texts = ["".join(map(chr, range(0x80))), "é\u2028\uffff\U0001f600", "/\\/", ""]
    numbers = [0, -1, 2**53, 2**63, 2**64 - 1, -(2**63), 0.0, -0.0, 1.0, 0.85, 0.1, 100.0, 0.0001, 0.00012345]
    numbers += [1e15, 123456789012345.6, 9007199254740993.0, 1234567890123456.7, 1e16, 1e17, 1.5e20, 1e21, 1e22]
    numbers += [1e23, 1.7976931348623157e308, -1.2345678901234567e-4, 5e300, 2.0**63, 2.0**64, 1 / 3, 2 / 3e-3]
    plain: dict[str, Any] = {
        "z": None,
        "é": True,
        "\U0001f600": False,
        "\ufb01": [],
        "a": {},
        "a/b": "",
        "A": [[{}]],
        "": numbers,
    }
    for value in (*texts, numbers, plain, {"nested": [plain, *texts]}):
        ours = _dumps(value, option=_SORTED)
        if loads(ours, LEDGER_ROW) != value or _loads(_dumps(value)) != value:
            return False
        for escaped in (_escaped(ours), ours):
            plain_ascii = escaped.isascii() and b"\x7f" not in escaped
            if plain_ascii and escaped.replace(b"/", b"\\/") != hashed_form(value):
                return False
    if list(_loads(_dumps(plain, option=_SORTED))) != sorted(plain):
        return False
    for tiny in (0.00001, 9.999e-5, 1e-6, 1e-7, 1.5e-9, 1e-10, 2.5e-100, 5e-324, -0.00001, -1e-7):
        if not (_tiny_fixed(_dumps(tiny)) or _tiny_scientific(_dumps(tiny))):
            return False
    never_equal = (
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"b":1}}',
        b'[{"a":1,"\\u0061":1}]',
        b'{"a": 1}',
        b"[1 ]",
        b"-0",
        b"1e5",
        b"1E5",
        b"1.50",
        b"18446744073709551616",
        b"-9223372036854775809",
        b"1e999",
        b"NaN",
        b'"\\/"',
        b'"\\u0041"',
        b'"\\ud800"',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf1",
        b'"\t"',
        b"01",
        b"1 2",
    )
    if any(_survives(line) for line in never_equal):
        return False
    never_portable = (2**53, -(2**53), math.nan, math.inf, "\ud800", {"\udfff": 1}, {1: 1}, (1,), {"a": [(1,)]}, b"a")
    return not any(_portable(value) for value in (*never_portable, {1}, object())) and _portable(plain["A"])


def _survives(line: bytes) -> bool:
    try:
        return bool(_dumps(_loads(line)) == line)
    except (ValueError, TypeError):
        return False


def _trusted() -> bool:
    try:
        return _holds()
    except (ValueError, TypeError, JsonFault):
        return False


QUICK: Final = _trusted()
"""Whether the quick way is taken at all."""

quick: Final[Callable[[bytes], tuple[dict[str, Any], str] | None]] = _quick if QUICK else _never
"""Return a line's row and the hash its content gives, or ``None`` when the reference path must look at it.

Only rows with a ``hash`` and a ``prevHash`` are taken.
"""

plain: Final[Callable[[bytes], dict[str, Any] | None]] = _plain if QUICK else _never_plain
"""Return a line's row, its hash not looked at, or ``None`` when the reference path must read it."""

sealed: Final[Callable[[dict[str, Any]], bytes | None]] = _sealed if QUICK else _never_sealed
"""Set the ``hash`` of a row whose values were found portable and return the row's line (no line feed), or return
``None``, and the reference path must set it.
"""

portable: Final[Callable[[Any], bool]] = _portable if QUICK else _never_portable
"""Tell quickly that a value is portable JSON as a writer must give it; "no" only means that one must look closely.

What is written, read again and still equal holds nothing but what JSON has: an infinity comes back as null, a tuple
as a list, an object of another type as a string, and the serialiser itself refuses unpaired surrogates, integers
beyond 2**53 - 1 and names that are no strings.
"""

stretch: Final[Callable[[bytes, bool], Stretch | None]] = _stretch if QUICK else _never
"""Return what whole lines (line feeds between them, none after the last) amount to, or ``None`` when one of them
has anything to report or needs the reference path.

A pure function of the bytes, so that blocks of one file can be looked at by several processes. The second argument
asks for the values too.
"""
