"""Validate a review document: every broken rule, one for each fault (§4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from troth.core.errors import Refused
from troth.review.against import Decided, Unchecked, check_anchors, check_decisions, check_review, check_revision
from troth.review.artifact import Artifact
from troth.review.reader import read, unfit
from troth.review.relations import relate
from troth.review.shapes import Kind
from troth.review.structure import Findings, Violation, walk


@dataclass(frozen=True, slots=True)
class Report:
    """What a document came to: its kind, its value, every violation in the order met, what was not checked."""

    kind: Kind
    value: Any
    violations: tuple[Violation, ...]
    unchecked: tuple[Unchecked, ...] = ()

    @property
    def verdict(self) -> Literal["valid", "invalid"]:
        """``valid`` when no rule is broken."""
        return "invalid" if self.violations else "valid"

    @property
    def rules(self) -> tuple[str, ...]:
        """The broken rules, in the order met."""
        return tuple(violation.rule for violation in self.violations)

    def as_json(self) -> dict[str, Any]:
        """Return the form in which validators report."""
        return {
            "verdict": self.verdict,
            "violations": [violation.as_json() for violation in self.violations],
            "unchecked": [dict(entry) for entry in self.unchecked],
        }


def validate(
    data: bytes,
    *,
    kind: Kind | None = None,
    published: bool = False,
    artifact: Artifact | None = None,
    review: Any = None,
    decided: Decided | None = None,
) -> Report:
    """Validate the bytes of a document.

    Args:
        data: the file's bytes.
        kind: what it is where it does not say so itself.
        published: apply only what the published schemas state, for documents that others wrote; nothing is then held
            against artifact, review or record.
        artifact: rules that need it are applied when it is given.
        review: the value of the valid review that a reconciliation is about (:func:`read_review`).
        decided: the findings whose decision by the operator stands in the run's record, perhaps with its newest line.

    Raises:
        Refused: ``E_REVIEW_KIND``, ``E_REVIEW_TOO_LARGE``.
    """
    findings = Findings(published=published)
    text = read(data, findings, kind)
    if not text.readable:
        return Report(text.kind, None, tuple(findings.violations))
    walk(text.kind, text.value, findings)
    relate(text.kind, text.value, findings)
    unchecked: list[Unchecked] = []
    if not published and findings.usable(()):
        unchecked += check_revision(text.kind, text.value, artifact, findings)
        unchecked += check_anchors(text.kind, text.value, artifact, findings)
        if text.kind == "reconciliation":
            unchecked += check_review(text.value, review, findings)
            unchecked += check_decisions(text.value, decided, findings)
    return Report(text.kind, text.value, tuple(findings.violations), tuple(unchecked))


def read_review(data: bytes) -> Any:
    """Return the value of a reviewer's response that breaks no rule of its text alone.

    Raises:
        Refused: ``E_REVIEW_UNFIT`` naming the first broken rule; ``E_REVIEW_KIND``, ``E_REVIEW_TOO_LARGE``.
    """
    report = validate(data)
    if report.kind != "response":
        raise Refused("E_REVIEW_UNFIT", "the review is a reconciliation, not a reviewer's response")
    if report.violations:
        raise unfit(report.violations[0])
    return report.value
