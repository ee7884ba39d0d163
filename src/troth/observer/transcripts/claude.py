"""Claude Code: the session file (one JSON object a line) and ``--output-format stream-json``.

Both carry the same messages: an assistant's ``tool_use`` with a ``command``, and a user's ``tool_result`` of that id.
A result without an error is an exit of 0, except where the tool says that it read another meaning into the exit
(``returnCodeInterpretation``). A result with an error says ``Exit code N`` when the command ran; when it does not, the
call was denied, refused or never started, and claims nothing. A command sent to the background was started and is not
reported as done. Subagents' messages stand in the stream with the id of the call that made them, and in session files
of their own with an ``agentId``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from troth.observer.totals import only
from troth.observer.transcripts.common import (
    MAX_NOTES,
    MAX_PENDING,
    Finding,
    Said,
    Transcript,
    exit_in,
    objects_of,
    text_at,
)

TRIED: Final = ("2.1.197",)

MAX_BLOCKS: Final = 8
"""Parts of one message or result that are read for text."""

TOOLS: Final = frozenset({"Bash"})
"""Tools whose calls are runs of a command."""

RUNS_NOTHING: Final = frozenset(
    {"Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "Grep", "Glob", "LS", "TodoWrite", "ToolSearch"}
)
"""Tools that start no program."""

_OWN_MEANING: Final = re.compile(r"\b(?:e|f|z|rip)?grep\b|\b(?:rg|find|diff|cmp|test)\b|\[")
"""Programs whose exit the tool may read otherwise; where it does not say whether it did, their exit is not known."""

_EXIT: Final = re.compile(r"(?:Error: )?Exit code (-?\d{1,3})(?:\n|\Z)")


def read_session(stream: BinaryIO) -> Transcript:
    """Read a session file, of the main agent or of a subagent."""
    return _read(stream, Finding("claude-code", "claude-code", TRIED))


def read_stream(stream: BinaryIO) -> Transcript:
    """Read what ``claude -p --output-format stream-json`` printed."""
    return _read(stream, Finding("claude-stream", "claude-code", TRIED))


def _read(stream: BinaryIO, found: Finding) -> Transcript:
    asked: dict[str, tuple[int, str, str, bool]] = {}
    answered: set[str] = set()
    for number, entry in objects_of(stream, found):
        found.version = text_at(entry, "claude_code_version") or text_at(entry, "version") or found.version
        kind = entry.get("type")
        by = text_at(entry, "agentId") or text_at(entry, "parent_tool_use_id")
        if kind == "assistant" and not by:
            found.last = _message(entry)
        if entry.get("isCompactSummary") is True or entry.get("subtype") == "compact_boundary":
            found.beside.add("an earlier part")
        if kind == "user" and _typed_a_command(entry):
            found.beside.add("a command of the person's")
        for block in _blocks(entry):
            if kind == "assistant" and block.get("type") == "tool_use" and text_at(block, "name") in TOOLS:
                command, call = text_at(block, "input", "command"), text_at(block, "id")
                given = block.get("input")
                behind = isinstance(given, dict) and given.get("run_in_background") is True
                if command and call and call not in answered:
                    if len(asked) >= MAX_PENDING:
                        asked.pop(next(iter(asked)))
                    asked[call] = (number, command, by, behind)
            elif kind == "assistant" and block.get("type") == "tool_use":
                name = text_at(block, "name")
                if name not in RUNS_NOTHING and len(found.beside) < MAX_NOTES:
                    found.beside.add(name)
            elif kind == "user" and block.get("type") == "tool_result":
                call = text_at(block, "tool_use_id")
                if call in asked:
                    answered.add(call)
                    said = _said(asked.pop(call), block, entry)
                    found.say(said) if isinstance(said, Said) else found.no_claim(said)
    for _ in asked:
        found.no_claim("a call without a result")
    return found.done()


def _typed_a_command(entry: dict[str, Any]) -> bool:
    """Tell whether a person had a command run from the prompt."""
    return "<bash-input>" in text_at(entry, "message", "content")


def _message(entry: dict[str, Any]) -> str:
    """Return the text of a message; of one that calls a tool, none: it is not the last."""
    blocks = list(_blocks(entry))
    if any(block.get("type") == "tool_use" for block in blocks):
        return ""
    return "\n\n".join(text_at(block, "text") for block in blocks[:MAX_BLOCKS] if block.get("type") == "text")


def _blocks(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block


def _said(asked: tuple[int, str, str, bool], block: dict[str, Any], entry: dict[str, Any]) -> Said | str:
    """Return the run that a result reports, or why it reports none."""
    number, command, by, behind = asked
    result = entry.get("toolUseResult", entry.get("tool_use_result"))
    details = result if isinstance(result, dict) else {}
    if behind or details.get("backgroundTaskId"):
        return "sent to the background, not reported as done"
    if details.get("interrupted") is True:
        return "interrupted"
    at = text_at(entry, "timestamp")
    text = _text(block.get("content"))
    totals = only(text)
    if block.get("is_error") is not True:
        meant = bool(details.get("returnCodeInterpretation")) or (not details and bool(_OWN_MEANING.search(command)))
        return Said(number, text=command, exit=None if meant else 0, by=by, time=at, totals=totals)
    told = _EXIT.match(text)
    if told is None:
        return "denied, or not started"
    return Said(number, text=command, exit=exit_in(int(told[1])), by=by, time=at, totals=totals)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(text_at(part, "text") for part in parts[:MAX_BLOCKS])
