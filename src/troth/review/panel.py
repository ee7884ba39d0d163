"""A panel: several reviewers of the same artifact, their findings side by side in one response (§12).

Nothing is averaged. Two findings become one only where their category is equal, an anchor is identical, and the host
confirmed that they claim the same; all evidence stays, and the highest severity. How many raised a finding is told as
breadth: it is no proof, and reviewers of one provider corroborate nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.review.shapes import FAILURE_CODES, SEVERITIES

MOST: Final = 5
"""Reviewers of a panel unless the operator says otherwise ([D38])."""

CODES: Final[Mapping[str, str]] = {
    "E_PANEL_SEATS": "A panel has two or more reviewers, each once, all about the same artifact.",
    "E_PANEL_MERGE": "Two findings may not become one: category, anchor or the host's confirmation is missing.",
    "E_CHUNKS_KIND": "Only code is reviewed in chunks; any other artifact is reviewed whole.",
    "E_CHUNKS_PLAN": "The artifact cannot be cut into chunks of whole files of that size, or a chunk is missing.",
}
"""Refusals of panels and of reviews in chunks -> what they mean."""


class Source(NamedTuple):
    """A finding as one reviewer raised it: the reviewer's seat, and the id in that reviewer's own response."""

    seat: str
    finding_id: str

    def __str__(self) -> str:
        return f"{self.seat}:{self.finding_id}"

    @classmethod
    def parse(cls, text: str) -> Source:
        """Return the source that ``SEAT:F001`` names.

        Raises:
            Refused: ``E_PANEL_MERGE``.
        """
        seat, sign, finding_id = text.rpartition(":")
        if not (seat and sign and finding_id):
            raise Refused("E_PANEL_MERGE", f"a finding of a panel is named SEAT:F001, not {text[:80]!r}")
        return cls(seat, finding_id)


@dataclass(frozen=True, slots=True)
class Seat:
    """One reviewer of a panel: its own tier and its own response, or what failed.

    ``review`` is the value of a valid response; ``failure`` has ``code`` and ``message`` (§6).
    """

    name: str
    backend: str
    tier: str
    provider: str | None = None
    review: Mapping[str, Any] | None = None
    failure: Mapping[str, Any] | None = None


class Seating(NamedTuple):
    """Who sits on the panel, and who was dropped because it was full; these are named in what the panel answers."""

    kept: tuple[str, ...]
    dropped: tuple[str, ...]


def seating(names: Sequence[str], most: int = MOST) -> Seating:
    """Return the reviewers that are asked, in the order given.

    Raises:
        Refused: ``E_PANEL_SEATS`` for fewer than two, or one named twice.
    """
    if len(set(names)) != len(names) or len(names) < 2 or most < 2:
        raise Refused("E_PANEL_SEATS", "a panel has two or more reviewers, each named once")
    return Seating(tuple(names[:most]), tuple(names[most:]))


# --- what may become one --------------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """Two findings of different reviewers that may be the same; whether they are, the host says."""

    one: Source
    other: Source


def candidates(seats: Sequence[Seat]) -> tuple[Candidate, ...]:
    """Return the pairs with an equal category and an identical anchor, in the order of seats and findings.

    Findings without a category, and two of one reviewer, are never a pair.
    """
    found = []
    held = [(Source(seat.name, finding["id"]), finding) for seat, finding in _raised(seats)]
    for number, (one, mine) in enumerate(held):
        for other, theirs in held[number + 1 :]:
            if one.seat != other.seat and _alike(mine, theirs):
                found.append(Candidate(one, other))
    return tuple(found)


def _raised(seats: Iterable[Seat]) -> Iterable[tuple[Seat, Mapping[str, Any]]]:
    for seat in seats:
        for finding in seat.review["findings"] if seat.review is not None else ():
            yield seat, finding


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    category = one.get("category")
    return category is not None and category == other.get("category") and bool(_anchors(one) & _anchors(other))


def _anchors(finding: Mapping[str, Any]) -> frozenset[bytes]:
    return frozenset(record_bytes(entry["anchor"]) for entry in finding["evidence"])


def _groups(seats: Sequence[Seat], confirmed: Iterable[tuple[Source, Source]]) -> list[list[Source]]:
    """Return the findings in groups that become one each; every pair within a group was confirmed."""
    allowed = {frozenset(pair) for pair in candidates(seats)}
    order = {Source(seat.name, finding["id"]): number for number, (seat, finding) in enumerate(_raised(seats))}
    same = {frozenset(pair) for pair in confirmed}
    for pair in same:
        if pair not in allowed:
            named = " and ".join(sorted(map(str, pair)))
            raise Refused(
                "E_PANEL_MERGE",
                f"{named} stay apart: they are findings of two reviewers with an equal category and an identical "
                "anchor, or they do not merge",
                detail=sorted(map(str, pair)),
            )
    groups: list[list[Source]] = []
    for source in order:
        linked = [group for group in groups if any(frozenset((source, held)) in same for held in group)]
        groups = [group for group in groups if group not in linked] + [
            [held for one in linked for held in one] + [source]
        ]
    for group in groups:
        for one, other in itertools.combinations(group, 2):
            if frozenset((one, other)) not in same:
                # A chain of confirmations is none: each two that become one were looked at together.
                raise Refused(
                    "E_PANEL_MERGE",
                    f"{one} and {other} would become one finding, and nobody confirmed that they claim the same",
                    detail=sorted((str(one), str(other))),
                )
    return sorted((sorted(group, key=order.__getitem__) for group in groups), key=lambda group: order[group[0]])


# --- one response ---------------------------------------------------------------------------------------------------


def merged(
    seats: Sequence[Seat],
    confirmed: Iterable[tuple[Source, Source]] = (),
    *,
    review_id: str,
    dropped: Sequence[str] = (),
    created_at: str | None = None,
) -> dict[str, Any]:
    """Return the response of a panel: every finding of every reviewer, once, under a new id.

    ``extensions.panel`` tells where each comes from, who sat and what each seat came to, who was dropped, how broadly
    each was raised, and the alternatives that reviewers suggested (their ``extensions.alternatives``), unverified.
    What a failed seat leaves undone is told by :func:`unreviewed`, so that the run is incomplete.

    Args:
        seats: the reviewers, each with its own valid response or its failure.
        confirmed: pairs of which the host confirmed that they claim the same; each is one of :func:`candidates`.
        review_id: the id of the merged response.
        dropped: reviewers that were not asked.
        created_at: RFC 3339.

    Raises:
        Refused: ``E_PANEL_SEATS``, ``E_PANEL_MERGE``.
        ValueError: a seat with both or neither of response and failure, or a failure of an unknown code.
    """
    artifact = _artifact_of(seats)
    held = {Source(seat.name, finding["id"]): finding for seat, finding in _raised(seats)}
    by_name = {seat.name: seat for seat in seats}
    findings = []
    sources: dict[str, Any] = {}
    breadth: dict[str, Any] = {}
    for number, group in enumerate(_groups(seats, confirmed), 1):
        name = f"F{number:03d}"
        findings.append(_one(name, [held[source] for source in group]))
        sources[name] = [
            {"seat": source.seat, "finding_id": source.finding_id}
            | {part: held[source][part] for part in ("severity", "confidence", "claim", "recommendation")}
            for source in group
        ]
        breadth[name] = _breadth([by_name[source.seat] for source in group], seats)
    panel: dict[str, Any] = {
        "seats": [_seat(seat) for seat in seats],
        "dropped": list(dropped),
        "sources": sources,
        "breadth": breadth,
    }
    alternatives = [
        {"seat": seat.name, "text": text, "verified": False} for seat in seats for text in _alternatives(seat)
    ]
    if alternatives:
        panel["alternatives"] = alternatives
    answered = [seat for seat in seats if seat.review is not None]
    limits = list(_limits(seats, dropped))
    if findings:
        assessment = "needs_attention"
    elif len(answered) == len(seats) and all(
        seat.review["assessment"] == "approve" for seat in answered if seat.review
    ):
        assessment = "approve"
    else:
        assessment = "unable_to_assess"
    return {
        "schema_version": "1.0",
        "review_id": review_id,
        **({"created_at": created_at} if created_at is not None else {}),
        "producer": {"backend": "panel"},
        "artifact": artifact,
        "assessment": assessment,
        "summary": _summary(seats, len(findings), len(held)),
        "findings": findings,
        "limitations": limits,
        "extensions": {"panel": panel},
    }


def _artifact_of(seats: Sequence[Seat]) -> dict[str, Any]:
    if len({seat.name for seat in seats}) != len(seats) or len(seats) < 2:
        raise Refused("E_PANEL_SEATS", "a panel has two or more reviewers, each once")
    for seat in seats:
        if (seat.review is None) == (seat.failure is None):
            raise ValueError(seat.name)
        if seat.failure is not None and seat.failure["code"] not in FAILURE_CODES:
            raise ValueError(seat.failure["code"])
    artifacts = [seat.review["artifact"] for seat in seats if seat.review is not None]
    if not artifacts:
        raise Refused("E_PANEL_SEATS", "no reviewer of the panel answered, so there is nothing to merge")
    first = artifacts[0]
    for other in artifacts[1:]:
        if (other["kind"], _revision(other)) != (first["kind"], _revision(first)):
            raise Refused("E_PANEL_SEATS", "the reviewers of the panel did not look at the same artifact")
    return dict(first)


def _revision(artifact: Mapping[str, Any]) -> tuple[str, str]:
    held = artifact["revision"]
    return held["algorithm"], held["value"].lower() if held["algorithm"] == "sha256" else held["value"]


def _one(name: str, group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the finding of a group: in the words of its severest member, with the evidence of all."""
    leading = min(group, key=lambda finding: SEVERITIES.index(finding["severity"]))
    return {**leading, "id": name, "evidence": [entry for finding in group for entry in finding["evidence"]]}


def _breadth(raisers: Sequence[Seat], seats: Sequence[Seat]) -> dict[str, Any]:
    known = {seat.provider for seat in raisers if seat.provider is not None}
    return {
        "reviewers": len(raisers),
        "of": sum(seat.review is not None for seat in seats),
        "providers": sorted(known),
        "unknown_providers": sum(seat.provider is None for seat in raisers),
        "means": (
            "raised by reviewers of several providers; breadth, not proof"
            if len(known) > 1
            else "no corroboration: one provider, or providers that are not known"
            if len(raisers) > 1
            else "raised by one reviewer"
        ),
    }


def _seat(seat: Seat) -> dict[str, Any]:
    told: dict[str, Any] = {"seat": seat.name, "backend": seat.backend, "tier": seat.tier, "provider": seat.provider}
    if seat.review is not None:
        told |= {
            "outcome": "answered",
            "review_id": seat.review["review_id"],
            "assessment": seat.review["assessment"],
            "findings": len(seat.review["findings"]),
            "response": "sha256:" + sha256_hex(record_bytes(seat.review)),
        }
    else:
        assert seat.failure is not None
        told |= {"outcome": "failed", "failure": dict(seat.failure)}
    return told


def _alternatives(seat: Seat) -> list[str]:
    held = seat.review.get("extensions", {}).get("alternatives") if seat.review is not None else None
    return [text for text in held if isinstance(text, str) and text] if isinstance(held, list) else []


def limits_of(review: Mapping[str, Any]) -> Iterable[str]:
    """Yield what a review says that it did not see, was not asked or took for granted, a sentence each."""
    scope = review.get("scope", {})
    yield from review.get("limitations", ())
    yield from (f"Not asked for: {text}" for text in scope.get("excluded", ()))
    yield from (f"Assumed: {text}" for text in scope.get("assumptions", ()))


def _limits(seats: Sequence[Seat], dropped: Sequence[str]) -> Iterable[str]:
    yield "A panel is breadth, not independence: that several reviewers agree proves nothing."
    for name in dropped:
        yield f"{name} was not asked: the panel was full."
    for seat in seats:
        if seat.review is not None:
            yield from (f"{seat.name}: {text}" for text in limits_of(seat.review))


def _summary(seats: Sequence[Seat], findings: int, raised: int) -> str:
    answered = sum(seat.review is not None for seat in seats)
    return f"{answered} of {len(seats)} reviewers answered and raised {raised} findings, {findings} after merging."


def unreviewed(review: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the seats or chunks of a merged response left undone, each as a sentence; it makes a run incomplete.

    Args:
        review: the value of a valid response; an ordinary one leaves nothing undone.
    """
    told = []
    for seat in held_in(review, "panel", "seats"):
        if seat.get("outcome") == "failed":
            told.append(f"The reviewer {seat.get('seat')} of the panel failed: {_why(seat.get('failure'))}.")
        elif seat.get("assessment") == "unable_to_assess":
            told.append(f"The reviewer {seat.get('seat')} of the panel was unable to assess the artifact.")
    for chunk in held_in(review, "chunks"):
        if chunk.get("outcome") not in ("approve", "needs_attention"):
            why = _why(chunk["failure"]) if "failure" in chunk else str(chunk.get("outcome")).replace("_", " ")
            members = chunk.get("members")
            named = ", ".join(map(str, members)) if isinstance(members, list) else "members not named"
            told.append(f"The chunk {chunk.get('id')} was not reviewed ({named}): {why}.")
    return tuple(told)


def held_in(review: Mapping[str, Any], name: str, inner: str | None = None) -> tuple[Mapping[str, Any], ...]:
    """Return the objects of a list that a response which the runner itself merged holds in its extensions.

    Nothing for any other response, or a value of another form: ``producer`` is stamped by the runner, so no reviewer
    passes its own extensions off as those of a panel.
    """
    value = _extension(review, name)
    if inner is not None:
        value = value.get(inner) if isinstance(value, Mapping) else None
    return tuple(entry for entry in value if isinstance(entry, Mapping)) if isinstance(value, list) else ()


def breadth_of(review: Mapping[str, Any], finding_id: str) -> Mapping[str, Any] | None:
    """Return how broadly a finding of a panel was raised, ``None`` for one of an ordinary response."""
    value = _extension(review, "panel")
    held = value.get("breadth") if isinstance(value, Mapping) else None
    found = held.get(finding_id) if isinstance(held, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _extension(review: Mapping[str, Any], name: str) -> Any:
    return review.get("extensions", {}).get(name) if review.get("producer", {}).get("backend") == name else None


def _why(failure: Any) -> str:
    return (
        f"{failure.get('code')}: {failure.get('message')}".rstrip(".") if isinstance(failure, Mapping) else "no answer"
    )
