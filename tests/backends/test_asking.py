"""Asking again: the table of §6, one wall, one budget."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest

from support.reviewers import REVIEW
from troth.backends.asking import AGAIN, Asked, ask, failure_of, tokens_of
from troth.backends.protocol import Answer, Failure, Kind, Request
from troth.review.machine import Bounds, Spent
from troth.review.shapes import FAILURE_CODES

GOOD: Final = json.dumps(REVIEW).encode()
REQUEST: Final = Request("judge", b"artifact", model="m-1", wall=100.0, idle=50.0)
OVERSIZED: Final = Failure("invalid_response", "too long", retryable=True, oversized=True)


@dataclass
class Clock:
    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@dataclass
class Reviewer:
    """Answers in turn; each answer takes its time."""

    clock: Clock
    says: list[bytes | Failure]
    takes: float = 10.0
    name: str = "r"
    kind: Kind = "http"
    endpoint: str = "https://r.example"
    provider: str | None = None
    sandboxed: bool = False
    asked: list[Request] = field(default_factory=list)

    def usable(self) -> str | None:
        return None

    def ask(self, request: Request) -> Answer:
        self.asked.append(request)
        said = self.says[min(len(self.asked), len(self.says)) - 1]
        self.clock.now += self.takes
        return Answer(
            text=said if isinstance(said, bytes) else None, failure=said if isinstance(said, Failure) else None,
            end="completed", model="m-2", model_basis="resolved", sent=100, received=20, tokens=None,
            seconds=self.takes, attempts=1, any_byte=True, request_id=f"q{len(self.asked)}",
        )  # fmt: skip


def asked(*says: bytes | Failure, takes: float = 10.0, request: Request = REQUEST, **more: Any) -> tuple[Asked, Any]:
    clock = Clock()
    reviewer = Reviewer(clock, list(says), takes)
    return ask(reviewer, request, clock=clock, sleep=clock.sleep, **more), reviewer


def test_one_good_answer_is_one_call() -> None:
    came, reviewer = asked(GOOD)
    assert came.document == REVIEW
    assert came.raw == (GOOD,)
    assert came.failures == ()
    answer = came.answer
    assert (answer.text, answer.failure, answer.attempts, answer.seconds) == (GOOD, None, 1, 10.0)
    assert reviewer.asked == [REQUEST]


@pytest.mark.parametrize("code", FAILURE_CODES)
def test_each_code_is_asked_again_as_often_as_the_table_says(code: str) -> None:
    came, reviewer = asked(failure_of(code, "no"), takes=1.0)
    expected = {"service_unavailable": [2.0, 4.0], "invalid_response": []}.get(code, [])
    assert reviewer.clock.waits == expected
    assert len(reviewer.asked) == {"service_unavailable": 3, "invalid_response": 2}.get(code, 1)
    assert came.document is None
    assert came.answer.failure == failure_of(code, "no")
    assert came.answer.attempts == len(reviewer.asked) == len(came.failures)
    assert failure_of(code, "no").retryable is FAILURE_CODES[code]


def test_the_table_is_that_of_the_specification() -> None:
    assert dict(AGAIN) == {"service_unavailable": (2.0, 4.0), "invalid_response": (0.0,)}


def test_sizes_add_up_over_attempts() -> None:
    came, _ = asked(failure_of("service_unavailable", "busy"), b"no json", GOOD, takes=3.0)
    answer = came.answer
    assert came.document == REVIEW
    assert [failure.code for failure in came.failures] == ["service_unavailable", "invalid_response"]
    assert came.raw == (b"no json", GOOD)
    assert (answer.sent, answer.received, answer.attempts, answer.seconds) == (300, 60, 3, 3 + 2 + 3 + 3)
    assert (answer.model, answer.model_basis, answer.request_id) == ("m-2", "resolved", "q3")
    assert (answer.tokens, tokens_of(answer)) == (None, 90)


def test_a_document_that_is_wrong_is_asked_for_once_more_at_once() -> None:
    def judge(document: dict[str, Any]) -> str | None:
        return "it breaks required-member" if "findings" not in document else None

    wrong = b'{"assessment": "approve"}'
    came, reviewer = asked(wrong, GOOD, judge=judge)
    assert came.document == REVIEW
    assert came.failures[0].message == "it breaks required-member"
    assert came.failures[0].backend_request_id == "q1"
    assert reviewer.clock.waits == []
    came, reviewer = asked(wrong, wrong, GOOD, judge=judge)
    assert came.document is None
    assert came.answer.text is None
    assert len(reviewer.asked) == 2


def test_size_excess_is_never_asked_for_again() -> None:
    came, reviewer = asked(OVERSIZED, GOOD)
    assert len(reviewer.asked) == 1
    assert came.answer.failure == OVERSIZED
    came, reviewer = asked(b" " * 2_000_001, GOOD)
    assert len(reviewer.asked) == 1
    assert came.answer.failure is not None
    assert came.answer.failure.oversized


def test_all_attempts_share_the_wall() -> None:
    came, reviewer = asked(failure_of("service_unavailable", "busy"), takes=40.0)
    # 40 s, 2 s wait, 40 s; a further wait of 4 s would leave 14 s, which is still something.
    assert [request.wall for request in reviewer.asked] == [100.0, 58.0, 14.0]
    assert [request.idle for request in reviewer.asked] == [50.0, 50.0, 14.0]
    came, reviewer = asked(failure_of("service_unavailable", "busy"), takes=49.0)
    assert [request.wall for request in reviewer.asked] == [100.0, 49.0]
    assert reviewer.clock.waits == [2.0]
    assert came.answer.failure == failure_of("service_unavailable", "busy")
    came, reviewer = asked(b"no json", GOOD, takes=100.0)
    assert len(reviewer.asked) == 1


def test_the_wall_never_exceeds_what_the_deadline_leaves() -> None:
    bounds = Bounds(deadline=130.0)
    _, reviewer = asked(GOOD, bounds=bounds, spent=Spent(seconds=90.0))
    assert [(request.wall, request.idle) for request in reviewer.asked] == [(40.0, 40.0)]


@pytest.mark.parametrize(
    "spent", [Spent(seconds=600.0), Spent(bytes=16_000_000), Spent(tokens=4_000_000), Spent(seconds=9e9)]
)
def test_nothing_is_sent_when_the_budget_is_used_up(spent: Spent) -> None:
    came, reviewer = asked(GOOD, spent=spent)
    assert reviewer.asked == []
    assert (came.document, came.answer.attempts, came.answer.sent) == (None, 0, 0)
    assert came.answer.failure is not None
    assert came.answer.failure.code == "cancelled"
    assert (came.answer.model, came.answer.model_basis) == ("m-1", "requested")


@pytest.mark.parametrize(
    "bounds", [Bounds(bytes=120), Bounds(tokens=30), Bounds(bytes=121), Bounds(tokens=31)], ids=str
)
def test_the_budget_is_looked_at_before_each_send(bounds: Bounds) -> None:
    came, reviewer = asked(b"no json", GOOD, bounds=bounds)
    used_up = bounds.bytes == 120 or bounds.tokens == 30
    assert len(reviewer.asked) == (1 if used_up else 2)
    assert (came.document is None) is used_up


def test_reported_tokens_count_before_estimates() -> None:
    answer = asked(GOOD)[0].answer
    assert tokens_of(replace(answer, tokens=7)) == 7
    assert tokens_of(replace(answer, tokens=0)) == 0
    assert tokens_of(replace(answer, sent=3, received=0)) == 0


def test_notices_of_all_attempts_are_kept_once() -> None:
    clock = Clock()
    reviewer = Reviewer(clock, [b"no json", GOOD])
    plain = reviewer.ask
    reviewer.ask = lambda request: replace(plain(request), notices=("a", f"b{len(reviewer.asked)}"))  # type: ignore[method-assign] # for this test
    came = ask(reviewer, REQUEST, clock=clock, sleep=clock.sleep)
    assert came.answer.notices == ("a", "b1", "b2")


def test_a_reply_is_asked_for_as_one() -> None:
    reply = {"finding_id": "F001", "decision": "withdraw", "position": "gone", "evidence": []}
    came, _ = asked(json.dumps(reply).encode(), wanted="rebuttal")
    assert came.document == reply
    came, _ = asked(GOOD, wanted="rebuttal")
    assert came.document is None


def test_an_answer_has_a_text_or_a_failure() -> None:
    answer = asked(GOOD)[0].answer
    with pytest.raises(ValueError, match="a text or a failure"):
        replace(answer, failure=OVERSIZED)
    with pytest.raises(ValueError, match="a text or a failure"):
        replace(answer, text=None)
