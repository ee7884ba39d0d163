"""A bundle derived from a foreign corpus: the source unchanged, every original recoverable (ledger spec §13 [D49]).

A projected file is new frontmatter and the original body. The new frontmatter holds the derived fields, then
``x-source-sha256`` (of the original head: everything before the body), ``x-source-encoding``, the length of the body
in bytes (citations may be added behind it) and, last, the head itself in ``x-source``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from troth.core.digests import sha256_hex, tree_digest
from troth.core.errors import DoesNotHold, Place, Refused
from troth.knowledge.bundle import Skipped, read_file, walk
from troth.knowledge.concept import Concept
from troth.knowledge.frontmatter import read_yaml, split
from troth.knowledge.paths import Escapes, is_concept, resolve_path
from troth.knowledge.writing import exists, new_folder, put
from troth.knowledge.yamlout import literal, quoted

MANIFEST: Final = ".okf-projection.json"
"""Beside the projected files, and no part of the bundle: names begin with a dot."""

LINEAGE: Final = ("extends", "parent", "parents", "derived_from", "builds_on", "based_on", "lineage")
"""Fields of a foreign frontmatter that name what a document builds upon."""

RESULTS: Final = ("result", "results", "evidence")
"""Fields that name the results a document rests on."""

LEVELS: Final[Mapping[str, float]] = {
    "accepted": 0.8,
    "verified": 0.8,
    "open": 0.5,
    "draft": 0.5,
    "rejected": 0.2,
    "failed": 0.2,
}
"""Status of a foreign document -> ``trust.level``."""

ROOT_TYPE: Final = "document"
_SLUG: Final = re.compile(r"[^a-z0-9]+")
_WIKI: Final = re.compile(r"\[\[([^\]|#]+)")


def slug(text: str) -> str:
    """Return a text as lowercase words joined by hyphens, possibly empty."""
    return _SLUG.sub("-", text.casefold()).strip("-")


@dataclass(slots=True)
class Projection:
    """What was projected: the source's digest, how many concepts, other files copied, and what was left out."""

    source: str
    digest: str
    concepts: int = 0
    copied: int = 0
    unresolved: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {
            "source_sha256": self.digest,
            "concepts": self.concepts,
            "copied": self.copied,
            "unresolved": [{"file": file, "reference": name} for file, name in self.unresolved],
            "skipped": [{"file": gap.path, "why": gap.why} for gap in self.skipped],
        }


class Corpus:
    """What references between foreign documents are resolved with: paths, ids and file names."""

    def __init__(self, concepts: Mapping[str, Concept]) -> None:
        self.paths = set(concepts)
        self._ids: dict[str, str] = {}
        for path, concept in concepts.items():
            stem = path.rpartition("/")[2].rpartition(".")[0]
            for name in (_text(concept.front.values.get("id")), stem):
                if name:
                    self._ids.setdefault(name.casefold(), path)

    def find(self, name: str, source: str) -> str | None:
        """Return the path that a reference means: a path, an id, a file's name, or one of these in ``[[…]]``."""
        wiki = _WIKI.match(name)
        plain = (wiki[1] if wiki else name).strip()
        for written in (plain, f"/{plain}", f"{plain}.md", f"/{plain}.md"):
            try:
                path = resolve_path(written, source)
            except Escapes:
                continue
            if path in self.paths:
                return path
        return self._ids.get(plain.casefold())


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    return str(value) if type(value) in (int, float) else ""


def _names(values: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for key in keys:
        value = values.get(key)
        found.extend(filter(None, map(_text, value if isinstance(value, list) else [value])))
    return list(dict.fromkeys(found))


def derived(concept: Concept, corpus: Corpus, namespace: str) -> tuple[str, list[str], list[str]]:
    """Return the derived fields as YAML, the paths to cite, and the references that name nothing."""
    values, path = concept.front.values, concept.path
    kind = path.split("/")[0] if "/" in path else ROOT_TYPE
    lost: list[str] = []

    def resolved(keys: tuple[str, ...]) -> list[str]:
        found = []
        for name in _names(values, keys):
            target = corpus.find(name, path)
            if target is None:
                lost.append(name)
            elif target != path and target not in found:
                found.append(target)
        return found

    lines = [f"type: {quoted(kind)}"]
    title, tags = _text(values.get("title")), concept.tags
    if title:
        lines.append(f"title: {quoted(title)}")
    if tags:
        lines.append(f"tags: [{', '.join(map(quoted, tags))}]")
    profile: list[str] = []
    parts = slug(namespace), slug(kind), slug(_text(values.get("id")))
    if all(parts):
        profile.append(f"  id: {quoted(f'{parts[0]}:{parts[1]}.{parts[2]}')}")
    level = LEVELS.get(_text(values.get("status")).casefold())
    if level is not None:
        profile += ["  trust:", f"    level: {level}"]
    above = resolved(LINEAGE)
    if above:
        profile += ["  relations:", "    extends:", *(f"      - {quoted('/' + target)}" for target in above)]
    if profile:
        lines += ["x-mentu:", *profile]
    return "".join(f"{line}\n" for line in lines), resolved(RESULTS), lost


def projected(concept: Concept, fields: str, cited: list[str]) -> bytes:
    """Return the bytes of a projected file; they have been read back and give the original."""
    head, body = concept.parts.head, concept.parts.body
    text: str | None = None
    try:
        text = literal(head.decode("utf-8"))
    except UnicodeDecodeError:
        text = None
    data = b""
    for block, encoding in ((text, "text"), (quoted(base64.b64encode(head).decode()) + "\n", "base64")):
        if block is None:
            continue
        source = (
            f"x-source-sha256: {quoted(sha256_hex(head))}\nx-source-encoding: {encoding}\n"
            f"x-source-body-bytes: {len(body)}\nx-source: {block}"
        )
        data = f"---\n{fields}{source}---\n".encode() + body + _citations(body, cited)
        try:
            if restored(data) == concept.data:
                return data
        except Refused:
            continue
    raise Refused(
        "E_OKF_NOT_PROJECTED",
        "no form was found that gives the original back",
        place=Place(file=concept.path),
    )


def _citations(body: bytes, cited: list[str]) -> bytes:
    if not cited:
        return b""
    from urllib.parse import quote

    start = b"" if not body or body.endswith(b"\n") else b"\n"
    items = "".join(f"- [{_label(path)}](/{quote(path)})\n" for path in cited)
    return start + f"\n## Citations\n\n{items}".encode()


def _label(path: str) -> str:
    return re.sub(r"([\\\[\]`*_<>!&])", r"\\\1", " ".join(path.split()))


def restored(data: bytes) -> bytes:
    """Return the original bytes of a projected file.

    Raises:
        Refused: ``E_OKF_NOT_PROJECTED``.
    """
    parts = split(data)
    # A head may be longer than frontmatter that people write: it is found without a limit of its own.
    front = read_yaml(parts.yaml or b"", limit=None)
    block, length = front.values.get("x-source"), front.values.get("x-source-body-bytes")
    encoding = front.values.get("x-source-encoding")
    if not isinstance(block, str) or type(length) is not int or not 0 <= length <= len(parts.body):
        raise _not_projected("the x-source block or the body is not whole")
    try:
        head = base64.b64decode(block, validate=True) if encoding == "base64" else block.encode("utf-8")
    except (binascii.Error, ValueError):
        raise _not_projected("x-source is no base64") from None
    if sha256_hex(head) != front.values.get("x-source-sha256"):
        raise _not_projected("x-source has another digest than x-source-sha256")
    return head + parts.body[:length]


def _not_projected(message: str) -> Refused:
    return Refused("E_OKF_NOT_PROJECTED", message)


def _digests(root: Path, skipped: list[Skipped]) -> dict[str, str]:
    found = {}
    for path in walk(root, skipped):
        data = read_file(root / path, None) or b""
        found[path] = hashlib.sha256(data).hexdigest()
    return found


def project(
    source: Path,
    out: Path,
    *,
    namespace: str | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> Projection:
    """Derive a bundle from the Markdown files below ``source`` into the new folder ``out``; other files are copied.

    Args:
        source: the corpus, which is only read.
        out: where the bundle is to stand.
        namespace: the first part of derived ids; the source folder's name by default.
        force: replace an earlier projection that stands there; nothing else is ever replaced.
        progress: told files done and files in all.

    Raises:
        Refused: ``E_OKF_INSIDE``, ``E_OKF_EXISTS``, ``E_OKF_WRITE``, and those of reading.
        DoesNotHold: ``E_OKF_SOURCE_CHANGED``; nothing was written.
    """
    here, there = source.resolve(), out.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise Refused("E_OKF_INSIDE", "source and projection lie one in the other", place=Place(file=str(out)))
    if out.exists() and not (force and (out / MANIFEST).is_file() and not out.is_symlink()):
        raise exists(out, "Name a new folder; --force replaces an earlier projection and nothing else.")
    skipped: list[Skipped] = []
    before = _digests(source, skipped)
    result = Projection(str(source), tree_digest(before), skipped=skipped)
    concepts: dict[str, Concept] = {}
    for path in before:
        if is_concept(path):
            data = read_file(source / path)
            if data is None:
                skipped.append(Skipped(path, "too_large"))
            else:
                concepts[path] = Concept(path, data)
    corpus = Corpus(concepts)
    with new_folder(there, replaces=force) as staging:
        for number, path in enumerate(before):
            progress(number, len(before))
            if path in concepts:
                fields, cited, lost = derived(concepts[path], corpus, namespace or here.name)
                put(staging, path, projected(concepts[path], fields, cited))
                result.concepts += 1
                result.unresolved.extend((path, name) for name in lost)
            else:
                put(staging, path, read_file(source / path, None) or b"")
                result.copied += 1
        manifest = {
            "okf_projection": 1,
            "source_sha256": result.digest,
            "files": {path: {"sha256": before[path], "projected": path in concepts} for path in before},
        }
        put(staging, MANIFEST, (json.dumps(manifest, ensure_ascii=True, indent=1, sort_keys=True) + "\n").encode())
        if _digests(source, []) != before:
            raise DoesNotHold(
                "E_OKF_SOURCE_CHANGED", "the source changed meanwhile; nothing was written", place=Place(file=str(here))
            )
    return result


def restore(out: Path, target: Path | None) -> tuple[int, str]:
    """Recover the source of a projection into a new folder, or only check that it can be; return files and digest.

    Raises:
        Refused: ``E_OKF_NOT_PROJECTED``, ``E_OKF_EXISTS``, ``E_OKF_WRITE``, and those of reading.
        DoesNotHold: ``E_OKF_NOT_PROJECTED`` when what is recovered is not what was projected.
    """
    files, digest = _manifest(out)
    found: dict[str, str] = {}

    def recovered(path: str, projected_: bool) -> bytes:
        data = read_file(out / path, None) or b""
        data = restored(data) if projected_ else data
        found[path] = sha256_hex(data)
        if found[path] != files[path]["sha256"]:
            raise DoesNotHold("E_OKF_NOT_PROJECTED", "the file gives another original", place=Place(file=path))
        return data

    if target is None:
        for path, entry in files.items():
            recovered(path, entry["projected"])
    else:
        with new_folder(target.resolve()) as staging:
            for path, entry in files.items():
                put(staging, path, recovered(path, entry["projected"]))
    if tree_digest(found) != digest:
        raise DoesNotHold("E_OKF_NOT_PROJECTED", "the files give another source tree", place=Place(file=str(out)))
    return len(found), digest


def _manifest(out: Path) -> tuple[dict[str, Any], str]:
    try:
        value = json.loads(read_file(out / MANIFEST, None) or b"")
        files, digest = value["files"], value["source_sha256"]
        for path, entry in files.items():
            _check_entry(path, entry)
        bytes.fromhex(digest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refused(
            "E_OKF_NOT_PROJECTED", "its list of files is not whole", place=Place(file=str(out / MANIFEST))
        ) from None
    return files, digest


def _check_entry(path: str, entry: Mapping[str, Any]) -> None:
    parts = path.split("/")
    inside = "\0" not in path and not any(part == "" or part.startswith(".") for part in parts)
    if not inside or not isinstance(entry["sha256"], str) or not isinstance(entry["projected"], bool):
        raise ValueError(path)
