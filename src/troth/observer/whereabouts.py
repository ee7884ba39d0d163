"""Where the processes of a trace stand, and what the names and descriptors given to their calls lead to.

Names are followed through working directories and symbolic links (``names``); where the tracer shows the path of a
descriptor, that is taken, since it is the kernel's own word. What cannot be followed is ``Unclear``, never guessed.
"""

from __future__ import annotations

from typing import Final

from troth.observer.doubles import Doubles
from troth.observer.journal import printable
from troth.observer.names import Names
from troth.observer.processes import Process, Task
from troth.observer.syscalls import Form
from troth.observer.trace import Call, descriptor, string

OUTSIDE: Final = frozenset({b".git", b".mentu"})
"""Names at the workspace's top that are no part of its tree."""
RELATIVE: Final = b"AT_FDCWD"
_MODES: Final = frozenset({"chmod", "acl"})


class Unclear(Exception):
    """A call's effect cannot be told; the text says why."""


class Whereabouts:
    """Follows names for whichever task is at work.

    Args:
        workspace: the workspace's absolute path in the sandbox.
        names: what stood where at the start.
    """

    def __init__(self, workspace: str, names: Names) -> None:
        self.names = names
        self._inside = workspace.encode("utf-8", "surrogateescape") + b"/"
        self._doubles = Doubles()
        self._task: Task = Task(0)
        self._process: Process = Process(None)
        self._kind = ""
        self.by_number = False
        """Whether a name was taken to lead where a number led when it was opened, which may no longer be so."""

    def _in_tree(self, path: bytes) -> bool:
        """Tell whether a path is part of the workspace's tree, which ``.git`` and ``.mentu`` are not (§13.9)."""
        if not path.startswith(self._inside):
            return False
        return path[len(self._inside) :].split(b"/", 1)[0] not in OUTSIDE

    @property
    def _folder(self) -> bytes | None:
        place = self._task.place
        return None if place is None else place.folder

    def _stands(self, folder: bytes | None) -> None:
        """Take the tracer's word for the working directory."""
        if folder is not None and folder.startswith(b"/") and self._task.place is not None:
            self._task.place.folder = folder

    def _moved(self, call: Call) -> None:
        place = self._task.place
        if place is None:
            return
        try:
            if call.name == b"chdir":
                place.folder = self._named(call, -1, 0, follow=True)
            else:
                place.folder = self._shown(call.arguments[0])
        except Unclear:
            place.folder = None  # the next name relative to it says so, unless the tracer shows it first

    def _shown(self, argument: bytes) -> bytes | None:
        """Return the path of a descriptor; None for a pipe or socket, and for a file that has no name any more."""
        shown = descriptor(argument)
        if shown is None or shown.path is None:
            raise Unclear(f"descriptor {printable(argument[:40])} has no path")
        if not shown.path.startswith(b"/"):
            return None
        return self._standing(shown.path, deleted=shown.deleted)

    def _standing(self, path: bytes, *, deleted: bool) -> bytes | None:
        """Return a descriptor's path, or None when its file has no name any more.

        The tracer tells a deleted file by the end of its name, so a name that truly ends so must be known.
        """
        if not deleted:
            return path
        if self._doubles.outlives(path):
            raise Unclear(f"a file that lost this name may stand under another: {printable(path)[:200]}")
        literal = path + b" (deleted)"
        return literal if self.names.get(literal) is not None else None

    def _named(self, call: Call, folder: int, path: int, *, follow: bool) -> bytes:
        """Return the absolute path that a call's name leads to.

        Args:
            call: the call.
            folder: index of the descriptor that the name is relative to, or -1.
            path: index of the name.
            follow: follow a symbolic link in the last place.
        """
        name = string(call.arguments[path])
        if name is None:
            raise Unclear(f"a name that the trace does not show whole: {printable(call.arguments[path])[:200]}")
        if not name.startswith(b"/"):
            name = self._base(call.arguments[folder] if folder >= 0 else RELATIVE) + b"/" + name
        where = self.names.follow(name, last=follow or name.endswith(b"/"), magic=self._magic)
        if where is None:
            raise Unclear(f"a name that leads somewhere unknown: {printable(name)[:200]}")
        return where

    def _base(self, argument: bytes) -> bytes:
        if argument != RELATIVE:
            shown = descriptor(argument)
            if shown is None or shown.path is None or not shown.path.startswith(b"/"):
                raise Unclear("a name relative to an unknown folder")
            if shown.number is None and not shown.deleted:
                self._stands(shown.path)
            return shown.path
        folder = self._folder
        if folder is None:
            raise Unclear("a name relative to an unknown working directory")
        return folder

    def _magic(self, segments: list[bytes]) -> bytes | None:
        """Answer where the process file system's own links lead, for the process that asks."""
        if segments[1] not in {b"self", b"thread-self"} or b"task" in segments:
            return None
        if segments[-1] == b"cwd":
            # Of a process it is its first thread's, and threads may stand in folders of their own.
            leader = self._process.leader
            task = self._task if segments[1] == b"thread-self" else leader
            return None if task is None or task.place is None else task.place.folder
        if segments[-1] == b"root":
            return b"/"
        if segments[-2] == b"fd" and segments[-1].isdigit():
            path = self._process.handles.get(int(segments[-1])) or None
            # The number may have been closed and given to another file without a traced call. What that would hide of
            # a protected file its change time tells; a place where changes are only counted is not taken on its word.
            sure = path is not None and (self._kind in _MODES or (self._in_tree(path) and self._kind != "chdir"))
            self.by_number = self.by_number or sure
            return path if sure else None
        return None

    def _target(self, call: Call, form: Form) -> bytes | None:
        """Return the path of what a call changes, given by descriptor or by name; None: something without a name."""
        if form.descriptor >= 0:
            return self._shown(call.arguments[form.descriptor])
        flags = call.arguments[form.flags] if 0 <= form.flags < len(call.arguments) else b""
        if b"AT_EMPTY_PATH" in flags and call.arguments[form.path] == b'""':
            return self._shown(call.arguments[form.folder])
        follow = form.follow and b"AT_SYMLINK_NOFOLLOW" not in flags
        return self._named(call, form.folder, form.path, follow=follow)
