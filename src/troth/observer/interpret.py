"""From the steps of a trace to events and effects (done records §13.1 to §13.3).

Names given to calls are followed through working directories and symbolic links (``names``); where the tracer
shows the path of a descriptor, that is taken, since it is the kernel's own word. What cannot be followed is
*unresolved*, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from troth.observer.addresses import addresses, socket_name
from troth.observer.journal import Journal, printable, text_of
from troth.observer.names import FILE, SPECIAL, Names
from troth.observer.processes import Mapping, Place, Process, Task, execute, pages, start
from troth.observer.reading import Kind, Recording
from troth.observer.syscalls import ESCAPES, FORMS, IOCTL_WRITES, NETWORK, SIGNALS, Form
from troth.observer.totals import Printed
from troth.observer.trace import Call, aio_writes, descriptor, is_vector, split_call, split_list, string, unescape
from troth.observer.whereabouts import RELATIVE, Unclear, Whereabouts
from troth.receipts.checks import is_grader_path
from troth.receipts.kinds import is_path

NOT_FILES: Final = frozenset(
    {b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom", b"/dev/tty", b"/dev/console",
     b"/dev/ptmx", b"/dev/pts/ptmx"}
)  # fmt: skip

MAX_ABOVE: Final = 64
"""Processes above the one that printed that are told of it."""

_MEMORY: Final = re.compile(rb"/proc/(?:self|thread-self|\d+)/(?:task/\d+/)?mem$")
_HANDLE: Final = re.compile(rb"/proc/(?:self|thread-self)/fd/(\d+)$|/dev/fd/(\d+)$")


class Interpreter(Whereabouts):
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
        super().__init__(workspace, names)
        self.journal = journal
        self.root: Process | None = None
        self.commands = 0
        self.malformed = 0
        self.printed: dict[int, Printed] = {}
        self._git = self._inside + b".git/"
        self._argv = [argument.encode("utf-8", "surrogateescape") for argument in agent_argv]
        self._quiet = frozenset(path.encode("utf-8", "surrogateescape") for path in quiet)
        self._set_up = True
        self._now = 0
        self._handlers: dict[str, Callable[[Call, Form], None]] = {
            "open": self._open, "creat": self._open, "write": self._write_call, "truncate": self._truncate,
            "create": self._mkdir, "special": self._mknod, "rename": self._rename, "link": self._link,
            "symlink": self._symlink, "unlink": self._unlink, "chmod": self._chmod, "acl": self._acl,
            "times": self._times,
            "mmap": self._mmap, "munmap": self._munmap, "mremap": self._mremap, "bind": self._bind,
            "ioctl": self._ioctl, "aio": self._aio,
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
                    task.place = first.place
            elif kind is Kind.CALL:
                self._call(first, second)
            elif kind is Kind.PRINTED:
                self._printed(first)
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
            try:
                path = self._standing(path, deleted=bool(second))
            except Unclear as why:
                self.journal.unresolved.add(f"write: {why}")
                return
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
        elif name in NETWORK:
            reached = split_call(text)
            try:
                where = "".join(f" {address}" for address in addresses(name, reached)) if reached is not None else ""
            except IndexError:
                where = ""
        elif name in SIGNALS:
            sent = split_call(text)
            signal = sent.arguments[SIGNALS[name]] if sent is not None and len(sent.arguments) > SIGNALS[name] else b"?"
            if signal == b"0":  # asks whether a process is there
                return
            where = f" {_word(signal)}"
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
                self._kind = "chdir"
                self._moved(call)
            elif name == b"unshare":
                if b"CLONE_FS" in call.arguments[0]:
                    self._task.place = Place(self._folder)
            elif self._process.agent:
                self._changed(name, call)
        except Unclear as why:
            if self._process.agent:
                self.journal.unresolved.add(f"{_word(name)}: {why}")
        except (IndexError, ValueError):
            self.malformed += 1

    def _changed(self, name: bytes, call: Call) -> None:
        form = FORMS.get(name)
        if form is not None:
            self._kind = form.kind
            self._handlers[form.kind](call, form)
        elif name in NETWORK:
            self._reached(name, call)
        elif name == b"seccomp":
            # Whoever holds a filter's listener can wave calls past the tracer.
            if b"NEW_LISTENER" in call.arguments[1]:
                self.journal.escapes.add("seccomp: a listener can let calls pass unseen")
        elif name in ESCAPES:
            self.journal.escapes.add(f"{_word(name)}: it succeeded")

    # --- putting down ---

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
        if call.result.startswith(b"?") and form.path >= 0:
            self._died_opening(call, form, flags)
            return
        if shown is None or shown.path is None or shown.number is None:
            raise Unclear("what was opened is not shown")
        if not shown.path.startswith(b"/"):
            return
        path: bytes | None = shown.path
        if b"O_TMPFILE" in flags:
            self._process.handles[shown.number] = b""
            self._doubles.opened_nameless(shown.path)
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
            self._doubles.opened(path)
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

    def _died_opening(self, call: Call, form: Form, flags: bytes) -> None:
        if b"O_CREAT" not in flags and b"O_TRUNC" not in flags:
            return
        path = self._named(call, form.folder, form.path, follow=b"O_NOFOLLOW" not in flags)
        known = self.names.get(path)
        if known is not SPECIAL and (known is None or b"O_TRUNC" in flags):
            self._known_result(call, path)

    def _write_call(self, call: Call, form: Form) -> None:
        if call.result == b"0" and call.name != b"fallocate":
            return
        path = self._shown(call.arguments[form.descriptor])
        if path is None or self.names.get(path) is SPECIAL:
            return
        self._known_result(call, path)
        self._wrote(path)

    def _known_result(self, call: Call, *paths: bytes) -> None:
        """Refuse to guess whether a call that a process died in had its effect, where that matters."""
        if call.result.startswith(b"?"):
            for path in paths:
                if self._in_tree(path) or (self._outside(path) and is_grader_path(printable(path))):
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
        self._known_result(call, old, new)
        exchange = form.flags >= 0 and b"RENAME_EXCHANGE" in call.arguments[form.flags]
        self._renamed(old, new)
        if exchange:
            self._renamed(new, old)
            self.names.exchange(old, new)
        else:
            self.names.rename(old, new)

    def _renamed(self, old: bytes, new: bytes) -> None:
        """Put down a change of name: a folder takes with it everything beneath it, each of which changes its own."""
        crosses = self._crosses(old, new)
        for name in (b"", *(b"/" + beneath for beneath in self.names.beneath(old))):
            self._put("rename", old + name, new + name)
            if crosses and self._doubles.is_elsewhere(old + name):
                self._beyond("rename", old + name)
            self._doubles.moved(old + name, new + name)

    def _crosses(self, one: bytes, other: bytes) -> bool:
        """Tell whether of two paths in the workspace only one is of the tree."""
        inside = one.startswith(self._inside) and other.startswith(self._inside)
        return inside and self._in_tree(one) != self._in_tree(other)

    def _beyond(self, name: str, path: bytes) -> None:
        what = "a file of the tree could be changed where changes are only counted"
        self.journal.unresolved.add(f"{name}: {what}: {printable(path)[:200]}")

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
            self.by_number = True
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
        hidden = new.startswith(self._inside) and not self._in_tree(new)
        if not self._doubles.linked(old, new):
            raise Unclear(f"a file was mapped before it had a name: {printable(new)[:200]}")
        if hidden if old is None else self._crosses(old, new):
            self._beyond("link", new)

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
        else:
            self._times(call, form)

    def _times(self, call: Call, form: Form) -> None:
        """A file's change time moves while nothing else of it does; what cannot be told excuses nothing."""
        nameless = form.folder >= 0 and call.arguments[form.path] == b"NULL"
        try:
            path = self._shown(call.arguments[form.folder]) if nameless else self._target(call, form)
        except Unclear:
            return
        if path is not None and self._in_tree(path):
            self.journal.touched.add(path[len(self._inside) :].decode("utf-8", "backslashreplace"))

    def _mmap(self, call: Call, form: Form) -> None:
        if b"MAP_SHARED" not in call.arguments[3] or call.arguments[form.descriptor] == b"-1":
            return
        before = self._process.mapped.pop(call.result, None)
        if before is not None:
            self._unmapped(before)  # another mapping has taken its place
        path = self._shown(call.arguments[form.descriptor])
        if path is None or (path.startswith(self._inside) and not self._in_tree(path)):
            shown = descriptor(call.arguments[form.descriptor])
            if shown is not None and shown.path is not None:
                self._doubles.mapped(shown.path, gone=path is None)
        if path is None:
            return
        if b"PROT_WRITE" in call.arguments[2]:
            self._wrote(path)
            if self._in_tree(path):
                length = pages(int(call.arguments[1]))
                self._process.mapped[call.result] = Mapping(path, length, self._others(self._process))
        elif self._doubles.may_be_mapped_writable(path) and self._in_tree(path):
            raise Unclear(f"a shared mapping could have been made writable unseen: {printable(path)[:200]}")

    def _munmap(self, call: Call, _form: Form) -> None:
        mapping = self._process.mapped.pop(call.arguments[0], None)
        if mapping is not None:
            self._unmapped(mapping)
            length = pages(int(call.arguments[1]))
            if length < mapping.length:
                rest = b"%#x" % (int(call.arguments[0], 16) + length)
                self._process.mapped[rest] = replace(mapping, length=mapping.length - length)

    def _mremap(self, call: Call, _form: Form) -> None:
        mapped = self._process.mapped
        start = int(call.arguments[0], 16)
        for address, mapping in list(mapped.items()):
            if int(address, 16) <= start < int(address, 16) + mapping.length:
                if start != int(address, 16) or pages(int(call.arguments[1])) < mapping.length:
                    raise Unclear(f"a part of a shared mapping was moved or doubled: {printable(mapping.path)[:200]}")
                del mapped[address]
                mapped[call.result] = replace(mapping, length=pages(int(call.arguments[2])))

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
        path = name if name.startswith(b"/") else self._base(RELATIVE) + b"/" + name
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
        found = aio_writes(requests)
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
        root = self.root is None and not self._set_up and elements is not None and is_vector(elements, self._argv)
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

    def _printed(self, lines: Sequence[str] | None) -> None:
        """Put down what a process printed with the programs that it and those that started it are."""
        process: Process | None = self._process
        for _ in range(MAX_ABOVE):
            if process is None or not process.agent:
                return
            for position in process.programs:
                printed = self.printed.setdefault(position, Printed())
                printed.unclear = printed.unclear or lines is None
                for line in lines or ():
                    printed.take(line)
            process = process.parent

    # --- the network ---

    def _reached(self, name: bytes, call: Call) -> None:
        kind = "connect" if name == b"connect" else "send"
        for text in addresses(name, call):
            self.journal.effect(self._now, kind, address=text)


def _word(text: bytes) -> str:
    return text.decode("ascii", "backslashreplace")
