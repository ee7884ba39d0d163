"""One pass over the tracer's file: joins interrupted calls, drops what has no effect, finds who made whom.

What is kept are ``Step`` tuples in the order of the file, for ``interpret``, once the whole tree
of processes is known. Reads are most of a trace and are dropped by their line alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from troth.observer.processes import Clone, Lineage, Task
from troth.observer.syscalls import CLONES, ESCAPES, FORMS, NETWORK, NO_EFFECT, PROCESS, SIGNALS, UNNAMED_NO_EFFECT
from troth.observer.totals import MAX_LINE, MAX_LINES, lines_of, may_hold, rows
from troth.observer.trace import (
    UNFINISHED,
    child_died,
    ending,
    failure,
    process_number,
    superseded,
    unescape,
)


class Kind(IntEnum):
    """What a step is."""

    CALL = 0
    WRITE = 1
    CLONE = 2
    END = 3
    TAKEOVER = 4
    FOLDER = 5
    REFUSED = 6
    UNKNOWN = 7
    ESCAPE = 8
    PRINTED = 9


Step = tuple[Kind, int, Task, Any, Any]
"""Kind, nanoseconds since the start, task, and two values:

=========  ============================================  =========================================
CALL       name                                          the whole text ``NAME(...) = ...``
WRITE      the path as the tracer wrote it               whether it is marked as deleted
CLONE      the ``Clone``                                 None
END        exit status                                   None
TAKEOVER   the thread whose ``execve`` took over         None
FOLDER     the working directory as the tracer wrote it  None
REFUSED    name                                          (error, text)
UNKNOWN    name                                          the whole text
ESCAPE     name                                          why it is one
PRINTED    lines that may be totals of tests; None where None
           some of what was printed is not shown
=========  ============================================  =========================================
"""


@dataclass(slots=True)
class Recording:
    """What a trace says, before it is interpreted.

    Attributes:
        steps: in the order of the file.
        lineage: who made whom.
        lines: lines read.
        unparsed: lines that do not follow the grammar.
        torn: the file ends within a line.
        complaints: lines in which the tracer speaks of itself, or lets go of a process.
    """

    steps: list[Step] = field(default_factory=list)
    lineage: Lineage = field(default_factory=Lineage)
    lines: int = 0
    unparsed: int = 0
    torn: bool = False
    complaints: int = 0


class _Class(IntEnum):
    SKIP = 0
    OPEN = 1
    WRITE = 2
    CLONE = 3
    MMAP = 4
    NETWORK = 5
    PROCESS = 6
    FORM = 7
    ESCAPE = 8
    MUNMAP = 9
    MREMAP = 10
    SIGNAL = 11


_CLASS: Final[dict[bytes, _Class]] = {
    **dict.fromkeys(NO_EFFECT | UNNAMED_NO_EFFECT, _Class.SKIP),
    **{
        name: {
            "open": _Class.OPEN,
            "write": _Class.WRITE,
            "mmap": _Class.MMAP,
            "munmap": _Class.MUNMAP,
            "mremap": _Class.MREMAP,
        }.get(form.kind, _Class.FORM)
        for name, form in FORMS.items()
    },
    **dict.fromkeys(PROCESS, _Class.PROCESS),
    **dict.fromkeys(CLONES, _Class.CLONE),
    **dict.fromkeys(NETWORK, _Class.NETWORK),
    **dict.fromkeys(ESCAPES, _Class.ESCAPE),
    **dict.fromkeys(SIGNALS, _Class.SIGNAL),
    # Where the written descriptor is not the first argument, or the result no count, the line is taken apart.
    b"fallocate": _Class.FORM,
    b"copy_file_range": _Class.FORM,
    b"splice": _Class.FORM,
}

MAX_PAUSE: Final = 10_000_000
"""Seconds between two lines that are believed: a third of a year."""

_NAME: Final = re.compile(rb"[a-z_][a-z0-9_]*(?:#\d+)?\(")
_RESTARTS: Final = re.compile(rb"\) *= \? ERESTART[A-Z_]+ \([^()<>]*\)$")
_NUMBER_RESULT: Final = re.compile(rb"\) *= (\d{1,10}(?: /\* \d{1,10} in strace's PID NS \*/)?)$")
_WRITTEN: Final = re.compile(rb"\) *= (\d+|\?)$")
_WROTE: Final = re.compile(rb'", (\d+)\) *= (\d+)$')
_OUTPUTS: Final = frozenset({b"1<", b"2<"})
_EXECS: Final = frozenset({b"execve", b"execveat"})
_RENUMBERED: Final = re.compile(rb" <pid changed to \d{1,10} \.\.\.>$")
_UNREADABLE: Final = b"???"
_NEVER_MADE: Final = re.compile(rb"\?\?\?\( *\) *= \?$")
_REFUSALS: Final = frozenset({b"EPERM", b"EACCES", b"EROFS"})
_SHIELDED: Final = frozenset({b"EPERM", b"ESRCH"})
_UNREACHED: Final = _REFUSALS | {b"ENETUNREACH", b"EHOSTUNREACH", b"ENETDOWN", b"ECONNREFUSED"}


class _Reader:
    def __init__(self) -> None:
        self.recording = Recording()
        self.now = 0
        self.shared: set[bytes] = set()
        self.dying: set[int] = set()
        self.halves: dict[int, tuple[bytes, bytes, Clone | None]] = {}
        self.took_over: set[int] = set()
        self.begun_lines: dict[tuple[int, bytes], bytes] = {}

    # --- one line ---

    def line(self, line: bytes) -> bool:
        """Read one line without its end; False when it does not follow the grammar."""
        try:
            number, passed, text = line.split(None, 2)
            pid = int(number)
            seconds, fraction = int(passed[:-10]), int(passed[-9:])
        except ValueError:
            return False
        if passed[-10:-9] != b"." or not 0 <= seconds < MAX_PAUSE or fraction < 0:
            return False
        self.now += seconds * 1_000_000_000 + fraction
        task = self.recording.lineage.live.get(pid) or self.recording.lineage.task(pid)
        mark = text[:1]
        if pid in self.dying and mark != b"+":
            return False
        if mark == b"<":
            return self.resumed(pid, task, text)
        if mark == b"+":
            return self.ended(pid, task, text)
        if mark == b"-":
            return self.signalled(text)
        opening = text.find(b"(")
        name = text[:opening]
        if name == _UNREADABLE:
            return self.unreadable(pid, text)
        found = _CLASS.get(name)
        if found is None and not _NAME.match(text):
            return False
        if text.endswith(UNFINISHED):
            partial = text[: -len(UNFINISHED)]
            clone = self.clone(task, partial) if found is _Class.CLONE else None
            self.halves[pid] = (name, partial, clone)
            return True
        if found is _Class.SKIP:
            return True
        if found is _Class.PROCESS and text.endswith(b" ...>"):
            # A thread has taken over its process: what follows of it comes under the first thread's number.
            partial, changed = _RENUMBERED.subn(b"", text)
            self.halves[pid] = (name, partial, None)
            return bool(changed)
        if found is _Class.CLONE:
            return self.returned(self.clone(task, text), text)
        return self.call(task, name, found, text)

    def resumed(self, pid: int, task: Task, text: bytes) -> bool:
        half = self.halves.pop(pid, None)
        before, mark, tail = text.partition(b" resumed>")
        if half is None or not mark or before[5:] != half[0] or not before.startswith(b"<... "):
            return False
        name, partial, clone = half
        if name == _UNREADABLE:
            return self.unreadable(pid, partial + tail)
        whole = partial + tail.removeprefix(UNFINISHED)
        if pid in self.took_over and name in _EXECS:
            # Only a program start that has succeeded makes a thread take its leader's place; which result the tracer
            # then prints for it differs by version, and means nothing.
            self.took_over.discard(pid)
            whole = partial + b") = 0"
        if whole.endswith(UNFINISHED):
            self.halves[pid] = (name, whole[: -len(UNFINISHED)], clone)
            return True
        found = _CLASS.get(name)
        if found is _Class.SKIP:
            return True
        if clone is not None:
            return self.returned(clone, whole)
        return self.call(task, name, found, whole)

    def unreadable(self, pid: int, text: bytes) -> bool:
        """Note a process that was killed before the tracer could read its call, which the kernel then passes over.

        The tracer stops a process before each call; one that is killed while it stands there makes the call no more.
        """
        if text.endswith(UNFINISHED):
            self.halves[pid] = (_UNREADABLE, text[: -len(UNFINISHED)], None)
            return True
        self.dying.add(pid)
        return _NEVER_MADE.match(text) is not None

    def ended(self, pid: int, task: Task, text: bytes) -> bool:
        self.dying.discard(pid)
        status = ending(text)
        if status is not None:
            half = self.halves.pop(pid, None)
            if half is not None and half[0] == _UNREADABLE:
                half = None
            if half is not None and half[2] is None and _CLASS.get(half[0]) is not _Class.SKIP:
                self.call(task, half[0], _CLASS.get(half[0]), half[1] + b") = ?")
            for output in _OUTPUTS:
                begun = self.begun_lines.pop((pid, output), b"")
                if begun and may_hold(begun):
                    self.tell(task, begun)
            self.keep(Kind.END, self.recording.lineage.ended(pid, status), status, None)
            return True
        by = superseded(text)
        if by is None:
            return False
        if by in self.halves:
            self.halves[pid] = self.halves.pop(by)
            self.took_over.add(pid)
        thread = self.recording.lineage.superseded(pid, by)
        if thread is None:
            return False
        self.keep(Kind.TAKEOVER, task, thread, None)
        return True

    def signalled(self, text: bytes) -> bool:
        if not text.startswith(b"--- "):
            return False
        if text.startswith(b"--- SIGCHLD "):
            news = child_died(text)
            if news is not None:
                self.recording.lineage.child_died(*news)
        return text.endswith(b" ---")

    # --- one call ---

    def keep(self, kind: Kind, task: Task, first: Any, second: Any) -> None:
        self.recording.steps.append((kind, self.now, task, first, second))

    def clone(self, task: Task, text: bytes) -> Clone | None:
        """Note a call that makes a task at its beginning; None for one that has failed already."""
        if failure(text) is not None:
            return None
        if b"CLONE_UNTRACED" in text:
            self.keep(Kind.ESCAPE, task, text[: text.find(b"(")], "its child is hidden from the tracer")
            return None
        clone = Clone(task, text)
        self.keep(Kind.CLONE, task, clone, None)
        self.recording.lineage.begun(clone)
        return clone

    def returned(self, clone: Clone | None, text: bytes) -> bool:
        if clone is None:
            return True
        if b"CLONE_UNTRACED" in text and b"CLONE_UNTRACED" not in clone.flags:
            self.keep(Kind.ESCAPE, clone.caller, b"clone", "its child is hidden from the tracer")
        match = _NUMBER_RESULT.search(text, max(0, len(text) - 80))
        numbers = process_number(match[1]) if match is not None else None
        if numbers is not None:
            self.recording.lineage.returned(clone, *numbers)
            return True
        self.recording.lineage.returned(clone, None, None)
        return failure(text) is not None or text.endswith(b"= ?") or _RESTARTS.search(text) is not None

    def call(self, task: Task, name: bytes, found: _Class | None, text: bytes) -> bool:
        """Keep one finished call if it had an effect, or was refused one."""
        if found is _Class.OPEN:
            if text.startswith(b"openat(AT_FDCWD<"):
                folder = text[16 : text.find(b">", 16)]
                if folder != task.seen_folder:
                    task.seen_folder = folder
                    self.keep(Kind.FOLDER, task, folder, None)
            if (
                b"O_WRONLY" not in text
                and b"O_RDWR" not in text
                and b"O_CREAT" not in text
                and b"O_TRUNC" not in text
                and b"O_PATH" not in text
                and name != b"open_by_handle_at"
            ):
                return True
        elif found is _Class.WRITE:
            return self.write(task, name, text)
        elif found is _Class.MMAP:
            if b"MAP_SHARED" not in text:
                return True
            self.shared.add(text[text.rfind(b" ") + 1 :])
        elif found is _Class.MUNMAP:
            if text[7 : text.find(b",")] not in self.shared:
                return True
        elif found is _Class.MREMAP:
            if not self.shared:
                return True
            self.shared.add(text[text.rfind(b" ") + 1 :])
        elif found is _Class.NETWORK and b"sa_family" not in text:
            return True
        error = failure(text)
        if found is _Class.SIGNAL:
            if error in _SHIELDED:
                self.keep(Kind.REFUSED, task, name, (error, text))
            elif text.startswith(b"(1, ", len(name)):
                self.keep(Kind.REFUSED, task, name, (b"no effect on the first process", text))
            return True
        if error is None:
            if _RESTARTS.search(text, max(0, len(text) - 160)) is not None:
                return True
            self.keep(Kind.CALL if found is not None else Kind.UNKNOWN, task, name, text)
            return True
        if found is _Class.NETWORK:
            if error == b"EINPROGRESS":
                self.keep(Kind.CALL, task, name, text)
            elif error in _UNREACHED:
                self.keep(Kind.REFUSED, task, name, (error, text))
        elif (
            found is _Class.ESCAPE
            or (found is None and error == b"ENOSYS")
            or (error in _REFUSALS and found is not _Class.PROCESS and found is not _Class.MMAP)
        ):
            self.keep(Kind.REFUSED, task, name, (error, text))
        return True

    def write(self, task: Task, name: bytes, text: bytes) -> bool:
        """Keep a write to what has a path, by its first argument and its result alone: what is written is long."""
        begin = text.find(b"<", len(name) + 1, len(name) + 13)
        result = _WRITTEN.search(text, max(0, len(text) - 40))
        if begin < 0 or not text[len(name) + 1 : begin].isdigit():
            if result is not None and result[1] != b"0":
                self.keep(Kind.UNKNOWN, task, name, text)
            return result is not None or failure(text) is not None or _RESTARTS.search(text) is not None
        if text[len(name) + 1 : begin + 1] in _OUTPUTS:
            self.printed(task, name, text, begin)
        if text[begin + 1 : begin + 2] != b"/":
            return True
        end = text.find(b">", begin)
        if end < 0:
            return False
        if result is None:
            error = failure(text)
            if error in _REFUSALS:
                self.keep(Kind.REFUSED, task, name, (error, text))
            return error is not None or _RESTARTS.search(text, max(0, len(text) - 160)) is not None
        path = text[begin + 1 : end]
        if result[1] == b"0":
            return True
        if result[1] == b"?":
            self.keep(Kind.CALL, task, name, text[: end + 1] + b", ...) = ?")
            return True
        deleted = text.startswith(b"(deleted)", end + 1)
        steps = self.recording.steps
        if steps:
            last = steps[-1]
            if last[0] is Kind.WRITE and last[2] is task and last[3] == path and last[4] is deleted:
                steps[-1] = (Kind.WRITE, self.now, task, last[3], deleted)
                return True
        self.keep(Kind.WRITE, task, path, deleted)
        return True

    # --- what programs print ---

    def printed(self, task: Task, name: bytes, text: bytes, begin: int) -> None:
        """Keep the lines of a write to an output that may be totals of tests; a line goes on from write to write."""
        first = text.find(b', "', begin)
        wrote = _WROTE.search(text, max(0, len(text) - 60))
        if name != b"write" or first < 0 or wrote is None or wrote[1] != wrote[2]:
            if failure(text) is None:
                self.tell(task, None)
            return
        key = (task.pid, text[len(name) + 1 : begin + 1])
        shown = self.begun_lines.pop(key, b"") + text[first + 3 : wrote.start()]
        if not shown.endswith(b"\\n"):
            start = shown.rfind(b"\\n") + 2 if b"\\n" in shown else 0
            # A line that is too long to be totals goes on as one.
            self.begun_lines[key] = shown[start:] if len(shown) - start <= 4 * MAX_LINE else b"." * (4 * MAX_LINE)
            shown = shown[:start]
        if may_hold(shown):
            self.tell(task, shown)

    def tell(self, task: Task, shown: bytes | None) -> None:
        """Keep what was printed, as the tracer wrote it; of a program that prints too much of it, that it did."""
        if task.told > MAX_LINES:
            return
        whole = unescape(shown) if shown is not None else None
        lines = rows(lines_of(whole.decode("utf-8", "replace"))) if whole is not None else None
        if lines == ():
            return
        task.told += 1 if lines is not None else MAX_LINES + 1
        self.keep(Kind.PRINTED, task, lines if task.told <= MAX_LINES else None, None)


def read_steps(lines: Iterable[bytes]) -> Recording:
    """Read the tracer's file.

    Args:
        lines: physical lines with their ends.

    Returns:
        what it says; a line that does not follow the grammar is counted, and never an error.
    """
    reader = _Reader()
    recording = reader.recording
    read = reader.line
    for line in lines:
        if not line.endswith(b"\n"):
            recording.torn = True
            break
        recording.lines += 1
        if line.startswith(b"strace: ") or line.endswith(b" <detached ...>\n"):
            recording.complaints += 1
        elif not read(line[:-1]):
            recording.unparsed += 1
    return recording
