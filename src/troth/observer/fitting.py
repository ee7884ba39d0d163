"""Whether a sealed contract fits a machine and a workspace: programs, a run on a copy, what it leaves unprotected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from troth.observer.commands import Bench, run_command
from troth.observer.contract_source import RunLimits
from troth.observer.copies import WorkCopy, copy_workspace
from troth.observer.detecting import Proposed, detect
from troth.observer.project import look
from troth.observer.proposal import how_it_ended
from troth.observer.protected import Entry, entries_of
from troth.observer.sandbox import SandboxSpec, base_environment, program_seen, toolchain
from troth.observer.tools import search_path
from troth.observer.tree import Snapshot


def commands_here(contract: Mapping[str, Any], root: Path, tools: tuple[Path, ...] = ()) -> dict[str, str]:
    """Return the acceptance commands whose program the sandbox would not see: id to program. Nothing is run."""
    spec = SandboxSpec(
        workspace=root,
        inside=str(root),
        private=root,
        environment=base_environment(programs=search_path(tools)),
        read_only=(*toolchain(), *tools),
    )
    return {
        command["id"]: command["argv"][0]
        for command in contract["acceptance"]
        if not (startable(command["argv"]) and program_seen(spec, command["argv"][0]))
    }


def startable(argv: Sequence[str]) -> bool:
    """Tell whether a system can be asked to start the vector at all: no NUL, nothing that is not UTF-8."""
    try:
        return all("\0" not in word and word.encode() is not None for word in argv)
    except UnicodeEncodeError:
        return False


def run_here(
    contract: Mapping[str, Any], root: Path, tree: Snapshot, limits: RunLimits, tools: tuple[Path, ...] = ()
) -> dict[str, dict[str, Any]]:
    """Run each acceptance command once on a copy of its own: id to how it ended, and whether by itself."""
    entries = entries_of(contract)
    bench = Bench(
        inside=str(root), limits=limits, tools=tools, trusted=lambda path: any(entry.covers(path) for entry in entries)
    )
    found: dict[str, dict[str, Any]] = {}
    with bench.folder() as place:
        copy_workspace(root, tree, place / "base")
        copy = WorkCopy.of(place / "base", place / "work")
        for command in contract["acceptance"]:
            if not startable(command["argv"]):
                told = "could not be started: its words are none that a system takes"
                found[command["id"]] = {"ended": False, "passed": False, "told": told}
                continue
            run = run_command(bench, copy.place, command["argv"])
            found[command["id"]] = {"ended": run.ended_itself, "passed": run.passed, "told": how_it_ended(run)}
            copy.restore()
    return found


def unprotected(entries: Sequence[Entry], root: Path) -> list[Proposed]:
    """Return what a proposal over the workspace would protect or keep absent, and these entries do not."""
    return [
        item
        for item in detect(look(root)).proposed
        if item.kind != "command" and not any(entry.covers(item.what) for entry in entries)
    ]
