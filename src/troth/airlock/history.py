"""What stands on record about a commitment: every row about it, and the answers of validators among them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from troth.airlock.validating import KIND
from troth.core.instants import parse_instant
from troth.ledger.genesis import VALIDATOR

if TYPE_CHECKING:
    from troth.ledger.rows import Row


def rows_about(rows: Iterable[Row], commitment: str) -> list[Row]:
    """Return the rows that name a commitment, and the notes on its submissions, in file order."""
    found: list[Row] = []
    submissions: set[str] = set()
    for row in rows:
        payload = row.value.get("payload")
        if not isinstance(payload, dict):
            continue
        named = (payload.get("commitment"), payload.get("target"), payload.get("duplicate_of"))
        if commitment in named:
            found.append(row)
            if row.value.get("op") == "submit" and row.id is not None:
                submissions.add(row.id)
        elif isinstance(named[1], str) and named[1] in submissions:
            found.append(row)
    return found


def validations_in(rows: Sequence[Row], without_effect: Container[int] = ()) -> list[Mapping[str, Any]]:
    """Return the validators' answers among rows about a commitment, oldest first.

    Each is ``{submission, validator, result, reason, row, ts, counts}``: of each validator the newest answer to the
    newest submission counts.

    Args:
        rows: those about the commitment.
        without_effect: lines of rows that are anomalies; a submission among them was none.
    """
    answers: list[dict[str, Any]] = []
    newest: str | None = None
    for row in rows:
        value = row.value
        if value.get("op") == "submit" and row.line not in without_effect:
            newest = row.id
        payload = value["payload"]
        if (value.get("op"), value.get("actor"), payload.get("kind")) != ("annotate", VALIDATOR, KIND):
            continue
        meta = payload.get("meta")
        meta = meta if isinstance(meta, dict) else {}
        told = {name: _text(meta.get(name)) for name in ("submission", "validator", "result", "reason")}
        answers.append({**told, "row": row.id, "ts": _text(value.get("ts")), "counts": True})
    last = {(one["submission"], one["validator"]): one["row"] for one in answers}
    for one in answers:
        one["counts"] = one["submission"] == newest and last[one["submission"], one["validator"]] == one["row"]
    return list(answers)


_DECISIONS: Final[Mapping[str, str]] = {"approve": "approved", "reopen": "reopened"}


def decisions_in(rows: Sequence[Row], without_effect: Container[int] = ()) -> list[Mapping[str, Any]]:
    """Return what was decided about each submission and how long it had waited, oldest first.

    Each is ``{submission, decision, by, row, ts, seconds}``: ``seconds`` from the submission to the decision, ``None``
    where an instant is none. A reopening of what was closed decides about the submission that had closed it.

    Args:
        rows: those about the commitment.
        without_effect: lines of rows that are anomalies.
    """
    decided: list[Mapping[str, Any]] = []
    submitted: Row | None = None
    for row in rows:
        op = row.value.get("op")
        if row.line in without_effect or not isinstance(op, str):
            continue
        if op == "submit":
            submitted = row
        elif op in _DECISIONS and submitted is not None:
            since, at = (parse_instant(_text(one.value.get("ts"))) for one in (submitted, row))
            decided.append(
                {
                    "submission": submitted.id,
                    "decision": _DECISIONS[op],
                    "by": _text(row.value.get("actor")),
                    "row": row.id,
                    "ts": _text(row.value.get("ts")),
                    "seconds": (at - since).total_seconds() if since is not None and at is not None else None,
                }
            )
    return decided


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
