"""Admission of a new row: the nine operations and their refusals in the order of the ledger spec's §5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NoReturn, Protocol

from troth.core.canonical import row_bytes
from troth.core.errors import DoesNotHold, Place, Refused, TrothError
from troth.core.ids import RandomHex, new_id
from troth.core.instants import format_instant
from troth.ledger.chain import Verification
from troth.ledger.codes import RULES
from troth.ledger.fastpath import sealed
from troth.ledger.fields import (
    CITING_KINDS,
    DEFAULT_KIND,
    ID_PREFIX,
    ON_COMMITMENT,
    OPS,
    REQUIRED_ENVELOPE,
    is_blank,
    is_empty,
    missing_field,
    surely_complete,
)
from troth.ledger.hashing import row_hash
from troth.ledger.machine import step
from troth.ledger.replay import Commitment, State, approval_matches, column_of, parents_of
from troth.ledger.rows import MAX_ROW_BYTES
from troth.ledger.trust import human_stamp
from troth.ledger.values import envelope_problem, is_human, unportable

_FILLED: Final = frozenset({"id", "ts", "workspace"})
_NEEDED: Final = ("actor",)
_OPTIONAL: Final = (
    "semantic",
    "trace",
    "relations",
    "observationLevel",
    "sourceIds",
    "source_key",
    "syncScope",
)
_GIVEN: Final = ("id", "ts", "workspace", *_OPTIONAL)
_given: Final = attrgetter(*_GIVEN)
_NOTHING: Final = (None,) * len(_GIVEN)
_ASKED: Final = 3  # op, actor and payload are members of every candidate
_MEMBERS: Final = ("op", "actor", "payload", "id", "ts", "workspace", *_OPTIONAL, "trust")


_EXPLAIN: Final = "`troth genesis explain` tells what decides."


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a caller asks to be appended; nothing in it is trusted.

    Members have the wire's names; ``None`` means absent. ``extra`` holds further top-level members, which must
    be prefixed ``x_`` ([D2]). ``trust`` is there only to be refused ([D13]).
    """

    op: Any
    actor: Any
    payload: Any
    id: Any = None
    ts: Any = None
    workspace: Any = None
    semantic: Any = None
    trace: Any = None
    relations: Any = None
    observationLevel: Any = None  # noqa: N815 - the name on the wire
    sourceIds: Any = None  # noqa: N815 - the name on the wire
    source_key: Any = None
    syncScope: Any = None  # noqa: N815 - the name on the wire
    trust: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Candidate:
        """Return the candidate of a mapping with the wire's names; unknown names go to ``extra``.

        ``hash`` and ``prevHash`` are left out: tools fill them, whatever the mapping says.
        """
        known = {name: members.get(name) for name in _MEMBERS}
        left_out = {*known, "hash", "prevHash"}
        extra = {name: value for name, value in members.items() if name not in left_out}
        return cls(**known, extra=extra)


class Constitution(Protocol):
    """What a genesis key decides (§11), at the places that §5 gives it."""

    def permits(self, actor: str, op: str) -> bool:
        """Tell whether the actor may do this operation (step 7)."""

    def broken_rule(self, row: Mapping[str, Any], state: State, now: datetime) -> str | None:
        """Return the name of the first constraint or tier rule that the row breaks (step 11).

        ``now`` is the writer's clock: a row's own ``ts`` opens no window again.
        """


def _refuse(
    code: str, message: str, *, detail: str | None = None, path: str | None = None, remedy: str | None = None
) -> NoReturn:
    raise Refused(code, message, detail=detail, place=Place(path=path) if path else None, remedy=remedy)


def admit(
    candidate: Candidate,
    state: State,
    *,
    chain_ok: bool | Verification,
    head_hash: str,
    workspace: str,
    now: datetime,
    random_hex: RandomHex,
    engine_trust: dict[str, Any] | None = None,
    genesis_error: TrothError | None = None,
    constitution: Constitution | None = None,
    okf_ingest: bool = False,
) -> dict[str, Any]:
    """Return the complete row for a candidate, linked and hashed, ready to be written as one line.

    Args:
        candidate: what is asked for.
        state: the replayed state of the whole ledger; not changed.
        chain_ok: whether the ledger verifies.
        head_hash: the hash the row links to: the last hashed row's, 64 zeros when there is none.
        workspace: the workspace of the configuration.
        now: the instant for a row without ``ts``.
        random_hex: source of the id's digits.
        engine_trust: the trust that the engine itself measured; an approval by a human gets its stamp anyway.
        genesis_error: why the genesis key is invalid.
        constitution: a valid genesis key; without one everyone is permitted everything.
        okf_ingest: the caller is OKF ingest, which may write its own relation types to any target (§8, §13).

    Raises:
        DoesNotHold: ``E_CHAIN_BROKEN``.
        Refused: every other code of §5, the first in its order, with its detail.
    """
    value = _assemble(candidate)
    op = value["op"]
    # 1
    if not isinstance(op, str) or op not in OPS:
        _refuse("E_INVALID_OP", f"{op!r:.80} is none of the nine operations", path="$.op")
    # 2
    missing = None
    if not surely_complete(value, op, _NEEDED):
        missing = missing_field(value, hashed=True, filled=_FILLED)
    if missing is not None:
        path = f"$.{missing}" if missing in REQUIRED_ENVELOPE else f"$.payload.{missing}"
        _refuse("E_MISSING_FIELD", f"{op} needs {missing}", detail=missing, path=path)
    # 3
    _check_values(candidate, value, okf_ingest)
    # 4
    if not (chain_ok if isinstance(chain_ok, bool) else chain_ok.ok):
        raise DoesNotHold(
            "E_CHAIN_BROKEN",
            "the ledger does not verify, so nothing is appended",
            remedy="Run `troth verify` for the faults.",
        )
    # 5
    if genesis_error is not None:
        raise Refused(
            "E_CONSTRAINT_VIOLATED",
            f"the genesis key is invalid: {genesis_error.message}",
            remedy=genesis_error.remedy,
            place=genesis_error.place,
            detail="genesis_invalid",
        ) from genesis_error
    # 6
    _check_unused(value, state)
    # 7
    if constitution is not None and not constitution.permits(value["actor"], op):
        _refuse("E_PERMISSION_DENIED", f"no role of {value['actor']} may {op}", path="$.actor", remedy=_EXPLAIN)
    # 8
    kind = value["payload"].get("kind") or DEFAULT_KIND[op]
    if kind in CITING_KINDS and not parents_of(value):
        _refuse("E_CITATION_REQUIRED", f"a {kind} cites at least one parent", path="$.trace.parent")
    # 9
    _check_references(value, state, okf_ingest)
    # 10
    if op in ON_COMMITMENT:
        _check_table(value, state)
    # 11
    if constitution is not None:
        rule = constitution.broken_rule(value, state, now)
        if rule is not None:
            _refuse(
                "E_CONSTRAINT_VIOLATED",
                f"the genesis key forbids it: {rule}",
                detail=rule,
                remedy=f"{RULES.get(rule, '')} {_EXPLAIN}".strip(),
            )
    return _complete(
        value,
        state,
        head_hash=head_hash,
        workspace=workspace,
        now=now,
        random_hex=random_hex,
        engine_trust=engine_trust,
    )


def _assemble(candidate: Candidate) -> dict[str, Any]:
    """Return the members given; null is as good as absent."""
    value: dict[str, Any] = {"op": candidate.op, "actor": candidate.actor, "payload": candidate.payload}
    given = _given(candidate)
    if given != _NOTHING:
        value |= {name: item for name, item in zip(_GIVEN, given, strict=True) if item is not None}
    if candidate.extra:
        for name, item in candidate.extra.items():
            # What has a field of its own does not come in by this door, where nothing would ask about it.
            if name != "trust":
                value[f"extra.{name}" if name in _MEMBERS else name] = item
    if isinstance(candidate.payload, dict):
        payload = {name: item for name, item in candidate.payload.items() if item is not None}
        # A duplicate close without evidence is written with the other commitment as its evidence ([D17]).
        if value["op"] == "close" and is_blank(payload.get("evidence")):
            payload.pop("evidence", None)
            if not is_blank(payload.get("duplicate_of")):
                payload["evidence"] = payload["duplicate_of"]
        value["payload"] = payload
    return value


def _check_values(candidate: Candidate, value: dict[str, Any], okf_ingest: bool) -> None:
    problem = unportable(value)
    if problem is None and candidate.trust is not None:
        problem = unportable(candidate.trust, "$.trust")
    if problem is None:
        problem = envelope_problem(value, okf_ingest=okf_ingest)
    if problem is not None:
        _refuse("E_CONSTRAINT_VIOLATED", f"{problem[0]}: {problem[1]}", detail="bad_value", path=problem[0])
    if candidate.trust is not None or "trust" in candidate.extra:
        _refuse(
            "E_CONSTRAINT_VIOLATED",
            "trust is measured, never supplied",
            detail="trust_self_reported",
            path="$.trust",
        )


def _check_unused(value: dict[str, Any], state: State) -> None:
    identifier = value.get("id")
    if identifier is not None and identifier in state.signals:
        _refuse("E_DUPLICATE_ID", f"{identifier} is already used", path="$.id")
    key = value.get("source_key")
    if key is not None and key in state.source_keys:
        existing = state.source_keys[key]
        message = f"{existing or 'a row without id'} has that source_key"
        _refuse("E_DUPLICATE_ID", message, detail=existing, path="$.source_key")


def _check_references(value: dict[str, Any], state: State, okf_ingest: bool) -> None:
    op, payload = value["op"], value["payload"]
    if len(value) == _ASKED and _REFERENCES.isdisjoint(payload):
        return
    # A duplicate close may name the other commitment as its evidence ([D17]).
    lent = op == "close" and payload.get("duplicate_of") == payload["evidence"]
    evidence: tuple[str, ...] = ("capture", "annotate") if op in ("submit", "close") and not lent else ()
    single: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("commitment", ("commit",)),
        ("source", ("capture",) if op == "commit" else ()),
        ("evidence", evidence),
        ("duplicate_of", ("commit",)),
        ("target", ()),
    )
    for name, allowed in single:
        if name in payload:
            _check_reference(payload[name], allowed, state, f"$.payload.{name}")
            if name == "commitment" and payload[name] not in state.commitments:
                message = f"{payload[name]} is a row without effect, so there is no such commitment"
                _refuse("E_REF_NOT_FOUND", message, detail="absent", path="$.payload.commitment")
    for parent in parents_of(value):
        _check_reference(parent, (), state, "$.trace.parent")
    if not okf_ingest:
        for relation in value.get("relations", ()):
            _check_reference(relation["targetId"], (), state, "$.relations")
    for source in value.get("sourceIds", ()):
        _check_reference(source, (), state, "$.sourceIds")
    for ref in payload.get("refs", ()):
        _check_reference(ref, (), state, "$.payload.refs")


_REFERENCES: Final = frozenset({"commitment", "source", "evidence", "duplicate_of", "target", "refs"})
"""The payload fields that name earlier rows."""


def _check_reference(identifier: str, allowed: tuple[str, ...], state: State, path: str) -> None:
    signal = state.signals.get(identifier)
    if signal is None:
        _refuse("E_REF_NOT_FOUND", f"no earlier row is {identifier}", detail="absent", path=path)
    if allowed and signal.op not in allowed:
        _refuse(
            "E_REF_NOT_FOUND",
            f"{identifier} is a row of {signal.op}, not of {' or '.join(allowed)}",
            detail="wrong_kind",
            path=path,
        )


def _check_table(value: dict[str, Any], state: State) -> None:
    op, actor, payload = value["op"], value["actor"], value["payload"]
    record = state.commitments[payload["commitment"]]
    cell = step(record.state, record.owner, actor, column_of(op, payload))
    if cell.code is not None:
        holder = f", held by {record.owner}" if record.owner is not None else ""
        _refuse(cell.code, f"{op}: {record.id} is {record.state}{holder}", detail=cell.detail)
    if cell.effect == "approve" and not approval_matches(record, payload):
        _refuse(
            "E_CONSTRAINT_VIOLATED",
            f"the approval names another submission or evidence than the one of {record.id} in review",
            detail="bad_state",
        )
    if op == "close" and "duplicate_of" in payload:
        _check_duplicate(record, payload["duplicate_of"], state.commitments)


def _check_duplicate(record: Commitment, other: str, commitments: Mapping[str, Commitment]) -> None:
    seen = {record.id}
    pointer: str | None = other
    while pointer is not None:
        if pointer in seen:
            message = f"{record.id} as a duplicate of {other} would close a circle"
            _refuse("E_CONSTRAINT_VIOLATED", message, detail="bad_state", path="$.payload.duplicate_of")
        seen.add(pointer)
        following = commitments.get(pointer)
        pointer = following.duplicate_of if following is not None else None


def _complete(
    value: dict[str, Any],
    state: State,
    *,
    head_hash: str,
    workspace: str,
    now: datetime,
    random_hex: RandomHex,
    engine_trust: dict[str, Any] | None,
) -> dict[str, Any]:
    op, actor = value["op"], value["actor"]
    taken: Callable[[str], bool] = state.signals.__contains__
    payload = value["payload"]
    body, kind = payload["body"], payload.get("kind", DEFAULT_KIND[op])
    row: dict[str, Any] = {
        "id": value["id"] if "id" in value else new_id(ID_PREFIX[op], taken, random_hex),
        "op": op,
        "ts": value.get("ts", format_instant(now)),
        "actor": actor,
        "workspace": value.get("workspace", workspace),
        "prevHash": head_hash,
        "payload": {"body": body, "kind": kind} | payload,
    }
    trust = human_stamp() if op == "approve" and is_human(actor) else engine_trust
    if len(value) > _ASKED:
        for name, item in value.items():
            if name not in row and not (name in _OPTIONAL and is_empty(item)):
                row[name] = item
    if trust is not None:
        row["trust"] = trust
    if "trace" in row:
        trace = {name: item for name, item in row["trace"].items() if name not in ("children", "causalDepth")}
        trace["causalDepth"] = state.depth_of(parents_of(value))
        row["trace"] = trace
    done = sealed(row)
    if done is None:
        row["hash"] = row_hash(row)
    size = len(row_bytes(row) if done is None else done)
    if size > MAX_ROW_BYTES:
        _refuse("E_CONSTRAINT_VIOLATED", f"the row has {size} bytes, more than {MAX_ROW_BYTES}", detail="bad_value")
    return row
