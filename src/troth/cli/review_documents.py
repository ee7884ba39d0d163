"""``troth review validate``, ``show``, ``machine``: documents, findings with what they point at, the machine."""

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


@click.command("validate")
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
def validate_cmd(
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


# --- show ---


@click.command("show")
@click.argument("file", type=click.Path())
@_artifact_option
@json_option
def show_cmd(*, file: str, members: tuple[str, ...], as_json: bool) -> int:
    """Show a review: each finding with the text it points at, or what became of each finding.

    An anchor that does not resolve in the artifact is flagged: that evidence rests on nothing that was found.

    \b
    Exit status of a response: 0 shown and every anchor resolved, 1 some do not, 2 no valid document.
    Exit status of a reconciliation: 0 converged, 4 deadlocked, 3 incomplete or failed, 2 no valid document.

    Example: troth review show review.json --artifact memo.md=drafts/memo.md
    """
    from troth.review.reader import unfit
    from troth.review.validate import validate as judged

    try:
        report = judged(_document(file))
        if report.violations:
            raise unfit(report.violations[0])
    except Refused as fault:
        if fault.code == "E_REVIEW_MISSING" and fault.remedy is None:
            fault.remedy = "Of a run that is kept here: troth review next, status or report."
        raise _placed(fault, file) from None
    if report.kind == "reconciliation":
        return _show_reconciliation(report.value, as_json=as_json)
    return _show_response(report.value, _artifact(members), as_json=as_json)


def _show_response(value: dict[str, Any], artifact: Artifact | None, *, as_json: bool) -> int:
    from troth.review.context import shown

    bound = artifact is None or _bound(value["artifact"]["revision"], artifact)
    unresolved = 0
    findings = []
    for finding in value["findings"]:
        evidence = []
        for entry in finding["evidence"]:
            told = shown(entry["anchor"], artifact) if artifact is not None else None
            unresolved += told is not None and told.state == "unresolved"
            evidence.append({**entry, "anchored": told})
        findings.append({**finding, "evidence": evidence})
    status = 0 if bound and not unresolved else 1
    if as_json:
        for finding in findings:
            for entry in finding["evidence"]:
                entry["anchored"] = entry["anchored"].as_json() if entry["anchored"] is not None else None
        head = {name: value[name] for name in ("review_id", "artifact", "assessment", "summary")}
        emit_json({**head, "bound": bound if artifact is not None else None, "unresolved": unresolved,
                   "findings": findings})  # fmt: skip
        return status
    revision = value["artifact"]["revision"]
    say(f"review      {shown_text(value['review_id'])}")
    say(f"artifact    {value['artifact']['kind']}, {revision['algorithm']} {shown_text(revision['value'])}")
    say(f"assessment  {value['assessment'].replace('_', ' ')}: {shown_text(value['summary'])}")
    if not bound:
        say(coloured("            the artifact given is not the one that was reviewed", "red"))
    if artifact is None:
        say("            no artifact was given, so no anchor was looked up")
    if not findings:
        say("no findings")
    for finding in findings:
        _tell_finding(finding)
    return status


def _bound(revision: dict[str, str], artifact: Artifact) -> bool:
    return revision["algorithm"] == "sha256" and revision["value"].lower() == artifact.digest


def _tell_finding(finding: dict[str, Any]) -> None:
    say()
    say(f"{finding['id']}  {finding['severity']}, confidence {finding['confidence']}: {shown_text(finding['claim'])}")
    for entry in finding["evidence"]:
        told = entry["anchored"]
        flag = ""
        if told is not None:
            flag = coloured(f" [{told.state}]", {"resolved": "green", "unresolved": "red"}.get(told.state, "yellow"))
        say(f"  {anchor_words(entry['anchor'])}{flag}")
        say(f"    {shown_text(entry['observation'])} ({entry['grounding'].replace('_', ' ')})")
        if told is not None:
            tell_anchored(told)
    say(f"  recommended: {shown_text(finding['recommendation'])}")


def tell_anchored(told: Any) -> None:
    for fault in told.faults:
        say(f"    {fault.rule}: {shown_text(fault.message)}")
    for place in told.passages:
        say(f"    {shown_text(place.path)}")
        before = None
        for line in place.lines:
            if before is not None and line.number != before + 1:
                say(f"          … {place.left_out} lines")
            say(f"    {'>' if line.anchored else ' '} {line.number:>4}  {shown_text(line.text)}")
            before = line.number
    if told.places > len(told.passages) > 0:
        say(f"    and at {told.places - len(told.passages)} more places")
    if told.value is not None:
        say(f"    {shown_text(told.value)}")
    for reason in told.notes:
        say(f"    {reason}")


def anchor_words(anchor: dict[str, Any]) -> str:
    rest = ", ".join(f"{name} {shown_text(str(value), 200)}" for name, value in anchor.items() if name != "type")
    return f"{anchor['type']}: {rest}"


def shown_text(text: str, limit: int = 2000) -> str:
    """Return what a reviewer wrote, control characters gone, on one line."""
    from troth.review.formats import heard

    return printable(" ".join(heard(text).split("\n")).replace("\t", "    "), limit)


def _show_reconciliation(value: dict[str, Any], *, as_json: bool) -> int:
    from troth.review.run import ENDS

    end = ENDS[value["outcome"]]
    if as_json:
        emit_json({**value, "success": end.exit == 0})
        return end.exit
    say(f"review      {shown_text(value['review_id'])}")
    say(f"outcome     {coloured(value['outcome'], end.colour)}: {end.says}")
    if "failure" in value:
        say(f"failure     {value['failure']['code']}: {shown_text(value['failure']['message'])}")
    for item in value["items"]:
        say()
        decided = " by the operator" if item["state"] == "resolved" and "escalation" in item else ""
        say(f"{item['finding_id']}  {item['state']}{decided}")
        for name in ("host_position", "reviewer_position", "resolution"):
            if name in item:
                say(f"  {name.replace('_', ' ')}: {shown_text(item[name])}")
        for entry in item.get("verification", ()):
            detail = f": {shown_text(entry['detail'])}" if "detail" in entry else ""
            say(f"  {entry['method'].replace('_', ' ')} {entry['result']}{detail}")
        if "escalation" in item:
            held = item["escalation"]
            say(f"  {held['dispute_kind'].replace('_', ' ')}, stopped: {held['stop_reason'].replace('_', ' ')}")
            say(f"  question: {shown_text(held['operator_question'])}")
    for limit in value.get("limitations", ()):
        say(f"limit       {shown_text(limit)}")
    return end.exit


# --- machine ---


@click.command("machine")
@click.option("--mermaid", is_flag=True, help="Draw it as a Mermaid state diagram.")
@json_option
def machine_cmd(*, mermaid: bool, as_json: bool) -> int:
    """Tell the states of a finding and its legal moves, from the table that decides them.

    Exit status: 0 told.

    Example: troth review machine --mermaid
    """
    from troth.review.machine import MOVES, NEEDS, PERSISTED, WORKING
    from troth.review.machine import mermaid as drawing

    if mermaid:
        if as_json:
            emit_json({"mermaid": drawing()})
        else:
            say(drawing().rstrip("\n"))
        return 0
    if as_json:
        rows = [
            {"number": move.number, "from": move.source, "to": move.target, "by": list(move.by),
             "needs": {need: NEEDS[need][0] for need in move.needs}}
            for move in MOVES
        ]  # fmt: skip
        emit_json({"working": list(WORKING), "persisted": list(PERSISTED), "moves": rows})
        return 0
    say("What a finding may do, and what each move rests on; all else is refused.")
    for move in MOVES:
        say(f"{move.number:>3}  {move.source} -> {move.target}, by {' or '.join(move.by)}")
        for need in move.needs:
            say(f"       {need}: {NEEDS[need][0]}")
    return 0
