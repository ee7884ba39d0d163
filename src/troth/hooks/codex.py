"""The ``notify`` of Codex: one JSON object as the last word of the command line, and nobody who waits for an answer.

Codex cannot be sent back this way. The turn is judged and kept, and ``troth hook status`` tells what stands.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from troth.airlock.hook_claims import hear, rollout_of
from troth.airlock.hooking import Bound, Judged, Memory, judge, run_name
from troth.core.errors import Refused
from troth.core.strictjson import JsonFault, Limits, loads

AGENT: Final = "agent:codex"
TURN: Final = "agent-turn-complete"

_LIMITS: Final = Limits(max_bytes=1 << 22, max_depth=64, refuse_overflow=False, surrogates=True)


def codex_home() -> Path:
    """Return the folder in which Codex keeps its configuration and its sessions."""
    home = os.environ.get("CODEX_HOME")
    return Path(home) if home else Path.home() / ".codex"


def notified(word: str, bound: Bound) -> Judged | None:
    """Judge the workspace when a turn is complete; ``None`` for any other notification.

    Raises:
        Refused: ``E_HOOK_INPUT``: it is no notification; a code of the judgement. Nothing that was decided before
            stands any more.
    """
    memory = Memory.of(bound.root)
    memory.forget_last()
    value = read_notification(word)
    if value is None:
        return None
    turn = value.get("turn-id")
    last = value.get("last-assistant-message")
    rollout = rollout_of(value.get("thread-id"), codex_home())
    heard = hear(rollout, "codex-rollout", last=last if type(last) is str else "")
    judged = judge(bound, run=run_name(turn if type(turn) is str else ""), agent=AGENT, heard=heard)
    memory.conclude(judged, "codex")
    return judged


def read_notification(word: str) -> dict[str, Any] | None:
    """Return the notification of a completed turn that a word is; ``None`` for any other notification.

    Raises:
        Refused: ``E_HOOK_INPUT``.
    """
    try:
        value = loads(word.encode("utf-8", "surrogateescape"), _LIMITS)
    except JsonFault as fault:
        raise Refused("E_HOOK_INPUT", f"the last word is not what Codex sends: {fault.message}") from None
    kind = value.get("type") if type(value) is dict else None
    if type(kind) is not str:
        raise Refused("E_HOOK_INPUT", "the last word is not what Codex sends: it has no type")
    return value if kind == TURN else None
