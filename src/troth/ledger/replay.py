"""State is what replaying the rows gives, and nothing else (ledger spec §6 [D22], §16)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSet, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeVar, overload

from troth.core.digests import sha256_hex
from troth.ledger.fields import (
    CITING_KINDS,
    DEFAULT_KIND,
    ON_COMMITMENT,
    OPS,
    V1_OPS,
    is_blank,
    is_texts,
    missing_field,
    mistyped_field,
    read_op,
    read_target,
    required_value,
    surely_complete,
)
from troth.ledger.genesis_event import AUTHOR, GenesisEvent, event_of
from troth.ledger.machine import Cell, Column, StateName, step
from troth.ledger.rows import Row

T = TypeVar("T")

_KNOWN_OPS: Final = frozenset(OPS)


class Signal(NamedTuple):
    """What the rules ask about an earlier row. ``op`` and ``kind`` are as read, version 1 notes as ``annotate``."""

    line: int
    op: str | None
    kind: str | None
    actor: str | None
    ts: str | None
    depth: int


class Submission(NamedTuple):
    """The submit row that waits for review."""

    id: str
    evidence: str
    actor: str

    def as_json(self) -> dict[str, Any]:
        """Return ``{id, evidence}`` (§16)."""
        return {"id": self.id, "evidence": self.evidence}


@dataclass(slots=True)
class Commitment:
    """A commitment as replay leaves it.

    ``evidence`` is ``None`` until it closes, ``submission`` is set while it is in review. ``last_*`` describe the
    last row that had an effect, ``closed_*`` the row that closed it. ``self_approved`` tells that the submitter
    approved (§6 [D20]).
    """

    id: str
    source: str
    body: str
    tags: tuple[str, ...]
    actor: str
    line: int
    ts: str
    state: StateName = "open"
    owner: str | None = None
    evidence: str | None = None
    submission: Submission | None = None
    duplicate_of: str | None = None
    reopen_count: int = 0
    self_approved: bool = False
    closed_by: str | None = None
    closed_row: str | None = None
    closed_ts: str | None = None
    last_row: str = ""
    last_actor: str = ""
    last_ts: str = ""

    @property
    def reopened(self) -> bool:
        """Tell whether it is claimed again after a reopening (§6 [D18])."""
        return self.state == "claimed" and self.reopen_count > 0

    def as_json(self) -> dict[str, Any]:
        """Return the record of §6 and what lists show beside it."""
        return {
            "id": self.id,
            "state": self.state,
            "owner": self.owner,
            "evidence": self.evidence,
            "submission": self.submission.as_json() if self.submission else None,
            "duplicateOf": self.duplicate_of,
            "reopenCount": self.reopen_count,
            "source": self.source,
            "body": self.body,
            "tags": list(self.tags),
            "actor": self.actor,
            "line": self.line,
            "ts": self.ts,
            "selfApproval": self.self_approved,
        }


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A row without effect, and the first rule it breaks. ``detail`` is that of §5, where the code has one."""

    line: int
    id: str | None
    code: str
    detail: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {"line": self.line, "id": self.id, "code": self.code, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader should know that is no anomaly: ``duplicate_reopened``, ``self_approval``."""

    line: int
    id: str | None
    warning: str
    message: str


class Growing(Protocol[T]):
    """A list, or what stands in for one, to which is only ever added."""

    def append(self, value: T, /) -> None:
        """Add a value at the end."""

    def __iter__(self) -> Iterator[T]: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[T]: ...


@dataclass(slots=True)
class State:
    """Everything that replay derives; writers look their rules up here and change nothing.

    ``signals`` holds the first row of every id, anomalies included. ``source_keys`` maps a key to the id of the
    row that has it (``None``: a row without id). ``cited`` holds the captures that a commitment names as its
    source, ``dismissed`` the targets of dismissals. ``duplicates`` maps a commitment to those closed as its
    duplicates, ``untold`` to those of them that no note names yet; both hold ordered sets. ``tags`` holds the tags of
    the rows that have any and are no commits, ``genesis`` the latest genesis event (§16).
    """

    commitments: MutableMapping[str, Commitment] = field(default_factory=dict)
    anomalies: Growing[Anomaly] = field(default_factory=list)
    notes: Growing[Note] = field(default_factory=list)
    signals: MutableMapping[str, Signal] = field(default_factory=dict)
    source_keys: MutableMapping[str, str | None] = field(default_factory=dict)
    cited: MutableSet[str] = field(default_factory=set)
    dismissed: MutableSet[str] = field(default_factory=set)
    duplicates: MutableMapping[str, dict[str, None]] = field(default_factory=dict)
    untold: MutableMapping[str, dict[str, None]] = field(default_factory=dict)
    tags: MutableMapping[str, tuple[str, ...]] = field(default_factory=dict)
    genesis: GenesisEvent | None = None

    def uncommitted(self) -> Iterator[str]:
        """Yield the ids of captures that no commitment names as its source and nobody dismissed."""
        for identifier, signal in self.signals.items():
            if signal.op == "capture" and identifier not in self.cited and identifier not in self.dismissed:
                yield identifier

    def tags_of(self, record: Commitment) -> tuple[str, ...]:
        """Return the tags that rules ask about: those of the commit and of its direct source (§16, Tiers)."""
        lent = self.tags.get(record.source, ())
        if record.source in self.commitments:  # a foreign writer may name one as the source
            lent = self.commitments[record.source].tags
        return tuple(dict.fromkeys((*record.tags, *lent))) if lent else record.tags

    def depth_of(self, parents: Sequence[str]) -> int:
        """Return the causal depth of a row with these parents (§8 [D27])."""
        signals = self.signals
        return depth_of(parents, {name: signals[name].depth for name in parents if name in signals})

    def as_json(self) -> dict[str, Any]:
        """Return commitments in file order and anomalies, as two implementations compare them."""
        return {
            "commitments": {name: record.as_json() for name, record in self.commitments.items()},
            "anomalies": [anomaly.as_json() for anomaly in self.anomalies],
        }

    def digest(self) -> str:
        """Return a digest over everything derived, to compare two replays."""
        return sha256_hex(repr(self).encode("utf-8"))


_Problem = tuple[str, str | None]

_BAD_VALUE: Final[_Problem] = ("E_CONSTRAINT_VIOLATED", "bad_value")
_BAD_STATE: Final[_Problem] = ("E_CONSTRAINT_VIOLATED", "bad_state")
_ABSENT: Final[_Problem] = ("E_REF_NOT_FOUND", "absent")
_WRONG_KIND: Final[_Problem] = ("E_REF_NOT_FOUND", "wrong_kind")


class Replay:
    """Applies rows in file order, to the state that earlier ones left."""

    def __init__(self, state: State | None = None) -> None:
        self.state = State() if state is None else state
        self._shared: dict[str, str] = {}

    def apply(self, row: Row) -> None:
        """Apply one row: it has its effect, or none and is listed as an anomaly."""
        self._applied(row, self._decide(row))

    def _applied(self, row: Row, problem: _Problem | None) -> None:
        if problem is not None:
            self.state.anomalies.append(Anomaly(row.line, row.id, *problem))
        self._register(row)

    def admitted(self, row: Row) -> None:
        """Apply a row that :func:`troth.ledger.operations.admit` let pass in this state: it has its effect.

        What ``admit`` refuses is more than what is an anomaly here, so little is asked a second time.
        """
        self._applied(row, self._take_effect(row, row.value["op"], row.value["payload"]))

    def _decide(self, row: Row) -> _Problem | None:
        """Look for the first broken rule in the order of §5; without one, give the row its effect."""
        value, state = row.value, self.state
        written_op = value.get("op")
        op = read_op(written_op)
        if type(op) is not str or op not in _KNOWN_OPS:
            return "E_INVALID_OP", None
        if not surely_complete(value, op):
            missing = missing_field(value, hashed=row.hashed)
            if missing is not None:
                return "E_MISSING_FIELD", missing
        payload: dict[str, Any] = value["payload"]
        if mistyped_field(value) is not None or (
            op is not written_op and type(read_target(written_op, payload)) is not str
        ):
            return _BAD_VALUE
        if value["id"] in state.signals:
            return "E_DUPLICATE_ID", None
        key = value.get("source_key")
        if key and key in state.source_keys:
            return "E_DUPLICATE_ID", state.source_keys[key]
        if payload.get("kind") in CITING_KINDS and written_op is op and not parents_of(value):
            return "E_CITATION_REQUIRED", None
        return self._unmet_reference(written_op, op, payload) or self._take_effect(row, op, payload)

    def _take_effect(self, row: Row, op: str, payload: dict[str, Any]) -> _Problem | None:
        """Give a row its effect, unless the state of its commitment forbids it."""
        value, state = row.value, self.state
        if op == "capture":
            if value["actor"] == AUTHOR:
                state.genesis = event_of(value) or state.genesis
        elif op in ON_COMMITMENT:
            return self._step(row, op, payload)
        elif op == "commit":
            self._create(row, payload)
        elif op == "annotate" and read_kind(value["op"], payload) == "dismiss":
            state.dismissed.add(read_target(value["op"], payload))
        return None

    def _unmet_reference(self, written_op: Any, op: str, payload: dict[str, Any]) -> _Problem | None:
        """Look at the required references only, in the order of §5, step 9."""
        state = self.state
        if op in ON_COMMITMENT:
            commitment = payload["commitment"]
            if commitment not in state.commitments:
                signal = state.signals.get(commitment)
                return _WRONG_KIND if signal is not None and signal.op != "commit" else _ABSENT
        name = _SECOND_REFERENCE.get(op)
        if name is not None and required_value(written_op, payload, name) not in state.signals:
            return _ABSENT
        return None

    def _create(self, row: Row, payload: dict[str, Any]) -> None:
        value = row.value
        self.state.cited.add(payload["source"])
        self.state.commitments[value["id"]] = Commitment(
            id=value["id"],
            source=payload["source"],
            body=payload.get("body") or "",
            tags=tuple(payload.get("tags") or ()),
            actor=value["actor"],
            line=row.line,
            ts=value["ts"],
            last_row=value["id"],
            last_actor=value["actor"],
            last_ts=value["ts"],
        )

    def _step(self, row: Row, op: str, payload: dict[str, Any]) -> _Problem | None:
        value = row.value
        record = self.state.commitments[payload["commitment"]]
        cell = step(record.state, record.owner, value["actor"], column_of(op, payload))
        if cell.code is not None:
            return cell.code, cell.detail
        if cell.effect == "approve" and not approval_matches(record, payload):
            return _BAD_STATE
        self._effect(cell, record, row, payload)
        record.last_row, record.last_actor, record.last_ts = value["id"], value["actor"], value["ts"]
        return None

    def _effect(self, cell: Cell, record: Commitment, row: Row, payload: dict[str, Any]) -> None:
        value, state = row.value, self.state
        identifier, actor = value["id"], value["actor"]
        assert cell.to is not None
        record.state = cell.to
        match cell.effect:
            case "keep":
                pass
            case "take":
                record.owner = actor
            case "drop":
                record.owner = None
            case "submit":
                record.submission = Submission(identifier, payload["evidence"], actor)
            case "approve":
                assert record.submission is not None
                record.evidence = record.submission.evidence
                record.self_approved = record.submission.actor == actor
                record.submission = None
                if record.self_approved:
                    message = f"{actor} approved its own submission to {record.id}"
                    state.notes.append(Note(row.line, identifier, "self_approval", message))
            case "close":
                record.evidence = required_value("close", payload, "evidence")
                record.duplicate_of = payload.get("duplicate_of") or None
                if record.duplicate_of is not None:
                    state.duplicates.setdefault(record.duplicate_of, {})[record.id] = None
                    state.untold.setdefault(record.duplicate_of, {})[record.id] = None
            case "reopen":
                self._reopen(record, row.line, identifier)
        if record.state == "closed":
            record.closed_by, record.closed_row, record.closed_ts = actor, identifier, value["ts"]

    def _reopen(self, record: Commitment, line: int, identifier: str) -> None:
        state = self.state
        if record.duplicate_of is not None:
            del state.duplicates[record.duplicate_of][record.id]
            state.untold.get(record.duplicate_of, {}).pop(record.id, None)
        record.evidence = record.submission = record.duplicate_of = None
        record.closed_by = record.closed_row = record.closed_ts = None
        record.self_approved = False
        record.reopen_count += 1
        # Each is named once and counted afterwards: the notes of a hostile ledger grow no faster than its rows.
        fresh = state.untold.pop(record.id, {})
        for other in fresh:
            message = f"{other} stays closed as a duplicate of {record.id}, which was reopened"
            state.notes.append(Note(line, identifier, "duplicate_reopened", message))
        told = len(state.duplicates.get(record.id, ())) - len(fresh)
        if told:
            message = f"{told} named before stay closed as duplicates of {record.id}, which was reopened again"
            state.notes.append(Note(line, identifier, "duplicate_reopened", message))

    def _register(self, row: Row) -> None:
        """Make the row known to later ones; an anomaly too has used its id and its source_key."""
        line, value, identifier, _, _ = row
        state, get = self.state, value.get
        key = get("source_key")
        if key and type(key) is str:
            state.source_keys.setdefault(key, identifier)
        signals = state.signals
        if identifier is None or identifier in signals:
            return
        op, payload, actor, ts = get("op"), get("payload"), get("actor"), get("ts")
        kind = read_kind(op, payload) if type(payload) is dict else None
        if op != "commit" and type(payload) is dict and "tags" in payload and is_texts(payload["tags"]):
            state.tags[identifier] = tuple(map(self._shared_text, payload["tags"]))
        op = read_op(op)
        # One object for equal texts: a ledger has few operations, kinds and actors and many rows.
        share = self._shared.setdefault
        signals[identifier] = Signal(
            line,
            share(op, op) if type(op) is str else None,
            share(kind, kind) if kind is not None else None,
            share(actor, actor) if type(actor) is str else None,
            ts if type(ts) is str else None,
            state.depth_of(parents_of(value)) if "trace" in value else 0,
        )

    def _shared_text(self, text: str) -> str:
        return self._shared.setdefault(text, text)


_SECOND_REFERENCE: Final = {"commit": "source", "submit": "evidence", "close": "evidence", "annotate": "target"}
"""The required reference beside ``commitment``, by operation."""


def read_kind(written_op: Any, payload: dict[str, Any]) -> str | None:
    """Return the kind of a row as read: its own, that of a version 1 note, or the operation's default."""
    if type(written_op) is str and written_op in V1_OPS:
        return written_op
    kind = payload.get("kind")
    if kind and type(kind) is str:
        return kind
    return DEFAULT_KIND.get(written_op) if type(written_op) is str else None


def parents_of(value: dict[str, Any]) -> list[str]:
    """Return ``trace.parent``, empty when there is none or it is no array of ids."""
    trace = value.get("trace")
    parents = trace.get("parent") if isinstance(trace, dict) else None
    if not isinstance(parents, list):
        return []
    return [parent for parent in parents if isinstance(parent, str) and parent]


def depth_of(parents: Iterable[str], depths: Mapping[str, int]) -> int:
    """Return the causal depth: 0 without parents, else 1 + the deepest parent's; unknown ones count as 0 (§8)."""
    return max((1 + depths.get(parent, 0) for parent in parents), default=0)


def column_of(op: str, payload: dict[str, Any]) -> Column:
    """Return the column of the state table for an operation."""
    if op == "close" and not is_blank(payload.get("duplicate_of")):
        return "duplicate"
    return op  # type: ignore[return-value]  # the callers have found it among the operations


def approval_matches(record: Commitment, payload: dict[str, Any]) -> bool:
    """Tell whether an approval's optional ``evidence`` and ``meta.submission`` are the submission's (§5 [D16])."""
    submission = record.submission
    assert submission is not None
    evidence = payload.get("evidence")
    meta = payload.get("meta")
    named = meta.get("submission") if isinstance(meta, dict) else None
    return (is_blank(evidence) or evidence == submission.evidence) and (is_blank(named) or named == submission.id)


def newest_first(names: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of one of the state's mappings, the last one first."""
    return reversed(names)  # type: ignore[arg-type]  # dictionaries and what stands in for them go backwards too


def replay(rows: Iterable[Row]) -> State:
    """Return the state of a whole ledger."""
    run = Replay()
    for row in rows:
        run.apply(row)
    return run.state
