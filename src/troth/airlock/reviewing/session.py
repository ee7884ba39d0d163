"""One review opened from its folder: what was set up, the calls, the findings as the records replay them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from troth.airlock.reviewing.stored import is_answered, is_sent, is_setup
from troth.core.canonical import record_bytes
from troth.core.errors import Place, Refused
from troth.core.instants import Clock, format_instant, system_clock
from troth.review.artifact import Artifact
from troth.review.machine import PERSISTED, Bounds, Case, Spent
from troth.review.run import Run, applied, begun, event, read_records, record_line, replay
from troth.review.validate import read_review
from troth.stores.reviews import CALLS, EVENTS, RECONCILIATION, RESPONSE, RUN, ReviewFolder

SCHEMA: Final = "troth-review/v1"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the whole run and each call may use: rounds for each finding, seconds, bytes both ways, tokens (§7)."""

    rounds: int = 1
    deadline: float = 600.0
    bytes: int = 16_000_000
    tokens: int = 4_000_000
    wall: float = 300.0
    idle: float = 300.0

    @property
    def bounds(self) -> Bounds:
        """The bounds of the run as the machine knows them."""
        return Bounds(self.rounds, self.deadline, self.bytes, self.tokens)


@dataclass(frozen=True, slots=True)
class Setup:
    """What ``run.json`` holds: all that was fixed before the first byte was sent.

    ``members`` are ``{path, bytes, sha256}`` in the payload's order. ``root`` is the folder that commands run on a copy
    of, ``None`` outside a workspace. ``backend`` is ``{asked, name, kind, endpoint, provider, sandboxed}``, with
    ``asked`` the words by which it can be opened again. ``independence`` is what was computed of host and reviewer,
    once for the run. ``consent`` says by what right the artifact left. ``unreviewed`` names parts of what was asked
    about that the reviewer never saw, a sentence each.
    """

    review_id: str
    created: str
    actor: str
    kind: str
    members: Sequence[Mapping[str, Any]]
    revision: Mapping[str, str]
    backend: Mapping[str, Any]
    limits: Limits = field(default_factory=Limits)
    lens: str | None = None
    model: str | None = None
    effort: str | None = None
    speed: str | None = None
    root: str | None = None
    independence: Mapping[str, Any] = field(default_factory=dict)
    consent: Mapping[str, Any] = field(default_factory=dict)
    unreviewed: Sequence[str] = ()
    extensions: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the file's value."""
        return {"schema_version": SCHEMA, **asdict(self)}


def read_setup(folder: ReviewFolder) -> Setup:
    """Return what a run was set up with.

    Raises:
        Refused: ``E_REVIEW_UNREADABLE``.
    """
    value = folder.read_json(RUN) if folder.has(RUN) else None
    setup = None
    if isinstance(value, dict) and value.pop("schema_version", None) == SCHEMA and is_setup(value):
        with suppress(TypeError):  # a limit that is none of ours
            setup = Setup(**{**value, "limits": Limits(**value["limits"])})
    if setup is not None and setup.review_id != folder.id:
        raise Refused(
            "E_REVIEW_UNREADABLE",
            f"the folder {folder.id} holds the run of {setup.review_id}: it was copied or renamed",
            place=Place(file=str(folder.path)),
            remedy=f"Give it its name back, or remove it with: troth review forget {folder.id}",
        )
    if setup is None:
        raise Refused(
            "E_REVIEW_UNREADABLE",
            f"the run of {folder.id} was never set up, or what says so cannot be read",
            place=Place(file=str(folder.path)),
            remedy=f"Remove what is left of it with: troth review forget {folder.id}",
        )
    return setup


@dataclass(frozen=True, slots=True)
class Call:
    """One question to the reviewer, as the record of calls has it.

    ``purpose`` is ``review`` or ``rebuttal``, ``about`` the finding of the latter. ``answer`` is what came of it,
    ``None`` when nothing was recorded: the call is under way, or a crash lost it.
    """

    number: int
    purpose: str
    about: str | None
    sent: int
    wall: float
    time: str
    answer: Mapping[str, Any] | None = None

    @property
    def raw(self) -> str:
        """How the files begin that hold what the reviewer really said, one for each attempt."""
        return f"raw/answer-{self.number:03d}"

    @property
    def failure(self) -> Mapping[str, Any] | None:
        """Why there was no answer."""
        return None if self.answer is None else self.answer.get("failure")


class Session:
    """A run of a review. Whoever changes it holds its folder (:meth:`ReviewFolder.exclusively`).

    Attributes:
        folder: where everything stands.
        setup: what was fixed at the start.
        artifact: the snapshot that was reviewed.
        response: the stamped response, ``None`` before a valid one came.
        run: the findings as the records have them, ``None`` before a valid response came.
    """

    def __init__(self, folder: ReviewFolder, clock: Clock = system_clock) -> None:
        """Open a run.

        Raises:
            Refused: ``E_REVIEW_UNREADABLE`` (also for a response that is not what the reviewer answered),
                ``artifact_unavailable`` when the snapshot changed, ``E_REVIEW_UNFIT`` and the machine's codes when
                response or records were changed.
        """
        self.folder = folder
        self.clock = clock
        self.setup = read_setup(folder)
        self.artifact: Artifact = folder.members()
        if self.artifact.digest != self.setup.revision.get("value"):  # members() has bound the payload to it
            raise Refused("artifact_unavailable", "the run is about other bytes than those kept")
        self.calls = _calls(folder)
        self.response: dict[str, Any] | None = None
        self.run: Run | None = None
        if folder.has(RESPONSE):
            self.adopt(folder.read(RESPONSE))
            self._check_response()

    def adopt(self, response: bytes) -> None:
        """Take the stored response and replay the records on it.

        Raises:
            Refused: as opening does.
        """
        review = read_review(response)
        if review["review_id"] != self.folder.id:
            raise Refused(
                "E_REVIEW_UNREADABLE",
                "the stored response is another review's",
                place=Place(file=str(self.folder.path)),
            )
        self.response = review
        run = begun(review, self.artifact, self.setup.limits.bounds)
        self.run = replay(run, read_records(self.folder.lines(EVENTS)))

    def _check_response(self) -> None:
        """Hold the stored response against the reviewer's own kept answer; what was merged of others has none."""
        from troth.airlock.panels import is_parent
        from troth.airlock.reviewing.running import heard, taken

        last = next((call for call in reversed(self.calls) if call.purpose == "review"), None)
        if last is None and is_parent(self.folder):
            return
        found: Any = "no answer of a reviewer is on record"
        if last is not None and last.answer is not None and last.failure is None:
            found = taken(self, heard(self, last, "response"), last.answer)
        if isinstance(found, str) or found.value != self.response:
            raise Refused(
                "E_REVIEW_UNREADABLE",
                "the stored response is not what the reviewer answered",
                place=Place(file=str(self.folder.path)),
            )

    @property
    def id(self) -> str:
        """The review's id."""
        return self.folder.id

    def now(self) -> str:
        """Return the present instant as records write it."""
        return format_instant(self.clock())

    def started(self) -> Run:
        """Return the findings.

        Raises:
            Refused: ``E_REVIEW_NO_RESPONSE`` before a valid response came.
        """
        if self.run is None:
            raise Refused(
                "E_REVIEW_NO_RESPONSE",
                f"the review {self.id} has no response to work on",
                remedy=f"See: troth review status {self.id}",
            )
        return self.run

    def finding(self, finding_id: str) -> Mapping[str, Any]:
        """Return a finding as the reviewer wrote it.

        Raises:
            Refused: ``E_REVIEW_FINDING``.
        """
        run = self.started()
        for finding in run.review["findings"]:
            if finding["id"] == finding_id:
                found: Mapping[str, Any] = finding
                return found
        held = ", ".join(run.cases) or "none"
        raise Refused("E_REVIEW_FINDING", f"the review {self.id} has no finding {finding_id!r}; it has {held}")

    def case(self, finding_id: str) -> Case:
        """Return where a finding stands.

        Raises:
            Refused: ``E_REVIEW_FINDING``.
        """
        self.finding(finding_id)
        return self.started().cases[finding_id]

    @property
    def settled(self) -> bool:
        """Whether every finding has come to a state that is kept."""
        return self.run is not None and all(case.state in PERSISTED for case in self.run.cases.values())

    @property
    def finished(self) -> bool:
        """Whether the run has a saved reconciliation."""
        return self.folder.has(RECONCILIATION)

    @property
    def spent(self) -> Spent:
        """What the calls have taken so far; one whose answer was lost is charged with all that it may have taken."""
        seconds = sum(call.wall if call.answer is None else call.answer["seconds"] for call in self.calls)
        size = sum(call.sent if call.answer is None else call.answer["bytes"] for call in self.calls)
        tokens = sum(call.sent // 4 if call.answer is None else call.answer["tokens"] for call in self.calls)
        return Spent(seconds, size, tokens)

    @property
    def exhausted(self) -> str | None:
        """The bound that leaves nothing to spend, or ``None``."""
        return self.spent.exhausts(self.setup.limits.bounds)

    def record(self, *steps: Step) -> None:
        """Check the steps one upon the other, then make all of them durable together.

        A crash keeps none of them or the first ones; each leaves the finding in a legal state.

        Raises:
            Refused: the machine's codes, and nothing was recorded; ``E_WRITE_FAILED``.
        """
        run = self.started()
        for step in steps:
            case = run.cases[step.finding_id]
            made = event(
                case, step.to or case.state, step.basis, time=self.now(), actor=step.actor, role=step.role,
                kind=step.kind,
            )  # fmt: skip
            run = applied(run, made)
        self.keep(run)

    def keep(self, run: Run) -> None:
        """Make the records durable by which a run went on from this one.

        Raises:
            Refused: ``E_WRITE_FAILED``.
        """
        new = run.records[len(self.started().records) :]
        if new:
            self.folder.append(EVENTS, b"".join(record_line(record) for record in new))
            self.run = run

    def take_up(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Check records that are complete already, and make them durable.

        Raises:
            Refused: the machine's codes; ``E_WRITE_FAILED``.
        """
        run = self.started()
        for record in records:
            run = applied(run, record)
        self.keep(run)

    # --- calls ---

    def sending(self, purpose: str, about: str | None, sent: int, wall: float) -> Call:
        """Record that a question is about to leave; only then may it."""
        call = Call(len(self.calls) + 1, purpose, about, sent, wall, self.now())
        self.folder.append(CALLS, record_bytes({
            "event": "sent", "call": call.number, "purpose": purpose, "about": about, "bytes": sent, "wall": wall,
            "time": call.time,
        }))  # fmt: skip
        self.calls = (*self.calls, call)
        return call

    def answered(self, call: Call, answer: Mapping[str, Any]) -> Call:
        """Record what came of a question."""
        self.folder.append(
            CALLS, record_bytes({"event": "answered", "call": call.number, "time": self.now(), **answer})
        )
        self.calls = _calls(self.folder)
        return self.calls[call.number - 1]


@dataclass(frozen=True, slots=True)
class Step:
    """An event that is to be recorded: who does what to which finding, and what it rests on."""

    finding_id: str
    to: str | None
    basis: Mapping[str, Any]
    actor: str
    role: str = "host"
    kind: str = "move"


def _calls(folder: ReviewFolder) -> tuple[Call, ...]:
    found: list[Call] = []
    for number, value in enumerate(folder.values(CALLS), 1):
        if is_sent(value) and value["call"] == len(found) + 1:
            found.append(
                Call(value["call"], value["purpose"], value["about"], value["bytes"], value["wall"], value["time"])
            )
            continue
        if is_answered(value) and 1 <= value["call"] <= len(found) and found[value["call"] - 1].answer is None:
            found[value["call"] - 1] = replace(found[value["call"] - 1], answer=value)
            continue
        raise Refused(
            "E_REVIEW_UNREADABLE", "the record of calls holds what is no call",
            place=Place(str(folder.place(CALLS)), number),
        )  # fmt: skip
    return tuple(found)
