"""What a trace of an agent's run establishes: events, effects, and what was not seen (done records §13).

The tracer's file is read once (``reading``), then interpreted in order (``interpret``) into a journal
(``journal``). This module puts the three together and answers with a frozen report.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from troth.observer.interpret import Interpreter
from troth.observer.journal import MAX_EVENTS_BYTES, Effect, Event, Journal
from troth.observer.names import Names
from troth.observer.reading import Recording, read_steps
from troth.observer.totals import Printed

__all__ = ["MAX_EVENTS_BYTES", "Effect", "Event", "TraceReport", "read_trace"]


@dataclass(frozen=True, slots=True)
class TraceReport:
    """What the trace says.

    Attributes:
        events: the workspace's events, ``step`` strictly increasing.
        effects: changes and connections elsewhere, each once.
        refused: attempts at changes that failed; they count for nothing.
        escapes: calls that succeeded and can act unseen.
        unresolved: effects that could not be told.
        unparsed_lines: lines that do not follow the tracer's grammar.
        tracer: ``lost`` when the record ends before every process did.
        git_mutations: changes beneath ``.git``, which is no part of the tree.
        names_not_utf8: changed names that no record can hold, escaped.
        root_exit: the exit status of the agent's first process; None: not seen.
        commands: commands started, in the sense of §13.1.
        truncated_after: the instant of the last event that fits into a record, when some do not.
        effects_omitted: effects beyond the bound; none of them reaches a grader.
        lines: lines read.
        printed: what programs printed of totals of tests, by the id of their event, where they printed any.
        touched: files of which a call set only times, owner or an attribute that changes nothing; empty where a name
            was followed through a number, since what that hides is told by change times alone.
    """

    events: tuple[Event, ...]
    effects: tuple[Effect, ...]
    refused: tuple[str, ...]
    escapes: tuple[str, ...]
    unresolved: tuple[str, ...]
    unparsed_lines: int
    tracer: Literal["complete", "lost"]
    git_mutations: int
    names_not_utf8: tuple[str, ...]
    root_exit: int | None
    commands: int
    truncated_after: str | None
    effects_omitted: int = 0
    lines: int = 0
    printed: Mapping[str, Printed] = field(default_factory=dict)
    touched: frozenset[str] = frozenset()


def read_trace(
    trace_file: Path,
    *,
    workspace: str,
    started: datetime,
    agent_argv: Sequence[str],
    known_paths: Collection[str],
    quiet_paths: Collection[str] = (),
    known_links: Mapping[str, str] | None = None,
    max_bytes: int = MAX_EVENTS_BYTES,
) -> TraceReport:
    """Read the tracer's file of one run, as :func:`read_lines` does.

    Raises:
        OSError: the file cannot be read.
        ValueError: ``started`` has no time zone.
    """
    with trace_file.open("rb", buffering=1 << 20) as lines:
        return read_lines(
            lines,
            workspace=workspace,
            started=started,
            agent_argv=agent_argv,
            known_paths=known_paths,
            quiet_paths=quiet_paths,
            known_links=known_links,
            max_bytes=max_bytes,
        )


def read_lines(
    lines: Iterable[bytes],
    *,
    workspace: str,
    started: datetime,
    agent_argv: Sequence[str],
    known_paths: Collection[str],
    quiet_paths: Collection[str] = (),
    known_links: Mapping[str, str] | None = None,
    max_bytes: int = MAX_EVENTS_BYTES,
) -> TraceReport:
    """Read what the tracer wrote of one run.

    Args:
        lines: what ``syscalls.strace_argv`` wrote, line by line with their ends.
        workspace: the workspace's absolute path as the agent saw it, free of symbolic links.
        started: the instant (aware) at which the tracer started; event times are that plus monotonic time.
        agent_argv: the argument vector that the sandbox was told to run.
        known_paths: names in the workspace at the start, relative to it.
        quiet_paths: absolute paths outside of the workspace whose changes are no effects.
        known_links: symbolic links in the workspace at the start: name to target.
        max_bytes: what the events may take in a record, written compactly.

    Returns:
        the report; a file that is damaged or cut gives a report that says so.

    Raises:
        ValueError: ``started`` has no time zone.
    """
    base = os.fsencode(workspace)
    names = Names()
    names.add_all(base + b"/" + os.fsencode(path) for path in known_paths)
    for path, target in (known_links or {}).items():
        names.add(base + b"/" + os.fsencode(path), os.fsencode(target))
    recording = read_steps(lines)
    journal = Journal(started)
    interpreter = Interpreter(journal, workspace=workspace, agent_argv=agent_argv, names=names, quiet=quiet_paths)
    interpreter.run(recording)
    if recording.lineage.contradictions:
        journal.unresolved.add("which of several processes started at once is which could not be told")
    events, truncated_after = journal.events(max_bytes)
    root = interpreter.root
    return TraceReport(
        events=tuple(events),
        effects=tuple(journal.effects()),
        refused=tuple(journal.refused.listed()),
        escapes=tuple(journal.escapes.listed()),
        unresolved=tuple(journal.unresolved.listed()),
        unparsed_lines=recording.unparsed + interpreter.malformed,
        tracer="complete" if _complete(recording, interpreter) else "lost",
        git_mutations=journal.git_mutations,
        names_not_utf8=tuple(journal.names_not_utf8.listed()),
        root_exit=None if root is None else root.ended,
        commands=interpreter.commands,
        truncated_after=truncated_after,
        effects_omitted=journal.effects_omitted,
        lines=recording.lines,
        printed={journal.name_of(position): printed for position, printed in interpreter.printed.items()},
        touched=frozenset() if interpreter.by_number else frozenset(journal.touched),
    )


def _complete(recording: Recording, interpreter: Interpreter) -> bool:
    """Tell whether the record shows the end of every process it shows, and of the agent's if it ever started."""
    waiting, childless = recording.lineage.leftovers()
    return (
        recording.lines > 0
        and not recording.torn
        and not recording.complaints
        and not recording.lineage.live
        and not waiting
        and not childless
        and (interpreter.root is None or interpreter.root.ended is not None)
    )
