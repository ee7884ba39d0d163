"""What stood under which name: files, folders and symbolic links, as far as the start and the trace tell.

A call without a descriptor in its result (a rename, an unlink, a change of mode) is known only by the name it was
given, and a symbolic link on the way would hide which file that was. The tracer cannot say afterwards, so the
names are followed here the way the kernel follows them, through the links that stood at the start and those made
since. Paths are absolute and in bytes; what was never heard of is taken to be no link. A name that another thread
exchanged while the call was running is not seen through; the tree and the watcher beside the trace see the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

MAX_LINKS: Final = 40
"""Symbolic links followed in one name before the kernel gives up."""

FILE: Final = True
"""A regular file (or anything whose kind is not known)."""
SPECIAL: Final = False
"""A pipe, socket or device: writing to it changes no file."""

# A folder is a dict; FILE and SPECIAL are leaves; a link is its target's text.
_Folder = dict[bytes, "_Folder | bool | bytes"]
_Node = _Folder | bool | bytes

Magic = Callable[[list[bytes]], bytes | None]
"""Answers where ``/proc/PID/cwd``, ``root`` or ``fd/N`` leads (the segments are given); ``None``: not known."""


class Names:
    """The known names below ``/``."""

    __slots__ = ("_links", "_root")

    def __init__(self) -> None:
        fd = b"/proc/self/fd"
        device: _Folder = {b"fd": fd, b"stdin": fd + b"/0", b"stdout": fd + b"/1", b"stderr": fd + b"/2"}
        self._root: _Folder = {b"dev": device}
        self._links = 0  # apart from those in /dev

    # --- following a name ---

    def follow(self, path: bytes, *, last: bool, magic: Magic) -> bytes | None:
        """Return the absolute path that a name leads to, without ``.``, ``..`` and links.

        Args:
            path: an absolute name.
            last: follow a link in the last place too.
            magic: where the process file system's own links lead.

        Returns:
            the path, or ``None`` when it leads through something unknown or through too many links.
        """
        todo = [segment for segment in reversed(path.split(b"/")) if segment and segment != b"."]
        if not self._links and b".." not in todo and not path.startswith((b"/proc", b"/dev", b"//")):
            return b"/" + b"/".join(reversed(todo))
        done: list[bytes] = []
        nodes: list[_Node | None] = [self._root]
        links = 0
        while todo:
            segment = todo.pop()
            if segment == b"..":
                if done:
                    done.pop()
                    nodes.pop()
                continue
            folder = nodes[-1]
            node = folder.get(segment) if isinstance(folder, dict) else None
            target: bytes | None = None
            if isinstance(node, bytes):
                target = node
            elif done and done[0] == b"proc" and (todo or last) and _is_magic([*done, segment]):
                target = magic([*done, segment])
                if target is None:
                    return None
            if target is None or not (todo or last):
                done.append(segment)
                nodes.append(node)
                continue
            links += 1
            if links > MAX_LINKS:
                return None
            if target.startswith(b"/"):
                done.clear()
                del nodes[1:]
            todo.extend(part for part in reversed(target.split(b"/")) if part and part != b".")
        return b"/" + b"/".join(done)

    # --- what is known ---

    def get(self, path: bytes) -> _Node | None:
        """Return what stands at an absolute, followed path: a dict, ``FILE``, ``SPECIAL``, a link's text or None."""
        node: _Node | None = self._root
        for segment in path.split(b"/"):
            if segment:
                if not isinstance(node, dict):
                    return None
                node = node.get(segment)
        return node

    def beneath(self, path: bytes) -> Iterator[bytes]:
        """Yield the paths, relative to a folder, of everything known beneath it that is not a folder."""
        node = self.get(path)
        if isinstance(node, dict):
            yield from _leaves(node, b"")

    # --- what changes ---

    def add(self, path: bytes, node: _Node = FILE) -> None:
        """Put a file, folder or link at a path, and folders on the way to it."""
        folder, last = self._parent(path)
        if folder is not None:
            self._count(folder.get(last), -1)
            folder[last] = node
            self._count(node, 1)

    def add_all(self, paths: Iterable[bytes]) -> None:
        """Put files at many paths."""
        for path in paths:
            self.add(path)

    def remove(self, path: bytes) -> None:
        """Forget what stood at a path."""
        folder, last = self._parent(path)
        if folder is not None:
            self._count(folder.pop(last, None), -1)

    def rename(self, old: bytes, new: bytes) -> None:
        """Move what stands at one path to another."""
        node = self.get(old)
        folder, last = self._parent(old)
        if folder is not None:
            folder.pop(last, None)
        target, name = self._parent(new)
        if target is not None:
            self._count(target.get(name), -1)
            target[name] = FILE if node is None else node

    def exchange(self, one: bytes, other: bytes) -> None:
        """Swap what stands at two paths."""
        first, second = self.get(one), self.get(other)
        for path, node in ((one, second), (other, first)):
            folder, last = self._parent(path)
            if folder is not None:
                folder[last] = FILE if node is None else node

    def _parent(self, path: bytes) -> tuple[_Folder | None, bytes]:
        segments = [segment for segment in path.split(b"/") if segment]
        if not segments:
            return None, b""
        folder = self._root
        for segment in segments[:-1]:
            node = folder.get(segment)
            if not isinstance(node, dict):
                # What was taken for a file holds one, so it is a folder after all.
                self._count(node, -1)
                node = folder[segment] = {}
            folder = node
        return folder, segments[-1]

    def _count(self, node: _Node | None, change: int) -> None:
        if isinstance(node, bytes):
            self._links += change


def _is_magic(segments: list[bytes]) -> bool:
    if segments[0] != b"proc" or len(segments) < 2:
        return False
    if segments[1] in {b"self", b"thread-self"} or segments[1].isdigit():
        rest = segments[2:]
        if rest[:1] == [b"task"] and len(rest) > 2:
            rest = rest[2:]
        return rest in ([b"cwd"], [b"root"], [b"exe"]) or (len(rest) == 2 and rest[0] in {b"fd", b"map_files"})
    return False


def _leaves(folder: _Folder, prefix: bytes) -> Iterator[bytes]:
    pending = [(prefix, folder)]
    while pending:
        before, current = pending.pop()
        for name, node in current.items():
            if isinstance(node, dict):
                pending.append((before + name + b"/", node))
            else:
                yield before + name
