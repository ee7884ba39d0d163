"""What readers of several rooms share."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from io import BytesIO
from multiprocessing import util
from pathlib import Path
from typing import BinaryIO, Final

YAML: Final = (
    b"&a", b"*a", b"!!int", b"? ", b"- ", b": ", b"<<: *a", b"|\n  x", b">-", b"{a: b}", b"[a, b]", b"'", b"%YAML 1.1",
)  # fmt: skip
"""What YAML has that a careless reader falls over."""


def asserted(held: bool, what: str) -> None:
    """Fail as a fault of the program when something does not hold that has to."""
    if not held:
        raise AssertionError(what)


class Held:
    """Bytes that are opened like a file, for readers that open one and ask nothing else of its path."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    stem = "held"

    def __str__(self) -> str:
        return self.stem

    @property
    def parent(self) -> Held:
        """Return what stands for the folder."""
        return self

    def joinpath(self, *_: str) -> Held:
        """Return a file beside this one."""
        return Held(b"beside")

    def open(self, mode: str) -> BinaryIO:
        """Return the bytes as a stream."""
        asserted(mode == "rb", "opened for something else than reading")
        return BytesIO(self._data)


class Slow(BytesIO):
    """A stream that gives a few bytes at a time, as a pipe may."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Return at most 61 bytes."""
        return super().read(61 if size is None or size < 0 else min(61, size))


@cache
def _folder(_process: int) -> Path:
    path = Path(tempfile.mkdtemp(prefix="troth-fuzz-"))
    util.Finalize(None, shutil.rmtree, args=(path, True), exitpriority=0)  # in a process that was forked, too
    return path


def folder(name: str) -> Path:
    """Return a folder of this process alone, for readers that open files by their name; it goes with the process."""
    path = _folder(os.getpid()) / name
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


class _Fixed:
    """A file that is written over in place: opening one anew for every input would take most of the time."""

    def __init__(self, name: str) -> None:
        self.path = folder("fixed") / name
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)


@cache
def _fixed(_process: int, name: str) -> _Fixed:
    return _Fixed(name)


def written(name: str, data: bytes) -> Path:
    """Put an input into the file of that name, and return where it lies."""
    found = _fixed(os.getpid(), name)
    os.ftruncate(found.file, 0)
    os.pwrite(found.file, data, 0)
    return found.path
