"""A review's run in the ledger: what was reviewed, what was found, checked, settled, asked and decided (ledger §16).

Every row is the witness's and is found again by its ``source_key``, so recording a run once more writes only what came
since, and a crash on the way doubles nothing. No row carries trust: nobody who takes part in a review measures it, and
a reviewer's own confidence is told as its words. What bears on what follows from relations: a verification that
supports a finding cites it, one that contradicts it disputes it, another model's opinion does neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from troth.airlock.evidence import MAX_BODY, WITNESS, append_once
from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.words import printable
from troth.ledger.operations import Candidate
from troth.review.formats import heard
from troth.review.machine import PERSISTED
from troth.review.relations import INFERENCE
from troth.review.report import tally, verification_words

if TYPE_CHECKING:
    from troth.airlock.reviewing.session import Session
    from troth.stores.protocol import LedgerStore

MAX_META: Final = 4000
"""Characters of one text in a row's ``meta``; the run's folder has the whole."""

MOST_EVIDENCE: Final = 20
"""Pieces of evidence that a finding's row repeats."""

DISMISSING: Final = ("rejected", "withdrawn")
"""Ends of a finding that take it out of what waits for attention."""


class Entry(NamedTuple):
    """One row of a run: its key within the run, and what builds it once the rows that it stands on have ids."""

    key: str
    on: str | None
    build: Any


class Recorded(NamedTuple):
    """A row of a run: its key, its id, and whether it was written now."""

    key: str
    row: str
    new: bool


def record(session: Session, store: LedgerStore, about: str | None = None) -> list[Recorded]:
    """Append every row of a run that the ledger lacks, in the order in which things happened.

    A run may be recorded while it goes on, and again later.

    Args:
        session: the run.
        store: the ledger.
        about: id of the row, such as a commitment, that the review is about.

    Raises:
        Refused: the ledger's codes; ``E_DUPLICATE_ID`` when somebody else's row has one of the keys.
        Refused: ``E_REVIEW_NO_RESPONSE`` for a run in which no reviewer answered yet; ``E_REVIEW_DECISION`` and
            ``E_DECISIONS_UNREADABLE`` for records that do not agree. No row is written then.
    """
    prefix = _prefix(session)
    rows: dict[str, str] = {}
    found = []
    for entry in list(_entries(session, about)):  # whole before the first row is written
        key = f"{prefix}:{entry.key}"
        known = key in store.read().state.source_keys
        candidate = entry.build(rows[entry.on] if entry.on is not None else None, key)
        rows[entry.key] = append_once(store, key, candidate)
        found.append(Recorded(entry.key, rows[entry.key], not known))
    return found


def _prefix(session: Session) -> str:
    """Return what begins the keys of a run; two runs of one name in two workspaces stay two."""
    session.started()
    return f"review:{session.id}:{sha256_hex(record_bytes(session.response))[:12]}"


def _entries(session: Session, about: str | None) -> Iterator[Entry]:
    from troth.airlock.reviewing import finishing

    run = session.started()
    finishing.reconciliation(session)  # refuses where events and decisions tell different things
    yield _artifact(session, about)
    for finding in run.review["findings"]:
        yield _finding(session, finding)
    for number, event in enumerate(run.records, 1):
        entry = _event(session, number, event)
        if entry is not None:
            yield entry
    for number, line in enumerate(finishing.decisions(session), 1):
        yield _decision(session, number, line)
    if session.finished:
        yield _result(session, finishing.reconciliation(session))


def _artifact(session: Session, about: str | None) -> Entry:
    setup = session.setup

    def build(_: str | None, key: str) -> Candidate:
        members = [{"path": _text(entry["path"], 300), **{n: entry[n] for n in ("bytes", "sha256")}} for entry in
                   list(setup.members)[:200]]  # fmt: skip
        return Candidate(
            "capture",
            WITNESS,
            {
                "kind": "observation",
                "body": _body(
                    f"Review {session.id}: {setup.kind} at sha256 {session.artifact.digest}, "
                    f"{len(setup.members)} member{'' if len(setup.members) == 1 else 's'}, read by "
                    f"{setup.backend.get('name')}"
                ),
                **({"refs": [about]} if about is not None else {}),
                "meta": {
                    "review": session.id,
                    "artifact": session.artifact.digest,
                    "artifact_kind": setup.kind,
                    "members": members,
                    "backend": _text(str(setup.backend.get("name"))),
                    "tier": setup.independence.get("tier"),
                    "response_sha256": sha256_hex(record_bytes(session.response)),
                },
            },
            source_key=key,
            **({"trace": {"parent": [about]}} if about is not None else {}),
        )

    return Entry("artifact", None, build)


def _finding(session: Session, finding: Mapping[str, Any]) -> Entry:
    def build(parent: str | None, key: str) -> Candidate:
        return Candidate(
            "capture",
            WITNESS,
            {
                "kind": "finding",
                "body": _body(f"{finding['id']}, {finding['severity']}: {finding['claim']}"),
                "meta": {
                    "review": session.id,
                    "finding": finding["id"],
                    "severity": finding["severity"],
                    "stated_confidence": finding["confidence"],
                    **({"category": _text(finding["category"])} if "category" in finding else {}),
                    "recommendation": _text(finding["recommendation"]),
                    "evidence": [
                        {
                            "anchor": {name: _text(value, MAX_BODY) for name, value in entry["anchor"].items()},
                            "observation": _text(entry["observation"], MAX_BODY),
                            "grounding": entry["grounding"],
                        }
                        for entry in finding["evidence"][:MOST_EVIDENCE]
                    ],
                },
            },
            trace={"parent": [parent]},
            relations=[{"type": "cites", "targetId": parent}],
            source_key=key,
        )

    return Entry(finding["id"], "artifact", build)


def _event(session: Session, number: int, event: Mapping[str, Any]) -> Entry | None:
    basis, kind = event["basis"], event["event"]
    if kind == "verify":
        return _verification(session, number, event)
    if kind == "reply":
        reply = basis["reply"]
        said = f"the reviewer {reply['decision']}s: {reply['position']}"
        return _note(session, f"event:{number}", event, "note", said, decision=reply["decision"])
    if kind != "move" or event["to"] not in PERSISTED or event["role"] == "operator":
        return None  # a ruling has its line in the record of decisions
    state = event["to"]
    if state == "deadlocked":
        held = basis["escalation"]
        asked = f"waits for a person: {held['operator_question']}"
        return _note(session, f"event:{number}", event, "escalation", asked, state=state, escalation=_texts(held))
    said = basis.get("resolution") or basis.get("host_position")
    kind = "dismiss" if state in DISMISSING else "triage"
    return _note(session, f"event:{number}", event, kind, f"{state}: {said}" if said else state, state=state)


def _verification(session: Session, number: int, event: Mapping[str, Any]) -> Entry:
    held = event["basis"]["verification"]
    bears = None
    if held["method"] != INFERENCE:
        bears = {"supports": "cites", "contradicts": "contradicts"}.get(held["result"])

    def build(parent: str | None, key: str) -> Candidate:
        return Candidate(
            "capture",
            WITNESS,
            {
                "kind": "evidence",
                "body": _body(f"{event['finding_id']}: {verification_words(held)}"),
                "meta": {
                    "review": session.id,
                    "finding": event["finding_id"],
                    "event": number,
                    "by": _text(event["actor"]),
                    "method": held["method"],
                    "result": held["result"],
                    "time": event["time"],
                    **({"detail": _text(held["detail"])} if held.get("detail") else {}),
                },
            },
            trace={"parent": [parent]},
            relations=[{"type": bears, "targetId": parent}] if bears is not None else None,
            source_key=key,
        )

    return Entry(f"event:{number}", event["finding_id"], build)


def _decision(session: Session, number: int, line: Mapping[str, Any]) -> Entry:
    told = {name: value for name, value in line.items() if name not in ("finding_id", "actor", "time")}
    ruling = f"{line['actor']} decided: {line['ruling']}"
    return _note(session, f"decision:{number}", line, "decision", ruling, **_texts(told))


def _result(session: Session, document: Mapping[str, Any]) -> Entry:
    digest = sha256_hex(record_bytes(document))
    counted = tally(session.started().review, document)

    def build(parent: str | None, key: str) -> Candidate:
        return Candidate(
            "annotate",
            WITNESS,
            {
                "kind": "review",
                "body": _body(f"Review {session.id}: {document['outcome']}. {counted.as_text()}"),
                "target": parent,
                "meta": {
                    "review": session.id,
                    "artifact": session.artifact.digest,
                    "outcome": document["outcome"],
                    "tally": counted._asdict(),
                    "reconciliation_sha256": digest,
                },
            },
            source_key=key,
        )

    return Entry(f"result:{digest[:12]}", "artifact", build)


def _note(session: Session, key: str, event: Mapping[str, Any], kind: str, body: str, **meta: Any) -> Entry:
    def build(parent: str | None, source_key: str) -> Candidate:
        return Candidate(
            "annotate",
            WITNESS,
            {
                "kind": kind,
                "body": _body(f"{event['finding_id']} {body}"),
                "target": parent,
                "meta": {
                    "review": session.id,
                    "finding": event["finding_id"],
                    "by": _text(event["actor"]),
                    "time": event["time"],
                    **meta,
                },
            },
            source_key=source_key,
        )

    return Entry(key, event["finding_id"], build)


def _text(value: Any, limit: int = MAX_META) -> Any:
    """Return a text of others as a row may hold it: no control characters, bounded; other values as they are."""
    return printable(heard(value), limit) if isinstance(value, str) else value


def _texts(held: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _text(value) for name, value in held.items()}


def _body(text: str) -> str:
    return printable(" ".join(heard(text).split()), MAX_BODY)
