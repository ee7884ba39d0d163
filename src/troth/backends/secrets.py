"""Secrets in what is about to leave: a warning with member, line and kind, never the secret itself.

A warning, no gate: patterns (``core.tokenformats``) miss secrets, and take other things for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from troth.core.tokenformats import detectors, finds
from troth.core.words import printable

MOST_TOLD: Final = 100
"""Most places told of one scan."""


@dataclass(frozen=True, slots=True, order=True)
class Suspicion:
    """A place that looks like a secret: the member, its line from 1, what kind of secret it looks like."""

    member: str
    line: int
    kind: str

    def as_json(self) -> dict[str, Any]:
        """Return the members in which it is told."""
        return {"member": self.member, "line": self.line, "kind": self.kind}

    def __str__(self) -> str:
        return f"{printable(self.member, 200)}:{self.line}: {self.kind}"


def suspicions(pieces: Iterable[tuple[str, bytes]]) -> list[Suspicion]:
    """Return the places that look like secrets, each kind once a line, the first :data:`MOST_TOLD` of them.

    Args:
        pieces: what is to leave: name and bytes of each member, and of whatever else somebody wrote.
    """
    plugins = detectors()
    found: list[Suspicion] = []
    for member, data in pieces:
        named = _as_named(member)
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            kinds = sorted({kind for kind, _ in finds(plugins, line, named=named)})
            found += [Suspicion(member, number, kind) for kind in kinds]
            if len(found) >= MOST_TOLD:
                return found[:MOST_TOLD]
    return found


def _as_named(member: str) -> str:
    """Return the name by whose end the library tells how values are written: in .env files without quotes."""
    name = PurePosixPath(member).name.lower()
    return "settings.ini" if name == ".env" or name.startswith(".env.") or name.endswith(".env") else name
