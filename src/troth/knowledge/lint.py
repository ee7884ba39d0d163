"""What is to be said about a bundle: one kind of error, everything else a warning (ledger spec §13 [D46])."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from troth.core.words import printable
from troth.knowledge.bundle import Bundle
from troth.knowledge.codes import ERRORS, FINDINGS
from troth.knowledge.concept import Concept, is_empty_type
from troth.knowledge.profile import RELATIONS

KNOWN_KEYS: Final = frozenset({"type", "title", "description", "resource", "tags", "timestamp"})
"""The format's own keys; keys prefixed ``x-`` are the writer's."""

KNOWN_VERSIONS: Final = frozenset({"0.1"})


@dataclass(frozen=True, slots=True)
class Finding:
    """A word of :mod:`troth.knowledge.codes` about a file, with the physical line and the YAML path if there is one."""

    code: str
    file: str
    line: int | None
    path: str | None
    message: str

    @property
    def severity(self) -> str:
        """Return ``error`` or ``warning``."""
        return "error" if self.code in ERRORS else "warning"

    def as_json(self) -> dict[str, Any]:
        """Return the members and the severity."""
        return {
            "severity": self.severity,
            "code": self.code,
            "file": self.file,
            "line": self.line,
            "path": self.path,
            "message": self.message,
        }


def lint(bundle: Bundle, types: Iterable[str] = ()) -> list[Finding]:
    """Return everything found, by file and line.

    Args:
        bundle: what was read.
        types: the known types, besides those that ``types`` of the root index lists; when both are empty the
            vocabulary is open and no type is unknown.
    """
    found = [Finding(gap.why, gap.path, None, None, FINDINGS[gap.why]) for gap in bundle.skipped]
    known = set(types) | _declared_types(bundle)
    for concept in bundle.concepts.values():
        found.extend(_frontmatter(concept, known))
        found.extend(_profile(concept))
    for index in bundle.reserved.values():
        found.extend(_reserved(index))
    for file in (*bundle.concepts.values(), *bundle.reserved.values()):
        found.extend(_links(file, bundle))
        if not file.is_utf8:
            found.append(Finding("not_utf8", file.path, None, None, FINDINGS["not_utf8"]))
    found.extend(_graph(bundle))
    return sorted(found, key=lambda finding: (finding.file, finding.line or 0, finding.code, finding.message))


def _declared_types(bundle: Bundle) -> set[str]:
    index = bundle.reserved.get("index.md")
    declared = index.front.values.get("types") if index is not None else None
    return {item for item in declared if isinstance(item, str)} if isinstance(declared, list) else set()


def _frontmatter(concept: Concept, known: set[str]) -> Iterator[Finding]:
    front, path = concept.front, concept.path
    if concept.parts.yaml is None:
        code = "unclosed_frontmatter" if concept.parts.unclosed else "no_frontmatter"
        yield Finding(code, path, 1, None, FINDINGS[code])
        return
    if front.problem is not None:
        yield Finding("no_type", path, front.problem_line, None, f"the frontmatter cannot be read: {front.problem}")
        return
    value, line = front.values.get("type"), front.lines.get("type", 1)
    if is_empty_type(value):
        what = "the type is empty" if "type" in front.values else "the type is missing"
        yield Finding("no_type", path, line, "type", what)
    elif not isinstance(value, str):
        yield Finding("type_not_text", path, line, "type", f"the type is {type(value).__name__}, not text")
    elif known and value.strip() not in known:
        yield Finding("unknown_type", path, line, "type", f"no such type is known: {printable(value, 80)}")
    for name in front.values:
        if name not in KNOWN_KEYS and not name.startswith("x-"):
            yield Finding("unknown_key", path, front.lines.get(name), name, f"unknown key {printable(name, 80)}")


def _profile(concept: Concept) -> Iterator[Finding]:
    for path, rule in concept.malformed:
        yield Finding("malformed_profile", concept.path, concept.front.lines.get(path), path, printable(rule, 200))


def _reserved(index: Concept) -> Iterator[Finding]:
    if index.path != "index.md" or "okf_version" not in index.front.values:
        return
    version = index.front.values["okf_version"]
    if str(version) not in KNOWN_VERSIONS:
        message = f"unknown version {printable(str(version), 40)}"
        yield Finding("unknown_version", index.path, index.front.lines.get("okf_version"), "okf_version", message)


def _links(file: Concept, bundle: Bundle) -> Iterator[Finding]:
    for lead in file.leads:
        path = f"x-mentu.relations.{lead.how}" if lead.how in RELATIONS else None
        written = printable(lead.written, 200)
        if lead.target is None:
            yield Finding("link_escapes", file.path, lead.line, path, f"{written} leads out of the bundle")
        elif not bundle.holds(lead.target):
            code = "dangling_citation" if lead.how == "cites" else "broken_link"
            yield Finding(code, file.path, lead.line, path, f"{written} is not there")


def _graph(bundle: Bundle) -> Iterator[Finding]:
    leads: dict[str, set[str]] = {}
    reached: set[str] = set()
    for file in (*bundle.concepts.values(), *bundle.reserved.values()):
        targets = {lead.target for lead in file.leads if lead.target is not None and lead.target != file.path}
        leads[file.path] = targets
        reached |= targets
    for path, concept in bundle.concepts.items():
        if path not in reached:
            yield Finding("orphan", path, None, None, "no other file leads here")
        told: set[str] = set()
        for lead in concept.leads:
            target = lead.target
            if lead.how not in RELATIONS or target not in bundle.concepts or target == path or target in told:
                continue
            if path not in leads[target]:
                told.add(target)
                where = f"x-mentu.relations.{lead.how}"
                yield Finding("no_back_reference", path, lead.line, where, f"{printable(target, 200)} leads not back")
