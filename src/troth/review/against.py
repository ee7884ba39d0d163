"""Rules that need more than the document: the artifact, the review, the run's record (L3, §§5-8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

from troth.review.anchors import resolve
from troth.review.artifact import Artifact
from troth.review.relations import evidence_of
from troth.review.shapes import Kind
from troth.review.structure import Findings, Path, path_text

Decided = Set[str] | Mapping[str, Mapping[str, Any]]
"""What is known of a run's record of decisions: the findings it has lines about, or those lines too."""

_NEEDS: Final = "needs the artifact, which was not given"


class Unchecked(dict[str, str]):
    """What neither passed nor failed: ``rule``, ``path``, ``message``."""

    def __init__(self, rule: str, path: Path, message: str) -> None:
        super().__init__(rule=rule, path=path_text(path), message=message)


def check_revision(kind: Kind, value: Any, artifact: Artifact | None, findings: Findings) -> Iterator[Unchecked]:
    """Hold the document's revision against the artifact's payload (``revision-artifact``)."""
    place: Path = ("artifact", "revision") if kind == "response" else ("artifact_revision",)
    if kind == "rebuttal" or not findings.sound(place):
        return
    revision = value["artifact"]["revision"] if kind == "response" else value.get("artifact_revision")
    if revision is None:
        return
    if artifact is None:
        yield Unchecked("revision-artifact", place, _NEEDS)
    elif revision["algorithm"] != "sha256":
        findings.relate("revision-artifact", place, f"a revision of algorithm {revision['algorithm']} binds no bytes")
    elif revision["value"].lower() != artifact.digest:
        findings.relate("revision-artifact", place, f"the payload's sha256 is {artifact.digest}")


def check_anchors(kind: Kind, value: Any, artifact: Artifact | None, findings: Findings) -> Iterator[Unchecked]:
    """Resolve every sound anchor; without an artifact tell which rules wait for it."""
    for place, evidence in evidence_of(kind, value):
        where = (*place, "anchor")
        if not findings.sound(where):
            continue
        anchor = evidence["anchor"]
        if anchor["type"] == "text_quote" and not {"quote", "digest"} & anchor.keys():
            continue  # text-quote-content has told it
        if artifact is None:
            yield from (Unchecked(rule, (*where, name), _NEEDS) for rule, name in asked(anchor))
            if anchor["type"] == "generic":
                yield Unchecked("locator", (*where, "locator"), "a locator is not checked")
            continue
        found = resolve(anchor, artifact)
        for fault in found.faults:
            findings.relate(fault.rule, (*where, fault.member), fault.message)
        for name, message in found.unchecked:
            yield Unchecked("pointer-resolves" if name == "pointer" else name, (*where, name), message)


def asked(anchor: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (rule, member) of each question that an anchor puts to the artifact."""
    kind = anchor["type"]
    if kind == "structured_path":
        yield "pointer-resolves", "pointer"
        return
    digest_alone = "quote" not in anchor
    for name in anchor:
        rule = _ASKED.get((kind, name))
        if rule is not None and (name != "digest" or digest_alone):
            yield rule, name


_ASKED: Final = {
    ("file_range", "path"): "path-in-artifact",
    ("file_range", "line_start"): "line-in-file",
    ("file_range", "line_end"): "line-in-file",
    ("file_range", "symbol"): "symbol-in-file",
    ("text_quote", "quote"): "quote-in-artifact",
    ("text_quote", "digest"): "digest-in-artifact",
    ("text_quote", "section"): "section-in-artifact",
    ("text_quote", "occurrence"): "quote-occurrence",
    ("section", "heading"): "section-in-artifact",
    ("section", "path"): "path-in-artifact",
    ("generic", "excerpt"): "excerpt-in-artifact",
}


# --- a reconciliation against its review ---


def check_review(value: Any, review: Any, findings: Findings) -> Iterator[Unchecked]:
    """Hold a reconciliation against the valid review that it is about (§6 L3)."""
    if review is None:
        for rule in ("review-id-match", "revision-match", "unknown-finding", "finding-coverage",
                     "unassessed-convergence"):  # fmt: skip
            yield Unchecked(rule, (), "needs the review, which was not given")
        return
    if findings.sound(("review_id",)) and value["review_id"] != review["review_id"]:
        findings.relate("review-id-match", ("review_id",), f"the review's id is {review['review_id']!r}")
    _match_revisions(value, review, findings)
    if findings.usable(("items",)):
        _cover(value, review, findings)
    if (
        findings.sound(("outcome",))
        and review["assessment"] == "unable_to_assess"
        and value["outcome"] in ("converged", "deadlocked")
    ):
        findings.relate("unassessed-convergence", ("outcome",), "the reviewer was unable to assess the artifact")


def _match_revisions(value: Any, review: Any, findings: Findings) -> None:
    place = ("artifact_revision",)
    if "artifact_revision" not in value or not findings.sound(place):
        return
    own, theirs = value["artifact_revision"], review["artifact"]["revision"]
    if own["algorithm"] != theirs["algorithm"] or _folded(own) != _folded(theirs):
        findings.relate("revision-match", place, f"the review is about {theirs['algorithm']} {theirs['value']}")
    elif own["algorithm"] != "sha256":
        findings.relate("revision-match", place, f"a revision of algorithm {own['algorithm']} binds no bytes")


def _folded(revision: dict[str, str]) -> str:
    return revision["value"].lower() if revision["algorithm"] == "sha256" else revision["value"]


def _cover(value: Any, review: Any, findings: Findings) -> None:
    known = {finding["id"] for finding in review["findings"]}
    named: set[str] = set()
    surplus = 0
    for number, item in enumerate(value["items"]):
        place = ("items", number, "finding_id")
        if not findings.sound(place):
            surplus += 1
        elif item["finding_id"] not in known:
            findings.relate("unknown-finding", place, f"the review has no finding {item['finding_id']}")
            surplus += 1
        elif item["finding_id"] in named:
            surplus += 1
        else:
            named.add(item["finding_id"])
    missing = [finding["id"] for finding in review["findings"] if finding["id"] not in named]
    if not findings.sound(("outcome",)) or value["outcome"] == "failed":
        return
    if value["outcome"] == "incomplete":
        if "limitations" not in value or not findings.sound(("limitations",)):
            return
        words = {word for text in value["limitations"] for word in re.findall(r"\w+", text)}
        missing = [name for name in missing if name not in words]
    # An item about no finding, or about one that has its item, stands in the place of the one that is missing.
    if len(missing) > surplus:
        where = "limitations" if value["outcome"] == "incomplete" else "items"
        findings.relate("finding-coverage", (where,), f"nothing is said of {', '.join(missing)}")


def check_decisions(value: Any, decided: Decided | None, findings: Findings) -> Iterator[Unchecked]:
    """Ask of each item that an operator decided whether the run's record has its line (§8).

    Args:
        value: the reconciliation.
        decided: ids of the findings that have a line in the record, or those lines by id, the newest of each; ``None``
            where no record was given. Of a line that has them, the question must be the item's and the ruling stand in
            its resolution: a line about something else is not its line.
        findings: takes the violations.
    """
    if not findings.usable(("items",)):
        return
    for number, item in enumerate(value["items"]):
        place = ("items", number)
        if not findings.sound((*place, "state"), (*place, "finding_id")):
            continue
        if item["state"] != "resolved" or "escalation" not in item:
            continue
        if decided is None:
            yield Unchecked("operator-decision-recorded", place, "needs the run's record, which was not given")
        elif item["finding_id"] not in decided:
            findings.relate("operator-decision-recorded", place, f"no line tells who decided {item['finding_id']}")
        elif isinstance(decided, Mapping) and findings.sound(place) and not _tells(decided[item["finding_id"]], item):
            findings.relate(
                "operator-decision-recorded", place, f"the line about {item['finding_id']} tells another decision"
            )


def _tells(line: Mapping[str, Any], item: dict[str, Any]) -> bool:
    question, ruling = line.get("question"), line.get("ruling")
    return (question is None or question == item["escalation"].get("operator_question")) and (
        ruling is None or (isinstance(ruling, str) and item.get("resolution", "").startswith(ruling))
    )
