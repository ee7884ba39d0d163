"""A reviewer that is a file of canned answers, for tests and examples (Impasse §9).

::

    {"name": "demo", "model": "scripted-1", "answers": [
      {"to": "review", "call": 1, "failure": "service_unavailable"},
      {"to": "review", "file": "response.json"},
      {"to": "rebuttal", "finding": "F002", "json": {"finding_id": "F002", "decision": "withdraw", …}}
    ]}

Of the entries the first that fits the question answers it: ``to`` (``review`` or ``rebuttal``), ``finding`` (the id
stands in the question), ``contains`` (a text stands in it), ``call`` (how often this very question was asked in this
process, from 1). An entry without conditions fits always. It answers with exactly one of

- ``text``: this text;
- ``json``: this value, as JSON;
- ``file``: the bytes of a file beside the script;
- ``flood``: that many bytes;
- ``failure``: this failure code, with ``message`` where it is given;
- ``end``: ``wall_timeout``, ``idle_timeout``, ``termination_failed`` or ``spawn_error``;

after ``delay`` seconds, within the limits of the call. ``tokens``, ``request_id`` and ``model`` are reported with it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal

import msgspec

from troth.backends.asking import failure_of
from troth.backends.instruction import is_rebuttal
from troth.backends.protocol import ENDS, MOST_MESSAGE, Answer, End, Failure, Kind, ModelBasis, Request
from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.review.shapes import FAILURE_CODES

MOST_SCRIPT: Final = 1 << 24
"""Largest script, and largest file beside it, in bytes."""

_LIMITS: Final = Limits(max_bytes=MOST_SCRIPT, max_depth=128, refuse_overflow=True)
_BODIES: Final = ("text", "json", "file", "flood", "failure", "end")


class Canned(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry of a script."""

    to: Literal["review", "rebuttal"] | None = None
    finding: str | None = None
    contains: str | None = None
    call: Annotated[int, msgspec.Meta(ge=1)] | None = None
    text: str | None = None
    json: Any = msgspec.UNSET
    file: str | None = None
    flood: Annotated[int, msgspec.Meta(ge=0, le=1 << 26)] | None = None
    failure: str | None = None
    message: str | None = None
    end: str | None = None
    delay: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    request_id: str | None = None
    model: str | None = None


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of canned answers."""

    answers: list[Canned]
    name: str | None = None
    model: str | None = None
    provider: str | None = None


class Scripted:
    """The backend that answers from a script. It reads the file when it is made and whenever it is asked.

    Args:
        path: the script.
        sleep: waits that many seconds.

    Raises:
        Refused: ``E_SCRIPT``.
    """

    name: Final = "scripted"
    kind: Final[Kind] = "scripted"
    sandboxed: Final = True

    def __init__(self, path: Path, sleep: Callable[[float], None] = time.sleep) -> None:
        self._path = path
        self._sleep = sleep
        self._script = read_script(path)
        self._calls: Counter[tuple[str, str]] = Counter()
        self.provider = self._script.provider
        self.endpoint = f"scripted:{self._script.name or path.stem}"

    def usable(self) -> str | None:
        """Return ``None``: a script that was read can answer."""
        return None

    def ask(self, request: Request) -> Answer:
        """Answer with the first entry that fits."""
        to = "rebuttal" if is_rebuttal(request.instruction) else "review"
        question = request.payload.decode("utf-8", "replace")
        self._calls[to, question] += 1
        for canned in self._script.answers:
            if (
                canned.to in (None, to)
                and (canned.finding is None or canned.finding in question)
                and (canned.contains is None or canned.contains in question)
                and canned.call in (None, self._calls[to, question])
            ):
                return self._answer(canned, request)
        return self._told(request, Canned(), failure_of("backend_error", "the script has no answer to this question"))

    def _answer(self, canned: Canned, request: Request) -> Answer:
        limit = min(request.wall, request.idle)
        self._sleep(min(canned.delay, limit))
        if canned.delay >= limit:
            end: End = "wall_timeout" if request.wall <= request.idle else "idle_timeout"
            return self._told(request, canned, failure_of("timeout", _SAYS[end]), end)
        if canned.end is not None:
            end = next(known for known in ENDS if known == canned.end)
            code = "timeout" if end.endswith("timeout") else "backend_error"
            return self._told(request, canned, failure_of(code, canned.message or _SAYS[end]), end)
        if canned.failure is not None:
            message = canned.message or f"the script answers with {canned.failure}"
            return self._told(request, canned, failure_of(canned.failure, message, canned.request_id))
        text = self._text(canned)
        if len(text) > MOST_MESSAGE:
            message = f"the answer has {len(text)} bytes; at most {MOST_MESSAGE} are taken"
            return self._told(
                request, canned, Failure("invalid_response", message, retryable=True, oversized=True),
                received=len(text),
            )  # fmt: skip
        return self._told(request, canned, None, text=text, received=len(text))

    def _text(self, canned: Canned) -> bytes:
        if canned.text is not None:
            return canned.text.encode("utf-8", "surrogatepass")
        if canned.flood is not None:
            return b"x" * canned.flood
        if canned.file is not None:
            return _beside(self._path, canned.file)
        return json.dumps(canned.json, ensure_ascii=False).encode()

    def _told(
        self,
        request: Request,
        canned: Canned,
        failure: Failure | None,
        end: End = "completed",
        *,
        text: bytes | None = None,
        received: int = 0,
    ) -> Answer:
        named = canned.model or self._script.model
        basis: ModelBasis = "resolved" if named else "requested" if request.model else "backend_default"
        return Answer(
            text=text, failure=failure, end=end, model=named or request.model, model_basis=basis,
            sent=len(request.instruction.encode("utf-8", "surrogatepass")) + len(request.payload), received=received,
            tokens=canned.tokens, seconds=canned.delay, attempts=1, any_byte=received > 0,
            request_id=canned.request_id,
        )  # fmt: skip


_SAYS: Final[dict[End, str]] = {
    "completed": "the reviewer ended",
    "wall_timeout": "the reviewer took longer than it may",
    "idle_timeout": "the reviewer was silent for longer than it may",
    "termination_failed": "the reviewer's program could not be ended",
    "spawn_error": "the reviewer's program could not be started",
}


def read_script(path: Path) -> Script:
    """Return a script.

    Raises:
        Refused: ``E_SCRIPT`` with the file and what is wrong with it.
    """
    place = Place(file=str(path))
    data = _bounded(path)
    try:
        script = msgspec.convert(loads(data, _LIMITS), Script)
    except (JsonFault, msgspec.ValidationError) as fault:
        raise Refused("E_SCRIPT", f"the script is none: {getattr(fault, 'message', fault)}", place=place) from None
    for number, canned in enumerate(script.answers):
        bodies = [name for name in _BODIES if getattr(canned, name) is not (msgspec.UNSET if name == "json" else None)]
        wrong = None
        if len(bodies) != 1:
            wrong = f"answers with exactly one of {', '.join(_BODIES)}"
        elif canned.failure is not None and canned.failure not in FAILURE_CODES:
            wrong = f"fails with one of {', '.join(FAILURE_CODES)}"
        elif canned.end is not None and canned.end not in ENDS[1:]:
            wrong = f"ends with one of {', '.join(ENDS[1:])}"
        elif canned.file is not None:
            _beside(path, canned.file)
        if wrong:
            raise Refused("E_SCRIPT", f"an entry {wrong}", place=Place(file=str(path), path=f"$.answers[{number}]"))
    return script


def _beside(script: Path, name: str) -> bytes:
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name:
        raise Refused("E_SCRIPT", "a file of a script stands beside it or below", place=Place(file=str(script)))
    return _bounded(script.parent.joinpath(*parts))


def _bounded(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_SCRIPT + 1)
    except (OSError, ValueError) as fault:
        why = (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
        raise Refused("E_SCRIPT", f"the file cannot be read: {why}", place=Place(file=str(path))) from None
    if len(data) > MOST_SCRIPT:
        raise Refused("E_SCRIPT", f"the file has more than {MOST_SCRIPT} bytes", place=Place(file=str(path)))
    return data
