"""Reviewers behind HTTP: OpenAI-compatible endpoints, Anthropic's, and a server on this machine (Impasse §9 [D33]).

One POST a call, through :mod:`troth.backends.wire`. Stance and schema are the system text; what is to be judged stands
in the user's message between two lines with a number that was drawn for this call, so that nothing inside it can end
it. No tools are offered. The answer is asked for as a stream, so that a silent service can be told from one at work,
and it counts only when the service said that it is complete.

What a service says about an error is not repeated, its short code aside: it could hold the key that was sent.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple

from troth.backends.asking import code_of_status, failure_of
from troth.backends.commandline import EFFORTS, SPEEDS, check_options, unsendable
from troth.backends.endpoint import parse_endpoint
from troth.backends.independence import provider_of
from troth.backends.instruction import Enclosed, draw_nonce, enclose
from troth.backends.protocol import MOST_MESSAGE, Answer, Failure, Kind, ModelBasis, Request
from troth.core.errors import Refused

OPENAI_URL: Final = "https://api.openai.com/v1"
ANTHROPIC_URL: Final = "https://api.anthropic.com"

ANTHROPIC_TOKENS: Final = 32_000
"""Longest answer asked of Anthropic, in tokens; its interface wants a number, and 32,000 hold a long review."""

_ANTHROPIC_VERSION: Final = "2023-06-01"
_MOST_NAME: Final = 200
_KEY: Final = re.compile(r"[!-~]{1,4096}\Z")
_CODE: Final = re.compile(r"[a-z][a-z0-9_.]{1,59}\Z")

_EVENT_CODES: Final[Mapping[str, str]] = {
    "authentication_error": "auth_error",
    "permission_error": "auth_error",
    "invalid_api_key": "auth_error",
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "overloaded_error": "service_unavailable",
    "api_error": "service_unavailable",
    "server_error": "service_unavailable",
}
"""Kinds of error that a service reports inside a stream, and the failure each is; any other is ``backend_error``."""


class _Read(NamedTuple):
    """What a stream held. ``ended`` is the service's own word for why it stopped, ``None`` where it gave none."""

    text: bytes
    ended: str | None
    model: str | None
    tokens: int | None


class _TooLong(Exception):
    """The message is longer than any that is taken."""


class HttpBackend(ABC):
    """A reviewer behind one HTTP address.

    Args:
        model: asked for where a request names none.
        url: where the service is; a path is kept, and ``/v1`` is taken where an OpenAI-compatible one has none.
        key_variable: the variable of the environment that holds the service's key; ``None``: none is sent.
        environment: where the key is looked up.
        providers: further providers by suffix of the host (:func:`troth.backends.independence.provider_of`).
        tls: which servers are believed; by default the system's certificates.
        clock: seconds that only go forward.
        nonce: draws the number of the delimiters.

    Raises:
        Refused: ``E_ENDPOINT``.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    resources: ClassVar[str]
    complete: ClassVar[frozenset[str]]
    cut: ClassVar[frozenset[str]]
    efforts: ClassVar[tuple[str, ...]] = EFFORTS
    speeds: ClassVar[tuple[str, ...]] = SPEEDS
    kind: Kind = "http"
    sandboxed = False

    def __init__(
        self,
        model: str | None,
        url: str,
        key_variable: str | None,
        *,
        environment: Mapping[str, str] | None = None,
        providers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
        nonce: Callable[[], str] = draw_nonce,
    ) -> None:
        where = parse_endpoint(url)
        if "?" in url or "#" in url:
            raise Refused("E_ENDPOINT", "the address of a service has no query and no fragment")
        self.model = model
        self.endpoint = where.key
        self.provider = provider_of(where.key, providers or {})
        self._path = url.split("://", 1)[1].partition("/")[2].strip("/")
        self._key_variable = key_variable
        self._environment = os.environ if environment is None else environment
        self._tls = tls
        self._clock = clock
        self._nonce = nonce

    def usable(self) -> str | None:
        """Return ``None``, or a sentence that says what is missing."""
        for package in (self.package, "httpx2"):  # older clients use another transport
            if importlib.util.find_spec(package) is None:
                return f"the package {package} is missing: pip install 'troth[models]'"
        if self._key_variable is not None and self._secret() is None:
            return f"the variable {self._key_variable} holds no key"
        return None

    def ask(self, request: Request) -> Answer:
        """Ask once; whatever the service does ends in the answer.

        Raises:
            Refused: ``E_BACKEND_OPTION`` for a request without a model, or with what the service does not take.
        """
        model = request.model or self.model
        check_options(self.name, replace(request, model=model), self.efforts, self.speeds)
        if model is None:
            raise Refused("E_BACKEND_OPTION", f"{self.name} needs the name of a model", remedy="Name one with --model.")
        blank = Answer(
            None, failure_of("backend_error", "nothing was asked"), "spawn_error", model,
            "requested", 0, 0, None, 0.0, 1, False, None,
        )  # fmt: skip
        missing = self.usable()
        if missing is not None:
            code = "auth_error" if self._key_variable is not None and self._secret() is None else "backend_error"
            return replace(blank, failure=failure_of(code, missing))
        unsent = unsendable(request)
        if unsent is not None:
            return replace(blank, failure=unsent)
        from troth.backends.wire import Watch, watched

        text = enclose(request.instruction, request.payload, self._nonce)
        watch = Watch(self._clock)
        importlib.import_module(self.resources)  # before the clock runs: loading a client takes a while
        start = self._clock()
        read: _Read | None = None
        fault: BaseException | None = None
        stop = None
        try:
            found = watched(lambda: self._call(request, model, text, watch), watch, request.wall, request.idle)
            if isinstance(found, str):
                stop = found
            else:
                read = found
        except Exception as raised:  # what a client raises is classified by what is known, never by its words
            fault = raised
        named, basis = _named(read, model)
        failure = self._failed(watch, stop, read, fault, request)
        return Answer(
            text=read.text if read is not None and failure is None else None,
            failure=failure,
            end="completed" if stop is None or failure is None or failure.code != "timeout" else stop,
            model=named,
            model_basis=basis,
            sent=watch.sent,
            received=watch.received,
            tokens=read.tokens if read is not None else None,
            seconds=max(0.0, self._clock() - start),
            attempts=1,
            any_byte=watch.received > 0,
            request_id=watch.request_id,
        )

    # What differs from service to service --------------------------------------------------------------------------

    @abstractmethod
    def _headers(self, secret: str | None) -> dict[str, str]:
        """Return the headers that carry the key and the version."""

    @abstractmethod
    def _settings(self, request: Request) -> dict[str, Any]:
        """Return effort and speed in the service's words."""

    @abstractmethod
    def _stream(self, client: Any, request: Request, model: str, text: Enclosed) -> _Read:
        """Send the request and read the stream."""

    @abstractmethod
    def _client(self, transport: Any, request: Request) -> Any:
        """Return the official client over a transport of ours, its own repeats, redirects and proxies off."""

    # What does not -------------------------------------------------------------------------------------------------

    def _secret(self) -> str | None:
        if self._key_variable is None:
            return None
        held = self._environment.get(self._key_variable, "")
        return held if _KEY.match(held) else None

    def _base(self) -> str:
        return f"{self.endpoint}/{self._path}" if self._path else self.endpoint

    def _call(self, request: Request, model: str, text: Enclosed, watch: Any) -> _Read:
        import httpx2

        from troth.backends.wire import Gate

        gate = Gate(self.endpoint, self._headers(self._secret()), watch, self._tls)
        with httpx2.Client(
            transport=gate, trust_env=False, follow_redirects=False, timeout=httpx2.Timeout(request.wall)
        ) as connection:
            return self._stream(self._client(connection, request), request, model, text)

    def _failed(
        self, watch: Any, stop: str | None, read: _Read | None, fault: BaseException | None, request: Request
    ) -> Failure | None:
        """Return why there is no answer, judged by status, by the service's own events and by what was counted."""
        about = {"backend_request_id": watch.request_id}
        if watch.status is not None and watch.status != 200:
            code = code_of_status(watch.status)
            token = self._told(fault)
            return failure_of(code, f"the service answered with HTTP status {watch.status}{token}", **about)
        if stop is not None:
            limit = request.wall if stop == "wall_timeout" else request.idle
            came = "something had come" if watch.received else "nothing had come"
            what = "no end" if stop == "wall_timeout" else "silence"
            return failure_of(
                "timeout", f"{what} within {limit:g} seconds; {came}, and nothing of it can be used", **about
            )
        if watch.over or isinstance(fault, _TooLong):
            return failure_of(
                "invalid_response", "the answer is longer than any that is taken", oversized=True, **about
            )
        if watch.unfit is not None:
            code = "invalid_response" if watch.status == 200 else "backend_error"
            return failure_of(code, watch.unfit, **about)
        if fault is not None:
            return self._by_fault(watch, fault, about)
        assert read is not None
        if read.ended in self.cut:
            return failure_of("invalid_response", "the answer was cut off at the service's limit of length", **about)
        if read.ended is None:
            return failure_of("invalid_response", "the answer ended before it was complete", **about)
        if read.ended not in self.complete:
            word = read.ended if _CODE.match(read.ended) else "something unknown"
            return failure_of("invalid_response", f"the service ended the answer for another reason: {word}", **about)
        if not read.text:
            return failure_of("invalid_response", "the answer is empty", **about)
        return None

    def _by_fault(self, watch: Any, fault: BaseException, about: dict[str, Any]) -> Failure:
        kind = _event_kind(fault)
        if watch.status == 200:
            if kind is not None:
                code = _EVENT_CODES.get(kind, "backend_error")
                return failure_of(code, f"the service reported an error{self._told(fault)}", **about)
            return failure_of("invalid_response", "the answer broke off or is no stream of JSON events", **about)
        if not watch.reached:
            return failure_of("service_unavailable", "the service cannot be reached; nothing was sent", **about)
        if not watch.connected:
            return failure_of(
                "backend_error", "no encrypted connection could be made, or its certificate is not valid", **about
            )
        return failure_of("backend_error", "the connection broke before an answer came", **about)

    def _told(self, fault: BaseException | None) -> str:
        """Return the service's short code of an error, when it is one and no part of the key."""
        for word in _error_words(fault):
            if _CODE.match(word) and word not in (self._secret() or ""):
                return f" ({word})"
        return ""


class OpenAI(HttpBackend):
    """Any OpenAI-compatible endpoint, by the official client."""

    name = "openai"
    package = "openai"
    resources = "openai.resources.chat"
    complete = frozenset({"stop"})
    cut = frozenset({"length"})
    speeds = ("standard",)

    def __init__(
        self, model: str | None, url: str = OPENAI_URL, key_variable: str | None = "OPENAI_API_KEY", **rest: Any
    ) -> None:
        super().__init__(model, url, key_variable, **rest)
        self._path = self._path or "v1"

    def _headers(self, secret: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {secret}"} if secret is not None else {}

    def _settings(self, request: Request) -> dict[str, Any]:
        return {"reasoning_effort": request.effort} if request.effort is not None else {}

    def _client(self, transport: Any, request: Request) -> Any:
        from openai import OpenAI as Client

        # The key is the gate's affair; the client holds a word in its place, which never leaves.
        return Client(
            api_key="unused", organization="", project="", base_url=self._base(), max_retries=0,
            timeout=request.wall, http_client=transport,
        )  # fmt: skip

    def _stream(self, client: Any, request: Request, model: str, text: Enclosed) -> _Read:
        stream = client.chat.completions.create(
            model=model,
            messages=[
                {"role": "system", "content": text.instruction},
                {"role": "user", "content": text.payload.decode()},
            ],
            stream=True,
            stream_options={"include_usage": True},
            **self._settings(request),
        )
        message = _Message()
        ended = named = tokens = None
        with stream:
            for event in stream:
                named = named or _name(getattr(event, "model", None))
                tokens = _count(getattr(event, "usage", None), "prompt_tokens", "completion_tokens", before=tokens)
                choices = getattr(event, "choices", None)
                if not isinstance(choices, list) or not choices:
                    continue
                message.add(getattr(getattr(choices[0], "delta", None), "content", None))
                ended = _word(getattr(choices[0], "finish_reason", None)) or ended
        return _Read(message.done(), ended, named, tokens)


class Local(OpenAI):
    """A server on this machine (Ollama, vLLM, llama.cpp and others), which speaks as OpenAI's does.

    Raises:
        Refused: ``E_ENDPOINT`` for an address that is not of this machine.
    """

    name = "local"

    def __init__(self, model: str | None, url: str, key_variable: str | None = None, **rest: Any) -> None:
        super().__init__(model, url, key_variable, **rest)
        if not parse_endpoint(url).loopback:
            raise Refused(
                "E_ENDPOINT",
                "a local reviewer is reached at an address of this machine",
                remedy="Take localhost, 127.0.0.1 or [::1], or name it as openai:MODEL@URL.",
            )


class Anthropic(HttpBackend):
    """Anthropic's endpoint, by the official client."""

    name = "anthropic"
    package = "anthropic"
    resources = "anthropic.resources.messages"
    complete = frozenset({"end_turn", "stop_sequence"})
    cut = frozenset({"max_tokens", "model_context_window_exceeded"})
    efforts = EFFORTS[1:]

    def __init__(
        self, model: str | None, url: str = ANTHROPIC_URL, key_variable: str | None = "ANTHROPIC_API_KEY", **rest: Any
    ) -> None:
        super().__init__(model, url, key_variable, **rest)

    def _headers(self, secret: str | None) -> dict[str, str]:
        own = {"x-api-key": secret} if secret is not None else {}
        return {**own, "anthropic-version": _ANTHROPIC_VERSION}

    def _settings(self, request: Request) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        if request.effort is not None:
            settings["output_config"] = {"effort": request.effort}
        if request.speed is not None:
            settings["speed"] = request.speed
        return settings

    def _client(self, transport: Any, request: Request) -> Any:
        from anthropic import Anthropic as Client

        return Client(
            api_key="unused", webhook_key="", base_url=self._base(), max_retries=0, timeout=request.wall,
            open_telemetry=False, http_client=transport,
        )  # fmt: skip

    def _stream(self, client: Any, request: Request, model: str, text: Enclosed) -> _Read:
        stream = client.messages.create(
            model=model,
            max_tokens=ANTHROPIC_TOKENS,
            system=text.instruction,
            messages=[{"role": "user", "content": text.payload.decode()}],
            stream=True,
            **self._settings(request),
        )
        message = _Message()
        ended = named = None
        whole = False
        asked = written = None
        with stream:
            for event in stream:
                match getattr(event, "type", None):
                    case "message_start":
                        start = getattr(event, "message", None)
                        named = _name(getattr(start, "model", None))
                        asked = _count(getattr(start, "usage", None), "input_tokens", before=asked)
                    case "content_block_start":
                        block = getattr(event, "content_block", None)
                        if getattr(block, "type", None) == "text":
                            message.add(getattr(block, "text", None))
                    case "content_block_delta":
                        delta = getattr(event, "delta", None)
                        if getattr(delta, "type", None) == "text_delta":
                            message.add(getattr(delta, "text", None))
                    case "message_delta":
                        ended = _word(getattr(getattr(event, "delta", None), "stop_reason", None)) or ended
                        written = _count(getattr(event, "usage", None), "output_tokens", before=written)
                    case "message_stop":
                        whole = True
        tokens = None if written is None else written + (asked or 0)
        return _Read(message.done(), ended if whole else None, named, tokens)


class _Message:
    """The message as it comes in, in bytes, never longer than is taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, piece: object) -> None:
        if not isinstance(piece, str) or not piece:
            return
        # Half a surrogate pair is no text; it is kept as bytes that no strict reader takes.
        data = piece.encode("utf-8", "surrogatepass")
        self._size += len(data)
        if self._size > MOST_MESSAGE:
            raise _TooLong
        self._parts.append(data)

    def done(self) -> bytes:
        return b"".join(self._parts)


def _error_words(fault: BaseException | None) -> list[str]:
    """Return the words by which a service classifies its error: ``code`` and ``type``, from the error's own object."""
    body = getattr(fault, "body", None)
    inner = body.get("error") if isinstance(body, dict) else None
    found = inner if isinstance(inner, dict) else body
    if not isinstance(found, dict):
        return []
    return [word for word in (found.get("code"), found.get("type")) if isinstance(word, str)]


def _event_kind(fault: BaseException) -> str | None:
    """Return the kind of an error that came as an event of the stream, ``None`` for any other fault."""
    words = _error_words(fault)
    known = [word for word in words if word in _EVENT_CODES]
    if known or words:
        return (known or words)[0]
    return "" if isinstance(getattr(fault, "body", None), dict) else None


def _named(read: _Read | None, requested: str) -> tuple[str, ModelBasis]:
    return (read.model, "resolved") if read is not None and read.model else (requested, "requested")


def _name(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _MOST_NAME and value.isprintable() else None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _MOST_NAME else None


def _count(usage: object, *names: str, before: int | None) -> int | None:
    """Return the sum of the counts that a service reports, ``before`` where it reports none or none that can be."""
    found = [getattr(usage, name, None) for name in names]
    counts = [count for count in found if isinstance(count, int) and not isinstance(count, bool) and count >= 0]
    return sum(counts) if counts else before
