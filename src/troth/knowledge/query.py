"""The retrieval walk: foundations in, superseded dropped, tensions shown (ledger spec §13).

It works over whatever concepts there are: those of a folder, or those that were ingested into a ledger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from troth.core.errors import Place, Refused
from troth.knowledge.concept import Concept
from troth.knowledge.profile import TENSIONS
from troth.ledger.rows import Row

_WORD: Final = re.compile(r"\w+")
_WEIGHTS: Final = {"title": 4, "tags": 3, "path": 2, "text": 1}
"""What a word of the query counts where it is found; each place counts once per word."""


@dataclass(frozen=True, slots=True)
class Tension:
    """A constraint or balance between two concepts: ``path`` says ``how`` about ``other``."""

    path: str
    how: str
    other: str

    def as_json(self) -> dict[str, str]:
        """Return the members under their own names."""
        return {"path": self.path, "how": self.how, "other": self.other}


@dataclass(frozen=True, slots=True)
class Foundation:
    """What a concept builds upon, ``depth`` steps of ``extends`` away; ``missing`` when the bundle lacks it."""

    path: str
    depth: int
    of: str
    missing: bool


@dataclass(frozen=True, slots=True)
class Walk:
    """A concept with what belongs to it. ``stale`` maps what was dropped to what supersedes it."""

    path: str
    superseded_by: tuple[str, ...]
    foundations: tuple[Foundation, ...]
    stale: dict[str, tuple[str, ...]]
    tensions: tuple[Tension, ...]


class Knowledge:
    """Concepts by path, with the questions that retrieval asks.

    Args:
        concepts: by path.
        ids: the ledger's ids of the newest version by path, where they come from a ledger.
    """

    def __init__(self, concepts: Mapping[str, Concept], ids: Mapping[str, str] | None = None) -> None:
        self.concepts = concepts
        self.ids = dict(ids or {})
        self._over: dict[str, list[str]] = {}
        self._tensions: dict[str, list[Tension]] = {}
        for path in sorted(concepts):
            for old in concepts[path].targets("supersedes"):
                self._over.setdefault(old, []).append(path)
            for how in TENSIONS:
                for other in concepts[path].targets(how):
                    tension = Tension(path, how, other)
                    self._tensions.setdefault(path, []).append(tension)
                    self._tensions.setdefault(other, []).append(tension)

    def superseded_by(self, path: str) -> tuple[str, ...]:
        """Return the concepts that supersede this one."""
        return tuple(self._over.get(path, ()))

    def find(self, name: str) -> str | None:
        """Return the path that is meant: a path, an ``x-mentu`` id, a ledger id, or a file's name that is unique."""
        plain = name.lstrip("/")
        if plain in self.concepts:
            return plain
        hits = [path for path, item in self.concepts.items() if item.profile.id == name or self.ids.get(path) == name]
        if not hits:
            hits = [path for path in self.concepts if path.rpartition("/")[2] in (plain, f"{plain}.md")]
        return hits[0] if len(hits) == 1 else None

    def search(self, text: str, limit: int) -> list[tuple[str, int]]:
        """Return paths and scores, best first, stale ones left out.

        Each word of the text counts 4 in the title, 3 in a tag, 2 in the path, 1 in the body; equal scores stand in
        the order of their paths.
        """
        words = set(_WORD.findall(text.casefold()))
        scored = []
        for path, concept in self.concepts.items():
            if path in self._over:
                continue
            places = {
                "title": concept.title,
                "tags": " ".join(concept.tags),
                "path": path,
                "text": concept.text,
            }
            score = sum(
                _WEIGHTS[place] * len(words.intersection(_WORD.findall(value.casefold())))
                for place, value in places.items()
            )
            if score:
                scored.append((path, score))
        return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def walk(self, path: str) -> Walk:
        """Return a concept with its foundations, nearest first; what is superseded is dropped with all beyond it.

        Raises:
            Refused: ``E_OKF_NO_CONCEPT``.
        """
        if path not in self.concepts:
            raise Refused("E_OKF_NO_CONCEPT", "there is no such concept", place=Place(path=path))
        found: list[Foundation] = []
        stale: dict[str, tuple[str, ...]] = {}
        seen = {path}
        level = [path]
        depth = 0
        while level:
            depth += 1
            following = []
            for source in level:
                for target in self.concepts[source].targets("extends"):
                    if target in seen:
                        continue
                    seen.add(target)
                    if target in self._over:
                        stale[target] = self.superseded_by(target)
                        continue
                    missing = target not in self.concepts
                    found.append(Foundation(target, depth, source, missing))
                    if not missing:
                        following.append(target)
            level = following
        kept = [path, *(item.path for item in found)]
        tensions: dict[Tension, None] = {}
        for name in kept:
            for tension in self._tensions.get(name, ()):
                if tension.path not in self._over or tension.path == path:
                    tensions[tension] = None
        return Walk(path, self.superseded_by(path), tuple(found), stale, tuple(tensions))

    def describe(self, path: str) -> dict[str, Any]:
        """Return what is told of a concept; ``declared`` is its own word about itself."""
        concept = self.concepts.get(path)
        if concept is None:
            return {"path": path, "missing": True}
        told: dict[str, Any] = {"path": path, "type": concept.type, "title": concept.title}
        if concept.profile.level is not None:
            told["declared"] = concept.profile.level
        if path in self.ids:
            told["id"] = self.ids[path]
        return told


def ingested(rows: Iterable[Row], bundle: str | None) -> dict[str, Knowledge]:
    """Return the bundles that a ledger holds, by name, each concept in its newest version.

    Args:
        rows: the ledger's.
        bundle: only this one; ``None`` for all.
    """
    concepts: dict[str, dict[str, Concept]] = {}
    ids: dict[str, dict[str, str]] = {}
    for row in rows:
        read = _concept_of(row.value)
        if read is None or (bundle is not None and read[0] != bundle):
            continue
        name, concept = read
        concepts.setdefault(name, {})[concept.path] = concept
        ids.setdefault(name, {})[concept.path] = str(row.value.get("id"))
    return {name: Knowledge(found, ids[name]) for name, found in concepts.items()}


def _concept_of(row: Mapping[str, Any]) -> tuple[str, Concept] | None:
    """Return bundle and concept of an ingested row; nothing in the row is trusted."""
    payload = row.get("payload")
    if row.get("op") != "capture" or not isinstance(payload, dict) or payload.get("kind") != "concept":
        return None
    meta = payload.get("meta")
    okf = meta.get("okf") if isinstance(meta, dict) else None
    body = payload.get("body")
    if not isinstance(okf, dict) or not isinstance(body, str):
        return None
    bundle, path, front = okf.get("bundle"), okf.get("path"), okf.get("frontmatter")
    if not isinstance(bundle, str) or not isinstance(path, str) or not path:
        return None
    text = "" if body == path else body
    # JSON is YAML, so what was declared is read by the same reader as in a file.
    head = f"---\n{json.dumps(front, ensure_ascii=True)}\n---\n" if isinstance(front, dict) else ""
    return bundle, _Ingested(path, head.encode() + text.encode("utf-8", "replace"), front)


class _Ingested(Concept):
    """A concept whose frontmatter was read when it was ingested."""

    def __init__(self, path: str, data: bytes, front: Any) -> None:
        super().__init__(path, data)
        if isinstance(front, dict):
            from troth.knowledge.frontmatter import Frontmatter

            self.__dict__["front"] = Frontmatter(front)
