"""The neutral claims file as a transcript: each of its claims is a statement, and held as it was made."""

from __future__ import annotations

from typing import BinaryIO

from troth.observer.claims import MAX_BYTES, Claims, read_claims
from troth.observer.transcripts.common import Said, Transcript


def read_claims_file(stream: BinaryIO) -> Transcript:
    """Read a claims file."""
    return as_transcript(read_claims(stream.read(MAX_BYTES + 1)))


def as_transcript(claims: Claims) -> Transcript:
    """Return claims that have been read as what they say."""
    said = tuple(
        Said(line, argv=tuple(entry["argv"]), exit=entry.get("exit"), call=False, totals=claims.totals.get(line))
        for line, entry in zip(claims.at, claims.entries, strict=True)
    )
    return Transcript(
        format="claims", tool="", version="", tried=(), said=said, none=(), unread=claims.refused, lines=claims.lines,
        cut=claims.cut,
    )  # fmt: skip
