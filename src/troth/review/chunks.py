"""Code that is too large for one review, reviewed in chunks of whole files (§12).

Each chunk is an artifact of its own with an ordinary review of its own revision. The parent response carries the
revision of the whole, every finding of every chunk once, and what a review in pieces cannot have seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.review.anchors import Span, resolve
from troth.review.artifact import Artifact, framed_size
from troth.review.panel import limits_of
from troth.review.shapes import FAILURE_CODES, SEVERITIES

MOST_BYTES: Final = 200_000
"""Bytes of a chunk's payload unless the operator says otherwise: some 50,000 tokens."""

STATEMENTS: Final = (
    "Each chunk was reviewed alone; the whole was not reviewed.",
    "Faults between chunks may be invisible.",
    "Clean chunks are not a clean artifact.",
)
"""What every report of such a review states ([D39])."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some members of the artifact, whole, as an artifact of their own."""

    id: str
    artifact: Artifact

    @property
    def members(self) -> tuple[str, ...]:
        """Paths of the members."""
        return tuple(self.artifact.members)


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole and its chunks; each member is in exactly one."""

    artifact: Artifact
    chunks: tuple[Chunk, ...]

    def manifest(self) -> dict[str, Any]:
        """Return what is shown before the first byte leaves: every chunk with its members and digests."""
        return {
            "artifact": {"bytes": len(self.artifact.payload), "digest": f"sha256:{self.artifact.digest}"},
            "chunks": [
                {
                    "id": chunk.id,
                    "bytes": len(chunk.artifact.payload),
                    "digest": f"sha256:{chunk.artifact.digest}",
                    "members": [
                        {"path": path, "bytes": len(member.data), "sha256": sha256_hex(member.data)}
                        for path, member in chunk.artifact.members.items()
                    ],
                }
                for chunk in self.chunks
            ],
        }


def planned(artifact: Artifact, kind: str, most_bytes: int = MOST_BYTES) -> Plan:
    """Return the chunks of an artifact: its members in byte order of path, as many together as fit.

    Args:
        artifact: the whole.
        kind: what it is; only ``code`` is cut.
        most_bytes: of one chunk's payload, its frame included.

    Raises:
        Refused: ``E_CHUNKS_KIND``; ``E_CHUNKS_PLAN`` for a member that is larger than a chunk, since files stay whole.
    """
    if kind != "code":
        raise Refused(
            "E_CHUNKS_KIND", f"an artifact of kind {kind} is reviewed whole", remedy="Chunks are for --kind code."
        )
    found: list[list[tuple[str, bytes]]] = []
    framed = 0
    for path, member in artifact.members.items():
        own = len(member.data)
        if own > most_bytes:
            raise Refused(
                "E_CHUNKS_PLAN",
                f"{path} has {own} bytes, more than a chunk may have ({most_bytes}); files are not cut",
                remedy="Allow larger chunks, or leave the file out.",
            )
        size = framed_size(path, own)
        if found and framed + size <= most_bytes:
            found[-1].append((path, member.data))
            framed += size
        else:
            found.append([(path, member.data)])
            framed = size
    width = max(2, len(str(len(found))))
    return Plan(artifact, tuple(Chunk(f"c{number:0{width}d}", Artifact(held)) for number, held in enumerate(found, 1)))


def assembled(
    plan: Plan,
    reviews: Mapping[str, Mapping[str, Any]],
    failures: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    review_id: str,
    created_at: str | None = None,
) -> dict[str, Any]:
    """Return the parent response of the chunks' reviews: every finding once, ordered by severity, none merged.

    ``extensions.chunks`` lists the chunks (id, members, digest, outcome), ``extensions.chunk_sources`` where each
    finding comes from. An anchor that would mean another place in the whole than in its chunk is restated as the lines
    that it meant; the reviewer's own stands in the sources. A finding that points at another chunk, which its reviewer
    never saw, is named among the limits.

    Args:
        plan: the chunks.
        reviews: chunk id -> the value of its valid response.
        failures: chunk id -> what failed, with ``code`` and ``message`` (§6).
        review_id: the parent's id.
        created_at: RFC 3339.

    Raises:
        Refused: ``E_CHUNKS_PLAN`` for a chunk with neither or both, an unknown one, or a review of another revision.
        ValueError: a failure of an unknown code.
    """
    failures = failures or {}
    _check(plan, reviews, failures)
    raised = [
        (chunk, finding) for chunk in plan.chunks if chunk.id in reviews for finding in reviews[chunk.id]["findings"]
    ]
    raised.sort(key=lambda pair: SEVERITIES.index(pair[1]["severity"]))
    findings = []
    sources: dict[str, Any] = {}
    unseen: list[str] = []
    for number, (chunk, finding) in enumerate(raised, 1):
        name = f"F{number:03d}"
        evidence, original = _restated(finding["evidence"], chunk, plan.artifact)
        findings.append({**finding, "id": name, "evidence": evidence})
        sources[name] = {"chunk": chunk.id, "finding_id": finding["id"]} | ({"anchors": original} if original else {})
        if _points_outside(finding["evidence"], chunk, plan.artifact):
            unseen.append(f"{name} points at what the reviewer of {chunk.id} did not see.")
    chunks = [_told(chunk, reviews.get(chunk.id), failures.get(chunk.id)) for chunk in plan.chunks]
    done = all(chunk["outcome"] in ("approve", "needs_attention") for chunk in chunks)
    return {
        "schema_version": "1.0",
        "review_id": review_id,
        **({"created_at": created_at} if created_at is not None else {}),
        "producer": {"backend": "chunks"},
        "artifact": {"kind": "code", "revision": plan.artifact.revision},
        "assessment": "needs_attention" if findings else "approve" if done else "unable_to_assess",
        "summary": f"{len(reviews)} of {len(chunks)} chunks were reviewed, each alone: {len(findings)} findings.",
        "findings": findings,
        "limitations": [*STATEMENTS, *unseen, *_seams(plan, reviews)],
        "extensions": {"chunks": chunks, "chunk_sources": sources},
    }


def _check(plan: Plan, reviews: Mapping[str, Any], failures: Mapping[str, Any]) -> None:
    known = {chunk.id: chunk for chunk in plan.chunks}
    if reviews.keys() & failures.keys() or (reviews.keys() | failures.keys()) != known.keys():
        named = sorted((reviews.keys() & failures.keys()) | ((reviews.keys() | failures.keys()) ^ known.keys()))
        raise Refused("E_CHUNKS_PLAN", f"each chunk has a review or a failure: {', '.join(named)}")
    for name, failure in failures.items():
        if failure["code"] not in FAILURE_CODES:
            raise ValueError(f"{name}: {failure['code']}")
    for name, review in reviews.items():
        held = review["artifact"]
        own = known[name].artifact.digest
        if (held["kind"], held["revision"]["algorithm"], held["revision"]["value"].lower()) != ("code", "sha256", own):
            raise Refused("E_CHUNKS_PLAN", f"the review of {name} is about another artifact")


def _told(chunk: Chunk, review: Mapping[str, Any] | None, failure: Mapping[str, Any] | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": chunk.id,
        "members": list(chunk.members),
        "digest": f"sha256:{chunk.artifact.digest}",
        "outcome": review["assessment"] if review is not None else "failed",
    }
    if review is not None:
        told["review_id"] = review["review_id"]
    if failure is not None:
        told["failure"] = dict(failure)
    return told


def _seams(plan: Plan, reviews: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    for chunk in plan.chunks:
        for text in limits_of(reviews[chunk.id]) if chunk.id in reviews else ():
            yield f"Seam of {chunk.id} ({', '.join(chunk.members)}): {text}"


def _points_outside(evidence: Sequence[Mapping[str, Any]], chunk: Chunk, whole: Artifact) -> bool:
    """Tell whether an anchor leads nowhere in its chunk and somewhere in the whole: it was guessed, not observed."""
    return any(
        not resolve(entry["anchor"], chunk.artifact).holds and resolve(entry["anchor"], whole).holds
        for entry in evidence
    )


def _restated(
    evidence: Sequence[Mapping[str, Any]], chunk: Chunk, whole: Artifact
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the evidence as it stands in the whole, and by number the anchors that had to be restated."""
    found = []
    original: dict[str, Any] = {}
    for number, entry in enumerate(evidence):
        anchor = entry["anchor"]
        here = resolve(anchor, chunk.artifact)
        if here.holds and here.spans and resolve(anchor, whole).spans != here.spans:
            original[str(number)] = anchor
            anchor = _lines(here.spans[0], chunk.artifact)
        found.append({**entry, "anchor": anchor})
    return found, original


def _lines(span: Span, artifact: Artifact) -> dict[str, Any]:
    """Return the anchor of the lines that a place covers; of a place without extent, that of its member."""
    import bisect

    member = artifact.members[span.path]
    anchor: dict[str, Any] = {"type": "file_range", "path": span.path}
    if span.end > span.start and member.lines:
        last = len(member.lines)
        first = min(bisect.bisect_right(member.starts, span.start), last)
        anchor |= {
            "line_start": first,
            "line_end": max(first, min(bisect.bisect_right(member.starts, span.end - 1), last)),
        }
    return anchor
