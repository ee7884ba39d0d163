"""What may be pushed: a commit whose very files a valid receipt is about, and of which the table says *continue*."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troth.airlock.runs import FOLDER
from troth.airlock.stopping import decide_examined
from troth.core.errors import DoesNotHold, Place, Refused, TrothError
from troth.observer.tree import OUTSIDE
from troth.receipts.deciding import StopDecision, StopTable
from troth.receipts.member import RECEIPT_FILE, Member
from troth.receipts.verify import examine
from troth.stores.members import FolderMember
from troth.stores.workspace import FOLDER as MENTU

_GIT_SECONDS: Final = 120
_FILE_MODES: Final = ("100644", "100755")
MAX_INPUT: Final = 1 << 20
MAX_REFS: Final = 1000

_BLOB: Final = re.compile(rb"([0-9a-f]+) blob ([0-9]{1,18})\n")

Believe = Callable[[Member], Member]
"""Returns a member as its signatures let it be seen, or raises."""


@dataclass(frozen=True, slots=True)
class Push:
    """One ref that git is about to push: its name here and there, and the commit, ``None`` where it is deleted."""

    local: str
    remote: str
    commit: str | None


@dataclass(frozen=True, slots=True)
class Granted:
    """A push that may go on: by which receipt and which decision of the table."""

    push: Push
    folder: Path
    stop: StopDecision


def read_pushes(data: bytes) -> list[Push]:
    """Return what git writes to ``pre-push``: lines of local ref, local object, remote ref, remote object.

    Raises:
        Refused: ``E_HOOK_INPUT``.
    """
    found = []
    for line in data.decode("utf-8", "surrogateescape").splitlines():
        words = line.split(" ")
        ids = words[1::2]
        if len(words) != 4 or any(len(one) not in (40, 64) or set(one) - set("0123456789abcdef") for one in ids):
            raise Refused("E_HOOK_INPUT", "the input is not what git gives a pre-push hook")
        found.append(Push(words[0], words[2], words[1] if words[1].strip("0") else None))
    if len(found) > MAX_REFS:
        raise Refused("E_HOOK_INPUT", f"more than {MAX_REFS} refs at once")
    return found


def grant(root: Path, pushes: Iterable[Push], table: StopTable, believe: Believe | None = None) -> list[Granted]:
    """Return by which receipts the pushes may go on.

    Args:
        root: the workspace, in a git work tree.
        pushes: what is pushed; a deleted ref needs no receipt.
        table: by which verdicts are decided.
        believe: what a receipt's signatures have to be; ``None`` asks for none.

    Raises:
        DoesNotHold: ``E_PUSH_REFUSED`` with the nearest receipt's reason; nothing may be pushed.
        Refused: ``E_HOOK_INPUT``: git cannot be asked.
    """
    return [_grant(root, push, table, believe or _as_it_is) for push in pushes if push.commit is not None]


def _as_it_is(member: Member) -> Member:
    return member


def _grant(root: Path, push: Push, table: StopTable, believe: Believe) -> Granted:
    files = committed_files(root, push.commit or "")
    nearest = "no run's receipt is about the files of this commit"
    runs = root / MENTU / FOLDER
    for folder in sorted(runs.iterdir() if runs.is_dir() else [], reverse=True):
        if not (folder / RECEIPT_FILE).is_file():
            continue
        try:
            member = FolderMember(folder)
            if not _about(root, member, files):
                continue
            stop = decide_examined(examine(believe(member)), table)
        except TrothError as fault:
            nearest = f"{folder.name}: {fault.code}: {fault.message}"
            continue
        if stop.action == "continue":
            return Granted(push, folder, stop)
        nearest = f"{folder.name}: {stop.action} ({stop.reason})"
    raise DoesNotHold(
        "E_PUSH_REFUSED",
        f"{push.local}: {nearest}",
        remedy="Have the work done by `troth run`, commit just that, and push again.",
        place=Place(file=str(root)),
    )


def _about(root: Path, member: Member, files: Mapping[str, str]) -> bool:
    """Tell whether a member's tree is that of the commit: every file alike, and nothing more but what git ignores."""
    data = member.read("tree.json")
    try:
        held = json.loads(data or b"{}")["files"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    if not isinstance(held, dict) or any(held.get(name) != digest for name, digest in files.items()):
        return False
    return _all_ignored(root, sorted(set(held) - set(files)))


def _git(root: Path, *words: str, data: bytes = b"", fine: tuple[int, ...] = (0,)) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], input=data, capture_output=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise Refused("E_HOOK_INPUT", f"git cannot be asked: {fault}") from None
    if done.returncode not in fine:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise Refused("E_HOOK_INPUT", f"git {words[0]} failed: {said[:300]}")
    return done.stdout


def committed_files(root: Path, commit: str) -> dict[str, str]:
    """Return path -> SHA-256 of the regular files of a commit below a folder, as they are stored.

    What is no part of a tree (done records §13.9) is left out: the ledger's folder, links, other repositories.

    Raises:
        Refused: ``E_HOOK_INPUT``.
    """
    listed = []
    for row in _git(root, "ls-tree", "-r", "-z", commit).split(b"\0"):
        head, _, path = row.partition(b"\t")
        words = head.decode("ascii", "replace").split()
        name = path.decode("utf-8", "surrogateescape")
        if words and words[0] in _FILE_MODES and name.split("/", 1)[0] not in OUTSIDE:
            listed.append((words[-1], name))
    out = _git(root, "cat-file", "--batch", data="".join(f"{blob}\n" for blob, _ in listed).encode())
    files, at = {}, 0
    for blob, name in listed:
        found = _BLOB.match(out, at)
        end = 0 if found is None else found.end() + int(found[2])
        if found is None or found[1] != blob.encode("ascii", "replace") or out[end : end + 1] != b"\n":
            raise Refused("E_HOOK_INPUT", f"git has no content for {name!r}")
        files[name] = hashlib.sha256(out[found.end() : end]).hexdigest()
        at = end + 1
    return files


def _all_ignored(root: Path, names: list[str]) -> bool:
    if not names:
        return True
    data = "".join(f"{name}\0" for name in names).encode("utf-8", "surrogateescape")
    told = _git(root, "check-ignore", "-z", "--stdin", data=data, fine=(0, 1))
    return len([name for name in told.split(b"\0") if name]) == len(names)


def hooks_folder(root: Path) -> Path:
    """Return where git looks for the hooks of a work tree.

    Raises:
        Refused: ``E_HOOK_INPUT``: there is no repository, or no git.
    """
    told = _git(root, "rev-parse", "--git-path", "hooks").decode("utf-8", "surrogateescape").rstrip("\n")
    return root / told
