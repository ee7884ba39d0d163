"""`troth run` and `troth runs`: an agent under observation, and what became of earlier runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.options import Seconds
from troth.core.errors import Refused
from troth.stores.postgres.address import is_address

if TYPE_CHECKING:
    from troth.airlock.run_parts import Outcome
    from troth.airlock.runs import RunState
    from troth.stores.workspace import Workspace

PROFILES = ("claude", "codex", "aider")

COLOURS = {"supported": "green", "contradicted": "red", "not_established": "yellow"}


def _contract_file(named: Path) -> Path:
    return named / "contract.json" if named.is_dir() else named


@click.command(
    "run",
    context_settings={"ignore_unknown_options": False},
    epilog="Example: troth run --new 'Checkout fails on an empty cart' --contract .mentu/contracts/empty-cart "
    "--as agent:worker -- python3 agent.py",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMITMENT] -- AGENT…")
@click.option("--new", "new", metavar="TEXT", help="Record the observation TEXT and commit to it first.")
@click.option(
    "--contract", "contract", type=click.Path(path_type=Path), help="A sealed contract: contract.json or its folder."
)
@click.option(
    "--contract-key",
    "contract_keys",
    multiple=True,
    metavar="KEY",
    help="Take no contract that this key did not sign (see `troth contract sign`). Repeatable.",
)
@click.option(
    "--contract-threshold",
    type=click.IntRange(1),
    metavar="N",
    help="How many of them must have signed. Default: one.",
)
@click.option("--as", "--actor", "actor", metavar="ACTOR", help="Who claims and submits (agent:NAME).")
@click.option("--store", "--ledger", "store", metavar="PATH", help="Another workspace folder.")
@click.option("--timeout", type=Seconds(min=1), default=3600.0, show_default=True, help="Seconds.")
@click.option("--network", is_flag=True, help="Let the agent reach the network.")
@click.option(
    "--allow-read",
    multiple=True,
    type=click.Path(exists=True, path_type=Path, resolve_path=True),
    help="A further path the agent may read.",
)
@click.option(
    "--allow-write",
    multiple=True,
    type=click.Path(exists=True, path_type=Path, resolve_path=True),
    help="A further path the agent may write (an effect outside).",
)
@click.option(
    "--env", "env", multiple=True, metavar="NAME", help="A variable handed on; its value stands in no record."
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    help="Give this agent the network, login and files it needs.",
)
@click.option(
    "--claims", "claims", type=click.Path(path_type=Path, dir_okay=False), help="A claims file kept by the harness."
)
@click.option(
    "--transcript", "transcripts", multiple=True, metavar="FORMAT:PATH", help="What the agent says it ran; or `auto`."
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="Grade so many times; runs that disagree establish nothing.",
)
@click.option("--with-launch", is_flag=True, help="Name the two launch records in the receipt.")
@click.option("--submit-anyway", is_flag=True, help="Submit also when the records establish nothing.")
@click.option("--keep-trace", is_flag=True, help="Keep the raw trace and the agent's output (they can hold secrets).")
@click.option("--redact", is_flag=True, help="Cut credentials out of argument lists; costs coverage.")
@click.option("--verifier", "verifier", metavar="URI", help="The verifier's id in the receipt.")
@click.option(
    "--table",
    type=click.Path(exists=True, dir_okay=False, path_type=Path, resolve_path=True),
    help="Decide by this table (see `troth receipt decide`) and say so in the receipt.",
)
@click.option("--resume", "resume", metavar="RUN", help="Take up a run that a crash left (an id or @last).")
@click.option("--quiet", is_flag=True, help="Do not show the agent's output.")
@click.option(
    "--show-output",
    is_flag=True,
    help="Show what each acceptance command printed, run by run. Default: the end of what those that failed printed.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object; the agent's output goes to stderr.")
def run_cmd(  # noqa: PLR0917 - click calls it by name
    words: tuple[str, ...],
    new: str | None,
    contract: Path | None,
    actor: str | None,
    store: str | None,
    resume: str | None,
    quiet: bool,
    show_output: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Run AGENT under observation, grade its final tree and write a done receipt.

    The commitment is claimed first. A supported receipt is submitted as evidence; a contradicted one is recorded and
    annotated; one that establishes nothing is recorded with what was missing. A person approves, or the validators of
    the commitment's tier where the genesis key defines tiers.
    """
    from troth.airlock.run import resume_run, run_commitment
    from troth.airlock.run_parts import RunOptions
    from troth.cli.options import Notes, acting
    from troth.observer.ready import require_observer
    from troth.stores.opening import open_store

    require_observer()
    workspace = _workspace(store)
    ledger = open_store(store if is_address(store) else workspace.root, notify=Notes())
    who = acting(actor, ledger)
    show = None if quiet else ((2, 2) if as_json else (1, 2))
    tell = (lambda text: note(f"troth: {text}")) if sys.stderr.isatty() and not quiet else (lambda text: None)

    def warn(text: str) -> None:
        note(f"troth: {printable(text)}")

    if resume is not None:
        if words or new or contract:
            raise Refused("E_USAGE", "--resume takes up the run as it was given; name nothing else")
        outcome = resume_run(workspace, ledger, resume, show=show, tell=tell, warn=warn)
        return _answer(outcome, as_json, show_output)
    commitment, agent = _split(words, new)
    if contract is None:
        raise Refused("E_USAGE", "a run needs --contract", remedy="Seal one with: troth contract seal FILE.toml")
    if options["contract_threshold"] is not None and not options["contract_keys"]:
        raise Refused("E_USAGE", "--contract-threshold: nobody is named", remedy="Name whom to trust: --contract-key.")
    outcome = run_commitment(
        workspace,
        ledger,
        commitment=commitment,
        new=new,
        contract_file=_contract_file(contract),
        argv=agent,
        actor=who,
        options=RunOptions(
            timeout=options["timeout"],
            network=options["network"],
            allow_read=tuple(map(str, options["allow_read"])),
            allow_write=tuple(map(str, options["allow_write"])),
            env=options["env"],
            profile=options["profile"],
            claims_file=str(options["claims"].absolute()) if options["claims"] else None,
            transcripts=tuple(map(_absolute, options["transcripts"])),
            repeats=options["repeats"],
            with_launch=options["with_launch"],
            submit_anyway=options["submit_anyway"],
            keep_trace=options["keep_trace"],
            redact=options["redact"],
            verifier_id=options["verifier"],
            table=str(options["table"]) if options["table"] else None,
            contract_keys=_public(options["contract_keys"]),
            contract_threshold=options["contract_threshold"],
        ),
        show=show,
        tell=tell,
        warn=warn,
    )
    return _answer(outcome, as_json, show_output)


def _public(words: Sequence[str]) -> tuple[str, ...]:
    """Return the public keys that words stand for, as text: a run that is taken up again asks for the same."""
    from troth.stores.keys import verifier_keys

    return tuple(str(key) for word in words for key in verifier_keys(word))


def _absolute(source: str) -> str:
    """Return a transcript's name with its path made absolute, as the run may be taken up from elsewhere."""
    form, colon, path = source.partition(":")
    return source if not path or path == "-" or path.startswith("~/") else f"{form}{colon}{Path(path).absolute()}"


def _workspace(where: str | None) -> Workspace:
    from troth.stores.workspace import find_workspace, here, workspace_at

    # Runs are kept in a folder of this machine, wherever the ledger is.
    return find_workspace(here()) if where is None or is_address(where) else workspace_at(Path(where))


def _split(words: tuple[str, ...], new: str | None) -> tuple[str | None, tuple[str, ...]]:
    # click takes the `--` away, so what stood before it is told by whether a commitment was needed at all.
    if new is not None:
        if words and words[0].startswith("cmt_"):
            raise Refused("E_USAGE", "name a commitment or give --new TEXT, not both")
        commitment, agent = None, words
    else:
        commitment, agent = (words[0] if words else None), words[1:]
        if commitment is None:
            raise Refused("E_USAGE", "name a commitment, or give --new TEXT", remedy="Try 'troth run --help'.")
    if not agent:
        raise Refused("E_USAGE", "name the agent's program after `--`", remedy="Try 'troth run --help'.")
    return commitment, agent


def _answer(outcome: Outcome, as_json: bool, show_output: bool) -> int:
    from troth.cli.airlock import report_lines

    if as_json:
        emit_json(outcome.as_json())
        return outcome.exit_code
    decision = outcome.done["decision"]
    say()
    say(f"{coloured(decision, COLOURS[decision])}: {printable(outcome.sentence)}")
    for line in outcome.lines:
        say(f"  {printable(line)}")
    for line in outcome.printed if show_output else outcome.ends:
        say(f"  {printable(line)}")
    say(f"  receipt     {outcome.folder / 'receipt.json'}")
    say(f"  commitment  {outcome.commitment}: {outcome.ledger_says}")
    if outcome.airlock is not None:
        for line in report_lines(outcome.airlock):
            say(f"  {line}")
    if outcome.submission is not None and (outcome.airlock is None or outcome.airlock.outcome != "closed"):
        say(f"  next        troth approve {outcome.commitment}   or   troth reopen {outcome.commitment} --reason TEXT")
    return outcome.exit_code


@click.command("runs", epilog="Example: troth runs --open")
@click.option("--store", "--ledger", "store", metavar="PATH", help="Another workspace folder.")
@click.option("--open", "only_open", is_flag=True, help="Only runs that were left before their end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def runs_cmd(store: str | None, only_open: bool, as_json: bool) -> int:
    """List the workspace's runs, oldest first, with their verdicts."""
    from troth.airlock.runs import Runs

    runs = Runs(_workspace(store).folder)
    states = [state for state in runs.states() if state.open or not only_open]
    current = runs.under_way()
    if as_json:
        emit_json({"runs": [_as_json(state) | {"under_way": state.id == current} for state in states]})
        return 0
    if not states:
        say("No runs yet. Start one with: troth run COMMITMENT --contract FOLDER -- AGENT")
    for state in states:
        say(f"{state.id}  {state.started}  {state.commitment}  {printable(state.actor, 60)}  {_became(state, current)}")
    return 0


def _became(state: RunState, current: str | None) -> str:
    verdict = f"{state.decision} ({state.reason})" if state.decision else ""
    if not state.open:
        return verdict if state.stage == "finished" else f"abandoned: {printable(state.note or '', 300)}"
    where = "under way" if state.id == current else "left"
    return f"{where} at stage {state.stage}" + (f", {verdict}" if verdict else "")


def _as_json(state: RunState) -> dict[str, Any]:
    return {
        "id": state.id,
        "commitment": state.commitment,
        "actor": state.actor,
        "argv": list(state.argv),
        "stage": state.stage,
        "started": state.started,
        "decision": state.decision,
        "reason": state.reason,
        "sentence": state.told.get("sentence"),
        "note": state.note,
        "evidence": state.evidence,
        "submission": state.submission,
    }
