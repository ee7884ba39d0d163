"""Totals of tests that were said of a command, against those that its runs were seen to print.

Only where nothing else is possible is a difference told: the command is one program, every observed run of it (by any
rule of matching) printed totals that were understood, and none of them fits. Totals of an earlier run, a part of what
was printed, several runs under one name, and output that was not seen whole come to nothing. The receipt has no member
for totals; they stand in the side report and in what a person is told (done records §13.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from troth.core.words import command_line
from troth.observer.checkers import check_kind
from troth.observer.matching import Record, Seen, every_fitting
from troth.observer.shelltext import Named, literal, read_text
from troth.observer.totals import Printed, Totals, differ, said_in, worded
from troth.observer.transcripts.common import Said, Transcript

MAX_COMPARED: Final = 2_000
"""Totals that were said, compared of one run."""

MAX_WORDS: Final = 300
"""Characters of a command in what is told of it."""

_FILTERS: Final = frozenset({"tail", "head", "cat", "tee", "cd", "grep", "sed", "less"})
"""Programs that pass on what another one prints."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Totals that were said of a command and that its runs did print, or did not.

    Attributes:
        source: which transcript, from 0.
        line: where in it, from 1; 0 stands for the agent's last message.
        argv: the command, as its last run was started.
        event: the id of that run's event.
        said: what was said.
        printed: what that run printed.
        differs: no run printed what was said.
    """

    source: int
    line: int
    argv: tuple[str, ...]
    event: str
    said: Totals
    printed: Totals
    differs: bool

    def as_json(self) -> dict[str, Any]:
        """Return what the report holds of it."""
        return {
            "source": self.source,
            "line": self.line,
            "argv": list(self.argv),
            "event": self.event,
            "said": dict(self.said),
            "printed": dict(self.printed),
            "differs": self.differs,
        }


def differences(report: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return in words what a report's totals have that differs."""
    return tuple(
        f"{worded(one['said'])} was claimed of {command_line(one['argv'], MAX_WORDS)}, "
        f"which printed {worded(one['printed'])}"
        for one in report
        if one["differs"]
    )


def compare(
    found: Sequence[Transcript], events: Sequence[Record], printed: Mapping[str, Printed]
) -> tuple[Compared, ...]:
    """Compare what transcripts say of totals with what was printed; what cannot be compared is left out.

    Args:
        found: the transcripts.
        events: those of an observation record.
        printed: what programs were seen to print, by the ids of their events.
    """
    if not printed:
        return ()
    seen = Seen.of(events)
    compared: dict[tuple[Any, ...], Compared] = {}
    for count, (source, line, named, totals) in enumerate(_said(found)):
        if count >= MAX_COMPARED:
            break
        runs = [event for argv in every_fitting(named, seen) for event in seen.by_argv[argv]]
        runs.sort(key=lambda event: event["step"])
        # A wrapper and the program behind it are one run, and print the same.
        told = [(event, printed[event["id"]].settled() if event["id"] in printed else ()) for event in runs]
        if not told or not all(known for _, known in told):
            continue
        event, known = told[-1]
        differs = all(differ(totals, each) for _, settled in told for each in settled)
        one = Compared(source, line, tuple(event["argv"]), event["id"], totals, known[-1], differs)
        compared[event["id"], *sorted(totals.items())] = one
    return tuple(compared.values())


def _said(found: Sequence[Transcript]) -> Iterator[tuple[int, int, Named, Totals]]:
    """Yield (source, line, program, totals) of everything that was said of one program."""
    for source, transcript in enumerate(found):
        for said in transcript.said:
            named = program_of(said) if said.totals is not None else None
            if named is not None and said.totals is not None:
                yield source, said.line, named, said.totals
        for stated in said_in(transcript.last):
            named = program_of(Said(0, text=stated.command)) if stated.totals else None
            if named is not None:
                yield source, 0, named, stated.totals


def program_of(said: Said) -> Named | None:
    """Return the one program whose totals those of a command are: its only one, or its only check."""
    if said.argv is not None:
        return literal(said.argv, said.exit)
    read = read_text(said.text or "", None)
    if not read.understood:
        return None
    programs = [run for run in read.runs if run.program not in _FILTERS]
    if len(programs) > 1:
        programs = [run for run in programs if run.argv is None or check_kind(run.argv) is not None]
    return programs[0] if len(programs) == 1 else None
