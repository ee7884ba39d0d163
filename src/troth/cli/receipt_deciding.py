"""``troth receipt decide``: what a table says about a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.options import json_option
from troth.cli.receipt_common import EXITS
from troth.cli.receipt_signers import SignatureWords, believed, signature_options
from troth.cli.receipt_verify import judged_by, policy_options
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.receipts.deciding import StopDecision

COLOURS: Final = {"continue": "green", "replan": "yellow", "escalate": "yellow", "stop": "red"}


@click.command(
    "decide",
    epilog="Exit codes: 0 continue, 4 escalate; replan and stop: 1 contradicted, 3 not established; 1 no verdict, 2 "
    "refused. Example: troth receipt decide runs/last --table stop.toml",
)
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option(
    "--table", type=click.Path(path_type=Path), metavar="FILE", help="Your table, TOML. Default: the shipped one."
)
@click.option(
    "--replans",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="How often this work was sent back already; the table limits it.",
)
@click.option("--write", is_flag=True, help="Write the decision and the table's digest into the folder's receipt.")
@click.option("--example", is_flag=True, help="Print the shipped table, to begin with, and nothing else.")
@policy_options
@signature_options
@json_option
def decide_cmd(  # noqa: PLR0917 - click calls it by name
    folder: Path | None,
    table: Path | None,
    replans: int,
    write: bool,
    example: bool,
    policy_folder: str | None,
    pin_file: str | None,
    signatures: SignatureWords,
    as_json: bool,
) -> int:
    """Turn a verdict into continue, replan, escalate or stop, by a table of yours.

    The receipt is verified first, as `troth receipt verify` does; an invalid one gives no verdict and so no decision.
    """
    from troth.airlock.stopping import decide_examined, load_table, write_decision
    from troth.receipts.deciding import EXAMPLE
    from troth.receipts.verify import examine
    from troth.stores.members import FolderMember

    if example:
        if folder is not None:
            raise Refused("E_USAGE", "--example takes no folder", remedy="Try 'troth receipt decide --help'.")
        say(EXAMPLE.rstrip("\n"))
        return 0
    if folder is None:
        raise Refused("E_USAGE", "name the folder of a run", remedy="Try 'troth receipt decide --help'.")
    rules = load_table(table)
    own, _ = believed(FolderMember(folder), signatures)
    member, _ = judged_by(own, policy_folder, pin_file)
    found = examine(member)
    decision = decide_examined(found, rules, replans)
    assert found.done is not None
    if write:
        note(f"troth: written into {printable(str(write_decision(folder, decision)))}")
    if as_json:
        emit_json({"member": str(folder), "done": found.done.as_json(), "stop_decision": decision.as_json()})
    else:
        _tell(decision)
    return _exit(decision, found.done.decision)


def _tell(decision: StopDecision) -> None:
    from troth.receipts.reasons import sentence

    limited = " (the limit of replans is reached)" if decision.limited else ""
    say(f"{coloured(decision.action, COLOURS[decision.action])}{limited}: {sentence(decision.reason)}")
    say(f"  reason {decision.reason}, rule {decision.rule} of the table {decision.table_sha256}")


def _exit(decision: StopDecision, verdict: str) -> int:
    """Return the exit status of a decision: going on is 0, a person's turn is 4, else what the verdict comes to."""
    if decision.action in ("continue", "escalate"):
        return 0 if decision.action == "continue" else 4
    return {"supported": EXITS["holds"], "contradicted": EXITS["does_not_hold"]}.get(verdict, EXITS["not_established"])
