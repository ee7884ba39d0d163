"""What a row says of a published project: what is fetched, how it is set up, and what is tried.

Each row is run by ``test_suites.py``: an agent that mends what was spoilt and says so, twice, and one that cheats. The
page ``docs/suites.md`` is made of this table and of what those runs came to (``page.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Ecosystem = Literal["python", "npm", "make", "cargo", "go"]
Trait = Literal["over 1,000 tests", "spawns processes", "writes beside its tests", "opens loopback sockets"]

MANY: Final[Trait] = "over 1,000 tests"
SPAWNS: Final[Trait] = "spawns processes"
WRITES: Final[Trait] = "writes beside its tests"
SOCKETS: Final[Trait] = "opens loopback sockets"


@dataclass(frozen=True, slots=True)
class Edit:
    """What is spoilt before the contract is sealed, and mended by an honest agent: one text of one file."""

    file: str
    published: str
    spoilt: str


@dataclass(frozen=True, slots=True)
class Cheat:
    """What the dishonest agent does: a kind of ``agents.CHEATS``, for what it has to be caught, and with which text.

    ``what`` is the name of a file, a word of a command or a piece of source, as the kind needs.
    """

    kind: str
    reason: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """One published project.

    ``sha256`` is that of the archive, ``package`` what Debian calls it where it comes from there. A Python project has
    an environment that stands where ``environment`` says, seen from the workspace, with the pinned packages that its
    tests need (``needs``) and, where it is ``installed``, with itself, importable from where it stands. ``prepare`` are
    commands run in the workspace afterwards. ``tests`` is how many tests its command runs at least, where it says so.
    """

    name: str
    version: str
    sha256: str
    ecosystem: Ecosystem
    traits: frozenset[Trait]
    tests: int
    argv: tuple[str, ...]
    task: str
    edit: Edit
    cheat: Cheat
    protect: tuple[str, ...] = ("tests",)
    needs: tuple[str, ...] = ()
    environment: Literal["../env", ".venv", ""] = "../env"
    installed: bool = False
    package: str = ""
    prepare: tuple[tuple[str, ...], ...] = ()
    mutants: int = 2
