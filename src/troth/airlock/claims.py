"""What a transcript claims, and what a run's observation makes of it: the same reading and matching as in a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from troth.core.errors import Place, Refused
from troth.observer.sources import AUTO, regular_file, told
from troth.observer.transcripts import Transcript, detect, read_transcript
from troth.receipts.checks import judge_claims
from troth.receipts.kinds import Broken
from troth.receipts.records import observation
from troth.receipts.strict import parse
from troth.stores.members import FolderMember

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    gathered = told([(str(path), transcript)], events)
    judged = judge_claims({"claims": gathered.claims.entries}, {"events": events})
    return ClaimsAnswer(transcript, gathered.report, tuple((one.claim, one.outcome) for one in judged))


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
