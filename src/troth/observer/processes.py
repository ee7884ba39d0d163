"""Processes, threads and commands of a traced run: who started whom, where each stands, whose events are whose.

Two halves. ``Lineage`` works while the trace is read: it finds which clone made which task. ``Process`` and
``start`` work afterwards, in the order of the calls: working directories, programs, commands and origins
(done records §13.1).

The tracer names tasks by numbers of its own process namespace, the calls' results are numbers of the sandbox's,
and translating them costs too much (``syscalls``). But a new task can only come from a clone that has begun and has
no task yet. With one such clone there is nothing to decide. With several, both namespaces hand out numbers in
order, so the waiting tasks sorted by the tracer's number belong to the waiting clones sorted by their result. What
the parent is told when a child ends checks the pairing; a contradiction is reported and coverage is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeVar

T = TypeVar("T")

_PAGE: Final = os.sysconf("SC_PAGESIZE")

THREAD: Final = b"CLONE_THREAD"
SHARED_FOLDER: Final = b"CLONE_FS"

_SPAN: Final = 1 << 14
"""Numbers further apart than this within one small group have wrapped around (the smallest limit is 32768)."""


@dataclass(slots=True, eq=False)
class Task:
    """One thread of execution, from its first line to its ending line."""

    pid: int
    made_by: Clone | None = None
    ended: int | None = None
    process: Process | None = None
    place: Place | None = None
    seen_folder: bytes = b""
    told: int = 0


@dataclass(slots=True, eq=False)
class Clone:
    """One call that makes a task.

    Attributes:
        caller: the task that called.
        flags: the call's text as far as its entry shows it.
        number: the result as the caller sees it, when it has returned.
        exact: the tracer's own number for the child, where it was printed.
    """

    caller: Task
    flags: bytes
    child: Task | None = None
    number: int | None = None
    exact: int | None = None

    @property
    def thread(self) -> bool:
        """Whether the child is a thread of the caller's process."""
        return THREAD in self.flags


class Lineage:
    """Finds which clone made which task, while the trace is read."""

    def __init__(self) -> None:
        self.live: dict[int, Task] = {}
        self.tasks = 0
        self.contradictions = 0
        self._open: list[Clone] = []
        self._waiting: list[Task] = []
        self._guessed: dict[int, Task] = {}

    def task(self, pid: int) -> Task:
        """Return the task that a line is about, a new one when there is none of that number alive."""
        found = self.live.get(pid)
        if found is None:
            found = self.live[pid] = Task(pid)
            self.tasks += 1
            self._appeared(found)
        return found

    def _appeared(self, task: Task) -> None:
        for clone in self._open:
            if clone.exact == task.pid:
                self._pair(clone, task)
                return
        if len(self._open) == 1 and not self._waiting:
            self._pair(self._open[0], task)
        elif self._open:
            self._waiting.append(task)
            self._settle()

    def begun(self, clone: Clone) -> None:
        """A call that makes a task has begun."""
        self._open.append(clone)

    def returned(self, clone: Clone, number: int | None, exact: int | None) -> None:
        """A call that makes a task has returned its child's number, or ``None`` for no child."""
        if number is None:
            if clone in self._open:
                self._open.remove(clone)
        else:
            clone.number, clone.exact = number, exact
            if clone.child is None and exact is not None:
                for task in self._waiting:
                    if task.pid == exact:
                        self._waiting.remove(task)
                        self._pair(clone, task)
                        break
        if self._waiting:
            self._settle()

    def _pair(self, clone: Clone, task: Task) -> None:
        clone.child, task.made_by = task, clone
        self._open.remove(clone)

    def _settle(self) -> None:
        """Pair all waiting tasks with all open clones once each clone has its task and, of several, its number."""
        if len(self._open) != len(self._waiting):
            return
        if len(self._open) > 1 and any(clone.number is None for clone in self._open):
            return
        clones = _in_order(self._open, lambda clone: clone.number or 0)
        tasks = _in_order(self._waiting, lambda task: task.pid)
        self._waiting.clear()
        for clone, task in zip(clones, tasks, strict=True):
            if len(clones) > 1 and clone.number is not None:
                self._guessed[clone.number] = task
            self._pair(clone, task)

    def ended(self, pid: int, status: int) -> Task:
        """A task has ended; the number is free again."""
        task = self.task(pid)
        task.ended = status
        del self.live[pid]
        return task

    def superseded(self, leader: int, by: int) -> Task | None:
        """A thread's ``execve`` has taken over its process: the thread goes on under the leader's number."""
        thread = self.live.pop(by, None)
        if thread is not None:
            thread.ended = 0
            self.task(leader)
        return thread

    def child_died(self, number: int, status: int) -> None:
        """A parent was told that its child of that number ended: check a pairing that went by the numbers' order."""
        task = self._guessed.pop(number, None)
        if task is not None and task.ended != status:
            self.contradictions += 1

    def leftovers(self) -> tuple[list[Task], list[Clone]]:
        """Return tasks whose maker is not known, and clones whose task never showed."""
        return self._waiting, [clone for clone in self._open if clone.number is not None]


def _in_order(items: Iterable[T], number: Callable[[T], int]) -> list[T]:
    ordered = sorted(items, key=number)
    if len(ordered) > 1 and number(ordered[-1]) - number(ordered[0]) > _SPAN:
        # The counter wrapped: the widest step down separates the older, higher numbers from the newer, lower.
        steps = [number(after) - number(before) for before, after in pairwise(ordered)]
        cut = steps.index(max(steps)) + 1
        ordered = ordered[cut:] + ordered[:cut]
    return ordered


# --- afterwards, in the order of the calls ---


@dataclass(slots=True, eq=False)
class Place:
    """A working directory, shared by the threads of a process; ``None``: not known."""

    folder: bytes | None


@dataclass(slots=True, eq=False)
class Command:
    """A process that the root or a persistent shell started, with everything it starts (§13.1).

    ``origin`` is the id of its first recorded ``exec``, once there is one; ``programs`` counts them.
    """

    head: Process
    origin: str | None = None
    programs: int = 0


@dataclass(frozen=True, slots=True)
class Mapping:
    """A workspace file that a process can write without a call.

    ``length`` is in bytes, of whole pages; ``others`` is how many programs other commands had started when it was
    mapped.
    """

    path: bytes
    length: int
    others: int


def pages(length: int) -> int:
    """Return the bytes of the whole pages that hold so many."""
    return -(-length // _PAGE) * _PAGE


@dataclass(slots=True, eq=False)
class Process:
    """One process.

    Attributes:
        agent: part of the agent's tree (and not of the sandbox's own set-up).
        root: the agent's first process, or a copy of it that has started no other program.
        copy: of these, a copy.
        command: the command it belongs to; None for the root.
        shell: its program reads commands from its input or a terminal.
        programs: positions of its recorded ``exec`` events, to be given its exit status.
        ended: its exit status.
        mapped: its shared mappings of workspace files by their address, as the tracer wrote it.
        inherited: its mappings are those of the process that forked it.
        handles: paths of descriptors opened only as handles, by number; empty for a file that has no name.
        parent: the process that forked it, as far as the trace shows one.
    """

    leader: Task | None
    agent: bool = False
    root: bool = False
    copy: bool = False
    command: Command | None = None
    shell: bool = False
    programs: list[int] = field(default_factory=list)
    ended: int | None = None
    mapped: dict[bytes, Mapping] = field(default_factory=dict)
    inherited: bool = False
    handles: dict[int, bytes] = field(default_factory=dict)
    parent: Process | None = None

    @property
    def origin(self) -> str | None:
        """The ``origin`` of an event of this process now."""
        return None if self.command is None else self.command.origin

    @property
    def persistent_shell(self) -> bool:
        """Whether what this process starts are commands of their own.

        A shell inside of a command is part of that command.
        """
        return self.shell and (self.root or (self.command is not None and self.command.head is self))


def start(clone: Clone) -> None:
    """Give a clone's task its process and working directory, as the caller stands when it calls."""
    task, caller = clone.child, clone.caller
    if task is None or task.process is not None:
        return
    parent, place = caller.process, caller.place
    if parent is None or place is None:
        return
    task.place = place if SHARED_FOLDER in clone.flags else Place(place.folder)
    if clone.thread:
        task.process = parent
        return
    child = Process(
        task,
        agent=parent.agent,
        mapped=dict(parent.mapped),
        inherited=True,
        handles=dict(parent.handles),
        parent=parent,
    )
    if parent.root and not parent.shell:
        child.root = child.copy = True
    elif parent.persistent_shell:
        child.command = Command(child)
    else:
        child.command = parent.command
    task.process = child


def execute(process: Process, program: bytes, argv: list[bytes], *, root: bool) -> None:
    """A process has started another program.

    Args:
        process: the process.
        program: the executable's path.
        argv: its arguments.
        root: it is the agent's own first program.
    """
    process.mapped.clear()
    process.inherited = False
    process.handles.clear()
    process.shell = is_persistent_shell(program, argv)
    if root:
        process.agent = process.root = True
        process.command = None
    elif process.copy:
        # A copy of the root that starts a program is a command that the root started.
        process.root = process.copy = False
        process.command = Command(process)


_SHELLS: Final = frozenset({b"sh", b"bash", b"dash", b"zsh", b"ksh", b"mksh", b"ash", b"fish", b"rbash", b"ksh93"})
_WITH_VALUE: Final = frozenset({b"-o", b"+o", b"-O", b"+O", b"--rcfile", b"--init-file", b"-C", b"--init-command",
                                b"--features", b"--debug-output", b"--profile"})  # fmt: skip
_INPUT: Final = frozenset({b"/dev/stdin", b"/dev/fd/0", b"/proc/self/fd/0", b"/dev/tty"})


def is_persistent_shell(program: bytes, argv: list[bytes]) -> bool:
    """Tell whether a program is a shell that reads commands from its input: one without ``-c`` and without a script."""
    name = program.rsplit(b"/", 1)[-1]
    arguments = argv[1:]
    if name == b"busybox":
        called = argv[0].rsplit(b"/", 1)[-1].lstrip(b"-") if argv else b""
        if called == b"busybox" and arguments:
            called, arguments = arguments[0], arguments[1:]
        name = called
    if name not in _SHELLS:
        return False
    skip = False
    for position, argument in enumerate(arguments):
        if skip:
            skip = False
        elif argument in _WITH_VALUE:
            skip = True
        elif argument in {b"-", b"--"}:
            return not arguments[position + 1 :] or arguments[position + 1] in _INPUT
        elif argument.startswith(b"--"):
            if argument.split(b"=", 1)[0] == b"--command":
                return False
        elif argument[:1] in {b"-", b"+"}:
            letters = argument[1:]
            if b"c" in letters and argument[:1] == b"-":
                return False
            if b"s" in letters and argument[:1] == b"-":
                return True
            skip = letters.endswith((b"o", b"O"))
        else:
            return argument in _INPUT
    return True
