"""How well the acceptance commands tell a change apart: mutants are made, run, and killed or not (done records §13.6).

Only what passes on the unchanged tree can kill: a command that exits with 0 there, or, where the runner reports test by
test, a test that passes there. A mutant is killed when one of those fails on it. A mutant on which a command does not
end in time counts as killed, since the command did end on the unchanged tree, many times faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from troth.observer import mutation as python
from troth.observer import mutation_trees as others
from troth.observer.commands import Bench, CommandRun, run_command
from troth.observer.contract_source import Acceptance
from troth.observer.copies import WorkCopy, write_over
from troth.observer.mutation import Mutation, spread
from troth.observer.tree import Snapshot

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many are done, and of how many."""

_SHORTEST_ALLOWED: Final = 10.0
_TIMES_BASE: Final = 5.0

_NO_CODE: Final = frozenset(
    {
        ".git", ".hg", ".tox", ".nox", ".venv", "venv", "node_modules", "site-packages", "dist-packages", "build",
        "docs", "dist", "target", "vendor", "coverage",
    }
)  # fmt: skip
"""Folders whose source files are nobody's task."""

_TEST_FOLDERS: Final = frozenset({"tests", "test", "testing", "__tests__", "spec", "e2e", "benches"})
_NOT_PROGRAM: Final = frozenset({"setup.py", "conftest.py", "noxfile.py", "build.rs"})


@dataclass(frozen=True, slots=True)
class Baseline:
    """What one command did on the unchanged tree.

    ``tests`` are the tests that passed there every time; ``steady`` says whether its runs agreed.
    """

    command: Acceptance
    runs: tuple[CommandRun, ...]

    @property
    def steady(self) -> bool:
        """Tell whether the runs ended alike, each by itself."""
        return all(run.ended_itself for run in self.runs) and len({run.exit for run in self.runs}) == 1

    @property
    def passes(self) -> bool:
        """Tell whether the command passed every time."""
        return all(run.passed for run in self.runs)

    @property
    def tests(self) -> frozenset[str]:
        """Return the names of tests that passed every time."""
        sets = [
            {name for name, outcome in run.tests.outcomes.items() if outcome == "passed"}
            for run in self.runs
            if run.ended_itself
        ]
        return frozenset(set.intersection(*sets)) if len(sets) == len(self.runs) and sets else frozenset()

    @property
    def can_kill(self) -> bool:
        """Tell whether anything passes on the unchanged tree."""
        return self.passes or bool(self.tests)

    @property
    def seconds(self) -> float:
        """Return the longest of the runs."""
        return max(run.seconds for run in self.runs)


Fate = Literal["killed", "timed_out", "survived"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mutant that was run, what became of it, and by which command it was killed."""

    mutation: Mutation
    fate: Fate
    killed_by: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the mutant as the seal lists it."""
        mutation = self.mutation
        value: dict[str, Any] = {
            "path": mutation.path,
            "line": mutation.line,
            "column": mutation.column,
            "operator": mutation.operator,
            "before": mutation.before,
            "after": mutation.after,
            "fate": self.fate,
        }
        if self.killed_by is not None:
            value["killed_by"] = self.killed_by
        return value


@dataclass(frozen=True, slots=True)
class Adequacy:
    """What the mutants showed. ``sites`` is how many mutations there were to choose from; ``reason`` says why none."""

    mutants: tuple[Mutant, ...] = ()
    sites: int = 0
    reason: str | None = None
    stopped: str | None = None
    files: tuple[str, ...] = field(default=())

    @property
    def killed(self) -> int:
        """Return how many were killed, time-outs among them."""
        return sum(mutant.fate != "survived" for mutant in self.mutants)

    def as_json(self) -> dict[str, Any]:
        """Return the account that stands in the seal."""
        return {
            "mutants": len(self.mutants),
            "killed": self.killed,
            "timed_out": sum(mutant.fate == "timed_out" for mutant in self.mutants),
            "sites": self.sites,
            "files": list(self.files),
            "reason": self.reason,
            "stopped": self.stopped,
            "survived": [
                f"{item.mutation.path}:{item.mutation.line}: {item.mutation.operator}: "
                f"{item.mutation.before!r} became {item.mutation.after!r}"
                for item in self.mutants
                if item.fate == "survived"
            ],
        }


def mutable_files(
    files: Iterable[str], *, protected: Callable[[str], bool], inside: Collection[str] | None
) -> list[str]:
    """Return the source files that may be mutated, sorted.

    Args:
        files: the names of the tree.
        protected: tells whether the contract protects a name.
        inside: paths that a file must be or lie beneath; ``None`` takes all but tests and what is nobody's task.
    """

    def wanted(path: str) -> bool:
        segments = path.split("/")
        if not (path.endswith(".py") or others.language_of(path)) or protected(path):
            return False
        if inside is not None:
            return any(path == place or path.startswith(place + "/") for place in inside)
        name = segments[-1]
        return (
            _NO_CODE.isdisjoint(segments)
            and _TEST_FOLDERS.isdisjoint(segments[:-1])
            and name not in _NOT_PROGRAM
            and not name.startswith("test_")
            and not name.endswith("_test.py")
            and not others.holds_tests(path)
            and not (name.endswith(".go") and any(map(_passed_over_by_go, segments)))
        )

    return sorted(path for path in files if wanted(path))


def _passed_over_by_go(segment: str) -> bool:
    return segment.startswith(("_", ".")) or segment == "testdata"


def _allowed(bench: Bench, base: Baseline) -> float:
    return min(bench.limits.seconds, max(_SHORTEST_ALLOWED, _TIMES_BASE * base.seconds + 5.0))


def _judge(bench: Bench, copy: Path, base: Baseline) -> Fate:
    """Run one command on a mutant and say what that shows."""
    run = run_command(bench, copy, base.command.argv, seconds=_allowed(bench, base), stop_early=base.passes)
    if run.timed_out:
        return "timed_out"
    if base.passes and not run.passed:
        return "killed"
    if not base.passes and any(run.tests.outcomes.get(name) != "passed" for name in base.tests):
        return "killed"
    return "survived"


def measure(
    bench: Bench,
    pristine: Path,
    tree: Snapshot,
    baselines: Sequence[Baseline],
    candidates: Sequence[str],
    *,
    limit: int,
    budget: float,
    first: Collection[str] = (),
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Adequacy:
    """Make mutants one at a time on a copy and run the commands on each until one kills it.

    Args:
        bench: where commands run.
        pristine: the unchanged tree, without caches; it is not written to.
        tree: the snapshot of ``pristine``.
        baselines: what the commands did on it.
        candidates: files that may be mutated.
        limit: most mutants to run.
        budget: seconds after which no further mutant is begun.
        first: files whose mutations come before those of the others.
        progress: called with mutants done and planned.
        clock: monotonic seconds.
    """
    deadline = clock() + budget
    if limit == 0:
        return Adequacy(reason="no mutants were asked for")
    usable = [base for base in baselines if base.steady and base.can_kill]
    if not usable:
        return Adequacy(reason=_why_unusable(baselines))
    sources = {path: (pristine / path).read_bytes() for path in candidates if path in tree.files}
    by_file: dict[str, list[Mutation]] = {path: _mutations(path, data) for path, data in sources.items()}
    sites = sum(map(len, by_file.values()))
    if not sites:
        return Adequacy(reason=_why_no_sites(candidates))
    planned = min(limit, sites)
    done: list[Mutant] = []
    stopped: str | None = None
    with bench.folder() as scratch:
        copy = WorkCopy.of(pristine, scratch / "copy")
        for mutation in spread(by_file, first):
            if len(done) >= planned:
                break
            if clock() >= deadline:
                stopped = f"the time budget of {budget:g} seconds was used up"
                break
            if not _is_real(mutation, sources[mutation.path]):
                continue
            if progress is not None:
                progress(len(done), planned)
            write_over(copy.place, mutation.path, mutation.applied(sources[mutation.path]))
            mutant = Mutant(mutation, "survived")
            for base in usable:
                fate = _judge(bench, copy.place, base)
                if fate != "survived":
                    mutant = Mutant(mutation, fate, base.command.id)
                    break
                # What one command left behind must not decide for the next: only the mutation stays.
                copy.restore()
                write_over(copy.place, mutation.path, mutation.applied(sources[mutation.path]))
            done.append(mutant)
            copy.restore()
        if progress is not None:
            progress(len(done), planned)
    return Adequacy(
        mutants=tuple(done),
        sites=sites,
        reason=None if done else stopped,
        stopped=stopped,
        files=tuple(sorted({mutant.mutation.path for mutant in done})),
    )


def _mutations(path: str, data: bytes) -> list[Mutation]:
    return python.mutations(path, data) if path.endswith(".py") else others.mutations(path, data)


def _is_real(mutation: Mutation, data: bytes) -> bool:
    return python.is_real(mutation, data) if mutation.path.endswith(".py") else others.is_real(mutation, data)


def _why_no_sites(candidates: Sequence[str]) -> str:
    absent = others.missing(candidates)
    if absent:
        return f"mutants of {', '.join(absent)} need the extra {others.EXTRA!r}: pip install 'troth[{others.EXTRA}]'"
    known = sorted({"Python", *(language.name for language in others.LANGUAGES.values())})
    return f"no unprotected source to make mutants of (of {', '.join(known)})"


def _why_unusable(baselines: Sequence[Baseline]) -> str:
    if any(not base.steady for base in baselines):
        return "no acceptance command ends alike twice on the unchanged tree, or one did not end"
    if any(run.nothing_executed for base in baselines for run in base.runs):
        return "no acceptance command executes a test on the unchanged tree"
    return "nothing passes on the unchanged tree; a finished one can be given with --reference"
