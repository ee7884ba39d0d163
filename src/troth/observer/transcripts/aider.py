"""aider: its chat history, a Markdown file.

What a person typed stands behind ``####``, what the program said behind ``>``, and the model's words stand bare. A
command ran where the program says ``Running COMMAND`` (one that the model suggested and the person accepted) or where a
person typed ``/run`` or ``/test`` and the program says that lines of output came of it. The file holds no exits. A
fenced block of the model's is a suggestion and claims nothing; nor does a quotation, which lacks the two blanks with
which aider ends its own lines.
"""

from __future__ import annotations

import re
from typing import BinaryIO, Final

from troth.observer.transcripts.common import Finding, Said, Transcript, lines_of

TRIED: Final = ("0.86.2",)

_VERSION: Final = re.compile(r"> Aider v(\d+(?:\.\w+)+)  ")
_RUNNING: Final = re.compile(r"> Running (.+?)  ")
_TYPED: Final = re.compile(r"#### (?:/(?:run|test) |!)\s*(.+?)  ")
_OUTPUT: Final = re.compile(
    r"> (?:Added \d+ lines? of output to the chat\.|Add \S+ tokens of command output to the chat\?)"
)


def read_history(stream: BinaryIO) -> Transcript:
    """Read ``.aider.chat.history.md``."""
    found = Finding("aider", "aider", TRIED)
    typed: tuple[int, str] | None = None
    for number, raw in lines_of(stream, found):
        line = raw.decode("utf-8", "replace").removesuffix("\r")
        version, running, said = _VERSION.match(line), _RUNNING.fullmatch(line), _TYPED.fullmatch(line)
        if version:
            found.version = version[1]
        elif running:
            found.say(Said(number, text=running[1].strip()))
            typed = None
        elif said:
            if typed is not None:
                found.no_claim("typed, without a word of its output")
            typed = (number, said[1].strip())
        elif typed is not None and _OUTPUT.match(line):
            found.say(Said(typed[0], text=typed[1]))
            typed = None
    if typed is not None:
        found.no_claim("typed, without a word of its output")
    return found.done()
