"""``troth contract propose``: a contract file from what a project's files say, and what one run on a copy showed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.contract_common import bar_wanted, progress_bar, workspace_above
from troth.core.errors import Place, Refused
from troth.core.words import command_line

if TYPE_CHECKING:
    from troth.observer.detecting import Detected
    from troth.observer.proposal import Learnt


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was detected in a workspace, and where its contract file would stand."""

    workspace: Path
    contract_id: str
    task: str | None
    file: Path
    detected: Detected

    def rendered(self, learnt: Learnt | None = None) -> bytes:
        """Return the contract file."""
        from troth.observer.proposal import render

        return render(self.detected, contract_id=self.contract_id, task=self.task, learnt=learnt)


def proposal_of(workspace: Path | None, out: Path | None, contract_id: str | None, task: str | None) -> Proposal:
    """Look at a project; nothing of it is run.

    Raises:
        Refused: ``E_USAGE``, ``E_TREE_UNREADABLE``.
    """
    from troth.observer.contract_source import folder_name
    from troth.observer.detecting import detect
    from troth.observer.project import look
    from troth.observer.proposal import proposed_id, with_tools
    from troth.stores.workspace import here

    found = workspace_above(workspace.resolve() if workspace is not None else here())
    root = workspace.resolve() if workspace is not None else found or here()
    if not root.is_dir():
        raise Refused("E_USAGE", "the workspace is not a folder", place=Place(str(root)))
    name = contract_id or proposed_id(root)
    inside = found is not None and found == root
    default = root / ".mentu" / "contracts" / f"{folder_name(name)}.toml" if inside else root / "contract.toml"
    return Proposal(root, name, task, out or default, with_tools(detect(look(root)), root))


def show(proposal: Proposal) -> None:
    """Print what is proposed, each with its reason."""
    detected = proposal.detected
    for item in detected.of("command"):
        say(f"  {'command':<8}  {command_line(item.argv)}  ({printable(item.why, 200)})")
    for item in detected.of("protect"):
        say(f"  {'protect':<8}  {printable(item.what, 200)}  ({printable(item.why, 200)})")
    for item in detected.of("absent"):
        say(f"  {'absent':<8}  {printable(item.what, 200)}  ({printable(item.why, 200)})")
    for item in detected.of("tools"):
        say(f"  {'tools':<8}  {printable(item.what, 200)}  ({printable(item.why, 200)})")
    for line in detected.told:
        note(f"troth: {printable(line)}")


def agreed(question: str, *, yes: bool, as_json: bool) -> bool:
    """Ask a person on a terminal; without one only ``--yes`` agrees."""
    if yes:
        return True
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return click.confirm(question, default=False)


def learnt_of(proposal: Proposal, as_json: bool) -> Learnt:
    """Run the proposed commands once on a copy, in a sandbox.

    Raises:
        Refused: whatever keeps the sandbox from running, or a protected path from being sealed.
    """
    from troth.observer.proposal import learn, parsed
    from troth.observer.ready import observer_ready, refusal

    missing = observer_ready()
    if missing:
        raise refusal(missing)
    source = parsed(proposal.rendered(), str(proposal.file))
    with progress_bar(bar_wanted(as_json)) as progress:
        return learn(source, proposal.workspace, progress=progress)


def write_proposal(proposal: Proposal, data: bytes) -> None:
    """Write the contract file where nothing stands yet; one with the very same bytes is left.

    Raises:
        Refused: ``E_CONTRACT_EXISTS``: somebody's file is never replaced; ``E_CONTRACT_WRITE``.
    """
    from troth.stores.durable import create_whole

    path = proposal.file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = create_whole(path, data, 0o644) or path.read_bytes() == data
    except OSError as fault:
        raise Refused(
            "E_CONTRACT_WRITE", f"the contract file cannot be written: {fault.strerror}", place=Place(str(path))
        ) from None
    if not made:
        raise Refused(
            "E_CONTRACT_EXISTS", "another contract file stands there", place=Place(str(path)),
            remedy="Name another with --out, or take that one away.",
        )  # fmt: skip


@click.command("propose", epilog="Example: troth contract propose --yes --task 'An empty cart costs nothing.'")
@click.option(
    "--workspace", type=click.Path(path_type=Path), help="The project's folder; default: found upward from here."
)
@click.option("--out", type=click.Path(path_type=Path), help="The contract file; default: .mentu/contracts/ID.toml.")
@click.option("--id", "contract_id", metavar="ID", help="The contract's name; default: the folder's.")
@click.option("--task", metavar="TEXT", help="What is to be done, for people.")
@click.option("--no-run", is_flag=True, help="Run nothing: exclude nothing that the commands write.")
@click.option("--yes", is_flag=True, help="Run and write without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def propose_cmd(workspace: Path | None, out: Path | None, as_json: bool, **options: Any) -> int:
    """Propose a contract from a project's own files: what to protect, and the commands whose passing means done.

    The files are read as text and nothing is run before you agree (on a terminal, or with --yes). Then the commands
    run once in a sandbox on a copy, so that what they write is excluded, and the contract file is written. Without a
    terminal and without --yes the file is printed only.
    """
    from troth.observer.detecting import as_json as detected_json
    from troth.observer.proposal import parsed

    proposal = proposal_of(workspace, out, options["contract_id"], options["task"])
    commands = bool(proposal.detected.of("command"))
    runs = commands and not options["no_run"]
    terminal = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    if terminal or options["yes"]:
        if not as_json:
            show(proposal)
        doing = "Run the commands once on a copy, in a sandbox, and write" if runs else "Write"
        if agreed(f"{doing} {printable(str(proposal.file))}?", yes=options["yes"], as_json=as_json):
            return _written(proposal, runs, as_json)
        return 0
    data = proposal.rendered()
    if as_json:
        answer: dict[str, Any] = {"file": None, "contract_id": proposal.contract_id, "toml": data.decode()}
        emit_json({**answer, "learnt": [], **detected_json(proposal.detected)})
        return 0
    if commands:
        parsed(data, str(proposal.file))
    say(data.decode(), end="")
    note("troth: nothing was run or written; --yes does both")
    return 0


def _written(proposal: Proposal, runs: bool, as_json: bool) -> int:
    from troth.observer.detecting import as_json as detected_json
    from troth.observer.proposal import parsed

    learnt = learnt_of(proposal, as_json) if runs else None
    data = proposal.rendered(learnt)
    source = parsed(data, str(proposal.file)) if proposal.detected.of("command") else None
    write_proposal(proposal, data)
    lines = learnt.told(source, proposal.workspace) if learnt is not None and source is not None else []
    if as_json:
        answer = {"file": str(proposal.file), "contract_id": proposal.contract_id, "toml": data.decode()}
        emit_json({**answer, "learnt": lines, **detected_json(proposal.detected)})
        return 0
    for line in lines:
        say(f"  {'learnt':<8}  {printable(line)}")
    say(f"wrote {printable(str(proposal.file))}")
    say(f"  next      troth contract seal {printable(str(proposal.file))}")
    return 0
