"""Every rule a review document can break: its level, whether published schemas state it, what it asks (§§4-6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Level = Literal["L1", "L2", "L3"]


class Rule(NamedTuple):
    """One rule: its level (§4), whether the published schemas state it too, and a sentence that explains it."""

    level: Level
    published: bool
    says: str


_L1: Final = "L1"
_L2: Final = "L2"
_L3: Final = "L3"

RULES: Final[Mapping[str, Rule]] = {
    # --- common (§4) ---
    "json-text": Rule(
        _L1, True, "A document is strict UTF-8 with one JSON value, no NaN or Infinity, at most 64 deep."
    ),
    "duplicate-member": Rule(_L2, False, "No member name stands twice in one object."),
    "required-member": Rule(_L1, True, "A member that must be there is missing."),
    "unknown-member": Rule(_L1, True, "Objects are closed: only the root's `extensions` holds names of others."),
    "wrong-type": Rule(_L1, True, "The value is of another type; a boolean is no integer."),
    "enum-value": Rule(_L1, True, "The value is none of those that may stand here."),
    "minimum": Rule(_L1, True, "The integer is smaller than it may be."),
    "empty-text": Rule(_L1, True, "A text has at least one character."),
    "empty-list": Rule(_L1, True, "The list has at least one element."),
    "visible-text": Rule(_L1, False, "The text still shows something after control characters are taken away."),
    "format": Rule(_L1, True, "A date-time is RFC 3339 with an offset; a URI is absolute."),
    "id-pattern": Rule(_L1, True, "A finding's id is F and three or more ASCII digits."),
    "digest-pattern": Rule(_L1, True, "A digest is sha256: and 64 hexadecimal digits."),
    "sha256-shape": Rule(_L1, False, "The value of a sha256 revision is 64 hexadecimal digits."),
    # --- reviewer response (§5) ---
    "anchor-variant": Rule(_L1, True, "An anchor has exactly the members of its type."),
    "text-quote-content": Rule(_L1, True, "A text_quote has a quote or a digest."),
    "assessment-findings": Rule(
        _L1, True, "Findings stand under needs_attention, at least one, and under no other assessment."
    ),
    "unable-limitations": Rule(_L1, True, "unable_to_assess says why in limitations."),
    "source-identity": Rule(_L1, True, "An external source has a uri, a title or a digest."),
    "line-end-alone": Rule(_L1, False, "line_end needs line_start."),
    "unique-finding-ids": Rule(_L2, False, "No two findings share an id."),
    "line-order": Rule(_L2, False, "line_end is not before line_start."),
    "quote-digest": Rule(_L2, False, "A digest beside a quote is the SHA-256 of the quote's UTF-8 bytes."),
    "revision-artifact": Rule(_L3, False, "The revision is the sha256 of the artifact's payload."),
    "path-in-artifact": Rule(_L3, False, "A path names a member of the artifact."),
    "line-in-file": Rule(_L3, False, "A line number lies within the member."),
    "symbol-in-file": Rule(_L3, False, "A symbol occurs in the member."),
    "section-in-artifact": Rule(_L3, False, "A section is a heading of the artifact, or a line of a text without any."),
    "quote-in-artifact": Rule(
        _L3, False, "A quote stands in the artifact exactly, within its section if one is named."
    ),
    "quote-occurrence": Rule(_L3, False, "The artifact holds at least as many matches as the occurrence says."),
    "excerpt-in-artifact": Rule(_L3, False, "An excerpt stands in the artifact exactly."),
    "digest-in-artifact": Rule(
        _L3, False, "A digest without a quote is that of a member, a line, a paragraph or a section's body."
    ),
    "pointer-resolves": Rule(_L3, False, "A JSON Pointer leads to a value in a member that is JSON."),
    # --- reconciliation result (§6) ---
    "rejection-contradiction": Rule(_L1, True, "A rejected item has a verification that contradicts the finding."),
    "agreement-support": Rule(
        _L1, False, "An accepted item, and a resolved one without escalation, has a verification that supports it."
    ),
    "inference-only": Rule(_L1, False, "A model's opinion alone is no verification."),
    "escalation-presence": Rule(
        _L1, True, "A deadlocked item has an escalation; an accepted, rejected or withdrawn one has none."
    ),
    "escalation-context": Rule(_L1, False, "An escalation has the operator's question and both positions."),
    "resolution-text": Rule(_L1, False, "A resolved item says what was done."),
    "withdrawal-basis": Rule(_L1, False, "A withdrawn item has the reviewer's position, and a round was used."),
    "unverified-refutation-basis": Rule(
        _L1, False, "An unverified refutation has no verification that contradicts the finding."
    ),
    "round-limit-basis": Rule(_L1, False, "A stop at the limit of rounds needs a round that was used."),
    "outcome-items": Rule(_L1, True, "Converged has no deadlocked item; deadlocked has at least one."),
    "failure-presence": Rule(_L1, True, "A failure is told exactly when the outcome is failed."),
    "incomplete-limitations": Rule(_L1, False, "An incomplete outcome names in limitations what is undone and why."),
    "revision-presence": Rule(_L1, False, "The artifact's revision is there unless the outcome is failed."),
    "unique-item-ids": Rule(_L2, False, "No two items are about the same finding."),
    "time-order": Rule(_L2, False, "completed_at is not before started_at."),
    "review-id-match": Rule(_L3, False, "The reconciliation is about the review that it names."),
    "revision-match": Rule(_L3, False, "Review and reconciliation are about the same bytes, bound by sha256."),
    "unknown-finding": Rule(_L3, False, "Every item is about a finding of the review."),
    "finding-coverage": Rule(
        _L3, False, "Every finding has its item; what an incomplete run leaves out is named in limitations."
    ),
    "unassessed-convergence": Rule(
        _L3, False, "A review that could not assess leads to an incomplete or a failed outcome."
    ),
    "operator-decision-recorded": Rule(_L3, False, "An operator's decision has its line in the run's record."),
    # --- reply to a contest (§7) ---
    "rebuttal-evidence": Rule(_L1, False, "Who substantiates a finding brings evidence."),
}
"""Rule name -> the rule. Names are those of the specification; that of the reply is ours."""

MEANINGS: Final[Mapping[str, str]] = {name: rule.says for name, rule in RULES.items()}
