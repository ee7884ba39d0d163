"""One concept of a bundle, parsed from its bytes, and where it leads (ledger spec §13)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from troth.core.digests import sha256_hex
from troth.knowledge.frontmatter import Frontmatter, Parts, decoded, read_yaml, split
from troth.knowledge.markdown import Outline, outline
from troth.knowledge.paths import Escapes, is_concept, resolve_link, resolve_path
from troth.knowledge.profile import RELATIONS, Profile, read_profile

UNTYPED: Final = "untyped"

EDGE_OF: Final[dict[str, str]] = {
    "extends": "extends",
    "supersedes": "supersedes",
    "reinforces": "supports",
    "constrains": "okf_link",
    "balances_with": "okf_link",
    "cites": "cites",
    "link": "okf_link",
}
"""What the concept says -> the type of the ledger's relation."""


@dataclass(frozen=True, slots=True)
class Lead:
    """Where a concept leads: how (a relation of the profile, ``cites`` or ``link``), to which path, on which line.

    ``target`` is from the bundle's root; ``None`` when it leads out of the bundle. ``written`` is as it stands.
    """

    how: str
    target: str | None
    written: str
    line: int


class Concept:
    """A Markdown file of a bundle.

    Args:
        path: from the bundle's root, with ``/``.
        data: the file's bytes.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data

    @cached_property
    def parts(self) -> Parts:
        """Return the parts that the bytes are made of."""
        return split(self.data)

    @cached_property
    def front(self) -> Frontmatter:
        """Return what the frontmatter says; empty without one."""
        return read_yaml(self.parts.yaml) if self.parts.yaml is not None else Frontmatter()

    @cached_property
    def text(self) -> str:
        """Return the body as text."""
        return decoded(self.parts.body)[0]

    @property
    def is_utf8(self) -> bool:
        """Tell whether the whole file is UTF-8."""
        return decoded(self.data)[1]

    @cached_property
    def sha256(self) -> str:
        """Return the digest of the file."""
        return sha256_hex(self.data)

    @cached_property
    def outline(self) -> Outline:
        """Return the body's sections and links."""
        return outline(self.text)

    @cached_property
    def _read(self) -> tuple[Profile, list[tuple[str, str]]]:
        return read_profile(self.front.values)

    @property
    def profile(self) -> Profile:
        """Return the well-formed fields of ``x-mentu``."""
        return self._read[0]

    @property
    def malformed(self) -> list[tuple[str, str]]:
        """Return path and rule of each field of ``x-mentu`` that has another form."""
        return self._read[1]

    @property
    def type(self) -> str:
        """Return the type, ``untyped`` where there is none that can be read."""
        value = self.front.values.get("type")
        if is_empty_type(value):
            return UNTYPED
        return value.strip() if isinstance(value, str) else str(value)

    @property
    def title(self) -> str:
        """Return the title: the frontmatter's, else the first heading, else the file's name."""
        value = self.front.values.get("title")
        if isinstance(value, str) and value.strip():
            return value.strip()
        if self.outline.sections and self.outline.sections[0].title.strip():
            return self.outline.sections[0].title.strip()
        return self.path.rpartition("/")[2].rpartition(".")[0]

    @property
    def tags(self) -> list[str]:
        """Return the tags that are text."""
        value = self.front.values.get("tags")
        if isinstance(value, str):
            return [value] if value.strip() else []
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    @cached_property
    def leads(self) -> tuple[Lead, ...]:
        """Return where it leads: relations in the table's order, then citations, then other links, as they stand."""
        found: list[Lead] = []
        for how in RELATIONS:
            line = self.front.lines.get(f"x-mentu.relations.{how}", 1)
            names = self.profile.relations.get(how, ())
            found.extend(Lead(how, _resolved(written, self.path), written, line) for written in names)
        below = self.parts.body_line
        for cited in (True, False):
            for link in self.outline.links:
                if link.cited is not cited:
                    continue
                how = "cites" if cited else "link"
                try:
                    target = resolve_link(link.target, self.path)
                except Escapes:
                    found.append(Lead(how, None, link.target, below + link.line))
                    continue
                if target is not None:
                    found.append(Lead(how, target, link.target, below + link.line))
        return tuple(found)

    def edges(self) -> list[tuple[str, str]]:
        """Return (relation type of the ledger, path) of each edge to a concept, once each, in the order of leads."""
        pairs = [
            (EDGE_OF[lead.how], lead.target)
            for lead in self.leads
            if lead.target is not None and lead.target != self.path and is_concept(lead.target)
        ]
        return list(dict.fromkeys(pairs))

    def targets(self, how: str) -> list[str]:
        """Return the paths that it leads to in one way, once each, itself left out."""
        found = [lead.target for lead in self.leads if lead.how == how and lead.target is not None]
        return [path for path in dict.fromkeys(found) if path != self.path]


def _resolved(written: str, source: str) -> str | None:
    try:
        return resolve_path(written, source)
    except Escapes:
        return None


def is_empty_type(value: Any) -> bool:
    """Tell whether a type is missing or empty: absent, null, blank text, an empty list or mapping."""
    return value is None or value in ("", [], {}) or (isinstance(value, str) and not value.strip())
