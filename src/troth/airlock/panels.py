"""Panels and chunks as runs: each member an ordinary review with a folder of its own, and one parent (Impasse §12).

The parent's folder holds no answer of a reviewer. ``merge.json`` names its members and what the host confirmed, and the
parent's response is what these come to: it can be made anew from them at any time, which is how it is verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from troth.airlock.reviewing import finishing, running
from troth.airlock.reviewing.session import Limits, Session, Step
from troth.core.canonical import record_bytes
from troth.core.errors import Refused
from troth.core.instants import Clock, system_clock
from troth.review.artifact import Artifact
from troth.review.chunks import Chunk, Plan, assembled
from troth.review.panel import Candidate, Seat, Source, candidates, merged
from troth.review.validate import validate
from troth.stores.reviews import RESPONSE, VALIDATION, ReviewFolder, Reviews

MERGE: Final = "merge.json"
"""The file of a parent that names what it was made of."""


SEATED: Final = "seated"
"""Under this name a member's run keeps who was dropped when the panel was seated, so that no merge can leave it out."""


def is_parent(folder: ReviewFolder) -> bool:
    """Tell whether a run was merged of others."""
    return folder.has(MERGE)


def seats(sessions: Iterable[Session]) -> list[Seat]:
    """Return the runs as reviewers of a panel, each with its own tier; a run without a response is one that failed."""
    return [
        Seat(
            name=session.id,
            backend=str(session.setup.backend["name"]),
            tier=str(session.setup.independence.get("tier") or "undetermined"),
            provider=session.setup.backend.get("provider"),
            review=session.response,
            failure=None if session.response is not None else dict(finishing.failure_of(session)),
        )
        for session in sessions
    ]


def alike(sessions: Iterable[Session]) -> tuple[Candidate, ...]:
    """Return the pairs of findings of which the host may confirm that they are the same."""
    return candidates(seats(sessions))


def merge_panel(
    reviews: Reviews,
    sessions: Sequence[Session],
    confirmed: Sequence[tuple[Source, Source]] = (),
    *,
    actor: str,
    wanted: str | None = None,
    clock: Clock = system_clock,
) -> Session:
    """Make the parent of a panel, ready for the host to reconcile; who was dropped, the members know.

    Raises:
        Refused: ``E_PANEL_SEATS``, ``E_PANEL_MERGE``; nothing was made then. ``E_WRITE_FAILED``.
    """
    held = seats(sessions)
    dropped = list(dict.fromkeys(name for session in sessions for name in _dropped(session)))
    merged(held, confirmed, review_id="not-yet", dropped=dropped)  # whatever is refused is refused before a folder is
    first = next(session for session in sessions if session.response is not None)
    made = {
        "kind": "panel",
        "members": [session.id for session in sessions],
        "confirmed": [[str(one), str(other)] for one, other in confirmed],
        "dropped": dropped,
    }
    return _parent(reviews, first.artifact, first, made, actor=actor, wanted=wanted, clock=clock)


def _dropped(session: Session) -> list[str]:
    held = session.setup.extensions.get(SEATED)
    names = held.get("dropped") if isinstance(held, Mapping) else None
    return [str(name) for name in names] if isinstance(names, list) else []


def merge_chunks(
    reviews: Reviews,
    plan: Plan,
    sessions: Sequence[Session],
    *,
    actor: str,
    wanted: str | None = None,
    clock: Clock = system_clock,
) -> Session:
    """Make the parent of chunks, one run for each chunk in the plan's order.

    Raises:
        Refused: ``E_CHUNKS_PLAN``, ``E_WRITE_FAILED``.
    """
    made = {
        "kind": "chunks",
        "members": [session.id for session in sessions],
        "chunks": [{"id": chunk.id, "members": list(chunk.members)} for chunk in plan.chunks],
    }
    return _parent(reviews, plan.artifact, sessions[0], made, actor=actor, wanted=wanted, clock=clock)


def _parent(
    reviews: Reviews,
    artifact: Artifact,
    like: Session,
    made: Mapping[str, Any],
    *,
    actor: str,
    wanted: str | None,
    clock: Clock,
) -> Session:
    kind = str(made["kind"])
    session = running.set_up(
        reviews,
        running.Wanted(
            members=[(member.path, member.data) for member in artifact.members.values()],
            kind=like.setup.kind,
            backend={
                "asked": kind, "name": kind, "kind": "merged", "endpoint": kind, "provider": None, "sandboxed": False,
            },
            instruction="",
            actor=actor,
            id=wanted or f"{like.id}-{kind}",
            limits=Limits(rounds=0),
            root=like.setup.root,
            consent={"basis": f"that of each member: {', '.join(made['members'])}"},
        ),
        clock,
    )  # fmt: skip
    with session.folder.exclusively():
        session.folder.write_json(MERGE, {**made, "created": session.setup.created})
        response = record_bytes(response_of(session))
        report = validate(response, kind="response", artifact=session.artifact)
        session.folder.write_json(VALIDATION, report.as_json())
        session.folder.write(RESPONSE, response)
        session.adopt(response)
        basis = {
            "consent": str(session.setup.consent["basis"]),
            "revision": dict(session.setup.revision),
            "levels": ["L1", "L2"],
        }
        names = [case.finding_id for case in session.started().cases.values()]
        session.record(*[Step(name, "reviewed", basis, running.RUNNER, "runner") for name in names])
        finishing.settle(session)
    return session


def named_members(folder: ReviewFolder) -> list[str]:
    """Return the ids of the runs that a folder names as its members; none where it is no parent, or cannot be read."""
    if not is_parent(folder):
        return []
    try:
        value = folder.read_json(MERGE)
    except Refused:
        return []
    members = value.get("members") if isinstance(value, dict) else None
    return [name for name in members if isinstance(name, str)] if isinstance(members, list) else []


def members_of(session: Session) -> list[Session]:
    """Return the runs that a parent was merged of.

    Raises:
        Refused: ``E_REVIEW_UNKNOWN`` for one that is gone, and as opening a run does.
    """
    reviews = Reviews(session.folder.path.parent)
    return [Session(reviews.open(str(name))) for name in _made(session)["members"]]


def response_of(session: Session) -> dict[str, Any]:
    """Return the response that a parent's members come to; the same members give the same response.

    Raises:
        Refused: ``E_PANEL_SEATS``, ``E_PANEL_MERGE``, ``E_CHUNKS_PLAN``, ``E_REVIEW_UNREADABLE``.
    """
    made = _made(session)
    sessions = members_of(session)
    given = {"review_id": session.id, "created_at": session.setup.created}
    if made["kind"] == "panel":
        pairs = [(Source.parse(one), Source.parse(other)) for one, other in made["confirmed"]]
        return merged(seats(sessions), pairs, dropped=made["dropped"], **given)
    whole = session.artifact
    plan = Plan(
        whole,
        tuple(
            Chunk(entry["id"], Artifact([(path, whole.members[path].data) for path in entry["members"]]))
            for entry in made["chunks"]
        ),
    )
    if sorted(path for chunk in plan.chunks for path in chunk.members) != sorted(whole.members):
        raise Refused("E_CHUNKS_PLAN", "the chunks are not the whole artifact, each member once")
    named = list(zip(plan.chunks, sessions, strict=True))
    for chunk, held in named:
        if held.artifact.digest != chunk.artifact.digest:
            raise Refused("E_CHUNKS_PLAN", f"{held.id} is no review of {chunk.id}")
    reviews = {chunk.id: held.response for chunk, held in named if held.response is not None}
    failures = {chunk.id: finishing.failure_of(held) for chunk, held in named if held.response is None}
    return assembled(plan, reviews, failures, **given)


def _made(session: Session) -> dict[str, Any]:
    value = session.folder.read_json(MERGE)
    sound = isinstance(value, dict) and value.get("kind") in ("panel", "chunks")
    if not sound or not isinstance(value.get("members"), list) or not {"confirmed", "chunks"} & value.keys():
        raise Refused("E_REVIEW_UNREADABLE", f"the {MERGE} of {session.id} does not say what it was made of")
    return dict(value)
