"""What the commands of a review under way share: which run is meant, who acts, how a finding is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from troth.cli.answer import coloured, printable, say
from troth.cli.options import json_option

if TYPE_CHECKING:
    from troth.airlock.reviewing.session import Session
    from troth.airlock.reviewing.viewing import Evidence, Standing, View
    from troth.stores.reviews import Reviews
    from troth.stores.workspace import Workspace

_F = TypeVar("_F", bound=Callable[..., Any])

COLOURS = {"supports": "green", "contradicts": "red", "inconclusive": "yellow"}


def place_option(command: _F) -> _F:
    """Add ``--store``."""
    return click.option(
        "--store", metavar="PATH", help="Another workspace. Default: searched for upward, else the user's own folder."
    )(command)


def run_options(command: _F) -> _F:
    """Add what every command on a finding takes: the run, the place, who acts, ``--json``."""
    command = click.option("--as", "--actor", "actor", metavar="ACTOR", help="Who acts. Default: as everywhere.")(
        command
    )
    command = click.option(
        "--review", "review", default="@last", metavar="ID", help="The run: an id, what begins it, or @last (default)."
    )(command)
    return json_option(place_option(command))


def reviews_at(store: str | None) -> tuple[Reviews, Workspace | None]:
    """Return the run folders of the workspace, or the user's own outside of one, and the workspace.

    Raises:
        Refused: a workspace was named and there is none; ``E_KEY_FOLDER``.
    """
    from troth.core.errors import Refused
    from troth.stores.keys import state_folder
    from troth.stores.reviews import FOLDER, Reviews
    from troth.stores.workspace import find_workspace, here, workspace_at

    if store is not None:
        space = workspace_at(Path(store))
    else:
        try:
            space = find_workspace(here())
        except Refused as fault:
            if fault.code != "E_NO_WORKSPACE":
                raise
            return Reviews(state_folder() / FOLDER), None
    return Reviews(space.folder / FOLDER), space


def actor_at(actor: str | None, space: Workspace | None) -> str:
    """Return who acts: the option, ``TROTH_ACTOR``, the workspace's settings, the login.

    Raises:
        Refused: ``E_USAGE`` for what is no actor.
    """
    from troth.cli.options import actor_of, actor_without
    from troth.core.errors import Refused
    from troth.ledger.values import is_actor

    found = actor_of(actor, space) if space is not None else actor_without(actor)
    if not is_actor(found):
        raise Refused("E_USAGE", f"{printable(found, 80)!r} is no actor", remedy="Write human:NAME or agent:NAME.")
    return found


def person_at(actor: str | None, space: Workspace | None) -> str:
    """Return who acts where only a person may, as :func:`actor_at` does; with an agent around, named expressly.

    Raises:
        Refused: ``E_USAGE`` for what is no actor; ``E_REVIEW_ROLE`` where an agent may be taken for its user.
    """
    import os

    from troth.airlock.deciding import require_named
    from troth.cli.options import ACTOR_VARIABLE

    who = actor_at(actor, space)
    if actor is None and not os.environ.get(ACTOR_VARIABLE):
        require_named(who, os.environ)
    return who


@contextmanager
def held(store: str | None, word: str) -> Iterator[Session]:
    """Open the run that was meant and hold it while the body changes it.

    Raises:
        Refused: there is no such run, or it cannot be read; Busy: another command holds it.
    """
    from troth.airlock.reviewing.session import Session

    folder = reviews_at(store)[0].find(word)
    with folder.exclusively():
        yield Session(folder)


def looked_at(store: str | None, word: str) -> Session:
    """Open the run that was meant, for reading."""
    from troth.airlock.reviewing.session import Session

    return Session(reviews_at(store)[0].find(word))


# --- telling ---


def gathered(words: Sequence[str], root: Path | None, stdin: bytes | None = None) -> list[tuple[str, bytes]]:
    """Return the members that were named, and tell on stderr what lies in a named folder and is none.

    Raises:
        Refused: as :func:`troth.airlock.reviewing.gathering.gather`.
    """
    from troth.airlock.reviewing.gathering import gather, left_out
    from troth.cli.answer import note

    members = gather(words, root, stdin)
    if missing := left_out(words):
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        note(f"troth: not a part of it, because links are not followed: "
             f"{', '.join(printable(name, 120) for name in missing[:5])}{more}")  # fmt: skip
    return members


def tell_finding(view: View) -> None:
    """Tell a finding with its anchored text, what is recorded of it, and what may be done next."""
    from troth.cli.review_documents import shown_text

    finding, case = view.finding, view.case
    severity = coloured(finding["severity"], {"critical": "red", "high": "red"}.get(finding["severity"], "yellow"))
    say(f"{case.finding_id}  {severity}, confidence {finding['confidence']}: {shown_text(finding['claim'])}")
    if "impact" in finding:
        say(f"  impact: {shown_text(finding['impact'])}")
    if view.rests_on_nothing:
        say(coloured("  no anchor of it resolves: it rests on your own verification alone", "red"))
    for number, entry in enumerate(view.evidence, 1):
        _tell_evidence(f"evidence {number}", entry)
    say(f"  recommended: {shown_text(finding['recommendation'])}")
    label = "" if case.label is None else f", {case.label}" + (f" ({_words(case.kind)})" if case.kind else "")
    say(f"  state: {_words(case.state)}{label}")
    for held_ in case.verification:
        tell_verification(held_)
    for name, text in (("host", case.host_position), ("reviewer", case.reviewer_position)):
        if text is not None:
            say(f"  {name}: {shown_text(text)}")
    for number, entry in enumerate(view.brought, 1):
        _tell_evidence(f"new evidence {number}" + (", to be verified" if entry.waiting else ""), entry)
    tell_steps(view)


def _tell_evidence(title: str, entry: Evidence) -> None:
    from troth.cli.review_documents import anchor_words, shown_text, tell_anchored

    state = entry.anchored.state
    flag = coloured(f"[{state}]", {"resolved": "green", "unresolved": "red"}.get(state, "yellow"))
    say(f"  {title}: {anchor_words(entry.entry['anchor'])} {flag}")
    say(f"    {shown_text(entry.entry['observation'])} ({_words(entry.entry['grounding'])})")
    tell_anchored(entry.anchored)


def tell_verification(entry: Any) -> None:
    """Tell one verification."""
    from troth.cli.review_documents import shown_text

    detail = f": {shown_text(entry['detail'])}" if "detail" in entry else ""
    say(f"  {_words(entry['method'])} {coloured(entry['result'], COLOURS[entry['result']])}{detail}")


def tell_steps(view: View) -> None:
    """Tell what may be done next with a finding."""
    for number, (command, when) in enumerate(view.steps):
        say(f"  {'next' if number == 0 else '    '}  {printable(command)}   ({when})")


def _words(name: str | None) -> str:
    return (name or "").replace("_", " ")


def tell_standing(standing: Standing) -> None:
    """Tell how far a run is; only a kept, converged result is told in green."""
    from troth.cli.review_documents import shown_text
    from troth.review.run import ENDS

    say(f"review      {printable(standing.id)}")
    if standing.problem is not None:
        say(f"problem     {coloured(printable(standing.problem), 'red')}")
    session = standing.session
    if session is not None:
        setup = session.setup
        say(f"artifact    {setup.kind}, sha256 {setup.revision['value']}, {len(setup.members)} "
            f"member{'' if len(setup.members) == 1 else 's'}")  # fmt: skip
        say(f"reviewer    {printable(setup.backend['name'])} at {printable(setup.backend['endpoint'])}")
        if setup.independence.get("tier"):
            say(f"tier        {_words(setup.independence['tier'])}")
        told = [notice for call in session.calls for notice in (call.answer or {}).get("notices", ())]
        for notice in (*setup.independence.get("notices", ()), *dict.fromkeys(told)):
            say(f"notice      {coloured(printable(notice), 'yellow')}")
        if session.response is not None:
            say(f"assessment  {_words(session.response['assessment'])}: {shown_text(session.response['summary'])}")
    if standing.states:
        say("findings    " + ", ".join(f"{count} {_words(state)}" for state, count in sorted(standing.states.items())))
    if standing.unresolved:
        say(coloured(f"unresolved  {standing.unresolved} pieces of evidence point nowhere", "yellow"))
    if standing.kept and standing.outcome is not None:
        end = ENDS[standing.outcome]
        say(f"outcome     {coloured(standing.outcome, end.colour)}: {end.says}")
        _tell_failure(session)
    elif standing.stage == "open":
        say(f"outcome     {coloured('not established', 'yellow')}: findings are still to be settled")
        say(f"next        troth review next --review {printable(standing.id)}")
    elif standing.stage == "waiting":
        say(f"outcome     {coloured('not established', 'yellow')}: the reviewer has not answered")
        say(f"next        troth review resume {printable(standing.id)}")
    if standing.open_questions:
        say(f"next        troth review decide {printable(standing.id)}")


def _tell_failure(session: Session | None) -> None:
    from troth.airlock.reviewing.finishing import failure_of
    from troth.airlock.reviewing.recovery import recovery
    from troth.cli.review_documents import shown_text

    if session is not None and session.run is None:
        failure = failure_of(session)
        say(f"failure     {failure['code']}: {shown_text(failure['message'])}")
        if failure.get("retryable"):
            say("            a new run may succeed; nothing of this one is reusable")
        for option in recovery(session):
            say(f"            {printable(option.option)}: {option.changes}")
