"""Where a run's transcripts lie, and what they and the claims file come to: the claims record and a report beside it.

A transcript is named ``FORMAT:PATH``. ``auto`` as the format is told from its marks. The path ``-`` is what the agent
printed, ``~/…`` lies in the agent's private home, anything else is a path of this machine, kept by a harness or written
into the workspace. ``auto`` alone looks where the known tools write: their folders in the private home, and the agent's
output where a tool's events stand there.

What an agent wrote may be anything: no link is followed, and every file is opened as what it is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from troth.core.errors import Refused
from troth.core.words import printable
from troth.observer.claims import Claims
from troth.observer.counting import compare, differences
from troth.observer.folders import walk
from troth.observer.matching import Matched, Record, entries_of, match
from troth.observer.totals import Printed
from troth.observer.transcripts import FORMATS, Transcript, detect, read_transcript
from troth.observer.transcripts.neutral import as_transcript
from troth.receipts.checks import CONTRADICTING, judge_claims

AUTO: Final = "auto"
OUTPUT: Final = "-"
HOME: Final = "~/"

REPORT: Final = "claims-report.json"
"""The file of a run that tells what was said and how it was matched; the receipt does not name it."""

MAX_SOURCES: Final = 200
"""Transcripts read of one run."""

MAX_REPORTED: Final = 5_000
"""Runs listed in the report; what is beyond them is counted."""

_PLACES: Final = (
    # below the private home: folder, the beginning and the end of a name, format
    (".claude/projects", "", ".jsonl", "claude-code"),
    (".codex/sessions", "rollout-", ".jsonl", "codex-rollout"),
)
_PRINTED: Final = {"claude-stream": "claude-code", "codex-exec": "codex-rollout"}
"""A tool's events on its output -> the format of the files that tell the same, which are preferred."""


@dataclass(frozen=True, slots=True)
class Source:
    """One transcript to read: ``format`` (or ``auto``) and ``path`` as they were given."""

    format: str
    path: str = ""

    @property
    def name(self) -> str:
        """Return what a report calls it."""
        return f"{self.format}:{self.path}" if self.path else self.format


def parse_source(word: str) -> Source:
    """Read ``FORMAT:PATH`` or ``auto``.

    Raises:
        Refused: ``E_TRANSCRIPT_FORMAT``.
    """
    form, colon, path = word.partition(":")
    if form == AUTO and not colon:
        return Source(AUTO)
    if not path or (form != AUTO and form not in FORMATS):
        raise Refused(
            "E_TRANSCRIPT_FORMAT",
            f"no transcript is named so: {printable(word, 200)!r}",
            remedy=f"Name it FORMAT:PATH, or auto; a format is one of {', '.join((AUTO, *FORMATS))}.",
        )
    return Source(form, path)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was said in a run.

    Attributes:
        claims: what the record holds, and the lines that were no claim.
        report: every source, and every run that was said with what became of it.
        notes: sentences for a person.
        lost: why the record may lack something that was said, in sentences; none where what it holds contradicts by
            itself. Without all that was said nobody can say that all of it ran.
    """

    claims: Claims
    report: dict[str, Any]
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def differing(self) -> tuple[str, ...]:
        """Return in words the totals of tests that were said and are not those that were printed."""
        return differences(self.report["totals"])

    @property
    def texts(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return, by its place in the report, what a shell was told: where credentials are looked for."""
        runs = enumerate(self.report["runs"])
        return [(f"runs[{at}]", ("sh", "-c", run["said"]["text"])) for at, run in runs if "text" in run["said"]]


@dataclass(frozen=True, slots=True)
class Places:
    """Where sources of a run lie: the agent's private home, its output, the workspace.

    ``output_kept`` is how many bytes of the output were kept, where there were more; else ``None``.
    """

    home: Path
    output: Path
    workspace: Path
    output_kept: int | None = None


@dataclass(slots=True)
class _Reading:
    places: Places
    found: list[tuple[str, Transcript]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def read(self, source: Source) -> None:
        """Read one source as it was named; what cannot be read is told and claims nothing."""
        try:
            with ExitStack() as stack:
                stream = stack.enter_context(self.opened(source.path))
                self.take(source.name, stream, source.format, printed=source.path == OUTPUT)
        except OSError as fault:
            why = fault.strerror or type(fault).__name__
            self.notes.append(f"the transcript {printable(source.name, 200)} cannot be read: {why}")

    def take(self, name: str, stream: BinaryIO, form: str, *, printed: bool = False) -> None:
        if form == AUTO:
            head = stream.read(1 << 20)
            stream.seek(0)
            form = detect(head)
        transcript = read_transcript(stream, form)
        if printed and self.places.output_kept is not None:
            transcript = transcript.ending_early(f"only the first {self.places.output_kept} bytes were kept")
        self.found.append((name, transcript))

    def opened(self, path: str) -> BinaryIO:
        if path == OUTPUT:
            return regular_file(self.places.output)
        if path.startswith(HOME):
            return open_beneath(self.places.home, path.removeprefix(HOME))
        whole = Path(os.path.abspath(path))
        if whole.is_relative_to(self.places.workspace):
            return open_beneath(self.places.workspace, str(whole.relative_to(self.places.workspace)))
        return regular_file(whole)

    def look(self) -> None:
        """Read what stands where the known tools write."""
        before = len(self.found)
        for form, path in _kept(self.places.home):
            if len(self.found) >= MAX_SOURCES:
                self.notes.append(f"only {MAX_SOURCES} transcripts were read")
                break
            name = f"{form}:{HOME}{path}"
            try:
                with open_beneath(self.places.home, path) as stream:
                    self.take(name, stream, form)
            except OSError as fault:
                self.notes.append(f"the transcript {printable(name, 200)} cannot be read: {fault.strerror}")
        with regular_file(self.places.output) as stream:
            form = detect(stream.read(1 << 20))
            stream.seek(0)
            if form in _PRINTED and _PRINTED[form] not in {found.format for _, found in self.found}:
                self.take(f"{form}:{OUTPUT}", stream, form, printed=True)
        if len(self.found) == before:
            self.notes.append("no transcript was found where the known tools write them")


def _kept(home: Path) -> Iterator[tuple[str, str]]:
    """Yield (format, path) of the files that the known tools keep below the private home, in the order of names."""
    for folder, begins, ends, form in _PLACES:
        top = home / folder
        if any(part.is_symlink() for part in (top, *top.parents) if part.is_relative_to(home) and part != home):
            continue
        paths = [
            os.path.relpath(os.path.join(where, name), home)
            for where, _, names in walk(str(top))
            for name in names
            if name.startswith(begins) and name.endswith(ends)
        ]
        yield from ((form, path) for path in sorted(paths))


def regular_file(path: Path) -> BinaryIO:
    """Open a regular file, no link.

    Raises:
        OSError: it is none, or cannot be opened.
    """
    return _as_file(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))


def open_beneath(top: Path, path: str) -> BinaryIO:
    """Open a regular file below a folder without following any link on the way.

    Raises:
        OSError: there is none, or a link or ``..`` stands on the way.
    """
    names = [name for name in path.split("/") if name not in ("", ".")]
    if not names or ".." in names:
        raise FileNotFoundError(2, "No such file or directory")
    at = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = inner
        return _as_file(os.open(names[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at))
    finally:
        os.close(at)


def _as_file(descriptor: int) -> BinaryIO:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(22, "no regular file")
    return open(descriptor, "rb")


def gather(
    sources: Sequence[Source],
    places: Places,
    own: Claims,
    events: Sequence[Record],
    printed: Mapping[str, Printed] | None = None,
) -> Gathered:
    """Read a run's transcripts and match what they and the claims file say with what was observed.

    Args:
        sources: the transcripts asked for; each is read once.
        places: where they lie.
        own: the claims file, read.
        events: those of the observation record.
        printed: what programs were seen to print of totals, by the ids of their events.
    """
    reading = _Reading(places)
    if places.output_kept is not None:
        reading.notes.append(f"of what the agent printed only the first {places.output_kept} bytes were kept")
    for source in dict.fromkeys(sources):
        if source.path:
            reading.read(source)
        else:
            reading.look()
    found = [("claims", as_transcript(own))] if own.lines or own.refused else []
    return told(found + reading.found, events, printed or {}, lines=own.lines, refused=own.refused, notes=reading.notes)


def told(
    found: Sequence[tuple[str, Transcript]],
    events: Sequence[Record],
    printed: Mapping[str, Printed],
    *,
    lines: int = 0,
    refused: tuple[tuple[int, str], ...] = (),
    notes: Sequence[str] = (),
) -> Gathered:
    """Match what transcripts say with an observation's events, and report on it.

    Args:
        found: each transcript with what it is called.
        events: those of the observation record.
        printed: what programs were seen to print of totals, by the ids of their events.
        lines, refused: of the claims file, as :class:`Claims` has them.
        notes: sentences that come first.
    """
    totals = compare([transcript for _, transcript in found], events, printed)
    cut = frozenset(at for at, (_, transcript) in enumerate(found) if transcript.cut)
    matches = match([transcript.said for _, transcript in found], events, cut)
    listed = matches[:MAX_REPORTED]
    counts = {
        "said": sum(len(transcript.said) for _, transcript in found),
        "programs": len(matches),
        "recorded": sum(entry.left_out is None for entry in matches),
        "not_observed": sum(entry.left_out is None and entry.rule is None for entry in matches),
    }
    report = {
        "schema_version": "troth-claims-report/v1",
        "sources": [{"name": name, **transcript.as_json()} for name, transcript in found],
        "runs": [entry.as_json() for entry in listed],
        "runs_not_listed": len(matches) - len(listed),
        "counts": counts,
        "totals": [one.as_json() for one in totals],
        "printed": {
            event: [dict(told) for told in settled]
            for event, settled in islice(((event, known.settled()) for event, known in printed.items()), MAX_REPORTED)
            if settled
        },
    }
    claims = Claims(entries=entries_of(matches), lines=lines, refused=refused)
    sentences = [*notes, *(line for name, transcript in found for line in _about(name, transcript))]
    return Gathered(claims, report, tuple(sentences + _matching_told(matches)), _lost(found, matches, claims, events))


def _lost(
    found: Sequence[tuple[str, Transcript]], matches: Sequence[Matched], claims: Claims, events: Sequence[Record]
) -> tuple[str, ...]:
    lost = [f"what was said in {printable(name, 200)} is not known to its end" for name, one in found if one.cut]
    if any(entry.left_out == "beyond" for entry in matches):
        lost.append("more was said than a record can hold")
    if not lost:
        return ()
    judged = judge_claims({"claims": claims.entries}, {"events": events})
    return () if any(one.outcome in CONTRADICTING for one in judged) else tuple(lost)


def _about(name: str, transcript: Transcript) -> list[str]:
    """Return what a person is told of one source; of the claims file only what it holds in the record."""
    if transcript.format == "claims" and name == "claims":
        return []
    by = f" of {transcript.tool}" if transcript.tool else ""
    version = f" {printable(transcript.version, 40)}" if transcript.version else ""
    lines = [f"transcript {printable(name, 200)}{by}{version}: {len(transcript.said)} runs reported as done"]
    if not transcript.version_known:
        which = f"version {printable(transcript.version, 40)}" if transcript.version else "no version"
        lines.append(f"  it tells {which}; its reader was tried with {', '.join(transcript.tried)}")
    if transcript.unread:
        number, why = transcript.unread[0]
        where = f"line {number}: " if number else ""
        more = f" (and {len(transcript.unread) - 1} more)" if transcript.unread[1:] else ""
        lines.append(f"  not read: {where}{printable(why, 200)}{more}")
    return lines


def _matching_told(matches: Sequence[Matched]) -> list[str]:
    """Return what became of calls that are no word on what the agent left."""
    past = sum(entry.left_out == "of_its_time" for entry in matches)
    return [f"seen as they were said, before later edits, and not held to the end: {past}"] if past else []
