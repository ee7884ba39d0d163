"""Sealing a contract: what is protected by digest, what may be written there, how well the commands tell changes apart.

The contract record is done records §4.1 to the letter; what it has no member for stands in ``seal.json`` beside it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from troth.core.canonical import record_bytes
from troth.core.digests import EMPTY, sha256_hex
from troth.core.errors import Place, Refused
from troth.core.instants import Clock, format_instant, system_clock
from troth.observer.autoload import (
    BYTECODE,
    environment_entries,
    environments,
    folders_of,
    names_to_seal,
    sealed_entries,
)
from troth.observer.commands import Bench, CommandRun, run_command
from troth.observer.contract_source import CODE, Acceptance, ContractSource, Protect, read_source
from troth.observer.copies import (
    CACHES,
    WorkCopy,
    copy_workspace,
    differing,
    marks_of_protected,
    only_times_moved,
    put_back,
)
from troth.observer.learning import Written, empty_excludes, files_and_links, learn_excludes, not_freed, watched
from troth.observer.mutants import Adequacy, Baseline, Progress, measure, mutable_files
from troth.observer.protected import Entry, unmet_entries
from troth.observer.reference import materialise
from troth.observer.runners import recognise
from troth.observer.tools import elsewhere, named_folders, read_tools, with_bases
from troth.observer.tree import Snapshot, snapshot
from troth.observer.watching import FileWatch
from troth.receipts.protection import directory_digest
from troth.receipts.statements import write_contract_statement

SEAL_VERSION: Final = "troth-seal/v1"
CONTRACT_FILE: Final = "contract.json"
STATEMENT_FILE: Final = "statement.json"
SEAL_FILE: Final = "seal.json"

DEFAULT_BUDGET: Final = 300.0
"""Seconds after which no further mutant is begun."""

BASELINE_RUNS: Final = 2
"""How often every command is run on the unchanged tree: runs that disagree show nothing."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed contract: the record's bytes, its Statement's, the side report, and what a person should be told."""

    contract: bytes
    statement: bytes
    seal: Mapping[str, Any]
    warnings: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Return the contract's digest."""
        return sha256_hex(self.contract)


def _refused(source: ContractSource, index: int, found: str, remedy: str) -> Refused:
    path = f"protect[{index}].path"
    return Refused(CODE, f"{path} {found}", remedy=remedy, place=Place(source.file, path=path))


def _named_entry(source: ContractSource, index: int, item: Protect, tree: Snapshot, folders: set[str]) -> Entry:
    """Turn one protected path into an entry of the start tree."""
    path = item.path
    linked = [link for link in tree.symlinks if path == link or path.startswith(link + "/")]
    if linked:
        raise _refused(source, index, f"is or lies beneath a symbolic link: {linked[0]!r}", "Name what it points to.")
    if path in tree.files:
        if item.exclude:
            raise _refused(source, index, f"is a file, and exclude is for folders: {path!r}", "Take exclude away.")
        return Entry(path, "file", tree.files[path])
    if path not in folders:
        import difflib

        near = difflib.get_close_matches(path, [*tree.files, *sorted(folders)], n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "Name a file or folder of the workspace."
        raise _refused(source, index, f"does not exist in the workspace: {path!r}", hint)
    broken = [name for name in (*tree.unreadable, *tree.not_utf8) if name == path or name.startswith(path + "/")]
    if broken:
        raise _refused(source, index, f"holds what no digest can cover: {broken[0]!r}", "Rename or remove it.")
    return Entry(path, "directory", EMPTY, item.exclude)


def named_entries(source: ContractSource, workspace: Path, tree: Snapshot) -> list[Entry]:
    """Return the entries of the paths that a contract file protects, over the tree as it stands.

    Raises:
        Refused: ``E_CONTRACT_SOURCE`` for one that does not fit the tree.
    """
    folders = folders_of([*tree.files, *tree.symlinks]) | _empty_folders(workspace, source)
    return [_named_entry(source, index, item, tree, folders) for index, item in enumerate(source.protect)]


def _forbidden_entries(source: ContractSource, tree: Snapshot, named: Sequence[Entry]) -> list[Entry]:
    """Return the entries that seal what must not appear as absent (done records §13.4)."""
    folders = folders_of([*tree.files, *tree.symlinks])
    for index, path in enumerate(source.must_not_appear):
        if path in tree.files or path in tree.symlinks or path in folders:
            at = f"must_not_appear[{index}]"
            raise Refused(
                CODE, f"{at} stands there already: {path!r}", remedy="Take it away, or protect it as it is.",
                place=Place(source.file, path=at),
            )  # fmt: skip
    return [
        Entry(path, "directory", EMPTY)
        for path in source.must_not_appear
        if not any(entry.covers(path) for entry in named)
    ]


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
                    f"acceptance command {command.id!r} could not be started: "
                    + run.output.decode("utf-8", "backslashreplace").strip()[:300],
                    remedy="Name a program that the sandbox sees: below /usr, in the workspace, in the contract's "
                    f"tools or beside this Python{elsewhere(command.argv[0])}.",
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
    forbidden = _forbidden_entries(source, tree, named)
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
        entries = [_with_caches(entry, tree.files) for entry in entries]
        entries = [
            replace(entry, sha256=directory_digest(entry.path, entry.exclude, tree.files))
            if entry.kind == "directory"
            else entry
            for entry in entries
        ]
        entries += forbidden
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
        "times_set": tried.times_set,
        "tools": [tool.as_json() for tool in tools],
        "limits": source.limits.as_json(),
        "commands": [_command_json(base) for base in baselines],
        "adequacy": adequacy.as_json(),
        "mutants": [mutant.as_json() for mutant in adequacy.mutants],
        "warnings": warnings,
    }
    return Sealed(contract, write_contract_statement(contract), report, tuple(warnings))


def _with_caches(entry: Entry, files: Mapping[str, str]) -> Entry:
    """Exclude bytecode, and every cache that stands there already: an honest run changes what is in them."""
    # Whoever runs the tests without our variables writes bytecode beside them, whatever this run happened to do.
    there = {segment for name in files if entry.covers(name) for segment in name.split("/") if segment in CACHES}
    new = sorted(({BYTECODE} | there) - set(entry.exclude))
    return replace(entry, exclude=(*entry.exclude, *new)) if entry.kind == "directory" else entry


def _empty_folders(workspace: Path, source: ContractSource) -> set[str]:
    """Return the protected paths that are folders without any file, which the tree does not show."""
    return {item.path for item in source.protect if (workspace / item.path).is_dir()}


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


def _write_whole(path: Path, data: bytes) -> None:
    """Put bytes in the place of whatever file stood there: temporary file, sync, rename, sync of the folder."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def refuse_other(source: ContractSource, out: Path) -> None:
    """Refuse before any work when a contract from another source stands where this one would go.

    Raises:
        Refused: ``E_CONTRACT_EXISTS``.
    """
    import json

    try:
        known = json.loads((out / SEAL_FILE).read_bytes()) if (out / CONTRACT_FILE).exists() else None
    except (OSError, ValueError):
        known = {}
    if known is not None and not (isinstance(known, dict) and known.get("source_sha256") == source.sha256):
        raise _another(out / CONTRACT_FILE)


def _another(place: Path) -> Refused:
    return Refused(
        "E_CONTRACT_EXISTS",
        "another sealed contract stands there",
        remedy="Replace it with --yes, or name another folder with --out.",
        place=Place(str(place)),
    )


def write_sealed(sealed: Sealed, out: Path, *, replace_other: bool = False) -> Path:
    """Write the three files into a folder and return the contract's path; the contract itself is written last.

    Args:
        sealed: what to write.
        out: the folder; made when it is absent.
        replace_other: replace a different contract that stands there.

    Raises:
        Refused: ``E_CONTRACT_EXISTS`` for a different contract there; ``E_CONTRACT_WRITE`` when it cannot be written.
    """
    target = out / CONTRACT_FILE
    try:
        if target.exists() and not replace_other and target.read_bytes() != sealed.contract:
            raise _another(target)
        out.mkdir(parents=True, exist_ok=True)
        _write_whole(out / SEAL_FILE, record_bytes(dict(sealed.seal)))
        _write_whole(out / STATEMENT_FILE, sealed.statement)
        _write_whole(target, sealed.contract)
    except OSError as fault:
        raise Refused(
            "E_CONTRACT_WRITE", f"the contract cannot be written: {fault.strerror}", place=Place(str(out))
        ) from None
    return target


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


def require_start(entries: Sequence[Entry], start: Snapshot, place: Path) -> None:
    """Refuse a tree that does not have what the contract sealed.

    Raises:
        Refused: ``E_START_DIFFERS`` naming the entries.
    """
    broken = unmet_entries(entries, start.files, start.symlinks)
    if broken:
        raise Refused(
            "E_START_DIFFERS",
            f"the sealed start does not have what the contract protects: {', '.join(entry.path for entry in broken)}",
            remedy="Seal the contract anew, or put the sealed files back.",
            place=Place(str(place)),
            detail=[entry.path for entry in broken],
        )
