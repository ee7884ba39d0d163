"""What can be done after a reviewer took too long, and what each way changes; nothing of the call is reusable (§11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from troth.airlock.reviewing.session import Session, Setup
from troth.backends.commandline import EFFORTS

MOST_WALL: Final = 5400
"""Longest wall that is proposed, in seconds: that of an estimate (§11)."""


class Option(NamedTuple):
    """One way on: what is given to a new run, and what that changes."""

    option: str
    changes: str


def timed_out(session: Session) -> Mapping[str, Any] | None:
    """Return the account of the call for the review where it ended by a limit of time, else ``None``."""
    last = next((call for call in reversed(session.calls) if call.purpose == "review"), None)
    if session.run is not None or last is None or last.failure is None or last.failure["code"] != "timeout":
        return None
    return last.answer


def recovery(session: Session) -> tuple[Option, ...]:
    """Return the ways on after a timeout, the mildest first; none for a run that ended otherwise."""
    answer = timed_out(session)
    if answer is None:
        return ()
    setup = session.setup
    found = [*_longer(setup, idle=answer.get("end") == "idle_timeout"), *_quicker(setup)]
    if setup.kind == "code" and len(setup.members) > 1:
        found.append(Option("troth review chunks", "each chunk is read alone, so the whole is not reviewed"))
    found += [
        Option("fewer or smaller files", "what is left out is not reviewed"),
        Option("--backend ANOTHER", "another model reads it elsewhere: it needs consent, and independence may differ"),
    ]
    return tuple(found)


def _longer(setup: Setup, *, idle: bool) -> list[Option]:
    limits = setup.limits
    again = "everything is sent, and paid for, again"
    if idle and limits.idle < limits.wall:
        return [Option(f"--idle {limits.wall:g}", f"it may be silent for as long as the call may take; {again}")]
    if limits.wall >= MOST_WALL:
        return []
    wall = min(2 * limits.wall, MOST_WALL)
    return [Option(f"--wall {wall:g}", f"it has {wall:g} seconds instead of {limits.wall:g}; {again}")]


def _quicker(setup: Setup) -> list[Option]:
    name = setup.backend["name"]
    found = []
    lower = EFFORTS[: EFFORTS.index(setup.effort)] if setup.effort in EFFORTS else ("low",)
    if name in ("codex", "claude") and lower and (name == "codex" or lower[-1] != "none"):
        found.append(Option(f"--effort {lower[-1]}", "it thinks less, and may overlook more"))
    if name == "codex" and setup.speed != "fast":
        found.append(Option("--speed fast", "it answers quicker, at the service's price for that"))
    return found
