"""Second ways to one file: other names, no name at all, mappings (done records §13.3).

The tracer shows a descriptor by the name with which its file was opened. A file that was linked can lose that name and
go on under another; one that was opened without a name is shown without one even after it was given one; a mapping is
written without a call. Beneath ``.git``, changes are only counted: what has a second name or a mapping there could be
changed while nothing is put down. Where that is possible the answer is not known, and never guessed. Pure.
"""

from __future__ import annotations


class Doubles:
    """What has come to be known of second ways to files of the workspace. Paths are absolute, in bytes."""

    __slots__ = ("_apart", "_both_ways", "_linked", "_named", "_nameless", "_nameless_mapped")

    def __init__(self) -> None:
        self._linked: set[bytes] = set()
        self._both_ways: set[bytes] = set()
        self._apart: set[bytes] = set()
        self._nameless: set[bytes] = set()
        self._named: set[bytes] = set()
        self._nameless_mapped = False

    def opened(self, path: bytes) -> None:
        """A file was opened for reading and writing: a mapping of it can be made writable later."""
        self._both_ways.add(path)

    def opened_nameless(self, path: bytes) -> None:
        """A file without a name was opened, which the tracer shows as this one (free again when it shows it anew)."""
        self._named.discard(path)
        self._nameless.add(path)

    def mapped(self, path: bytes, *, gone: bool) -> None:
        """A file was mapped that is no part of the tree: it has no name (``gone``), or one that is only counted."""
        if not gone:
            self._apart.add(path)
        elif path in self._nameless:
            self._nameless_mapped = True

    def linked(self, old: bytes | None, new: bytes) -> bool:
        """A file was given another name, or its first; False when it could have been mapped while it had none.

        Which of several nameless files it was cannot be told: descriptors are copied and closed without a traced call.
        """
        self._linked.add(new)
        if old is None:
            self._named |= self._nameless
            return not self._nameless_mapped
        self._linked.add(old)
        if old in self._both_ways:
            self._both_ways.add(new)
        return True

    def moved(self, old: bytes, new: bytes) -> None:
        """A name was changed."""
        for known in (self._linked, self._both_ways, self._apart):
            if old in known:
                known.add(new)

    def may_be_mapped_writable(self, path: bytes) -> bool:
        """Tell whether a mapping of the file that is not writable can be made so."""
        return path in self._both_ways

    def is_elsewhere(self, path: bytes) -> bool:
        """Tell whether a file may be changed in another way than under this name."""
        return path in self._linked or path in self._apart

    def outlives(self, path: bytes) -> bool:
        """Tell whether a file that the tracer shows as deleted under this name may stand under another."""
        return path in self._linked or path in self._named
