"""What the commands of ``troth contract`` share: where things stand, how a contract is read, a bar of progress."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.core.errors import Place, Refused

if TYPE_CHECKING:
    from troth.observer.mutants import Progress

LIMIT: Final = 1 << 24


def bar_wanted(as_json: bool) -> bool:
    return sys.stderr.isatty() and not as_json


@contextmanager
def progress_bar(shown: bool) -> Iterator[Progress]:
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


def workspace_above(start: Path) -> Path | None:
    """Return the folder at or above ``start`` that holds ``.mentu``."""
    return next((folder for folder in (start, *start.parents) if (folder / ".mentu").is_dir()), None)


def read_sealed(where: Path) -> tuple[Path, bytes, dict[str, Any]]:
    """Read a sealed contract: a file, or the folder that holds ``contract.json``."""
    from troth.receipts import records
    from troth.receipts.strict import parse
    from troth.stores.durable import read_regular

    path = where / "contract.json" if where.is_dir() else where
    data = read_regular(path, LIMIT, "E_CONTRACT_MISSING", "the contract")
    try:
        return path, data, records.contract(parse(data, "contract"))
    except Refused as fault:
        at = fault.place.path if fault.place is not None else None
        raise Refused(
            fault.code, f"the contract is malformed: {fault.message}", place=Place(str(path), path=at),
            remedy="Seal it anew with: troth contract seal FILE.toml",
        ) from None  # fmt: skip


def seal_beside(path: Path, contract_sha256: str) -> Mapping[str, Any] | None:
    """Return the side report beside a contract, when there is one and it is about this contract."""
    import json

    from troth.stores.durable import read_regular

    beside = path.with_name("seal.json")
    if not beside.exists():
        return None
    try:
        value = json.loads(read_regular(beside, LIMIT, "E_SEAL", "the side report"))
    except (ValueError, RecursionError):
        return None
    same = isinstance(value, dict) and value.get("contract_sha256") == contract_sha256
    return value if same and isinstance(value.get("adequacy"), dict) else None
