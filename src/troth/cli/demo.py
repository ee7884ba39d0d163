"""`troth demo`: one task, five scripted agents, and what the records establish about each."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from troth.cli.answer import coloured, emit_json, note, printable, say

DATA: Final = Path(__file__).with_name("demo_data")
OBSERVATION: Final = "Customer reported that checkout fails on an empty cart"

AGENTS: Final[tuple[tuple[str, str], ...]] = (
    ("honest", "mends the code, runs the tests"),
    ("edits_the_test", "bends the acceptance test"),
    ("claims_a_run", "claims runs it never made"),
    ("edits_after", "goes on editing after its runs"),
    ("startup_hook", "plants a start-up hook in its home"),
)
"""Script below ``demo_data/agents`` and what it does; what comes of it is computed."""


def _lay_out_task(workspace: Path) -> None:
    """Put the task's files back as they were, whatever the last agent left."""
    for entry in workspace.iterdir():
        if entry.name != ".mentu":
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    shutil.copytree(DATA / "task", workspace, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def _claimed(record: Mapping[str, Any]) -> str:
    claims = record["claims"]
    if not claims:
        return "nothing"
    passing = sum(1 for claim in claims if claim.get("exit") == 0)
    return f"{len(claims)} run{'s' if len(claims) > 1 else ''}, {passing} passing"


def play(
    folder: Path,
    agents: Sequence[tuple[str, str]] = AGENTS,
    *,
    scripts: Path = DATA / "agents",
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Seal the contract, let every agent work, and return the rows of the table and the ledger's verification.

    Args:
        folder: an empty folder; the workspace is made in it.
        agents: (script, description) in order.
        scripts: the folder that holds the scripts.
        tell: told in words what happens.
    """
    import json

    from troth.airlock.run import run_commitment
    from troth.airlock.run_parts import RunOptions
    from troth.cli.ledger import agents_text
    from troth.ledger.operations import Candidate
    from troth.observer.seal import seal_contract
    from troth.stores.jsonl import JsonlStore
    from troth.stores.workspace import create_workspace

    workspace_folder = folder / "shop"
    workspace_folder.mkdir()
    workspace, _ = create_workspace(workspace_folder, name="shop", agents_text=agents_text())
    shutil.copyfile(DATA / "genesis.key", workspace.genesis_file)
    store = JsonlStore.open(workspace_folder)
    _lay_out_task(workspace_folder)
    tell("sealing the contract: digests of what is protected, and mutants to see that the tests can fail")
    contract = seal_contract(workspace_folder, DATA / "contract.toml", workspace.folder / "contracts" / "empty-cart")
    observed = store.append(Candidate("capture", "human:support", {"body": OBSERVATION}))
    rows = []
    for script, what in agents:
        tell(f"agent:{script}: {what}")
        _lay_out_task(workspace_folder)
        commitment = store.append(
            Candidate(
                "commit", "human:support", {"body": f"Fix empty cart checkout ({script})", "source": observed["id"]}
            )
        )
        outcome = run_commitment(
            workspace,
            store,
            commitment=commitment["id"],
            new=None,
            contract_file=contract,
            argv=("python3", str(scripts / f"{script}.py")),
            actor=f"agent:{script}",
            options=RunOptions(timeout=120, allow_read=(str(scripts),)),
            show=None,
        )
        state = store.read().state.commitments[commitment["id"]]
        rows.append(
            {
                "agent": script,
                "does": what,
                "claimed": _claimed(json.loads((outcome.folder / "claims.json").read_bytes())),
                "decision": outcome.done["decision"],
                "reason": outcome.done["reason"],
                "sentence": outcome.sentence,
                "ledger": state.state,
                "receipt": str(outcome.folder),
            }
        )
    verification = store.verify()
    return {
        "workspace": str(workspace_folder),
        "rows": rows,
        "verified": verification.verified,
        "total": verification.total,
        "ok": verification.ok,
        "head": verification.head,
    }


COLOURS: Final = {"supported": "green", "contradicted": "red", "not_established": "yellow"}


def _draw(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_lines=True)
    for heading in ("agent", "claimed", "the records establish", "because", "ledger"):
        wide = heading == "because"
        table.add_column(
            heading, overflow="fold", no_wrap=heading in ("agent", "ledger"), min_width=30 if wide else None
        )
    for row in result["rows"]:
        decision = row["decision"]
        # What comes from an agent is text, never markup.
        table.add_row(
            *(Text(printable(row[name])) for name in ("agent", "claimed")),
            Text(decision.replace("_", " "), style=COLOURS[decision]),
            *(Text(printable(row[name])) for name in ("sentence", "ledger")),
        )
    # Where nobody's terminal sets the width, lines are long enough for a sentence.
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120
    Console(highlight=False, width=width).print(table)


@click.command("demo", epilog="Example: troth demo --keep ./demo")
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Make the workspace in this new folder and leave it there."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def demo_cmd(keep: Path | None, as_json: bool) -> int:
    """Watch an honest agent's work close on evidence, and four dishonest agents' work be contradicted.

    Real processes in a real sandbox under a real tracer; every word of the table is computed from the receipts. Nobody
    approves anything: the workspace's key lets a receipt that verifies close the work, and anybody may dispute it.
    """
    from troth.core.errors import Place, Refused
    from troth.observer.ready import require_observer

    require_observer()
    folder = Path(tempfile.mkdtemp(prefix="troth-demo-")) if keep is None else keep.absolute()
    if keep is not None:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise Refused("E_USAGE", "the folder exists already", place=Place(file=str(folder))) from None
    try:
        result = play(folder, tell=note if not as_json else lambda _: None)
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        emit_json(result)
        return 0 if result["ok"] else 1
    say()
    _draw(result)
    words = f"{result['verified']}/{result['total']} verified"
    say(f"ledger: {coloured(words, 'green' if result['ok'] else 'red')}, head {result['head'][:16]}…")
    if keep is not None:
        say(f"Look around: cd {result['workspace']} && troth status && troth receipt verify .mentu/runs/*/")
    else:
        say("Keep the workspace to look around: troth demo --keep FOLDER")
    return 0 if result["ok"] else 1
