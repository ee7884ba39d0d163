"""What stands on record about a commitment: every row about it, and the answers of validators among them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from troth.airlock.validating import KIND
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


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
