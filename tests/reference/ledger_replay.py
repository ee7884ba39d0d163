"""A slow, literal model of the ledger: replay (§5-§7, §16), over `ledger_bytes`; `ledger_admission` goes on from it.

Part of the yardstick for differential tests: nothing is imported from the product and nothing is shared with it.
The state machine is prose in `if` and `else`. Where the spec leaves a corner open, the plainest reading stands
at the place, in a comment that begins with "Open:".
"""

from __future__ import annotations

from typing import Any

from reference.ledger_bytes import (
    OPS,
    V1_OPS,
    is_blank,
    is_unhashed,
    read_lines,
)

Json = Any
Refusal = tuple[str, "str | None"]
BAD_VALUE: Refusal = ("E_CONSTRAINT_VIOLATED", "bad_value")
BAD_STATE: Refusal = ("E_CONSTRAINT_VIOLATED", "bad_state")


class Book:
    """What the rows so far amount to."""

    def __init__(self) -> None:
        self.ops: dict[str, Json] = {}
        """The op of every earlier row by id, anomalies too; version 1 names already read as annotate."""
        self.source_keys: dict[str, str | None] = {}
        self.commitments: dict[str, dict[str, Json]] = {}


# --- §6: the state machine --------------------------------------------------------------------------------


def table(state: str, op: str, is_owner: bool, duplicate: bool) -> Refusal | None:
    """Why the table forbids the op, or None. `duplicate`: a close that carries `duplicate_of`."""
    if state == "open":
        if op == "claim":
            return None
        if op in ("release", "submit"):
            return ("E_NOT_OWNER", None)
        if op in ("approve", "reopen"):
            return BAD_STATE
        if duplicate:
            return None
        return ("E_NOT_OWNER", None)
    if state == "claimed":
        if op in ("approve", "reopen"):
            return BAD_STATE
        if is_owner:
            return None
        if op == "claim":
            return ("E_ALREADY_CLAIMED", None)
        return ("E_NOT_OWNER", None)
    if state == "in_review":
        if op in ("approve", "reopen"):
            return None
        if is_owner:
            return BAD_STATE
        if op == "claim":
            return ("E_ALREADY_CLAIMED", None)
        return ("E_NOT_OWNER", None)
    if op == "reopen":
        return None
    return ("E_ALREADY_CLOSED", None)


def state_refusal(book: Book, op: str, actor: str, payload: dict[str, Json]) -> Refusal | None:
    """The table, and what an approve must agree with."""
    record = book.commitments[payload["commitment"]]
    duplicate = not is_blank(payload.get("duplicate_of"))
    refused = table(record["state"], op, record["owner"] == actor, duplicate)
    if refused is not None:
        return refused
    if op == "approve":
        submission = record["submission"]
        if not is_blank(payload.get("evidence")) and payload["evidence"] != submission["evidence"]:
            return BAD_STATE
        named = (payload.get("meta") or {}).get("submission")
        if not is_blank(named) and named != submission["id"]:
            return BAD_STATE
    return None


def take_effect(book: Book, row_id: str, op: str, actor: str, payload: dict[str, Json]) -> None:
    """Apply a row that nothing forbids."""
    if op == "commit":
        book.commitments[row_id] = {
            "state": "open",
            "owner": None,
            "evidence": None,
            "submission": None,
            "duplicate_of": None,
            "reopen_count": 0,
        }
        return
    if op in ("capture", "annotate"):
        return
    record = book.commitments[payload["commitment"]]
    if op == "claim":
        record["state"] = "claimed"
        record["owner"] = actor
    elif op == "release":
        record["state"] = "open"
        record["owner"] = None
    elif op == "submit":
        record["state"] = "in_review"
        record["submission"] = {"id": row_id, "evidence": payload["evidence"]}
    elif op == "approve":
        record["state"] = "closed"
        record["evidence"] = record["submission"]["evidence"]
        # Open: a submission is shown in review only.
        record["submission"] = None
    elif op == "close":
        record["state"] = "closed"
        record["evidence"] = payload["evidence"]
        if not is_blank(payload.get("duplicate_of")):
            record["duplicate_of"] = payload["duplicate_of"]
    else:  # reopen
        record["state"] = "claimed" if record["owner"] is not None else "open"
        record["evidence"] = None
        record["submission"] = None
        record["duplicate_of"] = None
        record["reopen_count"] += 1


# --- §5: steps that replay and admission share ------------------------------------------------------------


def required_references(op: str) -> list[str]:
    """The payload's required references, in the table order of §2."""
    if op == "commit":
        return ["source"]
    if op in ("claim", "release", "approve", "reopen"):
        return ["commitment"]
    if op in ("submit", "close"):
        return ["commitment", "evidence"]
    if op == "annotate":
        return ["target"]
    return []


def filled_evidence(op: str, payload: dict[str, Json]) -> bool:
    """A close whose evidence is left out for its `duplicate_of` [D17]."""
    return op == "close" and is_blank(payload.get("evidence")) and not is_blank(payload.get("duplicate_of"))


def first_missing(op: str, payload: dict[str, Json], body_needed: bool) -> str | None:
    """The first required payload field that is missing.

    Open: absent, null and the empty string are all missing, but a body of no characters is a string like any
    other.
    """
    if body_needed and payload.get("body") is None:
        return "body"
    for name in required_references(op):
        if is_blank(payload.get(name)) and not (name == "evidence" and filled_evidence(op, payload)):
            return name
    return None


def parents(row: dict[str, Json]) -> list[Json]:
    """An empty string is no id, so it is no parent either."""
    found: list[Json] = (row.get("trace") or {}).get("parent") or []
    return [one for one in found if one != ""]


def already_used(book: Book, row: dict[str, Json]) -> Refusal | None:
    """Step 6. Open: a repeated id has no detail; of a repeated source key it is the existing row's id."""
    if row.get("id") in book.ops:
        return ("E_DUPLICATE_ID", None)
    if not is_blank(row.get("source_key")) and row["source_key"] in book.source_keys:
        return ("E_DUPLICATE_ID", book.source_keys[row["source_key"]])
    return None


def ungated(row: dict[str, Json]) -> Refusal | None:
    """Step 8, for any op (invariant 3)."""
    if row["payload"].get("kind") in ("finding", "step_result", "learning") and not parents(row):
        return ("E_CITATION_REQUIRED", None)
    return None


def unknown_reference(book: Book, named: Json, permitted: tuple[str, ...] | None) -> Refusal | None:
    """One reference of step 9; `permitted` None lets every op stand."""
    if named not in book.ops:
        return ("E_REF_NOT_FOUND", "absent")
    if permitted is not None and book.ops[named] not in permitted:
        return ("E_REF_NOT_FOUND", "wrong_kind")
    return None


def unknown_commitment(book: Book, named: Json) -> Refusal | None:
    refused = unknown_reference(book, named, ("commit",))
    if refused is not None:
        return refused
    # Open: a commit row that is an anomaly has no record; operations on it find nothing there.
    return None if named in book.commitments else ("E_REF_NOT_FOUND", "absent")


# --- §6, §16: replay --------------------------------------------------------------------------------------


def replay(data: bytes) -> dict[str, Json]:
    """Return `commitments` by id and `anomalies` as (line, id, code, detail), from the bytes alone."""
    book, anomalies = replayed(data)
    return {"commitments": book.commitments, "anomalies": anomalies}


def replayed(data: bytes) -> tuple[Book, list[tuple[int, str | None, str, str | None]]]:
    book = Book()
    anomalies = []
    for line in read_lines(data)[0]:
        if line.row is None:
            continue
        row = as_read(line.row)
        refused = replay_refusal(book, row)
        if refused is None:
            take_effect(book, row["id"], row["op"], row["actor"], row["payload"])
        else:
            anomalies.append((line.number, line.id, *refused))
        # The row stands in the ledger either way; the first to use an id or a key keeps it.
        if line.id is not None:
            book.ops.setdefault(line.id, row.get("op"))
        key = row.get("source_key")
        if isinstance(key, str) and key != "":
            book.source_keys.setdefault(key, line.id)
    return book, anomalies


def as_read(row: dict[str, Json]) -> dict[str, Json]:
    """Version 1 names, and the evidence that a duplicate close leaves out, filled in."""
    row = dict(row)
    payload = row.get("payload")
    if isinstance(payload, dict):
        payload = row["payload"] = dict(payload)
    if row.get("op") in V1_OPS:
        kind, row["op"] = row["op"], "annotate"
        if isinstance(payload, dict):
            payload["kind"] = kind
            if is_blank(payload.get("target")):
                payload["target"] = payload.get("source")
            if is_blank(payload.get("target")):
                payload["target"] = payload.get("memory")
    if isinstance(payload, dict) and row.get("op") == "close" and filled_evidence("close", payload):
        payload["evidence"] = payload["duplicate_of"]
    return row


def replay_refusal(book: Book, row: dict[str, Json]) -> Refusal | None:
    """Why a row of the ledger has no effect, in the order of §5; steps 4, 5, 7 and 11 are write-time only."""
    # 1. Open: an absent op is no known op either.
    op = row.get("op")
    if op not in OPS:
        return ("E_INVALID_OP", None)
    # 2. Open: the detail is the field's name. Of an unhashed row (version 1) only workspace and body may be
    #    missing, since only these have a default that is a value; null is as good as absent.
    needed = ["id", "ts", "actor"] if is_unhashed(row) else ["id", "ts", "actor", "workspace"]
    for name in needed:
        if is_blank(row.get(name)):
            return ("E_MISSING_FIELD", name)
    payload = row.get("payload")
    if not isinstance(payload, dict):
        return ("E_MISSING_FIELD", "payload")
    missing = first_missing(op, payload, body_needed=not is_unhashed(row))
    if missing is not None:
        return ("E_MISSING_FIELD", missing)
    # 3. Types alone.
    if not right_types(row, payload):
        return BAD_VALUE
    # 6
    refused = already_used(book, row) or ungated(row)
    if refused is not None:
        return refused
    # 9. Only the required references, and no restriction of op on source and evidence.
    for name in ("commitment", "source", "evidence", "target"):
        if name in required_references(op):
            if name == "commitment":
                refused = unknown_commitment(book, payload[name])
            else:
                refused = unknown_reference(book, payload[name], None)
            if refused is not None:
                return refused
    # 10
    if op in ("capture", "commit", "annotate"):
        return None
    return state_refusal(book, op, row["actor"], payload)


def right_types(row: dict[str, Json], payload: dict[str, Json]) -> bool:
    """Every field of the tables of §2 has its type, or is absent, null or empty.

    Open: what is inside `trust`, and the stored children and depth of `trace`, are left out: readers never fail
    on the former (§9, §10) and do not rely on the latter (§8).
    """
    texts = [
        row.get(name) for name in ("id", "ts", "actor", "workspace", "syncScope", "observationLevel", "source_key")
    ]
    names = "body kind source commitment evidence target duplicate_of summary reason comment"
    texts += [payload.get(name) for name in names.split()]
    if any(text is not None and not isinstance(text, str) for text in texts):
        return False
    for value in (payload.get("meta"), row.get("trust")):
        if not is_nothing(value) and not isinstance(value, dict):
            return False
    for value in (payload.get("tags"), payload.get("refs"), row.get("sourceIds")):
        if not is_nothing(value) and not is_texts(value):
            return False
    semantic, trace, relations = row.get("semantic"), row.get("trace"), row.get("relations")
    if not is_nothing(semantic):
        if not isinstance(semantic, dict):
            return False
        for name in ("entities", "domain"):
            if semantic.get(name) is not None and not is_texts(semantic[name]):
                return False
        if semantic.get("intent") is not None and not isinstance(semantic["intent"], str):
            return False
    if not is_nothing(trace):
        if not isinstance(trace, dict):
            return False
        if trace.get("parent") is not None and not is_texts(trace["parent"]):
            return False
    if not is_nothing(relations):
        if not isinstance(relations, list):
            return False
        for one in relations:
            if not isinstance(one, dict):
                return False
            if not isinstance(one.get("type"), str) or not isinstance(one.get("targetId"), str):
                return False
    return True


def is_nothing(value: Json) -> bool:
    """Absent, null or empty, of a field that is an array or an object."""
    return value is None or value in ("", [], {})


def is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
