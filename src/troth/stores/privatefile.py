"""A small file of the user's own: read whole, replaced whole, by one writer at a time, and nobody else's business.

The file has mode 0600 and its folder 0700 from their creation. A symbolic link in its place is refused, and so is a
file that others may write: what stands there decides what may leave the machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from troth.core.errors import Place, Refused
from troth.stores.durable import open_regular, os_fault, replace_whole
from troth.stores.keys import PRIVATE_MODE, private_folder
from troth.stores.lock import WriteLock


class PrivateFile:
    """One such file.

    Args:
        path: of the file; its folder is made when something is written.
        limit: longest file read, in bytes.
        what: what the file is to a person, such as ``the file of grants``.
    """

    def __init__(self, path: Path, limit: int, what: str) -> None:
        self.path = path
        self._limit = limit
        self._what = what

    def read(self) -> bytes | None:
        """Return its bytes, ``None`` where there is no such file; of one that is too long no more than shows it.

        Raises:
            Refused: ``E_NOT_REGULAR`` for a symbolic link and whatever else is no file, ``E_KEY_OPEN`` when others may
                write it, ``E_UNREADABLE``.
        """
        if not os.path.lexists(self.path):
            return None
        fd = open_regular(self.path, os.O_RDONLY, "E_UNREADABLE", self._what)
        with os.fdopen(fd, "rb") as file:
            if os.name != "nt" and os.fstat(fd).st_mode & 0o022:
                raise Refused(
                    "E_KEY_OPEN",
                    f"others than its owner may write {self._what}",
                    place=Place(file=str(self.path)),
                    remedy="Look whether it still says what you said, then: chmod 600.",
                )
            try:
                return file.read(self._limit + 1)
            except OSError as fault:
                raise os_fault("E_UNREADABLE", fault, self.path, f"{self._what} cannot be read") from None

    def change(self, change: Callable[[bytes | None], bytes]) -> None:
        """Replace its bytes by what ``change`` makes of them; the old ones stand where anything fails.

        Raises:
            Refused: as :meth:`read`; ``E_UNREADABLE`` where it cannot be written.
            Busy: another writer held it all the time.
        """
        private_folder(self.path.parent)
        lock = WriteLock(self.path.with_name(f"{self.path.name}.lock"))
        try:
            with lock:
                data = change(self.read())
                try:
                    replace_whole(self.path, data, PRIVATE_MODE)
                except OSError as fault:
                    raise os_fault("E_UNREADABLE", fault, self.path, f"{self._what} cannot be written") from None
        finally:
            lock.close()
