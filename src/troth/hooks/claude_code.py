"""The hook of Claude Code: its JSON in, its JSON out.

======================= ===============================================================================================
event                   what is done
======================= ===============================================================================================
``SessionStart``        the tree is remembered, so that changes which no event names can be told
``PostToolUse``         the paths that the tool names are remembered; a protected path that changed is told at once
``SubagentStop``        a subagent that leaves a protected path changed is sent back; its task is not the whole task
``Stop``                the workspace is judged, what the session's record claims is taken down, and the table decides:
                        go on, send back, leave to a person, stop
======================= ===============================================================================================

Claude Code reads ``{"decision": "block", "reason": …}`` as: not yet, go on with this; ``{"continue": false,
"stopReason": …}`` as: stop altogether; ``systemMessage`` is shown to the person. Exit 0 goes with an answer. Exit 1 is
an error that is shown and stops nothing: a hook that failed has decided nothing, which ``troth hook status`` tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from troth.airlock.hook_claims import hear
from troth.airlock.hooking import Bound, Judged, Memory, Session, judge, protected_now, run_name, unnamed_changes
from troth.core.errors import Refused, TrothError
from troth.core.strictjson import JsonFault, Limits, loads
from troth.core.words import printable
from troth.observer.tree import snapshot
from troth.receipts.kinds import is_path

MAX_INPUT: Final = 1 << 25
"""Longest input read, in bytes: a tool's whole answer can stand in it."""

MOST_REASON: Final = 6000
"""Characters of a reason that the agent is sent back with."""

MOST_NAMED: Final = 20_000
"""Paths remembered of a session."""

AGENT: Final = "agent:claude-code"

_LIMITS: Final = Limits(max_bytes=MAX_INPUT, max_depth=200, refuse_overflow=False, surrogates=True)


@dataclass(frozen=True, slots=True)
class Event:
    """What Claude Code sent, as far as it matters here."""

    name: str
    session: str
    again: bool
    folder: str | None
    transcript: str | None
    said: str
    tool_input: Mapping[str, Any]


def read_event(data: bytes) -> Event:
    """Return the event that the bytes are; members that are not known are passed over.

    Raises:
        Refused: ``E_HOOK_INPUT``.
    """
    try:
        value = loads(data, _LIMITS)
    except JsonFault as fault:
        raise _bad(fault.message) from None
    if type(value) is not dict:
        raise _bad("a JSON object is asked for")
    for name in ("hook_event_name", "session_id"):
        if type(value.get(name)) is not str or not value[name]:
            raise _bad(f"{name} is missing or no text")
    again, tool_input = value.get("stop_hook_active", False), value.get("tool_input", {})
    if type(again) is not bool:
        raise _bad("stop_hook_active is true or false")
    folder = value.get("cwd")
    if type(folder) is str and "\0" in folder:
        raise _bad("cwd is no path")
    return Event(
        value["hook_event_name"],
        value["session_id"],
        again,
        folder if type(folder) is str else None,
        _text(value, "transcript_path"),
        _text(value, "last_assistant_message") or "",
        tool_input if type(tool_input) is dict else {},
    )


def _text(value: Mapping[str, Any], name: str) -> str | None:
    text = value.get(name)
    return text if type(text) is str else None


def _bad(message: str) -> Refused:
    return Refused("E_HOOK_INPUT", f"the input is not what Claude Code sends: {message}")


def answer(event: Event, bound: Bound) -> dict[str, Any] | None:
    """Return what Claude Code is answered, ``None`` for nothing.

    Raises:
        TrothError: nothing could be judged; whatever was decided before is forgotten where it was to be decided anew.
    """
    if event.folder is not None and not Path(event.folder).resolve().is_relative_to(bound.root.resolve()):
        return None  # settings of the user are read in every folder; this hook is about one
    memory = Memory.of(bound.root)
    if event.name == "Stop":
        return _stopped(event, bound, memory)
    state = memory.session(event.session)
    if event.name == "SessionStart":
        if state.baseline is None:
            memory.keep(event.session, replace(state, baseline=snapshot(bound.root).files))
        return None
    if event.name == "PostToolUse":
        return _used(event, bound, memory, state)
    if event.name == "SubagentStop":
        # The loop guard of the tool itself: a subagent is sent back once.
        unmet = protected_now(bound)
        return None if not unmet or event.again else _block(_about_protected(unmet))
    return None


def _block(reason: str) -> dict[str, Any]:
    return {"decision": "block", "reason": reason}


def _about_protected(unmet: tuple[str, ...]) -> str:
    shown = ", ".join(printable(name, 200) for name in unmet[:10]) + (" and more" if unmet[10:] else "")
    return (
        f"troth: the contract protects what is not as it was sealed: {shown}. Put it back as it was; the work is "
        "judged with these paths unchanged."
    )


def _used(event: Event, bound: Bound, memory: Memory, state: Session) -> dict[str, Any] | None:
    """Remember what a tool names, and tell of protected paths when what is wrong with them changes."""
    named = [*state.named]
    for key in ("file_path", "notebook_path"):
        path = event.tool_input.get(key)
        if type(path) is str and is_path(path.lstrip("/")) and Path(path).is_relative_to(bound.root):
            named.append(Path(path).relative_to(bound.root).as_posix())
    unmet = protected_now(bound)
    after = replace(
        state,
        told=unmet,
        named=tuple(dict.fromkeys(named))[-MOST_NAMED:],
        commands=state.commands + ("command" in event.tool_input),
    )
    if after != state:
        memory.keep(event.session, after)
    return _block(_about_protected(unmet)) if unmet and unmet != state.told else None


def _stopped(event: Event, bound: Bound, memory: Memory) -> dict[str, Any] | None:
    """Judge, decide, remember, answer."""
    # From here on nothing says that the tree is done, until this judgement does.
    memory.forget_last()
    state = memory.session(event.session)
    # A chain of stops begins where the tool says that no hook has sent the agent back yet.
    replans = state.replans if event.again else 0
    heard = hear(event.transcript, "claude-code", last=event.said, calls=state.commands)
    judged = judge(bound, run=run_name(event.session), agent=AGENT, heard=heard, replans=replans)
    unnamed = unnamed_changes(judged, state)
    counted = replace(state, replans=replans + 1 if judged.stop.action == "replan" else 0)
    try:
        memory.keep(event.session, counted)
    except OSError as fault:
        # Whoever cannot count must not send back: it might be for ever.
        raise Refused("E_UNREADABLE", f"the hook cannot remember how often it sent back: {fault.strerror}") from None
    folder = memory.conclude(judged, "claude-code")
    return _worded(judged, unnamed, state, folder)


def _worded(judged: Judged, unnamed: tuple[str, ...], state: Session, folder: Path) -> dict[str, Any] | None:
    told = [f"troth: {judged.done['decision'].replace('_', ' ')}: {judged.sentence}", *judged.lines]
    if unnamed:
        shown = ", ".join(printable(name, 200) for name in unnamed[:10]) + (
            f" and {len(unnamed) - 10} more" if unnamed[10:] else ""
        )
        told.append(f"changed and named by no event ({state.commands} commands were): {shown}")
    told.append(f"receipt: {folder / 'receipt.json'}")
    text = "\n".join(printable(line, 1000) for line in told)[:MOST_REASON]
    if judged.stop.action == "continue":
        return None
    if judged.stop.action == "replan":
        return _block(f"{text}\nMend this, then finish. What you say about it is not what is judged.")
    if judged.stop.action == "stop":
        return {"continue": False, "stopReason": text}
    limited = " It was sent back as often as the table allows." if judged.stop.limited else ""
    return {"systemMessage": f"{text}\nNot established as done: a person has to look.{limited}"}


def failed(fault: TrothError | OSError) -> str:
    """Return what the person is shown when nothing could be judged."""
    return f"troth: nothing was judged, so nothing counts as done: {printable(str(fault), 2000)}"
