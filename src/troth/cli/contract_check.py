"""``troth contract check`` and ``show``: what a sealed contract says, and whether a workspace still has it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.contract_common import LIMIT, read_sealed, seal_beside, workspace_above
from troth.core.errors import Refused
from troth.core.words import command_line

if TYPE_CHECKING:
    from troth.airlock.sealings import Sealing
    from troth.receipts.demands import Signers


def _statement_fault(path: Path, data: bytes) -> str | None:
    """Return the code with which the Statement beside a contract is invalid; ``None`` when it holds or is absent."""
    from troth.receipts.member import MappingMember
    from troth.receipts.reader import MemberReader
    from troth.receipts.statements import read_contract_statement
    from troth.stores.durable import read_regular

    statement = path.with_name("statement.json")
    if not statement.exists():
        return None
    held = {"contract.json": data, "statement.json": read_regular(statement, LIMIT, "E_STATEMENT", "the Statement")}
    try:
        read_contract_statement(MemberReader(MappingMember(held)))
    except Refused as fault:
        return fault.code
    return None


def _signers(path: Path, data: bytes, keys: Sequence[str], threshold: int | None) -> Signers | None:
    """Return who signed a contract, where somebody is asked for."""
    from troth.airlock.sealed import read_seal, read_signed
    from troth.stores.keys import verifier_keys

    if not keys:
        if threshold is not None:
            raise Refused("E_USAGE", "--threshold: nobody is named", remedy="Name whom to trust: --key.")
        return None
    trusted = [str(key) for word in keys for key in verifier_keys(word)]
    return read_signed(path, data, read_seal(path), trusted, threshold)[1]


def _later(path: Path, data: bytes) -> Sealing | None:
    """Return the sealing that outdates the report beside a contract, if the workspace's ledger knows one."""
    from troth.airlock.sealed import read_seal
    from troth.airlock.sealings import ledger_beside, outdated

    store = ledger_beside(path)
    return outdated(store.read(), data, read_seal(path)) if store is not None else None


@click.command("check", epilog="Example: troth contract check .mentu/contracts/empty-cart --run")
@click.argument("where", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option(
    "--workspace", type=click.Path(path_type=Path), help="The folder to look at; default: found upward from here."
)
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="Ask for signatures, and whom to believe. Repeatable."
)
@click.option("--threshold", type=click.IntRange(0), metavar="N", help="How many distinct approvers must have signed.")
@click.option("--run", "run", is_flag=True, help="Run each command once, on a copy, and tell how it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def check_cmd(  # noqa: PLR0917 - click calls it by name
    where: Path, workspace: Path | None, keys: tuple[str, ...], threshold: int | None, run: bool, as_json: bool
) -> int:
    """Check a sealed contract: its record, its Statement, and whether the workspace has what it protects.

    Also told: commands that would not start in the sandbox here, and what the project's files say decides the tests and
    the contract leaves unprotected. Exits with 0 when everything holds, 1 when a protected path differs, the Statement
    is invalid, the ledger knows a later sealing, or with --run a command cannot be run to its end; 2 when the record is
    malformed, or the tools outside of the workspace are no longer those it was sealed with. With --key, a contract that
    is not signed as asked is not looked at: 1 where a signature does not fit or is about another contract, 3 where too
    few that are trusted signed, 2 where nobody did.
    """
    from troth.core.digests import sha256_hex
    from troth.observer.contract_source import RunLimits
    from troth.observer.fitting import commands_here, run_here, unprotected
    from troth.observer.protected import entries_of, unmet_entries
    from troth.observer.ready import require_observer
    from troth.observer.tools import elsewhere, require_tools, tools_of
    from troth.observer.tree import snapshot
    from troth.receipts.demands import role_of
    from troth.stores.workspace import here

    path, data, record = read_sealed(where)
    signers = _signers(path, data, keys, threshold)
    root = (workspace or workspace_above(here()) or here()).resolve()
    tree = snapshot(root)
    entries = entries_of(record)
    changed = [entry.path for entry in unmet_entries(entries, tree.files, tree.symlinks)]
    fault = _statement_fault(path, data)
    seal = seal_beside(path, sha256_hex(data)) or {}
    tools = require_tools(tools_of(seal))
    absent = commands_here(record, root, tools)
    left_open = unprotected(entries, root)
    ran: dict[str, dict[str, Any]] = {}
    if run:
        require_observer()
        ran = run_here(record, root, tree, RunLimits.from_json(seal.get("limits")), tools)
    ends = all(item["ended"] for item in ran.values())
    later = _later(path, data)
    holds = not changed and fault is None and ends and later is None
    if as_json:
        emit_json(
            {
                "contract_id": record["contract_id"],
                "contract_sha256": sha256_hex(data),
                "workspace": str(root),
                "holds": holds,
                "changed": changed,
                "statement": fault or "valid",
                "signatures": signers.as_json() if signers is not None else None,
                "not_here": absent,
                "later_sealing": {**later.as_meta(), "row": later.row} if later is not None else None,
                "unprotected": [{"path": item.what, "why": item.why} for item in left_open],
                "ran": ran,
            }
        )
        return 0 if holds else 1
    for one in signers.verified if signers is not None else ():
        say(f"{coloured('signed', 'green')}  by {printable(one.name)} as {role_of(one)}")
    for name in changed:
        say(f"{coloured('changed', 'red')}  {printable(name)}")
    if fault is not None:
        say(f"{coloured('invalid', 'red')}  statement.json: {fault}")
    if later is not None:
        say(f"{coloured('outdated', 'red')}  seal.json: sealed later: {later.words} (row {later.row})")
    for name, item in ran.items():
        say(f"{coloured('ran', 'green' if item['ended'] else 'red')}  {printable(name)}: {item['told']}")
    for name, program in absent.items():
        why = f"the sandbox sees no {printable(program)!r}{printable(elsewhere(program, root))}"
        note(f"troth: command {printable(name)!r} would not start here: {why}")
    for proposed in left_open:
        note(f"troth: not protected: {printable(proposed.what, 200)} ({printable(proposed.why, 200)})")
    if holds:
        count = len(record["protected_paths"])
        say(f"{coloured('holds', 'green')}  {printable(record['contract_id'])}: {count} protected paths")
    return 0 if holds else 1


@click.command("show", epilog="Example: troth contract show .mentu/contracts/empty-cart")
@click.argument("where", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def show_cmd(where: Path, as_json: bool) -> int:
    """Show a sealed contract: what it protects, its commands, and which mutants survived.

    Told as well: when it was sealed, the digest of the report, and whether the ledger knows a later sealing.
    """
    from troth.airlock.sealed import read_seal
    from troth.airlock.sealings import sealing_of
    from troth.core.digests import sha256_hex
    from troth.observer.tools import tools_of

    path, data, record = read_sealed(where)
    seal = seal_beside(path, sha256_hex(data))
    sealing, later = sealing_of(data, read_seal(path)), _later(path, data)
    if as_json:
        shown = {"contract_sha256": sha256_hex(data), "contract": record, "seal": seal}
        digest = sealing.seal_sha256 if sealing is not None else None
        emit_json({**shown, "seal_sha256": digest, "later_sealing": later.as_meta() if later is not None else None})
        return 0
    say(f"{printable(record['contract_id'])}  {sha256_hex(data)}")
    if sealing is not None:
        say(f"  sealed      {sealing.words}")
    if later is not None:
        say(f"  {coloured('outdated', 'red')}    by the sealing of {later.words} (row {later.row})")
    if "task" in record:
        say(f"  task        {printable(record['task'])}")
    for entry in record["protected_paths"]:
        absent = entry["kind"] == "directory" and entry["sha256"].startswith("e3b0c442")
        kind = "absent" if absent else entry["kind"]
        besides = f"  except {', '.join(map(printable, entry['exclude']))}" if "exclude" in entry else ""
        say(f"  {kind:<10}  {printable(entry['path'])}{besides}")
    for command in record["acceptance"]:
        say(f"  command     {printable(command['id'])}: {command_line(command['argv'], 2000)}")
    for tool in tools_of(seal):
        say(f"  tools       {printable(tool.words)}")
    adequacy = record["adequacy"]
    say(f"  mutants     {adequacy['killed']} of {adequacy['mutants']} killed")
    for line in (seal or {}).get("adequacy", {}).get("survived", ()):
        say(f"    survived  {printable(str(line), 160)}")
    return 0
