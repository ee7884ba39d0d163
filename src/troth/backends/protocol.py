"""What a reviewer is asked and what comes back: the one interface of every backend (Impasse §9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol, get_args

Kind = Literal["cli", "http", "scripted"]
End = Literal["completed", "wall_timeout", "idle_timeout", "termination_failed", "spawn_error"]
ModelBasis = Literal["resolved", "requested", "backend_default"]

ENDS: Final[tuple[End, ...]] = get_args(End)
"""How a supervised call can end (§9)."""

MOST_INPUT: Final = 4_000_000
"""Largest payload that is sent, in bytes (§9)."""
MOST_SCHEMA: Final = 1_000_000
"""Largest response schema, in bytes (§9)."""
MOST_MESSAGE: Final = 2_000_000
"""Largest final message that is taken, in bytes, counted before decoding (§9)."""
WALL_SECONDS: Final = 300.0
IDLE_SECONDS: Final = 300.0
"""Limits of one call in seconds, where nobody says otherwise (§7)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call to a reviewer.

    Attributes:
        instruction: stance, lens and response schema, already composed (:mod:`troth.backends.instruction`).
        payload: the artifact's bytes, or the document of a rebuttal.
        model: the model that is asked for; ``None`` leaves it to the backend.
        effort: one of the backend's efforts.
        speed: one of the backend's speeds.
        wall: longest the call may take, in seconds.
        idle: longest it may be silent, in seconds.
    """

    instruction: str
    payload: bytes
    model: str | None = None
    effort: str | None = None
    speed: str | None = None
    wall: float = WALL_SECONDS
    idle: float = IDLE_SECONDS


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer: one of the nine codes of §6, a sentence, and whether recovery is plausible.

    ``oversized`` marks an ``invalid_response`` for its size, which is never asked for again (§6).
    """

    code: str
    message: str
    retryable: bool
    backend_request_id: str | None = None
    oversized: bool = False

    def as_json(self) -> dict[str, object]:
        """Return the ``failure`` of a reconciliation (§6)."""
        told: dict[str, object] = {"code": self.code, "message": self.message, "retryable": self.retryable}
        if self.backend_request_id is not None:
            told["backend_request_id"] = self.backend_request_id
        return told


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one call, or of several by :func:`troth.backends.asking.ask`.

    Attributes:
        text: the final message as the backend gave it, bounded; ``None`` on failure.
        failure: why there is no answer; exactly one of ``text`` and ``failure`` is there.
        end: how the call ended.
        model: the model's name, ``None`` where nobody named one.
        model_basis: ``resolved`` only where the backend itself named it.
        sent: bytes that left, all attempts together.
        received: bytes that came, all attempts together.
        tokens: tokens as the backend reported them, ``None`` where it did not.
        seconds: time taken, all attempts together.
        attempts: how often the reviewer was asked.
        any_byte: whether anything at all came back.
        request_id: the backend's own id of the call.
        notices: what a person should know of the call beside its result, each a sentence.
    """

    text: bytes | None
    failure: Failure | None
    end: End
    model: str | None
    model_basis: ModelBasis
    sent: int
    received: int
    tokens: int | None
    seconds: float
    attempts: int
    any_byte: bool
    request_id: str | None
    notices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.text is None) == (self.failure is None):
            raise ValueError("an answer has a text or a failure")


class Backend(Protocol):
    """A transport and the endpoint that receives (§1).

    Attributes:
        name: ``codex``, ``claude``, ``openai``, ``anthropic``, ``local`` or ``scripted``.
        kind: how it is reached.
        endpoint: the key of consent: ``scheme://host[:port]``, or ``scripted:`` and a name.
        provider: who runs the model, ``None`` where that is not known.
        sandboxed: whether the reviewer's own program is held in a sandbox.
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def endpoint(self) -> str: ...

    @property
    def provider(self) -> str | None: ...

    @property
    def sandboxed(self) -> bool: ...

    def usable(self) -> str | None:
        """Return ``None``, or a sentence that says what is missing. Sends nothing."""
        ...

    def ask(self, request: Request) -> Answer:
        """Ask once. Whatever the reviewer does ends in the answer; nothing is raised for it."""
        ...
