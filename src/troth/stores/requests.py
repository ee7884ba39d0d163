"""From what a person or an agent writes to a candidate: ids completed, references spread, defaults filled.

The same for every face. Nothing is decided here that :func:`troth.ledger.operations.admit` decides: an id that
nobody knows goes on as it was written and is refused there with its code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from troth.core.errors import Refused
from troth.ledger.operations import Candidate
from troth.ledger.replay import State, newest_first
from troth.stores.kept import KeptMapping

LAST: Final = "@last"
"""Names the newest row of an operation that fits the place where it stands."""

_COMMITS: Final = ("commit",)
_FITTING: Final[dict[str, tuple[str, ...]]] = {
    # reference -> operations it may name (ledger spec §5); none means any
    "commitment": _COMMITS,
    "source": ("capture",),
    "evidence": ("capture", "annotate"),
    "duplicate_of": _COMMITS,
    "target": (),
}

DEFAULT_BODY: Final = {
    "claim": "Claimed",
    "release": "Released",
    "submit": "Submitted for review",
    "approve": "Approved",
    "reopen": "Reopened",
    "close": "Closed",
}
"""Bodies for operations whose words are optional on the command line (ledger spec §14)."""

_WORDS: Final = {"release": "reason", "submit": "summary", "approve": "comment", "reopen": "reason"}
"""Operation -> the payload field that holds its optional words; they are the body too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for; ids may be shortened or ``@last``.

    ``named`` maps payload references (``commitment``, ``source``, ``evidence``, ``duplicate_of``, ``target``) to ids.
    ``refs`` fill ``refs``, ``trace.parent`` and ``cites`` (ledger spec §14 [D51]); ``parents`` only
    ``trace.parent``. ``relations`` holds (type, id). ``words`` is a reason, summary or comment.
    """

    op: str
    actor: str
    body: str | None = None
    words: str | None = None
    kind: str | None = None
    named: Mapping[str, str] = field(default_factory=dict)
    refs: Sequence[str] = ()
    parents: Sequence[str] = ()
    relations: Sequence[tuple[str, str]] = ()
    premises: Sequence[str] = ()
    tags: Sequence[str] = ()
    level: str | None = None
    scope: str | None = None
    source_key: str | None = None
    meta: Mapping[str, Any] | None = None
    semantic: Mapping[str, Any] | None = None


def candidate_of(request: Request, state: State) -> Candidate:
    """Return the candidate that the request means in this state.

    Raises:
        Refused: ``E_AMBIGUOUS_ID``.
    """
    body = request.body if request.body is not None else request.words
    payload: dict[str, Any] = {"body": body if body is not None else DEFAULT_BODY.get(request.op)}
    if request.kind is not None:
        payload["kind"] = request.kind
    for name, written in request.named.items():
        payload[name] = resolve(written, state, _FITTING[name])
    if request.words is not None:
        payload[_WORDS[request.op]] = request.words
    refs = [resolve(written, state) for written in request.refs]
    parents = _unique([*refs, *(resolve(written, state) for written in request.parents)])
    relations = [("cites", ref) for ref in refs]
    if request.op == "commit" and "source" in payload:
        relations.append(("cites", payload["source"]))
    relations.extend((kind, resolve(written, state)) for kind, written in request.relations)
    lists: dict[str, Any] = {"tags": list(request.tags), "refs": refs, "meta": dict(request.meta or {})}
    payload.update({name: value for name, value in lists.items() if value})
    return Candidate(
        op=request.op,
        actor=request.actor,
        payload=payload,
        semantic=dict(request.semantic) if request.semantic else None,
        trace={"parent": parents} if parents else None,
        relations=[{"type": kind, "targetId": target} for kind, target in _unique(relations)] or None,
        observationLevel=request.level,
        sourceIds=_unique(resolve(written, state) for written in request.premises) or None,
        source_key=request.source_key,
        syncScope=request.scope,
    )


def resolve(written: str, state: State, ops: Sequence[str] = ()) -> str:
    """Return the id that was meant: an exact one, the one an unambiguous prefix begins, or ``@last``.

    Args:
        written: what was written.
        state: the ledger's state.
        ops: operations that ``@last`` may stand for; none means any.

    Returns:
        An id of the ledger, or what was written when no id begins with it.

    Raises:
        Refused: ``E_AMBIGUOUS_ID`` when several ids begin with it, ``E_REF_NOT_FOUND`` for ``@last`` where no row
            fits.
    """
    signals = state.signals
    if written == LAST:  # before any row is asked: a hostile one could bear that name
        # A commit row without effect is no commitment that anything could be done with.
        for identifier in newest_first(state.commitments if ops == _COMMITS else signals):
            if not ops or signals[identifier].op in ops:
                return identifier
        raise Refused(
            "E_REF_NOT_FOUND", f"no row of {' or '.join(ops) or 'any operation'} is there yet", detail="absent"
        )
    if written in signals or not written:
        return written
    found = (
        signals.beginning(written)
        if isinstance(signals, KeptMapping)
        else [identifier for identifier in signals if identifier.startswith(written)]
    )
    if len(found) > 1:
        shown = ", ".join(found[:4]) + (", …" if len(found) > 4 else "")
        raise Refused(
            "E_AMBIGUOUS_ID",
            f"{len(found)} ids begin with {written}: {shown}",
            remedy="Write more of the id.",
            detail=found[:20],
        )
    return found[0] if found else written


def _unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))
