"""``troth help``: what codes and exit statuses mean, and the help of any command."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Final

import click

from troth.cli.answer import emit_json, printable, say
from troth.core.errors import Refused

EXITS: Final[Mapping[int, str]] = {
    0: "Holds or done: chain verified, done verdict supported, document valid.",
    1: "Does not hold: a fault in the chain (for every command that needs it whole), receipt invalid or contradicted, "
    "document invalid.",
    2: "Refused: usage, a malformed record, an operation refused with its code, missing consent. Nothing was changed.",
    3: "Not established: the records did not allow an answer.",
    4: "A person must decide.",
    70: "An error of ours. TROTH_DEBUG=1 shows where.",
    75: "Busy: somebody else holds what is needed; try again.",
}
"""Exit status -> what it means. With several inputs: the first of 70, 2, 1, 4, 3, 0 that occurs."""

PROGRAM_CODES: Final[Mapping[str, str]] = {
    "E_USAGE": "The command line was not understood; the message names the command whose --help tells more.",
    "E_DEFECT": "A fault of troth itself. TROTH_DEBUG=1 shows where.",
    "E_APPEND_ONLY": "Nothing is taken out of a ledger; `troth retract ID REASON` says that a row no longer stands.",
    "E_OUTPUT": "The answer could not be written to where it was to go; what was recorded stays recorded.",
    "E_OBSERVER_MISSING": "Observing or grading cannot work on this machine yet; `troth doctor` tells what mends it.",
    "E_SANDBOX_FAILED": "The sandbox did not start; `troth doctor` tells what mends it.",
    "E_AGENT_NOT_STARTED": "The agent's program could not be started in the sandbox, which sees only what it needs.",
    "E_WORKSPACE_UNFIT": "The folder cannot be a run's workspace: a system folder, another user's, or not writable.",
    "E_TREE_UNREADABLE": "A folder of the workspace cannot be listed, so no record of the tree can be made.",
    "E_TREE_TOO_LARGE": "The workspace holds more files than a tree record can carry.",
    "E_CLAIMS_UNREADABLE": "The file that the agent writes its claims to cannot be read.",
    "E_TRANSCRIPT_FORMAT": "No transcript is named so; FORMAT:PATH with a known format is, or auto.",
    "E_TRANSCRIPT_UNREADABLE": "The transcript is not there, or is no regular file that can be read.",
    "E_OBSERVATION_UNREADABLE": "The folder holds no observation record that can be read.",
    "E_CONTRACT_SOURCE": "The contract file is not what a contract is written in; the message says where.",
    "E_NO_COMMAND": "No runner of tests was recognised in the project, so no acceptance command can be proposed.",
    "E_CONTRACT_EXISTS": "Another sealed contract stands where this one should go.",
    "E_CONTRACT_WRITE": "The sealed contract cannot be written there; the message says why.",
    "E_ACCEPTANCE_NOT_STARTED": "An acceptance command of the contract could not be started in the sandbox.",
    "E_TOOLS_UNFIT": "A folder cannot be a contract's tools: absent, holding a home, or in the agent's reach.",
    "E_TOOLS_CHANGED": "The tools outside of the workspace that a contract was sealed with are gone or have changed.",
    "E_REFERENCE": "The reference solution that the contract is measured with cannot be read or used.",
    "E_SEAL": "The side report of a sealed contract cannot be read, or is gone where it has to be signed.",
    "E_SEAL_OTHER": "The side report beside a contract is another contract's; signing it would vouch for that one.",
    "E_SEAL_OLDER": "The ledger knows a later sealing of this contract than the report beside it, or there is none.",
    "E_SEAL_MALFORMED": "The side report of a sealed contract is no JSON object.",
    "E_NOT_TEXT": "A word of the agent's command line is not UTF-8, so no record can hold it.",
    "E_STATEMENT": "The Statement of a sealed contract is not what it should be.",
    "E_CONTRACT_MISSING": "The run needs a sealed contract and there is none at that place.",
    "E_START_DIFFERS": "The workspace is not the tree that the contract was sealed on.",
    "E_GROUP_UNKNOWN": "No group of submissions has that name now: one was added or decided since it was shown.",
    "E_RUN_BUSY": "Another run is under way in this workspace.",
    "E_RUN_UNKNOWN": "No run of this workspace has that name.",
    "E_RUN_UNREADABLE": "The stored state of the run cannot be read.",
    "E_RUN_FINISHED": "The run has ended, so there is nothing to resume.",
    "E_RUN_TREE_CHANGED": "The workspace is no longer the tree that the run left, so it cannot be graded.",
    "E_SANDBOX_UNREACHABLE": "As root: another user's folder, closed to others, stands before what the sandbox mounts.",
    "E_GRADE_TREE_DIFFERS": "The folder is not the tree that is to be graded.",
    "E_PIN_UNREADABLE": "The pin file cannot be read, or is no TOML in UTF-8.",
    "E_PIN_MALFORMED": "The pin file lacks a member, has one too many, or one with a value it may not have.",
    "E_RECEIPT_MISSING": "The folder of records holds no receipt.json.",
    "E_CHECK_UNKNOWN": "No check of a receipt has that name.",
    "E_REVIEW_MISSING": "A file that a review is to be checked with is not there.",
    "E_MEMBER_MISSING": "There is no folder of records at that place.",
}
"""The program's own codes, which no protocol defines."""

_TABLES: Final[tuple[tuple[str, str, str], ...]] = (
    # (what the codes are, module that holds the table, its name there): code -> sentence
    ("Refusals of the ledger", "troth.ledger.codes", "CODES"),
    ("Refusals of a merge", "troth.ledger.merging", "CODES"),
    ("Details of a refusal", "troth.ledger.codes", "DETAILS"),
    ("Rules of a genesis key", "troth.ledger.codes", "RULES"),
    ("Faults of a chain", "troth.ledger.codes", "FAULTS"),
    ("Warnings of a chain", "troth.ledger.codes", "WARNINGS"),
    ("Reasons of a receipt", "troth.receipts.reasons", "REASONS"),
    ("Codes of finding receipts", "troth.stores.corpora", "CODES"),
    ("Codes of checking many receipts", "troth.airlock.fleets", "CODES"),
    ("Rules of review documents", "troth.review.rules", "MEANINGS"),
    ("Codes of reviews", "troth.review.reader", "CODES"),
    ("Codes of the reconciliation of a review", "troth.review.machine", "CODES"),
    ("Codes of a run of a review", "troth.review.run", "CODES"),
    ("Codes of the decisions on a review", "troth.review.decisions", "CODES"),
    ("Codes of reviewers and how they are reached", "troth.backends.codes", "CODES"),
    ("Codes of panels and chunks", "troth.review.panel", "CODES"),
    ("Codes of reviews that others rely on", "troth.airlock.reviews", "CODES"),
    ("Codes of a review under way", "troth.airlock.reviewing.running", "CODES"),
    ("Codes of the ledger's store", "troth.stores.codes", "CODES"),
    ("Codes of knowledge bundles", "troth.knowledge.codes", "CODES"),
    ("Errors of a knowledge bundle", "troth.knowledge.codes", "ERRORS"),
    ("Warnings of a knowledge bundle", "troth.knowledge.codes", "FINDINGS"),
    ("Illegal messages of a deal", "troth.deals.codes", "ILLEGAL"),
    ("Events of a deal's log", "troth.deals.codes", "EVENTS"),
    ("Ends of a deal", "troth.deals.codes", "ENDS"),
    ("Breaches of a deal", "troth.deals.codes", "MODES"),
    ("Codes of policies of deals", "troth.lab.policies", "CODES"),
    ("Codes of run folders of the laboratory", "troth.lab.folders", "CODES"),
    ("Codes of played deals", "troth.lab.playing", "CODES"),
    ("Codes of models that play deals", "troth.lab.seat", "CODES"),
    ("Illegal messages of a deal with a trustee", "troth.deals.proxy", "ILLEGAL"),
    ("Ends of a deal with a trustee", "troth.deals.proxy", "ENDS"),
    ("Breaches of a deal with a trustee", "troth.deals.proxy", "MODES"),
    ("Codes of a sweep's configuration", "troth.lab.sweepconfig", "CODES"),
    ("Codes of sweeps", "troth.lab.sweeps", "CODES"),
    ("Codes of transcripts of deals", "troth.deals.codes", "CODES"),
    ("Codes of deals with a trustee", "troth.lab.trustees", "CODES"),
    ("Codes of deals on the ledger", "troth.airlock.deal_signals", "CODES"),
    ("Codes of transcripts as files", "troth.stores.transcripts", "CODES"),
    ("Refusals of planning deals", "troth.lab.power", "CODES"),
    ("Refusals of falsification rules", "troth.lab.falsification", "CODES"),
    ("Codes of checkpoints and proofs", "troth.ledger.checkpoint", "CODES"),
    ("Codes of deciding by a receipt", "troth.receipts.deciding", "CODES"),
    ("Codes of hooks", "troth.airlock.hooking", "CODES"),
    ("Codes of signed receipts", "troth.receipts.envelopes", "CODES"),
    ("Codes of sigstore bundles", "troth.receipts.bundles", "CODES"),
    ("Codes of signing by identity", "troth.stores.keyless", "CODES"),
    ("Codes of signed notes and keys", "troth.core.notes", "CODES"),
    ("Codes of the user's keys", "troth.stores.keys", "CODES"),
    ("Codes of timestamps", "troth.stores.timestamps", "CODES"),
)

_TOPICS: Final = ("codes", "exit", "completion", "machine")

_COMPLETION: Final = """\
Completion of commands and options, for one shell session; put the line into the shell's start file to keep it.

  bash   eval "$(_TROTH_COMPLETE=bash_source troth)"
  zsh    eval "$(_TROTH_COMPLETE=zsh_source troth)"
  fish   _TROTH_COMPLETE=fish_source troth | source"""


def tables() -> dict[str, Mapping[str, str]]:
    """Return every table of codes by its title: the protocols' in their own words, then the program's."""
    found: dict[str, Mapping[str, str]] = {}
    for title, module, name in _TABLES:
        found[title] = getattr(importlib.import_module(module), name)
    found["Codes of the program itself"] = PROGRAM_CODES
    return found


def explain(code: str) -> list[tuple[str, str, str]]:
    """Return (code, where it belongs, what it means) for each table that knows the code.

    Letter case and ``-`` for ``_`` do not matter.

    Raises:
        Refused: ``E_USAGE`` naming the nearest codes when no table knows it.
    """
    known = tables()
    wanted = _folded(code)
    hits = [
        (name, title, meaning)
        for title, table in known.items()
        for name, meaning in table.items()
        if _folded(name) == wanted
    ]
    if hits:
        return hits
    names = {name for table in known.values() for name in table}
    raise _unknown(code, "code", sorted(names), "`troth help codes` lists them all.")


def _folded(code: str) -> str:
    return code.upper().replace("-", "_")


def _unknown(word: str, kind: str, names: Sequence[str], remedy: str) -> Refused:
    import difflib

    by_folded = {_folded(name): name for name in names}
    near = [by_folded[hit] for hit in difflib.get_close_matches(_folded(word), by_folded, n=3)]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return Refused("E_USAGE", f"There is no {kind} {printable(word, 200)!r}.{hint}", remedy=remedy, detail=near)


def _tell_codes(code: str | None, as_json: bool) -> None:
    if code is not None:
        hits = explain(code)
        if as_json:
            emit_json({"codes": [{"code": name, "of": title, "means": means} for name, title, means in hits]})
            return
        for name, title, means in hits:
            say(f"{name} ({title[0].lower()}{title[1:]}): {means}")
        return
    known = tables()
    if as_json:
        rows = [
            {"code": name, "of": title, "means": means}
            for title, table in known.items()
            for name, means in table.items()
        ]
        emit_json({"codes": rows, "exit": {str(status): means for status, means in EXITS.items()}})
        return
    for title, table in known.items():
        say(title)
        _tell_table(table)
        say()
    _tell_exits(as_json=False)


def _tell_table(table: Mapping[str, str]) -> None:
    formatter = click.HelpFormatter(width=_width())
    with formatter.indentation():
        formatter.write_dl(list(table.items()), col_max=34)
    say(formatter.getvalue().rstrip("\n"))


def _width() -> int:
    import shutil

    return min(shutil.get_terminal_size().columns, 100)


def _tell_exits(*, as_json: bool) -> None:
    if as_json:
        emit_json({"exit": {str(status): means for status, means in EXITS.items()}})
        return
    say("Exit statuses (with several inputs, the first of 70, 2, 1, 4, 3, 0 that occurs)")
    _tell_table({str(status): means for status, means in EXITS.items()})


def _tell_machine(*, drawn: bool) -> None:
    """Tell the states of a commitment and its moves, from the table that decides them (ledger spec §6)."""
    from troth.ledger.machine import TABLE, mermaid

    if drawn:
        say(mermaid().rstrip("\n"))
        return
    say("What each operation does to a commitment, by its state and by who acts; all else is refused.")
    for (state, who), cells in TABLE.items():
        moves = {column: cell.to for column, cell in cells.items() if cell.to is not None}
        told = ", ".join(f"{_COLUMN_WORDS.get(column, column)} -> {to}" for column, to in moves.items())
        say(f"  {state}, {who}: {told or 'nothing'}")
    say("A closed commitment that nobody owned (a duplicate closed from open) reopens to open.")


_COLUMN_WORDS: Final[Mapping[str, str]] = {"duplicate": "close --duplicate-of"}


def _tell_command(ctx: click.Context, words: Sequence[str]) -> None:
    root = ctx.find_root()
    here = root
    command: click.Command = root.command
    for word in words:
        inner = command.get_command(here, word) if isinstance(command, click.Group) else None
        if inner is None:
            names = [*command.list_commands(here)] if isinstance(command, click.Group) else []
            topics = [*_TOPICS] if command is root.command else []
            raise _unknown(word, "command or topic", [*names, *topics], f"Try '{here.command_path} --help'.")
        here = click.Context(inner, info_name=word, parent=here)
        command = inner
    say(command.get_help(here))


@click.command(
    "help",
    epilog="Topics: codes [CODE], exit, completion, machine (a commitment's states); or any command. "
    "Exit codes: 0 told, 2 unknown topic or code. Example: troth help codes E_NOT_OWNER",
)
@click.argument("topic", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (codes and exit only).")
@click.option("--mermaid", is_flag=True, help="With machine: draw it as a Mermaid state diagram.")
@click.pass_context
def help_cmd(ctx: click.Context, topic: tuple[str, ...], as_json: bool, mermaid: bool) -> int:
    """Explain codes, exit statuses, the states of a commitment, completion and commands."""
    if mermaid and topic != ("machine",):
        raise Refused("E_USAGE", "--mermaid goes with `help machine`.", remedy="Try 'troth help machine --mermaid'.")
    match topic:
        case ("codes",):
            _tell_codes(None, as_json)
        case ("codes", code):
            _tell_codes(code, as_json)
        case ("exit",):
            _tell_exits(as_json=as_json)
        case ("completion",) if not as_json:
            say(_COMPLETION)
        case ("machine",) if not as_json:
            _tell_machine(drawn=mermaid)
        case _ if as_json:
            raise Refused("E_USAGE", "--json goes with `help codes` and `help exit`.", remedy="Leave --json out.")
        case ("codes" | "exit" | "completion" | "machine", *_):
            raise Refused("E_USAGE", f"`help {topic[0]}` takes fewer words.", remedy="Try 'troth help --help'.")
        case _:
            _tell_command(ctx, topic)
    return 0
