"""Commits of a git repository as captures: keys, times and parents; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from troth.core.errors import Refused
from troth.ledger.foreign import instant_of
from troth.ledger.operations import Candidate
from troth.ledger.replay import State
from troth.ledger.rows import MAX_ROW_BYTES

FORMAT: Final = "%H%x00%P%x00%an%x00%ae%x00%aI%x00%ct%x00%B"
"""Seven fields, each ended by NUL with ``git log -z``; no text of a commit can hold one."""

MAX_FIELD_BYTES: Final = 2 * MAX_ROW_BYTES
"""No more of a field is kept; a row is refused for less."""

_FIELDS: Final = 7
_SECONDS: Final = re.compile(r"-?[0-9]{1,20}\Z")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: ``ts`` is the committer's time in UTC, the author is told as the commit tells it."""

    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored: str
    ts: Any
    message: str

    @property
    def source_key(self) -> str:
        """Return the key by which the commit is known when it comes again."""
        return key_of(self.sha)

    def candidate(self, actor: str, state: State) -> Candidate:
        """Return the capture, naming the rows of its parents as far as they are there."""
        found = (state.source_keys.get(key_of(parent)) for parent in self.parents)
        known = [identifier for identifier in found if identifier]
        git = {
            "commit": self.sha,
            "author": self.author,
            "email": self.email,
            "authored": self.authored,
            "parents": list(self.parents),
        }
        return Candidate(
            "capture",
            actor,
            {"body": self.message.strip() or f"commit {self.sha} without a message", "meta": {"git": git}},
            ts=self.ts,
            source_key=self.source_key,
            trace={"parent": known} if known else None,
        )


def key_of(sha: str) -> str:
    """Return the ``source_key`` of a commit."""
    return f"git:{sha}"


def commits(chunks: Iterable[bytes]) -> Iterator[Commit]:
    """Yield the commits of what ``git log -z`` printed in :data:`FORMAT`; bytes that are no UTF-8 become U+FFFD.

    Raises:
        Refused: ``E_GIT``: it ends within a commit.
    """
    pending = bytearray()
    fields: list[str] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\0")
        pending += first[: max(0, MAX_FIELD_BYTES - len(pending))]
        for following in others:
            fields.append(pending.decode("utf-8", "replace"))
            pending = bytearray(following)
            if len(fields) == _FIELDS:
                sha, parents, author, email, authored, seconds, message = fields
                when = instant_of(int(seconds)) if _SECONDS.match(seconds) else seconds
                yield Commit(sha, tuple(parents.split()), author, email, authored, str(when), message)
                fields = []
    if fields or pending:
        raise Refused("E_GIT", "git's list of commits ends within one")
