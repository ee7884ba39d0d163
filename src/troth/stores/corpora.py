"""Member folders found beneath the folders that a person names: runs of workspaces, corpora of receipts.

A folder is a member when one of :data:`MARKS` stands in it, whatever that is; a member is not entered. Of a workspace
(a folder that holds ``.mentu``) only ``.mentu/runs`` is entered: what an agent wrote beside it is no receipt of a run.
No link is followed beneath a folder that was named. A folder that cannot be listed, or lies too deep, is told, since
nobody knows what it holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from troth.core.errors import Place, Refused
from troth.receipts.bundles import BUNDLE_FILE
from troth.receipts.envelopes import ENVELOPE_FILE
from troth.receipts.member import RECEIPT_FILE, STATEMENT_FILE
from troth.receipts.policy import POLICY_FILES

CODES: Final[dict[str, str]] = {
    "E_FLEET_UNREADABLE": "A folder cannot be listed or lies too deep, so nobody knows whether it holds receipts.",
    "E_FLEET_EMPTY": "The workspace holds no run with a receipt.",
    "E_FLEET_TOO_LARGE": "Beneath the folders named there are more entries than one walk takes.",
}
"""Codes of walking -> what they mean."""

MARKS: Final = frozenset((RECEIPT_FILE, ENVELOPE_FILE, BUNDLE_FILE, STATEMENT_FILE, *POLICY_FILES))
"""Names that make a folder a member: the receipt, bare or signed, a Statement, a case or a policy."""

WORKSPACE: Final = ".mentu"
RUNS: Final = "runs"
RUN_STATE: Final = "run.json"
"""Stands in the folder of every run, also of one that has no receipt yet."""

MAX_DEPTH: Final = 32
"""Folders beneath the one named that are entered."""

MAX_ENTRIES: Final = 4_000_000
"""Directory entries that one walk looks at; about a minute's work."""


@dataclass(slots=True)
class Found:
    """What a walk found.

    ``members`` are paths in the order in which they are told: as the folders were named, beneath each by name.
    ``faults`` tells for some of them why nothing can be said about them; they are no members. ``links`` counts links
    to folders that were not followed, ``pending`` runs without a receipt, ``again`` members that were met before.
    """

    members: list[str] = field(default_factory=list)
    faults: dict[str, Refused] = field(default_factory=dict)
    links: int = 0
    pending: int = 0
    again: int = 0


class _Walk:
    def __init__(self, limit: int) -> None:
        self.found = Found()
        self._left = limit
        self._known: set[tuple[int, int]] = set()

    def take(self, path: str) -> None:
        """Take a member, unless the very folder was taken before."""
        try:
            stat = os.stat(path)
        except (OSError, ValueError):
            pass  # gone, or never there: who reads it says so
        else:
            identity = stat.st_dev, stat.st_ino
            if identity in self._known:
                self.found.again += 1
                return
            self._known.add(identity)
        self.found.members.append(path)

    def fault(self, path: str, code: str, why: str, remedy: str) -> None:
        if path not in self.found.faults:
            self.found.faults[path] = Refused(code, why, remedy=remedy, place=Place(file=path))
            self.found.members.append(path)

    def named(self, path: str) -> None:
        """Take a folder that a person named: a member, or what holds some."""
        before = len(self.found.members), self.found.again, self.found.pending
        if not os.path.isdir(path):
            self.take(path)
            return
        workspace = self.beneath(path)
        if (len(self.found.members), self.found.again) != before[:2]:
            return
        if workspace or self.found.pending > before[2]:
            self.fault(
                path,
                "E_FLEET_EMPTY",
                "no run of the workspace has a receipt",
                "`troth runs` lists the runs and how far they came; `troth run` makes one.",
            )
        else:
            self.take(path)  # then it is said what it lacks

    def beneath(self, top: str) -> bool:
        """Look at a folder and everything beneath it; tell whether it is a workspace."""
        workspace = False
        # Depth first, in order of names: what waits stands reversed.
        waiting = [(top, 0)]
        while waiting:
            path, depth = waiting.pop()
            try:
                entries = list(self._listed(path))
            except (OSError, ValueError) as fault:
                self.fault(
                    path,
                    "E_FLEET_UNREADABLE",
                    f"the folder cannot be listed: {getattr(fault, 'strerror', None) or fault}",
                    "Make it readable, or name the folders to check.",
                )
                continue
            names = {entry.name for entry in entries}
            if not names.isdisjoint(MARKS):
                self.take(path)
                continue
            if RUN_STATE in names and depth:
                self.found.pending += 1
                continue
            folders = self._folders(entries)
            if WORKSPACE in folders:
                workspace = workspace or not depth
                runs = os.path.join(path, WORKSPACE, RUNS)
                folders = [os.path.join(WORKSPACE, RUNS)] if os.path.isdir(runs) and not os.path.islink(runs) else []
            if folders and depth >= MAX_DEPTH:
                self.fault(
                    path,
                    "E_FLEET_UNREADABLE",
                    f"the folder lies {depth} folders deep and holds more",
                    "Name it, to have it entered.",
                )
                continue
            waiting += [(os.path.join(path, name), depth + 1) for name in sorted(folders, reverse=True)]
        return workspace

    def _listed(self, path: str) -> Iterator[os.DirEntry[str]]:
        with os.scandir(path) as entries:
            for entry in entries:
                self._left -= 1
                if self._left < 0:
                    raise Refused(
                        "E_FLEET_TOO_LARGE",
                        "beneath the folders named there are too many files to walk through",
                        remedy="Name the folders that hold the receipts, such as .mentu/runs.",
                        place=Place(file=path),
                    )
                yield entry

    def _folders(self, entries: Sequence[os.DirEntry[str]]) -> list[str]:
        folders = []
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_symlink() and entry.is_dir():
                    self.found.links += 1
            except OSError:
                continue  # gone since, or a link to nothing
        return folders


def find_members(named: Sequence[str], limit: int = MAX_ENTRIES) -> Found:
    """Return the members that the named paths are or hold, each folder once.

    A named path beneath which nothing is found is itself taken for a member, so that it is told what it lacks: a walk
    that finds nothing never looks like success.

    Args:
        named: folders as a person wrote them; these may be reached through links.
        limit: directory entries to look at, at most.

    Raises:
        Refused: ``E_FLEET_TOO_LARGE``.
    """
    walk = _Walk(limit)
    for path in named:
        walk.named(path)
    return walk.found
