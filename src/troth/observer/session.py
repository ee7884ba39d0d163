"""A last message against the session's own record of its calls, where nobody else watched. Pure.

A hook has no observation. What the agent's tool wrote down of its calls is the best that there is: not independent, so
that no check of a receipt rests on it, and good enough to send an agent back that says a command passed which, by that
record, never ran or only ever failed. Said so only where the record leaves no other way: it was read whole, and every
other program in it is one that starts no other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from troth.core.words import printable
from troth.observer.counting import MAX_WORDS, program_of
from troth.observer.matching import Seen, every_fitting
from troth.observer.shelltext import Named, read_text
from troth.observer.totals import said_in
from troth.observer.transcripts.common import Said, Transcript

MAX_STATEMENTS: Final = 50
"""Statements of one message that are held against the record."""

_STARTS_NOTHING: Final = frozenset(
    {
        "basename", "cat", "chmod", "cmp", "cp", "cut", "date", "diff", "dirname", "du", "egrep", "fgrep", "file",
        "grep", "head", "ls", "mkdir", "mv", "readlink", "realpath", "rg", "rm", "rmdir", "sed", "sleep", "sort",
        "stat", "tac", "tail", "tee", "touch", "tr", "tree", "uniq", "wc", "which",
    }
)  # fmt: skip
_OF_GIT: Final = frozenset({"add", "blame", "diff", "log", "ls-files", "rev-parse", "show", "status"})
_WITH_OPTIONS: Final = {
    "rg": re.compile(r" --(?:pre|hostname-bin)\b"),
    "sed": re.compile(r"[ ;{}\d$/!]e(?:[ \n;}]|$)|/[gpIiMm\d]*e[gpIiMmw\d]*(?:[ \n;}]|$)| (?:-\w*f|--file)"),
    "sort": re.compile(r" --comp"),
}
"""Those that start others where they are told to."""

_SYSTEM: Final = re.compile(r"(?:/usr)?/bin/[^/]+")
_INDIRECT: Final = re.compile(
    r"\b(?:source|eval|exec|trap|alias)\b|(?:^|[;&|(]|\n)\s*\.\s"
    # A variable may decide which program a name is, or what it starts.
    r"|(?:^|[\s;&|(])[A-Za-z_]\w*\+?="
)


def belied(transcript: Transcript, last: str = "", calls: int = 0) -> tuple[str, ...]:
    """Return, in words, what a last message says of commands that the record of its session does not bear out.

    Args:
        transcript: the session's record.
        last: the last message, where it is known otherwise; it may not be in the record yet.
        calls: commands that are known to have been called; a record with fewer is not whole.
    """
    statements = said_in(last or transcript.last)[:MAX_STATEMENTS]
    if not statements or not _whole(transcript) or len(transcript.said) < calls:
        return ()
    runs = _runs(transcript.said)
    if runs is None:
        return ()
    seen = Seen.of(
        {"id": str(at), "type": "exec", "step": at, "argv": list(run.argv or ())} for at, run in enumerate(runs)
    )
    found = []
    for stated in statements:
        named = program_of(Said(0, text=stated.command))
        if named is None:
            continue
        own = set(every_fitting(named, seen))
        if not all(_starts_nothing(run) for run in runs if run.argv not in own):
            continue
        exits = [run.exit for run in runs if run.argv in own]
        command = printable(stated.command, MAX_WORDS)
        if not exits:
            found.append(f"{command} is said to have passed, and the session has no call that could have run it")
        elif None not in exits and 0 not in exits:
            found.append(f"{command} is said to have passed, and ended with exit {exits[-1]} whenever it was called")
    return tuple(found)


def _whole(transcript: Transcript) -> bool:
    """Tell whether a record names everything that was run."""
    taken = {why for why, _ in transcript.none} <= {"denied, or not started"}
    return taken and not transcript.unread and not transcript.beside and not transcript.cut


def _runs(said: Sequence[Said]) -> list[Named] | None:
    """Return every program of every call; None where one is not understood, or its words are not known."""
    found: list[Named] = []
    for one in said:
        if one.text is None or _INDIRECT.search(one.text):
            return None
        read = read_text(one.text, one.exit)
        if not read.understood or any(run.argv is None for run in read.runs):
            return None
        found += read.runs
    return found


def _starts_nothing(run: Named) -> bool:
    if run.argv is None or ("/" in run.argv[0] and not _SYSTEM.fullmatch(run.argv[0])):
        return False  # a file of this name may be anybody's
    if run.program == "git":
        return len(run.argv) > 1 and run.argv[1] in _OF_GIT
    told = _WITH_OPTIONS.get(run.program)
    if told is not None and told.search("".join(f" {word}" for word in run.argv[1:])):
        return False
    return run.program in _STARTS_NOTHING
