"""Observing one run: seal the start, launch under the sensors, read what they saw, write the records.

Nothing here decides whether the agent kept its word; the result is records (done records §4, §13).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from troth.core.canonical import record_bytes
from troth.core.errors import Place, Refused
from troth.core.instants import Clock, system_clock
from troth.observer import records as rec
from troth.observer.autoload import names_plugins
from troth.observer.claims import MAX_BYTES as MAX_CLAIMS
from troth.observer.claims import Claims, read_claims
from troth.observer.credentials import Search, cut_claims, cut_report, cut_values, vectors_of
from troth.observer.events import TraceReport, read_trace
from troth.observer.launch import Launched, launch
from troth.observer.profiles import Granted
from troth.observer.sandbox import (
    CLAIMS,
    HOME,
    UID,
    SandboxSpec,
    base_environment,
    bwrap_version,
    program_seen,
    require_reachable,
    root_digest,
    toolchain,
)
from troth.observer.sources import REPORT, Gathered, Places, gather, parse_source
from troth.observer.syscalls import strace_argv, strace_version, trace_expression
from troth.observer.toolchains import places
from troth.observer.tools import search_path
from troth.observer.tree import Snapshot, copy_tree, links_outside, snapshot, tarball_digest
from troth.observer.watching import TreeWatch, watching

DEFAULT_TIMEOUT: Final = 3600.0
"""Seconds a run may take unless told otherwise (ledger spec §16)."""

_FORBIDDEN_WORKSPACES: Final = ("/", "/usr", "/bin", "/lib", "/etc", "/proc", "/dev", "/run", "/home", "/root", "/tmp")  # noqa: S108 - refused, not used


@dataclass(frozen=True, slots=True)
class Request:
    """What to observe.

    Args:
        workspace: host folder in which the agent works.
        argv: the agent's program and arguments.
        claim_id: the commitment's id.
        invocation_id: the run's id.
        private: owner-only folder for the tracer's files and the sandbox's home and tmp; must be empty.
        protects: tells whether a path of the tree belongs to the contract (those are copied to the sealed start).
        timeout: seconds.
        network: let the sandbox reach the network.
        allow_read: further host paths the agent may read.
        allow_write: further host paths the agent may write.
        env: names of variables handed on to the agent; values stand in no record.
        granted: what the agent's profile gives beside these.
        tools: folders that the contract was sealed with (``tools.py``): read, and searched for programs first.
        claims_file: a claims file kept by a harness outside the sandbox, instead of ``TROTH_CLAIMS``.
        transcripts: where the agent's own records of what it ran lie, as ``sources.parse_source`` reads them.
        terminal: give the agent a terminal; by default when this process has one.
        show: descriptors on which the agent's output is shown, or ``None``.
        redact: cut what looks like a credential out of the records' argument lists; coverage is lost where one was.
        keep_trace: leave the tracer's file and the agent's output, which can hold secrets, in ``private``.
        known: an earlier snapshot of the workspace, which spares reading unchanged files again.
        accept: called with the start as it was sealed, before anything runs; it refuses by raising.
    """

    workspace: Path
    argv: Sequence[str]
    claim_id: str
    invocation_id: str
    private: Path
    protects: Callable[[str], bool]
    timeout: float = DEFAULT_TIMEOUT
    network: bool = False
    allow_read: tuple[Path, ...] = ()
    allow_write: tuple[Path, ...] = ()
    env: tuple[str, ...] = ()
    granted: Granted = field(default_factory=Granted)
    tools: tuple[Path, ...] = ()
    claims_file: Path | None = None
    transcripts: tuple[str, ...] = ()
    terminal: bool | None = None
    show: tuple[int, int] | None = (1, 2)
    redact: bool = False
    keep_trace: bool = False
    known: Snapshot | None = None
    accept: Callable[[Snapshot], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Observed:
    """What came of it: the records by file name, the trees, and the facts that no record has a member for.

    ``secrets`` is the side report's account of credentials; ``agent_argv`` the agent's words as the records have them.
    """

    files: Mapping[str, bytes]
    origin: rec.Origin
    before: Snapshot
    after: Snapshot
    sealed_start: Path
    launched: Launched
    report: TraceReport
    gathered: Gathered
    coverage_faults: tuple[str, ...]
    seconds: float
    secrets: Mapping[str, Any]
    agent_argv: tuple[str, ...]


def check_workspace(workspace: Path) -> None:
    """Refuse folders that cannot be mounted safely as a workspace.

    Raises:
        Refused: ``E_WORKSPACE_UNFIT``.
    """
    resolved = str(workspace)
    if resolved in _FORBIDDEN_WORKSPACES or resolved.startswith(("/usr/", "/proc/", "/dev/", "/sys/", "/etc/")):
        raise Refused(
            "E_WORKSPACE_UNFIT", "a system folder cannot be a workspace", place=Place(resolved),
            remedy="Work in a folder of its own.",
        )  # fmt: skip
    sealed = [path for path in toolchain() if workspace in path.parents]
    for own in (Path(__file__).resolve().parents[1], *toolchain()):
        if (own == workspace or workspace in own.parents) and not any(own.is_relative_to(path) for path in sealed):
            raise Refused(
                "E_WORKSPACE_UNFIT", f"troth itself is loaded from the workspace ({own})",
                place=Place(resolved), remedy="The agent could change it: install troth outside of the workspace.",
            )  # fmt: skip
    owner = workspace.stat().st_uid
    if os.geteuid() == 0 and owner != 0:
        raise Refused(
            "E_WORKSPACE_UNFIT", f"the folder belongs to the user with id {owner}, and troth runs as root",
            place=Place(resolved), remedy="Run troth as the owner of the workspace.",
        )  # fmt: skip
    if not os.access(workspace, os.W_OK):
        raise Refused("E_WORKSPACE_UNFIT", "the folder cannot be written", place=Place(resolved))


def check_request(request: Request) -> None:
    """Refuse what can be known to be wrong before anything is begun.

    Raises:
        Refused: ``E_WORKSPACE_UNFIT``, ``E_SANDBOX_UNREACHABLE``; ``E_AGENT_NOT_STARTED`` for a program the sandbox
            does not show; ``E_CLAIMS_UNREADABLE`` for a claims file that can be none; ``E_TRANSCRIPT_FORMAT``;
            ``E_NOT_TEXT`` for words no record can hold.
    """
    paths = (*request.allow_read, *request.allow_write, *request.tools)
    words = [str(request.workspace), *request.argv, *map(str, paths)]
    words += map(str, (*request.granted.read_only, *(path for path, _ in request.granted.lent)))
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise Refused("E_NOT_TEXT", f"no record can hold a word that is not UTF-8: {word!r}") from None
    check_workspace(request.workspace)
    spec = _spec(request)
    require_reachable((spec.workspace, *spec.read_only, *spec.writable, *(path for path, _ in spec.shown)))
    if not program_seen(spec, request.argv[0]):
        raise _not_started(request.argv[0])
    for word in request.transcripts:
        parse_source(word)
    claims = request.claims_file
    if claims is not None and (claims.is_symlink() or (claims.exists() and not claims.is_file())):
        raise Refused("E_CLAIMS_UNREADABLE", "the claims file is no regular file", place=Place(str(claims)))


def _not_started(program: str) -> Refused:
    return Refused(
        "E_AGENT_NOT_STARTED", f"the program {program!r} could not be started in the sandbox",
        remedy="Name it by a path the sandbox sees, or make its folder visible with --allow-read.",
    )  # fmt: skip


def _spec(request: Request) -> SandboxSpec:
    own = request.claims_file is None
    return SandboxSpec(
        workspace=request.workspace,
        inside=str(request.workspace),
        private=request.private,
        environment=base_environment(claims=own, programs=search_path(request.tools)) | dict(request.granted.settings),
        secrets={name: os.environ[name] for name in handed_on(request) if name in os.environ},
        read_only=(*toolchain(), *request.tools, *request.granted.read_only, *request.allow_read),
        writable=request.allow_write,
        network=request.network or request.granted.network,
        shown=request.granted.lent,
        links=(*request.granted.links, *places(request.tools, HOME)),
        claims=request.private / "claims.jsonl" if own else None,
    )


def handed_on(request: Request) -> tuple[str, ...]:
    """Return the names of the variables that are handed on: those asked for, then those of the profile."""
    return tuple(dict.fromkeys((*request.env, *request.granted.env)))


def _furnish(request: Request) -> None:
    """Write the profile's own files into the private home."""
    for name, text in request.granted.files.items():
        file = request.private / "home" / name
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _claims_of(path: Path) -> Claims:
    """Read the claims; a file that is not there, or no file, claims nothing and is told."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as fault:
        return Claims(entries=(), lines=0, refused=((0, f"the claims file cannot be opened: {fault.strerror}"),))
    with open(descriptor, "rb") as file:
        try:
            return read_claims(file.read(MAX_CLAIMS + 1))
        except OSError as fault:
            return Claims(entries=(), lines=0, refused=((0, f"the claims file cannot be read: {fault.strerror}"),))


def _file_digest(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return hashlib.sha256().hexdigest()


def observe(
    request: Request,
    *,
    clock: Clock = system_clock,
    tell: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> Observed:
    """Observe one run from start to end.

    Args:
        request: what to observe.
        clock: read once, at the start; everything later is monotonic time added to it (done records §13.9).
        tell: told in words which stage begins.
        warn: told what a person should know although nothing is wrong: credentials in argument lists.

    Raises:
        Refused: the workspace is unfit or too large, a program is missing, the sandbox or the agent did not start.
    """
    check_workspace(request.workspace)
    with watching(request.workspace) as watch:
        return _observed(request, watch, clock, tell, warn)


def _observed(
    request: Request, watch: TreeWatch, clock: Clock, tell: Callable[[str], None], warn: Callable[[str], None]
) -> Observed:
    workspace = request.workspace
    versions = (bwrap_version(), strace_version())
    tell("reading the workspace")
    before = snapshot(workspace, before=request.known)
    request.accept(before)
    outside = links_outside(workspace)
    tarball = tarball_digest(workspace, before)
    sealed_start = request.private / "start"

    def keep(path: str) -> bool:
        # What a link leads to may change without the link, so a link is no list of plugins to go back to.
        return request.protects(path) or (path in before.files and names_plugins(path))

    copy_tree(workspace, before, sealed_start, only=keep)
    claims_inside = request.private / "claims.jsonl"
    claims_inside.touch(mode=0o600, exist_ok=False)
    spec = _spec(request)
    _furnish(request)
    trace_file = request.private / "trace"
    transcript = request.private / "transcript"
    tell("running the agent")
    started = clock()
    launched = launch(
        spec, request.argv, trace_file=trace_file, transcript=transcript, timeout=request.timeout,
        terminal=request.terminal, show=request.show, on_start=lambda _: watch.follow(),
    )  # fmt: skip
    ended = started + timedelta(seconds=launched.seconds)
    if not launched.started_child:
        words = transcript.read_bytes()[-400:].decode("utf-8", "backslashreplace").strip()
        raise Refused(
            "E_SANDBOX_FAILED", f"the sandbox did not start: {words or 'no reason given'}",
            remedy="Run: troth doctor", place=Place(str(workspace)),
        )  # fmt: skip
    seen = watch.finish()
    tell("reading the trace")
    after = snapshot(workspace, before=before)
    report = read_trace(
        trace_file,
        workspace=str(workspace),
        started=started,
        agent_argv=request.argv,
        known_paths=before.files.keys() | before.symlinks.keys(),
        quiet_paths=(CLAIMS,),
        known_links={**outside, **before.symlinks},
    )
    if report.root_exit is None and not report.events and report.tracer == "complete":
        raise _not_started(request.argv[0])
    source = claims_inside if request.claims_file is None else request.claims_file
    gathered = gather(
        [parse_source(word) for word in request.transcripts],
        Places(
            home=request.private / "home",
            output=transcript,
            workspace=workspace,
            output_kept=transcript.stat().st_size if launched.transcript_cut else None,
        ),
        _claims_of(source),
        [event.as_json() for event in report.events],
        report.printed,
    )
    origin = rec.Origin(request.claim_id, request.invocation_id, started, rec.interval_end(started, ended))
    by_one = rec.seen_by_one(before, after, report, seen)
    join = rec.unattributed(before, after, report, request.protects)
    join = tuple(dict.fromkeys((*join, *by_one[0])))
    search = Search({**spec.secrets, **request.granted.hidden_texts()})
    search.look("launch.json", [("agent_argv", request.argv)])
    search.look("observation.json", vectors_of(report))
    search.look("claims.json", [(entry["id"], entry["argv"]) for entry in gathered.claims.entries])
    search.look(REPORT, gathered.texts)
    agent_argv, container_argv = tuple(request.argv), launched.container_argv
    # The claims record has no member for what it lacks; the check of claims rests on the observation's coverage too.
    faults = (*rec.coverage_faults(report, join, after, seen), *gathered.lost)
    if search.sentence is not None:
        if request.redact:
            report = cut_report(report, search)
            gathered = replace(
                gathered, claims=cut_claims(gathered.claims, search), report=cut_values(gathered.report, search)
            )
            agent_argv, container_argv = search.cut(agent_argv), search.cut(container_argv)
            faults = (*faults, "credentials were cut out of argument lists")
        warn(search.sentence + (", and was cut" if request.redact else "; --redact would cut it out of the records"))
    facts = rec.LaunchFacts(
        image=root_digest(spec),
        runtime_version=versions[0],
        strace_version=versions[1],
        container_argv=container_argv,
        trace_expression=trace_expression(),
        tracer_flags=strace_argv(Path("trace"))[1:],
        agent_argv=agent_argv,
        agent_uid=UID,
        env={**spec.environment, **{name: {"handed_on": name in os.environ} for name in handed_on(request)}},
        network=spec.network,
        container_workspace=str(workspace),
        start_tarball_sha256=tarball,
        timeout_seconds=int(request.timeout),
    )
    files = {
        "tree.json": rec.tree_record(origin, after),
        "observation.json": rec.observation_record(origin, report, faults),
        "capability.json": rec.capability_record(origin),
        "claims.json": rec.claims_record(origin, gathered.claims),
        "launch.json": rec.launch_record(facts),
    }
    files["launch-receipt.json"] = rec.launch_receipt_record(
        origin,
        records=files,
        facts=facts,
        report=report,
        tree=after,
        join=join,
        seen=seen,
        by_one=by_one,
        coverage="incomplete" if faults else "complete",
        container_exit=launched.exit,
        timed_out=launched.timed_out,
        transcript_sha256=_file_digest(transcript),
        trace_sha256=_file_digest(trace_file),
    )
    if not request.keep_trace:
        # They can hold secrets, and their digests stand in the launch receipt.
        trace_file.unlink()
        transcript.unlink()
    return Observed(
        files={**files, REPORT: record_bytes(gathered.report)},
        origin=origin,
        before=before,
        after=after,
        sealed_start=sealed_start,
        launched=launched,
        report=report,
        gathered=gathered,
        coverage_faults=faults,
        seconds=launched.seconds,
        secrets=search.as_json(cut=request.redact),
        agent_argv=agent_argv,
    )
