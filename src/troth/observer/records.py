"""From what the sensors saw to the bytes of the records (done records §4.2 to §4.8, §13)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from troth.core.canonical import record_bytes, string_size
from troth.core.digests import sha256_hex
from troth.core.instants import format_instant
from troth.observer.claims import Claims
from troth.observer.events import TraceReport
from troth.observer.tree import Snapshot
from troth.observer.watching import NOTHING_SEEN, Seen
from troth.receipts.records import MUTATIONS

PRODUCER: Final = "troth-observer"
CLAIMS_READER: Final = "troth-claims-reader"

NOT_ASSERTED: Final = (
    "that the host's operator is independent of the agent's operator",
    "anything about reads, or about effects through channels the trace expression does not name",
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose run the records are about: the commitment, the run, and the interval (instants in UTC)."""

    claim_id: str
    invocation_id: str
    start: datetime
    end: datetime

    @property
    def scope(self) -> dict[str, str]:
        """Return the scope member: ``id``, ``start``, ``end``."""
        return {"id": self.invocation_id, "start": format_instant(self.start), "end": format_instant(self.end)}

    def members(self, producer: str) -> dict[str, str]:
        """Return the five origin members of a record made by an independent local witness."""
        return {
            "claim_id": self.claim_id,
            "invocation_id": self.invocation_id,
            "producer": producer,
            "vantage": "independent",
            "witness_scope": "PEER",
        }


def interval_end(start: datetime, end: datetime) -> datetime:
    """Return the end of the scope: the next whole second, and at least a second after the start.

    Instants have whole seconds, so the end is rounded up; an interval of no length could not hold a gap.
    """
    rounded = end.replace(microsecond=0)
    if end.microsecond:
        rounded += timedelta(seconds=1)
    return max(rounded, start.replace(microsecond=0) + timedelta(seconds=1))


def unattributed(
    before: Snapshot, after: Snapshot, report: TraceReport, protects: Callable[[str], bool] = lambda _: False
) -> tuple[str, ...]:
    """Return the paths that changed between two trees and that no recorded mutation names (the join).

    A protected file whose change time moved is among them even when its bytes are the old ones: a change that was
    taken back leaves that time, which no program in the sandbox can set. Where the trace shows that its times were set,
    that is why it moved.
    """
    touched = _touched(report)
    changed = {
        path for path in before.files.keys() | after.files.keys() if before.files.get(path) != after.files.get(path)
    }
    links = before.symlinks.keys() | after.symlinks.keys()
    changed |= {path for path in links if before.symlinks.get(path) != after.symlinks.get(path)}
    changed |= set(before.special) ^ set(after.special)
    changed |= {path for path in _moved(before, after) if protects(path) and not _explained(path, before, report)}
    shut = tuple(path + "/" for path in after.unreadable)  # told as such; what is in there is not known to have changed
    return _bounded(sorted(path for path in changed - touched if not path.startswith(shut)))


def _touched(report: TraceReport) -> set[str]:
    return {
        name
        for event in report.events
        if event.type in MUTATIONS
        for name in (event.path, event.target)
        if name is not None
    }


def seen_by_one(
    before: Snapshot, after: Snapshot, report: TraceReport, seen: Seen
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the changes that only the second sensor saw, and those that only the trace saw (the join).

    The first are changes which the trace does not explain, whoever made them. The second are no fault: a
    mapping is written, and a folder younger than its watch is filled, where only the trace sees it. Where the trace
    itself could not put everything down, nothing is compared.
    """
    if report.truncated_after is not None:
        return (), ()
    touched = _touched(report)
    pipes = {*before.special, *after.special}  # a write into a pipe changes no file
    changed = {name for name in seen.changed if _is_utf8(name)}
    unknown = [] if report.names_not_utf8 else [_escaped(name) for name in seen.changed - changed]
    moved = {name for event in report.events if event.type == "rename" for name in (event.path, event.target)}
    unseen = {
        name
        for event in report.events
        if event.type in MUTATIONS and event.type != "chmod"
        for name in (event.path, event.target if event.type == "rename" else None)
        if name is not None and name not in changed and not _beneath_one_of(name, moved)
    }
    if seen.overflow or seen.failures:
        unseen = set()
    return _bounded(sorted([*(changed - touched - pipes), *unknown])), _bounded(sorted(unseen))


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escaped(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _beneath_one_of(name: str, folders: Collection[str | None]) -> bool:
    parts = name.split("/")
    return any("/".join(parts[:count]) in folders for count in range(1, len(parts)))


def _bounded(names: Sequence[str]) -> tuple[str, ...]:
    """Return as many names as the sensors' report has room for, and how many more there are."""
    room = 1 << 20
    for count, name in enumerate(names):
        room -= string_size(name) + 1
        if room < 0 and count:
            return (*names[:count], f"and {len(names) - count} more")
    return tuple(names)


def _moved(before: Snapshot, after: Snapshot) -> set[str]:
    """Return the files whose change time is not what it was."""
    known = before.identities
    return {path for path, it in after.identities.items() if path in known and it.changed != known[path].changed}


def _explained(path: str, before: Snapshot, report: TraceReport) -> bool:
    """Tell whether what moved a change time is known and no change of the file.

    Another name of the same file was made, moved or removed; or its times were set, as suites do to files of theirs.
    """
    inode = before.identities[path][:2]
    kin = {name for name, it in before.identities.items() if it[:2] == inode and name != path}
    if not report.touched.isdisjoint({path, *kin}):
        return True
    types = {event.type for event in report.events if event.path in kin or event.target in kin}
    return bool(types) and types <= {"rename", "link", "unlink"}


def coverage_faults(
    report: TraceReport, join: Sequence[str], after: Snapshot, seen: Seen = NOTHING_SEEN
) -> tuple[str, ...]:
    """Return, as sentences, every reason why the observation is not complete (done records §13.3)."""
    found: list[str] = []
    if report.tracer != "complete":
        found.append("the tracer's record ends before the run does")
    if report.escapes:
        found.append(f"a call that can change files unseen: {report.escapes[0]}")
    if report.unresolved:
        found.append(f"a call whose effect is not known: {report.unresolved[0]}")
    if report.unparsed_lines:
        found.append(f"{report.unparsed_lines} lines of the trace could not be read")
    if report.truncated_after is not None:
        found.append("more events than a record can hold")
    if join:
        found.append(
            f"a change that the trace does not explain: {join[0]}" + (f" and {len(join) - 1} more" if join[1:] else "")
        )
    if seen.overflow:
        found.append("the kernel's queue of changes ran over, so that the order of changes is not known")
    if seen.failures:
        found.append(f"a folder that could not be watched: {seen.failures[0]}")
    if report.names_not_utf8 or after.not_utf8:
        found.append(f"a name that is not UTF-8: {(*report.names_not_utf8, *after.not_utf8)[0]}")
    if after.unreadable:
        found.append(f"a path that could not be read afterwards: {after.unreadable[0]}")
    return tuple(found)


def tree_record(origin: Origin, tree: Snapshot) -> bytes:
    """Return ``tree.json``."""
    return record_bytes(
        {
            "schema_version": "probity-tree/v1",
            "tree_sha256": tree.digest,
            "files": tree.files,
            **origin.members(PRODUCER),
        }
    )


def observation_record(origin: Origin, report: TraceReport, faults: Sequence[str]) -> bytes:
    """Return ``observation.json``: complete when nothing was found wanting, else incomplete over the whole scope.

    Where only the record's size cut the events, the gap begins at the cut.
    """
    scope = origin.scope
    value: dict[str, Any] = {
        "schema_version": "probity-observation/v2",
        "scope": scope,
        "coverage": "incomplete" if faults else "complete",
        "events": [event.as_json() for event in report.events],
        **origin.members(PRODUCER),
    }
    if faults:
        start = scope["start"]
        if len(faults) == 1 and report.truncated_after is not None and report.truncated_after < scope["end"]:
            start = max(start, report.truncated_after)
        value["gaps"] = [{"start": start, "end": scope["end"]}]
    return record_bytes(value)


def capability_record(origin: Origin) -> bytes:
    """Return ``capability.json``: every mutation type and ``exec`` are visible to the tracer."""
    return record_bytes(
        {
            "schema_version": "probity-capabilities/v1",
            "claim_id": origin.claim_id,
            "invocation_id": origin.invocation_id,
            "producer": PRODUCER,
            "visible_event_types": sorted((*MUTATIONS, "exec")),
        }
    )


def claims_record(origin: Origin, claims: Claims) -> bytes:
    """Return ``claims.json``."""
    return record_bytes(
        {
            "schema_version": "probity-tool-claims/v1",
            "claim_id": origin.claim_id,
            "invocation_id": origin.invocation_id,
            "producer": CLAIMS_READER,
            "claims": [dict(entry) for entry in claims.entries],
        }
    )


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """What the launch record states; names as in done records §4.7."""

    image: str
    runtime_version: str
    strace_version: str
    container_argv: Sequence[str]
    trace_expression: str
    tracer_flags: Sequence[str]
    agent_argv: Sequence[str]
    agent_uid: int
    env: Mapping[str, Any]
    network: bool
    container_workspace: str
    start_tarball_sha256: str
    timeout_seconds: int


def launch_record(facts: LaunchFacts) -> bytes:
    """Return ``launch.json`` for the local bubblewrap backend (done records §13.7)."""
    return record_bytes(
        {
            "schema_version": "probity-launch/v1",
            "backend": "bubblewrap",
            "image": facts.image,
            "image_id": facts.image,
            "runtime_version": facts.runtime_version,
            "strace_version": facts.strace_version,
            "container_argv": list(facts.container_argv),
            "trace_expression": facts.trace_expression,
            "tracer_flags": list(facts.tracer_flags),
            # Inside, the agent is another user; to the kernel it is the user who started the run.
            "tracer_uid_separated": False,
            "agent_argv": list(facts.agent_argv),
            "agent_uid": facts.agent_uid,
            "env": dict(facts.env),
            "network": facts.network,
            "container_workspace": facts.container_workspace,
            "start_tarball_sha256": facts.start_tarball_sha256,
            "observer_source_sha256": observer_source_digest(),
            "timeout_seconds": facts.timeout_seconds,
        }
    )


def observer_source_digest() -> str:
    """Return one digest over the observer's own source files, by name."""
    total = hashlib.sha256()
    own = Path(__file__).parent
    for path in sorted(own.rglob("*.py")):
        total.update(f"{sha256_hex(path.read_bytes())}  {path.relative_to(own).as_posix()}\n".encode())
    return total.hexdigest()


def launch_receipt_record(
    origin: Origin,
    *,
    records: Mapping[str, bytes],
    facts: LaunchFacts,
    report: TraceReport,
    tree: Snapshot,
    join: Sequence[str],
    seen: Seen,
    by_one: tuple[Sequence[str], Sequence[str]],
    coverage: str,
    container_exit: int | None,
    timed_out: bool,
    transcript_sha256: str,
    trace_sha256: str,
) -> bytes:
    """Return ``launch-receipt.json``: what each sensor says of itself, and the effects outside the workspace."""
    return record_bytes(
        {
            "schema_version": "probity-launch-receipt/v1",
            "claim_id": origin.claim_id,
            "invocation_id": origin.invocation_id,
            "producer": PRODUCER,
            "witnessScope": "PEER",
            "launch_sha256": sha256_hex(records["launch.json"]),
            "trace_expression": facts.trace_expression,
            "watch_list": [facts.container_workspace],
            "start_tarball_sha256": facts.start_tarball_sha256,
            "tree_sha256": sha256_hex(records["tree.json"]),
            "coverage": coverage,
            "container_exit": container_exit,
            "agent_exit": report.root_exit,
            "timed_out": timed_out,
            "transcript_sha256": transcript_sha256,
            "trace_sha256": trace_sha256,
            "observation_sha256": sha256_hex(records["observation.json"]),
            "capability_sha256": sha256_hex(records["capability.json"]),
            "sensors": {
                "s1_inotify": {
                    "watches": seen.watches,
                    "events": seen.events,
                    "overflow": seen.overflow,
                    "watch_failures": list(seen.failures),
                },
                "s2_strace": {
                    "tracer": report.tracer,
                    "escapes": list(report.escapes),
                    "unresolved": list(report.unresolved),
                    "unparsed_lines": report.unparsed_lines,
                    "refused": list(report.refused),
                    "git_mutations": report.git_mutations,
                    "names_not_utf8": list(report.names_not_utf8),
                },
                "s3_tree": {
                    "tree_sha256": tree.digest,
                    "files": len(tree.files),
                    "symlinks": [{"path": path, "text": text} for path, text in tree.symlinks.items()],
                    "special": _bounded([*tree.special, *tree.not_utf8, *tree.unreadable]),
                },
                "join": {
                    "unattributed": list(join),
                    "only_inotify": list(by_one[0]),
                    "only_trace": list(by_one[1]),
                },
                "external_effects": [effect.as_json() for effect in report.effects],
            },
            "doesNotAssert": list(NOT_ASSERTED),
        }
    )
