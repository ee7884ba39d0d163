"""``troth review start``, ``resume``, ``rebut``: the commands by which something leaves for a reviewer."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.options import WEEK, Seconds, json_option
from troth.cli.review_common import actor_at, gathered, held, place_option, reviews_at, tell_finding, tell_standing
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.airlock.reviewing.session import Limits, Session
    from troth.backends.manifest import Manifest
    from troth.backends.secrets import Suspicion

KINDS: Final = ("code", "document", "decision", "research", "data", "other")


def _approve_option(command: Any) -> Any:
    return click.option(
        "--approve",
        "approved",
        multiple=True,
        metavar="ENDPOINT",
        help="Consent for this run: the endpoint exactly as the manifest names it. Repeatable.",
    )(command)


@click.command(
    "start",
    epilog="Example: troth review start memo.md --kind decision --backend codex --approve https://api.openai.com",
)
@click.argument("artifact", nargs=-1, required=True, metavar="ARTIFACT…")
@click.option("--kind", required=True, type=click.Choice(KINDS), help="What the artifact is; it is never guessed.")
@click.option("--backend", metavar="NAME", help="codex, claude, openai:MODEL[@URL], anthropic:MODEL, local:URL, "
              "scripted:FILE. Default: the most independent usable one.")  # fmt: skip
@click.option("--model", metavar="NAME", help="The model asked for. Default: the backend's own.")
@click.option("--effort", metavar="EFFORT", help="How hard the model is to think, where the backend takes it.")
@click.option("--speed", metavar="SPEED", help="How quick it is to answer, where the backend takes it.")
@click.option("--lens", metavar="TEXT", help="What to look for, in place of what is looked for in this kind.")
@click.option("--rounds", type=click.IntRange(0, 20), default=1, show_default=True, help="Rebuttals for each finding.")
@click.option("--wall", type=Seconds(min=1, max=WEEK), default=300.0, show_default=True, help="Seconds for one call.")
@click.option("--idle", type=Seconds(min=1, max=WEEK), help="Seconds a call may be silent. Default: the wall.")
@click.option("--deadline", type=Seconds(min=1, max=WEEK), help="Seconds for all calls. Default: twice the wall.")
@click.option("--budget-bytes", type=click.IntRange(1), default=16_000_000, show_default=True, help="Both ways.")
@click.option("--budget-tokens", type=click.IntRange(1), default=4_000_000, show_default=True, help="Both ways.")
@click.option("--id", "wanted", metavar="ID", help="The review's id. Default: after the first file.")
@click.option("--rules", is_flag=True, help="Let codex follow rules that the repository holds.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, where to, and whether it may; send nothing.")
@click.option("--no-record", "unrecorded", is_flag=True, help="Tell the answer and keep nothing of it.")
@click.option("--raw", is_flag=True, help="Tell the findings alone, unverified, and keep nothing.")
@click.option(
    "--self-review",
    "own",
    metavar="FILE",
    help="The host's own review of its own work. Only where no reviewer can be had, and never of code.",
)
@_approve_option
@click.option("--as", "--actor", "actor", metavar="ACTOR", help="Who has it reviewed. Default: as everywhere.")
@place_option
@json_option
def start_cmd(
    *,
    artifact: tuple[str, ...],
    kind: str,
    backend: str | None,
    lens: str | None,
    wanted: str | None,
    rules: bool,
    dry_run: bool,
    unrecorded: bool,
    raw: bool,
    own: str | None,
    approved: tuple[str, ...],
    actor: str | None,
    store: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Have files reviewed: show what is sent, ask the reviewer, keep and validate the answer.

    ARTIFACT is a file, a folder, NAME=FILE, or - for standard input. Nothing leaves without consent: a stored grant
    (`troth review consent grant`) or --approve for this run.

    Exit status: 0 the reviewer approved, 3 there are findings to settle or the review failed, 2 refused (consent is
    missing, for example; nothing was sent then).
    """
    from troth.airlock.reviewing import reaching, running, viewing
    from troth.airlock.reviewing.gathering import STDIN
    from troth.airlock.reviewing.host import text_of

    reviews, space = reviews_at(store)
    who = actor_at(actor, space)
    root = space.root if space is not None else None
    stdin = _stdin() if STDIN in artifact else None
    lens = text_of(lens, "the lens")
    members = gathered(artifact, root, stdin)
    reviewed = running.artifact_of(members, kind)
    if own is not None and (backend is not None or unrecorded):
        raise Refused("E_USAGE", "--self-review goes with neither --backend nor --no-record")
    reviewer = (
        reaching.reach(backend, os.environ, rules=rules) if own is None else reaching.reach_self(own, kind, os.environ)
    )
    instruction = reaching.instruction_for(kind, lens)
    key = reviewer.backend.endpoint
    manifest = reaching.review_manifest(key, reviewed, instruction)
    suspected = reaching.warnings(reviewed, lens)
    if own is None:
        _show(manifest, suspected, reviewer.independence, as_json=as_json)
    if dry_run:
        return _dry(manifest, suspected, reviewer, approved, as_json)
    allowed = (
        reaching.require_consent(key, approved, os.environ).as_json() if own is None else dict(reaching.NOTHING_LEAVES)
    )
    asked = running.Wanted(
        members=members, kind=kind, backend=reviewer.described(), instruction=instruction, actor=who, id=wanted,
        lens=lens, model=given["model"], effort=given["effort"], speed=given["speed"], limits=_limits(given),
        root=reaching.workspace_root(root), independence=reviewer.independence, consent=allowed,
        manifest={**manifest.as_json(), "suspected_secrets": [each.as_json() for each in suspected]},
    )  # fmt: skip
    if unrecorded or raw:
        return _unrecorded(asked, reviewer.backend, raw=raw, as_json=as_json)
    session = running.set_up(reviews, asked)
    with session.folder.exclusively():
        _waiting(session)
        running.send_review(session, reviewer.backend, reaching.metered(session))
        standing = viewing.standing(session.folder)
        first = viewing.next_finding(session) if session.run is not None else None
    if as_json:
        emit_json({**standing.as_json(), "manifest": manifest.as_json(), "consent": allowed,
                   "warnings": [each.as_json() for each in suspected], "next_finding": first})  # fmt: skip
    else:
        say()
        tell_standing(standing)
    return standing.exit_code


def _unrecorded(asked: Any, backend: Any, *, raw: bool, as_json: bool) -> int:
    """Ask and tell the answer, and keep nothing of it. It is never a success: nothing of it is reconciled."""
    from troth.airlock.reviewing.unrecorded import ask_unrecorded

    told = ask_unrecorded(asked, backend)
    document = told.document
    if raw and document is not None:
        document = {"unverified": True, "findings": document["findings"]}
    if as_json:
        emit_json({"recorded": False, "success": False, "raw": raw, "document": document,
                   "failure": dict(told.failure) if told.failure else None,
                   "unresolved": list(told.unresolved)})  # fmt: skip
        return 3
    say()
    if told.failure is not None:
        say(f"{coloured('failed', 'red')}: {told.failure['code']}: {printable(told.failure['message'], 1000)}")
        return 3
    say(coloured("UNVERIFIED findings of a reviewer, no review." if raw else "Nothing of this is kept or reconciled.",
                 "yellow"))  # fmt: skip
    _tell_document(told, raw=raw)
    return 3


def _tell_document(told: Any, *, raw: bool) -> None:
    from troth.cli.review_documents import shown_text

    document = told.document
    if not raw:
        say(f"assessment  {document['assessment'].replace('_', ' ')}: {shown_text(document['summary'])}")
    for finding in document["findings"]:
        say(f"{finding['id']}  {finding['severity']}, confidence {finding['confidence']}: "
            f"{shown_text(finding['claim'])}")  # fmt: skip
        say(f"  recommended: {shown_text(finding['recommendation'])}")
    for place in told.unresolved:
        say(coloured(f"points nowhere: {printable(place)}", "red"))


def _stdin() -> bytes:
    from troth.backends.protocol import MOST_INPUT

    return sys.stdin.buffer.read(MOST_INPUT + 1)


def _limits(given: dict[str, Any]) -> Limits:
    from troth.airlock.reviewing.session import Limits

    wall = given["wall"]
    return Limits(
        rounds=given["rounds"],
        deadline=given["deadline"] if given["deadline"] is not None else 2 * wall,
        bytes=given["budget_bytes"],
        tokens=given["budget_tokens"],
        wall=wall,
        idle=given["idle"] if given["idle"] is not None else wall,
    )


def _show(manifest: Manifest, suspected: list[Suspicion], independence: Any, *, as_json: bool) -> None:
    """Show what is about to leave, before anything does; beside a JSON answer on stderr."""
    tell = note if as_json else say
    for line in manifest.lines():
        tell(line)
    for each in suspected:
        note(f"troth: this looks like a secret: {each}")
    if not as_json and independence:
        say(f"independence: {independence['tier'].replace('_', ' ')}")
        for notice in independence["notices"]:
            say(coloured(printable(notice), "yellow"))


def _dry(
    manifest: Manifest, suspected: list[Suspicion], reviewer: Any, approved: tuple[str, ...], as_json: bool
) -> int:
    from troth.airlock.reviewing import reaching

    found = reaching.asked_consent(reviewer.backend.endpoint, approved, os.environ)
    if as_json:
        emit_json({"manifest": manifest.as_json(), "warnings": [each.as_json() for each in suspected],
                   "backend": reviewer.described(), "independence": dict(reviewer.independence),
                   "consent": found.as_json(), "sent": False})  # fmt: skip
        return 0
    say(f"consent: {coloured('given' if found.given else 'none', 'green' if found.given else 'red')}, "
        f"{printable(found.reason)}")  # fmt: skip
    say("Nothing was sent.")
    return 0


def _waiting(session: Session) -> None:
    if sys.stderr.isatty():
        note(f"troth: {session.id}: waiting for the reviewer, {session.setup.limits.wall:g} seconds at most")


@click.command("resume", epilog="Example: troth review resume")
@click.argument("review", default="@last", metavar="[REVIEW]")
@_approve_option
@place_option
@json_option
def resume_cmd(*, review: str, approved: tuple[str, ...], store: str | None, as_json: bool) -> int:
    """Take up a run that a crash or a limit left: what is on record is brought to its end.

    Where the reviewer's answer itself was lost, it is asked again, within what deadline and budget leave.

    Exit status: 0 converged, 4 deadlocked, 3 otherwise, 2 refused.
    """
    from troth.airlock.reviewing import reaching, running, viewing
    from troth.airlock.reviewing.resuming import resume

    with held(store, review) as session:
        done = resume(session)
        mended = list(done.mended)
        if done.unanswered:
            backend = reaching.reach_again(session.setup, os.environ)
            instruction = session.folder.read(running.INSTRUCTION).decode()
            _show(reaching.review_manifest(backend.endpoint, session.artifact, instruction), [], None, as_json=as_json)
            reaching.require_consent(backend.endpoint, reaching.approvals(session.setup, approved), os.environ)
            _waiting(session)
            running.send_review(session, backend, reaching.metered(session))
            mended.append("the reviewer was asked again")
        standing = viewing.standing(session.folder)
    if as_json:
        emit_json({**standing.as_json(), "mended": mended})
    else:
        for each in mended or ["nothing had to be mended"]:
            say(each)
        tell_standing(standing)
    return standing.exit_code


@click.command("rebut", epilog="Example: troth review rebut F003")
@click.argument("finding")
@click.option("--review", "review", default="@last", metavar="ID", help="The run: an id, what begins it, or @last.")
@_approve_option
@click.option("--as", "--actor", "actor", metavar="ACTOR", help="Who contests. Default: as everywhere.")
@place_option
@json_option
def rebut_cmd(
    *, finding: str, review: str, approved: tuple[str, ...], actor: str | None, store: str | None, as_json: bool
) -> int:
    """Send a contested finding back to the reviewer, with your reason and verifications: substantiate or withdraw.

    Exit status: 0 the reviewer replied, 3 no reply came (it can be asked again in the same round), 2 refused.
    """
    from troth.airlock.reviewing import reaching, rebutting, viewing

    who = actor_at(actor, reviews_at(store)[1])
    with held(store, review) as session:
        case = session.case(finding)
        instruction = reaching.rebuttal_instruction()
        if case.state in ("contested", "reviewer_rebuttal") and session.exhausted is None:
            backend = reaching.reach_again(session.setup, os.environ)
            document = rebutting.contest_document(session, finding)
            _show(reaching.rebuttal_manifest(backend.endpoint, document, instruction), [], None, as_json=as_json)
            reaching.require_consent(backend.endpoint, reaching.approvals(session.setup, approved), os.environ)
            rebutting.open_round(session, finding, who)
            _waiting(session)
            rebutting.send_contest(session, finding, backend, instruction, reaching.metered(session, rebuttal=True))
        else:
            rebutting.open_round(session, finding, who)  # which says why there is none
        view = viewing.view(session, finding)
        failure = session.calls[-1].failure
        standing = viewing.standing(session.folder)
    if as_json:
        emit_json({"review_id": session.id, "finding": view.as_json(), "failure": dict(failure) if failure else None,
                   "news": view.case.news, "outcome": standing.outcome if standing.kept else None})  # fmt: skip
        return 3 if failure else 0
    if failure:
        say(f"{coloured('no reply', 'red')}: {failure['code']}: {printable(failure['message'], 1000)}")
    elif view.case.reply == "substantiate":
        say("substantiated, with something new" if view.case.news else "substantiated, with nothing new")
    tell_finding(view)
    return 3 if failure else 0
