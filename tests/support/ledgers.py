"""Small ledgers for tests, and what must hold of any folder before and after a command."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import troth
from troth.ledger.operations import Candidate
from troth.stores.jsonl import JsonlStore
from troth.stores.workspace import create_workspace

SOURCES = str(Path(troth.__file__).resolve().parents[1])
START = datetime(2026, 1, 1, tzinfo=UTC)


def environment(**more: str) -> dict[str, str]:
    """Return the environment for a process that imports the package these tests test, from any folder."""
    kept = {name: value for name, value in os.environ.items() if name != "TROTH_ACTOR"}
    paths = [SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)} | more


def ticking() -> Callable[[], datetime]:
    """Return a clock that goes on one second at each look."""
    seconds = itertools.count()
    return lambda: START + timedelta(seconds=next(seconds))


def counting() -> Callable[[int], str]:
    """Return a source of hexadecimal digits that counts."""
    numbers = itertools.count(1)
    return lambda count: f"{next(numbers):0{2 * count}x}"


def fresh(root: Path, **options: object) -> JsonlStore:
    """Return the store of a new workspace with a predictable clock and ids."""
    root.mkdir(parents=True, exist_ok=True)
    create_workspace(root, name="w", agents_text="text\n")
    return JsonlStore.open(root, clock=ticking(), random_hex=counting(), **options)


def capture(store: JsonlStore, body: str = "seen", actor: str = "human:reviewer") -> str:
    """Append a capture and return its id."""
    return str(store.append(Candidate("capture", actor, {"body": body}))["id"])


def commitment(store: JsonlStore, body: str = "mend it") -> str:
    """Append an observation and a commitment on it; return the commitment's id."""
    source = capture(store)
    return str(store.append(Candidate("commit", "human:reviewer", {"body": body, "source": source}))["id"])


def fingerprint(folder: Path) -> dict[str, str]:
    """Return what stands in a folder: relative path -> kind or digest."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            mark = f"link to {path.readlink()}"
        elif path.is_dir():
            mark = "folder"
        elif path.is_file():
            mark = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            mark = "special"
        found[str(path.relative_to(folder))] = mark
    return found
