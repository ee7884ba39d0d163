"""Reviewers behind HTTP at a real server that checks the request, and at one that misbehaves: what is sent and read."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.reviewer_server import BOTH, ENVIRONMENT, KEY, Reviewer, ask, backend, serving
from troth.backends import http, wire
from troth.backends.http import Anthropic, HttpBackend, Local, OpenAI
from troth.backends.protocol import MOST_INPUT, MOST_MESSAGE, Request
from troth.core.errors import Refused
from troth.review.shapes import FAILURE_CODES

# --- the honest exchange -------------------------------------------------------------------------------------------


@BOTH
def test_an_answer(make: type[HttpBackend]) -> None:
    reviewer = Reviewer()
    answer = ask(make, reviewer)
    assert answer.text == b'{"schema_version": "1.0"}'
    assert answer.failure is None
    assert answer.end == "completed"
    assert (answer.model, answer.model_basis) == ("model-as-resolved", "resolved")
    assert answer.tokens == 16
    assert answer.request_id == "req_1"
    assert answer.any_byte
    (asked,) = reviewer.asked
    assert answer.sent > asked["size"]
    assert answer.received > len(answer.text)
    assert reviewer.bad == []


@BOTH
def test_what_is_sent(make: type[HttpBackend]) -> None:
    reviewer = Reviewer()
    with serving(reviewer):
        maker = backend(make, reviewer.url, nonce=iter(["END", "n0nce"]).__next__)
        maker.ask(Request("stance and schema", "été END".encode(), model="model-y", effort="high"))
    (asked,) = reviewer.asked
    body = asked["body"]
    assert body["model"] == "model-y"
    system = body["system"] if make is Anthropic else body["messages"][0]["content"]
    assert system.startswith("stance and schema\n")
    assert "`<<<artifact n0nce` and the line `artifact n0nce>>>`" in system
    assert body["messages"][-1] == {"role": "user", "content": "<<<artifact n0nce\nété END\nartifact n0nce>>>\n"}
    assert (body["output_config"]["effort"] if make is Anthropic else body["reasoning_effort"]) == "high"
    assert {"tools", "tool_choice", "functions"}.isdisjoint(body)
    assert asked["headers"]["accept-encoding"] == "identity"
    assert KEY not in str(body)


def test_delimiters_are_drawn_for_each_call_and_never_stand_in_the_artifact() -> None:
    reviewer = Reviewer()
    with serving(reviewer):
        for _ in range(3):
            backend(OpenAI, reviewer.url).ask(Request("stance", b"artifact 1>>>"))
    users = [one["body"]["messages"][1]["content"] for one in reviewer.asked]
    nonces = {user.partition("\n")[0].removeprefix("<<<artifact ") for user in users}
    assert len(nonces) == 3
    assert all(len(nonce) == 32 for nonce in nonces)


@pytest.mark.parametrize(
    ("url", "path"),
    [("", "/v1/chat/completions"), ("/v1/", "/v1/chat/completions"), ("/gw/x", "/gw/x/chat/completions")],
)
def test_where_the_request_goes(url: str, path: str) -> None:
    reviewer = Reviewer()
    with serving(reviewer):
        backend(OpenAI, reviewer.url + url).ask(Request("stance", b"artifact"))
    assert [one["path"] for one in reviewer.asked] == [path]


def test_a_server_on_this_machine_needs_no_key() -> None:
    reviewer = Reviewer(key=None)
    with serving(reviewer):
        local = Local("small", reviewer.url)
        assert local.usable() is None
        assert local.provider is None
        assert local.ask(Request("stance", b"artifact")).text is not None
    assert "authorization" not in reviewer.asked[0]["headers"]


def test_only_this_machine_is_local() -> None:
    for url in ("https://api.openai.com/v1", "http://192.0.2.1:11434"):
        with pytest.raises(Refused) as refused:
            Local("small", url)
        assert refused.value.code == "E_ENDPOINT"
    assert Local("small", "https://localhost:8443").endpoint == "https://localhost:8443"


def test_who_is_behind_an_address() -> None:
    assert OpenAI("m").endpoint == "https://api.openai.com"
    assert OpenAI("m").provider == "openai"
    assert Anthropic("m").endpoint == "https://api.anthropic.com"
    assert Anthropic("m").provider == "anthropic"
    assert OpenAI("m", "https://gateway.example/openai.com").provider is None
    assert OpenAI("m", "https://llm.corp.example/v1", providers={"corp.example": "corp"}).provider == "corp"
    for url in ("https://u:p@gateway.example/v1", "https://gateway.example/v1?k=v", "https://gateway.example#x"):
        with pytest.raises(Refused):
            OpenAI("m", url)


# --- failures ------------------------------------------------------------------------------------------------------

STATUSES = {
    "401": "auth_error", "403": "auth_error", "429": "rate_limited", "500": "service_unavailable",
    "503": "service_unavailable", "529": "service_unavailable", "400": "backend_error", "404": "backend_error",
    "413": "backend_error", "302": "backend_error", "307": "backend_error", "204": "backend_error",
}  # fmt: skip


@BOTH
@pytest.mark.parametrize(("status", "code"), STATUSES.items())
def test_statuses(make: type[HttpBackend], status: str, code: str) -> None:
    reviewer = Reviewer(status)
    answer = ask(make, reviewer)
    assert answer.failure is not None
    assert answer.failure.code == code
    assert status in answer.failure.message
    assert answer.failure.backend_request_id == "req_1"
    assert answer.failure.retryable is (code in ("rate_limited", "service_unavailable"))
    assert len(reviewer.asked) == 1  # the clients' own repeats are off
    assert reviewer.bad == []


@BOTH
def test_of_an_error_no_more_is_read_than_may_be_of_use(make: type[HttpBackend]) -> None:
    answer = ask(make, Reviewer("big_error"))
    assert answer.failure is not None
    assert answer.failure.code == "backend_error"
    assert answer.received < 4 * wire.MOST_ERROR


@BOTH
def test_a_redirect_is_not_followed(make: type[HttpBackend]) -> None:
    reviewer = Reviewer("redirect")
    answer = ask(make, reviewer)
    assert answer.failure is not None
    assert answer.failure.code == "backend_error"
    assert len(reviewer.asked) == 1
    assert reviewer.bad == []


INVALID = {
    "wrong_type": "event-stream", "gzip": "compressed", "flood": "longer than", "flood_lines": "longer than",
    "flood_comments": "longer than", "flood_text": "longer than", "break_off": "broke off",
    "broken_json": "broke off", "no_end": "before it was complete",
}  # fmt: skip


@BOTH
@pytest.mark.parametrize(("fault", "words"), INVALID.items())
def test_what_is_no_answer(make: type[HttpBackend], fault: str, words: str) -> None:
    reviewer = Reviewer(fault)
    answer = ask(make, reviewer)
    assert answer.text is None
    assert answer.failure is not None
    assert answer.failure.code == "invalid_response"
    assert words in answer.failure.message
    assert answer.failure.oversized is fault.startswith("flood")
    assert answer.received <= wire.MOST_RECEIVED + (1 << 17)
    assert answer.any_byte
    assert len(reviewer.asked) == 1


@BOTH
def test_the_same_stream_without_the_fault_is_an_answer(make: type[HttpBackend]) -> None:
    piece = "x" * 60_000
    reviewer = Reviewer(pieces=(piece,) * (MOST_MESSAGE // len(piece)))
    answer = ask(make, reviewer)
    assert answer.text == piece.encode() * len(reviewer.pieces)
    reviewer = Reviewer(pieces=("",))
    answer = ask(make, reviewer)
    assert answer.failure is not None
    assert answer.failure.message == "the answer is empty"


@pytest.mark.parametrize(
    ("make", "ended", "words"),
    [
        (OpenAI, "length", "cut off"),
        (Anthropic, "max_tokens", "cut off"),
        (Anthropic, "model_context_window_exceeded", "cut off"),
        (OpenAI, "content_filter", "content_filter"),
        (OpenAI, "tool_calls", "tool_calls"),
        (Anthropic, "refusal", "refusal"),
        (Anthropic, "pause_turn", "pause_turn"),
        (OpenAI, "\x1b[31m words", "something unknown"),
    ],
)
def test_an_answer_that_was_ended_early(make: type[HttpBackend], ended: str, words: str) -> None:
    answer = ask(make, Reviewer(ended=ended))
    assert answer.text is None
    assert answer.failure is not None
    assert answer.failure.code == "invalid_response"
    assert words in answer.failure.message


@BOTH
def test_members_of_strange_types_are_passed_over(make: type[HttpBackend]) -> None:
    answer = ask(make, Reviewer("hostile"))
    assert answer.text == b'{"schema_version": "1.0"}'


_TEXTS = st.sampled_from(["", "x", "stop", "length", "end_turn", "text", "text_delta", "message_start", "message_stop"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(
        st.sampled_from(["type", "choices", "delta", "content", "finish_reason", "usage", "model", "message", "text",
                         "stop_reason", "content_block", "error", "code", "prompt_tokens", "input_tokens"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
_EVENTS = st.tuples(st.sampled_from(["", "event: error\n", "event: message_delta\n", "id: 1\n", ":\n"]), _VALUES).map(
    lambda pair: f"{pair[0]}data: {json.dumps(pair[1])}\n\n".encode()
)
_BYTES = st.binary(min_size=1, max_size=40) | st.sampled_from(
    [b"data: [DONE]\n\n", b"data: \n\n", b"\n\n", b"retry: x\n"]
)


@pytest.fixture(scope="module")
def raw_reviewer() -> Iterator[Reviewer]:
    with serving(Reviewer("raw")) as found:
        yield found


@BOTH
@settings(max_examples=25, deadline=None)
@given(raw=st.lists(_EVENTS | _BYTES, max_size=5))
def test_whatever_a_service_sends_ends_in_an_answer(
    make: type[HttpBackend], raw: list[bytes], raw_reviewer: Reviewer
) -> None:
    raw_reviewer.raw = tuple(raw)
    answer = backend(make, raw_reviewer.url).ask(Request("stance", b"artifact", wall=20))
    assert answer.end == "completed"
    assert answer.failure is None or answer.failure.code in FAILURE_CODES
    if answer.text is not None:  # only where the service said that it was done
        assert (b'"stop"' if make is OpenAI else b"message_stop") in b"".join(raw)
    assert raw_reviewer.bad == []


def test_half_a_surrogate_pair_stays_no_text() -> None:
    answer = ask(OpenAI, Reviewer(pieces=("\ud800",)))
    assert answer.text == b"\xed\xa0\x80"


@BOTH
def test_an_error_inside_the_stream(make: type[HttpBackend]) -> None:
    answer = ask(make, Reviewer("error_event"))
    assert answer.failure is not None
    assert answer.failure.code == "service_unavailable"
    assert "overloaded_error" in answer.failure.message


# --- the key -------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("fault", ["answer", "echo_key", "401", "error_event", "hang_up", "broken_json"])
def test_the_key_is_in_no_log_and_no_answer(
    make: type[HttpBackend], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        answer = ask(make, Reviewer(fault))
    assert KEY not in repr(answer)
    assert KEY not in caplog.text
    assert all(KEY not in repr(record.__dict__) for record in caplog.records)


@pytest.mark.parametrize("variable", ["OPENAI_LOG", "ANTHROPIC_LOG"])
def test_the_key_is_not_told_where_a_client_is_told_to_log(variable: str) -> None:
    make = "OpenAI" if variable.startswith("OPENAI") else "Anthropic"
    reviewer = Reviewer("401")
    code = (
        f"from troth.backends.http import *; b = {make}('m', {{url!r}}, 'SERVICE_KEY')\n"
        "print(b.ask(Request('stance', b'artifact')).failure.code)"
    )
    with serving(reviewer):
        done = subprocess.run(
            [sys.executable, "-c", code.format(url=reviewer.url)],
            capture_output=True, text=True, timeout=60, check=True,
            env={**os.environ, variable: "debug", "SERVICE_KEY": KEY, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
    assert done.stdout == "auth_error\n"
    assert KEY not in done.stderr


@BOTH
@pytest.mark.parametrize("held", [{}, {"SERVICE_KEY": ""}, {"SERVICE_KEY": "two words"}, {"SERVICE_KEY": "a\r\nX: y"}])
def test_without_a_key_nothing_is_sent(make: type[HttpBackend], held: dict[str, str]) -> None:
    reviewer = Reviewer()
    with serving(reviewer):
        maker = backend(make, reviewer.url, environment=held)
        missing = maker.usable()
        answer = maker.ask(Request("stance", b"artifact"))
    assert missing is not None
    assert "SERVICE_KEY" in missing
    assert answer.failure is not None
    assert answer.failure.code == "auth_error"
    assert reviewer.asked == []


def test_without_the_client_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http.importlib.util, "find_spec", lambda name: None)
    maker = backend(Anthropic, "https://api.anthropic.com")
    assert "anthropic" in (maker.usable() or "")
    failure = maker.ask(Request("stance", b"artifact")).failure
    assert failure is not None
    assert failure.code == "backend_error"


# --- what cannot be sent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "request_", "words"),
    [
        (OpenAI, Request("stance", b"\xff"), "UTF-8"),
        (OpenAI, Request("stance \ud800", b"x"), "UTF-8"),
        (Anthropic, Request("stance", b"x" * (MOST_INPUT + 1)), "bytes"),
    ],
)
def test_what_cannot_be_sent(make: type[HttpBackend], request_: Request, words: str) -> None:
    reviewer = Reviewer()
    with serving(reviewer):
        answer = backend(make, reviewer.url).ask(request_)
    assert answer.failure is not None
    assert answer.failure.code == "backend_error"
    assert words in answer.failure.message
    assert (answer.sent, answer.end) == (0, "spawn_error")
    assert reviewer.asked == []


@pytest.mark.parametrize(
    ("make", "request_"),
    [
        (OpenAI, Request("stance", b"x", model="m\n")),
        (OpenAI, Request("stance", b"x", effort="extreme")),
        (OpenAI, Request("stance", b"x", speed="fast")),
        (Anthropic, Request("stance", b"x", effort="none")),
        (Anthropic, Request("stance", b"x", speed="faster")),
        (OpenAI, Request("stance", b"x", wall=0.0)),
        (OpenAI, Request("stance", b"x", idle=-1.0)),
    ],
)
def test_what_a_service_does_not_take(make: type[HttpBackend], request_: Request) -> None:
    reviewer = Reviewer()
    with serving(reviewer), pytest.raises(Refused) as refused:
        backend(make, reviewer.url).ask(request_)
    assert refused.value.code == "E_BACKEND_OPTION"
    assert reviewer.asked == []


@pytest.mark.parametrize(
    ("make", "more"),
    [
        (OpenAI, {"speed": "standard"}),
        (OpenAI, {"effort": "none"}),
        (Anthropic, {"effort": "low"}),
        (Anthropic, {"speed": "fast", "effort": "xhigh"}),
    ],
)
def test_what_it_takes(make: type[HttpBackend], more: dict[str, str]) -> None:
    assert ask(make, Reviewer(), **more).text is not None


def test_a_model_is_needed() -> None:
    reviewer = Reviewer()
    with serving(reviewer), pytest.raises(Refused) as refused:
        OpenAI(None, reviewer.url, "SERVICE_KEY", environment=ENVIRONMENT).ask(Request("stance", b"x"))
    assert refused.value.code == "E_BACKEND_OPTION"
    assert reviewer.asked == []
