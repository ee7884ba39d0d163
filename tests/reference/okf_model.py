"""A second, small reading of how concepts become captures: ids, keys, edges. It imports nothing from the project.

It knows no Markdown and no YAML: it starts from what a concept is meant to say, and writes the file from that.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from dataclasses import dataclass, field

TYPES = {
    "extends": "extends",
    "supersedes": "supersedes",
    "reinforces": "supports",
    "constrains": "okf_link",
    "balances_with": "okf_link",
}


@dataclass
class Meant:
    """What a concept says: relations by name, cited paths, other linked paths; every path from the bundle's root."""

    path: str
    relations: dict[str, list[str]] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    cited: list[str] = field(default_factory=list)
    decay: int | None = None
    words: str = "Words."
    relative: bool = False


def written(meant: Meant) -> bytes:
    """Return the concept's file."""
    front: dict[str, object] = {"type": "thing"}
    profile: dict[str, object] = {}
    if meant.relations:
        profile["relations"] = {name: [_ref(meant, path) for path in paths] for name, paths in meant.relations.items()}
    if meant.decay is not None:
        profile["trust"] = {"decay": meant.decay, "level": 0.9}
    if profile:
        front["x-mentu"] = profile
    lines = ["---", json.dumps(front), "---", meant.words, ""]
    lines += [f"- [a]({_ref(meant, path)})" for path in meant.links]
    if meant.cited:
        lines += ["", "## Citations", "", *(f"- [c]({_ref(meant, path)}#part)" for path in meant.cited)]
    return ("\n".join(lines) + "\n").encode()


def _ref(meant: Meant, path: str) -> str:
    return posixpath.relpath(path, posixpath.dirname(meant.path) or ".") if meant.relative else f"/{path}"


def digest16(text: str) -> str:
    """Return the first 16 digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def identity(bundle: str, path: str) -> str:
    """Return the id that edges to a path name."""
    return f"mem_{digest16(f'okf:{bundle}:{path}')}"


def key(bundle: str, path: str, data: bytes) -> str:
    """Return the source key of a content."""
    return f"okf:{bundle}:{path}#{hashlib.sha256(data).hexdigest()[:16]}"


def edges(bundle: str, meant: Meant, *, later: bool) -> list[tuple[str, str]]:
    """Return (type, target) of each edge in order."""
    found = [("refines", identity(bundle, meant.path))] if later else []
    pairs = [(TYPES[name], path) for name in TYPES for path in meant.relations.get(name, [])]
    pairs += [("cites", path) for path in meant.cited] + [("okf_link", path) for path in meant.links]
    for kind, path in pairs:
        edge = (kind, identity(bundle, path))
        reserved = posixpath.basename(path) in ("index.md", "log.md")
        if path != meant.path and not reserved and edge not in found:
            found.append(edge)
    return found


class Ledger:
    """What a ledger should hold after ingests."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.firsts: set[str] = set()
        self.rows: list[tuple[str | None, str, list[tuple[str, str]], int | None]] = []

    def ingest(self, bundle: str, concepts: dict[str, Meant]) -> None:
        """Take a bundle; a row is (id, or None where it is drawn; key; edges; half-life)."""
        for path, meant in concepts.items():
            found = key(bundle, path, written(meant))
            if found in self.keys:
                continue
            first = identity(bundle, path)
            later = first in self.firsts
            self.rows.append((None if later else first, found, edges(bundle, meant, later=later), meant.decay))
            self.keys.add(found)
            self.firsts.add(first)
