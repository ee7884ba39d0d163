"""A go-between for one PostgreSQL server that breaks connections at chosen messages of the protocol."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Fault(NamedTuple):
    """What to do at one message from the client.

    ``how``: ``drop`` (it never arrives), ``half`` (a part of it arrives), ``lose`` (it arrives and ``answer`` bytes of
    what comes back do), ``late`` (the client is cut off, and the server gets it ``seconds`` later), ``orphan`` (the
    client is cut off, and the server learns of it ``seconds`` later).
    """

    how: str
    answer: int = 0
    seconds: float = 0.0


class Proxy:
    """Listens on a unix socket in ``folder`` and passes everything on to the server's.

    ``fault`` is asked at each message of a client (type, bytes) until it names one; later messages pass. ``seen``
    lists the messages that came by.
    """

    def __init__(self, folder: Path, server: Path, port: int = 5432) -> None:
        self.folder = folder
        self.fault: Callable[[bytes, bytes], Fault | None] | None = None
        self.seen: list[bytes] = []
        self._server = str(server / f".s.PGSQL.{port}")
        self._own = folder / f".s.PGSQL.{port}"
        self._open: list[socket.socket] = []
        self.listen()

    def listen(self) -> None:
        """Take connections."""
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self._own))
        self._listening.listen(64)
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def refuse(self) -> None:
        """Take no connections any more, as if nobody were there."""
        self._own.unlink()
        _cut(self._listening)

    def close(self) -> None:
        """Cut everything."""
        for one in (*self._open, self._listening):
            _cut(one)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            try:
                upstream.connect(self._server)
            except OSError:
                _cut(client)
                continue
            self._open += [client, upstream]
            allowance: list[int] = []  # bytes that may still come back, once that is limited
            threading.Thread(target=self._back, args=(upstream, client, allowance), daemon=True).start()
            threading.Thread(target=self._forth, args=(client, upstream, allowance), daemon=True).start()

    def _back(self, upstream: socket.socket, client: socket.socket, allowance: list[int]) -> None:
        with contextlib.suppress(OSError):
            while data := upstream.recv(1 << 16):
                if allowance:
                    client.sendall(data[: allowance[0]])
                    break
                client.sendall(data)
        _cut(client)
        _cut(upstream)

    def _forth(self, client: socket.socket, upstream: socket.socket, allowance: list[int]) -> None:
        pending = b""
        started = False
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                pending += data
                while (size := _message(pending, started)) and len(pending) >= size:
                    message, pending = pending[:size], pending[size:]
                    kind = message[:1] if started else b""
                    started = True
                    fault = self._asked(kind, message)
                    if fault is not None:
                        self._break(fault, message, client, upstream, allowance)
                        if fault.how != "lose":
                            return
                    else:
                        upstream.sendall(message)
        _cut(upstream)
        _cut(client)

    def _asked(self, kind: bytes, message: bytes) -> Fault | None:
        self.seen.append(message)
        fault = self.fault(kind, message) if self.fault is not None else None
        if fault is not None:
            self.fault = None
        return fault

    def _break(
        self, fault: Fault, message: bytes, client: socket.socket, upstream: socket.socket, allowance: list[int]
    ) -> None:
        if fault.how == "lose":
            allowance.append(fault.answer)
            upstream.sendall(message)
            return
        if fault.how == "half":
            upstream.sendall(message[: len(message) // 2])
        if fault.how in ("late", "orphan"):
            # Only the client's side is shut: what the server sends goes nowhere.
            _cut(client)
            time.sleep(fault.seconds)
            if fault.how == "late":
                upstream.sendall(message)
                time.sleep(0.2)
        _cut(client)
        _cut(upstream)


def _message(data: bytes, started: bool) -> int:
    """Return the length of the message that begins the data, 0 while that is not known."""
    if not started:
        return struct.unpack("!I", data[:4])[0] if len(data) >= 4 else 0
    return 1 + struct.unpack("!I", data[1:5])[0] if len(data) >= 5 else 0


def _cut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
