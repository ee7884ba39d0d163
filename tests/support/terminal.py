"""A command line in a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from pathlib import Path


def set_size(descriptor: int, rows: int, columns: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Terminal:
    """A command line in a terminal of its own."""

    def __init__(self, argv: list[str], cwd: Path) -> None:
        self.said = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                # The parent sets the size first; a terminal is born without one.
                os.read(0, 100)
                os.execv(argv[0], argv)
            finally:
                os._exit(99)

    def until(self, words: str) -> None:
        """Read until these words were said."""
        deadline = time.monotonic() + 60
        while words.encode() not in self.said:
            assert time.monotonic() < deadline, self.said
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    block = os.read(self.master, 65536)
                except OSError:
                    block = b""
                assert block, self.said
                self.said += block

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def end(self) -> int:
        """Read to the end and return the exit status."""
        while True:
            try:
                block = os.read(self.master, 65536)
            except OSError:
                break
            if not block:
                break
            self.said += block
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
