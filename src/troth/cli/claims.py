"""``troth claims``: what a transcript says was run, and how each was matched to what the observer saw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import coloured, emit_json, printable, say

if TYPE_CHECKING:
    from troth.airlock.claims import ClaimsAnswer

_COLOURS: Final = {"matched": "green", "unmatched": "red", "mismatch": "red", "stale": "yellow", "unseen": "yellow"}
_WORDS: Final = {
    "matched": "observed",
    "unmatched": "not observed",
    "mismatch": "another exit",
    "stale": "stale",
    "unseen": "exit not seen",
}
_MOST: Final = 200


@click.command("claims", epilog="Example: troth claims session.jsonl --run .mentu/runs/run_0a1b2c3d")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--format", "form", metavar="NAME", help="The transcript's format; by default told from its marks.")
@click.option("--run", "folder", type=click.Path(path_type=Path), help="A run's folder: match with its observation.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def claims_cmd(file: Path, form: str | None, folder: Path | None, as_json: bool) -> int:
    """Show what a transcript claims: the runs that it reports as done, each with the exit that it tells.

    With the folder of a run, each is matched to the program that the observer saw, by which rule is told, and what
    the receipt's check makes of it. Formats: claude-code, claude-stream, codex-exec, codex-rollout, aider, plain,
    claims.
    """
    from troth.airlock.claims import claims_of

    answer = claims_of(file, form, folder)
    if as_json:
        emit_json(answer.as_json())
    else:
        _tell(answer)
    return 0


def _tell(answer: ClaimsAnswer) -> None:
    found = answer.transcript
    version = f" {printable(found.version, 40)}" if found.version else ""
    say(f"{found.format}{': ' + found.tool + version if found.tool else ''}, {len(found.said)} runs reported as done")
    if not found.version_known:
        which = f"version {printable(found.version, 40)}" if found.version else "no version"
        say(f"  it tells {which}; its reader was tried with {', '.join(found.tried)}")
    for why, count in found.none:
        say(f"  no claim: {count} ({why})")
    for number, why in found.unread:
        say(f"  not read: {f'line {number}: ' if number else ''}{printable(why, 200)}")
    outcomes = {entry["id"]: outcome for entry, outcome in answer.outcomes or ()}
    for run in answer.report["runs"][:_MOST]:
        _tell_run(run, outcomes if answer.outcomes is not None else None)
    left = len(answer.report["runs"]) - _MOST
    if left > 0:
        say(f"and {left} more; --json has them all")
    for line in answer.differing:
        say(f"{coloured('totals differ', 'red')}: {printable(line, 600)}")


def _tell_run(run: dict[str, Any], outcomes: dict[str, str] | None) -> None:
    from troth.core.words import command_line

    if outcomes is None:
        text = printable(run["text"]) if "text" in run else command_line(run["argv"])
        say(f"line {run['line']}: {text}{_exit(run)}")
        return
    say(f"line {run['line']}: {printable(run['claimed'], 200)}{_exit(run)}")
    if "left_out" in run:
        say(f"  in no record: {run['because']}")
        return
    outcome = outcomes[run["claim"]]
    say(f"  {run['claim']} {coloured(_WORDS[outcome], _COLOURS[outcome])}: {run['because']}")
    if run["matched_by"] not in ("exact", None):
        say(f"  recorded as {command_line(run['argv'], 200)}")


def _exit(run: dict[str, Any]) -> str:
    return f" (exit {run['exit']})" if "exit" in run else ""
