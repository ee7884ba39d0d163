"""Run folders of reviews: one each, for its owner alone, in which whatever was acknowledged is still there (§11).

``.mentu/reviews/ID`` in a workspace, the user's state folder outside one. A folder is claimed by exclusive creation.
Files appear whole; lines are appended, and one that a crash tore was never acknowledged and is dropped. Nothing is read
or written through a symbolic link, and no name reaches out of the folder.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Busy, Place, Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.review.artifact import Artifact
from troth.stores.durable import (
    O_BINARY,
    O_CLOEXEC,
    O_NOFOLLOW,
    append_durably,
    create_whole,
    open_regular,
    os_fault,
    read_regular,
    replace_whole,
    sync_file,
    sync_folder,
)
from troth.stores.lock import exclusive

FOLDER: Final = "reviews"
LOCK: Final = ".lock"
RUN: Final = "run.json"
PAYLOAD: Final = "payload"
MANIFEST: Final = "manifest.json"
RESPONSE: Final = "response.json"
VALIDATION: Final = "validation.json"
EVENTS: Final = "events.jsonl"
CALLS: Final = "calls.jsonl"
DECISIONS: Final = "decisions.jsonl"
RECONCILIATION: Final = "reconciliation.json"
RAW: Final = "raw"
ARCHIVE: Final = "archive"

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
MAX_FILE: Final = 1 << 26
"""Largest file of a run that is read, in bytes."""

MAX_ID: Final = 120
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]")
_NAME: Final = re.compile(r"(?:(?:raw|archive)/)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,119}\Z")
_HASH: Final = 12
_JSON: Final = Limits(max_bytes=MAX_FILE, max_depth=128, refuse_overflow=True)
LAST: Final = "@last"
IGNORE: Final = ".gitignore"
IGNORED: Final = b"""# Runs hold the reviewed text and the reviewer's raw answers. Empty this file to commit them.
*
"""
"""Keeps runs, which hold what was reviewed whole, out of a commit that nobody meant (§11)."""


def safe_id(wanted: str) -> str:
    """Return the id under which a review can be kept: ``[A-Za-z0-9._-]``, at most 120 characters (§11).

    One of dots alone is ``unknown``; an id that had to change ends in 12 digits of its SHA-256, so that two that differ
    stay two.
    """
    clean = _UNFIT.sub("-", wanted)
    if not clean.strip("."):
        clean = "unknown"
    if len(clean) <= MAX_ID and clean == wanted:
        return clean
    mark = sha256_hex(wanted.encode("utf-8", "surrogatepass"))[:_HASH]
    return f"{clean[: MAX_ID - _HASH - 1]}-{mark}"


class ReviewFolder:
    """The folder of one run. Names are those of the constants above, or ``raw/NAME`` and ``archive/NAME``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def id(self) -> str:
        """The review's id."""
        return self.path.name

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the run: nobody else changes it meanwhile.

        Raises:
            Busy: ``E_BUSY`` when another command holds it.
        """
        manager = exclusive(self.path / LOCK)
        try:
            manager.__enter__()
        except Busy:
            raise Busy(
                "E_BUSY", f"another command is at work on the review {self.id}",
                place=Place(file=str(self.path)), remedy="Try again.",
            ) from None  # fmt: skip
        try:
            yield
        finally:
            manager.__exit__(None, None, None)
            manager.close()

    def place(self, name: str) -> Path:
        """Return where a file of the run stands.

        Raises:
            Refused: ``E_REVIEW_FILE`` for a name that none of its files may have, ``E_NOT_REGULAR`` for a link in its
                way.
        """
        if not _NAME.match(name) or name in (RAW, ARCHIVE):
            raise Refused("E_REVIEW_FILE", f"{name!r} names no file of a review's folder")
        path = self.path / name
        if path.parent != self.path and os.path.lexists(path.parent):
            _plain_folder(path.parent)
        return path

    def has(self, name: str) -> bool:
        """Tell whether something of that name is there."""
        return os.path.lexists(self.place(name))

    def read(self, name: str, limit: int = MAX_FILE) -> bytes:
        """Return the bytes of a file.

        Raises:
            Refused: ``E_REVIEW_FILE`` when it is absent, ``E_NOT_REGULAR``, ``E_UNREADABLE``, ``E_TOO_LARGE``.
        """
        return read_regular(self.place(name), limit, "E_REVIEW_FILE", f"the review's {name}")

    def read_json(self, name: str) -> Any:
        """Return the value of a file that is JSON.

        Raises:
            Refused: as :meth:`read`, and ``E_REVIEW_UNREADABLE``.
        """
        try:
            return loads(self.read(name), _JSON)
        except JsonFault as fault:
            raise Refused(
                "E_REVIEW_UNREADABLE", f"the review's {name}: {fault.message}", place=Place(file=str(self.place(name)))
            ) from None

    def write(self, name: str, data: bytes) -> None:
        """Put a file in its place, whole and durable; what stood there before is gone only when the new one is there.

        Raises:
            Refused: ``E_WRITE_FAILED``; what stood there is untouched.
        """
        path = self.place(name)
        try:
            if path.parent != self.path and not path.parent.exists():
                path.parent.mkdir(mode=FOLDER_MODE)
                sync_folder(self.path)
            replace_whole(path, data, FILE_MODE)
        except OSError as fault:
            raise _not_written(fault, path) from None

    def write_json(self, name: str, value: Any) -> None:
        """Put a record in its place, as :meth:`write` does."""
        self.write(name, record_bytes(value))

    def append(self, name: str, lines: bytes) -> None:
        """Append whole lines and return when they are on the disk; a torn tail before them is dropped.

        The caller holds the run (:meth:`exclusively`). A crash leaves none of the lines, or the first of them whole.

        Raises:
            Refused: ``E_WRITE_FAILED``; nothing was added.
        """
        if not lines.endswith(b"\n"):
            raise ValueError("a line ends with a line feed")
        path = self.place(name)
        try:
            if not os.path.lexists(path):
                _create_empty(path)
        except OSError as fault:
            raise _not_written(fault, path) from None
        fd = open_regular(path, os.O_RDWR | os.O_APPEND, "E_REVIEW_FILE", f"the review's {name}")
        try:
            size = _cut_torn(fd)
            append_durably(fd, lines, size, path)
        except OSError as fault:
            raise _not_written(fault, path) from None
        finally:
            os.close(fd)

    def lines(self, name: str) -> bytes:
        """Return the whole lines of a file, without a torn tail; none when it is absent."""
        if not self.has(name):
            return b""
        data = self.read(name)
        return data[: data.rfind(b"\n") + 1]

    def values(self, name: str) -> list[Any]:
        """Return the records of a file of lines.

        Raises:
            Refused: ``E_REVIEW_UNREADABLE`` with the line.
        """
        found = []
        for number, line in enumerate(self.lines(name).split(b"\n")[:-1], 1):
            try:
                found.append(loads(line, _JSON))
            except JsonFault as fault:
                raise Refused(
                    "E_REVIEW_UNREADABLE", f"the review's {name}: {fault.message}",
                    place=Place(str(self.place(name)), number),
                ) from None  # fmt: skip
        return found

    def archive(self, name: str) -> str | None:
        """Copy a file into the archive under a number of its own; return its name there, ``None`` when it is absent.

        Raises:
            Refused: ``E_WRITE_FAILED``.
        """
        if not self.has(name):
            return None
        data = self.read(name)
        folder = self.path / ARCHIVE
        stem, dot, ending = name.rpartition(".")
        held = sorted(entry.name for entry in _entries(folder) if entry.name.startswith(f"{stem}-"))
        if held and self.read(f"{ARCHIVE}/{held[-1]}") == data:
            return f"{ARCHIVE}/{held[-1]}"  # a crash came between the copy and what was to replace the original
        target = f"{ARCHIVE}/{stem}-{len(held) + 1:04d}{dot}{ending}"
        self.write(target, data)
        return target

    def names(self, folder: str) -> list[str]:
        """Return the files of ``raw`` or ``archive`` as names, sorted."""
        return sorted(f"{folder}/{entry.name}" for entry in _entries(self.path / folder) if _NAME.match(entry.name))

    def members(self) -> Artifact:
        """Return the artifact as it was kept: the snapshot, never the working copy (§2 [D5]).

        Raises:
            Refused: ``artifact_unavailable`` when the bytes are not those that were sent; ``E_REVIEW_UNREADABLE``.
        """
        held = self.read_json(RUN)
        try:
            listed = [(str(entry["path"]), int(entry["bytes"]), str(entry["sha256"])) for entry in held["members"]]
            digest = str(held["revision"]["value"])
        except (TypeError, KeyError, ValueError):
            raise Refused("E_REVIEW_UNREADABLE", f"the review's {RUN} does not say what was reviewed") from None
        payload = self.read(PAYLOAD) if self.has(PAYLOAD) else b""
        members = [(listed[0][0], payload)] if len(listed) == 1 else _unframed(payload, listed)
        if members is not None:
            artifact = Artifact(members)
            sound = all(sha256_hex(artifact.members[path].data) == sha for path, _, sha in listed)
            if sound and artifact.digest == digest and artifact.payload == payload:
                return artifact
        raise Refused(
            "artifact_unavailable",
            "the kept bytes of the artifact are not those that were reviewed",
            place=Place(file=str(self.path / PAYLOAD)),
            remedy="What was judged is gone; have the artifact reviewed again.",
        )


class Reviews:
    """The run folders in one place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def claim(self, wanted: str) -> ReviewFolder:
        """Make the folder of a new run and return it; its name is the review's id.

        Where the id is taken, ``-2``, ``-3`` and so on follow it.

        Raises:
            Refused: ``E_NOT_REGULAR``, ``E_WRITE_FAILED``.
        """
        self._make()
        base = safe_id(wanted)
        number = 1
        while True:
            ending = "" if number == 1 else f"-{number}"
            path = self.folder / f"{base[: MAX_ID - len(ending)]}{ending}"
            try:
                path.mkdir(mode=FOLDER_MODE)
                sync_folder(self.folder)
                _create_empty(path / LOCK)
            except FileExistsError:
                number += 1
                continue
            except OSError as fault:
                raise _not_written(fault, path) from None
            return ReviewFolder(path)

    def open(self, review_id: str) -> ReviewFolder:
        """Return the run of exactly this id.

        Raises:
            Refused: ``E_REVIEW_UNKNOWN``, ``E_NOT_REGULAR``.
        """
        if safe_id(review_id) != review_id or not os.path.lexists(self.folder / review_id):
            raise _unknown(review_id)
        _plain_folder(self.folder)
        _plain_folder(self.folder / review_id)
        return ReviewFolder(self.folder / review_id)

    def list(self) -> list[ReviewFolder]:
        """Return every run folder, oldest first by when its run was created, those that tell nothing first."""
        if os.path.lexists(self.folder):
            _plain_folder(self.folder)
        found = [
            ReviewFolder(Path(entry.path))
            for entry in _entries(self.folder)
            if entry.is_dir(follow_symlinks=False) and safe_id(entry.name) == entry.name
        ]
        return sorted(found, key=lambda folder: (created(folder), folder.id))

    def find(self, word: str) -> ReviewFolder:
        """Return the run that a person means: an id, what begins only one, or ``@last``.

        Raises:
            Refused: ``E_REVIEW_UNKNOWN``, ``E_AMBIGUOUS_ID``, ``E_NOT_REGULAR``.
        """
        if word != LAST and safe_id(word) == word and os.path.lexists(self.folder / word):
            return self.open(word)
        held = self.list()
        if word == LAST:
            if not held:
                raise _unknown(word)
            return held[-1]
        near = [folder for folder in held if word and folder.id.startswith(word)]
        if len(near) > 1:
            shown = ", ".join(folder.id for folder in near[:4]) + (", …" if len(near) > 4 else "")
            raise Refused(
                "E_AMBIGUOUS_ID", f"{len(near)} reviews begin with {word}: {shown}", remedy="Write more of the id.",
                detail=[folder.id for folder in near[:20]],
            )  # fmt: skip
        if not near:
            raise _unknown(word)
        return near[0]

    def forget(self, folder: ReviewFolder) -> None:
        """Remove a run with all that is in it, and make sure that it is gone.

        Raises:
            Refused: ``E_WRITE_FAILED``; what could not be removed is still there.
        """
        _plain_folder(folder.path)
        self.sweep()
        # Under another name first: whatever happens then, no half of a run is taken for one.
        aside = self.folder / f".gone~{secrets.token_hex(6)}"
        try:
            folder.path.rename(aside)
            sync_folder(self.folder)
            shutil.rmtree(aside)
            sync_folder(self.folder)
        except OSError as fault:
            raise _not_written(fault, folder.path) from None
        if os.path.lexists(folder.path) or os.path.lexists(aside):
            raise Refused("E_WRITE_FAILED", "the run is still there", place=Place(file=str(folder.path)))

    def sweep(self) -> None:
        """Remove what a crash left of runs that were being forgotten."""
        for entry in _entries(self.folder):
            if entry.name.startswith(".gone~") and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)

    def _make(self) -> None:
        try:
            if not os.path.lexists(self.folder):
                self.folder.parent.mkdir(parents=True, exist_ok=True)
                self.folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
                sync_folder(self.folder.parent)
            _plain_folder(self.folder)
            create_whole(self.folder / IGNORE, IGNORED, FILE_MODE)
        except OSError as fault:
            raise _not_written(fault, self.folder) from None


def created(folder: ReviewFolder) -> str:
    """Return when a run was created as its file says it, or nothing where that cannot be read."""
    try:
        value = folder.read_json(RUN)
    except Refused:
        return ""
    when = value.get("created") if isinstance(value, dict) else None
    return when if isinstance(when, str) else ""


def _unknown(word: str) -> Refused:
    if word == LAST:
        return Refused(
            "E_REVIEW_UNKNOWN", "there is no review here yet",
            remedy="Have something reviewed: troth review start FILE --kind decision",
        )  # fmt: skip
    return Refused("E_REVIEW_UNKNOWN", f"no review of that name: {word!r}", remedy="See: troth review list")


def _not_written(fault: OSError, path: Path) -> Refused:
    return Refused(
        "E_WRITE_FAILED",
        f"the review's record could not be written: {fault.strerror or fault}",
        place=Place(file=str(path)),
        remedy="Make room or mend the disk, then go on with: troth review resume",
        detail=fault.errno,
    )


def _plain_folder(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, "the folder of reviews cannot be examined") from None
    if not stat.S_ISDIR(mode):
        raise Refused(
            "E_NOT_REGULAR", "a symbolic link or a file stands where a folder of reviews belongs",
            place=Place(file=str(path)), remedy="Links are not followed; put a plain folder there.",
        )  # fmt: skip


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, folder, "the folder of reviews cannot be listed") from None


def _create_empty(path: Path) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_BINARY, FILE_MODE)
    os.close(fd)
    sync_folder(path.parent)


def _cut_torn(fd: int) -> int:
    """Cut a file back to its last line feed and return its size then."""
    size = os.fstat(fd).st_size
    end = size
    while end > 0:
        start = max(0, end - (1 << 16))
        os.lseek(fd, start, os.SEEK_SET)
        block = os.read(fd, end - start)
        found = block.rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(fd, end)
        sync_file(fd)
    return end


def _unframed(payload: bytes, listed: list[tuple[str, int, str]]) -> list[tuple[str, bytes]] | None:
    """Return the members of a framed payload along the list of their paths and sizes, ``None`` where it is another."""
    found = []
    at = 0
    for path, size, _ in listed:
        at += len(f"--- impasse-file {size} {path}\n".encode("utf-8", "replace"))
        found.append((path, payload[at : at + size]))
        at += size + 1
    return found if found and at == len(payload) else None
