"""The table that a large ledger's state is kept in, in the user's cache folder, whatever holds the ledger.

A table holds what the rows of the ledger's beginning replayed to, and what was found when they were verified. It is
written once, appears whole, and is only ever replaced. Which beginning that is, and whether it is still the ledger's,
is for the store to say (:mod:`troth.stores.remembered`, :mod:`troth.stores.postgres.remembered`).
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from troth import __version__
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.ledger.chain import ChainReader, Verification
from troth.ledger.genesis_event import GenesisEvent
from troth.ledger.replay import Anomaly, Note, Signal, State
from troth.ledger.seen import LONGEST_PLAIN_ID
from troth.stores import index
from troth.stores.durable import O_BINARY, O_CLOEXEC, O_NOFOLLOW, open_regular, sync_file
from troth.stores.kept import KeptList, KeptMapping, KeptSet, ask

if TYPE_CHECKING:
    import sqlite3

FEW_ROWS: Final = 5000
"""So many rows behind the table, and a fiftieth of those in it, are replayed before another table is worth its time."""

_TABLES: Final = (
    "signals", "commitments", "source_keys", "cited", "dismissed", "duplicates", "untold", "tags", "anomalies", "notes",
)  # fmt: skip
_FORMAT: Final = f"2 {__version__} {index.commitment_members()}"
_SCHEMA: Final = "CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;" + "".join(
    f"CREATE TABLE {name} (key TEXT PRIMARY KEY, seq INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;"
    for name in _TABLES
)


class Unusable(Exception):
    """It cannot be kept, or what was kept cannot be used; the ledger says the same."""


EXPECTED: Final = (OSError, Refused, Unusable, ValueError, TypeError, KeyError, IndexError, AttributeError)
"""What may happen to whoever reads a table that somebody bent, or writes one where that cannot be."""


class Kept:
    """A table that a memory begins with.

    ``about`` is what it says of itself, ``stamp`` its name, ``count`` and ``line`` how many rows and physical lines it
    covers.

    Raises:
        KeyError, TypeError, ValueError: it is damaged.
    """

    def __init__(self, database: sqlite3.Connection, about: Mapping[str, Any]) -> None:
        self.database = database
        self.about = about
        self.stamp: str = about["stamp"]
        self.count: int = about["count"]
        self.line: int = about["line"]
        told = orjson.loads(about["verification"])
        self.verification = index.verification_of(told, torn_tail=told["torn_tail"] is True)
        index.must_be_counts(about["anomalies"], about["notes"])
        if type(self.count) is not int or type(self.line) is not int or not 0 < self.count <= self.line:
            raise Unusable

    def chain(self, unhashed_prefix: int | None) -> ChainReader:
        """Return the verifier behind the rows covered."""
        return ChainReader.resumed(self.verification, self.line, _Ids(self.database), unhashed_prefix=unhashed_prefix)

    def state(self) -> State:
        """Return the state after them, whose entries come into memory when they are asked for."""
        database, about = self.database, self.about
        genesis = orjson.loads(about["genesis"])
        return State(
            commitments=KeptMapping(database, "commitments", index.commitment_of),
            anomalies=KeptList(database, "anomalies", about["anomalies"], lambda values: Anomaly(*values)),
            notes=KeptList(database, "notes", about["notes"], lambda values: Note(*values)),
            signals=KeptMapping(database, "signals", lambda values: Signal(*values)),
            source_keys=KeptMapping(database, "source_keys", lambda value: value),
            cited=KeptSet(database, "cited"),
            dismissed=KeptSet(database, "dismissed"),
            duplicates=KeptMapping(database, "duplicates", dict.fromkeys),
            untold=KeptMapping(database, "untold", dict.fromkeys),
            tags=KeptMapping(database, "tags", tuple),
            genesis=None if genesis is None else GenesisEvent(*genesis),
        )


def place_of(name: bytes) -> Path | None:
    """Return where the table of the ledger with that name lies or would lie; ``None`` without a cache folder."""
    folder = index.cache_folder()
    return folder / "ledgers" / f"{sha256_hex(name)}.state" if folder is not None else None


def must_be_ours(path: Path) -> None:
    """Refuse what is no file, or one that others may read or write.

    Raises:
        Unusable, Refused, OSError: it is not ours alone.
    """
    # No link is followed and no pipe waited for.
    fd = open_regular(path, os.O_RDONLY, "E_UNREADABLE", "what was kept")
    try:
        looked = os.fstat(fd)
    finally:
        os.close(fd)
    if os.name != "nt" and (looked.st_uid != os.geteuid() or looked.st_mode & 0o077):
        raise Unusable


def opened(path: Path, key: str) -> Kept | None:
    """Return the table at a path, ``None`` where there is none, or not one of this version for that key."""
    try:
        import sqlite3
    except ImportError:
        return None
    database: sqlite3.Connection | None = None
    with contextlib.suppress(sqlite3.Error, *EXPECTED):
        must_be_ours(path)
        # The file is never written to again, so nobody needs a lock; whoever replaces it leaves us this one.
        database = sqlite3.connect(
            f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )
        database.execute("PRAGMA trusted_schema = OFF")
        about = dict(database.execute("SELECT name, value FROM about"))
        if about["format"] == _FORMAT and about["key"] == key:
            return Kept(database, about)
    if database is not None:
        database.close()
    return None


def next_due(count: int) -> int:
    """Return how many rows are worth another table, when there is one of so many."""
    return count + FEW_ROWS + count // 50


def about_of(key: str, state: State, found: Verification, *, line: int, count: int) -> dict[str, Any]:
    """Return what a table says of itself.

    Args:
        key: names the ledger and the settings it was read with.
        state: what the rows replayed to.
        found: what was found in them; no fault.
        line: physical lines that they take.
        count: how many rows they are.

    Raises:
        Unusable: of such rows no table is made.
    """
    # A reader that goes on from here finds one warning again; others it would not know of.
    told = [one for one in found.warnings if one.warning != "unhashed_prefix"]
    # The verifier knows long ids by their digest alone.
    if not found.ok or told or not found.hashed or any(len(name) > LONGEST_PLAIN_ID for name in state.signals):
        raise Unusable
    return {
        "format": _FORMAT,
        "key": key,
        "stamp": secrets.token_hex(16),
        "line": line,
        "count": count,
        "verification": orjson.dumps(found.as_json()),
        "anomalies": len(state.anomalies),
        "notes": len(state.notes),
        "genesis": orjson.dumps(None if state.genesis is None else list(state.genesis)),
    }


def write(path: Path, state: State, about: Mapping[str, Any]) -> None:
    """Write a table beside the place of the old one and put it there whole; nothing where that cannot be done."""
    try:
        import sqlite3
    except ImportError:
        return
    with contextlib.suppress(sqlite3.Error, *EXPECTED):
        _write(sqlite3, path, state, about)


def _anomaly(one: Anomaly) -> list[Any]:
    return [one.line, one.id, one.code, one.detail]


def _note(one: Note) -> list[Any]:
    return [one.line, one.id, one.warning, one.message]


_PLAIN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "signals": list,
    "commitments": index.commitment_values,
    "duplicates": list,
    "untold": list,
    "anomalies": _anomaly,
    "notes": _note,
}
"""Table -> how its values become JSON, where they are none."""


def _write(module: Any, path: Path, state: State, about: Mapping[str, Any]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temp = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    fd = os.open(temp, os.O_RDWR | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_BINARY, 0o600)
    try:
        database: sqlite3.Connection = module.connect(f"{temp.as_uri()}?mode=rw", uri=True, isolation_level=None)
        with contextlib.closing(database):
            # It appears whole or not at all, so nothing here needs to survive a crash.
            database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")
            database.execute("BEGIN")
            for name in _TABLES:
                rows = _rows_of(name, state)
                database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)  # noqa: S608 - one of our own names
            database.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            database.execute("COMMIT")
        sync_file(fd)
        temp.replace(path)
    finally:
        os.close(fd)
        temp.unlink(missing_ok=True)


def _rows_of(name: str, state: State) -> Iterator[tuple[str, int, bytes]]:
    """Yield a table's rows in the order of their keys, which is the quickest."""
    member, plain = getattr(state, name), _PLAIN.get(name, lambda value: value)
    if isinstance(member, MutableSet):
        member = dict.fromkeys(member)
    elif not isinstance(member, MutableMapping):
        member = {str(place): value for place, value in enumerate(member)}
    for key, seq in sorted((key, seq) for seq, key in enumerate(member)):
        yield key, seq, orjson.dumps(plain(member[key]))


class _Ids(MutableSet[str | bytes]):
    """The ids of rows verified: those of the table, and those that came since."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._since: set[str | bytes] = set()

    def __contains__(self, key: object) -> bool:
        return key in self._since or bool(ask(self._database, "SELECT 1 FROM signals WHERE key = ?", key))

    def __iter__(self) -> Iterator[str | bytes]:
        raise NotImplementedError("too many")

    def __len__(self) -> int:
        raise NotImplementedError("too many")

    def add(self, value: str | bytes) -> None:
        """Add an id."""
        self._since.add(value)

    def discard(self, value: str | bytes) -> None:
        """Nothing is ever taken out."""
        raise NotImplementedError
