"""The second sensor: what the kernel itself says of changes in the workspace (inotify), beside the trace.

It stands outside of the sandbox: a queue of the kernel's, read by a thread of ours. It knows no processes and no order
across folders, cannot see a write through a mapping, nor what happened in a new folder before it was watched, a moment
after it was made. But it does not matter to it by which call, or by whom, a name was changed. The join (``records``)
compares.
"""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.observer.tree import OUTSIDE

MAX_NAMES: Final = 400_000
"""Changed names that are kept; more is treated as an overflow of the queue."""

MAX_FAILURES: Final = 100
"""Folders listed that could not be watched; the rest are counted."""

GATHERING: Final = 0.005
"""Seconds between the first event and reading: many are read at once, and the queue holds what comes in far longer."""

# As in inotify(7); plain numbers, since each event is tested against them.
_MODIFY: Final = 0x2
_MOVED_FROM: Final = 0x40
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_DELETE: Final = 0x200
_OVERFLOW: Final = 0x4000
_IGNORED: Final = 0x8000
_ONLYDIR: Final = 0x01000000
_DONT_FOLLOW: Final = 0x02000000
_EXCL_UNLINK: Final = 0x04000000
_ISDIR: Final = 0x40000000
_MASK: Final = _CREATE | _DELETE | _MODIFY | _MOVED_FROM | _MOVED_TO | _ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK

_CLOSE_WRITE: Final = 0x8
_DELETE_SELF: Final = 0x400
_MOVE_SELF: Final = 0x800
_FILE_MASK: Final = _MODIFY | _CLOSE_WRITE | _DELETE_SELF | _MOVE_SELF | _DONT_FOLLOW
_FOLDER_MASK: Final = _DELETE_SELF | _MOVE_SELF | _DONT_FOLLOW | _ONLYDIR
_NAME_MASK: Final = _CREATE | _MOVED_TO | _DONT_FOLLOW | _ONLYDIR

_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

_LIMITS: Final = {
    errno.ENOSPC: "the kernel has no watches left (fs.inotify.max_user_watches)",
    errno.EMFILE: "the kernel has no queues left (fs.inotify.max_user_instances)",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What the second sensor saw.

    Attributes:
        changed: names in the tree of which something was made, written, moved or removed (with surrogate escapes).
        watches: folders watched, over the whole run.
        events: events read.
        overflow: the kernel's queue ran over, or there were too many names: something was missed, and everything was
            looked through and watched anew.
        failures: folders that could not be watched, with the reason.
    """

    changed: frozenset[str]
    watches: int = 0
    events: int = 0
    overflow: bool = False
    failures: tuple[str, ...] = ()


NOTHING_SEEN: Final = Seen(frozenset())


class TreeWatch:
    """Watches every folder of a tree, and the folders that come to be in it.

    Args:
        root: the workspace.
    """

    def __init__(self, root: Path) -> None:
        import inotify_simple  # type: ignore[import-untyped]  # ships no types

        self._root = str(root)
        self._folders: dict[int, str] = {}
        self._changed: set[str] = set()
        self._failures: dict[str, None] = {}
        self._watches = self._events = 0
        self._leaving: tuple[int, str] | None = None
        self.overflow = False
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread: threading.Thread | None = None
        try:
            self._queue: Any = inotify_simple.INotify()
        except OSError as fault:
            self._queue = None
            self._failed("", fault)
        else:
            self._watch("")

    # --- from outside ---

    def follow(self) -> None:
        """Begin to read; not before the processes are started that are made by copying this one."""
        if self._queue is not None:
            self._thread = threading.Thread(target=self._read, name="inotify", daemon=True)
            self._thread.start()

    def finish(self) -> Seen:
        """Stop, once nobody is at work any more; what the queue still holds is read."""
        self._end_thread()
        if self._queue is not None:
            while self._take_all():
                pass
        return Seen(
            changed=frozenset(self._changed),
            watches=self._watches,
            events=self._events,
            overflow=self.overflow,
            failures=tuple(self._failures),
        )

    def close(self) -> None:
        """Give up the queue."""
        self._end_thread()
        if self._queue is not None:
            self._queue.close()
            self._queue = None
        if self._stop >= 0:
            os.close(self._stop)
            self._stop = -1

    def _end_thread(self) -> None:
        if self._thread is not None:
            os.eventfd_write(self._stop, 1)
            self._thread.join()
            self._thread = None

    # --- reading ---

    def _read(self) -> None:
        poller = select.poll()
        poller.register(self._queue.fileno(), select.POLLIN)
        poller.register(self._stop, select.POLLIN)
        while not any(descriptor == self._stop for descriptor, _ in poller.poll()):
            time.sleep(GATHERING)
            self._take_all()

    def _take_all(self) -> bool:
        events = self._queue.read(timeout=0)
        for event in events:
            self.take(*event)
        return bool(events)

    def take(self, watch: int, mask: int, cookie: int, name: str) -> None:
        """Take one event of the kernel's queue, in its order."""
        self._events += 1
        if mask & _OVERFLOW:
            self._lost()
            return
        if self._leaving is not None:
            gone, self._leaving = self._leaving, None
            if not (mask & _MOVED_TO and cookie == gone[0]):
                self._forget(gone[1])  # it was moved to where nothing is watched
        if mask & _IGNORED:
            self._folders.pop(watch, None)
            return
        folder = self._folders.get(watch)
        if folder is None or not name or (not folder and name in OUTSIDE):
            return
        path = f"{folder}/{name}" if folder else name
        self._change(path)
        if mask & _ISDIR:
            if mask & _MOVED_FROM:
                self._leaving = (cookie, path)
            elif mask & (_CREATE | _MOVED_TO):
                self._watch(path)

    def _change(self, path: str) -> None:
        if len(self._changed) < MAX_NAMES:
            self._changed.add(path)
        elif path not in self._changed:
            self.overflow = True

    def _lost(self) -> None:
        self.overflow = True
        self._watch("")

    def _forget(self, path: str) -> None:
        beneath = path + "/"
        for watch in [one for one, name in self._folders.items() if name == path or name.startswith(beneath)]:
            del self._folders[watch]
            try:
                self._queue.rm_watch(watch)
            except OSError:
                continue  # the folder is gone, and its watch with it

    # --- watching ---

    def _watch(self, path: str) -> None:
        """Watch a folder and everything beneath it.

        The kernel answers with the old number for a folder that is watched already, which then has its new name. What
        stands in a folder that is new is not put down as changed: it may have come with it from where it was before.
        """
        pending = [path]
        while pending:
            folder = pending.pop()
            place = os.path.join(self._root, folder) if folder else self._root
            try:
                watch = self._queue.add_watch(place, _MASK)
                if watch not in self._folders:
                    self._watches += 1
                self._folders[watch] = folder
                for name, is_folder in _entries(place):
                    if not folder and name in OUTSIDE:
                        continue
                    child = f"{folder}/{name}" if folder else name
                    if is_folder:
                        pending.append(child)
            except OSError as fault:
                if fault.errno not in _GONE:
                    self._failed(folder, fault)

    def _failed(self, folder: str, fault: OSError) -> None:
        if len(self._failures) < MAX_FAILURES:
            shown = (folder or ".").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            why = _LIMITS.get(fault.errno or 0, fault.strerror or str(fault))
            self._failures[f"{shown}: {why}"] = None
        else:
            self._failures["and more"] = None


class FileWatch:
    """Watches single files, to tell which of them were written: setting a file's times is no writing.

    A file is watched as such, so by whichever name it is opened. A write through a mapping shows when the file that
    was opened for it is closed. Of a folder only is told whether it was itself moved or removed: another can stand in
    its place for a while, and its files show no trace of that.

    Args:
        root: the folder.
        names: files beneath it.
        folders: folders beneath it.

    Attributes:
        blind: names of which nothing can be told.
    """

    def __init__(self, root: Path, names: Iterable[str], folders: Iterable[str] = ()) -> None:
        import inotify_simple

        self.blind: set[str] = set()
        self._written: set[str] = set()
        self._names: dict[int, str] = {}
        wanted = {**dict.fromkeys(folders, _FOLDER_MASK), **dict.fromkeys(names, _FILE_MASK)}
        if not wanted:
            self._queue: Any = None
            return
        try:
            self._queue = inotify_simple.INotify()
        except OSError:
            self._queue = None
            self.blind.update(wanted)
            return
        for name, mask in wanted.items():
            try:
                self._names[self._queue.add_watch(os.path.join(root, name), mask)] = name
            except OSError:
                self.blind.add(name)

    def finish(self) -> frozenset[str]:
        """Return what was written, moved or removed; what cannot be told stands in ``blind``."""
        if self._queue is not None:
            while events := self._queue.read(timeout=0):
                for event in events:
                    if event.mask & _OVERFLOW:
                        self.blind.update(self._names.values())
                    else:
                        self._written.add(self._names[event.wd])
            self._queue.close()
            self._queue = None
        return frozenset(self._written)


class NameWatch:
    """Watches folders for names that come to be in them, were it for a moment.

    A folder that is made meanwhile is told itself, and not what comes to be in it.

    Args:
        root: the folder.
        folders: folders beneath it, the empty one for itself; one of them that cannot be watched tells nothing.

    Attributes:
        overflow: more came to be than the kernel keeps until it is read, and of what came then nothing can be told.
    """

    def __init__(self, root: Path, folders: Iterable[str]) -> None:
        import inotify_simple

        self.overflow = False
        self._folders: dict[int, str] = {}
        self._queue: Any = None
        with suppress(OSError):
            self._queue = inotify_simple.INotify()
        for folder in folders if self._queue is not None else ():
            with suppress(OSError):
                self._folders[self._queue.add_watch(os.path.join(root, folder), _NAME_MASK)] = folder

    def finish(self) -> frozenset[str]:
        """Return the names that were made or moved there."""
        found: set[str] = set()
        if self._queue is not None:
            while events := self._queue.read(timeout=0):
                for event in events:
                    self.overflow = self.overflow or bool(event.mask & _OVERFLOW)
                    if event.name and event.wd in self._folders:
                        folder = self._folders[event.wd]
                        found.add(f"{folder}/{event.name}" if folder else event.name)
            self._queue.close()
            self._queue = None
        return frozenset(found)


def _entries(place: str) -> Iterator[tuple[str, bool]]:
    with os.scandir(place) as entries:
        for entry in entries:
            yield entry.name, entry.is_dir(follow_symlinks=False)


@contextmanager
def watching(root: Path) -> Iterator[TreeWatch]:
    """Watch a tree from here to the end of the body."""
    watch = TreeWatch(root)
    try:
        yield watch
    finally:
        watch.close()
