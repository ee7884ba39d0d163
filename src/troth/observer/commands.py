"""Running one acceptance command on a copy of a tree, in a sandbox of its own, within limits."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from troth.core.digests import EMPTY
from troth.observer.confine import Ended, run_confined
from troth.observer.contract_source import RunLimits
from troth.observer.folders import remove_tree
from troth.observer.reports import MAX_REPORT, UNKNOWN, Counts
from troth.observer.runners import (
    HOOK,
    Runner,
    asked_of_node,
    belies_exit,
    count_tests,
    executed_nothing,
    has_own_report,
    recognise,
    report_arguments,
)
from troth.observer.sandbox import HOME, SandboxSpec, base_environment, toolchain
from troth.observer.toolchains import places
from troth.observer.tools import search_path, unsealed_folders

_HOOK_FOLDER: Final = Path(__file__).parent / "reporting"
_INSIDE_TMP: Final = "/tmp"  # noqa: S108 - the sandbox's own private folder


@dataclass(frozen=True, slots=True)
class CommandRun:
    """How one command ended on one copy.

    ``exit`` is the program's own, minus the signal's number when one ended it. It is no result of the program when
    ``ended`` says that it could not be started or why we ended it. ``left`` names what it left running, ``strayed``
    counts those that had left its session; ``enforced`` says by what its limits were enforced, ``environment`` names
    its variables.
    """

    argv: tuple[str, ...]
    runner: Runner
    exit: int
    output: bytes = field(repr=False)
    output_cut: bool
    seconds: float
    ended: Ended | None = None
    tests: Counts = UNKNOWN
    written: int = 0
    output_sha256: str = EMPTY
    left: tuple[str, ...] = ()
    strayed: int = 0
    enforced: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: tuple[str, ...] = ()

    @property
    def started(self) -> bool:
        """Tell whether the program ran at all."""
        return self.ended != "not_started"

    @property
    def timed_out(self) -> bool:
        """Tell whether its time ended it."""
        return self.ended == "timed_out"

    @property
    def ended_itself(self) -> bool:
        """Tell whether the exit is the program's own."""
        return self.ended is None

    @property
    def nothing_executed(self) -> bool:
        """Tell whether the run is known to have executed no test."""
        return executed_nothing(self.runner, self.exit, self.tests, own_report=has_own_report(self.argv))

    @property
    def belies_exit(self) -> bool:
        """Tell whether the run ended with 0 although its account has tests that failed."""
        return belies_exit(self.exit, self.tests)

    @property
    def passed(self) -> bool:
        """Tell whether this is a pass: an exit of 0 of its own, and no account that speaks against it."""
        return self.ended_itself and self.exit == 0 and not self.nothing_executed and not self.belies_exit


BYTECODE_ANEW: Final = {"PYTHONPYCACHEPREFIX": "/tmp/.cache/bytecode"}  # noqa: S108 - the sandbox's own private folder
"""Each run compiles what it imports into its own folder. No digest of tools holds their bytecode, which is not shown
either, since a Python that is told to ignore its environment looks for it in its usual place."""


def nothing(_path: str) -> bool:
    """Trust nothing within the workspace: where no contract says what an agent could not have made."""
    return False


@dataclass(frozen=True, slots=True)
class Bench:
    """Where commands run: the path at which a copy stands inside, the limits, and where scratch folders are made.

    ``trusted`` tells of a path within the workspace whether programs may be looked up there by name; without it the
    search path is taken as it is. ``tools`` are the folders outside of it that are shown read-only (``tools.py``).
    """

    inside: str
    limits: RunLimits = field(default_factory=RunLimits)
    scratch: Path | None = None
    source_environment: Mapping[str, str] | None = None
    trusted: Callable[[str], bool] | None = None
    tools: tuple[Path, ...] = ()
    emptied: tuple[Path, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "emptied", unsealed_folders(self.tools))

    @property
    def read_only(self) -> tuple[Path, ...]:
        """Return the folders that every run sees beside the system and its copy."""
        return (*toolchain(), *self.tools)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Make an owner-only scratch folder, and remove it whatever the sandbox left in it."""
        path = Path(tempfile.mkdtemp(prefix="troth-", dir=self.scratch))
        try:
            yield path
        finally:
            remove_tree(path)

    def _may_search(self, folder: str) -> bool:
        """Tell whether programs may be found in a folder of the search path: not in one that the agent could fill."""
        if self.trusted is None:
            return True
        if not folder.startswith("/"):
            return False
        real = os.path.normpath(folder)
        own = any(real == str(root) or real.startswith(f"{root}/") for root in self.read_only)
        if own or not (real == self.inside or real.startswith(self.inside.rstrip("/") + "/")):
            return True
        return self.trusted(os.path.relpath(real, self.inside))

    def plain_environment(self, *, caches: bool = True) -> dict[str, str]:
        """Return the environment of a run of which no runner is asked anything."""
        values = base_environment(caches=caches, source=self.source_environment, programs=search_path(self.tools))
        values["PATH"] = ":".join(part for part in values["PATH"].split(":") if self._may_search(part))
        if self.tools and caches:
            values |= BYTECODE_ANEW
            del values["PYTHONDONTWRITEBYTECODE"]
        return values

    def environment(self, argv: Sequence[str], report: str, *, caches: bool, stop_early: bool) -> dict[str, str]:
        """Return the whole environment of a run; the runners' own variables carry what is asked of them."""
        values = self.plain_environment(caches=caches)
        words = [values.get("PYTEST_ADDOPTS", ""), report_arguments(argv, report), "--maxfail=1" if stop_early else ""]
        values["PYTEST_ADDOPTS"] = " ".join(word for word in words if word)
        if recognise(argv) == "unittest":
            values |= {"PYTHONPATH": HOOK, "TROTH_TEST_REPORT": report}
        of_node = asked_of_node(argv, report)
        if of_node and _node_takes_reporters(shutil.which("node", path=values["PATH"]), self.read_only):
            values["NODE_OPTIONS"] = of_node
        return values


@lru_cache(maxsize=4)
def _node_takes_reporters(program: str | None, read_only: tuple[Path, ...]) -> bool:
    """Tell whether a node of the system takes reporters from its environment; an older one would refuse to start."""
    trusted = ("/usr", *map(str, read_only))
    real = os.path.realpath(program) if program is not None else ""
    # Only what the sandbox shows read-only is asked; a workspace's own node is not run out here.
    if not any(real.startswith(root + "/") for root in trusted):
        return False
    asked = "process.allowedNodeEnvironmentFlags.has('--test-reporter-destination')"
    try:
        answer = subprocess.run(
            [real, "-p", asked], env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.strip() == b"true"


def _read_report(path: Path) -> bytes | None:
    # The sandbox wrote this: it may be a link to anywhere, a pipe that never ends, or too large.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as file:
        return file.read(MAX_REPORT + 1)


def run_command(
    bench: Bench,
    copy: Path,
    argv: Sequence[str],
    *,
    seconds: float | None = None,
    caches: bool = True,
    stop_early: bool = False,
) -> CommandRun:
    """Run a command on a copy of a tree, which it may write to, without a network and with a private tmp and home.

    Args:
        bench: path inside, limits, scratch.
        copy: host folder with the copy.
        argv: exactly the contract's vector.
        seconds: time allowed when less than the limits'.
        caches: keep well-known caches out of the workspace; without it the run writes what a plain run writes.
        stop_early: ask pytest to stop at the first failure.

    Raises:
        Refused: ``E_OBSERVER_MISSING`` when a program of the sandbox is not installed.
    """
    runner = recognise(argv)
    name = f"troth-{secrets.token_hex(12)}.xml"
    with bench.folder() as private:
        spec = SandboxSpec(
            workspace=copy,
            inside=bench.inside,
            private=private,
            environment=bench.environment(argv, f"{_INSIDE_TMP}/{name}", caches=caches, stop_early=stop_early),
            read_only=bench.read_only,
            emptied=bench.emptied,
            shown=((_HOOK_FOLDER, HOOK),) if runner == "unittest" else (),
            links=places(bench.tools, HOME),
        )
        limits = bench.limits
        allowed = limits.seconds if seconds is None else min(seconds, limits.seconds)
        done = run_confined(spec, argv, limits, seconds=allowed)
        report = _read_report(private / "tmp" / name)
    return CommandRun(
        argv=tuple(argv),
        runner=runner,
        exit=done.exit,
        output=done.output,
        output_cut=done.output_cut,
        seconds=done.seconds,
        ended=done.ended,
        tests=count_tests(argv, report, done.output, whole=not done.output_cut),
        written=done.written,
        output_sha256=done.output_sha256,
        left=done.left,
        strayed=done.strayed,
        enforced=done.enforced,
        environment=tuple(sorted(spec.environment)),
    )
