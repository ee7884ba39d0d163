"""A slow, literal model of the ledger: replay and admission (§2, §5-§7, §16), over `ledger_bytes`.

The yardstick for differential tests: nothing is imported from the product and nothing is shared with it. The
state machine is prose in `if` and `else`. Where the spec leaves a corner open, the plainest reading stands
at the place, in a comment that begins with "Open:".
"""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from typing import Any

from reference.ledger_bytes import (
    ONE_MIB,
    OPS,
    V1_OPS,
    canonical,
    depth,
    has_lone_surrogate,
    id_prefix,
    is_blank,
    is_unhashed,
    read_lines,
    row_hash,
    strings,
    verify,
    without_torn_tail,
)

__all__ = ["admit", "canonical", "replay", "row_hash", "verify"]

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


# --- §5: admission ----------------------------------------------------------------------------------------


def admit(
    data: bytes,
    candidate: dict[str, Json],
    workspace: str,
    now: datetime,
    unhashed_prefix: int | None = None,
) -> Refusal | None:
    """Return the code and detail a candidate operation gets without a genesis key, or None when it is written.

    Args:
        data: the ledger's bytes; a torn tail is moved away first, as the next writer does.
        candidate: the operation, shaped like a row; what tools fill in may be left out.
        workspace: the name in the configuration, filled in when the candidate has none.
        now: the time of writing; no rule without a genesis key reads it.
        unhashed_prefix: the setting of that name.
    """
    # 1. Open: as in replay; and the names of version 1 are for readers only.
    op = candidate.get("op")
    if op not in OPS:
        return ("E_INVALID_OP", None)
    # 2
    if is_blank(candidate.get("actor")):
        return ("E_MISSING_FIELD", "actor")
    payload = candidate.get("payload")
    if not isinstance(payload, dict):
        return ("E_MISSING_FIELD", "payload")
    missing = first_missing(op, payload, body_needed=True)
    if missing is not None:
        return ("E_MISSING_FIELD", missing)
    # 3. Open: a bad value is told before a supplied trust.
    row = {**candidate, "workspace": workspace if candidate.get("workspace") is None else candidate["workspace"]}
    # Null in an optional field is the field left out, in the payload as in the envelope.
    payload = row["payload"] = {name: value for name, value in payload.items() if value is not None}
    if not (envelope_values(row) and payload_values(op, payload) and writable(row)):
        return BAD_VALUE
    if candidate.get("trust") is not None:
        return ("E_CONSTRAINT_VIOLATED", "trust_self_reported")
    # 4
    kept = without_torn_tail(data)
    if verify(kept, unhashed_prefix)["faults"]:
        return ("E_CHAIN_BROKEN", None)
    # 6, 8
    book, _ = replayed(kept)
    refused = already_used(book, row) or ungated(row)
    if refused is not None:
        return refused
    # 9
    refused = admitted_references(book, op, row)
    if refused is not None:
        return refused
    # 10
    if op in ("capture", "commit", "annotate"):
        return None
    refused = state_refusal(book, op, row["actor"], payload)
    if refused is not None:
        return refused
    # Open: a cycle of duplicates is a matter of state, looked at behind the table.
    follow = payload.get("duplicate_of") if op == "close" else None
    passed = [payload["commitment"]]
    while not is_blank(follow):
        if follow in passed:
            return BAD_STATE
        passed.append(follow)
        follow = book.commitments[follow]["duplicate_of"] if follow in book.commitments else None
    return None


def admitted_references(book: Book, op: str, row: dict[str, Json]) -> Refusal | None:
    """Step 9. Open: a known reference field is looked at on whichever op it stands."""
    payload = row["payload"]
    asked: list[tuple[Json, tuple[str, ...] | None]] = []
    if not is_blank(payload.get("commitment")):
        refused = unknown_commitment(book, payload["commitment"])
        if refused is not None:
            return refused
    if not is_blank(payload.get("source")):
        asked.append((payload["source"], ("capture",) if op == "commit" else None))
    if filled_evidence(op, payload):
        asked.append((payload["duplicate_of"], ("capture", "annotate", "commit")))
    elif op == "close" and payload["evidence"] == payload.get("duplicate_of"):
        # Open: said outright, the evidence that would have been filled in is as good.
        asked.append((payload["evidence"], ("capture", "annotate", "commit")))
    elif not is_blank(payload.get("evidence")):
        # Open: an approve's evidence has to be there; that it is the submission's is a matter of state.
        asked.append((payload["evidence"], ("capture", "annotate") if op in ("submit", "close") else None))
    if not is_blank(payload.get("duplicate_of")):
        asked.append((payload["duplicate_of"], ("commit",)))
    if not is_blank(payload.get("target")):
        asked.append((payload["target"], None))
    asked += [(one, None) for one in parents(row)]
    asked += [(relation["targetId"], None) for relation in row.get("relations") or []]
    asked += [(one, None) for one in row.get("sourceIds") or []]
    asked += [(one, None) for one in payload.get("refs") or []]
    for named, permitted in asked:
        refused = unknown_reference(book, named, permitted)
        if refused is not None:
            return refused
    return None


# --- §2: what a writer accepts ----------------------------------------------------------------------------


def envelope_values(row: dict[str, Json]) -> bool:
    """Open: null in an optional top-level field is the field left out."""
    known = (
        "id op ts actor workspace hash prevHash payload syncScope semantic trust trace relations"
        " observationLevel sourceIds source_key"
    )
    if not only(row, known):
        return False
    given = {name: value for name, value in row.items() if value is not None}
    if "id" in given and not (is_id(given["id"]) and given["id"].startswith(id_prefix(given["op"]))):
        return False
    if "ts" in given and not is_written_instant(given["ts"]):
        return False
    if not is_actor(given["actor"]) or not is_workspace(given["workspace"]):
        return False
    if given.get("syncScope", "local") not in ("local", "anonymous", "full", "cloud"):
        return False
    if given.get("observationLevel", "explicit") not in ("explicit", "deductive", "inductive", "contradiction"):
        return False
    if not is_semantic(given.get("semantic", {})) or not is_trace(given.get("trace", {})):
        return False
    relations = given.get("relations", [])
    if not isinstance(relations, list) or not all(is_relation(one) for one in relations):
        return False
    if not is_ids(given.get("sourceIds", [])):
        return False
    key = given.get("source_key", "-")
    return isinstance(key, str) and 1 <= len(key) <= 512


def payload_values(op: str, payload: dict[str, Json]) -> bool:
    """Open: a known field may stand on any op."""
    known = "body kind source commitment evidence target duplicate_of summary reason comment tags refs meta"
    if not only(payload, known):
        return False
    if not isinstance(payload["body"], str) or payload["body"].strip() == "":
        return False
    if "kind" in payload:
        kind = payload["kind"]
        if not isinstance(kind, str) or re.fullmatch("[a-z][a-z0-9_-]{0,63}", kind) is None:
            return False
        # Open: naming the default kind is no override.
        if op not in ("capture", "annotate") and kind != default_kind(op):
            return False
    for name in ("source", "commitment", "evidence", "target", "duplicate_of"):
        if name in payload and not is_named(payload[name]):
            # The evidence that a duplicate close leaves out may be left out as empty.
            if name == "evidence" and filled_evidence(op, payload):
                continue
            return False
    # Open: a commitment that names itself as its own duplicate is no "id of another commit".
    if op == "close" and payload.get("duplicate_of") == payload["commitment"]:
        return False
    for name in ("summary", "reason", "comment"):
        if name in payload and not isinstance(payload[name], str):
            return False
    if "tags" in payload and not is_texts(payload["tags"]):
        return False
    if "refs" in payload and not is_ids(payload["refs"]):
        return False
    return isinstance(payload.get("meta", {}), dict)


def default_kind(op: str) -> str:
    if op == "commit":
        return "commitment"
    if op == "close":
        return "verdict"
    if op == "submit":
        return "submission"
    if op == "approve":
        return "approval"
    return op  # claim, release, reopen


def only(value: dict[str, Json], known: str) -> bool:
    """No field but the known ones and those that begin with `x_` [D2]."""
    return all(name in known.split() or name.startswith("x_") for name in value)


def is_id(value: Json) -> bool:
    return isinstance(value, str) and re.fullmatch("(mem|cmt|op|ann)_[0-9a-z]{8,64}", value) is not None


def is_named(value: Json) -> bool:
    """Open: a reference may be any text, so that rows with ids of another form can be named, and one that names
    nothing is not found (step 9) rather than ill formed (step 3)."""
    return isinstance(value, str) and value != ""


def is_ids(value: Json) -> bool:
    return isinstance(value, list) and all(is_named(one) for one in value)


def is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def is_written_instant(value: Json) -> bool:
    shape = r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]{1,9})?Z"
    found = re.fullmatch(shape, value) if isinstance(value, str) else None
    if found is None:
        return False
    year, month, day, hour, minute, second = (int(part) for part in found.groups())
    try:
        datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - only whether it is a real date
    except ValueError:
        return False
    return True


def is_actor(value: Json) -> bool:
    """Open: an e-mail address is two runs of characters, without white space and colon, around one `@`."""
    if not isinstance(value, str):
        return False
    named = re.fullmatch(r"(human|agent|system):[^\s:]\S{0,255}", value)
    return named is not None or re.fullmatch(r"[^\s:@]+@[^\s:@]+", value) is not None


def is_workspace(value: Json) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\S{1,128}", value) is not None


def is_semantic(value: Json) -> bool:
    if not isinstance(value, dict) or not only(value, "entities intent domain"):
        return False
    lists = is_texts(value.get("entities", [])) and is_texts(value.get("domain", []))
    return lists and isinstance(value.get("intent", ""), str)


def is_trace(value: Json) -> bool:
    """Open: a depth given by the caller is looked at for its type only, as the writer computes it."""
    if not isinstance(value, dict) or not only(value, "parent children causalDepth"):
        return False
    level = value.get("causalDepth", 0)
    counted = isinstance(level, int) and not isinstance(level, bool) and level >= 0
    return counted and is_ids(value.get("parent", [])) and is_ids(value.get("children", []))


def is_relation(value: Json) -> bool:
    """The four core types; the three others only OKF ingest may write [D26]."""
    if not isinstance(value, dict) or not only(value, "type targetId"):
        return False
    core = value.get("type") in ("cites", "extends", "contradicts", "refines")
    return core and is_named(value.get("targetId"))


def writable(value: Json) -> bool:
    """§3, policies for writers [D8]."""
    if depth(value) > 100 or any(has_lone_surrogate(text) for text in strings(value)):
        return False
    if not all(abs(number) <= 2**53 - 1 for number in numbers(value) if isinstance(number, int)):
        return False
    if not all(math.isfinite(number) for number in numbers(value)):
        return False
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) <= ONE_MIB


def numbers(value: Json) -> list[int | float]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for one in inner for number in numbers(one)]
