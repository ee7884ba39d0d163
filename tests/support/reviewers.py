"""Stand-ins for the reviewers' command lines: small programs on a search path of the test."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

REVIEW: dict[str, Any] = {
    "schema_version": "1.0",
    "review_id": "R-1",
    "artifact": {"kind": "document", "revision": {"algorithm": "sha256", "value": "0" * 64}},
    "assessment": "approve",
    "summary": "Nothing material.",
    "findings": [],
}

_SEEN = """
import json, os, pathlib, sys, time
here = pathlib.Path(__file__).parent
fed = sys.stdin.buffer.read() if READS else b""
here.joinpath("seen.json").write_text(json.dumps({
    "argv": sys.argv[1:], "environment": dict(os.environ), "cwd": os.getcwd(), "left": os.listdir("."),
    "mode": os.stat(".").st_mode & 0o777, "fed": fed.decode("utf-8", "replace"),
}))
def option(name):
    return sys.argv[sys.argv.index(name) + 1]
"""


def stand_in(folder: Path, name: str, code: str, *, reads: bool = True) -> Path:
    """Put a program of that name into the folder; it writes what it was given to ``seen.json`` and runs the code."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    body = _SEEN.replace("READS", str(reads))
    program.write_text(f"#!{sys.executable} -IS\n{body}\n{code}\n")
    program.chmod(0o755)
    return program


def seen(folder: Path) -> dict[str, Any]:
    """Return what the stand-in was given last."""
    held: dict[str, Any] = json.loads((folder / "seen.json").read_text())
    return held


def around(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment whose search path has the folder first and whose home is empty."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(home), **more}


def final_message(text: str) -> str:
    """Return code of a ``codex`` that leaves this final message."""
    return f"pathlib.Path(option('--output-last-message')).write_bytes({text.encode('utf-8', 'surrogatepass')!r})"


def envelope(result: Any, **more: Any) -> str:
    """Return code of a ``claude`` that prints this envelope."""
    held = {"type": "result", "subtype": "success", "is_error": False, "result": result, **more}
    return f"sys.stdout.write({json.dumps(held)!r})"
