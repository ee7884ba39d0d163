"""What every transcript reader shares: what was said, how lines are read, and what is told of the rest.

A reader never raises over content: a line that it cannot read is listed and claims nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Final

from troth.core.strictjson import JsonFault, Limits, loads
from troth.observer.totals import Totals

MAX_BYTES: Final = 256 << 20
"""Bytes read of one transcript; what lies beyond is told and not read."""

MAX_LINE: Final = 8 << 20
"""Bytes of one line; a longer one (an image, a file read whole) is passed over and told."""

MAX_SAID: Final = 20_000
"""Runs taken from one transcript; what is beyond them is told."""

MAX_TEXT: Final = 64 << 10
"""Characters of a command; a longer one is told and claims nothing."""

MAX_NOTES: Final = 50
"""Lines listed as unreadable; the rest are counted."""

MAX_PENDING: Final = 10_000
"""Calls whose result is waited for at once; the oldest is forgotten."""

_JSON: Final = Limits(max_bytes=MAX_LINE, max_depth=200, refuse_overflow=False, surrogates=True)

_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Said:
    """One run as it was said: a tool call that was reported as done, or a statement of a run with its result.

    Attributes:
        line: where in the transcript, from 1.
        text: the command as shell text; None when it was said as words.
        argv: the command as words; None when it was said as text.
        exit: the exit that was reported, of the whole command; None when none was.
        call: a record of a tool call, which says what happened at its time; otherwise a statement of the agent's.
        by: which subagent, as the transcript names it; empty for the main one.
        time: the instant of the result as the transcript writes it; empty where it has none.
        totals: the totals of tests that are said of it; None where none are, or several.
    """

    line: int
    text: str | None = None
    argv: tuple[str, ...] | None = None
    exit: int | None = None
    call: bool = True
    by: str = ""
    time: str = ""
    totals: Totals | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a reader found.

    Attributes:
        format: the reader's name.
        tool: the program that wrote the transcript, as far as that is told; empty for plain formats.
        version: its version as the transcript has it; empty when it has none.
        tried: the versions whose records this reader was tried with.
        said: the runs, in the order in which their results came.
        none: how many commands were mentioned as calls and are no claim, by why.
        unread: lines that could not be read, with a reason; line 0 stands for the whole.
        lines: how many lines were read.
        last: the agent's last message, whole, since a quotation may begin anywhere in it; empty where the format has
            none.
        beside: what else may have run programs, that the transcript names and does not tell: other tools, an earlier
            part that was left away.
        cut: the transcript goes on behind what was read. What is said there is not known, so nothing that was read is
            the agent's last word.
    """

    format: str
    tool: str
    version: str
    tried: tuple[str, ...]
    said: tuple[Said, ...]
    none: tuple[tuple[str, int], ...]
    unread: tuple[tuple[int, str], ...]
    lines: int
    last: str = ""
    beside: frozenset[str] = frozenset()
    cut: bool = False

    @property
    def version_known(self) -> bool:
        """Tell whether records of this very version were read when the reader was written."""
        return not self.tried or self.version in self.tried

    def as_json(self) -> dict[str, Any]:
        """Return what a report says of the source."""
        return {
            "format": self.format,
            "tool": self.tool,
            "version": self.version,
            "version_tried": self.version_known,
            "lines": self.lines,
            "runs_said": len(self.said),
            "no_claim": dict(self.none),
            "unread": [list(item) for item in self.unread],
            **({"cut": True} if self.cut else {}),
        }

    def ending_early(self, why: str) -> Transcript:
        """Return what was read of a file that is known to be a beginning only."""
        return replace(self, unread=((0, why), *self.unread), last="", cut=True)


@dataclass(slots=True)
class Finding:
    """A transcript while it is read."""

    format: str
    tool: str = ""
    tried: tuple[str, ...] = ()
    version: str = ""
    lines: int = 0
    said: list[Said] = field(default_factory=list)
    last: str = ""
    beside: set[str] = field(default_factory=set)
    cut: bool = False
    _none: dict[str, int] = field(default_factory=dict)
    _unread: list[tuple[int, str]] = field(default_factory=list)
    _more: int = 0

    def say(self, said: Said) -> None:
        """Take down a run, unless there are too many or it is no text that a record can hold."""
        words = (said.text,) if said.text is not None else (said.argv or ())
        if len(self.said) >= MAX_SAID:
            self.no_claim(f"beyond the first {MAX_SAID} runs")
            self.cut = True
        elif not any(word.strip() for word in words):
            self.no_claim("no command")
        elif sum(map(len, words)) > MAX_TEXT:
            self.no_claim(f"a command of more than {MAX_TEXT} characters")
        elif not all(_storable(word) for word in words):
            self.no_claim("a command that no record can hold")
        else:
            self.said.append(said)

    def no_claim(self, why: str) -> None:
        """Count a command that was named and claims nothing."""
        self._none[why] = self._none.get(why, 0) + 1

    def unread(self, line: int, why: str) -> None:
        """List a line that could not be read."""
        if len(self._unread) < MAX_NOTES:
            self._unread.append((line, why))
        else:
            self._more += 1

    def done(self) -> Transcript:
        """Return what was found, frozen."""
        if self._more:
            self._unread.append((0, f"and {self._more} more lines could not be read"))
            self._more = 0
        return Transcript(
            format=self.format, tool=self.tool, version=self.version, tried=self.tried, said=tuple(self.said),
            none=tuple(self._none.items()), unread=tuple(self._unread), lines=self.lines,
            last="" if self.cut else self.last, beside=frozenset(self.beside), cut=self.cut,
        )  # fmt: skip


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def lines_of(stream: BinaryIO, found: Finding) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) of a stream within the bounds; what is passed over is told."""
    held = b""
    total = number = 0
    skipping = False
    while True:
        block = stream.read(_CHUNK)
        total += len(block)
        if total > MAX_BYTES:
            found.unread(0, f"only the first {MAX_BYTES} bytes were read")
            found.cut = True
            return
        if not block:
            break
        *whole, held = (held + block).split(b"\n") if not skipping else _after_skip(block)
        for line in whole:
            number += 1
            found.lines = number
            if skipping:
                skipping = False
                continue
            if len(line) > MAX_LINE:
                found.unread(number, f"a line of more than {MAX_LINE} bytes")
                continue
            yield number, line
        if len(held) > MAX_LINE and not skipping:
            found.unread(number + 1, f"a line of more than {MAX_LINE} bytes")
            held, skipping = b"", True
    if held and not skipping:
        found.lines = number + 1
        yield number + 1, held


def _after_skip(block: bytes) -> list[bytes]:
    """Return the lines of a block that begins within a line that is passed over."""
    head, newline, rest = block.partition(b"\n")
    return [head[:0], *rest.split(b"\n")] if newline else [b""]


def objects_of(stream: BinaryIO, found: Finding) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number, object) of a file of JSON lines; a line that holds none is told."""
    for number, line in lines_of(stream, found):
        if not line.strip():
            continue
        try:
            value = loads(line, _JSON)
        except JsonFault as fault:
            found.unread(number, fault.message)
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            found.unread(number, "not an object")


def text_at(value: Any, *names: str) -> str:
    """Return the text under a path of member names, or the empty one."""
    for name in names:
        if not isinstance(value, dict):
            return ""
        value = value.get(name)
    return value if isinstance(value, str) else ""


def exit_in(value: Any) -> int | None:
    """Return an exit status within the records' range (-255 to 255), or None."""
    if isinstance(value, bool) or not isinstance(value, int) or not -255 <= value <= 255:
        return None
    return value
