"""``troth review panel``, ``merge``, ``chunks``: several reviewers of one artifact, or one that reads it in pieces."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.options import WEEK, Seconds, json_option
from troth.cli.review_common import actor_at, gathered, place_option, reviews_at, tell_standing
from troth.core.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from troth.airlock.reviewing.reaching import Reviewer
    from troth.airlock.reviewing.running import Wanted
    from troth.airlock.reviewing.session import Session
    from troth.review.panel import Candidate
    from troth.stores.reviews import Reviews

KINDS = ("code", "document", "decision", "research", "data", "other")


def _sending_options(command: Any) -> Any:
    for option in (
        click.option("--lens", metavar="TEXT", help="What to look for, in place of what is looked for in this kind."),
        click.option("--id", "wanted", metavar="ID", help="Begins the ids of the runs. Default: after the first file."),
        click.option("--wall", type=Seconds(min=1, max=WEEK), default=300.0, show_default=True, help="Seconds a call."),
        click.option("--dry-run", is_flag=True, help="Show what would be sent and where to; send nothing."),
        click.option("--approve", "approved", multiple=True, metavar="ENDPOINT", help="Consent for this run."),
        click.option("--as", "--actor", "actor", metavar="ACTOR", help="Who has it reviewed. Default: as everywhere."),
    ):
        command = option(command)
    return json_option(place_option(command))


# --- panel ---


@click.command(
    "panel",
    epilog="Example: troth review panel memo.md --kind decision --backend codex --backend openai:gpt-5",
)
@click.argument("artifact", nargs=-1, required=True, metavar="ARTIFACT…")
@click.option("--kind", required=True, type=click.Choice(KINDS), help="What the artifact is; it is never guessed.")
@click.option("--backend", "backends", multiple=True, required=True, metavar="NAME", help="A reviewer. Repeatable.")
@click.option("--most", type=click.IntRange(2, 50), default=5, show_default=True, help="How many are asked at most.")
@_sending_options
def panel_cmd(*, artifact: tuple[str, ...], kind: str, backends: tuple[str, ...], most: int, **given: Any) -> int:
    """Ask several reviewers about the same artifact, each in a run of its own.

    Who is dropped because the panel is full is named. Findings stay apart until `troth review merge`: which of them
    are the same, the host says.

    Exit status: 3 the answers are to be merged and reconciled, 2 refused; nothing was sent then.
    """
    from troth.airlock.panels import SEATED, alike
    from troth.airlock.reviewing import reaching
    from troth.review.panel import seating

    held = seating(backends, most)
    reviewers = [reaching.reach(name, os.environ) for name in held.kept]
    told = {SEATED: {"dropped": list(held.dropped)}}
    reviews, wanted = _prepared(artifact, kind, [(reviewer, None) for reviewer in reviewers], given, told)
    for name in held.dropped:
        note(f"troth: {printable(name)} is not asked: the panel is full")
    if given["dry_run"]:
        return _not_sent({"asked": list(held.kept), "dropped": list(held.dropped)}, given)
    sessions = _asked(reviews, wanted)
    pairs = alike(sessions)
    if given["as_json"]:
        emit_json({"members": [_told(session) for session in sessions], "dropped": list(held.dropped),
                   "candidates": [[str(pair.one), str(pair.other)] for pair in pairs]})  # fmt: skip
        return 3
    for session in sessions:
        _tell_member(session)
    _tell_pairs(sessions, pairs)
    return 3


def _tell_pairs(sessions: Sequence[Session], pairs: Sequence[Candidate]) -> None:
    from troth.cli.review_documents import shown_text

    for pair in pairs:
        say(f"the same?  {pair.one} and {pair.other}")
        for source in pair:
            session = next(one for one in sessions if one.id == source.seat)
            say(f"           {source}: {shown_text(session.finding(source.finding_id)['claim'])}")
    same = f" --same {pairs[0].one}={pairs[0].other}" if pairs else ""
    say(f"next       troth review merge {' '.join(session.id for session in sessions)}{same}")


def _told(session: Session) -> dict[str, Any]:
    from troth.airlock.panels import seats

    (seat,) = seats([session])
    return {
        "review_id": session.id, "backend": seat.backend, "tier": seat.tier, "failure": seat.failure,
        "findings": [] if seat.review is None else [
            {"id": one["id"], "severity": one["severity"], "category": one.get("category"), "claim": one["claim"]}
            for one in seat.review["findings"]
        ],
    }  # fmt: skip


def _tell_member(session: Session) -> None:
    told = _told(session)
    came = coloured("failed", "red") if told["failure"] else f"{len(told['findings'])} findings"
    say(f"{printable(session.id)}  {printable(told['backend'])}, {told['tier'].replace('_', ' ')}: {came}")


# --- merge ---


@click.command("merge", epilog="Example: troth review merge memo memo-2 --same memo:F001=memo-2:F003")
@click.argument("members", nargs=-1, required=True, metavar="REVIEW…")
@click.option("--same", "same", multiple=True, metavar="A:F001=B:F002",
              help="These two claim the same; the host has looked. Repeatable.")  # fmt: skip
@click.option("--id", "wanted", metavar="ID", help="The merged review's id.")
@click.option("--as", "--actor", "actor", metavar="ACTOR", help="Who confirms. Default: as everywhere.")
@place_option
@json_option
def merge_cmd(
    *,
    members: tuple[str, ...],
    same: tuple[str, ...],
    wanted: str | None,
    actor: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Make one review of a panel's; two findings become one only where --same says so.

    They must have an equal category and an identical anchor, and each two that become one must be named. All evidence
    stays, and the highest severity. A failed member makes the run incomplete.

    Exit status: 0 all approved, 3 there are findings to settle, 2 refused; nothing was made then.
    """
    from troth.airlock.panels import merge_panel
    from troth.airlock.reviewing.session import Session
    from troth.airlock.reviewing.viewing import standing
    from troth.review.panel import Source

    reviews, space = reviews_at(store)
    sessions = [Session(reviews.find(name)) for name in members]
    pairs = []
    for word in same:
        one, sign, other = word.partition("=")
        if not sign:
            raise Refused("E_USAGE", f"--same takes A:F001=B:F002, not {printable(word, 80)!r}")
        pairs.append((Source.parse(one), Source.parse(other)))
    made = merge_panel(reviews, sessions, pairs, actor=actor_at(actor, space), wanted=wanted)
    found = standing(made.folder)
    if as_json:
        emit_json({**found.as_json(), "members": [_told(session) for session in sessions]})
    else:
        tell_standing(found)
    return found.exit_code


# --- chunks ---


@click.command("chunks", epilog="Example: troth review chunks src --kind code --backend codex --most-bytes 100000")
@click.argument("artifact", nargs=-1, required=True, metavar="ARTIFACT…")
@click.option("--kind", required=True, type=click.Choice(KINDS), help="Only code is reviewed in chunks.")
@click.option("--backend", required=True, metavar="NAME", help="The reviewer.")
@click.option("--most-bytes", type=click.IntRange(1), default=200_000, show_default=True, help="Of a chunk's payload.")
@_sending_options
def chunks_cmd(*, artifact: tuple[str, ...], kind: str, backend: str, most_bytes: int, **given: Any) -> int:
    """Have code reviewed in chunks of whole files, each alone, and one review made of all.

    Every chunk and its digest is shown before the first is sent. The whole is never reviewed, and every report says so.

    Exit status: 0 every chunk was approved, 3 there are findings to settle or a chunk failed, 2 refused.
    """
    from troth.airlock.panels import merge_chunks
    from troth.airlock.reviewing import reaching
    from troth.airlock.reviewing.viewing import standing
    from troth.review.artifact import Artifact
    from troth.review.chunks import STATEMENTS, planned

    space = reviews_at(given["store"])[1]
    plan = planned(Artifact(gathered(artifact, space.root if space is not None else None)), kind, most_bytes)
    reviewer = reaching.reach(backend, os.environ)
    reviews, wanted = _prepared(artifact, kind, [(reviewer, chunk) for chunk in plan.chunks], given)
    tell = note if given["as_json"] else say
    for entry in plan.manifest()["chunks"]:
        tell(f"{entry['id']}  {entry['bytes']} bytes, {entry['digest']}: "
             f"{printable(', '.join(held['path'] for held in entry['members']), 400)}")  # fmt: skip
    if given["dry_run"]:
        return _not_sent({"plan": plan.manifest()}, given)
    sessions = _asked(reviews, wanted)
    made = merge_chunks(reviews, plan, sessions, actor=actor_at(given["actor"], space), wanted=given["wanted"])
    found = standing(made.folder)
    if given["as_json"]:
        emit_json({**found.as_json(), "plan": plan.manifest(), "members": [_told(session) for session in sessions]})
    else:
        for session in sessions:
            _tell_member(session)
        tell_standing(found)
        for statement in STATEMENTS:
            say(f"limit       {statement}")
    return found.exit_code


# --- sending ---


def _not_sent(told: dict[str, Any], given: dict[str, Any]) -> int:
    if given["as_json"]:
        emit_json({**told, "sent": False})
    else:
        say("Nothing was sent.")
    return 0


def _prepared(
    artifact: Sequence[str],
    kind: str,
    asked: Sequence[tuple[Reviewer, Any]],
    given: dict[str, Any],
    extensions: Mapping[str, Any] | None = None,
) -> tuple[Reviews, list[tuple[Reviewer, Wanted]]]:
    """Show every manifest and ask for every consent before anything is made or sent."""
    from troth.airlock.reviewing import reaching, running
    from troth.airlock.reviewing.host import text_of
    from troth.airlock.reviewing.session import Limits

    text_of(given["lens"], "the lens")
    reviews, space = reviews_at(given["store"])
    who = actor_at(given["actor"], space)
    root = space.root if space is not None else None
    whole = gathered(artifact, root)
    instruction = reaching.instruction_for(kind, given["lens"])
    tell = note if given["as_json"] else say
    shown = []
    for reviewer, chunk in asked:
        members = whole if chunk is None else [(one.path, one.data) for one in chunk.artifact.members.values()]
        held = running.artifact_of(members, kind)
        manifest = reaching.review_manifest(reviewer.backend.endpoint, held, instruction)
        for line in manifest.lines():
            tell(line)
        for each in reaching.warnings(held, given["lens"]):
            note(f"troth: this looks like a secret: {each}")
        shown.append((reviewer, chunk, members, manifest))
    if given["dry_run"]:
        return reviews, []
    found = []
    for reviewer, chunk, members, manifest in shown:
        allowed = reaching.require_consent(reviewer.backend.endpoint, given["approved"], os.environ)
        name = given["wanted"]
        found.append((reviewer, running.Wanted(
            members=members, kind=kind, backend=reviewer.described(), instruction=instruction, actor=who,
            id=name if chunk is None or name is None else f"{name}-{chunk.id}", lens=given["lens"],
            limits=Limits(wall=given["wall"], idle=given["wall"], deadline=2 * given["wall"]),
            root=reaching.workspace_root(root), independence=reviewer.independence, consent=allowed.as_json(),
            manifest=manifest.as_json(), extensions=extensions or {},
        )))  # fmt: skip
    return reviews, found


def _asked(reviews: Reviews, wanted: Sequence[tuple[Reviewer, Wanted]]) -> list[Session]:
    from troth.airlock.reviewing import reaching, running

    sessions = []
    for reviewer, each in wanted:
        session = running.set_up(reviews, each)
        with session.folder.exclusively():
            running.send_review(session, reviewer.backend, reaching.metered(session))
        sessions.append(session)
    return sessions
