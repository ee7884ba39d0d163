"""Two ledgers that grew apart made one chain: what of the second goes behind the first, and in which form.

Pure: rows come in, rows go out. The link is no part of a row's hash (ledger spec §3), so a row that is only linked anew
keeps its hash, and two rows with one hash are the same row. Only where an id or a ``source_key`` would stand twice is a
row of the second ledger changed; its member ``x_merged`` keeps what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

from troth.core.canonical import row_bytes
from troth.core.errors import Place, Refused
from troth.core.instants import format_instant
from troth.ledger.fields import ID_PREFIX
from troth.ledger.hashing import row_hash
from troth.ledger.rows import MAX_ROW_BYTES, Row

AUTHOR: Final = "system:merge"
KIND: Final = "event"
MARK: Final = "x_merged"
"""The member of a changed row that keeps its former ``hash`` and, where they changed, ``id`` and ``source_key``."""

LISTED: Final = 500
"""Changes listed one by one in the event; each changed row has its own mark in any case."""

CODES: Final[dict[str, str]] = {
    "E_UNRELATED": "The two ledgers do not begin with the same row; --unrelated merges them all the same.",
    "E_REWRITTEN": "One side no longer begins with the rows that both began with: its history was changed.",
    "E_UNHASHED": "Rows without a hash stand only at the beginning of a ledger, and the two do not begin alike.",
    "E_MERGED_TOO_LARGE": "A row that has to be changed would be longer than a row may be.",
    "E_FILE_EXISTS": "A file of that name is there already, and nothing is overwritten.",
}
"""Refusals of a merge; nothing was changed."""

Depth = Callable[[str], int]

Outcome = Literal["merged", "fast_forward", "nothing_to_add"]

_SINGLE: Final = ("source", "commitment", "evidence", "duplicate_of", "target", "memory")


@dataclass(frozen=True, slots=True)
class Renamed:
    """A row of the second ledger whose id the first one uses for another row: the line there, and both ids."""

    line: int
    id: str
    new: str

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {"line": self.line, "id": self.id, "new": self.new}


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """A row of the second ledger that gives up its ``source_key``, and the row of the first that has it."""

    line: int
    id: str | None
    source_key: str
    kept_by: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {"line": self.line, "id": self.id, "source_key": self.source_key, "kept_by": self.kept_by}


@dataclass(slots=True)
class Plan:
    """What becomes of the rows of the second ledger.

    ``common`` rows begin both ledgers, ``rows`` counts each; ``shared`` rows of the second stand further on in the
    first. ``new_ids`` maps ids of the second ledger to those that take their place, ``skipped`` holds the lines of rows
    that are there already (``shared_ids`` their ids), ``keys`` the lines of rows that give up their key.
    """

    outcome: Outcome
    common: int = 0
    common_line: int = 0
    rows: tuple[int, int] = (0, 0)
    added: int = 0
    shared: int = 0
    shared_ids: list[str] = field(default_factory=list)
    renamed: list[Renamed] = field(default_factory=list)
    rekeyed: list[Rekeyed] = field(default_factory=list)
    new_ids: dict[str, str] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)
    keys: set[int] = field(default_factory=set)
    parents: tuple[str, ...] = ()
    depth: int = 0
    taken: set[str] = field(default_factory=set)


def content(row: Row) -> str:
    """Return what makes two rows of verified ledgers the same row: the hash of their content."""
    return row.value["hash"] if row.hashed else row_hash(row.value)


class _Origin(NamedTuple):
    """What a row says it was made of: its id and hash here, and whether it gave up its key."""

    id: str | None
    hash: str
    lost_key: bool


@dataclass(slots=True)
class _Ours:
    """What is known of the first ledger's rows behind the common ones."""

    hashes: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    keys: dict[str, str | None] = field(default_factory=dict)
    origins: dict[str, _Origin] = field(default_factory=dict)  # by the former hash
    unhashed: bool = False

    def take(self, row: Row) -> None:
        """Take one row."""
        own = content(row)
        self.hashes.add(own)
        self.unhashed = self.unhashed or not row.hashed
        if row.id is not None:
            self.ids.add(row.id)
        key = row.value.get("source_key")
        if isinstance(key, str) and key:
            self.keys.setdefault(key, row.id)
        mark = row.value.get(MARK)
        if isinstance(mark, dict) and isinstance(mark.get("hash"), str):
            self.origins[mark["hash"]] = _Origin(row.id, own, "source_key" in mark)


def plan_merge(
    ours: Iterable[Row], theirs: Iterable[Row], depths: Sequence[Depth] = (), *, unrelated: bool = False
) -> Plan:
    """Return what a merge of two ledgers that verify does.

    Args:
        ours: the rows of the ledger that stays as it is.
        theirs: the rows of the other one; gone through once here and once in :func:`merged_rows`.
        depths: for each ledger, what gives the causal depth of an id there, for the event's own.
        unrelated: merge ledgers that have no row in common.

    Raises:
        Refused: ``E_UNRELATED``, ``E_UNHASHED``.
    """
    one, two = iter(ours), iter(theirs)
    plan = Plan("merged")
    mine, other = next(one, None), next(two, None)
    last_mine = last_other = None
    while mine is not None and other is not None and mine.hashed == other.hashed and content(mine) == content(other):
        plan.common += 1
        plan.common_line = other.line
        if mine.id is not None:
            plan.taken.add(mine.id)
        last_mine, last_other = mine, other
        mine, other = next(one, None), next(two, None)
    known = _Ours()
    count = plan.common
    while mine is not None:
        count += 1
        known.take(mine)
        last_mine = mine
        mine = next(one, None)
    plan.taken |= known.ids
    rest: list[tuple[int, str | None, str, str | None]] = []
    suspects: dict[int, dict[str, Any]] = {}
    unhashed = False
    while other is not None:
        own = content(other)
        key = other.value.get("source_key")
        rest.append((other.line, other.id, own, key if isinstance(key, str) and key else None))
        if own in known.origins:
            suspects[other.line] = other.value
        unhashed = unhashed or not other.hashed
        if other.id is not None:
            plan.taken.add(other.id)
        last_other = other
        other = next(two, None)
    plan.rows = (count, plan.common + len(rest))
    if not rest:
        plan.outcome = "nothing_to_add"
        return plan
    if count == plan.common:
        plan.outcome, plan.added = "fast_forward", len(rest)
        return plan
    if unhashed or (known.unhashed and plan.common):
        raise Refused(
            "E_UNHASHED",
            "the two ledgers do not begin with the same rows without a hash",
            remedy="`troth import` makes a hashed ledger of such rows.",
        )
    if not plan.common and not unrelated:
        raise Refused("E_UNRELATED", "the two ledgers have no row in common", remedy="Say --unrelated if it is meant.")
    _settle(plan, known, rest, suspects)
    plan.added = len(rest) - len(plan.skipped)
    if not plan.added:
        plan.outcome = "nothing_to_add"
        return plan
    ends = [last.id for last in (last_mine, last_other) if last is not None and last.id is not None]
    plan.depth = 1 + max((depth(name) for name, depth in zip(ends, depths, strict=False)), default=0)
    plan.parents = tuple(dict.fromkeys((*ends[:1], *(plan.new_ids.get(name, name) for name in ends[1:]))))
    return plan


def _settle(
    plan: Plan,
    known: _Ours,
    rest: list[tuple[int, str | None, str, str | None]],
    suspects: dict[int, dict[str, Any]],
) -> None:
    """Decide which rows are there already, which get another id and which give up their key."""
    believed = set(suspects)
    while True:
        plan.renamed, plan.rekeyed, plan.new_ids = [], [], {}
        plan.skipped, plan.keys = set(), set()
        drawn: set[str] = set()
        for line, name, own, key in rest:
            if own in known.hashes:
                plan.skipped.add(line)
                continue
            if line in believed:
                there = known.origins[own].id
                plan.skipped.add(line)
                if name is not None and there is not None and name != there:
                    plan.new_ids[name] = there
                continue
            if key is not None and key in known.keys:
                plan.keys.add(line)
                plan.rekeyed.append(Rekeyed(line, name, key, known.keys[key]))
            if name is not None and name in known.ids:
                new = _new_id(name, own, plan.taken | drawn)
                drawn.add(new)
                plan.new_ids[name] = new
                plan.renamed.append(Renamed(line, name, new))
        # A mark is only a claim: what it says is believed where making the row again gives the very row that has it.
        lying = set()
        for line in believed:
            value = suspects[line]
            origin = known.origins[value["hash"]]
            if row_hash(rewritten(value, plan.new_ids, lose_key=origin.lost_key)) != origin.hash:
                lying.add(line)
        plan.shared = len(plan.skipped)
        plan.shared_ids = [name for line, name, _, _ in rest if line in plan.skipped and name is not None]
        if not lying:
            return
        believed -= lying


def _new_id(name: str, own: str, taken: set[str]) -> str:
    """Return an id made of the row's own hash, so that whoever merges the same ledgers draws the same one."""
    prefix = next((prefix for prefix in ("mem_", "cmt_", "ann_", "op_") if name.startswith(prefix)), "op_")
    number = 0
    while True:
        found = prefix + (own if not number else sha256(f"{own} {number}".encode()).hexdigest())[:16]
        if found not in taken:
            return found
        number += 1


def rewritten(value: dict[str, Any], new_ids: Mapping[str, str], *, lose_key: bool) -> dict[str, Any]:
    """Return the row with other ids for its own and those it names; the very same object where nothing changes.

    Args:
        value: the row.
        new_ids: id -> the one that takes its place.
        lose_key: leave out ``source_key``.
    """
    row = _with_ids(value, new_ids) if new_ids else value
    if lose_key:
        row = {name: item for name, item in row.items() if name != "source_key"}
    if row is value:
        return value
    mark: dict[str, Any] = {"hash": value.get("hash")}
    if row.get("id") != value.get("id"):
        mark["id"] = value.get("id")
    if lose_key:
        mark["source_key"] = value.get("source_key")
    if MARK in value:
        mark[MARK] = value[MARK]
    return {**row, MARK: mark}


def _with_ids(value: dict[str, Any], new_ids: Mapping[str, str]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    name = value.get("id")
    if isinstance(name, str) and name in new_ids:
        changed["id"] = new_ids[name]
    trace = value.get("trace")
    if isinstance(trace, dict):
        found = {part: _texts(trace[part], new_ids) for part in ("parent", "children") if part in trace}
        changed["trace"] = {**trace, **found}
    relations = value.get("relations")
    if isinstance(relations, list):
        changed["relations"] = [
            {**one, "targetId": _text(one["targetId"], new_ids)} if isinstance(one, dict) and "targetId" in one else one
            for one in relations
        ]
    if "sourceIds" in value:
        changed["sourceIds"] = _texts(value["sourceIds"], new_ids)
    payload = value.get("payload")
    if isinstance(payload, dict):
        found = {part: _text(payload[part], new_ids) for part in _SINGLE if part in payload}
        if "refs" in payload:
            found["refs"] = _texts(payload["refs"], new_ids)
        if "meta" in payload:
            found["meta"] = _deep(payload["meta"], new_ids)
        changed["payload"] = {**payload, **found}
    row = {**value, **changed}
    return value if row == value else row


def _text(value: Any, new_ids: Mapping[str, str]) -> Any:
    return new_ids.get(value, value) if isinstance(value, str) else value


def _texts(value: Any, new_ids: Mapping[str, str]) -> Any:
    return [_text(item, new_ids) for item in value] if isinstance(value, list) else value


def _deep(value: Any, new_ids: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _deep(item, new_ids) for name, item in value.items()}
    if isinstance(value, list):
        return [_deep(item, new_ids) for item in value]
    return _text(value, new_ids)


def merged_rows(
    plan: Plan, theirs: Iterable[Row], *, last_hash: str, heads: tuple[str, str], workspace: str, now: datetime
) -> Iterator[dict[str, Any]]:
    """Yield the rows that go behind the first ledger, each linked to the one before it, the event last.

    Args:
        plan: what :func:`plan_merge` gave, its outcome ``merged``.
        theirs: the rows of the second ledger again.
        last_hash: what the first of them links to.
        heads: the head digests of both ledgers.
        workspace: the name written into the event.
        now: the instant written into the event.

    Raises:
        Refused: ``E_MERGED_TOO_LARGE``.
    """
    link = last_hash
    for row in theirs:
        if row.line <= plan.common_line or row.line in plan.skipped:
            continue
        value = rewritten(row.value, plan.new_ids, lose_key=row.line in plan.keys)
        own = row.value["hash"] if value is row.value else row_hash(value)
        made = {**value, "prevHash": link, "hash": own}
        if len(row_bytes(made)) > MAX_ROW_BYTES:
            raise Refused(
                "E_MERGED_TOO_LARGE",
                f"{row.id} would have more than {MAX_ROW_BYTES} bytes",
                place=Place(line=row.line),
                detail=row.id,
            )
        link = own
        yield made
    yield _event(plan, link=link, heads=heads, workspace=workspace, now=now)


def _event(plan: Plan, *, link: str, heads: tuple[str, str], workspace: str, now: datetime) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "heads": list(heads),
        "rows": list(plan.rows),
        "common": plan.common,
        "added": plan.added,
        "shared": plan.shared,
        "renamed": len(plan.renamed),
        "rekeyed": len(plan.rekeyed),
    }
    if plan.renamed:
        facts["new_ids"] = {one.id: one.new for one in plan.renamed[:LISTED] if len(one.id) <= 100}
    digest = sha256(" ".join(("merge", *heads)).encode()).hexdigest()
    row: dict[str, Any] = {
        "id": _new_id(ID_PREFIX["capture"], digest, plan.taken | set(plan.new_ids.values())),
        "op": "capture",
        "ts": format_instant(now),
        "actor": AUTHOR,
        "workspace": workspace,
        "prevHash": link,
        "payload": {
            "body": f"Merged {plan.added} row(s) of a ledger that shares the first {plan.common}",
            "kind": KIND,
            "meta": {"merge": facts},
        },
    }
    if plan.parents:
        row["trace"] = {"parent": list(plan.parents), "causalDepth": plan.depth}
    row["hash"] = row_hash(row)
    return row


def is_event(value: Mapping[str, Any]) -> bool:
    """Tell whether a row is the event of a merge."""
    payload = value.get("payload")
    meta = payload.get("meta") if isinstance(payload, dict) else None
    return value.get("actor") == AUTHOR and isinstance(meta, dict) and isinstance(meta.get("merge"), dict)
