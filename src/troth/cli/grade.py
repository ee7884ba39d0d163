"""`troth grade`: a contract's acceptance commands on a tree, without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from troth.cli.answer import coloured, emit_json, printable, say
from troth.core.errors import Refused

WORDS: Final = {"supported": "passed", "contradicted": "failed", "not_established": "not established"}
COLOURS: Final = {"supported": "green", "contradicted": "red", "not_established": "yellow"}


@click.command(
    "grade", epilog="Example: troth grade --contract .mentu/contracts/empty-cart --tree ./candidate --start ."
)
@click.option(
    "--contract",
    required=True,
    type=click.Path(path_type=Path),
    help="A sealed contract: contract.json or its folder.",
)
@click.option(
    "--tree",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to grade. Default: the workspace found upward from here, else this folder.",
)
@click.option(
    "--start",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder with the protected paths as they were sealed. Default: the graded folder itself.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="Run each command so many times; runs that disagree are no result.",
)
@click.option(
    "--show-output",
    is_flag=True,
    help="Show what each command printed, run by run. Default: the end of what those that failed printed.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def grade_cmd(  # noqa: PLR0917 - click hands every option over by name
    contract: Path, tree: Path | None, start: Path | None, repeats: int, show_output: bool, as_json: bool
) -> int:
    """Run a contract's acceptance commands on a copy of a folder, in a sandbox, with the protected paths put back.

    \b
    Exit status: 0 all passed, and the contract shows that they can fail; 1 one failed; 3 one has no result (it ran no
    test, disagreed with itself, did not end), or nothing shows that they can fail; 2 refused.
    """
    from troth.airlock.grading import grade_tree
    from troth.observer.ready import require_observer

    require_observer()
    folder = tree if tree is not None else _here()
    graded = grade_tree(
        contract / "contract.json" if contract.is_dir() else contract, folder, start or folder, repeats=repeats
    )
    if as_json:
        emit_json(graded.as_json())
        return graded.exit_code
    for line in graded.lines:
        say(printable(line))
    for line in graded.printed if show_output else graded.ends:
        say(printable(line))
    say(f"{coloured(WORDS[graded.decision], COLOURS[graded.decision])}: {printable(graded.sentence)}")
    return graded.exit_code


def _here() -> Path:
    from troth.stores.workspace import find_workspace, here

    try:
        return find_workspace(here()).root
    except Refused:
        return here()
