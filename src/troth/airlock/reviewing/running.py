"""The runner's part: an artifact is prepared and sent, what comes back is stamped, validated and taken (§2, §4, §9)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, Final

from troth.airlock.reviewing import finishing
from troth.airlock.reviewing.session import Call, Limits, Session, Setup, Step
from troth.backends.asking import Asked, Judge, ask, failure_of, tokens_of
from troth.backends.extraction import Wanted as Form
from troth.backends.extraction import extract
from troth.backends.protocol import MOST_INPUT, Backend, Failure, Request
from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.core.instants import Clock, system_clock
from troth.review.artifact import Artifact
from troth.review.machine import Bounds, Spent
from troth.review.rules import RULES
from troth.review.shapes import ARTIFACT_KINDS
from troth.review.structure import Violation
from troth.review.validate import Report, validate
from troth.stores.reviews import MANIFEST, PAYLOAD, RESPONSE, RUN, VALIDATION, ReviewFolder, Reviews

INSTRUCTION: Final = "instruction"
"""The file of a run that holds stance, lens and schema as they were sent."""

RUNNER: Final = "system:troth"
"""Who makes the runner's own moves."""

CODES: Final[Mapping[str, str]] = {
    "E_REVIEW_NO_RESPONSE": "The review has no valid response, so there is no finding to work on.",
    "E_REVIEW_FINDING": "The review has no finding of that id.",
    "E_REVIEW_SPENT": "The run's deadline or budget is spent: nothing more is sent, and no further finding is begun.",
    "E_REVIEW_RESULT": "A fault of troth itself: the result that was computed breaks a rule, so it was not saved.",
    "E_REVIEW_CHECK": "What a verification says of the artifact does not hold in the bytes that were reviewed.",
    "E_BACKEND_UNUSABLE": "The reviewer lacks something, such as its program or a key; the message says what.",
    "E_REVIEW_DONE": "The run is not at a point where that can be done; the message says where it is.",
}
"""Refusals of a run -> what they mean."""

Asking = Callable[..., Asked]
"""What asks a reviewer, and again where §6 says so: :func:`troth.backends.asking.ask`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be reviewed, and how."""

    members: Sequence[tuple[str, bytes]]
    kind: str
    backend: Mapping[str, Any]
    instruction: str
    actor: str
    id: str | None = None
    lens: str | None = None
    model: str | None = None
    effort: str | None = None
    speed: str | None = None
    limits: Limits = field(default_factory=Limits)
    root: str | None = None
    independence: Mapping[str, Any] = field(default_factory=dict)
    consent: Mapping[str, Any] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    unreviewed: Sequence[str] = ()
    extensions: Mapping[str, Any] = field(default_factory=dict)


def artifact_of(members: Sequence[tuple[str, bytes]], kind: str) -> Artifact:
    """Return the artifact, small enough to be sent.

    Raises:
        Refused: ``E_USAGE`` for a kind that is none; ``E_ARTIFACT_MEMBER``; ``E_TOO_LARGE``.
    """
    if kind not in ARTIFACT_KINDS:
        raise Refused("E_USAGE", f"an artifact is one of {', '.join(ARTIFACT_KINDS)}, not {kind!r}")
    artifact = Artifact(members)
    if len(artifact.payload) > MOST_INPUT:
        raise Refused(
            "E_TOO_LARGE",
            f"the artifact has {len(artifact.payload)} bytes, and at most {MOST_INPUT} are sent",
            remedy="Have a part of it reviewed; code can be reviewed in chunks of whole files.",
        )
    return artifact


def set_up(reviews: Reviews, wanted: Wanted, clock: Clock = system_clock) -> Session:
    """Make the run's folder with everything that is fixed before the first byte leaves, and open it.

    ``run.json`` comes last: a folder without it never sent anything.

    Raises:
        Refused: as :func:`artifact_of`; ``E_REVIEW_SPENT`` for what the budget has no room for; ``E_WRITE_FAILED``.
    """
    artifact = artifact_of(wanted.members, wanted.kind)
    check_text(wanted)
    check_means(wanted.limits.bounds, Spent(), len(artifact.payload) + len(wanted.instruction.encode()))
    folder = reviews.claim(wanted.id or _named_after(artifact))
    setup = Setup(
        review_id=folder.id,
        # To the microsecond: of two runs begun within a second, the later one is the last.
        created=clock().astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        actor=wanted.actor,
        kind=wanted.kind,
        members=[
            {"path": member.path, "bytes": len(member.data), "sha256": sha256_hex(member.data)}
            for member in artifact.members.values()
        ],
        revision=artifact.revision,
        backend=wanted.backend,
        limits=wanted.limits,
        lens=wanted.lens,
        model=wanted.model,
        effort=wanted.effort,
        speed=wanted.speed,
        root=wanted.root,
        independence=wanted.independence,
        consent=wanted.consent,
        unreviewed=wanted.unreviewed,
        extensions=wanted.extensions,
    )
    try:
        folder.write(PAYLOAD, artifact.payload)
        folder.write(INSTRUCTION, wanted.instruction.encode())
        folder.write_json(MANIFEST, wanted.manifest)
        folder.write_json(RUN, setup.as_json())
        return Session(folder, clock)
    except BaseException as fault:
        if isinstance(fault, Refused) and fault.code == "E_WRITE_FAILED":
            fault.remedy = "Nothing was sent. Make room or mend the disk, then begin again."
        with suppress(Refused):  # what cannot be removed either is told by `troth review list`
            reviews.forget(folder)
        raise


def check_text(wanted: Wanted) -> None:
    """Refuse what no record can hold.

    Raises:
        Refused: ``E_NOT_TEXT``.
    """
    texts = (wanted.instruction, wanted.lens, wanted.model, wanted.effort, wanted.speed, wanted.root,
             *(value for value in wanted.backend.values() if isinstance(value, str)))  # fmt: skip
    for text in texts:
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            raise Refused("E_NOT_TEXT", "a name, a text or a path is not UTF-8, so no record can hold it") from None


def _named_after(artifact: Artifact) -> str:
    first = next(iter(artifact.members)).rpartition("/")[2]
    return first.rpartition(".")[0] or first


def open_session(folder: ReviewFolder, clock: Clock = system_clock) -> Session:
    """Open a run as :class:`Session` does."""
    return Session(folder, clock)


# --- sending ---


def send_review(session: Session, backend: Backend, asking: Asking = ask) -> None:
    """Ask for the review and take what comes. The caller has seen to consent.

    Raises:
        Refused: ``E_REVIEW_DONE`` when it was answered already, ``E_REVIEW_SPENT``, ``E_WRITE_FAILED``.
    """
    if session.run is not None or any(call.answer is not None for call in session.calls):
        raise Refused("E_REVIEW_DONE", f"the reviewer has answered {session.id} already")
    instruction = session.folder.read(INSTRUCTION).decode()
    payload = session.folder.read(PAYLOAD)

    def judge(document: dict[str, Any]) -> str | None:
        found = taken(session, document)
        return found if isinstance(found, str) else None

    call(session, backend, instruction, payload, wanted="response", judge=judge, asking=asking)
    take(session)


def call(
    session: Session,
    backend: Backend,
    instruction: str,
    payload: bytes,
    *,
    wanted: Form,
    judge: Judge,
    about: str | None = None,
    asking: Asking = ask,
) -> None:
    """Put one question to the reviewer: recorded before it leaves, its answer kept before anything is made of it.

    Args:
        session: the run.
        backend: whom to ask.
        instruction: stance, lens, schema.
        payload: the artifact, or the contest.
        wanted: what kind of document is to come.
        judge: tells what is wrong with a document, or ``None``.
        about: the contested finding.
        asking: what asks.

    Raises:
        Refused: ``E_REVIEW_SPENT`` when deadline or budget leaves nothing; ``E_WRITE_FAILED``.
    """
    setup = session.setup
    bounds, spent = setup.limits.bounds, session.spent
    leaving = len(payload) + len(instruction.encode())
    check_means(bounds, spent, leaving)
    wall = min(setup.limits.wall, bounds.deadline - spent.seconds)
    request = Request(
        instruction, payload, setup.model, setup.effort, setup.speed, wall=wall, idle=min(setup.limits.idle, wall)
    )
    made = session.sending("review" if wanted == "response" else "rebuttal", about, leaving, wall)
    started = time.monotonic()
    try:
        asked = asking(backend, request, wanted=wanted, judge=judge, bounds=bounds, spent=spent)
    except KeyboardInterrupt:
        cancelled = failure_of("cancelled", "it was interrupted before the reviewer answered").as_json()
        session.answered(made, {
            "failure": cancelled, "end": "cancelled", "model": None, "model_basis": "backend_default", "sent": leaving,
            "received": 0, "bytes": leaving, "reported_tokens": None, "tokens": leaving // 4,
            "seconds": round(time.monotonic() - started, 3), "attempts": 1, "any_byte": False, "request_id": None,
            "raw": [], "failures": [cancelled],
        })  # fmt: skip
        finishing.settle(session)
        raise
    for number, text in enumerate(asked.raw, 1):
        session.folder.write(f"{made.raw}-{number}", text)
    answer = asked.answer
    session.answered(made, {
        "failure": None if answer.failure is None else answer.failure.as_json(),
        "end": answer.end, "model": answer.model, "model_basis": answer.model_basis, "sent": answer.sent,
        "received": answer.received, "bytes": answer.sent + answer.received, "reported_tokens": answer.tokens,
        "tokens": tokens_of(answer), "seconds": round(answer.seconds, 3), "attempts": answer.attempts,
        "any_byte": answer.any_byte, "request_id": answer.request_id,
        "raw": [{"bytes": len(text), "sha256": sha256_hex(text)} for text in asked.raw],
        "failures": [failure.as_json() for failure in asked.failures],
        "notices": list(answer.notices),
    })  # fmt: skip


def check_means(bounds: Bounds, spent: Spent, leaving: int) -> None:
    """Refuse to send what deadline or budget does not leave room for.

    Raises:
        Refused: ``E_REVIEW_SPENT`` with the bound as its detail.
    """
    bound = spent.exhausts(bounds)
    if bound is None and spent.bytes + leaving > bounds.bytes:
        bound = "bytes"
    if bound is None and spent.tokens + leaving // 4 > bounds.tokens:
        bound = "tokens"
    if bound is not None:
        raise Refused("E_REVIEW_SPENT", f"the run's {bound} leaves nothing to send with", detail=bound)


def heard(session: Session, made: Call, wanted: Form) -> dict[str, Any]:
    """Return the document in the kept answer of a call that has one.

    Raises:
        Refused: ``E_REVIEW_UNREADABLE`` when the kept answer is not what came.
    """
    held = made.answer["raw"] if made.answer is not None else []
    text = session.folder.read(f"{made.raw}-{len(held)}")
    found = extract(text, wanted)
    if not held or sha256_hex(text) != held[-1]["sha256"] or isinstance(found, Failure):
        raise Refused("E_REVIEW_UNREADABLE", f"the kept answer {made.raw} of {session.id} was changed")
    return found


# --- taking ---

_STAMPED: Final = ("review_id", "artifact", "producer", "created_at")


@dataclass(frozen=True, slots=True)
class Taken:
    """A response that passed L1 and L2: its value, stamped, its report, what the reviewer itself had said there."""

    value: Mapping[str, Any]
    report: Report
    supplied: Mapping[str, Any]

    @property
    def unresolved(self) -> tuple[str, ...]:
        """The paths of the evidence whose anchor resolves nowhere ([D8])."""
        return tuple(sorted({violation.path.partition(".anchor")[0] for violation in self.report.violations}))


def taken(session: Session, document: Mapping[str, Any], answer: Mapping[str, Any] | None = None) -> Taken | str:
    """Return a reviewer's document stamped for its run, as :func:`stamped` does."""
    return stamped(
        session.artifact, document, answer, review_id=session.id, kind=session.setup.kind,
        backend=session.setup.backend["name"], created=session.setup.created,
    )  # fmt: skip


def stamped(
    artifact: Artifact,
    document: Mapping[str, Any],
    answer: Mapping[str, Any] | None = None,
    *,
    review_id: str,
    kind: str,
    backend: str,
    created: str,
) -> Taken | str:
    """Return a reviewer's document stamped ([D4]), or a sentence that says which rule of L1 or L2 it breaks.

    The artifact's own words never get here: only what the reviewer answered is read.

    Args:
        artifact: what was reviewed.
        document: what the reviewer answered.
        answer: the account of the call, with ``model``, ``request_id`` and ``time``.
        review_id: the run's id.
        kind: the artifact's kind, as the operator chose it.
        backend: the reviewer's name.
        created: when the run was created, in the place of the answer's own time.
    """
    supplied = {str(name): document[name] for name in _STAMPED if name in document}
    told = answer or {}
    producer = {"backend": backend} | {name: told[name] for name in ("model", "request_id") if told.get(name)}
    value = {
        **document,
        "review_id": review_id,
        "artifact": {"kind": kind, "revision": artifact.revision},
        "producer": producer,
        "created_at": told.get("time", created),
    }
    report = validate(record_bytes(value), kind="response", artifact=artifact)
    for violation in report.violations:
        if RULES[violation.rule].level != "L3":
            return told_of(violation)
    return Taken(value, report, supplied)


def told_of(violation: Violation) -> str:
    """Return a broken rule as a sentence."""
    return f"it breaks {violation.rule} at {violation.path}: {violation.message}"[:2000]


def take(session: Session) -> None:
    """Make of the kept answer what it comes to: response and verdict, or the failed run's result.

    The same answer gives the same bytes, so that a crash on the way is mended by doing it again.

    Raises:
        Refused: ``E_WRITE_FAILED``.
    """
    last = next((made for made in reversed(session.calls) if made.purpose == "review"), None)
    if last is None or last.answer is None:
        return
    if last.failure is not None:
        finishing.save(session)
        return
    if session.run is None:
        found = taken(session, heard(session, last, "response"), last.answer)
        if isinstance(found, str):  # it was judged when it came
            raise Refused("E_REVIEW_UNREADABLE", f"the kept answer of {session.id} is no response: {found}")
        response = record_bytes(found.value)
        session.folder.write_json(VALIDATION, _verdict(found))
        session.folder.write(RESPONSE, response)
        session.adopt(response)
    run = session.started()
    basis = {
        "consent": _consented(session.setup.consent),
        "revision": dict(session.setup.revision),
        "levels": ["L1", "L2"],
    }
    session.record(*[
        Step(case.finding_id, "reviewed", basis, RUNNER, "runner")
        for case in run.cases.values() if case.state == "prepared"
    ])  # fmt: skip
    finishing.settle(session)


def _consented(consent: Mapping[str, Any]) -> str:
    told = ": ".join(str(consent[name]) for name in ("basis", "reason") if consent.get(name))
    return told or "consent was given"


def _verdict(found: Taken) -> dict[str, Any]:
    """Return the verdict that is kept: anchors that resolve nowhere make it invalid, and the review is kept ([D8])."""
    return {
        **found.report.as_json(),
        "unresolved": list(found.unresolved),
        "supplied": dict(found.supplied),
    }
