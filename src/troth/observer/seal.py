"""Sealing a contract: what is protected by digest, what may be written there, how well the commands tell changes apart.

The contract record is done records §4.1 to the letter; what it has no member for stands in ``seal.json`` beside it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.core.instants import Clock, format_instant, system_clock
from troth.observer.autoload import environment_entries, environments, names_to_seal, sealed_entries
from troth.observer.commands import Bench, CommandRun, run_command
from troth.observer.contract_source import Acceptance, ContractSource, read_source
from troth.observer.copies import (
    WorkCopy,
    copy_workspace,
    differing,
    marks_of_protected,
    only_times_moved,
    put_back,
    unprotected_bytecode,
)
from troth.observer.entries import forbidden_entries, named_entries, settled
from troth.observer.learning import Written, empty_excludes, files_and_links, learn_excludes, not_freed, watched
from troth.observer.mutants import Adequacy, Baseline, Progress, measure, mutable_files
from troth.observer.protected import Entry
from troth.observer.reference import materialise
from troth.observer.runners import recognise
from troth.observer.sealed import Sealed, write_sealed
from troth.observer.tools import elsewhere, named_folders, read_tools, with_bases
from troth.observer.tree import snapshot
from troth.observer.watching import FileWatch
from troth.receipts.statements import write_contract_statement

SEAL_VERSION: Final = "troth-seal/v1"

DEFAULT_BUDGET: Final = 300.0
"""Seconds after which no further mutant is begun."""

BASELINE_RUNS: Final = 2
"""How often every command is run on the unchanged tree: runs that disagree show nothing."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """How the commands ended on the unchanged tree, and what they did to it meanwhile.

    ``times_set`` are the protected files of which the runs only set the times; ``rewritten`` those that they write and
    put back.
    """

    baselines: list[Baseline]
    times_set: list[str]
    rewritten: list[str]
    written: Written


def _baselines(
    bench: Bench,
    copy: WorkCopy,
    stood: Mapping[str, str],
    commands: Sequence[Acceptance],
    entries: Sequence[Entry],
    *,
    progress: Progress,
) -> _Tried:
    """Run every command as often as the unchanged tree is to be tried; ``stood`` are its files and links."""
    found: list[Baseline] = []
    times: set[str] = set()
    seen: set[str] = set()
    written = Written()
    total = len(commands) * BASELINE_RUNS
    for command in commands:
        runs: list[CommandRun] = []
        for _ in range(BASELINE_RUNS):
            progress("running the acceptance commands", len(found) * BASELINE_RUNS + len(runs), total)
            before = marks_of_protected(copy.place, entries)
            # What an earlier run touched is looked at more closely in the next one.
            watch = FileWatch(copy.place, sorted(name for name in times if os.path.lexists(copy.place / name)))
            with watched(copy.place, stood, look=False) as told:
                runs.append(run_command(bench, copy.place, command.argv))
            seen |= watch.finish() | watch.blind | told.written.changed
            written |= told.written
            after = marks_of_protected(copy.place, entries)
            moved = {name for name in before if before[name] != after.get(name)}
            times |= {name for name in moved if only_times_moved(before[name], after.get(name))}
            copy.restore()
        found.append(Baseline(command, tuple(runs)))
    progress("running the acceptance commands", total, total)
    return _Tried(found, sorted(times - seen), sorted(times & seen), written)


def _learning_run(bench: Bench, copy: WorkCopy, before: Mapping[str, str], commands: Sequence[Acceptance]) -> Written:
    """Run every command once, in a plain environment, on one copy; return what they wrote there."""
    with watched(copy.place, before) as told:
        for command in commands:
            # Without the variables that keep caches away: what a plain run writes is what has to be learnt.
            run = run_command(bench, copy.place, command.argv, caches=False)
            if not run.started:
                raise Refused(
                    "E_ACCEPTANCE_NOT_STARTED",
                    f"acceptance command {command.id!r} could not be started"
                    + (f": {said}" if (said := run.output.decode("utf-8", "backslashreplace").strip()[:300]) else ""),
                    remedy="Name a program that the sandbox sees: below /usr, in the workspace, in the contract's "
                    f"tools or beside this Python{elsewhere(command.argv[0], Path(bench.inside))}.",
                )
    copy.restore()
    return told.written


def _command_json(base: Baseline) -> dict[str, Any]:
    first = base.runs[0]
    return {
        "id": base.command.id,
        "argv": list(base.command.argv),
        "runner": first.runner,
        "exits": [run.exit for run in base.runs],
        "timed_out": any(run.timed_out for run in base.runs),
        "passes": base.passes,
        "steady": base.steady,
        "tests": first.tests.as_json(),
        "passed": sorted(base.tests),
        "seconds": round(base.seconds, 3),
    }


def _told_of_writing(
    left: Sequence[str], touched: Sequence[str], restless: Sequence[str], *, missed: bool
) -> list[str]:
    held = "it would be held against whoever runs the tests"
    told = [
        f"an honest run itself writes to {name!r}, which is protected: {held}; exclude it, or protect less"
        for name in touched
    ]
    told += [
        f"an honest run creates {name!r}, and no segment of it can be excluded without unprotecting another file"
        for name in left
    ]
    if restless:
        told.append(
            f"an honest run creates names that are never the same, such as {restless[0]!r}, which no exclude can free: "
            f"{held}; protect less, or let it write elsewhere"
        )
    if missed:
        told.append("what an honest run writes could not all be seen (see fs.inotify in sysctl)")
    return told


def _warnings(baselines: Sequence[Baseline], adequacy: Adequacy, *, referenced: bool) -> list[str]:
    told: list[str] = []
    for base in baselines:
        run = base.runs[0]
        if not base.steady:
            told.append(f"command {base.command.id!r} does not end alike twice: {[run.exit for run in base.runs]}")
        elif run.nothing_executed:
            told.append(f"command {base.command.id!r} executes no test, so a grade will have no result for it")
        elif referenced and not base.passes:
            told.append(f"command {base.command.id!r} does not pass on the reference (exit {run.exit})")
    if not referenced and baselines and all(base.passes for base in baselines):
        told.append("every acceptance command passes on the start tree already: an agent that does nothing passes too")
    if adequacy.killed == 0:
        why = adequacy.reason or f"none of {len(adequacy.mutants)} mutants was killed"
        told.append(f"no mutant was killed, so no receipt under this contract can be supported: {why}")
    return told


def _quiet(_: str, done: int, total: int) -> None:
    del done, total


def seal(
    source: ContractSource,
    workspace: Path,
    *,
    reference: str | Path | None = None,
    mutants: int | None = None,
    budget: float = DEFAULT_BUDGET,
    scratch: Path | None = None,
    clock: Clock = system_clock,
    progress: Progress = _quiet,
) -> Sealed:
    """Seal a contract over a workspace as it stands.

    Args:
        source: the parsed contract file.
        workspace: the folder whose protected paths are sealed; nothing in it is changed.
        reference: a folder or revision with the finished task, on which the commands pass; its protected paths are
            replaced by the workspace's.
        mutants: most mutants to run, instead of the file's.
        budget: seconds after which no further mutant is begun.
        scratch: where copies are made; the system's temporary folder by default.
        clock: for the instant in the side report.
        progress: called as work goes on.

    Raises:
        Refused: ``E_CONTRACT_SOURCE`` for a protected path that does not fit the tree, ``E_REFERENCE``,
            ``E_ACCEPTANCE_NOT_STARTED``, or a code of the sandbox or the tree.
    """
    workspace = workspace.resolve()
    progress("reading the workspace", 0, 1)
    tree = snapshot(workspace)
    named = named_entries(source, workspace, tree)
    forbidden = forbidden_entries(source, tree, named)
    own = environment_entries(tree.files, named, source.leave_open) if source.seal_names else []
    progress("reading the tools", 0, 1)
    tools = read_tools(
        with_bases(named_folders(source.tools, workspace, source.file), environments(tree.files), workspace)
    )
    bench = Bench(
        inside=str(workspace), limits=source.limits, scratch=scratch, tools=tuple(tool.path for tool in tools)
    )
    with bench.folder() as place:
        start, base = place / "start", place / "base"
        copy_workspace(workspace, tree, start)
        origin: dict[str, Any] | None = None
        if reference is None:
            copy_workspace(workspace, tree, base)
        else:
            origin = materialise(reference, workspace, base)
            for entry in (*named, *own):
                put_back(base, start, entry.path)
        copy = WorkCopy.of(base, place / "work")
        pristine = snapshot(base)
        before = files_and_links(base)
        progress("learning what the commands write", 0, 1)
        plain = _learning_run(bench, copy, before, source.acceptance)
        given = [*named, *own]
        entries, left, touched = learn_excludes(given, before, plain)
        entries = [*(settled(entry, tree.files) for entry in entries), *forbidden]
        if source.seal_names:
            runners = [(command.argv, recognise(command.argv)) for command in source.acceptance]
            names = names_to_seal(runners, tree.files, entries)
            entries += sealed_entries(names, tree.files, source.leave_open)
        tried = _baselines(bench, copy, before, source.acceptance, entries, progress=progress)
        baselines = tried.baselines
        adequacy = measure(
            bench,
            base,
            pristine,
            baselines,
            mutable_files(
                pristine.files,
                protected=lambda name: any(entry.covers(name) for entry in entries),
                inside=source.mutants_in,
            ),
            limit=source.mutants_max if mutants is None else mutants,
            budget=budget,
            first=differing(tree.files, pristine.files) if reference is not None else (),
            progress=lambda done, total: progress("running mutants", done, total),
        )
    contract = record_bytes(_record(source, entries, adequacy))
    touched = sorted({*touched, *tried.rewritten})
    restless = [name for name in not_freed(entries, tried.written.made) if name not in left]
    warnings = [
        *_told_of_writing(left, touched, restless, missed=plain.missed or tried.written.missed),
        *_warnings(baselines, adequacy, referenced=reference is not None),
    ]
    report = {
        "schema_version": SEAL_VERSION,
        "contract_sha256": sha256_hex(contract),
        "source_sha256": source.sha256,
        "sealed": format_instant(clock()),
        "start_tree_sha256": tree.digest,
        "reference": {**origin, "tree_sha256": pristine.digest} if origin is not None else None,
        "excludes_learnt": {
            entry.path: sorted(set(entry.exclude) - set(item.exclude))
            for entry, item in zip(entries, given, strict=False)
            if set(entry.exclude) - set(item.exclude)
        },
        "excludes_empty": {entry.path: empty for entry in entries if (empty := sorted(empty_excludes(entry, before)))},
        "sealed_absent": sorted(entry.path for entry in entries if entry.seals_absence),
        "made": sorted(
            name for name in tried.written.made | plain.made if any(entry.protects(name) for entry in entries)
        ),
        "times_set": tried.times_set,
        "bytecode": {name: tree.files[name] for name in unprotected_bytecode(tree, entries) if name in tree.files},
        "tools": [tool.as_json() for tool in tools],
        "limits": source.limits.as_json(),
        "commands": [_command_json(base) for base in baselines],
        "adequacy": adequacy.as_json(),
        "mutants": [mutant.as_json() for mutant in adequacy.mutants],
        "warnings": warnings,
    }
    return Sealed(contract, write_contract_statement(contract), report, tuple(warnings))


def _record(source: ContractSource, entries: Sequence[Entry], adequacy: Adequacy) -> dict[str, Any]:
    """Return the contract record (done records §4.1)."""
    record: dict[str, Any] = {
        "schema_version": "probity-done-contract/v1",
        "contract_id": source.contract_id,
        "protected_paths": [entry.as_json() for entry in entries],
        "acceptance": [{"id": command.id, "argv": list(command.argv)} for command in source.acceptance],
        "adequacy": {"mutants": len(adequacy.mutants), "killed": adequacy.killed},
    }
    if source.task is not None:
        record["task"] = source.task
    if adequacy.mutants:
        # The digest of the side report's list as canonical bytes, so that the list can be held to the contract.
        record["mutant_set_sha256"] = sha256_hex(record_bytes([mutant.as_json() for mutant in adequacy.mutants]))
    return record


def seal_contract(
    workspace: Path,
    source: Path,
    out: Path,
    *,
    reference: str | Path | None = None,
    mutants: int | None = None,
    budget: float = DEFAULT_BUDGET,
    replace_other: bool = False,
    progress: Callable[[str, int, int], None] = _quiet,
) -> Path:
    """Read a contract file, seal it over a workspace, write it into ``out``, and return the contract's path.

    Raises:
        Refused: whatever ``read_source``, ``seal`` and ``write_sealed`` refuse.
    """
    sealed = seal(
        read_source(source), workspace, reference=reference, mutants=mutants, budget=budget, progress=progress
    )
    return write_sealed(sealed, out, replace_other=replace_other)
