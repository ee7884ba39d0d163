"""Grading: the contract's acceptance commands on a copy of the final tree, in a sandbox of their own.

The copy has the contract's protected paths, and everything beneath them, as the sealed start had it; whatever was
planted there is gone, and so are caches, and the lists by which the metadata of a package makes a runner load plugins.
Every run has a copy of its own, so commands do not build on each other. What is written down is what the commands did
(done records §4.5, §13.5, §13.10); nothing here decides.

Limits, told in the report: the tests run the workspace's own code in one process with the runner, so code that is bent
on it can forge a runner's account of itself. An account can only take a result away here, it never makes one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused
from troth.observer.autoload import names_plugins
from troth.observer.commands import Bench, CommandRun, run_command
from troth.observer.contract_source import RunLimits
from troth.observer.copies import (
    CACHES,
    change_times_above,
    copy_workspace,
    differing,
    drop_bytecode,
    folders_of_protected,
    marks_of_protected,
    only_times_moved,
    put_back,
    unprotected_bytecode,
)
from troth.observer.limits import described
from troth.observer.protected import Entry, entries_of, require_start
from troth.observer.runners import recognise
from troth.observer.sandbox import UID
from troth.observer.tools import require_tools, tools_of
from troth.observer.tree import Snapshot, snapshot
from troth.observer.watching import FileWatch, NameWatch
from troth.receipts import records
from troth.receipts.strict import parse

GRADE_VERSION: Final = "probity-acceptance-grade/v1"
REPORT_VERSION: Final = "troth-grade-report/v1"
PRODUCER: Final = "troth-verifier"
"""Default ``producer`` of the grade: the verifier, never the agent."""

SHOWN_OUTPUT: Final = 64 << 10
"""Bytes of a command's output that the report keeps: the beginning and the end."""

_NO_RESULT: Final[Mapping[str, str]] = {
    "not_started": "the program could not be started in the sandbox",
    "timed_out": "it did not end within its time limit and was ended by the verifier",
    "too_many_processes": "it started more processes than its limit and was ended by the verifier",
    "out_of_memory": "it used more memory than its limit and was ended",
    "too_much_output": "it printed more than its limit and was ended by the verifier",
    "too_much_written": "it wrote more to the disk than its limit and was ended by the verifier",
    "nothing_executed": "it executed no test",
    "exit_belied": "it ended with 0 although it told of tests that failed",
    "runs_disagree": "it is flaky: its repeated runs do not agree",
    "protected_written": "it passed after something wrote to protected paths while it ran",
}
"""Why a command has no result (done records §13.5), in words."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The grade record's bytes, the side report, and the isolation report (done records §4.5, §13.5, §13.10)."""

    record: bytes
    report: Mapping[str, Any]
    isolation: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Command:
    id: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One run on one copy, and the protected names that were written while it ran."""

    run: CommandRun
    written: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Ground:
    """What every run starts from.

    ``times_set`` names protected files whose times the commands themselves set, ``emptied`` the excluded
    segments beneath each protected folder where nothing stood at sealing, ``bytecode`` what may be bytecode in the
    place of a source, ``sealed_bytecode`` the digests of what was when the contract was sealed, and ``still`` the
    entries at or below which the commands made no name then.
    """

    bench: Bench
    final_tree: Path
    tree: Snapshot
    start: Path
    entries: Sequence[Entry]
    times_set: frozenset[str]
    emptied: Mapping[str, frozenset[str]]
    bytecode: Sequence[str]
    sealed_bytecode: Mapping[str, Any]
    still: Sequence[Entry]
    dropped: set[str] = field(default_factory=set)

    def attempt(self, command: _Command) -> _Attempt:
        """Run a command on a fresh copy with the protected paths put back."""
        with self.bench.folder() as place:
            copy = place / "copy"
            copy_workspace(self.final_tree, self.tree, copy)
            reset(copy, self.start, self.entries, self.emptied)
            for name in _plugin_lists(self.tree):
                put_back(copy, self.start, name)
            self.dropped.update(drop_bytecode(copy, self.bytecode, self.sealed_bytecode))
            before = marks_of_protected(copy, self.entries)
            above = change_times_above(copy, before)
            watch = FileWatch(copy, sorted(self.times_set & before.keys()), above)
            names = NameWatch(copy, folders_of_protected(copy, self.still))
            run = run_command(self.bench, copy, command.argv)
            seen = watch.finish()
            made = {name for name in names.finish() if any(entry.protects(name) for entry in self.still)}
            if names.overflow:  # any of them may have been there for a moment
                made.update(entry.path for entry in self.still)
            after = marks_of_protected(copy, self.entries)
            now = change_times_above(copy, before)
        moved = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        harmless = {
            name
            for name in moved & self.times_set
            if name not in seen | watch.blind and only_times_moved(before.get(name), after.get(name))
        }
        # Files that another folder stood before for a while are untouched; the folder's own move tells.
        swapped = {name for name in above if name in seen or (name in watch.blind and above[name] != now.get(name))}
        return _Attempt(run, tuple(sorted(moved - harmless | swapped | made)))


def _why_no_result(attempts: Sequence[_Attempt]) -> str | None:
    """Return why the runs of one command are no result, or ``None`` when they are one."""
    runs = [attempt.run for attempt in attempts]
    # An end that we made says nothing of how the program would have ended: it neither passes nor fails.
    for run in runs:
        if run.ended is not None:
            return run.ended
    if len({run.exit for run in runs}) > 1:
        return "runs_disagree"
    if any(run.nothing_executed for run in runs):
        return "nothing_executed"
    if any(run.belies_exit for run in runs):
        return "exit_belied"
    # Code under test that writes to the tests while they run passes its own; a failure needs no such doubt.
    return "protected_written" if any(it.written for it in attempts) and runs[0].exit == 0 else None


def _cut(output: bytes) -> str:
    if len(output) > SHOWN_OUTPUT:
        half = SHOWN_OUTPUT // 2
        left_out = len(output) - 2 * half
        output = output[:half] + f"\n… {left_out} bytes left out …\n".encode() + output[-half:]
    return output.decode("utf-8", "backslashreplace")


def _run_json(attempt: _Attempt) -> dict[str, Any]:
    run = attempt.run
    return {
        "exit": run.exit,
        "ended_itself": run.ended_itself,
        "seconds": round(run.seconds, 3),
        "tests": run.tests.as_json(),
        "failing": sorted(name for name, how in run.tests.outcomes.items() if how in ("failed", "error")),
        "skipped": sorted(name for name, how in run.tests.outcomes.items() if how == "skipped"),
        "protected_written": list(attempt.written),
        "output": _cut(run.output),
        "output_cut": run.output_cut or len(run.output) > SHOWN_OUTPUT,
        "output_bytes": run.written,
        "output_sha256": run.output_sha256,
        "left_running": list(run.left),
        "left_its_session": run.strayed,
    }


def _flaky(attempts: Sequence[_Attempt]) -> dict[str, list[str]]:
    """Return the tests that did not end alike in every run of the same tree, each with its outcomes in order."""
    reported = [it.run.tests.outcomes for it in attempts if it.run.tests.source == "report"]
    names = sorted({name for outcomes in reported for name in outcomes})
    told = {name: [outcomes.get(name, "not_run") for outcomes in reported] for name in names}
    return {name: outcomes for name, outcomes in told.items() if len(set(outcomes)) > 1}


def _tests_json(run: CommandRun) -> dict[str, Any]:
    # Whoever counts needs both numbers or none.
    counts = run.tests.as_json()
    return {"executed": None, "passed": None, **counts}


def _against_sealed(command: _Command, run: CommandRun, seal: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Compare a run with the same command's at sealing: fewer tests executed, or named ones not among them."""
    if seal is None:
        return None
    known = next(
        (item for item in seal.get("commands", ()) if isinstance(item, dict) and item.get("id") == command.id), None
    )
    if known is None:
        return None
    counted = known.get("tests")
    before = counted.get("executed") if isinstance(counted, dict) else None
    now = run.tests.executed
    names = known.get("passed")
    sealed_names = {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    ran = {name for name, how in run.tests.outcomes.items() if how in ("passed", "failed", "error")}
    fewer = before - now if isinstance(before, int) and now is not None else None
    return {
        "executed_at_sealing": before,
        "executed_now": now,
        "fewer": fewer if fewer is not None and fewer > 0 else 0,
        "not_executed_now": sorted(sealed_names - ran) if run.tests.source == "report" else [],
    }


def _times_set(seal: Mapping[str, Any] | None) -> frozenset[str]:
    names = (seal or {}).get("times_set")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def _emptied(seal: Mapping[str, Any] | None) -> dict[str, frozenset[str]]:
    found = (seal or {}).get("excludes_empty")
    return {
        path: frozenset(name for name in names if isinstance(name, str))
        for path, names in (found.items() if isinstance(found, dict) else ())
        if isinstance(names, list)
    }


def _still(seal: Mapping[str, Any] | None, entries: Sequence[Entry]) -> list[Entry]:
    found = (seal or {}).get("made")
    made = [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    return [entry for entry in entries if not any(entry.covers(name) for name in made)]


def _sealed_bytecode(seal: Mapping[str, Any] | None) -> Mapping[str, Any]:
    found = (seal or {}).get("bytecode")
    return found if isinstance(found, dict) else {}


def _interpreter(bench: Bench, argv: Sequence[str]) -> dict[str, str]:
    """Return the interpreter the commands run with: the first one's own when it names a Python, else this one."""
    program = argv[0].rsplit("/", 1)[-1]
    path = bench.environment(argv, "", caches=True, stop_early=False)["PATH"]
    found = shutil.which(argv[0], path=path) if program.startswith("python") else None
    real = os.path.realpath(found or sys.executable)
    with open(real, "rb") as file:
        return {"path": real, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def reset(copy: Path, start: Path, entries: Sequence[Entry], emptied: Mapping[str, Collection[str]]) -> None:
    """Put every protected path of the copy back to what the sealed start has, excluded names beneath it included.

    ``emptied`` names the excluded segments beneath an entry where nothing stood when the contract was sealed, so that
    nothing does now: what the start has there an earlier run has left, and it may be bent.
    """
    for entry in sorted(entries, key=lambda item: item.path.count("/")):
        put_back(copy, start, entry.path, without=emptied.get(entry.path, ()))


def _plugin_lists(tree: Snapshot) -> list[str]:
    return sorted(name for name in (*tree.files, *tree.symlinks) if names_plugins(name))


def _told_of_plugins(final: Snapshot, start: Snapshot) -> list[str]:
    lists = _plugin_lists(final)
    return [name for name in lists if name in final.symlinks or final.files[name] != start.files.get(name)]


def _told_of_tree(final: Snapshot, start: Snapshot, entries: Sequence[Entry]) -> dict[str, Any]:
    """Return what was put back, in names: what the agent's tree had otherwise beneath the protected paths."""

    def covered(name: str) -> bool:
        return any(entry.covers(name) for entry in entries)

    ours = {name: digest for name, digest in final.files.items() if covered(name)}
    sealed = {name: digest for name, digest in start.files.items() if covered(name)}
    differs = differing(ours, sealed) | {name for name in differing(final.symlinks, start.symlinks) if covered(name)}
    return {
        "put_back": sorted(name for name in differs if CACHES.isdisjoint(name.split("/"))),
        "caches_dropped": sorted(
            {
                "/".join(parts[: index + 1])
                for parts in (name.split("/") for name in final.files)
                for index, segment in enumerate(parts)
                if segment in CACHES
            }
        ),
        "plugin_lists_put_back": _told_of_plugins(final, start),
        "hides_a_standard_module": sorted(
            name
            for name in final.files
            if "/" not in name and name.endswith(".py") and name[:-3] in sys.stdlib_module_names
        ),
    }


def grade(
    contract_bytes: bytes,
    final_tree: Path,
    sealed_start: Path,
    *,
    tree_sha256: str,
    claim_id: str,
    invocation_id: str,
    inside: str | None = None,
    producer: str = PRODUCER,
    witness_scope: str = "PEER",
    repeats: int = 1,
    limits: RunLimits | None = None,
    seal: Mapping[str, Any] | None = None,
    final: Snapshot | None = None,
    scratch: Path | None = None,
) -> Grade:
    """Run a contract's acceptance commands on a copy of the final tree and write what they did.

    Args:
        contract_bytes: the very bytes of the sealed contract.
        final_tree: the workspace as the agent left it; nothing in it is changed or run in place.
        sealed_start: a folder with the protected paths, and the lists of plugins (:func:`names_plugins`), as they were
            before the run.
        tree_sha256: the final tree record's digest; the folder has to have it still.
        claim_id: the claim that is graded.
        invocation_id: the run that is graded.
        inside: the absolute path at which the copy stands in the sandbox; the final tree's own by default.
        producer: who says so in the record.
        witness_scope: ``PEER`` or ``EXTERNAL``.
        repeats: how often each command is run, each time on a fresh copy; runs that disagree are no result.
        limits: what a command may use; those of the seal, or the defaults.
        seal: the side report of sealing: the limits, the tools, and how a suite was, to tell one that has shrunk since.
        final: an earlier snapshot of the final tree, which spares reading unchanged files again.
        scratch: where copies are made.

    Raises:
        Refused: a code of §4.1 for the contract, ``E_START_DIFFERS``, ``E_GRADE_TREE_DIFFERS``, ``E_TOOLS_CHANGED``,
            ``E_SEAL_MALFORMED``, ``E_OBSERVER_MISSING``, or a code of the tree.
    """
    contract = records.contract(parse(contract_bytes, "contract"))
    entries = entries_of(contract)
    start = snapshot(sealed_start)
    require_start(entries, start, sealed_start)
    tree = snapshot(final_tree, before=final)
    if tree.digest != tree_sha256:
        raise Refused(
            "E_GRADE_TREE_DIFFERS",
            "the folder is not the tree that is to be graded",
            remedy="Grade the tree as the run left it.",
            place=Place(str(final_tree)),
            detail={"expected": tree_sha256, "found": tree.digest},
        )
    tools = tools_of(seal)
    commands = [_Command(item["id"], tuple(item["argv"])) for item in contract["acceptance"]]
    chosen = limits if limits is not None else RunLimits.from_json((seal or {}).get("limits"))
    bench = Bench(
        inside=inside or str(final_tree.resolve()),
        limits=chosen,
        scratch=scratch,
        trusted=lambda path: any(entry.covers(path) for entry in entries),
        tools=require_tools(tools),
    )
    ground = _Ground(
        bench, final_tree, tree, sealed_start, entries, _times_set(seal), _emptied(seal),
        sorted({*unprotected_bytecode(tree, entries), *unprotected_bytecode(start, entries)}), _sealed_bytecode(seal),
        _still(seal, entries),
    )  # fmt: skip
    results: list[dict[str, Any]] = []
    told: list[dict[str, Any]] = []
    firsts: list[CommandRun] = []
    for command in commands:
        attempts = [ground.attempt(command) for _ in range(repeats)]
        first = attempts[0].run
        firsts.append(first)
        why = _why_no_result(attempts)
        if why is None:
            results.append({"id": command.id, "argv": list(command.argv), "exit": first.exit})
        told.append(
            {
                "id": command.id,
                "argv": list(command.argv),
                "runner": recognise(command.argv),
                "exit": first.exit if why is None else None,
                "result": "recorded" if why is None else "none",
                "why": why,
                "words": _NO_RESULT[why] if why is not None else None,
                "tests": _tests_json(first),
                "against_sealed": _against_sealed(command, first, seal),
                "flaky": _flaky(attempts),
                "runs": [_run_json(attempt) for attempt in attempts],
            }
        )
    contract_sha256 = sha256_hex(contract_bytes)
    record = {
        "schema_version": GRADE_VERSION,
        "claim_id": claim_id,
        "invocation_id": invocation_id,
        "producer": producer,
        "vantage": "independent",
        "witness_scope": witness_scope,
        "contract_sha256": contract_sha256,
        "tree_sha256": tree_sha256,
        "results": results,
    }
    return Grade(
        record=record_bytes(records.grade(record)),
        report={
            "schema_version": REPORT_VERSION,
            "contract_sha256": contract_sha256,
            "tree_sha256": tree_sha256,
            "commands": told,
            "tools": [tool.as_json() for tool in tools],
            **_told_of_tree(tree, start, entries),
            "bytecode_dropped": sorted(ground.dropped),
            "limits_of_this_report": (
                "Test counts come from the process that runs the workspace's code: they can take a result away and "
                "never make one."
            ),
        },
        isolation=isolation(bench, contract_sha256, entries, firsts, repeats),
    )


def isolation(
    bench: Bench, contract_sha256: str, entries: Sequence[Entry], runs: Sequence[CommandRun], repeats: int
) -> dict[str, Any]:
    """Return the verifier's account of its own isolation: exactly the members of done records §13.10."""
    return {
        "contract_sha256": contract_sha256,
        "network": "none",
        "root": "read_only",
        "uid": UID,
        "capabilities": "none",
        "reset_paths": sorted(entry.path for entry in entries),
        "environment": sorted({name for run in runs for name in run.environment}),
        "limits": described(bench.limits, dict(runs[0].enforced)),
        "interpreter": _interpreter(bench, runs[0].argv),
        "repeats": repeats,
    }
