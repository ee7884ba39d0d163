"""Files and folders that appear whole or not at all, and never through a symbolic link."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from troth.core.errors import Place, Refused


def refused(fault: OSError, path: Path) -> Refused:
    """Return the refusal that tells an operating system's error."""
    return Refused("E_OKF_WRITE", fault.strerror or str(fault), place=Place(file=str(path)), detail=fault.errno)


def exists(path: Path, remedy: str | None = None) -> Refused:
    """Return the refusal of a place that is taken."""
    return Refused("E_OKF_EXISTS", "something stands there already", place=Place(file=str(path)), remedy=remedy)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that is not there yet, durably.

    Raises:
        Refused: ``E_OKF_EXISTS``, ``E_OKF_WRITE``.
    """
    temp = _beside(path)
    try:
        _write(temp, data)
        try:
            os.link(temp, path, follow_symlinks=False)
        finally:
            temp.unlink()
    except FileExistsError:
        raise exists(path) from None
    except OSError as fault:
        raise refused(fault, path) from None


def replace_file(path: Path, data: bytes) -> None:
    """Put a file in the place of the one that stands there, if any; it keeps the permissions.

    Raises:
        Refused: ``E_OKF_WRITE``; the old file stands untouched.
    """
    temp = _beside(path)
    try:
        _write(temp, data)
        try:
            if path.exists() and not path.is_symlink():
                shutil.copymode(path, temp)
            temp.replace(path)
        finally:
            temp.unlink(missing_ok=True)
    except OSError as fault:
        raise refused(fault, path) from None


def _beside(path: Path) -> Path:
    return path.with_name(f".{secrets.token_hex(6)}.new")


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def new_folder(path: Path, *, replaces: bool = False) -> Iterator[Path]:
    """Give a folder to fill, which takes its place when all went well and goes when anything did not.

    Args:
        path: where it is to stand.
        replaces: put it in the place of the folder that stands there.

    Raises:
        Refused: ``E_OKF_EXISTS``, ``E_OKF_WRITE``.
    """
    if os.path.lexists(path) and not replaces:
        raise exists(path)
    staging = _beside(path)
    old: Path | None = None
    try:
        staging.mkdir(parents=True)
        yield staging
        if os.path.lexists(path):
            old = _beside(path)
            path.rename(old)
        try:
            staging.rename(path)
        except OSError:
            if old is not None:
                old.rename(path)
                old = None
            raise
    except OSError as fault:
        raise refused(fault, path) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)


def put(root: Path, path: str, data: bytes) -> None:
    """Write a file below a folder of our own, its folders made."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(target, data)
