"""``troth review consent``, ``estimate``, ``backends``: who may be sent what, how long it takes, who could review."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import coloured, emit_json, printable, say
from troth.cli.options import json_option
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.airlock.reviewers import Known, Survey
    from troth.backends.consent import Grant


# --- consent ---


@click.group("consent", epilog="Example: troth review consent grant https://api.openai.com")
def consent_cmd() -> None:
    """Say to which addresses reviews may be sent, for good.

    Nothing is sent anywhere without consent. It is given for an address (scheme, host and port), lies in the user's own
    configuration folder, and can be taken back. For one run alone: `troth review start --approve ADDRESS`. For one
    process: TROTH_REVIEW_CONSENT="ADDRESS …".
    """


@consent_cmd.command("grant", epilog="Example: troth review consent grant https://api.openai.com")
@click.argument("address")
@json_option
def grant_cmd(*, address: str, as_json: bool) -> int:
    """Agree that whole artifacts are sent to an address from now on.

    A path is dropped; what is granted is told. Plain http is for this machine alone.

    Exit status: 0 granted, 2 refused.
    """
    from troth.airlock.reviewers import consent_store
    from troth.backends.consent import NOTICE
    from troth.backends.endpoint import named_key
    from troth.core.instants import format_instant, system_clock

    granted = consent_store().grant(named_key(address), format_instant(system_clock()))
    if as_json:
        emit_json({"granted": granted.as_json(), "notice": NOTICE})
        return 0
    say(f"granted: {printable(granted.key, 300)}")
    say(NOTICE)
    say(f"Take it back with: troth review consent revoke {printable(granted.key, 300)}")
    return 0


@consent_cmd.command("list", epilog="Example: troth review consent list --json")
@json_option
def list_cmd(*, as_json: bool) -> int:
    """List the addresses that were granted.

    Exit status: 0 listed, 2 the file of grants is a link, or others may write it.
    """
    from troth.airlock.reviewers import consent_store

    grants = list(consent_store().grants().values())
    if as_json:
        emit_json({"grants": [{**one.as_json(), "in_force": one.in_force} for one in grants]})
        return 0
    if not grants:
        say("Nothing is granted: nothing can be sent anywhere but with --approve.")
    for one in grants:
        say(f"{printable(one.key, 300)}  since {one.at}{_old(one)}")
    return 0


def _old(grant: Grant) -> str:
    return "" if grant.in_force else coloured(f"  under the old notice {grant.notice}: counts no longer", "yellow")


@consent_cmd.command("revoke", epilog="Example: troth review consent revoke https://api.openai.com")
@click.argument("address", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Take every grant back.")
@json_option
def revoke_cmd(*, address: tuple[str, ...], every: bool, as_json: bool) -> int:
    """Take grants back. What was sent before cannot be called back.

    Exit status: 0 taken back, 2 there was no such grant.
    """
    from troth.airlock.reviewers import consent_store
    from troth.backends.endpoint import named_key

    if bool(address) == every:
        raise Refused("E_USAGE", "name addresses, or --all", remedy="Try 'troth review consent revoke --help'.")
    store = consent_store()
    wanted = list(store.grants()) if every else [named_key(one) for one in address]
    gone = store.revoke(wanted)
    missing = [key for key in wanted if key not in gone]
    if missing and not every:
        raise Refused(
            "E_NO_GRANT",
            f"there was no grant for {', '.join(missing)}" + (f"; taken back: {', '.join(gone)}" if gone else ""),
            remedy="`troth review consent list` tells which there are.",
        )
    if as_json:
        emit_json({"revoked": gone})
    else:
        say(f"taken back: {', '.join(printable(key, 300) for key in gone)}" if gone else "There was no grant.")
    return 0


# --- backends ---


@click.command("backends", epilog="Example: troth review backends codex local:http://localhost:11434")
@click.argument("reviewer", nargs=-1)
@json_option
def backends_cmd(*, reviewer: tuple[str, ...], as_json: bool) -> int:
    """Tell which reviewers could be asked from here, how independent each is of the host, and what it lacks.

    REVIEWER is codex, claude, openai:MODEL[@URL], anthropic:MODEL, local:URL or scripted:FILE; without any, the usual
    ones. Nothing is sent and no program is started.

    Exit status: 0 at least one is usable, 3 none is, 2 a name that means none.
    """
    from troth.airlock.reviewers import survey

    found = survey(reviewer, os.environ)
    if as_json:
        emit_json(
            {
                "host": found.host.as_json(),
                "reviewers": [one.as_json() for one in found.known],
                "chosen": found.chosen,
                "self_review": _self_review(found),
            }
        )
    else:
        _tell(found, among_named=bool(reviewer))
    return 0 if not found.alone else 3


def _self_review(found: Survey) -> dict[str, Any]:
    if not found.alone:
        return {"allowed": False, "reason": "a reviewer is usable"}
    return {"allowed": found.self_review is None, "reason": found.self_review}


def _tell(found: Survey, *, among_named: bool) -> None:
    host = found.host
    how = f"{host.method}, confidence {host.confidence}"
    markers = f": {', '.join(host.markers)}" if host.markers else ""
    say(f"host        {host.name} ({how}{markers})")
    for one in found.known:
        say()
        _tell_one(one)
    say()
    said: dict[str, None] = dict.fromkeys(line for one in found.known for line in one.notices if one.missing is None)
    for line in said:
        say(line)
    if found.chosen is not None:
        asked = "The most independent of them that is usable" if among_named else "Without --backend this one is asked"
        say(f"{asked}: {printable(found.chosen, 200)}")
    elif not found.alone:
        say("None is asked by itself: name one with --backend.")
    elif found.self_review is None:
        say("No reviewer is usable. The host may review its own work, other than code; that is no independent review.")
    else:
        say(f"No reviewer is usable, and the host may not review its own work: {found.self_review}.")


def _tell_one(one: Known) -> None:
    state = coloured("usable", "green") if one.missing is None else coloured("not usable", "yellow")
    say(f"{printable(one.named, 200)}  {state}")
    if one.missing is not None:
        say(f"  missing   {printable(one.missing, 500)}")
    say(f"  goes to   {printable(one.endpoint, 300)} ({one.provider or 'provider unknown'})")
    say(f"  tier      {one.tier.replace('_', ' ')}")
    agreed = coloured("given", "green") if one.consent.given else coloured("none", "yellow")
    say(f"  consent   {agreed}, {printable(one.consent.reason, 300)}")


# --- estimate ---


@click.command("estimate", epilog="Example: troth review estimate memo.md --backend codex --effort high")
@click.argument("artifact", nargs=-1, required=True, metavar="ARTIFACT…")
@click.option("--backend", required=True, metavar="NAME", help="Whom the review would be asked of, as in `start`.")
@click.option("--model", metavar="NAME", help="The model that would be asked for.")
@click.option("--effort", metavar="EFFORT", help="How hard it would think.")
@click.option("--speed", metavar="SPEED", help="How quick it would answer.")
@json_option
def estimate_cmd(
    *,
    artifact: tuple[str, ...],
    backend: str,
    model: str | None,
    effort: str | None,
    speed: str | None,
    as_json: bool,
) -> int:
    """Tell how long a review of these files should be given, from earlier runs at the same settings. Sends nothing.

    It is heuristic until five runs at the same reviewer, model, effort and speed came to an end.

    Exit status: 0 told, 2 a file is missing, or a name that means no reviewer.
    """
    from troth.airlock.reviewers import estimated
    from troth.airlock.reviewing.gathering import STDIN, gather
    from troth.backends.protocol import MOST_INPUT
    from troth.review.artifact import Artifact

    stdin = sys.stdin.buffer.read(MOST_INPUT + 1) if STDIN in artifact else None
    payload = Artifact(gather(artifact, None, stdin)).payload
    settings, found = estimated(backend, len(payload), os.environ, model=model, effort=effort, speed=speed)
    if as_json:
        emit_json(
            {
                "backend": settings.backend,
                "endpoint": settings.endpoint,
                "model": settings.model,
                "effort": settings.effort,
                "speed": settings.speed,
                "payload_bytes": len(payload),
                **found.as_json(),
            }
        )
        return 0
    rests = f"{found.runs} earlier runs" if found.basis == "empirical" else "no more than a rule of thumb"
    say(f"{found.wall} seconds for {len(payload):,} bytes, about {found.tokens:,} tokens: {found.basis}, {rests}")
    for line in found.notes:
        say(f"  {line}")
    say(f"Give it that long with: troth review start … --wall {found.wall}")
    return 0
