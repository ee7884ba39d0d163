"""`troth contract`: seal what "done" means for a task, check a workspace against it, show it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.core.errors import Place, Refused

if TYPE_CHECKING:
    from troth.observer.mutants import Progress

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

_LIMIT: Final = 1 << 24


@click.group("contract", epilog="Example: troth contract seal contract.toml")
def contract_cmd() -> None:
    """Seal, check and show contracts: what is protected, and the commands whose passing means done."""


def _bar(as_json: bool) -> bool:
    return sys.stderr.isatty() and not as_json


@contextmanager
def _progress(shown: bool) -> Iterator[Progress]:
    """Yield what is called as work goes on: a bar on a terminal, nothing elsewhere."""
    if not shown:
        yield lambda stage, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done, total=total)

        yield tell


def _workspace_above(start: Path) -> Path | None:
    """Return the folder at or above ``start`` that holds ``.mentu``."""
    return next((folder for folder in (start, *start.parents) if (folder / ".mentu").is_dir()), None)


def _places(source: Path, workspace: Path | None, out: Path | None, contract_id: str) -> tuple[Path, Path]:
    """Return the workspace to seal and the folder to write to, from what was said and where we stand."""
    from troth.observer.contract_source import folder_name
    from troth.stores.workspace import here

    named = workspace.resolve() if workspace is not None else None
    found = _workspace_above(named if named is not None else here())
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


@contract_cmd.command("seal", epilog=WHOLE_CONTRACT)
@click.argument("source", type=click.Path(path_type=Path), metavar="FILE.toml")
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
@click.option("--budget", type=click.FloatRange(min=0), default=300.0, show_default=True, help="Seconds for mutants.")
@click.option("--yes", is_flag=True, help="Replace another contract that stands there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def seal_cmd(source: Path, workspace: Path | None, out: Path | None, as_json: bool, **options: Any) -> int:
    """Seal FILE.toml over a workspace: digests, sealed names, and how well the commands tell changes apart.

    The acceptance commands are run in a sandbox on copies; the workspace is not changed. Writes contract.json,
    statement.json and the side report seal.json.
    """
    from troth.observer.contract_source import read_source
    from troth.observer.ready import observer_ready, refusal
    from troth.observer.seal import refuse_other, seal, write_sealed

    parsed = read_source(source)
    root, folder = _places(source, workspace, out, parsed.contract_id)
    if not options["yes"]:
        refuse_other(parsed, folder)
    missing = observer_ready()
    if missing:
        raise refusal(missing)
    how = {name: options[name] for name in ("reference", "mutants", "budget")}
    with _progress(_bar(as_json)) as progress:
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
                "warnings": list(sealed.warnings),
            }
        )
        return 0
    say(f"sealed {printable(parsed.contract_id)}  {sealed.sha256}")
    say(f"  contract  {printable(str(written))}")
    say(f"  mutants   {adequacy['killed']} of {adequacy['mutants']} killed")
    for line in adequacy["survived"][:20]:
        say(f"    survived  {printable(line, 160)}")
    if len(adequacy["survived"]) > 20:
        say(f"    and {len(adequacy['survived']) - 20} more: see seal.json")
    for line in sealed.warnings:
        note(f"troth: warning: {printable(line)}")
    return 0


def _read(where: Path) -> tuple[Path, bytes, dict[str, Any]]:
    """Read a sealed contract: a file, or the folder that holds ``contract.json``."""
    from troth.receipts import records
    from troth.receipts.strict import parse
    from troth.stores.durable import read_regular

    path = where / "contract.json" if where.is_dir() else where
    data = read_regular(path, _LIMIT, "E_CONTRACT_MISSING", "the contract")
    try:
        return path, data, records.contract(parse(data, "contract"))
    except Refused as fault:
        at = fault.place.path if fault.place is not None else None
        raise Refused(
            fault.code, f"the contract is malformed: {fault.message}", place=Place(str(path), path=at),
            remedy="Seal it anew with: troth contract seal FILE.toml",
        ) from None  # fmt: skip


def _statement_fault(path: Path, data: bytes) -> str | None:
    """Return the code with which the Statement beside a contract is invalid; ``None`` when it holds or is absent."""
    from troth.receipts.member import MappingMember
    from troth.receipts.reader import MemberReader
    from troth.receipts.statements import read_contract_statement
    from troth.stores.durable import read_regular

    statement = path.with_name("statement.json")
    if not statement.exists():
        return None
    held = {"contract.json": data, "statement.json": read_regular(statement, _LIMIT, "E_STATEMENT", "the Statement")}
    try:
        read_contract_statement(MemberReader(MappingMember(held)))
    except Refused as fault:
        return fault.code
    return None


@contract_cmd.command("check", epilog="Example: troth contract check .mentu/contracts/empty-cart")
@click.argument("where", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option(
    "--workspace", type=click.Path(path_type=Path), help="The folder to look at; default: found upward from here."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def check_cmd(where: Path, workspace: Path | None, as_json: bool) -> int:
    """Check a sealed contract: its record, its Statement, and whether the workspace has what it protects.

    Exits with 0 when everything holds, 1 when a protected path differs or the Statement is invalid, 2 when the record
    is malformed.
    """
    from troth.core.digests import sha256_hex
    from troth.observer.protected import entries_of, unmet_entries
    from troth.observer.tree import snapshot
    from troth.stores.workspace import here

    path, data, record = _read(where)
    root = (workspace or _workspace_above(here()) or here()).resolve()
    tree = snapshot(root)
    changed = [entry.path for entry in unmet_entries(entries_of(record), tree.files, tree.symlinks)]
    fault = _statement_fault(path, data)
    holds = not changed and fault is None
    if as_json:
        emit_json(
            {
                "contract_id": record["contract_id"],
                "contract_sha256": sha256_hex(data),
                "workspace": str(root),
                "holds": holds,
                "changed": changed,
                "statement": fault or "valid",
            }
        )
        return 0 if holds else 1
    for name in changed:
        say(f"{coloured('changed', 'red')}  {printable(name)}")
    if fault is not None:
        say(f"{coloured('invalid', 'red')}  statement.json: {fault}")
    if holds:
        count = len(record["protected_paths"])
        say(f"{coloured('holds', 'green')}  {printable(record['contract_id'])}: {count} protected paths")
    return 0 if holds else 1


@contract_cmd.command("show", epilog="Example: troth contract show .mentu/contracts/empty-cart")
@click.argument("where", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def show_cmd(where: Path, as_json: bool) -> int:
    """Show a sealed contract: what it protects, its commands, and which mutants survived."""
    from troth.core.digests import sha256_hex

    path, data, record = _read(where)
    seal = _seal_beside(path, sha256_hex(data))
    if as_json:
        emit_json({"contract_sha256": sha256_hex(data), "contract": record, "seal": seal})
        return 0
    say(f"{printable(record['contract_id'])}  {sha256_hex(data)}")
    if "task" in record:
        say(f"  task        {printable(record['task'])}")
    for entry in record["protected_paths"]:
        absent = entry["kind"] == "directory" and entry["sha256"].startswith("e3b0c442")
        kind = "absent" if absent else entry["kind"]
        besides = f"  except {', '.join(map(printable, entry['exclude']))}" if "exclude" in entry else ""
        say(f"  {kind:<10}  {printable(entry['path'])}{besides}")
    for command in record["acceptance"]:
        words = " ".join(_quoted(word) for word in command["argv"])
        say(f"  command     {printable(command['id'])}: {printable(words)}")
    adequacy = record["adequacy"]
    say(f"  mutants     {adequacy['killed']} of {adequacy['mutants']} killed")
    for line in (seal or {}).get("adequacy", {}).get("survived", ()):
        say(f"    survived  {printable(str(line), 160)}")
    return 0


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


def _seal_beside(path: Path, contract_sha256: str) -> Mapping[str, Any] | None:
    """Return the side report beside a contract, when there is one and it is about this contract."""
    import json

    from troth.stores.durable import read_regular

    beside = path.with_name("seal.json")
    if not beside.exists():
        return None
    try:
        value = json.loads(read_regular(beside, _LIMIT, "E_SEAL", "the side report"))
    except ValueError:
        return None
    same = isinstance(value, dict) and value.get("contract_sha256") == contract_sha256
    return value if same and isinstance(value.get("adequacy"), dict) else None
