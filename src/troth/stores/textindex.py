"""A throw-away index of words and fields, so that ``find`` need not read a large ledger: SQLite in the cache folder.

It proposes lines; every row proposed is read from the ledger and compared again, so an index that somebody bent can
hide rows and cannot invent any. It counts only while the ledger's identity is what it was, or while the bytes it
covers still have their digest; a ledger that grew adds to it. Deleting it changes nothing but time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from troth import __version__
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.core.strictjson import JsonFault
from troth.ledger.fastpath import plain
from troth.ledger.rows import Row, parse_row, row_of
from troth.ledger.search import Query, body_of, facets_of, words_of
from troth.stores import index
from troth.stores.durable import O_BINARY, O_CLOEXEC, O_NOFOLLOW, open_regular
from troth.stores.lines import CHUNK, KEPT, physical_lines
from troth.stores.memory import Identity, identity
from troth.stores.snapshot import bare

if TYPE_CHECKING:
    import sqlite3

_FORMAT: Final = f"1 {__version__}"
_BATCH: Final = 5000
_ROW_BYTES: Final = 4096
_WAIT_SECONDS: Final = 2.0

_SCHEMA: Final = """
CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE place (line INTEGER PRIMARY KEY, start INTEGER NOT NULL);
CREATE VIRTUAL TABLE text USING fts5 (words, facets, content='', tokenize='ascii');
"""


class Unusable(Exception):
    """The index cannot answer; the ledger can."""


class _Covered(NamedTuple):
    """The beginning of a ledger: its bytes, its lines, its digest, ready to go on."""

    size: int
    lines: int
    digest: hashlib._Hash


def can_narrow(query: Query) -> bool:
    """Tell whether the index knows anything that the query asks."""
    return bool(query.phrases) or next(query.facets(), None) is not None


def candidates(ledger: Path, query: Query, *, newest: bool) -> Iterator[Row]:
    """Yield the rows that may be meant, in file order or the newest first; among them are all that are.

    The ledger must be sound. The index is built, or brought up to date, first.

    Raises:
        Unusable: there is no cache folder, no full-text search in this SQLite, a foreign or damaged file, a ledger
            that changes meanwhile or ends within a line; also in the midst of the rows.
    """
    try:
        import sqlite3
    except ImportError:
        raise Unusable from None
    try:
        fd = open_regular(ledger, os.O_RDONLY, "E_NO_LEDGER", "the ledger")
        try:
            found = identity(fd)
            with contextlib.closing(_current(sqlite3, ledger, fd, found)) as database:
                order = "DESC" if newest else "ASC"
                asked = database.execute(
                    f"SELECT line, start FROM text JOIN place ON line = text.rowid WHERE text MATCH ? "  # noqa: S608 - the order is one of two words
                    f"ORDER BY text.rowid {order}",
                    (_match(query),),
                )
                for line, start in asked:
                    yield _row_at(fd, line, start)
            if identity(fd) != found:
                raise Unusable
        finally:
            os.close(fd)
    except (OSError, Refused, sqlite3.Error, ValueError, TypeError, OverflowError):
        raise Unusable from None


def _match(query: Query) -> str:
    """Return the query in FTS5's language; only letters and digits get between its quotes."""
    parts = [f'words : "{" ".join(phrase)}"' for phrase in query.phrases]
    parts += [f'facets : "{_token(*facet)}"' for facet in query.facets()]
    return " AND ".join(parts)


def _token(name: str, value: str) -> str:
    """Return one word that stands for a field's value; two that share it are told apart in the ledger."""
    return f"{name}{sha256_hex(value.encode())[:16]}".replace("_", "")


def _row_at(fd: int, line: int, start: int) -> Row:
    os.lseek(fd, start, os.SEEK_SET)
    raw = b""
    while b"\n" not in raw and len(raw) < KEPT:
        piece = os.read(fd, _ROW_BYTES)
        if not piece:
            raise Unusable
        raw += piece
    row = _parsed(raw[: raw.find(b"\n")], line)
    if row is None:
        raise Unusable
    return row


def _parsed(raw: bytes, line: int) -> Row | None:
    text = bare(raw, line)
    if not text:
        return None
    value = plain(text)
    if value is None:
        try:
            value = parse_row(text)
        except JsonFault:
            return None
    return row_of(line, value)


def _current(module: Any, ledger: Path, fd: int, found: Identity) -> sqlite3.Connection:
    """Return the index of the ledger as it is now, open."""
    folder = index.cache_folder()
    if folder is None:
        raise Unusable
    path = folder / "ledgers" / f"{sha256_hex(os.fsencode(ledger))}.sqlite"
    database: sqlite3.Connection | None = None
    with contextlib.suppress(OSError, Unusable, module.Error, ValueError, TypeError, KeyError):
        database = _opened(module, path)
        _bring_up(database, fd, found)
        return database
    if database is not None:
        database.close()
    return _built(module, path, fd, found)


def _opened(module: Any, path: Path) -> sqlite3.Connection:
    looked = path.lstat()
    mine = os.name == "nt" or (looked.st_uid == os.geteuid() and not looked.st_mode & 0o077)
    if not stat.S_ISREG(looked.st_mode) or not mine:
        raise Unusable
    database: sqlite3.Connection = module.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=_WAIT_SECONDS, isolation_level=None
    )
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _about(database: sqlite3.Connection) -> dict[str, Any]:
    return dict(database.execute("SELECT name, value FROM about"))


def _bring_up(database: sqlite3.Connection, fd: int, found: Identity) -> None:
    """Make an index that was true once true for the ledger as it is, or raise :class:`Unusable`."""
    told = _about(database)
    if told["format"] != _FORMAT:
        raise Unusable
    if told["identity"] == repr(found) and told["made"] - max(found[3], found[4]) >= index.SETTLED_NANOSECONDS:
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        told = _about(database)  # somebody else may have added to it meanwhile
        _add(database, fd, found, _covered(fd, told, found[2]))
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


def _covered(fd: int, told: dict[str, Any], whole: int) -> _Covered:
    """Return what the index covers, if the ledger still begins with those bytes."""
    left = told["size"]
    if not 0 <= left <= whole:
        raise Unusable
    digest = hashlib.sha256()
    os.lseek(fd, 0, os.SEEK_SET)
    while left:
        chunk = os.read(fd, min(left, CHUNK))
        if not chunk:
            raise Unusable
        digest.update(chunk)
        left -= len(chunk)
    if digest.digest() != told["digest"]:
        raise Unusable
    return _Covered(told["size"], told["lines"], digest)


def _built(module: Any, path: Path, fd: int, found: Identity) -> sqlite3.Connection:
    """Return a new index, made beside the place of the old one and put there whole."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temp = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    os.close(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_BINARY, 0o600))
    try:
        database: sqlite3.Connection = module.connect(
            f"{temp.as_uri()}?mode=rw", uri=True, timeout=_WAIT_SECONDS, isolation_level=None
        )
        with contextlib.closing(database):
            # It appears whole or not at all, so nothing here needs to survive a crash.
            database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")
            database.execute("BEGIN")
            _add(database, fd, found, _Covered(0, 0, hashlib.sha256()))
            database.execute("COMMIT")
        temp.replace(path)
    finally:
        temp.unlink(missing_ok=True)
    return _opened(module, path)


def _add(database: sqlite3.Connection, fd: int, found: Identity, covered: _Covered) -> None:
    """Add the lines that are not covered up to the end that the ledger had, and note what is covered now."""
    start, line, digest = covered
    words: list[tuple[int, str, str]] = []
    places: list[tuple[int, int]] = []

    def send() -> None:
        database.executemany("INSERT INTO text (rowid, words, facets) VALUES (?, ?, ?)", words)
        database.executemany("INSERT INTO place VALUES (?, ?)", places)
        words.clear()
        places.clear()

    token = lru_cache(_BATCH)(_token)  # the same few fields come again and again
    for raw, terminated in physical_lines(fd, start, found[2]):
        if not terminated:
            raise Unusable
        line += 1
        row = _parsed(raw, line)
        if row is not None:
            facets = " ".join([token(*facet) for facet in facets_of(row.value)])
            words.append((line, " ".join(words_of(body_of(row.value))), facets))
            places.append((line, start))
            if len(words) >= _BATCH:
                send()
        digest.update(raw + b"\n")
        start += len(raw) + 1
    send()
    if start != found[2] or identity(fd) != found:
        raise Unusable
    facts = {
        "format": _FORMAT,
        "identity": repr(found),
        "made": time.time_ns(),
        "size": start,
        "lines": line,
        "digest": digest.digest(),
    }
    database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", facts.items())
