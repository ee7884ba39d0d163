"""What a transcript claims, and what a run's observation makes of it: the same reading and matching as in a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.observer.counting import differences
from troth.observer.sources import AUTO, REPORT, regular_file, told
from troth.observer.totals import KINDS, MAX_LINES, Printed
from troth.observer.transcripts import Transcript, detect, read_transcript
from troth.receipts.checks import judge_claims
from troth.receipts.kinds import Broken
from troth.receipts.records import observation
from troth.receipts.strict import parse
from troth.stores.members import FolderMember

if TYPE_CHECKING:
    from collections.abc import Mapping

_REPORT: Final = Limits(max_bytes=16 << 20, max_depth=16, refuse_overflow=True)


@dataclass(frozen=True, slots=True)
class ClaimsAnswer:
    """What was read.

    Attributes:
        transcript: what the reader found.
        report: sources, runs and counts, as a run's report holds them; without an observation nothing is matched and
            ``runs`` has only what was said.
        outcomes: for each entry of the record its outcome by the receipt's check: ``matched``, ``unmatched``,
            ``stale``, ``mismatch`` or ``unseen``; None without an observation.
    """

    transcript: Transcript
    report: Mapping[str, Any]
    outcomes: tuple[tuple[Mapping[str, Any], str], ...] | None = None

    @property
    def differing(self) -> tuple[str, ...]:
        """Return in words the totals of tests that were said and are not those that were printed."""
        return differences(self.report.get("totals", ()))

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``troth claims --json`` prints."""
        value = dict(self.report)
        if self.outcomes is not None:
            value["record"] = [{**entry, "outcome": outcome} for entry, outcome in self.outcomes]
        return value


def claims_of(path: Path, form: str | None, folder: Path | None) -> ClaimsAnswer:
    """Read one transcript, and match it with the observation in a folder when one is named.

    Args:
        path: the transcript.
        form: its format; by default it is told from its marks.
        folder: a member folder, as a run's.

    Raises:
        Refused: ``E_TRANSCRIPT_FORMAT``, ``E_TRANSCRIPT_UNREADABLE``, ``E_OBSERVATION_UNREADABLE``.
    """
    try:
        with regular_file(path) as stream:
            head = stream.read(1 << 20)
            stream.seek(0)
            transcript = read_transcript(stream, form if form not in (None, AUTO) else detect(head))
    except OSError as fault:
        raise Refused(
            "E_TRANSCRIPT_UNREADABLE",
            f"the transcript cannot be read: {fault.strerror or fault}",
            place=Place(file=str(path)),
            remedy="Name a regular file; `troth run --transcript auto` finds what the known tools write.",
        ) from None
    if folder is None:
        runs = [
            {"line": said.line, "kind": "call" if said.call else "statement"}
            | ({"text": said.text} if said.text is not None else {"argv": list(said.argv or ())})
            | ({"exit": said.exit} if said.exit is not None else {})
            for said in transcript.said
        ]
        return ClaimsAnswer(transcript, {"sources": [{"name": str(path), **transcript.as_json()}], "runs": runs})
    events = _events(folder)
    gathered = told([(str(path), transcript)], events, _printed(folder))
    judged = judge_claims({"claims": gathered.claims.entries}, {"events": events})
    return ClaimsAnswer(transcript, gathered.report, tuple((one.claim, one.outcome) for one in judged))


def _printed(folder: Path) -> dict[str, Printed]:
    """Return what the run's report holds of totals that were printed; empty where it holds none that can be read."""
    data = FolderMember(str(folder)).read(REPORT)
    try:
        value = loads(data, _REPORT) if data is not None else None
    except JsonFault:
        return {}
    printed = value.get("printed") if isinstance(value, dict) else None
    found = {}
    for event, lines in printed.items() if isinstance(printed, dict) else ():
        if isinstance(lines, list) and all(_is_totals(line) for line in lines[:MAX_LINES]):
            found[event] = Printed(lines[:MAX_LINES])
    return found


def _is_totals(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and value.keys() <= KINDS
        and all(type(count) is int and 0 <= count < 10**9 for count in value.values())
    )


def _events(folder: Path) -> list[Mapping[str, Any]]:
    data = FolderMember(str(folder)).read("observation.json")
    if data is None:
        raise Refused(
            "E_OBSERVATION_UNREADABLE",
            "the folder holds no observation.json",
            place=Place(file=str(folder)),
            remedy="Name the folder of a run: troth runs lists them, below .mentu/runs.",
        )
    try:
        record = observation(parse(data, "observation"))
    except Broken as fault:
        raise Refused("E_OBSERVATION_UNREADABLE", f"{fault}", place=Place(file=str(folder))) from None
    return list(record.get("events", ()))
