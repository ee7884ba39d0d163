"""What may leave the machine, in which form, and what its recipient can check (ledger spec §8 Sync [D28])."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from troth.core.errors import Refused
from troth.core.strictjson import JsonFault
from troth.ledger.chain import BOM, Fault, Warning_
from troth.ledger.codes import FAULTS, WARNINGS
from troth.ledger.fields import SCOPES, is_blank, read_op, required_value
from troth.ledger.genesis import Federation, Genesis
from troth.ledger.hashing import row_hash
from troth.ledger.merging import MARK
from troth.ledger.rows import Row, parse_row, row_of

LOCAL: Final = SCOPES[0]
ANONYMOUS: Final = "anonymous"
"""A scope, and the name that stands for every actor in rows let out under it."""

NAMING: Final = ("commitment", "source", "evidence", "target")
"""The payload fields whose rows narrow the scope of the row that names them."""

STRIPPED: Final = ("hash", "prevHash", "source_key", MARK)
"""Envelope members that an anonymous row lacks, beside ``payload.meta``; a merge's mark keeps former hash and key."""

_RANK: Final = {name: rank for rank, name in enumerate(SCOPES)}


# Who gets what --------------------------------------------------------------------------------------------------


class Audience(NamedTuple):
    """Whom an export is for.

    ``name`` is told to people; ``scopes`` are those under which a row goes there; ``form`` is ``row`` for unmodified
    rows or ``anonymous``.
    """

    name: str
    scopes: tuple[str, ...]
    form: str


def anybody(genesis: Genesis | None) -> Audience:
    """Return the audience of anonymous rows.

    Raises:
        Refused: ``E_FEDERATION_OFF``.
    """
    _federation(genesis)
    return Audience("anybody", (ANONYMOUS,), ANONYMOUS)


def peer(genesis: Genesis | None, workspace: str) -> Audience:
    """Return a peer workspace as an audience.

    Raises:
        Refused: ``E_FEDERATION_OFF``, ``E_NO_PEER`` when the key does not name it.
    """
    named = _federation(genesis).workspaces
    if workspace not in named:
        raise Refused(
            "E_NO_PEER",
            f"the genesis key names no peer workspace {workspace!r:.140}",
            remedy=f"It names {', '.join(named)}." if named else "federation.workspaces in the key lists the peers.",
            detail="workspaces",
        )
    return Audience(f"workspace {workspace}", ("full", "cloud"), "row")


def cloud(genesis: Genesis | None) -> Audience:
    """Return the key's ``sync_target`` as an audience.

    Raises:
        Refused: ``E_FEDERATION_OFF``, ``E_NO_PEER`` when the key names none.
    """
    target = _federation(genesis).sync_target
    if not target:
        raise Refused(
            "E_NO_PEER",
            "the genesis key names no sync target",
            remedy="federation.sync_target in the key says where `cloud` rows may go.",
            detail="sync_target",
        )
    return Audience(f"sync target {target}", ("cloud",), "row")


def _federation(genesis: Genesis | None) -> Federation:
    if genesis is None or not genesis.federation.enabled:
        why = "there is no genesis key" if genesis is None else "federation is off in the genesis key"
        raise Refused(
            "E_FEDERATION_OFF",
            f"nothing may leave: {why}",
            remedy="federation.enabled: true in the key permits it; for yourself there is `troth export --whole FILE`.",
        )
    return genesis.federation


# Effective scope ------------------------------------------------------------------------------------------------


class Effective(NamedTuple):
    """A row's effective scope, and the position of the row that makes it so; ``None``: a name without a row."""

    scope: str
    cause: int | None


def own_scope(value: Mapping[str, Any]) -> str:
    """Return the scope that a row gives itself; what is none of the four counts as ``local``."""
    scope = value.get("syncScope")
    return scope if isinstance(scope, str) and scope in _RANK else LOCAL


def named_by(value: Mapping[str, Any]) -> list[Any]:
    """Return what stands in the four naming fields, as a reader sees them; an entry that is no text names nothing."""
    payload = value.get("payload")
    if not isinstance(payload, dict):
        return []
    op = read_op(value.get("op"))
    named = [required_value(value.get("op") if name == "target" else op, payload, name) for name in NAMING]
    return [name for name in named if not is_blank(name)]


class Scopes:
    """Collects rows in file order and tells the effective scope of each.

    The scope is the narrowest along the whole chain of names: a row that names a row that names a local one is local.
    A name that no row has, or that is no text, counts as local: nothing is known of what stands behind it. A row to
    which a merge gave an id made of its former hash, and whoever names it, would leave anonymous with that digest, by
    which a guessed actor could be confirmed; so these are local then.
    """

    def __init__(self) -> None:
        self.ids: list[str | None] = []
        self._own: list[int] = []
        self._named: list[tuple[Any, ...]] = []
        self._digests: list[int] = []  # positions of the rows whose id is made of a hash

    def add(self, row: Row) -> None:
        """Take the next row."""
        merged = row.value.get(MARK)
        if isinstance(merged, dict) and "id" in merged:
            self._digests.append(len(self.ids))
        self.ids.append(row.id)
        self._own.append(_RANK[own_scope(row.value)])
        self._named.append(tuple(named_by(row.value)))

    def own(self, position: int) -> str:
        """Return what the row at a position, from 0, says itself."""
        return SCOPES[self._own[position]]

    def effective(self) -> list[Effective]:
        """Return the effective scope of every row, in order."""
        at = {name: position for position, name in enumerate(self.ids) if name is not None}
        namers: dict[int, list[int]] = {}
        nowhere: list[int] = []
        for position, named in enumerate(self._named):
            for name in named:
                target = at.get(name) if isinstance(name, str) else None
                if target is None:
                    nowhere.append(position)
                else:
                    namers.setdefault(target, []).append(position)
        found: list[Effective | None] = [None] * len(self._own)
        starts: list[list[tuple[int, int | None]]] = [[] for _ in SCOPES]
        for position, rank in enumerate(self._own):
            starts[rank].append((position, position))
        starts[0].extend((position, None) for position in nowhere)
        # From the narrowest on, so that whatever reaches a row first is what holds for it.
        for scope, reached in zip(SCOPES, starts, strict=True):
            while reached:
                position, cause = reached.pop()
                if found[position] is None:
                    found[position] = Effective(scope, cause)
                    reached.extend((other, cause) for other in namers.get(position, ()))
        seen: set[int] = set()
        telling = [(position, position) for position in self._digests]
        while telling:
            position, renamed = telling.pop()
            if position not in seen:
                seen.add(position)
                one = found[position]
                if one is not None and one.scope == ANONYMOUS:
                    found[position] = Effective(LOCAL, renamed)
                telling.extend((other, renamed) for other in namers.get(position, ()))
        return [one for one in found if one is not None]


# What is let out ------------------------------------------------------------------------------------------------


def anonymised(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without ``hash``, ``prevHash``, ``source_key`` and ``payload.meta``, its actor ``anonymous``.

    The mark that a merge leaves goes too: it keeps a former hash and key, by which a guessed actor could be confirmed.

    Everything else stays as it is, ids and free text too.
    """
    row = {name: member for name, member in value.items() if name not in STRIPPED}
    row["actor"] = ANONYMOUS
    payload = row.get("payload")
    if isinstance(payload, dict):
        row["payload"] = {name: member for name, member in payload.items() if name != "meta"}
    return row


class Stays(NamedTuple):
    """A row that stays although it says of itself that it may leave: its own and effective scope, and why.

    ``cause`` is the id of the row that narrows it (``None``: one without id, or a name without a row).
    """

    id: str | None
    own: str
    effective: str
    cause: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Selection:
    """What goes to an audience.

    ``out`` holds the positions of the rows let out, from 0 and ascending. ``scopes`` counts rows by effective scope.
    Of those that stay, ``own`` say nothing else of themselves than ``local``, ``named`` are narrowed by a row that
    they name so that they do not go there, and ``audience`` have a scope that does not lead there.
    """

    audience: Audience
    total: int
    out: tuple[int, ...]
    scopes: Mapping[str, int]
    stay: Mapping[str, int]
    narrowed: tuple[Stays, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the figures."""
        return {
            "to": self.audience.name,
            "form": self.audience.form,
            "rows": self.total,
            "out": len(self.out),
            "scopes": dict(self.scopes),
            "stay": dict(self.stay),
            "narrowed": [one.as_json() for one in self.narrowed],
        }


def select(scopes: Scopes, audience: Audience) -> Selection:
    """Return what of the collected rows goes to an audience, and why the rest stays."""
    out: list[int] = []
    narrowed: list[Stays] = []
    effective = scopes.effective()
    stay: Counter[str] = Counter()
    for position, one in enumerate(effective):
        own = scopes.own(position)
        if one.scope in audience.scopes:
            out.append(position)
        elif own == LOCAL:
            stay["own"] += 1
        elif own in audience.scopes:
            stay["named"] += 1
            cause = scopes.ids[one.cause] if one.cause is not None else None
            narrowed.append(Stays(scopes.ids[position], own, one.scope, cause))
        else:
            stay["audience"] += 1
    counted = Counter(one.scope for one in effective)
    return Selection(
        audience,
        len(effective),
        tuple(out),
        {name: counted[name] for name in SCOPES},
        {name: stay[name] for name in ("own", "named", "audience")},
        tuple(narrowed),
    )


# What a recipient can check -------------------------------------------------------------------------------------


@dataclass(slots=True)
class SetCheck:
    """What was found in a set of rows: ``verified`` hold their hash, ``unverifiable`` have none.

    ``total`` counts lines that are not blank. Links are not looked at: a set is no chain.
    """

    total: int = 0
    verified: int = 0
    unverifiable: int = 0
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Warning_] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Tell whether there is no fault."""
        return not self.faults

    def summary(self) -> str:
        """Return ``<verified>/<total> verified``, with the rows that nothing can be checked of."""
        text = f"{self.verified}/{self.total} verified"
        return f"{text}, {self.unverifiable} unverifiable (no hash)" if self.unverifiable else text

    def as_json(self) -> dict[str, Any]:
        """Return every member and ``ok``."""
        return {
            "ok": self.ok,
            "verified": self.verified,
            "total": self.total,
            "unverifiable": self.unverifiable,
            "faults": [fault.as_json() for fault in self.faults],
            "warnings": [warning.as_json() for warning in self.warnings],
        }


def check_set(lines: Iterable[tuple[bytes, bool]]) -> SetCheck:
    """Check the content hash of every row of a set.

    Args:
        lines: physical lines without their LF, and whether one followed.
    """
    found = SetCheck()
    ids: set[str] = set()
    for line, (raw, terminated) in enumerate(lines, 1):
        text = (raw.removeprefix(BOM) if line == 1 else raw).removesuffix(b"\r")
        if not text:
            continue
        found.total += 1
        try:
            row = row_of(line, parse_row(text))
        except JsonFault as fault:
            name = "malformed" if terminated else "torn_tail"
            found.faults.append(Fault(line, None, name, fault.message))
            continue
        if not terminated:
            found.warnings.append(Warning_(line, row.id, "unterminated", WARNINGS["unterminated"]))
        before = len(found.faults)
        if row.id is not None and row.id in ids:
            found.faults.append(Fault(line, row.id, "duplicate_id", FAULTS["duplicate_id"]))
        if row.id is not None:
            ids.add(row.id)
        if row.hashed:
            recomputed = row_hash(row.value)
            if recomputed != row.value["hash"]:
                message = f"the content gives {recomputed}"
                found.faults.append(Fault(line, row.id, "content_mismatch", message))
            elif len(found.faults) == before:
                found.verified += 1
        else:
            found.unverifiable += 1
    return found
