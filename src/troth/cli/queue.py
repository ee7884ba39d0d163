"""``troth queue``: what waits for whom and why, and the validators asked again for what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.options import Notes, acting, actor_option, at_option, open_ledger, reading_instant, reading_options
from troth.core.errors import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from troth.airlock.queue import Disputable, Group, Queue, Reopened, Waiting
    from troth.ledger.genesis import Genesis
    from troth.stores.protocol import LedgerStore

MEMBERS_SHOWN: Final = 10
"""How many of a group are listed without --all."""


@click.group(
    "queue",
    invoke_without_command=True,
    epilog="Example: troth queue --mine --as human:reviewer",
)
@click.option("--mine", is_flag=True, help="Only what you may decide, and reopened work that is yours.")
@click.option("--all", "whole", is_flag=True, help=f"List groups whole, not only their first {MEMBERS_SHOWN}.")
@actor_option
@at_option
@reading_options
@click.pass_context
def queue_cmd(  # noqa: PLR0917 - click calls it by name
    context: click.Context, mine: bool, whole: bool, actor: str | None, at: str | None, store: str | None, as_json: bool
) -> int | None:
    """Show what waits: submissions in review, reopened work, and closings that can still be disputed.

    For each submission: its tier and how long it waits, what the validators answered, who may decide and what to type.
    Submissions of one harmless kind stand together; what is risky stands alone and first. Asking the validators again
    is `troth queue run`.
    """
    if context.invoked_subcommand is not None:
        context.ensure_object(dict)
        context.obj["store"] = store
        return None
    from troth.airlock.queue import queue_of

    ledger = open_ledger(store)
    snapshot = ledger.read()
    found = snapshot.verification
    ruling = ledger.ruling()
    instant = reading_instant(at)
    who = acting(actor, ledger) if mine else None
    queue = queue_of(snapshot, ruling.genesis, at=instant, actor=who)
    if as_json:
        warnings = [warning.as_json() for warning in (*found.warnings, *ruling.warnings())]
        emit_json({"ok": found.ok, "head": found.head, **queue.as_json(), "warnings": warnings})
        return 0 if found.ok else 1
    for warning in ruling.warnings():
        note(f"warning: {warning.warning}: {printable(warning.message, 400)}")
    _tell(queue, whole=whole, who=who)
    if not found.ok:
        note("troth: the ledger does not verify, so nothing can be decided; see: troth verify")
        return 1
    return 0


def _tell(queue: Queue, *, whole: bool, who: str | None) -> None:
    single, groups = queue.arranged()
    if queue.waiting:
        say(coloured(f"Waits for a decision ({len(queue.waiting)})", "cyan"))
        for one in single:
            _tell_waiting(one)
        for group in groups:
            _tell_group(group, whole=whole)
    if queue.reopened:
        say(coloured(f"Reopened, with its owner ({len(queue.reopened)})", "cyan"))
        for back in queue.reopened:
            _tell_reopened(back)
    if queue.disputable:
        say(coloured(f"Closed by itself, can still be disputed ({len(queue.disputable)})", "cyan"))
        for closed in queue.disputable:
            _tell_disputable(closed)
    if not (queue.waiting or queue.reopened or queue.disputable):
        say("Nothing waits." if who is None else f"Nothing waits for {printable(who, 80)}.")


def _tell_waiting(one: Waiting) -> None:
    from troth.airlock.queue import RISK_WORDS
    from troth.cli.airlock import answer_line

    about = _in_brackets(one.tags)
    say(f"  {printable(one.commitment, 80)}  {printable(one.body, 100)}{about}")
    tier = f"tier {one.tier}, " if one.tier is not None else ""
    say(f"    {tier}since {printable(one.since, 40)}, submitted by {printable(one.submitter, 80)}")
    if one.risks:
        say(f"    look closely: {'; '.join(RISK_WORDS[name] for name in one.risks)}")
    say(f"    evidence {_evidence(one)}")
    for answered in one.answers:
        say(f"    {answer_line(answered)}")
    say(f"    waits for {printable(one.waits_for, 400)}")
    say(f"    who: {printable(one.who.words(), 400)}")
    for command in one.commands:
        say(f"      {printable(command, 200)}")


def _evidence(one: Waiting) -> str:
    found = one.evidence
    worth = f", confidence {found.confidence}" if found.confidence is not None else ""
    return f"{printable(found.id, 80)} by {printable(found.actor or '-', 80)}{worth}: {printable(found.body, 160)}"


def _in_brackets(tags: tuple[str, ...]) -> str:
    return f"  [{', '.join(printable(tag, 40) for tag in tags)}]" if tags else ""


def _tell_group(group: Group, *, whole: bool) -> None:
    from troth.cli.airlock import answer_line

    first = group.members[0]
    tier = f"tier {group.tier}, " if group.tier is not None else ""
    kind = printable(group.kind or "-", 64)
    say(f"  {len(group.members)} of one kind{_in_brackets(group.tags)}: {tier}evidence of kind {kind}")
    say(f"    all of them, once looked at: {group.command}")
    say(f"    each waits for {printable(group.waits_for, 400)}")
    for answered in first.answers:
        if all(
            answered["result"] == other["result"]
            for one in group.members
            for other in one.answers
            if other["validator"] == answered["validator"]
        ):
            say(f"    {answer_line({**answered, 'reason': 'the same answer for each'})}")
    everyone = {one.who.words() for one in group.members}
    for words in sorted(everyone):
        say(f"    who: {printable(words, 400)}")
    shown = group.members if whole else group.members[:MEMBERS_SHOWN]
    for one in shown:
        say(f"    {printable(one.commitment, 80)}  {printable(one.body, 72)}")
        say(f"      evidence {_evidence(one)}")
        say(f"      {printable(one.commands[-2], 200)}")
    if len(shown) < len(group.members):
        say(f"    and {len(group.members) - len(shown)} more; --all lists them")


def _tell_reopened(back: Reopened) -> None:
    by = f" by {printable(back.by, 80)}" if back.by is not None else ""
    say(f"  {printable(back.commitment, 80)}  {printable(back.body, 100)}  [{printable(back.owner, 80)}]")
    say(f"    since {printable(back.since, 40)}{by}" + (f": {printable(back.reason, 200)}" if back.reason else ""))
    about = printable(back.commitment, 80)
    say(f"      troth submit {about} --evidence ID   or   troth release {about} --reason TEXT")


def _tell_disputable(closed: Disputable) -> None:
    say(f"  {printable(closed.commitment, 80)}  {printable(closed.body, 100)}")
    say(f"    tier {closed.tier}, closed {printable(closed.closed, 40)}, can be disputed until {closed.until}")
    say(f"      troth reopen {printable(closed.commitment, 80)} --reason TEXT")


# run -----------------------------------------------------------------------------------------------------------


@queue_cmd.command("run", epilog="Example: troth queue run cmt_e5f6g7h8")
@click.argument("commitment", required=False, metavar="[ID]")
@reading_options
@click.pass_context
def run(context: click.Context, commitment: str | None, store: str | None, as_json: bool) -> int:
    """Ask the validators again: of one commitment in review, or of every one whose tier has some.

    An answer that is on record already is not written twice; the newest one counts. What all validators pass, and whose
    tier closes by itself, is closed. Exit status 0 whatever they answer.
    """
    from troth.airlock.validating import Airlock
    from troth.cli.airlock import report_lines
    from troth.cli.options import progress_note

    notes = Notes()
    ledger = open_ledger(store if store is not None else (context.obj or {}).get("store"), notes)
    genesis = ledger.genesis()
    chosen = _chosen(ledger, genesis, commitment)
    airlock = Airlock(ledger, tell=progress_note())
    reports = []
    for submission in chosen:
        report = airlock.take(submission)
        reports.append(report)
        if not as_json:
            say(f"{printable(report.commitment, 80)}  {printable(report.submission, 80)}")
            for line in report_lines(report) or [printable(f"waits: {report.because}", 400)]:
                say(f"  {line}")
    if as_json:
        emit_json({"reports": [report.as_json() for report in reports], "warnings": notes.as_json()})
    elif not reports:
        say("Nothing waits for a validator." if genesis is not None and genesis.tiers else _NO_TIERS)
    return 0


@queue_cmd.command("approve", epilog="Example: troth queue approve grp_0123456789ab --as human:reviewer")
@click.argument("group", metavar="GROUP")
@click.option("--comment", metavar="TEXT", help="A remark, the same for each.")
@actor_option
@reading_options
@click.pass_context
def approve(  # noqa: PLR0917 - click calls it by name
    context: click.Context, group: str, comment: str | None, actor: str | None, store: str | None, as_json: bool
) -> int:
    """Approve every submission of a GROUP that `troth queue` shows; each approval is a signal of its own.

    A group's name stands for exactly the submissions it was shown with: after one was added or decided it is refused,
    and the queue has to be looked at again. What is risky is in no group. One that is refused stops no other.
    """
    from troth.airlock.queue import queue_of
    from troth.core.instants import system_clock
    from troth.ledger.operations import Candidate

    notes = Notes()
    ledger = open_ledger(store if store is not None else (context.obj or {}).get("store"), notes)
    who = acting(actor, ledger)
    snapshot, genesis, now = ledger.read(), ledger.genesis(), system_clock()
    shown = [
        found
        for only in (None, who)
        for found in queue_of(snapshot, genesis, at=now, actor=only).arranged()[1]
        if found.id == group
    ]
    if not shown:
        raise Refused(
            "E_GROUP_UNKNOWN",
            f"no group of submissions is called {printable(group, 80)} now",
            remedy="Look again, with: troth queue",
        )
    approved, refused = [], []
    for one in shown[0].members:
        words = {"body": comment or "Approved", **({"comment": comment} if comment else {})}
        meta = {"submission": one.submission, "group": group}
        try:
            row = ledger.append(Candidate("approve", who, {**words, "commitment": one.commitment, "meta": meta}))
        except Refused as fault:
            refused.append({"commitment": one.commitment, **fault.as_json()})
            if not as_json:
                say(f"{printable(one.commitment, 80)}  {printable(str(fault), 400)}")
            continue
        approved.append({"commitment": one.commitment, "id": row["id"], "evidence": one.evidence.as_json()})
        if not as_json:
            say(f"{row['id']}  approved {printable(one.commitment, 80)}  evidence {_evidence(one)}")
    if as_json:
        emit_json({"approved": approved, "refused": refused, "warnings": notes.as_json()})
    return 2 if refused else 0


_NO_TIERS: Final = "The genesis key defines no tiers, so no validator is asked; submissions wait for an approval."


def _chosen(ledger: LedgerStore, genesis: Genesis | None, commitment: str | None) -> list[str]:
    """Return the submissions to take up."""
    from troth.airlock.validating import writable
    from troth.stores.requests import resolve

    snapshot = ledger.read()
    if not writable(snapshot):
        from troth.core.errors import DoesNotHold

        raise DoesNotHold(
            "E_CHAIN_BROKEN", "the ledger does not verify, so nothing is appended", remedy="See: troth verify"
        )
    state = snapshot.state
    if commitment is None:
        if genesis is None or not genesis.tiers:
            return []
        return [record.submission.id for record in state.commitments.values() if record.submission is not None]
    record = state.commitments.get(resolve(commitment, state, ("commit",)))
    if record is None:
        raise Refused("E_REF_NOT_FOUND", f"no commitment is {commitment}", detail="absent", remedy="See: troth queue")
    if record.submission is None:
        raise Refused(
            "E_CONSTRAINT_VIOLATED",
            f"{record.id} is {record.state}, not in review",
            detail="bad_state",
            remedy="See: troth queue",
        )
    return [record.submission.id]


# decided -------------------------------------------------------------------------------------------------------


@queue_cmd.command("decided", epilog="Example: troth queue decided --by human:reviewer --last 50")
@click.option("--by", metavar="ACTOR", help="Only what this actor decided.")
@click.option("--since", metavar="INSTANT", help="Only from this instant on, YYYY-MM-DDTHH:MM:SSZ.")
@click.option("--last", type=click.IntRange(min=1), default=20, show_default=True, help="How many are listed.")
@reading_options
@click.pass_context
def decided(  # noqa: PLR0917 - click calls it by name
    context: click.Context, by: str | None, since: str | None, last: int, store: str | None, as_json: bool
) -> int:
    """Show what was decided about submissions, by whom, how long each waited, and what was decided in haste.

    How long somebody looked is not known; the time since their decision before is the most that it can have been. A
    person's decision within 10 seconds of the one before is marked hasty, unless a group was approved as one.
    """
    from troth.airlock.decided import decisions, paces
    from troth.core.instants import parse_instant

    ledger = open_ledger(store if store is not None else (context.obj or {}).get("store"))
    snapshot = ledger.read()
    start = reading_instant(since, "--since") if since is not None else None
    found = [one for one in decisions(snapshot) if by in (None, one.by) and _from(start, parse_instant(one.ts))]
    sound = snapshot.verification.ok
    if as_json:
        emit_json(
            {
                "ok": sound,
                "head": snapshot.verification.head,
                "decided": len(found),
                "decisions": [one.as_json() for one in found[-last:]],
                "actors": [pace.as_json() for pace in paces(found)],
            }
        )
        return 0 if sound else 1
    if not found:
        say("Nothing was decided yet." if by is None and since is None else "Nothing of that was decided.")
    for one in found[-last:]:
        waited = f"waited {_span(one.waited)}" if one.waited is not None else "waited ?"
        marks = (f", in {printable(one.group, 40)}" if one.group else "") + (", hasty" if one.hasty else "")
        told = f": {printable(one.reason, 160)}" if one.reason else ""
        about = f"{printable(one.commitment, 80)}  {one.decision} by {printable(one.by, 80)}"
        say(f"  {printable(one.ts, 40)}  {about}  ({waited}{marks}){told}")
    if len(found) > last:
        say(f"  and {len(found) - last} before these; --last lists more")
    for pace in paces(found):
        wait = f", waited {_span(pace.waited)} in the median" if pace.waited is not None else ""
        haste = f", {pace.hasty} in haste" if pace.hasty else ""
        say(f"{printable(pace.by, 80)}: {pace.approved} approved, {pace.reopened} reopened{wait}{haste}")
    if not sound:
        note("troth: the ledger does not verify; see: troth verify")
        return 1
    return 0


def _from(start: datetime | None, at: datetime | None) -> bool:
    return start is None or (at is not None and at >= start)


def _span(seconds: float) -> str:
    """Return a time in its largest fitting unit, rounded down."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{int(seconds)} s"
