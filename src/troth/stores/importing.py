"""Lines of a file brought into a ledger: version 1 rows, rows of other programs, a whole hashed ledger (§5, §6)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.core.errors import DoesNotHold, Place, Refused
from troth.core.strictjson import LEDGER_ROW, JsonFault, loads
from troth.ledger.foreign import Fields, candidate_of, detect
from troth.ledger.importing import chained, refuse_unfit
from troth.ledger.operations import Candidate
from troth.ledger.rows import parse_row
from troth.stores.durable import open_regular, os_fault
from troth.stores.lines import physical_lines
from troth.stores.protocol import LedgerStore, Progress, keep_all, no_progress
from troth.stores.snapshot import Snapshot, bare

if TYPE_CHECKING:
    from troth.ledger.chain import Verification
    from troth.ledger.replay import State

GROUP: Final = 1_000
GROUP_BYTES: Final = 1 << 22
"""Lines, and bytes of them, that are made durable together; the next ones are read after that."""

REFUSED_KEPT: Final = 1_000
"""Refusals that are told one by one; more are counted."""

STDIN: Final = "-"
_CHUNK: Final = 1 << 18

Make = Callable[["State"], Candidate]
"""Makes the candidate of one line in a ledger of this state, or refuses it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or one commit: its number from 1, its size in bytes, and what makes its candidate."""

    number: int
    size: int
    make: Make


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one line is not in the ledger."""

    line: int
    fault: Refused

    def as_json(self) -> dict[str, Any]:
        """Return line, code, detail and message."""
        fault = self.fault
        return {"line": self.line, "code": fault.code, "detail": fault.detail, "message": fault.message}


@dataclass(slots=True)
class Report:
    """What became of the lines. ``written`` is false where nothing was to be written, or one refused all."""

    imported: int = 0
    present: int = 0
    refused: list[Refusal] = field(default_factory=list)
    refused_count: int = 0
    written: bool = True

    def take(self, lines: Sequence[Line], answers: Sequence[dict[str, Any] | Refused]) -> None:
        """Take the answers to some lines."""
        for line, answer in zip(lines, answers, strict=True):
            if isinstance(answer, dict):
                self.imported += 1
            elif is_present(answer):
                self.present += 1
            else:
                self.refused_count += 1
                if len(self.refused) < REFUSED_KEPT:
                    self.refused.append(Refusal(line.number, answer))

    def as_json(self) -> dict[str, Any]:
        """Return the members under their own names."""
        return {
            "imported": self.imported,
            "present": self.present,
            "refused": [one.as_json() for one in self.refused],
            "refused_count": self.refused_count,
            "written": self.written,
        }


def is_present(answer: object) -> bool:
    """Tell whether a line was refused because its key is in the ledger already (ledger spec §5)."""
    return (
        isinstance(answer, Refused)
        and answer.code == "E_DUPLICATE_ID"
        and answer.place is not None
        and answer.place.path == "$.source_key"
    )


# Reading --------------------------------------------------------------------------------------------------------


@contextmanager
def opened(file: Path) -> Iterator[int]:
    """Open what is to be imported; stdin (``-``) is taken to its end into a nameless file first.

    Raises:
        Refused: ``E_NO_LEDGER``, ``E_NOT_REGULAR``, ``E_UNREADABLE``.
    """
    if str(file) != STDIN:
        fd = open_regular(file, os.O_RDONLY, "E_NO_LEDGER", "the file to import")
        try:
            yield fd
        finally:
            os.close(fd)
        return
    with tempfile.TemporaryFile() as kept:
        try:
            while chunk := os.read(0, _CHUNK):
                kept.write(chunk)
            kept.flush()
        except OSError as fault:
            raise os_fault("E_UNREADABLE", fault, file, "what comes in cannot be read") from None
        yield kept.fileno()


def format_of(fd: int, fields: Fields) -> str:
    """Return the format that the first line with something on it shows; one that is no object decides nothing."""
    for line, (raw, _) in enumerate(physical_lines(fd, 0), 1):
        text = bare(raw, line)
        if text:
            try:
                value = loads(text, LEDGER_ROW)
            except JsonFault:
                value = None
            return detect(value if isinstance(value, dict) else None, fields)
    return detect(None, fields)


def read_v1(file: Path, fd: int | None = None) -> list[dict[str, Any]]:
    """Return the rows of a version 1 ledger, normalised, hashed and chained from zeros; the file is only read.

    Raises:
        Refused: ``E_NO_LEDGER``, ``E_NOT_REGULAR``, ``E_UNREADABLE``, or ``E_NOT_IMPORTABLE`` with the line.
    """
    if fd is None:
        with opened(file) as own:
            return read_v1(file, own)
    at: list[int] = [0]

    def values() -> Iterator[dict[str, Any]]:
        for at[0], text in _texts(fd):
            try:
                value = parse_row(text)
            except JsonFault as fault:
                raise _refusal(fault.message) from None
            refuse_unfit(value)
            yield value

    try:
        return list(chained(values()))
    except Refused as fault:
        raise _refusal(fault.message, Place(file=str(file), line=at[0])) from None


def _texts(fd: int) -> Iterator[tuple[int, bytes]]:
    """Yield the physical lines with something on them, and their numbers."""
    for line, (raw, _) in enumerate(physical_lines(fd, 0), 1):
        text = bare(raw, line)
        if text.strip():
            yield line, text


def _refusal(message: str, place: Place | None = None) -> Refused:
    return Refused("E_NOT_IMPORTABLE", message, place=place, remedy="Correct a copy of the file; nothing was imported.")


def lines_of(fd: int, fields: Fields, actor: str) -> Iterator[Line]:
    """Yield the lines of a file of objects, each to be judged by itself.

    Args:
        fd: the file.
        fields: what the members of its objects are.
        actor: who acts where a line does not say.
    """
    for number, text in _texts(fd):
        yield Line(number, len(text), _maker(text, fields, actor))


def _maker(text: bytes, fields: Fields, actor: str) -> Make:
    def make(_: State) -> Candidate:
        return candidate_of(loads(text, LEDGER_ROW), fields, actor)

    return make


# Writing --------------------------------------------------------------------------------------------------------


def bring(
    store: LedgerStore,
    lines: Iterable[Line],
    *,
    strict: bool = False,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Report:
    """Append what the lines ask for; those whose key is there already are counted and change nothing.

    They are written in groups, so that memory holds one group; only ``strict`` and ``dry_run``, which decide over all
    of them, take them together.

    Args:
        store: the ledger.
        lines: what to append, in order.
        strict: write nothing unless every line is accepted or there already.
        dry_run: write nothing.
        progress: told the number of the last line that was dealt with.

    Raises:
        Refused, DoesNotHold, Busy: what concerns the ledger and not one line. Earlier groups are in the ledger; running
            the import again goes on behind them.
    """
    report = Report()

    def keep(answers: Sequence[dict[str, Any] | Refused]) -> bool:
        report.written = not dry_run and all(isinstance(one, dict) or is_present(one) for one in answers)
        return report.written

    whole = strict or dry_run
    for group in [list(lines)] if whole else _groups(lines):
        answers = store.append_many([_build(line.make) for line in group], keep=keep if whole else keep_all)
        for answer in answers:
            if isinstance(answer, Refused) and answer.detail == "genesis_invalid":
                raise answer  # it would be said of every line that is left
        report.take(group, answers)
        if group:
            progress(group[-1].number)
    report.written = report.written and not dry_run
    return report


def _groups(lines: Iterable[Line]) -> Iterator[list[Line]]:
    group: list[Line] = []
    size = 0
    for line in lines:
        group.append(line)
        size += line.size
        if len(group) >= GROUP or size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _build(make: Make) -> Callable[[Snapshot], Candidate]:
    def build(snapshot: Snapshot) -> Candidate:
        state = snapshot.state
        candidate = make(state)
        key = candidate.source_key
        # The key says that the line is there, whatever else there is to say of it now.
        if isinstance(key, str) and key in state.source_keys:
            raise Refused(
                "E_DUPLICATE_ID",
                "a row has that source_key",
                place=Place(path="$.source_key"),
                detail=state.source_keys[key],
            )
        return candidate

    return build


def bring_whole(store: LedgerStore, file: Path, fd: int, progress: Progress = no_progress) -> Verification:
    """Copy a whole hashed ledger, byte for byte, into an empty one, once it verifies.

    Raises:
        Refused: ``E_NOT_IMPORTABLE`` where it does not verify, ``E_NOT_EMPTY``.
    """
    size = os.fstat(fd).st_size

    def told() -> Iterator[bytes]:
        done = 0
        for raw, _ in physical_lines(fd, 0):
            done += len(raw) + 1
            progress(done, size)
            yield raw

    try:
        return store.load(told())
    except DoesNotHold as fault:
        line = fault.place.line if fault.place is not None else None
        message = f"the rows are hashed already and are copied as they are, but {fault.message}"
        raise _refusal(message, Place(file=str(file), line=line)) from None
