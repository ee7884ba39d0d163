"""``troth review status``, ``list``, ``recheck``, ``finish``, ``forget``, ``prune``: runs as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from troth.cli.answer import coloured, emit_json, printable, say
from troth.cli.options import json_option
from troth.cli.review_common import held, looked_at, place_option, reviews_at, tell_standing

if TYPE_CHECKING:
    from troth.airlock.reviewing.viewing import Standing


@click.command("status", epilog="Example: troth review status")
@click.argument("review", default="@last", metavar="[REVIEW]")
@place_option
@json_option
def status_cmd(*, review: str, store: str | None, as_json: bool) -> int:
    """Tell how far a run is, what was spent, and what it comes to. Only a kept, converged result is a success.

    Exit status: 0 converged, 4 deadlocked, 3 incomplete, failed or not ended yet, 2 no such run.
    """
    from troth.airlock.reviewing import viewing

    standing = viewing.standing(reviews_at(store)[0].find(review))
    if as_json:
        emit_json(standing.as_json())
    else:
        tell_standing(standing)
    return standing.exit_code


@click.command("list", epilog="Example: troth review list --open")
@click.option("--open", "only_open", is_flag=True, help="Only runs that are not ended, or wait for the operator.")
@place_option
@json_option
def list_cmd(*, only_open: bool, store: str | None, as_json: bool) -> int:
    """List the runs, oldest first, with what became of each.

    Exit status: 0 listed.
    """
    from troth.airlock.reviewing import viewing

    found = [viewing.standing(folder) for folder in reviews_at(store)[0].list()]
    shown = [each for each in found if not only_open or each.stage != "finished" or each.open_questions]
    if as_json:
        emit_json({"reviews": [each.as_json() for each in shown]})
        return 0
    if not shown:
        say("No reviews. Have something reviewed with: troth review start FILE --kind decision --backend NAME")
    for each in shown:
        say(f"{printable(each.id)}  {each.created[:19] or 'no date'}  {_became(each)}")
    return 0


def _became(standing: Standing) -> str:
    from troth.review.run import ENDS

    if standing.stage == "unreadable":
        return coloured(f"cannot be read: {printable(standing.problem or '', 200)}", "red")
    if standing.kept and standing.outcome is not None:
        waits = f", {standing.open_questions} for the operator" if standing.open_questions else ""
        return coloured(standing.outcome, ENDS[standing.outcome].colour) + waits
    if standing.stage == "waiting":
        return coloured("no answer of the reviewer", "yellow")
    left = sum(count for state, count in (standing.states or {}).items() if state in _LEFT)
    return coloured(f"{left} of {sum((standing.states or {}).values())} findings to settle", "yellow")


_LEFT = (
    "prepared", "reviewed", "finding_triage", "evidence_verification", "host_response", "contested",
    "reviewer_rebuttal",
)  # fmt: skip


@click.command("recheck", epilog="Example: troth review recheck")
@click.argument("review", default="@last", metavar="[REVIEW]")
@click.option("--finding", metavar="ID", help="Only what was verified of this finding.")
@place_option
@json_option
def recheck_cmd(*, review: str, finding: str | None, store: str | None, as_json: bool) -> int:
    """Do every verification again that a program can do, and tell what differs. Nothing is recorded.

    Commands run again in the sandbox on what was reviewed; places and absent texts are looked for again.

    Exit status: 0 all as recorded, 1 something differs, 3 something could not be done again.
    """
    from troth.airlock.reviewing.checks import recheck
    from troth.cli.answer import worst

    session = looked_at(store, review)
    if finding is not None:
        session.finding(finding)
    found = recheck(session, finding)
    status = worst({"same": 0, "differs": 1, "unable": 3}[again.state] for again in found) if found else 0
    if as_json:
        emit_json({"review_id": session.id, "checked": [again.as_json() for again in found]})
        return status
    if not found:
        say("No verification of this run can be done again by a program.")
    for again in found:
        colour = {"same": "green", "differs": "red", "unable": "yellow"}[again.state]
        entry = again.recorded
        say(f"{again.finding_id}  {coloured(again.state, colour)}: {printable(again.says, 1000)}")
        say(f"  recorded: {entry['method'].replace('_', ' ')} {entry['result']}: {printable(entry.get('detail', ''))}")
    return status


@click.command("finish", epilog="Example: troth review finish")
@click.argument("review", default="@last", metavar="[REVIEW]")
@place_option
@json_option
def finish_cmd(*, review: str, store: str | None, as_json: bool) -> int:
    """End a run as it stands. Findings that are not settled are left out, which makes it incomplete.

    Exit status: 0 converged, 4 deadlocked, 3 incomplete or failed.
    """
    from troth.airlock.reviewing import finishing, viewing
    from troth.airlock.reviewing.resuming import resume

    with held(store, review) as session:
        resume(session)
        finishing.save(session)
        standing = viewing.standing(session.folder)
    if as_json:
        emit_json(standing.as_json())
    else:
        tell_standing(standing)
    return standing.exit_code


@click.command("forget", epilog="Example: troth review forget memo-2")
@click.argument("review")
@place_option
@json_option
def forget_cmd(*, review: str, store: str | None, as_json: bool) -> int:
    """Remove one run with all that was kept of it, and make sure that it is gone.

    Exit status: 0 gone, 2 no such run, or it cannot be removed.
    """
    reviews, _ = reviews_at(store)
    folder = reviews.find(review)
    with folder.exclusively():
        reviews.forget(folder)
    if as_json:
        emit_json({"review_id": folder.id, "gone": True})
    else:
        say(f"{printable(folder.id)} is gone")
    return 0


@click.command("prune", epilog="Example: troth review prune --days 90")
@click.option("--days", type=click.IntRange(1), required=True, help="Remove runs that are at least so many days old.")
@click.option("--even-open", is_flag=True, help="Also runs with questions that wait for the operator.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be removed.")
@place_option
@json_option
def prune_cmd(*, days: int, even_open: bool, dry_run: bool, store: str | None, as_json: bool) -> int:
    """Remove old runs; what waits for the operator is kept, and what cannot be read too.

    Exit status: 0 done.
    """
    from troth.airlock.reviewing.pruning import prune

    reviews, _ = reviews_at(store)
    gone, spared = prune(reviews, days, even_open=even_open, dry_run=dry_run)
    if as_json:
        emit_json({"removed": gone, "kept": [{"review_id": name, "why": why} for name, why in spared],
                   "dry_run": dry_run})  # fmt: skip
        return 0
    for name in gone:
        say(f"{printable(name)}  {'would go' if dry_run else 'gone'}")
    for name, why in spared:
        say(f"{printable(name)}  kept: {why}")
    if not gone and not spared:
        say(f"No run is {days} days old.")
    return 0
