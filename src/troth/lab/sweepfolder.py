"""The folder of a sweep: its configuration, its finished chunks, and in the end its table and summary.

    sweep.json          the configuration, canonical, with its digest and the program's version
    chunks/000000.part  a finished chunk: a line with its SHA-256, then its rows
    results.parquet     all rows
    summary.json        counts and rates of every cell, and the SHA-256 of the table

A file appears whole or not at all, and is on the disk before the next is begun, so that a sweep which was cut off at
any moment goes on with what it has. A chunk that is not what was written is played again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from troth import __version__
from troth.core.errors import Busy, Place, Refused
from troth.deals.codes import LABELS, NON_CLAIMS_REF
from troth.deals.run import Run
from troth.lab.sweepconfig import Sweep
from troth.lab.sweeps import read_chunk, sha256_of

MAX_CHUNK_BYTES: Final = 1 << 28
MAX_JSON_BYTES: Final = 1 << 28
_HEAD: Final = b"troth-sweep-chunk 1 "
_HEAD_BYTES: Final = len(_HEAD) + 64 + 1
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class SweepFolder:
    """One sweep's folder, open in one process at a time."""

    def __init__(self, path: Path, sweep: Sweep) -> None:
        self._lock: int | None = None
        self.path = path
        self.sweep = sweep
        self.results = path / "results.parquet"
        self.summary = path / "summary.json"

    @classmethod
    def open(cls, path: Path, sweep: Sweep) -> SweepFolder:
        """Create the folder, or take up the one that is there.

        Raises:
            Refused: ``E_SWEEP_FOLDER``, ``E_SWEEP_OTHER``.
            Busy: ``E_SWEEP_BUSY``, another process has it open.
        """
        folder = cls(path, sweep)
        head = {
            "labels": list(LABELS),
            "non_claims": NON_CLAIMS_REF,
            "protocol": Run.protocol,
            "version": __version__,
            "config_sha256": sweep.digest,
            "config": orjson.loads(sweep.form),
        }
        data = orjson.dumps(head, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        name = path / "sweep.json"
        try:
            path.mkdir(parents=True, exist_ok=True)
            found = _read(name, MAX_JSON_BYTES)
            if found is None:
                # Any other file shows that the folder is somebody else's.
                if any(not entry.name.startswith(".sweep.json.") for entry in path.iterdir()):
                    raise _refused(path, "the folder has files in it and is no sweep's", "Name another one.")
                write_whole(name, data)
            elif found != data:
                raise Refused(
                    "E_SWEEP_OTHER",
                    "the folder holds another configuration's sweep, or one by another version",
                    remedy="Name another folder, or remove this one.",
                    place=Place(file=str(path)),
                )
            folder._lock = _locked(name)
            (path / "chunks").mkdir(exist_ok=True)
            # What a process that was killed was about to write.
            for left in (*path.glob(".*.new"), *(path / "chunks").glob(".*.new")):
                left.unlink(missing_ok=True)
        except OSError as fault:
            raise _refused(path, f"{fault.strerror or fault}", "Name a folder that can be written.") from None
        return folder

    def _chunk(self, chunk: int) -> Path:
        return self.path / "chunks" / f"{chunk:06d}.part"

    def keep(self, chunk: int, payload: bytes) -> None:
        """Keep a finished chunk, durably.

        Raises:
            Refused: ``E_SWEEP_CHUNK`` when it is none of this sweep, ``E_SWEEP_FOLDER``.
        """
        read_chunk(self.sweep, chunk, payload)
        try:
            write_whole(self._chunk(chunk), _HEAD + sha256_of(payload).encode("ascii") + b"\n" + payload)
        except OSError as fault:
            raise _refused(self.path, f"{fault.strerror or fault}", "Make room; what is finished is kept.") from None

    def load(self, chunk: int) -> Any:
        """Return a kept chunk's rows; ``None`` when there is none.

        Raises:
            Refused: ``E_SWEEP_CHUNK``, it is not what was written.
        """
        try:
            data = _read(self._chunk(chunk), MAX_CHUNK_BYTES)
        except OSError as fault:
            raise _spoilt(chunk, f"{fault.strerror or fault}") from None
        if data is None:
            return None
        head, payload = data[:_HEAD_BYTES], data[_HEAD_BYTES:]
        if head != _HEAD + sha256_of(payload).encode("ascii") + b"\n":
            raise _spoilt(chunk, "its bytes have changed")
        return read_chunk(self.sweep, chunk, payload)

    def missing(self, spoilt: Callable[[int], None]) -> list[int]:
        """Return the chunks that are still to be played.

        Args:
            spoilt: is told of each that was there and is not what was written; it is removed.

        Raises:
            Refused: ``E_SWEEP_FOLDER``, it cannot be removed.
        """
        found: list[int] = []
        for chunk in range(self.sweep.chunks):
            try:
                if self.load(chunk) is not None:
                    continue
            except Refused:
                spoilt(chunk)
                try:
                    self._chunk(chunk).unlink(missing_ok=True)
                except OSError as fault:
                    why = f"a spoilt chunk cannot be removed: {fault.strerror or fault}"
                    raise _refused(self._chunk(chunk), why, "Remove it.") from None
            found.append(chunk)
        return found

    def finished(self) -> dict[str, Any] | None:
        """Return the summary of a sweep that is finished and whole, else ``None``."""
        try:
            data = _read(self.summary, MAX_JSON_BYTES)
            made = orjson.loads(data) if data else None
            if isinstance(made, dict) and made.get("config_sha256") == self.sweep.digest:
                return made if made["results"]["sha256"] == self.digest_of_results() else None
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def digest_of_results(self, path: Path | None = None) -> str:
        """Return the SHA-256 of the table.

        Raises:
            OSError: there is none, or it cannot be read.
        """
        with (path or self.results).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def drop_chunks(self) -> None:
        """Remove the chunks, which the table holds now."""
        for chunk in range(self.sweep.chunks):
            self._chunk(chunk).unlink(missing_ok=True)
        with suppress(OSError):  # somebody put something in it
            (self.path / "chunks").rmdir()

    def close(self) -> None:
        """Let another process have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _refused(path: Path, why: str, remedy: str) -> Refused:
    return Refused("E_SWEEP_FOLDER", why, remedy=remedy, place=Place(file=str(path)))


def _locked(path: Path) -> int | None:
    """Return the lock on a file; ``None`` where there are none. It goes with the process, however that ends.

    Raises:
        Busy: ``E_SWEEP_BUSY``.
    """
    try:
        import fcntl
    except ImportError:
        return None
    fd = os.open(path, os.O_RDONLY | _NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise Busy(
            "E_SWEEP_BUSY", "another process plays this sweep", remedy="Wait for it.", place=Place(file=str(path))
        ) from None
    except OSError:
        pass  # a file system without locks: both would write the same bytes
    return fd


def _spoilt(chunk: int, why: str) -> Refused:
    return Refused("E_SWEEP_CHUNK", f"chunk {chunk}: {why}", remedy="Start the sweep again: it is played anew.")


def _read(path: Path, limit: int) -> bytes | None:
    """Return a regular file's bytes, following no link; ``None`` when nothing is there.

    Raises:
        OSError: it cannot be read, or is longer than ``limit``.
    """
    try:
        fd = os.open(path, os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"longer than {limit} bytes")
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Put bytes in the place of whatever stood there: they appear whole, and are on the disk when this returns.

    Raises:
        OSError: what stood there stands.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o644)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        put_in_place(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def put_in_place(aside: Path, path: Path) -> None:
    """Give a written and synced file its name, and sync the folder."""
    aside.replace(path)
    if os.name != "nt":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
