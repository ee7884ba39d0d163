"""A slow, literal model of the ledger: what is written and what is refused (§2, §3, §5), over `ledger_replay`.

Part of the yardstick for differential tests: nothing is imported from the product and nothing is shared with it.
Where the spec leaves a corner open, the plainest reading stands at the place, in a comment that begins with "Open:".
"""

from __future__ import annotations

import json
import math
import re
from datetime import datetime

from reference.ledger_bytes import (
    ONE_MIB,
    OPS,
    depth,
    has_lone_surrogate,
    id_prefix,
    is_blank,
    strings,
    verify,
    without_torn_tail,
)
from reference.ledger_replay import (
    BAD_STATE,
    BAD_VALUE,
    Book,
    Json,
    Refusal,
    already_used,
    filled_evidence,
    first_missing,
    is_texts,
    parents,
    replayed,
    state_refusal,
    ungated,
    unknown_commitment,
    unknown_reference,
)

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
