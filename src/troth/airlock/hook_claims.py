"""What a hook's session says it ran: read from the file that the agent's tool names, which may be anything."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.core.words import printable
from troth.observer.folders import walk
from troth.observer.matching import entries_of, match
from troth.observer.session import belied
from troth.observer.sources import regular_file
from troth.observer.transcripts import Transcript, read_transcript

MAX_PATH: Final = 4096
"""Characters of a path that is opened."""

MAX_LOOKED: Final = 100_000
"""Files of a sessions' folder that are looked at."""

_SESSION: Final = re.compile(r"[0-9A-Za-z-]{8,64}")


@dataclass(frozen=True, slots=True)
class Heard:
    """What a session's record claims.

    Attributes:
        entries: those of the claims record (done records §4.6).
        belied: what the last message says and the record does not bear out, in words.
        notes: sentences for a reader.
    """

    entries: tuple[Mapping[str, Any], ...] = ()
    belied: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


NOTHING: Final = Heard()


def hear(path: str | None, form: str, *, last: str = "", calls: int = 0) -> Heard:
    """Read a session's record; what cannot be read claims nothing and holds nothing against anybody.

    Args:
        path: where it is said to lie; only a regular file of the user's own is read, and no link.
        form: the format that the tool writes.
        last: the agent's last message, where the tool says it.
        calls: how many commands the session is known to have called.
    """
    if path is None:
        return NOTHING
    try:
        transcript = _read(path, form)
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or fault
        return Heard(notes=(f"what the session ran cannot be read, so it claims nothing: {printable(str(why), 200)}",))
    notes: tuple[str, ...] = ()
    if transcript.unread:
        notes = (f"of the session's record {len(transcript.unread)} lines could not be read",)
    return Heard(entries_of(match([transcript.said], [])), belied(transcript, last, calls), notes)


def _read(path: str, form: str) -> Transcript:
    if len(path) > MAX_PATH or not Path(path).is_absolute():
        raise ValueError("no path of a file")
    with regular_file(Path(path)) as stream:
        if os.fstat(stream.fileno()).st_uid != os.geteuid():
            raise ValueError("the file is somebody else's")
        return read_transcript(stream, form)


def rollout_of(session: object, home: Path) -> str | None:
    """Return the one file below Codex's home that is named after a session; None where there is none, or several."""
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        return None
    found: list[str] = []
    looked = 0
    for folder, _, names in walk(str(home / "sessions")):
        looked += len(names)
        if looked > MAX_LOOKED:
            return None
        found += [f"{folder}/{name}" for name in names if name.endswith(f"-{session}.jsonl")]
    return found[0] if len(found) == 1 else None
