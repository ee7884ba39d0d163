"""Codex: the events of ``codex exec --json`` and the rollout files of its sessions, both one JSON object a line.

An event ``item.completed`` with a ``command_execution`` has the command, its exit and a status. A rollout has the same
as ``item_completed`` with a ``CommandExecution`` (the command as words); older ones have ``exec_command_end``, or only
the call and its output. Of a call that is told twice, the first account counts. The shell around a command (``bash -lc
TEXT``) is the tool's own and is left away: the tool may start it with other options than it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final

from troth.observer.shelltext import Shells, literal_words
from troth.observer.totals import only
from troth.observer.transcripts.common import MAX_PENDING, Finding, Said, Transcript, exit_in, objects_of, text_at

TRIED: Final = ("0.171.0",)

_ENDED: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,3})$", re.MULTILINE)
_CALLS: Final = frozenset({"exec_command", "shell", "local_shell", "container.exec", "shell_command"})

_RUNS_NOTHING: Final = frozenset({"apply_patch", "update_plan", "view_image"})


def read_events(stream: BinaryIO) -> Transcript:
    """Read what ``codex exec --json`` printed; the events do not tell the tool's version."""
    found = Finding("codex-exec", "codex", TRIED)
    for number, event in objects_of(stream, found):
        item = event.get("item")
        if not isinstance(item, dict) or event.get("type") != "item.completed":
            continue
        if item.get("type") == "agent_message":
            found.last = text_at(item, "text")
        if item.get("type") != "command_execution":
            continue
        found.last = ""
        _take(found, number, item, item.get("command"), "")
    return found.done()


def read_rollout(stream: BinaryIO) -> Transcript:
    """Read a rollout file (``rollout-….jsonl`` below the sessions' folder)."""
    found = Finding("codex-rollout", "codex", TRIED)
    asked: dict[str, tuple[int, Any]] = {}
    told: set[str] = set()
    for number, entry in objects_of(stream, found):
        body = entry.get("payload")
        if not isinstance(body, dict):
            continue
        if entry.get("type") == "session_meta":
            found.version = text_at(body, "cli_version") or found.version
            continue
        kind, time = body.get("type"), text_at(entry, "timestamp")
        item = body.get("item")
        if kind == "item_completed" and isinstance(item, dict) and item.get("type") == "CommandExecution":
            _once(found, told, text_at(item, "id"), (number, item), time)
        elif kind == "exec_command_end":
            _once(found, told, text_at(body, "call_id"), (number, body), time)
        elif entry.get("type") == "compacted":
            found.beside.add("an earlier part")
        elif kind == "task_complete":
            found.last = text_at(body, "last_agent_message")
        elif (
            kind in ("function_call", "local_shell_call")
            and (text_at(body, "name") if "name" in body else "local_shell") in _CALLS
        ):
            if len(asked) >= MAX_PENDING:
                asked.pop(next(iter(asked)))
            asked[text_at(body, "call_id")] = (number, _command_of(body))
        elif kind in ("function_call", "custom_tool_call", "mcp_tool_call_begin"):
            if text_at(body, "name") not in _RUNS_NOTHING:
                found.beside.add("another tool")
        elif kind == "function_call_output" and text_at(body, "call_id") in asked:
            call = text_at(body, "call_id")
            at, command = asked.pop(call)
            if call not in told:
                told.add(call)
                _take(found, at, {"exit_code": _exit_of(body.get("output")), "status": "completed"}, command, time)
    for _ in asked.keys() - told:
        found.no_claim("a call without a result")
    return found.done()


def _once(found: Finding, told: set[str], call: str, item: tuple[int, Mapping[str, Any]], time: str) -> None:
    if call not in told:
        told.add(call)
        _take(found, item[0], item[1], item[1].get("command"), time)


def _command_of(body: Mapping[str, Any]) -> Any:
    """Return the command of a model's call, as words; text is what the tool gives to a shell."""
    action = body.get("action")
    if isinstance(action, dict):
        return action.get("command")
    try:
        given = json.loads(text_at(body, "arguments") or "{}")
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    command = given.get("cmd", given.get("command"))
    return ["sh", "-c", command] if isinstance(command, str) else command


def _exit_of(output: Any) -> int | None:
    """Return the exit that a call's output begins with."""
    text = output if isinstance(output, str) else text_at(output, "content")
    if text.startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        meta = value.get("metadata") if isinstance(value, dict) else None
        return exit_in(meta.get("exit_code")) if isinstance(meta, dict) else None
    # The program's own output follows, and could say anything.
    head = re.split(r"^Output:$", text, maxsplit=1, flags=re.MULTILINE)[0]
    ended = _ENDED.search(head)
    return exit_in(int(ended[1])) if ended else None


def _take(found: Finding, number: int, item: Mapping[str, Any], command: Any, time: str) -> None:
    status, code = item.get("status"), exit_in(item.get("exit_code"))
    if status in ("declined", "rejected"):
        found.no_claim("denied, or not started")
        return
    if code is None:
        found.no_claim("no exit was reported")
        return
    words = _words(command)
    if words is None:
        found.no_claim("no command")
        return
    totals = only(text_at(item, "aggregated_output"))
    text = Shells.text_of(words)
    if isinstance(command, str) and len(words) == 1:
        text = command
    if text is not None:
        found.say(Said(number, text=text, exit=code, time=time, totals=totals))
    else:
        found.say(Said(number, argv=words, exit=code, time=time, totals=totals))


def _words(command: Any) -> tuple[str, ...] | None:
    """Return the words of a command; text that is not a shell with its ``-c`` stays one word."""
    if isinstance(command, str) and command.strip():
        words = literal_words(command)
        if words and PurePosixPath(words[0]).name in Shells.NAMES and Shells.text_of(words) is not None:
            return words
        return (command,)
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command) and command[0]:
        return tuple(command)
    return None
