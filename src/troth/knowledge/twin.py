"""Twins: what a concept says as JSON beside it, and whether they still say the same (ledger spec §13)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.core.digests import sha256_hex
from troth.knowledge.bundle import Bundle, read_file
from troth.knowledge.concept import Concept
from troth.knowledge.paths import Escapes, resolve_path
from troth.knowledge.profile import TWIN
from troth.knowledge.writing import replace_file

_LIMIT: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class TwinState:
    """A concept's twin: where it is, and ``fresh``, ``written``, ``stale``, ``missing``, ``invalid`` or ``outside``."""

    path: str
    twin: str
    state: str

    def as_json(self) -> dict[str, str]:
        """Return the members under their own names."""
        return {"path": self.path, "twin": self.twin, "state": self.state}


def twin_path(concept: Concept) -> str | None:
    """Return where a concept's twin is, from the bundle's root: as its profile says, else beside it.

    ``None`` when the profile leads out of the bundle, or to a name that begins with a dot.
    """
    named = concept.profile.twin
    if named is None:
        return concept.path.rpartition(".")[0] + TWIN
    try:
        path = resolve_path(named, concept.path)
    except Escapes:
        return None
    hidden = path is None or "\0" in path or any(part.startswith(".") for part in path.split("/"))
    return None if hidden else path


def twin_of(concept: Concept) -> dict[str, Any]:
    """Return the twin: typed frontmatter, sections with lines (from 1) and digests, where it leads, its digest."""
    lines = concept.text.split("\n")
    below = concept.parts.body_line
    sections = [
        {
            "level": section.level,
            "title": section.title,
            "first_line": below + section.line,
            "last_line": below + max(section.end - 1, section.line),
            "sha256": sha256_hex("\n".join(lines[section.line : section.end]).encode()),
        }
        for section in concept.outline.sections
    ]
    return {
        "okf_twin": 1,
        "path": concept.path,
        "type": concept.type,
        "frontmatter": concept.front.values,
        "sections": sections,
        "leads": [{"how": lead.how, "target": lead.target} for lead in concept.leads],
        "sha256": concept.sha256,
    }


def twin_bytes(concept: Concept) -> bytes:
    """Return the twin as the bytes of its file; the same concept gives the same bytes."""
    return (json.dumps(twin_of(concept), ensure_ascii=True, indent=2, sort_keys=True) + "\n").encode()


def check_twins(bundle: Bundle) -> list[TwinState]:
    """Return the state of each concept's twin; ``stale``: it is about another content than the concept has now."""
    return [_checked(bundle.root, concept) for concept in bundle.concepts.values()]


def _checked(root: Path, concept: Concept) -> TwinState:
    place = twin_path(concept)
    if place is None or not _is_inside(root, place):
        return TwinState(concept.path, place or str(concept.profile.twin), "outside")
    path = root / place
    if not path.is_file():
        return TwinState(concept.path, place, "missing")
    data = read_file(path, _LIMIT) or b""
    if data == twin_bytes(concept):
        return TwinState(concept.path, place, "fresh")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    is_twin = isinstance(value, dict) and value.get("okf_twin") == 1 and value.get("path") == concept.path
    stale = is_twin and value.get("sha256") != concept.sha256
    return TwinState(concept.path, place, "stale" if stale else "invalid")


def _is_inside(root: Path, place: str) -> bool:
    """Tell whether no link stands on the way to a place below a folder, or at it."""
    path = root
    for part in place.split("/"):
        path = path / part
        if path.is_symlink():
            return False
    return path.parent.is_dir() and not path.is_dir()


def write_twins(bundle: Bundle) -> list[TwinState]:
    """Write each twin that is not fresh; what is no twin of the concept is never overwritten.

    Raises:
        Refused: ``E_OKF_WRITE``.
    """
    done = []
    taken: set[str] = set()
    for found, concept in zip(check_twins(bundle), bundle.concepts.values(), strict=True):
        state = found
        if found.state in ("missing", "stale"):
            if found.twin in taken:
                state = TwinState(found.path, found.twin, "invalid")
            else:
                replace_file(bundle.root / found.twin, twin_bytes(concept))
                state = TwinState(found.path, found.twin, "written")
        taken.add(found.twin)
        done.append(state)
    return done
