"""Readers of what a reviewer's program or server sends, and of the files that say which of them may be asked."""

from __future__ import annotations

import json
import unittest.mock
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from fuzz.readers.common import Held, asserted
from troth.backends.protocol import Request


def _extracted(data: bytes) -> Answer:
    from troth.backends.extraction import extract

    found = extract(data)
    return None if isinstance(found, dict) else found.code


def _grants(data: bytes) -> Answer:
    from troth.backends.consent import parse_grants

    return None if parse_grants(data) else "none"


def _endpoint(data: bytes) -> None:
    from troth.backends.endpoint import parse_endpoint

    found = parse_endpoint(data.decode("utf-8", "surrogateescape"))
    asserted(parse_endpoint(found.key) == found, "a key of consent leads elsewhere than the address it is of")


# --- command lines ---


def _account(answer: Any) -> Answer:
    """Hold what is told of a call against what may be told, as `tests/backends/test_answers_fuzzed.py` does."""
    from troth.review.shapes import FAILURE_CODES

    asserted((answer.text is None) is (answer.failure is not None), "neither a text nor a failure, or both")
    asserted(answer.tokens is None or 0 <= answer.tokens < 1 << 43, "no count of tokens")
    asserted(answer.model is None or answer.model.isprintable(), "the name of a model that cannot be shown")
    asserted(answer.request_id is None or answer.request_id.isprintable(), "an id that cannot be shown")
    if answer.failure is None:
        return None
    failure = answer.failure
    asserted(failure.retryable is FAILURE_CODES[failure.code] or failure.oversized, "another answer to a retry")
    asserted(failure.message.isprintable(), "a message that cannot be shown")
    return str(failure.code)


def _claude(data: bytes) -> Answer:
    from troth.backends import claude
    from troth.backends.supervise import Supervised

    done = Supervised("completed", exit=0, stdout=data, sent=9, received=len(data))
    return _account(claude._read(Request("judge", b"artifact"), done, 5))


def _codex(data: bytes) -> Answer:
    """The events, and after an empty line of their own the final message's file."""
    from troth.backends import codex
    from troth.backends.supervise import Supervised

    events, _, message = data.partition(b"\n\n")
    done = Supervised("completed", exit=0, stdout=events, sent=9, received=len(data))
    return _account(codex._read(Request("judge", b"artifact"), done, message))


def _words(data: bytes) -> Answer:
    """What a program that failed said last, whatever it was."""
    from troth.backends.commandline import last_words
    from troth.backends.supervise import Supervised

    told = last_words(Supervised("completed", exit=1, stderr=data, received=len(data)))
    asserted(told.isprintable() and len(told) < 600, "last words that cannot be shown")
    return None if ": " in told else "silent"


def _route(module: str) -> Callable[[bytes], Answer]:
    def entry(data: bytes) -> Answer:
        from importlib import import_module

        why = import_module(module)._route_in(Held(data))
        return None if why is None else "unreadable" if "cannot be read" in why else "elsewhere"

    return entry


# --- servers ---


def _events(data: bytes) -> Answer:
    """The bound on one event of a stream: the same whatever the pieces are, and no byte is changed."""
    from troth.backends import wire

    def through(pieces: Sequence[bytes]) -> bytes | None:
        watch = wire.Watch(lambda: 0.0)
        try:
            return b"".join(wire._Body(iter(pieces), watch))
        except wire.Stopped:
            asserted(watch.over, "stopped without a word")
            return None

    marks = [0, *range(1, 9), *range(13, len(data), 997), len(data)]
    whole = through([data])
    small = through([data[start:end] for start, end in pairwise(sorted({min(one, len(data)) for one in marks}))])
    asserted(whole is None or whole == data, "bytes of an answer were changed")
    asserted(small == whole, "pieces give another answer than the whole")
    return None if whole is not None else "over"


class _Plain:
    """What is to be read of a service's answer to a request over plain HTTP, as the network gives it."""

    def __init__(self, data: bytes) -> None:
        self._pieces = [data[at : at + 500] for at in range(0, len(data), 500)]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        pass

    def close(self) -> None:
        pass

    def get_extra_info(self, info: str) -> Any:
        return ("127.0.0.1", 1) if info == "server_addr" else None


class _Network:
    """A network on which one answer lies ready; nothing leaves."""

    def __init__(self) -> None:
        self.data = b""

    def connect_tcp(self, *_: Any, **__: Any) -> _Plain:
        return _Plain(self.data)


def _http(name: str) -> Callable[[bytes], Answer]:
    """A whole answer of a service, head and stream, through our gate and the official client."""

    @cache
    def backend() -> tuple[Any, _Network]:
        import httpx2

        from troth.backends import http, wire

        class Switch(httpx2.BaseTransport):
            """The transport of a client that is kept: making one takes longer than reading an answer."""

            gate: httpx2.BaseTransport

            def handle_request(self, request: httpx2.Request) -> httpx2.Response:
                return self.gate.handle_request(request)

        made = getattr(http, name)("model-x", "http://127.0.0.1:1", "KEY", environment={"KEY": _SECRET})
        switch, network = Switch(), _Network()
        kept = httpx2.Client(transport=switch, trust_env=False, follow_redirects=False)
        client = made._client(kept, Request("stance", b"artifact"))

        def call(request: Request, model: str, text: Any, watch: Any) -> Any:
            with unittest.mock.patch("httpcore2.SyncBackend", return_value=network):
                switch.gate = wire.Gate(made.endpoint, made._headers(_SECRET), watch)
            return made._stream(client, request, model, text)

        made._call = call
        # No thread of its own: the limits of time are another subject, and the tracer sees only this one.
        wire.watched = lambda work, *_: work()
        return made, network

    def entry(data: bytes) -> Answer:
        made, network = backend()
        network.data = data
        answer = made.ask(Request("stance", b"artifact", wall=20, idle=20))
        asserted(answer.failure is None or "sk-0123" not in answer.failure.message, "a key was repeated")
        return _account(answer)

    return entry


# --- files ---


def _settings(data: bytes) -> None:
    from troth.airlock import reviewers

    with (
        unittest.mock.patch.object(reviewers, "read_regular", return_value=data),
        unittest.mock.patch.object(reviewers, "config_folder", return_value=Path("/")),
        unittest.mock.patch.object(reviewers, "SETTINGS", "."),
    ):
        reviewers.settings()


def _metrics(data: bytes) -> Answer:
    from troth.backends.metrics import parse_rows, timings

    rows = parse_rows(data)
    again = parse_rows(b"".join(json.dumps(one).encode() + b"\n" for one in rows))
    asserted(again == rows, "rows do not come back")
    return None if list(timings(rows)) else "no_timings"


def _script(data: bytes) -> None:
    from troth.backends.scripted import Scripted

    path: Any = Held(data)
    script = Scripted(path, sleep=lambda _: None)
    script.ask(Request("judge", b"artifact F001", wall=5, idle=5))


_SECRET: Final = "sk-0123456789abcdef"  # noqa: S105 - of nobody

# --- seeds ---


def _envelope(**more: Any) -> dict[str, Any]:
    from review.documents import document

    usage = {"input_tokens": 1, "output_tokens": 2}
    return {
        "type": "result", "subtype": "success", "is_error": False, "api_error_status": None, "session_id": "S-1",
        "result": json.dumps(document("response")), "stop_reason": "end_turn", "usage": usage,
        "modelUsage": {"m-1": {}},
        **more,
    }  # fmt: skip


def _claude_seeds() -> list[bytes]:
    failed = {"is_error": True, "api_error_status": 529, "result": "overloaded"}
    return seeds.dumps([_envelope(result="{}"), _envelope(), _envelope(**failed), _envelope(subtype="error_max_turns")])


def _codex_seeds() -> list[bytes]:
    events = [
        {"type": "thread.started", "thread_id": "T-1"}, {"type": "turn.started"},
        {"type": "item.completed", "item": {"type": "error", "message": "a notice"}},
        {"type": "turn.completed", "usage": {"input_tokens": 11, "output_tokens": 7}},
    ]  # fmt: skip
    failed = {"type": "turn.failed", "error": {"message": "unexpected status 503 Service Unavailable"}}
    return [
        b"\n".join(json.dumps(one).encode() for one in told) + b'\n\n{"schema_version": "1.0"}'
        for told in (events, [*events, failed], [failed])
    ]


def _answers(anthropic: bool) -> list[bytes]:
    """Return answers of the tests' own server, as they go over the wire."""
    from support import reviewer_server

    made = reviewer_server._anthropic if anthropic else reviewer_server._openai
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nrequest-id: req_1\r\nConnection: close\r\n"
    streams = [
        (what, ended, b"".join(made(iter(('{"schema_', 'version": "1.0"}')), ended, what)))
        for what, ended in (
            ("answer", None), ("answer", "length"), ("hostile", None), ("error_event", None), ("break_off", None),
            ("no_end", None),
        )
    ]  # fmt: skip
    whole = streams[0][2]
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in whole.split(b"\n\n") if part) + b"0\r\n\r\n"
    error = b'{"error": {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "slow down"}}'
    return [
        *(head + b"\r\n" + body for _, _, body in streams),
        head + b"Content-Length: %d\r\n\r\n" % len(whole) + whole,
        head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked,
        b"HTTP/1.1 429 Too Many\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(error) + error,
    ]


def _stream_seeds() -> list[bytes]:
    bodies = [answer.partition(b"\r\n\r\n")[2] for answer in _answers(False)[:4]]
    return [*bodies, b"data: x\n" * 990 + b"\n" + bodies[0], b"data: y\r\n" * 499 + b"\r\n\r\n" + b"data: z\r" * 995]


_GRANTS: Final = (b'{"grants": [{"key": "https://api.example.com:8443", "notice": 1, "at": "2026-03-01T10:00:00Z"}]}',)
_ENDPOINTS: Final = (
    b"https://api.example.com/v1",
    b"http://127.0.0.1:8080/v1/",
    b"http://[::1]:80",
    b"https://x.example:443",
)
_LAST_WORDS: Final = (
    b"warning: x\nError: no login\n\x1b[31mhint: log in\x1b[0m\n",
    b"\n",
    b"error: 401 of it",
)
_CLAUDE_SETTINGS: Final = (
    b'{"model": "x", "env": {"ANTHROPIC_BASE_URL": "https://api.anthropic.com/", "CLAUDE_CODE_USE_BEDROCK": "0"}}',
    b'{"env": {"ANTHROPIC_BASE_URL": "https://elsewhere.example"}}', b"{}",
)  # fmt: skip
_CODEX_SETTINGS: Final = (
    b'model_provider = "openai"\nopenai_base_url = "https://api.openai.com/v1"\n[mcp_servers.x]\ncommand = "y"\n',
    b'chatgpt_base_url = "https://elsewhere.example"\n', b'model_provider = "x"\n',
)  # fmt: skip
_SETTINGS: Final = (
    b'[providers]\n"models.example.com" = "example"\n[metrics]\nenabled = true\n', b"[metrics]\nenabled = false\n",
)  # fmt: skip
_ROW: Final = {
    "at": "2026-03-01T10:00:00Z", "backend": "codex", "endpoint": "https://api.openai.com", "model": "m",
    "effort": "low",
    "payload_bytes": 900, "payload_sha256": "0" * 64, "seconds": 12.5, "wall": 600, "idle": 60.0, "end": "completed",
    "sent": 1000, "received": 90, "tokens": 20, "attempts": 1, "any_byte": True, "rebuttal": False,
}  # fmt: skip
_SCRIPTS: Final = (
    b'{"name": "demo", "model": "scripted-1", "answers": [{"to": "review", "call": 2, "failure": "timeout"}, '
    b'{"contains": "F001", "json": {"finding_id": "F001", "n": [1.5, null]}, "tokens": 3}]}',
    b'{"answers": [{"finding": "F001", "text": "x", "delay": 0.5, "request_id": "r"}, {"end": "wall_timeout"}, '
    b'{"flood": 5}]}',
)  # fmt: skip
_HTTP: Final = ("troth.backends.http", "troth.backends.wire")
_STREAM: Final = (
    b"data: ",
    b"\n\n",
    b"\r\n",
    b"\r\r",
    b"[DONE]",
    b"event: error\n",
    b"HTTP/1.1 ",
    b"Transfer-Encoding",
)

READERS: Final = (
    Reader("review/answer", _extracted,
           lambda: [b"Here:\n```json\n" + one + b"\n```" for one in seeds.reviews("response")()],
           ("troth.backends.extraction",)),
    Reader("backends/claude", _claude, _claude_seeds, ("troth.backends.claude", "troth.backends.commandline")),
    Reader("backends/codex", _codex, _codex_seeds, ("troth.backends.codex", "troth.backends.commandline")),
    Reader("backends/last-words", _words, lambda: _LAST_WORDS, ("troth.backends.commandline", "troth.review.formats")),
    Reader("backends/event-stream", _events, _stream_seeds, ("troth.backends.wire",), _STREAM),
    Reader("backends/openai", _http("OpenAI"), lambda: _answers(False), _HTTP, _STREAM, few=14),
    Reader("backends/anthropic", _http("Anthropic"), lambda: _answers(True), _HTTP, _STREAM, few=14),
    Reader("backends/claude-settings", _route("troth.backends.claude"), lambda: _CLAUDE_SETTINGS,
           ("troth.backends.claude",)),
    Reader("backends/codex-settings", _route("troth.backends.codex"), lambda: _CODEX_SETTINGS,
           ("troth.backends.codex",)),
    Reader("backends/grants", _grants, lambda: _GRANTS, ("troth.backends.consent",)),
    Reader("backends/endpoint", _endpoint, lambda: _ENDPOINTS, ("troth.backends.endpoint",)),
    Reader("backends/settings", _settings, lambda: _SETTINGS,
           ("troth.airlock.reviewers", "troth.backends.independence")),
    Reader("backends/metrics", _metrics,
           lambda: [b"\n".join(seeds.dumps([_ROW] * 1)) * 2, json.dumps({**_ROW, "end": "wall_timeout"}).encode()],
           ("troth.backends.metrics",)),
    Reader("backends/script", _script, lambda: _SCRIPTS, ("troth.backends.scripted",)),
)  # fmt: skip
