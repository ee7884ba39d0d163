"""From the tracer's text to calls (done records §13.3): grammar, strings, interrupted calls.

A line is ``PID SECONDS.NANOSECONDS REST`` where SECONDS count from the line before, and REST one of ::

    NAME(ARGUMENTS) = RESULT
    NAME(ARGUMENTS <unfinished ...>          the call was still running when another process's line came
    <... NAME resumed>ARGUMENTS) = RESULT    its other half
    --- SIGNAL {...} ---
    +++ exited with STATUS +++  |  +++ killed by SIGNAL +++  |  +++ superseded by execve in pid PID +++

Names are hostile. The tracer writes strings C-style between quotes and descriptors' paths between angle brackets,
escaping quotes, brackets, backslashes, control characters and every byte above 126 in them, so that no name can
end a string or a line; it does not escape spaces, so neither `` = `` nor ``<unfinished ...>`` is looked for inside
of strings and brackets. Every function answers ``None`` for text that does not follow the grammar, and never raises.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

UNFINISHED: Final = b" <unfinished ...>"

_ESCAPE: Final = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPES: Final = {
    b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a", b"b": b"\b", b'"': b'"',
    b"\\": b"\\", b"'": b"'", b"<": b"<", b">": b">",
}  # fmt: skip

_STRING: Final = rb'"[^"\\]*(?:\\.[^"\\]*)*"(?:\.\.\.)?'
_TOKEN: Final = re.compile(
    rb"(?P<quoted>" + _STRING + rb")"
    rb"|(?P<descriptor>(?:\d|AT_FDCWD)<[^<>]*>)"
    rb"|(?P<comment>/\*.*?\*/)"
    rb"|(?P<bracket>[\[\](){},])"
    rb"|(?P<open_end>[\"])",
    re.DOTALL,
)
_RESULT_GAP: Final = re.compile(rb"\) *= ")
_FAILED: Final = re.compile(rb"\) *= -1 (E[A-Z0-9]+) \([^()<>]*\)$")
_DESCRIPTOR: Final = re.compile(rb"(-?\d{1,10}|AT_FDCWD)(?:<([^<>]*)>(\(deleted\))?)?$")
_TRANSLATED: Final = re.compile(rb"(\d{1,10})(?: /\* (\d{1,10}) in strace's PID NS \*/)?$")
_AIO: Final = re.compile(rb"aio_lio_opcode=IOCB_CMD_PWRITEV?.*?aio_fildes=(\d+<[^<>]*>(?:\(deleted\))?)")
_QUOTED: Final = re.compile(rb"@?(" + _STRING + rb")$", re.DOTALL)


def unescape(text: bytes) -> bytes | None:
    """Return the bytes that the tracer wrote as ``text`` (what stands between the quotes or angle brackets)."""
    if b"\\" not in text:
        return text
    try:
        return _ESCAPE.sub(_unescape_one, text)
    except (KeyError, ValueError):
        return None


def _unescape_one(match: re.Match[bytes]) -> bytes:
    octal, pair, single = match.groups()
    if octal is not None:
        return bytes((int(octal, 8),))  # above 0377: ValueError, not the tracer's
    if pair is not None:
        return bytes((int(pair, 16),))
    return _ESCAPES[single]


def string(argument: bytes) -> bytes | None:
    """Return the bytes of a quoted argument, or ``None`` when it is cut, an address, or no string."""
    match = _QUOTED.match(argument)
    if match is None or argument.endswith(b"..."):
        return None
    return unescape(match[1][1:-1])


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor as the tracer shows it: its number (None: the working directory), path and whether it is gone.

    ``path`` is None where the tracer showed none. Pipes, sockets and the like show as ``pipe:[17]``.
    """

    number: int | None
    path: bytes | None
    deleted: bool


def descriptor(argument: bytes) -> Descriptor | None:
    """Read ``3</a/b>``, ``3</a/b>(deleted)``, ``AT_FDCWD</a>`` or a bare number."""
    match = _DESCRIPTOR.match(argument)
    if match is None:
        return None
    number, path, deleted = match.groups()
    if path is not None:
        path = unescape(path)
        if path is None:
            return None
    return Descriptor(None if number == b"AT_FDCWD" else int(number), path, deleted is not None)


@dataclass(frozen=True, slots=True)
class Call:
    """One finished call: name, arguments at the top level as written, and the text after the equals sign."""

    name: bytes
    arguments: list[bytes]
    result: bytes


def split_call(text: bytes) -> Call | None:
    """Split ``NAME(ARGUMENTS) = RESULT``; a call that another process interrupted is joined before."""
    start = text.find(b"(")
    if start <= 0:
        return None
    arguments, end = _split(text, start + 1)
    if end is None:
        return None
    gap = _RESULT_GAP.match(text, end)
    return None if gap is None else Call(text[:start], arguments, text[gap.end() :])


def split_list(argument: bytes) -> list[bytes] | None:
    """Split ``[A, B]`` or ``{A, B}`` into its elements."""
    if argument[:1] not in {b"[", b"{"}:
        return None
    elements, end = _split(argument, 1)
    return elements if end == len(argument) - 1 else None


def _split(text: bytes, start: int) -> tuple[list[bytes], int | None]:
    """Return the elements from ``start`` to the bracket that closes, and where that bracket stands."""
    elements: list[bytes] = []
    depth = 0
    begin = start
    for match in _TOKEN.finditer(text, start):
        if match.lastgroup != "bracket":
            if match.lastgroup == "open_end":
                break
            continue
        mark = match[0]
        if mark in b"([{":
            depth += 1
        elif mark == b",":
            if depth == 0:
                elements.append(text[begin : match.start()].strip())
                begin = match.end()
        elif depth:
            depth -= 1
        else:
            last = text[begin : match.start()].strip()
            if last or elements:
                elements.append(last)
            return elements, match.start()
    return elements, None


def is_vector(elements: Sequence[bytes], argv: Sequence[bytes]) -> bool:
    """Tell whether these are the arguments of ``argv``; a long one is shown only by its beginning."""
    if len(elements) != len(argv):
        return False
    for element, expected in zip(elements, argv, strict=True):
        shown = string(element.removesuffix(b"..."))
        if shown is None or (shown != expected[: len(shown)] if element.endswith(b"...") else shown != expected):
            return False
    return True


def aio_writes(requests: bytes) -> list[bytes]:
    """Return the descriptors, as the tracer wrote them, that ``io_submit`` is asked to write to."""
    return _AIO.findall(requests)


def failure(text: bytes) -> bytes | None:
    """Return the error's name when the text ends in a failed call's result.

    Only the end is looked at, and no path shown in a result can look like it: it would need a bare ``<``.
    """
    match = _FAILED.search(text, max(0, len(text) - 160))
    return None if match is None else match[1]


def process_number(result: bytes) -> tuple[int, int | None] | None:
    """Read the result of a call that makes a process: its number there, and the tracer's own number if shown."""
    match = _TRANSLATED.match(result)
    return None if match is None else (int(match[1]), int(match[2]) if match[2] else None)


_EXITED: Final = re.compile(rb"\+\+\+ exited with (\d{1,2}|1\d\d|2[0-4]\d|25[0-5]) \+\+\+$")
_KILLED: Final = re.compile(rb"\+\+\+ killed by (SIG[A-Z0-9_]{1,12})(?: \(core dumped\))? \+\+\+$")
_SUPERSEDED: Final = re.compile(rb"\+\+\+ superseded by execve in pid (\d{1,10}) \+\+\+$")
_CHILD_DIED: Final = re.compile(
    rb"--- SIGCHLD \{si_signo=SIGCHLD, si_code=CLD_(EXITED|KILLED|DUMPED), si_pid=(\d{1,10}), .*?si_status=(\w{1,12})"
)


def signal_number(name: bytes) -> int | None:
    """Return the number of a signal by the tracer's name for it (``SIGKILL``, ``SIGRT_3``)."""
    if name.startswith(b"SIGRT_") and name[6:].isdigit():
        return int(signal.SIGRTMIN) - 2 + int(name[6:])  # the tracer counts from the kernel's first, 32
    try:
        return int(signal.Signals[name.decode("ascii")])
    except (KeyError, UnicodeDecodeError):
        return None


def ending(text: bytes) -> int | None:
    """Return the exit status of an ending line, minus the signal's number for one that was killed (§13.9)."""
    match = _EXITED.match(text)
    if match is not None:
        return int(match[1])
    match = _KILLED.match(text)
    number = signal_number(match[1]) if match is not None else None
    return None if number is None else -number


def superseded(text: bytes) -> int | None:
    """Return which thread's ``execve`` took this process over."""
    match = _SUPERSEDED.match(text)
    return None if match is None else int(match[1])


def child_died(text: bytes) -> tuple[int, int] | None:
    """Read a signal line that says a child ended: its number as the parent knows it, and its status (as ``ending``)."""
    match = _CHILD_DIED.match(text)
    if match is None:
        return None
    if match[1] == b"EXITED":
        return (int(match[2]), int(match[3])) if match[3].isdigit() else None
    number = signal_number(match[3])
    return None if number is None else (int(match[2]), -number)
