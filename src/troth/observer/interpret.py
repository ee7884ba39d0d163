"""From the steps of a trace to events and effects (done records §13.1 to §13.3).

Names given to calls are followed through working directories and symbolic links (``names``); where the tracer
shows the path of a descriptor, that is taken, since it is the kernel's own word. What cannot be followed is
*unresolved*, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final

from troth.observer.addresses import addresses, socket_name
from troth.observer.journal import Journal, printable, text_of
from troth.observer.names import FILE, SPECIAL, Names
from troth.observer.processes import Mapping, Place, Process, Task, execute, start
from troth.observer.reading import Kind, Recording
from troth.observer.syscalls import ESCAPES, FORMS, IOCTL_WRITES, NETWORK, Form
from troth.observer.trace import Call, descriptor, split_call, split_list, string, unescape
from troth.receipts.kinds import is_path

NOT_FILES: Final = frozenset(
    {b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom", b"/dev/tty", b"/dev/console",
     b"/dev/ptmx", b"/dev/pts/ptmx"}
)  # fmt: skip
OUTSIDE: Final = frozenset({b".git", b".mentu"})
"""Names at the workspace's top that are no part of its tree."""

_MEMORY: Final = re.compile(rb"/proc/(?:self|thread-self|\d+)/(?:task/\d+/)?mem$")
_HANDLE: Final = re.compile(rb"/proc/(?:self|thread-self)/fd/(\d+)$|/dev/fd/(\d+)$")
_AIO: Final = re.compile(rb"aio_lio_opcode=IOCB_CMD_PWRITEV?.*?aio_fildes=(\d+<[^<>]*>(?:\(deleted\))?)")
_RELATIVE: Final = b"AT_FDCWD"


class Unclear(Exception):
    """A call's effect cannot be told; the text says why."""


class Interpreter:
    """Interprets the steps of one recording.

    Args:
        journal: where what happened is put down.
        workspace: the workspace's absolute path in the sandbox.
        agent_argv: the agent's argument vector, by which its first program is known.
        names: what stood where at the start.
        quiet: absolute paths outside of the workspace whose changes are no effects.
    """

    def __init__(
        self, journal: Journal, *, workspace: str, agent_argv: Sequence[str], names: Names, quiet: Collection[str] = ()
    ) -> None:
        self.journal = journal
        self.names = names
        self.root: Process | None = None
        self.commands = 0
        self.malformed = 0
        self._workspace = workspace.encode("utf-8", "surrogateescape")
        self._inside = self._workspace + b"/"
        self._git = self._inside + b".git/"
        self._argv = [argument.encode("utf-8", "surrogateescape") for argument in agent_argv]
        self._quiet = frozenset(path.encode("utf-8", "surrogateescape") for path in quiet)
        self._set_up = True
        self._opened_both_ways: set[bytes] = set()
        self._task: Task = Task(0)
        self._process: Process = Process(None)
        self._now = 0
        self._handlers: dict[str, Callable[[Call, Form], None]] = {
            "open": self._open, "creat": self._open, "write": self._write_call, "truncate": self._truncate,
            "create": self._mkdir, "special": self._mknod, "rename": self._rename, "link": self._link,
            "symlink": self._symlink, "unlink": self._unlink, "chmod": self._chmod, "acl": self._acl,
            "mmap": self._mmap, "munmap": self._munmap, "bind": self._bind, "ioctl": self._ioctl, "aio": self._aio,
        }  # fmt: skip

    def run(self, recording: Recording) -> None:
        """Interpret every step."""
        for kind, now, task, first, second in recording.steps:
            if task.process is None:
                self._adopt(task)
            assert task.process is not None
            self._now, self._task, self._process = now, task, task.process
            if kind is Kind.CLONE:
                start(first)
            elif kind is Kind.END:
                self._ended(task, first)
            elif kind is Kind.FOLDER:
                self._stands(unescape(first))
            elif kind is Kind.TAKEOVER:
                if first.place is not None:
                    task.place = Place(first.place.folder)
            elif kind is Kind.CALL:
                self._call(first, second)
            elif task.process.agent:
                self._told(kind, first, second)

    def _adopt(self, task: Task) -> None:
        """Give a task a process whose beginning the trace does not show."""
        agent = self.root is not None
        task.process, task.place = Process(task, agent=agent), Place(None)
        if agent:
            self.journal.unresolved.add(f"process {task.pid}: who started it is not known")

    def _told(self, kind: Kind, first: bytes, second: object) -> None:
        if kind is Kind.WRITE:
            path = unescape(first)
            if path is None:
                self.malformed += 1
                return
            path = self._standing(path, deleted=bool(second))
            if path is not None:
                self._wrote(path)
        elif kind is Kind.ESCAPE:
            self.journal.escapes.add(f"{_word(first)}: {second}")
        elif kind is Kind.REFUSED:
            assert isinstance(second, tuple)
            self._refused(first, *second)
        else:
            self.journal.unresolved.add(f"{_word(first)}: its effect is not known")

    def _refused(self, name: bytes, error: bytes, text: bytes) -> None:
        form = FORMS.get(name)
        where = ""
        call = split_call(text) if form is not None and form.path >= 0 else None
        if form is not None and call is not None:
            try:
                where = " " + printable(self._named(call, form.folder, form.path, follow=False))
            except (Unclear, IndexError):
                where = ""
        self.journal.refused.add(f"{_word(name)}{where}: {_word(error)}")

    def _call(self, name: bytes, text: bytes) -> None:
        call = split_call(text)
        if call is None:
            self.malformed += 1
            return
        try:
            if name in {b"execve", b"execveat"}:
                self._execute(call, 1 if name == b"execveat" else 0)
            elif name in {b"chdir", b"fchdir"}:
                self._moved(call)
            elif name == b"unshare":
                if b"CLONE_FS" in call.arguments[0]:
                    self._task.place = Place(self._folder)
            elif self._process.agent:
                self._changed(name, call)
        except Unclear as why:
            if self._process.agent:
                self.journal.unresolved.add(f"{_word(name)}: {why}")
        except IndexError:
            self.malformed += 1

    def _changed(self, name: bytes, call: Call) -> None:
        form = FORMS.get(name)
        if form is not None:
            self._handlers[form.kind](call, form)
        elif name in NETWORK:
            self._reached(name, call)
        elif name == b"seccomp":
            # Whoever holds a filter's listener can wave calls past the tracer.
            if b"NEW_LISTENER" in call.arguments[1]:
                self.journal.escapes.add("seccomp: a listener can let calls pass unseen")
        elif name in ESCAPES:
            self.journal.escapes.add(f"{_word(name)}: it succeeded")

    # --- where a process stands, and what names lead to ---

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
            raise Unclear(f"descriptor {_word(argument[:40])} has no path")
        if not shown.path.startswith(b"/"):
            return None
        return self._standing(shown.path, deleted=shown.deleted)

    def _standing(self, path: bytes, *, deleted: bool) -> bytes | None:
        """Return a descriptor's path, or None when its file has no name any more.

        The tracer tells a deleted file by the end of its name, so a name that truly ends so must be known.
        """
        if not deleted:
            return path
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
            raise Unclear("a name that the trace does not show whole")
        if not name.startswith(b"/"):
            name = self._base(call.arguments[folder] if folder >= 0 else _RELATIVE) + b"/" + name
        where = self.names.follow(name, last=follow or name.endswith(b"/"), magic=self._magic)
        if where is None:
            raise Unclear(f"a name that leads somewhere unknown: {printable(name)[:200]}")
        return where

    def _base(self, argument: bytes) -> bytes:
        if argument != _RELATIVE:
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
        if segments[1] not in {b"self", b"thread-self"}:
            return None
        if segments[-1] == b"cwd":
            return self._folder
        if segments[-1] == b"root":
            return b"/"
        if segments[-2] == b"fd" and segments[-1].isdigit():
            return self._process.handles.get(int(segments[-1])) or None
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

    # --- putting down ---

    def _in_tree(self, path: bytes) -> bool:
        """Tell whether a path is part of the workspace's tree, which ``.git`` and ``.mentu`` are not (§13.9)."""
        if not path.startswith(self._inside):
            return False
        return path[len(self._inside) :].split(b"/", 1)[0] not in OUTSIDE

    def _inside_name(self, path: bytes) -> str | None:
        """Return the tree's name of a changed path, or None where it has none, which is counted or listed."""
        if not self._in_tree(path):
            if (path + b"/").startswith(self._git):
                self.journal.git_mutations += 1
            return None
        name = path[len(self._inside) :]
        try:
            text = name.decode("utf-8")
        except UnicodeDecodeError:
            self.journal.names_not_utf8.add(printable(name))
            return None
        if not is_path(text):
            self.malformed += 1  # no kernel shows such a path
            return None
        return text

    def _outside(self, path: bytes) -> bool:
        """Tell whether a change of a path is an effect outside of the workspace."""
        if path.startswith(self._inside):
            return False
        if path in NOT_FILES or path in self._quiet or path.startswith(b"/dev/pts/"):
            return False
        if path.startswith(b"/proc/"):
            if _MEMORY.match(path):
                self.journal.escapes.add("write: into the memory of a process")
            return False
        return True

    def _put(self, kind: str, path: bytes, target: bytes | None = None) -> None:
        """Put down one change, of a name or from one name to another, on whichever side of the workspace it is."""
        name = self._inside_name(path)
        origin = self._process.origin
        if target is None:
            if name is not None:
                self.journal.mutation(self._now, kind, name, None, origin)
            elif self._outside(path):
                self.journal.effect(self._now, kind, paths=(printable(path),))
            return
        onto = self._inside_name(target)
        if name is not None:
            self.journal.mutation(self._now, kind, name, onto, origin)
        elif onto is not None:
            self.journal.mutation(self._now, "create", onto, None, origin)
        if self._outside(path) or self._outside(target):
            self.journal.effect(self._now, kind, paths=(printable(path), printable(target)))

    def _wrote(self, path: bytes) -> None:
        if self.names.get(path) is not SPECIAL:
            self._put("write", path)

    # --- changes of files ---

    def _open(self, call: Call, form: Form) -> None:
        flags = call.arguments[form.flags] if form.flags >= 0 else b"O_WRONLY|O_CREAT|O_TRUNC"
        shown = descriptor(call.result)
        if shown is None or shown.path is None or shown.number is None:
            raise Unclear("what was opened is not shown")
        if not shown.path.startswith(b"/"):
            return
        path: bytes | None = shown.path
        if b"O_TMPFILE" in flags:
            self._process.handles[shown.number] = b""
            return
        if shown.deleted:
            given = string(call.arguments[form.path]) if form.path >= 0 else None
            if given is not None and given.endswith(b" (deleted)"):
                path = shown.path + b" (deleted)"
            else:
                path = self._standing(shown.path, deleted=True)
        if path is None:
            return
        if b"O_PATH" in flags:
            self._process.handles[shown.number] = path
            return
        inside = path.startswith(self._inside)
        known = self.names.get(path) if inside else FILE
        if b"O_RDWR" in flags and inside:
            self._opened_both_ways.add(path)
        if known is SPECIAL:
            return
        if b"O_CREAT" in flags and (known is None or b"O_EXCL" in flags):
            self._put("create", path)
        elif b"O_TRUNC" in flags:
            self._put("truncate", path)
        elif b"O_CREAT" in flags and not inside:
            self._put("create", path)
        if known is None:
            self.names.add(path)

    def _write_call(self, call: Call, form: Form) -> None:
        if call.result == b"0" and call.name != b"fallocate":
            return
        path = self._shown(call.arguments[form.descriptor])
        if path is None or self.names.get(path) is SPECIAL:
            return
        self._known_result(call, path)
        self._wrote(path)

    def _known_result(self, call: Call, path: bytes) -> None:
        """Refuse to guess whether a call that a process died in had its effect, where that matters."""
        if call.result.startswith(b"?") and (path.startswith(self._inside) or self._outside(path)):
            raise Unclear(f"its process died in it: {printable(path)[:200]}")

    def _truncate(self, call: Call, form: Form) -> None:
        path = self._target(call, form)
        if path is not None:
            self._known_result(call, path)
            self._put("truncate", path)

    def _mkdir(self, call: Call, form: Form) -> None:
        path = self._named(call, form.folder, form.path, follow=False)
        self._known_result(call, path)
        self.names.add(path, {})
        self._put("create", path)

    def _mknod(self, call: Call, form: Form) -> None:
        path = self._named(call, form.folder, form.path, follow=False)
        self._known_result(call, path)
        mode = call.arguments[form.flags]
        self.names.add(path, FILE if b"S_IFREG" in mode or b"S_IF" not in mode else SPECIAL)
        self._put("create", path)

    def _rename(self, call: Call, form: Form) -> None:
        second = form.second
        folder = second - 1 if form.folder >= 0 else -1
        old = self._named(call, form.folder, form.path, follow=False)
        new = self._named(call, folder, second, follow=False)
        self._known_result(call, old)
        exchange = form.flags >= 0 and b"RENAME_EXCHANGE" in call.arguments[form.flags]
        # A folder takes with it everything beneath it, each of which changes its name.
        self._put("rename", old, new)
        for name in self.names.beneath(old):
            self._put("rename", old + b"/" + name, new + b"/" + name)
        if exchange:
            self._put("rename", new, old)
            for name in self.names.beneath(new):
                self._put("rename", new + b"/" + name, old + b"/" + name)
            self.names.exchange(old, new)
        else:
            self.names.rename(old, new)

    def _link(self, call: Call, form: Form) -> None:
        second = form.second
        folder = second - 1 if form.folder >= 0 else -1
        new = self._named(call, folder, second, follow=False)
        self._known_result(call, new)
        flags = call.arguments[form.flags] if form.flags >= 0 else b""
        given = string(call.arguments[form.path])
        handle = _HANDLE.match(given) if given is not None else None
        if handle is not None and self._process.handles.get(int(handle[1] or handle[2])) == b"":
            old = None  # a file made without a name is given one
        elif given == b"" and b"AT_EMPTY_PATH" in flags:
            old = self._shown(call.arguments[form.folder])
        else:
            old = self._named(call, form.folder, form.path, follow=b"AT_SYMLINK_FOLLOW" in flags)
        node = self.names.get(old) if old is not None else FILE
        self.names.add(new, node if isinstance(node, (bytes, bool)) else FILE)
        if old is None:
            self._put("create", new)
        else:
            self._put("link", old, new)

    def _symlink(self, call: Call, form: Form) -> None:
        path = self._named(call, form.folder, form.path, follow=False)
        self._known_result(call, path)
        self._put("link", path)
        target = string(call.arguments[form.second])
        if target is None:
            raise Unclear("a symbolic link whose target the trace does not show whole")
        self.names.add(path, target)

    def _unlink(self, call: Call, form: Form) -> None:
        path = self._named(call, form.folder, form.path, follow=False)
        self._known_result(call, path)
        self.names.remove(path)
        self._put("unlink", path)

    def _chmod(self, call: Call, form: Form) -> None:
        path = self._target(call, form)
        if path is not None:
            self._known_result(call, path)
            self._put("chmod", path)

    def _acl(self, call: Call, form: Form) -> None:
        if b"system.posix_acl" in call.arguments[form.second]:
            self._chmod(call, form)

    def _mmap(self, call: Call, form: Form) -> None:
        if b"MAP_SHARED" not in call.arguments[3] or call.arguments[form.descriptor] == b"-1":
            return
        path = self._shown(call.arguments[form.descriptor])
        if path is None:
            return
        if b"PROT_WRITE" in call.arguments[2]:
            self._wrote(path)
            if self._in_tree(path):
                self._process.mapped[call.result] = Mapping(path, self._others(self._process))
        elif path in self._opened_both_ways and self._in_tree(path):
            raise Unclear(f"a shared mapping could have been made writable unseen: {printable(path)[:200]}")

    def _munmap(self, call: Call, _form: Form) -> None:
        mapping = self._process.mapped.pop(call.arguments[0], None)
        if mapping is not None:
            self._unmapped(mapping)

    def _unmapped(self, mapping: Mapping) -> None:
        """A mapping ends: the last time that it could be written.

        Where other commands started programs meanwhile, a write put down now would make their claims stale, perhaps
        falsely, and none put down would hide one that did: that it cannot be told is what is true.
        """
        if mapping.others == self._others(self._process):
            self._wrote(mapping.path)
        else:
            name = printable(mapping.path)[:200]
            self.journal.unresolved.add(f"mmap: {name} could be written unseen while other programs ran")

    def _others(self, process: Process) -> int:
        return self.journal.programs - (process.command.programs if process.command is not None else 0)

    def _bind(self, call: Call, _form: Form) -> None:
        given = socket_name(call.arguments[1])
        if given is None or given.startswith(b"@"):
            return
        name = string(given)
        if name is None:
            raise Unclear("a socket's name that the trace does not show whole")
        path = name if name.startswith(b"/") else self._base(_RELATIVE) + b"/" + name
        where = self.names.follow(path, last=False, magic=self._magic)
        if where is None:
            raise Unclear("a socket's name that leads somewhere unknown")
        self.names.add(where, SPECIAL)
        self._put("create", where)

    def _ioctl(self, call: Call, form: Form) -> None:
        if call.arguments[1].split(b" ", 1)[0] in IOCTL_WRITES:
            path = self._shown(call.arguments[form.descriptor])
            if path is not None:
                self._wrote(path)

    def _aio(self, call: Call, _form: Form) -> None:
        requests = call.arguments[2]
        if b"IOCB_CMD_PWRITE" not in requests and b"aio_lio_opcode" in requests:
            return
        found = _AIO.findall(requests)
        if not found:
            raise Unclear("which file was written is not shown")
        for argument in found:
            path = self._shown(argument)
            if path is not None:
                self._wrote(path)

    # --- programs ---

    def _execute(self, call: Call, first: int) -> None:
        process = self._process
        result = call.result
        if result.startswith(b"?"):
            return
        name = string(call.arguments[first])
        if name == b"" and first:
            shown = descriptor(call.arguments[0])
            name = shown.path if shown is not None else None
        elements = split_list(call.arguments[first + 1])
        argv = [string(element) for element in elements] if elements is not None else [None]
        whole = [argument for argument in argv if argument is not None]
        known = len(whole) == len(argv)
        root = self.root is None and not self._set_up and elements is not None and self._is_agent(elements)
        self._set_up = False
        if root:
            whole, known = self._argv, True
        if not process.inherited:
            for mapping in process.mapped.values():
                self._unmapped(mapping)
        execute(process, name or b"", whole, root=root)
        if root:
            self.root = process
        if not process.agent:
            return
        command = process.command
        if command is not None and command.head is process and not process.programs:
            self.commands += 1
        text = text_of(whole) if known else None
        if text is None or not text or not text[0]:
            raise Unclear("a command whose arguments the trace does not show whole as UTF-8")
        identifier, position = self.journal.program(self._now, text, process.origin)
        process.programs.append(position)
        if command is not None:
            command.programs += 1
        if command is not None and command.origin is None:
            command.origin = identifier

    def _is_agent(self, elements: list[bytes]) -> bool:
        """Tell whether these are the agent's own arguments; a long one is shown only by its beginning."""
        if len(elements) != len(self._argv):
            return False
        for element, expected in zip(elements, self._argv, strict=True):
            shown = string(element.removesuffix(b"..."))
            if shown is None or (shown != expected[: len(shown)] if element.endswith(b"...") else shown != expected):
                return False
        return True

    def _ended(self, task: Task, status: int) -> None:
        process = self._process
        if process.leader is not task:
            return
        process.ended = status
        if not process.agent:
            return
        for mapping in process.mapped.values():
            self._unmapped(mapping)
        for position in process.programs:
            self.journal.exited(position, status)

    # --- the network ---

    def _reached(self, name: bytes, call: Call) -> None:
        kind = "connect" if name == b"connect" else "send"
        for text in addresses(name, call):
            self.journal.effect(self._now, kind, address=text)


def _word(text: bytes) -> str:
    return text.decode("ascii", "backslashreplace")
