"""``troth review decide``, ``open``, ``report``, ``record``: the operator's part, and what others read of a review."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import coloured, emit_json, printable, say
from troth.cli.options import json_option
from troth.cli.review_common import held, looked_at, person_at, place_option, reviews_at
from troth.core.errors import Refused, TrothError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.airlock.reviewing.session import Session
    from troth.review.decisions import Question


def _end_of(session: Session) -> tuple[str, int]:
    """Return the outcome as the records stand and the exit status that belongs to it."""
    from troth.airlock.reviewing import finishing
    from troth.review.run import ENDS

    outcome = str(finishing.reconciliation(session)["outcome"])
    return outcome, ENDS[outcome].exit


# --- decide ---


@click.command(
    "decide", epilog='Example: troth review decide --finding F003 --ruling "Save now; it can be undone in May"'
)
@click.argument("review", default="@last", metavar="[REVIEW]")
@click.option("--finding", "finding_id", metavar="F001", help="The finding that is decided; nothing is asked then.")
@click.option("--ruling", metavar="TEXT", help="What is decided.")
@click.option("--question", metavar="TEXT", help="The question as it was put, where it was another than the recorded.")
@click.option("--reason", metavar="TEXT", help="Why an earlier decision is corrected.")
@click.option(
    "--channel",
    type=click.Choice(["command", "conversation", "page"]),
    default="command",
    help="By which way the decision came. Default: command.",
)
@click.option("--as", "--actor", "actor", metavar="ACTOR", help="Who decides; a person. Default: as everywhere.")
@place_option
@json_option
def decide_cmd(
    *,
    review: str,
    finding_id: str | None,
    ruling: str | None,
    question: str | None,
    reason: str | None,
    channel: str,
    actor: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Answer the questions that only the operator can answer.

    In a terminal each open question is shown with claim, evidence, verifications and both positions, the gravest first,
    and answered by a key and a reason. With --finding and --ruling one is decided at once. Without either they are only
    shown.

    Exit status, that of the review then: 0 converged, 4 a question is open, 3 incomplete, 2 refused.
    """
    if finding_id is not None or ruling is not None:
        if finding_id is None or ruling is None:
            raise Refused("E_USAGE", "--finding and --ruling belong together")
        given = {"question": question, "reason": reason, "channel": channel}
        return _decide_one(finding_id, ruling, given, review=review, actor=actor, store=store, as_json=as_json)
    if question is not None or reason is not None:
        raise Refused("E_USAGE", "--question and --reason need --finding and --ruling")
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _only_show(looked_at(store, review), as_json=as_json)
    return _walk(review, actor, store)


def _decide_one(
    finding_id: str,
    ruling: str,
    given: Mapping[str, Any],
    *,
    review: str,
    actor: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    from troth.airlock.deciding import decide, questions
    from troth.airlock.reviewing import finishing

    who = person_at(actor, reviews_at(store)[1])
    with held(store, review) as session:
        decide(session, finding_id, ruling, actor=who, **given)
        outcome, status = _end_of(session)
        line = finishing.decisions(session)[-1]
        left = [asked.finding_id for asked in questions(session)]
    if as_json:
        emit_json({"review": session.id, "decision": line, "outcome": outcome, "success": status == 0, "open": left})
    else:
        _tell_recorded(line)
        _tell_end(session, left)
    return status


def _only_show(session: Session, *, as_json: bool) -> int:
    from troth.airlock.deciding import gravest_first, questions

    found = gravest_first(questions(session))
    outcome, status = _end_of(session)
    if as_json:
        emit_json({
            "review": session.id, "outcome": outcome, "success": status == 0,
            "open": [asked.as_json() for asked in found],
        })  # fmt: skip
        return status
    for number, asked in enumerate(found, 1):
        _tell_question(session.id, asked, number, len(found), 79)
    _tell_end(session, [asked.finding_id for asked in found])
    return status


def _walk(review: str, actor: str | None, store: str | None) -> int:
    """Ask question by question.

    The run is not held while a person thinks; what was shown is compared before an answer counts.
    """
    from troth.airlock.deciding import decide, gravest_first, questions
    from troth.airlock.reviewing import finishing

    who = person_at(actor, reviews_at(store)[1])
    session = looked_at(store, review)
    waiting = list(gravest_first(questions(session)))
    count = len(waiting)
    number = 0
    while waiting:
        asked = waiting.pop(0)
        number += 1
        _tell_question(session.id, asked, number, count, _width())
        ruling = _ask(asked)
        if ruling is None:
            continue
        if ruling is _STOP:
            break
        with held(store, session.id) as now:
            if asked.as_json() not in [one.as_json() for one in questions(now)]:
                say(coloured("It was changed or decided meanwhile; nothing was recorded.", "yellow"))
                continue
            decide(now, asked.finding_id, str(ruling), actor=who, channel="terminal", question=asked.question)
            _tell_recorded(finishing.decisions(now)[-1])
    last = looked_at(store, session.id)
    _tell_end(last, [asked.finding_id for asked in questions(last)])
    return _end_of(last)[1]


_STOP = object()
_KEYS = "[r] the reviewer is right  [h] the host is right  [o] your own words  [s] later  [q] stop"
"""Each with Enter: a key that was pressed by mistake decides nothing."""


def _ask(asked: Question) -> object:
    """Return the ruling in words, ``None`` for one that is left for later, or :data:`_STOP`."""
    while True:
        say(coloured(_KEYS, "cyan"))
        key = str(click.prompt("Key", default="", show_default=False)).strip().lower()
        if key == "q":
            return _STOP
        if key == "s":
            return None
        if key not in ("r", "h", "o"):
            continue
        if key == "o":
            words = _line("Your ruling")
            if words is None:
                continue
        else:
            side, position = ("reviewer", asked.reviewer_position) if key == "r" else ("host", asked.host_position)
            words = f"The {side} is right: {position}"
        why = _line("Because")
        if why is not None:
            return f"{words.rstrip()} Because: {why}"


def _line(what: str) -> str | None:
    """Return a line that shows something, or ``None`` when the choice is taken back by an empty one."""
    from troth.review.formats import is_visible

    text = str(click.prompt(f"{what} (empty: choose again)", default="", show_default=False)).strip()
    return text if is_visible(text) else None


def _width() -> int:
    import shutil

    return max(40, min(shutil.get_terminal_size((100, 24)).columns, 160))


def _tell_question(review: str, asked: Question, number: int, count: int, width: int) -> None:
    from troth.cli.review_documents import shown_text

    say()
    say(f"{printable(review)}, question {number} of {count}")
    finding = asked.finding
    say(
        f"{asked.finding_id}  {finding['severity']}, confidence {finding['confidence']}: {shown_text(finding['claim'])}"
    )
    say(f"{asked.dispute_kind.replace('_', ' ')}; stopped: {asked.stop_reason.replace('_', ' ')}")
    say()
    for line in _beside(_reviewers_side(asked), _hosts_side(asked), width):
        say(line)
    say()
    say(coloured(f"Question: {shown_text(asked.question)}", "yellow"))


def _reviewers_side(asked: Question) -> list[str]:
    from troth.cli.review_documents import anchor_words, shown_text

    lines = ["REVIEWER", f"  {shown_text(asked.reviewer_position)}", ""]
    for number, held_ in enumerate(asked.evidence, 1):
        entry, anchored = held_
        lines.append(f"evidence {number} [{anchored.state}]: {anchor_words(dict(entry['anchor']))}")
        lines.append(f"  {shown_text(entry['observation'])} ({entry['grounding'].replace('_', ' ')})")
        lines += [f"    {fault.rule}: {shown_text(fault.message)}" for fault in anchored.faults]
        for place in anchored.passages:
            lines.append(f"  {shown_text(place.path)}")
            lines += [
                f"  {'>' if line.anchored else ' '} {line.number:>4}  {shown_text(line.text, 400)}"
                for line in place.lines
            ]
    return [*lines, f"recommended: {shown_text(asked.finding['recommendation'])}"]


def _hosts_side(asked: Question) -> list[str]:
    from troth.cli.review_documents import shown_text

    lines = ["HOST", f"  {shown_text(asked.host_position)}", ""]
    for entry in asked.verification:
        detail = f": {shown_text(entry['detail'])}" if "detail" in entry else ""
        lines.append(f"{entry['method'].replace('_', ' ')} {entry['result']}{detail}")
    if asked.unverifiable is not None:
        lines.append(f"nothing could verify it: {shown_text(asked.unverifiable)}")
    return lines


def _beside(left: list[str], right: list[str], width: int) -> list[str]:
    """Return two columns side by side, one under the other where the terminal is narrow.

    What goes on in a further line is indented, so that no words of others begin a line as words of ours do.
    """
    import textwrap

    def wrapped(lines: list[str], columns: int) -> list[str]:
        found: list[str] = []
        for line in lines:
            indent = line[: len(line) - len(line.lstrip())]
            found += textwrap.wrap(line, columns, subsequent_indent=indent or "  ", drop_whitespace=True) or [""]
        return found

    if width < 80:
        return [*wrapped(left, width), "", *wrapped(right, width)]
    columns = (width - 3) // 2
    one, other = wrapped(left, columns), wrapped(right, columns)
    height = max(len(one), len(other))
    one += [""] * (height - len(one))
    other += [""] * (height - len(other))
    return [f"{mine:<{columns}} | {theirs}".rstrip() for mine, theirs in zip(one, other, strict=True)]


def _tell_recorded(line: Mapping[str, Any]) -> None:
    from troth.cli.review_documents import shown_text

    say(f"recorded    {line['finding_id']} decided by {printable(line['actor'])}: {shown_text(line['ruling'])}")


def _tell_end(session: Session, left: list[str]) -> None:
    from troth.review.run import ENDS

    outcome, _ = _end_of(session)
    say(f"outcome     {coloured(outcome, ENDS[outcome].colour)}: {ENDS[outcome].says}")
    if left:
        say(f"open        {', '.join(left)}")


# --- open ---


@click.command("open", epilog="Example: troth review open")
@place_option
@json_option
def open_cmd(*, store: str | None, as_json: bool) -> int:
    """List the runs in which something waits for the operator, with the questions.

    Exit status: 0 nothing waits, 4 something does, 3 a run cannot be shown.
    """
    from troth.airlock.deciding import gravest_first, questions
    from troth.airlock.reviewing.session import Session

    found: list[dict[str, Any]] = []
    for folder in reviews_at(store)[0].list():
        try:
            session = Session(folder)
            asked = questions(session) if session.run is not None else ()
        except TrothError as fault:
            found.append({"review": folder.id, "problem": f"{fault.code}: {fault.message}", "open": []})
            continue
        if asked:
            found.append({"review": folder.id, "problem": None, "open": [
                {"finding_id": one.finding_id, "severity": one.finding["severity"], "dispute_kind": one.dispute_kind,
                 "question": one.question} for one in gravest_first(asked)
            ]})  # fmt: skip
    if as_json:
        emit_json({"reviews": found})
    else:
        _tell_open(found)
    if any(each["open"] for each in found):
        return 4
    return 3 if found else 0


def _tell_open(found: list[dict[str, Any]]) -> None:
    from troth.cli.review_documents import shown_text

    if not found:
        say("Nothing waits for the operator.")
    for each in found:
        if each["problem"] is not None:
            say(f"{printable(each['review'])}  {coloured(printable(each['problem'], 400), 'red')}")
            continue
        say(f"{printable(each['review'])}  answer with: troth review decide {printable(each['review'])}")
        for one in each["open"]:
            say(f"  {one['finding_id']}  {one['severity']}, {one['dispute_kind'].replace('_', ' ')}: "
                f"{shown_text(one['question'])}")  # fmt: skip
    asked = [one for each in found for one in each["open"]]
    if len(asked) > 1:
        say(f"{len(asked)} questions: {_counted(asked, 'severity')}; {_counted(asked, 'dispute_kind')}")


def _counted(asked: list[dict[str, Any]], member: str) -> str:
    """Return how many questions there are of each severity or kind of dispute, in the order of the specification."""
    from troth.review.shapes import DISPUTE_KINDS, SEVERITIES

    counts = [(sum(one[member] == name for one in asked), name) for name in (*SEVERITIES, *DISPUTE_KINDS)]
    return ", ".join(f"{count} {name.replace('_', ' ')}" for count, name in counts if count)


# --- report ---


@click.command("report", epilog="Example: troth review report --format html --out review.html")
@click.argument("review", default="@last", metavar="[REVIEW]")
@click.option("--format", "form", type=click.Choice(["md", "html"]), default="md", help="md (default) or html.")
@click.option("--out", type=click.Path(), metavar="FILE", help="Write it here; a file that exists is not overwritten.")
@place_option
@json_option
def report_cmd(*, review: str, form: str, out: str | None, store: str | None, as_json: bool) -> int:
    """Write a run as a report: tally, the back and forth of each finding, open questions, limits.

    The page loads nothing and runs nothing; what reviewer, host and artifact wrote stands in it as text alone.

    Exit status, that of the review: 0 converged, 4 a question is open, 3 incomplete or failed, 2 refused.
    """
    from troth.airlock.review_reports import report_of
    from troth.review.pages import html, markdown

    session = looked_at(store, review)
    told = report_of(session)
    text = html(told) if form == "html" else markdown(told)
    if out is not None:
        _write(out, text)
    _, status = _end_of(session)
    if as_json:
        head = {"review": session.id, "outcome": told.outcome, "success": told.success, "tally": told.tally._asdict()}
        emit_json({**head, "format": form, "out": out, "text": None if out is not None else text})
    elif out is None:
        say(text, end="")
    else:
        say(f"written     {printable(out)}")
    return status


def _write(out: str, text: str) -> None:
    from pathlib import Path

    from troth.stores.durable import create_whole, os_fault

    path = Path(out)
    try:
        made = create_whole(path, text.encode(), 0o600)
    except OSError as fault:
        raise os_fault("E_WRITE_FAILED", fault, path, "the report could not be written") from None
    if not made:
        raise Refused("E_FILE_EXISTS", f"{printable(out)} is there already", remedy="Name another file with --out.")


# --- record ---


@click.command("record", epilog="Example: troth review record --about cmt_e5f6g7h8")
@click.argument("review", default="@last", metavar="[REVIEW]")
@click.option("--about", metavar="ID", help="The row, such as a commitment, that the review is about.")
@place_option
@json_option
def record_cmd(*, review: str, about: str | None, store: str | None, as_json: bool) -> int:
    """Tell a run on the ledger: artifact, findings, verifications, what became of each, questions, decisions.

    Rows are the witness's and found again by their keys: recording again writes only what came since.

    Exit status: 0 recorded, 1 the ledger does not verify, 2 refused.
    """
    from troth.airlock.review_signals import record
    from troth.airlock.reviewing.session import Session
    from troth.cli.options import open_store
    from troth.stores.requests import resolve
    from troth.stores.reviews import FOLDER, Reviews

    space, ledger = open_store(store)
    if space is None:
        raise Refused("E_NO_WORKSPACE", "this ledger stands in no workspace, so no run's folder can be read")
    session = Session(Reviews(space.folder / FOLDER).find(review))
    if about is not None:
        state = ledger.read().state
        about = resolve(about, state)
        if about not in state.signals:
            raise Refused("E_REF_NOT_FOUND", f"no row is {printable(about, 80)}", detail="absent")
    found = record(session, ledger, about)
    if as_json:
        emit_json({"review": session.id, "rows": [one._asdict() for one in found]})
        return 0
    for one in found:
        say(f"{one.row}  {'recorded' if one.new else 'there'}  {printable(one.key)}")
    return 0
