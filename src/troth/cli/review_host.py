"""``troth review next``, ``triage``, ``verify``, ``accept``, ``reject``, ``contest``, ``resolve``, ``escalate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import coloured, emit_json, printable, say
from troth.cli.options import WEEK, Seconds, json_option
from troth.cli.review_common import (
    actor_at,
    held,
    looked_at,
    person_at,
    place_option,
    reviews_at,
    run_options,
    tell_finding,
)
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.airlock.reviewing.session import Session

METHODS: Final = ("command", "artifact-inspection", "source-retrieval", "operator-confirmation", "model-inference")
RESULTS: Final = ("supports", "contradicts", "inconclusive")
DISPUTES: Final = (
    "evidence_conflict", "evidence_gap", "assumption_difference", "interpretation_difference",
    "value_or_priority_tradeoff", "policy_or_authority_required", "unverified_refutation",
)  # fmt: skip
STOPS: Final = (
    "no_new_information", "round_limit", "budget_limit", "verification_unavailable", "operator_authority_required",
)  # fmt: skip


@click.command("next", epilog="Example: troth review next")
@click.argument("finding", required=False, metavar="[FINDING]")
@click.option("--review", "review", default="@last", metavar="ID", help="The run: an id, what begins it, or @last.")
@place_option
@json_option
def next_cmd(*, finding: str | None, review: str, store: str | None, as_json: bool) -> int:
    """Show the finding to work on (the gravest that is not settled, or FINDING), with the text its anchors point at.

    Exit status: 0 shown; when nothing is left, the status of the run's outcome.
    """
    from troth.airlock.reviewing import viewing

    session = looked_at(store, review)
    name = finding or viewing.next_finding(session)
    if name is None:
        return _nothing_left(session, as_json)
    view = viewing.view(session, name)
    if as_json:
        emit_json({"review_id": session.id, "finding": view.as_json()})
    else:
        tell_finding(view)
    return 0


def _nothing_left(session: Session, as_json: bool) -> int:
    from troth.airlock.reviewing import viewing
    from troth.cli.review_common import tell_standing

    standing = viewing.standing(session.folder)
    if as_json:
        emit_json({"review_id": session.id, "finding": None, "standing": standing.as_json()})
    else:
        tell_standing(standing)
    return standing.exit_code


def _answered(session: Session, finding: str, as_json: bool, **told: Any) -> int:
    """Tell what became of a finding, and of the run if it ended with it."""
    from troth.airlock.reviewing import viewing
    from troth.review.run import ENDS

    view = viewing.view(session, finding)
    standing = viewing.standing(session.folder)
    outcome = standing.outcome if standing.kept else None
    if as_json:
        emit_json({
            "review_id": session.id, "finding_id": finding, "state": view.case.state, "label": view.case.label,
            **told, "outcome": outcome, "success": standing.exit_code == 0,
            "next": view.as_json()["next"], "next_finding": viewing.next_finding(session),
        })  # fmt: skip
        return 0
    say(f"{finding}  {view.case.state.replace('_', ' ')}" + (f", {view.case.label}" if view.case.label else ""))
    for command, when in view.steps:
        say(f"  {printable(command)}   ({when})")
    following = viewing.next_finding(session)
    if outcome is not None:
        say(f"outcome     {coloured(outcome, ENDS[outcome].colour)}: {ENDS[outcome].says}")
        if standing.open_questions:
            say(f"next        troth review decide {printable(session.id)}")
    elif following is not None and following != finding:
        say(f"next        troth review next   ({following})")
    return 0


@click.command("triage", epilog="Example: troth review triage F002 judgment --kind value_or_priority_tradeoff")
@click.argument("finding")
@click.argument("label", type=click.Choice(["checkable", "judgment"]))
@click.option(
    "--kind",
    type=click.Choice(["value_or_priority_tradeoff", "policy_or_authority_required"]),
    help="Of a judgment: why it belongs to the operator.",
)
@run_options
def triage_cmd(
    *, finding: str, label: str, kind: str | None, review: str, actor: str | None, store: str | None, as_json: bool
) -> int:
    """Label a finding: something can show it true or false, or it is a judgment that belongs to the operator.

    Exit status: 0 recorded, 2 refused.
    """
    from troth.airlock.reviewing import host

    who = actor_at(actor, reviews_at(store)[1])
    with held(store, review) as session:
        host.triage(session, finding, label, kind, who)
        return _answered(session, finding, as_json)


@click.command(
    "verify",
    context_settings={"ignore_unknown_options": False},
    epilog="Example: troth review verify F001 --method command -- pytest -q tests/test_cart.py",
)
@click.argument("finding")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
@click.option("--method", required=True, type=click.Choice(METHODS), help="How it was verified, strongest first.")
@click.option("--result", type=click.Choice(RESULTS), help="What it says of the finding. Of a command it is computed.")
@click.option("--detail", metavar="TEXT", help="What was looked at and what was seen.")
@click.option(
    "--when-passes",
    type=click.Choice(RESULTS),
    help="What exit 0 of the command says of the finding. Default: contradicts.",
)
@click.option("--when-fails", type=click.Choice(RESULTS), help="What exit 1 says. Default: the opposite.")
@click.option("--anchor", metavar="JSON", help="Of an inspection: an anchor, which must resolve in the artifact.")
@click.option("--quote", metavar="TEXT", help="Of an inspection: a text that must stand in the artifact exactly.")
@click.option("--absent", metavar="TEXT", help="Of an inspection: a text that must stand nowhere in the artifact.")
@click.option("--uri", metavar="URI", help="Of a retrieved source: where it is.")
@click.option("--file", "source", type=click.Path(), help="Of a retrieved source: its bytes, whose digest is recorded.")
@click.option("--of", "of", multiple=True, type=click.IntRange(1), help="The reviewer's new evidence it is about.")
@click.option("--again", is_flag=True, help="Run a command again that ran on this very tree already.")
@click.option("--timeout", type=Seconds(min=1, max=WEEK), metavar="SECONDS", help="Time allowed to the command.")
@run_options
def verify_cmd(
    *,
    finding: str,
    argv: tuple[str, ...],
    method: str,
    result: str | None,
    review: str,
    actor: str | None,
    store: str | None,
    as_json: bool,
    of: tuple[int, ...],
    **given: Any,
) -> int:
    """Verify a finding and record what came of it.

    A command runs in the sandbox, on a copy of the workspace with the artifact as it was reviewed; exit, output digest
    and tree digest are recorded. What an inspection says of the artifact is looked up there first. A model's opinion is
    recorded and settles nothing.

    Exit status: 0 recorded, 2 refused (what was said of the artifact does not hold there, for example).
    """
    from troth.airlock.reviewing import host, verifying

    named = person_at if method == "operator-confirmation" else actor_at
    who = named(actor, reviews_at(store)[1])
    verifying.check_request(method, result, argv, given)
    with held(store, review) as session:
        host.may_verify(session.case(finding))
        made = verifying.made(session, finding, method, result=result, argv=argv, given=given, actor=who)
        recorded = not made.earlier and host.verify(session, finding, made.verification, who, of=of, facts=made.facts)
        if not as_json and made.output:
            for line in made.output.decode("utf-8", "replace").splitlines()[-20:]:
                say(f"  | {printable(line, 300)}")
        if not as_json:
            from troth.cli.review_common import tell_verification

            say(f"{finding}  {'recorded' if recorded else 'recorded already'}")
            tell_verification(made.verification)
        return _answered(
            session, finding, as_json, recorded=recorded, verification=dict(made.verification), facts=dict(made.facts)
        )


def _position(command: Any) -> Any:
    return click.option("--position", metavar="TEXT", help="The host's position: why.")(command)


def _unverifiable(command: Any) -> Any:
    return click.option(
        "--unverifiable", metavar="WHY", help="Why nothing can verify the finding, where nothing was recorded."
    )(command)


def _conclude(
    finding: str,
    target: str,
    given: dict[str, Any],
    *,
    review: str,
    actor: str | None,
    store: str | None,
    as_json: bool,
    unverifiable: str | None = None,
) -> int:
    from troth.airlock.reviewing import host

    who = actor_at(actor, reviews_at(store)[1])
    basis = {name: text for name, value in given.items() if (text := host.text_of(value, name)) is not None}
    with held(store, review) as session:
        host.conclude(session, finding, target, basis, who, unverifiable=host.text_of(unverifiable, "the reason"))
        return _answered(session, finding, as_json)


@click.command("accept", epilog="Example: troth review accept F001")
@click.argument("finding")
@_position
@run_options
def accept_cmd(*, finding: str, position: str | None, **run: Any) -> int:
    """Accept a finding: it is checkable and a verification supports it.

    Exit status: 0 recorded, 2 refused.
    """
    return _conclude(finding, "accepted", {"host_position": position}, **run)


@click.command("reject", epilog="Example: troth review reject F002")
@click.argument("finding")
@_position
@run_options
def reject_cmd(*, finding: str, position: str | None, **run: Any) -> int:
    """Reject a finding: it is checkable, and a verification contradicts it.

    Exit status: 0 recorded, 2 refused.
    """
    return _conclude(finding, "rejected", {"host_position": position}, **run)


@click.command("resolve", epilog="Example: troth review resolve F001 --done 'The invoice is named now.'")
@click.argument("finding")
@click.option("--done", required=True, metavar="TEXT", help="What was done about it.")
@_position
@run_options
def resolve_cmd(*, finding: str, done: str, position: str | None, **run: Any) -> int:
    """Resolve a finding: it is checkable, a verification supports it, and something was done about it.

    Exit status: 0 recorded, 2 refused.
    """
    return _conclude(finding, "resolved", {"host_position": position, "resolution": done}, **run)


@click.command("contest", epilog="Example: troth review contest F003 --position 'The figure is in the appendix.'")
@click.argument("finding")
@click.option("--position", required=True, metavar="TEXT", help="Why you disagree; the reviewer reads it.")
@_unverifiable
@run_options
def contest_cmd(*, finding: str, position: str, unverifiable: str | None, **run: Any) -> int:
    """Contest a finding where verification alone does not decide it; `rebut` then asks the reviewer.

    Exit status: 0 recorded, 2 refused.
    """
    return _conclude(finding, "contested", {"host_position": position}, unverifiable=unverifiable, **run)


@click.command(
    "escalate", epilog="Example: troth review escalate F003 --question 'Save now, or wait?' --position 'Save now.'"
)
@click.argument("finding")
@click.option("--question", required=True, metavar="TEXT", help="What the operator is to answer, in one minute.")
@_position
@click.option("--reviewer-position", metavar="TEXT", help="The reviewer's, where it gave none beyond its claim.")
@click.option("--kind", type=click.Choice(DISPUTES), help="Default: as triaged, else as the verifications show.")
@click.option("--stop-reason", type=click.Choice(STOPS), help="Default: computed from the records.")
@_unverifiable
@run_options
def escalate_cmd(
    *,
    finding: str,
    question: str,
    position: str | None,
    reviewer_position: str | None,
    kind: str | None,
    stop_reason: str | None,
    unverifiable: str | None,
    review: str,
    actor: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Leave a finding to the operator, as a question with both positions.

    Exit status: 0 recorded, 2 refused.
    """
    from troth.airlock.reviewing import host

    who = actor_at(actor, reviews_at(store)[1])
    asked = host.text_of(question, "the question")
    if asked is None:
        raise Refused("E_USAGE", "an escalation puts a question")
    with held(store, review) as session:
        basis = host.escalation(
            session,
            finding,
            question=asked,
            position=host.text_of(position, "the position"),
            reviewer_position=host.text_of(reviewer_position, "the reviewer's position"),
            dispute_kind=kind,
            stop_reason=stop_reason,
        )
        host.conclude(
            session,
            finding,
            "deadlocked",
            {"escalation": basis},
            who,
            unverifiable=host.text_of(unverifiable, "the reason"),
        )
        return _answered(session, finding, as_json)
