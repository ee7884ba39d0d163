"""``troth review``: validate review documents, show findings with what they point at, draw the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import click

from troth.cli.answer import coloured, emit_json, printable, say
from troth.cli.options import json_option
from troth.core.errors import Place, Refused

if TYPE_CHECKING:
    from troth.review.artifact import Artifact
    from troth.review.shapes import Kind

_KINDS: Final = {
    "response": "response",
    "reviewer-response": "response",
    "reconciliation": "reconciliation",
    "reconciliation-result": "reconciliation",
    "rebuttal": "rebuttal",
}

_TITLES: Final = {
    "response": "reviewer's response",
    "reconciliation": "reconciliation result",
    "rebuttal": "reply to a contest",
}

MAX_ARTIFACT_BYTES: Final = 1 << 26


@click.group("review")
def review_cmd() -> None:
    """Check reviews: a reviewer's findings, what became of each, and the operator's open questions.

    A response holds the findings of a reviewer, each with evidence anchored in the artifact. A reconciliation says of
    each finding whether it was accepted, rejected, resolved, withdrawn or waits for a person.
    """


def _artifact_option(command: Any) -> Any:
    return click.option(
        "--artifact",
        "members",
        multiple=True,
        metavar="NAME=PATH",
        help="A member of what was reviewed: its name in the review, and the file that holds its bytes. Repeatable.",
    )(command)


def _artifact(members: Sequence[str]) -> Artifact | None:
    from troth.review.artifact import Artifact

    if not members:
        return None
    held = []
    for word in members:
        name, sign, path = word.partition("=")
        if not (name and sign and path):
            raise Refused("E_USAGE", f"--artifact takes NAME=PATH, not {printable(word, 80)!r}")
        held.append((name, _bytes(path, MAX_ARTIFACT_BYTES, "the artifact's member")))
    return Artifact(held)


def _bytes(path: str, limit: int, what: str) -> bytes:
    from pathlib import Path

    from troth.stores.durable import read_regular

    return read_regular(Path(path), limit, "E_REVIEW_MISSING", what)


def _document(path: str) -> bytes:
    from troth.review.reader import MAX_BYTES

    return _bytes(path, MAX_BYTES, "the document")


def _placed(fault: Refused, path: str) -> Refused:
    if fault.place is None or fault.place.file is None:
        fault.place = Place(path, fault.place.line if fault.place else None)
    return fault


def _review(path: str | None) -> Any:
    from troth.review.validate import read_review

    if path is None:
        return None
    try:
        return read_review(_document(path))
    except Refused as fault:
        raise _placed(fault, path) from None


# --- validate ---


@review_cmd.command("validate")
@click.argument("file", type=click.Path())
@_artifact_option
@click.option(
    "--review", "review_file", type=click.Path(), metavar="FILE", help="The review a reconciliation is about."
)
@click.option(
    "--decisions", "decisions_file", type=click.Path(), metavar="FILE", help="The operator's decisions, JSON Lines."
)
@click.option("--kind", type=click.Choice(list(_KINDS)), help="What the file is, where it does not say so itself.")
@click.option(
    "--level",
    type=click.Choice(["all", "published"]),
    default="all",
    help="published: only what the published schemas state, for documents that others wrote. Default: every rule.",
)
@json_option
def validate(
    *,
    file: str,
    members: tuple[str, ...],
    review_file: str | None,
    decisions_file: str | None,
    kind: str | None,
    level: str,
    as_json: bool,
) -> int:
    """Tell every rule that a review document breaks, and where.

    Rules about the artifact's bytes apply when every member is given with --artifact, rules about the review with
    --review, rules about decisions with --decisions. What was not checked is told.

    Exit status: 0 valid, 1 invalid, 2 no such document.

    Example: troth review validate review.json --artifact memo.md=drafts/memo.md
    """
    from troth.review.reader import read_decisions
    from troth.review.validate import validate as judged

    published = level == "published"
    if published and (members or review_file or decisions_file):
        raise Refused(
            "E_USAGE",
            "--level published looks at the document alone",
            remedy="Leave --artifact, --review and --decisions out, or the level.",
        )
    decided = None
    if decisions_file is not None:
        try:
            decided = read_decisions(_bytes(decisions_file, MAX_ARTIFACT_BYTES, "the file of decisions"))
        except Refused as fault:
            raise _placed(fault, decisions_file) from None
    try:
        report = judged(
            _document(file),
            kind=cast("Kind", _KINDS[kind]) if kind is not None else None,
            published=published,
            artifact=_artifact(members),
            review=_review(review_file),
            decided=decided,
        )
    except Refused as fault:
        raise _placed(fault, file) from None
    if as_json:
        emit_json(report.as_json())
    else:
        good = report.verdict == "valid"
        say(f"{printable(file)}: {_TITLES[report.kind]}, {coloured(report.verdict, 'green' if good else 'red')}")
        for violation in report.violations:
            say(f"  {violation.rule} at {printable(violation.path)}: {printable(violation.message)}")
        for reason, paths in _grouped(report.unchecked).items():
            say(f"  not checked: {reason} ({_listed(paths)})")
    return 0 if report.verdict == "valid" else 1


def _grouped(unchecked: Sequence[dict[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in unchecked:
        found.setdefault(entry["message"], []).append(entry["rule"])
    return found


def _listed(rules: Sequence[str]) -> str:
    counts = {rule: rules.count(rule) for rule in dict.fromkeys(rules)}
    return ", ".join(rule if count == 1 else f"{rule} {count} times" for rule, count in counts.items())
