"""What a large, sound ledger replayed to, kept in the user's cache folder so that the next process need not replay it.

Two files. The *table* holds the state that the ledger's beginning came to, and the digest of that beginning; it is
written once, appears whole, and is only ever replaced. The *note* says which identity the file had when somebody last
had read it all. The table is believed while the identity is what the note or the table says, or while the ledger
still begins with those bytes; the rows behind it are verified and replayed as ever. Deleting both changes nothing but
time, and ``troth verify`` never uses them. What an unchanged identity cannot show is said in
:mod:`troth.stores.index`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from troth import __version__
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.ledger.chain import ChainReader, Verification, Warning_
from troth.ledger.genesis_event import GenesisEvent
from troth.ledger.replay import Anomaly, Note, Signal, State
from troth.ledger.seen import LONGEST_PLAIN_ID
from troth.stores import index
from troth.stores import memory as memories
from troth.stores.durable import O_BINARY, O_CLOEXEC, O_NOFOLLOW, open_regular, read_regular, sync_file
from troth.stores.kept import KeptList, KeptMapping, KeptSet, ask
from troth.stores.memory import Identity, Memory, identity

if TYPE_CHECKING:
    import sqlite3

FEW_ROWS: Final = 5000
"""So many rows behind the table, and a fiftieth of those in it, are replayed before another table is worth its time."""

_NOTE_BYTES: Final = 1 << 16
_CHUNK: Final = 1 << 20
_TABLES: Final = (
    "signals", "commitments", "source_keys", "cited", "dismissed", "duplicates", "untold", "tags", "anomalies", "notes",
)  # fmt: skip
_FORMAT: Final = f"1 {__version__} {index.commitment_members()}"
_SCHEMA: Final = "CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;" + "".join(
    f"CREATE TABLE {name} (key TEXT PRIMARY KEY, seq INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;"
    for name in _TABLES
)


class _Unusable(Exception):
    """It cannot be kept, or what was kept cannot be used; the ledger says the same."""


_EXPECTED: Final = (OSError, Refused, _Unusable, ValueError, TypeError, KeyError, IndexError, AttributeError)


class Kept:
    """The table that a memory began with: its stamp, how many rows it covers, and how far it is open."""

    def __init__(self, database: sqlite3.Connection, about: Mapping[str, Any]) -> None:
        self.database = database
        self.stamp: str = about["stamp"]
        self.count: int = about["count"]


def recall(ledger: Path, fd: int, found: Identity, unhashed_prefix: int | None) -> Memory | None:
    """Return what is remembered of the ledger's beginning, ``None`` when there is nothing or it does not hold."""
    paths = _paths(ledger)
    if paths is None or found[2] < memories.REMEMBERED_BYTES:
        return None
    try:
        import sqlite3
    except ImportError:
        return None
    database: sqlite3.Connection | None = None
    with contextlib.suppress(sqlite3.Error, *_EXPECTED):
        _must_be_ours(paths[0])
        # The file is never written to again, so nobody needs a lock; whoever replaces it leaves us this one.
        database = sqlite3.connect(
            f"{paths[0].as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )
        database.execute("PRAGMA trusted_schema = OFF")
        about = dict(database.execute("SELECT name, value FROM about"))
        known = about["format"] == _FORMAT and about["key"] == _key(ledger, unhashed_prefix)
        if known and 0 < about["size"] <= found[2]:
            noted = _is_noted(paths, about, found)
            if noted or _digest(fd, about["size"]) == about["digest"]:
                # What was believed by its bytes is worth a note of its identity.
                return _memory_of(Kept(database, about), about, unhashed_prefix, found, noted=noted)
    if database is not None:
        database.close()
    return None


def keep(ledger: Path, fd: int, memory: Memory, unhashed_prefix: int | None) -> None:
    """Keep what a memory knows: in a note, or in another table when the one it began with covers too little.

    Nothing is kept of a ledger that is small, unsound, or not as the memory left it. An open ledger is noted again when
    it has grown as much again as at the last time, so that many rows cost little.
    """
    paths = _paths(ledger)
    if paths is None or memory.identity is None or memory.size != memory.identity[2]:
        return
    try:
        import sqlite3
    except ImportError:
        return
    kept = memory.kept
    known = 0 if kept is None else kept.count
    memory.due = max(memory.count + 1, 2 * memory.count - max(known, memory.begun))
    with contextlib.suppress(sqlite3.Error, *_EXPECTED):
        if not memory.verification(fd).ok:
            return
        if memory.count - known >= FEW_ROWS + known // 50 or kept is None:
            about = _about(ledger, fd, memory, unhashed_prefix)
            _write_table(sqlite3, paths[0], memory.replay.state, about)
            memory.due = memory.count + FEW_ROWS + memory.count // 50
        else:
            _write_note(paths[1], kept.stamp, memory.identity)


def _paths(ledger: Path) -> tuple[Path, Path] | None:
    folder = index.cache_folder()
    if folder is None:
        return None
    stem = sha256_hex(os.fsencode(ledger))
    return folder / "ledgers" / f"{stem}.state", folder / "ledgers" / f"{stem}.note"


def _key(ledger: Path, unhashed_prefix: int | None) -> str:
    return repr((os.fsencode(ledger), unhashed_prefix))


def _must_be_ours(path: Path) -> None:
    # No link is followed and no pipe waited for.
    fd = open_regular(path, os.O_RDONLY, "E_UNREADABLE", "what was kept")
    try:
        looked = os.fstat(fd)
    finally:
        os.close(fd)
    if os.name != "nt" and (looked.st_uid != os.geteuid() or looked.st_mode & 0o077):
        raise _Unusable


# The ledger's beginning ------------------------------------------------------------------------------------------


def _is_noted(paths: tuple[Path, Path], about: Mapping[str, Any], found: Identity) -> bool:
    """Tell whether the file's identity is one that it had when it was read whole, and clocks have moved on since."""
    if _is_settled(about, found):
        return True
    try:
        _must_be_ours(paths[1])
        noted = orjson.loads(read_regular(paths[1], _NOTE_BYTES, "E_UNREADABLE", "the note"))
        return bool(noted["stamp"] == about["stamp"] and _is_settled(noted, found))
    except _EXPECTED:
        return False


def _is_settled(said: Mapping[str, Any], found: Identity) -> bool:
    return bool(said["identity"] == repr(found) and said["made"] - max(found[3], found[4]) >= index.SETTLED_NANOSECONDS)


def _digest(fd: int, size: int) -> bytes:
    """Return the digest of the file's first bytes."""
    os.lseek(fd, 0, os.SEEK_SET)
    digest = hashlib.sha256()
    while size:
        chunk = os.read(fd, min(size, _CHUNK))
        if not chunk:
            raise _Unusable
        digest.update(chunk)
        size -= len(chunk)
    return digest.digest()


def _write_note(path: Path, stamp: str, found: Identity) -> None:
    temp = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    try:
        with os.fdopen(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_CLOEXEC, 0o600), "wb") as file:
            file.write(orjson.dumps({"stamp": stamp, "identity": repr(found), "made": time.time_ns()}))
        temp.replace(path)
    finally:
        temp.unlink(missing_ok=True)


# The table -------------------------------------------------------------------------------------------------------


def _about(ledger: Path, fd: int, memory: Memory, unhashed_prefix: int | None) -> dict[str, Any]:
    verification, state = memory.verification(fd), memory.replay.state
    # A reader that goes on from here finds one warning again; others it would not know of.
    told = [found for found in verification.warnings if found.warning != "unhashed_prefix"]
    # The verifier knows long ids by their digest alone.
    if told or not verification.hashed or any(len(name) > LONGEST_PLAIN_ID for name in state.signals):
        raise _Unusable
    digest = _digest(fd, memory.size)
    if identity(fd) != memory.identity:
        raise _Unusable
    return {
        "format": _FORMAT,
        "key": _key(ledger, unhashed_prefix),
        "stamp": secrets.token_hex(16),
        "identity": repr(memory.identity),
        "made": time.time_ns(),
        "size": memory.size,
        "line": memory.line,
        "count": memory.count,
        "digest": digest,
        "starts": memory.starts.tobytes(),
        "lines": memory.lines.tobytes(),
        "verification": orjson.dumps(verification.as_json()),
        "anomalies": len(state.anomalies),
        "notes": len(state.notes),
        "genesis": orjson.dumps(None if state.genesis is None else list(state.genesis)),
    }


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


def _write_table(module: Any, path: Path, state: State, about: Mapping[str, Any]) -> None:
    """Write a table beside the place of the old one and put it there whole."""
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


def _memory_of(
    kept: Kept, about: Mapping[str, Any], unhashed_prefix: int | None, found: Identity, *, noted: bool
) -> Memory:
    told = orjson.loads(about["verification"])
    verification = Verification(
        **{name: value for name, value in told.items() if name not in ("ok", "faults", "warnings")},
        faults=(),
        warnings=tuple(Warning_(**one) for one in told["warnings"]),
    )
    ids = _Ids(kept.database)
    chain = ChainReader.resumed(verification, about["line"], ids, unhashed_prefix=unhashed_prefix)
    memory = Memory(unhashed_prefix, digest=False)
    memory.resume(chain, _state_in(kept.database, about), verification, size=about["size"], count=about["count"])
    memory.kept, memory.due = kept, about["count"] + noted
    memory.starts.frombytes(about["starts"])
    memory.lines.frombytes(about["lines"])
    if about["size"] == found[2]:
        memory.identity = found
    return memory


def _state_in(database: sqlite3.Connection, about: Mapping[str, Any]) -> State:
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
