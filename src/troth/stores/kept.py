"""Mappings that lie in a table and come into memory an entry at a time, for the state of a large ledger.

One reads and changes them like dictionaries; the table itself stays as it is. The order is that in which keys were
first set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, MutableSet, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import orjson

from troth.core.errors import Refused

if TYPE_CHECKING:
    import sqlite3

V = TypeVar("V")

MANY: Final = 2000
"""After so many single questions the whole table is read: one pass is quicker from there on."""

_LAST: Final = 64


def ask(database: sqlite3.Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows that a query finds.

    Raises:
        Refused: ``E_UNREADABLE``.
    """
    import sqlite3

    try:
        return database.execute(query, values).fetchall()
    except (sqlite3.Error, UnicodeError) as fault:
        raise _unreadable(str(fault)) from None


def _unreadable(why: str) -> Refused:
    return Refused(
        "E_UNREADABLE",
        f"what was kept of the ledger's state cannot be read: {why}",
        remedy="Delete the folder `ledgers` in the cache folder of troth; only time is lost.",
    )


class KeptMapping(MutableMapping[str, V]):
    """A table of texts and JSON values as a mapping.

    Args:
        database: where the table lies.
        table: its name; the columns are ``key``, ``seq`` (the order) and ``value``.
        decode: makes a value of what JSON holds.
    """

    def __init__(self, database: sqlite3.Connection, table: str, decode: Callable[[Any], V]) -> None:
        self._database = database
        self._table = table
        self._decode = decode
        self._here: dict[str, V] = {}
        self._fresh: dict[str, None] = {}  # keys that the table has not, in their order
        self._gone: set[str] = set()  # keys of the table that were deleted
        self._whole = False
        self._asked = 0

    def __getitem__(self, key: str) -> V:
        here = self._here
        if key in here:
            return here[key]
        if self._whole or key in self._gone:
            raise KeyError(key)
        self._asked += 1
        if self._asked > MANY:
            self._fetch()
            return self._here[key]
        found = self._ask("SELECT value FROM {} WHERE key = ?", key)
        if not found:
            raise KeyError(key)
        value = here[key] = self._made(found[0][0])
        return value

    def __setitem__(self, key: str, value: V) -> None:
        if key not in self:
            self._fresh[key] = None
        self._here[key] = value

    def __delitem__(self, key: str) -> None:
        self[key]  # raises KeyError, or brings it here
        del self._here[key]
        if key in self._fresh:
            del self._fresh[key]
        else:
            self._gone.add(key)

    def __iter__(self) -> Iterator[str]:
        self._fetch()
        return iter(self._here)

    def __len__(self) -> int:
        self._fetch()
        return len(self._here)

    def __reversed__(self) -> Iterator[str]:
        if not self._whole:
            yield from reversed(self._fresh)
            newest = [key for (key,) in self._ask("SELECT key FROM {} ORDER BY seq DESC LIMIT ?", _LAST)]
            yield from (key for key in newest if key not in self._gone)
            passed = {*self._fresh, *newest}
            self._fetch()
            yield from (key for key in reversed(self._here) if key not in passed)
        else:
            yield from reversed(self._here)

    def __repr__(self) -> str:
        return repr(dict(self))

    def beginning(self, prefix: str) -> list[str]:
        """Return the keys that begin with a text, in their order."""
        if self._whole:
            return [key for key in self._here if key.startswith(prefix)]
        # SQLite compares texts by their bytes. The byte FF stands in no text, so it is behind all that begin so.
        last = prefix.encode() + b"\xff"
        found = self._ask("SELECT key FROM {} WHERE key >= ? AND key < CAST(? AS TEXT) ORDER BY seq", prefix, last)
        kept = [key for (key,) in found if key not in self._gone and key.startswith(prefix)]
        return [*kept, *(key for key in self._fresh if key.startswith(prefix))]

    def _ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return ask(self._database, query.format(self._table), *values)

    def _made(self, held: Any) -> V:
        try:
            return self._decode(orjson.loads(held))
        except (ValueError, TypeError, LookupError, AttributeError):
            raise _unreadable("a value that is none of ours") from None

    def _fetch(self) -> None:
        """Bring everything into memory, in its order."""
        if self._whole:
            return
        here, made = self._here, self._made
        self._here = whole = {}
        for key, text in self._ask("SELECT key, value FROM {} ORDER BY seq"):
            if key in self._gone:
                continue
            whole[key] = here[key] if key in here else made(text)
        whole.update((key, here[key]) for key in self._fresh)
        self._whole = True


class KeptList(Sequence[V]):
    """A table of values, keyed by their place, as a list that only grows; see :class:`KeptMapping`."""

    def __init__(self, database: sqlite3.Connection, table: str, count: int, decode: Callable[[Any], V]) -> None:
        self._values: KeptMapping[V] = KeptMapping(database, table, decode)
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> V: ...
    @overload
    def __getitem__(self, index: slice) -> list[V]: ...
    def __getitem__(self, index: int | slice) -> V | list[V]:
        """Return one value, or a list of them."""
        if isinstance(index, slice):
            return [self._values[str(at)] for at in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(index)
        return self._values[str(index % self._count)]

    def __iter__(self) -> Iterator[V]:
        return iter(self._values.values())

    def __repr__(self) -> str:
        return repr(list(self))

    def append(self, value: V) -> None:
        """Add a value at the end."""
        self._values[str(self._count)] = value
        self._count += 1


class KeptSet(MutableSet[str]):
    """A table of texts as a set; see :class:`KeptMapping`."""

    def __init__(self, database: sqlite3.Connection, table: str) -> None:
        self._keys: KeptMapping[None] = KeptMapping(database, table, lambda _: None)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return repr(set(self))

    def add(self, value: str) -> None:
        """Add a text."""
        if value not in self._keys:
            self._keys[value] = None

    def discard(self, value: str) -> None:
        """Take a text out."""
        self._keys.pop(value, None)
