"""One question to a reviewer, asked again where that is provided for, within one wall and budget (Impasse §§6, 7)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from troth.backends.extraction import Wanted, extract, invalid
from troth.backends.protocol import Answer, Backend, Failure, Request
from troth.review.machine import Bounds, Spent
from troth.review.shapes import FAILURE_CODES

AGAIN: Final[Mapping[str, tuple[float, ...]]] = {
    "service_unavailable": (2.0, 4.0),
    "invalid_response": (0.0,),
}
"""Failure code -> seconds to wait before each further attempt; for every other code there is none (§6)."""

Judge = Callable[[dict[str, Any]], str | None]
"""Tells what is wrong with a document, in a sentence, or ``None``."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of a question.

    Attributes:
        answer: the account of all attempts together. Its failure is the last one's; ``None`` only where ``document``
            is there.
        document: the object that the reviewer answered with, judged good.
        raw: the final message of every attempt that brought one, good or not, as the reviewer gave it.
        failures: the failure of every attempt that had one, in order.
    """

    answer: Answer
    document: dict[str, Any] | None
    raw: tuple[bytes, ...]
    failures: tuple[Failure, ...]


def failure_of(code: str, message: str, backend_request_id: str | None = None, *, oversized: bool = False) -> Failure:
    """Return a failure of one of the nine codes, retryable as §6 has it."""
    return Failure(code, message, FAILURE_CODES[code], backend_request_id, oversized)


def code_of_status(status: int) -> str:
    """Return the failure that an HTTP status other than success means (§9)."""
    if status in (401, 403):
        return "auth_error"
    if status == 429:
        return "rate_limited"
    return "service_unavailable" if 500 <= status <= 599 else "backend_error"


def ask(
    backend: Backend,
    request: Request,
    *,
    wanted: Wanted = "response",
    judge: Judge | None = None,
    bounds: Bounds | None = None,
    spent: Spent | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Asked:
    """Ask until there is a document, or nothing more is provided for.

    All attempts and the waits between them share the request's wall, which is never longer than what the deadline
    leaves. The budget is looked at before each send.

    Args:
        backend: whom to ask.
        request: what to ask.
        wanted: what kind of document is to come.
        judge: tells what is wrong with a document beyond its kind; a document that is wrong is ``invalid_response``.
        bounds: what the run may spend; the defaults of §7 where it is not given.
        spent: what the run has spent before this.
        clock: seconds of a clock that only goes forward.
        sleep: waits that many seconds.

    Raises:
        Refused: ``E_BACKEND_OPTION`` for what the backend does not take; nothing was sent.
    """
    bounds, spent = bounds or Bounds(), spent or Spent()
    started = clock()
    wall = min(request.wall, bounds.deadline - spent.seconds)
    used: dict[str, int] = {}
    raw: list[bytes] = []
    failures: list[Failure] = []
    total: Answer | None = None
    while True:
        elapsed = clock() - started
        so_far = Spent(
            spent.seconds + elapsed, spent.bytes + _bytes_of(total), spent.tokens + (tokens_of(total) if total else 0)
        )
        bound = so_far.exhausts(bounds)
        if bound is not None or elapsed >= wall:
            why = f"nothing was sent{' again' if total else ''}: the run's {bound or 'wall'} is used up"
            if total is None:
                failures.append(failure_of("cancelled", why))
                return Asked(_nothing(failures[-1], request), None, (), tuple(failures))
            return Asked(replace(total, seconds=elapsed), None, tuple(raw), tuple(failures))
        one = backend.ask(replace(request, wall=wall - elapsed, idle=min(request.idle, wall - elapsed)))
        document, failure = None, one.failure
        if one.text is not None:
            raw.append(one.text)
            document, failure = _judged(one, wanted, judge)
        total = _added(total, one, failure, clock() - started)
        if failure is None:
            return Asked(total, document, tuple(raw), tuple(failures))
        failures.append(failure)
        waits = () if failure.oversized else AGAIN.get(failure.code, ())
        attempt = used.get(failure.code, 0)
        if attempt >= len(waits) or clock() - started + waits[attempt] >= wall:
            return Asked(total, None, tuple(raw), tuple(failures))
        used[failure.code] = attempt + 1
        if waits[attempt]:
            sleep(waits[attempt])


def tokens_of(answer: Answer) -> int:
    """Return the tokens of a call: as reported, else a quarter of the bytes both ways (§7 [D26])."""
    return answer.tokens if answer.tokens is not None else _bytes_of(answer) // 4


def _bytes_of(answer: Answer | None) -> int:
    return answer.sent + answer.received if answer else 0


def _judged(one: Answer, wanted: Wanted, judge: Judge | None) -> tuple[dict[str, Any] | None, Failure | None]:
    assert one.text is not None
    found = extract(one.text, wanted)
    if isinstance(found, dict):
        wrong = judge(found) if judge is not None else None
        if wrong is None:
            return found, None
        found = invalid(wrong)
    return None, replace(found, backend_request_id=one.request_id)


def _added(total: Answer | None, one: Answer, failure: Failure | None, seconds: float) -> Answer:
    """Return the account with one more attempt; sizes add up, the rest is the last attempt's."""
    if failure is not None:
        one = replace(one, text=None, failure=failure)
    if total is None:
        return replace(one, seconds=seconds)
    reported = one.tokens is not None or total.tokens is not None
    return replace(
        one,
        sent=total.sent + one.sent,
        received=total.received + one.received,
        tokens=tokens_of(total) + tokens_of(one) if reported else None,
        seconds=seconds,
        attempts=total.attempts + one.attempts,
        any_byte=total.any_byte or one.any_byte,
        notices=tuple(dict.fromkeys((*total.notices, *one.notices))),
        model=one.model if one.model_basis == "resolved" or total.model_basis != "resolved" else total.model,
        model_basis="resolved" if total.model_basis == "resolved" else one.model_basis,
    )


def _nothing(failure: Failure, request: Request) -> Answer:
    return Answer(
        text=None, failure=failure, end="completed", model=request.model,
        model_basis="requested" if request.model else "backend_default",
        sent=0, received=0, tokens=None, seconds=0.0, attempts=0, any_byte=False, request_id=None,
    )  # fmt: skip
