"""A local HTTP endpoint that plays the model: it speaks as the providers' services do and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Model:
    """What the endpoint answers in turn: a text, a status, the call of a tool as (name, input). The last repeats."""

    says: list[str | int | tuple[str, dict[str, Any]]]
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def answer(self, asked: Asked) -> str | int | tuple[str, dict[str, Any]]:
        self.asked.append(asked)
        return self.says[min(len(self.asked), len(self.says)) - 1]


def _messages(said: str | tuple[str, dict[str, Any]], turn: int) -> list[dict[str, Any]]:
    message = {
        "id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "model-1", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 11, "output_tokens": 1},
    }  # fmt: skip
    if isinstance(said, str):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": said}
    else:
        block = {"type": "tool_use", "id": f"tool_{turn}", "name": said[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(said[1])}
    reason = "end_turn" if isinstance(said, str) else "tool_use"
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 7},
        },
        {"type": "message_stop"},
    ]


def _responses(said: str | tuple[str, dict[str, Any]], turn: int) -> list[dict[str, Any]]:
    if isinstance(said, str):
        item: dict[str, Any] = {
            "type": "message", "id": f"m{turn}", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": said, "annotations": []}],
        }  # fmt: skip
    else:
        item = {
            "type": "function_call", "id": f"f{turn}", "call_id": f"c{turn}", "name": said[0],
            "arguments": json.dumps(said[1]),
        }  # fmt: skip
    usage = {
        "input_tokens": 11, "input_tokens_details": None, "output_tokens": 7, "output_tokens_details": None,
        "total_tokens": 18,
    }  # fmt: skip
    return [
        {"type": "response.created", "response": {"id": "resp_1", "model": "model-1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "resp_1", "model": "model-1", "usage": usage}},
    ]


def _completions(said: str | tuple[str, dict[str, Any]], turn: int) -> list[dict[str, Any]]:
    assert isinstance(said, str), "a tool of this dialect is not played"
    chunk = {"id": f"cc{turn}", "object": "chat.completion.chunk", "created": 0, "model": "model-1"}
    return [
        {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", "content": said}, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]


@contextmanager
def playing(*says: str | int | tuple[str, dict[str, Any]]) -> Iterator[Model]:
    """Serve a model on this machine, as streams of events.

    ``/v1/messages``, ``/v1/responses`` and, for texts alone, ``/v1/chat/completions``.
    """
    model = Model(list(says))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._send(426, b"", "text/plain")  # no web socket here: go on with plain requests

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("content-length") or 0))
            path = self.path.partition("?")[0]
            speaks = {"/v1/messages": _messages, "/v1/responses": _responses, "/v1/chat/completions": _completions}.get(
                path
            )
            if speaks is None:
                self._send(404, b"{}", "application/json")
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            said = model.answer(Asked("POST", path, headers, json.loads(text)))
            if isinstance(said, int):
                error = {"type": "error", "error": {"type": "scripted", "message": f"scripted {said}"}}
                self._send(said, json.dumps(error).encode(), "application/json")
                return
            events = speaks(said, len(model.asked))
            if speaks is _completions:
                stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
            else:
                stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
            self._send(200, stream.encode(), "text/event-stream")

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.send_header("request-id", "req_1")
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
