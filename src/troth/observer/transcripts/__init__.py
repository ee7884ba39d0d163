"""Readers for the records that agents leave of what they ran: a table of formats, and how one is told from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO, Final

from troth.core.errors import Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.observer.transcripts import aider, claude, codex, neutral, plain
from troth.observer.transcripts.common import Said, Transcript

__all__ = ["FORMATS", "Said", "Transcript", "detect", "read_transcript"]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of transcript: who writes it, how it is read, and the versions it was tried with."""

    about: str
    read: Callable[[BinaryIO], Transcript]
    tried: tuple[str, ...] = ()


FORMATS: Final[Mapping[str, Format]] = {
    "claude-code": Format("Claude Code's session file", claude.read_session, claude.TRIED),
    "claude-stream": Format("Claude Code's --output-format stream-json", claude.read_stream, claude.TRIED),
    "codex-exec": Format("the events of codex exec --json", codex.read_events, codex.TRIED),
    "codex-rollout": Format("Codex's rollout file", codex.read_rollout, codex.TRIED),
    "aider": Format("aider's chat history", aider.read_history, aider.TRIED),
    "plain": Format("text with fenced shell blocks, each run with its exit", plain.read_log),
    "claims": Format('the neutral file: {"argv": […], "exit": n} a line', neutral.read_claims_file),
}
"""Name -> format, in the order in which they are listed."""

HEAD: Final = 1 << 20
"""Bytes by which a format is told."""

_JSON: Final = Limits(max_bytes=HEAD, max_depth=200, refuse_overflow=False, surrogates=True)


def read_transcript(stream: BinaryIO, name: str) -> Transcript:
    """Read a transcript of a named format.

    Raises:
        Refused: ``E_TRANSCRIPT_FORMAT``: no format of that name.
        OSError: the stream cannot be read.
    """
    known = FORMATS.get(name)
    if known is None:
        raise Refused(
            "E_TRANSCRIPT_FORMAT",
            f"no transcript format is called {name!r}",
            remedy=f"Known are: {', '.join(FORMATS)}.",
        )
    return known.read(stream)


def detect(head: bytes) -> str:
    """Return the format that the beginning of a transcript has; text without any mark is a plain log."""
    for line in BytesIO(head[:HEAD]):
        if not line.strip():
            continue
        try:
            value = loads(line, _JSON)
        except JsonFault:
            continue
        name = _mark(value)
        if name is not None:
            return name
    if b"\n# aider chat started at " in b"\n" + head[:HEAD]:
        return "aider"
    return "plain"


def _mark(value: object) -> str | None:
    """Return the format that one JSON line speaks for."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("argv"), list):
        return "claims"
    kind = value.get("type")
    if not isinstance(kind, str):
        return None
    if kind in ("session_meta", "response_item", "event_msg") and isinstance(value.get("payload"), dict):
        return "codex-rollout"
    if kind.startswith(("thread.", "turn.", "item.")):
        return "codex-exec"
    if "sessionId" in value:
        return "claude-code"
    return "claude-stream" if "session_id" in value else None
