"""The command line within this process: as fast as a call, with its own folder, environment and streams."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from support.frontdoor import Answer
from troth.cli.main import main

NEUTRAL = {"IMPASSE_HOST": "", "CLAUDECODE": "", "NO_COLOR": "1"}
"""No host of a review, and no colours, whatever started the tests."""


def troth_inside(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> Answer:
    """Run `troth WORDS…` in this process; the user's own folders stand beside ``cwd``, never where they are."""
    out, err = io.StringIO(), io.StringIO()
    home = cwd.parent / f"{cwd.name}-home"
    own = {name: str(home / name) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    with (
        contextlib.chdir(cwd), mock.patch.dict(os.environ, {**NEUTRAL, **own, **(env or {})}),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO())),
        contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
    ):  # fmt: skip
        status = main(list(words))
    return Answer(status, out.getvalue(), err.getvalue())
