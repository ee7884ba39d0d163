"""``troth contract seal``: a contract file over a workspace, made into a record with digests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.contract_common import bar_wanted, progress_bar, workspace_above
from troth.cli.options import Seconds
from troth.core.errors import Place, Refused

WHOLE_CONTRACT: Final = """\b
A whole contract:
  task = "Checkout fails on an empty cart; it should cost nothing."
  [[protect]]
  path = "tests"
  [[acceptance]]
  id = "suite"
  argv = ["python", "-m", "pytest", "-q", "tests"]
  [adequacy]
  mutants_in = ["src"]
  max = 40
  [limits]
  seconds = 600

\b
Example: troth contract seal contract.toml --reference main"""


def _places(source: Path, workspace: Path | None, out: Path | None, contract_id: str) -> tuple[Path, Path]:
    """Return the workspace to seal and the folder to write to, from what was said and where we stand."""
    from troth.observer.contract_source import folder_name
    from troth.stores.workspace import here

    named = workspace.resolve() if workspace is not None else None
    found = workspace_above(named if named is not None else here())
    root = named or found or source.resolve().parent
    if not root.is_dir():
        raise Refused("E_USAGE", "the workspace is not a folder", place=Place(str(root)))
    name = folder_name(contract_id)
    if out is not None:
        return root, out
    if found is not None and found == root:
        return root, found / ".mentu" / "contracts" / name
    beside = source.resolve().parent
    # Inside the sealed tree the contract's own files would be part of what the agent works on.
    return root, beside / f"{name}.contract"


def _proposed(workspace: Path | None, *, yes: bool, as_json: bool) -> Path | None:
    """Return the file of a proposal that was agreed to, written if it was not there; ``None`` when a person said no.

    Raises:
        Refused: ``E_NO_COMMAND``; ``E_USAGE`` where nobody can be asked.
    """
    from troth.cli.contract_propose import agreed, learnt_of, proposal_of, show, write_proposal

    proposal = proposal_of(workspace, None, None, None)
    if proposal.file.exists():
        note(f"troth: sealing {printable(str(proposal.file))}")
        return proposal.file
    if not proposal.detected.of("command"):
        raise Refused(
            "E_NO_COMMAND", "; ".join(proposal.detected.told) or "no runner was recognised",
            remedy="Write the contract by hand; `troth contract seal --help` shows a whole one.",
            place=Place(str(proposal.workspace)),
        )  # fmt: skip
    if not yes and (as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise Refused(
            "E_USAGE", "name the contract file: nobody can be asked about a proposed one here",
            remedy="Look at `troth contract propose`; --yes takes it as it is.",
        )  # fmt: skip
    if not as_json:
        show(proposal)
    question = f"Run these on copies, in a sandbox, write {printable(str(proposal.file))} and seal it?"
    if not agreed(question, yes=yes, as_json=as_json):
        return None
    write_proposal(proposal, proposal.rendered(learnt_of(proposal, as_json)))
    return proposal.file


@click.command("seal", epilog=WHOLE_CONTRACT)
@click.argument("source", type=click.Path(path_type=Path), metavar="[FILE.toml]", required=False)
@click.option(
    "--workspace", type=click.Path(path_type=Path), help="The folder to seal; default: found upward from here."
)
@click.option(
    "--reference",
    metavar="DIR|REV",
    help="A finished tree, or a commit of the workspace's repository, on which the commands pass.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Where to write; default: .mentu/contracts/ID.")
@click.option("--mutants", type=click.IntRange(min=0), help="Most mutants to run, instead of the file's.")
@click.option("--budget", type=Seconds(min=0), default=300.0, show_default=True, help="Seconds for mutants.")
@click.option("--yes", is_flag=True, help="Do not ask; replace another contract that stands there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def seal_cmd(source: Path | None, workspace: Path | None, out: Path | None, as_json: bool, **options: Any) -> int:
    """Seal FILE.toml over a workspace: digests, sealed names, and how well the commands tell changes apart.

    The acceptance commands are run in a sandbox on copies; the workspace is not changed. Writes contract.json,
    statement.json and the side report seal.json. Without a file, what `troth contract propose` finds is shown, written
    and sealed, once you agree.
    """
    from troth.observer.contract_source import read_source
    from troth.observer.ready import observer_ready, refusal
    from troth.observer.seal import seal
    from troth.observer.sealed import refuse_other, write_sealed
    from troth.observer.tools import tools_of

    if source is None:
        source = _proposed(workspace, yes=options["yes"], as_json=as_json)
        if source is None:
            return 0
    parsed = read_source(source)
    root, folder = _places(source, workspace, out, parsed.contract_id)
    if not options["yes"]:
        refuse_other(parsed, folder)
    missing = observer_ready()
    if missing:
        raise refusal(missing)
    how = {name: options[name] for name in ("reference", "mutants", "budget")}
    with progress_bar(bar_wanted(as_json)) as progress:
        sealed = seal(parsed, root, progress=progress, **how)
    written = write_sealed(sealed, folder, replace_other=options["yes"])
    adequacy = sealed.seal["adequacy"]
    if as_json:
        emit_json(
            {
                "contract": str(written),
                "contract_id": parsed.contract_id,
                "contract_sha256": sealed.sha256,
                "adequacy": {"mutants": adequacy["mutants"], "killed": adequacy["killed"]},
                "reason": adequacy["reason"],
                "survived": adequacy["survived"],
                "tools": sealed.seal["tools"],
                "warnings": list(sealed.warnings),
            }
        )
        return 0
    say(f"sealed {printable(parsed.contract_id)}  {sealed.sha256}")
    say(f"  contract  {printable(str(written))}")
    for tool in tools_of(sealed.seal):
        say(f"  tools     {printable(tool.words)}")
    say(f"  mutants   {adequacy['killed']} of {adequacy['mutants']} killed")
    for line in adequacy["survived"][:20]:
        say(f"    survived  {printable(line, 160)}")
    if len(adequacy["survived"]) > 20:
        say(f"    and {len(adequacy['survived']) - 20} more: see seal.json")
    for line in sealed.warnings:
        note(f"troth: warning: {printable(line)}")
    return 0
