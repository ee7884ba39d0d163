"""A plain log: text in which runs stand in fenced shell blocks, each with its exit.

    ```console
    $ pytest -q
    12 passed in 0.31s
    [exit 0]
    ```

What stands between is its output, of which totals of tests are read. A run is a line that begins with ``$`` in a block
named ``console``, ``shell``, ``sh``, ``bash``, ``zsh`` or ``shell-session``, closed by a line that holds its exit
alone: ``exit N``, ``exit code: N``, ``exit status N``, bare or in brackets. A command without that line is an example
or a plan; a block in a quotation (``>``), a command in running text and a block without a prompt claim nothing. Lines
that end with a backslash go on.
"""

from __future__ import annotations

import re
from typing import BinaryIO, Final

from troth.observer.totals import Printed
from troth.observer.transcripts.common import Finding, Said, Transcript, exit_in, lines_of

_FENCE: Final = re.compile(r"( {0,3})(`{3,}|~{3,})\s*([\w-]*)\s*")
_SHELLS: Final = frozenset({"console", "shell", "sh", "bash", "zsh", "shell-session", "shellsession"})
_PROMPT: Final = re.compile(r"\$ +(\S.*)")
_EXIT: Final = re.compile(r"[\[(]?exit(?:ed)?(?: with)?(?: (?:code|status))?[ :=]+(-?\d{1,3})[\])]?", re.IGNORECASE)


def read_log(stream: BinaryIO) -> Transcript:
    """Read a plain log."""
    found = Finding("plain")
    fence: str | None = None
    shell = False
    open_run: tuple[int, str] | None = None
    output = Printed()
    for number, raw in lines_of(stream, found):
        line = raw.decode("utf-8", "replace").rstrip()
        opened = _FENCE.fullmatch(line)
        if fence is None:
            if opened:
                fence, shell = opened[2], opened[3].lower() in _SHELLS
            continue
        if opened and not opened[3] and opened[2].startswith(fence):
            fence = None
            if open_run is not None:
                found.no_claim("a command without its exit")
                open_run = None
            continue
        if not shell:
            continue
        if open_run is not None and open_run[1].endswith("\\"):
            open_run = (open_run[0], open_run[1][:-1] + line)
            continue
        prompt, ended = _PROMPT.fullmatch(line), _EXIT.fullmatch(line)
        if prompt:
            if open_run is not None:
                found.no_claim("a command without its exit")
            open_run, output = (number, prompt[1]), Printed()
        elif ended and open_run is not None:
            totals = output.settled()
            found.say(
                Said(
                    open_run[0], text=open_run[1], exit=exit_in(int(ended[1])), call=False,
                    totals=totals[-1] if totals else None,
                )
            )  # fmt: skip
            open_run = None
        elif open_run is not None:
            output.take(line)
    if open_run is not None:
        found.no_claim("a command without its exit")
    return found.done()
