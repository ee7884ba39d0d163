"""One POST to one place, watched: what may leave, what may come back, and for how long (Impasse §9 [D33]).

The official clients write the request and read the answer; everything between them and the network is here, so that
none of their defaults, and nothing of the environment, decides where bytes go. Held here, whatever the clients do:

- one request, a POST, to the address whose key consent was given for; a second one is refused, so nothing is repeated;
- headers made here: the clients' own, and those that variables of the environment add, are dropped, the key of the
  service is added last and never seen by a client;
- plain http only to an address of this machine, judged by where the connection really leads;
- nothing compressed, no redirect followed, no proxy;
- a limit on what is read, kept while it comes in;
- wall and idle time, kept by a second thread: neither a name that does not resolve nor a byte a minute outlasts them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

import httpcore2
import httpx2

from troth.backends.endpoint import endpoint_key

MOST_RECEIVED: Final = 16_000_000
"""Largest answer read, in bytes on the connection. A message of 2,000,000 bytes in pieces takes several times that."""

MOST_ERROR: Final = 65_536
"""Largest body read of an answer that is an error, in bytes."""

MOST_EVENT: Final = 4_000_000
"""Largest event of an answer read, in bytes: one that holds the largest message, its escapes included."""

MOST_LINES: Final = 1000
"""Most lines of one event read; services write two or three."""

EVENT_STREAM: Final = "text/event-stream"

_PIECE: Final = 65_536
_EMPTY_LINE: Final = re.compile(rb"\n\r?\n|\r\r")
_JOIN_SECONDS: Final = 1.0
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,200}\Z")

_T = TypeVar("_T")

Stop = Literal["wall_timeout", "idle_timeout"]


class Stopped(Exception):
    """The call is over for a reason that the :class:`Watch` holds; never seen outside of this room."""


@dataclass
class Watch:
    """What is known of one call while it is under way. The second thread reads it; only numbers and flags change.

    Attributes:
        last: when the last byte came or left, on the clock of the call.
        sent, received: bytes on the connection, below TLS none: what the encryption adds is not counted.
        connected: whether a connection stood, encryption included.
        status: of the answer, once its head has come.
        unfit: why an answer with status 200 cannot be one, in words.
        over: whether more came than is read.
    """

    clock: Callable[[], float]
    last: float = 0.0
    sent: int = 0
    received: int = 0
    most: int = MOST_RECEIVED
    asked: bool = False
    connected: bool = False
    reached: bool = False
    aborted: bool = False
    over: bool = False
    status: int | None = None
    unfit: str | None = None
    request_id: str | None = None
    _sockets: list[socket.socket] = field(default_factory=list)

    def check(self) -> None:
        """Go on only while the call is wanted."""
        if self.aborted:
            raise Stopped

    def took(self, count: int) -> None:
        """Note bytes that came."""
        self.last = self.clock()
        self.received += count
        if self.received > self.most:
            self.over = True
            raise Stopped

    def gave(self, count: int) -> None:
        """Note bytes that left."""
        self.last = self.clock()
        self.sent += count

    def opened(self, stream: httpcore2.NetworkStream) -> None:
        """Note a connection, so that it can be ended from the other thread."""
        found = stream.get_extra_info("socket")
        if isinstance(found, socket.socket):
            self._sockets.append(found)

    def abort(self) -> None:
        """End the call from outside: nothing is sent or read from now on."""
        self.aborted = True
        for found in self._sockets:
            # The plain socket's own method: that of an encrypted one would touch what the other thread is using.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(found, socket.SHUT_RDWR)


class _Stream(httpcore2.NetworkStream):
    """A connection whose every byte is counted and which stops when the watch says so."""

    def __init__(self, inner: httpcore2.NetworkStream, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch
        watch.opened(inner)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._watch.check()
        data = self._inner.read(min(max_bytes, _PIECE), timeout)
        self._watch.check()
        self._watch.took(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            piece = buffer[start : start + _PIECE]
            self._watch.check()
            self._inner.write(piece, timeout)
            self._watch.gave(len(piece))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        self._watch.check()
        secured = _Stream(self._inner.start_tls(ssl_context, server_hostname, timeout), self._watch)
        self._watch.connected = True
        return secured

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Network(httpcore2.NetworkBackend):
    """Opens watched connections; a plain one only when it really ends on this machine."""

    def __init__(self, watch: Watch, *, plain: bool) -> None:
        self._inner = httpcore2.SyncBackend()
        self._watch = watch
        self._plain = plain

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        self._watch.check()
        stream = self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        if self._plain and not _is_here(stream):
            stream.close()
            self._watch.unfit = "the name of a server on this machine leads to another one"
            raise Stopped
        self._watch.reached = True
        self._watch.connected = self._plain
        watched = _Stream(stream, self._watch)
        self._watch.check()
        return watched


def _is_here(stream: httpcore2.NetworkStream) -> bool:
    peer = stream.get_extra_info("server_addr")
    return isinstance(peer, tuple) and ipaddress.ip_address(peer[0]).is_loopback


def _line_ends(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r")


class _Body(httpx2.SyncByteStream):
    """The body of an answer, no event of it longer than is read.

    The clients gather an event before they look at it, one of them by copying all of it for every further line.
    """

    def __init__(self, inner: Any, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch

    def __iter__(self) -> Iterator[bytes]:
        size = lines = 0
        tail = b""
        for piece in self._inner:
            # An empty line, which ends an event, may lie across pieces; what lies before this one is counted already.
            held = tail + piece
            size -= len(tail)
            lines -= _line_ends(tail)
            for number, part in enumerate(_EMPTY_LINE.split(held)):
                if number:
                    size = lines = 0
                size += len(part)
                lines += _line_ends(part)
                if size > MOST_EVENT or lines > MOST_LINES:
                    self._watch.over = True
                    raise Stopped
            tail = held[-2:]
            yield piece

    def close(self) -> None:
        self._inner.close()


class Gate(httpx2.BaseTransport):
    """The one way out: sends what the client wrote, with headers made here, and lets an event stream in.

    Args:
        key: the key of consent; a request to anywhere else is refused.
        headers: those that carry the service's key, and its version.
        watch: of this call.
        tls: what decides which servers are believed; by default the system's certificates, whatever the environment
            says.
    """

    def __init__(self, key: str, headers: Mapping[str, str], watch: Watch, tls: ssl.SSLContext | None = None) -> None:
        self._key = key
        self._headers = headers
        self._watch = watch
        plain = key.startswith("http://")
        self._pool = httpcore2.ConnectionPool(
            ssl_context=None if plain else tls or httpx2.create_ssl_context(trust_env=False),
            max_connections=1,
            max_keepalive_connections=0,
            retries=0,
            network_backend=_Network(watch, plain=plain),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the one request."""
        watch = self._watch
        if watch.asked or request.method != "POST" or endpoint_key(str(request.url)) != self._key:
            raise Stopped
        watch.asked = True
        content = request.read()
        headers = {
            "Host": request.url.netloc.decode("ascii"),
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            "Accept": EVENT_STREAM,
            "Accept-Encoding": "identity",
            "User-Agent": "troth",
            "Connection": "close",
            **self._headers,
        }
        answer = self._pool.handle_request(
            httpcore2.Request(
                "POST",
                httpcore2.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=list(headers.items()),
                content=content,
                extensions={"timeout": request.extensions.get("timeout", {})},
            )
        )
        watch.status = answer.status
        response = httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer.stream, watch))
        told = response.headers.get("request-id") or response.headers.get("x-request-id") or ""
        watch.request_id = told if _ID.match(told) else None
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if encoding not in ("", "identity"):
            watch.unfit = "the answer is compressed, which was not asked for"
        elif answer.status == 200 and kind != EVENT_STREAM:
            watch.unfit = f"the answer is no {EVENT_STREAM}"
        if watch.unfit is not None:
            response.close()
            raise Stopped
        if answer.status != 200:
            watch.most = min(watch.most, watch.received + MOST_ERROR)
        return response

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()


def watched(work: Callable[[], _T], watch: Watch, wall: float, idle: float) -> _T | Stop:
    """Run ``work`` in a thread of its own until it ends or a limit is reached, and return what it gave, or which limit.

    A thread that cannot be stopped (a name that the system goes on resolving) is left behind; it can send nothing.

    Args:
        work: uses the network through ``watch`` alone.
        watch: of this call.
        wall: longest the call may take, in seconds.
        idle: longest it may be silent, in seconds: no byte sent and none received.

    Raises:
        Exception: what ``work`` raised.
    """
    if wall <= 0 or idle <= 0:
        return "wall_timeout" if wall <= 0 else "idle_timeout"
    done = threading.Event()
    given: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            given.append(work())
        except BaseException as fault:  # carried over to the thread that waits
            raised.append(fault)
        finally:
            done.set()

    start = watch.last = watch.clock()
    thread = threading.Thread(target=run, name="troth-reviewer", daemon=True)
    thread.start()
    stop: Stop | None = None
    try:
        while not done.is_set() and stop is None:
            now = watch.clock()
            for_wall, for_idle = start + wall - now, watch.last + idle - now
            if for_wall <= 0:
                stop = "wall_timeout"
            elif for_idle <= 0:
                stop = "idle_timeout"
            else:
                done.wait(min(for_wall, for_idle))
    finally:
        # Also where the person who waits interrupts.
        if not done.is_set():
            watch.abort()
    if stop is not None:
        thread.join(_JOIN_SECONDS)
        return stop
    if raised:
        raise raised[0]
    return given[0]
