"""Bytes that are still there after a crash: synced appends, files that appear whole, folders synced after creation.

Nothing here knows what the bytes mean. On macOS ``fsync`` does not reach the platter, so ``F_FULLFSYNC`` is used
there; Windows has no handle on a folder to sync, and the file's own flush has to do.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from troth.core.errors import Place, Refused, TrothError

O_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
O_BINARY: Final = getattr(os, "O_BINARY", 0)
O_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)
O_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)

FILE_MODE: Final = 0o644
COPY_CHUNK: Final = 1 << 20


class WriteFailed(Refused):
    """The bytes could not be made durable; the file was put back to what it was, or the message says it was not."""


def os_fault(code: str, fault: OSError, path: Path, doing: str, remedy: str | None = None) -> TrothError:
    """Return the refusal that tells an operating system's error in one line."""
    return Refused(
        code, f"{doing}: {fault.strerror or fault}", place=Place(file=str(path)), remedy=remedy, detail=fault.errno
    )


def sync_file(fd: int) -> None:
    """Return once the file's bytes and size are on the disk."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError:
            # Some file systems (network mounts) refuse the stronger call.
            os.fsync(fd)
    else:
        os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Return once the folder's entries are on the disk; does nothing where a folder cannot be opened."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY | O_CLOEXEC | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write the bytes at the file's end or position: one call, and further ones only after a short write.

    Raises:
        OSError: as the system gave it; some of the bytes may stand in the file.
    """
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, memoryview(data)[done:])


def append_durably(fd: int, data: bytes, size: int, path: Path, also: Callable[[], None] | None = None) -> None:
    """Append the bytes to a file of ``size`` bytes opened for appending, and return once they are on the disk.

    Args:
        fd: open for writing with ``O_APPEND``, the only writer being the caller (who holds the lock).
        data: what to append, line feed included.
        size: the length of the file before the call; to this it is cut back when something fails.
        path: named in the refusal.
        also: called when the bytes are written, before they are synced; writes what else the one sync stands for.

    Raises:
        WriteFailed: nothing is promised about the bytes; the file was cut back to ``size`` where that was possible.
    """
    try:
        write_all(fd, data)
        if also is not None:
            also()
        sync_file(fd)
    except OSError as fault:
        try:
            os.ftruncate(fd, size)
            os.fsync(fd)
            after = "Nothing was added; make room or mend the disk, then try again."
        except OSError:
            after = "Cutting the file back failed too: the next writer sets a torn tail aside."
        raise WriteFailed(
            "E_WRITE_FAILED",
            f"the row could not be made durable: {fault.strerror or fault}",
            place=Place(file=str(path)),
            remedy=after,
            detail=fault.errno,
        ) from None


def create_whole(path: Path, data: bytes, mode: int = FILE_MODE) -> bool:
    """Create a file that appears with all its bytes or not at all; never touch one that exists.

    Returns:
        Whether it was created; ``False`` when something of that name stands there already.

    Raises:
        OSError: the folder cannot be written, the disk is full; no file of that name is left.
    """
    return not os.path.lexists(path) and _appeared(_written(path, data, mode), path, mode)


def create_from(path: Path, pieces: Iterable[bytes], mode: int = FILE_MODE) -> bool:
    """Create a file as :func:`create_whole` does, from pieces that need not fit into memory together.

    Returns:
        Whether it was created; ``False`` when something of that name stands there already.

    Raises:
        OSError: the folder cannot be written, the disk is full; no file of that name is left.
    """
    return not os.path.lexists(path) and _appeared(_streamed(path, pieces, mode), path, mode)


def replace_whole(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Put the bytes in the place of whatever file stood there: temporary file, sync, rename, sync of the folder.

    Raises:
        OSError: the old file stands untouched.
    """
    _swapped(_written(path, data, mode), path)


def replace_from(path: Path, pieces: Iterable[bytes], mode: int = FILE_MODE) -> None:
    """Put pieces in the place of whatever file stood there, as :func:`replace_whole` does with bytes.

    Raises:
        OSError: the old file stands untouched.
    """
    _swapped(_streamed(path, pieces, mode), path)


def _appeared(temp: Path, path: Path, mode: int) -> bool:
    """Give a whole file its name unless the name is taken, and return whether it has it."""
    try:
        if os.name == "nt":
            temp.rename(path)  # refuses an existing name there
        else:
            os.link(temp, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except (OSError, NotImplementedError):
        # A file system without hard links, as on many a stick: the name is taken first, then filled at once.
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode))
        except FileExistsError:
            return False
        try:
            temp.replace(path)
        except OSError:
            path.unlink(missing_ok=True)
            raise
    finally:
        temp.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def _swapped(temp: Path, path: Path) -> None:
    try:
        temp.replace(path)
    except OSError:
        temp.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _aside(path: Path, mode: int) -> tuple[Path, int]:
    """Return a new file beside ``path`` and its descriptor."""
    temp = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
    return temp, os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_BINARY, mode)


def _streamed(path: Path, pieces: Iterable[bytes], mode: int) -> Path:
    """Write pieces to a new file beside ``path`` and return it, synced; none is left when something is raised."""
    temp, fd = _aside(path, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            file.writelines(pieces)
            file.flush()
            sync_file(file.fileno())
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    return temp


def _written(path: Path, data: bytes, mode: int) -> Path:
    """Write the bytes to a new file beside ``path`` as one piece, and return it as :func:`_streamed` does."""
    temp, fd = _aside(path, mode)
    try:
        try:
            if data:
                write_all(fd, data)
            sync_file(fd)
        finally:
            os.close(fd)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    return temp


def copy_range_durably(source: int, start: int, end: int, target: Path) -> None:
    """Copy the bytes from ``start`` up to ``end`` of an open file into a new file, synced with its folder.

    Raises:
        FileExistsError: the target's name is taken.
        OSError: anything else; the target is removed again.
    """
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_BINARY, FILE_MODE)
    try:
        try:
            os.lseek(source, start, os.SEEK_SET)
            left = end - start
            while left > 0:
                chunk = os.read(source, min(left, COPY_CHUNK))
                if not chunk:
                    break
                write_all(fd, chunk)
                left -= len(chunk)
            sync_file(fd)
        finally:
            os.close(fd)
    except OSError:
        target.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def open_regular(path: Path, flags: int, code: str, what: str) -> int:
    """Open an existing regular file, following no symbolic link in its last part and never waiting for a pipe.

    Args:
        path: the file.
        flags: ``os.O_RDONLY`` or ``os.O_RDWR``, with ``os.O_APPEND`` if wanted.
        code: the code of the refusal when it does not exist.
        what: what the file is to a person, such as ``the ledger``.

    Raises:
        Refused: ``code`` when it is absent, ``E_NOT_REGULAR`` for links, folders, pipes and devices,
            ``E_UNREADABLE`` when the system will not open it.
    """
    place = Place(file=str(path))
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise Refused(code, f"{what} is not there", place=place) from None
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, f"{what} cannot be examined") from None
    if stat.S_ISLNK(found.st_mode):
        raise Refused(
            "E_NOT_REGULAR",
            f"{what} is a symbolic link",
            place=place,
            remedy="Name the file itself; links are not followed.",
        )
    if not stat.S_ISREG(found.st_mode):
        raise Refused("E_NOT_REGULAR", f"{what} is not a regular file", place=place)
    try:
        fd = os.open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_BINARY)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, f"{what} cannot be opened") from None
    # What was looked at and what was opened may differ when somebody swaps files underneath.
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Refused("E_NOT_REGULAR", f"{what} is not a regular file", place=place)
    return fd


def read_regular(path: Path, limit: int, code: str, what: str) -> bytes:
    """Return the bytes of an existing regular file of at most ``limit`` bytes.

    Raises:
        Refused: as :func:`open_regular`, and ``E_TOO_LARGE``.
    """
    fd = open_regular(path, os.O_RDONLY, code, what)
    with os.fdopen(fd, "rb") as file:
        try:
            data = file.read(limit + 1)
        except OSError as fault:
            raise os_fault("E_UNREADABLE", fault, path, f"{what} cannot be read") from None
    if len(data) > limit:
        raise Refused("E_TOO_LARGE", f"{what} is larger than {limit} bytes", place=Place(file=str(path)))
    return data
