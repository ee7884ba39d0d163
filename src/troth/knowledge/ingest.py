"""Concepts as captures: ids from paths, keys from contents, edges to what may not be there (ledger spec §13 [D47])."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from troth.core.errors import Refused
from troth.knowledge.concept import UNTYPED, Concept
from troth.ledger.operations import Candidate
from troth.ledger.replay import State

KIND: Final = "concept"
ADDED: Final = "added"
CHANGED: Final = "changed"
PRESENT: Final = "present"
REFUSED: Final = "refused"

GROUP: Final = 200
"""Concepts that are made durable together."""


def first_id(bundle: str, path: str) -> str:
    """Return the id of a concept's first version, which is what edges to it name."""
    return "mem_" + hashlib.sha256(f"okf:{bundle}:{path}".encode()).hexdigest()[:16]


def source_key(bundle: str, path: str, sha256: str) -> str:
    """Return the key of one content of a concept."""
    return f"okf:{bundle}:{path}#{sha256[:16]}"


def payload_of(bundle: str, concept: Concept) -> dict[str, Any]:
    """Return the payload: the Markdown body (the path when it is blank), tags, and all that was declared.

    ``trust.level`` is the concept's own word: it stays in ``meta.okf.declared`` and is no confidence ([D48]).
    """
    front = concept.front
    okf: dict[str, Any] = {
        "bundle": bundle,
        "path": concept.path,
        "type": concept.type,
        "frontmatter": front.values if concept.parts.yaml is not None and front.problem is None else None,
        "sha256": concept.sha256,
    }
    if front.problem is not None:
        okf["problem"] = front.problem
    if concept.profile.level is not None:
        okf["declared"] = {"trust_level": concept.profile.level}
    payload: dict[str, Any] = {
        "body": concept.text if concept.text.strip() else concept.path,
        "kind": KIND,
        "meta": {"okf": okf},
    }
    if concept.tags:
        payload["tags"] = concept.tags
    return payload


def trust_of(concept: Concept) -> dict[str, Any] | None:
    """Return the one thing a concept may say of its trust: how fast it ages. There is no confidence in it."""
    return {"decayHalfLifeDays": concept.profile.decay} if concept.profile.decay is not None else None


def relations_of(bundle: str, concept: Concept, refines: str | None) -> list[dict[str, str]]:
    """Return the edges: to the first version when this is a later one, then those of the concept."""
    found = [{"type": "refines", "targetId": refines}] if refines is not None else []
    found.extend({"type": kind, "targetId": first_id(bundle, path)} for kind, path in concept.edges())
    return found


def candidate_of(bundle: str, concept: Concept, actor: str, state: State) -> tuple[Candidate, dict[str, Any] | None]:
    """Return the capture of a concept in a ledger of this state, and what the engine says of its trust."""
    first = first_id(bundle, concept.path)
    later = first in state.signals
    candidate = Candidate(
        "capture",
        actor,
        payload_of(bundle, concept),
        id=None if later else first,
        relations=relations_of(bundle, concept, first if later else None) or None,
        source_key=source_key(bundle, concept.path, concept.sha256),
        syncScope="local",
    )
    return candidate, trust_of(concept)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one concept: added, changed, present, or refused with a reason."""

    path: str
    outcome: str
    id: str | None
    type: str
    edges: int
    reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the members that are known."""
        found = {
            "path": self.path,
            "outcome": self.outcome,
            "id": self.id,
            "type": self.type,
            "untyped": self.type == UNTYPED,
            "edges": self.edges,
        }
        return found | ({"reason": self.reason} if self.reason is not None else {})


class _Snapshot(Protocol):
    @property
    def state(self) -> State:
        """Return the replayed state."""


class Ledger(Protocol):
    """What ingest asks of a store."""

    def append_many(
        self,
        builds: Sequence[Callable[[Any], Candidate | tuple[Candidate, dict[str, Any] | None]]],
        *,
        okf_ingest: bool = False,
        seen: str | None = None,
    ) -> list[dict[str, Any] | Refused]:
        """Append the rows that each of them decides on."""

    def read(self) -> Any:
        """Return a snapshot with the replayed state."""


def plan(bundle: str, concepts: Iterable[Concept], state: State) -> list[Outcome]:
    """Return what :func:`ingest` would do, as far as can be told without doing it."""
    found = []
    for concept in concepts:
        key = source_key(bundle, concept.path, concept.sha256)
        first = first_id(bundle, concept.path)
        if key in state.source_keys:
            found.append(Outcome(concept.path, PRESENT, state.source_keys[key], concept.type, 0))
        elif first in state.signals:
            found.append(Outcome(concept.path, CHANGED, None, concept.type, len(concept.edges()) + 1))
        else:
            found.append(Outcome(concept.path, ADDED, first, concept.type, len(concept.edges())))
    return found


def ingest(
    store: Ledger,
    bundle: str,
    concepts: list[Concept],
    actor: str,
    *,
    progress: Callable[[int, int], None] = lambda _, __: None,
    seen: str | None = None,
) -> list[Outcome]:
    """Append a capture for each concept whose content is not there yet; run again, it appends nothing.

    A concept that no row can hold (too large, a key too long) is told as refused and stops no other.

    Raises:
        Refused, DoesNotHold, Busy: as the store's append, for what concerns the ledger and not one concept.
    """
    state: State = store.read().state
    keys = dict(state.source_keys)
    outcomes: list[Outcome | None] = [None] * len(concepts)
    new = []
    for number, concept in enumerate(concepts):
        key = source_key(bundle, concept.path, concept.sha256)
        if key in keys:
            outcomes[number] = Outcome(concept.path, PRESENT, keys[key], concept.type, 0)
        else:
            new.append(number)
    for start in range(0, len(new), GROUP):
        progress(new[start], len(concepts))
        group = new[start : start + GROUP]
        builds = [_builder(bundle, concepts[number], actor) for number in group]
        # Only our first row is not to be blind: our own rows are not what the caller had not seen.
        for number, answer in zip(group, store.append_many(builds, okf_ingest=True, seen=seen), strict=True):
            outcomes[number] = _outcome(concepts[number], answer)
        seen = None
    progress(len(concepts), len(concepts))
    return [outcome for outcome in outcomes if outcome is not None]


def _outcome(concept: Concept, answer: dict[str, Any] | Refused) -> Outcome:
    """Return what became of a concept; what concerns the ledger is raised."""
    if isinstance(answer, Refused):
        if answer.code == "E_DUPLICATE_ID":
            return Outcome(concept.path, PRESENT, str(answer.detail), concept.type, 0)
        if (answer.code, answer.detail) == ("E_CONSTRAINT_VIOLATED", "bad_value"):
            return Outcome(concept.path, REFUSED, None, concept.type, 0, answer.message)
        raise answer
    relations = answer.get("relations", [])
    later = any(relation["type"] == "refines" for relation in relations)
    return Outcome(concept.path, CHANGED if later else ADDED, answer["id"], concept.type, len(relations))


def _builder(
    bundle: str, concept: Concept, actor: str
) -> Callable[[_Snapshot], tuple[Candidate, dict[str, Any] | None]]:
    return lambda snapshot: candidate_of(bundle, concept, actor, snapshot.state)
