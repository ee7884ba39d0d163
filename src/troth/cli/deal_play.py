"""``troth deal play``: a deal in the terminal, message by message, by people and policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from troth.cli.answer import coloured, note, printable, say
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.deals.run import Run

_BUDGET = 100_000
"""Steps that people may let pass."""


@click.command("play")
@click.argument("transcript", type=click.Path(path_type=Path))
@click.option("--c", "c", default="honest", show_default=True, metavar="WHO", help="Who plays the counterparty.")
@click.option("--a", "a", default="person", show_default=True, metavar="WHO", help="Who plays the agent.")
@click.option("--k", "k", default="honest", show_default=True, metavar="WHO", help="Who plays the checker.")
@click.option("--amount", type=click.IntRange(0, 10**15 - 1), default=10, show_default=True, help="Points offered.")
@click.option(
    "--deadline-steps",
    "deadline",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Steps from the hold to disclose in.",
)
@click.option(
    "--expires-steps",
    "expires",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Steps for which the offer stands.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Where a policy's chance begins.")
def play_cmd(  # noqa: PLR0917 - click calls it by name
    transcript: Path, c: str, a: str, k: str, amount: int, deadline: int, expires: int, seed: int
) -> int:
    """Play a deal in this terminal: two people, or a person and a policy, message by message.

    WHO is 'person' or a policy of that role in its own words, such as honest, cooperative or withholding. In each step
    C, A and K have their turns; a person is shown the legal moves and where each leads. TRANSCRIPT is a new file; each
    message is in it before the next is asked for, and there is no undo.

    Exit status: 0 settled, 1 breached or a protocol error, 3 any other end, or left open; 2 refused.

    Example: troth deal play mine.jsonl --c person --a cooperative
    """
    from troth.deals.answer import exit_status
    from troth.deals.checker import Helpers
    from troth.deals.codes import LABELS, NON_CLAIMS_REF
    from troth.lab.play import HELP, NO_UNDO, PERSON, KeptScribe, Left, Person
    from troth.lab.playing import Game, Setting
    from troth.lab.regexes import Searcher
    from troth.lab.view import Terms
    from troth.stores.transcripts import created

    seats = {"C": c, "A": a, "K": k}
    if PERSON not in seats.values():
        raise Refused("E_USAGE", "nobody sits at the table", remedy="Let somebody play: --a person.")
    helpers = Helpers(search=Searcher())
    people = {role: Person(role, _ask, say, helpers) for role, who in seats.items() if who == PERSON}
    plain = {role: "honest" if role != "A" else "cooperative" for role in people}
    words = {role: plain.get(role, who) for role, who in seats.items()}
    terms = Terms(amount=amount, deadline_steps=deadline, expires_steps=expires)
    setting = Setting(c=words["C"], a=words["A"], k=words["K"], terms=terms, suite="play", budget=_BUDGET)
    game = Game(setting, helpers, people)
    with created(transcript) as file:
        say(f"{', '.join(LABELS)} ({NON_CLAIMS_REF})")
        say(f"{HELP} {NO_UNDO}")
        scribe = KeptScribe(file.append)
        left = False
        try:
            game.play(seed, 0, scribe)
        except Left:
            left = True
        scribe.end(scribe.run.now)  # also when somebody left: so much time has passed
        _tell(scribe.run, left=left)
    note(f"troth: the transcript is {printable(str(transcript))}; troth deal check tells the same of it")
    return exit_status(scribe.run)


def _ask(prompt: str) -> str:
    """Ask on the terminal, or take the next line where there is none."""
    import sys

    say(prompt, end="")
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        say()
        raise EOFError
    return line.rstrip("\r\n")


def _tell(run: Run, *, left: bool) -> None:
    say()
    if left:
        say("You left; the deal stays where it stands.")
    for deal in run.deals.values():
        end = deal.state.removeprefix("Closed:").partition("(")[0]
        colour = {"settled": "green", "breached": "red", "protocol_error": "red"}.get(end, "yellow")
        say(f"{printable(deal.offer_id, 200)}: {coloured(printable(deal.state, 300), colour)}")
        say(f"  {printable(' -> '.join(deal.history))}")
    say("points  " + "  ".join(f"{party} {points:+d}" for party, points in run.escrow.balances().items()))
