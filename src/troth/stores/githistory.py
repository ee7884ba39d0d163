"""The history of a git repository, read through git itself with everything switched off that could run or change."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from troth.core.errors import Place, Refused
from troth.ledger.commits import FORMAT, Commit, commits
from troth.stores.importing import Line

_CHUNK: Final = 1 << 16
_SAID: Final = 2_000

_COMMAND: Final = (
    "--no-pager",
    "--no-replace-objects",
    "-c", "core.hooksPath=" + os.devnull,
    "-c", "core.fsmonitor=false",
    "-c", "gpg.program=false",
    "-c", "i18n.logOutputEncoding=UTF-8",
    "-c", "log.showSignature=false",
)  # fmt: skip
_LOG: Final = (
    "log", "--reverse", "--topo-order", "-z", "--no-show-signature", "--no-color", "--no-decorate", "--no-notes",
    "--no-mailmap", "--no-patch", f"--format=tformat:{FORMAT}", "--end-of-options", "HEAD", "--",
)  # fmt: skip


def history(repo: Path, actor: str) -> Iterator[Line]:
    """Yield every commit that HEAD leads to, parents first, as git tells them; memory holds one.

    Args:
        repo: a work tree, or a bare repository.
        actor: who imports.

    Raises:
        Refused: ``E_GIT``: git is missing, or does not list them; the message has its reason.
    """
    if shutil.which("git") is None:
        raise Refused("E_GIT", "git is not installed")
    place = Place(file=str(repo))
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                ["git", *_COMMAND, "-C", str(repo), *_LOG],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env=_environment(),
            )
        except (OSError, ValueError) as fault:
            raise Refused("E_GIT", f"git cannot be started: {fault}", place=place) from None
        assert process.stdout is not None
        try:
            number = 0
            problem: Refused | None = None
            try:
                for number, commit in enumerate(commits(_chunks(process.stdout)), 1):
                    yield _line(number, commit, actor)
            except Refused as fault:
                problem = fault  # git's own reason comes first
            if process.wait() != 0:
                said.seek(0)
                reason = said.read(_SAID).decode("utf-8", "replace").strip() or f"it ended with {process.returncode}"
                raise Refused("E_GIT", f"git does not list the commits: {reason}", place=place)
            if problem is not None:
                raise problem
        finally:
            process.stdout.close()
            process.kill()
            process.wait()


def _line(number: int, commit: Commit, actor: str) -> Line:
    return Line(number, len(commit.message), lambda state: commit.candidate(actor, state))


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


def _environment() -> dict[str, str]:
    """Return the environment without git's own variables, so that only the repository named is read."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("GIT_")}
    return kept | {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_GRAFT_FILE": os.devnull,
    }
