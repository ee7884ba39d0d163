"""A service that speaks as OpenAI's or Anthropic's does, or misbehaves: a real server in a thread, on loopback.

It checks the request as the real ones would (path, version, key, members of the body) and refuses what they would
refuse, so that a client which sends something else fails here as well. :func:`ask` asks it once.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from troth.backends.http import Anthropic, HttpBackend, OpenAI
from troth.backends.protocol import Answer, Request

KEY = "sk-test-0123456789abcdefghijklmnop"

OPENAI_MEMBERS = {"model", "messages", "stream", "stream_options", "reasoning_effort"}
ANTHROPIC_MEMBERS = {"model", "max_tokens", "system", "messages", "stream", "output_config", "speed"}
HEADERS = {
    "host", "content-type", "content-length", "accept", "accept-encoding", "user-agent", "connection",
    "authorization", "x-api-key", "anthropic-version",
}  # fmt: skip


@dataclass
class Reviewer:
    """What the server does, and what it saw.

    Attributes:
        behaviour: ``answer``, a status as text, or the name of a fault; see :meth:`_Handler.do_POST`.
        pieces: of the message.
        raw: what the body of the answer is made of, where the behaviour is ``raw``.
        ended: the service's word for why it stopped.
        asked: each request: path, headers and body.
    """

    behaviour: str = "answer"
    pieces: tuple[str, ...] = ('{"schema_', 'version": "1.0"}')
    ended: str | None = None
    raw: tuple[bytes, ...] = ()
    key: str | None = KEY
    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    connections: int = 0
    let_go: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, reviewer: Reviewer, host: str) -> None:
        self.reviewer = reviewer
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes away is what several tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.server.reviewer.bad.append(f"GET {self.path}")
        self._whole(404, b"{}")

    def do_POST(self) -> None:
        seen = self.server.reviewer
        seen.connections += 1
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            value = json.loads(body)
        except ValueError:
            value = None
        seen.asked.append({"path": self.path, "headers": headers, "body": value, "size": len(body)})
        seen.bad.extend(f"header {name}" for name in headers if name not in HEADERS)
        anthropic = self.path == "/v1/messages"
        fault = self._anthropic_fault(headers, value) if anthropic else self._openai_fault(headers, value)
        if fault is not None:
            seen.bad.append(fault)
            self._whole(400, json.dumps({"error": {"type": "invalid_request_error", "message": fault}}).encode())
            return
        held = headers.get("x-api-key") if anthropic else headers.get("authorization", "").removeprefix("Bearer ")
        if seen.key is not None and held != seen.key:
            self._error(401, "invalid_api_key", f"Incorrect API key provided: {held}")
            return
        self._behave(seen, anthropic)

    def _openai_fault(self, headers: dict[str, str], value: Any) -> str | None:
        if self.path != "/v1/chat/completions":
            return f"no such path: {self.path}"
        if not isinstance(value, dict) or set(value) - OPENAI_MEMBERS:
            return "members of the body"
        if not isinstance(value.get("model"), str) or value.get("stream") is not True:
            return "model and stream"
        if value.get("stream_options") != {"include_usage": True}:
            return "stream_options"
        messages = value.get("messages")
        if not isinstance(messages, list) or [one.get("role") for one in messages] != ["system", "user"]:
            return "messages"
        return None if all(isinstance(one.get("content"), str) for one in messages) else "content"

    def _anthropic_fault(self, headers: dict[str, str], value: Any) -> str | None:
        if headers.get("anthropic-version") != "2023-06-01" or "authorization" in headers:
            return "headers"
        if not isinstance(value, dict) or set(value) - ANTHROPIC_MEMBERS:
            return "members of the body"
        if not isinstance(value.get("max_tokens"), int) or value.get("stream") is not True:
            return "max_tokens and stream"
        if not isinstance(value.get("system"), str):
            return "system"
        messages = value.get("messages")
        if not isinstance(messages, list) or [one.get("role") for one in messages] != ["user"]:
            return "messages"
        return None

    def _behave(self, seen: Reviewer, anthropic: bool) -> None:
        what = seen.behaviour
        if what.isdigit():
            self._error(int(what), "some_code", "words of the service")
        elif what == "echo_key":
            self._error(400, seen.key or "", f"key {seen.key}")
        elif what == "redirect":
            self.send_response(302)
            self.send_header("Location", f"{seen.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif what == "hang":
            seen.let_go.wait(30)
        elif what == "drip_head":
            for byte in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 4000:
                self.wfile.write(bytes([byte]))
                if seen.let_go.wait(0.05):
                    return
        elif what == "hang_up":
            self.connection.shutdown(socket.SHUT_RDWR)
        elif what == "wrong_type":
            self._whole(200, b'{"choices": []}')
        elif what == "gzip":
            self._head({"Content-Encoding": "gzip"})
            self._chunk(b"\x1f\x8b")
            seen.let_go.wait(30)  # whoever goes on reading waits
        elif what == "big_error":
            self._whole(400, b"x" * 50_000_000)
        elif what == "error_hang":
            self.send_response(401)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"{")
            seen.let_go.wait(30)
        else:
            self._stream(seen, what, anthropic)

    def _stream(self, seen: Reviewer, what: str, anthropic: bool) -> None:
        self._head({})
        if what == "raw":
            for piece in seen.raw:
                self._chunk(piece)
            self.wfile.write(b"0\r\n\r\n")
            return
        if what == "flood":  # 50 MB in one line that never ends
            self._chunk(b"data: ")
            for _ in range(800):
                self._chunk(b"x" * 65_536)
            return
        if what in ("flood_lines", "flood_comments"):  # 50 MB of comments, which are no message
            end = b"\n" if what == "flood_lines" else b"\n\n"
            for _ in range(800):
                self._chunk((b":" + b"x" * 8190 + end) * 8)
            return
        if what == "flood_text":  # 50 MB of message
            pieces: Iterator[str] = iter(["x" * 65_536] * 800)
        else:
            pieces = iter(seen.pieces)
        send = _anthropic if anthropic else _openai
        for event in send(pieces, seen.ended, what):
            self._chunk(event)
            if what == "hang_inside":
                seen.let_go.wait(30)
                return
            if what == "drip" and seen.let_go.wait(0.05):
                return
        if what == "break_off":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, more: dict[str, str]) -> None:
        self.send_response(200)
        headers = {"Content-Type": "text/event-stream; charset=utf-8", "Transfer-Encoding": "chunked",
                   "x-request-id": "req_1", **more}  # fmt: skip
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _error(self, status: int, code: str, message: str) -> None:
        self._whole(status, json.dumps({"error": {"type": code, "code": code, "message": message}}).encode())

    def _whole(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("x-request-id", "req_1")
        self.end_headers()
        self.wfile.write(data)


def _data(value: Any, event: str | None = None) -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()


def _openai(pieces: Iterator[str], ended: str | None, what: str) -> Iterator[bytes]:
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "model-as-resolved"}
    if what == "drip":
        while True:
            yield b": still here\n\n"
    if what == "hostile":
        worst = {"choices": [{"delta": None, "finish_reason": 3}], "usage": {"prompt_tokens": "many"}}
        ill_typed = {"choices": [{"delta": {"content": 7}}]}
        for strange in (5, [], None, {"choices": "x"}, {"choices": [5]}, ill_typed, worst):
            yield _data(strange)
    if what == "error_event":
        yield _data({"error": {"type": "server_error", "code": "overloaded_error", "message": f"key {KEY}"}})
        return
    for piece in pieces:
        yield _data({**base, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        if what == "break_off":
            return
    if what == "broken_json":
        yield b"data: {\n\n"
        return
    if what != "no_end":
        yield _data({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": ended or "stop"}]})
    usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
    yield _data({**base, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _anthropic(pieces: Iterator[str], ended: str | None, what: str) -> Iterator[bytes]:
    if what == "drip":
        while True:
            yield _data({"type": "ping"}, "ping")
    if what == "hostile":
        for strange in (5, [], None, {"type": 3}, {"type": "message_start", "message": 5},
                        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 7}},
                        {"type": "message_delta", "delta": None, "usage": {"output_tokens": "many"}}):  # fmt: skip
            yield _data(strange, "message_delta")
    if what == "error_event":
        error = {"type": "overloaded_error", "message": f"key {KEY}"}
        yield _data({"type": "error", "error": error}, "error")
        return
    message = {
        "id": "m1", "type": "message", "role": "assistant", "model": "model-as-resolved", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 11, "output_tokens": 1},
    }  # fmt: skip
    yield _data({"type": "message_start", "message": message}, "message_start")
    thinking = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}
    yield _data(thinking, "content_block_delta")
    start = {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}
    yield _data(start, "content_block_start")
    for piece in pieces:
        delta = {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": piece}}
        yield _data(delta, "content_block_delta")
        if what == "break_off":
            return
    if what == "broken_json":
        yield b"event: content_block_delta\ndata: {\n\n"
        return
    yield _data({"type": "content_block_stop", "index": 1}, "content_block_stop")
    stop = {"stop_reason": ended or "end_turn", "stop_sequence": None}
    yield _data({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}}, "message_delta")
    if what != "no_end":
        yield _data({"type": "message_stop"}, "message_stop")


@contextmanager
def serving(reviewer: Reviewer, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Reviewer]:
    """Serve while the body runs."""
    server = _Server(reviewer, host)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    reviewer.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield reviewer
    finally:
        reviewer.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


BOTH = pytest.mark.parametrize("make", [OpenAI, Anthropic])
ENVIRONMENT = {"SERVICE_KEY": KEY}


def backend(make: type[HttpBackend], url: str, **more: Any) -> HttpBackend:
    """Return a backend that holds the key."""
    held = {"environment": ENVIRONMENT, **more}
    return make("model-x", url, "SERVICE_KEY", **held)  # type: ignore[arg-type]  # mypy sees the base class


def ask(make: type[HttpBackend], reviewer: Reviewer, *, wall: float = 20, idle: float = 20, **more: Any) -> Answer:
    """Serve, ask once, and return the answer."""
    with serving(reviewer):
        return backend(make, reviewer.url).ask(Request("stance", b"artifact", wall=wall, idle=idle, **more))
