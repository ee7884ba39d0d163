"""A transcript of deals as a file: read line by line, and added to durably by one writer at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from troth.core.errors import Busy, Place, Refused
from troth.deals.transcript import MAX_LINE_BYTES, Entry, read_entry
from troth.stores.durable import (
    FILE_MODE,
    O_BINARY,
    O_CLOEXEC,
    O_NOFOLLOW,
    append_durably,
    open_regular,
    os_fault,
    sync_folder,
)
from troth.stores.lock import exclusive

CODES: Final[dict[str, str]] = {
    "E_TRANSCRIPT_EXISTS": "A file stands where a new transcript should go; none is ever written over.",
}
"""Refusals of transcripts as files."""

_WAIT_SECONDS: Final = 2.0


class TranscriptFile:
    """An open transcript; who adds to it holds its lock."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    def entries(self) -> Iterator[Entry]:
        """Yield what each line holds, as :meth:`lines` does."""
        for _, entry in self.lines():
            yield entry

    def lines(self) -> Iterator[tuple[bytes, Entry]]:
        """Yield each line without its line feed, and what it holds, from the first on.

        Raises:
            Refused: ``E_TRANSCRIPT_UNREADABLE`` with file and line.
        """
        with os.fdopen(os.dup(self._fd), "rb") as file:
            file.seek(0)
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 2):
                number += 1
                raw = line.removesuffix(b"\n")
                try:
                    yield raw, read_entry(raw, number)
                except Refused as fault:
                    fault.place = Place(file=str(self.path), line=number)
                    raise

    def append(self, line: bytes) -> None:
        """Add a line, with its line feed, and return once it is on the disk; one that was left without gets its own.

        Raises:
            WriteFailed: the file was put back to what it was, or the message says it was not.
        """
        size = os.fstat(self._fd).st_size
        torn = size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"
        append_durably(self._fd, b"\n" + line if torn else line, size, self.path)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    lock = exclusive(path, _WAIT_SECONDS)
    try:
        try:
            lock.__enter__()
        except Busy:
            raise Busy(
                "E_BUSY",
                f"another writer has held the transcript for {_WAIT_SECONDS:g} seconds",
                place=Place(file=str(path)),
                remedy="Try again.",
            ) from None
        try:
            yield
        finally:
            lock.__exit__()
    finally:
        lock.close()


@contextmanager
def reading(path: Path) -> Iterator[TranscriptFile]:
    """Open an existing transcript for reading alone.

    Raises:
        Refused: ``E_TRANSCRIPT_UNREADABLE``, ``E_NOT_REGULAR`` or ``E_UNREADABLE``.
    """
    fd = open_regular(path, os.O_RDONLY, "E_TRANSCRIPT_UNREADABLE", "the transcript")
    try:
        yield TranscriptFile(path, fd)
    finally:
        os.close(fd)


@contextmanager
def opened(path: Path) -> Iterator[TranscriptFile]:
    """Open an existing transcript for reading and adding.

    Raises:
        Refused: ``E_TRANSCRIPT_UNREADABLE``, ``E_NOT_REGULAR`` or ``E_UNREADABLE``.
        Busy: another writer holds it.
    """
    fd = open_regular(path, os.O_RDWR | os.O_APPEND, "E_TRANSCRIPT_UNREADABLE", "the transcript")
    try:
        with _alone(path):
            yield TranscriptFile(path, fd)
    finally:
        os.close(fd)


@contextmanager
def created(path: Path) -> Iterator[TranscriptFile]:
    """Make a new, empty transcript.

    Raises:
        Refused: ``E_TRANSCRIPT_EXISTS``, or ``E_UNREADABLE`` when the system refuses.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_BINARY
    try:
        fd = os.open(path, flags, FILE_MODE)
    except FileExistsError:
        raise Refused(
            "E_TRANSCRIPT_EXISTS",
            "a file of that name is there already",
            place=Place(file=str(path)),
            remedy="Name another one; a transcript is never written over.",
        ) from None
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, "the transcript cannot be made") from None
    try:
        sync_folder(path.parent)
        with _alone(path):
            yield TranscriptFile(path, fd)
    finally:
        os.close(fd)
