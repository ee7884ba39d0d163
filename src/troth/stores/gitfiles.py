"""A workspace in a git work tree: how git learns to merge its ledger, and what git should leave alone.

Lines are only added to ``.gitattributes`` and ``.gitignore`` beside ``.mentu``; nothing that stands there is changed. A
line about the ledger's merging that somebody else wrote is left in force. Without a configured driver git merges the
ledger as text, as before.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.core.errors import Place, Refused
from troth.stores.durable import create_whole, open_regular, os_fault, sync_file, write_all
from troth.stores.workspace import FOLDER, LEDGER, LOCK, absolute, find_workspace, here

ATTRIBUTES: Final = ".gitattributes"
IGNORE: Final = ".gitignore"
PATTERN: Final = f"{FOLDER}/{LEDGER}"
ATTRIBUTE: Final = f"{PATTERN} merge=troth"
IGNORED: Final = (f"{FOLDER}/{LOCK}", f"{FOLDER}/.*.new", f"{FOLDER}/runs/*/private/")

SETTING: Final = "merge.troth.driver"
DRIVER: Final = "troth merge --driver %O %A %B %P"
COMMAND: Final = ("git", "config", SETTING, DRIVER)

_LIMIT: Final = 1 << 20
_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done for git: files with lines added, notes on what was left, whether the driver is configured."""

    changed: tuple[str, ...]
    notes: tuple[str, ...]
    configured: bool

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names, and the command that is missing."""
        return {
            "changed": list(self.changed),
            "notes": list(self.notes),
            "configured": self.configured,
            "remedy": None if self.configured else shlex.join(COMMAND),
        }

    def lines(self) -> list[str]:
        """Return what there is to tell a person."""
        told = [f"Added lines to {' and '.join(self.changed)}."] if self.changed else []
        told += self.notes
        if not self.configured:
            told.append(f"So that git merges ledgers in this clone: {shlex.join(COMMAND)}   (or troth init --git)")
        return told


def in_work_tree(root: Path) -> bool:
    """Tell whether a folder or one above it holds ``.git``; git itself is not asked."""
    root = absolute(root)
    return any(os.path.lexists(folder / ".git") for folder in (root, *root.parents))


def need_git(root: Path) -> None:
    """Refuse what ``init --git`` cannot do, before anything is written.

    Raises:
        Refused: ``E_USAGE``: no work tree, or no git.
    """
    if not in_work_tree(root):
        raise Refused(
            "E_USAGE", "the folder is in no git work tree", remedy="Run `git init` first, or leave --git out."
        )
    if shutil.which("git") is None:
        raise Refused("E_USAGE", "git is not installed", remedy="Leave --git out.")


def prepare(root: Path, *, configure: bool) -> Prepared | None:
    """Add what the files of git lack; ``None`` outside of a work tree.

    Args:
        root: the folder that holds ``.mentu``.
        configure: make the driver known to this clone.

    Raises:
        Refused: ``E_UNREADABLE`` when a file cannot be written, ``E_GIT`` when git does not take the setting.
    """
    if not in_work_tree(root):
        return None
    changed: list[str] = []
    notes: list[str] = []
    for name, wanted in ((ATTRIBUTES, (ATTRIBUTE,)), (IGNORE, IGNORED)):
        try:
            data = _read(root / name)
        except Refused as fault:
            notes.append(f"{name} was left as it is: {fault.message}.")
            continue
        lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
        if name == ATTRIBUTES and any(_speaks_of_merging(line) for line in lines):
            if ATTRIBUTE not in lines:
                notes.append(f"{name} says already how {PATTERN} is merged, and was left as it is.")
            continue
        missing = [line for line in wanted if line not in lines]
        if missing:
            _add(root / name, data, missing)
            changed.append(name)
    if configure and not configured(root):
        done = _git(root, *COMMAND[1:])
        if done is None or done.returncode:
            said = "" if done is None else done.stderr.decode("utf-8", "replace").strip()
            raise Refused("E_GIT", f"git does not take the setting: {said or 'it does not answer'}")
    return Prepared(tuple(changed), tuple(notes), configured(root))


def configured(root: Path) -> bool:
    """Tell whether git knows a driver of that name there."""
    done = _git(root, "config", "--get", SETTING)
    return done is not None and done.returncode == 0 and bool(done.stdout.strip())


def driver_here() -> dict[str, Any] | None:
    """Return what the doctor tells of the workspace found upward from here; ``None`` where git has no part in it."""
    try:
        root = find_workspace(here()).root
    except Refused:
        return None
    if not in_work_tree(root):
        return None
    return {"configured": configured(root), "remedy": shlex.join(COMMAND)}


def _speaks_of_merging(line: str) -> bool:
    words = line.split()
    if not words or words[0].lstrip("/") != PATTERN:
        return False
    return any(word.lstrip("-!").partition("=")[0] in ("merge", "binary") for word in words[1:])


def _read(path: Path) -> bytes:
    if not os.path.lexists(path):
        return b""
    with os.fdopen(open_regular(path, os.O_RDONLY, "E_UNREADABLE", "the file"), "rb") as file:
        data = file.read(_LIMIT + 1)
    if len(data) > _LIMIT:
        raise Refused("E_TOO_LARGE", "the file is too large to be read here", place=Place(file=str(path)))
    return data


def _add(path: Path, before: bytes, lines: list[str]) -> None:
    end = b"\r\n" if b"\r\n" in before else b"\n"
    data = b"".join(line.encode() + end for line in lines)
    try:
        if create_whole(path, data):
            return
        fd = open_regular(path, os.O_WRONLY | os.O_APPEND, "E_UNREADABLE", "the file")
        try:
            write_all(fd, data if not before or before.endswith(b"\n") else end + data)
            sync_file(fd)
        finally:
            os.close(fd)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, "the file cannot be written") from None


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[bytes] | None:
    if shutil.which("git") is None:
        return None
    try:
        return subprocess.run(
            ["git", "-C", str(root), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
